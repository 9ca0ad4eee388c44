/* F-scores: the weighted harmonic mean of precision and recall of each class. A sample may have one or
 * several predicted classes. */
#include "base/error.h"
#include "nn/metrics/metric.h"
#include "tensor/shape.h"
#include <math.h>
#include <string.h>

enum { TRUE_POSITIVES, FALSE_POSITIVES, FALSE_NEGATIVES, WEIGHTS };

static bool average_is(const mix_metric *metric, const char *name) {
  return metric->options.average && !strcmp(metric->options.average, name);
}

static bool make(mix_metric *metric) {
  const mix_metric_options *o = &metric->options;
  if (o->average && !average_is(metric, "micro") && !average_is(metric, "macro") &&
      !average_is(metric, "weighted"))
    mix_fail_value("metric %s: average is '%.40s'; expected micro, macro, weighted or none", metric->name,
                   o->average);
  else if (!isinf(o->threshold) && !(o->threshold > 0 && o->threshold <= 1))
    mix_fail_value("metric %s: threshold is %g; expected a number in (0, 1] or none", metric->name,
                   o->threshold);
  return mix_metric_is_floating(metric);
}

static mix_status build(mix_metric *metric, mix_shape y_true, mix_shape y_pred) {
  static const char *const names[] = {"true_positives", "false_positives", "false_negatives",
                                      "intermediate_weights"};
  if (y_true.rank != 2 || y_pred.rank != 2)
    return mix_fail_status(
        MIX_VALUE_ERROR,
        "metric %s: expects labels and predictions (samples, classes); their ranks are %d and %d",
        metric->name, y_true.rank, y_pred.rank);
  mix_shape shape = average_is(metric, "micro") ? (mix_shape){.rank = 0} : MIX_SHAPE(y_pred.dims[1]);
  for (int i = 0; i < 4; i++) mix_metric_add_variable(metric, names[i], .shape = shape);
  return mix_error();
}

/* bool: the predicted classes. Without a threshold it is the maximum of each sample, if its magnitude exceeds
 * 1e-9. */
static mix_tensor *predicted(const mix_metric *metric, mix_tensor *y_pred) {
  if (!isinf(metric->options.threshold))
    return mix_greater(y_pred, mix_metric_number(metric, metric->options.threshold));
  mix_tensor *largest = mix_reduce_max(y_pred, MIX_AXES(-1), true);
  return mix_logical_and(mix_greater_equal(y_pred, largest),
                         mix_greater(mix_abs(y_pred), mix_metric_number(metric, 1e-9)));
}

static mix_status update(mix_metric *metric, const mix_metric_args *args) {
  if (!args->y_pred)
    return mix_fail_status(MIX_TYPE_ERROR, "metric %s: update needs labels and predictions", metric->name);
  mix_tensor *y = mix_cast(args->y_true, metric->dtype), *one = mix_metric_number(metric, 1);
  mix_tensor *p = mix_cast(predicted(metric, mix_cast(args->y_pred, metric->dtype)), metric->dtype);
  mix_tensor *counts[] = {mix_multiply(p, y), mix_multiply(p, mix_subtract(one, y)),
                          mix_multiply(mix_subtract(one, p), y), y};
  mix_tensor *weight = args->sample_weight ? mix_cast(args->sample_weight, metric->dtype) : NULL;
  if (weight && mix_tensor_shape(weight).rank == 1) weight = mix_expand_dims(weight, -1);
  for (int i = 0; i < 4 && !mix_failed(); i++) {
    if (weight) counts[i] = mix_multiply(counts[i], weight);
    bool all = average_is(metric, "micro");
    mix_metric_add(metric, i,
                   all ? mix_reduce_sum(counts[i], MIX_ALL_AXES, false)
                       : mix_reduce_sum(counts[i], MIX_AXES(0), false));
  }
  return mix_error();
}

/* keras3: a / (b + epsilon); else a / b, 0 where b is 0. */
static mix_tensor *ratio(const mix_metric *metric, mix_tensor *a, mix_tensor *b) {
  if (!metric->semantics->metric_ratio_epsilon) return mix_divide_no_nan(a, b);
  return mix_divide(a, mix_add(b, mix_metric_number(metric, MIX_EPSILON)));
}

static mix_tensor *result(mix_metric *metric) {
  double beta = metric->options.beta;
  mix_tensor *hits = mix_metric_value(metric, TRUE_POSITIVES),
             *square = mix_metric_number(metric, beta * beta);
  mix_tensor *precision = ratio(metric, hits, mix_add(hits, mix_metric_value(metric, FALSE_POSITIVES)));
  mix_tensor *recall = ratio(metric, hits, mix_add(hits, mix_metric_value(metric, FALSE_NEGATIVES)));
  mix_tensor *mean =
      ratio(metric, mix_multiply(precision, recall), mix_add(mix_multiply(square, precision), recall));
  mix_tensor *score = mix_multiply(mean, mix_metric_number(metric, 1 + beta * beta));
  if (average_is(metric, "macro")) return mix_reduce_mean(score, MIX_ALL_AXES, false);
  if (!average_is(metric, "weighted")) return score;
  mix_tensor *weights = mix_metric_value(metric, WEIGHTS);
  weights = ratio(metric, weights, mix_reduce_sum(weights, MIX_ALL_AXES, false));
  return mix_reduce_sum(mix_multiply(score, weights), MIX_ALL_AXES, false);
}

#define SCORE(class_name)                                                                                    \
  MIX_METRIC_CLASS(.name = class_name, .build = build, .update = update, .result = result),                  \
      .make = make, .direction = 1, .generations = MIX_METRIC_BOTH

const mix_metric_kind mix_metric_f1_score_kind = {
    .name = "f1_score", SCORE("F1Score"), .arguments = {MIX_ARGUMENT(average), MIX_ARGUMENT(threshold)}};
const mix_metric_kind mix_metric_fbeta_score_kind = {
    .name = "fbeta_score",
    .alias = "f_beta_score",
    SCORE("FBetaScore"),
    .arguments = {MIX_ARGUMENT(average), MIX_ARGUMENT(beta), MIX_ARGUMENT(threshold)}};
