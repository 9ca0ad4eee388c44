/* Operations that reduce axes. */
#include "base/error.h"
#include "nn/formulas.h"
#include "nn/layers/moments.h"
#include "nn/layers/operations/operation.h"
#include <string.h>

static int rank_of(const mix_tensor *x) { return mix_tensor_shape(x).rank; }

/* ---- float32 inside, the dtype of the operand outside ---- */

static mix_tensor *widened(mix_tensor *x) { return mix_cast(x, mix_widened(mix_tensor_dtype(x))); }
static mix_tensor *narrowed(mix_tensor *y, mix_tensor *x) {
  const mix_dtype dtype = mix_tensor_dtype(x);
  return mix_dtype_is_floating(dtype) ? mix_cast(y, dtype) : y;
}
static mix_tensor *mean(mix_tensor *x, mix_axes axes, bool keep) {
  return narrowed(mix_reduce_mean(widened(x), axes, keep), x);
}
static mix_tensor *var(mix_tensor *x, mix_axes axes, bool keep) {
  return narrowed(mix_reduce_variance(widened(x), axes, keep), x);
}
static mix_tensor *std(mix_tensor *x, mix_axes axes, bool keep) {
  return mix_sqrt(mix_reduce_variance(x, axes, keep));
}

/* ---- sums ---- */

/* Small integers add up as int32. */
static mix_tensor *summed(mix_tensor *x) {
  const mix_dtype dtype = mix_tensor_dtype(x);
  const bool small = dtype == MIX_BOOL || dtype == MIX_INT8 || dtype == MIX_INT16 || dtype == MIX_UINT8;
  return small ? mix_cast(x, MIX_INT32) : x;
}
static mix_tensor *sum(mix_tensor *x, mix_axes axes, bool keep) {
  return mix_reduce_sum(summed(x), axes, keep);
}
static mix_tensor *count_nonzero(mix_tensor *x, mix_axes axes, bool keep) {
  return mix_reduce_sum(mix_cast(mix_cast(x, MIX_BOOL), MIX_INT32), axes, keep);
}

/* ---- extremes ---- */

static mix_tensor *extreme(const mix_operands *o, mix_tensor *x, bool largest) {
  const mix_axes axes = mix_operand_axes(o, "axis", rank_of(x));
  const bool keep = mix_operand_flag(o, "keepdims");
  if (!axes.count && json_is_array(mix_operand_json(o, "axis"))) return x;
  if (mix_tensor_dtype(x) == MIX_BOOL) return (largest ? mix_reduce_any : mix_reduce_all)(x, axes, keep);
  mix_tensor *y = (largest ? mix_reduce_max : mix_reduce_min)(x, axes, keep);
  if (!mix_operand_json(o, "initial")) return y;
  return (largest ? mix_maximum : mix_minimum)(y, mix_scalar_like(y, mix_operand_number(o, "initial")));
}
static mix_tensor *max(const mix_operands *o, mix_tensor *x) { return extreme(o, x, true); }
static mix_tensor *min(const mix_operands *o, mix_tensor *x) { return extreme(o, x, false); }

/* The place along an axis, or in all elements. */
static mix_tensor *place(const mix_operands *o, mix_tensor *x, mix_tensor *(*find)(mix_tensor *x, int axis)) {
  const bool keep = mix_operand_flag(o, "keepdims"), whole = !mix_operand_json(o, "axis");
  const int rank = rank_of(x), axis = whole ? 0 : mix_operand_axis(o, "axis", rank);
  mix_tensor *y = mix_cast(find(whole ? mix_reshape(x, MIX_SHAPE(MIX_UNKNOWN)) : x, axis),
                           mix_operand_dtype(o, "output_type", MIX_INT32));
  for (int i = 0; keep && whole && i < rank; i++) y = mix_expand_dims(y, 0);
  return keep && !whole ? mix_expand_dims(y, axis) : y;
}
static mix_tensor *argmax(const mix_operands *o, mix_tensor *x) { return place(o, x, mix_argmax); }
static mix_tensor *argmin(const mix_operands *o, mix_tensor *x) { return place(o, x, mix_argmin); }

/* ---- with further options ---- */

/* With a dtype, Keras on TensorFlow multiplies in that of x as it is. */
static mix_tensor *prod(const mix_operands *o, mix_tensor *x) {
  const bool typed = mix_operand_dtype(o, "dtype", MIX_DTYPE_NONE) != MIX_DTYPE_NONE;
  return mix_reduce_prod(typed ? x : summed(x), mix_operand_axes(o, "axis", rank_of(x)),
                         mix_operand_flag(o, "keepdims"));
}

static mix_tensor *average(const mix_operands *o, mix_tensor *x) {
  static const char *const names[] = {"x", "weights"};
  mix_tensor *pair[2];
  const mix_axes axes = mix_operand_axes(o, "axis", rank_of(x));
  if (!mix_operand_json(o, "weights")) return mean(x, axes, false);
  if (!mix_operands_promoted(o, 2, names, pair)) return NULL;
  if (!mix_shape_equal(mix_tensor_shape(pair[0]), mix_tensor_shape(pair[1])))
    return mix_operation_fail(o, MIX_UNSUPPORTED, "weights of another shape than x are not supported");
  mix_tensor *total = mix_reduce_sum(mix_multiply(pair[0], pair[1]), axes, false);
  return mix_divide(total, mix_reduce_sum(pair[1], axes, false));
}

