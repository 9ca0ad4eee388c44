/* Operations. Each builds a node of the lazy graph: dtypes and shapes are checked at once, nothing is computed. Mixing dtypes in
 * one operation is a TypeError that names both operands; casting is mix_cast's, the policy's or the rewrite's work. Arithmetic
 * broadcasts as NumPy does. float16 and bfloat16 compute in float32 and round each result to nearest even. NULL for a tensor is a
 * TypeError, unless an error is pending, which then stays. */
#ifndef MIXTAPE_OPS_H
#define MIXTAPE_OPS_H

#include <mixtape/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A list of axes; negative ones count from the end; an empty list means all. */
typedef struct mix_axes {
  int count;
  int axis[MIX_MAX_RANK];
} mix_axes;
#ifndef __cplusplus
#define MIX_AXES(...) ((mix_axes){.count = (int)(sizeof((int[]){__VA_ARGS__}) / sizeof(int)), .axis = {__VA_ARGS__}})
#define MIX_ALL_AXES ((mix_axes){.count = 0})
#endif

/* ---- element-wise, one operand: floating dtypes (negative, abs, sign, square also take integers) ---- */
#define MIX_UNARY_OPS(X)                                                                                                       \
  X(negative) X(abs) X(sign) X(floor) X(ceil) X(round) /* half to even */ X(sqrt) X(rsqrt) X(square) X(reciprocal)             \
  X(exp) X(expm1) X(log) X(log1p) X(sin) X(cos) X(tanh) X(sigmoid) X(erf) X(erfc) X(relu) X(relu6) X(elu) X(selu)              \
  X(softplus) X(softsign)
#define MIX_DECLARE_UNARY(name) MIX_API mix_tensor *mix_##name(mix_tensor *x);
MIX_UNARY_OPS(MIX_DECLARE_UNARY)
#undef MIX_DECLARE_UNARY
MIX_API mix_tensor *mix_leaky_relu(mix_tensor *x, double alpha); /* x where x > 0, else alpha x */
/* Floating in, bool out. */
MIX_API mix_tensor *mix_is_finite(mix_tensor *x);
MIX_API mix_tensor *mix_is_inf(mix_tensor *x);
MIX_API mix_tensor *mix_is_nan(mix_tensor *x);
MIX_API mix_tensor *mix_logical_not(mix_tensor *x); /* bool in */

/* ---- element-wise, two operands of one dtype ---- */
#define MIX_BINARY_OPS(X)                                                                                                      \
  X(add) X(subtract) X(multiply) X(divide) /* floating */ X(floor_divide) X(floor_mod) X(power) X(maximum) X(minimum)         \
  X(squared_difference)
#define MIX_COMPARE_OPS(X) X(equal) X(not_equal) X(less) X(less_equal) X(greater) X(greater_equal) /* bool out */
#define MIX_LOGICAL_OPS(X) X(logical_and) X(logical_or)                                            /* bool in and out */
#define MIX_DECLARE_BINARY(name) MIX_API mix_tensor *mix_##name(mix_tensor *a, mix_tensor *b);
MIX_BINARY_OPS(MIX_DECLARE_BINARY)
MIX_COMPARE_OPS(MIX_DECLARE_BINARY)
MIX_LOGICAL_OPS(MIX_DECLARE_BINARY)
#undef MIX_DECLARE_BINARY
/* Sum of `count` >= 1 tensors of one shape and dtype (TensorFlow's AddN). */
MIX_API mix_tensor *mix_add_n(int count, mix_tensor *const *tensors);
/* condition ? a : b, broadcasting; condition is bool. */
MIX_API mix_tensor *mix_select(mix_tensor *condition, mix_tensor *a, mix_tensor *b);
/* min(max(x, low), high) with scalar bounds of x's dtype; the gradient passes where low <= x <= high. */
MIX_API mix_tensor *mix_clip(mix_tensor *x, mix_tensor *low, mix_tensor *high);
/* x (..., units) + bias (units). */
MIX_API mix_tensor *mix_bias_add(mix_tensor *x, mix_tensor *bias);

/* ---- dtype and identity ---- */
/* Down-casts round to nearest even; float to integer truncates toward zero; to bool: != 0. The same dtype returns x itself. */
MIX_API mix_tensor *mix_cast(mix_tensor *x, mix_dtype dtype);
MIX_API mix_tensor *mix_identity(mix_tensor *x); /* another node of the same value */
/* x, through which no gradient flows. */
MIX_API mix_tensor *mix_stop_gradient(mix_tensor *x);

