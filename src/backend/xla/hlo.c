#include "backend/xla/hlo.h"

#include "tensor/convert.h"
#include "tensor/shape.h"

/* ---- names and types ---- */

void mix_hlo_line(mix_hlo_writer *w) { mix_text_put(&w->text, "%*s", 2 * w->indent, ""); }

void mix_hlo_put(mix_hlo_writer *w, mix_hlo x) {
  mix_text_put(&w->text, "%%%d", x.number);
  if (x.part >= 0) mix_text_put(&w->text, "#%d", x.part);
}

static const char *element_name(mix_dtype dtype) {
  static const char *const names[MIX_DTYPE_COUNT] = {
      [MIX_FLOAT16] = "f16",       [MIX_BFLOAT16] = "bf16",
      [MIX_FLOAT32] = "f32",       [MIX_FLOAT64] = "f64",
      [MIX_INT8] = "i8",           [MIX_INT16] = "i16",
      [MIX_INT32] = "i32",         [MIX_INT64] = "i64",
      [MIX_UINT8] = "ui8",         [MIX_UINT16] = "ui16",
      [MIX_UINT32] = "ui32",       [MIX_UINT64] = "ui64",
      [MIX_BOOL] = "i1",           [MIX_FLOAT8_E4M3FN] = "f8E4M3FN",
      [MIX_FLOAT8_E5M2] = "f8E5M2"};
  return names[dtype];
}

void mix_hlo_put_type(mix_hlo_writer *w, mix_type type) {
  mix_text_put(&w->text, "tensor<");
  for (int d = 0; d < type.shape.rank; d++) mix_text_put(&w->text, "%lldx", (long long)type.shape.dims[d]);
  mix_text_put(&w->text, "%s>", element_name(type.dtype));
}

mix_hlo mix_hlo_new(mix_hlo_writer *w, mix_type type) {
  return (mix_hlo){.type = type, .number = w->next++, .part = -1};
}

/* "  %7 = stablehlo.add %3, %4": the caller adds attributes and types. */
static mix_hlo begin(mix_hlo_writer *w, const char *op, mix_type type, int count, const mix_hlo *operands) {
  const mix_hlo result = mix_hlo_new(w, type);
  mix_hlo_line(w);
  mix_hlo_put(w, result);
  mix_text_put(&w->text, " = %s%s", strchr(op, '.') ? "" : "stablehlo.", op);
  for (int i = 0; i < count; i++) {
    mix_text_put(&w->text, i ? ", " : " ");
    mix_hlo_put(w, operands[i]);
  }
  return result;
}

/* " : (T, U) -> V" */
static mix_hlo end(mix_hlo_writer *w, mix_hlo result, int count, const mix_hlo *operands) {
  mix_text_put(&w->text, " : (");
  for (int i = 0; i < count; i++) {
    if (i) mix_text_put(&w->text, ", ");
    mix_hlo_put_type(w, operands[i].type);
  }
  mix_text_put(&w->text, ") -> ");
  mix_hlo_put_type(w, result.type);
  mix_text_put(&w->text, "\n");
  return result;
}

static mix_hlo end_like(mix_hlo_writer *w, mix_hlo result) {
  mix_text_put(&w->text, " : ");
  mix_hlo_put_type(w, result.type);
  mix_text_put(&w->text, "\n");
  return result;
}

void mix_hlo_put_numbers(mix_hlo_writer *w, const char *before, int count, const int64_t *numbers) {
  mix_text_put(&w->text, "%s[", before);
  for (int i = 0; i < count; i++) mix_text_put(&w->text, "%s%lld", i ? ", " : "", (long long)numbers[i]);
  mix_text_put(&w->text, "]");
}

static void put_axes(mix_hlo_writer *w, const char *before, int count, const int *axes) {
  mix_text_put(&w->text, "%s[", before);
  for (int i = 0; i < count; i++) mix_text_put(&w->text, "%s%d", i ? ", " : "", axes[i]);
  mix_text_put(&w->text, "]");
}

static void put_array(mix_hlo_writer *w, const char *before, int count, const int64_t *numbers) {
  mix_text_put(&w->text, "%sarray<i64", before);
  for (int i = 0; i < count; i++) mix_text_put(&w->text, "%s%lld", i ? ", " : ": ", (long long)numbers[i]);
  mix_text_put(&w->text, ">");
}

