/* Template: the functions that fp16.h names, for each number of rows, one or both halves of a panel's columns
 * and both forms of A, out of multiply_tile of the including file. */

#define FP16_MULTIPLY_BY(rows, halves_of_panel, how, as_rows)                                                \
  static void panels_##how##_##rows##x##halves_of_panel(                                                     \
      const mix_fp16_sums *sums, int64_t depth, const uint16_t *a, const float *a_scales, const uint16_t *b, \
      const float *b_scales, float *c, int64_t c_stride, bool first, const char *prefetch,                   \
      int64_t prefetch_step) {                                                                               \
    multiply_tile(rows, halves_of_panel, as_rows, sums, depth, a, a_scales, b, b_scales, c, c_stride, first, \
                  prefetch, prefetch_step);                                                                  \
  }
#define FP16_MULTIPLY(rows)                                                                                  \
  FP16_MULTIPLY_BY(rows, 1, transposed, false)                                                               \
  FP16_MULTIPLY_BY(rows, 2, transposed, false)                                                               \
  FP16_MULTIPLY_BY(rows, 1, as_rows, true)                                                                   \
  FP16_MULTIPLY_BY(rows, 2, as_rows, true)
EACH_ROWS(FP16_MULTIPLY)

#define FP16_TRANSPOSED(rows) {panels_transposed_##rows##x1, panels_transposed_##rows##x2},
#define FP16_AS_ROWS(rows) {panels_as_rows_##rows##x1, panels_as_rows_##rows##x2},
mix_fp16_multiply *const mix_fp16_multiply_tile[2][FP16_MR][2] = {{EACH_ROWS(FP16_TRANSPOSED)},
                                                                  {EACH_ROWS(FP16_AS_ROWS)}};
