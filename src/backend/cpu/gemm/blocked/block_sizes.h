/* Tile and block sizes of the vector engines: MR, NR, KC, MC, NC. Included after a simd_*.h. */
#pragma once

/* MR: rows of a tile. Of small_n: rows of A at once; of small_m: steps of k at once. */
#if SIMD_REGISTERS == 32 && SIMD_MASKS
enum { MR = 14, SMALL_N_ROWS = 2, SMALL_M_STEPS = 8 };
#elif SIMD_REGISTERS == 32 /* of 12 rows some loops spill: elements of A take registers of their own */
enum { MR = 8, SMALL_N_ROWS = 1, SMALL_M_STEPS = 8 };
#elif SIMD_BYTES == 32
enum { MR = 6, SMALL_N_ROWS = 1, SMALL_M_STEPS = 4 };
#else
enum { MR = 4, SMALL_N_ROWS = 1, SMALL_M_STEPS = 4 };
#endif
/* Of small_m with one row: vectors of columns at once, rows of B that are fetched ahead, and the most vectors
 * of columns. */
enum { SMALL_M_CHAINS = 4, SMALL_M_AHEAD = 4, SMALL_M_ROW_VECTORS = 8 };
/* NR: columns of a tile. small_n takes products of SMALL_N_COLUMNS; NT products of few rows, which it
 * computes transposed, may have up to SMALL_N_MAX_COLUMNS. */
enum { NR = 2 * LANES, SMALL_N_COLUMNS = 12, SMALL_N_MAX_COLUMNS = 15 };

/* The largest blocks: KC of k, MC rows, NC columns. A panel of A (MR, KC) stays in the first-level cache, a
 * block of B (KC, NC) in the second. 384 is the KC of oneDNN's float32 products, whose order of sums this
 * follows. */
#if SIMD_DOUBLE && SIMD_BYTES == 64
enum { KC = 256, MC = 2048, NC = 768 };
#elif SIMD_DOUBLE
enum { KC = 192, MC = 2048, NC = 768 };
#else
enum { KC = 384, MC = 2048, NC = 1024 };
#endif
