/* Which bfloat16 products are done in pairs. */
#include "backend/cpu/gemm/bf16/bf16.h"
#include "backend/cpu/gemm/blocked/blocked.h"

static const char *unsupported_reason(const mix_gemm_engine *engine, mix_dtype dtype,
                                      const mix_gemm_problem *p) {
  (void)engine, (void)dtype, (void)p;
  return NULL;
}

const mix_gemm_algorithm mix_gemm_pairs = {.name = "pairs",
                                           .unsupported_reason = unsupported_reason,
                                           .plan = mix_blocked_make_plan,
                                           .workspace = mix_blocked_workspace,
                                           .run = mix_blocked_run};
const mix_gemm_algorithm *const mix_gemm_pair_algorithms[] = {&mix_gemm_pairs, NULL};
