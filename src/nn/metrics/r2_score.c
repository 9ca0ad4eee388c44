/* R2, the coefficient of determination of each column: 1 - sum of squared errors / sum of squares about the
 * mean. */
#include "base/error.h"
#include "nn/metrics/metric.h"
#include "tensor/shape.h"
#include <string.h>

enum { SAMPLES, SQUARES, SUM, RESIDUAL, COUNT };

static bool aggregation_is(const mix_metric *metric, const char *name) {
  return !strcmp(metric->options.class_aggregation, name);
}

static bool make(mix_metric *metric) {
  const mix_metric_options *o = &metric->options;
  if (!aggregation_is(metric, "uniform_average") && !aggregation_is(metric, "variance_weighted_average") &&
      !aggregation_is(metric, "none"))
    mix_fail_value("metric %s: class_aggregation is '%.40s'; "
                   "expected uniform_average, variance_weighted_average or none",
                   metric->name, o->class_aggregation);
  else if (o->num_regressors < 0)
    mix_fail_value("metric %s: num_regressors is %lld; expected 0 or more", metric->name,
                   (long long)o->num_regressors);
  else if (mix_metric_is_floating(metric))
    mix_metric_add_variable(metric, "num_samples",
                            .dtype = metric->semantics->r2_count_integer ? "int32" : NULL);
  return !mix_failed();
}

static mix_status build(mix_metric *metric, mix_shape y_true, mix_shape y_pred) {
  static const char *const names[] = {"squared_sum", "sum", "residual", "count"};
  if (y_true.rank != 2 || y_pred.rank != 2)
    return mix_fail_status(
        MIX_VALUE_ERROR,
        "metric %s: expects labels and predictions (samples, columns); their ranks are %d and %d",
        metric->name, y_true.rank, y_pred.rank);
  for (int i = 0; i < 4; i++) mix_metric_add_variable(metric, names[i], .shape = MIX_SHAPE(y_pred.dims[1]));
  return mix_error();
}

static mix_status update(mix_metric *metric, const mix_metric_args *args) {
  if (!args->y_pred)
    return mix_fail_status(MIX_TYPE_ERROR, "metric %s: update needs labels and predictions", metric->name);
  mix_tensor *y = mix_cast(args->y_true, metric->dtype), *p = mix_cast(args->y_pred, metric->dtype);
  mix_tensor *weight =
      args->sample_weight ? mix_cast(args->sample_weight, metric->dtype) : mix_metric_number(metric, 1);
  if (mix_failed()) return mix_error();
  mix_shape shape = mix_tensor_shape(y);
  if (mix_tensor_shape(weight).rank == 1) weight = mix_expand_dims(weight, -1);
  mix_tensor *weighted = mix_multiply(y, weight), *error = mix_multiply(mix_squared_difference(y, p), weight);
  mix_tensor *amounts[] = {mix_multiply(y, weighted), weighted, error, mix_broadcast_to(weight, shape)};
  for (int i = 0; i < 4 && !mix_failed(); i++)
    mix_metric_add(metric, SQUARES + i, mix_reduce_sum(amounts[i], MIX_AXES(0), false));
  mix_dtype counted = mix_variable_true_dtype(metric->state[SAMPLES].variable);
  return mix_metric_add(metric, SAMPLES, mix_scalar((double)mix_shape_size(shape), counted));
}

/* 1 - (1 - R2) (n - 1) / (n - p - 1) if n - p - 1 is positive, else R2. */
static mix_tensor *adjusted(const mix_metric *metric, mix_tensor *score) {
  mix_tensor *one = mix_metric_number(metric, 1),
             *n = mix_cast(mix_metric_value(metric, SAMPLES), metric->dtype);
  mix_tensor *rest =
      mix_subtract(mix_subtract(n, mix_metric_number(metric, (double)metric->options.num_regressors)), one);
  mix_tensor *enough = mix_greater(rest, mix_metric_number(metric, 0));
  mix_tensor *lost =
      mix_divide(mix_multiply(mix_subtract(one, score), mix_subtract(n, one)), mix_select(enough, rest, one));
  return mix_select(enough, mix_subtract(one, lost), score);
}

static mix_tensor *result(mix_metric *metric) {
  mix_tensor *sum = mix_metric_value(metric, SUM), *mean = mix_divide(sum, mix_metric_value(metric, COUNT));
  mix_tensor *total = mix_subtract(mix_metric_value(metric, SQUARES), mix_multiply(sum, mean));
  mix_tensor *share = mix_divide(mix_metric_value(metric, RESIDUAL), total);
  mix_tensor *score = mix_subtract(mix_metric_number(metric, 1), share);
  score = mix_select(mix_is_inf(score), mix_metric_number(metric, 0), score);
  if (aggregation_is(metric, "uniform_average"))
    score = mix_reduce_mean(score, MIX_ALL_AXES, false);
  else if (aggregation_is(metric, "variance_weighted_average"))
    score = mix_divide(mix_reduce_sum(mix_multiply(total, score), MIX_ALL_AXES, false),
                       mix_reduce_sum(total, MIX_ALL_AXES, false));
  return metric->options.num_regressors && !mix_failed() ? adjusted(metric, score) : score;
}

const mix_metric_kind mix_metric_r2_score_kind = {
    .name = "r2_score",
    MIX_METRIC_CLASS(.name = "R2Score", .build = build, .update = update, .result = result),
    .make = make,
    .arguments = {MIX_ARGUMENT(class_aggregation), MIX_ARGUMENT(num_regressors)},
    .direction = 1,
    .generations = MIX_METRIC_BOTH,
};
