/* Means and sums of values: given ones, or those of a loss, a function or an accuracy. State: total,
 * count. */
#include "base/error.h"
#include "graph/capture.h"
#include "nn/metrics/metric.h"
#include "tensor/shape.h"

enum { TOTAL, COUNT };

bool mix_mean_make(mix_metric *metric) {
  if (!mix_metric_is_floating(metric)) return false;
  mix_metric_add_variable(metric, "total");
  if (metric->kind != &mix_metric_sum_kind) mix_metric_add_variable(metric, "count");
  return !mix_failed();
}

static bool is_sum(const mix_metric *metric) { return metric->kind == &mix_metric_sum_kind; }

/* The shapes of the first batch choose the kind of "accuracy", in tf_keras also that of "crossentropy". */
static void choose(mix_metric *metric, mix_tensor *y_true, mix_tensor *y_pred) {
  static const mix_metric_kind *const kinds[] = {&mix_metric_binary_accuracy_kind,
                                                 &mix_metric_sparse_categorical_accuracy_kind,
                                                 &mix_metric_categorical_accuracy_kind};
  static const char *const losses[] = {"binary_crossentropy", "sparse_categorical_crossentropy",
                                       "categorical_crossentropy"};
  if (!metric->chooses || metric->kind || metric->loss) return;
  mix_label_kind labels = mix_label_kind_of(mix_tensor_shape(y_true), mix_tensor_shape(y_pred));
  if (metric->chooses == MIX_CHOOSES_ACCURACY)
    metric->kind = kinds[labels];
  else
    metric->loss =
        mix_retain(mix_loss_new(losses[labels], .reduction = "none", .semantics = metric->semantics));
}

/* The values of a loss. Their nodes are not marked as kept, so that they are the same nodes as those of the
 * loss itself. */
static mix_tensor *loss_values(mix_metric *metric, mix_tensor *y_true, mix_tensor *y_pred) {
  bool keep = mix_graph_keep_set(false);
  mix_tensor *values = mix_loss_values(metric->loss, y_true, y_pred);
  mix_graph_keep_set(keep);
  return metric->loss->kind->function == mix_loss_cosine_similarity ? mix_negative(values) : values;
}

bool mix_metric_has_values_alone(const mix_metric *metric, const mix_tensor *y_pred) {
  if (y_pred)
    mix_fail_type(
        "metric %s: averages values alone, and got labels and predictions; a metric of fit compares them, "
        "as mse does; weights are .sample_weight",
        metric->name);
  return !y_pred;
}

static mix_tensor *values_of(mix_metric *metric, mix_tensor *y_true, mix_tensor *y_pred) {
  if (metric->kind && !metric->kind->function)
    return mix_metric_has_values_alone(metric, y_pred) ? y_true : NULL;
  if (!y_pred) return mix_fail_type("metric %s: update needs labels and predictions", metric->name);
  choose(metric, y_true, y_pred);
  if (mix_failed()) return NULL;
  /* As in Keras, the cast drops the reference to the logits. */
  if (!metric->semantics->metric_inputs_uncast || !mix_dtype_is_floating(mix_tensor_dtype(y_pred)))
    y_pred = mix_cast(y_pred, metric->dtype);
  if (!y_pred) return NULL;
  if (metric->options.function) {
    if (metric->semantics->metric_functions_aligned) {
      y_true = mix_cast(y_true, metric->dtype);
      mix_metric_align(&y_true, &y_pred);
    }
    return mix_failed() ? NULL
                        : mix_returned(metric->options.function(metric->options.context, y_true, y_pred),
                                       metric->name);
  }
  if (metric->loss) return loss_values(metric, y_true, y_pred);
  y_true = mix_cast(y_true, mix_tensor_dtype(y_pred));
  if (metric->kind->align) mix_metric_align(&y_true, &y_pred);
  return mix_failed() ? NULL : metric->kind->function(metric, y_true, y_pred);
}

/* ---- weights ---- */

/* The mean (for a sum metric: the sum) over the axes from `first` on. */
static mix_tensor *reduce_from(const mix_metric *metric, mix_tensor *x, int first) {
  int rank = x ? mix_tensor_shape(x).rank : 0;
  if (rank <= first) return x;
  mix_axes axes = {.count = rank - first};
  for (int i = first; i < rank; i++) axes.axis[i - first] = i;
  return is_sum(metric) ? mix_reduce_sum(x, axes, false) : mix_reduce_mean(x, axes, false);
}

static mix_tensor *sum_of(mix_tensor *x) {
  return x && mix_tensor_shape(x).rank ? mix_reduce_sum(x, MIX_ALL_AXES, false) : x;
}

