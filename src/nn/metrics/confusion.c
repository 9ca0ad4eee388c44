/* Confusion counts of a binary decision at one or more thresholds. */
#include "nn/metrics/confusion.h"
#include "base/alloc.h"
#include "base/error.h"
#include "ops/table.h"
#include "tensor/shape.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double EXCLUDED = -1e10; /* Keras's NEG_INF: the score of a prediction that top_k leaves out */

static mix_thresholds *thresholds_of(const mix_metric *metric) { return metric->data; }

/* ---- thresholds ---- */

static bool allocate(mix_metric *metric, int64_t count) {
  mix_thresholds *t = thresholds_of(metric);
  t->values = mix_alloc(sizeof *t->values * (size_t)count);
  t->count = count;
  return t->values != NULL;
}

/* Keras's test: within 1e-7 plus a relative 1e-5 of i / (n - 1) in float32. */
static bool evenly_spread(const double *values, int64_t count) {
  for (int64_t i = 0; i < count; i++) {
    double even = (float)i / (float)(count - 1);
    if (!(fabs(values[i] - even) <= MIX_EPSILON + 1e-5 * fabs(even))) return false;
  }
  return count >= 3;
}

static bool check(const mix_metric *metric, mix_numbers numbers) {
  for (int i = 0; i < numbers.count; i++)
    if (!(numbers.values[i] >= 0 && numbers.values[i] <= 1))
      return mix_fail_value("metric %s: a threshold is %g; expected numbers in [0, 1]", metric->name,
                            numbers.values[i]);
  return true;
}

bool mix_thresholds_given(mix_metric *metric, double default_value) {
  mix_numbers numbers = metric->options.thresholds;
  if (!check(metric, numbers) || !allocate(metric, numbers.count ? numbers.count : 1)) return false;
  mix_thresholds *t = thresholds_of(metric);
  t->values[0] = default_value;
  for (int i = 0; i < numbers.count; i++) t->values[i] = numbers.values[i];
  t->even = evenly_spread(t->values, t->count);
  return true;
}

bool mix_thresholds_spread(mix_metric *metric, int64_t count, bool with_ends) {
  if (!allocate(metric, count)) return false;
  mix_thresholds *t = thresholds_of(metric);
  for (int64_t i = 0; i < count; i++) t->values[i] = count == 1 ? 0.5 : (double)i / (double)(count - 1);
  if (with_ends) t->values[0] = -MIX_EPSILON, t->values[count - 1] = 1 + MIX_EPSILON;
  t->even = count > 1;
  t->with_ends = with_ends;
  return true;
}

static int ascending(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}
bool mix_thresholds_between(mix_metric *metric, mix_numbers numbers) {
  if (!check(metric, numbers) || !allocate(metric, numbers.count + 2)) return false;
  mix_thresholds *t = thresholds_of(metric);
  memcpy(t->values + 1, numbers.values, sizeof *t->values * (size_t)numbers.count);
  qsort(t->values + 1, (size_t)numbers.count, sizeof *t->values, ascending);
  t->values[0] = 0, t->values[t->count - 1] = 1;
  t->even = evenly_spread(t->values, t->count);
  t->values[0] = -MIX_EPSILON, t->values[t->count - 1] = 1 + MIX_EPSILON;
  t->with_ends = true;
  return true;
}

void mix_thresholds_release(mix_metric *metric) { mix_free(thresholds_of(metric)->values); }

/* ---- state ---- */

bool mix_confusion_make(mix_metric *metric, int count, const mix_condition *conditions, int64_t columns) {
  static const char *const names[] = {"true_positives", "false_positives", "true_negatives",
                                      "false_negatives"};
  mix_thresholds *t = thresholds_of(metric);
  if (!mix_metric_is_floating(metric)) return false;
  for (int i = 0; i < MIX_CONDITIONS; i++) t->state_index[i] = -1;
  for (int i = 0; i < count; i++) {
    t->state_index[conditions[i]] = metric->state_count;
    mix_metric_add_variable(metric, count == 1 ? "accumulator" : names[conditions[i]],
                            .shape = columns > 0 ? MIX_SHAPE(t->count, columns) : MIX_SHAPE(t->count));
  }
  return !mix_failed();
}

