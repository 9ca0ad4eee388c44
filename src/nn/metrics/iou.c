/* Intersection over union of classes, from a confusion matrix (labels, predictions): true positives / (true
 * positives + false positives + false negatives), averaged over the classes that occur. */
#include "base/error.h"
#include "nn/metrics/metric.h"
#include "ops/table.h"
#include "tensor/shape.h"

enum { MATRIX };

static bool binary(const mix_metric *metric) { return metric->kind == &mix_metric_binary_io_u_kind; }
static bool one_hot(const mix_metric *metric) {
  return metric->kind == &mix_metric_one_hot_io_u_kind || metric->kind == &mix_metric_one_hot_mean_io_u_kind;
}
static bool chooses_classes(const mix_metric *metric) {
  const size_t *argument = metric->kind->arguments;
  while (*argument && *argument != MIX_ARGUMENT(target_class_ids)) argument++;
  return *argument;
}
static int64_t class_count(const mix_metric *metric) {
  return binary(metric) ? 2 : metric->options.num_classes;
}

static bool make(mix_metric *metric) {
  const mix_metric_options *o = &metric->options;
  int64_t classes = class_count(metric);
  if (!classes)
    mix_fail_type("metric %s: the argument 'num_classes' is missing", metric->name);
  else if (chooses_classes(metric) && !binary(metric) && !o->target_class_ids.count)
    mix_fail_type("metric %s: the argument 'target_class_ids' is missing", metric->name);
  for (int i = 0; i < o->target_class_ids.count && !mix_failed(); i++) {
    double id = o->target_class_ids.values[i];
    if (!(id >= 0 && id < (double)classes && id == (double)(int64_t)id))
      mix_fail_value("metric %s: target class id %g is out of range, which is [0, %lld)", metric->name, id,
                     (long long)classes);
  }
  if (mix_failed()) return false;
  if (metric->semantics->metric_iou_integer && !metric->dtype_given) metric->dtype = MIX_INT64;
  mix_metric_add_variable(metric, "total_confusion_matrix", .shape = MIX_SHAPE(classes, classes));
  return !mix_failed();
}

static mix_tensor *flat(mix_tensor *x) { return mix_reshape(x, (mix_shape){.rank = 1, .dims = {-1}}); }

/* Class numbers as a flat int64 tensor, with what is none as mix_index_values has it. scores: the argmax
 * along the axis of the options. */
static mix_tensor *numbers_of(const mix_metric *metric, mix_tensor *x, bool scores) {
  int rank = mix_tensor_shape(x).rank, given = metric->options.axis, axis = mix_axis_normal(given, rank);
  if (scores && axis < 0)
    return mix_fail_value("metric %s: axis %d is outside rank %d", metric->name, given, rank);
  return flat(mix_cast(mix_index_values(scores ? mix_argmax(x, axis) : x), MIX_INT64));
}

static mix_tensor *predictions_of(const mix_metric *metric, mix_tensor *y_pred) {
  if (!binary(metric))
    return numbers_of(metric, y_pred,
                      metric->options.not_sparse_y_pred ||
                          (one_hot(metric) && !metric->options.sparse_y_pred));
  /* keras3 compares in float32, tf_keras in the metric's dtype. */
  mix_tensor *score = mix_cast(y_pred, mix_dtype_is_floating(metric->dtype) ? metric->dtype : MIX_FLOAT32);
  return numbers_of(metric, mix_greater_equal(score, mix_scalar_like(score, metric->options.threshold)),
                    false);
}

static mix_tensor *within(mix_tensor *x, int64_t count) {
  return mix_logical_and(mix_greater_equal(x, mix_scalar(0, MIX_INT64)),
                         mix_less(x, mix_scalar((double)count, MIX_INT64)));
}

