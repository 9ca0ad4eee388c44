/* How an engine would do a product, for tests that want to know which of its forms they try. */
#ifndef TESTS_BACKEND_GEMM_PLANS_H
#define TESTS_BACKEND_GEMM_PLANS_H

#include "backend/cpu/gemm/gemm.h"
#include "backend/gemm_products.h"

static inline mix_gemm_plan plan_of(const mix_gemm_engine *engine, const product *x, int threads) {
  const mix_gemm_problem problem = {.m = x->m,
                                    .n = x->n,
                                    .k = x->k,
                                    .transpose_a = x->attributes.transpose_a,
                                    .transpose_b = x->attributes.transpose_b,
                                    .lda = x->inputs[0].shape.dims[1],
                                    .ldb = x->inputs[1].shape.dims[1],
                                    .ldc = x->n};
  mix_gemm_plan plan;
  mix_gemm_make_plan(engine, mix_gemm_storage_of(engine, x->inputs[0].dtype), &problem, threads, &plan);
  return plan;
}

#endif
