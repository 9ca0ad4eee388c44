/* TensorFlow's functions of elements, of sums along axes, and products. */
#include "nn/layers/tf_operations/operation.h"

#include "base/error.h"
#include "nn/formulas.h"
#include "tensor/shape.h"
#include <mixtape/activation.h>
#include <string.h>

static const char *first_of(const mix_tf_operation_call *call) { return call->names[0]; }
static mix_tensor *first_tensor(const mix_tf_operation_call *call) {
  return mix_tf_operation_tensor(call, first_of(call), NULL);
}

mix_list *mix_tf_operation_unary(const mix_tf_operation_call *call) {
  mix_tensor *x = first_tensor(call);
  return x ? mix_one_result(call->operation->unary(x)) : NULL;
}

mix_list *mix_tf_operation_binary(const mix_tf_operation_call *call) {
  mix_tensor *a, *b;
  if (!mix_tf_operation_pair(call, call->names[0], call->names[1], &a, &b)) return NULL;
  return mix_one_result(call->operation->binary(a, b));
}

/* Integers are divided as floating numbers: in float32 those of 8 and 16 bits, else in float64. */
mix_list *mix_tf_operation_truediv(const mix_tf_operation_call *call) {
  mix_tensor *a, *b;
  if (!mix_tf_operation_pair(call, "x", "y", &a, &b)) return NULL;
  const mix_dtype dtype = mix_tensor_dtype(a);
  if (dtype != mix_tensor_dtype(b) || mix_dtype_is_floating(dtype) || dtype == MIX_BOOL)
    return mix_one_result(mix_divide(a, b));
  const mix_dtype wide = mix_dtype_size(dtype) <= 2 ? MIX_FLOAT32 : MIX_FLOAT64;
  return mix_one_result(mix_divide(mix_cast(a, wide), mix_cast(b, wide)));
}

mix_list *mix_tf_operation_clip(const mix_tf_operation_call *call) {
  mix_tensor *x = first_tensor(call), *low = x ? mix_tf_operation_tensor(call, "clip_value_min", x) : NULL,
             *high = low ? mix_tf_operation_tensor(call, "clip_value_max", x) : NULL;
  if (!high) return NULL;
  const bool scalars = !mix_tensor_shape(low).rank && !mix_tensor_shape(high).rank;
  return mix_one_result(scalars ? mix_clip(x, low, high) : mix_maximum(mix_minimum(x, high), low));
}

mix_list *mix_tf_operation_where(const mix_tf_operation_call *call) {
  mix_tensor *condition = first_tensor(call), *a, *b;
  if (!condition) return NULL;
  if (!mix_tf_operation_value(call, "x") || !mix_tf_operation_value(call, "y"))
    return mix_tf_operation_refused(call, mix_tf_operation_value(call, "x") ? "y" : "x",
                                    "a tensor or numbers");
  return mix_tf_operation_pair(call, "x", "y", &a, &b) ? mix_one_result(mix_select(condition, a, b)) : NULL;
}

mix_list *mix_tf_operation_add_n(const mix_tf_operation_call *call) {
  mix_list *list = mix_tf_operation_tensors(call, "inputs");
  return list ? mix_one_result(mix_add_n(mix_list_count(list), (mix_tensor *const *)mix_list_items(list)))
              : NULL;
}

mix_list *mix_tf_operation_bias_add(const mix_tf_operation_call *call) {
  mix_tensor *x = first_tensor(call), *bias = x ? mix_tf_operation_tensor(call, "bias", x) : NULL;
  const char *format = json_string_value(mix_tf_operation_value(call, "data_format"));
  if (mix_tf_operation_value(call, "data_format") && (!format || !strncmp(format, "NC", 2)))
    return mix_tf_operation_refused(call, "data_format", "channels at the end");
  return bias ? mix_one_result(mix_bias_add(x, bias)) : NULL;
}

/* ---- products ---- */

static bool refuse_flags(const mix_tf_operation_call *call, const char *const *names) {
  bool flag = false;
  for (int i = 0; names[i]; i++) {
    if (!mix_tf_operation_flag(call, names[i], &flag)) return false;
    if (flag) return mix_tf_operation_refused(call, names[i], "false");
  }
  return true;
}

