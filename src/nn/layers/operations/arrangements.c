/* Tensors made of shapes and ranges, grids, and other arrangements of NumPy. */
#include "base/error.h"
#include "nn/layers/operations/operation.h"
#include "nn/layers/spatial/spatial.h"
#include "ops/matrices.h"
#include "ops/with_number.h"
#include <math.h>
#include <string.h>

enum { MOST_POINTS = 1 << 24 };

mix_tensor *mix_axis_moved(mix_tensor *x, int from, int to) {
  return mix_operand_rank(x) > 1 ? mix_with_axis_at(x, from, to) : x;
}

/* ---- of shapes ---- */

/* A number that is computed from x, as results of models must be. */
static mix_tensor *counted(mix_tensor *x, double count) {
  mix_tensor *none = mix_reduce_sum(mix_cast(mix_zeros_like(x), MIX_INT32), MIX_ALL_AXES, false);
  return none ? mix_plus(none, count) : NULL;
}
static mix_tensor *ndim(mix_tensor *x) { return counted(x, mix_operand_rank(x)); }
static mix_tensor *size_(mix_tensor *x) {
  const int64_t size = mix_shape_size(mix_tensor_shape(x)); /* unknown of shapes alone */
  return counted(x, size < 0 ? 0 : (double)size);
}
static mix_tensor *empty_like(const mix_operands *o, mix_tensor *x) {
  return mix_zeros_like(mix_cast(x, mix_operand_dtype(o, "dtype", mix_tensor_dtype(x))));
}
static mix_tensor *full(const mix_operands *o, mix_tensor *x) {
  return mix_broadcast_to(mix_cast(x, mix_operand_dtype(o, "dtype", mix_floatx())),
                          mix_operand_shape(o, "shape"));
}

/* Each tensor along its own axis of the grid. */
static mix_list *meshgrid(const mix_operands *o, mix_tensor *x) {
  mix_list *given = mix_operand_listed(o, o->first), *grids = mix_list_new(0, NULL);
  const char *indexing = mix_operand_text(o, "indexing");
  const int count = mix_list_count(given);
  mix_shape shape = {.rank = count};
  if (mix_failed()) return NULL;
  const bool swapped = !strcmp(indexing, "xy") && count > 1;
  if (count > MIX_MAX_RANK || (!swapped && strcmp(indexing, "ij") && strcmp(indexing, "xy")))
    return mix_operand_refused(o, MIX_VALUE_ERROR, "indexing", "xy or ij, of at most 8 tensors");
  for (int i = 0; i < count; i++) {
    const int64_t size = mix_shape_size(mix_tensor_shape(mix_list_get(given, i)));
    shape.dims[swapped && i < 2 ? 1 - i : i] = size;
  }
  for (int i = 0; i < count && !mix_failed(); i++) {
    const int axis = swapped && i < 2 ? 1 - i : i;
    mix_tensor *line = mix_flattened(mix_list_get(given, i));
    for (int d = axis + 1; d < count; d++) line = mix_expand_dims(line, -1);
    mix_list_append(grids,
                    mix_shape_size(shape) < 0 ? mix_open_result(line, shape) : mix_broadcast_to(line, shape));
  }
  return grids;
}

/* ---- ranges between tensors ---- */

/* The numbers from start to stop along a new axis; the last is stop itself. */
static mix_tensor *between(const mix_operands *o, mix_tensor *const ends[2]) {
  const int64_t count = mix_operand_integer(o, "num");
  mix_tensor *shape = mix_add(ends[0], ends[1]);
  const int axis = shape ? mix_operand_axis(o, "axis", mix_operand_rank(shape) + 1) : -1;
  const bool closed = mix_operand_flag(o, "endpoint");
  if (axis < 0 || mix_failed()) return NULL;
  if (count < 1 || count > MOST_POINTS) return mix_operand_refused(o, MIX_VALUE_ERROR, "num", "1 to 2^24");
  mix_tensor *start = mix_expand_dims(mix_add(ends[0], mix_zeros_like(shape)), axis),
             *stop = mix_expand_dims(mix_add(ends[1], mix_zeros_like(shape)), axis);
  if (count == 1) return start;
  const int64_t last = closed ? count - 1 : count;
  mix_tensor *step = mix_over(mix_subtract(stop, start), (double)last);
  mix_tensor *places = mix_range(0, (double)last, 1, mix_tensor_dtype(start));
  for (int d = axis + 1; places && d < mix_operand_rank(start); d++) places = mix_expand_dims(places, -1);
  mix_tensor *points[] = {mix_add(start, mix_multiply(step, places)), stop};
  return closed ? mix_concat(2, points, axis) : points[0];
}

