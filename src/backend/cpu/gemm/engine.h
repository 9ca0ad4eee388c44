/* Template of an engine: the including file defines GEMM_REAL, GEMM_DOUBLE, GEMM_ENGINE (its name) and the largest blocks
 * GEMM_DEPTH, GEMM_ROWS_BLOCK and GEMM_COLUMNS_BLOCK, and is compiled for the instruction set that its own name ends in. */
#include "backend/cpu/gemm/micro.h"

#if GEMM_DOUBLE
#define STORAGE f64
#define ELEMENT double
#include "backend/cpu/gemm/pack.h"
#else
#define STORAGE f32
#define ELEMENT float
#include "backend/cpu/gemm/pack.h"
#define STORAGE f16
#define ELEMENT uint16_t
#include "backend/cpu/gemm/pack.h"
#define STORAGE bf16
#define ELEMENT uint16_t
#include "backend/cpu/gemm/pack.h"
#endif

#define GEMM_STORAGE(type, constant, as_is)                                                                                        \
  {                                                                                                                                \
    .dtype = constant, .in_place = as_is, .pack_a = {pack_a_rows_##type, pack_a_columns_##type},                                   \
    .pack_a_turned = pack_a_turned_##type, .pack_b = {pack_b_plain_##type, pack_b_turned_##type},    \
    .micro = micro_##type, .dot = {dot_rows_##type, dot_row_##type}, .sweep = sweep_##type,          \
  }

static const mix_gemm_storage storages[] = {
#if GEMM_DOUBLE
    GEMM_STORAGE(f64, MIX_FLOAT64, true),
#else
    GEMM_STORAGE(f32, MIX_FLOAT32, true),
    GEMM_STORAGE(f16, MIX_FLOAT16, false),
    GEMM_STORAGE(bf16, MIX_BFLOAT16, false),
#endif
    {.dtype = MIX_DTYPE_NONE},
};

const mix_gemm_engine GEMM_ENGINE = {
    .rows = TILE_ROWS,
    .columns = TILE_COLUMNS,
    .lanes = LANES,
#ifdef __AVX512F__
    .ragged_in_place = true,
#endif
    .element = sizeof(GEMM_REAL),
    .sum = sizeof(GEMM_REAL),
    .depth_block = GEMM_DEPTH,
    .row_block = GEMM_ROWS_BLOCK,
    .column_block = GEMM_COLUMNS_BLOCK,
    .dot_rows = DOT_ROWS,
    .dot_columns = DOT_COLUMNS,
    .micro = {micro_rows, micro_columns},
    .storages = storages,
};
