/* Plans of a gemm engine, for tests that need to know which of its algorithms they run. */
#ifndef TESTS_BACKEND_GEMM_PLANS_H
#define TESTS_BACKEND_GEMM_PLANS_H

#include "backend/cpu/gemm/blocked/blocked.h"
#include "backend/cpu/gemm/fp16/fp16.h"
#include "backend/cpu/gemm/small_m/plan.h"
#include "backend/cpu/gemm/small_n/plan.h"
#include "backend/gemm_products.h"

/* Can this processor run the code of an engine? Its plans are made by it too. */
static inline bool engine_runs_here(const mix_gemm_engine *engine) {
  mix_cpu_override(UINT32_MAX);
  const uint32_t found = mix_cpu_features();
  if (engine == &mix_gemm_f32_avx2 || engine == &mix_gemm_f64_avx2) return found & MIX_CPU_AVX2;
  if (engine == &mix_gemm_f32_avx512 || engine == &mix_gemm_f64_avx512) return found & MIX_CPU_AVX512;
  if (engine == &mix_gemm_t4x16_avx512fp16 || engine == &mix_gemm_t4x32_avx512fp16)
    return found & MIX_CPU_AVX512_FP16;
  return true;
}

/* transposes: bit 0 for A, bit 1 for B. */
static inline mix_gemm_plan plan_of_shape(const mix_gemm_engine *engine, mix_dtype dtype, int64_t m,
                                          int64_t n, int64_t k, int transposes, int threads) {
  const bool ta = transposes & 1, tb = transposes & 2;
  const mix_gemm_problem problem = {.m = m,
                                    .n = n,
                                    .k = k,
                                    .transpose_a = ta,
                                    .transpose_b = tb,
                                    .lda = ta ? m : k,
                                    .ldb = tb ? k : n,
                                    .ldc = n};
  mix_gemm_plan plan;
  mix_gemm_make_plan(engine, mix_gemm_storage_of(engine, dtype), &problem, threads, &plan);
  return plan;
}

static inline mix_gemm_plan plan_of(const mix_gemm_engine *engine, const product *x, int threads) {
  return plan_of_shape(engine, x->inputs[0].dtype, x->m, x->n, x->k,
                       x->attributes.transpose_a + 2 * x->attributes.transpose_b, threads);
}

#endif
