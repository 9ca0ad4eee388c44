/* The engine with float16 sums, of AVX512-FP16 and of NEON: its parts are planning and driver (engine.h),
 * packing (pack.h, scaling.h) and micro-kernels (micro_kernel.h), over vectors (vectors_*.h).
 *
 * Such instructions multiply and add twice as many float16 numbers as float32 ones, but round each sum to
 * float16. *Blocked accumulation* keeps such sums short. `chains` chains of `length` products are each
 * summed in float16; the chains are added pairwise; their sum, a block, is widened and added to a float32
 * sum. t4x16 is four chains of sixteen. (Blanchard, Higham, Mary, "A class of fast and accurate summation
 * algorithms", SIAM J. Sci. Comput. 2020.)
 *
 * Operands are packed in panels: rows of op(A), at most 14, as [k][16]; columns of op(B) as [k][64]. Where
 * few columns use them, rows of A that lie along k stay rows, [128 of k][16][k], because an element of A can
 * be broadcast from anywhere. Each *step* of a panel, 64 or 128 numbers of k, has its own scale, a power of
 * two, that brings its largest finite number just below 2^a (in A) or 2^b (in B), with a + b + log2(step) =
 * 15: no sum inside a step can overflow. The fused multiply-add that ends a block undoes the scales. So a
 * block is finite wherever its exact sum is. bfloat16 is served too: its 8 significant bits fit into
 * float16's 11, and the same scale re-biases its exponents.
 *
 * A number that a scale takes below the smallest float16 (2^-24; at least 2^-29 of the step's largest number)
 * is held at that number, so that its product with an infinity is still an infinity. Infinities and NaNs stay
 * what they are, and float16 arithmetic treats them as float32's does.
 *
 * Panels, steps and chains depend on the shape alone, so the bits do not depend on threads or blocks. */
#pragma once

#include "backend/cpu/gemm/gemm.h"

enum {
  FP16_MR = 14, /* rows of a panel of A, at most */
  FP16_ROW_SLOTS = 16,
  FP16_NR = 64,    /* columns of a panel of B */
  FP16_LANES = 16, /* float32 numbers in a vector */
  FP16_ROUND = 32, /* panels have space for k in such units */
  FP16_MIN_STEP = 64,
  FP16_MAX_STEP = 128,
  FP16_MAX_PANELS = 16, /* packed in one call */
  FP16_PREFETCH = 16,   /* bytes that a chain prefetches for each of its products */
};

typedef struct mix_fp16_plan {
  bool packed_once; /* the operand that all tiles of a share use (A where they go by columns): for all of k */
  bool prefetch_b_source; /* the block of B that is packed next, while tiles are multiplied */
  int a_panels, b_panels; /* of rows of A, of columns of B, that are in the workspace at once */
  int64_t column_span;    /* columns, of several blocks, for which rows of A are packed once */
  int64_t c_stride;       /* of sums in the workspace */
  size_t a_bytes, b_bytes, c_bytes, gathered_bytes; /* the parts of a thread's workspace */
} mix_fp16_plan;
MIX_GEMM_OWN_PLAN(mix_fp16_plan)

/* How one operand is packed. */
typedef struct mix_fp16_packing {
  const uint16_t *source;
  int64_t stride; /* elements from row to row in memory */
  bool across;    /* k goes from row to row */
  mix_dtype dtype;
  int slots;    /* FP16_ROW_SLOTS or FP16_NR */
  bool as_rows; /* [FP16_MAX_STEP of k][FP16_ROW_SLOTS][k]: of A, not across */
  int limit;    /* scaled numbers are below 2^limit */
  int step;     /* numbers of k that share a scale */
} mix_fp16_packing;

/* Packs `panels` panels, at most FP16_MAX_PANELS, for k from `first`: rows of op(A) or columns of op(B)
 * [starts[i], starts[i + 1]). Panel i goes to packed + i * panel_elements, the factors that undo its scales,
 * one a step, to scales + i * panel_scales. Missing columns of B, and k up to the next multiple of 8, are
 * zeros. */
void mix_fp16_pack(const mix_fp16_packing *packing, int panels, const int64_t *starts, int64_t first,
                   int64_t depth, uint16_t *packed, int64_t panel_elements, float *scales,
                   int64_t panel_scales);

/* All powers of two; chains * length divides step. At most 8 chains: k is padded to a multiple of 8. */
typedef struct mix_fp16_sums {
  int chains, length, step;
} mix_fp16_sums;

/* C (rows, up to 32 or 64) = or += a panel of A times a panel of B. c is 64-byte aligned, c_stride in
 * elements, a multiple of 16. At the start of each chain FP16_PREFETCH * length bytes of memory that is
 * packed next are prefetched, from `prefetch` on, prefetch_step bytes from one chain to the next; 0: none. */
typedef void mix_fp16_multiply(const mix_fp16_sums *sums, int64_t depth, const uint16_t *a,
                               const float *a_scales, const uint16_t *b, const float *b_scales, float *c,
                               int64_t c_stride, bool first, const char *prefetch, int64_t prefetch_step);
/* [A packed as rows][rows - 1][columns > 32] */
extern mix_fp16_multiply *const mix_fp16_multiply_tile[2][FP16_MR][2];
