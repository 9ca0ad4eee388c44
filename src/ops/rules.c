#include "ops/rules.h"
#include "graph/capture.h"
#include <stdarg.h>
#include <stdio.h>

enum { OPERANDS_NAMED = 4, TEXT_SIZE = 1024 };

static void describe(int count, const mix_value *const *values, char *text, size_t size) {
  size_t used = 0;
  text[0] = 0;
  for (int i = 0; i < count && i < OPERANDS_NAMED && used < size; i++) {
    char shape[160];
    const char *between = i == 0 ? "" : i == count - 1 ? " and " : ", ";
    mix_shape_text(values[i]->shape, shape, sizeof shape);
    used += (size_t)snprintf(text + used, size - used, "%s%s %s", between, mix_dtype_name(values[i]->dtype),
                             shape);
  }
  if (count > OPERANDS_NAMED && used < size) snprintf(text + used, size - used, ", ... (%d operands)", count);
}

static void record(mix_status status, const char *call, const char *operands, const char *format,
                   va_list arguments) {
  char problem[TEXT_SIZE];
  vsnprintf(problem, sizeof problem, format, arguments);
  const char *layer = mix_graph_scope();
  mix_fail(status, "%s: %s%s%s%s%s%s%s", call, operands[0] ? "got " : "", operands, operands[0] ? "; " : "",
           problem, layer ? " (in layer " : "", layer ? layer : "", layer ? ")" : "");
}

bool mix_rule_fail(const mix_node *node, const char *format, ...) {
  char operands[TEXT_SIZE];
  const mix_value *values[OPERANDS_NAMED];
  for (int i = 0; i < node->input_count && i < OPERANDS_NAMED; i++) values[i] = mix_input_value(node, i);
  describe(node->input_count, values, operands, sizeof operands);
  va_list arguments;
  va_start(arguments, format);
  record(MIX_VALUE_ERROR, node->op->name, operands, format, arguments);
  va_end(arguments);
  return false;
}

void *mix_call_fail(mix_status status, const char *call, const mix_tensor *x, const char *format, ...) {
  char operands[TEXT_SIZE] = "";
  if (x) describe(1, (const mix_value *[]){mix_tensor_value(x)}, operands, sizeof operands);
  va_list arguments;
  va_start(arguments, format);
  record(status, call, operands, format, arguments);
  va_end(arguments);
  return NULL;
}

bool mix_operand_ready(const char *call, const mix_tensor *x) {
  if (mix_failed()) return false;
  if (mix_is(x, &mix_tensor_class)) return true;
  return mix_call_fail(MIX_TYPE_ERROR, call, NULL, "an operand is %s; expected a tensor",
                       x ? "another object" : "NULL");
}

bool mix_rule_output(mix_node *node, int output, mix_shape shape) {
  if (shape.rank > MIX_MAX_RANK)
    return mix_rule_fail(node, "the result would have %d dimensions; at most %d", shape.rank, MIX_MAX_RANK);
  if (mix_shape_is_known(shape) && mix_shape_checked_size(shape) < 0) {
    return mix_rule_fail(
        node,
        "the result's shape %s has more elements than can be counted; work on parts of it, of fewer than "
        "2^60",
        MIX_SHAPE_TEXT(shape));
  }
  node->outputs[output].shape = shape;
  return true;
}

bool mix_rule_same(mix_node *node) { return mix_rule_output(node, 0, mix_input_value(node, 0)->shape); }

bool mix_rule_broadcast(mix_node *node) {
  mix_shape shape = mix_input_value(node, 0)->shape;
  for (int i = 1; i < node->input_count; i++)
    if (!mix_shape_broadcast(shape, mix_input_value(node, i)->shape, &shape))
      return mix_rule_fail(
          node, "the shapes do not broadcast: aligned at the right, dimensions must be equal or 1");
  return mix_rule_output(node, 0, shape);
}