/* ---- constants ---- */

/* Decimals need a point; what is not finite is written as its bits. */
static void put_float(mix_hlo_writer *w, mix_dtype dtype, const void *element) {
  const double x = mix_load_double(element, dtype, 0);
  if (x - x != 0) {
    uint64_t bits = 0;
    memcpy(&bits, element, mix_dtype_size(dtype));
    mix_text_put(&w->text, "0x%0*llX", (int)(2 * mix_dtype_size(dtype)), (unsigned long long)bits);
    return;
  }
  char digits[40];
  mix_text number = {.text = digits, .size = sizeof digits};
  mix_text_put_number(&number, x);
  const int whole = (int)strcspn(digits, "e");
  mix_text_put(&w->text, "%.*s%s%s", whole, digits, memchr(digits, '.', (size_t)whole) ? "" : ".0",
               digits + whole);
}

static void put_element(mix_hlo_writer *w, mix_dtype dtype, const void *data, int64_t i) {
  const size_t bytes = mix_dtype_size(dtype);
  if (mix_dtype_is_floating(dtype))
    put_float(w, dtype, (const char *)data + (size_t)i * bytes);
  else if (dtype == MIX_BOOL)
    mix_text_put(&w->text, ((const bool *)data)[i] ? "true" : "false");
  else
    mix_text_put(&w->text, "%lld", (long long)mix_load_integer(data, dtype, i));
}

static bool is_splat(mix_type type, const void *data) {
  const size_t bytes = mix_dtype_size(type.dtype), all = mix_value_bytes(type.dtype, type.shape);
  return all >= bytes && !memcmp(data, (const char *)data + bytes, all - bytes);
}

mix_hlo mix_hlo_constant(mix_hlo_writer *w, mix_type type, const void *data) {
  const int64_t count = mix_shape_size(type.shape);
  const bool list = count == 0 || is_splat(type, data) || (type.shape.rank == 1 && count <= 8);
  if (type.dtype == MIX_BOOL && !list) /* packing of bits would be the reader's choice */
    return mix_hlo_convert(w, mix_hlo_constant(w, mix_type_of(MIX_UINT8, type.shape), data), MIX_BOOL);
  const mix_hlo result = begin(w, "constant", type, 0, NULL);
  mix_text_put(&w->text, " dense<");
  if (!list) {
    const size_t bytes = mix_value_bytes(type.dtype, type.shape);
    mix_text_put(&w->text, "\"0x");
    for (size_t i = 0; i < bytes; i++) mix_text_put(&w->text, "%02X", ((const unsigned char *)data)[i]);
    mix_text_put(&w->text, "\"");
  } else if (count && is_splat(type, data))
    put_element(w, type.dtype, data, 0);
  else
    for (int64_t i = 0; i < count; i++) {
      mix_text_put(&w->text, i ? ", " : "[");
      put_element(w, type.dtype, data, i);
      if (i == count - 1) mix_text_put(&w->text, "]");
    }
  mix_text_put(&w->text, ">");
  return end_like(w, result);
}

mix_hlo mix_hlo_whole(mix_hlo_writer *w, mix_type type, int64_t number) {
  const mix_hlo result = begin(w, "constant", type, 0, NULL);
  if (mix_shape_size(type.shape) == 0)
    mix_text_put(&w->text, " dense<>");
  else if (type.dtype == MIX_BOOL)
    mix_text_put(&w->text, " dense<%s>", number ? "true" : "false");
  else if (type.dtype >= MIX_UINT16 && type.dtype <= MIX_UINT64)
    mix_text_put(&w->text, " dense<%llu>", (unsigned long long)number);
  else
    mix_text_put(&w->text, " dense<%lld>", (long long)mix_wrap_integer(number, type.dtype));
  return end_like(w, result);
}

mix_hlo mix_hlo_number(mix_hlo_writer *w, mix_type type, double number) {
  if (type.dtype == MIX_BOOL) return mix_hlo_whole(w, type, number != 0);
  if (!mix_dtype_is_floating(type.dtype)) return mix_hlo_whole(w, type, mix_f64_to_i64(number));
  double element;
  mix_store_double(&element, type.dtype, 0, number);
  const mix_hlo result = begin(w, "constant", type, 0, NULL);
  mix_text_put(&w->text, " dense<");
  if (mix_shape_size(type.shape)) put_float(w, type.dtype, &element);
  mix_text_put(&w->text, ">");
  return end_like(w, result);
}