mix_tensor *mix_confusion_value(const mix_metric *metric, mix_condition condition) {
  return mix_metric_value(metric, thresholds_of(metric)->state_index[condition]);
}

mix_tensor *mix_confusion_share(const mix_metric *metric, mix_condition a, mix_condition b) {
  mix_tensor *counted = mix_confusion_value(metric, a);
  return mix_divide_no_nan(counted, mix_add(counted, mix_confusion_value(metric, b)));
}

const mix_condition *mix_confusion_all(const mix_metric *metric) {
  static const mix_condition negatives_last[] = {MIX_TRUE_POSITIVES, MIX_FALSE_POSITIVES, MIX_TRUE_NEGATIVES,
                                                 MIX_FALSE_NEGATIVES};
  static const mix_condition true_first[] = {MIX_TRUE_POSITIVES, MIX_TRUE_NEGATIVES, MIX_FALSE_POSITIVES,
                                             MIX_FALSE_NEGATIVES};
  return metric->semantics->metric_negatives_last ? negatives_last : true_first;
}

/* ---- a batch ---- */

typedef struct batch {
  mix_tensor *label;  /* bool */
  mix_tensor *score;  /* the metric's dtype, the same shape */
  mix_tensor *weight; /* the same shape; NULL means 1 */
} batch;

/* Keeps the k largest scores of each sample, the first ones among equals. The others become EXCLUDED. */
static mix_tensor *largest_k(const mix_metric *metric, mix_tensor *score, int64_t k) {
  mix_shape shape = mix_tensor_shape(score);
  int64_t classes = shape.rank ? shape.dims[shape.rank - 1] : 1;
  if (k > classes)
    return mix_fail_value("metric %s: top_k is %lld and there are %lld predictions for each sample",
                          metric->name, (long long)k, (long long)classes);
  mix_tensor *left = score, *chosen = NULL, *none = mix_scalar_like(score, -INFINITY);
  for (int64_t i = 0; i < k && !mix_failed(); i++) {
    mix_tensor *here = mix_one_hot(mix_argmax(left, -1), classes, MIX_BOOL);
    chosen = chosen ? mix_logical_or(chosen, here) : here;
    if (i + 1 < k) left = mix_select(here, none, left);
  }
  return mix_select(chosen, score, mix_scalar_like(score, EXCLUDED));
}

static mix_tensor *column(mix_tensor *x, int64_t index) {
  mix_shape begin = mix_tensor_shape(x), size = begin;
  for (int i = 0; i < begin.rank; i++) begin.dims[i] = 0;
  begin.dims[begin.rank - 1] = index;
  size.dims[size.rank - 1] = 1;
  return mix_slice(x, begin, size);
}

static bool take_class(const mix_metric *metric, batch *b) {
  mix_shape shape = mix_tensor_shape(b->score);
  int64_t id = metric->options.class_id;
  if (shape.rank < 2)
    mix_fail_value("metric %s: class_id wants predictions (samples, classes); they have rank %d",
                   metric->name, shape.rank);
  else if (id < 0 || id >= shape.dims[shape.rank - 1])
    mix_fail_value("metric %s: class_id is %lld and there are %lld classes", metric->name, (long long)id,
                   (long long)shape.dims[shape.rank - 1]);
  else
    b->label = column(b->label, id), b->score = column(b->score, id);
  return !mix_failed();
}

static bool label_weights(const mix_metric *metric, batch *b) {
  mix_numbers numbers = metric->options.label_weights;
  mix_shape shape = mix_tensor_shape(b->score);
  if (shape.rank != 2 || shape.dims[1] != numbers.count)
    return mix_fail_value("metric %s: %d label_weights; predictions must be (samples, %d)", metric->name,
                          numbers.count, numbers.count);
  mix_tensor *weights =
      mix_cast(mix_tensor_from(numbers.values, MIX_FLOAT64, MIX_SHAPE(numbers.count)), metric->dtype);
  b->weight = b->weight ? mix_multiply(b->weight, weights) : mix_broadcast_to(weights, shape);
  return !mix_failed();
}

