/* mix_tensor_print: what is logged, when and in which order. mix_check_numerics: what it refuses, and what is
 * written then. */
#include "compile/support.h"

#include <mixtape/debug.h>
#include <mixtape/mixtape.h>

/* ---- the log ---- */

enum { LINES = 64 };
static char lines[LINES][256];
static int line_count;

static void take(void *context, mix_log_level level, const char *message) {
  (void)context;
  if (level != MIX_LOG_INFO || line_count == LINES) return;
  snprintf(lines[line_count++], sizeof *lines, "%s", message);
}
static void listen(void) {
  line_count = 0;
  mix_set_log_callback(take, NULL);
}

static void logged(const char *const *wanted, int count) {
  mix_set_log_callback(NULL, NULL);
  no_error();
  for (int i = 0; i < count && i < line_count; i++) assert_string_equal(lines[i], wanted[i]);
  assert_int_equal(line_count, count);
}
#define LOGGED(...) logged((const char *const[]){__VA_ARGS__}, COUNT(((const char *const[]){__VA_ARGS__})))

static mix_tensor *tensor(mix_dtype dtype, mix_shape shape, const double *values) {
  return mix_tensor_from_doubles(values, dtype, shape);
}

/* ---- print ---- */

static void values_as_text(void **state) {
  (void)state;
  listen();
  mix_tensor_print(tensor(MIX_FLOAT32, MIX_SHAPE(2, 3), NUMBERS(1, 2.5, -3, 4e10, 0.1, INFINITY)), "x");
  mix_tensor_print(mix_scalar(NAN, MIX_FLOAT64), NULL);
  mix_tensor_print(mix_range(0, 6, 1, MIX_INT32), "six");
  mix_tensor_print(mix_range(0, 9, 1, MIX_INT32), "nine");
  mix_tensor_print(mix_reshape(mix_range(0, 14, 1, MIX_INT64), MIX_SHAPE(2, 7)), "rows");
  mix_tensor_print(tensor(MIX_FLOAT16, MIX_SHAPE(1), NUMBERS(0.1)), "half");
  mix_tensor_print(mix_scalar(1, MIX_BOOL), "yes");
  mix_tensor_print(mix_fill(MIX_SHAPE(0, 2), 1, MIX_FLOAT32), "none");
  LOGGED("x: float32 (2, 3) [[1 2.5 -3] [4e+10 0.100000001 inf]]", "tensor: float64 () nan",
         "six: int32 (6) [0 1 2 3 4 5]", "nine: int32 (9) [0 1 2 ... 6 7 8]",
         "rows: int64 (2, 7) [[0 1 2 ... 4 5 6] [7 8 9 ... 11 12 13]]", "half: float16 (1) [0.099976]",
         "yes: bool () true", "none: float32 (0, 2) []");
}

static void long_texts_are_cut(void **state) {
  (void)state;
  char label[1500];
  memset(label, 'a', sizeof label);
  label[sizeof label - 1] = 0;
  listen();
  mix_tensor_print(mix_fill(MIX_SHAPE(6, 6, 6, 6), 1.25, MIX_FLOAT32), label);
  mix_set_log_callback(NULL, NULL);
  assert_int_equal(line_count, 1);
  no_error();
}

/* Equal prints, of values that nothing else needs, between others. */
static mix_list *prints(void *context, mix_list *arguments) {
  mix_tensor *x = mix_list_get(arguments, 0), *y = mix_matmul(x, x, false, false);
  (void)context;
  mix_tensor_print(mix_reduce_sum(y, MIX_ALL_AXES, false), "sum");
  mix_tensor_print(mix_slice(x, MIX_SHAPE(0, 0), MIX_SHAPE(1, 1)), "first");
  mix_tensor_print(mix_reduce_sum(y, MIX_ALL_AXES, false), "sum");
  mix_tensor_print(mix_scalar(4, MIX_INT32), "constant");
  mix_tensor_print(mix_reduce_max(y, MIX_ALL_AXES, false), "largest");
  return mix_list_of(mix_add(x, x));
}

static void runs_print_in_order(void **state) {
  (void)state;
  const int threads[] = {1, 4};
  for (int t = 0; t < 2; t++) {
    mix_set_threads(threads[t]);
    mix_function *function = mix_function_new(prints, NULL);
    listen();
    mix_tensor *x = mix_fill(MIX_SHAPE(64, 64), 0.5, MIX_FLOAT32);
    mix_list *results[2];
    for (int i = 0; i < 2; i++) results[i] = mix_function_call(function, mix_list_of(x));
    no_error();
    assert_true(mix_tensor_item(mix_reduce_sum(mix_list_get(results[1], 0), MIX_ALL_AXES, false)) == 4096);
    LOGGED("sum: float32 () 65536", "first: float32 (1, 1) [[0.5]]", "sum: float32 () 65536",
           "constant: int32 () 4", "largest: float32 () 16", "sum: float32 () 65536",
           "first: float32 (1, 1) [[0.5]]", "sum: float32 () 65536", "constant: int32 () 4",
           "largest: float32 () 16");
  }
}

