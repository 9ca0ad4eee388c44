/* Counts of a binary decision at one or many thresholds: what precision, recall, curves and their kin are made of. */
#ifndef MIX_NN_METRICS_CONFUSION_H
#define MIX_NN_METRICS_CONFUSION_H

#include "nn/metrics/metric.h"

typedef enum mix_condition { MIX_TRUE_POSITIVES, MIX_FALSE_POSITIVES, MIX_TRUE_NEGATIVES, MIX_FALSE_NEGATIVES } mix_condition;
enum { MIX_CONDITIONS = 4 };

/* The thresholds of a metric: the data of its class begins with this. A prediction is positive above the threshold. */
typedef struct mix_thresholds {
  int64_t count;
  double *values;   /* own */
  bool even;        /* i / (count - 1): a prediction's place among them is computed, not searched */
  bool with_ends;   /* the first is below 0 and the last above 1 */
  int place[MIX_CONDITIONS]; /* variable of each condition in the metric's state; -1: not kept */
} mix_thresholds;

/* From the numbers given; none: `standard` alone. ValueError for one outside [0, 1]. */
bool mix_thresholds_given(mix_metric *metric, double standard);
/* `count` of them from 0 to 1; with_ends: an epsilon below and above. */
bool mix_thresholds_spread(mix_metric *metric, int64_t count, bool with_ends);
/* The numbers given between the two ends, sorted. */
bool mix_thresholds_between(mix_metric *metric, mix_numbers numbers);
void mix_thresholds_release(mix_metric *metric);

/* Makes a variable (thresholds) or, for columns > 0, (thresholds, columns) for each condition named, in that order. */
bool mix_confusion_make(mix_metric *metric, int count, const mix_condition *conditions, int64_t columns);
/* Adds a batch to the variables. y_pred NULL: args->y_pred as it is. */
mix_status mix_confusion_update(mix_metric *metric, const mix_metric_args *args, mix_tensor *y_pred);
/* The count of a condition now. */
mix_tensor *mix_confusion_value(const mix_metric *metric, mix_condition condition);
/* a / (a + b), 0 where there is neither. */
mix_tensor *mix_confusion_share(const mix_metric *metric, mix_condition a, mix_condition b);
/* All four in the generation's order. */
const mix_condition *mix_confusion_all(const mix_metric *metric);

#endif
