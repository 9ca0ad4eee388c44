/* AUC, the area under a curve of rates over thresholds: ROC, precision-recall (interpolated as in Davis,
 * Goadrich: The relationship between precision-recall and ROC curves, 2006) or precision-recall-gain (Flach,
 * Kull: Precision-recall-gain curves, 2015). */
#include "base/error.h"
#include "nn/metrics/confusion.h"
#include "tensor/shape.h"
#include <string.h>

typedef enum curve { ROC, PR, PRGAIN } curve;
typedef enum summation { INTERPOLATION, MAJORING, MINORING } summation;

typedef struct auc {
  mix_thresholds thresholds; /* first */
  curve curve;
  summation summation;
} auc;

/* The index of a name among `count` pairs of lower-case and capitalised spellings; 0 if none was given. -1
 * with the error recorded. */
static int choice(const mix_metric *metric, const char *argument, const char *given, int count,
                  const char *const (*names)[2], const char *all) {
  for (int i = 0; i < count; i++)
    if (!given || !strcmp(given, names[i][0]) || !strcmp(given, names[i][1])) return i;
  mix_fail_value("metric %s: %s is '%.40s'; expected %s", metric->name, argument, given, all);
  return -1;
}

static bool make_state(mix_metric *metric, int64_t columns) {
  return mix_confusion_make(metric, MIX_CONDITIONS, mix_confusion_all(metric), columns);
}

static bool make(mix_metric *metric) {
  static const char *const curves[][2] = {{"ROC", "roc"}, {"PR", "pr"}, {"PRGAIN", "prgain"}};
  static const char *const methods[][2] = {
      {"interpolation", "Interpolation"}, {"majoring", "Majoring"}, {"minoring", "Minoring"}};
  const mix_metric_options *o = &metric->options;
  auc *a = metric->data;
  int64_t count = o->num_thresholds;
  int of = choice(metric, "curve", o->curve, 3, curves, "ROC, PR or PRGAIN");
  int by = choice(metric, "summation_method", o->summation_method, 3, methods,
                  "interpolation, majoring or minoring");
  if (mix_failed()) return false;
  a->curve = (curve)of;
  a->summation = (summation)by;
  if (!o->thresholds.count && count <= 1)
    mix_fail_value("metric %s: num_thresholds is %lld; expected an integer above 1", metric->name,
                   (long long)count);
  if (o->num_labels && !o->multi_label)
    mix_fail_value("metric %s: num_labels is needed only with multi_label", metric->name);
  for (int i = 0; i < o->label_weights.count; i++)
    if (!(o->label_weights.values[i] >= 0))
      mix_fail_value("metric %s: label weight %d is %g; expected numbers that are not negative", metric->name,
                     i, o->label_weights.values[i]);
  if (mix_failed()) return false;
  bool good = o->thresholds.count ? mix_thresholds_between(metric, o->thresholds)
                                  : mix_thresholds_spread(metric, count, true);
  metric->built = !o->multi_label || o->num_labels;
  return good && (!metric->built || make_state(metric, o->multi_label ? o->num_labels : 0));
}

static mix_status build(mix_metric *metric, mix_shape y_true, mix_shape y_pred) {
  if (y_pred.rank != 2)
    return mix_fail_status(MIX_VALUE_ERROR,
                           "metric %s: multi_label wants predictions (samples, labels); they have rank %d",
                           metric->name, y_pred.rank);
  make_state(metric, y_pred.dims[1]);
  return mix_error();
}

static mix_status update(mix_metric *metric, const mix_metric_args *args) {
  const mix_metric_options *o = &metric->options;
  mix_shape shape = args->y_pred ? mix_tensor_shape(args->y_pred) : (mix_shape){.rank = 0};
  mix_shape state = mix_variable_shape(metric->state[0].variable);
  if (o->multi_label && args->y_pred && (shape.rank != 2 || shape.dims[1] != state.dims[1]))
    return mix_fail_status(MIX_VALUE_ERROR, "metric %s: expected predictions (samples, %lld)", metric->name,
                           (long long)state.dims[1]);
  mix_tensor *y_pred = args->y_pred;
  if (o->from_logits && y_pred)
    y_pred = mix_sigmoid(mix_dtype_is_floating(mix_tensor_dtype(y_pred)) ? y_pred
                                                                         : mix_cast(y_pred, metric->dtype));
  return mix_failed() ? mix_error() : mix_confusion_update(metric, args, y_pred);
}

/* ---- the area ---- */

/* Without the last row (first: without the first). */
static mix_tensor *without(mix_tensor *x, bool first) {
  mix_shape begin = {.rank = mix_tensor_shape(x).rank}, size = mix_tensor_shape(x);
  begin.dims[0] = first;
  size.dims[0]--;
  return mix_slice(x, begin, size);
}
static mix_tensor *decrease(mix_tensor *x) { return mix_subtract(without(x, false), without(x, true)); }

