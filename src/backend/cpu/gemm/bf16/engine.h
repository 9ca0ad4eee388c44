/* Template: an engine that multiplies pairs of bfloat16. The including file has included a simd_*.h and the
 * pack_*.h of its set, and defines ENGINE, its name; WIDENING, the engine on its vectors; pair_fma(a, b, c),
 * pairs times pairs added to float32 sums; and redefines V_ACCUMULATE and V_ACCUMULATE_BROADCAST likewise, or
 * TILE_BROADCAST for both. ROUNDING_STORAGE, if the pack_*.h defines it, is the row of float32 numbers that
 * it rounds. */
#ifndef ROUNDING_STORAGE
#define ROUNDING_STORAGE
#endif
#define TILE_OF_PAIRS
#define TILE_FMA pair_fma
#include "backend/cpu/gemm/bf16/bf16.h"
#include "backend/cpu/gemm/blocked/micro_kernel.h"
#include "backend/cpu/gemm/lines/micro_kernel.h"

static const mix_gemm_storage storages[] = {
    {.dtype = MIX_BFLOAT16,
     .pack_a = {pack_a_along_k, pack_a_along_m},
     .pack_a_transposed = pack_a_transposed,
     .pack_b = {pack_b_plain, pack_b_transposed}},
    ROUNDING_STORAGE{.dtype = MIX_DTYPE_NONE},
};

const mix_gemm_engine ENGINE = {
    .mr = MR,
    .nr = NR,
    .lanes = LANES,
    .ragged_in_place = SIMD_MASKS,
    .pairs = true,
    .widening = &WIDENING,
    .element_size = sizeof(real),
    .sum_size = sizeof(real),
    .kc = KC,
    .mc = MC,
    .nc = NC,
    .micro = {micro_along_k, micro_along_m},
    .lines_micro = LINES_MICRO,
    .storages = storages,
    .algorithms = mix_gemm_pair_algorithms,
};
