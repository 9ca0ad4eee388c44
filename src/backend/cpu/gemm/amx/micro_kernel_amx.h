/* Part of the template engine_tiles.h: micro-kernels with up to 2 x 2 tiles of C in registers 0 to 3, A in 4
 * and 5, B in 6 and 7.
 *
 * A step of one part loads all operands before it multiplies. While the core's other hardware thread is busy,
 * few tile registers are renamed, and loads and multiplications wait for each other: a step takes 176 cycles
 * (26 a multiplication, 16 a load) with all loads first, 201 with loads and multiplications alternating;
 * otherwise 48 and 52. Products of two parts load half as often, and gain nothing by it. */
#include "backend/cpu/gemm/amx/amx.h"
#include "backend/cpu/gemm/amx/tiles_amx.h"
#include "backend/cpu/simd/attributes.h"
#include <immintrin.h>

SIMD_INLINE void load_sums(const int rows, const int columns, const char *c, int64_t stride, bool first) {
  if (first) {
    _tile_zero(0);
    if (columns == 2) _tile_zero(1);
    if (rows == 2) _tile_zero(2);
    if (rows == 2 && columns == 2) _tile_zero(3);
    return;
  }
  _tile_loadd(0, c, stride);
  if (columns == 2) _tile_loadd(1, c + 64, stride);
  if (rows == 2) _tile_loadd(2, c + 16 * stride, stride);
  if (rows == 2 && columns == 2) _tile_loadd(3, c + 16 * stride + 64, stride);
}

SIMD_INLINE void store_sums(const int rows, const int columns, char *c, int64_t stride) {
  _tile_stored(0, c, stride);
  if (columns == 2) _tile_stored(1, c + 64, stride);
  if (rows == 2) _tile_stored(2, c + 16 * stride, stride);
  if (rows == 2 && columns == 2) _tile_stored(3, c + 16 * stride + 64, stride);
}

/* Loads before multiplications. Rows of A from `first` and `second` on. */
SIMD_INLINE void load_and_multiply(const int rows, const int columns, const unsigned char *first,
                                   const unsigned char *second, int64_t a_row, const unsigned char *b) {
  _tile_loadd(4, first, a_row);
  _tile_loadd(6, b, 64);
  if (rows == 2) _tile_loadd(5, second, a_row);
  if (columns == 2) _tile_loadd(7, b + 1024, 64);
  _tile_dpbf16ps(0, 4, 6);
  if (columns == 2) _tile_dpbf16ps(1, 4, 7);
  if (rows == 2) _tile_dpbf16ps(2, 5, 6);
  if (rows == 2 && columns == 2) _tile_dpbf16ps(3, 5, 7);
}

/* Loads and multiplications alternate; rows of A as above. multiply_both loads both operands; multiply_a
 * loads A and reuses B; multiply_b loads B and reuses A. */
SIMD_INLINE void multiply_both(const int rows, const int columns, const unsigned char *first,
                               const unsigned char *second, int64_t a_row, const unsigned char *b) {
  _tile_loadd(4, first, a_row);
  _tile_loadd(6, b, 64);
  _tile_dpbf16ps(0, 4, 6);
  if (columns == 2) {
    _tile_loadd(7, b + 1024, 64);
    _tile_dpbf16ps(1, 4, 7);
  }
  if (rows == 2) {
    _tile_loadd(5, second, a_row);
    _tile_dpbf16ps(2, 5, 6);
    if (columns == 2) _tile_dpbf16ps(3, 5, 7);
  }
}

SIMD_INLINE void multiply_a(const int rows, const int columns, const unsigned char *first,
                            const unsigned char *second, int64_t a_row) {
  _tile_loadd(4, first, a_row);
  _tile_dpbf16ps(0, 4, 6);
  if (columns == 2) _tile_dpbf16ps(1, 4, 7);
  if (rows == 2) {
    _tile_loadd(5, second, a_row);
    _tile_dpbf16ps(2, 5, 6);
    if (columns == 2) _tile_dpbf16ps(3, 5, 7);
  }
}

