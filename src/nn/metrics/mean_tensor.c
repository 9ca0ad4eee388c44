/* MeanTensor (tf_keras): the mean of each element over the updates. State: total and count, with the shape
 * of the values. */
#include "base/error.h"
#include "nn/metrics/metric.h"
#include "tensor/shape.h"

enum { TOTAL, COUNT };

static bool make_state(mix_metric *metric, mix_shape shape) {
  mix_metric_add_variable(metric, "total", .shape = shape);
  mix_metric_add_variable(metric, "count", .shape = shape);
  return !mix_failed();
}

static bool make(mix_metric *metric) {
  if (!mix_metric_is_floating(metric)) return false;
  metric->built = metric->options.shape.rank > 0;
  return !metric->built || make_state(metric, metric->options.shape);
}

static mix_status build(mix_metric *metric, mix_shape values, mix_shape y_pred) {
  make_state(metric, values);
  return mix_error();
}

static mix_status update(mix_metric *metric, const mix_metric_args *args) {
  if (!mix_metric_has_values_alone(metric, args->y_pred)) return mix_error();
  mix_tensor *values = mix_cast(args->y_true, metric->dtype), *count = mix_metric_number(metric, 1);
  if (!values) return mix_error();
  mix_shape shape = mix_tensor_shape(values), state = mix_variable_shape(metric->state[TOTAL].variable);
  if (!mix_shape_equal(shape, state))
    return mix_fail_status(MIX_VALUE_ERROR,
                           "metric %s: the values have shape %s; expected %s, as in the first update",
                           metric->name, MIX_SHAPE_TEXT(shape), MIX_SHAPE_TEXT(state));
  if (args->sample_weight) {
    count = mix_align_weights(values, mix_cast(args->sample_weight, metric->dtype));
    values = count ? mix_multiply(values, count) : NULL;
  }
  if (mix_failed()) return mix_error();
  mix_metric_add(metric, TOTAL, values);
  return mix_metric_add(metric, COUNT, mix_broadcast_to(count, shape));
}

static mix_tensor *result(mix_metric *metric) {
  return mix_divide_no_nan(mix_metric_value(metric, TOTAL), mix_metric_value(metric, COUNT));
}

const mix_metric_kind mix_metric_mean_tensor_kind = {
    .name = "mean_tensor",
    MIX_METRIC_CLASS(.name = "MeanTensor", .build = build, .update = update, .result = result),
    .make = make,
    .arguments = {MIX_ARGUMENT(shape)},
    .generations = MIX_METRIC_TF_KERAS,
};
