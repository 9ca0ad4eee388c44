/* Integers of an ONNX graph that are known in part: what it computes of the shapes of its tensors, of which
 * only a call knows the batch. They are followed as numbers, so that no layer stands for them. */
#include "onnx/import.h"

#include "base/error.h"
#include "base/fields.h"
#include <string.h>

enum { MOST = MIX_MAX_RANK * 4 };

static bool bind(mix_import *in, int count, const mix_import_size *sizes, bool scalar) {
  bool open = false;
  int64_t numbers[MOST];
  for (int i = 0; i < count; i++) {
    open = open || sizes[i].open;
    numbers[i] = sizes[i].value;
  }
  if (!open) {
    const mix_shape shape = scalar ? MIX_SCALAR : MIX_SHAPE(count);
    return mix_import_bind(in, 0, mix_tensor_from(numbers, MIX_INT64, shape));
  }
  mix_import_size *copy = mix_scoped_memory((size_t)count * sizeof *copy);
  if (!copy) return false;
  memcpy(copy, sizes, (size_t)count * sizeof *copy);
  return mix_import_bind_value(in, 0,
                               (mix_import_value){.sizes = copy, .size_count = count, .size_scalar = scalar});
}

/* ---- shapes of tensors ---- */

bool mix_import_shape_of(mix_import *in) {
  mix_import_value *value = mix_import_input(in, 0);
  mix_import_size sizes[MIX_MAX_RANK];
  if (value && value->fill) return bind(in, value->size_count, value->sizes, false);
  mix_tensor *x = value && value->stored ? mix_import_constant(in, value) : mix_import_operand(in, 0);
  if (!x) return false;
  const mix_shape shape = mix_tensor_shape(x);
  int64_t start = mix_onnx_integer(in->node, "start", 0), end = mix_onnx_integer(in->node, "end", shape.rank);
  if (start < 0) start += shape.rank;
  if (end < 0) end += shape.rank;
  if (start < 0) start = 0;
  if (end > shape.rank) end = shape.rank;
  int count = 0;
  for (int64_t i = start; i < end; i++) {
    const bool open = shape.dims[i] == MIX_UNKNOWN;
    sizes[count++] = (mix_import_size){open ? 1 : shape.dims[i], open, open ? x : NULL, (int)i};
  }
  return bind(in, count, sizes, false);
}

bool mix_import_size_of(mix_import *in) {
  mix_tensor *x = mix_import_operand(in, 0);
  const int64_t size = x ? mix_shape_size(mix_tensor_shape(x)) : MIX_UNKNOWN;
  if (x && size == MIX_UNKNOWN)
    return mix_import_fail(in, MIX_UNSUPPORTED, "the size of what is known in part");
  return x && bind(in, 1, &(mix_import_size){.value = size}, true);
}

/* ---- arithmetic ---- */

typedef struct vector {
  mix_import_size at[MOST];
  int count;
  bool scalar;
} vector;

static bool read(mix_import *in, int index, vector *v) {
  mix_import_value *value = mix_import_input(in, index);
  if (!value) return false;
  if (!value->sizes && !mix_import_is_constant(value))
    return mix_import_fail(in, MIX_UNSUPPORTED, "it joins sizes with numbers of the data");
  v->count = mix_import_sizes(in, value, MOST, v->at);
  v->scalar = value->sizes ? value->size_scalar
                           : v->count >= 0 && !mix_tensor_shape(mix_import_constant(in, value)).rank;
  return v->count >= 0;
}

static mix_import_size combine(char op, mix_import_size a, mix_import_size b) {
  const mix_import_size any = {.value = 1, .open = true};
  int64_t value = 0;
  bool over = false;
  if (!a.open && !b.open) {
    if (op == '+') over = __builtin_add_overflow(a.value, b.value, &value);
    if (op == '-') over = __builtin_sub_overflow(a.value, b.value, &value);
    if (op == '*') over = __builtin_mul_overflow(a.value, b.value, &value);
    if (op == 'm') value = a.value > b.value ? a.value : b.value;
    if (op == '/' && !(over = b.value < 1)) value = a.value / b.value;
    return over ? any : (mix_import_size){.value = value};
  }
  if (op == 'm') { /* of sizes that broadcast: two that are open are one batch */
    if (a.open && (b.open || b.value == 1)) return a.open && b.open && a.value != b.value ? any : a;
    return !a.open && a.value == 1 ? b : any;
  }
  if (op == '*' && a.open != b.open) {
    mix_import_size open = a.open ? a : b;
    over = __builtin_mul_overflow(a.value, b.value, &open.value);
    return over ? any : open;
  }
  if (op == '/' && !b.open && b.value > 0 && a.value % b.value == 0) {
    a.value /= b.value;
    return a;
  }
  if ((op == '+' || op == '-') && !b.open && !b.value) return a;
  if (op == '+' && !a.open && !a.value) return b;
  return any;
}

