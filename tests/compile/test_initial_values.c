/* Initial values whose memory becomes the storage of a variable. */
#include "compile/support.h"

#include "base/alloc.h"
#include "compile/assign.h"
#include "support/skip.h"
#include <mixtape/random.h>

enum { ROWS = 512, COLUMNS = 1024, BYTES = ROWS * COLUMNS * (int)sizeof(float) };

static mix_tensor *filled(double number) {
  mix_tensor *x = mix_fill(MIX_SHAPE(ROWS, COLUMNS), number, MIX_FLOAT32);
  assert_int_equal(mix_evaluate(1, &x), MIX_OK);
  return x;
}

static mix_variable *taken(mix_tensor *value) {
  const mix_variable_options options = {.size = sizeof options, .initial_value = value, .name = "taken"};
  mix_variable *variable = mix_variable_take(&options);
  assert_non_null(variable);
  return variable;
}

static float last_of(mix_tensor *tensor) {
  const float *numbers = mix_tensor_data(tensor);
  assert_non_null(numbers);
  return numbers[ROWS * COLUMNS - 1];
}

static void memory_is_taken(void **state) {
  (void)state;
  if (!on_host()) SKIP("storages begin on the host, and values of this device are copied there");
  mix_tensor *value = filled(3);
  const size_t before = mix_buffer_bytes();
  mix_variable *variable = taken(value);
  assert_int_equal(mix_buffer_bytes(), before);
  assert_true(last_of(mix_variable_value(variable)) == 3);
}

/* The first write makes the copy that a value which is still there needs. */
static void a_value_keeps_its_numbers(void **state) {
  (void)state;
  mix_tensor *value = filled(3);
  mix_variable *variable = taken(value);
  assert_int_equal(mix_variable_assign(variable, filled(5)), MIX_OK);
  assert_true(last_of(value) == 3);
  assert_true(last_of(mix_variable_value(variable)) == 5);
}

static void a_value_that_is_gone_needs_no_copy(void **state) {
  (void)state;
  if (!on_host()) SKIP("storages begin on the host, and values of this device are copied there");
  mix_variable *variable = NULL;
  mix_tensor *other = filled(5);
  const size_t before = mix_buffer_bytes();
  MIX_SCOPE { variable = mix_retain(taken(filled(3))); }
  assert_int_equal(mix_variable_assign(variable, other), MIX_OK);
  assert_int_equal(mix_buffer_bytes(), before + BYTES);
  assert_true(last_of(mix_variable_value(variable)) == 5);
  mix_release(variable);
}

static void a_value_that_others_hold_is_copied(void **state) {
  (void)state;
  if (!on_host()) SKIP("storages begin on the host, and values of this device are copied there");
  mix_tensor *value = mix_retain(filled(3));
  const size_t before = mix_buffer_bytes();
  mix_variable *variable = taken(value);
  assert_int_equal(mix_buffer_bytes(), before + BYTES);
  assert_int_equal(mix_variable_assign(variable, filled(5)), MIX_OK);
  assert_true(last_of(value) == 3);
  mix_release(value);
}

/* Nothing but the result exists: what the last operation overwrites lies in its memory. */
static void an_evaluation_computes_in_its_result(void **state) {
  (void)state;
  if (!on_host()) SKIP("storages begin on the host, and values of this device are copied there");
  mix_generator *generator = mix_generator_new(1);
  mix_tensor *x = mix_random_uniform(generator, MIX_SHAPE(ROWS, COLUMNS), MIX_FLOAT32);
  mix_tensor *scaled = mix_multiply(x, mix_scalar(2, MIX_FLOAT32));
  mix_buffer_peak_reset();
  const size_t before = mix_buffer_bytes();
  assert_int_equal(mix_evaluate(1, &scaled), MIX_OK);
  assert_true(mix_buffer_peak() - before < BYTES + BYTES / 2);
  assert_true(last_of(scaled) == 2 * last_of(x));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(memory_is_taken), TEST(a_value_keeps_its_numbers), TEST(a_value_that_is_gone_needs_no_copy),
      TEST(a_value_that_others_hold_is_copied), TEST(an_evaluation_computes_in_its_result)};
  return cmocka_run_group_tests_name("compile/initial_values", tests, NULL, NULL);
}
