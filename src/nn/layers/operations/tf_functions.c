/* Functions of TensorFlow that keras.ops has not, or in another form: products without NaN, triangles and
 * diagonals of matrices, losses of logits. */
#include "base/error.h"
#include "nn/layers/operations/operation.h"
#include "ops/with_number.h"

static mix_tensor *number(mix_tensor *x, double value) { return mix_scalar_like(x, value); }

/* ---- 0 where the first operand is 0, whatever the other is ---- */

/* y, with 1 where x is 0, so that no gradient of it is NaN. */
static mix_tensor *safe(mix_tensor *zero, mix_tensor *y) { return mix_select(zero, number(y, 1), y); }
static mix_tensor *unless(mix_tensor *zero, mix_tensor *y) { return mix_select(zero, number(y, 0), y); }
static mix_tensor *is_zero(mix_tensor *x) { return mix_equal(x, number(x, 0)); }

static mix_tensor *xlogy(mix_tensor *x, mix_tensor *y) {
  mix_tensor *zero = is_zero(x);
  return unless(zero, mix_multiply(x, mix_log(safe(zero, y))));
}
static mix_tensor *xlog1py(mix_tensor *x, mix_tensor *y) {
  mix_tensor *zero = is_zero(x);
  return unless(zero, mix_multiply(x, mix_log1p(safe(zero, y))));
}
static mix_tensor *xdivy(mix_tensor *x, mix_tensor *y) {
  mix_tensor *zero = is_zero(x);
  return unless(zero, mix_divide(x, safe(zero, y)));
}
static mix_tensor *multiply_no_nan(mix_tensor *x, mix_tensor *y) {
  mix_tensor *zero = is_zero(y);
  return unless(zero, mix_multiply(mix_select(zero, number(x, 0), x), y));
}

/* ---- others ---- */

static mix_tensor *tan_(mix_tensor *x) { return mix_divide(mix_sin(x), mix_cos(x)); }
static mix_tensor *log_sigmoid(mix_tensor *x) { return mix_negative(mix_softplus(mix_negative(x))); }
static mix_tensor *l2_loss(mix_tensor *x) {
  return mix_times(mix_reduce_sum(mix_square(x), MIX_ALL_AXES, false), 0.5);
}
static mix_tensor *crelu(const mix_operands *o, mix_tensor *x) {
  const int axis = mix_operand_axis(o, "axis", mix_operand_rank(x));
  mix_tensor *both[] = {x, mix_negative(x)};
  return axis < 0 ? NULL : mix_relu(mix_concat(2, both, axis));
}
static mix_tensor *slice(const mix_operands *o, mix_tensor *x) {
  const mix_shape begin = mix_operand_shape(o, "begin"), size = mix_operand_shape(o, "size");
  return mix_failed() ? NULL : mix_slice(x, begin, size);
}
static mix_tensor *count_nonzero(const mix_operands *o, mix_tensor *x) {
  const mix_axes axes = mix_operand_axes(o, "axis", mix_operand_rank(x));
  const mix_dtype dtype = mix_operand_dtype(o, "dtype", MIX_INT64);
  if (mix_failed()) return NULL;
  mix_tensor *counts = mix_cast(mix_not_equal(x, number(x, 0)), dtype);
  return mix_reduce_sum(counts, axes, mix_operand_flag(o, "keepdims"));
}
static mix_tensor *bitcast(const mix_operands *o, mix_tensor *x) {
  const mix_dtype dtype = mix_operand_dtype(o, "type", mix_tensor_dtype(x));
  return mix_failed() ? NULL : mix_bitcast(x, dtype);
}
/* As far as a division that rounds towards 0. */
static mix_tensor *toward_zero(mix_tensor *quotient) {
  return mix_select(mix_less(quotient, number(quotient, 0)), mix_ceil(quotient), mix_floor(quotient));
}
static mix_tensor *truncatemod(mix_tensor *x, mix_tensor *y) {
  if (mix_dtype_is_floating(mix_tensor_dtype(x)))
    return mix_subtract(x, mix_multiply(toward_zero(mix_divide(x, y)), y));
  return mix_multiply(mix_sign(x), mix_floor_mod(mix_abs(x), mix_abs(y)));
}
static mix_tensor *truncatediv(mix_tensor *x, mix_tensor *y) {
  if (mix_dtype_is_floating(mix_tensor_dtype(x))) return toward_zero(mix_divide(x, y));
  return mix_multiply(mix_multiply(mix_sign(x), mix_sign(y)), mix_floor_divide(mix_abs(x), mix_abs(y)));
}

