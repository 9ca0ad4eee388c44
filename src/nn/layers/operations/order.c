/* Operations that sort: order statistics, places in sorted sequences, and values that occur. */
#include "base/error.h"
#include "nn/layers/operations/operation.h"
#include "nn/layers/spatial/spatial.h"
#include "ops/with_number.h"
#include <math.h>
#include <string.h>

static mix_tensor *number(mix_tensor *x, double value) { return mix_scalar_like(x, value); }

/* x, or all its elements, and the axis; -1 with the error recorded. */
static int axis_of(const mix_operands *o, mix_tensor **x) {
  if (mix_operand_json(o, "axis")) return mix_operand_axis(o, "axis", mix_operand_rank(*x));
  *x = mix_flattened(*x);
  return *x ? 0 : -1;
}

static mix_tensor *sort(const mix_operands *o, mix_tensor *x) {
  const int axis = axis_of(o, &x);
  return axis < 0 ? NULL : mix_sort(x, axis, false);
}
static mix_tensor *argsort(const mix_operands *o, mix_tensor *x) {
  const int axis = axis_of(o, &x);
  return axis < 0 ? NULL : mix_argsort(x, axis, false);
}
/* Sorted or not, the largest come first. */
static mix_list *top_k(const mix_operands *o, mix_tensor *x) {
  const int64_t k = mix_operand_integer(o, "k");
  mix_operand_flag(o, "sorted");
  return mix_failed() ? NULL : mix_top_k(x, k);
}

/* Are fewer than k predictions larger than that of the target? Not where it is no finite number. */
static mix_tensor *in_top_k(const mix_operands *o, mix_tensor *targets) {
  mix_tensor *predictions = mix_operand(o, "predictions");
  const double k = (double)mix_operand_integer(o, "k");
  if (mix_failed()) return NULL;
  mix_tensor *own = mix_take_along_axis(predictions, mix_expand_dims(targets, -1), -1);
  mix_tensor *larger = mix_cast(mix_greater(predictions, own), MIX_INT32);
  mix_tensor *place = mix_reduce_sum(larger, MIX_AXES(-1), false);
  return mix_logical_and(mix_less(place, number(place, k)), mix_is_finite(mix_squeeze(own, MIX_AXES(-1))));
}

/* The predictions come first in files of tf_keras. */
static mix_tensor *tf_in_top_k(const mix_operands *o, mix_tensor *x) {
  mix_tensor *targets = mix_operand(o, "targets");
  return targets ? in_top_k(o, targets) : NULL;
}

/* ---- quantiles ---- */

enum { MOST_QUANTILES = 256 };

/* The axes behind the others, as one. */
static mix_tensor *with_axes_last(mix_tensor *x, mix_axes axes) {
  const mix_shape shape = mix_tensor_shape(x);
  mix_shape flat = {.rank = 0};
  mix_axes order = {.count = 0};
  int64_t size = 1;
  for (int i = 0; i < shape.rank; i++) {
    bool chosen = false;
    for (int k = 0; k < axes.count; k++) chosen |= axes.axis[k] == i;
    if (!chosen) order.axis[order.count++] = i, flat.dims[flat.rank++] = shape.dims[i];
  }
  for (int k = 0; k < axes.count; k++) {
    const int64_t part = shape.dims[axes.axis[k]];
    order.axis[order.count++] = axes.axis[k];
    size = size < 0 || part < 0 ? MIX_UNKNOWN : size * part;
  }
  flat.dims[flat.rank++] = size;
  return mix_layer_reshape(shape.rank > 1 ? mix_transpose(x, order) : x, flat);
}

/* The elements at `places` of the sorted last axis, and of two neighbours the part of the first in `parts`.
 */
typedef struct quantiles {
  int count;
  double places[2][MOST_QUANTILES], parts[MOST_QUANTILES];
  bool pairs;
} quantiles;

