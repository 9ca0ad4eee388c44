/* Lists of variables: accumulators, in captured functions too, and errors. */
#include "model/support.h"
#include <mixtape/variable_lists.h>

static mix_list *two_variables(void) {
  return mix_list_of(mix_variable_new(ARRAY(F32, MIX_SHAPE(2), 1, 2), .name = "a"),
                     mix_variable_new(ARRAY(MIX_FLOAT64, MIX_SHAPE(1, 1), 3), .name = "b"));
}

static double value_of(mix_list *variables, int variable, int64_t i) {
  return at(mix_list_get(mix_variables_values(variables), variable), i);
}

static void accumulators_begin_with_zeros(void **state) {
  (void)state;
  mix_list *variables = two_variables(), *sums = mix_variables_zeros_like(variables);
  assert_no_error();
  assert_int_equal(mix_list_count(sums), 2);
  mix_variable *second = mix_list_get(sums, 1);
  assert_int_equal(mix_variable_true_dtype(second), MIX_FLOAT64);
  assert_int_equal(mix_variable_shape(second).rank, 2);
  assert_false(mix_variable_trainable(second));
  assert_string_equal(mix_variable_name(second), "b/accumulator");
  assert_near(value_of(sums, 0, 1), 0, 0);
  assert_near(value_of(variables, 0, 1), 2, 0);
}

/* NULL adds nothing; a value of another dtype is cast. */
static void values_are_added_and_cleared(void **state) {
  (void)state;
  mix_list *sums = mix_variables_zeros_like(two_variables());
  mix_tensor *x = ARRAY(MIX_FLOAT16, MIX_SHAPE(2), 0.5, 4);
  for (int i = 0; i < 2; i++) assert_int_equal(mix_variables_assign_add(sums, mix_list_of(x, NULL)), MIX_OK);
  assert_near(value_of(sums, 0, 0), 1, 0);
  assert_near(value_of(sums, 0, 1), 8, 0);
  assert_near(value_of(sums, 1, 0), 0, 0);
  assert_int_equal(mix_variables_assign_zeros(sums), MIX_OK);
  assert_near(value_of(sums, 0, 1), 0, 0);
}

static mix_list *add_twice(void *context, mix_list *arguments) {
  mix_list *value = mix_list_of(mix_list_get(arguments, 0), NULL);
  mix_variables_assign_add(context, value);
  mix_variables_assign_add(context, value);
  return NULL;
}
static void captured_functions_add_too(void **state) {
  (void)state;
  mix_list *sums = mix_variables_zeros_like(two_variables());
  mix_function *function = mix_function_new(add_twice, sums);
  for (int i = 0; i < 3; i++) mix_function_call(function, mix_list_of(ARRAY(F32, MIX_SHAPE(2), 1, 2)));
  assert_no_error();
  assert_near(value_of(sums, 0, 1), 12, 0);
}

static void errors_name_the_item(void **state) {
  (void)state;
  mix_list *variables = two_variables();
  assert_int_equal(mix_variables_assign_add(variables, mix_list_of(NULL)), MIX_VALUE_ERROR);
  assert_error(MIX_VALUE_ERROR, "1 values for 2 variables");
  assert_null(mix_variables_zeros_like(mix_list_of(mix_scalar(1, F32))));
  assert_error(MIX_TYPE_ERROR, "variables_zeros_like: item 0 of the list is no variable");
  assert_int_equal(mix_variables_assign_zeros(mix_list_of(mix_scalar(1, F32))), MIX_TYPE_ERROR);
  assert_error(MIX_TYPE_ERROR, "item 0");
  assert_null(mix_variables_values(mix_list_of(mix_scalar(1, F32))));
  assert_error(MIX_TYPE_ERROR, "item 0");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(accumulators_begin_with_zeros),
      TEST(values_are_added_and_cleared),
      TEST(captured_functions_add_too),
      TEST(errors_name_the_item),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