static bool arithmetic(mix_import *in, char op) {
  vector a, b;
  if (!read(in, 0, &a) || !read(in, 1, &b)) return false;
  const int count = a.count > b.count ? a.count : b.count;
  if ((a.count != count && a.count != 1) || (b.count != count && b.count != 1))
    return mix_import_fail(in, MIX_FORMAT_ERROR, "%d sizes with %d", a.count, b.count);
  mix_import_size all[MOST];
  for (int i = 0; i < count; i++) all[i] = combine(op, a.at[a.count > 1 ? i : 0], b.at[b.count > 1 ? i : 0]);
  return bind(in, count, all, a.scalar && b.scalar);
}

/* An open size is equal to no number below 0, and it is not told whether to others: so it is said that not,
 * as exporters ask for -1 alone. */
static bool equal(mix_import *in) {
  vector a, b;
  unsigned char same[MOST];
  if (!read(in, 0, &a) || !read(in, 1, &b)) return false;
  const int count = a.count > b.count ? a.count : b.count;
  if ((a.count != count && a.count != 1) || (b.count != count && b.count != 1))
    return mix_import_fail(in, MIX_FORMAT_ERROR, "%d sizes with %d", a.count, b.count);
  for (int i = 0; i < count; i++) {
    const mix_import_size x = a.at[a.count > 1 ? i : 0], y = b.at[b.count > 1 ? i : 0];
    same[i] = !x.open && !y.open && x.value == y.value;
    if ((x.open && !y.open && y.value >= 0) || (y.open && !x.open && x.value >= 0))
      return mix_import_fail(in, MIX_UNSUPPORTED, "an unknown size is compared with a number");
  }
  return mix_import_bind(
      in, 0, mix_tensor_from(same, MIX_BOOL, a.scalar && b.scalar ? MIX_SCALAR : MIX_SHAPE(count)));
}

static bool choose(mix_import *in) {
  vector condition, a, b;
  if (!read(in, 0, &condition) || !read(in, 1, &a) || !read(in, 2, &b)) return false;
  const int count = condition.count;
  mix_import_size all[MOST];
  if ((a.count != count && a.count != 1) || (b.count != count && b.count != 1))
    return mix_import_fail(in, MIX_FORMAT_ERROR, "%d conditions for %d and %d sizes", count, a.count,
                           b.count);
  for (int i = 0; i < count; i++) {
    if (condition.at[i].open) return mix_import_fail(in, MIX_UNSUPPORTED, "a condition that is not known");
    all[i] = condition.at[i].value ? a.at[a.count > 1 ? i : 0] : b.at[b.count > 1 ? i : 0];
  }
  return bind(in, count, all, condition.scalar && a.scalar && b.scalar);
}

/* ---- parts of vectors ---- */

static bool gather(mix_import *in) {
  vector a, b;
  mix_import_size all[MOST];
  if (!read(in, 0, &a) || !read(in, 1, &b)) return false;
  for (int i = 0; i < b.count; i++) {
    const int64_t at = b.at[i].value < 0 ? b.at[i].value + a.count : b.at[i].value;
    if (b.at[i].open || at < 0 || at >= a.count)
      return mix_import_fail(in, MIX_FORMAT_ERROR, "index %lld of %d sizes", (long long)at, a.count);
    all[i] = a.at[at];
  }
  return bind(in, b.count, all, b.scalar);
}

