/* The number of threads chosen for a plan, on hand-made plans, as a table of shapes: a product with weights,
 * and the product of gradients that updates them. The choice reads shapes, dtypes and the processor's
 * features and caches, nothing else. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "backend/host/executor.h"
#include "base/processor.h"
#include "ops/attributes.h"
#include "ops/table.h"
#include "tensor/shape.h"

enum { THREADS = 4, MAX_STEPS = 8 };

typedef struct layer {
  mix_dtype dtype;
  int64_t batch, inputs, units;
  int products; /* that read the weights */
  bool updates;
  int64_t elements; /* of an element-wise step of one instruction */
} layer;

static mix_step step_of(const mix_op *op, const void *attributes, const int *inputs, const int *outputs) {
  return (mix_step){.op = op,
                    .attributes = attributes,
                    .input_count = 2,
                    .output_count = 1,
                    .inputs = inputs,
                    .outputs = outputs,
                    .guard = -1};
}

enum { PLAIN = 0, AVX2 = MIX_CPU_AVX2, AVX512 = MIX_CPU_AVX2 | MIX_CPU_AVX512 };

static int threads_of(const layer *l, uint32_t features) {
  enum { X, WEIGHTS, Y, GRADIENT, UPDATED, LEFT, RIGHT, SUM, SLOTS };
  static const mix_matmul_attributes forward = {0}, backward = {.transpose_a = true};
  static const int operands[] = {X, WEIGHTS}, result[] = {Y}, of_gradient[] = {X, GRADIENT},
                   updated[] = {UPDATED}, addends[] = {LEFT, RIGHT}, sum[] = {SUM};
  static mix_instruction add = {.opcode = MIX_OPCODE_ADD, .dtype = MIX_FLOAT32, .operands = {0, 1}};
  const mix_shape x = {2, {l->batch, l->inputs}}, weights = {2, {l->inputs, l->units}},
                  y = {2, {l->batch, l->units}}, vector = {1, {l->elements}};
  const mix_program program = {
      .rank = 1, .dims = {l->elements}, .instruction_count = 1, .instructions = &add};
  mix_slot slots[SLOTS] = {[X] = {.kind = MIX_SLOT_ARGUMENT, .shape = x},
                           [WEIGHTS] = {.kind = MIX_SLOT_VARIABLE, .shape = weights},
                           [Y] = {.kind = MIX_SLOT_ARENA, .shape = y},
                           [GRADIENT] = {.kind = MIX_SLOT_ARENA, .shape = y},
                           [UPDATED] = {.kind = MIX_SLOT_VARIABLE, .shape = weights},
                           [LEFT] = {.kind = MIX_SLOT_ARENA, .shape = vector},
                           [RIGHT] = {.kind = MIX_SLOT_ARENA, .shape = vector},
                           [SUM] = {.kind = MIX_SLOT_ARENA, .shape = vector}};
  for (int i = 0; i < SLOTS; i++) {
    slots[i].dtype = l->dtype;
    slots[i].bytes = mix_value_bytes(l->dtype, slots[i].shape);
  }
  mix_step steps[MAX_STEPS];
  int count = 0;
  while (count < l->products) steps[count++] = step_of(&mix_op_matmul, &forward, operands, result);
  if (l->updates) {
    steps[count] = step_of(&mix_op_matmul, &backward, of_gradient, updated);
    steps[count++].writes_variable = true;
  }
  if (l->elements) {
    steps[count] = step_of(&mix_op_fused, NULL, addends, sum);
    steps[count++].program = &program;
  }
  const mix_plan plan = {.slot_count = SLOTS,
                         .step_count = count,
                         .slots = slots,
                         .steps = steps,
                         .argument_count = 1,
                         .variable_count = 1};
  return mix_host_thread_count(&plan, THREADS, features);
}

/* The largest batch, among powers of two, that one thread computes. */
static int64_t few(layer l, uint32_t features) {
  int64_t largest = 0;
  for (l.batch = 1; l.batch <= 8192; l.batch *= 2) {
    const int threads = threads_of(&l, features);
    assert_true(threads == 1 || threads == THREADS);
    if (threads > 1) continue;
    assert_int_equal(largest, l.batch / 2); /* none below has several */
    largest = l.batch;
  }
  return largest;
}

/* Weights of 100 KB, which fit into every core's cache. */
static void predictions(void **state) {
  (void)state;
  const layer first = {MIX_FLOAT32, .inputs = 784, .units = 32, .products = 1};
  assert_int_equal(few(first, PLAIN), 0);
  assert_int_equal(few(first, AVX2), 2);
  assert_int_equal(few(first, AVX512), 8);
  layer wide = first, narrow = first;
  wide.units = 512; /* reading the weights alone takes long enough */
  narrow.inputs = narrow.units = 10;
  assert_int_equal(few(wide, AVX2), 0);
  assert_int_equal(few(narrow, AVX2), 512);
}

/* The weights of small batches travel between cores for little work. */
static void training(void **state) {
  (void)state;
  const layer first = {MIX_FLOAT32, .inputs = 784, .units = 32, .products = 2, .updates = true};
  assert_int_equal(few(first, AVX2), 1);
  assert_int_equal(few(first, AVX512), 16);
}

/* Weights that several products read are fetched once, but each product counts its work. */
static void weights_count_once(void **state) {
  (void)state;
  const layer twice = {MIX_FLOAT32, .inputs = 784, .units = 32, .products = 2, .updates = true};
  layer often = twice;
  often.products = 6;
  assert_int_equal(few(often, AVX512), 8);
}

static void weights_in_16_bits_do_not_travel(void **state) {
  (void)state;
  const layer narrow = {MIX_BFLOAT16, .inputs = 784, .units = 32, .products = 2, .updates = true};
  assert_int_equal(few(narrow, AVX512), 4);
}

static void weights_beyond_a_core_s_cache_do_not_travel(void **state) {
  (void)state;
  const int64_t fill = mix_cpu_cache(2) / (2 * 32 * (int64_t)sizeof(float));
  assert_int_equal(threads_of(&(layer){MIX_FLOAT32, 1, fill, 32, 1, true}, AVX512), 1);
  /* A hundred times the weights are work enough at batch 1. */
  assert_int_equal(threads_of(&(layer){MIX_FLOAT32, 1, 100 * fill, 32, 1, true}, AVX512), THREADS);
  const layer inside = {MIX_FLOAT32, 32, fill, 32, 1, true};
  layer beyond = inside;
  beyond.inputs++;
  assert_int_equal(threads_of(&inside, AVX512), 1);
  assert_int_equal(threads_of(&beyond, AVX512), THREADS);
}

static void steps_that_one_thread_runs_do_not_count(void **state) {
  (void)state;
  assert_int_equal(threads_of(&(layer){MIX_FLOAT32, .elements = 5000}, PLAIN), 1);
  assert_int_equal(threads_of(&(layer){MIX_FLOAT32, .elements = 1 << 16}, AVX2), THREADS);
  assert_int_equal(threads_of(&(layer){MIX_FLOAT32, 1, 100, 100, 6, false}, PLAIN), 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(predictions),
      cmocka_unit_test(training),
      cmocka_unit_test(weights_count_once),
      cmocka_unit_test(weights_in_16_bits_do_not_travel),
      cmocka_unit_test(weights_beyond_a_core_s_cache_do_not_travel),
      cmocka_unit_test(steps_that_one_thread_runs_do_not_count),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
