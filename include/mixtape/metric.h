/* Metrics: values accumulated over an epoch. Their state is in variables, which updates change as part of
 * the step. */
#ifndef MIXTAPE_METRIC_H
#define MIXTAPE_METRIC_H

#include <mixtape/layer.h>
#include <mixtape/loss.h>

MIX_BEGIN_DECLARATIONS

/* A short list of numbers: MIX_NUMBERS(0.2, 0.5). Functions that take one copy it. */
typedef struct mix_numbers {
  int count;
  const double *values;
} mix_numbers;
#ifndef __cplusplus
#define MIX_NUMBERS(...)                                                                                     \
  ((mix_numbers){.count = (int)(sizeof((double[]){__VA_ARGS__}) / sizeof(double)),                           \
                 .values = (const double[]){__VA_ARGS__}})
#endif

/* ---- custom metrics ---- */

/* The arguments of a metric's `update`. */
typedef struct mix_metric_args {
  size_t size;
  mix_tensor *y_true;        /* for metrics of values: the values */
  mix_tensor *y_pred;        /* NULL: not given */
  mix_tensor *sample_weight; /* NULL: none */
  mix_tensor *mask;          /* bool: the mask that y_pred carries; NULL: none */
} mix_metric_args;

/* A kind of metric. The comments say what a NULL function means. update, result and reset build graph:
 * inside a capture they become part of the step, outside they run at once. */
typedef struct mix_metric_class {
  size_t size;          /* sizeof(mix_metric_class) */
  const char *name;     /* "BinaryTruePositives" */
  size_t instance_size; /* bytes of the instance's own state, zeroed: mix_metric_data */
  /* Creates variables whose shapes depend on these. Called once, before the first update; NULL: there are
   * none. */
  mix_status (*build)(mix_metric *metric, mix_shape y_true, mix_shape y_pred);
  /* Required: adds a batch to the variables. */
  mix_status (*update)(mix_metric *metric, const mix_metric_args *args);
  /* Required: the result from the variables. */
  mix_tensor *(*result)(mix_metric *metric);
  /* NULL: each variable returns to its initial value. */
  mix_status (*reset)(mix_metric *metric);
  /* Adds the metric's own options; NULL: none. */
  mix_status (*get_config)(mix_metric *metric, mix_config *config);
  /* Releases what the state holds; NULL: nothing. */
  void (*finalize)(mix_metric *metric);
} mix_metric_class;

/* ---- creation ---- */

/* Metric names, with the arguments that each takes beyond name and dtype; any other argument is a TypeError.
 * Class names ("AUC", "MeanIoU") are accepted too.
 *
 * mean, sum                       of values
 * accuracy (acc)                  binary, categorical or sparse, chosen by the shapes of the first update;
 *                                 the class "Accuracy": y == p
 * crossentropy (ce)               the same for cross-entropies; not in keras3
 * binary_accuracy                 threshold
 * categorical_accuracy, sparse_categorical_accuracy
 * top_k_categorical_accuracy, sparse_top_k_categorical_accuracy: k
 * precision, recall               thresholds, top_k, class_id
 * true_positives, true_negatives, false_positives, false_negatives: thresholds
 * sensitivity_at_specificity      specificity (required), num_thresholds, class_id; likewise
 *                                 specificity_at_sensitivity (sensitivity), precision_at_recall (recall) and
 *                                 recall_at_precision (precision)
 * auc                             num_thresholds, curve, summation_method, thresholds, multi_label,
 *                                 num_labels, label_weights, from_logits
 * f1_score, fbeta_score           average, threshold; fbeta_score also beta
 * r2_score                        class_aggregation, num_regressors
 * mean_io_u, io_u, one_hot_mean_io_u, one_hot_io_u: num_classes (required), target_class_ids (io_u,
 *                                 one_hot_io_u: required), ignore_class, axis, not_sparse_y_true,
 *                                 not_sparse_y_pred; one_hot_...: sparse_y_pred
 * binary_io_u                     target_class_ids, threshold
 * pearson_correlation, concordance_correlation: axis (only keras3)
 * mean_tensor                     shape (not keras3)
 * mean_relative_error             normalizer (not keras3)
 * root_mean_squared_error, and the name of every loss (mse; logcosh; cosine_similarity with positive sign):
 *                                 the loss's arguments among from_logits, label_smoothing, axis,
 *                                 ignore_class */
