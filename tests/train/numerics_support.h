/* Shared by the tests of the numerics report: reading it, and models with numeric failures. */
#ifndef MIX_TESTS_TRAIN_NUMERICS_SUPPORT_H
#define MIX_TESTS_TRAIN_NUMERICS_SUPPORT_H

#include "model/support.h"
#include <mixtape/numerics.h>

static inline mix_numerics_row row_of(const mix_numerics *report, const char *layer, const char *tensor,
                                      mix_dtype dtype) {
  mix_numerics_row row;
  for (int i = 0; i < mix_numerics_row_count(report); i++) {
    assert_int_equal(mix_numerics_get_row(report, i, &row, sizeof row), MIX_OK);
    if (!strcmp(row.layer, layer) && !strcmp(row.tensor, tensor) && row.dtype == dtype) return row;
  }
  fail_msg("no row %s/%s in %s", layer, tensor, mix_dtype_name(dtype));
  return row;
}
static inline mix_numerics_event event_of(const mix_numerics *report, int index) {
  mix_numerics_event event;
  assert_int_equal(mix_numerics_get_event(report, index, &event, sizeof event), MIX_OK);
  return event;
}
static inline mix_numerics_advice advice_of(const mix_numerics *report, int index) {
  mix_numerics_advice advice;
  assert_int_equal(mix_numerics_get_advice(report, index, &advice, sizeof advice), MIX_OK);
  return advice;
}
static inline void assert_statistics(mix_numerics_statistics s, int64_t elements, int64_t zeros,
                                     double smallest, double largest) {
  assert_int_equal(s.elements, elements);
  assert_int_equal(s.zeros, zeros);
  assert_int_equal(s.subnormals + s.infinities + s.nans, 0);
  assert_near(s.smallest, smallest, 0);
  assert_near(s.largest, largest, 0);
}
/* The advice of that kind; fails if there is none. */
static inline mix_numerics_advice advised(const mix_numerics *report, const char *kind) {
  for (int i = 0; i < mix_numerics_advice_count(report); i++)
    if (!strcmp(advice_of(report, i).kind, kind)) return advice_of(report, i);
  fail_msg("no advice '%s' in:\n%s", kind, mix_numerics_table((mix_numerics *)report, false));
  return (mix_numerics_advice){0};
}

/* 8 inputs of 100 by weights of 100: 80,000 in "big", beyond float16. "small" before it and "last" after it
 * are harmless. */
static inline mix_model *overflowing_model(const char *big_dtype) {
  mix_set_global_policy("mixed_float16");
  mix_tensor *inputs = mix_input(.shape = MIX_SHAPE(8));
  mix_tensor *x = mix_call(mix_dense(.units = 8, .name = "small", .kernel_initializer = "identity"), inputs);
  x = mix_call(mix_dense(.units = 4, .name = "big", .dtype = big_dtype,
                         .kernel_initializer_object = mix_initializer_new("constant", .value = 100)),
               x);
  x = mix_call(mix_rescaling(.scale = 0x1p-20, .dtype = "float32", .name = "down"), x);
  x = mix_call(mix_dense(.units = 1, .name = "last", .dtype = "float32", .kernel_initializer = "ones"), x);
  mix_model *model = mix_model_new(inputs, x);
  mix_model_compile(model, .loss = "mse", .optimizer = mix_sgd(.learning_rate = 1e-6));
  assert_no_error();
  return model;
}
static inline mix_tensor *hundreds(void) { return mix_fill(MIX_SHAPE(16, 8), 100, F32); }
static inline mix_tensor *ones(void) { return mix_fill(MIX_SHAPE(16, 1), 1, F32); }

/* The guide's small model under a scale that is too large for its gradients only. */
static inline mix_numerics *scaled_run(mix_optimizer *optimizer, int64_t steps) {
  mix_set_seed(1);
  mix_set_global_policy("mixed_float16");
  mix_model *model = guide_model(20, 16);
  mix_model_compile(model, .loss = "sparse_categorical_crossentropy", .optimizer = optimizer);
  examples e = examples_of(64, 20, 10);
  mix_numerics *report = mix_numerics_run(model, e.x, e.y, .steps = steps, .batch_size = 32, .seed = 1);
  assert_no_error();
  return report;
}

#endif