static bool slice(mix_import *in) {
  vector a;
  int64_t start = 0, end = 0, step = 1;
  if (!read(in, 0, &a)) return false;
  if (mix_import_integers_of(in, "starts", 1, 1, &start) != 1 ||
      mix_import_integers_of(in, "ends", 2, 1, &end) != 1)
    return mix_import_fail(in, MIX_UNSUPPORTED, "a slice of sizes by other than one start and end");
  if (mix_import_input(in, 4) && mix_import_integers(in, 4, 1, &step) != 1) return false;
  if (start < 0) start = start + a.count < 0 ? 0 : start + a.count;
  if (end < 0) end = end + a.count < 0 ? 0 : end + a.count;
  if (end > a.count) end = a.count;
  if (step != 1)
    return mix_import_fail(in, MIX_UNSUPPORTED, "a slice of sizes with step %lld", (long long)step);
  return bind(in, end > start ? (int)(end - start) : 0, a.at + (start < a.count ? start : 0), false);
}

static bool concat(mix_import *in) {
  mix_import_size all[MOST];
  int count = 0;
  for (int i = 0; i < in->node->input_count; i++) {
    vector a;
    if (!read(in, i, &a)) return false;
    if (a.count > MOST - count) return mix_import_fail(in, MIX_UNSUPPORTED, "more than %d sizes", (int)MOST);
    memcpy(all + count, a.at, (size_t)a.count * sizeof *all);
    count += a.count;
  }
  return bind(in, count, all, false);
}

static bool same(mix_import *in, bool scalar, bool keeps) {
  vector a;
  return read(in, 0, &a) && bind(in, a.count, a.at, keeps ? a.scalar : scalar && a.count == 1);
}

static bool product(mix_import *in) {
  vector a;
  mix_import_size all = {.value = 1};
  if (!read(in, 0, &a)) return false;
  for (int i = 0; i < a.count; i++) all = combine('*', all, a.at[i]);
  return bind(in, 1, &all, !mix_onnx_integer(in->node, "keepdims", 1));
}

bool mix_import_convert_sizes(mix_import *in) {
  const char *op = in->node->op;
  bool partial = false;
  if (!mix_import_input(in, 0)) return false;
  for (int i = 0; i < in->node->input_count; i++) {
    const mix_import_value *value = mix_import_input(in, i);
    if (value && value->sizes && !value->fill && !value->tensor) partial = true;
    if (value && !value->sizes && !mix_import_is_constant(value)) return false;
  }
  if (!partial) return false;
  if (!strcmp(op, "Add")) return arithmetic(in, '+');
  if (!strcmp(op, "Sub")) return arithmetic(in, '-');
  if (!strcmp(op, "Mul")) return arithmetic(in, '*');
  if (!strcmp(op, "Div")) return arithmetic(in, '/');
  if (!strcmp(op, "Max") && in->node->input_count == 2) return arithmetic(in, 'm');
  if (!strcmp(op, "Equal")) return equal(in);
  if (!strcmp(op, "Where")) return choose(in);
  if (!strcmp(op, "Gather")) return gather(in);
  if (!strcmp(op, "Slice")) return slice(in);
  if (!strcmp(op, "Concat")) return concat(in);
  if (!strcmp(op, "Cast")) {
    const mix_dtype dtype = mix_onnx_dtype_of(mix_onnx_integer(in->node, "to", 0));
    return mix_dtype_is_integer(dtype) && same(in, false, true);
  }
  if (!strcmp(op, "Identity")) return same(in, false, true);
  if (!strcmp(op, "Squeeze")) return same(in, true, false);
  if (!strcmp(op, "Unsqueeze")) {
    const mix_import_value *value = mix_import_input(in, 0);
    return value->sizes && value->size_scalar && same(in, false, false);
  }
  if (!strcmp(op, "Reshape")) {
    vector shape;
    return mix_import_input(in, 0)->sizes && read(in, 1, &shape) && shape.count < 2 &&
           same(in, !shape.count, false);
  }
  return !strcmp(op, "ReduceProd") && product(in);
}

/* ---- tensors of open sizes ---- */

