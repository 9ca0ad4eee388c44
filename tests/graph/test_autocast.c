/* Autocast variables: the rows of docs/spec/mixed_precision.md 9.4 that need no layer. The value is 7 and the
 * scope float16 unless the row says otherwise. */
/* Holds docs/NUMERICS.md: Optimizers. */
#include "../compile/support.h"
#include "support/count.h"

#include <pthread.h>

static mix_variable *seven(void) { return mix_variable_new(scalar(7), .name = "x", .autocast = true); }
static mix_dtype inside(mix_dtype dtype) { return mix_cast_dtype_set(dtype); }
static void outside(void) { mix_cast_dtype_set(MIX_DTYPE_NONE); }
static mix_tensor *half(double value) { return mix_scalar(value, MIX_FLOAT16); }

static void is_half(mix_tensor *t, double value) {
  no_error();
  assert_int_equal(mix_tensor_dtype(t), MIX_FLOAT16);
  has_values(t, value);
}

static void V01_dtype(void **state) {
  (void)state;
  mix_variable *x = seven();
  assert_int_equal(mix_variable_dtype(x), MIX_FLOAT32);
  inside(MIX_FLOAT16);
  assert_int_equal(mix_variable_dtype(x), MIX_FLOAT16);
  char text[200];
  assert_string_equal(mix_variable_text(x, text, sizeof text),
                      "<AutoCastVariable 'x' shape=() dtype=float32 dtype_to_cast_to=float16>");
  outside();
  assert_int_equal(mix_variable_dtype(x), MIX_FLOAT32);
}

static void V02_true_dtype(void **state) {
  (void)state;
  mix_variable *x = seven();
  inside(MIX_FLOAT16);
  assert_int_equal(mix_variable_true_dtype(x), MIX_FLOAT32);
  assert_int_equal(mix_tensor_dtype(mix_variable_true_value(x)), MIX_FLOAT32);
  outside();
}

static void V03_values(void **state) {
  (void)state;
  mix_variable *x = seven();
  inside(MIX_FLOAT16);
  mix_tensor *value = mix_variable_value(x);
  outside();
  is_half(value, 7);
  assert_int_equal(mix_tensor_dtype(mix_variable_value(x)), MIX_FLOAT32);
}

static void V04_sums_and_products(void **state) {
  (void)state;
  mix_variable *variable = seven();
  inside(MIX_FLOAT16);
  is_half(mix_add(mix_variable_value(variable), half(1)), 8);
  is_half(mix_add(half(1), mix_variable_value(variable)), 8);
  is_half(mix_subtract(mix_variable_value(variable), half(1)), 6);
  is_half(mix_multiply(mix_variable_value(variable), half(2)), 14);
  is_half(mix_add(half(3), mix_variable_value(variable)), 10);
  assert_null(mix_add(mix_variable_value(variable), scalar(1)));
  expect_error(MIX_TYPE_ERROR, "float16 ()", "float32 ()");
  outside();
}

static void V05_power(void **state) {
  (void)state;
  mix_variable *x = seven();
  inside(MIX_FLOAT16);
  is_half(mix_power(mix_variable_value(x), half(3)), 343);
  outside();
}

static void V06_quotients_and_signs(void **state) {
  (void)state;
  mix_variable *variable = seven();
  inside(MIX_FLOAT16);
  mix_tensor *x = mix_variable_value(variable);
  is_half(mix_divide(x, half(2)), 3.5);
  is_half(mix_floor_divide(x, half(2)), 3);
  is_half(mix_floor_mod(x, half(2)), 1);
  is_half(mix_negative(x), -7);
  is_half(mix_abs(mix_negative(x)), 7);
  outside();
}

static void V07_comparisons(void **state) {
  (void)state;
  mix_variable *variable = seven();
  inside(MIX_FLOAT16);
  mix_tensor *x = mix_variable_value(variable), *eight = half(8);
  has_values(mix_less(x, eight), true);
  has_values(mix_less_equal(x, eight), true);
  has_values(mix_greater(x, eight), false);
  has_values(mix_greater_equal(x, eight), false);
  outside();
}

static void V08_assign_inside(void **state) {
  (void)state;
  mix_variable *x = seven();
  inside(MIX_FLOAT16);
  assert_int_equal(mix_variable_assign(x, half(3.14)), MIX_OK);
  assert_int_equal(mix_tensor_dtype(mix_variable_true_value(x)), MIX_FLOAT32);
  assert_int_equal(mix_variable_assign_add(x, half(1)), MIX_OK);
  assert_int_equal(mix_variable_assign_sub(x, half(2)), MIX_OK);
  outside();
  variable_has(x, 3.140625 + 1 - 2); /* the float16 nearest to 3.14 */
}

