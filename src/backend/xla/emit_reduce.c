/* Reductions, and the normalizations that are made of them. Sums of 16 bits are float32. */
#include "backend/xla/emit_inside.h"

#include "ops/magnitudes.h"
#include <math.h>

/* x with its last axes, lost in a reduction, back. */
static mix_hlo along_last(mix_emitter *e, mix_hlo reduced, mix_shape shape) {
  static const int axes[MIX_MAX_RANK] = {0, 1, 2, 3, 4, 5, 6, 7};
  return mix_hlo_broadcast_along(&e->w, reduced, shape, axes);
}

double mix_emit_lowest(mix_dtype dtype) {
  if (mix_dtype_is_floating(dtype)) return -INFINITY;
  if (dtype == MIX_UINT8 || dtype == MIX_BOOL) return 0;
  return -ldexp(1, 8 * (int)mix_dtype_size(dtype) - 1);
}

static double highest(mix_dtype dtype) {
  if (mix_dtype_is_floating(dtype)) return INFINITY;
  if (dtype == MIX_BOOL) return 1;
  return dtype == MIX_UINT8 ? 255
                            : -mix_emit_lowest(dtype) - 1; /* of int64 rounds up, and is cut to the largest */
}

static void reduce(mix_emitter *e, const mix_ir_node *node, const char *op, mix_hlo x, double first) {
  const mix_reduce_attributes *a = node->attributes;
  mix_emit_result(e, node, 0, mix_hlo_reduce(&e->w, op, x, first, a->axis_count, a->axes));
}

static mix_hlo wide_operand(mix_emitter *e, const mix_ir_node *node) {
  return mix_emit_widen(e, mix_emit_operand(e, node, 0));
}

void mix_emit_reduce_sum(mix_emitter *e, const mix_ir_node *node) {
  reduce(e, node, "add", wide_operand(e, node), 0);
}
void mix_emit_reduce_prod(mix_emitter *e, const mix_ir_node *node) {
  reduce(e, node, "multiply", wide_operand(e, node), 1);
}
void mix_emit_reduce_max(mix_emitter *e, const mix_ir_node *node) {
  const mix_hlo x = mix_emit_operand(e, node, 0);
  reduce(e, node, x.dtype == MIX_BOOL ? "or" : "maximum", x, mix_emit_lowest(x.dtype));
}
void mix_emit_reduce_min(mix_emitter *e, const mix_ir_node *node) {
  const mix_hlo x = mix_emit_operand(e, node, 0);
  reduce(e, node, x.dtype == MIX_BOOL ? "and" : "minimum", x, highest(x.dtype));
}

void mix_emit_reduce_mean(mix_emitter *e, const mix_ir_node *node) {
  const mix_reduce_attributes *a = node->attributes;
  const mix_hlo x = wide_operand(e, node), sum = mix_hlo_reduce(&e->w, "add", x, 0, a->axis_count, a->axes);
  double count = 1;
  for (int i = 0; i < a->axis_count; i++) count *= (double)x.shape.dims[a->axes[i]];
  mix_emit_result(e, node, 0, mix_hlo_divide(&e->w, sum, mix_hlo_like(&e->w, sum, count)));
}

void mix_emit_bias_add_grad(mix_emitter *e, const mix_ir_node *node) {
  static const int axes[MIX_MAX_RANK] = {0, 1, 2, 3, 4, 5, 6, 7};
  const mix_hlo x = wide_operand(e, node);
  mix_emit_result(e, node, 0, mix_hlo_reduce(&e->w, "add", x, 0, x.shape.rank - 1, axes));
}

/* Rounds each sum to the accumulator's dtype. */
void mix_emit_add_n(mix_emitter *e, const mix_ir_node *node) {
  mix_hlo sum = wide_operand(e, node);
  for (int i = 1; i < node->input_count; i++)
    sum = mix_hlo_add(&e->w, sum, mix_emit_widen(e, mix_emit_operand(e, node, i)));
  mix_emit_result(e, node, 0, sum);
}

