/* The gradient of every differentiable operation, first and second order, by finite differences in float64,
 * and in float16 and bfloat16 against float64. One table drives all tests; an operation with a gradient but
 * without a row fails. */
#include "ops/support.h"
#include <mixtape/image.h>

#include "base/alloc.h"
#include "ops/debug_ops.h"
#include "ops/collective.h"
#include "ops/decompositions.h"
#include <mixtape/einsum.h>
#include <mixtape/convolution.h>
#include <mixtape/linear_algebra.h>
#include <mixtape/scan.h>

enum { OPERANDS = 3, ELEMENTS = 32 };

typedef struct operand {
  mix_shape shape;
  double low, high; /* the range of its elements */
} operand;

typedef struct row {
  const char *op;
  mix_tensor *(*build)(mix_tensor *const *x); /* the result's node has op `op` */
  int count;
  operand operands[OPERANDS];
  double roundings; /* bound for 16 bits, see the test; 0: 16 */
} row;

/* ---- differentiated functions ---- */

#define UNARY(name)                                                                                          \
  static mix_tensor *build_##name(mix_tensor *const *x) { return mix_##name(x[0]); }
MIX_UNARY_OPS(UNARY)
UNARY(identity)
UNARY(softmax)
UNARY(log_softmax)
static mix_tensor *build_gradient(mix_tensor *const *x) { return mix_gradient_identity(x[0]); }
static mix_tensor *build_leaky_relu(mix_tensor *const *x) { return mix_leaky_relu(x[0], 0.25); }
static mix_tensor *build_cast(mix_tensor *const *x) {
  mix_dtype dtype = mix_tensor_dtype(x[0]);
  return mix_cast(mix_cast(x[0], dtype == MIX_FLOAT64 ? MIX_FLOAT32 : MIX_FLOAT64), dtype);
}

#define BINARY(name)                                                                                         \
  static mix_tensor *build_##name(mix_tensor *const *x) { return mix_##name(x[0], x[1]); }
BINARY(add)
BINARY(subtract)
BINARY(multiply)
BINARY(divide)
BINARY(floor_mod)
BINARY(power)
BINARY(maximum)
BINARY(minimum)
BINARY(squared_difference)
BINARY(bias_add)
BINARY(atan2)

#define GRAD_OP(name)                                                                                        \
  static mix_tensor *build_##name(mix_tensor *const *x) { return mix_apply(&mix_op_##name, NULL, 2, x); }
GRAD_OP(relu_grad)
GRAD_OP(relu6_grad)
GRAD_OP(softplus_grad)
GRAD_OP(softsign_grad)
GRAD_OP(elu_grad)
GRAD_OP(selu_grad)
GRAD_OP(tanh_grad)
GRAD_OP(sigmoid_grad)
GRAD_OP(sqrt_grad)
GRAD_OP(rsqrt_grad)
GRAD_OP(reciprocal_grad)
static mix_tensor *build_leaky_relu_grad(mix_tensor *const *x) {
  return mix_apply(&mix_op_leaky_relu_grad, &(mix_alpha_attributes){0.25}, 2, x);
}

static mix_tensor *build_optimization_barrier(mix_tensor *const *x) {
  return mix_apply(&mix_op_optimization_barrier, NULL, 2, (mix_tensor *[]){x[0], mix_scalar(1, MIX_INT32)});
}
static mix_tensor *build_check_numerics(mix_tensor *const *x) {
  return mix_apply(&mix_op_check_numerics, &(mix_check_numerics_attributes){.message = NULL}, 1, x);
}
static mix_tensor *build_add_n(mix_tensor *const *x) {
  return mix_add_n(3, (mix_tensor *[]){x[0], x[1], x[0]});
}
static mix_tensor *build_select(mix_tensor *const *x) {
  return mix_select(mix_tensor_from((const uint8_t[]){1, 0, 0, 1, 1, 0}, MIX_BOOL, MIX_SHAPE(2, 3)), x[0],
                    x[1]);
}
/* More of it is in test_scan.c. */
static mix_list *scan_step(void *context, mix_list *carry, mix_list *inputs) {
  mix_tensor *h = mix_tanh(mix_add(mix_list_get(carry, 0), mix_multiply(context, mix_list_get(inputs, 0))));
  return mix_list_of(mix_list_of(h), NULL);
}
static mix_tensor *build_scan(mix_tensor *const *x) {
  mix_list *result = mix_scan(scan_step, x[2], mix_list_of(x[0]), mix_list_of(x[1]));
  return result ? mix_list_get(mix_list_get(result, 0), 0) : NULL;
}
/* Stored weights (3, 2): of channels packed, of blocks of two rows transposed. */
static mix_tensor *build_matmul_channels(mix_tensor *const *x) {
  const int8_t packed[] = {0x3e, 0x71, 0x28};
  return mix_matmul_stored(x[0], mix_tensor_from(packed, MIX_INT8, MIX_SHAPE(3, 1)),
                           tensor(MIX_FLOAT64, MIX_SHAPE(2), NUMBERS(4, 2.5)), NULL,
                           &(mix_stored_options){.size = sizeof(mix_stored_options), .bits = 4});
}
static mix_tensor *build_matmul_blocks(mix_tensor *const *x) {
  const int8_t numbers[] = {3, -8, 7, 0, 1, -2}, zeros[] = {1, -2, 0, 3};
  return mix_matmul_stored(
      x[0], mix_tensor_from(numbers, MIX_INT8, MIX_SHAPE(2, 3)),
      tensor(MIX_FLOAT64, MIX_SHAPE(2, 2), NUMBERS(0.25, 0.5, 0.1, 2)),
      mix_tensor_from(zeros, MIX_INT8, MIX_SHAPE(2, 2)),
      &(mix_stored_options){.size = sizeof(mix_stored_options), .block = 2, .transposed = true});
}
static mix_tensor *build_clip(mix_tensor *const *x) { return mix_clip(x[0], x[1], x[2]); }

#define REDUCTION(name, suffix, axes, keep)                                                                  \
  static mix_tensor *build_##name##_##suffix(mix_tensor *const *x) { return mix_##name(x[0], axes, keep); }
REDUCTION(reduce_sum, one, MIX_AXES(1), false)
REDUCTION(reduce_sum, all, MIX_ALL_AXES, false)
REDUCTION(reduce_sum, kept, MIX_AXES(0, -1), true)
REDUCTION(reduce_mean, one, MIX_AXES(1), false)
REDUCTION(reduce_mean, all, MIX_ALL_AXES, true)
REDUCTION(reduce_prod, one, MIX_AXES(1), false)
REDUCTION(reduce_prod, all, MIX_ALL_AXES, false)
REDUCTION(reduce_max, one, MIX_AXES(0), false)
REDUCTION(reduce_max, all, MIX_ALL_AXES, true)
REDUCTION(reduce_min, one, MIX_AXES(-1), true)
static mix_tensor *build_conv_same(mix_tensor *const *x) {
  return mix_conv(x[0], x[1], .strides = MIX_SHAPE(2, 1), .padding = "same");
}
static mix_tensor *build_conv_causal(mix_tensor *const *x) {
  return mix_conv(x[0], x[1], .dilation = MIX_SHAPE(2), .padding = "causal");
}
static mix_tensor *build_conv_groups(mix_tensor *const *x) {
  return mix_conv(x[0], x[1], .groups = 2, .before = MIX_SHAPE(1), .after = MIX_SHAPE(2));
}
static mix_tensor *build_conv_transpose(mix_tensor *const *x) {
  return mix_conv_transpose(x[0], x[1], .strides = MIX_SHAPE(2), .padding = "same");
}
static mix_tensor *build_conv_transpose_groups(mix_tensor *const *x) {
  return mix_conv_transpose(x[0], x[1], .strides = MIX_SHAPE(3), .groups = 2);
}
static mix_tensor *build_depthwise(mix_tensor *const *x) {
  return mix_depthwise_conv(x[0], x[1], .strides = MIX_SHAPE(1, 2), .padding = "same");
}
/* d (a sum of conv(x, kernel) dy) / d kernel or x, as ops of x or kernel, and dy. */
static const mix_conv_attributes one_axis = {.strides = {1, {2}},
                                             .dilation = {1, {1}},
                                             .before = {1, {1}},
                                             .after = {1, {0}},
                                             .sizes = {1, {3}},
                                             .groups = 1},
                                 three_axes = {.strides = {3, {1, 2, 1}},
                                               .dilation = {3, {1, 1, 1}},
                                               .before = {3, {0, 0, 0}},
                                               .after = {3, {0, 1, 0}},
                                               .sizes = {3, {2, 2, 2}},
                                               .groups = 1};