SIMD_INLINE void multiply_b(const int rows, const int columns, const unsigned char *b) {
  _tile_loadd(6, b, 64);
  _tile_dpbf16ps(0, 4, 6);
  if (rows == 2) _tile_dpbf16ps(2, 5, 6);
  if (columns == 2) {
    _tile_loadd(7, b + 1024, 64);
    _tile_dpbf16ps(1, 4, 7);
    if (rows == 2) _tile_dpbf16ps(3, 5, 7);
  }
}

SIMD_INLINE void prefetch_lines(const unsigned char *from, const int bytes) {
  for (int i = 0; i < bytes; i += 64) _mm_prefetch(from + i, _MM_HINT_T1);
}

/* in_place, a constant after inlining: A may be. */
SIMD_INLINE void multiply_whole(const int rows, const int columns, const bool in_place, int64_t steps,
                                const mix_amx_panel *panel, const unsigned char *b, float *c,
                                int64_t c_stride, bool first, const unsigned char *prefetch) {
  const unsigned char *a = panel->at;
  const int64_t step = in_place ? panel->step : AMX_PAIR, row = in_place ? panel->row : AMX_ROW;
  const bool tail = in_place && panel->tail;
  TILE_BARRIER();
  load_sums(rows, columns, (const char *)c, c_stride, first);
  for (steps -= tail; steps > 0; steps--, a += step, b += AMX_PAIR, prefetch += AMX_PREFETCH) {
    load_and_multiply(rows, columns, a, a + 16 * row, row, b);
    prefetch_lines(prefetch, AMX_PREFETCH);
  }
  if (tail) load_and_multiply(rows, columns, panel->tail, panel->tail + 1024, AMX_ROW, b);
  store_sums(rows, columns, (char *)c, c_stride);
  TILE_BARRIER();
}

SIMD_INLINE void multiply_lines(const int rows, const int columns, const mix_amx_step *steps, int64_t count,
                                const mix_amx_cells *cells, const unsigned char *b, float *c,
                                int64_t c_stride) {
  TILE_BARRIER();
  load_sums(rows, columns, NULL, 0, true);
  for (; count > 0; count--, steps++, b += AMX_PAIR) {
    const bool gathered = steps->gathered;
    const unsigned char *first = (gathered ? cells->gathered : cells->first[0]) + steps->at,
                        *second = (gathered ? cells->gathered + 1024 : cells->first[1]) + steps->at;
    load_and_multiply(rows, columns, first, second, gathered ? AMX_ROW : cells->stride, b);
  }
  store_sums(rows, columns, (char *)c, c_stride);
  TILE_BARRIER();
}

/* Copies 16 rows of a part, with zeros for numbers that are not finite. */
static void clear_not_finite(const unsigned char *part, int64_t row, unsigned char *cleared) {
  const __m512i exponent = _mm512_set1_epi16(0x7f80);
  for (int i = 0; i < 16; i++, part += row, cleared += 64) {
    const __m512i x = _mm512_loadu_si512(part);
    const __mmask32 finite = _mm512_cmpneq_epi16_mask(_mm512_and_si512(x, exponent), exponent);
    _mm512_store_si512(cleared, _mm512_maskz_mov_epi16(finite, x));
  }
}

__attribute__((noinline)) static void clear_step(const unsigned char *first, const unsigned char *second,
                                                 int64_t a_row, const unsigned char *b,
                                                 unsigned char *cleared) {
  clear_not_finite(first, a_row, cleared);
  clear_not_finite(second, a_row, cleared + 1024);
  clear_not_finite(b, 64, cleared + AMX_PAIR);
  clear_not_finite(b + 1024, 64, cleared + AMX_PAIR + 1024);
  TILE_BARRIER();
}

/* A step of two parts, the lower one of A `part` bytes behind the upper one. Flagged steps keep the order lo
 * hi, hi hi, hi lo: elements of finite numbers alone have the same bits. */
