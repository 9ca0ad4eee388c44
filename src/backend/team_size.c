/* How many threads a plan is worth.
 *
 * A plan that trains writes weights that its next run reads, and with several threads every core then fetches what another one has
 * written, about a nanosecond a weight whatever the batch, because products forwards and products of gradients share a matrix
 * differently. Few examples bring less work than that. In 16 bits half as much travels, and several threads win from the smallest
 * batches on; so they do where weights and what optimizers keep of them fill one core's cache. Measured on two cores, batches of 1 to
 * 128 and 32 to 256 units (docs/PERFORMANCE.md). */
#include "backend/host.h"
#include "base/cpu.h"
#include "ops/attributes.h"
#include "ops/table.h"

enum {
  WORTH = 90,   /* multiplications: the work for which fetching a weight is worth it */
  OF_BYTES = 2, /* multiplications: the work of a byte of what steps read, but for variables */
  KEPT = 2,     /* a weight and a slot */
};

static bool is_product(const mix_step *step) {
  return step->op == &mix_op_matmul || step->op == &mix_op_batch_matmul || step->op == &mix_op_matmul_rounded;
}

static double multiplications(const mix_plan *plan, const mix_step *step) {
  const mix_matmul_attributes *attributes = step->attributes;
  const mix_shape *a = &plan->slots[step->inputs[0]].shape, *b = &plan->slots[step->inputs[1]].shape;
  double count = (double)b->dims[b->rank - (attributes->transpose_b ? 2 : 1)];
  for (int d = 0; d < a->rank; d++) count *= (double)a->dims[d];
  return count;
}

/* The variable that a slot is, which may have several. */
static int variable_of(const mix_plan *plan, int slot) {
  return plan->slots[slot].kind == MIX_SLOT_VARIABLE ? plan->slots[slot].index : -1;
}

static bool writes(const mix_plan *plan, int variable) {
  for (int i = 0; i < plan->step_count; i++)
    for (int o = 0; o < plan->steps[i].output_count; o++)
      if (variable_of(plan, plan->steps[i].outputs[o]) == variable) return true;
  return false;
}

/* Has a product before step `before` read it? */
static bool was_read(const mix_plan *plan, int before, int variable) {
  for (int i = 0; i < before; i++)
    for (int n = 0; n < 2 && is_product(&plan->steps[i]); n++)
      if (variable_of(plan, plan->steps[i].inputs[n]) == variable) return true;
  return false;
}

int mix_host_team_size(const mix_plan *plan, int threads) {
  double work = 0, weights = 0;
  int64_t bytes = 0;
  for (int i = 0; i < plan->step_count; i++) {
    const mix_step *step = &plan->steps[i];
    for (int n = 0; n < step->input_count; n++) {
      const mix_slot *slot = &plan->slots[step->inputs[n]];
      const int variable = variable_of(plan, step->inputs[n]);
      if (variable < 0) {
        work += OF_BYTES * (double)slot->bytes;
      } else if (is_product(step) && n < 2 && !was_read(plan, i, variable) && writes(plan, variable)) {
        if (mix_dtype_size(slot->dtype) == sizeof(uint16_t)) return threads;
        weights += (double)slot->bytes / (double)mix_dtype_size(slot->dtype);
        bytes += KEPT * (int64_t)slot->bytes;
      }
    }
    if (is_product(step)) work += multiplications(plan, step);
  }
  return weights > 0 && work < WORTH * weights && bytes <= mix_cpu_cache(2) ? 1 : threads;
}