/* The product of the sample weights, the predictions' mask and the values' mask (ignore_class); NULL if
 * there is none. */
static mix_tensor *weights_of(const mix_metric *metric, mix_tensor *values, const mix_metric_args *args,
                              mix_tensor *mask) {
  mix_tensor *const factors[] = {args->sample_weight, args->mask, mask};
  mix_tensor *weights = NULL;
  for (int i = 0; i < 3; i++) {
    mix_tensor *factor = factors[i] ? mix_cast(factors[i], metric->dtype) : NULL;
    if (factor && weights)
      weights = mix_multiply(mix_align_weights(values, weights), mix_align_weights(values, factor));
    else if (factor)
      weights = factor;
  }
  return weights;
}

/* If values or weights have one dimension more than the other, and its size is 1, squeezes it; not the only
 * dimension of the values. */
static void squeeze_last(mix_tensor **values, mix_tensor **weights) {
  mix_shape v = mix_tensor_shape(*values), w = mix_tensor_shape(*weights);
  if (w.rank == v.rank + 1 && w.dims[w.rank - 1] == 1) *weights = mix_squeeze(*weights, MIX_AXES(-1));
  if (v.rank == w.rank + 1 && v.rank > 1 && v.dims[v.rank - 1] == 1)
    *values = mix_squeeze(*values, MIX_AXES(-1));
}

/* keras3 counts samples: values and weights are averaged over all axes except the first. */
static void update_by_sample(mix_metric *metric, mix_tensor *values, mix_tensor *weights) {
  if (weights) {
    squeeze_last(&values, &weights);
    if (mix_failed()) return;
    int rank = mix_tensor_shape(weights).rank;
    values = reduce_from(metric, values, rank);
    if (!values) return;
    weights = mix_broadcast_to(weights, mix_tensor_shape(values));
    values = mix_multiply(values, weights);
    weights = reduce_from(metric, weights, 1);
  }
  values = reduce_from(metric, values, 1);
  if (!values) return;
  int64_t count = mix_shape_size(mix_tensor_shape(values));
  mix_metric_add(metric, TOTAL, sum_of(values));
  if (!is_sum(metric))
    mix_metric_add(metric, COUNT, weights ? sum_of(weights) : mix_metric_number(metric, (double)count));
}

/* tf_keras counts elements. Weights of lower rank apply to the means of the values over their trailing
 * axes. */
static void update_by_element(mix_metric *metric, mix_tensor *values, mix_tensor *weights) {
  if (weights) {
    mix_shape v = mix_tensor_shape(values), w = mix_tensor_shape(weights);
    if (w.rank && w.rank == v.rank + 1 && w.dims[w.rank - 1] == 1)
      weights = mix_squeeze(weights, MIX_AXES(-1));
    if (w.rank && v.rank == w.rank + 1) weights = mix_expand_dims(weights, -1);
    if (mix_failed()) return;
    w = mix_tensor_shape(weights);
    if (w.rank && w.rank < v.rank) values = reduce_from(metric, values, w.rank);
    if (!values) return;
    /* Weights of a higher rank are not broadcast: the product broadcasts the values. */
    if (w.rank <= v.rank + 1) weights = mix_broadcast_to(weights, mix_tensor_shape(values));
    values = mix_multiply(values, weights);
  }
  if (mix_failed()) return;
  int64_t count = mix_shape_size(mix_tensor_shape(values));
  mix_metric_add(metric, TOTAL, sum_of(values));
  if (!is_sum(metric))
    mix_metric_add(metric, COUNT, weights ? sum_of(weights) : mix_metric_number(metric, (double)count));
}

static mix_status update(mix_metric *metric, const mix_metric_args *args) {
  mix_tensor *values = values_of(metric, args->y_true, args->y_pred);
  mix_tensor *mask = values ? values->mask : NULL; /* the cast drops it */
  values = mix_cast(values, metric->dtype);
  mix_tensor *weights = values ? weights_of(metric, values, args, mask) : NULL;
  if (mix_failed() || !values) return mix_error();
  if (metric->semantics->metric_values_by_sample)
    update_by_sample(metric, values, weights);
  else
    update_by_element(metric, values, weights);
  return mix_error();
}

static mix_tensor *result(mix_metric *metric) {
  if (is_sum(metric)) return mix_metric_value(metric, TOTAL);
  mix_tensor *mean = mix_divide_no_nan(mix_metric_value(metric, TOTAL), mix_metric_value(metric, COUNT));
  return metric->kind && metric->kind->root ? mix_sqrt(mean) : mean;
}

const mix_metric_class mix_mean_metric_class = {
    .size = sizeof(mix_metric_class), .name = "MeanMetricWrapper", .update = update, .result = result};