static mix_tensor *like(const mix_op *op, const mix_conv_attributes *attributes, mix_tensor *const *x) {
  mix_conv_attributes own = *attributes;
  if (!strncmp(op->name, "depthwise", 9)) own.groups = 0;
  return mix_apply(op, &own, 2, x);
}
#define CONV_OP(name, attributes)                                                                            \
  static mix_tensor *build_##name(mix_tensor *const *x) { return like(&mix_op_##name, &attributes, x); }
CONV_OP(conv_kernel_gradient, one_axis)
CONV_OP(depthwise_conv_input_gradient, one_axis)
CONV_OP(depthwise_conv_kernel_gradient, one_axis)
CONV_OP(conv3d, three_axes)
CONV_OP(conv3d_input_gradient, three_axes)
CONV_OP(conv3d_kernel_gradient, three_axes)

static mix_tensor *build_bias_add_grad(mix_tensor *const *x) { return mix_bias_add_gradient(x[0]); }

#define PRODUCT(suffix, ta, tb)                                                                              \
  static mix_tensor *build_matmul_##suffix(mix_tensor *const *x) { return mix_matmul(x[0], x[1], ta, tb); }
PRODUCT(nn, false, false)
PRODUCT(nt, false, true)
PRODUCT(tn, true, false)
PRODUCT(tt, true, true)

/* Labels that sum to 1, as the gradient to the logits requires; quarters and eighths are exact in every
 * dtype. */
static mix_tensor *distribution(mix_tensor *like) {
  return tensor(mix_tensor_dtype(like), MIX_SHAPE(2, 4),
                NUMBERS(0.5, 0.25, 0.125, 0.125, 0, 0.125, 0.75, 0.125));
}
static mix_tensor *some_logits(mix_tensor *like) {
  return tensor(mix_tensor_dtype(like), MIX_SHAPE(2, 4), NUMBERS(0.5, -1, 0.25, 1.5, 1, 0, -0.75, 0.5));
}
static mix_tensor *class_numbers(void) {
  return mix_tensor_from((const int32_t[]){3, 1}, MIX_INT32, MIX_SHAPE(2));
}
static mix_tensor *build_cross_entropy(mix_tensor *const *x) {
  return mix_softmax_cross_entropy(distribution(x[0]), x[0]);
}
static mix_tensor *build_cross_entropy_of_labels(mix_tensor *const *x) {
  return mix_softmax_cross_entropy(x[0], some_logits(x[0]));
}
static mix_tensor *backprop(mix_tensor *losses) { return losses ? mix_tensor_of(losses->node, 1) : NULL; }
static mix_tensor *build_cross_entropy_backprop(mix_tensor *const *x) {
  return backprop(mix_softmax_cross_entropy(x[1], x[0]));
}
static mix_tensor *build_sparse(mix_tensor *const *x) {
  return mix_sparse_softmax_cross_entropy(class_numbers(), x[0]);
}
static mix_tensor *build_sparse_backprop(mix_tensor *const *x) {
  return backprop(mix_sparse_softmax_cross_entropy(class_numbers(), x[0]));
}

static mix_tensor *repeated_indices(void) {
  return mix_tensor_from((const int64_t[]){1, 0, 1, 2, 1, 0}, MIX_INT64, MIX_SHAPE(2, 3));
}
static mix_tensor *build_einsum_product(mix_tensor *const *x) { return mix_einsum("ab,cb->ca", 2, x); }
static mix_tensor *build_einsum_heads(mix_tensor *const *x) { return mix_einsum("abc,dbc->bad", 2, x); }
static mix_tensor *build_einsum_elements(mix_tensor *const *x) { return mix_einsum("ab,b->ba", 2, x); }

/* Queries (1, 3, 2, 2) and keys of one group (1, 2, 1, 2). */
static mix_tensor *attention_of(mix_tensor *const *x, const mix_attention_attributes *attributes,
                                mix_tensor *dy) {
  const bool kept[] = {true, true, false, true, true, true};
  mix_tensor *operands[] = {x[0],
                            x[1],
                            x[2],
                            mix_tensor_from(kept, MIX_BOOL, MIX_SHAPE(1, 1, 3, 2)),
                            mix_tensor_from((const int64_t[]){7, 1}, MIX_INT64, MIX_SHAPE(2)),
                            dy};
  return mix_apply(dy ? &mix_op_attention_grad : &mix_op_attention, attributes, dy ? 6 : 5, operands);
}
static const mix_attention_attributes replacing = {.scale = 0.7, .mask_value = -1e30},
                                      adding = {.scale = 1, .mask_value = -2, .mask_adds = true},
                                      dropping = {.scale = 1,
                                                  .mask_value = -1e9,
                                                  .mask_zeroes = true,
                                                  .rate = 0.5,
                                                  .causal = true};
static mix_tensor *build_attention(mix_tensor *const *x) { return attention_of(x, &replacing, NULL); }
static mix_tensor *build_attention_adding(mix_tensor *const *x) { return attention_of(x, &adding, NULL); }
static mix_tensor *build_attention_dropping(mix_tensor *const *x) { return attention_of(x, &dropping, NULL); }
static mix_tensor *some_gradient(mix_tensor *like) {
  return tensor(mix_tensor_dtype(like), MIX_SHAPE(1, 3, 2, 3),
                NUMBERS(1, -0.5, 0.25, 2, 0.5, -1, 0.75, 1, -0.25, 1, 1, 0.5, -1, 0.5, 0.25, 1, -0.75, 2));
}
static mix_tensor *build_attention_grad(mix_tensor *const *x) {
  return attention_of(x, &replacing, some_gradient(x[0]));
}
static mix_tensor *build_attention_grad_of_keys(mix_tensor *const *x) {
  mix_tensor *first = attention_of(x, &dropping, some_gradient(x[0]));
  return first ? mix_tensor_of(first->node, 1) : NULL;
}

static mix_tensor *build_gather_rows(mix_tensor *const *x) { return mix_gather(x[0], repeated_indices(), 0); }
static mix_tensor *build_gather_middle(mix_tensor *const *x) {
  return mix_gather(x[0], repeated_indices(), 1);
}
static mix_tensor *build_gather_last(mix_tensor *const *x) {
  return mix_gather(x[0], mix_tensor_from((const int32_t[]){2}, MIX_INT32, MIX_SCALAR), -1);
}
static mix_tensor *build_segment_sum(mix_tensor *const *x) {
  return mix_segment_sum(x[0], repeated_indices(), 4);
}
static mix_tensor *build_rows(mix_tensor *const *x) { return mix_rows(x[0], repeated_indices(), 4); }
static mix_tensor *build_concat(mix_tensor *const *x) {
  return mix_concat(3, (mix_tensor *[]){x[0], x[1], x[0]}, 1);
}
static mix_tensor *build_slice(mix_tensor *const *x) {
  return mix_slice(x[0], MIX_SHAPE(1, 0), MIX_SHAPE(1, 2));
}
static mix_tensor *build_pad(mix_tensor *const *x) {
  return mix_pad(x[0], MIX_SHAPE(1, 0), MIX_SHAPE(0, 2), 7);
}
static mix_tensor *build_reshape(mix_tensor *const *x) { return mix_reshape(x[0], MIX_SHAPE(3, -1)); }
static mix_tensor *build_transpose(mix_tensor *const *x) { return mix_transpose(x[0], MIX_AXES(2, 0, 1)); }
static mix_tensor *build_broadcast_to(mix_tensor *const *x) {
  return mix_broadcast_to(x[0], MIX_SHAPE(4, 2, 3));
}

