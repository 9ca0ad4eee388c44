/* Operations of a tensor and a number, which is a scalar of the tensor's dtype. */
#pragma once

#include <mixtape/ops.h>

static inline mix_tensor *mix_plus(mix_tensor *x, double number) {
  return mix_add(x, mix_scalar_like(x, number));
}
static inline mix_tensor *mix_times(mix_tensor *x, double number) {
  return mix_multiply(x, mix_scalar_like(x, number));
}
static inline mix_tensor *mix_over(mix_tensor *x, double number) {
  return mix_divide(x, mix_scalar_like(x, number));
}
