/* Template of the micro-kernels of one instruction set: every number of rows up to TILE_ROWS, one or two vectors of columns, both
 * layouts of A. The accumulators of the full tile fill the register file (14x2 of 32, 6x2 of 16, 4x2 of 16: Goto and van de Geijn,
 * Anatomy of high-performance matrix multiplication, ACM TOMS 2008; Van Zee and van de Geijn, BLIS, ACM TOMS 2015). */
#include "backend/cpu/gemm/gemm.h"
#include "backend/cpu/gemm/blocked/storage.h"
#include "backend/cpu/gemm/vector.h"

/* B as it is multiplied, or as it is stored: where few rows use it, it is widened as it comes. A constant where it is inlined. */
enum { AS_IS, FROM_F16, FROM_BF16 };
#if GEMM_DOUBLE
#define B_LOAD(how, p) load((const GEMM_REAL *)(p))
#define B_LOAD_SOME(how, p, count, mask) ((void)(count), load_lanes((const GEMM_REAL *)(p), mask))
#else
GEMM_INLINE vector B_LOAD(const int how, const void *p) {
  return how == FROM_F16 ? widen_f16(p) : how == FROM_BF16 ? widen_bf16(p) : load(p);
}
/* As load_lanes, where a part of a vector is left. */
GEMM_INLINE vector B_LOAD_SOME(const int how, const void *p, int count, lane_mask mask) {
  if (how == AS_IS) return load_lanes(p, mask);
#ifndef __AVX512F__
  return B_LOAD(how, p);
#endif
  return how == FROM_F16 ? widen_some_f16(p, count) : widen_some_bf16(p, count);
}
#endif

/* `rows`, `vectors` and `layout` are constants where it is inlined, so that `sums` lives in registers. In layout rows, row 4 g + r
 * is reached from one of four pointers by 0, 1, 2 or 3 strides: addressing modes that need no further register. */
GEMM_INLINE void multiply_tile(const int rows, const int vectors, const int layout, const int stored, int64_t depth,
                               const GEMM_REAL *a, int64_t a_stride, const void *b_first, int64_t b_stride, GEMM_REAL *c,
                               int64_t c_stride, int columns, mix_gemm_store how) {
  const int64_t b_element = stored == AS_IS ? (int64_t)sizeof(GEMM_REAL) : 2;
  const char *b = b_first;
  const int left = columns - (vectors - 1) * LANES;
  vector sums[TILE_ROWS][2];
  const lane_mask last = first_lanes(columns - (vectors - 1) * LANES);
  GEMM_UNROLL
  for (int i = 0; i < rows; i++) sums[i][0] = sums[i][1] = (vector){0};
  if (how == MIX_GEMM_ADD) {
    const GEMM_REAL *row = c;
#pragma GCC unroll 1
    for (int i = 0; i < rows; i++, row += c_stride) __builtin_prefetch(row, 1, 3), __builtin_prefetch(row + columns - 1, 1, 3);
  }
  const GEMM_REAL *group[4] = {a, a + 4 * a_stride, a + 8 * a_stride, a + 12 * a_stride};
#pragma GCC unroll 1
  for (int64_t k = 0; k < depth; k++) {
    const vector b0 = vectors == 2 ? B_LOAD(stored, b) : B_LOAD_SOME(stored, b, left, last);
    const vector b1 = vectors == 2 ? B_LOAD_SOME(stored, b + LANES * b_element, left, last) : b0;
    GEMM_UNROLL
    for (int i = 0; i < rows; i++) {
      const vector x = broadcast(layout == MIX_GEMM_ROWS ? group[i / 4][i % 4 * a_stride] : a[i]);
      sums[i][0] = multiply_add(x, b0, sums[i][0]);
      if (vectors == 2) sums[i][1] = multiply_add(x, b1, sums[i][1]);
    }
    b += b_stride * b_element;
    if (layout == MIX_GEMM_ROWS) {
      GEMM_UNROLL
      for (int g = 0; g < (rows + 3) / 4; g++) {
        group[g]++;
        GEMM_OPAQUE(group[g]);
      }
    } else {
      a += a_stride;
    }
  }
  GEMM_UNROLL
  for (int i = 0; i < rows; i++) {
    GEMM_REAL *end = c + (vectors - 1) * LANES;
    if (how == MIX_GEMM_STREAM) {
      stream(c, sums[i][0]);
      if (vectors == 2) stream(end, sums[i][1]);
    } else {
      if (how == MIX_GEMM_ADD) {
        if (vectors == 2) sums[i][0] += load(c);
        sums[i][vectors - 1] += load_some(end, columns - (vectors - 1) * LANES, last);
      }
      if (vectors == 2) store(c, sums[i][0]);
      store_lanes(end, last, sums[i][vectors - 1]);
    }
    c += c_stride;
    GEMM_OPAQUE(c);
  }
}

/* A tile of two whole vectors, A along rows: where large products spend their time. Multiplications come near the processor's
 * peak only if little else is issued: another's work may take half of the issue slots (the core's other hardware thread, which a
 * virtual machine does not see). So four steps of k a transpose, no masks (a masked load takes a slot of a multiplication), and three
 * rows of four read their element of A in the instructions that multiply by it; all rows would be more loads than the load ports
 * take. */
