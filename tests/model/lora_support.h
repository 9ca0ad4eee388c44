/* What tests of LoRA share: values, and a small model to train. */
#pragma once

#include "model/support.h"
#include "support/expect.h"
#include "support/folder.h"
#include <mixtape/lora.h>

static double *read_all(mix_tensor *tensor, int64_t count) {
  double *values = calloc((size_t)count + 1, sizeof *values);
  assert_int_equal(mix_tensor_read(tensor, MIX_FLOAT64, values, count), MIX_OK);
  return values;
}

static void assert_values(mix_tensor *got, mix_tensor *expected, double within) {
  const int64_t count = mix_shape_size(mix_tensor_shape(expected));
  assert_true(mix_shape_equal(mix_tensor_shape(got), mix_tensor_shape(expected)));
  double *a = read_all(got, count), *b = read_all(expected, count);
  for (int64_t i = 0; i < count; i++) assert_true(fabs(a[i] - b[i]) <= within);
  free(a);
  free(b);
}

static mix_tensor *random_values(mix_shape shape) {
  return mix_initializer_call(mix_initializer_new("random_uniform", .minval = -1, .maxval = 1, .seed = 7),
                              shape, MIX_FLOAT32);
}

static mix_model *two_layers(const char *second) {
  mix_set_semantics("keras3");
  mix_set_seed(3);
  mix_tensor *x = mix_input(.shape = MIX_SHAPE(12), .name = "in");
  mix_tensor *y = mix_call(mix_dense(16, .name = "fc1", .activation = "relu"), x);
  mix_model *model = mix_model_new(x, mix_call(mix_dense(4, .name = second), y));
  assert_no_error();
  return model;
}

static void compile(mix_model *model) {
  mix_model_compile(model, .loss = "mse", .optimizer = mix_adam(.learning_rate = 0.01));
  assert_no_error();
}

static void fit(mix_model *model) {
  mix_model_fit(model, random_values(MIX_SHAPE(8, 12)), random_values(MIX_SHAPE(8, 4)), .epochs = 3,
                .batch_size = 4, .no_shuffle = true, .verbose = MIX_SILENT);
  assert_no_error();
}
