/* Shared by the optimizer tests: variables from numbers and back, one eager or captured update. */
#ifndef TESTS_OPTIM_SUPPORT_H
#define TESTS_OPTIM_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <mixtape/function.h>
#include <mixtape/ops.h>
#include <mixtape/optimizer.h>
#include <mixtape/schedule.h>
#include <stdio.h>
#include <string.h>

static inline mix_tensor *vector_of(mix_dtype dtype, int count, const double *values) {
  return mix_tensor_from_doubles(values, dtype, (mix_shape){.rank = 1, .dims = {count}});
}
#define VECTOR(dtype, ...)                                                                                   \
  vector_of(dtype, (int)(sizeof((double[]){__VA_ARGS__}) / sizeof(double)), (double[]){__VA_ARGS__})
#define VARIABLE(dtype, variable_name, ...)                                                                  \
  mix_variable_new(VECTOR(dtype, __VA_ARGS__), .name = variable_name)

/* Element i of a variable. */
static inline double value_at(mix_variable *variable, int i) {
  double values[64] = {0};
  int64_t count = mix_shape_size(mix_variable_shape(variable));
  assert_true(count <= 64);
  assert_int_equal(mix_tensor_read(mix_variable_true_value(variable), MIX_FLOAT64, values, count), MIX_OK);
  return values[i];
}

static inline void assert_near(double got, double expected, double tolerance) {
  if (fabs(got - expected) <= tolerance) return;
  fail_msg("got %.9g, expected %.9g within %g", got, expected, tolerance);
}

#define ASSERT_VALUES(variable, tolerance, ...)                                                              \
  do {                                                                                                       \
    const double expected_[] = {__VA_ARGS__};                                                                \
    for (int i_ = 0; i_ < (int)(sizeof expected_ / sizeof *expected_); i_++)                                 \
      assert_near(value_at(variable, i_), expected_[i_], tolerance);                                         \
  } while (0)

#define ASSERT_ERROR(status)                                                                                 \
  do {                                                                                                       \
    assert_int_equal(mix_error(), status);                                                                   \
    mix_error_clear();                                                                                       \
  } while (0)

static inline void assert_no_error(void) {
  if (mix_error() != MIX_OK) fail_msg("%s: %s", mix_status_name(mix_error()), mix_error_message());
}

/* The scale of a loss-scale optimizer, and its counter. */
static inline double scale_of(mix_optimizer *optimizer) {
  return mix_tensor_item(mix_optimizer_loss_scale(optimizer));
}
static inline double counter_of(mix_optimizer *optimizer) {
  return value_at(mix_optimizer_dynamic_counter(optimizer), 0);
}

/* One update as part of a captured function; the gradients are its arguments. */
typedef struct captured_update {
  mix_optimizer *optimizer;
  mix_list *variables;
  mix_function *function;
  int traces;
} captured_update;

static inline mix_list *captured_body(void *context, mix_list *gradients) {
  captured_update *update = context;
  update->traces++;
  mix_optimizer_apply_gradients(update->optimizer, gradients, update->variables);
  return mix_list_new(0, NULL);
}

static inline captured_update captured_update_of(mix_optimizer *optimizer, mix_list *variables) {
  return (captured_update){.optimizer = optimizer, .variables = variables};
}

static inline void run_captured(captured_update *update, mix_list *gradients) {
  if (!update->function) update->function = mix_function_new(captured_body, update, .name = "update");
  mix_function_call(update->function, gradients);
}

/* The lines of a plan's text that name a part, but not those about memory. */
static inline int lines_with(const char *text, const char *part) {
  int count = 0;
  for (const char *line = text; line;) {
    const char *end = strchr(line, '\n'), *found = strstr(line, part);
    count += found && (!end || found < end) && strncmp(line, "memory", 6) && strncmp(line, "  alive", 7);
    line = end ? end + 1 : NULL;
  }
  return count;
}

/* Each test runs in a scope of its own. It must leave no error pending; the default semantics are
 * restored. */
static inline int setup(void **state) { return *state = mix_scope_begin(), 0; }
static inline int teardown(void **state) {
  mix_scope_end(*state);
  mix_status left = mix_error();
  mix_error_clear();
  mix_set_semantics("tf_keras");
  return left == MIX_OK ? 0 : -1;
}
#define TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

#endif
