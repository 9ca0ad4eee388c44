/* What a plan of a product with few columns keeps. */
#pragma once

#include "backend/cpu/gemm/gemm.h"

typedef struct mix_small_n_plan {
  int64_t stride; /* of rows of the narrow operand, packed */
  /* The parts of a thread's workspace: sums in lanes, from part to part of k; the narrow operand; sums. */
  size_t lanes_bytes, narrow_bytes, sums_bytes, transpose_bytes;
} mix_small_n_plan;
MIX_GEMM_OWN_PLAN(mix_small_n_plan)

extern const mix_gemm_algorithm mix_gemm_small_n;
