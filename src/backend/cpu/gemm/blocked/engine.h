/* Template: an engine on vectors of floats or doubles. The including file has included a simd_*.h and defines
 * ENGINE, its name. */
#include "backend/cpu/gemm/blocked/micro_kernel.h"
#include "backend/cpu/gemm/lines/micro_kernel.h"
#include "backend/cpu/gemm/small_n/store_sums.h"

#if SIMD_DOUBLE
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
#define STORAGE as_f16
#define ELEMENT float
#include "backend/cpu/gemm/blocked/pack.h"
#define STORAGE as_bf16
#define ELEMENT float
#include "backend/cpu/gemm/blocked/pack.h"
#define micro_as_f16 NULL
#define micro_as_bf16 NULL
#endif

#define STORAGE_ROW(type, constant, as_is, rounded)                                                          \
  {                                                                                                          \
    .dtype = constant, .rounds = rounded, .in_place = as_is,                                                 \
    .pack_a = {pack_a_along_k_##type, pack_a_along_m_##type}, .pack_a_transposed = pack_a_transposed_##type, \
    .pack_b = {pack_b_plain_##type, pack_b_transposed_##type}, .micro = micro_##type,                        \
    .small_n = {small_n_rows_##type, small_n_row_##type}, .small_m = small_m_##type,                         \
  }

static const mix_gemm_storage storages[] = {
#if SIMD_DOUBLE
    STORAGE_ROW(f64, MIX_FLOAT64, true, false),
#else
    STORAGE_ROW(f32, MIX_FLOAT32, true, false),
    STORAGE_ROW(f16, MIX_FLOAT16, false, false),
    STORAGE_ROW(bf16, MIX_BFLOAT16, false, false),
    STORAGE_ROW(as_f16, MIX_FLOAT16, false, true),
    STORAGE_ROW(as_bf16, MIX_BFLOAT16, false, true),
#endif
    {.dtype = MIX_DTYPE_NONE},
};

const mix_gemm_engine ENGINE = {
    .mr = MR,
    .nr = NR,
    .lanes = LANES,
    .ragged_in_place = SIMD_MASKS,
    .element_size = sizeof(real),
    .sum_size = sizeof(real),
    .kc = KC,
    .mc = MC,
    .nc = NC,
    .small_n_rows = SMALL_N_ROWS,
    .small_n_columns = SMALL_N_COLUMNS,
    .small_m_row = SMALL_M_ROW_VECTORS * LANES,
    .micro = {micro_along_k, micro_along_m},
    .lines_micro = LINES_MICRO,
    .storages = storages,
    .algorithms = mix_gemm_vector_algorithms,
};