/* Checks that there is one label for each prediction. */
static bool same_count(const mix_metric *metric, mix_tensor *y, mix_tensor *p) {
  int64_t labels = mix_tensor_shape(y).dims[0], predictions = mix_tensor_shape(p).dims[0];
  if (labels == predictions || labels < 0 || predictions < 0) return true;
  const bool scores = binary(metric) || one_hot(metric) || metric->options.not_sparse_y_pred;
  return mix_fail_value("metric %s: %lld labels and %lld predictions; expected as many%s", metric->name,
                        (long long)labels, (long long)predictions,
                        scores ? "" : " (where predictions are scores of classes: sparse_y_pred=false)");
}

static mix_status update(mix_metric *metric, const mix_metric_args *args) {
  const mix_metric_options *o = &metric->options;
  if (!args->y_pred)
    return mix_fail_status(MIX_TYPE_ERROR, "metric %s: update needs labels and predictions", metric->name);
  int64_t classes = class_count(metric);
  mix_tensor *y = numbers_of(metric, args->y_true, o->not_sparse_y_true || one_hot(metric)),
             *p = predictions_of(metric, args->y_pred);
  mix_tensor *zero = mix_scalar(0, MIX_INT64), *nothing = mix_scalar(0, metric->dtype), *counts = NULL;
  if (mix_failed() || !same_count(metric, y, p)) return mix_error();
  mix_tensor *weight = mix_fill(mix_tensor_shape(y), 1, metric->dtype);
  if (args->sample_weight) {
    /* The cast truncates if the state is integer, as Keras warns. */
    weight = mix_cast(args->sample_weight, metric->dtype);
    if (weight && mix_tensor_shape(weight).rank > 1) weight = flat(weight);
    weight = weight ? mix_broadcast_to(weight, mix_tensor_shape(y)) : NULL;
  }
  mix_tensor *valid =
      o->has_ignore_class ? mix_not_equal(y, mix_scalar((double)o->ignore_class, MIX_INT64)) : NULL;
  if (metric->semantics->metric_iou_integer) {
    mix_tensor *inside = mix_logical_and(within(y, classes), within(p, classes)),
               *none = mix_less_equal(mix_minimum(y, p), mix_scalar((double)MIX_INDEX_NAN, MIX_INT64));
    inside = mix_logical_or(inside, none); /* reported below */
    valid = valid ? mix_logical_and(valid, inside) : inside;
  }
  if (valid) {
    y = mix_select(valid, y, zero);
    p = mix_select(valid, p, zero);
    weight = mix_select(valid, weight, nothing);
  }
  /* A negative index makes the kernel report a class number out of range. Without the check, it would be
   * counted under another label. */
  mix_tensor *width = mix_scalar((double)classes, MIX_INT64), *good = within(y, classes);
  mix_tensor *outside = mix_minimum(mix_select(good, p, y), mix_scalar(-1, MIX_INT64));
  mix_tensor *cell =
      mix_select(mix_logical_and(good, within(p, classes)), mix_add(mix_multiply(y, width), p), outside);
  counts = mix_segment_sum(weight, cell, classes * classes);
  return counts ? mix_metric_add(metric, MATRIX, mix_reshape(counts, MIX_SHAPE(classes, classes)))
                : mix_error();
}

/* The weight of each class in the mean, as floats. A class given twice counts twice. */
static mix_tensor *targets(const mix_metric *metric, mix_dtype dtype) {
  const mix_numbers *ids = &metric->options.target_class_ids;
  int64_t classes = class_count(metric);
  if (!ids->count) return mix_fill(MIX_SHAPE(classes), 1, dtype);
  mix_tensor *list = mix_cast(mix_tensor_from(ids->values, MIX_FLOAT64, MIX_SHAPE(ids->count)), MIX_INT64);
  return mix_reduce_sum(mix_one_hot(list, classes, dtype), MIX_AXES(0), false);
}

