/* Diagonals, triangles, and products of vectors and matrices of NumPy. */
#include "base/error.h"
#include "nn/layers/operations/operation.h"
#include "nn/layers/spatial/spatial.h"
#include "ops/with_number.h"
#include <mixtape/einsum.h>
#include <stdio.h>

static int rank_of(const mix_tensor *x) { return mix_operand_rank(x); }
static int64_t size_along(const mix_tensor *x, int axis) { return mix_operand_size(x, axis); }

/* Row minus column of each place of a matrix, int64 (rows, columns). */
static mix_tensor *distances(int64_t rows, int64_t columns) {
  mix_tensor *row = mix_reshape(mix_range(0, (double)rows, 1, MIX_INT64), MIX_SHAPE(rows, 1));
  return mix_subtract(row, mix_range(0, (double)columns, 1, MIX_INT64));
}

/* ---- triangles ---- */

/* Keeps the elements whose column is at most k behind the row, or at least. */
static mix_tensor *triangle(const mix_operands *o, mix_tensor *x, bool lower) {
  const int rank = rank_of(x);
  const double k = (double)mix_operand_integer(o, "k");
  if (rank < 2)
    return mix_operation_fail(o, MIX_VALUE_ERROR, "its operand has rank %d; expected at least 2", rank);
  const int64_t rows = size_along(x, rank - 2), columns = size_along(x, rank - 1);
  if (rows < 0 || columns < 0) return x; /* of shapes alone */
  mix_tensor *places = distances(rows, columns), *edge = mix_scalar_like(places, -k);
  mix_tensor *kept = (lower ? mix_greater_equal : mix_less_equal)(places, edge);
  return mix_select(kept, x, mix_zeros_like(x));
}
static mix_tensor *tril(const mix_operands *o, mix_tensor *x) { return triangle(o, x, true); }
static mix_tensor *triu(const mix_operands *o, mix_tensor *x) { return triangle(o, x, false); }

/* ---- diagonals ---- */

/* (..., rows, columns) -> (..., count): k above the main diagonal. */
static mix_tensor *diagonal_of(mix_tensor *x, int64_t k) {
  const int rank = rank_of(x);
  mix_shape flat = mix_tensor_shape(x), result = flat;
  const int64_t rows = flat.dims[rank - 2], columns = flat.dims[rank - 1], row = k < 0 ? -k : 0,
                column = k < 0 ? 0 : k, high = rows - row, wide = columns - column,
                least = high < wide ? high : wide, count = least > 0 ? least : 0;
  flat.rank = result.rank = rank - 1;
  flat.dims[rank - 2] = rows < 0 || columns < 0 ? MIX_UNKNOWN : rows * columns;
  result.dims[rank - 2] = flat.dims[rank - 2] < 0 ? MIX_UNKNOWN : count;
  if (flat.dims[rank - 2] < 0) return mix_open_result(x, result);
  return mix_layer_range(mix_layer_reshape(x, flat), rank - 2, row * columns + column, count, columns + 1);
}

/* (n) -> (n + |k|, n + |k|). */
static mix_tensor *diagonal_matrix(mix_tensor *x, int64_t k) {
  const int64_t size = size_along(x, 0), before = k < 0 ? -k : 0, after = k > 0 ? k : 0;
  if (size < 0) return mix_open_result(x, MIX_SHAPE(MIX_UNKNOWN, MIX_UNKNOWN));
  mix_tensor *places = distances(size, size), *main = mix_equal(places, mix_scalar_like(places, 0));
  mix_tensor *square = mix_select(main, x, mix_scalar_like(x, 0));
  return k ? mix_pad(square, MIX_SHAPE(before, after), MIX_SHAPE(after, before), 0) : square;
}

static bool is_diagonal(const mix_operands *o, int64_t k) {
  return (k > -(1 << 24) && k < 1 << 24) ||
         mix_operation_fail(o, MIX_VALUE_ERROR, "diagonal %lld; expected at most 2^24", (long long)k);
}

static mix_tensor *diag(const mix_operands *o, mix_tensor *x) {
  const int64_t k = mix_operand_integer(o, "k");
  if (mix_failed() || !is_diagonal(o, k)) return NULL;
  if (rank_of(x) == 1) return diagonal_matrix(x, k);
  if (rank_of(x) == 2) return diagonal_of(x, k);
  return mix_operation_fail(o, MIX_VALUE_ERROR, "its operand has rank %d; expected a vector or a matrix",
                            rank_of(x));
}
static mix_tensor *diagflat(const mix_operands *o, mix_tensor *x) {
  const int64_t k = mix_operand_integer(o, "k");
  return !mix_failed() && is_diagonal(o, k) ? diagonal_matrix(mix_flattened(x), k) : NULL;
}

