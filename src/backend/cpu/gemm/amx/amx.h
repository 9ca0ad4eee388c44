/* The AMX engine: its parts are the driver (driver_avx512.c), planning (plan_avx512.c), packing
 * (pack_avx512.c), and what uses tile registers: micro-kernels (micro_kernel_amx.h), of which engine_tiles.h
 * makes an engine. Tests make another one, over registers that are emulated.
 *
 * A tile register holds 16 rows of 64 bytes. TDPBF16PS adds to a (16, 16) tile of float32 the product of a
 * (16, 32) tile of bfloat16 and one of (32, 16), stored as (16 pairs of k, 16 columns). A packed operand is a
 * row of panels of 32 rows of op(A), or 32 columns of op(B); a panel is [step of 32 k][part][2 tiles of 1
 * KiB], so that each block of k is contiguous.
 *
 * bfloat16 has one part. float16 has two: a float16 number has 11 significant bits and exponents down to
 * 2^-24, so it is exactly hi + lo, where hi is its rounding to bfloat16 (8 bits) and lo the difference (3
 * bits, no bfloat16 subnormal). A product takes lo hi, hi hi, hi lo, and leaves out lo lo. (Henry, Tang,
 * Heinecke, "Leveraging the bfloat16 artificial intelligence datatype for higher-precision computations",
 * ARITH 2019.) Where a number is not finite, lo is zero and the step of its panel is flagged. In a flagged
 * step lo is multiplied with a hi whose infinities and NaNs are cleared; hi hi alone carries them, with the
 * signs and zeros of the numbers themselves. So the result is finite, infinite or NaN as it would be without
 * the split, and no other kernel is needed.
 *
 * float32 has two parts as well, where its products were asked for in `high` precision
 * (mix_set_float32_precision): lo is rounded to bfloat16, so that hi + lo keeps 17 bits of 24. Where hi would
 * round to infinity both parts are cut instead.
 *
 * Tiles take bfloat16 subnormals (below 1.2e-38) in operands, and float32 subnormals in sums, as zero,
 * whatever MXCSR says. float16 loses nothing by that. */
#pragma once

#include "backend/cpu/gemm/gemm.h"

enum {
  AMX_PANEL = 32,     /* rows or columns of a panel */
  AMX_STEP = 32,      /* k of a step */
  AMX_LANES = 16,     /* float32 numbers in a vector */
  AMX_ROW = 64,       /* bytes of a row of a tile */
  AMX_PAIR = 2048,    /* bytes of a part of a step of a panel */
  AMX_PREFETCH = 256, /* bytes that are prefetched for each of these */
};

/* Packs `count` rows of op(A) or columns of op(B), `depth` of k, both padded with zeros. A panel takes steps
 * * parts * AMX_PAIR bytes. Sets flags[panel * steps + step] where the storage has two parts. */
typedef void mix_amx_pack(const void *source, int64_t stride, int64_t count, int64_t depth,
                          unsigned char *packed, unsigned char *flags);
/* A panel of A as tiles read it. With one part it may be A itself, in place; then a last step of fewer than
 * 32 k is packed at `tail`. */
typedef struct mix_amx_panel {
  const unsigned char *at, *tail;
  int64_t step, row; /* bytes from one step of k (and part) to the next, from one row to the next */
} mix_amx_panel;
/* C (16 or 32, 16 or 32) = or += a panel of A times a panel of B. c_stride in bytes; C and packed operands
 * are 64-byte aligned. AMX_PREFETCH bytes for each step and part are prefetched to the second-level cache,
 * from `prefetch` on. */
typedef void mix_amx_multiply(int64_t steps, const mix_amx_panel *a, const unsigned char *b, float *c,
                              int64_t c_stride, bool first, const unsigned char *a_flags,
                              const unsigned char *b_flags, const unsigned char *prefetch);

/* A step of k where rows of A are cells of an image (lines.h): bytes from a cell's first number to the
 * step's; or, of one that is gathered, where its tiles are. */
typedef struct mix_amx_step {
  int64_t at;
  bool gathered;
} mix_amx_step;
/* One or two tiles of cells, `stride` bytes from one to the next. Of two parts the lower one is `part` bytes
 * behind the upper one; flag: some numbers may not be finite. */
