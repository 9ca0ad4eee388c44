/* Mean and variance of rows (the last axes) in one operation. Only the pass "row_moments" makes it, of
 * reduce_mean(x) and reduce_mean(squared_difference(x, mean)), whose bits it has. */
#include "ops/rules.h"

static bool row_moments_infer(mix_node *node) {
  const mix_reduce_attributes *attributes = node->attributes;
  const mix_dtype dtype = mix_input_value(node, 0)->dtype;
  mix_shape shape = mix_input_value(node, 0)->shape;
  const int first = shape.rank - attributes->axis_count;
  for (int i = 0; i < attributes->axis_count; i++) {
    if (attributes->axes[i] != first + i) return mix_rule_fail(node, "expected the last axes, in order");
    shape.dims[first + i] = 1;
  }
  if (attributes->axis_count < 1 || !attributes->keep_dims)
    return mix_rule_fail(node, "expected axes, which stay");
  node->outputs[0].dtype = node->outputs[1].dtype = dtype == MIX_FLOAT64 ? MIX_FLOAT64 : MIX_FLOAT32;
  return mix_rule_output(node, 0, shape) && mix_rule_output(node, 1, shape);
}

static bool row_moments_rows(const mix_row_query *query) {
  return ((const mix_reduce_attributes *)query->attributes)->axes[0] > 0;
}

static const mix_attribute_row row_moments_fields[] = {
    {"axes", MIX_ATTRIBUTE_AXES, offsetof(mix_reduce_attributes, axis_count)},
    {"keep_dims", MIX_ATTRIBUTE_BOOL, offsetof(mix_reduce_attributes, keep_dims)},
    {NULL}};

const mix_op mix_op_row_moments = {.name = "row_moments",
                                   .signature = "T->D,D",
                                   .types = "float,float32 float64",
                                   .flags = MIX_OP_KEEP,
                                   .attributes_size = sizeof(mix_reduce_attributes),
                                   .infer = row_moments_infer,
                                   .row_independent = row_moments_rows,
                                   .fields = row_moments_fields};