/* axis1 and axis2 behind the others. */
static mix_tensor *with_matrix_last(const mix_operands *o, mix_tensor *x) {
  const int rank = rank_of(x), first = mix_operand_axis(o, "axis1", rank),
            second = mix_operand_axis(o, "axis2", rank);
  mix_axes order = {.count = rank, .axis = {[0] = 0}};
  if (mix_failed()) return NULL;
  if (first == second) return mix_operation_fail(o, MIX_VALUE_ERROR, "axis1 and axis2 are both %d", first);
  for (int i = 0, place = 0; i < rank; i++)
    if (i != first && i != second) order.axis[place++] = i;
  order.axis[rank - 2] = first, order.axis[rank - 1] = second;
  return mix_transpose(x, order);
}
static mix_tensor *diagonal(const mix_operands *o, mix_tensor *x) {
  const int64_t k = mix_operand_integer(o, "offset");
  mix_tensor *last = with_matrix_last(o, x);
  return last && is_diagonal(o, k) ? diagonal_of(last, k) : NULL;
}
/* Small integers add up as int32. */
static mix_tensor *trace(const mix_operands *o, mix_tensor *x) {
  mix_tensor *line = diagonal(o, x);
  const mix_dtype dtype = mix_tensor_dtype(line);
  const bool small = line && !mix_dtype_is_floating(dtype) && mix_dtype_size(dtype) < 4;
  return mix_reduce_sum(small ? mix_cast(line, MIX_INT32) : line, MIX_AXES(-1), false);
}

/* x^(columns - 1), ..., x^0, or the other way round. */
static mix_tensor *vander(const mix_operands *o, mix_tensor *x) {
  if (rank_of(x) != 1)
    return mix_operation_fail(o, MIX_VALUE_ERROR, "its operand has rank %d; expected a vector", rank_of(x));
  const bool rising = mix_operand_flag(o, "increasing");
  const double count = (double)(mix_operand_json(o, "N") ? mix_operand_integer(o, "N") : size_along(x, 0));
  if (mix_failed()) return NULL;
  if (count < 0 || count > 1 << 20) return mix_operand_refused(o, MIX_VALUE_ERROR, "N", "0 to 2^20 columns");
  mix_tensor *base = mix_operand_floating(x);
  const mix_dtype dtype = mix_tensor_dtype(base);
  mix_tensor *powers = rising ? mix_range(0, count, 1, dtype) : mix_range(count - 1, -1, -1, dtype);
  return mix_cast(mix_power(mix_expand_dims(base, 1), powers), mix_tensor_dtype(x));
}

/* ---- products ---- */

static bool pair_of(const mix_operands *o, mix_tensor **pair) {
  static const char *const names[] = {"x1", "x2"};
  return mix_operands_promoted(o, 2, names, pair);
}

/* The sum of products over these axes of a and b, in their dtype; integers multiply as floating numbers. */
static mix_tensor *contracted(mix_tensor *a, mix_tensor *b, int count, const int *of_a, const int *of_b) {
  char equation[4 * MIX_MAX_RANK + 8];
  char labels[2][MIX_MAX_RANK] = {{0}}, next = 'a';
  mix_tensor *tensors[] = {mix_operand_floating(a), mix_operand_floating(b)};
  const int ranks[] = {rank_of(a), rank_of(b)};
  int at = 0;
  for (int i = 0; i < count; i++) labels[0][of_a[i]] = labels[1][of_b[i]] = next++;
  const char shared = next;
  for (int side = 0; side < 2; side++) {
    for (int i = 0; i < ranks[side]; i++)
      equation[at++] = labels[side][i] ? labels[side][i] : (labels[side][i] = next++);
    equation[at++] = side ? '-' : ',';
  }
  equation[at++] = '>';
  for (int side = 0; side < 2; side++)
    for (int i = 0; i < ranks[side]; i++)
      if (labels[side][i] >= shared) equation[at++] = labels[side][i];
  equation[at] = 0;
  return mix_cast(mix_einsum(equation, 2, tensors), mix_tensor_dtype(a));
}