bool mix_rule_one_shape(mix_node *node) {
  mix_shape shape = mix_input_value(node, 0)->shape;
  for (int i = 1; i < node->input_count; i++) {
    mix_shape other = mix_input_value(node, i)->shape;
    bool equal = shape.rank == other.rank;
    for (int axis = 0; equal && axis < shape.rank; axis++)
      equal = mix_dimension_merge(shape.dims[axis], other.dims[axis], &shape.dims[axis]);
    if (!equal) return mix_rule_fail(node, "expected operands of one shape");
  }
  return mix_rule_output(node, 0, shape);
}

bool mix_rule_axis(mix_node *node, int axis) {
  int rank = mix_input_value(node, 0)->shape.rank;
  return (axis >= 0 && axis < rank) ||
         mix_rule_fail(node, "axis %d is outside; expected 0 to %d", axis, rank - 1);
}

bool mix_dimension_merge(int64_t a, int64_t b, int64_t *result) {
  *result = a == MIX_UNKNOWN ? b : a;
  return a == b || a == MIX_UNKNOWN || b == MIX_UNKNOWN;
}

int mix_call_axis(const char *call, const mix_tensor *x, int axis, int more) {
  const int rank = mix_tensor_shape(x).rank + more, normal = mix_axis_normal(axis, rank);
  if (normal < 0)
    mix_call_fail(MIX_VALUE_ERROR, call, x, "axis %d is outside; expected %d to %d", axis, -rank, rank - 1);
  return normal;
}

bool mix_axes_normal(const char *call, const mix_tensor *x, mix_axes axes, mix_reduce_attributes *normal) {
  int rank = mix_tensor_shape(x).rank;
  bool chosen[MIX_MAX_RANK] = {false};
  if (axes.count < 0 || axes.count > MIX_MAX_RANK)
    return mix_call_fail(MIX_VALUE_ERROR, call, x, "a list of %d axes; expected 0 to %d", axes.count,
                         MIX_MAX_RANK) != NULL;
  for (int i = 0; i < axes.count; i++) {
    const int axis = mix_call_axis(call, x, axes.axis[i], 0);
    if (axis < 0) return false;
    if (chosen[axis])
      return mix_call_fail(MIX_VALUE_ERROR, call, x, "axis %d is given twice", axes.axis[i]) != NULL;
    chosen[axis] = true;
  }
  normal->axis_count = 0;
  for (int axis = 0; axis < rank; axis++)
    if (chosen[axis] || axes.count == 0) normal->axes[normal->axis_count++] = axis;
  return true;
}

bool mix_dtype_checked(const char *call, mix_dtype dtype) {
  if (dtype > MIX_DTYPE_NONE && dtype < MIX_DTYPE_COUNT && mix_dtype_size(dtype) > 0) return true;
  return mix_call_fail(MIX_TYPE_ERROR, call, NULL,
                       "no tensor has dtype %s; expected one of the floating and integer dtypes or bool",
                       dtype >= MIX_DTYPE_NONE && dtype < MIX_DTYPE_COUNT ? mix_dtype_name(dtype)
                                                                          : "(unknown)");
}

bool mix_rows_elementwise(const mix_row_query *query) {
  for (int i = 0; i < query->input_count; i++)
    if (query->batched[i] &&
        (query->inputs[i].rank != query->result.rank || query->inputs[i].dims[0] != query->result.dims[0]))
      return false;
  return query->result.rank > 0;
}

bool mix_rows_kept(const mix_row_query *query) {
  return query->result.rank > 0 && query->result.dims[0] == query->inputs[0].dims[0];
}

bool mix_rows_before_classes(const mix_row_query *query) { return query->inputs[0].rank > 1; }

const mix_attribute_row mix_axis_fields[] = {{"axis", MIX_ATTRIBUTE_INT, offsetof(mix_axis_attributes, axis)},
                                             {NULL}};

const char *mix_open_shape_hint(mix_shape shape) {
  for (int i = 0; i < shape.rank; i++)
    if (shape.dims[i] == MIX_UNKNOWN)
      return "; the call of a layer has an open batch where args->symbolic: give a tensor of that shape "
             "then, such as one of the inputs";
  return "";
}
