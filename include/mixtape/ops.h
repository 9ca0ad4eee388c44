/* Operations. Each builds a node of the lazy graph: dtypes and shapes are checked at once, nothing is
 * computed. Operands of different dtypes are a TypeError that names both; casting is left to mix_cast, the
 * policy or the rewrite. Arithmetic broadcasts as in NumPy.
 * float16 and bfloat16 operations compute in float32 and round each result to nearest even. float8 tensors
 * are cast, selected, moved (reshape, concat, gather, ...) and read; to compute with one is a TypeError.
 * NULL instead of a tensor is a TypeError, unless an error is already pending. */
#ifndef MIXTAPE_OPS_H
#define MIXTAPE_OPS_H

#include <mixtape/tensor.h>

MIX_BEGIN_DECLARATIONS

/* A list of axes. Negative axes count from the end. An empty list means all axes. */
typedef struct mix_axes {
  int count;
  int axis[MIX_MAX_RANK];
} mix_axes;
#ifndef __cplusplus
#define MIX_AXES(...)                                                                                        \
  ((mix_axes){.count = (int)(sizeof((int[]){__VA_ARGS__}) / sizeof(int)), .axis = {__VA_ARGS__}})
#define MIX_ALL_AXES ((mix_axes){.count = 0})
#endif

/* ---- element-wise, one operand: floating dtypes; negative, abs, sign and square also take integers ---- */
/* clang-format off */
#define MIX_UNARY_OPS(X)                                                                                    \
  X(negative) X(abs) X(sign) X(floor) X(ceil) X(round) /* half to even */ X(sqrt) X(rsqrt)                  \
  X(square) X(reciprocal) X(exp) X(expm1) X(log) X(log1p) X(sin) X(cos) X(tanh) X(sigmoid)                  \
  X(erf) X(erfc) X(relu) X(relu6) X(elu) X(selu) X(softplus) X(softsign)
/* clang-format on */
#define MIX_DECLARE_UNARY(name) MIX_API mix_tensor *mix_##name(mix_tensor *x);
MIX_UNARY_OPS(MIX_DECLARE_UNARY)
#undef MIX_DECLARE_UNARY
/* x where x > 0, else alpha x. */
MIX_API mix_tensor *mix_leaky_relu(mix_tensor *x, double alpha);
/* Tests of floating elements; the result is bool. */
MIX_API mix_tensor *mix_is_finite(mix_tensor *x);
MIX_API mix_tensor *mix_is_inf(mix_tensor *x);
MIX_API mix_tensor *mix_is_nan(mix_tensor *x);
/* Operand and result are bool. */
MIX_API mix_tensor *mix_logical_not(mix_tensor *x);

/* ---- element-wise, two operands of one dtype ---- */
/* clang-format off */
#define MIX_BINARY_OPS(X)                                                                                   \
  X(add) X(subtract) X(multiply) X(divide) /* floating */ X(floor_divide) X(floor_mod) X(power)             \
  X(maximum) X(minimum) X(squared_difference)
/* clang-format on */
/* bool result */
#define MIX_COMPARE_OPS(X) X(equal) X(not_equal) X(less) X(less_equal) X(greater) X(greater_equal)
#define MIX_LOGICAL_OPS(X) X(logical_and) X(logical_or) /* bool operands and result */
#define MIX_DECLARE_BINARY(name) MIX_API mix_tensor *mix_##name(mix_tensor *a, mix_tensor *b);
MIX_BINARY_OPS(MIX_DECLARE_BINARY)
MIX_COMPARE_OPS(MIX_DECLARE_BINARY)
MIX_LOGICAL_OPS(MIX_DECLARE_BINARY)
/* The angle of the point (b, a), from -pi to pi. Floating dtypes. */
MIX_API mix_tensor *mix_atan2(mix_tensor *a, mix_tensor *b);
/* Of integers: the bits of a and b; a times 2^b, and a / 2^b rounded down. A shift takes b as 0 below 0 and
 * as 63 above 63. They have no gradient. */
#define MIX_BITWISE_OPS(X) X(bitwise_and) X(bitwise_or) X(bitwise_xor) X(shift_left) X(shift_right)
MIX_BITWISE_OPS(MIX_DECLARE_BINARY)
#undef MIX_DECLARE_BINARY
/* The sum of `count` >= 1 tensors of one shape and dtype (TensorFlow's AddN). */
MIX_API mix_tensor *mix_add_n(int count, mix_tensor *const *tensors);
/* condition ? a : b, with broadcasting. `condition` is bool. */
MIX_API mix_tensor *mix_select(mix_tensor *condition, mix_tensor *a, mix_tensor *b);
/* min(max(x, low), high). The bounds are scalars of x's dtype. The gradient passes where low <= x <= high. */
MIX_API mix_tensor *mix_clip(mix_tensor *x, mix_tensor *low, mix_tensor *high);
/* x (..., units) + bias (units). */
MIX_API mix_tensor *mix_bias_add(mix_tensor *x, mix_tensor *bias);