typedef struct mix_metric_options {
  size_t size;
  const char *metric; /* the name; unknown: ValueError */
  /* NULL: the name given (class names: Keras's default name, made unique where Keras does so). */
  const char *name;
  const char *dtype;              /* of the state; NULL: floatx; IoU metrics in keras3: int64 */
  const mix_semantics *semantics; /* NULL: the default of the process */
  /* binary_accuracy, binary_io_u: 0 means 0.5, MIX_ZERO is accepted. f1_score, fbeta_score: in (0, 1]; 0
   * means none: the largest prediction of each sample counts. */
  double threshold;
  int64_t k;        /* top-k: 0 means 5 */
  bool from_logits; /* cross-entropies; auc: predictions are logits of a sigmoid */
  double label_smoothing;
  /* Instead of a name: returns one value for each sample. */
  mix_tensor *(*function)(void *context, mix_tensor *y_true, mix_tensor *y_pred);
  void *context;
  const mix_metric_class *metric_class; /* instead of a name: a custom class; copied */
  /* Each in [0, 1]; the result has one number for each. None: 0.5 (with top_k, each of the k predictions
   * counts). auc: the points of the curve between 0 and 1, instead of num_thresholds. */
  mix_numbers thresholds;
  int64_t top_k;     /* 0: none; only the k largest predictions of a sample count as positive */
  bool has_class_id; /* only the column class_id counts */
  int64_t class_id;
  int64_t num_thresholds;       /* 0: 200 */
  const char *curve;            /* NULL: "ROC"; "PR", "PRGAIN" */
  const char *summation_method; /* NULL: "interpolation"; "minoring", "majoring" */
  bool multi_label;             /* a curve for each column, and the mean of the areas */
  int64_t num_labels;           /* with multi_label: the number of columns; 0: that of the first update */
  mix_numbers label_weights;    /* one weight for each column */
  double specificity, sensitivity, recall, precision; /* in [0, 1]; MIX_ZERO is accepted */
  const char *average; /* NULL: none, a score for each class; "micro", "macro", "weighted" */
  double beta;         /* 0: 1 */
  /* NULL: "uniform_average"; "variance_weighted_average"; "none", a score for each column. */
  const char *class_aggregation;
  int64_t num_regressors; /* above 0: adjusted R2 */
  int64_t num_classes;
  mix_numbers target_class_ids; /* binary_io_u: none means 0 and 1 */
  bool has_ignore_class;        /* ignore samples with the label ignore_class */
  int64_t ignore_class;
  int axis;               /* 0 means the last; MIX_AXIS_0 means 0 */
  bool not_sparse_y_true; /* Keras: sparse_y_true=True; labels are one-hot along axis */
  bool not_sparse_y_pred; /* Keras: sparse_y_pred=True; predictions are scores along axis */
  bool sparse_y_pred;     /* one_hot_...: predictions are class numbers */
  mix_shape shape;        /* mean_tensor: of the values; rank 0: that of the first update */
  mix_tensor *normalizer; /* mean_relative_error: required, of the values' shape; retained */
} mix_metric_options;
/* Creates a metric from a name, a function or a class. ValueError for an unknown name, TypeError for an
 * argument that the metric does not take. */
MIX_API mix_metric *mix_metric_with(const mix_metric_options *options);
#ifndef __cplusplus
/* mix_metric_new("precision", .thresholds = MIX_NUMBERS(0.2, 0.5)), mix_metric_new(.metric_class = &class,
 * .name = "mine") */