/* The first extreme along the axis, or the first NaN. */
static void position(mix_emitter *e, const mix_ir_node *node, const char *op, bool is_max) {
  mix_hlo_writer *w = &e->w;
  const int axis = ((const mix_axis_attributes *)node->attributes)->axis;
  mix_hlo x = mix_emit_operand(e, node, 0);
  if (x.dtype == MIX_BOOL) x = mix_hlo_convert(w, x, MIX_UINT8);
  int others[MIX_MAX_RANK], count = 0;
  for (int d = 0; d < x.shape.rank; d++)
    if (d != axis) others[count++] = d;
  const mix_hlo extreme = mix_hlo_broadcast_along(
                    w,
                    mix_hlo_reduce(w, op, x, is_max ? mix_emit_lowest(x.dtype) : highest(x.dtype), 1, &axis),
                    x.shape, others),
                equal = mix_hlo_compare(w, "EQ", x, extreme), nan = mix_hlo_compare(w, "NE", x, x),
                found = mix_hlo_binary(w, "or", equal, nan),
                places = mix_hlo_iota(w, mix_type_of(MIX_INT64, x.shape), axis);
  const double length = (double)x.shape.dims[axis];
  mix_emit_result(e, node, 0,
                  mix_hlo_reduce(w, "minimum",
                                 mix_hlo_select(w, found, places, mix_hlo_like(w, places, length)), length, 1,
                                 &axis));
}
void mix_emit_argmax(mix_emitter *e, const mix_ir_node *node) { position(e, node, "maximum", true); }
void mix_emit_argmin(mix_emitter *e, const mix_ir_node *node) { position(e, node, "minimum", false); }

void mix_emit_all_finite(mix_emitter *e, const mix_ir_node *node) {
  const mix_hlo finite = mix_hlo_is_finite(&e->w, mix_emit_operand(e, node, 0));
  mix_emit_result(e, node, 0, mix_hlo_reduce_all(&e->w, "and", finite, 1));
}

/* Each mean, difference and square rounds to the dtype of the results, which is no less than float32. */
void mix_emit_row_moments(mix_emitter *e, const mix_ir_node *node) {
  mix_hlo_writer *w = &e->w;
  const mix_reduce_attributes *a = node->attributes;
  const mix_hlo x = mix_hlo_convert(w, mix_emit_operand(e, node, 0), mix_emit_type(e, node, 0).dtype);
  double count = 1;
  for (int i = 0; i < a->axis_count; i++) count *= (double)x.shape.dims[a->axes[i]];
  const mix_hlo sum = mix_hlo_reduce(w, "add", x, 0, a->axis_count, a->axes),
                mean = mix_hlo_divide(w, sum, mix_hlo_like(w, sum, count)),
                difference = mix_hlo_subtract(w, x, along_last(e, mean, x.shape)),
                squares = mix_hlo_reduce(w, "add", mix_hlo_multiply(w, difference, difference), 0,
                                         a->axis_count, a->axes);
  mix_emit_result(e, node, 0, mean);
  mix_emit_result(e, node, 1, mix_hlo_divide(w, squares, mix_hlo_like(w, sum, count)));
}

/* ---- softmax and cross-entropies, over the last axis ---- */

typedef struct normalized {
  mix_hlo shifted, exponentials, sum; /* sum: without the axis */
} normalized;

static normalized normalize(mix_emitter *e, mix_hlo x) {
  mix_hlo_writer *w = &e->w;
  x = mix_emit_widen(e, x);
  const mix_hlo largest = mix_hlo_reduce_last(w, "maximum", x, -INFINITY);
  normalized n = {.shifted = mix_hlo_subtract(w, x, along_last(e, largest, x.shape))};
  n.exponentials = mix_hlo_unary(w, "exponential", n.shifted);
  n.sum = mix_hlo_reduce_last(w, "add", n.exponentials, 0);
  return n;
}

static mix_hlo probabilities(mix_emitter *e, const normalized *n) {
  return mix_hlo_divide(&e->w, n->exponentials, along_last(e, n->sum, n->exponentials.shape));
}

mix_hlo mix_emit_probabilities(mix_emitter *e, mix_hlo x) {
  const normalized n = normalize(e, x);
  return probabilities(e, &n);
}

void mix_emit_softmax(mix_emitter *e, const mix_ir_node *node) {
  mix_emit_result(e, node, 0, mix_emit_probabilities(e, mix_emit_operand(e, node, 0)));
}

void mix_emit_log_softmax(mix_emitter *e, const mix_ir_node *node) {
  const normalized n = normalize(e, mix_emit_operand(e, node, 0));
  const mix_hlo logarithm = mix_hlo_unary(&e->w, "log", n.sum);
  mix_emit_result(e, node, 0, mix_hlo_subtract(&e->w, n.shifted, along_last(e, logarithm, n.shifted.shape)));
}

