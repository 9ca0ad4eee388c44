/* Accuracies: 1 for a hit, 0 for a miss (docs/spec/keras.md, section 11). */
#include "base/error.h"
#include "nn/metrics/metric.h"
#include "ops/table.h"
#include "tensor/shape.h"
#include <string.h>

static mix_tensor *hits(const mix_metric *metric, mix_tensor *matches) {
  return mix_cast(matches, metric->dtype);
}

mix_tensor *mix_metric_accuracy(const mix_metric *metric, mix_tensor *y_true, mix_tensor *y_pred) {
  return hits(metric, mix_equal(y_true, y_pred));
}

mix_tensor *mix_metric_binary_accuracy(const mix_metric *metric, mix_tensor *y_true, mix_tensor *y_pred) {
  mix_tensor *threshold = mix_scalar_like(y_pred, metric->options.threshold);
  mix_tensor *positive = mix_cast(mix_greater(y_pred, threshold), mix_tensor_dtype(y_true));
  mix_tensor *same = hits(metric, mix_equal(positive, y_true));
  /* tf_keras: the class averages over elements, the function of that name over samples. keras3 takes the
   * mean of each sample later, for every metric. */
  bool elements = metric->semantics->metric_values_by_sample ||
                  (metric->options.metric && !strcmp(metric->options.metric, metric->kind->class.name));
  return same && mix_tensor_shape(same).rank && !elements ? mix_reduce_mean(same, MIX_AXES(-1), false) : same;
}

mix_tensor *mix_metric_categorical_accuracy(const mix_metric *metric, mix_tensor *y_true,
                                            mix_tensor *y_pred) {
  return hits(metric, mix_equal(mix_argmax(y_true, -1), mix_argmax(y_pred, -1)));
}

/* Squeezes labels of shape (batch, 1). */
static mix_tensor *class_indices(mix_tensor *y_true, mix_tensor *y_pred) {
  mix_shape labels = mix_tensor_shape(y_true);
  bool squeeze =
      labels.rank && labels.rank == mix_tensor_shape(y_pred).rank && labels.dims[labels.rank - 1] == 1;
  return squeeze ? mix_squeeze(y_true, MIX_AXES(-1)) : y_true;
}

/* As in Keras, the labels have the predictions' dtype. Large class numbers may be inexact in it (float16:
 * above 2048). */
mix_tensor *mix_metric_sparse_categorical_accuracy(const mix_metric *metric, mix_tensor *y_true,
                                                   mix_tensor *y_pred) {
  mix_tensor *best = mix_cast(mix_argmax(y_pred, -1), mix_tensor_dtype(y_true));
  return hits(metric, mix_equal(class_indices(y_true, y_pred), best));
}

/* As TensorFlow's in_top_k: true if fewer than k predictions exceed that of the label. Ties are in. A sample
 * with a prediction that is not finite, or a label outside the classes, is out. */
static mix_tensor *in_top_k(const mix_metric *metric, mix_tensor *indices, mix_tensor *y_pred) {
  mix_shape shape = mix_tensor_shape(y_pred);
  int64_t k = metric->options.k, classes = shape.dims[shape.rank - 1];
  mix_tensor *at_label = mix_one_hot(indices, classes, MIX_BOOL);
  mix_tensor *label =
      mix_reduce_sum(mix_select(at_label, y_pred, mix_scalar_like(y_pred, 0)), MIX_AXES(-1), true);
  mix_tensor *larger = mix_cast(mix_greater(y_pred, label), MIX_INT64);
  mix_tensor *rank = mix_reduce_sum(larger, MIX_AXES(-1), false);
  mix_tensor *in = mix_less(rank, mix_scalar((double)k, MIX_INT64));
  mix_tensor *exists = mix_reduce_any(at_label, MIX_AXES(-1), false),
             *finite = mix_reduce_all(mix_is_finite(y_pred), MIX_AXES(-1), false);
  return hits(metric, mix_logical_and(in, mix_logical_and(exists, finite)));
}

/* Class numbers would give an accuracy without meaning. */
static bool is_one_hot(const mix_metric *metric, mix_tensor *y_true, mix_tensor *y_pred) {
  const mix_shape labels = mix_tensor_shape(y_true), scores = mix_tensor_shape(y_pred);
  if (mix_failed() || mix_shape_equal(labels, scores)) return true;
  return mix_fail_value(
      "metric %s: the labels have shape %s; expected one-hot labels of the predictions' shape %s (for "
      "class numbers use sparse_top_k_categorical_accuracy)",
      metric->name, MIX_SHAPE_TEXT(labels), MIX_SHAPE_TEXT(scores));
}

mix_tensor *mix_metric_top_k(const mix_metric *metric, mix_tensor *y_true, mix_tensor *y_pred) {
  if (!is_one_hot(metric, y_true, y_pred)) return NULL;
  return in_top_k(metric, mix_argmax(y_true, -1), y_pred);
}
mix_tensor *mix_metric_sparse_top_k(const mix_metric *metric, mix_tensor *y_true, mix_tensor *y_pred) {
  return in_top_k(metric, mix_index_values(class_indices(y_true, y_pred)), y_pred);
}
