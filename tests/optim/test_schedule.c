/* Learning rate schedules (docs/spec/keras.md, 12.3 and 19.5). Tolerance: a few roundings in float32 of
 * numbers up to 1. */
#include "optim/support.h"

static double at(mix_schedule *schedule, int64_t step) {
  return mix_tensor_item(mix_schedule_call(schedule, mix_scalar((double)step, MIX_INT64)));
}

static void U11_exponential_decay(void **state) {
  (void)state;
  mix_schedule *smooth = mix_exponential_decay(0.1, 10, 0.5, false);
  assert_near(at(smooth, 5), 0.0707107, 1e-7);
  assert_near(at(smooth, 10), 0.05, 1e-8);
  assert_near(at(mix_exponential_decay(0.1, 10, 0.5, true), 5), 0.1, 1e-8);
}

static void U12_cosine_decay(void **state) {
  (void)state;
  assert_near(at(mix_cosine_decay(1, 100, 0.1, 0, 0), 50), 0.55, 3e-7);
  /* warm-up: from 0 to 2 in 10 steps, then down from 2 */
  mix_schedule *warm = mix_cosine_decay(0, 100, 0, 2, 10);
  assert_near(at(warm, 5), 1, 3e-7);
  assert_near(at(warm, 10), 2, 3e-7);
  assert_near(at(warm, 60), 1, 3e-7);
}

static void U13_piecewise_constant_decay(void **state) {
  (void)state;
  mix_schedule *schedule = mix_piecewise_constant_decay(1, (double[]){10}, (double[]){1, 0.1});
  assert_near(at(schedule, 10), 1, 0);
  assert_near(at(schedule, 11), 0.1, 1e-8);
}

static void inverse_time_and_polynomial_decay(void **state) {
  (void)state;
  assert_near(at(mix_inverse_time_decay(1, 10, 1, false), 5), 1 / 1.5, 1e-7);
  assert_near(at(mix_inverse_time_decay(1, 10, 1, true), 15), 0.5, 0);
  mix_schedule *line = mix_polynomial_decay(1, 10, 0.5, 1, false);
  assert_near(at(line, 5), 0.75, 1e-7);
  assert_near(at(line, 20), 0.5, 1e-7);
  mix_schedule *cycle = mix_polynomial_decay(1, 10, 0, 1, true);
  assert_near(at(cycle, 0), 1, 0);
  assert_near(at(cycle, 15), 0.25, 1e-7);
}

/* The learning rate is 1 at step 0 and 0.5 at step 1. It is part of the captured graph, not a number read on
 * the host. */
static void optimizer_follows_a_schedule(void **state) {
  (void)state;
  mix_variable *weight = VARIABLE(MIX_FLOAT32, "w", 0);
  mix_optimizer *optimizer = mix_sgd(.schedule = mix_exponential_decay(1, 1, 0.5, false));
  captured_update update = captured_update_of(optimizer, mix_list_of(weight));
  run_captured(&update, mix_list_of(VECTOR(MIX_FLOAT32, 1)));
  ASSERT_VALUES(weight, 0, -1);
  run_captured(&update, mix_list_of(VECTOR(MIX_FLOAT32, 1)));
  ASSERT_VALUES(weight, 1e-7, -1.5);
  assert_int_equal(update.traces, 1);
  assert_near(mix_optimizer_learning_rate(optimizer), 0.25, 1e-7);
  assert_int_equal(mix_optimizer_set_learning_rate(optimizer, 1), MIX_TYPE_ERROR);
  ASSERT_ERROR(MIX_TYPE_ERROR);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(U11_exponential_decay), TEST(U12_cosine_decay), TEST(U13_piecewise_constant_decay),
      TEST(inverse_time_and_polynomial_decay), TEST(optimizer_follows_a_schedule)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
