/* Shared by the tests of graph and compiler: a scope around each test, numbers in and out, checks of
 * errors. */
#ifndef TESTS_COMPILE_SUPPORT_H
#define TESTS_COMPILE_SUPPORT_H

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "base/error.h"
#include "graph/node.h"
#include "graph/variable.h"
#include "ops/table.h"
#include "support/device.h"
#include <math.h>
#include <mixtape/device.h>
#include <mixtape/function.h>
#include <mixtape/ops.h>
#include <mixtape/tape.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(array) ((int)(sizeof(array) / sizeof *(array)))
#define NUMBERS(...) ((const double[]){__VA_ARGS__})

static inline int begin_test(void **state) {
  mix_error_clear();
  *state = mix_scope_begin();
  return *state == NULL;
}
static inline int end_test(void **state) {
  mix_inject_allocation_failure(-1);
  unsetenv("MIXTAPE_DISABLE_PASSES");
  mix_set_device(default_device());
  mix_set_threads(0);
  int pending = mix_error() != MIX_OK;
  if (pending) print_error("left pending: %s\n", mix_error_message());
  mix_error_clear();
  mix_scope_end(*state);
  mix_shutdown();
  return pending;
}
#define TEST(function) cmocka_unit_test_setup_teardown(function, begin_test, end_test)

static inline void no_error(void) {
  if (mix_error() != MIX_OK) fail_msg("%s: %s", mix_status_name(mix_error()), mix_error_message());
}

/* Expects a pending error of that kind whose message contains each part; clears it. */
static inline void expect_error_with(mix_status status, int count, const char *const *parts) {
  char message[2048];
  mix_status got = mix_error_take(message, sizeof message);
  if (got != status) fail_msg("%s instead of %s: %s", mix_status_name(got), mix_status_name(status), message);
  for (int i = 0; i < count; i++)
    if (!strstr(message, parts[i])) fail_msg("\"%s\" is not in the message: %s", parts[i], message);
}
#define expect_error(status, ...)                                                                            \
  expect_error_with(status, COUNT(((const char *[]){__VA_ARGS__})), (const char *[]){__VA_ARGS__})

/* vec(MIX_FLOAT32, 1, 2, 3) is a tensor (3). */
#define vec(dtype, ...)                                                                                      \
  mix_tensor_from_doubles(NUMBERS(__VA_ARGS__), dtype,                                                       \
                          (mix_shape){.rank = 1, .dims = {COUNT(((const double[]){__VA_ARGS__}))}})
static inline mix_tensor *scalar(double value) { return mix_scalar(value, MIX_FLOAT32); }

static inline void has_values_at(mix_tensor *t, int count, const double *wanted, const char *file, int line) {
  double got[256];
  if (mix_error() != MIX_OK || !t) fail_msg("%s:%d: no tensor: %s", file, line, mix_error_message());
  if (mix_shape_size(mix_tensor_shape(t)) != count)
    fail_msg("%s:%d: %d elements expected", file, line, count);
  if (mix_tensor_dtype(t) == MIX_BOOL) {
    const uint8_t *data = mix_tensor_data(t);
    for (int i = 0; data && i < count; i++) got[i] = data[i];
  } else {
    mix_tensor_read(t, MIX_FLOAT64, got, count);
  }
  if (mix_error() != MIX_OK) fail_msg("%s:%d: %s", file, line, mix_error_message());
  for (int i = 0; i < count; i++)
    if (!(got[i] == wanted[i] || (isnan(got[i]) && isnan(wanted[i]))))
      fail_msg("%s:%d: element %d is %.17g; expected %.17g", file, line, i, got[i], wanted[i]);
}
#define has_values(t, ...)                                                                                   \
  has_values_at(t, COUNT(((const double[]){__VA_ARGS__})), NUMBERS(__VA_ARGS__), __FILE__, __LINE__)

static inline mix_variable *variable(const char *name, mix_tensor *value) {
  return mix_variable_new(value, .name = name);
}
#define variable_has(v, ...) has_values(mix_variable_true_value(v), __VA_ARGS__)

#endif