static mix_list *remat_prints(void *context, mix_list *inputs) {
  mix_tensor *y = mix_exp(mix_tanh(mix_list_get(inputs, 0)));
  if (context) mix_tensor_print(y, "once");
  return mix_list_of(mix_square(y));
}
static mix_list *gradient_step(void *context, mix_list *arguments) {
  mix_tensor *x = mix_list_get(arguments, 0);
  mix_tape *tape = mix_tape_begin();
  mix_tape_watch(tape, x);
  mix_tensor *y = mix_list_get(mix_remat(remat_prints, context, mix_list_of(x)), 0);
  mix_tape_end(tape);
  return mix_tape_gradient(tape, y, mix_list_of(x));
}

/* What is computed again in the backward pass is not printed again, and no bit changes. */
static void gradients_are_what_they_are_without(void **state) {
  (void)state;
  int prints_too = 1;
  mix_tensor *x = tensor(MIX_FLOAT32, MIX_SHAPE(2), NUMBERS(0.25, 0.75));
  mix_list *plain = mix_function_call(mix_function_new(gradient_step, NULL), mix_list_of(x));
  listen();
  mix_list *printed = mix_function_call(mix_function_new(gradient_step, &prints_too), mix_list_of(x));
  no_error();
  assert_memory_equal(mix_tensor_data(mix_list_get(plain, 0)), mix_tensor_data(mix_list_get(printed, 0)), 8);
  mix_set_log_callback(NULL, NULL);
  assert_int_equal(line_count, 1);
  assert_int_equal(strncmp(lines[0], "once: float32 (2) [1.27", 23), 0);
}

static mix_list *loop_prints(void *context, mix_list *carry, mix_list *inputs) {
  (void)context, (void)inputs;
  if (mix_tensor_print(mix_list_get(carry, 0), "step") != MIX_OK) return NULL;
  return mix_list_of(carry, NULL);
}

static void prints_out_of_place(void **state) {
  (void)state;
  mix_tensor *x = mix_scalar(1, MIX_FLOAT32);
  assert_null(mix_scan(loop_prints, NULL, mix_list_of(x), mix_list_of(mix_range(0, 3, 1, MIX_FLOAT32))));
  expect_error(MIX_UNSUPPORTED, "tensor_print: 'step' in the body of a loop");
  assert_int_equal(mix_tensor_print(NULL, "a"), MIX_TYPE_ERROR);
  expect_error(MIX_TYPE_ERROR, "tensor_print");
  listen();
  assert_int_equal(mix_tensor_print(mix_input(.shape = MIX_SHAPE(2)), "symbolic"), MIX_OK);
  mix_set_log_callback(NULL, NULL);
  assert_int_equal(line_count, 0);
  mix_function *batches = mix_function_new(prints, NULL, .batch = MIX_ANY);
  assert_null(mix_function_call(batches, mix_list_of(mix_fill(MIX_SHAPE(2, 2), 1, MIX_FLOAT32))));
  expect_error(MIX_VALUE_ERROR, "");
}

/* ---- check_numerics ---- */

static const mix_dtype floating[] = {MIX_FLOAT16, MIX_BFLOAT16, MIX_FLOAT32, MIX_FLOAT64};

static void at_once_outside_a_capture(void **state) {
  (void)state;
  for (int d = 0; d < COUNT(floating); d++) {
    mix_tensor *fine = tensor(floating[d], MIX_SHAPE(3), NUMBERS(1, -0.0, 2)), *same;
    assert_non_null(same = mix_check_numerics(fine, "fine"));
    assert_memory_equal(mix_tensor_data(fine), mix_tensor_data(same), 3 * mix_dtype_size(floating[d]));
    assert_null(mix_check_numerics(tensor(floating[d], MIX_SHAPE(3), NUMBERS(1, NAN, 2)), "of the test"));
    expect_error(MIX_VALUE_ERROR, "check_numerics: of the test: the tensor has NaN values",
                 mix_dtype_name(floating[d]));
    assert_null(mix_check_numerics(tensor(floating[d], MIX_SHAPE(3), NUMBERS(1, -INFINITY, 2)), NULL));
    expect_error(MIX_VALUE_ERROR, "check_numerics: the tensor has infinite values");
    assert_null(mix_check_numerics(tensor(floating[d], MIX_SHAPE(3), NUMBERS(NAN, INFINITY, 2)), "x"));
    expect_error(MIX_VALUE_ERROR, "x: the tensor has NaN and infinite values");
  }
  assert_non_null(mix_check_numerics(mix_fill(MIX_SHAPE(0), 1, MIX_FLOAT32), "empty"));
  assert_null(mix_check_numerics(mix_scalar(1, MIX_INT32), "whole"));
  expect_error(MIX_TYPE_ERROR, "check_numerics");
  assert_null(mix_check_numerics(NULL, "none"));
  expect_error(MIX_TYPE_ERROR, "check_numerics");
}

typedef struct checked {
  mix_variable *count;
  bool unread; /* nothing reads the result of the check */
} checked;