typedef struct mix_amx_cells {
  const unsigned char *first[2], *gathered;
  int64_t stride, part;
  bool flag;
} mix_amx_cells;
/* C (16 or 32, 16 or 32) = all steps of these cells times a panel of B. */
typedef void mix_amx_multiply_lines(const mix_amx_step *steps, int64_t count, const mix_amx_cells *cells,
                                    const unsigned char *b, const unsigned char *b_flags, float *c,
                                    int64_t c_stride);
/* Packs `count` numbers, whole steps, in two parts, of which a step is a row of a tile. True: they are not
 * all finite. */
typedef bool mix_amx_pack_line(const void *source, int64_t count, unsigned char *packed, int64_t part);

typedef struct mix_amx_storage {
  mix_dtype dtype;
  mix_amx_pack *pack[2][2];     /* [A, B][k along memory, k from row to row] */
  mix_amx_pack_line *pack_line; /* NULL: of one part */
} mix_amx_storage;
const mix_amx_storage *mix_amx_storage_of(mix_dtype dtype);
/* Parts of a number: bfloat16 is itself, float16 and float32 are sums of two. */
static inline int mix_amx_parts(mix_dtype dtype) { return dtype == MIX_BFLOAT16 ? 1 : 2; }

/* Two loops over blocks of C. What the outer one packs may be kept for the inner one, whose operand the team
 * may pack for all threads, shared_blocks blocks at a time (0: each thread packs its own). */
typedef struct mix_amx_plan {
  bool a_in_place;
  bool columns_outside; /* the outer loop goes over blocks of columns */
  bool keep_outer;
  /* Sums over the two halves of k, added at the end: products of few results and many terms. Does not depend
   * on the threads. */
  bool split_k;
  int grid_depth; /* 2: each half of k has its own threads */
  int64_t shared_blocks;
  size_t shared_block_bytes;
  int64_t gathered_rows; /* rows of op(A), of patches, that are gathered at once and then packed */
  int64_t c_stride;      /* of sums in the workspace */
  /* The parts of a thread's workspace; with split_k sums are shared. */
  size_t a_bytes, b_bytes, c_bytes, gathered_bytes;
} mix_amx_plan;
MIX_GEMM_OWN_PLAN(mix_amx_plan)

void mix_amx_make_plan(mix_gemm_plan *plan);
mix_gemm_workspace mix_amx_workspace(const mix_gemm_plan *plan);
/* Does not depend on the threads, because the order of sums depends on it. */
bool mix_amx_splits_k(const mix_gemm_problem *problem);
const char *mix_amx_unsupported_reason(const mix_gemm_engine *engine, mix_dtype dtype,
                                       const mix_gemm_problem *problem);

mix_amx_pack mix_amx_pack_a_along_bf16, mix_amx_pack_a_across_bf16, mix_amx_pack_b_along_bf16,
    mix_amx_pack_b_across_bf16;
mix_amx_pack mix_amx_pack_a_along_f16, mix_amx_pack_a_across_f16, mix_amx_pack_b_along_f16,
    mix_amx_pack_b_across_f16;
mix_amx_pack mix_amx_pack_a_along_f32, mix_amx_pack_a_across_f32, mix_amx_pack_b_along_f32,
    mix_amx_pack_b_across_f32;
mix_amx_pack_line mix_amx_pack_line_f16, mix_amx_pack_line_f32;
/* What uses tile registers. Their state belongs to a thread, and any other library may release it: so a run
 * enters and leaves. [rows > 16][columns > 16]: for operands of one part, for these with A in place, for
 * operands of two parts. */
typedef struct mix_amx_tiles {
  void (*enter)(void);
  void (*leave)(void);
  mix_amx_multiply *whole[2][2], *in_place[2][2], *split[2][2];
  mix_amx_multiply_lines *lines[2][2], *split_lines[2][2]; /* of one part, of two */
} mix_amx_tiles;
/* The work of a thread (mix_gemm_algorithm.run). */
void mix_amx_run(const mix_amx_tiles *tiles, const mix_gemm_plan *plan, const mix_gemm_operands *operands,
                 const mix_team *team, void *shared, void *own);
