/* Operators of ONNX that compute each element by itself, and activations. */
#include "onnx/import.h"

#include "base/error.h"
#include <math.h>
#include <string.h>

static mix_tensor *operand(mix_import *in, int index) { return mix_import_operand(in, index); }

bool mix_import_identity(mix_import *in) {
  const mix_import_value *value = mix_import_input(in, 0);
  return value ? mix_import_bind_value(in, 0, *value) : operand(in, 0) != NULL;
}

/* Of inference: the mask is asked for in training alone. */
bool mix_import_dropout(mix_import *in) {
  if (mix_import_is_used(in, 1)) return mix_import_fail(in, MIX_UNSUPPORTED, "its mask is used");
  return mix_import_identity(in);
}

bool mix_import_cast(mix_import *in) {
  const int64_t type = mix_onnx_integer(in->node, "to", 0);
  const mix_dtype dtype = mix_onnx_dtype_of(type);
  if (dtype == MIX_DTYPE_NONE)
    return mix_import_fail(in, MIX_UNSUPPORTED, "element type %lld, which tensors have not", (long long)type);
  mix_import_value *value = mix_import_input(in, 0);
  mix_tensor *x = value && mix_import_is_constant(value) ? mix_import_constant(in, value) : operand(in, 0);
  if (!x) return false;
  if (mix_tensor_dtype(x) == dtype) return mix_import_identity(in);
  return mix_import_bind(in, 0,
                         mix_import_apply(in, "Cast", x, MIX_PACK("{s:s}", "dtype", mix_dtype_name(dtype))));
}

bool mix_import_cast_like(mix_import *in) {
  mix_import_value *value = mix_import_input(in, 0), *like = mix_import_input(in, 1);
  mix_tensor *x = value && mix_import_is_constant(value) ? mix_import_constant(in, value) : operand(in, 0);
  mix_tensor *other = like ? mix_import_tensor_of(in, like) : NULL;
  if (!x || !other) return x && mix_import_fail(in, MIX_FORMAT_ERROR, "it lacks an input");
  const mix_dtype dtype = mix_tensor_dtype(other);
  if (mix_tensor_dtype(x) == dtype) return mix_import_identity(in);
  return mix_import_bind(in, 0,
                         mix_import_apply(in, "Cast", x, MIX_PACK("{s:s}", "dtype", mix_dtype_name(dtype))));
}

bool mix_import_is_inf(mix_import *in) {
  if (!mix_onnx_integer(in->node, "detect_negative", 1) || !mix_onnx_integer(in->node, "detect_positive", 1))
    return mix_import_fail(in, MIX_UNSUPPORTED, "it tells one infinity from the other; expected both");
  return mix_import_bind(in, 0, mix_import_apply(in, "Isinf", operand(in, 0), NULL));
}

/* Integers are divided towards zero, as C does. */
bool mix_import_divide(mix_import *in) {
  mix_tensor *a = operand(in, 0), *b = operand(in, 1);
  if (!a || !b) return false;
  if (mix_dtype_is_floating(mix_tensor_dtype(a)))
    return mix_import_bind(in, 0, mix_import_apply_two(in, "Divide", a, b));
  mix_tensor *sign = mix_import_apply_two(in, "Multiply", mix_import_apply(in, "Sign", a, NULL),
                                          mix_import_apply(in, "Sign", b, NULL));
  mix_tensor *size = mix_import_apply_two(in, "FloorDivide", mix_import_apply(in, "Absolute", a, NULL),
                                          mix_import_apply(in, "Absolute", b, NULL));
  return mix_import_bind(in, 0, mix_import_apply_two(in, "Multiply", sign, size));
}

/* The result has the base's dtype. */
bool mix_import_power(mix_import *in) {
  mix_tensor *a = operand(in, 0), *b = operand(in, 1);
  if (!a || !b) return false;
  const mix_dtype dtype = mix_tensor_dtype(a);
  if (!mix_tensor_is_symbolic(b) && mix_shape_size(mix_tensor_shape(b)) == 1 && !mix_tensor_shape(b).rank) {
    double number;
    if (mix_tensor_read(b, MIX_FLOAT64, &number, 1)) return false;
    if (number == 2) return mix_import_bind(in, 0, mix_import_apply(in, "Square", a, NULL));
    if (number == 0.5) return mix_import_bind(in, 0, mix_import_apply(in, "Sqrt", a, NULL));
  }
  if (mix_tensor_dtype(b) != dtype)
    b = mix_import_apply(in, "Cast", b, MIX_PACK("{s:s}", "dtype", mix_dtype_name(dtype)));
  return mix_import_bind(in, 0, mix_import_apply_two(in, "Power", a, b));
}