void mix_emit_softmax_cross_entropy(mix_emitter *e, const mix_ir_node *node) {
  mix_hlo_writer *w = &e->w;
  const normalized n = normalize(e, mix_emit_operand(e, node, 0));
  const mix_hlo labels =
                    mix_hlo_broadcast(w, mix_emit_widen(e, mix_emit_operand(e, node, 1)), n.shifted.shape),
                logarithm = along_last(e, mix_hlo_unary(w, "log", n.sum), n.shifted.shape),
                losses = mix_hlo_multiply(w, labels, mix_hlo_subtract(w, logarithm, n.shifted));
  mix_emit_result(e, node, 0, mix_hlo_reduce_last(w, "add", losses, 0));
  mix_emit_result(e, node, 1, mix_hlo_subtract(w, probabilities(e, &n), labels));
}

/* A label outside fails, and gives NaN. */
void mix_emit_sparse_softmax_cross_entropy(mix_emitter *e, const mix_ir_node *node) {
  mix_hlo_writer *w = &e->w;
  const normalized n = normalize(e, mix_emit_operand(e, node, 0));
  const mix_shape shape = n.shifted.shape;
  const int64_t classes = shape.dims[shape.rank - 1];
  const mix_hlo labels = mix_hlo_convert(w, mix_emit_operand(e, node, 1), MIX_INT64),
                bad = mix_emit_outside(e, labels, classes),
                places = mix_hlo_iota(w, mix_type_of(MIX_INT64, shape), shape.rank - 1),
                hot = mix_hlo_compare(w, "EQ", places, along_last(e, labels, shape)),
                zero = mix_hlo_like(w, n.shifted, 0), nan = mix_hlo_like(w, n.shifted, NAN),
                own = mix_hlo_reduce_last(w, "add", mix_hlo_select(w, hot, n.shifted, zero), 0),
                loss = mix_hlo_subtract(w, mix_hlo_unary(w, "log", n.sum), own),
                likely = probabilities(e, &n),
                gradient = mix_hlo_subtract(w, likely, mix_hlo_convert(w, hot, zero.dtype));
  mix_emit_check(e, bad, labels,
                 (mix_bad_value){.what = "label",
                                 .range = "the classes",
                                 .remedy = "labels are indices into the last dimension of the predictions, "
                                           "from 0 on",
                                 .limit = classes});
  mix_emit_result(e, node, 0, mix_hlo_select(w, bad, mix_hlo_like(w, loss, NAN), loss));
  mix_emit_result(e, node, 1, mix_hlo_select(w, along_last(e, bad, shape), nan, gradient));
}

/* ---- magnitudes: counts from the bits of each element ---- */

static mix_hlo count_where(mix_hlo_writer *w, mix_hlo condition) {
  return mix_hlo_reduce_all(w, "add", mix_hlo_convert(w, condition, MIX_INT64), 0);
}

static mix_hlo whole_like(mix_hlo_writer *w, mix_hlo x, int64_t number) {
  return mix_hlo_whole(w, x.type, number);
}

static mix_hlo highest_bit(mix_hlo_writer *w, mix_hlo bits) {
  const mix_hlo last = whole_like(w, bits, 63);
  return mix_hlo_subtract(w, last, mix_hlo_unary(w, "count_leading_zeros", bits));
}

/* floor(log2) of bits that are not 0. */
static mix_hlo exponent_of(mix_hlo_writer *w, mix_hlo bits, mix_float_format f) {
  const mix_hlo field = mix_hlo_binary(w, "shift_right_logical", bits, whole_like(w, bits, f.fraction_bits)),
                normal = mix_hlo_subtract(w, field, whole_like(w, bits, f.bias)), top = highest_bit(w, bits),
                small = mix_hlo_add(w, top, whole_like(w, bits, 1 - f.bias - f.fraction_bits));
  return mix_hlo_select(w, mix_hlo_compare(w, "EQ", field, whole_like(w, bits, 0)), small, normal);
}