static mix_list *check_and_count(void *context, mix_list *arguments) {
  const checked *c = context;
  mix_tensor *x = mix_list_get(arguments, 0), *y = mix_check_numerics(mix_square(x), "the square");
  mix_variable_assign_add(c->count, mix_scalar(1, MIX_FLOAT32));
  return mix_list_of(mix_add(c->unread ? x : y, x));
}

static void a_failed_step_writes_nothing(void **state) {
  (void)state;
  for (int unread = 0; unread < 2; unread++) {
    checked c = {mix_variable_new(mix_scalar(0, MIX_FLOAT32), .not_trainable = true), unread};
    mix_function *function = mix_function_new(check_and_count, &c);
    mix_tensor *fine = mix_fill(MIX_SHAPE(300), 2, MIX_FLOAT32),
               *large = mix_fill(MIX_SHAPE(300), 1e30, MIX_FLOAT32);
    for (int i = 0; i < 2; i++) {
      mix_list *results = mix_function_call(function, mix_list_of(fine));
      assert_true(mix_tensor_item(mix_reduce_max(mix_list_get(results, 0), MIX_ALL_AXES, false)) ==
                  (unread ? 4 : 6));
      results = mix_function_call(function, mix_list_of(large));
      if (results) mix_tensor_data(mix_list_get(results, 0)); /* of a queue the error comes with the value */
      expect_error(MIX_VALUE_ERROR, "check_numerics: the square: the tensor has infinite values",
                   "float32 (300)");
      assert_true(mix_tensor_item(mix_variable_true_value(c.count)) == i + 1);
    }
  }
}

static void gradients_are_checked(void **state) {
  (void)state;
  mix_tensor *x = tensor(MIX_FLOAT32, MIX_SHAPE(2), NUMBERS(0, 4)), *got;
  for (int bad = 0; bad < 2; bad++) {
    mix_tape *tape = mix_tape_begin();
    mix_tape_watch(tape, x);
    mix_tensor *y = mix_check_numerics(x, "x of the root");
    y = bad ? mix_sqrt(y) : mix_square(y); /* the slope of the root at 0 is infinite */
    mix_tape_end(tape);
    got = mix_list_get(mix_tape_gradient(tape, y, mix_list_of(x)), 0);
    const void *data = mix_tensor_data(got);
    if (!bad) {
      no_error();
      assert_true(((const float *)data)[1] == 8);
    } else {
      expect_error(MIX_VALUE_ERROR, "gradient of x of the root: the tensor has infinite values");
    }
  }
}

static mix_list *checks_in_loop(void *context, mix_list *carry, mix_list *inputs) {
  (void)context;
  mix_tensor *h = mix_multiply(mix_list_get(carry, 0), mix_list_get(inputs, 0));
  mix_list *next = mix_list_of(mix_check_numerics(h, "in a loop"));
  return mix_list_of(next, NULL);
}

static void steps_of_loops_are_checked(void **state) {
  (void)state;
  for (int bad = 0; bad < 2; bad++) {
    mix_list *steps = mix_list_of(tensor(MIX_FLOAT32, MIX_SHAPE(3), NUMBERS(2, 3, bad ? INFINITY : 5)));
    mix_list *result = mix_scan(checks_in_loop, NULL, mix_list_of(mix_scalar(1, MIX_FLOAT32)), steps);
    no_error();
    const double product = mix_tensor_item(mix_list_get(mix_list_get(result, 0), 0));
    if (!bad) assert_true(product == 30);
    if (bad) expect_error(MIX_VALUE_ERROR, "in a loop: the tensor has infinite values");
  }
}

static mix_list *print_and_check(void *context, mix_list *arguments) {
  mix_tensor *x = mix_list_get(arguments, 0);
  (void)context;
  mix_tensor_print(x, "a label that no other test has");
  return mix_list_of(mix_check_numerics(x, "a message that no other test has"));
}

static void memory_runs_out(void **state) {
  (void)state;
  bool done = false;
  for (int64_t n = 0; !done; n++)
    MIX_SCOPE {
      mix_tensor *x = mix_fill(MIX_SHAPE(3), 2, MIX_FLOAT32);
      mix_evaluate(1, &x);
      no_error();
      mix_inject_allocation_failure(n);
      mix_list *results = mix_function_call(mix_function_new(print_and_check, NULL), mix_list_of(x));
      mix_inject_allocation_failure(-1);
      done = mix_error() == MIX_OK;
      assert_true(done ? results != NULL : mix_error_take(NULL, 0) == MIX_MEMORY_ERROR);
      assert_true(n < 10000);
    }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(values_as_text),
      TEST(long_texts_are_cut),
      TEST(runs_print_in_order),
      TEST(gradients_are_what_they_are_without),
      TEST(prints_out_of_place),
      TEST(at_once_outside_a_capture),
      TEST(a_failed_step_writes_nothing),
      TEST(gradients_are_checked),
      TEST(steps_of_loops_are_checked),
      TEST(memory_runs_out),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
