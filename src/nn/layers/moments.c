/* Moments, normalisation by them, and gamma and beta. */
#include "nn/layers/moments.h"
#include "base/error.h"
#include "nn/formulas.h"
#include "ops/with_number.h"

mix_dtype mix_widened(mix_dtype dtype) { return dtype == MIX_FLOAT64 ? MIX_FLOAT64 : MIX_FLOAT32; }

/* Do they end with the last axis, while one of those before it stays? */
static bool reduces_rows_apart(mix_shape shape, mix_axes axes) {
  enum { ROW = 8 }; /* below, statistics of rows are too many */
  bool last = false, apart = false;
  for (int i = 0; i < axes.count; i++) {
    last |= axes.axis[i] == shape.rank - 1;
    apart |= axes.axis[i] < shape.rank - axes.count;
  }
  return last && apart && shape.dims[shape.rank - 1] >= ROW;
}

/* Moments of rows of the last axis, then of these over the other axes: a variance is the mean of the rows'
 * variances and the variance of their means. All rows have the same size. */
static void moments_by_rows(mix_tensor *x, mix_axes axes, mix_tensor **mean, mix_tensor **variance) {
  const int last = mix_tensor_shape(x).rank - 1;
  mix_axes others = {.count = 0};
  for (int i = 0; i < axes.count; i++)
    if (axes.axis[i] != last) others.axis[others.count++] = axes.axis[i];
  mix_tensor *of_rows = mix_reduce_mean(x, MIX_AXES(last), true);
  mix_tensor *within =
      mix_reduce_mean(mix_squared_difference(x, mix_stop_gradient(of_rows)), MIX_AXES(last), true);
  *mean = mix_reduce_mean(of_rows, others, true);
  *variance =
      mix_add(mix_reduce_mean(within, others, true),
              mix_reduce_mean(mix_squared_difference(of_rows, mix_stop_gradient(*mean)), others, true));
}

bool mix_moments(mix_tensor *x, mix_axes axes, bool clipped, mix_tensor **mean, mix_tensor **variance) {
  if (!x) return false;
  mix_dtype dtype = mix_tensor_dtype(x), wide = mix_widened(dtype);
  mix_tensor *values = mix_cast(x, wide);
  /* The derivative of a variance through the mean is 0, because sum(x - mean) = 0. */
  if (reduces_rows_apart(mix_tensor_shape(x), axes)) {
    moments_by_rows(values, axes, mean, variance);
  } else {
    *mean = mix_reduce_mean(values, axes, true);
    *variance = mix_reduce_mean(mix_squared_difference(values, mix_stop_gradient(*mean)), axes, true);
  }
  if (wide != dtype && clipped) {
    *mean = mix_clip(*mean, mix_scalar_like(*mean, -65504), mix_scalar_like(*mean, 65504));
    *variance = mix_clip(*variance, mix_scalar_like(*variance, -65504), mix_scalar_like(*variance, 65504));
  }
  *mean = mix_cast(*mean, dtype);
  *variance = mix_cast(*variance, dtype);
  return !mix_failed();
}

mix_tensor *mix_normalized(mix_tensor *x, mix_tensor *mean, mix_tensor *variance, double epsilon,
                           mix_tensor *gamma, mix_tensor *beta) {
  mix_tensor *inverse = mix_rsqrt(mix_plus(variance, epsilon));
  if (gamma) inverse = mix_multiply(inverse, gamma);
  mix_tensor *y = mix_multiply(mix_subtract(x, mean), inverse);
  return beta ? mix_add(y, beta) : y;
}

mix_tensor *mix_unit_length(mix_tensor *x, mix_axes axes, const mix_semantics *semantics) {
  if (semantics->unit_norm_by_rsqrt) return mix_scale_to_unit(x, axes, 1e-24);
  mix_tensor *sum = mix_reduce_sum(mix_square(x), axes, true);
  return mix_divide(x, mix_sqrt(mix_maximum(sum, mix_scalar_like(sum, 1e-12))));
}

mix_tensor *mix_l2_normalize(mix_tensor *x, mix_axes axes, const mix_semantics *semantics) {
  return mix_scale_to_unit(x, axes, semantics->unit_norm_by_rsqrt ? 1e-14 : 1e-12);
}

/* ---- gamma and beta ---- */

mix_status mix_affine_build(mix_layer *layer, const mix_affine *affine, mix_shape shape, const char *dtype,
                            bool no_autocast) {
  if (affine->scale)
    *affine->gamma = mix_layer_add_weight(
        layer, "gamma", .shape = shape, .dtype = dtype, .no_autocast = no_autocast,
        .initializer_object = affine->gamma_initializer, .regularizer_object = affine->gamma_regularizer,
        .constraint_object = affine->gamma_constraint);
  if (affine->center)
    *affine->beta = mix_layer_add_weight(
        layer, "beta", .shape = shape, .dtype = dtype, .no_autocast = no_autocast,
        .initializer_object = affine->beta_initializer, .regularizer_object = affine->beta_regularizer,
        .constraint_object = affine->beta_constraint);
  return mix_error();
}

mix_tensor *mix_affine_value(mix_variable *variable, mix_dtype dtype, mix_shape shape) {
  return variable ? mix_reshape(mix_cast(mix_variable_value(variable), dtype), shape) : NULL;
}