/* ---- dtype and identity ---- */
/* Casts to another dtype. Floating dtypes round to nearest even; float to integer truncates toward zero;
 * to bool is != 0. If x already has the dtype, returns x. */
MIX_API mix_tensor *mix_cast(mix_tensor *x, mix_dtype dtype);
/* The bytes of x read as another dtype, neither bool nor float8, the lowest first: x (..., n) with elements
 * of s bytes -> (..., n s / t), t those of the dtype. An error unless they divide. No gradient. */
MIX_API mix_tensor *mix_bitcast(mix_tensor *x, mix_dtype dtype);
/* The same to float8_e4m3fn or float8_e5m2, with the largest finite number of the dtype for all that is
 * larger, infinity too; NaN stays NaN. (mix_cast gives what ml_dtypes gives: NaN in float8_e4m3fn, which has
 * no infinity, and infinity in float8_e5m2.) No gradient flows through float8. */
MIX_API mix_tensor *mix_cast_saturating(mix_tensor *x, mix_dtype dtype);
/* x rounded to what float8 with that scale holds: clip(x / scale, -max, max) cast to `dtype` and back, times
 * scale, in the dtype of x, to which the scalar `scale` is cast first. x is float16, bfloat16, float32 or
 * float64, `dtype` float8_e4m3fn (max 448) or float8_e5m2 (57344). NaN stays NaN. The gradient goes straight
 * to x, also where it was clipped; none goes to the scale. */
MIX_API mix_tensor *mix_quantize_dequantize(mix_tensor *x, mix_tensor *scale, mix_dtype dtype);
/* Another node with the same value. */
MIX_API mix_tensor *mix_identity(mix_tensor *x);
/* The same value, but no gradient flows through it. */
MIX_API mix_tensor *mix_stop_gradient(mix_tensor *x);

/* ---- constants ----
 * A scalar of x's dtype. */
MIX_API mix_tensor *mix_scalar_like(mix_tensor *x, double value);
/* A tensor of a known shape with all elements `value`, rounded to `dtype`. */
MIX_API mix_tensor *mix_fill(mix_shape shape, double value, mix_dtype dtype);
/* The shape and dtype of x, filled with zeros or ones. */
MIX_API mix_tensor *mix_zeros_like(mix_tensor *x);
MIX_API mix_tensor *mix_ones_like(mix_tensor *x);
/* start, start + step, ... while below stop (above, for a negative step). ValueError if an integer dtype
 * lacks one of them. */
MIX_API mix_tensor *mix_range(double start, double stop, double step, mix_dtype dtype);

/* ---- reductions ----
 * They accumulate in float32 (float64 for float64, int64 for integers). With keep_dims, reduced axes stay
 * with size 1. The result has x's dtype. Means take floating dtypes; all and any take bool. */
MIX_API mix_tensor *mix_reduce_sum(mix_tensor *x, mix_axes axes, bool keep_dims);
MIX_API mix_tensor *mix_reduce_mean(mix_tensor *x, mix_axes axes, bool keep_dims);
MIX_API mix_tensor *mix_reduce_prod(mix_tensor *x, mix_axes axes, bool keep_dims);
MIX_API mix_tensor *mix_reduce_max(mix_tensor *x, mix_axes axes, bool keep_dims);
MIX_API mix_tensor *mix_reduce_min(mix_tensor *x, mix_axes axes, bool keep_dims);
MIX_API mix_tensor *mix_reduce_all(mix_tensor *x, mix_axes axes, bool keep_dims); /* bool */
MIX_API mix_tensor *mix_reduce_any(mix_tensor *x, mix_axes axes, bool keep_dims); /* bool */
/* The int64 index of the first largest (smallest) element along the axis, which is dropped. NaN counts as
 * largest (smallest). */
MIX_API mix_tensor *mix_argmax(mix_tensor *x, int axis);
MIX_API mix_tensor *mix_argmin(mix_tensor *x, int axis);
/* A bool scalar: true if every element is finite. One pass, fused with the computation of x. */
MIX_API mix_tensor *mix_all_finite(mix_tensor *x);