/* axes: a number of axes, the last of x1 and the first of x2, or two lists. */
static mix_tensor *tensordot(const mix_operands *o, mix_tensor *x) {
  mix_tensor *pair[2];
  const json_t *axes = mix_operand_json(o, "axes");
  int chosen[2][MIX_MAX_RANK], count = 0;
  bool good = pair_of(o, pair) && (json_is_integer(axes) || json_array_size(axes) == 2);
  if (mix_failed()) return NULL;
  if (good && json_is_integer(axes)) {
    const int64_t given = json_integer_value(axes);
    good = given >= 0 && given <= rank_of(pair[0]) && given <= rank_of(pair[1]);
    for (; good && count < given; count++)
      chosen[0][count] = rank_of(pair[0]) - (int)given + count, chosen[1][count] = count;
  }
  for (int side = 0; good && json_is_array(axes) && side < 2; side++) {
    const json_t *list = json_array_get(axes, (size_t)side);
    const int rank = rank_of(pair[side]), size = json_is_array(list) ? (int)json_array_size(list) : 1;
    good = size <= rank && (!side || size == count);
    for (int i = 0; good && i < size; i++) {
      int64_t axis = 0;
      good = mix_json_integer_within(json_is_array(list) ? json_array_get(list, (size_t)i) : list, -rank,
                                     rank - 1, &axis);
      chosen[side][i] = (int)(axis < 0 ? axis + rank : axis);
      for (int k = 0; k < i; k++) good = good && chosen[side][k] != chosen[side][i];
    }
    count = size;
  }
  if (!good)
    return mix_operand_refused(o, MIX_VALUE_ERROR, "axes",
                               "a number of axes that both have, or two lists of them");
  return contracted(pair[0], pair[1], count, chosen[0], chosen[1]);
}

static mix_tensor *inner(const mix_operands *o, mix_tensor *x) {
  mix_tensor *pair[2];
  if (!pair_of(o, pair)) return NULL;
  const int last[] = {rank_of(pair[0]) - 1, rank_of(pair[1]) - 1};
  if (last[0] < 0 || last[1] < 0) return mix_multiply(pair[0], pair[1]);
  return contracted(pair[0], pair[1], 1, &last[0], &last[1]);
}
static mix_tensor *vdot(const mix_operands *o, mix_tensor *x) {
  mix_tensor *pair[2];
  if (!pair_of(o, pair)) return NULL;
  return contracted(mix_flattened(pair[0]), mix_flattened(pair[1]), 1, (const int[]){0}, (const int[]){0});
}
static mix_tensor *outer(mix_tensor *a, mix_tensor *b) {
  return mix_multiply(mix_expand_dims(mix_flattened(a), 1), mix_flattened(b));
}

/* Each element of a times all of b, block by block. */
static mix_tensor *kron(const mix_operands *o, mix_tensor *x) {
  mix_tensor *pair[2];
  if (!pair_of(o, pair)) return NULL;
  while (rank_of(pair[0]) < rank_of(pair[1]) && !mix_failed()) pair[0] = mix_expand_dims(pair[0], 0);
  while (rank_of(pair[1]) < rank_of(pair[0]) && !mix_failed()) pair[1] = mix_expand_dims(pair[1], 0);
  const int rank = mix_failed() ? 0 : rank_of(pair[0]);
  if (2 * rank > MIX_MAX_RANK) return mix_operation_fail(o, MIX_UNSUPPORTED, "rank %d; supported is 4", rank);
  mix_shape result = mix_tensor_shape(pair[0]), shapes[2] = {{.rank = 2 * rank}, {.rank = 2 * rank}};
  for (int i = 0; i < rank; i++) {
    const int64_t a = size_along(pair[0], i), b = size_along(pair[1], i);
    shapes[0].dims[2 * i] = a, shapes[0].dims[2 * i + 1] = 1;
    shapes[1].dims[2 * i] = 1, shapes[1].dims[2 * i + 1] = b;
    result.dims[i] = a < 0 || b < 0 ? MIX_UNKNOWN : a * b;
  }
  for (int i = 0; i < 2; i++) pair[i] = mix_layer_reshape(pair[i], shapes[i]);
  return mix_layer_reshape(mix_multiply(pair[0], pair[1]), result);
}

/* Vectors of two elements have a third that is 0; of two such, the third of the result is left. */
static mix_tensor *cross(const mix_operands *o, mix_tensor *x) {
  static const char *const names[] = {"axisa", "axisb"};
  mix_tensor *pair[2], *parts[2][3], *result[3];
  bool flat = true;
  if (!pair_of(o, pair)) return NULL;
  for (int side = 0; side < 2; side++) {
    const char *name = mix_operand_json(o, "axis") ? "axis" : names[side];
    const int axis = mix_operand_axis(o, name, rank_of(pair[side]));
    if (axis < 0) return NULL;
    const int64_t size = size_along(pair[side], axis);
    if (size != 2 && size != 3)
      return mix_operation_fail(o, MIX_VALUE_ERROR, "vectors of %lld elements; expected 2 or 3",
                                (long long)size);
    flat &= size == 2;
    for (int i = 0; i < 3; i++)
      parts[side][i] = i < size ? mix_squeeze(mix_layer_range(pair[side], axis, i, 1, 1), MIX_AXES(axis))
                                : mix_zeros_like(parts[side][0]);
  }
  for (int i = 0; i < 3; i++) {
    const int j = (i + 1) % 3, k = (i + 2) % 3;
    result[i] = mix_subtract(mix_multiply(parts[0][j], parts[1][k]), mix_multiply(parts[0][k], parts[1][j]));
  }
  if (flat || mix_failed()) return flat ? result[2] : NULL;
  const int axis =
      mix_operand_axis(o, mix_operand_json(o, "axis") ? "axis" : "axisc", rank_of(result[0]) + 1);
  return axis < 0 ? NULL : mix_layer_stack(mix_list_of(result[0], result[1], result[2]), axis);
}

