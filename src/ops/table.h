/* All operations and their attribute structs, for kernels and passes. */
#pragma once

#include "graph/op.h"
#include "graph/segment.h"
#include "ops/elementwise.h"
#include <mixtape/ops.h>
#include <mixtape/tape.h>

/* mix_op_NAME of each op. Element-wise ones have the flag MIX_OP_ELEMENTWISE and the opcode of their name, or
 * of the op that they rename. */
#define MIX_DECLARE_OP(name, ...) extern const mix_op mix_op_##name;
MIX_ELEMENTWISE_OPS(MIX_DECLARE_OP)
MIX_RENAMED_OPS(MIX_DECLARE_OP)
MIX_KERNEL_OPS(MIX_DECLARE_OP)
MIX_LOOP_OPS(MIX_DECLARE_OP)
MIX_PLAN_OPS(MIX_DECLARE_OP)
MIX_ALIAS_OPS(MIX_DECLARE_OP)
#undef MIX_DECLARE_OP

typedef struct mix_cast_attributes {
  mix_dtype dtype;
} mix_cast_attributes;
typedef struct mix_alpha_attributes {
  double alpha;
} mix_alpha_attributes; /* leaky_relu, leaky_relu_grad; of stochastic_round the stream */

/* Reductions: axes are sorted, non-negative, and never empty for rank > 0. */
typedef struct mix_reduce_attributes {
  int axis_count, axes[MIX_MAX_RANK];
  bool keep_dims;
} mix_reduce_attributes;
/* row_moments: x -> mean and variance over the last axes, at least float32, as a pass makes it.
 * bias_add_grad: x -> the sum over all axes but the last (BiasAddGrad). all_finite: floating x -> bool
 * scalar. magnitudes: floating x -> int64 vector, see ops/magnitudes.h. add_n: T*->T, one shape. */
typedef struct mix_axis_attributes {
  int axis;
} mix_axis_attributes; /* argmax, argmin, gather, concat */

typedef struct mix_matmul_attributes {
  bool transpose_a, transpose_b;
  mix_dtype dtype;
  bool round_operands; /* to `dtype`, as they are read; one of them may have it already */
} mix_matmul_attributes;
/* matmul: rank 2 (MatMul). batch_matmul: rank > 2 with broadcasting leading dimensions (BatchMatMulV2).
 * matmul_downcast: of float32 matrices, rounded to the 16-bit `dtype`, which only this op uses; created by
 * the passes "upcast_matmul" and "round_weights". */

/* matmul_integer: int8 of any rank from 2 on -> int32. */

/* Weights stored as integers: numbers of 8 or 4 bits, two of 4 bits in a byte along the last axis (Keras 3's
 * packing). dequantize_channels: (stored, scale) -> number / scale in `dtype`, the scale cast first.
 * dequantize_blocks: (stored, scale, zero) -> (number - zero) * scale, in float32 or, of a float64 scale,
 * float64, rounded to `dtype`; `block` numbers share a scale. Numbers are (rows, columns), scales (columns)
 * or (groups of rows, columns); transposed: (..., columns), (...) or (..., groups of columns).
 * matmul_channels, matmul_blocks: x, then the same -> the product of x and the dequantized weight in x's
 * dtype; of channels the product with the numbers alone, rounded, then divided by the scale. */
typedef struct mix_stored_attributes {
  int bits;
  int64_t columns, block;
  bool transposed;
  mix_dtype dtype; /* of dequantize alone */
} mix_stored_attributes;
/* unpack_int4: int8 -> int8 with `size` numbers along the axis; pack_int4, whose size is 0. */
typedef struct mix_nibble_attributes {
  int axis;
  int64_t size;
} mix_nibble_attributes;

/* The sum of products a b over the dimensions that the result lacks: a label for each dimension of the two
 * operands and of the result, each in two of the three lists, once in each. The pass "expand_einsum" makes it
 * of products of matrices. */
typedef struct mix_einsum_attributes {
  mix_shape a, b, result;
} mix_einsum_attributes;
/* Where the label stands; -1: it does not. */
int mix_einsum_find(const mix_shape *labels, int64_t label);

/* Attention over heads. Operands: query (batch, queries, heads, dim), key (batch, keys, groups, dim), value
 * (batch, keys, groups, dim of value), mask, bool of rank 4, which broadcasts to (batch, heads, queries,
 * keys), and state, int64 (2). Heads are a multiple of groups. The scores, rounded to the dtype, are
 * multiplied by `scale` in float32; where the mask is false, or with `causal` the key is behind the query,
 * they become mask_value, or with mask_adds the score + mask_value. Their softmax is rounded to the dtype, is
 * 0 where masked with mask_zeroes, and is dropped out as mix_random_uniform would of that state.
 * attention_grad takes the gradient of the result as well and gives those of query, key and value. */
