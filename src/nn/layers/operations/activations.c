/* Operations of keras.ops.nn and tf.nn. */
#include "base/error.h"
#include "nn/layers/operations/operation.h"
#include "ops/table.h"
#include "ops/with_number.h"

#define ACTIVATE(o, x, ...)                                                                                  \
  mix_activate((o)->operation->activation, x, .semantics = &mix_semantics_keras3, __VA_ARGS__)

/* With an option that is a number. */
static mix_tensor *with_number(const mix_operands *o, mix_tensor *x) {
  const double given = mix_operand_number(o, o->second), number = given == 0 ? MIX_ZERO : given;
  return ACTIVATE(o, x, .alpha = number, .negative_slope = number, .threshold = number);
}

static mix_tensor *gelu(const mix_operands *o, mix_tensor *x) {
  return ACTIVATE(o, x, .approximate = mix_operand_flag(o, "approximate"));
}

static mix_tensor *silu(const mix_operands *o, mix_tensor *x) {
  const double beta = mix_operand_number(o, "beta");
  return mix_multiply(x, mix_sigmoid(beta == 1 ? x : mix_times(x, beta)));
}

/* ---- along axes ---- */

static mix_tensor *along_axis(const mix_operands *o, mix_tensor *x) {
  const int axis = mix_operand_axis(o, "axis", mix_tensor_shape(x).rank);
  return ACTIVATE(o, x, .axis = mix_axis_option(axis));
}

/* Applies an activation over several axes: they become the last, and one. */
static mix_tensor *over_axes(const mix_operands *o, mix_tensor *x, mix_axes axes) {
  const mix_shape shape = mix_tensor_shape(x);
  mix_axes order = {.count = 0}, back = {.count = shape.rank};
  bool chosen[MIX_MAX_RANK] = {false};
  for (int i = 0; i < axes.count; i++) chosen[axes.axis[i]] = true;
  for (int pass = 0; pass < 2; pass++)
    for (int i = 0; i < shape.rank; i++)
      if (chosen[i] == (pass == 1)) order.axis[order.count++] = i;
  for (int i = 0; i < shape.rank; i++) back.axis[order.axis[i]] = i;
  mix_tensor *moved = mix_transpose(x, order);
  if (!moved) return NULL;
  const mix_shape wide = mix_tensor_shape(moved);
  mix_shape flat = {.rank = shape.rank - axes.count + 1};
  int64_t size = 1;
  for (int i = 0; i < wide.rank; i++) {
    if (i < flat.rank - 1)
      flat.dims[i] = wide.dims[i];
    else if (size != MIX_UNKNOWN && wide.dims[i] != MIX_UNKNOWN)
      size *= wide.dims[i];
    else
      size = MIX_UNKNOWN;
  }
  flat.dims[flat.rank - 1] = size;
  return mix_transpose(mix_layer_reshape(ACTIVATE(o, mix_layer_reshape(moved, flat)), wide), back);
}

static mix_tensor *along_axes(const mix_operands *o, mix_tensor *x) {
  if (!json_is_array(mix_operand_json(o, "axis")) && mix_operand_json(o, "axis")) return along_axis(o, x);
  mix_axes axes = mix_operand_axes(o, "axis", mix_tensor_shape(x).rank);
  if (!axes.count) /* None is all */
    for (; axes.count < mix_tensor_shape(x).rank; axes.count++) axes.axis[axes.count] = axes.count;
  if (!axes.count) return mix_operation_fail(o, MIX_VALUE_ERROR, "the operand is a scalar");
  return over_axes(o, x, axes);
}

/* ---- categories ---- */