static void V09_assign_outside(void **state) {
  (void)state;
  mix_variable *x = seven();
  assert_int_equal(mix_variable_assign(x, half(3)), MIX_TYPE_ERROR);
  expect_error(MIX_TYPE_ERROR, "'x'", "float32", "float16");
  assert_int_equal(mix_variable_assign_add(x, half(3)), MIX_TYPE_ERROR);
  expect_error(MIX_TYPE_ERROR, "float32", "float16");
  variable_has(x, 7);
  mix_variable *plain = variable("plain", scalar(7)); /* inside, for a variable without autocast */
  inside(MIX_FLOAT16);
  assert_int_equal(mix_variable_assign(plain, half(3)), MIX_TYPE_ERROR);
  outside();
  expect_error(MIX_TYPE_ERROR, "'plain'");
}

static void V10_small_sums_are_kept_in_the_true_dtype(void **state) {
  (void)state;
  const double small = 0x1p-11; /* half of float16's epsilon */
  mix_variable *x = mix_variable_new(scalar(1), .autocast = true);
  inside(MIX_FLOAT16);
  assert_int_equal(mix_variable_assign_add(x, scalar(small)), MIX_OK);
  is_half(mix_variable_value(x), 1);
  outside();
  variable_has(x, 1 + small);
  inside(MIX_FLOAT16);
  assert_int_equal(mix_variable_assign_sub(x, half(small)), MIX_OK);
  outside();
  variable_has(x, 1);
}

static void V11_nested_scopes(void **state) {
  (void)state;
  mix_variable *x = seven();
  inside(MIX_FLOAT16);
  assert_int_equal(mix_variable_dtype(x), MIX_FLOAT16);
  mix_dtype former = inside(MIX_FLOAT32);
  assert_int_equal(mix_variable_dtype(x), MIX_FLOAT32);
  has_values(mix_variable_value(x), 7);
  inside(former);
  assert_int_equal(mix_variable_dtype(x), MIX_FLOAT16);
  outside();
}

static void V12_a_scope_that_is_not_floating(void **state) {
  (void)state;
  mix_variable *x = seven();
  inside(MIX_INT32);
  assert_int_equal(mix_variable_dtype(x), MIX_FLOAT32);
  assert_int_equal(mix_tensor_dtype(mix_variable_value(x)), MIX_FLOAT32);
  outside();
}

static void *dtype_in_thread(void *variable) {
  return (void *)(uintptr_t)mix_tensor_dtype(mix_variable_value(variable));
}

static void V13_a_new_thread(void **state) {
  (void)state;
  mix_variable *x = seven();
  inside(MIX_FLOAT16);
  pthread_t thread;
  void *dtype;
  assert_int_equal(pthread_create(&thread, NULL, dtype_in_thread, x), 0);
  pthread_join(thread, &dtype);
  assert_int_equal((uintptr_t)dtype, MIX_FLOAT32);
  assert_int_equal(mix_variable_dtype(x), MIX_FLOAT16);
  outside();
}

static void V14_an_integer_variable(void **state) {
  (void)state;
  assert_null(mix_variable_new(mix_scalar(7, MIX_INT32), .name = "steps", .autocast = true));
  expect_error(MIX_VALUE_ERROR, "variable_new", "'steps'", "int32", "floating");
}

static void V19_not_trainable(void **state) {
  (void)state;
  mix_variable *x = mix_variable_new(scalar(7), .not_trainable = true, .autocast = true);
  inside(MIX_FLOAT16);
  is_half(mix_variable_value(x), 7);
  outside();
}

/* The scope that a float32 child of a mixed parent sets during its call. */
static void V20_a_float32_child_reads_the_parents_variable(void **state) {
  (void)state;
  mix_variable *parents = seven();
  mix_dtype former = inside(MIX_FLOAT16);
  is_half(mix_variable_value(parents), 7);
  mix_dtype parent = inside(MIX_FLOAT32);
  assert_int_equal(mix_tensor_dtype(mix_variable_value(parents)), MIX_FLOAT32);
  inside(parent);
  is_half(mix_variable_value(parents), 7);
  inside(former);
}

static void V24_a_float64_scope(void **state) {
  (void)state;
  mix_variable *x = seven();
  inside(MIX_FLOAT64);
  mix_tensor *value = mix_variable_value(x);
  outside();
  assert_int_equal(mix_tensor_dtype(value), MIX_FLOAT64);
  has_values(value, 7);
}

/* ---- the same inside a capture ---- */

static mix_list *reads(void *context, mix_list *arguments) {
  (void)arguments;
  mix_tensor *plain = mix_variable_value(context);
  inside(MIX_FLOAT16);
  mix_tensor *first = mix_variable_value(context);
  inside(MIX_BFLOAT16);
  mix_tensor *other = mix_variable_value(context);
  inside(MIX_FLOAT16);
  mix_variable_assign(context, half(9));
  mix_tensor *after = mix_variable_value(context);
  outside();
  return mix_list_of(plain, first, other, after);
}