/* Windows of 2 with a stride of 1, padded by one at the end. */
static const mix_pool_attributes along_line = {{.rank = 1, .dims = {2}},
                                               {.rank = 1, .dims = {1}},
                                               {.rank = 1, .dims = {0}},
                                               {.rank = 1, .dims = {1}},
                                               {.rank = 1, .dims = {3}}};
static const mix_pool_attributes in_volume = {{.rank = 3, .dims = {2, 1, 2}},
                                              {.rank = 3, .dims = {1, 1, 1}},
                                              {.rank = 3, .dims = {1, 0, 0}},
                                              {.rank = 3, .dims = {0, 0, 1}},
                                              {.rank = 3, .dims = {2, 1, 2}}};
#define LINE MIX_SHAPE(2, 3, 2)
#define VOLUME MIX_SHAPE(1, 2, 1, 2, 2)
static mix_tensor *pooled(const mix_op *op, const mix_pool_attributes *a, mix_tensor *x) {
  return mix_apply(op, a, 1, &x);
}
/* Values that say where the maxima are. */
static mix_tensor *line_of(mix_tensor *like) {
  return tensor(mix_tensor_dtype(like), LINE, NUMBERS(3, 1, 5, 0, 2, 4, -1, 6, 8, 2, 7, -3));
}
static mix_tensor *volume_of(mix_tensor *like) {
  return tensor(mix_tensor_dtype(like), VOLUME, NUMBERS(3, 1, 5, 0, 2, 4, -1, 6));
}
static mix_tensor *max_grad(const mix_op *op, const mix_op *max, const mix_pool_attributes *a, mix_tensor *at,
                            mix_tensor *values) {
  return mix_apply(op, a, 3, (mix_tensor *[]){at, pooled(max, a, at), values});
}
#define WINDOW_OPS(name, attributes, values)                                                                 \
  static mix_tensor *build_max_pool##name(mix_tensor *const *x) {                                            \
    return pooled(&mix_op_max_pool##name, &attributes, x[0]);                                                \
  }                                                                                                          \
  static mix_tensor *build_avg_pool##name(mix_tensor *const *x) {                                            \
    return pooled(&mix_op_avg_pool##name, &attributes, x[0]);                                                \
  }                                                                                                          \
  static mix_tensor *build_avg_pool_grad##name(mix_tensor *const *x) {                                       \
    return pooled(&mix_op_avg_pool_grad##name, &attributes, x[0]);                                           \
  }                                                                                                          \
  static mix_tensor *build_max_pool_grad##name(mix_tensor *const *x) {                                       \
    return max_grad(&mix_op_max_pool_grad##name, &mix_op_max_pool##name, &attributes, values(x[0]), x[0]);   \
  }                                                                                                          \
  static mix_tensor *build_max_pool_grad_grad##name(mix_tensor *const *x) {                                  \
    return max_grad(&mix_op_max_pool_grad_grad##name, &mix_op_max_pool##name, &attributes, values(x[0]),     \
                    x[0]);                                                                                   \
  }
WINDOW_OPS(, along_line, line_of)
WINDOW_OPS(3d, in_volume, volume_of)
static mix_tensor *build_resize_axis(mix_tensor *const *x) {
  return mix_resize_axis(x[0], 1, 5, MIX_BICUBIC, false);
}
/* A turn with a divisor, then a place far outside of the image for each pixel but one. */
static mix_tensor *transform(mix_tensor *images, mix_interpolation interpolation, mix_fill_mode mode) {
  const double t[] = {0.8, -0.4, 0.7, 0.3, 1.1, -0.9, 0.02, -0.01, -3.1, 0, 1.2, 0, 2.7, -4.3, 0, 0};
  return mix_projective_transform(images, tensor(MIX_FLOAT32, MIX_SHAPE(2, 8), t), interpolation, mode, 0.5);
}
#define TRANSFORM(name, interpolation, mode)                                                                 \
  static mix_tensor *build_transform_##name(mix_tensor *const *x) {                                          \
    return transform(x[0], interpolation, mode);                                                             \
  }
TRANSFORM(nearest, MIX_NEAREST, MIX_FILL_CONSTANT)
TRANSFORM(constant, MIX_BILINEAR, MIX_FILL_CONSTANT)
TRANSFORM(reflect, MIX_BILINEAR, MIX_FILL_REFLECT)
TRANSFORM(wrap, MIX_BILINEAR, MIX_FILL_WRAP)
TRANSFORM(edge, MIX_NEAREST, MIX_FILL_NEAREST)
/* The divisor of the second column's pixels is 0. */
static mix_tensor *build_transform_nowhere(mix_tensor *const *x) {
  const double t[] = {1, 0, 0, 0, 1, 0, -1, 0, 1, 0, 0, 0, 1, 0, 0, 0};
  return mix_projective_transform(x[0], tensor(MIX_FLOAT32, MIX_SHAPE(2, 8), t), MIX_BILINEAR,
                                  MIX_FILL_REFLECT, 0.5);
}
static mix_tensor *build_resize_smaller(mix_tensor *const *x) {
  return mix_resize_axis(x[0], 0, 1, MIX_LANCZOS3, true);
}

#define M MIX_SHAPE(2, 3)
#define CUBE MIX_SHAPE(2, 3, 2)
#define IMAGES MIX_SHAPE(2, 3, 2, 2)
/* Domains avoid poles. The values themselves avoid kinks and ties (see `fill_operand`). */
#define QUERIES                                                                                              \
  { {.rank = 4, .dims = {1, 3, 2, 2}}, -1, 1 }
#define KEYS                                                                                                 \
  { {.rank = 4, .dims = {1, 2, 1, 2}}, -1, 1 }
#define VALUES                                                                                               \
  { {.rank = 4, .dims = {1, 2, 1, 3}}, -1, 1 }
static mix_tensor *build_real_part(mix_tensor *const *x) {
  return mix_list_get(mix_fft(x[0], x[1], false), 0);
}
static mix_tensor *build_imaginary_part(mix_tensor *const *x) {
  return mix_list_get(mix_fft(x[0], x[1], false), 1);
}
static mix_tensor *build_inverse(mix_tensor *const *x) { /* the quotient by n is behind it */
  return mix_list_get(mix_fft(x[0], x[1], true), 1);
}
static mix_tensor *build_sort(mix_tensor *const *x) { return mix_sort(x[0], 0, true); }
static mix_tensor *build_cumulative(mix_tensor *const *x) {
  return mix_add(mix_cumulative_sum(x[0], 1), mix_cumulative_product(x[0], 0));
}
/* Elements between -1 and 1 beside 0, 3 and 7 on the diagonal: eigenvalues and singular values are apart, so
 * that third derivatives stay below 1000. */
static mix_tensor *apart(mix_tensor *x) {
  const double diagonal[] = {0.25, 0, 0, 0, 3, 0, 0, 0, 7};
  const mix_shape shape = mix_tensor_shape(x);
  mix_tensor *whole = mix_cast(tensor(MIX_FLOAT64, MIX_SHAPE(3, 3), diagonal), mix_tensor_dtype(x));
  return mix_add(x, mix_slice(whole, MIX_SHAPE(0, 0),
                              MIX_SHAPE(shape.dims[shape.rank - 2], shape.dims[shape.rank - 1])));
}
#define PART(name, call, place)                                                                              \
  static mix_tensor *build_##name(mix_tensor *const *x) { return mix_list_get(call, place); }