static mix_tensor *one_hot(const mix_operands *o, mix_tensor *x) {
  const mix_dtype dtype = mix_operand_dtype(o, "dtype", mix_floatx());
  const int rank = mix_tensor_shape(x).rank + 1, axis = mix_operand_axis(o, "axis", rank);
  const double classes = mix_operand_number(o, o->second);
  if (!(classes >= 0 && classes < (double)mix_operand_limit(o) / 8)) /* so that a row can be counted */
    return mix_operand_refused(o, MIX_VALUE_ERROR, o->second, "a number of classes");
  mix_tensor *y = mix_one_hot(mix_operands_of_tf(o) ? x : mix_index_values(x), (int64_t)classes, dtype);
  if (!y) return NULL; /* also of a rank that `order` has no place for */
  mix_axes order = {.count = rank};
  for (int i = 0; i < rank; i++) order.axis[i] = i < axis ? i : i == axis ? rank - 1 : i - 1;
  return mix_transpose(y, order);
}

/* ---- the tables ---- */

#define NAMED(class_name, name, options, ...)                                                                \
  MIX_KERAS_OPERATION(class_name, "nn", "x", options, .activation = name, .rule = MIX_OPERANDS_FLOATING,     \
                      __VA_ARGS__)

const mix_keras_operation mix_keras_nn_operations[] = {
    NAMED("Relu", "relu", ""),
    NAMED("Relu6", "relu6", ""),
    NAMED("Sigmoid", "sigmoid", ""),
    NAMED("Softplus", "softplus", ""),
    NAMED("Softsign", "softsign", ""),
    NAMED("Silu", "silu", ""),
    NAMED("Selu", "selu", ""),
    NAMED("HardSigmoid", "hard_sigmoid", ""),
    NAMED("HardSilu", "hard_silu", ""),
    NAMED("HardTanh", "hard_tanh", ""),
    NAMED("TanhShrink", "tanh_shrink", ""),
    NAMED("LogSigmoid", "log_sigmoid", ""),
    NAMED("SparsePlus", "sparse_plus", ""),
    NAMED("SparseSigmoid", "sparse_sigmoid", ""),
    NAMED("Elu", "elu", "alpha=1", .build = with_number),
    NAMED("Celu", "celu", "alpha=1", .build = with_number),
    NAMED("LeakyRelu", "leaky_relu", "negative_slope=0.2", .build = with_number),
    NAMED("SoftShrink", "soft_shrink", "threshold=0.5", .build = with_number),
    NAMED("HardShrink", "hard_shrink", "threshold=0.5", .build = with_number),
    NAMED("Squareplus", "squareplus", "b=4", .build = with_number),
    NAMED("Gelu", "gelu", "approximate=true", .build = gelu),
    NAMED("Softmax", "softmax", "axis", .build = along_axes),
    NAMED("LogSoftmax", "log_softmax", "axis", .build = along_axes),
    NAMED("Glu", "glu", "axis=-1", .build = along_axis),
    MIX_KERAS_OPERATION("OneHot", "nn", "x", "num_classes axis=-1 dtype !sparse=false", .build = one_hot),
    {.operation = {0}}};

/* sigmoid and softmax keep their logits, which losses use. */
const mix_operation mix_tf_nn_operations[] = {
    MIX_TF_OPERATION("math.sigmoid", "x", "", .activation = "sigmoid"),
    MIX_TF_OPERATION("nn.softmax", "logits", "axis=-1", .activation = "softmax", .build = along_axis),
    MIX_TF_OPERATION("nn.log_softmax", "logits", "axis=-1", .activation = "log_softmax", .build = along_axis),
    MIX_TF_OPERATION("nn.gelu", "features", "approximate", .activation = "gelu", .build = gelu),
    MIX_TF_OPERATION("nn.silu", "features", "beta=1.0", .build = silu),
    MIX_TF_OPERATION("nn.leaky_relu", "features", "alpha=0.2", .activation = "leaky_relu",
                     .build = with_number),
    MIX_TF_OPERATION("one_hot", "indices", "depth !on_value !off_value axis=-1 dtype=\"float32\"",
                     .build = one_hot),
    {0}};
