/* The layout "rows" of gradients: what has it, what keeps it, and what any other operation sees. */
#include "support.h"
#include <mixtape/function.h>
#include <mixtape/loss_scale.h>
#include <mixtape/variable.h>

static mix_tensor *table_of(const double *values) {
  return mix_tensor_from_doubles(values, MIX_FLOAT32, MIX_SHAPE(4, 2));
}
static mix_tensor *indices_of(int count, const int32_t *indices) {
  return mix_tensor_from(indices, MIX_INT32, (mix_shape){.rank = 1, .dims = {count}});
}
#define INDICES(...)                                                                                         \
  indices_of((int)(sizeof((int32_t[]){__VA_ARGS__}) / sizeof(int32_t)), (int32_t[]){__VA_ARGS__})
static mix_tensor *values_of(mix_dtype dtype, int rows, const double *values) {
  return mix_tensor_from_doubles(values, dtype, MIX_SHAPE(rows, 2));
}

static void assert_elements(mix_tensor *x, int count, const double *expected) {
  double got[64];
  if (mix_tensor_read(x, MIX_FLOAT64, got, count)) fail_msg("%s", mix_error_message());
  for (int i = 0; i < count; i++)
    if (got[i] != expected[i]) fail_msg("element %d: %g, expected %g", i, got[i], expected[i]);
}
#define ELEMENTS(x, ...) assert_elements(x, COUNT(NUMBERS(__VA_ARGS__)), NUMBERS(__VA_ARGS__))

static mix_tensor *repeated(mix_dtype dtype) {
  return mix_rows(values_of(dtype, 3, NUMBERS(1, 2, 3, 4, 5, 6)), INDICES(2, 0, 2), 4);
}

static void rows_have_values_indices_and_a_dense_value(void **state) {
  (void)state;
  mix_tensor *x = repeated(MIX_FLOAT32);
  assert_true(mix_tensor_is_rows(x));
  assert_true(mix_shape_equal(mix_tensor_shape(x), MIX_SHAPE(4, 2)));
  ELEMENTS(mix_rows_values(x), 1, 2, 3, 4, 5, 6);
  ELEMENTS(mix_rows_indices(x), 2, 0, 2);
  ELEMENTS(x, 3, 4, 0, 0, 6, 8, 0, 0);
  assert_true(mix_tensor_is_rows(x)); /* also when its value is known */
  ELEMENTS(mix_add(x, x), 6, 8, 0, 0, 12, 16, 0, 0);
  assert_false(mix_tensor_is_rows(mix_add(x, x)));
  mix_tensor *dense = mix_tensor_from_doubles(NUMBERS(1, 2), MIX_FLOAT32, MIX_SHAPE(2));
  assert_false(mix_tensor_is_rows(dense));
  assert_ptr_equal(mix_rows_values(dense), dense);
  assert_null(mix_rows_indices(dense));
  assert_false(mix_tensor_is_rows(NULL));
}

static void indices_of_any_shape_are_flattened(void **state) {
  (void)state;
  mix_tensor *values =
      mix_tensor_from_doubles(NUMBERS(1, 2, 3, 4, 5, 6, 7, 8), MIX_FLOAT32, MIX_SHAPE(2, 2, 2));
  mix_tensor *x = mix_rows(values, mix_reshape(INDICES(0, 1, 1, 3), MIX_SHAPE(2, 2)), 4);
  assert_true(mix_tensor_is_rows(x));
  assert_true(mix_shape_equal(mix_tensor_shape(mix_rows_values(x)), MIX_SHAPE(4, 2)));
  ELEMENTS(x, 1, 2, 8, 10, 0, 0, 7, 8);
}

static void an_index_outside_is_an_error(void **state) {
  (void)state;
  mix_tensor *x = mix_rows(values_of(MIX_FLOAT32, 1, NUMBERS(1, 2)), INDICES(4), 4);
  assert_null(mix_tensor_data(x));
  assert_int_equal(mix_error(), MIX_VALUE_ERROR);
  assert_non_null(strstr(mix_error_message(), "index 4 (element 0) is outside the rows, [0, 4)"));
  mix_error_clear();
}

/* As TensorFlow's cast of IndexedSlices: before the sum, which is 2051 in float32. */
static void casts_keep_the_layout(void **state) {
  (void)state;
  mix_tensor *x = mix_rows(values_of(MIX_FLOAT16, 3, NUMBERS(2048, 0, 1, 0, 2, 0)), INDICES(1, 1, 1), 4);
  mix_tensor *wide = mix_cast(x, MIX_FLOAT32);
  assert_true(mix_tensor_is_rows(wide));
  assert_int_equal(mix_tensor_dtype(wide), MIX_FLOAT32);
  ELEMENTS(mix_rows_indices(wide), 1, 1, 1);
  ELEMENTS(wide, 0, 0, 2051, 0, 0, 0, 0, 0);
  ELEMENTS(x, 0, 0, 2052, 0, 0, 0, 0, 0); /* float16 has no 2051: rounded once, to even */
}