PART(eigh_values, mix_eigh(apart(x[0])), 0)
PART(eigh_vectors, mix_eigh(apart(x[0])), 1)
PART(svd_values, mix_svd(apart(x[0]), false), 0)
PART(svd_left, mix_svd(apart(x[0]), false), 1)
PART(svd_right, mix_svd(apart(x[0]), false), 2)
PART(svd_full_left, mix_svd(apart(x[0]), true), 1)
PART(svd_full_right, mix_svd(apart(x[0]), true), 2)
PART(eig_real, mix_eig(apart(x[0])), 0)
/* The first two rows and columns turn, so that two eigenvalues are complex. */
static mix_tensor *turning(mix_tensor *x) {
  const double turn[] = {1, 4, 0, -4, 1.5, 0, 0, 0, 9};
  return mix_add(x, mix_cast(tensor(MIX_FLOAT64, MIX_SHAPE(3, 3), turn), mix_tensor_dtype(x)));
}
/* The two are conjugate, whichever is first. */
static mix_tensor *build_eig_imaginary(mix_tensor *const *x) {
  return mix_abs(mix_list_get(mix_eig(turning(x[0])), 1));
}
/* Magnitudes: the angles of vectors are any. */
static mix_tensor *build_eig_vectors(mix_tensor *const *x) {
  mix_list *parts = mix_eig(turning(x[0]));
  return parts ? mix_add(mix_square(mix_list_get(parts, 2)), mix_square(mix_list_get(parts, 3))) : NULL;
}
static mix_tensor *build_matrix_solve(mix_tensor *const *x) {
  return mix_apply(&mix_op_matrix_solve, NULL, 2, (mix_tensor *[]){apart(x[0]), x[1]});
}
/* In one process. */
static mix_tensor *build_start(mix_tensor *const *x) { return mix_all_reduce_start(x[0]); }
static mix_tensor *build_done(mix_tensor *const *x) {
  return mix_all_reduce_done(mix_all_reduce_start(x[0]));
}
static const row rows[] = {
    {"all_reduce_start", build_start, 1, {{M, -2, 2}}, 0},
    {"all_reduce_done", build_done, 1, {{M, -2, 2}}, 0},
    {"identity", build_identity, 1, {{M, -2, 2}}, 0},
    {"gradient", build_gradient, 1, {{M, -2, 2}}, 0},
    {"negative", build_negative, 1, {{M, -2, 2}}, 0},
    {"abs", build_abs, 1, {{M, -2, 2}}, 0},
    {"sign", build_sign, 1, {{M, -2, 2}}, 0},
    {"sqrt", build_sqrt, 1, {{M, 0.25, 4}}, 0},
    {"rsqrt", build_rsqrt, 1, {{M, 0.5, 4}}, 0},
    {"square", build_square, 1, {{M, -2, 2}}, 0},
    {"reciprocal", build_reciprocal, 1, {{M, 0.5, 4}}, 0},
    {"exp", build_exp, 1, {{M, -2, 2}}, 0},
    {"expm1", build_expm1, 1, {{M, -2, 2}}, 0},
    {"log", build_log, 1, {{M, 0.5, 4}}, 0},
    {"log1p", build_log1p, 1, {{M, -0.5, 4}}, 0},
    {"sin", build_sin, 1, {{M, -2, 2}}, 0},
    {"cos", build_cos, 1, {{M, -2, 2}}, 0},
    {"tanh", build_tanh, 1, {{M, -2, 2}}, 0},
    {"sigmoid", build_sigmoid, 1, {{M, -2, 2}}, 0},
    {"erf", build_erf, 1, {{M, -1.5, 1.5}}, 0},
    {"erfc", build_erfc, 1, {{M, -1.5, 1.5}}, 0},
    {"relu", build_relu, 1, {{M, -2, 2}}, 0},
    {"relu6", build_relu6, 1, {{MIX_SHAPE(2, 4), -3, 9}}, 0},
    {"elu", build_elu, 1, {{M, -2, 2}}, 0},
    {"selu", build_selu, 1, {{M, -2, 2}}, 0},
    {"softplus", build_softplus, 1, {{M, -2, 2}}, 0},
    {"softsign", build_softsign, 1, {{M, -2, 2}}, 0},
    {"leaky_relu", build_leaky_relu, 1, {{M, -2, 2}}, 0},
    {"cast", build_cast, 1, {{M, -2, 2}}, 0},
    {"relu_grad", build_relu_grad, 2, {{M, -2, 2}, {M, -2, 2}}, 0},
    {"relu6_grad", build_relu6_grad, 2, {{M, -2, 2}, {M, -3, 9}}, 0},
    {"leaky_relu_grad", build_leaky_relu_grad, 2, {{M, -2, 2}, {M, -2, 2}}, 0},
    {"softplus_grad", build_softplus_grad, 2, {{M, -2, 2}, {M, -2, 2}}, 0},
    {"softsign_grad", build_softsign_grad, 2, {{M, -2, 2}, {M, -2, 2}}, 0},
    {"elu_grad", build_elu_grad, 2, {{M, -2, 2}, {M, -1, 2}}, 0},
    {"selu_grad", build_selu_grad, 2, {{M, -2, 2}, {M, -1.5, 2}}, 0},
    {"tanh_grad", build_tanh_grad, 2, {{M, -0.9, 0.9}, {M, -2, 2}}, 0},
    {"sigmoid_grad", build_sigmoid_grad, 2, {{M, 0.1, 0.9}, {M, -2, 2}}, 0},
    {"sqrt_grad", build_sqrt_grad, 2, {{M, 0.5, 2}, {M, -2, 2}}, 0},
    {"rsqrt_grad", build_rsqrt_grad, 2, {{M, 0.5, 2}, {M, -2, 2}}, 0},
    {"reciprocal_grad", build_reciprocal_grad, 2, {{M, 0.5, 2}, {M, -2, 2}}, 0},
    {"add", build_add, 2, {{M, -2, 2}, {M, -2, 2}}, 0},
    {"add", build_add, 2, {{MIX_SHAPE(2, 1), -2, 2}, {MIX_SHAPE(4, 1, 3), -2, 2}}, 0},
    {"add", build_add, 2, {{MIX_SCALAR, -2, 2}, {M, -2, 2}}, 0},
    {"subtract", build_subtract, 2, {{M, -2, 2}, {MIX_SHAPE(3), -2, 2}}, 0},
    {"multiply", build_multiply, 2, {{M, -2, 2}, {M, -2, 2}}, 0},
    {"multiply", build_multiply, 2, {{MIX_SHAPE(3), -2, 2}, {MIX_SHAPE(2, 1), -2, 2}}, 0},
    {"divide", build_divide, 2, {{M, -2, 2}, {M, 0.5, 2}}, 0},
    {"divide", build_divide, 2, {{MIX_SHAPE(2, 1), -2, 2}, {MIX_SHAPE(3), -2, -0.5}}, 0},
    {"floor_mod", build_floor_mod, 2, {{M, -4, 4}, {M, 0.9, 1.1}}, 0},
    {"power", build_power, 2, {{M, 0.5, 2}, {M, 0.5, 2}}, 0},
    {"power", build_power, 2, {{MIX_SHAPE(2, 1), 0.5, 2}, {MIX_SHAPE(3), -2, 2}}, 0},
    {"atan2", build_atan2, 2, {{M, -2, 2}, {MIX_SHAPE(3), 0.5, 2}}, 0},
    {"maximum", build_maximum, 2, {{M, -2, 2}, {M, -2, 2}}, 0},
    {"maximum", build_maximum, 2, {{M, -2, 2}, {MIX_SCALAR, -1, 1}}, 0},
    {"minimum", build_minimum, 2, {{MIX_SHAPE(3), -2, 2}, {M, -2, 2}}, 0},
    {"squared_difference", build_squared_difference, 2, {{M, -2, 2}, {MIX_SHAPE(2, 1), -2, 2}}, 0},
    {"bias_add", build_bias_add, 2, {{MIX_SHAPE(2, 2, 3), -2, 2}, {MIX_SHAPE(3), -2, 2}}, 0},
    {"bias_add_grad", build_bias_add_grad, 1, {{CUBE, -2, 2}}, 0},
    {"add_n", build_add_n, 2, {{M, -2, 2}, {M, -2, 2}}, 0},
    {"select", build_select, 2, {{M, -2, 2}, {M, -2, 2}}, 0},
    {"select", build_select, 2, {{MIX_SHAPE(3), -2, 2}, {MIX_SCALAR, -2, 2}}, 0},
    /* Of three steps of three operations each. */
    {"fourier", build_real_part, 2, {{MIX_SHAPE(2, 6), -1, 1}, {MIX_SHAPE(2, 6), -1, 1}}, 0},
    {"fourier", build_imaginary_part, 2, {{MIX_SHAPE(5), -1, 1}, {MIX_SHAPE(5), -1, 1}}, 0},
    {"divide", build_inverse, 2, {{MIX_SHAPE(5), -1, 1}, {MIX_SHAPE(5), -1, 1}}, 0},
    {"transpose", build_sort, 1, {{M, -2, 2}}, 0},
    {"eigh", build_eigh_vectors, 1, {{MIX_SHAPE(2, 3, 3), -1, 1}}, 0},
    {"eigh", build_eigh_values, 1, {{MIX_SHAPE(2, 2), -1, 1}}, 0},
    {"eigh", build_eigh_values, 1, {{MIX_SHAPE(2, 3, 3), -1, 1}}, 0},
    {"eigh", build_eigh_vectors, 1, {{MIX_SHAPE(3, 3), -1, 1}}, 0},
    {"svd", build_svd_values, 1, {{MIX_SHAPE(2, 3, 2), -1, 1}}, 0},
    {"svd", build_svd_left, 1, {{MIX_SHAPE(2, 3), -1, 1}}, 0},
    {"svd", build_svd_left, 1, {{MIX_SHAPE(3, 1), -1, 1}}, 0},
    {"svd", build_svd_left, 1, {{MIX_SHAPE(3, 3), -1, 1}}, 0},
    {"svd", build_svd_right, 1, {{MIX_SHAPE(2, 2, 3), -1, 1}}, 0},
    {"svd", build_svd_right, 1, {{MIX_SHAPE(3, 2), -1, 1}}, 0},
    {"svd", build_svd_full_left, 1, {{MIX_SHAPE(3, 2), -1, 1}}, 0},
    {"svd", build_svd_full_right, 1, {{MIX_SHAPE(2, 3), -1, 1}}, 0},
    {"eig", build_eig_real, 1, {{MIX_SHAPE(2, 3, 3), -1, 1}}, 0},
    {"matrix_solve", build_matrix_solve, 2, {{MIX_SHAPE(3, 3), 0.5, 1}, {MIX_SHAPE(3, 2), -1, 1}}, 0},
    {"abs", build_eig_imaginary, 1, {{MIX_SHAPE(3, 3), -1, 1}}, 0},
    {"add", build_eig_vectors, 1, {{MIX_SHAPE(3, 3), -1, 1}}, 0},
    {"add", build_cumulative, 1, {{M, 0.5, 1.5}}, 0},
    {"scan", build_scan, 3, {{{1, {3}}, -1, 1}, {{2, {3, 3}}, -1, 1}, {{1, {3}}, -1, 1}}, 48},
    {"clip", build_clip, 3, {{M, -2, 2}, {MIX_SCALAR, -1.2, -1}, {MIX_SCALAR, 0.8, 1}}, 0},
    {"reduce_sum", build_reduce_sum_one, 1, {{CUBE, -2, 2}}, 0},
    {"reduce_sum", build_reduce_sum_all, 1, {{CUBE, -2, 2}}, 0},
    {"reduce_sum", build_reduce_sum_kept, 1, {{CUBE, -2, 2}}, 0},
    {"reduce_mean", build_reduce_mean_one, 1, {{CUBE, -2, 2}}, 0},
    {"reduce_mean", build_reduce_mean_all, 1, {{CUBE, -2, 2}}, 0},
    {"reduce_prod", build_reduce_prod_one, 1, {{M, -2, -0.5}}, 0},
    {"reduce_prod", build_reduce_prod_all, 1, {{M, 0.5, 1.5}}, 0},
    {"reduce_max", build_reduce_max_one, 1, {{CUBE, -2, 2}}, 0},
    {"reduce_max", build_reduce_max_all, 1, {{M, -2, 2}}, 0},
    {"reduce_min", build_reduce_min_one, 1, {{CUBE, -2, 2}}, 0},
    {"matmul", build_matmul_nn, 2, {{M, -1, 1}, {MIX_SHAPE(3, 4), -1, 1}}, 0},
    {"matmul", build_matmul_nt, 2, {{M, -1, 1}, {MIX_SHAPE(4, 3), -1, 1}}, 0},
    {"matmul", build_matmul_tn, 2, {{MIX_SHAPE(3, 2), -1, 1}, {MIX_SHAPE(3, 4), -1, 1}}, 0},
    {"matmul", build_matmul_tt, 2, {{MIX_SHAPE(3, 2), -1, 1}, {MIX_SHAPE(4, 3), -1, 1}}, 0},
    {"batch_matmul", build_matmul_nn, 2, {{MIX_SHAPE(2, 2, 3), -1, 1}, {MIX_SHAPE(2, 3, 2), -1, 1}}, 0},
    {"batch_matmul", build_matmul_nt, 2, {{MIX_SHAPE(2, 1, 2, 3), -1, 1}, {MIX_SHAPE(3, 2, 3), -1, 1}}, 0},
    {"batch_matmul", build_matmul_tn, 2, {{MIX_SHAPE(3, 2), -1, 1}, {MIX_SHAPE(2, 3, 2), -1, 1}}, 0},
    {"batch_matmul", build_matmul_tt, 2, {{MIX_SHAPE(2, 3, 2), -1, 1}, {MIX_SHAPE(2, 3), -1, 1}}, 0},
    {"matmul_channels", build_matmul_channels, 1, {{M, -1, 1}}, 0},
    {"matmul_channels", build_matmul_channels, 1, {{MIX_SHAPE(2, 2, 3), -1, 1}}, 0},
    {"matmul_blocks", build_matmul_blocks, 1, {{M, -1, 1}}, 0},
    {"conv", build_conv_same, 2, {{MIX_SHAPE(1, 4, 3, 2), -1, 1}, {MIX_SHAPE(3, 2, 2, 2), -1, 1}}, 0},
    {"conv", build_conv_causal, 2, {{MIX_SHAPE(2, 5, 2), -1, 1}, {MIX_SHAPE(3, 2, 2), -1, 1}}, 0},
    {"conv", build_conv_groups, 2, {{MIX_SHAPE(2, 3, 4), -1, 1}, {MIX_SHAPE(2, 2, 4), -1, 1}}, 0},
    {"conv_input_gradient",
     build_conv_transpose,
     2,
     {{MIX_SHAPE(1, 2, 2, 2), -1, 1}, {MIX_SHAPE(3, 2, 2, 2), -1, 1}},
     0},
    {"conv_input_gradient",
     build_conv_transpose_groups,
     2,
     {{MIX_SHAPE(2, 2, 4), -1, 1}, {MIX_SHAPE(2, 2, 4), -1, 1}},
     0},
    {"conv_kernel_gradient",
     build_conv_kernel_gradient,
     2,
     {{MIX_SHAPE(2, 4, 3), -1, 1}, {MIX_SHAPE(2, 2, 2), -1, 1}},
     0},
    {"depthwise_conv",
     build_depthwise,
     2,
     {{MIX_SHAPE(1, 3, 3, 2), -1, 1}, {MIX_SHAPE(2, 3, 2, 2), -1, 1}},
     0},
    {"depthwise_conv_input_gradient",
     build_depthwise_conv_input_gradient,
     2,
     {{MIX_SHAPE(2, 2, 4), -1, 1}, {MIX_SHAPE(2, 2, 2), -1, 1}},
     0},
    {"depthwise_conv_kernel_gradient",
     build_depthwise_conv_kernel_gradient,
     2,
     {{MIX_SHAPE(2, 4, 2), -1, 1}, {MIX_SHAPE(2, 2, 4), -1, 1}},
     0},
    {"conv3d", build_conv3d, 2, {{MIX_SHAPE(1, 2, 3, 2, 2), -1, 1}, {MIX_SHAPE(2, 2, 1, 2, 2), -1, 1}}, 0},
    {"conv3d_input_gradient",
     build_conv3d_input_gradient,
     2,
     {{MIX_SHAPE(2, 1, 1, 1, 3), -1, 1}, {MIX_SHAPE(2, 2, 2, 1, 3), -1, 1}},
     0},
    {"conv3d_kernel_gradient",
     build_conv3d_kernel_gradient,
     2,
     {{MIX_SHAPE(1, 2, 3, 2, 2), -1, 1}, {MIX_SHAPE(1, 1, 2, 1, 2), -1, 1}},
     0},
    {"einsum", build_einsum_product, 2, {{M, -1, 1}, {MIX_SHAPE(4, 3), -1, 1}}, 0},
    {"einsum", build_einsum_heads, 2, {{MIX_SHAPE(2, 2, 3), -1, 1}, {MIX_SHAPE(3, 2, 3), -1, 1}}, 0},
    {"einsum", build_einsum_elements, 2, {{M, -1, 1}, {MIX_SHAPE(3), -1, 1}}, 0},
    {"attention", build_attention, 3, {QUERIES, KEYS, VALUES}, 0},
    {"attention", build_attention_adding, 3, {QUERIES, KEYS, VALUES}, 0},
    {"attention", build_attention_dropping, 3, {QUERIES, KEYS, VALUES}, 0},
    {"attention_grad", build_attention_grad, 3, {QUERIES, KEYS, VALUES}, 0},
    {"attention_grad", build_attention_grad_of_keys, 3, {QUERIES, KEYS, VALUES}, 0},
    {"softmax", build_softmax, 1, {{MIX_SHAPE(2, 4), -2, 2}}, 0},
    {"log_softmax", build_log_softmax, 1, {{MIX_SHAPE(2, 4), -2, 2}}, 0},
    {"softmax_cross_entropy", build_cross_entropy, 1, {{MIX_SHAPE(2, 4), -2, 2}}, 0},
    {"softmax_cross_entropy", build_cross_entropy_of_labels, 1, {{MIX_SHAPE(2, 4), 0, 1}}, 0},
    {"softmax_cross_entropy",
     build_cross_entropy_backprop,
     2,
     {{MIX_SHAPE(2, 4), -2, 2}, {MIX_SHAPE(2, 4), 0, 1}},
     0},
    {"sparse_softmax_cross_entropy", build_sparse, 1, {{MIX_SHAPE(2, 4), -2, 2}}, 0},
    {"sparse_softmax_cross_entropy", build_sparse_backprop, 1, {{MIX_SHAPE(2, 4), -2, 2}}, 0},
    {"gather", build_gather_rows, 1, {{MIX_SHAPE(4, 2), -2, 2}}, 0},
    {"gather", build_gather_middle, 1, {{MIX_SHAPE(2, 4, 2), -2, 2}}, 0},
    {"gather", build_gather_last, 1, {{M, -2, 2}}, 0},
    {"segment_sum", build_segment_sum, 1, {{MIX_SHAPE(2, 3, 2), -2, 2}}, 0},
    {"rows", build_rows, 1, {{MIX_SHAPE(2, 3, 2), -2, 2}}, 0},
    {"concat", build_concat, 2, {{M, -2, 2}, {MIX_SHAPE(2, 1), -2, 2}}, 0},
    {"slice", build_slice, 1, {{M, -2, 2}}, 0},
    {"pad", build_pad, 1, {{M, -2, 2}}, 0},
    {"reshape", build_reshape, 1, {{M, -2, 2}}, 0},
    {"optimization_barrier", build_optimization_barrier, 1, {{M, -2, 2}}, 0},
    {"check_numerics", build_check_numerics, 1, {{M, -2, 2}}, 0},
    {"transpose", build_transpose, 1, {{CUBE, -2, 2}}, 0},
    {"broadcast_to", build_broadcast_to, 1, {{MIX_SHAPE(2, 1), -2, 2}}, 0},
    {"max_pool", build_max_pool, 1, {{LINE, -2, 2}}, 0},
    {"max_pool_grad", build_max_pool_grad, 1, {{LINE, -2, 2}}, 0},
    {"max_pool_grad_grad", build_max_pool_grad_grad, 1, {{LINE, -2, 2}}, 0},
    {"avg_pool", build_avg_pool, 1, {{LINE, -2, 2}}, 0},
    {"avg_pool_grad", build_avg_pool_grad, 1, {{LINE, -2, 2}}, 0},
    {"max_pool3d", build_max_pool3d, 1, {{VOLUME, -2, 2}}, 0},
    {"max_pool_grad3d", build_max_pool_grad3d, 1, {{VOLUME, -2, 2}}, 0},
    {"max_pool_grad_grad3d", build_max_pool_grad_grad3d, 1, {{VOLUME, -2, 2}}, 0},
    {"avg_pool3d", build_avg_pool3d, 1, {{VOLUME, -2, 2}}, 0},
    {"avg_pool_grad3d", build_avg_pool_grad3d, 1, {{VOLUME, -2, 2}}, 0},
    {"resize_axis", build_resize_axis, 1, {{M, -2, 2}}, 0},
    {"resize_axis", build_resize_smaller, 1, {{CUBE, -2, 2}}, 0},
    {"projective_transform", build_transform_nearest, 1, {{IMAGES, -2, 2}}, 0},
    {"projective_transform", build_transform_constant, 1, {{IMAGES, -2, 2}}, 0},
    {"projective_transform", build_transform_reflect, 1, {{IMAGES, -2, 2}}, 0},
    {"projective_transform", build_transform_wrap, 1, {{IMAGES, -2, 2}}, 0},
    {"projective_transform", build_transform_edge, 1, {{IMAGES, -2, 2}}, 0},
    {"projective_transform", build_transform_nowhere, 1, {{IMAGES, -2, 2}}, 0},
};

