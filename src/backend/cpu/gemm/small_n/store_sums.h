/* Template: the end of products with few columns, whose sums lie in the lanes of vectors. Included after a
 * simd_*.h. */
#include "backend/cpu/gemm/blocked/block_sizes.h"
#include "backend/cpu/gemm/gemm.h"
#include "backend/cpu/simd/horizontal_sum.h"

/* out[r * MIX_GEMM_SMALL_N_STRIDE + j] = v_horizontal_sum(sums[r][j]); the rest of a row of `out` is
 * overwritten. `rows`, 1 or 2, and `columns` are constants after inlining. */
SIMD_INLINE void store_horizontal_sums(const int rows, const int columns, vec (*sums)[SMALL_N_MAX_COLUMNS],
                                       real *out) {
#if SIMD_BYTES == 64 && !SIMD_DOUBLE
  /* Lanes of a vector for each row: half, where two rows fit one vector. */
  const int share = rows == 2 && columns <= LANES / 2 ? LANES / 2 : LANES;
  vec v[LANES] = {{0}};
  SIMD_UNROLL
  for (int r = 0; r < rows; r++) {
    SIMD_UNROLL
    for (int j = 0; j < columns; j++) v[r * share % LANES + j] = sums[r][j];
    if (share == LANES || r == 1)
      v_store(out + (share == LANES ? r * MIX_GEMM_SMALL_N_STRIDE : 0), v_horizontal_sum_16(v));
  }
  if (share < LANES) memcpy(out + MIX_GEMM_SMALL_N_STRIDE, out + share, (size_t)columns * sizeof *out);
#else
  SIMD_UNROLL
  for (int r = 0; r < rows; r++) {
    SIMD_UNROLL
    for (int j = 0; j < columns; j++) out[r * MIX_GEMM_SMALL_N_STRIDE + j] = v_horizontal_sum(sums[r][j]);
  }
#endif
}