mix_list *mix_tf_operation_matmul(const mix_tf_operation_call *call) {
  static const char *const refused[] = {"a_is_sparse", "b_is_sparse", "grad_a", "grad_b", NULL};
  bool turn_a, turn_b, conjugate_a, conjugate_b;
  mix_tensor *a, *b;
  if (!mix_tf_operation_pair(call, "a", "b", &a, &b) || !refuse_flags(call, refused) ||
      !mix_tf_operation_flag(call, "transpose_a", &turn_a) ||
      !mix_tf_operation_flag(call, "transpose_b", &turn_b) ||
      !mix_tf_operation_flag(call, "adjoint_a", &conjugate_a) ||
      !mix_tf_operation_flag(call, "adjoint_b", &conjugate_b))
    return NULL;
  if (mix_tf_operation_value(call, "output_type"))
    return mix_tf_operation_refused(call, "output_type", "null");
  return mix_one_result(mix_matmul(a, b, turn_a || conjugate_a, turn_b || conjugate_b));
}

/* ---- along axes ---- */

typedef struct reduction {
  mix_tensor *x;
  mix_axes axes;
  bool keep_dims, none; /* an empty list of axes */
} reduction;

static bool read_reduction(const mix_tf_operation_call *call, reduction *r) {
  r->x = first_tensor(call);
  if (!r->x || !mix_tf_operation_axes(call, "axis", &r->axes) ||
      !mix_tf_operation_flag(call, "keepdims", &r->keep_dims))
    return false;
  r->none = (mix_tf_operation_value(call, "axis") && !r->axes.count) || !mix_tensor_shape(r->x).rank;
  return true;
}

mix_list *mix_tf_operation_reduce(const mix_tf_operation_call *call) {
  reduction r;
  if (!read_reduction(call, &r)) return NULL;
  return mix_one_result(r.none ? mix_identity(r.x) : call->operation->reduce(r.x, r.axes, r.keep_dims));
}

mix_list *mix_tf_operation_logsumexp(const mix_tf_operation_call *call) {
  reduction r;
  if (!read_reduction(call, &r)) return NULL;
  if (r.none) return mix_one_result(mix_identity(r.x));
  return mix_one_result(mix_log_sum_exp(r.x, r.axes, r.keep_dims));
}

static mix_tensor *variance(const mix_tf_operation_call *call) {
  reduction r;
  if (!read_reduction(call, &r)) return NULL;
  return r.none ? mix_zeros_like(r.x) : mix_reduce_variance(r.x, r.axes, r.keep_dims);
}
mix_list *mix_tf_operation_variance(const mix_tf_operation_call *call) {
  return mix_one_result(variance(call));
}
mix_list *mix_tf_operation_std(const mix_tf_operation_call *call) {
  mix_tensor *squared = variance(call);
  return squared ? mix_one_result(mix_sqrt(squared)) : NULL;
}

mix_list *mix_tf_operation_l2_normalize(const mix_tf_operation_call *call) {
  mix_tensor *x = first_tensor(call);
  mix_axes axes;
  double epsilon;
  if (!x || !mix_tf_operation_axes(call, "axis", &axes) ||
      !mix_tf_operation_number(call, "epsilon", &epsilon))
    return NULL;
  if (mix_tf_operation_value(call, "dim")) return mix_tf_operation_refused(call, "dim", "null");
  return mix_one_result(mix_scale_to_unit(x, axes, epsilon));
}

/* Mean and variance; of float16 in float32, rounded at the end. */
mix_list *mix_tf_operation_moments(const mix_tf_operation_call *call) {
  mix_tensor *x = first_tensor(call);
  mix_axes axes;
  bool keep_dims;
  if (!x || !mix_tf_operation_axes(call, "axes", &axes) ||
      !mix_tf_operation_flag(call, "keepdims", &keep_dims))
    return NULL;
  if (mix_tf_operation_value(call, "shift")) return mix_tf_operation_refused(call, "shift", "null");
  const mix_dtype dtype = mix_tensor_dtype(x);
  mix_tensor *y = dtype == MIX_FLOAT16 ? mix_cast(x, MIX_FLOAT32) : x, *mean = mix_reduce_mean(y, axes, true);
  mix_tensor *variance = mix_reduce_mean(mix_squared_difference(y, mix_stop_gradient(mean)), axes, true);
  if (!keep_dims) {
    mean = mix_squeeze(mean, axes);
    variance = mix_squeeze(variance, axes);
  }
  mix_list *results = mix_list_of(mix_cast(mean, dtype), mix_cast(variance, dtype));
  return mix_failed() ? NULL : results;
}

mix_list *mix_tf_operation_norm(const mix_tf_operation_call *call) {
  mix_tensor *x = first_tensor(call);
  mix_axes axes;
  bool keep_dims;
  const char *order = json_string_value(mix_tf_operation_value(call, "ord"));
  if (!x || !mix_tf_operation_axes(call, "axis", &axes) ||
      !mix_tf_operation_flag(call, "keepdims", &keep_dims))
    return NULL;
  if (!order || strcmp(order, "euclidean")) return mix_tf_operation_refused(call, "ord", "euclidean");
  return mix_one_result(mix_sqrt(mix_reduce_sum(mix_square(x), axes, keep_dims)));
}

