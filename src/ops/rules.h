/* Shape rules and gradient pieces that several families of operations share. */
#ifndef MIX_OPS_RULES_H
#define MIX_OPS_RULES_H

#include "base/error.h"
#include "graph/node.h"
#include "ops/table.h"
#include "tensor/shape.h"

/* Records a ValueError "add: got float32 (2, 3) and float32 (4); <what is wrong> (in layer dense_1)" and returns false. */
bool mix_rule_fail(const mix_node *node, const char *format, ...) MIX_PRINTF(2, 3);
/* The same from a public operation whose node does not exist yet; `x` is its operand or NULL. Returns NULL. */
void *mix_call_fail(mix_status status, const char *call, const mix_tensor *x, const char *format, ...) MIX_PRINTF(4, 5);

/* May a public operation go on: is no error pending, and `x` a tensor? Else false, with a TypeError recorded for NULL. */
bool mix_operand_ready(const char *call, const mix_tensor *x);

/* Sets the shape of a result; false where its size overflows. */
bool mix_rule_output(mix_node *node, int output, mix_shape shape);
/* Result 0 has the shape of operand 0. */
bool mix_rule_same(mix_node *node);
/* Result 0 has the shape to which all operands broadcast. */
bool mix_rule_broadcast(mix_node *node);
/* Result 0 has the one shape that all operands share (equal where both are known). */
bool mix_rule_one_shape(mix_node *node);
/* The dimension that two equal ones describe, either of which may be unknown; false if they differ. */
bool mix_dimension_merge(int64_t a, int64_t b, int64_t *result);
/* Axes with negative ones resolved, sorted, without duplicates; an empty list gives all. False with the error recorded. */
bool mix_axes_normal(const char *call, const mix_tensor *x, mix_axes axes, mix_reduce_attributes *normal);
/* Dtypes that a caller names as an argument: false with a TypeError for those that no tensor may have. */
bool mix_dtype_checked(const char *call, mix_dtype dtype);

static inline mix_tensor *mix_apply1(const mix_op *op, mix_tensor *x) { return mix_apply(op, NULL, 1, &x); }
static inline mix_tensor *mix_apply2(const mix_op *op, mix_tensor *a, mix_tensor *b) {
  return mix_apply(op, NULL, 2, (mix_tensor *[]){a, b});
}
/* The gradient of operand `index` from one in the broadcast shape of the result. */
mix_tensor *mix_unbroadcast(mix_node *node, int index, mix_tensor *gradient);
/* Does a gradient flow to operand `index`: is it floating? */
static inline bool mix_flows_to(const mix_node *node, int index) {
  return mix_dtype_is_floating(mix_input_value(node, index)->dtype);
}
/* Is the axis one of operand 0's? Public operations resolve axes; graphs read from texts may have any. */
bool mix_rule_axis(mix_node *node, int axis);
/* Of mix_axis_attributes. */
extern const mix_field mix_axis_fields[];

#endif
