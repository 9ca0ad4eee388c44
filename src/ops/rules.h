/* Shape rules and parts of gradients that several operations share. */
#pragma once

#include "base/error.h"
#include "graph/node.h"
#include "ops/table.h"
#include "ops/with_number.h"
#include "tensor/shape.h"

/* Records a ValueError "add: got float32 (2, 3) and float32 (4); <what is wrong> (in layer dense_1)".
 * Returns false. */
bool mix_rule_fail(const mix_node *node, const char *format, ...) MIX_PRINTF(2, 3);
/* The same for a public operation whose node does not exist yet. `x` is its operand or NULL. Returns NULL. */
void *mix_call_fail(mix_status status, const char *call, const mix_tensor *x, const char *format, ...)
    MIX_PRINTF(4, 5);

/* True if no error is pending and `x` is a tensor. Records a TypeError if it is not. */
bool mix_operand_ready(const char *call, const mix_tensor *x);

/* Sets the shape of a result. Returns false if its size overflows. */
bool mix_rule_output(mix_node *node, int output, mix_shape shape);
/* Result 0 has the shape of operand 0. */
bool mix_rule_same(mix_node *node);
/* Result 0 has the shape to which all operands broadcast. */
bool mix_rule_broadcast(mix_node *node);
/* Result 0 has the shape of all operands, which must be equal where known. */
bool mix_rule_one_shape(mix_node *node);
/* Merges two dimensions that must be equal if both are known. Returns false if they differ. */
bool mix_dimension_merge(int64_t a, int64_t b, int64_t *result);
/* An axis of x, which has `more` dimensions in the end, counted from the front; -1 with a ValueError. */
int mix_call_axis(const char *call, const mix_tensor *x, int axis, int more);
/* Normalizes axes: non-negative and sorted; an empty list means all. Returns false with the error recorded
 * if an axis is out of range or given twice. */
bool mix_axes_normal(const char *call, const mix_tensor *x, mix_axes axes, mix_reduce_attributes *normal);
/* Checks a dtype argument. Returns false with a TypeError if no tensor may have it. */
bool mix_dtype_checked(const char *call, mix_dtype dtype);

static inline mix_tensor *mix_apply1(const mix_op *op, mix_tensor *x) { return mix_apply(op, NULL, 1, &x); }
static inline mix_tensor *mix_apply2(const mix_op *op, mix_tensor *a, mix_tensor *b) {
  return mix_apply(op, NULL, 2, (mix_tensor *[]){a, b});
}
/* The gradient of operand `index`, from a gradient in the broadcast shape of the result. */
static inline mix_tensor *mix_unbroadcast(mix_node *node, int index, mix_tensor *gradient) {
  return mix_reduce_to_shape(gradient, mix_input_value(node, index)->shape);
}
/* True if operand `index` can have a gradient, because it is floating and not float8. */
static inline bool mix_flows_to(const mix_node *node, int index) {
  return mix_dtype_is_real(mix_input_value(node, index)->dtype);
}
/* Checks that the axis is one of operand 0's. Public operations resolve axes, but a graph read from text
 * may have any. */
bool mix_rule_axis(mix_node *node, int axis);
/* Rules of row_independent. Element-wise, with operands that broadcast: the axis 0 of each operand that has
 * the batch is that of the result. */
bool mix_rows_elementwise(const mix_row_query *query);
/* The result holds the elements of one row after the other, as the operand does. */
bool mix_rows_kept(const mix_row_query *query);
/* All but the last axis of operand 0, which holds classes. */
bool mix_rows_before_classes(const mix_row_query *query);
/* The fields of mix_axis_attributes. */
extern const mix_attribute_row mix_axis_fields[];

/* What helps where a value of a shape with unknown dimensions is asked for; "" for another shape. */
const char *mix_open_shape_hint(mix_shape shape);
