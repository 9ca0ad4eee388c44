/* The numbers that recorded_batches.py gives Keras. */
#ifndef TESTS_TRAIN_RECORDED_VALUES_H
#define TESTS_TRAIN_RECORDED_VALUES_H

#include "model/support.h"

#include "recorded_batches.h"

static inline mix_tensor *values(mix_shape shape, double phase) {
  float all[64];
  const int64_t count = mix_shape_size(shape);
  assert_true(count <= 64);
  for (int64_t i = 0; i < count; i++) all[i] = (float)(0.5 * sin(1 + 0.7 * (double)i + phase));
  return mix_tensor_from(all, F32, shape);
}

static inline void assert_all_near(mix_tensor *got, const double *expected, int count, double tolerance) {
  assert_int_equal(mix_shape_size(mix_tensor_shape(got)), count);
  for (int i = 0; i < count; i++) assert_near(at(got, i), expected[i], tolerance);
}

#endif