static mix_tensor *in_dtype(const mix_operands *o, mix_tensor *y) {
  const mix_dtype dtype = mix_operand_dtype(o, "dtype", mix_tensor_dtype(y));
  return mix_cast(mix_dtype_is_integer(dtype) ? mix_floor(y) : y, dtype);
}
static bool ends_of(const mix_operands *o, mix_tensor **ends) {
  static const char *const names[] = {"start", "stop"};
  return mix_operands_promoted(o, 2, names, ends);
}
static mix_tensor *linspace(const mix_operands *o, mix_tensor *x) {
  mix_tensor *ends[2];
  return ends_of(o, ends) ? in_dtype(o, between(o, ends)) : NULL;
}
static mix_tensor *logspace(const mix_operands *o, mix_tensor *x) {
  mix_tensor *ends[2], *powers = ends_of(o, ends) ? between(o, ends) : NULL;
  return powers ? in_dtype(o, mix_power(mix_scalar_like(powers, mix_operand_number(o, "base")), powers))
                : NULL;
}
/* Between powers of 10, with the sign of the start. */
static mix_tensor *geomspace(const mix_operands *o, mix_tensor *x) {
  mix_tensor *ends[2];
  if (!ends_of(o, ends)) return NULL;
  mix_tensor *sign = mix_sign(ends[0]);
  for (int i = 0; i < 2; i++) ends[i] = mix_over(mix_log(mix_abs(ends[i])), log(10));
  mix_tensor *powers = between(o, ends);
  if (!powers) return NULL;
  const int axis = mix_operand_axis(o, "axis", mix_operand_rank(powers));
  while (mix_operand_rank(sign) + 1 < mix_operand_rank(powers) && !mix_failed())
    sign = mix_expand_dims(sign, 0);
  return in_dtype(o,
                  mix_multiply(mix_power(mix_scalar_like(powers, 10), powers), mix_expand_dims(sign, axis)));
}

/* ---- places ---- */

/* Keras on TensorFlow takes the sizes of the shape from the first to the last where the indices have more
 * than one axis. */
static mix_list *unravel_index(const mix_operands *o, mix_tensor *x) {
  const mix_shape shape = mix_operand_shape(o, "shape");
  mix_tensor *places[MIX_MAX_RANK];
  mix_list *list = mix_list_new(0, NULL);
  const bool backwards = mix_operand_rank(x) == 1;
  if (!mix_dtype_is_integer(mix_tensor_dtype(x)))
    return mix_operation_fail(o, MIX_TYPE_ERROR, "indices are %s; expected integers",
                              mix_dtype_name(mix_tensor_dtype(x)));
  for (int i = 0; i < shape.rank && !mix_failed(); i++) {
    mix_tensor *size = mix_scalar_like(x, (double)shape.dims[backwards ? shape.rank - 1 - i : i]);
    places[i] = mix_floor_mod(x, size);
    x = mix_floor_divide(x, size);
  }
  for (int i = shape.rank - 1; i >= 0 && !mix_failed(); i--) mix_list_append(list, places[i]);
  return list;
}

/* ---- rearrange ---- */

enum { MOST_NAMES = 16, NAME_BYTES = 24 };

/* One side of a pattern: "b (h k) c". */
typedef struct pattern {
  int count, groups;
  char names[MOST_NAMES][NAME_BYTES];
  int group[MOST_NAMES]; /* the axis that a name is part of */
} pattern;

static bool read_pattern(const char *text, const char *end, pattern *p) {
  bool inside = false;
  *p = (pattern){0};
  while (text < end) {
    const int length = (int)strcspn(text, " ()");
    if (*text == '(' || *text == ')') {
      if (inside == (*text == '(')) return false;
      if ((inside = *text == '(')) p->groups++;
      text++;
    } else if (*text == ' ') {
      text++;
    } else {
      const int size = text + length > end ? (int)(end - text) : length;
      if (p->count == MOST_NAMES || size >= NAME_BYTES || *text == '.' || *text == '1') return false;
      memcpy(p->names[p->count], text, (size_t)size);
      p->group[p->count++] = inside ? p->groups - 1 : p->groups++;
      text += size;
    }
  }
  return !inside && p->groups <= MIX_MAX_RANK && p->count <= MIX_MAX_RANK;
}

