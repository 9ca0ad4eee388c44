/* Element-wise operations. */
#include "base/error.h"
#include "nn/formulas.h"
#include "nn/layers/operations/operation.h"
#include "ops/complex.h"
#include "ops/with_number.h"
#include <math.h>
#include <string.h>

/* ---- of one operand ---- */

static mix_tensor *trunc_(mix_tensor *x) { return mix_multiply(mix_sign(x), mix_floor(mix_abs(x))); }
static mix_tensor *tan_(mix_tensor *x) { return mix_divide(mix_sin(x), mix_cos(x)); }
static mix_tensor *scaled_log(mix_tensor *x, double base) {
  return mix_divide(mix_log(x), mix_scalar_like(x, log(base)));
}
static mix_tensor *log2_(mix_tensor *x) { return scaled_log(x, 2); }
static mix_tensor *log10_(mix_tensor *x) { return scaled_log(x, 10); }

static mix_tensor *round_to(const mix_operands *o, mix_tensor *x) {
  enum { MOST = 308 }; /* 10 to that is the largest of float64; more gives NaN, and in Keras an error */
  const int64_t decimals = mix_operand_integer(o, "decimals");
  if (decimals < -MOST || decimals > MOST)
    return mix_operand_refused(o, MIX_VALUE_ERROR, "decimals", "an integer from -308 to 308");
  if (decimals == 0) return mix_dtype_is_floating(mix_tensor_dtype(x)) ? mix_round(x) : x;
  mix_tensor *y = mix_operand_floating(x), *factor = mix_scalar_like(y, pow(10, (double)decimals));
  if (y != x && decimals > 0) return x;
  y = mix_divide(mix_round(mix_multiply(y, factor)), factor);
  return mix_cast(y, mix_tensor_dtype(x));
}

static mix_tensor *clip(const mix_operands *o, mix_tensor *x) {
  const bool low = mix_operand_json(o, "x_min"), high = mix_operand_json(o, "x_max");
  if (mix_tensor_dtype(x) == MIX_BOOL) x = mix_cast(x, MIX_INT32);
  mix_tensor *least = low ? mix_scalar_like(x, mix_operand_number(o, "x_min")) : NULL,
             *most = high ? mix_scalar_like(x, mix_operand_number(o, "x_max")) : NULL;
  if (low && high) return mix_clip(x, least, most);
  if (low) return mix_maximum(x, least);
  return high ? mix_minimum(x, most) : x;
}

static mix_tensor *clip_by_value(const mix_operands *o, mix_tensor *x) {
  mix_tensor *low = mix_operand_like(o, "clip_value_min", x),
             *high = mix_operand_like(o, "clip_value_max", x);
  const bool scalars = !mix_tensor_shape(low).rank && !mix_tensor_shape(high).rank;
  return scalars ? mix_clip(x, low, high) : mix_maximum(mix_minimum(x, high), low);
}

static mix_tensor *cast(const mix_operands *o, mix_tensor *x) {
  return mix_cast(x, mix_operand_dtype(o, "dtype", mix_tensor_dtype(x)));
}

/* ---- of several ---- */

/* Integers are divided as floating numbers: in float32 those of 8 and 16 bits, else in float64. */
static mix_tensor *true_divide(mix_tensor *a, mix_tensor *b) {
  const mix_dtype dtype = mix_tensor_dtype(a), wide = mix_dtype_size(dtype) <= 2 ? MIX_FLOAT32 : MIX_FLOAT64;
  if (dtype != mix_tensor_dtype(b) || mix_dtype_is_floating(dtype) || dtype == MIX_BOOL)
    return mix_divide(a, b);
  return mix_divide(mix_cast(a, wide), mix_cast(b, wide));
}

static mix_tensor *where(const mix_operands *o, mix_tensor *condition) {
  static const char *const keras[] = {"x1", "x2"}, *const tf[] = {"x", "y"};
  const char *const *names = mix_operands_of_tf(o) ? tf : keras;
  mix_tensor *pair[2];
  for (int i = 0; i < 2; i++)
    if (!mix_operand_json(o, names[i]))
      return mix_operand_refused(o, MIX_UNSUPPORTED, names[i],
                                 "a tensor or numbers, for a result whose shape is known before its values");
  return mix_operands_promoted(o, 2, names, pair)
             ? mix_select(mix_cast(condition, MIX_BOOL), pair[0], pair[1])
             : NULL;
}

static mix_tensor *add_n(const mix_operands *o, mix_list *list) {
  return mix_add_n(mix_list_count(list), (mix_tensor *const *)mix_list_items(list));
}

static mix_tensor *bias_add(const mix_operands *o, mix_tensor *x) {
  const bool named = mix_operand_json(o, "data_format");
  const char *format = named ? mix_operand_text(o, "data_format") : "";
  if (format && !strncmp(format, "NC", 2))
    return mix_operand_refused(o, MIX_UNSUPPORTED, "data_format", "channels at the end");
  return mix_bias_add(x, mix_operand_like(o, "bias", x));
}

