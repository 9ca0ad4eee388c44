/* The order of the elements along the last axis, and what is made of it: sort and top_k. */
#include "ops/rules.h"

static bool argsort_infer(mix_node *node) {
  const mix_shape shape = mix_input_value(node, 0)->shape;
  if (!shape.rank) return mix_rule_fail(node, "it is a scalar; expected an axis");
  if (shape.dims[shape.rank - 1] > INT32_MAX) return mix_rule_fail(node, "int32 has no place for its axis");
  node->outputs[0].dtype = MIX_INT32;
  return mix_rule_output(node, 0, shape);
}

static const mix_attribute_row argsort_fields[] = {
    {"descending", MIX_ATTRIBUTE_BOOL, offsetof(mix_argsort_attributes, descending)}, {NULL}};

const mix_op mix_op_argsort = {.name = "argsort",
                               .signature = "T->i",
                               .types = "number",
                               .attributes_size = sizeof(mix_argsort_attributes),
                               .infer = argsort_infer,
                               .row_independent = mix_rows_before_classes,
                               .fields = argsort_fields};

/* x with the axis, counted from the front, last; the same call takes it back. */
static mix_tensor *with_axis_last(mix_tensor *x, int axis) {
  const int rank = mix_tensor_shape(x).rank;
  mix_axes order = {.count = rank};
  for (int i = 0; i < rank; i++) order.axis[i] = i == axis ? rank - 1 : i == rank - 1 ? axis : i;
  return rank > 1 ? mix_transpose(x, order) : x;
}

mix_tensor *mix_argsort(mix_tensor *x, int axis, bool descending) {
  if (!mix_operand_ready("argsort", x)) return NULL;
  if ((axis = mix_call_axis("argsort", x, axis, 0)) < 0) return NULL;
  mix_tensor *last = with_axis_last(mix_tensor_dtype(x) == MIX_BOOL ? mix_cast(x, MIX_UINT8) : x, axis);
  return with_axis_last(mix_apply(&mix_op_argsort, &(mix_argsort_attributes){descending}, 1, &last), axis);
}

mix_tensor *mix_sort(mix_tensor *x, int axis, bool descending) {
  return mix_take_along_axis(x, mix_argsort(x, axis, descending), axis);
}

mix_list *mix_top_k(mix_tensor *x, int64_t k) {
  if (!mix_operand_ready("top_k", x)) return NULL;
  const int last = mix_call_axis("top_k", x, -1, 0);
  if (last < 0) return NULL;
  mix_shape begin = {.rank = last + 1}, size = begin;
  const int64_t all = mix_tensor_shape(x).dims[last];
  if (k < 0 || (all >= 0 && k > all))
    return mix_call_fail(MIX_VALUE_ERROR, "top_k", x, "k is %lld; expected 0 to %lld", (long long)k,
                         (long long)(all < 0 ? INT32_MAX : all));
  for (int i = 0; i <= last; i++) size.dims[i] = i == last ? k : -1;
  mix_tensor *places = mix_slice(mix_argsort(x, -1, true), begin, size),
             *values = mix_take_along_axis(x, places, -1);
  return mix_failed() ? NULL : mix_list_of(values, places);
}

/* ---- take_along_axis ---- */

/* Rows of the last axis are one after the other in memory: place i of row r is r n + i. An index outside
 * stays outside. */
static mix_tensor *flat_places(mix_tensor *indices, int64_t rows, int64_t size) {
  const int64_t count = mix_tensor_shape(indices).dims[1];
  indices = mix_cast(indices, MIX_INT64);
  mix_tensor *starts =
      mix_reshape(mix_times(mix_range(0, (double)rows, 1, MIX_INT64), (double)size), MIX_SHAPE(rows, 1));
  mix_tensor *inside = mix_logical_and(mix_greater_equal(indices, mix_scalar_like(indices, 0)),
                                       mix_less(indices, mix_scalar_like(indices, (double)size)));
  return mix_reshape(mix_select(inside, mix_add(indices, starts), mix_scalar_like(indices, -1)),
                     MIX_SHAPE(rows * count));
}

mix_tensor *mix_take_along_axis(mix_tensor *x, mix_tensor *indices, int axis) {
  if (!mix_operand_ready("take_along_axis", x) || !mix_operand_ready("take_along_axis", indices)) return NULL;
  if ((axis = mix_call_axis("take_along_axis", x, axis, 0)) < 0) return NULL;
  const mix_shape shape = mix_tensor_shape(x), given = mix_tensor_shape(indices);
  bool fits = given.rank == shape.rank && mix_dtype_is_integer(mix_tensor_dtype(indices)), open = false;
  for (int i = 0; fits && i < shape.rank; i++) {
    int64_t merged;
    fits = i == axis || mix_dimension_merge(shape.dims[i], given.dims[i], &merged);
    open |= shape.dims[i] == MIX_UNKNOWN || given.dims[i] == MIX_UNKNOWN;
  }
  if (!fits)
    return mix_call_fail(MIX_VALUE_ERROR, "take_along_axis", x,
                         "the indices are %s %s; expected integers of the same sizes but along axis %d",
                         mix_dtype_name(mix_tensor_dtype(indices)), MIX_SHAPE_TEXT(given), axis);
  if (open) /* of shapes alone */
    return mix_apply(&mix_op_reshape, &(mix_shape_attributes){.shape = given}, 1, &x);
  const int64_t size = shape.dims[axis], count = given.dims[axis];
  if (!count) return mix_slice(x, (mix_shape){.rank = shape.rank}, given); /* of any number of rows */
  const int64_t rows = mix_shape_size(given) / count;
  mix_tensor *wide = with_axis_last(x, axis), *places = with_axis_last(indices, axis);
  const mix_shape result = mix_tensor_shape(places);
  mix_tensor *flat = mix_reshape(wide, MIX_SHAPE(rows * size));
  places = flat_places(mix_reshape(places, MIX_SHAPE(rows, count)), rows, size);
  return with_axis_last(mix_reshape(mix_gather(flat, places, 0), result), axis);
}