static int find_name(const pattern *p, const char *name) {
  for (int i = 0; i < p->count; i++)
    if (!strcmp(p->names[i], name)) return i;
  return -1;
}

/* The sizes of all names on the left: those given, and of each axis at most one other. */
static bool sizes_of_names(const mix_operands *o, const pattern *p, mix_shape shape, mix_shape *sizes) {
  sizes->rank = p->count;
  for (int axis = 0; axis < p->groups; axis++) {
    int64_t known = 1;
    int open = -1, count = 0;
    for (int i = 0; i < p->count; i++) {
      if (p->group[i] != axis) continue;
      count++;
      const json_t *given = json_object_get(o->values, p->names[i]);
      if (mix_json_integer_within(given, 1, MOST_POINTS, &sizes->dims[i])) {
        if (__builtin_mul_overflow(known, sizes->dims[i], &known)) return false;
      } else if (open >= 0) {
        return false;
      } else {
        open = i;
      }
    }
    const int64_t size = shape.dims[axis];
    if (open < 0 && count && (size < 0 || size == known)) continue;
    if (open < 0 || (size >= 0 && size % known)) return false;
    sizes->dims[open] = size < 0 ? MIX_UNKNOWN : size / known;
  }
  return true;
}

static mix_tensor *rearrange(const mix_operands *o, mix_tensor *x) {
  const char *text = mix_operand_text(o, "pattern"), *arrow = text ? strstr(text, "->") : NULL;
  pattern from, to;
  mix_shape sizes, result;
  mix_axes order;
  if (mix_failed()) return NULL;
  bool good = arrow && read_pattern(text, arrow, &from) &&
              read_pattern(arrow + 2, text + strlen(text), &to) && from.groups == mix_operand_rank(x) &&
              from.count == to.count && sizes_of_names(o, &from, mix_tensor_shape(x), &sizes);
  result.rank = good ? to.groups : 0;
  order.count = good ? to.count : 0;
  for (int i = 0; i < result.rank; i++) result.dims[i] = 1;
  for (int i = 0; good && i < to.count; i++) {
    good = (order.axis[i] = find_name(&from, to.names[i])) >= 0;
    int64_t *size = &result.dims[to.group[i]], part = good ? sizes.dims[order.axis[i]] : 1;
    if (*size < 0 || part < 0)
      *size = MIX_UNKNOWN;
    else
      good &= !__builtin_mul_overflow(*size, part, size);
  }
  if (!good)
    return mix_operand_refused(
        o, MIX_VALUE_ERROR, "pattern",
        "the names of its axes on both sides, as in 'b (h k) c -> b h (k c)', and the sizes "
        "of all but one of those in brackets");
  return mix_layer_reshape(mix_transpose(mix_layer_reshape(x, sizes), order), result);
}

/* ---- the table ---- */

#define RANGE(name, options, function)                                                                       \
  MIX_KERAS_OPERATION(name, "numpy", "start stop", "num=50 endpoint=true " options "dtype axis=0",           \
                      .build = function, .rule = MIX_OPERANDS_FLOATING)

const mix_keras_operation mix_keras_arrangement_operations[] = {
    MIX_KERAS_OPERATION("Ndim", "numpy", "x", "", .unary = ndim),
    MIX_KERAS_OPERATION("Size", "numpy", "x", "", .unary = size_),
    MIX_KERAS_OPERATION("EmptyLike", "numpy", "x", "dtype", .build = empty_like),
    MIX_KERAS_OPERATION("Full", "numpy", "fill_value", "shape dtype", .build = full),
    MIX_KERAS_OPERATION("Meshgrid", "numpy", "x", "indexing=\"xy\"", .results = meshgrid,
                        .takes_several = true, .bare = true),
    RANGE("Linspace", "!retstep=false ", linspace),
    RANGE("Logspace", "base=10 ", logspace),
    RANGE("Geomspace", "", geomspace),
    MIX_KERAS_OPERATION("UnravelIndex", "numpy", "indices", "shape", .results = unravel_index),
    MIX_KERAS_OPERATION("Rearrange", "einops", "tensor pattern", "", .build = rearrange, .any_names = true),
    {.operation = {0}}};
