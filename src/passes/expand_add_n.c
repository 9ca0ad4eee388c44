/* expand_add_n: turns add_n of floating tensors (gradients that meet) into additions, which can fuse with
 * producers and users. As in the kernels of add_n, the sum is taken in order, in float32 for 16-bit operands,
 * and rounded once at the end. */
#include "passes/passes.h"

enum { MAX = 8 }; /* more operands than one program should load */

/* Does it take in one operand after the other with an element-wise op that accepts partial sums? */
static bool sums(const mix_op *op) {
  return !(op->flags & MIX_OP_ELEMENTWISE) && op->elementwise && op->elementwise->accumulator;
}

static bool wanted(const mix_ir *ir, const mix_ir_node *node) {
  return !node->dead && !node->source && sums(node->op) && node->input_count >= 2 &&
         node->input_count <= MAX && mix_dtype_is_floating(ir->values[node->first_output].dtype);
}

/* The node becomes the last addition. The others are added at the end of the array until it is sorted. */
static bool as_additions(mix_ir *ir, int n) {
  const mix_op *op = ir->nodes[n].op;
  mix_type type = ir->values[ir->nodes[n].first_output].type;
  if (mix_dtype_is_16_bit(type.dtype)) type.dtype = op->accumulator;
  int total = ir->nodes[n].inputs[0], count = ir->nodes[n].input_count;
  for (int i = 1; i < count - 1; i++) {
    int made =
        mix_ir_add(ir, op->elementwise, NULL, 2, (const int[]){total, ir->nodes[n].inputs[i]}, 1, &type);
    if (made < 0) return false;
    ir->nodes[made].scope = ir->nodes[n].scope;
    ir->nodes[made].keep = ir->nodes[n].keep;
    total = ir->nodes[made].first_output;
  }
  mix_ir_node *node = &ir->nodes[n];
  node->op = op->elementwise;
  node->inputs[0] = total;
  node->inputs[1] = node->inputs[count - 1];
  node->input_count = 2;
  return true;
}

bool mix_pass_expand_add_n(mix_ir *ir) {
  int count = ir->node_count;
  for (int n = 0; n < count; n++)
    if (wanted(ir, &ir->nodes[n]) && !as_additions(ir, n)) return false;
  return mix_ir_sort(ir);
}