static mix_tensor *l2_normalize(const mix_operands *o, mix_tensor *x) {
  return mix_scale_to_unit(x, mix_operand_axes(o, "axis", rank_of(x)), mix_operand_number(o, "epsilon"));
}

static mix_tensor *norm(mix_tensor *x, mix_axes axes, bool keep) {
  return mix_sqrt(mix_reduce_sum(mix_square(x), axes, keep));
}

/* Mean and variance; of float16 in float32, rounded at the end. */
static mix_list *moments(const mix_operands *o, mix_tensor *x) {
  const mix_axes axes = mix_operand_axes(o, "axes", rank_of(x));
  const mix_dtype dtype = mix_tensor_dtype(x);
  mix_tensor *y = dtype == MIX_FLOAT16 ? mix_cast(x, MIX_FLOAT32) : x, *mean = mix_reduce_mean(y, axes, true);
  mix_tensor *variance = mix_reduce_mean(mix_squared_difference(y, mix_stop_gradient(mean)), axes, true);
  if (!mix_operand_flag(o, "keepdims")) {
    mean = mix_squeeze(mean, axes);
    variance = mix_squeeze(variance, axes);
  }
  return mix_list_of(mix_cast(mean, dtype), mix_cast(variance, dtype));
}

/* ---- Keras ---- */

#define REDUCTION(name, module, function, ...)                                                               \
  MIX_KERAS_OPERATION(name, module, "x", "axis keepdims", .reduce = function, __VA_ARGS__)

const mix_keras_operation mix_keras_reduction_operations[] = {
    REDUCTION("Mean", "numpy", mean),
    REDUCTION("Sum", "numpy", sum),
    REDUCTION("Var", "numpy", var, .is_spread = true),
    REDUCTION("Std", "numpy", std, .is_spread = true, .rule = MIX_OPERANDS_FLOATING),
    REDUCTION("Any", "numpy", mix_reduce_any, .rule = MIX_OPERANDS_BOOLEAN),
    REDUCTION("All", "numpy", mix_reduce_all, .rule = MIX_OPERANDS_BOOLEAN),
    REDUCTION("Amax", "numpy", mix_reduce_max),
    REDUCTION("Amin", "numpy", mix_reduce_min),
    REDUCTION("Logsumexp", "math", mix_log_sum_exp, .rule = MIX_OPERANDS_FLOATING),
    MIX_KERAS_OPERATION("CountNonzero", "numpy", "x", "axis", .reduce = count_nonzero),
    MIX_KERAS_OPERATION("Prod", "numpy", "x", "axis keepdims dtype", .build = prod),
    MIX_KERAS_OPERATION("Max", "numpy", "x", "axis keepdims initial", .build = max),
    MIX_KERAS_OPERATION("Min", "numpy", "x", "axis keepdims initial", .build = min),
    MIX_KERAS_OPERATION("Argmax", "numpy", "x", "axis keepdims", .build = argmax),
    MIX_KERAS_OPERATION("Argmin", "numpy", "x", "axis keepdims", .build = argmin),
    MIX_KERAS_OPERATION("Average", "numpy", "x weights", "axis", .build = average,
                        .rule = MIX_OPERANDS_FLOATING),
    {.operation = {0}}};

/* ---- TensorFlow ---- */

#define TF_REDUCTION(name, function, ...)                                                                    \
  MIX_TF_OPERATION("math.reduce_" name, "input_tensor", "axis keepdims", .reduce = function, __VA_ARGS__)
#define TF_NORM(name) MIX_TF_OPERATION(name, "tensor", "!ord=\"euclidean\" axis keepdims", .reduce = norm)

const mix_operation mix_tf_reduction_operations[] = {
    TF_REDUCTION("mean", mix_reduce_mean),
    TF_REDUCTION("sum", mix_reduce_sum),
    TF_REDUCTION("max", mix_reduce_max),
    TF_REDUCTION("min", mix_reduce_min),
    TF_REDUCTION("prod", mix_reduce_prod),
    TF_REDUCTION("all", mix_reduce_all),
    TF_REDUCTION("any", mix_reduce_any),
    TF_REDUCTION("logsumexp", mix_log_sum_exp),
    TF_REDUCTION("variance", mix_reduce_variance, .is_spread = true),
    TF_REDUCTION("std", std, .is_spread = true),
    TF_NORM("norm"),
    TF_NORM("compat.v1.norm"),
    MIX_TF_OPERATION("math.l2_normalize", "x", "axis epsilon=1e-12 !dim", .build = l2_normalize),
    MIX_TF_OPERATION("nn.moments", "x", "axes !shift keepdims", .results = moments),
    TF_REDUCTION("euclidean_norm", norm),
    MIX_TF_OPERATION("math.argmax", "input", "axis=0 output_type=\"int64\"", .build = argmax),
    MIX_TF_OPERATION("math.argmin", "input", "axis=0 output_type=\"int64\"", .build = argmin),
    {0}};