/* ---- values ---- */

typedef struct point {
  double x[OPERANDS][ELEMENTS];
} point;

static int size_of(const row *r, int operand) { return (int)mix_shape_size(r->operands[operand].shape); }

/* Spread over the domain in a mixed order, shifted slightly by operand and element, so that no two values are
 * within 1e-3 of each other or of a kink (0, 6, the bounds of clip). */
static void fill_operand(const row *r, int operand, double *out) {
  int n = size_of(r, operand), step = n % 5 ? 5 : 3;
  double low = r->operands[operand].low, width = r->operands[operand].high - low;
  for (int i = 0; i < n; i++)
    out[i] = low + width * (((i * step + operand) % n) + 0.5 + 0.13 * sin(1.7 * i + 2.3 * operand + 0.4)) / n;
}

static double weight(int i) { return (double[]){1, -0.5, 1.5, 0.75, -1.25}[i % 5]; }

static mix_tensor *weights_for(mix_tensor *y) {
  double w[128];
  int64_t n = mix_shape_size(mix_tensor_shape(y));
  assert_in_range(n, 1, COUNT(w));
  for (int i = 0; i < n; i++) w[i] = weight(i);
  return tensor(mix_tensor_dtype(y), mix_tensor_shape(y), w);
}

static void make_operands(const row *r, mix_dtype dtype, const point *at, mix_tensor **x) {
  for (int k = 0; k < r->count; k++) x[k] = tensor(dtype, r->operands[k].shape, at->x[k]);
}