static bool find_places(const char *method, double last, double q, quantiles *all) {
  const int i = all->count++;
  const double exact = last * q;
  double low = floor(exact), high = ceil(exact);
  if (!strcmp(method, "lower")) return all->places[0][i] = low, true;
  if (!strcmp(method, "higher")) return all->places[0][i] = high, true;
  if (!strcmp(method, "nearest")) return all->places[0][i] = nearbyint(exact), true;
  all->pairs = true;
  const bool middle = !strcmp(method, "midpoint");
  if (!middle) { /* also where the place is exact, which keeps both gradients as Keras does */
    low = fmax(high - 1, 0);
    high = fmin(low + 1, last);
  }
  all->places[0][i] = low, all->places[1][i] = high;
  all->parts[i] = middle ? 0.5 : high - exact;
  return middle || !strcmp(method, "linear");
}

/* q: NULL for a half. */
static mix_tensor *quantile_of(const mix_operands *o, mix_tensor *x, const json_t *q, double unit,
                               const char *method) {
  const mix_axes axes = mix_operand_axes(o, "axis", mix_operand_rank(x));
  const bool keep = mix_operand_flag(o, "keepdims"), listed = json_is_array(q),
             whole = !mix_operand_json(o, "axis");
  const int count = listed ? (int)json_array_size(q) : 1, rank = mix_operand_rank(x);
  quantiles all = {.count = 0};
  if (mix_failed()) return NULL;
  mix_tensor *wide = whole ? mix_flattened(x) : with_axes_last(x, axes);
  if (!wide) return NULL;
  const int end = mix_operand_rank(wide) - 1;
  const int64_t size = mix_operand_size(wide, end);
  bool good = count <= MOST_QUANTILES;
  for (int i = 0; good && i < count; i++) {
    double value = 0.5;
    good = !q || mix_json_number_read(listed ? json_array_get(q, (size_t)i) : q, &value);
    good = good && value * unit >= 0 && value * unit <= 1;
    if (good && !find_places(method, (double)(size < 0 ? 0 : size - 1), value * unit, &all))
      return mix_operand_refused(o, MIX_VALUE_ERROR, "method", "linear, lower, higher, midpoint or nearest");
  }
  if (!good || !size)
    return mix_operand_refused(o, MIX_VALUE_ERROR, "q",
                               "at most 256 numbers inside the range, of an axis with "
                               "elements");
  mix_tensor *y = NULL, *sorted = size < 0 ? wide : mix_sort(wide, end, false);
  for (int side = 0; side <= all.pairs && sorted; side++) {
    mix_tensor *places = mix_tensor_from_doubles(all.places[side], MIX_INT64, MIX_SHAPE(count)),
               *parts = mix_tensor_from_doubles(all.parts, mix_tensor_dtype(wide), MIX_SHAPE(count));
    mix_tensor *taken = mix_gather(sorted, places, end);
    if (all.pairs) taken = mix_multiply(taken, side ? mix_subtract(number(parts, 1), parts) : parts);
    y = side ? mix_add(taken, y) : taken;
  }
  y = mix_select(mix_reduce_any(mix_is_nan(wide), MIX_AXES(end), true), number(wide, NAN), y);
  if (!y) return NULL;
  y = listed ? mix_axis_moved(y, end, 0) : mix_squeeze(y, MIX_AXES(end));
  for (int i = 0; keep && i < rank; i++) {
    bool dropped = whole;
    for (int k = 0; k < axes.count; k++) dropped |= axes.axis[k] == i;
    if (dropped) y = mix_expand_dims(y, i + listed);
  }
  return y;
}
static mix_tensor *quantile_given(const mix_operands *o, mix_tensor *x, double unit, const char *method) {
  const json_t *q = mix_operand_json(o, "q");
  return q ? quantile_of(o, x, q, unit, method) : mix_operand_refused(o, MIX_TYPE_ERROR, "q", "numbers");
}
/* Keras's layers of quantiles keep their method and do not use it. */
static mix_tensor *quantile(const mix_operands *o, mix_tensor *x) {
  return quantile_given(o, x, 1, "linear");
}
static mix_tensor *percentile(const mix_operands *o, mix_tensor *x) {
  const char *method = mix_operand_text(o, "method");
  return method ? quantile_given(o, x, 0.01, method) : NULL;
}
static mix_tensor *median(const mix_operands *o, mix_tensor *x) {
  return quantile_of(o, x, NULL, 1, "linear");
}

