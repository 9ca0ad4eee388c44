/* Template of an engine: the including file defines GEMM_REAL, GEMM_DOUBLE, GEMM_ENGINE (its name) and the largest blocks
 * GEMM_DEPTH, GEMM_ROWS_BLOCK and GEMM_COLUMNS_BLOCK, and is compiled for the instruction set that its own name ends in. */
#include "backend/cpu/gemm/blocked/micro_kernel.h"

#if GEMM_DOUBLE
#define STORAGE f64
#define ELEMENT double
#include "backend/cpu/gemm/blocked/pack.h"
#else
#define STORAGE f32
#define ELEMENT float
#include "backend/cpu/gemm/blocked/pack.h"
#define STORAGE f16
#define ELEMENT uint16_t
#include "backend/cpu/gemm/blocked/pack.h"
#define STORAGE bf16
#define ELEMENT uint16_t
#include "backend/cpu/gemm/blocked/pack.h"
#endif

#define GEMM_STORAGE(type, constant, as_is)                                                                                        \
  {                                                                                                                                \
    .dtype = constant, .in_place = as_is, .pack_a = {pack_a_rows_##type, pack_a_columns_##type},                                   \
    .pack_a_transposed = pack_a_transposed_##type, .pack_b = {pack_b_plain_##type, pack_b_transposed_##type},    \
    .micro = micro_##type, .small_n = {small_n_rows_##type, small_n_row_##type}, .small_m = small_m_##type,          \
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
    .kc = GEMM_DEPTH,
    .mc = GEMM_ROWS_BLOCK,
    .nc = GEMM_COLUMNS_BLOCK,
    .small_n_rows = SMALL_N_ROWS,
    .small_n_columns = SMALL_N_COLUMNS,
    .micro = {micro_rows, micro_columns},
    .storages = storages,
};