/* ---- products ---- */
/* a (..., m, k) x b (..., k, n) -> (..., m, n). Leading dimensions broadcast; the transposes act on the
 * last two axes. Floating dtypes and int32; accumulates in float32 (float64 for float64). */
MIX_API mix_tensor *mix_matmul(mix_tensor *a, mix_tensor *b, bool transpose_a, bool transpose_b);

/* ---- weights that are stored as integers, as Keras 3 stores them ---- */
/* The exact product of int8 tensors, int32; shapes as in mix_matmul. Sums cannot leave int32 below 131,072
 * terms, and wrap beyond. It has no gradient. */
MIX_API mix_tensor *mix_matmul_integer(mix_tensor *a, mix_tensor *b, bool transpose_a, bool transpose_b);
/* Numbers of 4 bits, -8 to 7 in two's complement, two in a byte along `axis`: first the low half, then the
 * high one, which is 0 behind an odd last number. Packing takes int8 (..., n, ...) to (..., (n + 1) / 2, ...)
 * and keeps the low 4 bits of each number; unpacking gives int8 with `size` numbers along the axis.
 * ValueError if they do not fill its bytes. */
MIX_API mix_tensor *mix_pack_int4(mix_tensor *values, int axis);
MIX_API mix_tensor *mix_unpack_int4(mix_tensor *packed, int axis, int64_t size);
typedef struct mix_stored_options {
  size_t size;
  int bits;        /* 8 (0) or 4, packed along the last axis */
  int64_t columns; /* numbers along the last axis; 0: as many as fit into its bytes */
  int64_t block;   /* numbers that share a scale and a zero; 0: a scale for each column, no zero */
  /* The weight is stored transposed, (columns, rows): blocks lie along the last axis. */
  bool transposed;
  mix_dtype dtype; /* of mix_dequantize_stored's result; MIX_DTYPE_NONE: float32 */
} mix_stored_options;
/* The numbers of int8 `stored` (rows, columns), or packed (rows, (columns + 1) / 2), as a floating dtype.
 * Without blocks: number / scale, the scale (columns) cast to the dtype first. With blocks of rows:
 * (number - zero) * scale in float32, or in float64 if the scale is, cast to the dtype; scale and zero, of
 * any real dtype and usually int8, are (groups, columns), where groups is rows / block rounded up.
 * Transposed: stored (..., columns), scale (...) without blocks, (..., groups of columns) with them.
 * zero: NULL without blocks. Options may be NULL. No gradient flows. */
MIX_API mix_tensor *mix_dequantize_stored(mix_tensor *stored, mix_tensor *scale, mix_tensor *zero,
                                          const mix_stored_options *options);
/* x (..., rows) times a stored weight (rows, columns), or one stored transposed (columns, rows), in x's
 * floating dtype -> (..., columns). With blocks it is the product with the weight as mix_dequantize_stored
 * gives it in that dtype. Without, the product with the numbers is rounded to the dtype and then divided by
 * the scale, which is cast to it. The gradient of x is that of the product with the dequantized weight; none
 * flows to the rest. */
MIX_API mix_tensor *mix_matmul_stored(mix_tensor *x, mix_tensor *stored, mix_tensor *scale, mix_tensor *zero,
                                      const mix_stored_options *options);
MIX_API mix_stored_options mix_stored_defaults(void); /* with `size` set, for C++ */

/* ---- softmax and cross-entropies over the last axis, computed in float32 (float64 for float64) ---- */
MIX_API mix_tensor *mix_softmax(mix_tensor *logits);
MIX_API mix_tensor *mix_log_softmax(mix_tensor *logits);
/* labels and logits (..., classes) of one dtype -> losses (...) of that dtype. */
MIX_API mix_tensor *mix_softmax_cross_entropy(mix_tensor *labels, mix_tensor *logits);
/* labels (...) of an integer dtype, logits (..., classes) -> losses (...). A label outside [0, classes) is
 * an error at run time. */
MIX_API mix_tensor *mix_sparse_softmax_cross_entropy(mix_tensor *labels, mix_tensor *logits);

/* ---- order, sums along an axis, Fourier transforms ---- */
/* The int32 places of the elements along an axis, from the smallest to the largest element, or the other way
 * round; equal ones stay in their order. NaN counts as largest. x: any real dtype or bool. No gradient. */