mix_hlo mix_hlo_like(mix_hlo_writer *w, mix_hlo x, double number) {
  return mix_hlo_number(w, x.type, number);
}

mix_hlo mix_hlo_iota(mix_hlo_writer *w, mix_type type, int axis) {
  const mix_hlo result = begin(w, "iota", type, 0, NULL);
  mix_text_put(&w->text, " dim = %d", axis);
  return end_like(w, result);
}

/* ---- element-wise ---- */

mix_hlo mix_hlo_unary(mix_hlo_writer *w, const char *op, mix_hlo x) {
  const mix_hlo result = begin(w, op, x.type, 1, &x);
  if (!strchr(op, '.')) return end_like(w, result);
  mix_text_put(&w->text, " : "); /* chlo */
  mix_hlo_put_type(w, x.type);
  mix_text_put(&w->text, " -> ");
  mix_hlo_put_type(w, x.type);
  mix_text_put(&w->text, "\n");
  return result;
}

mix_hlo mix_hlo_binary(mix_hlo_writer *w, const char *op, mix_hlo a, mix_hlo b) {
  return end_like(w, begin(w, op, a.type, 2, (const mix_hlo[]){a, b}));
}

/* Without it XLA folds constants of signed integers as if they had no sign. */
static const char *comparison_of(mix_dtype dtype) {
  if (mix_dtype_is_floating(dtype)) return "";
  const bool has_sign = dtype == MIX_INT8 || dtype == MIX_INT16 || dtype == MIX_INT32 || dtype == MIX_INT64;
  return has_sign ? ", SIGNED" : ", UNSIGNED";
}

mix_hlo mix_hlo_compare(mix_hlo_writer *w, const char *how, mix_hlo a, mix_hlo b) {
  const mix_hlo operands[] = {a, b}, result = begin(w, "compare", mix_type_of(MIX_BOOL, a.shape), 0, NULL);
  mix_text_put(&w->text, " %s, ", how);
  mix_hlo_put(w, a);
  mix_text_put(&w->text, ", ");
  mix_hlo_put(w, b);
  mix_text_put(&w->text, "%s", comparison_of(a.dtype));
  return end(w, result, 2, operands);
}

mix_hlo mix_hlo_select(mix_hlo_writer *w, mix_hlo condition, mix_hlo a, mix_hlo b) {
  const mix_hlo result = begin(w, "select", a.type, 3, (const mix_hlo[]){condition, a, b});
  mix_text_put(&w->text, " : ");
  mix_hlo_put_type(w, condition.type);
  mix_text_put(&w->text, ", ");
  mix_hlo_put_type(w, a.type);
  mix_text_put(&w->text, "\n");
  return result;
}

mix_hlo mix_hlo_barrier(mix_hlo_writer *w, mix_hlo x, mix_hlo after) {
  mix_hlo result = mix_hlo_new(w, x.type);
  mix_hlo_line(w);
  mix_hlo_put(w, result);
  mix_text_put(&w->text, ":2 = stablehlo.optimization_barrier ");
  mix_hlo_put(w, x);
  mix_text_put(&w->text, ", ");
  mix_hlo_put(w, after);
  mix_text_put(&w->text, " : ");
  mix_hlo_put_type(w, x.type);
  mix_text_put(&w->text, ", ");
  mix_hlo_put_type(w, after.type);
  mix_text_put(&w->text, "\n");
  result.part = 0;
  return result;
}

mix_hlo mix_hlo_is_finite(mix_hlo_writer *w, mix_hlo x) {
  return end(w, begin(w, "is_finite", mix_type_of(MIX_BOOL, x.shape), 1, &x), 1, &x);
}

mix_hlo mix_hlo_convert(mix_hlo_writer *w, mix_hlo x, mix_dtype dtype) {
  if (x.dtype == dtype) return x;
  return end(w, begin(w, "convert", mix_type_of(dtype, x.shape), 1, &x), 1, &x);
}

mix_hlo mix_hlo_bits(mix_hlo_writer *w, mix_hlo x, mix_dtype dtype) {
  return mix_hlo_bits_as(w, x, mix_type_of(dtype, x.shape));
}
mix_hlo mix_hlo_bits_as(mix_hlo_writer *w, mix_hlo x, mix_type type) {
  return x.dtype == type.dtype ? x : end(w, begin(w, "bitcast_convert", type, 1, &x), 1, &x);
}