typedef struct mix_attention_attributes {
  double scale, mask_value, rate;
  bool mask_adds, mask_zeroes, causal;
} mix_attention_attributes;
/* The same of other operations, with all scores in memory. */
mix_tensor *mix_attention_plain(mix_tensor *const operands[], const mix_attention_attributes *attributes);

/* Is every element of a^T b, a (k, m), b (k, n), rounded to `dtype`, finite for every order of summation?
 * Yes if the largest column norm of a times that of b (Cauchy-Schwarz) is at most half the dtype's largest
 * number, and the optional third operand, a float32 factor, at most 1 in magnitude. Results: two bool
 * scalars, the answer and its negation; only plans contain this op (compile/speculative_update.c). */
typedef struct mix_finite_bound_attributes {
  mix_dtype dtype;
} mix_finite_bound_attributes;
/* The test of mix_op_matmul_finite_bound, from the largest squared column norms. A NaN or an infinity gives
 * false. */
static inline bool mix_finite_bound_holds(mix_dtype dtype, double square_a, double square_b, float factor) {
  const double half = dtype == MIX_FLOAT16 ? 32752 : 0x1.fep126;
  return square_a * square_b <= half * half && factor >= -1 && factor <= 1;
}

/* Convolutions of x (batch, spatial..., channels) with a kernel (spatial..., channels / groups, filters), of
 * one to three spatial axes: y[o] sums x[o strides + k dilation - before] kernel[k]. All have the same
 * attributes. Depthwise ones have groups 0 and a kernel (spatial..., channels, multiplier). */
typedef struct mix_conv_attributes {
  mix_shape strides, dilation, before, after; /* one number for each spatial axis */
  mix_shape sizes;                            /* of the result's spatial axes, for the two gradients */
  int64_t groups;
} mix_conv_attributes;
/* conv: (x, kernel) -> y; conv_input_gradient: (dy, kernel) -> dx; conv_kernel_gradient: (x, dy) -> the
 * kernel's gradient. */

/* Cross-entropies of (logits, labels) have two results: losses (...), and d loss / d logits (..., classes),
 * TensorFlow's "backprop". */

/* argsort: x (..., n) -> int32 places along the last axis, equal elements in their order. */
typedef struct mix_argsort_attributes {
  bool descending;
} mix_argsort_attributes;
/* fourier: (real, imaginary) (..., n) -> both of sum x[k] exp(-2 pi i j k / n), `inverse`: exp(2 pi ...). */
typedef struct mix_fourier_attributes {
  bool inverse;
} mix_fourier_attributes;
/* gather: (params, indices), mix_axis_attributes. */
/* segment_sum: (updates, indices) -> (rows, ...): adds updates to rows of zeros, in the order of the updates.
 * The gradient of gather along axis 0. rows: the same with the layout "rows": operands 0 and 1 are its values
 * and indices. combine_rows: (values (n, ...), indices (n)) -> sums (n, ...), indices (n): a row whose index
 * occurs before becomes zero and its index -1; the first one becomes the sum, with the bits of segment_sum.
 */
typedef struct mix_segment_attributes {
  int64_t rows;
} mix_segment_attributes;
/* gather_rows: rows of a table (rows, ...) at indices (n). A negative index gives zeros.
 * replace_rows: (table, indices (n), rows (n, ...)) -> the table with these rows. Negative indices are
 * ignored; no other index occurs twice. */
typedef struct mix_one_hot_attributes {
  int64_t depth;
  mix_dtype dtype;
} mix_one_hot_attributes;
/* concat: mix_axis_attributes. */
typedef struct mix_slice_attributes {
  mix_shape begin, size;
} mix_slice_attributes;
typedef struct mix_pad_attributes {
  mix_shape before, after;
  double value;
} mix_pad_attributes;
/* reshape and broadcast_to: shape; fill, without operands: shape, dtype, value. */
typedef struct mix_shape_attributes {
  mix_shape shape;
  mix_dtype dtype;
  double value;
} mix_shape_attributes;
typedef struct mix_transpose_attributes {
  int permutation[MIX_MAX_RANK];
} mix_transpose_attributes;
typedef struct mix_range_attributes {
  double start, step;
  int64_t count;
  mix_dtype dtype;
} mix_range_attributes;
/* Windows over x (batch, spatial..., channels); `spatial`: the sizes of dx, of avg_pool_grad alone. Paddings
 * are smaller than the window, so that each window has an element of x. */
typedef struct mix_pool_attributes {
  mix_shape size, strides, before, after, spatial;
} mix_pool_attributes;
/* max_pool: x -> y; max_pool_grad: (x, y, dy) -> dx: to the first element of the window that is not less than
 * y; max_pool_grad_grad: (x, y, values like x) -> those elements of the values. avg_pool: x -> means of the
 * elements of x in each window; avg_pool_grad: dy -> dx. Ops of three spatial axes end in 3d. */