static void gradients_of_gather_are_rows(void **state) {
  (void)state;
  mix_variable *table = mix_variable_new(table_of(NUMBERS(1, 2, 3, 4, 5, 6, 7, 8)), .name = "table");
  mix_tape *tape = mix_tape_begin(.persistent = true);
  mix_tensor *rows = mix_gather(mix_variable_value(table), INDICES(3, 1, 3), 0);
  mix_tensor *loss = mix_reduce_sum(mix_square(rows), MIX_ALL_AXES, false);
  mix_tensor *columns =
      mix_reduce_sum(mix_gather(mix_variable_value(table), INDICES(1), 1), MIX_ALL_AXES, false);
  mix_tape_end(tape);
  mix_tensor *gradient = mix_list_get(mix_tape_gradient(tape, loss, mix_list_of(table)), 0);
  assert_true(mix_tensor_is_rows(gradient));
  ELEMENTS(mix_rows_values(gradient), 14, 16, 6, 8, 14, 16);
  ELEMENTS(gradient, 0, 0, 6, 8, 0, 0, 28, 32);
  gradient = mix_list_get(mix_tape_gradient(tape, columns, mix_list_of(table)), 0);
  assert_false(mix_tensor_is_rows(gradient));
  ELEMENTS(gradient, 0, 1, 0, 1, 0, 1, 0, 1);
}

static void sums_of_rows_hold_the_rows_of_all(void **state) {
  (void)state;
  mix_variable *table = mix_variable_new(table_of(NUMBERS(1, 2, 3, 4, 5, 6, 7, 8)), .name = "table");
  mix_tape *tape = mix_tape_begin(.persistent = true);
  mix_tensor *first = mix_gather(mix_variable_value(table), INDICES(3, 1), 0);
  mix_tensor *index = mix_tensor_from((const int64_t[]){1}, MIX_INT64, MIX_SHAPE(1));
  mix_tensor *second = mix_gather(mix_variable_value(table), index, 0);
  mix_tensor *loss = mix_add(mix_reduce_sum(first, MIX_ALL_AXES, false),
                             mix_reduce_sum(mix_square(second), MIX_ALL_AXES, false));
  mix_tensor *more = mix_add(loss, mix_reduce_sum(mix_variable_value(table), MIX_ALL_AXES, false));
  mix_tape_end(tape);
  mix_tensor *gradient = mix_list_get(mix_tape_gradient(tape, loss, mix_list_of(table)), 0);
  assert_true(mix_tensor_is_rows(gradient));
  assert_int_equal(mix_tensor_dtype(mix_rows_indices(gradient)), MIX_INT64);
  assert_int_equal(mix_tensor_shape(mix_rows_indices(gradient)).dims[0], 3);
  ELEMENTS(gradient, 0, 0, 7, 9, 0, 0, 1, 1);
  gradient = mix_list_get(mix_tape_gradient(tape, more, mix_list_of(table)), 0);
  assert_false(mix_tensor_is_rows(gradient)); /* with a dense one it is dense */
  ELEMENTS(gradient, 1, 1, 8, 10, 1, 1, 2, 2);
}

/* d/dx of the sum of squares of d/dx (sum of x^3 at the rows): 36 x^3 for a row taken once; a row taken twice
 * has the gradient 6 x^2, and so 4 times as much. */
static void gradients_of_rows_are_differentiated(void **state) {
  (void)state;
  mix_variable *table = mix_variable_new(table_of(NUMBERS(1, 2, 3, 4, 5, 6, 7, 8)), .name = "table");
  mix_tape *outer = mix_tape_begin(0), *inner = mix_tape_begin(0);
  mix_tensor *rows = mix_gather(mix_variable_value(table), INDICES(0, 1, 0), 0);
  mix_tensor *loss = mix_reduce_sum(mix_multiply(mix_square(rows), rows), MIX_ALL_AXES, false);
  mix_tape_end(inner);
  mix_tensor *gradient = mix_list_get(mix_tape_gradient(inner, loss, mix_list_of(table)), 0);
  mix_tensor *norm = mix_reduce_sum(mix_square(gradient), MIX_ALL_AXES, false);
  mix_tape_end(outer);
  mix_tensor *second = mix_list_get(mix_tape_gradient(outer, norm, mix_list_of(table)), 0);
  ELEMENTS(second, 4 * 36, 4 * 36 * 8, 36 * 27, 36 * 64, 0, 0, 0, 0);
}

