/* Operations of keras.ops.nn. */
#include "base/error.h"
#include "nn/layers/keras_operations/keras_operation.h"
#include "ops/table.h"

/* An activation with an option that is a number. */
#define WITH_NUMBER(name, option, absent)                                                                    \
  static mix_list *name##_call(const mix_operands *o) {                                                      \
    double number;                                                                                           \
    mix_tensor *x = mix_operand(o, "x");                                                                     \
    if (!x || !mix_operand_number(o, #option, absent, &number)) return NULL;                                 \
    return mix_one_result(mix_activate(#name, mix_operand_floating(x),                                       \
                                       .option = number == 0 ? MIX_ZERO : number,                            \
                                       .semantics = &mix_semantics_keras3));                                 \
  }
WITH_NUMBER(elu, alpha, 1)
WITH_NUMBER(celu, alpha, 1)
WITH_NUMBER(leaky_relu, negative_slope, 0.2)
WITH_NUMBER(soft_shrink, threshold, 0.5)
WITH_NUMBER(hard_shrink, threshold, 0.5)

static mix_list *squareplus_call(const mix_operands *o) {
  double b;
  mix_tensor *x = mix_operand(o, "x");
  if (!x || !mix_operand_number(o, "b", 4, &b)) return NULL;
  return mix_one_result(mix_activate("squareplus", mix_operand_floating(x), .alpha = b == 0 ? MIX_ZERO : b,
                                     .semantics = &mix_semantics_keras3));
}

static mix_list *gelu_call(const mix_operands *o) {
  bool approximate;
  mix_tensor *x = mix_operand(o, "x");
  if (!x || !mix_operand_flag(o, "approximate", true, &approximate)) return NULL;
  return mix_one_result(mix_activate("gelu", mix_operand_floating(x), .approximate = approximate,
                                     .semantics = &mix_semantics_keras3));
}

/* ---- along axes ---- */

/* Applies an activation over several axes: they become the last, and one. */
static mix_tensor *over_axes(const char *name, mix_tensor *x, mix_axes axes) {
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
  mix_tensor *y = mix_activate(name, mix_layer_reshape(moved, flat), .semantics = &mix_semantics_keras3);
  return y ? mix_transpose(mix_layer_reshape(y, wide), back) : NULL;
}

static mix_list *along(const mix_operands *o, const char *name) {
  mix_axes axes;
  mix_tensor *x = mix_operand(o, "x");
  x = x ? mix_operand_floating(x) : NULL;
  if (!x || !mix_operand_axes(o, "axis", mix_tensor_shape(x).rank, &axes)) return NULL;
  if (!axes.count) /* None is all */
    for (axes.count = 0; axes.count < mix_tensor_shape(x).rank; axes.count++)
      axes.axis[axes.count] = axes.count;
  if (!axes.count) return mix_fail(MIX_VALUE_ERROR, "%s: the operand is a scalar", o->layer->name);
  if (axes.count > 1) return mix_one_result(over_axes(name, x, axes));
  return mix_one_result(
      mix_activate(name, x, .axis = mix_axis_option(axes.axis[0]), .semantics = &mix_semantics_keras3));
}
static mix_list *softmax_call(const mix_operands *o) { return along(o, "softmax"); }
static mix_list *log_softmax_call(const mix_operands *o) { return along(o, "log_softmax"); }
static mix_list *glu_call(const mix_operands *o) {
  mix_tensor *x = mix_operand(o, "x");
  const int place = x ? mix_operand_axis(o, "axis", mix_tensor_shape(x).rank, -1) : -1;
  if (place < 0) return NULL;
  return mix_one_result(mix_activate("glu", mix_operand_floating(x), .axis = mix_axis_option(place),
                                     .semantics = &mix_semantics_keras3));
}

/* ---- categories ---- */

static mix_list *one_hot_call(const mix_operands *o) {
  int64_t classes;
  mix_dtype dtype;
  bool sparse;
  mix_tensor *x = mix_operand(o, "x");
  if (!x || !mix_operand_integer(o, "num_classes", -1, 0, INT64_MAX / 8, &classes) ||
      !mix_operand_dtype_named(o, "dtype", mix_floatx(), &dtype) ||
      !mix_operand_flag(o, "sparse", false, &sparse))
    return NULL;
  const int rank = mix_tensor_shape(x).rank + 1, axis = mix_operand_axis(o, "axis", rank, -1);
  if (axis < 0) return NULL;
  if (sparse || classes < 0)
    return mix_fail(MIX_VALUE_ERROR, "%s: num_classes is %lld and sparse %s; expected 0 or more, and false",
                    o->layer->name, (long long)classes, sparse ? "true" : "false");
  mix_tensor *y = mix_one_hot(mix_index_values(x), classes, dtype);
  if (!y) return NULL; /* also of a rank that `order` has no place for */
  mix_axes order = {.count = rank};
  for (int i = 0; i < rank; i++) order.axis[i] = i < axis ? i : i == axis ? rank - 1 : i - 1;
  return mix_one_result(mix_transpose(y, order));
}

/* ---- the table ---- */

#define NAMED(class_name, name)                                                                              \
  MIX_KERAS_OPERATION(class_name, "nn", "x", "", .activation = name, .dtype = MIX_OPERANDS_FLOATING)

const mix_keras_operation mix_keras_nn_operations[] = {
    NAMED("Relu", "relu"),
    NAMED("Relu6", "relu6"),
    NAMED("Sigmoid", "sigmoid"),
    NAMED("Softplus", "softplus"),
    NAMED("Softsign", "softsign"),
    NAMED("Silu", "silu"),
    NAMED("Selu", "selu"),
    NAMED("HardSigmoid", "hard_sigmoid"),
    NAMED("HardSilu", "hard_silu"),
    NAMED("HardTanh", "hard_tanh"),
    NAMED("TanhShrink", "tanh_shrink"),
    NAMED("LogSigmoid", "log_sigmoid"),
    NAMED("SparsePlus", "sparse_plus"),
    NAMED("SparseSigmoid", "sparse_sigmoid"),
    MIX_KERAS_OPERATION("Elu", "nn", "x", "alpha", .call = elu_call),
    MIX_KERAS_OPERATION("Celu", "nn", "x", "alpha", .call = celu_call),
    MIX_KERAS_OPERATION("LeakyRelu", "nn", "x", "negative_slope", .call = leaky_relu_call),
    MIX_KERAS_OPERATION("SoftShrink", "nn", "x", "threshold", .call = soft_shrink_call),
    MIX_KERAS_OPERATION("HardShrink", "nn", "x", "threshold", .call = hard_shrink_call),
    MIX_KERAS_OPERATION("Squareplus", "nn", "x", "b", .call = squareplus_call),
    MIX_KERAS_OPERATION("Gelu", "nn", "x", "approximate", .call = gelu_call),
    MIX_KERAS_OPERATION("Softmax", "nn", "x", "axis", .call = softmax_call),
    MIX_KERAS_OPERATION("LogSoftmax", "nn", "x", "axis", .call = log_softmax_call),
    MIX_KERAS_OPERATION("Glu", "nn", "x", "axis", .call = glu_call),
    MIX_KERAS_OPERATION("OneHot", "nn", "x", "num_classes|axis|dtype|sparse", .call = one_hot_call),
    {.operands = NULL}};
