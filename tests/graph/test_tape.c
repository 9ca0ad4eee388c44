/* Gradients: what a tape records, what counts as a source, and gradients of gradients. All numbers are exact
 * in float32. */
#include "../compile/support.h"

static mix_tensor *gradient_of(mix_tape *tape, void *target, void *source) {
  mix_list *list = mix_tape_gradient(tape, target, mix_list_of(source));
  return list ? mix_list_get(list, 0) : NULL;
}

static void a_chain(void **state) {
  (void)state;
  mix_variable *w = variable("w", vec(MIX_FLOAT32, 1, 2, 3));
  mix_tape *tape = mix_tape_begin();
  mix_tensor *x = mix_variable_value(w);
  mix_tensor *y = mix_reduce_sum(mix_multiply(mix_square(x), scalar(3)), MIX_ALL_AXES, false);
  mix_tape_end(tape);
  has_values(gradient_of(tape, y, w), 6, 12, 18);
}

static void unconnected_sources_give_null(void **state) {
  (void)state;
  mix_variable *w = variable("w", scalar(2)), *other = variable("other", scalar(5));
  mix_tape *tape = mix_tape_begin();
  mix_tensor *x = scalar(3);
  mix_tensor *y = mix_multiply(mix_variable_value(w), x);
  mix_tensor *z = mix_multiply(mix_variable_value(other), x); /* recorded, but not part of y */
  mix_tape_end(tape);
  mix_list *gradients = mix_tape_gradient(tape, y, mix_list_of(w, other, x, z));
  no_error();
  assert_int_equal(mix_list_count(gradients), 4);
  has_values(mix_list_get(gradients, 0), 3);
  assert_null(mix_list_get(gradients, 1));
  assert_null(mix_list_get(gradients, 2)); /* a constant: not watched */
  assert_null(mix_list_get(gradients, 3));
}

static void tensors_made_before_the_tape_are_constants(void **state) {
  (void)state;
  mix_variable *w = variable("w", scalar(2));
  mix_tensor *before = mix_square(mix_variable_value(w));
  mix_tape *tape = mix_tape_begin();
  mix_tensor *y = mix_multiply(before, mix_variable_value(w));
  mix_tape_end(tape);
  has_values(gradient_of(tape, y, w), 4);
  tape = mix_tape_begin();
  mix_tape_end(tape);
  assert_null(gradient_of(tape, mix_square(mix_variable_value(w)), w)); /* created after it */
  no_error();
}

static void several_targets_are_summed(void **state) {
  (void)state;
  mix_variable *w = variable("w", vec(MIX_FLOAT32, 1, 2));
  mix_tape *tape = mix_tape_begin(.persistent = true);
  mix_tensor *x = mix_variable_value(w), *y = mix_square(x), *z = mix_multiply(x, scalar(10));
  mix_tape_end(tape);
  has_values(gradient_of(tape, mix_list_of(y, z), w), 12, 14);
  mix_list *upstream = mix_list_of(vec(MIX_FLOAT32, 1, -1), NULL);
  has_values(mix_list_get(mix_tape_gradient_from(tape, mix_list_of(y, z), upstream, mix_list_of(w)), 0), 12,
             6);
  has_values(gradient_of(tape, mix_list_of(y, NULL), w), 2, 4);
}

static void upstream_gradients_must_fit(void **state) {
  (void)state;
  mix_variable *w = variable("w", vec(MIX_FLOAT32, 1, 2));
  mix_tape *tape = mix_tape_begin(.persistent = true);
  mix_tensor *y = mix_square(mix_variable_value(w));
  mix_tape_end(tape);
  mix_list *sources = mix_list_of(w);
  assert_null(mix_tape_gradient_from(tape, mix_list_of(y), mix_list_of(scalar(1)), sources));
  expect_error(MIX_VALUE_ERROR, "tape_gradient", "float32 ()", "float32 (2)");
  assert_null(mix_tape_gradient_from(tape, mix_list_of(y), mix_list_of(vec(MIX_FLOAT16, 1, 2)), sources));
  expect_error(MIX_VALUE_ERROR, "tape_gradient", "float16 (2)", "float32 (2)");
  assert_null(mix_tape_gradient_from(tape, mix_list_of(y, y), mix_list_of(y), sources));
  expect_error(MIX_VALUE_ERROR, "1 output gradients for 2 targets");
}