/* ---- places in sorted sequences ---- */

/* The place of each element in the order of all. */
static mix_tensor *ranks_of(mix_tensor *x) { return mix_argsort(mix_argsort(x, 0, false), 0, false); }

/* How many elements of a sequence come before each of the values: their places among both, without those
 * among themselves. */
static mix_tensor *places_in(mix_tensor *sequence, mix_tensor *values, bool right) {
  const mix_shape shape = mix_tensor_shape(values);
  const int64_t count = mix_operand_size(sequence, 0), size = mix_shape_size(shape);
  if (count < 0 || size < 0) return mix_cast(mix_open_result(values, shape), MIX_INT32); /* of shapes alone */
  mix_tensor *flat = mix_reshape(values, MIX_SHAPE(size));
  mix_tensor *both[] = {right ? sequence : flat, right ? flat : sequence};
  mix_tensor *ranks =
      mix_slice(ranks_of(mix_concat(2, both, 0)), MIX_SHAPE(right ? count : 0), MIX_SHAPE(size));
  return mix_reshape(mix_subtract(ranks, ranks_of(flat)), shape);
}

static mix_tensor *searchsorted(const mix_operands *o, mix_tensor *x) {
  static const char *const names[] = {"sorted_sequence", "values"};
  mix_tensor *pair[2];
  const char *side = mix_operand_text(o, "side");
  if (!side || !mix_operands_promoted(o, 2, names, pair)) return NULL;
  if (mix_operand_rank(pair[0]) != 1 || (strcmp(side, "left") && strcmp(side, "right")))
    return mix_operation_fail(o, MIX_VALUE_ERROR, "expected a vector, and the side left or right");
  return places_in(pair[0], pair[1], *side == 'r');
}
static mix_tensor *digitize(const mix_operands *o, mix_tensor *x) {
  mix_tensor *bins = mix_cast(mix_operand(o, "bins"), MIX_FLOAT32);
  if (!bins || mix_operand_rank(bins) != 1)
    return mix_operand_refused(o, MIX_VALUE_ERROR, "bins", "a list of numbers");
  return places_in(bins, mix_cast(x, MIX_FLOAT32), true);
}

static mix_tensor *isin(const mix_operands *o, mix_tensor *x) {
  static const char *const names[] = {"x1", "x2"};
  mix_tensor *pair[2];
  const bool inverted = mix_operand_flag(o, "invert");
  mix_operand_flag(o, "assume_unique");
  if (!mix_operands_promoted(o, 2, names, pair)) return NULL;
  mix_tensor *all = mix_flattened(pair[1]);
  if (!all || mix_operand_size(all, 0) < 0)
    return all ? mix_cast(pair[0], MIX_BOOL) : NULL; /* of shapes alone */
  mix_tensor *first = places_in(mix_sort(all, 0, false), pair[0], false),
             *behind = places_in(mix_sort(all, 0, false), pair[0], true);
  return (inverted ? mix_equal : mix_less)(first, behind);
}

/* ---- values that occur ---- */

/* The first `size` of them, and the fill value behind them. Those that begin a run of the sorted elements
 * come to the front, in their order. */
