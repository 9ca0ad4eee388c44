/* The metric object, the library's kinds of metrics, and what their files share. */
#pragma once

#include "nn/fields.h"
#include "nn/formulas.h"
#include "nn/losses/loss.h"

/* Values for each element or sample, which a mean averages. Labels already have the predictions' dtype. */
typedef mix_tensor *mix_metric_function(const mix_metric *metric, mix_tensor *y_true, mix_tensor *y_pred);

/* A metric of the library. */
typedef struct mix_metric_kind {
  const char *name;         /* "binary_accuracy": Keras's default name */
  const char *alias;        /* another accepted name, or NULL */
  bool numbered;            /* Keras makes the default name unique: "precision", "precision_1" */
  mix_metric_class class;   /* its name, such as "BinaryAccuracy", and its functions */
  /* Checks the arguments and makes the variables. NULL: nothing to do. */
  bool (*make)(mix_metric *metric);
  size_t arguments[12];     /* MIX_ARGUMENT of its options, ended by 0 */
  int direction;            /* 1: larger is better; -1: smaller is better; 0: neither */
  int generations;          /* MIX_METRIC_... */
  mix_metric_function *function; /* the values that a mean averages */
  bool root;                /* the result is the square root of the mean */
  bool align;               /* shapes (B) and (B, 1) are aligned */
} mix_metric_kind;
#define MIX_METRIC_CLASS(...) .class = {.size = sizeof(mix_metric_class), __VA_ARGS__}
#define MIX_ARGUMENT(option) offsetof(mix_metric_options, option)
enum { MIX_METRIC_KERAS3 = 1, MIX_METRIC_TF_KERAS = 2, MIX_METRIC_BOTH = 3 };

struct mix_metric {
  mix_object object;
  mix_metric_class class;      /* a copy */
  /* NULL: a loss's values, a function, a user's class, or "accuracy" before the first update chooses it. */
  const mix_metric_kind *kind;
  const char *name;            /* interned */
  mix_dtype dtype;
  bool dtype_given;
  const mix_semantics *semantics;
  mix_metric_options options;  /* resolved */
  struct mix_metric_state {
    mix_variable *variable;    /* retained */
    double start;              /* the initial value of its elements */
  } * state;
  int state_count, state_capacity;
  bool built;
  /* What the first update chooses: `kind`, or `loss`. */
  enum { MIX_CHOOSES_NOTHING, MIX_CHOOSES_ACCURACY, MIX_CHOOSES_CROSSENTROPY } chooses;
  mix_loss *loss;              /* the loss whose values are averaged, retained; or NULL */
  void *data;                  /* class.instance_size bytes */
  char *config;
};
extern const mix_class mix_metric_object_class;
/* The kind with that name, alias or class name; NULL without an error if there is none. */
const mix_metric_kind *mix_metric_kind_named(const char *name);

/* True if the metric takes labels of that shape as class numbers. Metrics that choose their kind by shape
 * answer for the kind that these shapes would choose. */
bool mix_metric_takes_class_numbers(const mix_metric *metric, mix_shape y_true, mix_shape y_pred);

/* The rows of the options, of which those at the offsets `known` are in use. */
mix_fields mix_metric_fields(const char *call, const size_t *known, const mix_semantics *rules);
/* Resolves the options into metric->options. TypeError if an option is set that is not in `known`. */
bool mix_metric_take_arguments(mix_metric *metric, const mix_metric_options *given, const size_t *known);

/* The current value of variable `index` of the state. */
mix_tensor *mix_metric_value(const mix_metric *metric, int index);
/* variable += amount */
mix_status mix_metric_add(mix_metric *metric, int index, mix_tensor *amount);
/* A scalar of the metric's dtype. */
mix_tensor *mix_metric_number(const mix_metric *metric, double value);
/* For shapes (B) and (B, 1): squeezes the last dimension of the higher rank. */
void mix_metric_align(mix_tensor **a, mix_tensor **b);

/* Is the dtype floating, and no error pending? False with a ValueError. */
bool mix_metric_is_floating(const mix_metric *metric);

/* mean.c: total and count */
extern const mix_metric_class mix_mean_metric_class;
bool mix_mean_make(mix_metric *metric);
/* False with the error recorded if predictions are given to a metric of values: they would be no weights. */
bool mix_metric_has_values_alone(const mix_metric *metric, const mix_tensor *y_pred);

/* accuracy.c: the values of accuracies */
mix_metric_function mix_metric_accuracy, mix_metric_binary_accuracy, mix_metric_categorical_accuracy,
    mix_metric_sparse_categorical_accuracy, mix_metric_top_k, mix_metric_sparse_top_k;

/* correlation.c: the values of correlations */
mix_metric_function mix_metric_pearson_correlation, mix_metric_concordance_correlation;

/* All kinds: mix_metric_..._kind. */
#define MIX_METRIC_KINDS(X)                                                                                  \
  X(mean) X(sum) X(mean_tensor) X(mean_relative_error) X(root_mean_squared_error) X(accuracy)                \
  X(binary_accuracy) X(categorical_accuracy) X(sparse_categorical_accuracy) X(top_k) X(sparse_top_k)         \
  X(pearson_correlation) X(concordance_correlation) X(true_positives) X(false_positives) X(true_negatives)   \
  X(false_negatives) X(precision) X(recall) X(sensitivity_at_specificity) X(specificity_at_sensitivity)      \
  X(precision_at_recall) X(recall_at_precision) X(auc) X(f1_score) X(fbeta_score) X(r2_score) X(io_u)        \
  X(mean_io_u) X(binary_io_u) X(one_hot_io_u) X(one_hot_mean_io_u)
#define MIX_DECLARE_METRIC(name) extern const mix_metric_kind mix_metric_##name##_kind;
MIX_METRIC_KINDS(MIX_DECLARE_METRIC)
#undef MIX_DECLARE_METRIC