static mix_tensor *clip_by_norm(const mix_operands *o, mix_tensor *x) {
  const mix_axes axes = mix_operand_axes(o, "axes", mix_operand_rank(x));
  mix_tensor *bound = number(x, mix_operand_number(o, "clip_norm"));
  if (mix_failed()) return NULL;
  mix_tensor *squares = mix_reduce_sum(mix_square(x), axes, true), *zero = is_zero(squares);
  mix_tensor *norm = mix_sqrt(safe(zero, squares));
  return mix_divide(mix_multiply(x, bound), mix_maximum(mix_select(zero, squares, norm), bound));
}

/* ---- matrices: the last two axes ---- */

/* Column - row at each place of x's matrices; NULL with the error recorded. */
static mix_tensor *diagonals(const mix_operands *o, mix_tensor *x) {
  const int rank = mix_operand_rank(x);
  if (rank < 2 || mix_operand_size(x, rank - 1) < 0 || mix_operand_size(x, rank - 2) < 0)
    return mix_operation_fail(o, MIX_VALUE_ERROR, "its operand is %s; expected matrices of known sizes",
                              MIX_SHAPE_TEXT(mix_tensor_shape(x)));
  mix_tensor *rows = mix_range(0, (double)mix_operand_size(x, rank - 2), 1, MIX_INT64);
  mix_tensor *columns = mix_range(0, (double)mix_operand_size(x, rank - 1), 1, MIX_INT64);
  return mix_subtract(columns, mix_expand_dims(rows, 1));
}
static mix_tensor *on_diagonal(const mix_operands *o, mix_tensor *x, mix_tensor *inside, mix_tensor *others) {
  mix_tensor *offsets = diagonals(o, x);
  return offsets ? mix_select(is_zero(offsets), inside, others) : NULL;
}
static mix_tensor *band_part(const mix_operands *o, mix_tensor *x) {
  const int64_t lower = mix_operand_integer(o, "num_lower"), upper = mix_operand_integer(o, "num_upper");
  mix_tensor *offsets = mix_failed() ? NULL : diagonals(o, x);
  if (!offsets) return NULL;
  if (upper >= 0) x = mix_select(mix_less_equal(offsets, number(offsets, (double)upper)), x, number(x, 0));
  if (lower >= 0)
    x = mix_select(mix_greater_equal(offsets, number(offsets, (double)-lower)), x, number(x, 0));
  return x;
}
static mix_tensor *trace(const mix_operands *o, mix_tensor *x) {
  return mix_reduce_sum(on_diagonal(o, x, x, number(x, 0)), MIX_AXES(-2, -1), false);
}
static mix_tensor *diag_part(const mix_operands *o, mix_tensor *x) {
  mix_tensor *rest = on_diagonal(o, x, x, number(x, 0));
  if (!rest) return NULL;
  const int rank = mix_operand_rank(x);
  const bool wide = mix_operand_size(x, rank - 1) > mix_operand_size(x, rank - 2);
  return mix_reduce_sum(rest, MIX_AXES(wide ? -1 : -2), false);
}
static mix_tensor *diag(const mix_operands *o, mix_tensor *x) {
  const int rank = mix_operand_rank(x);
  mix_shape shape = mix_tensor_shape(x);
  if (rank < 1 || rank == MIX_MAX_RANK)
    return mix_operation_fail(o, MIX_VALUE_ERROR, "its operand has rank %d; expected 1 to 7", rank);
  shape.dims[shape.rank++] = shape.dims[rank - 1];
  mix_tensor *wide = mix_broadcast_to(mix_expand_dims(x, -1), shape);
  return wide ? on_diagonal(o, wide, wide, number(x, 0)) : NULL;
}
static mix_tensor *set_diag(const mix_operands *o, mix_tensor *x) {
  mix_tensor *diagonal = mix_operand_like(o, "diagonal", x);
  const int rank = mix_operand_rank(x);
  if (mix_failed()) return NULL;
  if (rank < 2 || mix_operand_rank(diagonal) != rank - 1)
    return mix_operand_refused(o, MIX_VALUE_ERROR, "diagonal", "a row for each matrix");
  const bool wide = mix_operand_size(x, rank - 1) > mix_operand_size(x, rank - 2);
  return on_diagonal(o, x, mix_expand_dims(diagonal, wide ? -1 : -2), x);
}
static mix_tensor *matrix_transpose(const mix_operands *o, mix_tensor *x) {
  mix_axes order = {.count = mix_operand_rank(x)};
  const int last = order.count - 1;
  if (last < 1) return mix_operation_fail(o, MIX_VALUE_ERROR, "its operand is no matrix");
  for (int i = 0; i <= last; i++) order.axis[i] = i == last ? last - 1 : i == last - 1 ? last : i;
  return mix_transpose(x, order);
}