static void watched_tensors_are_sources_from_there_on(void **state) {
  (void)state;
  mix_tensor *x = vec(MIX_FLOAT32, 3, 4);
  mix_tape *tape = mix_tape_begin();
  mix_tensor *early = mix_square(x);
  assert_int_equal(mix_tape_watch(tape, x), MIX_OK);
  mix_tensor *y = mix_add(early, mix_multiply(x, scalar(5)));
  mix_tape_end(tape);
  has_values(gradient_of(tape, y, x), 5, 5);
  tape = mix_tape_begin();
  assert_int_equal(mix_tape_watch(tape, vec(MIX_INT32, 1)), MIX_TYPE_ERROR);
  expect_error(MIX_TYPE_ERROR, "tape_watch", "int32");
  mix_tape_watch(tape, (mix_tensor *)variable("w", scalar(1)));
  expect_error(MIX_TYPE_ERROR, "tape_watch", "expected a tensor");
  mix_tape_watch(tape, NULL);
  expect_error(MIX_TYPE_ERROR, "tape_watch", "NULL");
}

static void intermediate_results_can_be_sources(void **state) {
  (void)state;
  mix_variable *w = variable("w", scalar(3));
  mix_tape *tape = mix_tape_begin(.persistent = true);
  mix_tensor *x = mix_variable_value(w), *y = mix_square(x), *z = mix_multiply(mix_square(y), x);
  mix_tape_end(tape);
  has_values(gradient_of(tape, z, y), 2 * 9 * 3);
  has_values(gradient_of(tape, z, w), 5 * 81);
  has_values(gradient_of(tape, y, y), 1);
  has_values(gradient_of(tape, x, w), 1);
}

static void a_tape_gives_one_gradient_unless_persistent(void **state) {
  (void)state;
  mix_variable *w = variable("w", scalar(3));
  mix_tape *tape = mix_tape_begin();
  mix_tensor *y = mix_square(mix_variable_value(w));
  mix_tape_end(tape);
  has_values(gradient_of(tape, y, w), 6);
  assert_null(gradient_of(tape, y, w));
  expect_error(MIX_RUNTIME_ERROR, "tape_gradient", "persistent");
  tape = mix_tape_begin(.persistent = true);
  y = mix_square(mix_variable_value(w));
  for (int i = 0; i < 3; i++) has_values(gradient_of(tape, y, w), 6); /* open or not */
  mix_tape_end(tape);
  has_values(gradient_of(tape, y, w), 6);
}

static void stop_gradient_stops(void **state) {
  (void)state;
  mix_variable *w = variable("w", scalar(3));
  mix_tape *tape = mix_tape_begin();
  mix_tensor *x = mix_variable_value(w), *y = mix_add(x, mix_stop_gradient(mix_square(x))),
             *z = mix_stop_gradient(x);
  mix_tape_end(tape);
  mix_list *gradients = mix_tape_gradient(tape, mix_list_of(y, mix_stop_gradient(z)), mix_list_of(w));
  has_values(mix_list_get(gradients, 0), 1);
}

/* d/dx x^4 = 4 x^3, 12 x^2, 24 x */
static void second_and_third_order(void **state) {
  (void)state;
  mix_variable *w = variable("w", vec(MIX_FLOAT32, 1, 2, -3));
  mix_tape *third = mix_tape_begin(), *second = mix_tape_begin(), *first = mix_tape_begin();
  mix_tensor *y = mix_square(mix_square(mix_variable_value(w)));
  mix_tape_end(first);
  mix_tensor *d1 = gradient_of(first, y, w);
  mix_tape_end(second);
  mix_tensor *d2 = gradient_of(second, d1, w);
  mix_tape_end(third);
  mix_tensor *d3 = gradient_of(third, d2, w);
  has_values(d1, 4, 32, -108);
  has_values(d2, 12, 48, 108);
  has_values(d3, 24, 48, -72);
}

static void a_persistent_tape_records_its_own_gradients(void **state) {
  (void)state;
  mix_variable *w = variable("w", scalar(2));
  mix_tape *tape = mix_tape_begin(.persistent = true);
  mix_tensor *y = mix_multiply(mix_square(mix_variable_value(w)), mix_variable_value(w));
  mix_tensor *d1 = gradient_of(tape, y, w), *d2 = gradient_of(tape, d1, w);
  has_values(d1, 12);
  has_values(d2, 12);
}