static mix_list *arg(const mix_tf_operation_call *call, mix_tensor *(*find)(mix_tensor *x, int axis)) {
  mix_tensor *x = first_tensor(call);
  mix_dtype dtype;
  int axis = 0;
  if (!x || !mix_tf_operation_dtype(call, "output_type", MIX_INT64, &dtype)) return NULL;
  if (mix_tf_operation_value(call, "axis") &&
      !mix_tf_operation_axis(call, "axis", mix_tensor_shape(x).rank, &axis))
    return NULL;
  mix_tensor *index = find(x, axis);
  return mix_one_result(index && dtype != MIX_INT64 ? mix_cast(index, dtype) : index);
}
mix_list *mix_tf_operation_argmax(const mix_tf_operation_call *call) { return arg(call, mix_argmax); }
mix_list *mix_tf_operation_argmin(const mix_tf_operation_call *call) { return arg(call, mix_argmin); }

/* ---- activations; sigmoid and softmax keep their logits, which losses use. Those of keras3 take vectors
 * ---- */

static mix_list *activate(const mix_tf_operation_call *call, const char *activation) {
  mix_tensor *x = first_tensor(call);
  int axis = -1;
  if (!x || (mix_tf_operation_value(call, "axis") &&
             !mix_tf_operation_axis(call, "axis", mix_tensor_shape(x).rank, &axis)))
    return NULL;
  const mix_activate_options options = {
      .size = sizeof options, .x = x, .axis = mix_axis_option(axis), .semantics = &mix_semantics_keras3};
  return mix_one_result(mix_activate_with(activation, &options));
}
mix_list *mix_tf_operation_softmax(const mix_tf_operation_call *call) { return activate(call, "softmax"); }
mix_list *mix_tf_operation_sigmoid(const mix_tf_operation_call *call) { return activate(call, "sigmoid"); }

mix_list *mix_tf_operation_log_softmax(const mix_tf_operation_call *call) {
  return activate(call, "log_softmax");
}

mix_list *mix_tf_operation_gelu(const mix_tf_operation_call *call) {
  mix_tensor *x = first_tensor(call);
  bool approximate;
  if (!x || !mix_tf_operation_flag(call, "approximate", &approximate)) return NULL;
  const mix_activate_options options = {
      .size = sizeof options, .x = x, .approximate = approximate, .semantics = call->layer->semantics};
  return mix_one_result(mix_activate_with("gelu", &options));
}

mix_list *mix_tf_operation_silu(const mix_tf_operation_call *call) {
  mix_tensor *x = first_tensor(call);
  double beta;
  if (!x || !mix_tf_operation_number(call, "beta", &beta)) return NULL;
  mix_tensor *scaled = beta == 1 ? x : mix_multiply(x, mix_scalar_like(x, beta));
  return mix_one_result(mix_multiply(x, mix_sigmoid(scaled)));
}

mix_list *mix_tf_operation_leaky_relu(const mix_tf_operation_call *call) {
  mix_tensor *x = first_tensor(call);
  double alpha;
  if (!x || !mix_tf_operation_number(call, "alpha", &alpha)) return NULL;
  return mix_one_result(mix_leaky_relu(x, alpha));
}

/* ---- dtypes ---- */

mix_list *mix_tf_operation_cast(const mix_tf_operation_call *call) {
  mix_tensor *x = first_tensor(call);
  mix_dtype dtype;
  if (!x || !mix_tf_operation_dtype(call, "dtype", MIX_DTYPE_NONE, &dtype)) return NULL;
  if (dtype == MIX_DTYPE_NONE) return mix_tf_operation_mistyped(call, "dtype", "the name of a dtype");
  return mix_one_result(mix_cast(x, dtype));
}

static mix_list *like(const mix_tf_operation_call *call, mix_tensor *(*make)(mix_tensor *x)) {
  mix_tensor *x = first_tensor(call);
  mix_dtype dtype;
  if (!x || !mix_tf_operation_dtype(call, "dtype", mix_tensor_dtype(x), &dtype)) return NULL;
  return mix_one_result(make(dtype == mix_tensor_dtype(x) ? x : mix_cast(x, dtype)));
}
mix_list *mix_tf_operation_zeros_like(const mix_tf_operation_call *call) {
  return like(call, mix_zeros_like);
}
mix_list *mix_tf_operation_ones_like(const mix_tf_operation_call *call) { return like(call, mix_ones_like); }
