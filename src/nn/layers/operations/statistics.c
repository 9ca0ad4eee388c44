/* Statistics of NumPy: those that leave out NaN, norms, differences and running sums. */
#include "base/error.h"
#include "nn/layers/moments.h"
#include "nn/layers/operations/operation.h"
#include "ops/with_number.h"
#include <math.h>
#include <mixtape/linear_algebra.h>
#include <string.h>

static bool is_real(const mix_tensor *x) { return mix_dtype_is_floating(mix_tensor_dtype(x)); }
static mix_tensor *number(mix_tensor *x, double value) { return mix_scalar_like(x, value); }

/* ---- without NaN ---- */

/* x with `value` in place of NaN. */
static mix_tensor *without_nan(mix_tensor *x, double value) {
  return is_real(x) ? mix_select(mix_is_nan(x), number(x, value), x) : x;
}
/* Small integers and bool add up as int32. */
static mix_tensor *summed(mix_tensor *x) {
  const mix_dtype dtype = mix_tensor_dtype(x);
  return is_real(x) || mix_dtype_size(dtype) >= 4 ? x : mix_cast(x, MIX_INT32);
}
static mix_tensor *nansum(mix_tensor *x, mix_axes axes, bool keep) {
  return mix_reduce_sum(summed(without_nan(x, 0)), axes, keep);
}
static mix_tensor *nanprod(mix_tensor *x, mix_axes axes, bool keep) {
  return mix_reduce_prod(summed(without_nan(x, 1)), axes, keep);
}
/* How many are numbers, in x's dtype. */
static mix_tensor *numbers(mix_tensor *x, mix_axes axes, bool keep) {
  mix_tensor *count = mix_reduce_sum(mix_cast(mix_logical_not(mix_is_nan(x)), MIX_FLOAT32), axes, keep);
  return mix_cast(count, mix_tensor_dtype(x));
}
static mix_tensor *nanmean(mix_tensor *x, mix_axes axes, bool keep) {
  return mix_divide(nansum(x, axes, keep), numbers(x, axes, keep));
}
static mix_tensor *nanvar(mix_tensor *x, mix_axes axes, bool keep) {
  mix_tensor *centered = mix_subtract(x, nanmean(x, axes, true));
  mix_tensor *squares = mix_square(mix_select(mix_is_nan(x), mix_zeros_like(x), centered));
  return mix_divide(mix_reduce_sum(squares, axes, keep), numbers(x, axes, keep));
}
static mix_tensor *nanstd(mix_tensor *x, mix_axes axes, bool keep) { return mix_sqrt(nanvar(x, axes, keep)); }

static mix_tensor *nan_extreme(mix_tensor *x, mix_axes axes, bool keep, bool largest) {
  if (mix_tensor_dtype(x) == MIX_BOOL) return (largest ? mix_reduce_any : mix_reduce_all)(x, axes, keep);
  mix_tensor *(*reduce)(mix_tensor *, mix_axes, bool) = largest ? mix_reduce_max : mix_reduce_min;
  if (!is_real(x)) return reduce(x, axes, keep);
  mix_tensor *y = reduce(without_nan(x, largest ? -INFINITY : INFINITY), axes, keep);
  return mix_select(mix_reduce_all(mix_is_nan(x), axes, keep), number(y, NAN), y);
}
static mix_tensor *nanmax(mix_tensor *x, mix_axes axes, bool keep) {
  return nan_extreme(x, axes, keep, true);
}
static mix_tensor *nanmin(mix_tensor *x, mix_axes axes, bool keep) {
  return nan_extreme(x, axes, keep, false);
}

static mix_tensor *nan_place(const mix_operands *o, mix_tensor *x, bool largest) {
  const bool keep = mix_operand_flag(o, "keepdims"), whole = !mix_operand_json(o, "axis");
  const int rank = mix_operand_rank(x), axis = whole ? 0 : mix_operand_axis(o, "axis", rank);
  if (axis < 0) return NULL;
  mix_tensor *values = whole ? mix_flattened(x) : x;
  mix_tensor *clean = without_nan(values, largest ? -INFINITY : INFINITY);
  mix_tensor *y = mix_cast((largest ? mix_argmax : mix_argmin)(clean, axis), MIX_INT32);
  if (is_real(x)) y = mix_select(mix_reduce_all(mix_is_nan(values), MIX_AXES(axis), false), number(y, -1), y);
  for (int i = 0; keep && whole && i < rank; i++) y = mix_expand_dims(y, 0);
  return keep && !whole ? mix_expand_dims(y, axis) : y;
}
static mix_tensor *nanargmax(const mix_operands *o, mix_tensor *x) { return nan_place(o, x, true); }
static mix_tensor *nanargmin(const mix_operands *o, mix_tensor *x) { return nan_place(o, x, false); }

