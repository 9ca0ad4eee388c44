/* Plans of a gemm engine, for tests that need to know which of its algorithms they run. */
#ifndef TESTS_BACKEND_GEMM_PLANS_H
#define TESTS_BACKEND_GEMM_PLANS_H

#include "backend/cpu/gemm/blocked/blocked.h"
#include "backend/cpu/gemm/fp16/fp16.h"
#include "backend/cpu/gemm/small_m/plan.h"
#include "backend/cpu/gemm/small_n/plan.h"
#include "backend/gemm_products.h"

/* The engine of a name, as "f32_avx512"; NULL: this architecture has none, or this processor cannot run its
 * code, by which its plans are made too. */
static inline const mix_gemm_engine *engine_here(const char *name) {
#define ENGINES_OF_SET(set, features, ...)                                                                   \
  {"mix_gemm_f32_" #set, &mix_gemm_f32_##set, features},                                                     \
      {"mix_gemm_f64_" #set, &mix_gemm_f64_##set, features},
#define ENGINE_OF_PRODUCT(id, dtype, engine, kernel, features, ...) {#engine, &engine, features},
  static const struct {
    const char *name;
    const mix_gemm_engine *engine;
    uint32_t needs;
  } all[] = {MIX_VECTOR_SETS(ENGINES_OF_SET) MIX_SPECIAL_PRODUCTS(ENGINE_OF_PRODUCT)};
  mix_cpu_override(UINT32_MAX);
  const uint32_t found = mix_cpu_features() | MIX_CPU_BF16_PAIRS; /* whether they gain or not */
  for (size_t i = 0; i < sizeof all / sizeof *all; i++)
    if (!strcmp(all[i].name + strlen("mix_gemm_"), name)) return all[i].needs & ~found ? NULL : all[i].engine;
  return NULL;
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