/* Sums of products of x2 with parts of x1, from the first whole one on, or with zeros at both ends. */
static mix_tensor *correlate(const mix_operands *o, mix_tensor *x) {
  mix_tensor *pair[2];
  const char *mode = mix_operand_text(o, "mode");
  if (!mode || !pair_of(o, pair)) return NULL;
  for (int i = 0; i < 2; i++) pair[i] = mix_operand_floating(pair[i]);
  if (mix_failed() || rank_of(pair[0]) != 1 || rank_of(pair[1]) != 1)
    return mix_operation_fail(o, MIX_VALUE_ERROR, "expected two vectors");
  const int64_t n = size_along(pair[0], 0), m = size_along(pair[1], 0), longest = n > m ? n : m;
  const bool valid = *mode == 'v', same = *mode == 's';
  if (!valid && !same && *mode != 'f')
    return mix_operand_refused(o, MIX_VALUE_ERROR, "mode", "valid, same or full");
  if (n < 1 || m < 1 || (valid && n < m))
    return n < 0 || m < 0
               ? mix_open_result(pair[0], MIX_SHAPE(MIX_UNKNOWN))
               : mix_operation_fail(o, MIX_VALUE_ERROR, "sizes %lld and %lld", (long long)n, (long long)m);
  const int64_t pad = valid ? 0 : m - 1, count = n + 2 * pad - m + 1,
                first = same ? (count - longest) / 2 : 0, kept = same ? longest : count;
  mix_tensor *starts =
      mix_reshape(mix_range((double)first, (double)(first + kept), 1, MIX_INT64), MIX_SHAPE(kept, 1));
  mix_tensor *places = mix_add(starts, mix_range(0, (double)m, 1, MIX_INT64));
  mix_tensor *windows = mix_gather(mix_pad(pair[0], MIX_SHAPE(pad), MIX_SHAPE(pad), 0), places, 0);
  return mix_squeeze(mix_matmul(windows, mix_expand_dims(pair[1], 1), false, false), MIX_AXES(1));
}

/* Distances of all rows of x from all rows of y. */
static mix_tensor *cdist(mix_tensor *a, mix_tensor *b) {
  mix_tensor *difference = mix_subtract(mix_expand_dims(a, -2), mix_expand_dims(b, -3));
  return mix_sqrt(mix_reduce_sum(mix_square(difference), MIX_AXES(-1), false));
}

/* ---- the table ---- */

#define OF_TWO(name, options, function)                                                                      \
  MIX_KERAS_OPERATION(name, "numpy", "x1 x2", options, .build = function)
#define MATRIX(name, options, function) MIX_KERAS_OPERATION(name, "numpy", "x", options, .build = function)

const mix_keras_operation mix_keras_matrix_operations[] = {
    MATRIX("Tril", "k=0", tril),
    MATRIX("Triu", "k=0", triu),
    MATRIX("Diag", "k=0", diag),
    MATRIX("Diagflat", "k=0", diagflat),
    MATRIX("Diagonal", "offset=0 axis1=0 axis2=1", diagonal),
    MATRIX("Trace", "offset=0 axis1=0 axis2=1", trace),
    MATRIX("Vander", "N increasing", vander),
    OF_TWO("Tensordot", "axes=2", tensordot),
    OF_TWO("Inner", "", inner),
    OF_TWO("Vdot", "", vdot),
    OF_TWO("Kron", "", kron),
    OF_TWO("Cross", "axisa=-1 axisb=-1 axisc=-1 axis", cross),
    OF_TWO("Correlate", "mode=\"valid\"", correlate),
    MIX_KERAS_OPERATION("Outer", "numpy", "x1 x2", "", .binary = outer),
    MIX_KERAS_OPERATION("CDist", "math", "x y", "", .binary = cdist, .rule = MIX_OPERANDS_FLOATING),
    {.operation = {0}}};