static void the_outer_end_closes_inner_tapes(void **state) {
  (void)state;
  mix_variable *w = variable("w", scalar(2));
  mix_tape *outer = mix_tape_begin(), *inner = mix_tape_begin();
  mix_tensor *y = mix_square(mix_variable_value(w));
  mix_tape_end(outer);
  mix_tensor *z = mix_square(y); /* recorded by neither */
  assert_null(gradient_of(inner, z, w));
  has_values(gradient_of(outer, y, w), 4);
  mix_tape_end(inner);
  mix_tape_end(outer);
  mix_tape_end(NULL);
  no_error();
}

static void a_scope_ends_the_tapes_in_it(void **state) {
  (void)state;
  mix_tape *outer = mix_tape_begin();
  MIX_SCOPE {
    mix_tape_begin();
    mix_tape_begin(.persistent = true);
  }
  mix_variable *w = variable("w", scalar(2));
  mix_tensor *y = mix_square(mix_variable_value(w));
  mix_tape_end(outer);
  has_values(gradient_of(outer, y, w), 4);
}

static void variables_that_are_not_trainable_are_not_watched(void **state) {
  (void)state;
  mix_variable *fixed = mix_variable_new(scalar(2), .not_trainable = true), *w = variable("w", scalar(3));
  mix_tape *tape = mix_tape_begin(.persistent = true);
  mix_tensor *x = mix_variable_value(fixed), *y = mix_multiply(mix_variable_value(w), x);
  mix_tape_end(tape);
  assert_null(gradient_of(tape, y, fixed));
  assert_null(gradient_of(tape, x, fixed));
  has_values(gradient_of(tape, y, w), 2);
  tape = mix_tape_begin();
  mix_tape_watch(tape, mix_variable_value(fixed));
  y = mix_square(mix_variable_value(fixed));
  has_values(gradient_of(tape, y, fixed), 4);
  tape = mix_tape_begin(.no_watch_accessed = true);
  y = mix_square(mix_variable_value(w));
  assert_null(gradient_of(tape, y, w));
  no_error();
}

static void variables_read_twice_sum_their_reads(void **state) {
  (void)state;
  mix_variable *w = variable("w", scalar(3));
  mix_tape *tape = mix_tape_begin();
  mix_tensor *y = mix_multiply(mix_variable_value(w), mix_variable_value(w));
  has_values(gradient_of(tape, y, w), 6);
  tape = mix_tape_begin();
  mix_tensor *before = mix_square(mix_variable_value(w));
  mix_variable_assign(w, scalar(10));
  mix_tensor *after = mix_square(mix_variable_value(w));
  has_values(gradient_of(tape, mix_add(before, after), w), 6 + 20);
  assert_null(gradient_of(mix_tape_begin(), mix_variable_value(variable("v", scalar(1))), w));
  no_error();
}

/* An autocast variable's gradient has its true dtype, whichever tape sees the cast. */
static void gradients_have_the_sources_dtype(void **state) {
  (void)state;
  mix_variable *w = mix_variable_new(scalar(3), .autocast = true);
  mix_tape *outer = mix_tape_begin();
  mix_dtype former = mix_cast_dtype_set(MIX_FLOAT16);
  mix_tensor *first = mix_square(mix_variable_value(w));
  mix_tape *inner = mix_tape_begin();
  mix_tensor *second = mix_square(mix_variable_value(w));
  mix_cast_dtype_set(former);
  assert_int_equal(mix_tensor_dtype(second), MIX_FLOAT16);
  mix_tensor *gradient = gradient_of(inner, second, w);
  assert_int_equal(mix_tensor_dtype(gradient), MIX_FLOAT32);
  has_values(gradient, 6);
  mix_tape_end(outer);
  has_values(gradient_of(outer, mix_list_of(first, second), w), 12);
}

static mix_list *inner_and_outer(void *context, mix_list *arguments) {
  mix_variable *w = context;
  (void)arguments;
  mix_tape *outer = mix_tape_begin();
  mix_dtype former = mix_cast_dtype_set(MIX_FLOAT16);
  mix_tensor *first = mix_square(mix_variable_value(w)); /* the cast that the capture caches */
  mix_tape *inner = mix_tape_begin();
  mix_tensor *second = mix_square(mix_variable_value(w));
  mix_cast_dtype_set(former);
  mix_tensor *from_inner = gradient_of(inner, second, w);
  mix_tape_end(outer);
  return mix_list_of(from_inner, gradient_of(outer, mix_list_of(first, second), w));
}

