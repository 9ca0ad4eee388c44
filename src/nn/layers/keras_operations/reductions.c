/* Operations that reduce axes. */
#include "base/error.h"
#include "nn/formulas.h"
#include "nn/layers/keras_operations/keras_operation.h"
#include "nn/layers/moments.h"

/* ---- float32 inside, the dtype of the operand outside ---- */

static mix_tensor *widened(mix_tensor *x) { return mix_cast(x, mix_widened(mix_tensor_dtype(x))); }
static mix_tensor *narrowed(mix_tensor *y, mix_tensor *x) {
  const mix_dtype dtype = mix_tensor_dtype(x);
  return y && mix_dtype_is_floating(dtype) ? mix_cast(y, dtype) : y;
}
static mix_tensor *mean(mix_tensor *x, mix_axes axes, bool keep) {
  return narrowed(mix_reduce_mean(widened(x), axes, keep), x);
}
static mix_tensor *var(mix_tensor *x, mix_axes axes, bool keep) {
  return narrowed(mix_reduce_variance(widened(x), axes, keep), x);
}
static mix_tensor *std(mix_tensor *x, mix_axes axes, bool keep) {
  return mix_sqrt(mix_reduce_variance(mix_operand_floating(x), axes, keep));
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
static mix_tensor *logsumexp(mix_tensor *x, mix_axes axes, bool keep) {
  return mix_log_sum_exp(mix_operand_floating(x), axes, keep);
}

/* ---- extremes ---- */

/* An empty list of axes, which is not the same as none. */
static bool reduces_nothing(const mix_operands *o, mix_axes axes) {
  return !axes.count && json_is_array(mix_operand_json(o, "axis"));
}

static mix_list *extreme(const mix_operands *o, bool largest) {
  mix_tensor *x = mix_operand(o, "x");
  mix_axes axes;
  bool keep;
  double initial;
  if (!x || !mix_operand_axes(o, "axis", mix_tensor_shape(x).rank, &axes) ||
      !mix_operand_flag(o, "keepdims", false, &keep) || !mix_operand_number(o, "initial", 0, &initial))
    return NULL;
  if (reduces_nothing(o, axes)) return mix_one_result(x);
  if (mix_tensor_dtype(x) == MIX_BOOL)
    return mix_one_result(largest ? mix_reduce_any(x, axes, keep) : mix_reduce_all(x, axes, keep));
  mix_tensor *y = largest ? mix_reduce_max(x, axes, keep) : mix_reduce_min(x, axes, keep);
  if (y && mix_operand_json(o, "initial"))
    y = largest ? mix_maximum(y, mix_scalar_like(y, initial)) : mix_minimum(y, mix_scalar_like(y, initial));
  return mix_one_result(y);
}
static mix_list *max_call(const mix_operands *o) { return extreme(o, true); }
static mix_list *min_call(const mix_operands *o) { return extreme(o, false); }

/* The place along an axis, or in all elements. */
static mix_list *place(const mix_operands *o, mix_tensor *(*find)(mix_tensor *x, int axis)) {
  mix_tensor *x = mix_operand(o, "x");
  bool keep;
  if (!x || !mix_operand_flag(o, "keepdims", false, &keep)) return NULL;
  const mix_shape shape = mix_tensor_shape(x);
  const bool whole = !mix_operand_json(o, "axis");
  const int axis = whole ? 0 : mix_operand_axis(o, "axis", shape.rank, -1);
  if (axis < 0) return NULL;
  mix_tensor *y = mix_cast(find(whole ? mix_reshape(x, MIX_SHAPE(MIX_UNKNOWN)) : x, axis), MIX_INT32);
  for (int i = 0; keep && whole && i < shape.rank; i++) y = mix_expand_dims(y, 0);
  return mix_one_result(keep && !whole ? mix_expand_dims(y, axis) : y);
}
static mix_list *argmax_call(const mix_operands *o) { return place(o, mix_argmax); }
static mix_list *argmin_call(const mix_operands *o) { return place(o, mix_argmin); }

/* ---- with further options ---- */

/* With a dtype, Keras on TensorFlow multiplies in that of x as it is. */
static mix_list *prod_call(const mix_operands *o) {
  mix_tensor *x = mix_operand(o, "x");
  mix_axes axes;
  bool keep;
  mix_dtype dtype;
  if (!x || !mix_operand_axes(o, "axis", mix_tensor_shape(x).rank, &axes) ||
      !mix_operand_flag(o, "keepdims", false, &keep) ||
      !mix_operand_dtype_named(o, "dtype", MIX_FLOAT32, &dtype))
    return NULL;
  return mix_one_result(mix_reduce_prod(mix_operand_json(o, "dtype") ? x : summed(x), axes, keep));
}

static mix_list *average_call(const mix_operands *o) {
  mix_tensor *x = mix_operand(o, "x"), *pair[2];
  static const char *const names[] = {"x", "weights"};
  mix_axes axes;
  if (!x || !mix_operand_axes(o, "axis", mix_tensor_shape(x).rank, &axes)) return NULL;
  if (!mix_operand_json(o, "weights")) return mix_one_result(mean(mix_operand_floating(x), axes, false));
  if (!mix_operands_promoted(o, 2, names, MIX_OPERANDS_FLOATING, pair)) return NULL;
  if (!mix_shape_equal(mix_tensor_shape(pair[0]), mix_tensor_shape(pair[1])))
    return mix_fail(MIX_UNSUPPORTED, "%s: weights of another shape than x are not supported", o->layer->name);
  mix_tensor *total = mix_reduce_sum(mix_multiply(pair[0], pair[1]), axes, false);
  return mix_one_result(mix_divide(total, mix_reduce_sum(pair[1], axes, false)));
}

/* ---- the table ---- */

#define REDUCTION(name, module, function, ...)                                                               \
  MIX_KERAS_OPERATION(name, module, "x", "axis|keepdims", .reduce = function, __VA_ARGS__)

const mix_keras_operation mix_keras_reduction_operations[] = {
    REDUCTION("Mean", "numpy", mean),
    REDUCTION("Sum", "numpy", sum),
    REDUCTION("Var", "numpy", var),
    REDUCTION("Std", "numpy", std),
    REDUCTION("Any", "numpy", mix_reduce_any, .dtype = MIX_OPERANDS_BOOLEAN),
    REDUCTION("All", "numpy", mix_reduce_all, .dtype = MIX_OPERANDS_BOOLEAN),
    REDUCTION("Amax", "numpy", mix_reduce_max),
    REDUCTION("Amin", "numpy", mix_reduce_min),
    REDUCTION("Logsumexp", "math", logsumexp),
    MIX_KERAS_OPERATION("CountNonzero", "numpy", "x", "axis", .reduce = count_nonzero),
    MIX_KERAS_OPERATION("Prod", "numpy", "x", "axis|keepdims|dtype", .call = prod_call),
    MIX_KERAS_OPERATION("Max", "numpy", "x", "axis|keepdims|initial", .call = max_call),
    MIX_KERAS_OPERATION("Min", "numpy", "x", "axis|keepdims|initial", .call = min_call),
    MIX_KERAS_OPERATION("Argmax", "numpy", "x", "axis|keepdims", .call = argmax_call),
    MIX_KERAS_OPERATION("Argmin", "numpy", "x", "axis|keepdims", .call = argmin_call),
    MIX_KERAS_OPERATION("Average", "numpy", "x|weights", "axis", .call = average_call),
    {.operands = NULL}};
