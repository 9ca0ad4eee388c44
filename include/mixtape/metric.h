/* Metrics: what is counted over an epoch. Their state is in variables, which updates change as part of the step. */
#ifndef MIXTAPE_METRIC_H
#define MIXTAPE_METRIC_H

#include <mixtape/layer.h>
#include <mixtape/loss.h>
#include <mixtape/variable.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A short list of numbers, copied by what takes it: MIX_NUMBERS(0.2, 0.5). */
typedef struct mix_numbers {
  int count;
  const double *values;
} mix_numbers;
#ifndef __cplusplus
#define MIX_NUMBERS(...)                                                                                                       \
  ((mix_numbers){.count = (int)(sizeof((double[]){__VA_ARGS__}) / sizeof(double)), .values = (const double[]){__VA_ARGS__}})
#endif

/* ---- a metric of one's own ---- */

/* What a metric's `update` gets. */
typedef struct mix_metric_args {
  size_t size;
  mix_tensor *y_true;        /* of metrics of values: the values */
  mix_tensor *y_pred;        /* NULL: none given */
  mix_tensor *sample_weight; /* NULL: none */
  mix_tensor *mask;          /* bool: the mask that y_pred carries; NULL: none */
} mix_metric_args;

/* A kind of metric. Functions that are NULL have the meaning in the comment. update, result and reset are graph: inside a captured
 * step a part of it, at once outside. */
typedef struct mix_metric_class {
  size_t size;          /* sizeof(mix_metric_class) */
  const char *name;     /* "BinaryTruePositives" */
  size_t instance_size; /* bytes of own state, zeroed: mix_metric_data */
  mix_status (*build)(mix_metric *metric, mix_shape y_true, mix_shape y_pred); /* makes variables whose shapes depend on these, once,
                                                                                * before the first update; NULL: none do */
  mix_status (*update)(mix_metric *metric, const mix_metric_args *args);       /* required: adds a batch to the variables */
  mix_tensor *(*result)(mix_metric *metric);                                   /* required */
  mix_status (*reset)(mix_metric *metric);                         /* NULL: each variable takes the value it was made with */
  mix_status (*get_config)(mix_metric *metric, mix_config *config); /* its own options; NULL: none */
  void (*finalize)(mix_metric *metric);                            /* gives back what the state holds; NULL: nothing */
} mix_metric_class;

/* ---- making metrics ---- */

/* Names, class names too ("AUC", "MeanIoU"), and what Keras has each take beyond name and dtype (any other argument is a TypeError):
 *
 * mean, sum                       of values
 * accuracy (acc)                  binary, categorical or sparse, chosen by the shapes of the first update; the class "Accuracy": y == p
 * crossentropy (ce)               the same for crossentropies; not in keras3
 * binary_accuracy                 threshold
 * categorical_accuracy, sparse_categorical_accuracy
 * top_k_categorical_accuracy, sparse_top_k_categorical_accuracy: k
 * precision, recall               thresholds, top_k, class_id
 * true_positives, true_negatives, false_positives, false_negatives: thresholds
 * sensitivity_at_specificity      specificity (required), num_thresholds, class_id; likewise specificity_at_sensitivity (sensitivity),
 *                                 precision_at_recall (recall) and recall_at_precision (precision)
 * auc                             num_thresholds, curve, summation_method, thresholds, multi_label, num_labels, label_weights, from_logits
 * f1_score, fbeta_score           average, threshold; fbeta_score also beta
 * r2_score                        class_aggregation, num_regressors
 * mean_io_u, io_u, one_hot_mean_io_u, one_hot_io_u: num_classes (required), target_class_ids (io_u, one_hot_io_u: required),
 *                                 ignore_class, axis, not_sparse_y_true, not_sparse_y_pred; one_hot_...: sparse_y_pred
 * binary_io_u                     target_class_ids, threshold
 * pearson_correlation, concordance_correlation: axis (keras3 alone)
 * mean_tensor                     shape (not keras3); mean_relative_error: normalizer (not keras3)
 * root_mean_squared_error, and every loss's name (mse; logcosh; cosine_similarity with positive sign): what the loss takes of
 *                                 from_logits, label_smoothing, axis, ignore_class */
