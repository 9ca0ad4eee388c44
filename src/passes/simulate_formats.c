/* simulate_formats: where mix_simulate_products asks for it, rounds the operands of 16-bit products of
 * layers, forward and backward, to a narrow format and back. Each operand is rounded from its 16-bit numbers
 * for each product that sums over other axes of it, as hardware keeps it in two layouts. It runs after what
 * simplifies the graph, so that equal operands of products are one value. */
#include "passes/passes.h"
#include "passes/simulation.h"

#include "tensor/shape.h"

typedef struct rounded {
  int value, result;
  const mix_block_attributes *attributes;
} rounded;

typedef struct simulating {
  mix_ir *ir;
  mix_simulation now;
  rounded *known;
  int known_count;
} simulating;

/* The node that made the numbers of a value: not one that only moves or, with `casts`, casts them. */
static const mix_ir_node *origin(const mix_ir *ir, int value, bool casts) {
  const mix_ir_node *node = &ir->nodes[mix_ir_producer(ir, value)];
  while (!node->source && node->input_count == 1 &&
         ((node->op->flags & MIX_OP_LAYOUT) || node->op->opcode == MIX_OPCODE_IDENTITY ||
          (casts && node->op->opcode == MIX_OPCODE_CAST)))
    node = &ir->nodes[mix_ir_producer(ir, node->inputs[0])];
  return node;
}

static bool is_simulated(const mix_ir *ir, const mix_ir_node *node) {
  if (node->dead || node->source || node->program || !node->op->contraction || !node->scope) return false;
  return mix_dtype_is_16_bit(ir->values[node->inputs[0]].dtype) && !mix_simulation_excepts(node->scope);
}

/* A block_quantize of that operand; -1: out of memory. One serves all products that sum over the same axes.
 */
static int round_operand(simulating *s, int n, int operand, const mix_block_attributes *wanted) {
  mix_ir *ir = s->ir;
  const int value = ir->nodes[n].inputs[operand];
  for (int i = 0; i < s->known_count; i++) {
    const mix_block_attributes *known = s->known[i].attributes;
    if (s->known[i].value == value && known->axis == wanted->axis && known->count == wanted->count &&
        known->groups == wanted->groups && known->gradient == wanted->gradient)
      return s->known[i].result;
  }
  mix_block_attributes *attributes = mix_ir_alloc(ir, sizeof *attributes);
  if (!attributes) return -1;
  *attributes = *wanted;
  const char *scope = ir->nodes[n].scope;
  const bool kernel = origin(ir, value, true)->source == MIX_IR_VARIABLE;
  attributes->counted = mix_simulation_counted(scope, wanted->gradient ? "gradient"
                                                      : kernel         ? "kernel"
                                                                       : "input");
  if (!attributes->counted) return -1;
  const mix_type type = ir->values[value].type;
  const int made = mix_ir_add(ir, &mix_op_block_quantize, attributes, 1, &value, 1, &type);
  if (made < 0) return -1;
  ir->nodes[made].scope = scope;
  s->known[s->known_count++] = (rounded){value, ir->nodes[made].first_output, attributes};
  return ir->nodes[made].first_output;
}

static bool round_operands(simulating *s, int n) {
  mix_ir *ir = s->ir;
  for (int operand = 0; operand < MIX_CONTRACTED; operand++) {
    const mix_ir_node *node = &ir->nodes[n];
    const mix_shape shapes[] = {ir->values[node->inputs[0]].shape, ir->values[node->inputs[1]].shape};
    mix_block_attributes wanted = {.format = s->now.format, .seed = s->now.seed};
    if (!mix_contracted_axes(node->op, node->attributes, shapes, operand, &wanted)) return true;
    wanted.gradient = node->backward && origin(ir, node->inputs[operand], false)->backward;
    wanted.stochastic = wanted.gradient && s->now.stochastic;
    const int result = round_operand(s, n, operand, &wanted);
    if (result < 0) return false;
    ir->nodes[n].inputs[operand] = result;
  }
  return true;
}

bool mix_pass_simulate_formats(mix_ir *ir) {
  simulating s = {.ir = ir, .now = mix_simulation_now()};
  if (!s.now.format) return true;
  const int count = ir->node_count;
  s.known = mix_ir_array(ir, MIX_CONTRACTED * count + 1, sizeof *s.known);
  if (!s.known) return false;
  for (int n = 0; n < count; n++)
    if (is_simulated(ir, &ir->nodes[n]) && !round_operands(&s, n)) return false;
  return !s.known_count || mix_ir_sort(ir);
}