static mix_tensor *unique(const mix_operands *o, mix_tensor *x) {
  if (!mix_operand_json(o, "size"))
    return mix_operation_fail(o, MIX_UNSUPPORTED,
                              "how many values occur depends on the values; Unique needs its argument size");
  const int64_t size = mix_operand_integer(o, "size");
  const double fill = mix_operand_json(o, "fill_value") ? mix_operand_number(o, "fill_value") : 0;
  mix_tensor *all = mix_flattened(x);
  if (mix_failed()) return NULL;
  const int64_t count = mix_operand_size(all, 0);
  if (size < 0 || size > 1 << 24) return mix_operand_refused(o, MIX_VALUE_ERROR, "size", "0 to 2^24 values");
  if (count < 0) return mix_open_result(all, MIX_SHAPE(size));
  if (count == 0) return mix_fill(MIX_SHAPE(size), fill, mix_tensor_dtype(x));
  mix_tensor *sorted = mix_sort(all, 0, false);
  mix_tensor *others = mix_not_equal(mix_slice(sorted, MIX_SHAPE(1), MIX_SHAPE(-1)),
                                     mix_slice(sorted, MIX_SHAPE(0), MIX_SHAPE(count - 1)));
  mix_tensor *begins[] = {mix_fill(MIX_SHAPE(1), 1, MIX_BOOL), others};
  mix_tensor *first = mix_concat(2, begins, 0), *order = mix_argsort(first, 0, true);
  mix_tensor *values =
      mix_select(mix_gather(first, order, 0), mix_gather(sorted, order, 0), number(sorted, fill));
  const int64_t kept = size < count ? size : count;
  return mix_pad(mix_slice(values, MIX_SHAPE(0), MIX_SHAPE(kept)), MIX_SHAPE(0), MIX_SHAPE(size - kept),
                 fill);
}

/* Are sizes equal where both are known? */
static bool fit(mix_shape a, mix_shape b) {
  bool fits = a.rank == b.rank;
  for (int i = 0; fits && i < a.rank; i++)
    fits = a.dims[i] == b.dims[i] || a.dims[i] == MIX_UNKNOWN || b.dims[i] == MIX_UNKNOWN;
  return fits;
}
/* How often each value below `minlength` occurs along the last axis, or the sums of weights. In Keras a
 * larger value adds bins; here it is the error of a gather. */
static mix_tensor *bincount(const mix_operands *o, mix_tensor *x) {
  const int64_t bins = mix_operand_integer(o, "minlength");
  const mix_shape shape = mix_tensor_shape(x);
  const bool weighted = mix_operand_json(o, "weights");
  mix_tensor *weights = weighted ? mix_operand(o, "weights") : NULL;
  if (mix_failed()) return NULL;
  if (bins < 1 || bins > 1 << 24)
    return mix_operand_refused(o, MIX_UNSUPPORTED, "minlength",
                               "1 to 2^24, more than the largest value: how many results there are may not "
                               "depend on the values");
  if (shape.rank < 1 || shape.rank > 2 || (weighted && !fit(shape, mix_tensor_shape(weights))))
    return mix_operation_fail(o, MIX_VALUE_ERROR, "expected a vector or a matrix, and weights like it");
  const int64_t rows = shape.rank == 2 ? shape.dims[0] : 1;
  const mix_dtype from = mix_tensor_dtype(x),
                  dtype = weighted ? mix_promoted_dtype(from, mix_tensor_dtype(weights)) : MIX_INT32;
  const mix_shape result = shape.rank == 2 ? MIX_SHAPE(rows, bins) : MIX_SHAPE(bins);
  if (mix_shape_size(shape) < 0) return mix_cast(mix_open_result(x, result), dtype); /* of shapes alone */
  if (rows > INT64_MAX / bins)
    return mix_operand_refused(o, MIX_VALUE_ERROR, "minlength", "as many results as there is memory for");
  mix_tensor *places = mix_gather(mix_range(0, (double)bins, 1, MIX_INT64), mix_cast(x, MIX_INT64), 0);
  if (shape.rank == 2) {
    mix_tensor *begins = mix_range(0, (double)rows, 1, MIX_INT64);
    places = mix_add(places, mix_expand_dims(mix_times(begins, (double)bins), 1));
  }
  weights = weighted ? mix_cast(weights, dtype) : mix_fill(shape, 1, MIX_INT32);
  return mix_reshape(mix_segment_sum(weights, places, rows * bins), result);
}