static mix_tensor *result(mix_metric *metric) {
  bool epsilon = metric->semantics->metric_ratio_epsilon;
  mix_dtype dtype = epsilon || !mix_dtype_is_floating(metric->dtype) ? MIX_FLOAT32 : metric->dtype;
  int64_t classes = class_count(metric);
  mix_tensor *matrix = mix_metric_value(metric, MATRIX);
  mix_tensor *row = mix_range(0, (double)classes, 1, MIX_INT64),
             *diagonal = mix_equal(mix_expand_dims(row, -1), row);
  mix_tensor *hits =
      mix_reduce_sum(mix_select(diagonal, matrix, mix_scalar_like(matrix, 0)), MIX_AXES(1), false);
  mix_tensor *either =
      mix_add(mix_reduce_sum(matrix, MIX_AXES(0), false), mix_reduce_sum(matrix, MIX_AXES(1), false));
  either = mix_cast(mix_subtract(either, hits), dtype);
  hits = mix_cast(hits, dtype);
  mix_tensor *chosen = targets(metric, dtype), *zero = mix_scalar(0, dtype),
             *min = mix_scalar(epsilon ? 1e-9 : 0, dtype);
  mix_tensor *occurs = epsilon ? mix_greater(either, min) : mix_not_equal(either, zero);
  mix_tensor *count = mix_reduce_sum(mix_select(occurs, chosen, zero), MIX_ALL_AXES, false),
             *small = mix_scalar(MIX_EPSILON, dtype);
  mix_tensor *share = epsilon ? mix_divide(hits, mix_add(either, small)) : mix_divide_no_nan(hits, either);
  mix_tensor *sum =
      mix_reduce_sum(mix_multiply(mix_select(occurs, share, zero), chosen), MIX_ALL_AXES, false);
  return epsilon ? mix_divide(sum, mix_add(count, small)) : mix_divide_no_nan(sum, count);
}

#define IOU(class_name)                                                                                      \
  MIX_METRIC_CLASS(.name = class_name, .update = update, .result = result),                                  \
      .make = make, .numbered = true, .direction = 1, .generations = MIX_METRIC_BOTH

const mix_metric_kind mix_metric_io_u_kind = {
    .name = "io_u",
    .alias = "iou",
    IOU("IoU"),
    .arguments = {MIX_ARGUMENT(num_classes), MIX_ARGUMENT(target_class_ids), MIX_ARGUMENT(ignore_class),
                  MIX_ARGUMENT(not_sparse_y_true), MIX_ARGUMENT(not_sparse_y_pred), MIX_ARGUMENT(axis)}};
const mix_metric_kind mix_metric_mean_io_u_kind = {
    .name = "mean_io_u",
    .alias = "mean_iou",
    IOU("MeanIoU"),
    .arguments = {MIX_ARGUMENT(num_classes), MIX_ARGUMENT(ignore_class), MIX_ARGUMENT(not_sparse_y_true),
                  MIX_ARGUMENT(not_sparse_y_pred), MIX_ARGUMENT(axis)}};
const mix_metric_kind mix_metric_binary_io_u_kind = {
    .name = "binary_io_u",
    .alias = "binary_iou",
    IOU("BinaryIoU"),
    .arguments = {MIX_ARGUMENT(target_class_ids), MIX_ARGUMENT(threshold)}};
const mix_metric_kind mix_metric_one_hot_io_u_kind = {
    .name = "one_hot_io_u",
    .alias = "one_hot_iou",
    IOU("OneHotIoU"),
    .arguments = {MIX_ARGUMENT(num_classes), MIX_ARGUMENT(target_class_ids), MIX_ARGUMENT(ignore_class),
                  MIX_ARGUMENT(sparse_y_pred), MIX_ARGUMENT(axis)}};
const mix_metric_kind mix_metric_one_hot_mean_io_u_kind = {
    .name = "one_hot_mean_io_u",
    .alias = "one_hot_mean_iou",
    IOU("OneHotMeanIoU"),
    .arguments = {MIX_ARGUMENT(num_classes), MIX_ARGUMENT(ignore_class), MIX_ARGUMENT(sparse_y_pred),
                  MIX_ARGUMENT(axis)}};
