/* Regression, hinge and divergence losses: values for each sample, the mean over the last axis if not stated
 * otherwise (docs/spec/keras.md, 10.2). */
#include "base/error.h"
#include "nn/formulas.h"
#include "nn/losses/loss.h"
#include "nn/layers/moments.h"
#include "ops/with_number.h"
#include <math.h>

mix_tensor *mix_loss_mean_squared_error(const mix_loss *loss, mix_tensor *y_true, mix_tensor *y_pred) {
  return mix_mean_last(mix_squared_difference(y_pred, y_true));
}

mix_tensor *mix_loss_mean_absolute_error(const mix_loss *loss, mix_tensor *y_true, mix_tensor *y_pred) {
  return mix_mean_last(mix_abs(mix_subtract(y_pred, y_true)));
}

mix_tensor *mix_loss_mean_absolute_percentage_error(const mix_loss *loss, mix_tensor *y_true,
                                                    mix_tensor *y_pred) {
  mix_tensor *size = mix_maximum(mix_abs(y_true), mix_scalar_like(y_true, MIX_EPSILON));
  mix_tensor *mean = mix_mean_last(mix_abs(mix_divide(mix_subtract(y_true, y_pred), size)));
  return mix_multiply(mix_scalar_like(mean, 100), mean);
}

static mix_tensor *log_one_more(mix_tensor *x) {
  return mix_log(mix_add(mix_maximum(x, mix_scalar_like(x, MIX_EPSILON)), mix_scalar_like(x, 1)));
}
mix_tensor *mix_loss_mean_squared_logarithmic_error(const mix_loss *loss, mix_tensor *y_true,
                                                    mix_tensor *y_pred) {
  return mix_mean_last(mix_squared_difference(log_one_more(y_pred), log_one_more(y_true)));
}

/* Huber: Robust estimation of a location parameter (1964). */
mix_tensor *mix_loss_huber(const mix_loss *loss, mix_tensor *y_true, mix_tensor *y_pred) {
  double delta = loss->options.delta;
  if (loss->semantics->huber_in_floatx) {
    y_true = mix_cast(y_true, mix_floatx());
    y_pred = mix_cast(y_pred, mix_floatx());
  }
  mix_tensor *error = mix_subtract(y_pred, y_true), *size = mix_abs(error);
  mix_tensor *near = mix_multiply(mix_scalar_like(error, 0.5), mix_square(error));
  mix_tensor *far = mix_subtract(mix_multiply(mix_scalar_like(error, delta), size),
                                 mix_scalar_like(error, 0.5 * delta * delta));
  return mix_mean_last(mix_select(mix_less_equal(size, mix_scalar_like(size, delta)), near, far));
}

/* log(cosh(x)) = x + softplus(-2x) - log 2 */
mix_tensor *mix_loss_log_cosh(const mix_loss *loss, mix_tensor *y_true, mix_tensor *y_pred) {
  mix_tensor *x = mix_subtract(y_pred, y_true);
  mix_tensor *sum = mix_add(x, mix_softplus(mix_times(x, -2)));
  return mix_mean_last(mix_subtract(sum, mix_scalar_like(x, M_LN2)));
}

mix_tensor *mix_loss_cosine_similarity(const mix_loss *loss, mix_tensor *y_true, mix_tensor *y_pred) {
  mix_axes axis = MIX_AXES(loss->options.axis);
  mix_tensor *y = mix_l2_normalize(y_true, axis, loss->semantics),
             *p = mix_l2_normalize(y_pred, axis, loss->semantics);
  return mix_negative(mix_reduce_sum(mix_multiply(y, p), axis, false));
}

/* Maps labels to -1 and 1 if all are 0 or 1. */
static mix_tensor *signed_labels(mix_tensor *y_true) {
  mix_tensor *zero = mix_equal(y_true, mix_scalar_like(y_true, 0)),
             *one = mix_equal(y_true, mix_scalar_like(y_true, 1));
  mix_tensor *binary = mix_reduce_all(mix_logical_or(zero, one), MIX_ALL_AXES, false);
  mix_tensor *mapped = mix_subtract(mix_times(y_true, 2), mix_scalar_like(y_true, 1));
  return mix_select(binary, mapped, y_true);
}
/* max(x, 0). Its derivative at 0 is 1, as in TensorFlow; that of relu is 0. */
static mix_tensor *above_zero(mix_tensor *x) { return mix_maximum(x, mix_scalar_like(x, 0)); }
static mix_tensor *margin(mix_tensor *y_true, mix_tensor *y_pred) {
  return above_zero(mix_one_minus(mix_multiply(signed_labels(y_true), y_pred)));
}
mix_tensor *mix_loss_hinge(const mix_loss *loss, mix_tensor *y_true, mix_tensor *y_pred) {
  return mix_mean_last(margin(y_true, y_pred));
}
mix_tensor *mix_loss_squared_hinge(const mix_loss *loss, mix_tensor *y_true, mix_tensor *y_pred) {
  return mix_mean_last(mix_square(margin(y_true, y_pred)));
}
mix_tensor *mix_loss_categorical_hinge(const mix_loss *loss, mix_tensor *y_true, mix_tensor *y_pred) {
  mix_tensor *positive = mix_sum_last(mix_multiply(y_true, y_pred));
  mix_tensor *negative = mix_reduce_max(mix_multiply(mix_one_minus(y_true), y_pred), MIX_AXES(-1), false);
  return above_zero(mix_add(mix_subtract(negative, positive), mix_scalar_like(positive, 1)));
}

/* The sum over the last axis. */
mix_tensor *mix_loss_kl_divergence(const mix_loss *loss, mix_tensor *y_true, mix_tensor *y_pred) {
  mix_tensor *y = mix_clip_between(y_true, MIX_EPSILON, 1), *p = mix_clip_between(y_pred, MIX_EPSILON, 1);
  return mix_sum_last(mix_multiply(y, mix_log(mix_divide(y, p))));
}

mix_tensor *mix_loss_poisson(const mix_loss *loss, mix_tensor *y_true, mix_tensor *y_pred) {
  mix_tensor *log_p = mix_log(mix_plus(y_pred, MIX_EPSILON));
  return mix_mean_last(mix_subtract(y_pred, mix_multiply(y_true, log_p)));
}
