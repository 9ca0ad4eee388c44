/* Shared by the tests of nn/: a fresh state for each test, captured messages, helpers to make and read
 * tensors. */
#ifndef MIX_TESTS_NN_SUPPORT_H
#define MIX_TESTS_NN_SUPPORT_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "nn/layer/layer.h"
#include "nn/policy/policy.h"
#include "support/expect.h"
#include <mixtape/function.h>
#include <mixtape/layers.h>
#include <mixtape/loss.h>
#include <mixtape/loss_scale.h>
#include <mixtape/metric.h>
#include <mixtape/ops.h>
#include <mixtape/random.h>
#include <mixtape/tape.h>

/* The number of messages since the test began, and the last one. */
static int log_count;
static mix_log_level log_level;
static char log_text[4096];

static inline void take_message(void *context, mix_log_level level, const char *message) {
  (void)context;
  log_count++;
  log_level = level;
  snprintf(log_text, sizeof log_text, "%s", message);
}

static inline int fresh(void **state) {
  mix_error_clear();
  *state = mix_scope_begin();
  mix_graph_rewrite_set(false);
  mix_set_semantics("tf_keras");
  mix_set_floatx("float32");
  mix_set_global_policy(NULL);
  mix_clear_names();
  mix_set_seed(20240229);
  mix_device_check_reset();
  mix_device_check_provider(NULL, NULL);
  mix_set_log_callback(take_message, NULL);
  log_count = 0;
  log_text[0] = 0;
  return mix_error() != MIX_OK;
}

/* An error still pending at the end of a test was not expected. */
static inline int finish(void **state) {
  mix_status status = mix_error();
  if (status) fprintf(stderr, "left pending: %s: %s\n", mix_status_name(status), mix_error_message());
  mix_error_clear();
  mix_set_semantics("tf_keras");
  mix_set_global_policy(NULL);
  mix_set_log_callback(NULL, NULL);
  mix_scope_end(*state);
  return status != MIX_OK;
}
#define TEST(function) cmocka_unit_test_setup_teardown(function, fresh, finish)

#define expect_status(call, status, mentions)                                                                \
  do {                                                                                                       \
    assert_int_equal(call, status);                                                                          \
    expect_error(status, mentions);                                                                          \
  } while (0)

static inline mix_tensor *vector(mix_dtype dtype, int count, const double *values) {
  return mix_tensor_from_doubles(values, dtype, MIX_SHAPE(count));
}
#define VECTOR(dtype, ...)                                                                                   \
  vector(dtype, (int)(sizeof((double[]){__VA_ARGS__}) / sizeof(double)), (double[]){__VA_ARGS__})
static inline mix_tensor *matrix(mix_dtype dtype, int rows, int columns, const double *values) {
  return mix_tensor_from_doubles(values, dtype, MIX_SHAPE(rows, columns));
}
#define MATRIX(dtype, rows, columns, ...) matrix(dtype, rows, columns, (double[]){__VA_ARGS__})

/* |tensor - expected| <= absolute + relative |expected|, element by element. Two NaNs or equal infinities
 * agree. */
static inline void expect_values(mix_tensor *tensor, int count, const double *expected, double absolute,
                                 double relative) {
  double got[256];
  assert_non_null(tensor);
  assert_int_equal(mix_shape_size(mix_tensor_shape(tensor)), count);
  assert_true(count <= 256);
  assert_int_equal(mix_tensor_read(tensor, MIX_FLOAT64, got, count), MIX_OK);
  for (int i = 0; i < count; i++) {
    bool same = got[i] == expected[i] || (isnan(got[i]) && isnan(expected[i]));
    if (!same && !(fabs(got[i] - expected[i]) <= absolute + relative * fabs(expected[i])))
      fail_msg("element %d: got %.9g, expected %.9g", i, got[i], expected[i]);
  }
}
#define EXPECT(tensor, absolute, relative, ...)                                                              \
  expect_values(tensor, (int)(sizeof((double[]){__VA_ARGS__}) / sizeof(double)), (double[]){__VA_ARGS__},    \
                absolute, relative)
#define EXPECT_EXACT(tensor, ...) EXPECT(tensor, 0, 0, __VA_ARGS__)

static inline void expect_dtype(mix_tensor *tensor, mix_dtype dtype) {
  assert_non_null(tensor);
  assert_string_equal(mix_dtype_name(mix_tensor_dtype(tensor)), mix_dtype_name(dtype));
}
static inline void expect_shape(mix_tensor *tensor, mix_shape shape) {
  char a[160], b[160];
  assert_non_null(tensor);
  assert_string_equal(mix_shape_text(mix_tensor_shape(tensor), a, sizeof a),
                      mix_shape_text(shape, b, sizeof b));
}

#endif