bool mix_import_square_root(mix_import *in) {
  mix_tensor *x = operand(in, 0), *root = x ? mix_import_apply(in, "Sqrt", x, NULL) : NULL;
  return root && mix_import_bind_value(in, 0, (mix_import_value){.tensor = root, .squared = x});
}

/* Of a square root it is one operation here, as the exporter's two were (a normalization's factor). */
bool mix_import_reciprocal(mix_import *in) {
  const mix_import_value *value = mix_import_input(in, 0);
  if (value && value->squared)
    return mix_import_bind(in, 0, mix_import_apply(in, "Rsqrt", value->squared, NULL));
  mix_tensor *x = operand(in, 0);
  return x && mix_import_bind(in, 0, mix_import_apply(in, "Reciprocal", x, NULL));
}

/* Max, Min, Sum and Mean of any number of operands. */
bool mix_import_extreme(mix_import *in) {
  const char *const op = in->node->op;
  const char *binary = !strcmp(op, "Max") ? "Maximum" : !strcmp(op, "Min") ? "Minimum" : "Add";
  mix_tensor *result = operand(in, 0);
  for (int i = 1; i < in->node->input_count && result; i++)
    result = mix_import_apply_two(in, binary, result, operand(in, i));
  if (result && !strcmp(op, "Mean"))
    result = mix_import_apply_two(in, "Multiply", result,
                                  mix_import_number_like(result, 1.0 / in->node->input_count));
  return mix_import_bind(in, 0, result);
}

bool mix_import_modulo(mix_import *in) {
  const char *name = mix_onnx_integer(in->node, "fmod", 0) ? "Fmod" : "Mod";
  return mix_import_bind(in, 0, mix_import_apply_two(in, name, operand(in, 0), operand(in, 1)));
}

bool mix_import_where(mix_import *in) {
  mix_tensor *three[] = {operand(in, 0), operand(in, 1), operand(in, 2)};
  return mix_import_bind(in, 0, mix_import_run_one(in, "Where", 3, three, NULL));
}

/* Bounds are attributes in old operator sets. */
bool mix_import_clip(mix_import *in) {
  mix_tensor *x = operand(in, 0);
  if (!x) return false;
  const double low =
      mix_onnx_find(in->node, "min") ? mix_onnx_number(in->node, "min", 0) : mix_import_scalar(in, 1);
  const double high =
      mix_onnx_find(in->node, "max") ? mix_onnx_number(in->node, "max", 0) : mix_import_scalar(in, 2);
  if (mix_failed()) return false;
  if (low == 0 && isnan(high)) return mix_import_bind(in, 0, mix_import_apply(in, "Relu", x, NULL));
  if (low == 0 && high == 6) return mix_import_bind(in, 0, mix_import_apply(in, "Relu6", x, NULL));
  if (!isnan(low)) x = mix_import_apply_two(in, "Maximum", x, mix_import_number_like(x, low));
  if (x && !isnan(high)) x = mix_import_apply_two(in, "Minimum", x, mix_import_number_like(x, high));
  return mix_import_bind(in, 0, x);
}

/* ---- activations ---- */

/* max(x, 0) + slope min(x, 0) */
bool mix_import_prelu(mix_import *in) {
  mix_tensor *x = operand(in, 0), *slope = operand(in, 1);
  if (!x || !slope) return false;
  mix_tensor *below = mix_import_apply_two(in, "Minimum", x, mix_import_number_like(x, 0));
  return mix_import_bind(in, 0,
                         mix_import_apply_two(in, "Add", mix_import_apply(in, "Relu", x, NULL),
                                              mix_import_apply_two(in, "Multiply", slope, below)));
}