SIMD_INLINE void multiply_parts(const int rows, const int columns, const unsigned char *first,
                                const unsigned char *second, int64_t a_row, int64_t part,
                                const unsigned char *b, bool flagged) {
  if (__builtin_expect(flagged, 0)) {
    _Alignas(64) unsigned char cleared[2 * AMX_PAIR];
    clear_step(first, second, a_row, b, cleared);
    multiply_both(rows, columns, first + part, second + part, a_row, cleared + AMX_PAIR);
    multiply_both(rows, columns, first, second, a_row, b);
    multiply_both(rows, columns, cleared, cleared + 1024, 64, b + AMX_PAIR);
    return;
  }
  multiply_both(rows, columns, first + part, second + part, a_row, b);
  multiply_a(rows, columns, first, second, a_row);
  multiply_b(rows, columns, b + AMX_PAIR);
}

SIMD_INLINE void multiply_split(const int rows, const int columns, int64_t steps, const mix_amx_panel *panel,
                                const unsigned char *b, float *c, int64_t c_stride, bool first,
                                const unsigned char *a_flags, const unsigned char *b_flags,
                                const unsigned char *prefetch) {
  const unsigned char *a = panel->at;
  TILE_BARRIER();
  load_sums(rows, columns, (const char *)c, c_stride, first);
  for (; steps > 0; steps--, a += 2 * AMX_PAIR, b += 2 * AMX_PAIR, prefetch += 2 * AMX_PREFETCH) {
    prefetch_lines(prefetch, 2 * AMX_PREFETCH);
    multiply_parts(rows, columns, a, a + 1024, AMX_ROW, AMX_PAIR, b, *a_flags++ | *b_flags++);
  }
  store_sums(rows, columns, (char *)c, c_stride);
  TILE_BARRIER();
}

SIMD_INLINE void multiply_split_lines(const int rows, const int columns, const mix_amx_step *steps,
                                      int64_t count, const mix_amx_cells *cells, const unsigned char *b,
                                      const unsigned char *b_flags, float *c, int64_t c_stride) {
  TILE_BARRIER();
  load_sums(rows, columns, NULL, 0, true);
  for (; count > 0; count--, steps++, b += 2 * AMX_PAIR)
    multiply_parts(rows, columns, cells->first[0] + steps->at, cells->first[1] + steps->at, cells->stride,
                   cells->part, b, cells->flag | *b_flags++);
  store_sums(rows, columns, (char *)c, c_stride);
  TILE_BARRIER();
}

#define AMX_WHOLE(name, in_place, rows, columns)                                                             \
  static void name##_##rows##x##columns(                                                                     \
      int64_t steps, const mix_amx_panel *a, const unsigned char *b, float *c, int64_t c_stride, bool first, \
      const unsigned char *a_flags, const unsigned char *b_flags, const unsigned char *prefetch) {           \
    multiply_whole(rows, columns, in_place, steps, a, b, c, c_stride, first, prefetch);                      \
  }
#define AMX_MULTIPLY(rows, columns)                                                                          \
  AMX_WHOLE(whole, false, rows, columns)                                                                     \
  AMX_WHOLE(in_place, true, rows, columns)                                                                   \
  static void split_##rows##x##columns(int64_t steps, const mix_amx_panel *a, const unsigned char *b,        \
                                       float *c, int64_t c_stride, bool first, const unsigned char *a_flags, \
                                       const unsigned char *b_flags, const unsigned char *prefetch) {        \
    multiply_split(rows, columns, steps, a, b, c, c_stride, first, a_flags, b_flags, prefetch);              \
  }                                                                                                          \
  static void lines_##rows##x##columns(const mix_amx_step *steps, int64_t count, const mix_amx_cells *cells, \
                                       const unsigned char *b, const unsigned char *b_flags, float *c,       \
                                       int64_t c_stride) {                                                   \
    multiply_lines(rows, columns, steps, count, cells, b, c, c_stride);                                      \
  }                                                                                                          \
  static void split_lines_##rows##x##columns(const mix_amx_step *steps, int64_t count,                       \
                                             const mix_amx_cells *cells, const unsigned char *b,             \
                                             const unsigned char *b_flags, float *c, int64_t c_stride) {     \
    multiply_split_lines(rows, columns, steps, count, cells, b, b_flags, c, c_stride);                       \
  }
AMX_MULTIPLY(1, 1)
AMX_MULTIPLY(1, 2)
AMX_MULTIPLY(2, 1)
AMX_MULTIPLY(2, 2)
