/* Recomputation after products and sums. A cheap element-wise value that a later stage reads again (x minus
 * its mean, in float32, in the backward pass of a normalisation) would be stored for it. Its one large
 * operand, which is no larger, is kept instead and the operation done again: the same bits, at most as much
 * memory, and a store less. A stage ends where a value goes through a product or anything else that is no
 * program.
 *
 * Sums end programs too. What is summed and read again then (the gradient behind a normalisation, in float32,
 * times a number for each channel) comes from a narrower value, which is stored once for all that comes of
 * it. */
#include "passes/clone_nodes.h"
#include "passes/passes.h"
#include "passes/rematerialize.h"
#include "tensor/shape.h"

typedef struct stages {
  mix_ir *ir;
  mix_uses uses; /* the key is the stage */
  bool *pinned;  /* by node: a result or the new value of a variable, which is stored in any case */
} stages;

static bool ends_stage(const mix_ir *ir, const mix_ir_node *node) {
  return !node->source && !mix_ir_fusable(node) && !mix_ir_sum(ir, node) && !mix_ir_finite_check(node) &&
         !(node->op->flags & MIX_OP_VIEW);
}

/* `sums`: do sums end stages? */
static int *count_stages(mix_ir *ir, bool sums) {
  int *stages = mix_ir_array(ir, ir->node_count + 1, sizeof *stages);
  for (int n = 0; n < ir->node_count && stages; n++) {
    const mix_ir_node *node = &ir->nodes[n];
    for (int i = 0; i < node->input_count; i++) {
      const int before = stages[mix_ir_producer(ir, node->inputs[i])];
      if (before > stages[n]) stages[n] = before;
    }
    stages[n] += ends_stage(ir, node) || (sums && mix_ir_sum(ir, node));
  }
  return stages;
}

int *mix_ir_stages(mix_ir *ir) { return count_stages(ir, false); }

static bool number_stages(stages *s, bool sums) {
  mix_ir *ir = s->ir;
  const int *numbers = count_stages(ir, sums);
  s->pinned = mix_ir_array(ir, ir->node_count + 1, sizeof *s->pinned);
  if (!numbers || !s->pinned || !mix_uses_build(&s->uses, ir)) return false;
  for (int n = 0; n < ir->node_count; n++) /* a sum is the end of its stage */
    s->uses.key[n] = numbers[n] - (sums && mix_ir_sum(ir, &ir->nodes[n]));
  for (int i = 0; i < ir->result_count; i++) s->pinned[mix_ir_producer(ir, ir->results[i])] = true;
  for (int i = 0; i < ir->variable_count; i++) s->pinned[mix_ir_producer(ir, ir->variables[i].exit)] = true;
  return true;
}

/* Is the value in memory whatever happens to node n, its user? A product might have n as its epilogue, which
 * then alone stores a value; not if the product itself is summed. */
static bool is_stored(const stages *s, int value) {
  const mix_ir *ir = s->ir;
  const int producer = mix_ir_producer(ir, value);
  if (!mix_ir_is_product(ir, value)) return true;
  for (int u = s->uses.first[producer]; u >= 0; u = s->uses.uses[u].next) {
    const int consumer = s->uses.uses[u].consumer;
    if (!mix_ir_fusable(&ir->nodes[consumer])) return true;
    if (ir->nodes[consumer].op->opcode != MIX_OPCODE_CAST) continue;
    for (int w = s->uses.first[consumer]; w >= 0; w = s->uses.uses[w].next)
      if (!mix_ir_fusable(&ir->nodes[s->uses.uses[w].consumer])) return true;
  }
  return false;
}

int mix_ir_cheap_operand(const mix_ir *ir, int n) {
  enum { SMALLER = 8 };
  const mix_ir_node *node = &ir->nodes[n];
  if (!mix_ir_fusable(node) || !mix_op_is_repeatable(node->op) || mix_ir_may_fail(ir, node)) return -1;
  switch (node->op->opcode) {
  case MIX_OPCODE_CAST:
  case MIX_OPCODE_ADD:
  case MIX_OPCODE_SUBTRACT:
  case MIX_OPCODE_MULTIPLY:
  case MIX_OPCODE_DIVIDE:
  case MIX_OPCODE_NEGATIVE: break;
  default: return -1;
  }
  const mix_ir_value *result = &ir->values[node->first_output];
  const int64_t size = mix_shape_size(result->shape);
  int large = -1;
  for (int i = 0; i < node->input_count; i++) {
    const mix_ir_value *x = &ir->values[node->inputs[i]];
    if (mix_shape_size(x->shape) <= size / SMALLER) continue;
    if (large >= 0 || !mix_shape_equal(x->shape, result->shape) ||
        mix_dtype_size(x->dtype) > mix_dtype_size(result->dtype))
      return -1;
    large = node->inputs[i];
  }
  return large;
}

/* Is it read as a whole, and so stored, or only by programs? */
static bool only_programs_read(const stages *s, int n) {
  const mix_ir *ir = s->ir;
  for (int u = s->uses.first[n]; u >= 0; u = s->uses.uses[u].next) {
    const mix_ir_node *consumer = &ir->nodes[s->uses.uses[u].consumer];
    if (!mix_ir_fusable(consumer) && !mix_ir_sum(ir, consumer)) return false;
  }
  return !s->pinned[n];
}

/* Does a chain of cheap operations lead to node n from an element-wise value of fewer bytes? */
static bool has_narrow_origin(const mix_ir *ir, int n) {
  const size_t bytes = mix_dtype_size(ir->values[ir->nodes[n].first_output].dtype);
  for (int operand = mix_ir_cheap_operand(ir, n); operand >= 0;) {
    const int producer = mix_ir_producer(ir, operand);
    if (!mix_ir_fusable(&ir->nodes[producer])) return false;
    if (mix_dtype_size(ir->values[operand].dtype) < bytes) return true;
    operand = mix_ir_cheap_operand(ir, producer);
  }
  return false;
}

/* Clones cheap nodes for the users in other stages. */
static bool clone_cheap_nodes(mix_ir *ir, bool sums) {
  stages s = {.ir = ir};
  const int count = ir->node_count;
  if (!number_stages(&s, sums)) return false;
  for (int n = count - 1; n >= 0; n--)
    if (!ir->nodes[n].dead && only_programs_read(&s, n)) {
      const int operand = mix_ir_cheap_operand(ir, n);
      const bool pays = sums ? has_narrow_origin(ir, n) : operand >= 0 && is_stored(&s, operand);
      if (pays && !mix_uses_clone_for_others(&s.uses, n, s.uses.key[n])) return false;
    }
  return ir->node_count == count || (mix_ir_sort(ir) && mix_pass_dce(ir)); /* what only later stages read */
}

bool mix_ir_recompute_later(mix_ir *ir) { return clone_cheap_nodes(ir, false); }
bool mix_ir_recompute_narrow(mix_ir *ir) { return clone_cheap_nodes(ir, true); }