static bool with_number(mix_import *in, const char *operation, const char *option, const char *attribute,
                        double absent) {
  json_t *config = MIX_PACK("{s:f}", option, mix_onnx_number(in->node, attribute, absent));
  return mix_import_bind(in, 0, mix_import_apply(in, operation, operand(in, 0), config));
}
bool mix_import_leaky(mix_import *in) {
  return with_number(in, "LeakyRelu", "negative_slope", "alpha", 0.01);
}
bool mix_import_elu(mix_import *in) { return with_number(in, "Elu", "alpha", "alpha", 1); }
bool mix_import_celu(mix_import *in) { return with_number(in, "Celu", "alpha", "alpha", 1); }

bool mix_import_threshold(mix_import *in) {
  const double alpha = mix_onnx_number(in->node, "alpha", 1);
  json_t *config = MIX_PACK("{s:f,s:f}", "threshold", alpha, "default_value", 0.0);
  return mix_import_bind(in, 0, mix_import_apply(in, "Threshold", operand(in, 0), config));
}

bool mix_import_shrink(mix_import *in) {
  const double bias = mix_onnx_number(in->node, "bias", 0), lambda = mix_onnx_number(in->node, "lambd", 0.5);
  if (bias != 0 && bias != lambda)
    return mix_import_fail(in, MIX_UNSUPPORTED, "its bias is neither 0 nor lambd");
  json_t *config = MIX_PACK("{s:f}", "threshold", lambda);
  return mix_import_bind(
      in, 0, mix_import_apply(in, bias != 0 ? "SoftShrink" : "HardShrink", operand(in, 0), config));
}

/* Keras has the constants of the paper alone, which are the defaults here to float32. */
bool mix_import_selu(mix_import *in) {
  if (fabs(mix_onnx_number(in->node, "alpha", 1.67326) - 1.67326) > 1e-5 ||
      fabs(mix_onnx_number(in->node, "gamma", 1.0507) - 1.0507) > 1e-5)
    return mix_import_fail(in, MIX_UNSUPPORTED, "its alpha or gamma are not those of the paper");
  return mix_import_bind(in, 0, mix_import_apply(in, "Selu", operand(in, 0), NULL));
}

static mix_tensor *plus(mix_import *in, mix_tensor *x, double number) {
  return x ? mix_import_apply_two(in, "Add", x, mix_import_number_like(x, number)) : NULL;
}
static mix_tensor *times(mix_import *in, mix_tensor *x, double number) {
  return x ? mix_import_apply_two(in, "Multiply", x, mix_import_number_like(x, number)) : NULL;
}
static mix_tensor *within_one(mix_import *in, mix_tensor *x) {
  if (!x) return NULL;
  x = mix_import_apply_two(in, "Maximum", x, mix_import_number_like(x, 0));
  return x ? mix_import_apply_two(in, "Minimum", x, mix_import_number_like(x, 1)) : NULL;
}

/* max(0, min(1, alpha x + beta)); of HardSwish times x */
bool mix_import_hard_sigmoid(mix_import *in) {
  const bool swish = !strcmp(in->node->op, "HardSwish");
  const double alpha = swish ? 1.0 / 6 : mix_onnx_number(in->node, "alpha", 0.2);
  const double beta = swish ? 0.5 : mix_onnx_number(in->node, "beta", 0.5);
  mix_tensor *x = operand(in, 0);
  if (fabs(alpha - 1.0 / 6) < 1e-7 && beta == 0.5)
    return mix_import_bind(in, 0, mix_import_apply(in, swish ? "HardSilu" : "HardSigmoid", x, NULL));
  return mix_import_bind(in, 0, within_one(in, plus(in, times(in, x, alpha), beta)));
}

bool mix_import_gelu(mix_import *in) {
  const bool tanh = !strcmp(mix_onnx_string(in->node, "approximate", "none"), "tanh");
  return mix_import_bind(
      in, 0, mix_import_apply(in, "Gelu", operand(in, 0), MIX_PACK("{s:b}", "approximate", tanh)));
}

