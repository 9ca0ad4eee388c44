/* Template: the micro-kernels of one instruction set, for every number of rows up to MR, one or two vectors
 * of columns, both layouts of A. The sums of a full tile fill the register file (14 x 2 of 32, 8 x 2 of 32, 6
 * x 2 of 16, 4 x 2 of 16): Goto and van de Geijn, Anatomy of high-performance matrix multiplication, ACM TOMS
 * 2008; Van Zee and van de Geijn, BLIS, ACM TOMS 2015. */
#include "backend/cpu/gemm/blocked/block_sizes.h"
#include "backend/cpu/gemm/gemm.h"

/* What multiplies elements and adds: where they are pairs of k, the engine's own (bf16/engine.h). */
#ifndef TILE_FMA
#define TILE_FMA v_fma
#endif
/* How multiply_whole reads an element of A for all lanes; of three rows of four in the multiplications. */
#ifndef TILE_BROADCAST
#define TILE_BROADCAST(p) v_set(*(p))
#define TILE_MULTIPLIES_FROM_MEMORY 1
#endif

/* B as float32 or float64, or as stored in 16 bits and widened in registers, where few rows use it. */
enum { AS_IS, FROM_F16, FROM_BF16 };

/* `stored` is a constant after inlining. */
SIMD_INLINE vec load_b(const int stored, const void *p) {
#if !SIMD_DOUBLE
  if (stored == FROM_F16) return v_load_f16(p);
  if (stored == FROM_BF16) return v_load_bf16(p);
#endif
  return v_load(p);
}
/* The last vector of a row of B. Without masks it is read whole: there a ragged B is packed, which pads
 * it. */
SIMD_INLINE vec load_last_b(const int stored, const void *p, v_part part) {
#if !SIMD_MASKS
  return load_b(stored, p);
#else
#if !SIMD_DOUBLE
  if (stored == FROM_F16) return v_load_f16_part(p, part);
  if (stored == FROM_BF16) return v_load_bf16_part(p, part);
#endif
  return v_load_part(p, part);
#endif
}

/* The last vector of a row of C. Without masks a whole vector is faster as such. */
SIMD_INLINE vec load_last_c(const real *p, v_part part) {
#if !SIMD_MASKS
  if (part == LANES) return v_load(p);
#endif
  return v_load_part(p, part);
}
SIMD_INLINE void store_last_c(real *p, vec x, v_part part) {
#if !SIMD_MASKS
  if (part == LANES) {
    v_store(p, x);
    return;
  }
#endif
  v_store_part(p, x, part);
}

/* `rows`, `vectors`, `layout` and `stored` are constants after inlining, so that `sums` lives in registers.
 * In layout MIX_GEMM_ALONG_K row 4 g + r is reached from pointer g by r strides: addressing modes that need
 * no further register. */
