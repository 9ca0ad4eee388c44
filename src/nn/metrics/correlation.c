/* Correlations of labels and predictions along an axis, averaged over the samples (keras3). */
#include "base/error.h"
#include "nn/metrics/metric.h"
#include "ops/with_number.h"
#include "tensor/shape.h"

static int axis_of(const mix_metric *metric, mix_tensor *x) {
  int rank = mix_tensor_shape(x).rank, given = metric->options.axis, axis = mix_axis_normal(given, rank);
  if (axis < 0)
    mix_fail_value("metric %s: axis %d is outside predictions of rank %d", metric->name, given, rank);
  return axis;
}

static mix_tensor *mean(mix_tensor *x, int axis, bool keep) {
  return mix_reduce_mean(x, MIX_AXES(axis), keep);
}
static mix_tensor *centred(mix_tensor *x, int axis) { return mix_subtract(x, mean(x, axis, true)); }
/* Keras subtracts the mean again, although callers pass centred values. */
static mix_tensor *variance(mix_tensor *x, int axis) {
  return mean(mix_square(centred(x, axis)), axis, true);
}

mix_tensor *mix_metric_pearson_correlation(const mix_metric *metric, mix_tensor *y_true, mix_tensor *y_pred) {
  int axis = axis_of(metric, y_pred);
  if (axis < 0) return NULL;
  mix_tensor *y = centred(y_true, axis), *p = centred(y_pred, axis);
  y = mix_divide(y, mix_sqrt(variance(y, axis)));
  p = mix_divide(p, mix_sqrt(variance(p, axis)));
  return mean(mix_multiply(y, p), axis, false);
}

/* Lin: A concordance correlation coefficient to evaluate reproducibility, 1989. As in Keras, the covariance
 * uses y - mean(p). */
mix_tensor *mix_metric_concordance_correlation(const mix_metric *metric, mix_tensor *y_true,
                                               mix_tensor *y_pred) {
  int axis = axis_of(metric, y_pred);
  if (axis < 0) return NULL;
  mix_tensor *y_mean = mean(y_true, axis, true), *p_mean = mean(y_pred, axis, true);
  mix_tensor *y_variance = variance(mix_subtract(y_true, y_mean), axis),
             *p_variance = variance(mix_subtract(y_pred, p_mean), axis);
  mix_tensor *covariance = mix_multiply(mix_subtract(y_true, p_mean), mix_subtract(y_pred, p_mean));
  mix_tensor *norm = mix_add(mix_add(y_variance, p_variance), mix_square(mix_subtract(y_mean, p_mean)));
  mix_tensor *twice = mix_multiply(mix_scalar_like(covariance, 2), covariance);
  return mean(mix_divide(twice, mix_plus(norm, MIX_EPSILON)), axis, false);
}
