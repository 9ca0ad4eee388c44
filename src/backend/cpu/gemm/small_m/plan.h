/* What a plan of a product with few rows keeps. */
#pragma once

#include "backend/cpu/gemm/gemm.h"

typedef struct mix_small_m_plan {
  bool prefetch_b;               /* the rows of B that are multiplied next */
  int64_t a_stride, sums_stride; /* of A, widened; of sums */
  /* The parts of a thread's workspace. `spare`: sums of a later block of k. */
  size_t a_bytes, spare_bytes, sums_bytes, transpose_bytes;
} mix_small_m_plan;
MIX_GEMM_OWN_PLAN(mix_small_m_plan)

extern const mix_gemm_algorithm mix_gemm_small_m;
