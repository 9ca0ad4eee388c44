/* Magnitudes: counts from the bits of each element. */
#include "backend/xla/emit_inside.h"

#include "ops/magnitudes.h"

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