GEMM_INLINE void multiply_whole(const int rows, int64_t depth, const GEMM_REAL *a, int64_t a_stride, const GEMM_REAL *b,
                                int64_t b_stride, GEMM_REAL *c, int64_t c_stride, bool add, const char *prefetch,
                                int64_t prefetch_step) {
  enum { AHEAD = 16 };
  vector sums[TILE_ROWS][2];
  GEMM_UNROLL
  for (int i = 0; i < rows; i++) sums[i][0] = sums[i][1] = (vector){0};
  if (add) {
    const GEMM_REAL *row = c;
#pragma GCC unroll 1
    for (int i = 0; i < rows; i++, row += c_stride) __builtin_prefetch(row, 1, 3), __builtin_prefetch(row + LANES, 1, 3);
  }
#define STEP()                                                                                                                     \
  do {                                                                                                                             \
    const vector b0 = load(b), b1 = load(b + LANES);                                                                               \
    __builtin_prefetch(b + AHEAD * TILE_COLUMNS), __builtin_prefetch(b + AHEAD * TILE_COLUMNS + LANES);                            \
    GEMM_UNROLL                                                                                                                    \
    for (int i = 0; i < rows; i++) {                                                                                               \
      if (i % 4) {                                                                                                                 \
        ACCUMULATE_FROM(sums[i][0], a + i, b0);                                                                                    \
        ACCUMULATE_FROM(sums[i][1], a + i, b1);                                                                                    \
      } else {                                                                                                                     \
        const vector x = broadcast(a[i]);                                                                                          \
        ACCUMULATE(sums[i][0], x, b0);                                                                                             \
        ACCUMULATE(sums[i][1], x, b1);                                                                                             \
      }                                                                                                                            \
    }                                                                                                                              \
    a += a_stride, b += b_stride;                                                                                                  \
    GEMM_OPAQUE(a);                                                                                                                \
    GEMM_OPAQUE(b);                                                                                                                \
  } while (0)
#pragma GCC unroll 1
  for (; depth >= MIX_GEMM_K_UNROLL; depth -= MIX_GEMM_K_UNROLL, prefetch += prefetch_step) {
    __builtin_prefetch(prefetch, 0, 2);
    STEP();
    STEP();
    STEP();
    STEP();
  }
#pragma GCC unroll 1
  for (; depth > 0; depth--) STEP();
#undef STEP
  GEMM_UNROLL
  for (int i = 0; i < rows; i++, c += c_stride) {
    GEMM_OPAQUE(c);
    if (add) sums[i][0] += load(c), sums[i][1] += load(c + LANES);
    store(c, sums[i][0]);
    store(c + LANES, sums[i][1]);
  }
}

#define GEMM_MICRO(rows, layout, stored, name)                                                                                     \
  static void name##_##rows(int64_t depth, const void *a, int64_t a_stride, const void *b, int64_t b_stride, void *c,              \
                            int64_t c_stride, int columns, mix_gemm_store how, const char *prefetch, int64_t prefetch_step) {            \
    if (layout == MIX_GEMM_COLUMNS && columns == TILE_COLUMNS && how != MIX_GEMM_STREAM)                                           \
      multiply_whole(rows, depth, a, a_stride, b, b_stride, c, c_stride, how == MIX_GEMM_ADD, prefetch, prefetch_step);                  \
    else if (columns > LANES)                                                                                                      \
      multiply_tile(rows, 2, layout, stored, depth, a, a_stride, b, b_stride, c, c_stride, columns, how);                          \
    else                                                                                                                           \
      multiply_tile(rows, 1, layout, stored, depth, a, a_stride, b, b_stride, c, c_stride, columns, how);                          \
  }

#if defined(__AVX512F__)
#define GEMM_EACH_ROWS(X, ...)                                                                                                     \
  X(1, __VA_ARGS__)                                                                                                                \
  X(2, __VA_ARGS__)                                                                                                                \
  X(3, __VA_ARGS__)                                                                                                                \
  X(4, __VA_ARGS__)                                                                                                                \
  X(5, __VA_ARGS__) X(6, __VA_ARGS__) X(7, __VA_ARGS__) X(8, __VA_ARGS__) X(9, __VA_ARGS__) X(10, __VA_ARGS__) X(11, __VA_ARGS__)  \
      X(12, __VA_ARGS__) X(13, __VA_ARGS__) X(14, __VA_ARGS__)
#elif defined(__AVX2__)
#define GEMM_EACH_ROWS(X, ...)                                                                                                     \
  X(1, __VA_ARGS__) X(2, __VA_ARGS__) X(3, __VA_ARGS__) X(4, __VA_ARGS__) X(5, __VA_ARGS__) X(6, __VA_ARGS__)
#else
#define GEMM_EACH_ROWS(X, ...) X(1, __VA_ARGS__) X(2, __VA_ARGS__) X(3, __VA_ARGS__) X(4, __VA_ARGS__)
#endif

GEMM_EACH_ROWS(GEMM_MICRO, MIX_GEMM_ROWS, AS_IS, along_depth)
GEMM_EACH_ROWS(GEMM_MICRO, MIX_GEMM_COLUMNS, AS_IS, along_rows)

#define GEMM_NAME(rows, name) name##_##rows,
static mix_gemm_micro *const micro_rows[TILE_ROWS] = {GEMM_EACH_ROWS(GEMM_NAME, along_depth)};
static mix_gemm_micro *const micro_columns[TILE_ROWS] = {GEMM_EACH_ROWS(GEMM_NAME, along_rows)};
#define micro_f64 NULL
#define micro_f32 NULL
#if !GEMM_DOUBLE
GEMM_EACH_ROWS(GEMM_MICRO, MIX_GEMM_ROWS, FROM_F16, widening_f16)
GEMM_EACH_ROWS(GEMM_MICRO, MIX_GEMM_ROWS, FROM_BF16, widening_bf16)
static mix_gemm_micro *const micro_f16[TILE_ROWS] = {GEMM_EACH_ROWS(GEMM_NAME, widening_f16)};
static mix_gemm_micro *const micro_bf16[TILE_ROWS] = {GEMM_EACH_ROWS(GEMM_NAME, widening_bf16)};
#endif