static mix_tensor *swapped(mix_tensor *x, int a, int b) {
  mix_axes order = {.count = mix_operand_rank(x)};
  for (int i = 0; i < order.count; i++) order.axis[i] = i == a ? b : i == b ? a : i;
  return x ? mix_transpose(x, order) : NULL;
}
/* Keras on TensorFlow to the letter, which is a partition of vectors of integers alone: values are cast to
 * int32, the smallest of all rows of the first axis are marked at the places of the other axes, and those at
 * the marks count as 0 when the largest of the rest are found. */
static mix_tensor *argpartition(const mix_operands *o, mix_tensor *x) {
  const int axis = axis_of(o, &x);
  int64_t k = mix_operand_integer(o, "kth");
  if (axis < 0 || mix_failed()) return NULL;
  const int last = mix_operand_rank(x) - 1;
  x = swapped(mix_cast(x, MIX_INT32), axis, last);
  const mix_shape shape = mix_tensor_shape(x);
  const int64_t size = shape.dims[last];
  if (mix_shape_size(shape) < 0) return swapped(x, axis, last); /* of shapes alone */
  if (!size) return mix_operation_fail(o, MIX_VALUE_ERROR, "the axis has no elements");
  k = (k < 0 ? 0 : k < size ? k : size - 1) + 1;
  mix_tensor *bottom = mix_list_get(mix_top_k(mix_negative(x), k), 1);
  mix_tensor *marks = mix_reduce_any(mix_one_hot(bottom, size, MIX_BOOL), MIX_AXES(0), false);
  mix_shape before = {.rank = shape.rank}, after = before;
  for (int i = 0; marks && i < shape.rank; i++) {
    after.dims[i] = shape.dims[i] - mix_operand_size(marks, i);
    if (after.dims[i] < 0)
      return mix_operation_fail(o, MIX_UNSUPPORTED,
                                "%s has fewer rows along axis %d than Keras's result needs",
                                MIX_SHAPE_TEXT(shape), i);
  }
  mix_tensor *rest = mix_select(mix_pad(marks, before, after, 0), mix_zeros_like(x), x);
  if (k == size) return swapped(bottom, axis, last);
  mix_tensor *both[] = {bottom, mix_list_get(mix_top_k(rest, size - k), 1)};
  return swapped(mix_concat(2, both, last), axis, last);
}

/* ---- sparsemax ---- */

/* Martins and Astudillo: From softmax to sparsemax, 2016. */
static mix_tensor *sparsemax(const mix_operands *o, mix_tensor *x) {
  const int axis = mix_operand_axis(o, "axis", mix_operand_rank(x));
  if (axis < 0 || mix_operand_size(x, axis) < 0) return axis < 0 ? NULL : x;
  const int64_t size = mix_operand_size(x, axis);
  mix_tensor *sorted = mix_sort(x, axis, true), *sums = mix_cumulative_sum(sorted, axis);
  mix_tensor *counts = mix_range(1, (double)size + 1, 1, mix_tensor_dtype(x));
  for (int i = axis + 1; i < mix_operand_rank(x); i++) counts = mix_expand_dims(counts, -1);
  mix_tensor *bound = mix_divide(mix_plus(sums, -1), counts), *support = mix_greater(sorted, bound);
  mix_tensor *inside = mix_select(support, sums, number(x, 0)),
             *taken = mix_cast(support, mix_tensor_dtype(x));
  mix_tensor *k = mix_reduce_sum(taken, MIX_AXES(axis), true);
  mix_tensor *tau = mix_divide(mix_plus(mix_reduce_sum(inside, MIX_AXES(axis), true), -1), k);
  return mix_maximum(mix_subtract(x, tau), number(x, 0));
}