SIMD_INLINE void multiply_tile(const int rows, const int vectors, const int layout, const int stored,
                               int64_t depth, const real *a, int64_t a_stride, const void *b_first,
                               int64_t b_stride, real *c, int64_t c_stride, int columns,
                               mix_gemm_store store, const char *prefetch, int64_t prefetch_step) {
  const int64_t b_element = stored == AS_IS ? (int64_t)sizeof(real) : 2;
  const char *b = b_first;
  vec sums[MR][2];
  const v_part last = v_first(columns - (vectors - 1) * LANES);
  SIMD_UNROLL
  for (int i = 0; i < rows; i++) sums[i][0] = sums[i][1] = (vec){0};
  if (store == MIX_GEMM_ADD) {
    const real *row = c;
#pragma GCC unroll 1
    for (int i = 0; i < rows; i++, row += c_stride)
      __builtin_prefetch(row, 1, 3), __builtin_prefetch(row + columns - 1, 1, 3);
  }
  const real *group[4] = {a, a + 4 * a_stride, a + 8 * a_stride, a + 12 * a_stride};
#pragma GCC unroll 1
  for (int64_t k = 0; k < depth; k++) {
    const vec b0 = vectors == 2 ? load_b(stored, b) : load_last_b(stored, b, last);
    const vec b1 = vectors == 2 ? load_last_b(stored, b + LANES * b_element, last) : b0;
    SIMD_UNROLL
    for (int i = 0; i < rows; i++) {
      const vec x = v_set(layout == MIX_GEMM_ALONG_K ? group[i / 4][i % 4 * a_stride] : a[i]);
      sums[i][0] = TILE_FMA(x, b0, sums[i][0]);
      if (vectors == 2) sums[i][1] = TILE_FMA(x, b1, sums[i][1]);
    }
    b += b_stride * b_element;
    if (layout == MIX_GEMM_ALONG_K) {
      __builtin_prefetch(prefetch, 0, 2);
      prefetch += prefetch_step;
      SIMD_UNROLL
      for (int g = 0; g < (rows + 3) / 4; g++) {
        group[g]++;
        SIMD_OPAQUE(group[g]);
      }
    } else {
      a += a_stride;
    }
  }
  SIMD_UNROLL
  for (int i = 0; i < rows; i++) {
    real *end = c + (vectors - 1) * LANES;
    if (store == MIX_GEMM_STREAM) {
      v_stream(c, sums[i][0]);
      if (vectors == 2) v_stream(end, sums[i][1]);
    } else {
      if (store == MIX_GEMM_ADD) {
        if (vectors == 2) sums[i][0] += v_load(c);
        sums[i][vectors - 1] += load_last_c(end, last);
      }
      if (vectors == 2) v_store(c, sums[i][0]);
      store_last_c(end, sums[i][vectors - 1], last);
    }
    c += c_stride;
    SIMD_OPAQUE(c);
  }
}

/* A tile of two whole vectors, A along m: where large products spend their time. Multiplications come near
 * the processor's peak only if little else is issued, because the core's other hardware thread may take half
 * of the issue slots. Therefore four steps of k in one iteration; no masks, since a masked load takes a slot
 * of a multiplication; and three rows of four read their element of A in the instruction that multiplies by
 * it. (All rows would need more load ports than there are.) */
SIMD_INLINE void multiply_whole(const int rows, int64_t depth, const real *a, int64_t a_stride, const real *b,
                                int64_t b_stride, real *c, int64_t c_stride, bool add, const char *prefetch,
                                int64_t prefetch_step) {
  enum { PREFETCH_ROWS = 16 };
  vec sums[MR][2];
  SIMD_UNROLL
  for (int i = 0; i < rows; i++) sums[i][0] = sums[i][1] = (vec){0};
  if (add) {
    const real *row = c;
#pragma GCC unroll 1
    for (int i = 0; i < rows; i++, row += c_stride)
      __builtin_prefetch(row, 1, 3), __builtin_prefetch(row + LANES, 1, 3);
  }
#define STEP()                                                                                               \
  do {                                                                                                       \
    const vec b0 = v_load(b), b1 = v_load(b + LANES);                                                        \
    __builtin_prefetch(b + PREFETCH_ROWS * NR), __builtin_prefetch(b + PREFETCH_ROWS * NR + LANES);          \
    SIMD_UNROLL                                                                                              \
    for (int i = 0; i < rows; i++) {                                                                         \
      if (TILE_MULTIPLIES_FROM_MEMORY && i % 4) {                                                            \
        V_ACCUMULATE_BROADCAST(sums[i][0], a + i, b0);                                                       \
        V_ACCUMULATE_BROADCAST(sums[i][1], a + i, b1);                                                       \
      } else {                                                                                               \
        const vec x = TILE_BROADCAST(a + i);                                                                 \
        V_ACCUMULATE(sums[i][0], x, b0);                                                                     \
        V_ACCUMULATE(sums[i][1], x, b1);                                                                     \
      }                                                                                                      \
    }                                                                                                        \
    a += a_stride, b += b_stride;                                                                            \
    SIMD_OPAQUE(a);                                                                                          \
    SIMD_OPAQUE(b);                                                                                          \
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
  SIMD_UNROLL
  for (int i = 0; i < rows; i++, c += c_stride) {
    SIMD_OPAQUE(c);
    if (add) sums[i][0] += v_load(c), sums[i][1] += v_load(c + LANES);
    v_store(c, sums[i][0]);
    v_store(c + LANES, sums[i][1]);
  }
}

#define MICRO_KERNEL(rows, layout, stored, name)                                                             \
  static void name##_##rows(int64_t depth, const void *a, int64_t a_stride, const void *b, int64_t b_stride, \
                            void *c, int64_t c_stride, int columns, mix_gemm_store store,                    \
                            const char *prefetch, int64_t prefetch_step) {                                   \
    if (layout == MIX_GEMM_ALONG_M && columns == NR && store != MIX_GEMM_STREAM)                             \
      multiply_whole(rows, depth, a, a_stride, b, b_stride, c, c_stride, store == MIX_GEMM_ADD, prefetch,    \
                     prefetch_step);                                                                         \
    else if (columns > LANES)                                                                                \
      multiply_tile(rows, 2, layout, stored, depth, a, a_stride, b, b_stride, c, c_stride, columns, store,   \
                    prefetch, prefetch_step);                                                                \
    else                                                                                                     \
      multiply_tile(rows, 1, layout, stored, depth, a, a_stride, b, b_stride, c, c_stride, columns, store,   \
                    prefetch, prefetch_step);                                                                \
  }

