/* Metrics: what is averaged over an epoch. Their state is in float32 variables (float64 where floatx is). */
#ifndef MIXTAPE_METRIC_H
#define MIXTAPE_METRIC_H

#include <mixtape/loss.h>
#include <mixtape/variable.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Names: mean, sum, accuracy (acc; binary, categorical or sparse, chosen by the shapes of the first update), binary_accuracy,
 * categorical_accuracy, sparse_categorical_accuracy, top_k_categorical_accuracy, sparse_top_k_categorical_accuracy,
 * root_mean_squared_error, and every loss's name (cosine_similarity with positive sign); class names too ("Accuracy": y == p). */
typedef struct mix_metric_options {
  size_t size;
  const char *metric;             /* required: the name; unknown: ValueError */
  const char *name;               /* NULL: the name given (class names: Keras's default name) */
  const char *dtype;              /* of the state; NULL: the variable dtype that floatx gives */
  const mix_semantics *semantics; /* NULL: the process's */
  double threshold;               /* binary_accuracy: 0 means 0.5; MIX_ZERO */
  int64_t k;                      /* top-k: 0 means 5 */
  bool from_logits;               /* cross-entropies */
  double label_smoothing;
  mix_tensor *(*function)(void *context, mix_tensor *y_true, mix_tensor *y_pred); /* instead of a name: values for each sample */
  void *context;
} mix_metric_options;
MIX_API mix_metric *mix_metric_with(const mix_metric_options *options);
#ifndef __cplusplus
#define mix_metric_new(...) mix_metric_with(&(const mix_metric_options){.size = sizeof(mix_metric_options), __VA_ARGS__})
#define mix_metric_mean(...) mix_metric_with(&(const mix_metric_options){.size = sizeof(mix_metric_options), .metric = "mean", __VA_ARGS__})
#define mix_metric_sum(...) mix_metric_with(&(const mix_metric_options){.size = sizeof(mix_metric_options), .metric = "sum", __VA_ARGS__})
#endif

MIX_API const char *mix_metric_name(const mix_metric *metric);
/* State variables in order: total and, but for sum, count. A new list of borrowed variables. */
MIX_API mix_list *mix_metric_variables(mix_metric *metric);

typedef struct mix_metric_update_options {
  size_t size;
  mix_tensor *values;        /* mean and sum: the values; others: y_true */
  mix_tensor *y_pred;        /* NULL for mean and sum */
  mix_tensor *sample_weight; /* NULL: none */
} mix_metric_update_options;
/* Adds a batch. Graph: part of the step inside a capture, at once outside. */
MIX_API mix_status mix_metric_update_with(mix_metric *metric, const mix_metric_update_options *options);
#ifndef __cplusplus
/* mix_metric_update(mean, values), mix_metric_update(accuracy, y_true, y_pred, .sample_weight = w) */
#define mix_metric_update(metric, ...)                                                                                         \
  mix_metric_update_with(metric, &(const mix_metric_update_options){.size = sizeof(mix_metric_update_options), __VA_ARGS__})
#endif
/* The result as a scalar tensor; 0 where nothing was counted. Graph. */
MIX_API mix_tensor *mix_metric_result_tensor(mix_metric *metric);
/* The same read on the host. */
MIX_API double mix_metric_result(mix_metric *metric);
MIX_API mix_status mix_metric_reset(mix_metric *metric);

#ifdef __cplusplus
}
#endif
#endif