static void a_cast_from_before_an_inner_tape_does_not_hide_the_variable(void **state) {
  (void)state;
  mix_variable *w = mix_variable_new(scalar(3), .autocast = true);
  mix_function *function = mix_function_new(inner_and_outer, w);
  mix_list *results = mix_function_call(function, NULL);
  no_error();
  has_values(mix_list_get(results, 0), 6);
  has_values(mix_list_get(results, 1), 12);
}

static void misuse_is_an_error(void **state) {
  (void)state;
  mix_variable *w = variable("w", scalar(3));
  mix_tape *tape = mix_tape_begin(.persistent = true);
  mix_tensor *y = mix_square(mix_variable_value(w));
  assert_null(mix_tape_gradient(NULL, y, mix_list_of(w)));
  expect_error(MIX_TYPE_ERROR, "expected a tape");
  assert_null(mix_tape_gradient(tape, NULL, mix_list_of(w)));
  expect_error(MIX_TYPE_ERROR, "target");
  assert_null(mix_tape_gradient(tape, w, mix_list_of(w)));
  expect_error(MIX_TYPE_ERROR, "target");
  assert_null(mix_tape_gradient(tape, y, NULL));
  expect_error(MIX_TYPE_ERROR, "sources");
  assert_null(mix_tape_gradient(tape, y, mix_list_of(w, tape)));
  expect_error(MIX_TYPE_ERROR, "source 1", "another object");
  assert_null(mix_tape_gradient(tape, mix_less(y, scalar(1)), mix_list_of(w)));
  expect_error(MIX_TYPE_ERROR, "target 0", "bool");
  has_values(gradient_of(tape, y, w), 6); /* the tape is still usable */
}

/* Reads that outlive their variable stay readable, also on a tape. */
static void a_tape_outlives_variables(void **state) {
  (void)state;
  mix_tape *tape = mix_tape_begin();
  mix_tensor *x = vec(MIX_FLOAT32, 1, 2), *y = NULL;
  mix_tape_watch(tape, x);
  MIX_SCOPE {
    mix_variable *w = variable("w", vec(MIX_FLOAT32, 5, 6));
    mix_tensor *old = mix_multiply(mix_variable_value(w), x);
    mix_variable_assign(w, vec(MIX_FLOAT32, 7, 8));
    y = mix_retain(mix_add(old, mix_multiply(mix_variable_value(w), x)));
  }
  has_values(gradient_of(tape, y, x), 12, 14);
  has_values(y, 12, 28);
  mix_release(y);
}

/* Every allocation of a gradient can fail: an error, no leak, no crash. */
static void failed_allocations(void **state) {
  (void)state;
  mix_variable *w = variable("w", vec(MIX_FLOAT32, 1, 2, 3));
  bool complete = false;
  for (int k = 0; !complete; k++) {
    assert_in_range(k, 0, 2000);
    MIX_SCOPE {
      mix_inject_allocation_failure(k);
      mix_tape *tape = mix_tape_begin();
      mix_tensor *x = mix_variable_value(w);
      mix_tensor *y = mix_reduce_sum(mix_multiply(mix_exp(x), mix_square(x)), MIX_ALL_AXES, false);
      mix_tape_end(tape);
      mix_tensor *gradient = gradient_of(tape, y, w);
      mix_inject_allocation_failure(-1);
      complete = mix_error() == MIX_OK;
      assert_true(complete ? gradient != NULL : mix_error() == MIX_MEMORY_ERROR);
      mix_error_clear();
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(a_chain),
      TEST(unconnected_sources_give_null),
      TEST(tensors_made_before_the_tape_are_constants),
      TEST(several_targets_are_summed),
      TEST(upstream_gradients_must_fit),
      TEST(watched_tensors_are_sources_from_there_on),
      TEST(intermediate_results_can_be_sources),
      TEST(a_tape_gives_one_gradient_unless_persistent),
      TEST(stop_gradient_stops),
      TEST(second_and_third_order),
      TEST(a_persistent_tape_records_its_own_gradients),
      TEST(the_outer_end_closes_inner_tapes),
      TEST(a_scope_ends_the_tapes_in_it),
      TEST(variables_that_are_not_trainable_are_not_watched),
      TEST(variables_read_twice_sum_their_reads),
      TEST(gradients_have_the_sources_dtype),
      TEST(a_cast_from_before_an_inner_tape_does_not_hide_the_variable),
      TEST(misuse_is_an_error),
      TEST(a_tape_outlives_variables),
      TEST(failed_allocations),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