/* ---- shapes ---- */

mix_hlo mix_hlo_reshape(mix_hlo_writer *w, mix_hlo x, mix_shape shape) {
  if (mix_shape_equal(x.shape, shape)) return x;
  return end(w, begin(w, "reshape", mix_type_of(x.dtype, shape), 1, &x), 1, &x);
}

mix_hlo mix_hlo_broadcast_along(mix_hlo_writer *w, mix_hlo x, mix_shape shape, const int *axes) {
  const mix_hlo result = begin(w, "broadcast_in_dim", mix_type_of(x.dtype, shape), 1, &x);
  put_axes(w, ", dims = ", x.shape.rank, axes);
  return end(w, result, 1, &x);
}

mix_hlo mix_hlo_broadcast(mix_hlo_writer *w, mix_hlo x, mix_shape shape) {
  if (mix_shape_equal(x.shape, shape)) return x;
  int axes[MIX_MAX_RANK];
  for (int d = 0; d < x.shape.rank; d++) axes[d] = d + shape.rank - x.shape.rank;
  return mix_hlo_broadcast_along(w, x, shape, axes);
}

mix_hlo mix_hlo_transpose(mix_hlo_writer *w, mix_hlo x, const int *permutation) {
  mix_type type = x.type;
  bool moves = false;
  for (int d = 0; d < x.shape.rank; d++) {
    type.shape.dims[d] = x.shape.dims[permutation[d]];
    moves |= permutation[d] != d;
  }
  if (!moves) return x;
  const mix_hlo result = begin(w, "transpose", type, 1, &x);
  put_axes(w, ", dims = ", x.shape.rank, permutation);
  return end(w, result, 1, &x);
}

mix_hlo mix_hlo_slice(mix_hlo_writer *w, mix_hlo x, const int64_t *from, const int64_t *to,
                      const int64_t *strides) {
  mix_type type = x.type;
  for (int d = 0; d < x.shape.rank; d++)
    type.shape.dims[d] = (to[d] - from[d] + (strides ? strides[d] : 1) - 1) / (strides ? strides[d] : 1);
  const mix_hlo result = begin(w, "slice", type, 1, &x);
  mix_text_put(&w->text, " [");
  for (int d = 0; d < x.shape.rank; d++) {
    mix_text_put(&w->text, "%s%lld:%lld", d ? ", " : "", (long long)from[d], (long long)to[d]);
    if (strides && strides[d] != 1) mix_text_put(&w->text, ":%lld", (long long)strides[d]);
  }
  mix_text_put(&w->text, "]");
  return end(w, result, 1, &x);
}

mix_hlo mix_hlo_pad(mix_hlo_writer *w, mix_hlo x, mix_hlo value, const int64_t *low, const int64_t *high,
                    const int64_t *interior) {
  static const int64_t none[MIX_MAX_RANK] = {0};
  const mix_hlo operands[] = {x, value};
  mix_type type = x.type;
  if (!interior) interior = none;
  for (int d = 0; d < x.shape.rank; d++)
    type.shape.dims[d] += low[d] + high[d] + (x.shape.dims[d] > 0 ? (x.shape.dims[d] - 1) * interior[d] : 0);
  const mix_hlo result = begin(w, "pad", type, 2, operands);
  mix_hlo_put_numbers(w, ", low = ", x.shape.rank, low);
  mix_hlo_put_numbers(w, ", high = ", x.shape.rank, high);
  mix_hlo_put_numbers(w, ", interior = ", x.shape.rank, interior);
  return end(w, result, 2, operands);
}

mix_hlo mix_hlo_concatenate(mix_hlo_writer *w, int count, const mix_hlo *xs, int axis) {
  mix_type type = xs[0].type;
  for (int i = 1; i < count; i++) type.shape.dims[axis] += xs[i].shape.dims[axis];
  const mix_hlo result = begin(w, "concatenate", type, count, xs);
  mix_text_put(&w->text, ", dim = %d", axis);
  return end(w, result, count, xs);
}

mix_hlo mix_hlo_reverse(mix_hlo_writer *w, mix_hlo x, int count, const int *axes) {
  const mix_hlo result = begin(w, "reverse", x.type, 1, &x);
  put_axes(w, ", dims = ", count, axes);
  return end_like(w, result);
}