static void captures_cast(void **state) {
  (void)state;
  mix_variable *x = seven();
  mix_list *results = mix_function_call(mix_function_new(reads, x), NULL);
  no_error();
  const mix_dtype dtypes[] = {MIX_FLOAT32, MIX_FLOAT16, MIX_BFLOAT16, MIX_FLOAT16};
  for (int i = 0; i < 4; i++) {
    assert_int_equal(mix_tensor_dtype(mix_list_get(results, i)), dtypes[i]);
    has_values(mix_list_get(results, i), i < 3 ? 7 : 9);
  }
  variable_has(x, 9);
}

static mix_list *product_of_two_reads(void *context, mix_list *arguments) {
  (void)arguments;
  inside(MIX_FLOAT16);
  mix_tensor *first = mix_variable_value(context), *second = mix_variable_value(context);
  outside();
  return mix_list_of(mix_multiply(first, second));
}

static int casts_to_half(mix_function *function, const char *stage) {
  const char *text = mix_function_dump(function, stage);
  no_error();
  return count_of(text, ":float16() = cast(");
}

static void reads_of_one_variable_share_a_cast(void **state) {
  (void)state;
  mix_function *function = mix_function_new(product_of_two_reads, seven());
  is_half(mix_list_get(mix_function_call(function, NULL), 0), 49);
  assert_int_equal(casts_to_half(function, "before cse"), 2);
  assert_int_equal(casts_to_half(function, "cse"), 1);
}

/* Each call of a function uses the cast scope of that call, as without a capture, not that of its first
 * call. */
static void captures_see_the_callers_cast(void **state) {
  (void)state;
  mix_variable *x = seven();
  mix_function *function = mix_function_new(reads, x);
  for (int call = 0; call < 4; call++) {
    const mix_dtype dtype = call % 2 ? MIX_FLOAT32 : MIX_FLOAT16;
    if (dtype == MIX_FLOAT16) inside(dtype);
    mix_list *results = mix_function_call(function, NULL);
    if (dtype == MIX_FLOAT16) assert_int_equal(mix_cast_dtype(), MIX_FLOAT16);
    if (dtype == MIX_FLOAT16) outside();
    no_error();
    assert_int_equal(mix_tensor_dtype(mix_list_get(results, 0)), dtype);
  }
}

/* d(x * 40000 + x * 40000) in float16: each part is finite, their sum only in float32. */
static mix_list *gradient_of_two_reads(void *context, mix_list *arguments) {
  (void)arguments;
  mix_tape *tape = mix_tape_begin();
  inside(MIX_FLOAT16);
  mix_tensor *first = mix_multiply(mix_variable_value(context), half(40000));
  mix_tensor *second = mix_multiply(mix_variable_value(context), half(40000));
  outside();
  mix_tensor *sum = mix_add(mix_cast(first, MIX_FLOAT32), mix_cast(second, MIX_FLOAT32));
  mix_tape_end(tape);
  return mix_tape_gradient(tape, sum, mix_list_of(context));
}

static void gradients_of_reads_add_up_in_float32(void **state) {
  (void)state;
  mix_variable *x = mix_variable_new(scalar(1), .name = "x", .autocast = true);
  mix_list *results[] = {gradient_of_two_reads(x, NULL),
                         mix_function_call(mix_function_new(gradient_of_two_reads, x), NULL)};
  no_error();
  for (int i = 0; i < COUNT(results); i++) {
    assert_int_equal(mix_tensor_dtype(mix_list_get(results[i], 0)), MIX_FLOAT32);
    has_values(mix_list_get(results[i], 0), 80000);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(V01_dtype),
      TEST(V02_true_dtype),
      TEST(V03_values),
      TEST(V04_sums_and_products),
      TEST(V05_power),
      TEST(V06_quotients_and_signs),
      TEST(V07_comparisons),
      TEST(V08_assign_inside),
      TEST(V09_assign_outside),
      TEST(V10_small_sums_are_kept_in_the_true_dtype),
      TEST(V11_nested_scopes),
      TEST(V12_a_scope_that_is_not_floating),
      TEST(V13_a_new_thread),
      TEST(V14_an_integer_variable),
      TEST(V19_not_trainable),
      TEST(V20_a_float32_child_reads_the_parents_variable),
      TEST(V24_a_float64_scope),
      TEST(captures_cast),
      TEST(reads_of_one_variable_share_a_cast),
      TEST(captures_see_the_callers_cast),
      TEST(gradients_of_reads_add_up_in_float32),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
