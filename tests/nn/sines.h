/* Numbers that recordings of Keras (recorded/) make too, in place of random ones. */
#pragma once

#include "nn/layer_support.h"
#include <math.h>

static mix_tensor *sines(mix_shape shape, double phase) {
  double values[512];
  const int64_t count = mix_shape_size(shape);
  assert_true(count <= 512);
  for (int i = 0; i < count; i++) values[i] = (float)(sin(0.7 * i + phase) * 0.6);
  return mix_tensor_from_doubles(values, MIX_FLOAT32, shape);
}
