/* Shared by the model tests: tensors from numbers and back, and models with results that can be worked out by
 * hand. */
#ifndef TESTS_MODEL_SUPPORT_H
#define TESTS_MODEL_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include "support/device.h"
#include <math.h>
#include <mixtape/mixtape.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ARRAY(dtype, shape, ...) mix_tensor_from_doubles((const double[]){__VA_ARGS__}, dtype, shape)
#define F32 MIX_FLOAT32

/* Element i of a tensor. */
static inline double at(mix_tensor *tensor, int64_t i) {
  int64_t count = mix_shape_size(mix_tensor_shape(tensor));
  assert_non_null(tensor);
  assert_true(i < count && count <= 1 << 16);
  double *values = malloc(sizeof *values * (size_t)count), value;
  assert_int_equal(mix_tensor_read(tensor, MIX_FLOAT64, values, count), MIX_OK);
  value = values[i];
  free(values);
  return value;
}
static inline double weight_at(mix_model *model, int weight, int64_t i) {
  return at(mix_variable_true_value(mix_list_get(mix_model_weights(model), weight)), i);
}

/* Expects a weight of that path. */
static inline mix_variable *variable_at(mix_model *model, const char *path) {
  mix_list *variables = mix_model_weights(model);
  for (int i = 0; i < mix_list_count(variables); i++)
    if (!strcmp(mix_variable_name(mix_list_get(variables, i)), path)) return mix_list_get(variables, i);
  fail_msg("there is no weight '%s'", path);
  return NULL;
}

static inline void assert_near(double got, double expected, double tolerance) {
  if (fabs(got - expected) <= tolerance) return;
  fail_msg("got %.17g, expected %.17g within %g", got, expected, tolerance);
}

static inline void assert_no_error(void) {
  if (mix_error() != MIX_OK) fail_msg("%s: %s", mix_status_name(mix_error()), mix_error_message());
}

/* Expects a pending error of that kind whose message contains `part`; clears it. */
static inline void assert_error(mix_status status, const char *part) {
  char message[2048];
  mix_status got = mix_error_take(message, sizeof message);
  if (got != status)
    fail_msg("got %s (%s), expected %s", mix_status_name(got), message, mix_status_name(status));
  if (part && !strstr(message, part)) fail_msg("'%s' is missing in: %s", part, message);
}

/* The bytes of every listed variable, concatenated; the caller frees them. */
static inline unsigned char *bits_of(mix_list *variables, size_t *size) {
  unsigned char *bits = NULL;
  *size = 0;
  for (int i = 0; i < mix_list_count(variables); i++) {
    mix_tensor *value = mix_variable_true_value(mix_list_get(variables, i));
    size_t bytes = (size_t)mix_shape_size(mix_tensor_shape(value)) * mix_dtype_size(mix_tensor_dtype(value));
    const void *data = mix_tensor_data(value);
    assert_non_null(data);
    bits = realloc(bits, *size + bytes + 1);
    assert_non_null(bits);
    memcpy(bits + *size, data, bytes);
    *size += bytes;
  }
  return bits;
}

/* x (rows, 1) times one weight w: the prediction is w * x. SGD with steps of `rate` is exact for small dyadic
 * numbers. Rate 0: the weight does not change. */
static inline mix_model *product_model(double w, double rate) {
  mix_tensor *inputs = mix_input(.shape = MIX_SHAPE(1));
  mix_layer *dense =
      mix_dense(.units = 1, .no_bias = true,
                .kernel_initializer_object = mix_initializer_new("constant", .value = w), .name = "product");
  mix_model *model = mix_model_new(inputs, mix_call(dense, inputs));
  assert_int_equal(mix_model_compile(model, .loss = "mse",
                                     .optimizer = mix_sgd(.learning_rate = rate == 0 ? MIX_ZERO : rate)),
                   MIX_OK);
  return model;
}

/* 0, 1, ..., n - 1 as (n, 1) float32. */
static inline mix_tensor *counting(int64_t n) {
  return mix_reshape(mix_range(0, (double)n, 1, F32), MIX_SHAPE(n, 1));
}

/* Labels and examples (rows, width) that a small network can learn: the label is the index of the largest of
 * the first `classes` numbers. */
typedef struct examples {
  mix_tensor *x, *y;
} examples;
static inline examples examples_of(int64_t rows, int64_t width, int classes) {
  double *x = malloc(sizeof *x * (size_t)(rows * width));
  int64_t *y = malloc(sizeof *y * (size_t)rows);
  uint32_t noise = 7;
  for (int64_t i = 0; i < rows; i++) {
    y[i] = i % classes;
    for (int64_t c = 0; c < width; c++) {
      noise = noise * 1664525u + 1013904223u;
      x[i * width + c] = (double)(noise >> 24) / 512 + (c == y[i] ? 0.5 : 0);
    }
  }
  examples e = {mix_tensor_from_doubles(x, F32, MIX_SHAPE(rows, width)),
                mix_tensor_from(y, MIX_INT64, MIX_SHAPE(rows))};
  free(x);
  free(y);
  return e;
}

/* The guide's model under the global policy. */
static inline mix_model *guide_model(int64_t width, int64_t units) {
  mix_tensor *inputs = mix_input(.shape = MIX_SHAPE(width), .name = "digits");
  mix_tensor *x = mix_call(mix_dense(.units = units, .activation = "relu", .name = "dense_1"), inputs);
  x = mix_call(mix_dense(.units = units, .activation = "relu", .name = "dense_2"), x);
  x = mix_call(mix_dense(.units = 10, .name = "dense_logits"), x);
  return mix_model_new(inputs,
                       mix_call(mix_activation("softmax", .dtype = "float32", .name = "predictions"), x));
}
static inline mix_model *compiled_guide_model(int64_t width, int64_t units) {
  mix_model *model = guide_model(width, units);
  mix_model_compile(model, .loss = "sparse_categorical_crossentropy",
                    .optimizer = mix_rmsprop(.learning_rate = 0), .metrics = {"accuracy"});
  assert_no_error();
  return model;
}

/* Records the losses of the steps of a fit (on_step). */
typedef struct step_losses_seen {
  double loss[512];
  bool applied[512];
  double scale[512];
  int64_t good_steps[512];
  int count;
} step_losses_seen;
static inline void see_step(void *context, const mix_step_record *record) {
  step_losses_seen *seen = context;
  if (seen->count == 512) return;
  seen->loss[seen->count] = record->loss;
  seen->applied[seen->count] = record->applied;
  seen->scale[seen->count] = record->has_loss_scale ? record->loss_scale : 0;
  seen->good_steps[seen->count] = record->has_good_steps ? record->good_steps : -1;
  seen->count++;
}

/* Each test runs in a scope of its own, with the process state as at its start. */
static inline int setup(void **state) {
  mix_set_seed(1);
  mix_clear_names();
  return *state = mix_scope_begin(), 0;
}
static inline int teardown(void **state) {
  mix_scope_end(*state);
  if (mix_error() != MIX_OK)
    print_message("left: %s: %s\n", mix_status_name(mix_error()), mix_error_message());
  mix_status left = mix_error_take(NULL, 0);
  mix_set_log_callback(NULL, NULL);
  mix_set_semantics("tf_keras");
  mix_set_floatx("float32");
  mix_set_global_policy("float32");
  return left == MIX_OK ? 0 : -1;
}
#define TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

#endif