static bool prepare(const mix_metric *metric, const mix_metric_args *args, mix_tensor *y_pred, batch *b) {
  const mix_metric_options *o = &metric->options;
  char text[2][160];
  if (!y_pred) return mix_fail_type("metric %s: update needs labels and predictions", metric->name);
  mix_tensor *y_true = args->y_true;
  mix_metric_align(&y_true, &y_pred);
  mix_shape y = mix_tensor_shape(y_true), p = mix_tensor_shape(y_pred);
  if (!mix_failed() && !mix_shape_equal(y, p))
    mix_fail_value("metric %s: labels have shape %s and predictions %s; expected the same", metric->name,
                   mix_shape_text(y, text[0], sizeof *text), mix_shape_text(p, text[1], sizeof *text));
  if (mix_failed()) return false;
  b->label = mix_cast(y_true, MIX_BOOL);
  b->score = mix_cast(y_pred, metric->dtype);
  if (o->top_k) b->score = largest_k(metric, b->score, o->top_k);
  mix_tensor *weight = args->sample_weight ? mix_cast(args->sample_weight, metric->dtype) : NULL;
  if (weight && b->score) weight = mix_align_weights(b->score, weight);
  if (mix_failed() || (o->has_class_id && !take_class(metric, b))) return false;
  if (weight) b->weight = mix_broadcast_to(weight, mix_tensor_shape(b->score));
  return !mix_failed() && (!o->label_weights.count || o->multi_label || label_weights(metric, b));
}

/* Flattens the batch, for a state without columns. */
static bool flatten(batch *b) {
  mix_shape list = MIX_SHAPE(mix_shape_size(mix_tensor_shape(b->score)));
  b->label = mix_reshape(b->label, list);
  b->score = mix_reshape(b->score, list);
  if (b->weight) b->weight = mix_reshape(b->weight, list);
  return !mix_failed();
}

/* ---- counting ---- */

/* Suffix sums along axis 0: adds the rows at distance 1, 2, 4, ... */
static mix_tensor *suffix_sums(mix_tensor *x) {
  mix_shape shape = mix_tensor_shape(x);
  for (int64_t by = 1; by < shape.dims[0] && x; by *= 2) {
    mix_shape begin = {.rank = shape.rank}, size = shape, after = begin;
    begin.dims[0] = after.dims[0] = by;
    size.dims[0] -= by;
    x = mix_add(x, mix_pad(mix_slice(x, begin, size), (mix_shape){.rank = shape.rank}, after, 0));
  }
  return x;
}

/* Rows [first, first + count) of x. */
static mix_tensor *rows(mix_tensor *x, int64_t first, int64_t count) {
  mix_shape begin = {.rank = mix_tensor_shape(x).rank, .dims = {first}}, size = mix_tensor_shape(x);
  size.dims[0] = count;
  return mix_slice(x, begin, size);
}

/* Even thresholds: prediction p falls into bucket ceil(p (n - 1)) - 1. One segment sum over buckets, first
 * for true labels and then for false ones, gives all counts. A prediction of 0 exceeds only a threshold
 * below 0; NaN exceeds none. */
