/* Confusion counts of a binary decision at one or more thresholds. */
#pragma once

#include "nn/metrics/metric.h"

typedef enum mix_condition {
  MIX_TRUE_POSITIVES,
  MIX_FALSE_POSITIVES,
  MIX_TRUE_NEGATIVES,
  MIX_FALSE_NEGATIVES
} mix_condition;
enum { MIX_CONDITIONS = 4 };

/* The thresholds of a metric; the data of its class begins with this struct. A prediction above the threshold
 * is positive. */
typedef struct mix_thresholds {
  int64_t count;
  double *values;   /* owned */
  bool even;        /* i / (count - 1): the bucket of a prediction is computed instead of searched */
  bool with_ends;   /* the first is below 0 and the last above 1 */
  int state_index[MIX_CONDITIONS]; /* the condition's variable in the metric's state; -1: not counted */
} mix_thresholds;

/* Takes the thresholds of the options, or `default_value` alone if there are none. ValueError for one outside
 * [0, 1]. */
bool mix_thresholds_given(mix_metric *metric, double default_value);
/* `count` even thresholds from 0 to 1. with_ends: the ends are moved outside [0, 1] by an epsilon. */
bool mix_thresholds_spread(mix_metric *metric, int64_t count, bool with_ends);
/* The numbers given, sorted, between the two ends outside [0, 1]. */
bool mix_thresholds_between(mix_metric *metric, mix_numbers numbers);
void mix_thresholds_release(mix_metric *metric);

/* Makes a variable for each condition, in that order. Its shape is (thresholds), or (thresholds, columns) if
 * columns is above 0. */
bool mix_confusion_make(mix_metric *metric, int count, const mix_condition *conditions, int64_t columns);
/* Adds a batch to the variables. y_pred NULL: args->y_pred. */
mix_status mix_confusion_update(mix_metric *metric, const mix_metric_args *args, mix_tensor *y_pred);
/* The current count of a condition. */
mix_tensor *mix_confusion_value(const mix_metric *metric, mix_condition condition);
/* a / (a + b), 0 where both are 0. */
mix_tensor *mix_confusion_share(const mix_metric *metric, mix_condition a, mix_condition b);
/* All four conditions in the order of the generation's variables. */
const mix_condition *mix_confusion_all(const mix_metric *metric);