#define mix_metric_new(...)                                                                                  \
  mix_metric_with(                                                                                           \
      MIX_ARGUMENTS("mix_metric_new",                                                                        \
                    "metric; MIX_NUMBERS(thresholds, label_weights, target_class_ids), MIX_SHAPE(shape)",    \
                    #__VA_ARGS__, mix_metric_options, __VA_ARGS__))
#define mix_metric_mean(...)                                                                                 \
  mix_metric_with(MIX_ARGUMENTS(                                                                             \
      "mix_metric_mean",                                                                                     \
      "name, dtype; MIX_NUMBERS(thresholds, label_weights, target_class_ids), MIX_SHAPE(shape)",             \
      #__VA_ARGS__, mix_metric_options, .metric = "mean", __VA_ARGS__))
#define mix_metric_sum(...)                                                                                  \
  mix_metric_with(MIX_ARGUMENTS(                                                                             \
      "mix_metric_sum",                                                                                      \
      "name, dtype; MIX_NUMBERS(thresholds, label_weights, target_class_ids), MIX_SHAPE(shape)",             \
      #__VA_ARGS__, mix_metric_options, .metric = "sum", __VA_ARGS__))
#endif

/* The key in logs, Keras's class name, and the dtype of the state. The strings live as long as the
 * process. */
MIX_API const char *mix_metric_name(const mix_metric *metric);
MIX_API const char *mix_metric_class_name(const mix_metric *metric);
MIX_API mix_dtype mix_metric_dtype(const mix_metric *metric);
/* The state of instance_size bytes of a custom class. */
MIX_API void *mix_metric_data(const mix_metric *metric);

/* ---- state ---- */

typedef struct mix_metric_variable_options {
  size_t size;
  const char *name; /* NULL: "variable" */
  mix_shape shape;
  const char *dtype; /* NULL: the metric's */
  double value;      /* the initial value of every element, also after a reset */
} mix_metric_variable_options;
/* Creates a variable, which the metric owns, in `build` or after the metric was created. Borrowed. */
MIX_API mix_variable *mix_metric_add_variable_with(mix_metric *metric,
                                                   const mix_metric_variable_options *options);
#ifndef __cplusplus
/* mix_metric_add_variable(metric, "true_positives", .shape = MIX_SHAPE(classes)) */
#define mix_metric_add_variable(metric, ...)                                                                 \
  mix_metric_add_variable_with(metric,                                                                       \
                               MIX_ARGUMENTS("mix_metric_add_variable", "name; MIX_SHAPE(shape)",            \
                                             #__VA_ARGS__, mix_metric_variable_options, __VA_ARGS__))
#endif
/* A new list of all state variables (borrowed), in order of creation (mean: total, count). Variables that
 * depend on the shapes of the data exist after the first update or mix_metric_build. */
MIX_API mix_list *mix_metric_variables(mix_metric *metric);
/* Creates the variables that depend on shapes without an update; does nothing if they exist. For most
 * metrics only the last dimension of y_pred matters. */
MIX_API mix_status mix_metric_build(mix_metric *metric, mix_shape y_true, mix_shape y_pred);

typedef struct mix_metric_update_options {
  size_t size;
  mix_tensor *values;        /* mean, sum, mean_tensor: the values; others: y_true */
  mix_tensor *y_pred;        /* NULL for metrics of values */
  mix_tensor *sample_weight; /* NULL: none */
} mix_metric_update_options;
/* Adds a batch: as part of the step inside a capture, at once outside. */
MIX_API mix_status mix_metric_update_with(mix_metric *metric, const mix_metric_update_options *options);
#ifndef __cplusplus
/* mix_metric_update(mean, values), mix_metric_update(accuracy, y_true, y_pred, .sample_weight = w) */
#define mix_metric_update(metric, ...)                                                                       \
  mix_metric_update_with(                                                                                    \
      metric, &(const mix_metric_update_options){.size = sizeof(mix_metric_update_options), __VA_ARGS__})
#endif
/* The result as graph: a scalar, or a vector if the metric has several numbers (thresholds, classes). */
MIX_API mix_tensor *mix_metric_result_tensor(mix_metric *metric);
/* The result, read on the host. ValueError if it is not a single number. */
MIX_API double mix_metric_result(mix_metric *metric);
/* Resets every variable to its initial value: as part of the step inside a capture, at once outside. */
MIX_API mix_status mix_metric_reset(mix_metric *metric);

/* ---- configs ---- */
/* The config as JSON: {"name": ..., "dtype": ..., own arguments}. The string lives until the next call
 * with the same metric. */
MIX_API const char *mix_metric_get_config(mix_metric *metric);
/* A metric from text: "accuracy", "mean_io_u:num_classes=10", "auc:curve=PR,num_thresholds=50,name=area".
 * After the name come arguments with Keras's names, and its name and dtype; the numbers of a list are
 * separated by colons ("target_class_ids=0:1"). TypeError for an argument that the metric does not take. */
MIX_API mix_metric *mix_metric_from_text(const char *text, const mix_semantics *semantics);
/* A metric of a built-in class from its config. */
MIX_API mix_metric *mix_metric_from_config(const char *class_name, const char *json,
                                           const mix_semantics *semantics);

MIX_END_DECLARATIONS
#endif