#define MEAN_IN(which, class_name)                                                                           \
  MIX_METRIC_CLASS(.name = class_name, .update = update, .result = result), .make = mix_mean_make,           \
                                                                            .generations = which
#define MEAN(class_name) MEAN_IN(MIX_METRIC_BOTH, class_name)

const mix_metric_kind mix_metric_mean_kind = {.name = "mean", MEAN("Mean")};
const mix_metric_kind mix_metric_sum_kind = {.name = "sum", MEAN("Sum")};

static mix_tensor *squared_error(const mix_metric *metric, mix_tensor *y_true, mix_tensor *y_pred) {
  return mix_squared_difference(y_pred, y_true);
}
const mix_metric_kind mix_metric_root_mean_squared_error_kind = {.name = "root_mean_squared_error",
                                                                 MEAN("RootMeanSquaredError"),
                                                                 .function = squared_error,
                                                                 .root = true,
                                                                 .align = true,
                                                                 .direction = -1};

/* ---- the accuracies: values in accuracy.c ---- */

const mix_metric_kind mix_metric_accuracy_kind = {.name = "exact_accuracy",
                                                  MEAN("Accuracy"),
                                                  .function = mix_metric_accuracy,
                                                  .align = true,
                                                  .direction = 1};
const mix_metric_kind mix_metric_binary_accuracy_kind = {.name = "binary_accuracy",
                                                         MEAN("BinaryAccuracy"),
                                                         .arguments = {MIX_ARGUMENT(threshold)},
                                                         .function = mix_metric_binary_accuracy,
                                                         .align = true,
                                                         .direction = 1};
const mix_metric_kind mix_metric_categorical_accuracy_kind = {.name = "categorical_accuracy",
                                                              MEAN("CategoricalAccuracy"),
                                                              .function = mix_metric_categorical_accuracy,
                                                              .direction = 1};
const mix_metric_kind mix_metric_sparse_categorical_accuracy_kind = {
    .name = "sparse_categorical_accuracy",
    MEAN("SparseCategoricalAccuracy"),
    .function = mix_metric_sparse_categorical_accuracy,
    .direction = 1};
const mix_metric_kind mix_metric_top_k_kind = {.name = "top_k_categorical_accuracy",
                                               MEAN("TopKCategoricalAccuracy"),
                                               .arguments = {MIX_ARGUMENT(k)},
                                               .function = mix_metric_top_k,
                                               .direction = 1};
const mix_metric_kind mix_metric_sparse_top_k_kind = {.name = "sparse_top_k_categorical_accuracy",
                                                      MEAN("SparseTopKCategoricalAccuracy"),
                                                      .arguments = {MIX_ARGUMENT(k)},
                                                      .function = mix_metric_sparse_top_k,
                                                      .direction = 1};

/* ---- others ---- */

const mix_metric_kind mix_metric_pearson_correlation_kind = {.name = "pearson_correlation",
                                                             MEAN_IN(MIX_METRIC_KERAS3, "PearsonCorrelation"),
                                                             .arguments = {MIX_ARGUMENT(axis)},
                                                             .function = mix_metric_pearson_correlation,
                                                             .align = true,
                                                             .direction = 1};
const mix_metric_kind mix_metric_concordance_correlation_kind = {
    .name = "concordance_correlation",
    MEAN_IN(MIX_METRIC_KERAS3, "ConcordanceCorrelation"),
    .arguments = {MIX_ARGUMENT(axis)},
    .function = mix_metric_concordance_correlation,
    .align = true,
    .direction = 1};

/* |y - p| / normalizer, 0 where the normalizer is 0 */
static mix_tensor *relative_error(const mix_metric *metric, mix_tensor *y_true, mix_tensor *y_pred) {
  mix_tensor *normalizer = mix_cast(metric->options.normalizer, metric->dtype);
  return mix_divide_no_nan(mix_abs(mix_subtract(y_true, y_pred)), normalizer);
}
static bool make_relative(mix_metric *metric) {
  if (metric->options.normalizer) return mix_mean_make(metric);
  return mix_fail_type("metric %s: the argument 'normalizer' is missing", metric->name);
}
const mix_metric_kind mix_metric_mean_relative_error_kind = {
    .name = "mean_relative_error",
    MIX_METRIC_CLASS(.name = "MeanRelativeError", .update = update, .result = result),
    .make = make_relative,
    .generations = MIX_METRIC_TF_KERAS,
    .numbered = true,
    .arguments = {MIX_ARGUMENT(normalizer)},
    .function = relative_error,
    .align = true,
    .direction = -1};