/* Before operator set 13 the axes from `axis` on count as one. */
bool mix_import_softmax(mix_import *in) {
  const char *name = !strcmp(in->node->op, "LogSoftmax") ? "LogSoftmax" : "Softmax";
  const bool old = in->file->opset < 13;
  mix_tensor *x = operand(in, 0);
  if (!x) return false;
  const int rank = mix_tensor_shape(x).rank;
  const int axis = mix_import_axis(in, mix_onnx_integer(in->node, "axis", old ? 1 : -1), rank);
  if (axis < 0) return false;
  if (old && axis != rank - 1)
    return mix_import_fail(
        in, MIX_UNSUPPORTED,
        "axes from %d on of rank %d count as one before operator set 13; expected the last", axis, rank);
  json_t *config = MIX_PACK("{s:i}", "axis", axis == rank - 1 ? -1 : axis);
  return mix_import_bind(in, 0, mix_import_apply(in, name, x, config));
}

/* ---- along axes ---- */

static mix_tensor *reduced(mix_import *in, const char *name, mix_tensor *x, int count, const int64_t *axes,
                           bool keep) {
  json_t *config =
      MIX_PACK("{s:o,s:b}", "axis", count ? mix_import_list(count, axes) : json_null(), "keepdims", keep);
  return mix_import_apply(in, name, x, config);
}

bool mix_import_reduce(mix_import *in) {
  static const struct {
    const char *op, *before, *operation, *after;
  } kinds[] = {
      {"ReduceMean", NULL, "Mean", NULL},    {"ReduceSum", NULL, "Sum", NULL},
      {"ReduceMax", NULL, "Amax", NULL},     {"ReduceMin", NULL, "Amin", NULL},
      {"ReduceProd", NULL, "Prod", NULL},    {"ReduceL1", "Absolute", "Sum", NULL},
      {"ReduceL2", "Square", "Sum", "Sqrt"}, {"ReduceSumSquare", "Square", "Sum", NULL},
      {"ReduceLogSum", NULL, "Sum", "Log"},  {"ReduceLogSumExp", NULL, "Logsumexp", NULL},
  };
  int64_t axes[MIX_MAX_RANK];
  size_t k = 0;
  while (k < sizeof kinds / sizeof *kinds - 1 && strcmp(kinds[k].op, in->node->op)) k++;
  mix_tensor *x = operand(in, 0);
  const int count = x ? mix_import_integers_of(in, "axes", 1, MIX_MAX_RANK, axes) : -1;
  if (count < 0) return false;
  if (!count && mix_onnx_integer(in->node, "noop_with_empty_axes", 0)) return mix_import_identity(in);
  if (kinds[k].before) x = mix_import_apply(in, kinds[k].before, x, NULL);
  x = reduced(in, kinds[k].operation, x, count, axes, mix_onnx_integer(in->node, "keepdims", 1) != 0);
  if (x && kinds[k].after) x = mix_import_apply(in, kinds[k].after, x, NULL);
  return mix_import_bind(in, 0, x);
}

bool mix_import_arg(mix_import *in) {
  if (mix_onnx_integer(in->node, "select_last_index", 0))
    return mix_import_fail(in, MIX_UNSUPPORTED, "select_last_index is 1; expected 0");
  json_t *config = MIX_PACK("{s:I,s:b}", "axis", (json_int_t)mix_onnx_integer(in->node, "axis", 0),
                            "keepdims", mix_onnx_integer(in->node, "keepdims", 1) != 0);
  const char *name = !strcmp(in->node->op, "ArgMax") ? "Argmax" : "Argmin";
  mix_tensor *x = mix_import_apply(in, name, operand(in, 0), config);
  return mix_import_bind(in, 0,
                         x ? mix_import_apply(in, "Cast", x, MIX_PACK("{s:s}", "dtype", "int64")) : NULL);
}

bool mix_import_running_sum(mix_import *in) {
  int64_t axis = 0;
  if (mix_import_integers(in, 1, 1, &axis) < 0) return false;
  if (mix_onnx_integer(in->node, "exclusive", 0) || mix_onnx_integer(in->node, "reverse", 0))
    return mix_import_fail(in, MIX_UNSUPPORTED, "exclusive or reverse is 1; expected 0");
  json_t *config = MIX_PACK("{s:I}", "axis", (json_int_t)axis);
  return mix_import_bind(in, 0, mix_import_apply(in, "Cumsum", operand(in, 0), config));
}