#if SIMD_REGISTERS == 32 && SIMD_MASKS
#define EACH_MR(X, ...)                                                                                      \
  X(1, __VA_ARGS__) X(2, __VA_ARGS__) X(3, __VA_ARGS__) X(4, __VA_ARGS__) X(5, __VA_ARGS__)                  \
  X(6, __VA_ARGS__) X(7, __VA_ARGS__) X(8, __VA_ARGS__) X(9, __VA_ARGS__) X(10, __VA_ARGS__)                 \
  X(11, __VA_ARGS__) X(12, __VA_ARGS__) X(13, __VA_ARGS__) X(14, __VA_ARGS__)
#elif SIMD_REGISTERS == 32
#define EACH_MR(X, ...)                                                                                      \
  X(1, __VA_ARGS__) X(2, __VA_ARGS__) X(3, __VA_ARGS__) X(4, __VA_ARGS__)                                    \
  X(5, __VA_ARGS__) X(6, __VA_ARGS__) X(7, __VA_ARGS__) X(8, __VA_ARGS__)
#elif SIMD_BYTES == 32
#define EACH_MR(X, ...)                                                                                      \
  X(1, __VA_ARGS__) X(2, __VA_ARGS__) X(3, __VA_ARGS__) X(4, __VA_ARGS__) X(5, __VA_ARGS__) X(6, __VA_ARGS__)
#else
#define EACH_MR(X, ...) X(1, __VA_ARGS__) X(2, __VA_ARGS__) X(3, __VA_ARGS__) X(4, __VA_ARGS__)
#endif

EACH_MR(MICRO_KERNEL, MIX_GEMM_ALONG_K, AS_IS, along_k)
EACH_MR(MICRO_KERNEL, MIX_GEMM_ALONG_M, AS_IS, along_m)

#define MICRO_KERNEL_NAME(rows, name) name##_##rows,
static mix_gemm_micro *const micro_along_k[MR] = {EACH_MR(MICRO_KERNEL_NAME, along_k)};
static mix_gemm_micro *const micro_along_m[MR] = {EACH_MR(MICRO_KERNEL_NAME, along_m)};
#ifndef TILE_OF_PAIRS
/* By storage dtype: those that widen B. */
#define micro_f64 NULL
#define micro_f32 NULL
#if !SIMD_DOUBLE
EACH_MR(MICRO_KERNEL, MIX_GEMM_ALONG_K, FROM_F16, widening_f16)
EACH_MR(MICRO_KERNEL, MIX_GEMM_ALONG_K, FROM_BF16, widening_bf16)
static mix_gemm_micro *const micro_f16[MR] = {EACH_MR(MICRO_KERNEL_NAME, widening_f16)};
static mix_gemm_micro *const micro_bf16[MR] = {EACH_MR(MICRO_KERNEL_NAME, widening_bf16)};
#endif
#endif