/* ---- constants, in x's dtype: a scalar that broadcasts against x; x's shape full of zeros, of ones ---- */
MIX_API mix_tensor *mix_scalar_like(mix_tensor *x, double value);
/* A shape without unknown dimensions, full of value, which is rounded to dtype. */
MIX_API mix_tensor *mix_fill(mix_shape shape, double value, mix_dtype dtype);
MIX_API mix_tensor *mix_zeros_like(mix_tensor *x);
MIX_API mix_tensor *mix_ones_like(mix_tensor *x);
/* start, start + step, ... below stop (above, for a negative step). */
MIX_API mix_tensor *mix_range(double start, double stop, double step, mix_dtype dtype);

/* ---- reductions: accumulate in float32 (float64 for float64, int64 for integers) whatever the storage.
 * keep_dims: reduced axes stay with size 1. Results have x's dtype; means are of floating dtypes, all and any of bool ---- */
MIX_API mix_tensor *mix_reduce_sum(mix_tensor *x, mix_axes axes, bool keep_dims);
MIX_API mix_tensor *mix_reduce_mean(mix_tensor *x, mix_axes axes, bool keep_dims);
MIX_API mix_tensor *mix_reduce_prod(mix_tensor *x, mix_axes axes, bool keep_dims);
MIX_API mix_tensor *mix_reduce_max(mix_tensor *x, mix_axes axes, bool keep_dims);
MIX_API mix_tensor *mix_reduce_min(mix_tensor *x, mix_axes axes, bool keep_dims);
MIX_API mix_tensor *mix_reduce_all(mix_tensor *x, mix_axes axes, bool keep_dims); /* bool */
MIX_API mix_tensor *mix_reduce_any(mix_tensor *x, mix_axes axes, bool keep_dims); /* bool */
/* int64 index of the first largest (smallest) element along the axis, which is dropped. NaN counts as largest (smallest). */
MIX_API mix_tensor *mix_argmax(mix_tensor *x, int axis);
MIX_API mix_tensor *mix_argmin(mix_tensor *x, int axis);
/* Scalar bool: is every element finite? One pass, fused with what computes x. */
MIX_API mix_tensor *mix_all_finite(mix_tensor *x);

/* ---- products ---- */
/* a (..., m, k) x b (..., k, n) -> (..., m, n), leading dimensions broadcasting; transposes act on the last two axes. Accumulates
 * in float32 (float64 for float64). Floating dtypes and int32. */
MIX_API mix_tensor *mix_matmul(mix_tensor *a, mix_tensor *b, bool transpose_a, bool transpose_b);

/* ---- softmax and cross-entropies, over the last axis; internals in float32 ---- */
MIX_API mix_tensor *mix_softmax(mix_tensor *logits);
MIX_API mix_tensor *mix_log_softmax(mix_tensor *logits);
/* labels and logits (..., classes) of one dtype -> losses (...), in that dtype. */
MIX_API mix_tensor *mix_softmax_cross_entropy(mix_tensor *labels, mix_tensor *logits);
/* labels (...) of an integer dtype, logits (..., classes) -> losses (...). A label outside the classes is an error at run time. */
MIX_API mix_tensor *mix_sparse_softmax_cross_entropy(mix_tensor *labels, mix_tensor *logits);

/* ---- gather, one-hot, shape ---- */
/* Rows of params along `axis` at integer indices: params[..., indices, ...]. An index outside is an error at run time. */
MIX_API mix_tensor *mix_gather(mix_tensor *params, mix_tensor *indices, int axis);
/* indices (...) of an integer dtype -> (..., depth) of `dtype`, on where equal, all off for an index outside. */
MIX_API mix_tensor *mix_one_hot(mix_tensor *indices, int64_t depth, mix_dtype dtype);
/* `count` >= 1 tensors of one dtype, one after the other along `axis`; their other dimensions agree. */
MIX_API mix_tensor *mix_concat(int count, mix_tensor *const *tensors, int axis);
/* x[begin : begin + size] on each axis; size -1: to the end. */
MIX_API mix_tensor *mix_slice(mix_tensor *x, mix_shape begin, mix_shape size);
/* Zeros (or `value`) around x: before and after on each axis. */
MIX_API mix_tensor *mix_pad(mix_tensor *x, mix_shape before, mix_shape after, double value);
/* One dimension may be -1 (worked out). */
MIX_API mix_tensor *mix_reshape(mix_tensor *x, mix_shape shape);
/* A dimension of 1 before axis (from the end where negative, -1 after the last); and without such ones: an empty list takes out all. */
MIX_API mix_tensor *mix_expand_dims(mix_tensor *x, int axis);
MIX_API mix_tensor *mix_squeeze(mix_tensor *x, mix_axes axes);
/* permutation[i] is the axis of x that becomes axis i; an empty list reverses all. */
MIX_API mix_tensor *mix_transpose(mix_tensor *x, mix_axes permutation);
/* x repeated along dimensions of 1, aligned at the right. */
MIX_API mix_tensor *mix_broadcast_to(mix_tensor *x, mix_shape shape);

#ifdef __cplusplus
}
#endif
#endif
