/* The number of threads of a plan: one if its work is too small for several. Operations and bytes of its
 * steps are counted, in multiplications, and divided by the speed of processors with the instruction set.
 * What two threads save must be more than what they cost: waking the others, handing them each step, and
 * fetching weights.
 *
 * A training plan writes weights that its next run reads. With several threads every core then fetches
 * weights that another core wrote, because forward products and gradient products divide a matrix
 * differently, whatever the batch size. With 16-bit weights half as many bytes move, and nothing is counted
 * for them; nor if the weights and the optimizer slots exceed the cache of one core, from which they come in
 * any case. A loop counts as its steps one after the other. The constants were fitted to the table "threads"
 * of the benchmark program, with batches of 1 to 128 and 32 to 1024 units. */
#include "backend/host/executor.h"
#include "base/alloc.h"
#include "ops/attributes.h"

enum {
  BYTES_OF_WEIGHTS = 2,  /* read in the time of a multiplication, as streams; of other values: one byte */
  SERIAL_WORK = 1 << 16, /* a step of less gains nothing (MIX_CPU_SMALL) */
  VALUES_PER_WEIGHT = 2, /* the weight and one optimizer slot */
};

/* Nanoseconds: to call a thread, for which nobody waits, and to meet it at a step. */
static const double start = 1500, per_step = 300;

typedef struct processor_speed {
  double rate;       /* multiplications a nanosecond, of small products */
  double per_weight; /* nanoseconds until a weight is there that another core has written */
} processor_speed;

static const processor_speed *speed_of(uint32_t features) {
  static const processor_speed avx512 = {90, 0.5}, avx2 = {30, 0.1}, plain = {12, 0.1};
  return features & MIX_CPU_AVX512 ? &avx512 : features & (MIX_CPU_AVX2 | MIX_CPU_NEON) ? &avx2 : &plain;
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

/* In multiplications. Weights that the plan writes are counted apart. */
static double work_of(const mix_plan *plan, const mix_step *step) {
  double work = multiplications(plan, step);
  if (step->program) {
    double elements = 1;
    for (int d = 0; d < step->program->rank; d++) elements *= (double)step->program->dims[d];
    work += elements * step->program->instruction_count;
  }
  for (int n = 0; n < step->input_count + step->output_count; n++) {
    const int slot = n < step->input_count ? step->inputs[n] : step->outputs[n - step->input_count];
    const double bytes = (double)plan->slots[slot].bytes;
    const bool streams = plan->slots[slot].kind == MIX_SLOT_CONSTANT || variable_of(plan, slot) >= 0;
    work += streams ? bytes / BYTES_OF_WEIGHTS : bytes;
  }
  return work;
}

/* Adds the steps of a plan that runs so many times, and their work. */
static void add_work(const mix_plan *plan, double times, double *work, double *steps) {
  for (int i = 0; i < plan->step_count; i++) {
    const mix_step *step = &plan->steps[i];
    if (step->body) {
      const mix_scan_attributes *loop = step->attributes;
      add_work(step->body, times * (double)loop->steps, work, steps);
      continue;
    }
    const double own = work_of(plan, step);
    if (own < SERIAL_WORK) continue;
    *work += own * times, *steps += times;
  }
}

int mix_host_thread_count(const mix_plan *plan, int threads, uint32_t features) {
  double weights, work = 0, steps = 0;
  int64_t bytes;
  if (!count_weights(plan, &weights, &bytes)) return 0;
  add_work(plan, 1, &work, &steps);
  const bool travels = VALUES_PER_WEIGHT * bytes <= mix_cpu_cache(2);
  const processor_speed *speed = speed_of(features);
  const double saved = work / speed->rate / 2;
  const double cost = (plan->repeated ? 2 * per_step : start) + per_step * steps +
                      (travels ? speed->per_weight * weights : 0);
  return saved > cost ? threads : 1;
}