static mix_status count_by_bucket(mix_metric *metric, const batch *b, int64_t columns) {
  const mix_thresholds *t = thresholds_of(metric);
  mix_tensor *n = mix_metric_number(metric, (double)(t->count - 1)), *zero = mix_metric_number(metric, 0);
  mix_tensor *one = mix_metric_number(metric, 1);
  mix_tensor *bucket = mix_subtract(mix_ceil(mix_multiply(mix_clip(b->score, zero, one), n)), one);
  if (t->with_ends) bucket = mix_maximum(bucket, zero);
  mix_tensor *above = mix_logical_and(mix_greater_equal(bucket, zero), mix_logical_not(mix_is_nan(b->score)));
  mix_tensor *index = mix_cast(mix_select(above, bucket, zero), MIX_INT64);
  index = mix_select(b->label, index, mix_add(index, mix_scalar((double)t->count, MIX_INT64)));
  if (columns) {
    mix_tensor *width = mix_scalar((double)columns, MIX_INT64);
    index = mix_add(mix_multiply(index, width), mix_range(0, (double)columns, 1, MIX_INT64));
  }
  mix_tensor *weight = b->weight ? b->weight : one;
  mix_tensor *sums =
      mix_segment_sum(mix_select(above, weight, zero), index, 2 * t->count * (columns ? columns : 1));
  if (columns) sums = mix_reshape(sums, MIX_SHAPE(2 * t->count, columns));
  if (!sums) return mix_error();
  mix_tensor *positives[] = {suffix_sums(rows(sums, 0, t->count)),
                             suffix_sums(rows(sums, t->count, t->count))};
  for (int side = 0; side < 2; side++) { /* true labels: TP, FN; false labels: FP, TN */
    mix_condition positive = side ? MIX_FALSE_POSITIVES : MIX_TRUE_POSITIVES,
                  negative = side ? MIX_TRUE_NEGATIVES : MIX_FALSE_NEGATIVES;
    if (t->state_index[positive] >= 0) mix_metric_add(metric, t->state_index[positive], positives[side]);
    if (t->state_index[negative] < 0) continue;
    mix_tensor *of_side = mix_select(side ? mix_logical_not(b->label) : b->label, weight, zero);
    mix_tensor *total =
        columns ? mix_reduce_sum(of_side, MIX_AXES(0), false) : mix_reduce_sum(of_side, MIX_ALL_AXES, false);
    mix_metric_add(metric, t->state_index[negative], mix_subtract(total, positives[side]));
  }
  return mix_error();
}

/* Any thresholds: compares every prediction with every threshold. */
static mix_status count_by_threshold(mix_metric *metric, const batch *b, int64_t columns) {
  const mix_thresholds *t = thresholds_of(metric);
  mix_shape shape = columns        ? MIX_SHAPE(t->count, 1, 1)
                    : t->count > 1 ? MIX_SHAPE(t->count, 1)
                                   : MIX_SHAPE(1);
  mix_tensor *list = mix_cast(mix_tensor_from(t->values, MIX_FLOAT64, shape), metric->dtype);
  mix_tensor *above = mix_greater(b->score, list);
  for (int c = 0; c < MIX_CONDITIONS; c++) {
    if (t->state_index[c] < 0) continue;
    bool positive = c == MIX_TRUE_POSITIVES || c == MIX_FALSE_POSITIVES,
         labelled = c == MIX_TRUE_POSITIVES || c == MIX_FALSE_NEGATIVES;
    mix_tensor *met = mix_logical_and(positive ? above : mix_logical_not(above),
                                      labelled ? b->label : mix_logical_not(b->label));
    mix_tensor *amount =
        b->weight ? mix_select(met, b->weight, mix_metric_number(metric, 0)) : mix_cast(met, metric->dtype);
    mix_tensor *sum = t->count > 1 || columns ? mix_reduce_sum(amount, MIX_AXES(1), false)
                                              : mix_reduce_sum(amount, MIX_ALL_AXES, true);
    mix_metric_add(metric, t->state_index[c], sum);
  }
  return mix_error();
}

mix_status mix_confusion_update(mix_metric *metric, const mix_metric_args *args, mix_tensor *y_pred) {
  const mix_thresholds *t = thresholds_of(metric);
  batch b = {0};
  if (!prepare(metric, args, y_pred ? y_pred : args->y_pred, &b)) return mix_error();
  int64_t columns =
      metric->options.multi_label ? mix_tensor_shape(b.score).dims[mix_tensor_shape(b.score).rank - 1] : 0;
  if (!columns && !flatten(&b)) return mix_error();
  return t->even ? count_by_bucket(metric, &b, columns) : count_by_threshold(metric, &b, columns);
}
