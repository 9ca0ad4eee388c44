/* Formulas that layers, losses, metrics and operations share. */
#include "nn/formulas.h"
#include "nn/keep.h"

mix_tensor *mix_divide_no_nan(mix_tensor *a, mix_tensor *b) {
  mix_tensor *none = mix_equal(b, mix_scalar_like(b, 0));
  mix_tensor *quotient = mix_divide(a, mix_select(none, mix_scalar_like(b, 1), b));
  return mix_select(none, mix_scalar_like(quotient, 0), quotient);
}

mix_tensor *mix_log_sum_exp(mix_tensor *x, mix_axes axes, bool keep_dims) {
  mix_tensor *max = mix_stop_gradient(mix_reduce_max(x, axes, true));
  max = mix_select(mix_is_finite(max), max, mix_scalar_like(max, 0));
  mix_tensor *log = mix_log(mix_reduce_sum(mix_exp(mix_subtract(x, max)), axes, keep_dims));
  return mix_add(log, keep_dims ? max : mix_squeeze(max, axes));
}

mix_tensor *mix_scale_to_unit(mix_tensor *x, mix_axes axes, double epsilon) {
  mix_tensor *sum = mix_reduce_sum(mix_square(x), axes, true);
  return mix_multiply(x, mix_rsqrt(mix_maximum(sum, mix_scalar_like(sum, epsilon))));
}

mix_tensor *mix_reduce_variance(mix_tensor *x, mix_axes axes, bool keep_dims) {
  mix_tensor *distance = mix_subtract(x, mix_reduce_mean(x, axes, true));
  return mix_reduce_mean(mix_square(distance), axes, keep_dims);
}

mix_tensor *mix_mean_last(mix_tensor *x) {
  return x && !mix_tensor_shape(x).rank ? x : mix_kept(mix_reduce_mean(x, MIX_AXES(-1), false));
}
mix_tensor *mix_sum_last(mix_tensor *x) {
  return x && !mix_tensor_shape(x).rank ? x : mix_kept(mix_reduce_sum(x, MIX_AXES(-1), false));
}
mix_tensor *mix_clip_between(mix_tensor *x, double low, double high) {
  return mix_clip(x, mix_scalar_like(x, low), mix_scalar_like(x, high));
}
mix_tensor *mix_one_minus(mix_tensor *x) { return mix_subtract(mix_scalar_like(x, 1), x); }
