/* Tile sizes of the vector engines. Included after a simd_*.h. */
#ifndef MIX_BACKEND_CPU_GEMM_BLOCKED_TILE_SIZES_H
#define MIX_BACKEND_CPU_GEMM_BLOCKED_TILE_SIZES_H

/* MR: rows of a tile. Of small_n: rows of A at once; of small_m: steps of k at once. */
#if SIMD_BYTES == 64
enum { MR = 14, SMALL_N_ROWS = 2, SMALL_M_STEPS = 8 };
#elif SIMD_BYTES == 32
enum { MR = 6, SMALL_N_ROWS = 1, SMALL_M_STEPS = 4 };
#else
enum { MR = 4, SMALL_N_ROWS = 1, SMALL_M_STEPS = 4 };
#endif
/* NR: columns of a tile. small_n takes products of SMALL_N_COLUMNS; NT products of few rows, which it
 * computes transposed, may have up to SMALL_N_MAX_COLUMNS. */
enum { NR = 2 * LANES, SMALL_N_COLUMNS = 12, SMALL_N_MAX_COLUMNS = 15 };

#endif