bool mix_import_expand(mix_import *in) {
  mix_import_size sizes[MIX_MAX_RANK];
  mix_import_value *shape = mix_import_input(in, 1), *value = mix_import_input(in, 0);
  if (!shape || !value) return mix_import_fail(in, MIX_FORMAT_ERROR, "it lacks an input");
  const int count = mix_import_sizes(in, shape, MIX_MAX_RANK, sizes);
  if (count < 0) return false;
  mix_tensor *x = value->fill ? value->fill : mix_import_operand(in, 0);
  if (!x) return false;
  bool open = false;
  for (int i = 0; i < count; i++) open = open || sizes[i].open;
  if (open && !mix_tensor_is_symbolic(x) && mix_shape_size(mix_tensor_shape(x)) == 1) {
    mix_import_size *copy = mix_scoped_memory((size_t)count * sizeof *copy);
    if (!copy) return false;
    memcpy(copy, sizes, (size_t)count * sizeof *copy);
    return mix_import_bind_value(
        in, 0,
        (mix_import_value){.sizes = copy,
                           .size_count = count,
                           .fill = mix_import_evaluated(in, mix_reshape(x, MIX_SCALAR))});
  }
  return mix_import_bind(in, 0, mix_import_expanded(in, x, count, sizes));
}

/* ConstantOfShape */
bool mix_import_filled(mix_import *in) {
  const mix_onnx_attribute *value = mix_onnx_find(in->node, "value");
  mix_tensor *fill =
      value && value->tensor ? mix_onnx_tensor_value(in->file, value->tensor) : mix_scalar(0, MIX_FLOAT32);
  mix_import_value *shape = mix_import_input(in, 0);
  mix_import_size sizes[MIX_MAX_RANK];
  if (!fill) return false;
  if (mix_shape_size(mix_tensor_shape(fill)) != 1 || !shape)
    return mix_import_fail(in, MIX_FORMAT_ERROR, "it lacks its shape, or its value is not one number");
  fill = mix_import_evaluated(in, mix_reshape(fill, MIX_SCALAR));
  const int count = fill ? mix_import_sizes(in, shape, MIX_MAX_RANK, sizes) : -1;
  if (count < 0) return false;
  bool open = false;
  mix_shape known = {.rank = count};
  for (int i = 0; i < count; i++) {
    open = open || sizes[i].open;
    known.dims[i] = sizes[i].value;
    if (sizes[i].value < 0) return mix_import_fail(in, MIX_FORMAT_ERROR, "a negative size");
  }
  if (!open) return mix_import_bind(in, 0, mix_import_evaluated(in, mix_broadcast_to(fill, known)));
  mix_import_size *copy = mix_scoped_memory((size_t)count * sizeof *copy);
  if (!copy) return false;
  memcpy(copy, sizes, (size_t)count * sizeof *copy);
  return mix_import_bind_value(in, 0, (mix_import_value){.sizes = copy, .size_count = count, .fill = fill});
}

bool mix_import_range(mix_import *in) {
  mix_import_value *first = mix_import_input(in, 0), *limit = mix_import_input(in, 1);
  mix_import_size size;
  const double start = mix_import_scalar(in, 0), step = mix_import_scalar(in, 2);
  if (mix_failed() || !first || !limit) return mix_import_fail(in, MIX_FORMAT_ERROR, "it lacks an input");
  if (limit->sizes && !limit->fill && mix_import_sizes(in, limit, 1, &size) == 1 && size.open) {
    if (start != 0 || step != 1)
      return mix_import_fail(in, MIX_UNSUPPORTED,
                             "a range to an unknown size from other than 0, or by other steps than 1");
    mix_tensor *ones = mix_import_ones(in, &size, MIX_INT64);
    ones = ones ? mix_import_apply(in, "Cumsum", ones, MIX_PACK("{s:i}", "axis", 0)) : NULL;
    return mix_import_bind(
        in, 0, ones ? mix_import_apply_two(in, "Subtract", ones, mix_import_number_like(ones, 1)) : NULL);
  }
  const double end = mix_import_scalar(in, 1);
  if (mix_failed()) return false;
  mix_tensor *like = mix_import_constant(in, first);
  const double steps = step != 0 ? (end - start) / step : -1;
  if (!(steps <= (double)in->budget) || step == 0)
    return mix_import_fail(in, MIX_FORMAT_ERROR, "a range from %g to %g by %g", start, end, step);
  int64_t count = steps > 0 ? (int64_t)steps : 0;
  if ((double)count < steps) count++;
  double *numbers = mix_scoped_memory((size_t)(count + 1) * sizeof *numbers);
  for (int64_t i = 0; i < count && numbers; i++) numbers[i] = start + (double)i * step;
  return numbers &&
         mix_import_bind(in, 0,
                         mix_import_evaluated(
                             in, mix_tensor_from_doubles(numbers, mix_tensor_dtype(like), MIX_SHAPE(count))));
}