/* Of TensorFlow: from the smallest or from the largest. */
static mix_tensor *in_direction(const mix_operands *o, mix_tensor *x,
                                mix_tensor *(*function)(mix_tensor *, int, bool)) {
  const char *direction = mix_operand_text(o, "direction");
  const int axis = axis_of(o, &x);
  if (axis < 0 || !direction) return NULL;
  const bool descending = !strcmp(direction, "DESCENDING");
  if (!descending && strcmp(direction, "ASCENDING"))
    return mix_operand_refused(o, MIX_VALUE_ERROR, "direction", "ASCENDING or DESCENDING");
  return function(x, axis, descending);
}
static mix_tensor *tf_sort(const mix_operands *o, mix_tensor *x) { return in_direction(o, x, mix_sort); }
static mix_tensor *tf_argsort(const mix_operands *o, mix_tensor *x) {
  return in_direction(o, x, mix_argsort);
}

/* ---- the tables ---- */

#define QUANTILE(name, operands, options, function)                                                          \
  MIX_KERAS_OPERATION(name, "numpy", operands, options, .build = function, .rule = MIX_OPERANDS_FLOATING)

const mix_keras_operation mix_keras_order_operations[] = {
    MIX_KERAS_OPERATION("Sort", "numpy", "x", "?axis=-1", .build = sort),
    MIX_KERAS_OPERATION("Argsort", "numpy", "x", "?axis=-1", .build = argsort),
    MIX_KERAS_OPERATION("TopK", "math", "x", "k sorted", .results = top_k),
    MIX_KERAS_OPERATION("InTopK", "math", "targets predictions", "k", .build = in_top_k),
    QUANTILE("Median", "x", "axis keepdims", median),
    QUANTILE("Quantile", "x q", "axis method=\"linear\" keepdims", quantile),
    QUANTILE("Percentile", "x q", "axis method=\"linear\" keepdims", percentile),
    MIX_KERAS_OPERATION("SearchSorted", "numpy", "sorted_sequence values", "side=\"left\"",
                        .build = searchsorted),
    MIX_KERAS_OPERATION("Digitize", "numpy", "x bins", "", .build = digitize),
    MIX_KERAS_OPERATION("IsIn", "numpy", "x1 x2", "assume_unique invert", .build = isin),
    MIX_KERAS_OPERATION(
        "Unique", "numpy", "x",
        "!sorted=true !return_index=false !return_inverse=false !return_counts=false !axis size "
        "fill_value",
        .build = unique),
    MIX_KERAS_OPERATION("Nonzero", "numpy", "x", "",
                        .refusal = "how many results it has depends on the values; a model's shapes do not"),
    MIX_KERAS_OPERATION("Bincount", "numpy", "x", "weights minlength=0 !sparse=false", .build = bincount),
    MIX_KERAS_OPERATION("Argpartition", "numpy", "x", "kth ?axis=-1", .build = argpartition),
    MIX_KERAS_OPERATION("Sparsemax", "nn", "x", "axis=-1", .build = sparsemax, .rule = MIX_OPERANDS_FLOATING),
    {.operation = {0}}};

#define DIRECTION "axis=-1 direction=\"ASCENDING\" "

const mix_operation mix_tf_order_operations[] = {
    MIX_TF_OPERATION("sort", "values", DIRECTION, .build = tf_sort),
    MIX_TF_OPERATION("argsort", "values", DIRECTION "stable", .build = tf_argsort),
    MIX_TF_OPERATION("math.top_k", "input", "k=1 sorted=true", .results = top_k),
    MIX_TF_OPERATION("math.in_top_k", "targets", "predictions k", .build = in_top_k),
    MIX_TF_OPERATION("compat.v1.math.in_top_k", "predictions", "targets k", .build = tf_in_top_k),
    {0}};