/* ---- running sums and products ---- */

typedef mix_tensor *running(mix_tensor *x, int axis);

/* Of TensorFlow: without the item itself, from the end. `unit` is the sum, or the product, of nothing. */
static mix_tensor *run_as(const mix_operands *o, mix_tensor *x, int axis, running *function) {
  const bool reverse = mix_operand_flag(o, "reverse"), exclusive = mix_operand_flag(o, "exclusive");
  const int64_t size = mix_operand_size(x, axis);
  if (mix_failed() || !size) return x;
  mix_tensor *y = function(reverse ? mix_flipped(x, axis) : x, axis);
  if (exclusive) {
    mix_shape before = {.rank = mix_operand_rank(x)};
    const mix_shape after = before;
    before.dims[axis] = 1;
    y = mix_pad(mix_layer_range(y, axis, 0, size - 1, 1), before, after, function != mix_cumulative_sum);
  }
  return y && reverse ? mix_flipped(y, axis) : y;
}
static mix_tensor *run_along(const mix_operands *o, mix_tensor *x, running *function) {
  x = mix_cast(x, mix_operand_dtype(o, "dtype", mix_tensor_dtype(x)));
  if (mix_tensor_dtype(x) == MIX_BOOL) x = mix_cast(x, MIX_INT32);
  if (!x) return NULL;
  if (!mix_operand_json(o, "axis")) {
    x = mix_flattened(x);
    return o->symbolic && x && mix_operand_size(x, 0) < 0 ? x : run_as(o, x, 0, function);
  }
  const int axis = mix_operand_axis(o, "axis", mix_operand_rank(x));
  if (axis < 0) return NULL;
  return o->symbolic && mix_operand_size(x, axis) < 0 ? x
                                                      : run_as(o, x, axis, function); /* of shapes alone */
}
static mix_tensor *cumsum(const mix_operands *o, mix_tensor *x) {
  return run_along(o, x, mix_cumulative_sum);
}
static mix_tensor *cumprod(const mix_operands *o, mix_tensor *x) {
  return run_along(o, x, mix_cumulative_product);
}
static mix_tensor *nancumsum(const mix_operands *o, mix_tensor *x) { return cumsum(o, without_nan(x, 0)); }
static mix_tensor *nancumprod(const mix_operands *o, mix_tensor *x) { return cumprod(o, without_nan(x, 1)); }

/* ---- ranges, differences and areas ---- */

static mix_tensor *ptp(mix_tensor *x, mix_axes axes, bool keep) {
  return mix_subtract(mix_reduce_max(x, axes, keep), mix_reduce_min(x, axes, keep));
}

/* All items along an axis but the first, or the last. */
static mix_tensor *without_end(mix_tensor *x, int axis, bool first) {
  const int64_t size = mix_operand_size(x, axis);
  return mix_layer_range(x, axis, first, size < 0 ? -1 : size - 1, 1);
}

static mix_tensor *diff(const mix_operands *o, mix_tensor *x) {
  const int64_t times = mix_operand_integer(o, "n");
  const int axis = mix_operand_axis(o, "axis", mix_operand_rank(x));
  if (axis < 0) return NULL;
  if (times < 0 || times > 1024) return mix_operand_refused(o, MIX_VALUE_ERROR, "n", "0 to 1024");
  for (int64_t i = 0; x && i < times && mix_operand_size(x, axis) > 0; i++) {
    mix_tensor *after = without_end(x, axis, true), *before = without_end(x, axis, false);
    x = (mix_tensor_dtype(x) == MIX_BOOL ? mix_not_equal : mix_subtract)(after, before);
  }
  return x;
}

static mix_tensor *trapezoid(const mix_operands *o, mix_tensor *y) {
  const int axis = mix_operand_axis(o, "axis", mix_operand_rank(y));
  if (axis < 0) return NULL;
  mix_tensor *heights = mix_times(mix_add(without_end(y, axis, true), without_end(y, axis, false)), 0.5);
  if (!mix_operand_json(o, "x"))
    return mix_reduce_sum(mix_times(heights, mix_operand_number(o, "dx")), MIX_AXES(axis), false);
  mix_tensor *x = mix_operand_like(o, "x", y);
  const int rank = mix_operand_rank(y);
  const bool line = x && mix_operand_rank(x) == 1;
  if (!x || (!line && mix_operand_rank(x) != rank))
    return mix_operand_refused(o, MIX_VALUE_ERROR, "x",
                               "places along the axis, for all or each of its lines");
  const int along = line ? 0 : axis;
  mix_tensor *steps = mix_subtract(without_end(x, along, true), without_end(x, along, false));
  for (int i = axis + 1; line && i < rank; i++) steps = mix_expand_dims(steps, -1);
  return mix_reduce_sum(mix_multiply(heights, steps), MIX_AXES(axis), false);
}