static void watch(mix_tape *tape, const row *r, mix_tensor **x) {
  for (int k = 0; k < r->count; k++) assert_int_equal(mix_tape_watch(tape, x[k]), MIX_OK);
}

/* The weighted sum of the result's elements, on the host. */
static double objective(const row *r, const point *at) {
  mix_scope *scope = mix_scope_begin();
  mix_tensor *x[OPERANDS];
  double y[128], sum = 0;
  make_operands(r, MIX_FLOAT64, at, x);
  mix_tensor *result = r->build(x);
  no_error();
  int64_t n = mix_shape_size(mix_tensor_shape(result));
  read_into(result, n, y);
  for (int i = 0; i < n; i++) sum += weight(i) * y[i];
  mix_scope_end(scope);
  return sum;
}

/* Its gradient by the tape; a NULL gradient gives zeros. */
static void gradients(const row *r, mix_dtype dtype, const point *at, point *out) {
  mix_scope *scope = mix_scope_begin();
  mix_tensor *x[OPERANDS];
  make_operands(r, dtype, at, x);
  mix_tape *tape = mix_tape_begin();
  watch(tape, r, x);
  mix_tensor *y = r->build(x);
  mix_tape_end(tape);
  no_error();
  mix_list *found = mix_tape_gradient_from(tape, mix_list_of(y), mix_list_of(weights_for(y)),
                                           mix_list_new(r->count, (void **)x));
  no_error();
  for (int k = 0; k < r->count; k++) {
    mix_tensor *gradient = mix_list_get(found, k);
    memset(out->x[k], 0, sizeof out->x[k]);
    if (!gradient) continue;
    has_type(gradient, dtype, r->operands[k].shape);
    read_into(gradient, size_of(r, k), out->x[k]);
  }
  mix_scope_end(scope);
}