MIX_API mix_tensor *mix_argsort(mix_tensor *x, int axis, bool descending);
/* The elements in that order. The gradient goes back to their places. */
MIX_API mix_tensor *mix_sort(mix_tensor *x, int axis, bool descending);
/* The k largest elements along the last axis, from the largest to the smallest, and their int32 places: a
 * list of two tensors (..., k). Of equal ones the first comes first. ValueError if k is negative or above the
 * size of the axis. */
MIX_API mix_list *mix_top_k(mix_tensor *x, int64_t k);
/* x[..., indices[i], ...] along an axis for each other place of x: x (..., n, ...), integer indices
 * (..., m, ...) of x's rank, whose other axes have x's sizes, all known. An index outside [0, n) is an error
 * at run time. */
MIX_API mix_tensor *mix_take_along_axis(mix_tensor *x, mix_tensor *indices, int axis);
/* The sum or the product of all elements up to each one along an axis of known size, in the order of the
 * axis and in x's dtype; in float32 for 16 bits, rounded at the end. Number dtypes. */
MIX_API mix_tensor *mix_cumulative_sum(mix_tensor *x, int axis);
MIX_API mix_tensor *mix_cumulative_product(mix_tensor *x, int axis);
/* The discrete Fourier transform along the last axis: real and imaginary parts (..., n), of a floating
 * dtype, -> a list of both (..., n). The inverse divides by n. O(n log n) for n of small factors. */
MIX_API mix_list *mix_fft(mix_tensor *real, mix_tensor *imaginary, bool inverse);

/* ---- gather, one_hot, shapes ---- */
/* The slices of params along `axis` at integer indices: params[..., indices, ...]. An index out of range
 * is an error at run time. */
MIX_API mix_tensor *mix_gather(mix_tensor *params, mix_tensor *indices, int axis);
/* A tensor (count, ...) in the layout "rows": zero but for `values`, one row for each of the integer
 * `indices`, shapes (..., rest) and (...). Rows with the same index add up. The gradient of mix_gather along
 * axis 0 has this layout, TensorFlow's IndexedSlices. Casts, mix_all_finite_of, unscaling, clipping, sums of
 * gradients and optimizers work on the rows alone; any other operation sees the dense tensor, in which the
 * rows are summed in order. An index out of range is an error at run time. */
MIX_API mix_tensor *mix_rows(mix_tensor *values, mix_tensor *indices, int64_t count);
/* True for tensors in this layout. An argument or a result of a mix_function is dense. */
MIX_API bool mix_tensor_is_rows(const mix_tensor *x);
/* The values (n, ...) and the indices (n) of a tensor in this layout. Of a dense tensor: the tensor itself,
 * and NULL. */
MIX_API mix_tensor *mix_rows_values(mix_tensor *x);
MIX_API mix_tensor *mix_rows_indices(mix_tensor *x);
/* indices (...) of an integer dtype -> (..., depth) of `dtype`: 1 at the index, else 0. An index out of
 * range gives all zeros. */
MIX_API mix_tensor *mix_one_hot(mix_tensor *indices, int64_t depth, mix_dtype dtype);
/* Concatenates `count` >= 1 tensors of one dtype along `axis`. Their other dimensions must be equal. */
MIX_API mix_tensor *mix_concat(int count, mix_tensor *const *tensors, int axis);
/* x[begin : begin + size] on each axis. A size of -1 means up to the end. */
MIX_API mix_tensor *mix_slice(mix_tensor *x, mix_shape begin, mix_shape size);
/* Pads x with `value`: before[i] elements before and after[i] after it on axis i. */
MIX_API mix_tensor *mix_pad(mix_tensor *x, mix_shape before, mix_shape after, double value);
/* The same elements with another shape. One dimension may be -1, which is computed from the others. */
MIX_API mix_tensor *mix_reshape(mix_tensor *x, mix_shape shape);
/* Inserts a dimension of 1 before `axis` (negative: counted from the end; -1: after the last). */
MIX_API mix_tensor *mix_expand_dims(mix_tensor *x, int axis);
/* Removes the given axes, which must have size 1. An empty list removes all axes of size 1. */
MIX_API mix_tensor *mix_squeeze(mix_tensor *x, mix_axes axes);
/* permutation[i] is the axis of x that becomes axis i. An empty list reverses all axes. */
MIX_API mix_tensor *mix_transpose(mix_tensor *x, mix_axes permutation);
/* Repeats x along its dimensions of 1, aligned at the right. */
MIX_API mix_tensor *mix_broadcast_to(mix_tensor *x, mix_shape shape);

MIX_END_DECLARATIONS
#endif