/* A magnitude as the bits of a double: those of its fraction are moved to the top. */
static mix_hlo double_of(mix_hlo_writer *w, mix_hlo bits, mix_float_format f) {
  if (f.fraction_bits == 52) return bits;
  const mix_hlo zero = whole_like(w, bits, 0),
                field = mix_hlo_binary(w, "shift_right_logical", bits, whole_like(w, bits, f.fraction_bits)),
                top = highest_bit(w, bits), is_small = mix_hlo_compare(w, "EQ", field, zero),
                width = mix_hlo_select(w, is_small, top, whole_like(w, bits, f.fraction_bits)),
                one = whole_like(w, bits, 1),
                mask = mix_hlo_subtract(w, mix_hlo_binary(w, "shift_left", one, width), one),
                digits = mix_hlo_and(w, bits, mask), place = whole_like(w, bits, 52),
                fraction = mix_hlo_binary(w, "shift_left", digits, mix_hlo_subtract(w, place, width)),
                power = exponent_of(w, bits, f), biased = mix_hlo_add(w, power, whole_like(w, bits, 1023)),
                exponent = mix_hlo_binary(w, "shift_left", biased, place),
                all = mix_hlo_binary(w, "or", exponent, fraction);
  return mix_hlo_select(w, mix_hlo_compare(w, "EQ", bits, zero), zero, all);
}

void mix_emit_magnitudes(mix_emitter *e, const mix_ir_node *node) {
  mix_hlo_writer *w = &e->w;
  const mix_hlo x = mix_emit_operand(e, node, 0);
  const mix_dtype dtype = x.dtype;
  const mix_float_format f = mix_float_format_of(dtype);
  const int64_t size = mix_shape_size(x.shape), bins = mix_magnitude_bins(dtype),
                infinity = (int64_t)f.exponents << f.fraction_bits;
  const mix_dtype raw = mix_dtype_size(dtype) == 2   ? MIX_UINT16
                        : mix_dtype_size(dtype) == 4 ? MIX_UINT32
                                                     : MIX_UINT64;
  const mix_hlo same = mix_hlo_bits(w, mix_hlo_reshape(w, x, MIX_SHAPE(size)), raw),
                all_bits = mix_hlo_convert(w, mix_hlo_convert(w, same, MIX_UINT64), MIX_INT64),
                sign =
                    whole_like(w, all_bits, (int64_t)((UINT64_C(1) << (8 * mix_dtype_size(dtype) - 1)) - 1)),
                bits = mix_hlo_and(w, all_bits, sign), zero = whole_like(w, bits, 0),
                top = whole_like(w, bits, infinity), is_zero = mix_hlo_compare(w, "EQ", bits, zero),
                finite = mix_hlo_compare(w, "LT", bits, top),
                counted = mix_hlo_and(w, finite, mix_hlo_not(w, is_zero)),
                subnormal = mix_hlo_and(
                    w, counted,
                    mix_hlo_compare(w, "LT", bits, whole_like(w, bits, INT64_C(1) << f.fraction_bits))),
                behind = whole_like(w, bits, INT64_MAX),
                low = mix_hlo_reduce_all(w, "minimum", mix_hlo_select(w, counted, bits, behind), 0x1p63),
                nothing = mix_hlo_compare(w, "EQ", low, whole_like(w, low, INT64_MAX)),
                smallest = mix_hlo_select(w, nothing, whole_like(w, low, 0), low),
                largest = mix_hlo_reduce_all(w, "maximum", mix_hlo_select(w, counted, bits, zero), 0),
                power = exponent_of(w, bits, f),
                lowest_power = whole_like(w, bits, mix_magnitude_lowest(dtype)),
                exponent = mix_hlo_subtract(w, power, lowest_power),
                bin = mix_hlo_select(w, counted, exponent, whole_like(w, bits, bins)),
                none = mix_hlo_whole(w, mix_type_of(MIX_INT64, MIX_SHAPE(bins)), 0),
                places = mix_hlo_reshape(w, bin, MIX_SHAPE(size, 1)), ones = whole_like(w, bits, 1);
  mix_hlo parts[MIX_MAGNITUDE_BINS + 1];
  int count = 0;
  parts[count++] = mix_hlo_whole(w, mix_type_of(MIX_INT64, MIX_SHAPE(1)), size);
  parts[count++] = mix_emit_word(w, count_where(w, is_zero));
  parts[count++] = mix_emit_word(w, count_where(w, subnormal));
  parts[count++] = mix_emit_word(w, count_where(w, mix_hlo_compare(w, "EQ", bits, top)));
  parts[count++] = mix_emit_word(w, count_where(w, mix_hlo_compare(w, "GT", bits, top)));
  parts[count++] = mix_emit_word(w, double_of(w, smallest, f));
  parts[count++] = mix_emit_word(w, double_of(w, largest, f));
  parts[count++] = size ? mix_hlo_scatter(w, "add", none, places, ones) : none;
  mix_emit_result(e, node, 0, mix_hlo_concatenate(w, count, parts, 0));
}