/* ---- norms ---- */

static mix_tensor *power_norm(mix_tensor *x, mix_axes axes, bool keep, double order) {
  if (order == 0)
    return mix_reduce_sum(mix_cast(mix_not_equal(x, number(x, 0)), mix_tensor_dtype(x)), axes, keep);
  if (order == 1) return mix_reduce_sum(mix_abs(x), axes, keep);
  if (order == 2) return mix_sqrt(mix_reduce_sum(mix_square(x), axes, keep));
  mix_tensor *sum = mix_reduce_sum(mix_power(mix_abs(x), number(x, order)), axes, keep);
  return mix_power(sum, number(sum, 1 / order));
}

/* Of matrices: sums along one axis, of which the largest or the smallest counts. */
static mix_tensor *matrix_norm(mix_tensor *x, mix_axes axes, bool keep, double order) {
  const bool columns = fabs(order) == 1;
  int summed_axis = axes.axis[columns ? 0 : 1], other = axes.axis[columns ? 1 : 0];
  mix_tensor *sums = mix_reduce_sum(mix_abs(x), MIX_AXES(summed_axis), true);
  mix_tensor *y = (order > 0 ? mix_reduce_max : mix_reduce_min)(sums, MIX_AXES(other), true);
  return keep ? y : mix_squeeze(y, axes);
}

/* By the singular values: the largest (2), the smallest (-2), or their sum (nuclear). */
static mix_tensor *spectral_norm(mix_tensor *x, mix_axes axes, bool keep, double order, bool nuclear) {
  const int first = axes.axis[0] < axes.axis[1] ? 0 : 1;
  mix_axes places = {.count = mix_operand_rank(x)};
  int next = 0;
  for (int i = 0; i < places.count; i++)
    if (i != axes.axis[0] && i != axes.axis[1]) places.axis[next++] = i;
  places.axis[next++] = axes.axis[0], places.axis[next++] = axes.axis[1];
  mix_list *parts = mix_svd(mix_transpose(x, places), false);
  mix_tensor *s = parts ? mix_list_get(parts, 0) : NULL;
  mix_tensor *y = (nuclear     ? mix_reduce_sum
                   : order > 0 ? mix_reduce_max
                               : mix_reduce_min)(s, MIX_AXES(-1), false);
  return keep ? mix_expand_dims(mix_expand_dims(y, axes.axis[first]), axes.axis[!first]) : y;
}

static mix_tensor *norm(const mix_operands *o, mix_tensor *x) {
  mix_axes axes = mix_operand_axes(o, "axis", mix_operand_rank(x));
  const bool keep = mix_operand_flag(o, "keepdims"), whole = !mix_operand_json(o, "axis");
  const json_t *given = mix_operand_json(o, "ord");
  double order = 2;
  const bool frobenius = json_is_string(given) && !strcmp(json_string_value(given), "fro"),
             nuclear = json_is_string(given) && !strcmp(json_string_value(given), "nuc");
  if (whole && given && mix_operand_rank(x) > 2)
    return mix_operation_fail(o, MIX_VALUE_ERROR, "ord without an axis needs a vector or a matrix");
  for (int i = 0; whole && i < mix_operand_rank(x); i++) axes.axis[axes.count++] = i;
  const bool matrix = given && axes.count == 2;
  if (mix_failed()) return NULL;
  if (!given || frobenius) return power_norm(x, axes, keep, 2);
  if (matrix && nuclear) return spectral_norm(x, axes, keep, 0, true);
  if (!mix_json_number_read(given, &order)) order = NAN;
  if (axes.count > 2 || order != order || (matrix && !isinf(order) && fabs(order) != 1 && fabs(order) != 2))
    return mix_operand_refused(o, MIX_UNSUPPORTED, "ord",
                               "fro, nuc, 1, -1, 2, -2, inf and -inf of matrices; a number of vectors");
  if (matrix && fabs(order) == 2) return spectral_norm(x, axes, keep, order, false);
  if (matrix) return matrix_norm(x, axes, keep, order);
  if (isinf(order)) return (order > 0 ? mix_reduce_max : mix_reduce_min)(mix_abs(x), axes, keep);
  return power_norm(x, axes, keep, order);
}