/* ---- losses of logits, by element or row ---- */

static mix_tensor *sigmoid_loss(const mix_operands *o, mix_tensor *labels) {
  mix_tensor *logits = mix_operand_like(o, "logits", labels);
  if (mix_failed()) return NULL;
  return mix_subtract(mix_softplus(logits), mix_multiply(logits, labels));
}
static mix_tensor *softmax_loss(const mix_operands *o, mix_tensor *labels) {
  mix_tensor *logits = mix_operand_like(o, "logits", labels);
  const int axis = logits ? mix_operand_axis(o, "axis", mix_operand_rank(logits)) : -1;
  if (axis < 0) return NULL;
  if (axis != mix_operand_rank(logits) - 1)
    return mix_operand_refused(o, MIX_UNSUPPORTED, "axis", "the last one");
  return mix_softmax_cross_entropy(labels, logits);
}
static mix_tensor *sparse_loss(const mix_operands *o, mix_tensor *labels) {
  mix_tensor *logits = mix_operand(o, "logits");
  return logits ? mix_sparse_softmax_cross_entropy(labels, logits) : NULL;
}

/* ---- the table ---- */

#define UNARY(name, operand, function) MIX_TF_OPERATION(name, operand, "", .unary = function)
#define BINARY(name, function) MIX_TF_OPERATION(name, "x", "y", .binary = function)
#define LOSS(name, options, function)                                                                        \
  MIX_TF_OPERATION("compat.v1.nn." name, "labels", "logits" options, .build = function)

const mix_operation mix_tf_other_operations[] = {
    BINARY("math.xlogy", xlogy),
    BINARY("math.xlog1py", xlog1py),
    BINARY("math.xdivy", xdivy),
    BINARY("math.multiply_no_nan", multiply_no_nan),
    BINARY("realdiv", mix_divide),
    BINARY("truncatediv", truncatediv),
    BINARY("truncatemod", truncatemod),
    MIX_TF_OPERATION("compat.v1.math.scalar_mul", "scalar", "x", .binary = mix_multiply),
    UNARY("math.tan", "x", tan_),
    UNARY("math.rint", "x", mix_round),
    UNARY("math.log_sigmoid", "x", log_sigmoid),
    UNARY("math.real", "input", mix_identity),
    UNARY("math.conj", "x", mix_identity),
    UNARY("math.imag", "input", mix_zeros_like),
    UNARY("nn.l2_loss", "t", l2_loss),
    MIX_TF_OPERATION("compat.v1.nn.crelu", "features", "axis=-1", .build = crelu),
    MIX_TF_OPERATION("slice", "input_", "begin size", .build = slice),
    MIX_TF_OPERATION("math.count_nonzero", "input", "axis keepdims dtype=\"int64\"", .build = count_nonzero),
    MIX_TF_OPERATION("bitcast", "input", "type", .build = bitcast),
    MIX_TF_OPERATION("clip_by_norm", "t", "clip_norm axes", .build = clip_by_norm),
    MIX_TF_OPERATION("linalg.band_part", "input", "num_lower num_upper", .build = band_part),
    MIX_TF_OPERATION("linalg.trace", "x", "", .build = trace),
    MIX_TF_OPERATION("linalg.diag_part", "input", "!k=0 !padding_value=0 !align=\"RIGHT_LEFT\"",
                     .build = diag_part),
    MIX_TF_OPERATION("linalg.diag", "diagonal",
                     "!k=0 !num_rows=-1 !num_cols=-1 !padding_value=0 !align=\"RIGHT_LEFT\"", .build = diag),
    MIX_TF_OPERATION("linalg.set_diag", "input", "diagonal !k=0 !align=\"RIGHT_LEFT\"", .build = set_diag),
    MIX_TF_OPERATION("linalg.matrix_transpose", "a", "!conjugate=false", .build = matrix_transpose),
    MIX_TF_OPERATION("linalg.adjoint", "matrix", "", .build = matrix_transpose),
    LOSS("sigmoid_cross_entropy_with_logits", "", sigmoid_loss),
    LOSS("softmax_cross_entropy_with_logits_v2", " axis=-1", softmax_loss),
    LOSS("sparse_softmax_cross_entropy_with_logits", "", sparse_loss),
    {0}};