/* The sum over the thresholds. With multi_label, its mean or weighted mean over the labels. */
static mix_tensor *total(const mix_metric *metric, mix_tensor *terms) {
  mix_numbers weights = metric->options.label_weights;
  if (!terms || !metric->options.multi_label)
    return terms ? mix_reduce_sum(terms, MIX_ALL_AXES, false) : NULL;
  mix_tensor *areas = mix_reduce_sum(terms, MIX_AXES(0), false);
  if (!weights.count) return mix_reduce_mean(areas, MIX_ALL_AXES, false);
  mix_tensor *w =
      mix_cast(mix_tensor_from(weights.values, MIX_FLOAT64, MIX_SHAPE(weights.count)), metric->dtype);
  return mix_divide_no_nan(mix_reduce_sum(mix_multiply(areas, w), MIX_ALL_AXES, false),
                           mix_reduce_sum(w, MIX_ALL_AXES, false));
}

/* True and false positives are linear between two thresholds, precision is not. The area is slope (dTP +
 * intercept log(P_B / P_A)). */
static mix_tensor *interpolated_precision(const mix_metric *metric) {
  mix_tensor *tp = mix_confusion_value(metric, MIX_TRUE_POSITIVES), *zero = mix_metric_number(metric, 0);
  mix_tensor *p = mix_add(tp, mix_confusion_value(metric, MIX_FALSE_POSITIVES)), *p_a = without(p, false),
             *p_b = without(p, true);
  mix_tensor *dtp = decrease(tp), *slope = mix_divide_no_nan(dtp, mix_maximum(decrease(p), zero));
  mix_tensor *intercept = mix_subtract(without(tp, true), mix_multiply(slope, p_b));
  mix_tensor *both = mix_logical_and(mix_greater(p_a, zero), mix_greater(p_b, zero));
  mix_tensor *ratio =
      mix_select(both, mix_divide_no_nan(p_a, mix_maximum(p_b, zero)), mix_metric_number(metric, 1));
  mix_tensor *area = mix_multiply(slope, mix_add(dtp, mix_multiply(intercept, mix_log(ratio))));
  mix_tensor *positives =
      mix_add(without(tp, true), without(mix_confusion_value(metric, MIX_FALSE_NEGATIVES), true));
  return mix_divide_no_nan(area, mix_maximum(positives, zero));
}

/* 1 - (P / N) (x / TP), with Keras's handling of zero divisors. */
static mix_tensor *gain(const mix_metric *metric, mix_tensor *scaling, mix_condition x,
                        double without_positives) {
  mix_tensor *tp = mix_confusion_value(metric, MIX_TRUE_POSITIVES), *one = mix_metric_number(metric, 1);
  mix_tensor *ratio = mix_divide_no_nan(mix_confusion_value(metric, x), tp);
  mix_tensor *none = mix_equal(tp, mix_metric_number(metric, 0));
  return mix_select(none, mix_metric_number(metric, without_positives),
                    mix_subtract(one, mix_multiply(scaling, ratio)));
}

static void curve_points(const mix_metric *metric, mix_tensor **x, mix_tensor **y) {
  const auc *a = metric->data;
  mix_tensor *recall = mix_confusion_share(metric, MIX_TRUE_POSITIVES, MIX_FALSE_NEGATIVES);
  if (a->curve == ROC) {
    *x = mix_confusion_share(metric, MIX_FALSE_POSITIVES, MIX_TRUE_NEGATIVES);
    *y = recall;
  } else if (a->curve == PR) {
    *x = recall;
    *y = mix_confusion_share(metric, MIX_TRUE_POSITIVES, MIX_FALSE_POSITIVES);
  } else {
    mix_tensor *positives = mix_add(mix_confusion_value(metric, MIX_TRUE_POSITIVES),
                                    mix_confusion_value(metric, MIX_FALSE_NEGATIVES));
    mix_tensor *negatives = mix_add(mix_confusion_value(metric, MIX_TRUE_NEGATIVES),
                                    mix_confusion_value(metric, MIX_FALSE_POSITIVES));
    mix_tensor *scaling = mix_divide_no_nan(positives, negatives);
    *x = mix_maximum(gain(metric, scaling, MIX_FALSE_NEGATIVES, 0), mix_metric_number(metric, 0));
    *y = gain(metric, scaling, MIX_FALSE_POSITIVES, 1);
  }
}

static mix_tensor *result(mix_metric *metric) {
  const auc *a = metric->data;
  if (a->curve == PR && a->summation == INTERPOLATION) return total(metric, interpolated_precision(metric));
  mix_tensor *x = NULL, *y = NULL, *heights;
  curve_points(metric, &x, &y);
  if (mix_failed()) return NULL;
  mix_tensor *before = without(y, false), *after = without(y, true);
  if (a->summation == INTERPOLATION)
    heights = mix_divide(mix_add(before, after), mix_metric_number(metric, 2));
  else
    heights = a->summation == MINORING ? mix_minimum(before, after) : mix_maximum(before, after);
  return total(metric, mix_multiply(decrease(x), heights));
}

const mix_metric_kind mix_metric_auc_kind = {
    .name = "auc",
    .numbered = true,
    MIX_METRIC_CLASS(.name = "AUC", .instance_size = sizeof(auc), .build = build, .update = update,
                     .result = result, .finalize = mix_thresholds_release),
    .make = make,
    .arguments = {MIX_ARGUMENT(num_thresholds), MIX_ARGUMENT(curve), MIX_ARGUMENT(summation_method),
                  MIX_ARGUMENT(thresholds), MIX_ARGUMENT(multi_label), MIX_ARGUMENT(num_labels),
                  MIX_ARGUMENT(label_weights), MIX_ARGUMENT(from_logits)},
    .direction = 1,
    .generations = MIX_METRIC_BOTH,
};