/* x divided by its norm along an axis, which is at least epsilon. */
static mix_tensor *normalize(const mix_operands *o, mix_tensor *x) {
  const mix_axes axes = mix_operand_axes(o, "axis", mix_operand_rank(x));
  const double order = mix_operand_number(o, "order");
  const double least = mix_operand_json(o, "epsilon") ? mix_operand_number(o, "epsilon") : 1e-7;
  if (mix_failed()) return NULL;
  if (!(order >= 1)) return mix_operand_refused(o, MIX_VALUE_ERROR, "order", "a number of at least 1");
  if (order == 2) {
    mix_tensor *sum = mix_reduce_sum(mix_square(x), axes, true);
    return mix_multiply(x, mix_minimum(mix_rsqrt(sum), number(sum, 1 / least)));
  }
  mix_tensor *size = isinf(order) ? mix_reduce_max(mix_abs(x), axes, true) : power_norm(x, axes, true, order);
  return mix_divide(x, mix_maximum(size, number(size, least)));
}

/* ---- moments and errors ---- */

static mix_list *moments(const mix_operands *o, mix_tensor *x) {
  const mix_axes axes = mix_operand_axes(o, "axes", mix_operand_rank(x));
  mix_tensor *mean, *variance;
  mix_operand_flag(o, "synchronized"); /* a batch is on one device */
  if (mix_failed() || !mix_moments(x, axes, true, &mean, &variance)) return NULL;
  if (mix_operand_flag(o, "keepdims")) return mix_list_of(mean, variance);
  mean = mix_squeeze(mean, axes), variance = mix_squeeze(variance, axes);
  return mix_failed() ? NULL : mix_list_of(mean, variance);
}

/* 20 log10(largest) - 10 log10(mean squared error). */
static mix_tensor *psnr(const mix_operands *o, mix_tensor *x) {
  static const char *const names[] = {"x1", "x2"};
  mix_tensor *pair[2];
  const double largest = mix_operand_number(o, "max_val");
  if (!mix_operands_promoted(o, 2, names, pair)) return NULL;
  mix_tensor *error = mix_reduce_mean(mix_squared_difference(pair[0], pair[1]), MIX_ALL_AXES, false);
  return mix_subtract(number(error, 20 * log10(largest)), mix_times(mix_log(error), 10 / log(10)));
}

/* ---- the tables ---- */

#define REDUCTION(name, function, ...)                                                                       \
  MIX_KERAS_OPERATION(name, "numpy", "x", "axis keepdims", .reduce = function, __VA_ARGS__)
#define FLOATING(name, function) REDUCTION(name, function, .rule = MIX_OPERANDS_FLOATING)
#define RUNNING(name, function) MIX_KERAS_OPERATION(name, "numpy", "x", "axis dtype", .build = function)

const mix_keras_operation mix_keras_statistic_operations[] = {
    REDUCTION("Nansum", nansum),
    REDUCTION("Nanprod", nanprod),
    REDUCTION("Nanmax", nanmax),
    REDUCTION("Nanmin", nanmin),
    REDUCTION("Ptp", ptp, .is_spread = true),
    FLOATING("Nanmean", nanmean),
    FLOATING("Nanvar", nanvar),
    FLOATING("Nanstd", nanstd),
    MIX_KERAS_OPERATION("Nanargmax", "numpy", "x", "axis keepdims", .build = nanargmax),
    MIX_KERAS_OPERATION("Nanargmin", "numpy", "x", "axis keepdims", .build = nanargmin),
    RUNNING("Cumsum", cumsum),
    RUNNING("Cumprod", cumprod),
    RUNNING("Nancumsum", nancumsum),
    RUNNING("Nancumprod", nancumprod),
    MIX_KERAS_OPERATION("Diff", "numpy", "a", "n=1 axis=-1", .build = diff),
    MIX_KERAS_OPERATION("Trapezoid", "numpy", "y", "x dx=1 axis=-1", .build = trapezoid,
                        .rule = MIX_OPERANDS_FLOATING),
    MIX_KERAS_OPERATION("Norm", "linalg", "x", "ord axis keepdims", .build = norm,
                        .rule = MIX_OPERANDS_FLOATING),
    MIX_KERAS_OPERATION("Normalize", "nn", "x", "axis=-1 order=2 epsilon", .build = normalize,
                        .rule = MIX_OPERANDS_FLOATING),
    MIX_KERAS_OPERATION("Moments", "nn", "x", "axes keepdims synchronized", .results = moments),
    MIX_KERAS_OPERATION("PSNR", "nn", "x1 x2", "max_val", .build = psnr, .rule = MIX_OPERANDS_FLOATING),
    {.operation = {0}}};

#define TF_RUNNING(name, function) MIX_TF_OPERATION(name, "x", "axis=0 exclusive reverse", .build = function)

const mix_operation mix_tf_statistic_operations[] = {
    TF_RUNNING("math.cumsum", cumsum), TF_RUNNING("math.cumprod", cumprod), {0}};