/* ---- constants of a tensor's shape ---- */

static mix_tensor *zeros_like(const mix_operands *o, mix_tensor *x) { return mix_zeros_like(cast(o, x)); }
static mix_tensor *ones_like(const mix_operands *o, mix_tensor *x) { return mix_ones_like(cast(o, x)); }
static mix_tensor *full_like(const mix_operands *o, mix_tensor *x) {
  const double value = mix_operand_number(o, "fill_value");
  if (value == 0) return zeros_like(o, x);
  x = ones_like(o, x);
  return value == 1 ? x : mix_times(x, value);
}

/* ---- Keras ---- */

#define UNARY(name, module, function, ...)                                                                   \
  MIX_KERAS_OPERATION(name, module, "x", "", .unary = function, .elementwise = true, __VA_ARGS__)
#define FLOATING(name, module, function) UNARY(name, module, function, .rule = MIX_OPERANDS_FLOATING)
#define BINARY(name, function, type)                                                                         \
  MIX_KERAS_OPERATION(name, "numpy", "x1 x2", "", .binary = function, .elementwise = true,                   \
                      .rule = MIX_OPERANDS_##type)

const mix_keras_operation mix_keras_elementwise_operations[] = {
    BINARY("Add", mix_add, PROMOTED),
    BINARY("Subtract", mix_subtract, PROMOTED),
    BINARY("Multiply", mix_multiply, PROMOTED),
    BINARY("Divide", mix_divide, FLOATING),
    BINARY("TrueDivide", mix_divide, FLOATING),
    BINARY("DivideNoNan", mix_divide_no_nan, FLOATING),
    BINARY("Power", mix_power, PROMOTED),
    BINARY("Maximum", mix_maximum, PROMOTED),
    BINARY("Minimum", mix_minimum, PROMOTED),
    BINARY("Mod", mix_floor_mod, TYPED),
    BINARY("FloorDivide", mix_floor_divide, PROMOTED),
    BINARY("Equal", mix_equal, PROMOTED),
    BINARY("NotEqual", mix_not_equal, PROMOTED),
    BINARY("Greater", mix_greater, PROMOTED),
    BINARY("GreaterEqual", mix_greater_equal, PROMOTED),
    BINARY("Less", mix_less, PROMOTED),
    BINARY("LessEqual", mix_less_equal, PROMOTED),
    BINARY("LogicalAnd", mix_logical_and, BOOLEAN),
    BINARY("LogicalOr", mix_logical_or, BOOLEAN),
    BINARY("LogicalXor", mix_not_equal, BOOLEAN),
    UNARY("LogicalNot", "numpy", mix_logical_not, .rule = MIX_OPERANDS_BOOLEAN),
    UNARY("Negative", "numpy", mix_negative),
    UNARY("Absolute", "numpy", mix_magnitude),
    UNARY("Abs", "numpy", mix_magnitude),
    UNARY("Square", "numpy", mix_square),
    UNARY("Sign", "numpy", mix_sign),
    FLOATING("Sqrt", "numpy", mix_sqrt),
    FLOATING("Rsqrt", "math", mix_rsqrt),
    FLOATING("Exp", "numpy", mix_exp),
    FLOATING("Expm1", "numpy", mix_expm1),
    FLOATING("Log", "numpy", mix_log),
    FLOATING("Log1p", "numpy", mix_log1p),
    FLOATING("Log2", "numpy", log2_),
    FLOATING("Log10", "numpy", log10_),
    FLOATING("Sin", "numpy", mix_sin),
    FLOATING("Cos", "numpy", mix_cos),
    FLOATING("Tan", "numpy", tan_),
    FLOATING("Tanh", "numpy", mix_tanh),
    FLOATING("Floor", "numpy", mix_floor),
    FLOATING("Ceil", "numpy", mix_ceil),
    FLOATING("Trunc", "numpy", trunc_),
    FLOATING("Reciprocal", "numpy", mix_reciprocal),
    FLOATING("Erf", "math", mix_erf),
    FLOATING("Isfinite", "numpy", mix_is_finite),
    FLOATING("Isinf", "numpy", mix_is_inf),
    FLOATING("Isnan", "numpy", mix_is_nan),
    MIX_KERAS_OPERATION("Round", "numpy", "x", "decimals=0", .build = round_to, .elementwise = true),
    MIX_KERAS_OPERATION("Clip", "numpy", "x", "x_min x_max", .build = clip, .elementwise = true),
    MIX_KERAS_OPERATION("Cast", "core", "x", "dtype", .build = cast, .elementwise = true),
    /* no tensor is sparse or ragged */
    MIX_KERAS_OPERATION("ConvertToTensor", "core", "x", "dtype sparse ragged", .build = cast,
                        .elementwise = true),
    MIX_KERAS_OPERATION("StopGradient", "core", "variable", "", .unary = mix_stop_gradient,
                        .elementwise = true),
    MIX_KERAS_OPERATION("Where", "numpy", "condition x1 x2", "", .build = where, .elementwise = true),
    MIX_KERAS_OPERATION("ZerosLike", "numpy", "x", "dtype", .build = zeros_like, .elementwise = true),
    MIX_KERAS_OPERATION("OnesLike", "numpy", "x", "dtype", .build = ones_like, .elementwise = true),
    MIX_KERAS_OPERATION("FullLike", "numpy", "x fill_value", "dtype", .build = full_like,
                        .elementwise = true),
    {.operation = {0}}};

/* ---- TensorFlow ---- */

#define TF_UNARY(name, function) MIX_TF_OPERATION(name, "x", "", .unary = function)
#define TF_OF(name, operand, function) MIX_TF_OPERATION(name, operand, "", .unary = function)
#define TF_BINARY(name, function) MIX_TF_OPERATION(name, "x", "y", .binary = function)

const mix_operation mix_tf_elementwise_operations[] = {
    TF_BINARY("__operators__.add", mix_add),
    TF_BINARY("math.add", mix_add),
    TF_BINARY("math.subtract", mix_subtract),
    TF_BINARY("math.multiply", mix_multiply),
    TF_BINARY("math.truediv", true_divide),
    TF_BINARY("math.divide", true_divide),
    TF_BINARY("math.divide_no_nan", mix_divide_no_nan),
    TF_BINARY("math.floordiv", mix_floor_divide),
    TF_BINARY("compat.v1.floor_div", mix_floor_divide),
    TF_BINARY("math.floormod", mix_floor_mod),
    TF_BINARY("math.pow", mix_power),
    TF_BINARY("math.maximum", mix_maximum),
    TF_BINARY("math.minimum", mix_minimum),
    TF_BINARY("math.squared_difference", mix_squared_difference),
    TF_BINARY("math.equal", mix_equal),
    TF_BINARY("math.not_equal", mix_not_equal),
    TF_BINARY("math.less", mix_less),
    TF_BINARY("math.less_equal", mix_less_equal),
    TF_BINARY("math.greater", mix_greater),
    TF_BINARY("math.greater_equal", mix_greater_equal),
    TF_BINARY("math.logical_and", mix_logical_and),
    TF_BINARY("math.logical_or", mix_logical_or),
    TF_UNARY("math.logical_not", mix_logical_not),
    TF_UNARY("math.negative", mix_negative),
    TF_UNARY("math.abs", mix_abs),
    TF_UNARY("math.sign", mix_sign),
    TF_UNARY("math.floor", mix_floor),
    TF_UNARY("math.ceil", mix_ceil),
    TF_UNARY("math.round", mix_round),
    TF_UNARY("math.sqrt", mix_sqrt),
    TF_UNARY("math.rsqrt", mix_rsqrt),
    TF_UNARY("math.square", mix_square),
    TF_UNARY("math.reciprocal", mix_reciprocal),
    TF_UNARY("math.exp", mix_exp),
    TF_UNARY("math.expm1", mix_expm1),
    TF_UNARY("math.log", mix_log),
    TF_UNARY("math.log1p", mix_log1p),
    TF_UNARY("math.sin", mix_sin),
    TF_UNARY("math.cos", mix_cos),
    TF_UNARY("math.tanh", mix_tanh),
    TF_UNARY("math.erf", mix_erf),
    TF_UNARY("math.erfc", mix_erfc),
    TF_UNARY("math.is_finite", mix_is_finite),
    TF_UNARY("math.is_inf", mix_is_inf),
    TF_UNARY("math.is_nan", mix_is_nan),
    TF_OF("math.softplus", "features", mix_softplus),
    TF_OF("nn.softsign", "features", mix_softsign),
    TF_OF("nn.relu", "features", mix_relu),
    TF_OF("nn.relu6", "features", mix_relu6),
    TF_OF("nn.elu", "features", mix_elu),
    TF_OF("nn.selu", "features", mix_selu),
    TF_OF("identity", "input", mix_identity),
    TF_OF("stop_gradient", "input", mix_stop_gradient),
    MIX_TF_OPERATION("math.add_n", "inputs", "", .join = add_n),
    MIX_TF_OPERATION("nn.bias_add", "value", "bias data_format", .build = bias_add),
    MIX_TF_OPERATION("clip_by_value", "t", "clip_value_min clip_value_max", .build = clip_by_value),
    MIX_TF_OPERATION("where", "condition", "x y", .build = where),
    MIX_TF_OPERATION("cast", "x", "dtype", .build = cast),
    MIX_TF_OPERATION("zeros_like", "input", "dtype", .build = zeros_like),
    MIX_TF_OPERATION("ones_like", "input", "dtype", .build = ones_like),
    {0}};
