/* The number of threads chosen for a plan, on hand-made plans: a product with weights (units, 32), and the
 * product of gradients that updates them. */
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

enum { UNITS = 32, THREADS = 4 };

typedef struct training {
  mix_dtype dtype;
  int64_t batch, inputs;
  int products; /* products that read the weights */
  bool updates;
} training;

static mix_step product(const mix_matmul_attributes *attributes, const int *operands, const int *result,
                        bool writes_variable) {
  return (mix_step){.op = &mix_op_matmul,
                    .attributes = attributes,
                    .input_count = 2,
                    .output_count = 1,
                    .inputs = operands,
                    .outputs = result,
                    .guard = -1,
                    .writes_variable = writes_variable};
}

static int thread_count(const training *t) {
  enum { X, WEIGHTS, Y, GRADIENT, UPDATED, SLOTS };
  static const mix_matmul_attributes forward = {0}, backward = {.transpose_a = true};
  static const int operands[] = {X, WEIGHTS}, result[] = {Y}, of_gradient[] = {X, GRADIENT},
                   updated[] = {UPDATED};
  const mix_shape x = {2, {t->batch, t->inputs}}, weights = {2, {t->inputs, UNITS}},
                  y = {2, {t->batch, UNITS}};
  mix_slot slots[SLOTS] = {[X] = {.kind = MIX_SLOT_ARGUMENT, .shape = x},
                           [WEIGHTS] = {.kind = MIX_SLOT_VARIABLE, .shape = weights},
                           [Y] = {.kind = MIX_SLOT_ARENA, .shape = y},
                           [GRADIENT] = {.kind = MIX_SLOT_ARENA, .shape = y},
                           [UPDATED] = {.kind = MIX_SLOT_VARIABLE, .shape = weights}};
  for (int i = 0; i < SLOTS; i++) {
    slots[i].dtype = t->dtype;
    slots[i].bytes = mix_value_bytes(t->dtype, slots[i].shape);
  }
  mix_step steps[4];
  int count = 0;
  while (count < t->products) steps[count++] = product(&forward, operands, result, false);
  if (t->updates) steps[count++] = product(&backward, of_gradient, updated, true);
  const mix_plan plan = {.slot_count = SLOTS,
                         .step_count = count,
                         .slots = slots,
                         .steps = steps,
                         .argument_count = 1,
                         .variable_count = 1};
  return mix_host_thread_count(&plan, THREADS);
}

/* The largest batch that gets one thread, among powers of two. */
static int64_t few(void) {
  return mix_cpu_features() & MIX_CPU_AVX512 ? 32 : mix_cpu_features() & MIX_CPU_AVX2 ? 8 : 4;
}

static void few_examples_train_on_one_thread(void **unused) {
  (void)unused;
  for (int64_t batch = 1; batch <= few(); batch *= 2)
    assert_int_equal(thread_count(&(training){MIX_FLOAT32, batch, 100, 1, true}), 1);
  assert_int_equal(thread_count(&(training){MIX_FLOAT64, few() / 2, 100, 1, true}), 1);
}

static void many_examples_take_all(void **unused) {
  (void)unused;
  for (int64_t batch = 2 * few(); batch <= 8192; batch *= 2)
    assert_int_equal(thread_count(&(training){MIX_FLOAT32, batch, 100, 1, true}), THREADS);
}

/* Weights that several products read are loaded once, but each product counts its work. */
static void weights_count_once(void **unused) {
  (void)unused;
  assert_int_equal(thread_count(&(training){MIX_FLOAT32, few(), 100, 3, true}), THREADS);
  assert_int_equal(thread_count(&(training){MIX_FLOAT32, few() / 2, 100, 3, true}), 1);
}

static void plans_without_updates_take_all(void **unused) {
  (void)unused;
  assert_int_equal(thread_count(&(training){MIX_FLOAT32, 1, 100, 1, false}), THREADS);
  assert_int_equal(thread_count(&(training){MIX_FLOAT32, 1, 100, 0, true}), THREADS);
}

static void weights_in_16_bits_take_all(void **unused) {
  (void)unused;
  assert_int_equal(thread_count(&(training){MIX_FLOAT16, 1, 100, 1, true}), THREADS);
  assert_int_equal(thread_count(&(training){MIX_BFLOAT16, 1, 100, 1, true}), THREADS);
}

static void weights_beyond_a_core_s_cache_take_all(void **unused) {
  (void)unused;
  const int64_t fill = mix_cpu_cache(2) / (2 * UNITS * (int64_t)sizeof(float));
  assert_int_equal(thread_count(&(training){MIX_FLOAT32, 1, fill, 1, true}), 1);
  assert_int_equal(thread_count(&(training){MIX_FLOAT32, 1, fill + 1, 1, true}), THREADS);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(few_examples_train_on_one_thread),
      cmocka_unit_test(many_examples_take_all),
      cmocka_unit_test(weights_count_once),
      cmocka_unit_test(plans_without_updates_take_all),
      cmocka_unit_test(weights_in_16_bits_take_all),
      cmocka_unit_test(weights_beyond_a_core_s_cache_take_all),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