/* x with `to` instead of `from` elements along an axis; transposed: the transpose of that. interpolation: a
 * mix_interpolation. */
typedef struct mix_resize_attributes {
  int axis;
  int64_t from, to;
  int interpolation;
  bool antialias, transposed;
} mix_resize_attributes;
/* (images (batch, height, width, channels), transforms (batch, 8)); a mix_interpolation, a mix_fill_mode.
 * transposed: the gradient of the images, from that of the result. */
typedef struct mix_transform_attributes {
  int interpolation, fill_mode;
  double fill_value;
  bool transposed;
} mix_transform_attributes;
/* Random ops. Operand: state, int64 (2): key and counter. Element i uses Philox block (key, counter, i).
 * mix_shape_attributes. */

/* A loop (graph/body.h). Operands: the first carry, inputs (steps, ...), invariants. Results: the last carry,
 * outputs (steps, ...). The parameters of its body are the carry, step i of the inputs, and the invariants;
 * its results are the next carry and step i of the outputs. Step i is the i-th row of inputs and outputs,
 * from the last to the first if `reverse`. */
typedef struct mix_scan_attributes {
  int64_t steps;
  int carries, inputs;
  bool reverse;
} mix_scan_attributes;

/* For losses, gradients and optimizers, in addition to the public operations. */
mix_tensor *mix_gradient_identity(mix_tensor *x);               /* op "gradient" */
mix_tensor *mix_bias_add_gradient(mix_tensor *output_gradient); /* (..., units) -> (units) */
mix_tensor *mix_segment_sum(mix_tensor *updates, mix_tensor *indices, int64_t rows);
/* Values that say which row, class or category, as int32 or int64 for ops that check their range. Floating
 * ones are rounded down; NaN and negative fractions are what is below all rows, and read no row 0. */
mix_tensor *mix_index_values(mix_tensor *x);
/* The same where a class is counted: no fraction is one. */
mix_tensor *mix_class_values(mix_tensor *x);
/* What fractions and NaN become: exact as doubles, no label of anybody, and not what -inf becomes. */
#define MIX_INDEX_FRACTION (INT64_MIN + 1024)
#define MIX_INDEX_NAN (INT64_MIN + 2048)
/* `values` in the layout of `like`: rows at the same indices, or `values` itself. */
mix_tensor *mix_with_values(mix_tensor *like, mix_tensor *values);
/* The sum of tensors that all have the layout "rows", in that layout. */
bool mix_all_are_rows(int count, mix_tensor *const *tensors);
mix_tensor *mix_concat_rows(int count, mix_tensor *const *tensors);
/* The ops of the same names; `unique` receives the indices, unless NULL. */
mix_tensor *mix_combine_rows(mix_tensor *values, mix_tensor *indices, int64_t rows, mix_tensor **unique);
mix_tensor *mix_gather_rows(mix_tensor *table, mix_tensor *indices);
mix_tensor *mix_replace_rows(mix_tensor *table, mix_tensor *indices, mix_tensor *rows);
/* float32 x rounded to bfloat16 by 16 random bits for each element, of Philox (seed, step, stream, element):
 * seed and step are int64 scalars, streams 0 to 2^24 - 1. MIX_ROUND_NEAREST: to nearest even. No gradient. */
mix_tensor *mix_stochastic_round(mix_tensor *x, mix_tensor *seed, mix_tensor *step, int stream);
/* Counts, extremes and the histogram of exponents of a floating tensor (ops/magnitudes.h). */
mix_tensor *mix_magnitudes(mix_tensor *x);
/* Sums x over the axes along which `shape` was broadcast to x's shape. The gradient of broadcasting. */
mix_tensor *mix_reduce_to_shape(mix_tensor *x, mix_shape shape);
/* delayed_scaling.c: x rounded to float8_e4m3fn numbers times the scale, a float32 scalar. With a history,
 * which may be NULL, a tape finds the next values of scale and history as their gradients; the gradient of x
 * passes through. */
mix_tensor *mix_delayed_scaling_operand(mix_tensor *x, mix_tensor *scale, mix_tensor *history);
/* y itself, whose gradient is rounded to float8_e5m2 numbers times the scale. */
mix_tensor *mix_delayed_scaling_result(mix_tensor *y, mix_tensor *scale, mix_tensor *history);
/* surrogate_gradient.c: the value, whose gradient goes to `other` alone, a tensor of its shape and dtype. */
mix_tensor *mix_surrogate_gradient(mix_tensor *value, mix_tensor *other);
/* mix_tape_gradient_from on the records of a tape, without its checks: for the gradients of bodies. Segments
 * around `within` are not repeated. */
mix_list *mix_gradient_walk(mix_tape *tape, mix_list *targets, mix_list *upstream, mix_list *sources,
                            const mix_segment *within);
