/* row_moments: reduce_mean(x) and reduce_mean(squared_difference(x, mean)) of rows become one operation that
 * reads x once. Where x is a cast of 16-bit values, which is exact, it reads these. */
#include "ops/row_moments.h"
#include "passes/passes.h"
#include "passes/rematerialize.h"

static mix_ir_node *producer_of(const mix_ir *ir, int value) {
  return &ir->nodes[mix_ir_producer(ir, value)];
}

/* Is it the mean of rows that an operation of its own may take? */
static bool is_mean_of_rows(const mix_ir *ir, const mix_ir_node *node) {
  if (node->op->reduction != MIX_REDUCE_TO_MEAN || !mix_ir_sum(ir, node) ||
      node->op->attributes_size != sizeof(mix_reduce_attributes))
    return false;
  const mix_reduce_attributes *attributes = node->attributes;
  const mix_ir_value *x = &ir->values[node->inputs[0]];
  const int64_t row = mix_ir_sum_form(ir, node).row;
  return attributes->keep_dims && attributes->axes[0] == x->shape.rank - attributes->axis_count && row > 1 &&
         row <= MIX_MOMENTS_ROW && !mix_dtype_is_16_bit(x->dtype);
}

/* The node whose result is the mean of what the variance `n` is of; -1: it is no such variance. */
static int mean_of_variance(const mix_ir *ir, int n) {
  const mix_ir_node *variance = &ir->nodes[n];
  if (!is_mean_of_rows(ir, variance)) return -1;
  const mix_ir_node *squares = producer_of(ir, variance->inputs[0]);
  if (!mix_ir_fusable(squares) || squares->op->opcode != MIX_OPCODE_SQUARED_DIFFERENCE) return -1;
  const int mean = mix_ir_producer(ir, squares->inputs[1]);
  const mix_ir_node *node = &ir->nodes[mean];
  return is_mean_of_rows(ir, node) && node->inputs[0] == squares->inputs[0] &&
                 mix_shape_equal(ir->values[node->first_output].shape,
                                 ir->values[variance->first_output].shape)
             ? mean
             : -1;
}

static bool join(mix_ir *ir, int mean, int variance) {
  int x = ir->nodes[mean].inputs[0];
  const mix_ir_node *cast = producer_of(ir, x);
  if (mix_ir_fusable(cast) && cast->op->opcode == MIX_OPCODE_CAST &&
      mix_dtype_is_16_bit(ir->values[cast->inputs[0]].dtype))
    x = cast->inputs[0];
  const int old[2] = {ir->nodes[mean].first_output, ir->nodes[variance].first_output};
  const mix_type types[2] = {ir->values[old[0]].type, ir->values[old[1]].type};
  const int made = mix_ir_add(ir, &mix_op_row_moments, ir->nodes[mean].attributes, 1, &x, 2, types);
  if (made < 0) return false;
  ir->nodes[made].scope = ir->nodes[mean].scope;
  ir->nodes[mean].dead = ir->nodes[variance].dead = true;
  for (int i = 0; i < 2; i++) mix_ir_replace(ir, old[i], ir->nodes[made].first_output + i);
  return true;
}

bool mix_pass_row_moments(mix_ir *ir) {
  const int count = ir->node_count;
  bool any = false;
  for (int n = 0; n < count; n++) {
    const int mean = mean_of_variance(ir, n);
    if (mean < 0) continue;
    if (!join(ir, mean, n)) return false;
    any = true;
  }
  return !any || (mix_ir_sort(ir) && mix_pass_dce(ir)); /* the squares are used no more */
}