/* ---- sums ---- */

mix_hlo mix_hlo_reduce(mix_hlo_writer *w, const char *op, mix_hlo x, double first, int count,
                       const int *axes) {
  mix_type type = {x.dtype, {0}};
  for (int d = 0; d < x.shape.rank; d++) {
    bool dropped = false;
    for (int i = 0; i < count; i++) dropped |= axes[i] == d;
    if (!dropped) type.shape.dims[type.shape.rank++] = x.shape.dims[d];
  }
  if (!count) return x;
  const mix_hlo operands[] = {x, mix_hlo_number(w, mix_type_of(x.dtype, MIX_SCALAR), first)},
                result = mix_hlo_new(w, type);
  mix_hlo_line(w);
  mix_hlo_put(w, result);
  mix_text_put(&w->text, " = stablehlo.reduce(");
  mix_hlo_put(w, x);
  mix_text_put(&w->text, " init: ");
  mix_hlo_put(w, operands[1]);
  mix_text_put(&w->text, ") applies stablehlo.%s", op);
  put_axes(w, " across dimensions = ", count, axes);
  return end(w, result, 2, operands);
}

mix_hlo mix_hlo_reduce_last(mix_hlo_writer *w, const char *op, mix_hlo x, double first) {
  return mix_hlo_reduce(w, op, x, first, 1, (const int[]){x.shape.rank - 1});
}

mix_hlo mix_hlo_reduce_all(mix_hlo_writer *w, const char *op, mix_hlo x, double first) {
  static const int axes[MIX_MAX_RANK] = {0, 1, 2, 3, 4, 5, 6, 7};
  return x.shape.rank ? mix_hlo_reduce(w, op, x, first, x.shape.rank, axes) : x;
}

/* A statement in the general form: "name"(operands) <{attributes}> (region): the caller puts attributes. */
static mix_hlo begin_general(mix_hlo_writer *w, const char *op, mix_type type, int count,
                             const mix_hlo *operands) {
  const mix_hlo result = mix_hlo_new(w, type);
  mix_hlo_line(w);
  mix_hlo_put(w, result);
  mix_text_put(&w->text, " = \"stablehlo.%s\"(", op);
  for (int i = 0; i < count; i++) {
    if (i) mix_text_put(&w->text, ", ");
    mix_hlo_put(w, operands[i]);
  }
  mix_text_put(&w->text, ") <{");
  return result;
}

/* A region that combines two scalars, by NULL to the second. */
static void put_combiner(mix_hlo_writer *w, const char *op, mix_dtype dtype) {
  const mix_hlo a = mix_hlo_new(w, mix_type_of(dtype, MIX_SCALAR)), b = mix_hlo_new(w, a.type);
  mix_text_put(&w->text, "}> ({\n");
  mix_hlo_line(w);
  mix_text_put(&w->text, "^bb0(%%%d: ", a.number);
  mix_hlo_put_type(w, a.type);
  mix_text_put(&w->text, ", %%%d: ", b.number);
  mix_hlo_put_type(w, a.type);
  mix_text_put(&w->text, "):\n");
  w->indent++;
  const mix_hlo combined = op ? mix_hlo_binary(w, op, a, b) : b;
  mix_hlo_line(w);
  mix_text_put(&w->text, "stablehlo.return ");
  mix_hlo_put(w, combined);
  end_like(w, combined);
  w->indent--;
  mix_hlo_line(w);
  mix_text_put(&w->text, "})");
}

mix_hlo mix_hlo_reduce_window(mix_hlo_writer *w, const char *op, mix_hlo x, double first, const int64_t *size,
                              const int64_t *strides, const int64_t *low, const int64_t *high) {
  mix_type type = x.type;
  const int rank = x.shape.rank;
  for (int d = 0; d < rank; d++)
    type.shape.dims[d] = (x.shape.dims[d] + low[d] + high[d] - size[d]) / strides[d] + 1;
  const mix_hlo operands[] = {x, mix_hlo_number(w, mix_type_of(x.dtype, MIX_SCALAR), first)},
                result = begin_general(w, "reduce_window", type, 2, operands);
  put_array(w, "window_dimensions = ", rank, size);
  put_array(w, ", window_strides = ", rank, strides);
  mix_text_put(&w->text, ", padding = dense<[");
  for (int d = 0; d < rank; d++) mix_hlo_put_numbers(w, d ? ", " : "", 2, (const int64_t[]){low[d], high[d]});
  mix_text_put(&w->text, "]> : tensor<%dx2xi64>", rank);
  put_combiner(w, op, x.dtype);
  return end(w, result, 2, operands);
}

