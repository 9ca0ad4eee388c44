/* Shared by the tests of the operations. */
#ifndef TESTS_OPS_SUPPORT_H
#define TESTS_OPS_SUPPORT_H

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "graph/node.h"
#include "ops/table.h"
#include <math.h>
#include <mixtape/ops.h>
#include <mixtape/random.h>
#include <mixtape/tape.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(array) ((int)(sizeof(array) / sizeof *(array)))
#define NUMBERS(...) ((const double[]){__VA_ARGS__})

static const mix_dtype floating[] = {MIX_FLOAT16, MIX_BFLOAT16, MIX_FLOAT32, MIX_FLOAT64};
static const mix_dtype integers[] = {MIX_INT8, MIX_INT16, MIX_INT32, MIX_INT64, MIX_UINT8};
static const mix_dtype numbers[] = {MIX_FLOAT16, MIX_BFLOAT16, MIX_FLOAT32, MIX_FLOAT64, MIX_INT8,
                                    MIX_INT16,   MIX_INT32,    MIX_INT64,   MIX_UINT8};
static const mix_dtype every_dtype[] = {MIX_FLOAT16, MIX_BFLOAT16, MIX_FLOAT32, MIX_FLOAT64, MIX_INT8,
                                        MIX_INT16,   MIX_INT32,    MIX_INT64,   MIX_UINT8,   MIX_BOOL};

/* Unit roundoff: half the distance from 1 to the next number. */
static inline double unit_roundoff(mix_dtype dtype) {
  return dtype == MIX_FLOAT16    ? 0x1p-11
         : dtype == MIX_BFLOAT16 ? 0x1p-8
         : dtype == MIX_FLOAT32  ? 0x1p-24
                                 : 0x1p-53;
}
/* The smallest positive number. */
static inline double smallest(mix_dtype dtype) {
  return dtype == MIX_FLOAT16    ? 0x1p-24
         : dtype == MIX_BFLOAT16 ? 0x1p-133
         : dtype == MIX_FLOAT32  ? 0x1p-149
                                 : 0x1p-1074;
}

static inline int scope_setup(void **state) {
  mix_error_clear();
  *state = mix_scope_begin();
  return *state == NULL;
}
static inline int scope_teardown(void **state) {
  mix_scope_end(*state);
  int pending = mix_error() != MIX_OK;
  if (pending) print_error("left pending: %s\n", mix_error_message());
  mix_error_clear();
  return pending;
}
#define TEST(function) cmocka_unit_test_setup_teardown(function, scope_setup, scope_teardown)

static inline void no_error(void) {
  if (mix_error() != MIX_OK) fail_msg("%s: %s", mix_status_name(mix_error()), mix_error_message());
}

static inline mix_tensor *tensor(mix_dtype dtype, mix_shape shape, const double *values) {
  return mix_tensor_from_doubles(values, dtype, shape);
}
/* A tensor of ones that is never computed. */
static inline mix_tensor *ones(mix_dtype dtype, mix_shape shape) { return mix_fill(shape, 1, dtype); }
static inline mix_tensor *symbolic(mix_dtype dtype, mix_shape shape) {
  mix_node *node = mix_node_placeholder(dtype, shape, true);
  mix_tensor *result = mix_tensor_of(node, 0);
  mix_release(node);
  return result;
}

static inline void has_type(mix_tensor *result, mix_dtype dtype, mix_shape shape) {
  no_error();
  assert_non_null(result);
  char got[160], wanted[160];
  mix_shape_text(mix_tensor_shape(result), got, sizeof got);
  mix_shape_text(shape, wanted, sizeof wanted);
  assert_string_equal(got, wanted);
  assert_string_equal(mix_dtype_name(mix_tensor_dtype(result)), mix_dtype_name(dtype));
}

/* Expects NULL, and an error of that kind whose message contains each part. */
static inline void refused_with(mix_tensor *result, mix_status status, int count, const char *const *parts) {
  char message[2048];
  assert_null(result);
  mix_status got = mix_error_take(message, sizeof message);
  if (got != status) fail_msg("%s instead of %s: %s", mix_status_name(got), mix_status_name(status), message);
  for (int i = 0; i < count; i++)
    if (!strstr(message, parts[i])) fail_msg("\"%s\" is not in the message: %s", parts[i], message);
}
#define refused(result, status, ...)                                                                         \
  refused_with(result, status, COUNT(((const char *[]){__VA_ARGS__})), (const char *[]){__VA_ARGS__})

/* The elements as doubles, in the caller's memory. */
static inline void read_into(mix_tensor *t, int64_t count, double *out) {
  no_error();
  assert_non_null(t);
  assert_int_equal(mix_shape_size(mix_tensor_shape(t)), count);
  if (mix_tensor_dtype(t) == MIX_BOOL) {
    const uint8_t *data = mix_tensor_data(t);
    no_error();
    for (int64_t i = 0; i < count; i++) out[i] = data[i];
  } else {
    mix_tensor_read(t, MIX_FLOAT64, out, count);
  }
  no_error();
}

/* Equal bit for bit when widened; any NaN equals any NaN. */
static inline void has_values(mix_tensor *t, int64_t count, const double *wanted) {
  double got[512];
  assert_in_range(count, 0, COUNT(got));
  read_into(t, count, got);
  for (int64_t i = 0; i < count; i++)
    if (!(got[i] == wanted[i] || (isnan(got[i]) && isnan(wanted[i]))))
      fail_msg("%s, %s: element %d is %.17g; expected %.17g", t->node->op->name,
               mix_dtype_name(mix_tensor_dtype(t)), (int)i, got[i], wanted[i]);
}

#endif