typedef struct mix_metric_options {
  size_t size;
  const char *metric;             /* the name; unknown: ValueError */
  const char *name;               /* NULL: the name given (class names: Keras's default name, made unique where Keras does so) */
  const char *dtype;              /* of the state; NULL: floatx; io_u and its kin in keras3: int64 */
  const mix_semantics *semantics; /* NULL: the process's */
  double threshold;               /* binary_accuracy, binary_io_u: 0 means 0.5, MIX_ZERO; f1_score, fbeta_score: in (0, 1], 0 means none,
                                   * the largest prediction of each sample */
  int64_t k;                      /* top-k: 0 means 5 */
  bool from_logits;               /* cross-entropies; auc: predictions are logits of a sigmoid */
  double label_smoothing;
  mix_tensor *(*function)(void *context, mix_tensor *y_true, mix_tensor *y_pred); /* instead of a name: values for each sample */
  void *context;
  const mix_metric_class *metric_class; /* instead of a name: a class of one's own; copied */
  mix_numbers thresholds;         /* each in [0, 1]: a number of the result for each. None: 0.5 (with top_k, every prediction of the k
                                   * counts). auc: the points of the curve between 0 and 1, instead of num_thresholds */
  int64_t top_k;                  /* 0: none; only the k largest predictions of a sample count as positive */
  bool has_class_id;              /* only the column class_id counts */
  int64_t class_id;
  int64_t num_thresholds;         /* 0: 200 */
  const char *curve;              /* NULL: "ROC"; "PR", "PRGAIN" */
  const char *summation_method;   /* NULL: "interpolation"; "minoring", "majoring" */
  bool multi_label;               /* a curve for each column, and the mean of the areas */
  int64_t num_labels;             /* with multi_label: the columns; 0: those of the first update */
  mix_numbers label_weights;      /* of the columns */
  double specificity, sensitivity, recall, precision; /* in [0, 1]; MIX_ZERO */
  const char *average;            /* NULL: none, a score for each class; "micro", "macro", "weighted" */
  double beta;                    /* 0: 1 */
  const char *class_aggregation;  /* NULL: "uniform_average"; "variance_weighted_average"; "none", a score for each column */
  int64_t num_regressors;         /* above 0: adjusted R2 */
  int64_t num_classes;
  mix_numbers target_class_ids;   /* binary_io_u: none means 0 and 1 */
  bool has_ignore_class;          /* samples labelled ignore_class do not count */
  int64_t ignore_class;
  int axis;                       /* 0 means the last; MIX_AXIS_0 means 0 */
  bool not_sparse_y_true;         /* Keras: sparse_y_true=True; labels are one-hot along axis */
  bool not_sparse_y_pred;         /* Keras: sparse_y_pred=True; predictions are scores along axis */
  bool sparse_y_pred;             /* one_hot_...: predictions are class numbers */
  mix_shape shape;                /* mean_tensor: of the values; rank 0: that of the first update */
  mix_tensor *normalizer;         /* mean_relative_error: required, of the values' shape; retained */
} mix_metric_options;
/* One of a name, a function and a class; an unknown name is a ValueError, an argument that is not its a TypeError. */
MIX_API mix_metric *mix_metric_with(const mix_metric_options *options);
#ifndef __cplusplus
/* mix_metric_new("precision", .thresholds = MIX_NUMBERS(0.2, 0.5)), mix_metric_new(.metric_class = &class, .name = "mine") */
#define mix_metric_new(...) mix_metric_with(&(const mix_metric_options){.size = sizeof(mix_metric_options), __VA_ARGS__})
#define mix_metric_mean(...) mix_metric_with(&(const mix_metric_options){.size = sizeof(mix_metric_options), .metric = "mean", __VA_ARGS__})
#define mix_metric_sum(...) mix_metric_with(&(const mix_metric_options){.size = sizeof(mix_metric_options), .metric = "sum", __VA_ARGS__})
#endif

