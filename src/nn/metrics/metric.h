/* Inside metrics: the object, the library's kinds, and what their files share. */
#ifndef MIX_NN_METRICS_METRIC_H
#define MIX_NN_METRICS_METRIC_H

#include "base/object.h"
#include "nn/losses/loss.h"
#include "nn/policy/semantics.h"
#include <jansson.h>
#include <mixtape/metric.h>
#include <mixtape/ops.h>

/* Values for each element or sample, which a mean averages; labels already have the predictions' dtype. */
typedef mix_tensor *(*mix_metric_function)(const mix_metric *metric, mix_tensor *y_true, mix_tensor *y_pred);

/* A metric of the library's. */
typedef struct mix_metric_kind {
  const char *name;         /* "binary_accuracy": Keras's default name */
  const char *alias;        /* another name that is known; NULL */
  bool numbered;            /* Keras makes the default name unique: "precision", "precision_1" */
  mix_metric_class class;   /* "BinaryAccuracy", and what it does */
  bool (*make)(mix_metric *metric); /* checks the arguments and makes the variables; NULL: none are known yet */
  const char *arguments[12]; /* names of its options, ended by NULL */
  int direction;            /* better larger 1, smaller -1, neither 0 */
  int generations;          /* MIX_METRIC_... */
  mix_metric_function function; /* of means of values */
  bool root;                /* a mean's result is its square root */
  bool align;               /* (B) against (B, 1) */
} mix_metric_kind;
enum { MIX_METRIC_KERAS3 = 1, MIX_METRIC_TF_KERAS = 2, MIX_METRIC_BOTH = 3 };

struct mix_metric {
  mix_object object;
  mix_metric_class class;      /* a copy */
  const mix_metric_kind *kind; /* NULL: a loss's values, a function, a class of the user's, or "accuracy" before it is chosen */
  const char *name;            /* interned */
  mix_dtype dtype;
  bool dtype_given;
  const mix_semantics *semantics;
  mix_metric_options options;  /* texts interned, numbers copied */
  struct mix_metric_state {
    mix_variable *variable;    /* retained */
    double start;              /* what its elements start at */
  } * state;
  int state_count, state_capacity;
  bool built;
  enum { MIX_CHOOSES_NOTHING, MIX_CHOOSES_ACCURACY, MIX_CHOOSES_CROSSENTROPY } chooses; /* by the first update: `kind`, or `loss` */
  mix_loss *loss;              /* retained: whose values are averaged; NULL */
  void *data;                  /* class.instance_size bytes */
  char *config;
};
extern const mix_class mix_metric_object_class;
/* The kind with that name, alias or class name; NULL: none (no error). */
const mix_metric_kind *mix_metric_kind_named(const char *name);

/* Does it take labels of that shape as class numbers, or choose by the shapes to do so? */
bool mix_metric_takes_class_numbers(const mix_metric *metric, mix_shape y_true, mix_shape y_pred);

/* metric_arguments.c: copies what options point at; a TypeError where one is set that the kind (its names) does not take. */
bool mix_metric_take_arguments(mix_metric *metric, const mix_metric_options *given, const char *const *known);
void mix_metric_release_arguments(mix_metric *metric);
/* The arguments as members of a config, and back into options; `texts` keeps the numbers alive. */
bool mix_metric_arguments_to_json(const mix_metric *metric, const char *const *known, json_t *config);
/* The JSON of one argument in a config, from text: "0.5", "true", "PR", "0:1" for a list, "none". NULL with the error recorded. */
json_t *mix_metric_argument_json(const char *metric, const char *const *known, const char *key, const char *text);
bool mix_metric_arguments_from_json(const json_t *config, const char *const *known, mix_metric_options *options, double *numbers,
                                    int room);

/* Variable `index` of the state now. */
mix_tensor *mix_metric_value(const mix_metric *metric, int index);
/* variable += amount */
mix_status mix_metric_add(mix_metric *metric, int index, mix_tensor *amount);
/* a / b, 0 where b is 0 */
mix_tensor *mix_divide_no_nan(mix_tensor *a, mix_tensor *b);
/* A scalar of the metric's dtype. */
mix_tensor *mix_metric_number(const mix_metric *metric, double value);
/* (B) against (B, 1): the higher loses its last dimension. */
void mix_metric_align(mix_tensor **a, mix_tensor **b);

/* metrics/mean.c: total and count */
extern const mix_metric_class mix_mean_metric_class;
bool mix_mean_make(mix_metric *metric);

/* metrics/accuracy.c: values of accuracies */
mix_tensor *mix_metric_accuracy(const mix_metric *metric, mix_tensor *y_true, mix_tensor *y_pred);
mix_tensor *mix_metric_binary_accuracy(const mix_metric *metric, mix_tensor *y_true, mix_tensor *y_pred);
mix_tensor *mix_metric_categorical_accuracy(const mix_metric *metric, mix_tensor *y_true, mix_tensor *y_pred);
mix_tensor *mix_metric_sparse_categorical_accuracy(const mix_metric *metric, mix_tensor *y_true, mix_tensor *y_pred);
mix_tensor *mix_metric_top_k(const mix_metric *metric, mix_tensor *y_true, mix_tensor *y_pred);
mix_tensor *mix_metric_sparse_top_k(const mix_metric *metric, mix_tensor *y_true, mix_tensor *y_pred);

/* metrics/correlation.c: likewise */
mix_tensor *mix_metric_pearson_correlation(const mix_metric *metric, mix_tensor *y_true, mix_tensor *y_pred);
mix_tensor *mix_metric_concordance_correlation(const mix_metric *metric, mix_tensor *y_true, mix_tensor *y_pred);

/* metrics/: the kinds, mix_metric_..._kind */
#define MIX_METRIC_KINDS(X)                                                                                                    \
  X(mean) X(sum) X(mean_tensor) X(mean_relative_error) X(root_mean_squared_error) X(accuracy) X(binary_accuracy)               \
  X(categorical_accuracy) X(sparse_categorical_accuracy) X(top_k) X(sparse_top_k) X(pearson_correlation)                       \
  X(concordance_correlation) X(true_positives) X(false_positives) X(true_negatives) X(false_negatives) X(precision) X(recall)  \
  X(sensitivity_at_specificity) X(specificity_at_sensitivity) X(precision_at_recall) X(recall_at_precision) X(auc) X(f1_score) \
  X(fbeta_score) X(r2_score) X(io_u) X(mean_io_u) X(binary_io_u) X(one_hot_io_u) X(one_hot_mean_io_u)
#define MIX_DECLARE_METRIC(name) extern const mix_metric_kind mix_metric_##name##_kind;
MIX_METRIC_KINDS(MIX_DECLARE_METRIC)
#undef MIX_DECLARE_METRIC

#endif
