/* Which bfloat16 products are done in pairs: those that the engine that widens would do in blocks.
 * So a product has the same bits whichever of the two does it. */
#include "backend/cpu/gemm/bf16/bf16.h"
#include "backend/cpu/gemm/blocked/blocked.h"
#include "backend/cpu/gemm/lines/cells.h"
#include "backend/cpu/gemm/lines/lines.h"
#include "backend/cpu/gemm/small_m/plan.h"
#include "backend/cpu/gemm/small_n/plan.h"

enum {
  FEWEST_ROWS = 8,          /* fewer do not repay packing B */
  MIN_OPERATIONS = 1 << 13, /* of multiplications */
};

static const char *bf16_unsupported_reason(const mix_gemm_engine *engine, mix_dtype dtype,
                                           const mix_gemm_problem *p) {
  const mix_gemm_engine *widening = engine->widening;
  if (!mix_gemm_small_n.unsupported_reason(widening, dtype, p)) return "summed along vectors of k";
  if (p->m < FEWEST_ROWS) return "few rows, bound by reading B";
  if (mix_gemm_multiplications(p) < MIN_OPERATIONS) return "too small to repay packing";
  if (mix_gemm_prefers_transposed(p) && !mix_gemm_small_m.unsupported_reason(widening, dtype, p))
    return "few columns, bound by reading A";
  return NULL;
}

/* Blocked products of all shapes, less those that other algorithms or widening kernels do faster. */
static const mix_gemm_algorithm bf16_pairs = {
    .name = "pairs", .unsupported_reason = bf16_unsupported_reason, MIX_BLOCKED_FUNCTIONS};
const mix_gemm_algorithm *const mix_gemm_pair_algorithms[] = {&mix_gemm_lines, &mix_gemm_cells, &bf16_pairs,
                                                              NULL};