/* The values are finite, their sum is not. */
static void finite_tests_see_values(void **state) {
  (void)state;
  mix_tensor *x = mix_rows(values_of(MIX_FLOAT16, 2, NUMBERS(60000, 1, 60000, 1)), INDICES(1, 1), 4);
  assert_true(mix_tensor_item(mix_all_finite_of(mix_list_of(x))) == 1);
  assert_true(mix_tensor_item(mix_all_finite(x)) == 0);
  x = mix_rows(values_of(MIX_FLOAT16, 2, NUMBERS(1, 1, INFINITY, 1)), INDICES(1, 1), 4);
  assert_true(mix_tensor_item(mix_all_finite_of(mix_list_of(x))) == 0);
}

static mix_list *take(void *context, mix_list *arguments) {
  bool *dense = context;
  *dense = !mix_tensor_is_rows(mix_list_get(arguments, 0));
  return mix_list_of(repeated(MIX_FLOAT32), mix_list_get(arguments, 0));
}
static void functions_take_and_give_dense_tensors(void **state) {
  (void)state;
  bool dense = false;
  mix_function *function = mix_function_new(take, &dense, .name = "take");
  mix_list *results = mix_function_call(function, mix_list_of(repeated(MIX_FLOAT32)));
  assert_true(dense);
  for (int i = 0; i < 2; i++) {
    assert_false(mix_tensor_is_rows(mix_list_get(results, i)));
    ELEMENTS(mix_list_get(results, i), 3, 4, 0, 0, 6, 8, 0, 0);
  }
}

static void combined_rows_are_segment_sums(void **state) {
  (void)state;
  mix_tensor *indices = INDICES(2, 0, 2, 3, 0), *unique = NULL;
  mix_tensor *values = values_of(MIX_FLOAT32, 5, NUMBERS(1, -0.0, 0x1p24, 4, 0x1p24, 6, 7, 8, 1, 10));
  mix_tensor *sums = mix_combine_rows(values, indices, 4, &unique);
  ELEMENTS(unique, 2, 0, -1, 3, -1);
  ELEMENTS(sums, 0x1p24, 6, 0x1p24, 14, 0, 0, 7, 8, 0, 0); /* 2^24 + 1 rounds to even */
  ELEMENTS(mix_segment_sum(values, indices, 4), 0x1p24, 14, 0, 0, 0x1p24, 6, 7, 8);
  mix_tensor *table = table_of(NUMBERS(1, 2, 3, 4, 5, 6, 7, 8));
  ELEMENTS(mix_gather_rows(table, unique), 5, 6, 1, 2, 0, 0, 7, 8, 0, 0);
  ELEMENTS(mix_replace_rows(table, unique, sums), 0x1p24, 14, 3, 4, 0x1p24, 6, 7, 8);
}

static void shapes_are_checked(void **state) {
  (void)state;
  mix_tensor *table = table_of(NUMBERS(1, 2, 3, 4, 5, 6, 7, 8)), *two = INDICES(0, 1);
  mix_tensor *wrong[] = {mix_rows(mix_scalar(1, MIX_FLOAT32), two, 4),
                         (mix_error_clear(), mix_combine_rows(table, two, 4, NULL)),
                         (mix_error_clear(), mix_gather_rows(mix_scalar(1, MIX_FLOAT32), two)),
                         (mix_error_clear(), mix_replace_rows(table, two, table)),
                         (mix_error_clear(), mix_replace_rows(table, mix_scalar(1, MIX_INT32), table))};
  for (int i = 0; i < COUNT(wrong); i++) assert_null(wrong[i]);
  assert_int_equal(mix_error(), MIX_VALUE_ERROR);
  mix_error_clear();
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(rows_have_values_indices_and_a_dense_value),
      TEST(indices_of_any_shape_are_flattened),
      TEST(an_index_outside_is_an_error),
      TEST(casts_keep_the_layout),
      TEST(gradients_of_gather_are_rows),
      TEST(sums_of_rows_hold_the_rows_of_all),
      TEST(gradients_of_rows_are_differentiated),
      TEST(finite_tests_see_values),
      TEST(functions_take_and_give_dense_tensors),
      TEST(combined_rows_are_segment_sums),
      TEST(shapes_are_checked),
  };
  return cmocka_run_group_tests_name("rows", tests, NULL, NULL);
}
