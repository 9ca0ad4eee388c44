/* Element-wise operations of one or two operands. */
#include "base/error.h"
#include "nn/formulas.h"
#include "nn/layers/keras_operations/keras_operation.h"
#include <math.h>

/* ---- of one operand ---- */

static mix_tensor *trunc_(mix_tensor *x) { return mix_multiply(mix_sign(x), mix_floor(mix_abs(x))); }
static mix_tensor *tan_(mix_tensor *x) { return mix_divide(mix_sin(x), mix_cos(x)); }
static mix_tensor *scaled_log(mix_tensor *x, double base) {
  return mix_divide(mix_log(x), mix_scalar_like(x, log(base)));
}
static mix_tensor *log2_(mix_tensor *x) { return scaled_log(x, 2); }
static mix_tensor *log10_(mix_tensor *x) { return scaled_log(x, 10); }

static mix_list *round_call(const mix_operands *o) {
  enum { MOST = 308 }; /* 10 to that is the largest of float64; more gives NaN, and in Keras an error */
  int64_t decimals;
  mix_tensor *x = mix_operand(o, "x");
  if (!x || !mix_operand_integer(o, "decimals", 0, -MOST, MOST, &decimals)) return NULL;
  if (decimals == 0) return mix_one_result(mix_dtype_is_floating(mix_tensor_dtype(x)) ? mix_round(x) : x);
  mix_tensor *y = mix_operand_floating(x), *factor = mix_scalar_like(y, pow(10, (double)decimals));
  if (y != x && decimals > 0) return mix_one_result(x);
  y = mix_divide(mix_round(mix_multiply(y, factor)), factor);
  return mix_one_result(mix_cast(y, mix_tensor_dtype(x)));
}

static mix_list *clip_call(const mix_operands *o) {
  double low, high;
  mix_tensor *x = mix_operand(o, "x");
  if (!x || !mix_operand_number(o, "x_min", -INFINITY, &low) ||
      !mix_operand_number(o, "x_max", INFINITY, &high))
    return NULL;
  if (mix_tensor_dtype(x) == MIX_BOOL) x = mix_cast(x, MIX_INT32);
  if (low != -INFINITY && high != INFINITY)
    return mix_one_result(mix_clip(x, mix_scalar_like(x, low), mix_scalar_like(x, high)));
  if (low != -INFINITY) x = mix_maximum(x, mix_scalar_like(x, low));
  return mix_one_result(high != INFINITY ? mix_minimum(x, mix_scalar_like(x, high)) : x);
}

static mix_list *cast_call(const mix_operands *o) {
  mix_tensor *x = mix_operand(o, "x");
  mix_dtype dtype;
  if (!x || !mix_operand_dtype_named(o, "dtype", mix_tensor_dtype(x), &dtype)) return NULL;
  return mix_one_result(mix_cast(x, dtype));
}

static mix_list *stop_gradient_call(const mix_operands *o) {
  mix_tensor *x = mix_operand(o, "variable");
  return x ? mix_one_result(mix_stop_gradient(x)) : NULL;
}

/* ---- of two operands ---- */

static mix_tensor *logical_xor_(mix_tensor *a, mix_tensor *b) { return mix_not_equal(a, b); }

/* ---- of three ---- */

static mix_list *where_call(const mix_operands *o) {
  mix_tensor *condition = mix_operand(o, "condition"), *pair[2];
  if (!condition) return NULL;
  if (!mix_operand_json(o, "x1") && !mix_operand_json(o, "x2"))
    return mix_fail(MIX_UNSUPPORTED,
                    "%s: the Keras operation Where without x1 and x2, whose result has no shape before its "
                    "values are known, is not supported",
                    o->layer->name);
  if (!mix_operand_pair(o, MIX_OPERANDS_PROMOTED, pair)) return NULL;
  return mix_one_result(mix_select(mix_cast(condition, MIX_BOOL), pair[0], pair[1]));
}

/* ---- constants of a tensor's shape ---- */

static mix_list *like(const mix_operands *o, double value) {
  mix_tensor *x = mix_operand(o, "x");
  mix_dtype dtype;
  if (!x || !mix_operand_dtype_named(o, "dtype", mix_tensor_dtype(x), &dtype)) return NULL;
  if (dtype != mix_tensor_dtype(x)) x = mix_cast(x, dtype);
  if (value == 0) return mix_one_result(mix_zeros_like(x));
  x = mix_ones_like(x);
  return mix_one_result(value == 1 ? x : mix_multiply(x, mix_scalar_like(x, value)));
}
static mix_list *zeros_like_call(const mix_operands *o) { return like(o, 0); }
static mix_list *ones_like_call(const mix_operands *o) { return like(o, 1); }
static mix_list *full_like_call(const mix_operands *o) {
  double value;
  if (!mix_operand_json(o, "fill_value"))
    return mix_operand_refused(o, "fill_value", NULL, MIX_NUMBER_EXPECTED);
  return mix_operand_number(o, "fill_value", 0, &value) ? like(o, value) : NULL;
}

/* ---- the table ---- */

#define UNARY(name, module, function, ...)                                                                   \
  MIX_KERAS_OPERATION(name, module, "x", "", .unary = function, __VA_ARGS__)
#define FLOATING(name, module, function) UNARY(name, module, function, .dtype = MIX_OPERANDS_FLOATING)
#define BINARY(name, function, rule)                                                                         \
  MIX_KERAS_OPERATION(name, "numpy", "x1|x2", "", .binary = function, .dtype = MIX_OPERANDS_##rule)

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
    BINARY("LogicalXor", logical_xor_, BOOLEAN),
    UNARY("LogicalNot", "numpy", mix_logical_not, .dtype = MIX_OPERANDS_BOOLEAN),
    UNARY("Negative", "numpy", mix_negative),
    UNARY("Absolute", "numpy", mix_abs),
    UNARY("Abs", "numpy", mix_abs),
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
    MIX_KERAS_OPERATION("Round", "numpy", "x", "decimals", .call = round_call),
    MIX_KERAS_OPERATION("Clip", "numpy", "x", "x_min|x_max", .call = clip_call),
    MIX_KERAS_OPERATION("Cast", "core", "x", "dtype", .call = cast_call),
    /* no tensor is sparse or ragged */
    MIX_KERAS_OPERATION("ConvertToTensor", "core", "x", "dtype|sparse|ragged", .call = cast_call),
    MIX_KERAS_OPERATION("StopGradient", "core", "variable", "", .call = stop_gradient_call),
    MIX_KERAS_OPERATION("Where", "numpy", "condition|x1|x2", "", .call = where_call),
    MIX_KERAS_OPERATION("ZerosLike", "numpy", "x", "dtype", .call = zeros_like_call),
    MIX_KERAS_OPERATION("OnesLike", "numpy", "x", "dtype", .call = ones_like_call),
    MIX_KERAS_OPERATION("FullLike", "numpy", "x|fill_value", "dtype", .call = full_like_call),
    {.operands = NULL}};