/* The gradient of a weighted sum of all first gradients. */
static double second_objective(const row *r, const point *at) {
  point first;
  double sum = 0;
  gradients(r, MIX_FLOAT64, at, &first);
  for (int k = 0; k < r->count; k++)
    for (int i = 0; i < size_of(r, k); i++) sum += weight(i + 2) * first.x[k][i];
  return sum;
}

static void second_gradients(const row *r, const point *at, point *out) {
  mix_scope *scope = mix_scope_begin();
  mix_tensor *x[OPERANDS];
  make_operands(r, MIX_FLOAT64, at, x);
  mix_list *sources = mix_list_new(r->count, (void **)x), *targets = mix_list_new(0, NULL),
           *upstream = mix_list_new(0, NULL);
  mix_tape *outer = mix_tape_begin();
  watch(outer, r, x);
  mix_tape *inner = mix_tape_begin();
  watch(inner, r, x);
  mix_tensor *y = r->build(x);
  mix_tape_end(inner);
  mix_list *first = mix_tape_gradient_from(inner, mix_list_of(y), mix_list_of(weights_for(y)), sources);
  no_error();
  mix_tape_end(outer);
  for (int k = 0; k < r->count; k++) {
    double w[ELEMENTS];
    for (int i = 0; i < size_of(r, k); i++) w[i] = weight(i + 2);
    mix_tensor *gradient = mix_list_get(first, k);
    if (!gradient) continue;
    mix_list_append(targets, gradient);
    mix_list_append(upstream, tensor(MIX_FLOAT64, r->operands[k].shape, w));
  }
  mix_list *found =
      mix_list_count(targets) ? mix_tape_gradient_from(outer, targets, upstream, sources) : NULL;
  no_error();
  for (int k = 0; k < r->count; k++) {
    mix_tensor *gradient = found ? mix_list_get(found, k) : NULL;
    memset(out->x[k], 0, sizeof out->x[k]);
    if (gradient) read_into(gradient, size_of(r, k), out->x[k]);
  }
  mix_scope_end(scope);
}

/* Central differences (f(x + h) - f(x - h)) / 2h with h = 2^-17: truncation h^2 / 6 |f'''| < 1e-8 for the
 * third derivatives here (below 1000), and rounding 2^-53 |f| / h < 1e-9 for |f| < 100. Casting goes through
 * float32, whose spacing of 2^-23 |x| is too coarse for this h: there h is 2^-10 and the error 2^-23 / 2^-10.
 * The function is linear, so there is no truncation. */
static void compare_with_differences(const row *r, double (*f)(const row *, const point *), const point *at,
                                     const point *got, const char *what) {
  bool through_float32 = strcmp(r->op, "cast") == 0;
  double h = through_float32 ? 0x1p-10 : 0x1p-17, tolerance = through_float32 ? 0x1p-12 : 1e-7;
  for (int k = 0; k < r->count; k++)
    for (int i = 0; i < size_of(r, k); i++) {
      point moved = *at;
      moved.x[k][i] = at->x[k][i] + h;
      double above = f(r, &moved);
      moved.x[k][i] = at->x[k][i] - h;
      double below = f(r, &moved), wanted = (above - below) / (2 * h);
      if (!(fabs(got->x[k][i] - wanted) <= tolerance * fmax(1, fabs(wanted))))
        fail_msg("%s (row %d), %s by operand %d, element %d: %.12g; differences give %.12g", r->op,
                 (int)(r - rows), what, k, i, got->x[k][i], wanted);
    }
}

static void set_point(const row *r, point *at) {
  for (int k = 0; k < r->count; k++) fill_operand(r, k, at->x[k]);
}

/* ---- tests ---- */

static void every_differentiable_operation_has_a_row(void **state) {
  (void)state;
  for (int i = 0; mix_all_ops[i]; i++) {
    if (!mix_all_ops[i]->gradient) continue;
    bool found = mix_all_ops[i] == &mix_op_read; /* belongs to graph/: tests/graph */
    for (int r = 0; r < COUNT(rows); r++) found |= strcmp(rows[r].op, mix_all_ops[i]->name) == 0;
    if (!found) fail_msg("%s has a gradient and no row here", mix_all_ops[i]->name);
  }
  for (int r = 0; r < COUNT(rows); r++) {
    const mix_op *op = mix_op_by_name(rows[r].op);
    mix_scope *scope = mix_scope_begin();
    mix_tensor *x[OPERANDS];
    point at;
    set_point(&rows[r], &at);
    make_operands(&rows[r], MIX_FLOAT64, &at, x);
    assert_non_null(op);
    assert_non_null(op->gradient);
    mix_tensor *y = rows[r].build(x);
    no_error();
    assert_ptr_equal(y->node->op, op);
    mix_scope_end(scope);
  }
}

static void first_gradients_agree_with_differences(void **state) {
  (void)state;
  for (int i = 0; i < COUNT(rows); i++) {
    point at, got;
    set_point(&rows[i], &at);
    gradients(&rows[i], MIX_FLOAT64, &at, &got);
    compare_with_differences(&rows[i], objective, &at, &got, "gradient");
  }
}

static void second_gradients_agree_with_differences(void **state) {
  (void)state;
  for (int i = 0; i < COUNT(rows); i++) {
    point at, got;
    set_point(&rows[i], &at);
    second_gradients(&rows[i], &at, &got);
    compare_with_differences(&rows[i], second_objective, &at, &got, "second gradient");
  }
}

/* For operands that the dtype represents, float64's gradient counts as exact. A gradient in 16 bits is a
 * chain of at most 8 operations, each rounded with relative error u. Intermediate values are at most twice
 * the largest gradient or 2, and earlier errors grow by factors up to 2: |error| <= 8 * 2 u max(1, max
 * |gradient|) = 16 u max(1, max |gradient|). */
static void sixteen_bit_gradients_agree_with_float64(void **state) {
  (void)state;
  static const mix_dtype dtypes[] = {MIX_FLOAT16, MIX_BFLOAT16};
  for (int d = 0; d < COUNT(dtypes); d++)
    for (int n = 0; n < COUNT(rows); n++) {
      const row *r = &rows[n];
      point at, got, wanted;
      set_point(r, &at);
      for (int k = 0; k < r->count; k++)
        read_into(tensor(dtypes[d], r->operands[k].shape, at.x[k]), size_of(r, k), at.x[k]);
      gradients(r, dtypes[d], &at, &got);
      gradients(r, MIX_FLOAT64, &at, &wanted);
      for (int k = 0; k < r->count; k++) {
        double largest = 1;
        for (int i = 0; i < size_of(r, k); i++) largest = fmax(largest, fabs(wanted.x[k][i]));
        double bound = (r->roundings ? r->roundings : 16) * unit_roundoff(dtypes[d]) * largest;
        for (int i = 0; i < size_of(r, k); i++)
          if (!(fabs(got.x[k][i] - wanted.x[k][i]) <= bound))
            fail_msg("%s (row %d) in %s, operand %d, element %d: %.6g; float64 gives %.6g, bound %.2g", r->op,
                     n, mix_dtype_name(dtypes[d]), k, i, got.x[k][i], wanted.x[k][i], bound);
      }
    }
}

