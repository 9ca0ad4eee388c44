/* Precision, recall, the four confusion counts, and the best of one rate under a bound on another. */
#include "base/error.h"
#include "nn/metrics/confusion.h"
#include <math.h>
#include "tensor/shape.h"

static mix_status update(mix_metric *metric, const mix_metric_args *args) {
  return mix_confusion_update(metric, args, NULL);
}

/* A scalar if there is only one threshold. */
static mix_tensor *scalar_if_one(mix_tensor *x) {
  return x && mix_shape_size(mix_tensor_shape(x)) == 1 ? mix_reshape(x, (mix_shape){.rank = 0}) : x;
}

#define CONFUSION(class_name, result_function)                                                               \
  MIX_METRIC_CLASS(.name = class_name, .instance_size = sizeof(mix_thresholds), .update = update,            \
                   .result = result_function, .finalize = mix_thresholds_release),                           \
      .numbered = true, .generations = MIX_METRIC_BOTH

/* ---- counts ---- */

static mix_tensor *count_result(mix_metric *metric) { return scalar_if_one(mix_metric_value(metric, 0)); }

#define COUNT(kind, keras_name, class_name, condition)                                                       \
  static bool make_##kind(mix_metric *metric) {                                                              \
    return mix_thresholds_given(metric, 0.5) &&                                                              \
           mix_confusion_make(metric, 1, (const mix_condition[]){condition}, 0);                             \
  }                                                                                                          \
  const mix_metric_kind mix_metric_##kind##_kind = {.name = keras_name,                                      \
                                                    CONFUSION(class_name, count_result),                     \
                                                    .make = make_##kind,                                     \
                                                    .arguments = {MIX_ARGUMENT(thresholds)}};
COUNT(true_positives, "true_positives", "TruePositives", MIX_TRUE_POSITIVES)
COUNT(false_positives, "false_positives", "FalsePositives", MIX_FALSE_POSITIVES)
COUNT(true_negatives, "true_negatives", "TrueNegatives", MIX_TRUE_NEGATIVES)
COUNT(false_negatives, "false_negatives", "FalseNegatives", MIX_FALSE_NEGATIVES)

/* ---- precision and recall ---- */

static bool make_ratio(mix_metric *metric, mix_condition other) {
  /* With top_k and no thresholds, every prediction that top_k keeps is positive. */
  return mix_thresholds_given(metric, metric->options.top_k ? -1e10 : 0.5) &&
         mix_confusion_make(metric, 2, (const mix_condition[]){MIX_TRUE_POSITIVES, other}, 0);
}
static bool make_precision(mix_metric *metric) { return make_ratio(metric, MIX_FALSE_POSITIVES); }
static bool make_recall(mix_metric *metric) { return make_ratio(metric, MIX_FALSE_NEGATIVES); }

static mix_tensor *precision(mix_metric *metric) {
  return scalar_if_one(mix_confusion_share(metric, MIX_TRUE_POSITIVES, MIX_FALSE_POSITIVES));
}
static mix_tensor *recall(mix_metric *metric) {
  return scalar_if_one(mix_confusion_share(metric, MIX_TRUE_POSITIVES, MIX_FALSE_NEGATIVES));
}

const mix_metric_kind mix_metric_precision_kind = {
    .name = "precision",
    CONFUSION("Precision", precision),
    .make = make_precision,
    .arguments = {MIX_ARGUMENT(thresholds), MIX_ARGUMENT(top_k), MIX_ARGUMENT(class_id)},
    .direction = 1};
const mix_metric_kind mix_metric_recall_kind = {
    .name = "recall",
    CONFUSION("Recall", recall),
    .make = make_recall,
    .arguments = {MIX_ARGUMENT(thresholds), MIX_ARGUMENT(top_k), MIX_ARGUMENT(class_id)},
    .direction = 1};

/* ---- one rate under a bound on another ---- */

/* The maximum of `dependent` where `constrained` >= value; 0 if no threshold satisfies that. */
static mix_tensor *best_where(const mix_metric *metric, mix_tensor *constrained, double value,
                              mix_tensor *dependent) {
  mix_tensor *feasible = mix_greater_equal(constrained, mix_metric_number(metric, value));
  return mix_reduce_max(mix_select(feasible, dependent, mix_metric_number(metric, 0)), MIX_ALL_AXES, false);
}
static mix_tensor *sensitivity(const mix_metric *metric) {
  return mix_confusion_share(metric, MIX_TRUE_POSITIVES, MIX_FALSE_NEGATIVES);
}
static mix_tensor *specificity(const mix_metric *metric) {
  return mix_confusion_share(metric, MIX_TRUE_NEGATIVES, MIX_FALSE_POSITIVES);
}
static mix_tensor *precisions(const mix_metric *metric) {
  return mix_confusion_share(metric, MIX_TRUE_POSITIVES, MIX_FALSE_POSITIVES);
}

static bool make_at(mix_metric *metric, const char *argument, double value) {
  if (isinf(value))
    mix_fail_type("metric %s: the argument '%s' is missing (MIX_ZERO for zero)", metric->name, argument);
  else if (!(value >= 0 && value <= 1))
    mix_fail_value("metric %s: %s is %g; expected a number in [0, 1]", metric->name, argument, value);
  return !mix_failed() && mix_thresholds_spread(metric, metric->options.num_thresholds, false) &&
         mix_confusion_make(metric, MIX_CONDITIONS, mix_confusion_all(metric), 0);
}

#define AT(kind, class_name, argument, constrained, dependent)                                               \
  static bool make_##kind(mix_metric *metric) {                                                              \
    return make_at(metric, #argument, metric->options.argument);                                             \
  }                                                                                                          \
  static mix_tensor *result_##kind(mix_metric *metric) {                                                     \
    return best_where(metric, constrained(metric), metric->options.argument, dependent(metric));             \
  }                                                                                                          \
  const mix_metric_kind mix_metric_##kind##_kind = {                                                         \
      .name = #kind,                                                                                         \
      CONFUSION(class_name, result_##kind),                                                                  \
      .make = make_##kind,                                                                                   \
      .arguments = {MIX_ARGUMENT(argument), MIX_ARGUMENT(num_thresholds), MIX_ARGUMENT(class_id)},           \
      .direction = 1};
AT(sensitivity_at_specificity, "SensitivityAtSpecificity", specificity, specificity, sensitivity)
AT(specificity_at_sensitivity, "SpecificityAtSensitivity", sensitivity, sensitivity, specificity)
AT(precision_at_recall, "PrecisionAtRecall", recall, sensitivity, precisions)
AT(recall_at_precision, "RecallAtPrecision", precision, precisions, sensitivity)