mix_hlo mix_hlo_dot_general(mix_hlo_writer *w, mix_hlo a, mix_hlo b, const mix_hlo_dot *dot,
                            mix_dtype result_dtype) {
  const mix_hlo operands[] = {a, b};
  mix_type type = {result_dtype, {0}};
  for (int i = 0; i < dot->batch_count; i++)
    type.shape.dims[type.shape.rank++] = a.shape.dims[dot->batch[0][i]];
  for (int k = 0; k < 2; k++)
    for (int d = 0; d < operands[k].shape.rank; d++) {
      bool used = false;
      for (int i = 0; i < dot->batch_count; i++) used |= dot->batch[k][i] == d;
      for (int i = 0; i < dot->contracted_count; i++) used |= dot->contracted[k][i] == d;
      if (!used) type.shape.dims[type.shape.rank++] = operands[k].shape.dims[d];
    }
  const mix_hlo result = begin(w, "dot_general", type, 2, operands);
  if (dot->batch_count) {
    put_axes(w, ", batching_dims = ", dot->batch_count, dot->batch[0]);
    put_axes(w, " x ", dot->batch_count, dot->batch[1]);
  }
  put_axes(w, ", contracting_dims = ", dot->contracted_count, dot->contracted[0]);
  put_axes(w, " x ", dot->contracted_count, dot->contracted[1]);
  if (dot->precision) mix_text_put(&w->text, ", precision = [%s, %s]", dot->precision, dot->precision);
  return end(w, result, 2, operands);
}

/* ---- indices ---- */

mix_hlo mix_hlo_take(mix_hlo_writer *w, mix_hlo x, mix_hlo indices, int axis) {
  const mix_hlo operands[] = {x, indices};
  mix_type type = {x.dtype, {0}};
  int64_t sizes[MIX_MAX_RANK], offsets[MIX_MAX_RANK];
  int offset_count = 0;
  for (int d = 0; d < x.shape.rank; d++) {
    sizes[d] = d == axis ? 1 : x.shape.dims[d];
    if (d != axis) offsets[offset_count++] = d < axis ? d : d - 1 + indices.shape.rank;
    if (d != axis) type.shape.dims[type.shape.rank++] = x.shape.dims[d];
    for (int i = 0; i < indices.shape.rank && d == axis; i++)
      type.shape.dims[type.shape.rank++] = indices.shape.dims[i];
  }
  const mix_hlo result = begin_general(w, "gather", type, 2, operands);
  mix_hlo_put_numbers(w, "dimension_numbers = #stablehlo.gather<offset_dims = ", offset_count, offsets);
  mix_text_put(&w->text,
               ", collapsed_slice_dims = [%d], start_index_map = [%d], index_vector_dim = %d>, "
               "indices_are_sorted = false",
               axis, axis, indices.shape.rank);
  put_array(w, ", slice_sizes = ", x.shape.rank, sizes);
  mix_text_put(&w->text, "}>");
  return end(w, result, 2, operands);
}

mix_hlo mix_hlo_scatter(mix_hlo_writer *w, const char *op, mix_hlo x, mix_hlo indices, mix_hlo updates) {
  const mix_hlo operands[] = {x, indices, updates}, result = begin_general(w, "scatter", x.type, 3, operands);
  int64_t windows[MIX_MAX_RANK];
  for (int d = 1; d < updates.shape.rank; d++) windows[d - 1] = d;
  mix_hlo_put_numbers(w, "scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = ",
                      updates.shape.rank - 1, windows);
  mix_text_put(&w->text,
               ", inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, "
               "indices_are_sorted = false, unique_indices = false");
  put_combiner(w, op, x.dtype);
  return end(w, result, 3, operands);
}

static void put_row_index(mix_hlo_writer *w, mix_hlo x, mix_hlo row, mix_hlo zero) {
  for (int d = 0; d < x.shape.rank; d++) {
    mix_text_put(&w->text, ", ");
    mix_hlo_put(w, d ? zero : row);
  }
}

