/* Inside metrics. */
#ifndef MIX_NN_METRIC_H
#define MIX_NN_METRIC_H

#include "base/object.h"
#include "nn/loss.h"
#include <mixtape/metric.h>

typedef mix_tensor *(*mix_metric_function)(const mix_metric *metric, mix_tensor *y_true, mix_tensor *y_pred);

typedef struct mix_metric_kind {
  const char *name;       /* "binary_accuracy" */
  const char *class_name; /* "BinaryAccuracy" */
  const char *alias;      /* "acc"; NULL */
  mix_metric_function function; /* values for each element or sample; NULL: mean, sum */
  bool sum;               /* no count */
  bool root;              /* the result is the square root of the mean */
  bool align;             /* (B) against (B, 1) */
} mix_metric_kind;

struct mix_metric {
  mix_object object;
  const mix_metric_kind *kind; /* NULL: a loss's values, or a function of the user's */
  bool chooses;                /* "accuracy": `kind` is chosen by the first update */
  mix_loss *loss;              /* retained: whose values are averaged; NULL */
  const char *name;            /* interned */
  mix_dtype dtype;
  const mix_semantics *semantics;
  mix_metric_options options;
  mix_variable *total, *count; /* scalars of `dtype`; count NULL for sums */
};
extern const mix_class mix_metric_class;
extern const mix_metric_kind mix_metric_kinds[];

#endif
