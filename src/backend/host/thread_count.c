/* How many threads a plan is min_work.
 *
 * A plan that trains writes weights that its next run reads, and with several threads every core then fetches
 * what another one has written, about a nanosecond a weight whatever the batch, because products forwards and
 * products of gradients share a matrix differently. Few examples bring less work than that. In 16 bits half
 * as much travels, and several threads win from the smallest batches on; so they do where weights and what
 * optimizers keep of them fill one core's cache. Measured on two cores, batches of 1 to 128 and 32 to 256
 * units (docs/PERFORMANCE.md). */
#include "backend/host/executor.h"
#include "base/alloc.h"
#include "base/processor.h"
#include "ops/attributes.h"
#include "ops/table.h"

enum {
  MIN_WORK_AVX512 = 90, /* multiplications: the work for which fetching a weight is min_work it */
  MIN_WORK_AVX2 = 30,
  MIN_WORK_PLAIN = 12,
  OF_BYTES = 2, /* multiplications: the work of a byte of what steps read, but for variables */
  KEPT = 2,     /* a weight and a slot */
};

static double min_work(void) {
  const uint32_t features = mix_cpu_features();
  return features & MIX_CPU_AVX512 ? MIN_WORK_AVX512
         : features & MIX_CPU_AVX2 ? MIN_WORK_AVX2
                                   : MIN_WORK_PLAIN;
}

static bool is_product(const mix_step *step) {
  return step->op == &mix_op_matmul || step->op == &mix_op_batch_matmul ||
         step->op == &mix_op_matmul_downcast;
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

/* The float32 or float64 weights that the plan writes and products read, each counted once. False: out of
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
    for (int n = 0; n < 2 && is_product(&plan->steps[i]); n++) {
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
  if (weights == 0 || KEPT * bytes > mix_cpu_cache(2)) return threads;
  for (int i = 0; i < plan->step_count; i++) {
    const mix_step *step = &plan->steps[i];
    if (is_product(step)) work += multiplications(plan, step);
    for (int n = 0; n < step->input_count; n++)
      if (variable_of(plan, step->inputs[n]) < 0)
        work += OF_BYTES * (double)plan->slots[step->inputs[n]].bytes;
  }
  return work < min_work() * weights ? 1 : threads;
}
