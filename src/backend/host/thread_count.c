/* The number of threads of a plan: one if its work is too small for several.
 *
 * A training plan writes weights that its next run reads. With several threads every core then fetches
 * weights that another core wrote, because forward products and gradient products divide a matrix
 * differently. This costs about a nanosecond a weight, whatever the batch size; a small batch has less work
 * than that. With 16-bit weights half as many bytes move, and several threads win even for the smallest
 * batches. They also win if the weights and the optimizer slots exceed the cache of one core. The constants
 * were measured on two cores, with batches of 1 to 128 and 32 to 256 units
 * (bench/results/2026-11-23-steps.md). */
#include "backend/host/executor.h"
#include "base/alloc.h"
#include "base/processor.h"
#include "ops/attributes.h"
#include "ops/table.h"

/* Work is counted in multiplications. */
enum {
  MIN_WORK_AVX512 = 90, /* for each weight: the least work that pays for fetching it from another core */
  MIN_WORK_AVX2 = 30,
  MIN_WORK_PLAIN = 12,
  WORK_OF_BYTE = 2,      /* for each byte that steps read, except of variables */
  VALUES_PER_WEIGHT = 2, /* the weight and one optimizer slot */
};

static double min_work(void) {
  const uint32_t features = mix_cpu_features();
  return features & MIX_CPU_AVX512 ? MIN_WORK_AVX512
         : features & MIX_CPU_AVX2 ? MIN_WORK_AVX2
                                   : MIN_WORK_PLAIN;
}

static double multiplications(const mix_plan *plan, const mix_step *step) {
  if (!step->op->contraction) return 0;
  const mix_shape operands[MIX_CONTRACTED] = {plan->slots[step->inputs[0]].shape,
                                              plan->slots[step->inputs[1]].shape};
  return step->op->contraction->multiplications(step->attributes, operands);
}

/* The variable of a slot, or -1. Several slots may be the same variable. */
static int variable_of(const mix_plan *plan, int slot) {
  return plan->slots[slot].kind == MIX_SLOT_VARIABLE ? plan->slots[slot].index : -1;
}

/* Counts, once each, the float32 or float64 weights that the plan writes and products read. False: out of
 * memory, recorded. */
static bool count_weights(const mix_plan *plan, double *elements, int64_t *bytes) {
  enum { WRITTEN = 1, COUNTED };
  char *marks = mix_calloc((size_t)plan->variable_count + 1, 1);
  *elements = 0, *bytes = 0;
  if (!marks) return false;
  for (int i = 0; i < plan->step_count; i++)
    for (int o = 0; o < plan->steps[i].output_count; o++) {
      const int variable = variable_of(plan, plan->steps[i].outputs[o]);
      if (variable >= 0) marks[variable] = WRITTEN;
    }
  for (int i = 0; i < plan->step_count; i++)
    for (int n = 0; n < MIX_CONTRACTED && plan->steps[i].op->contraction; n++) {
      const mix_slot *slot = &plan->slots[plan->steps[i].inputs[n]];
      const int variable = variable_of(plan, plan->steps[i].inputs[n]);
      const size_t size = mix_dtype_size(slot->dtype);
      if (variable < 0 || marks[variable] != WRITTEN || size == sizeof(uint16_t)) continue;
      marks[variable] = COUNTED;
      *elements += (double)slot->bytes / (double)size;
      *bytes += (int64_t)slot->bytes;
    }
  mix_free(marks);
  return true;
}

int mix_host_thread_count(const mix_plan *plan, int threads) {
  double weights, work = 0;
  int64_t bytes;
  if (!count_weights(plan, &weights, &bytes)) return 0;
  if (weights == 0 || VALUES_PER_WEIGHT * bytes > mix_cpu_cache(2)) return threads;
  for (int i = 0; i < plan->step_count; i++) {
    const mix_step *step = &plan->steps[i];
    work += multiplications(plan, step);
    for (int n = 0; n < step->input_count; n++)
      if (variable_of(plan, step->inputs[n]) < 0)
        work += WORK_OF_BYTE * (double)plan->slots[step->inputs[n]].bytes;
  }
  return work < min_work() * weights ? 1 : threads;
}