/* The key in logs; Keras's class name; the dtype of its state. The names live as long as the process. */
MIX_API const char *mix_metric_name(const mix_metric *metric);
MIX_API const char *mix_metric_class_name(const mix_metric *metric);
MIX_API mix_dtype mix_metric_dtype(const mix_metric *metric);
/* The state of instance_size bytes of a class of one's own. */
MIX_API void *mix_metric_data(const mix_metric *metric);

/* ---- state ---- */

typedef struct mix_metric_variable_options {
  size_t size;
  const char *name;   /* NULL: "variable" */
  mix_shape shape;
  const char *dtype;  /* NULL: the metric's */
  double value;       /* what every element starts at, and returns to in a reset */
} mix_metric_variable_options;
/* A new variable of the metric, which owns it: after the metric was made, or in `build`. Borrowed. */
MIX_API mix_variable *mix_metric_add_variable_with(mix_metric *metric, const mix_metric_variable_options *options);
#ifndef __cplusplus
/* mix_metric_add_variable(metric, "true_positives", .shape = MIX_SHAPE(classes)) */
#define mix_metric_add_variable(metric, ...)                                                                                   \
  mix_metric_add_variable_with(metric,                                                                                         \
                               &(const mix_metric_variable_options){.size = sizeof(mix_metric_variable_options), __VA_ARGS__})
#endif
/* All state, in the order it was made (mean: total, count). What depends on the shapes of the data is there after the first update or
 * mix_metric_build. A new list of borrowed variables. */
MIX_API mix_list *mix_metric_variables(mix_metric *metric);
/* Makes what depends on shapes without an update; nothing where it is there. Of most metrics only the last dimension of y_pred counts. */
MIX_API mix_status mix_metric_build(mix_metric *metric, mix_shape y_true, mix_shape y_pred);

typedef struct mix_metric_update_options {
  size_t size;
  mix_tensor *values;        /* mean, sum, mean_tensor: the values; others: y_true */
  mix_tensor *y_pred;        /* NULL for metrics of values */
  mix_tensor *sample_weight; /* NULL: none */
} mix_metric_update_options;
/* Adds a batch. Graph: part of the step inside a capture, at once outside. */
MIX_API mix_status mix_metric_update_with(mix_metric *metric, const mix_metric_update_options *options);
#ifndef __cplusplus
/* mix_metric_update(mean, values), mix_metric_update(accuracy, y_true, y_pred, .sample_weight = w) */
#define mix_metric_update(metric, ...)                                                                                         \
  mix_metric_update_with(metric, &(const mix_metric_update_options){.size = sizeof(mix_metric_update_options), __VA_ARGS__})
#endif
/* The result: a scalar tensor, or a vector where the metric has several numbers (thresholds, classes). Graph. */
MIX_API mix_tensor *mix_metric_result_tensor(mix_metric *metric);
/* The same read on the host; ValueError where it is not one number. */
MIX_API double mix_metric_result(mix_metric *metric);
/* Graph: every variable as it was when it was made. */
MIX_API mix_status mix_metric_reset(mix_metric *metric);

/* ---- configs ---- */
/* {"name": ..., "dtype": ..., own arguments}; the text lives until the next call of this on that metric. */
MIX_API const char *mix_metric_get_config(mix_metric *metric);
/* "accuracy", "mean_io_u:num_classes=10", "auc:curve=PR,num_thresholds=50,name=area": the name, then arguments as Keras calls them, and
 * its name and dtype; a list's numbers with colons between ("target_class_ids=0:1"). An argument it does not take: TypeError. */
MIX_API mix_metric *mix_metric_from_text(const char *text, const mix_semantics *semantics);
/* From a config, of a class of the library's that is named. */
MIX_API mix_metric *mix_metric_from_config(const char *class_name, const char *json, const mix_semantics *semantics);

#ifdef __cplusplus
}
#endif
#endif