static void put_row_index_types(mix_hlo_writer *w, mix_hlo x) {
  for (int d = 0; d < x.shape.rank; d++) mix_text_put(&w->text, ", tensor<i32>");
  mix_text_put(&w->text, ") -> ");
}

mix_hlo mix_hlo_row(mix_hlo_writer *w, mix_hlo x, mix_hlo row) {
  const mix_hlo zero = mix_hlo_whole(w, mix_type_of(MIX_INT32, MIX_SCALAR), 0);
  mix_type type = x.type;
  type.shape.dims[0] = 1;
  const mix_hlo result = begin(w, "dynamic_slice", type, 1, &x);
  put_row_index(w, x, row, zero);
  mix_hlo_put_numbers(w, ", sizes = ", type.shape.rank, type.shape.dims);
  mix_text_put(&w->text, " : (");
  mix_hlo_put_type(w, x.type);
  put_row_index_types(w, x);
  mix_hlo_put_type(w, type);
  mix_text_put(&w->text, "\n");
  mix_shape rest = {.rank = x.shape.rank - 1};
  for (int d = 0; d < rest.rank; d++) rest.dims[d] = x.shape.dims[d + 1];
  return mix_hlo_reshape(w, result, rest);
}

mix_hlo mix_hlo_put_row(mix_hlo_writer *w, mix_hlo x, mix_hlo update, mix_hlo row) {
  const mix_hlo zero = mix_hlo_whole(w, mix_type_of(MIX_INT32, MIX_SCALAR), 0);
  mix_shape shape = x.shape;
  shape.dims[0] = 1;
  const mix_hlo part = mix_hlo_reshape(w, update, shape),
                result = begin(w, "dynamic_update_slice", x.type, 2, (const mix_hlo[]){x, part});
  put_row_index(w, x, row, zero);
  mix_text_put(&w->text, " : (");
  mix_hlo_put_type(w, x.type);
  mix_text_put(&w->text, ", ");
  mix_hlo_put_type(w, part.type);
  put_row_index_types(w, x);
  mix_hlo_put_type(w, x.type);
  mix_text_put(&w->text, "\n");
  return result;
}

/* ---- loops ---- */

static void put_types(mix_hlo_writer *w, int count, const mix_hlo *values) {
  for (int i = 0; i < count; i++) {
    if (i) mix_text_put(&w->text, ", ");
    mix_hlo_put_type(w, values[i].type);
  }
}

static void put_return(mix_hlo_writer *w, int count, const mix_hlo *values) {
  mix_hlo_line(w);
  mix_text_put(&w->text, "stablehlo.return ");
  for (int i = 0; i < count; i++) {
    if (i) mix_text_put(&w->text, ", ");
    mix_hlo_put(w, values[i]);
  }
  mix_text_put(&w->text, " : ");
  put_types(w, count, values);
  mix_text_put(&w->text, "\n");
}

mix_hlo_loop mix_hlo_while(mix_hlo_writer *w, int count, mix_hlo *state) {
  const mix_hlo_loop loop = {w->next++, count, state};
  mix_hlo_line(w);
  mix_text_put(&w->text, "%%%d:%d = stablehlo.while(", loop.number, count);
  for (int i = 0; i < count; i++) {
    const mix_hlo first = state[i];
    state[i] = mix_hlo_new(w, first.type);
    mix_text_put(&w->text, "%s%%%d = ", i ? ", " : "", state[i].number);
    mix_hlo_put(w, first);
  }
  mix_text_put(&w->text, ") : ");
  put_types(w, count, state);
  mix_text_put(&w->text, " cond {\n");
  w->indent++;
  return loop;
}

void mix_hlo_do(mix_hlo_writer *w, mix_hlo condition) {
  put_return(w, 1, &condition);
  w->indent--;
  mix_hlo_line(w);
  mix_text_put(&w->text, "} do {\n");
  w->indent++;
}

void mix_hlo_end(mix_hlo_writer *w, mix_hlo_loop *loop, const mix_hlo *next) {
  put_return(w, loop->count, next);
  w->indent--;
  mix_hlo_line(w);
  mix_text_put(&w->text, "}\n");
  for (int i = 0; i < loop->count; i++)
    loop->state[i] =
        (mix_hlo){.type = loop->state[i].type, .number = loop->number, .part = loop->count > 1 ? i : -1};
}