/* ---- values that finite differences do not show ---- */

static mix_list *gradient_of(mix_tensor *(*build)(mix_tensor *const *), int count, mix_tensor **x) {
  mix_tape *tape = mix_tape_begin();
  for (int k = 0; k < count; k++) mix_tape_watch(tape, x[k]);
  mix_tensor *y = build(x);
  mix_tape_end(tape);
  return mix_tape_gradient(tape, y, mix_list_new(count, (void **)x));
}

static void at_kinks_and_ties(void **state) {
  (void)state;
  mix_tensor *x = tensor(MIX_FLOAT32, MIX_SHAPE(4), NUMBERS(-1, 0, 1, 6));
  has_values(mix_list_get(gradient_of(build_relu, 1, &x), 0), 4, NUMBERS(0, 0, 1, 1));
  has_values(mix_list_get(gradient_of(build_relu6, 1, &x), 0), 4, NUMBERS(0, 0, 1, 0));
  has_values(mix_list_get(gradient_of(build_abs, 1, &x), 0), 4, NUMBERS(-1, 0, 1, 1));
  mix_tensor *ties[] = {tensor(MIX_FLOAT32, MIX_SHAPE(3), NUMBERS(1, 2, 3)),
                        tensor(MIX_FLOAT32, MIX_SHAPE(3), NUMBERS(1, 3, 2))};
  mix_list *found = gradient_of(build_maximum, 2, ties);
  has_values(mix_list_get(found, 0), 3, NUMBERS(1, 0, 1));
  has_values(mix_list_get(found, 1), 3, NUMBERS(0, 1, 0));
  mix_tensor *equal = tensor(MIX_FLOAT32, MIX_SHAPE(2, 2), NUMBERS(3, 3, 1, 3));
  has_values(mix_list_get(gradient_of(build_reduce_max_all, 1, &equal), 0), 4,
             NUMBERS(1 / 3.f, 1 / 3.f, 0, 1 / 3.f));
  mix_tensor *bounded[] = {tensor(MIX_FLOAT32, MIX_SHAPE(4), NUMBERS(-2, -1, 1, 2)),
                           mix_scalar(-1, MIX_FLOAT32), mix_scalar(1, MIX_FLOAT32)};
  found = gradient_of(build_clip, 3, bounded);
  has_values(mix_list_get(found, 0), 4, NUMBERS(0, 1, 1, 0));
  has_values(mix_list_get(found, 1), 1, NUMBERS(1));
  has_values(mix_list_get(found, 2), 1, NUMBERS(1));
}

/* One zero: only its gradient is nonzero, the product of the others. Two zeros: all gradients are zero. */
static void products_with_zeros(void **state) {
  (void)state;
  mix_tensor *x = tensor(MIX_FLOAT32, MIX_SHAPE(3, 3), NUMBERS(2, 0, 5, 0, 0, 3, 1, 2, 4));
  has_values(mix_list_get(gradient_of(build_reduce_prod_one, 1, &x), 0), 9,
             NUMBERS(0, 10, 0, 0, 0, 0, 8, 4, 2));
}

static mix_tensor *blocked(mix_tensor *const *x) { return mix_multiply(mix_stop_gradient(x[0]), x[0]); }
static mix_tensor *through_integers(mix_tensor *const *x) {
  return mix_cast(mix_cast(x[0], MIX_INT32), MIX_FLOAT32);
}
static mix_tensor *mean_of_many(mix_tensor *const *x) { return mix_reduce_mean(x[0], MIX_ALL_AXES, false); }

static mix_tensor *by_transforms(mix_tensor *const *x) {
  return mix_projective_transform(ones(MIX_FLOAT32, MIX_SHAPE(1, 2, 3, 1)), x[0], MIX_BILINEAR, MIX_FILL_WRAP,
                                  0);
}
static void operands_without_gradient(void **state) {
  (void)state;
  mix_tensor *x = tensor(MIX_FLOAT32, MIX_SHAPE(2), NUMBERS(3, -2));
  has_values(mix_list_get(gradient_of(blocked, 1, &x), 0), 2, NUMBERS(3, -2));
  assert_null(mix_list_get(gradient_of(through_integers, 1, &x), 0));
  assert_null(mix_list_get(gradient_of(build_floor, 1, &x), 0));
  assert_null(mix_list_get(gradient_of(build_ceil, 1, &x), 0));
  assert_null(mix_list_get(gradient_of(build_round, 1, &x), 0));
  mix_tensor *transforms = ones(MIX_FLOAT32, MIX_SHAPE(1, 8));
  assert_null(mix_list_get(gradient_of(by_transforms, 1, &transforms), 0));
  no_error();
}

/* 2^17 elements: the count overflows float16, the gradient 2^-17 does not underflow. */
static void mean_over_more_than_float16_counts(void **state) {
  (void)state;
  enum { MANY = 1 << 17 };
  mix_tensor *x = mix_fill(MIX_SHAPE(MANY), 1, MIX_FLOAT16),
             *gradient = mix_list_get(gradient_of(mean_of_many, 1, &x), 0);
  static double got[MANY];
  read_into(gradient, MANY, got);
  for (int i = 0; i < MANY; i += 4093) assert_true(got[i] == 0x1p-17);
}

/* The dtype is kept: constants inside the rules have the operand's dtype. */
static void products_make_only_what_they_need(void **state) {
  (void)state;
  mix_tensor *x[] = {ones(MIX_FLOAT16, MIX_SHAPE(2, 3)), ones(MIX_FLOAT16, MIX_SHAPE(2, 3))};
  mix_list *found = gradient_of(build_add, 2, x);
  no_error();
  assert_ptr_equal(((mix_tensor *)mix_list_get(found, 0))->node,
                   ((mix_tensor *)mix_list_get(found, 1))->node);
  mix_tensor *da = mix_list_get(gradient_of(build_relu, 1, x), 0);
  assert_ptr_equal(da->node->op, &mix_op_relu_grad);
  assert_ptr_equal(da->node->inputs[1].node->op,
                   &mix_op_relu); /* uses the result, so that the operand need not be kept */
}

/* Any failing allocation while an operation and its gradient are built: MemoryError, and no leak (checked by
 * the sanitizers). */
static void any_allocation_may_fail(void **state) {
  (void)state;
  for (int n = 0; n < COUNT(rows); n++) {
    const row *r = &rows[n];
    point at;
    set_point(r, &at);
    for (int allowed = 0;; allowed++) {
      mix_scope *scope = mix_scope_begin();
      mix_tensor *x[OPERANDS];
      make_operands(r, MIX_FLOAT32, &at, x);
      mix_inject_allocation_failure(allowed);
      mix_tape *tape = mix_tape_begin();
      for (int k = 0; tape && k < r->count; k++) mix_tape_watch(tape, x[k]);
      mix_tensor *y = r->build(x);
      mix_tape_end(tape);
      mix_list *found = mix_tape_gradient(tape, y, mix_list_new(r->count, (void **)x));
      mix_inject_allocation_failure(-1);
      mix_status status = mix_error_take(NULL, 0);
      assert_int_equal(found == NULL, status != MIX_OK);
      mix_scope_end(scope);
      if (status == MIX_OK) break;
      if (status != MIX_MEMORY_ERROR)
        fail_msg("%s (row %d), allocation %d: %s", r->op, n, allowed, mix_status_name(status));
      assert_in_range(allowed, 0, 5000);
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(every_differentiable_operation_has_a_row),
      TEST(first_gradients_agree_with_differences),
      TEST(second_gradients_agree_with_differences),
      TEST(sixteen_bit_gradients_agree_with_float64),
      TEST(at_kinks_and_ties),
      TEST(products_with_zeros),
      TEST(operands_without_gradient),
      TEST(mean_over_more_than_float16_counts),
      TEST(products_make_only_what_they_need),
      TEST(any_allocation_may_fail),
  };
  return cmocka_run_group_tests_name("ops/gradients", tests, NULL, NULL);
}
