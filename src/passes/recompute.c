/* Recomputation before fusion. A value that is summed over all elements and used again after the sum would
 * have to be stored between two programs (Lamb's step, which its norm scales). If few element-wise operations
 * produce it, it is computed twice instead: in a program that ends in the sum and stores nothing, and in the
 * update, which stays a single pass over its operands. The bits are the same: the same operations on the same
 * elements. */
#include "passes/passes.h"
#include "passes/rematerialize.h"
#include "tensor/shape.h"

enum { MAX_RECOMPUTED = 24 };

typedef struct cone {
  mix_ir *ir;
  mix_shape space;
  int nodes[MAX_RECOMPUTED], count; /* element-wise nodes of that space that produce the operand of the sum */
} cone;

static bool holds(const cone *c, int n) {
  for (int i = 0; i < c->count; i++)
    if (c->nodes[i] == n) return true;
  return false;
}

/* Collects the producers of `value`. False: there are too many, or one must not run twice. */
static bool collect(cone *c, int value) {
  mix_ir *ir = c->ir;
  int n = mix_ir_producer(ir, value);
  const mix_ir_node *node = &ir->nodes[n];
  if (!mix_ir_fusable(node) || !mix_shape_equal(ir->values[value].shape, c->space) || holds(c, n))
    return true;
  if (c->count == MAX_RECOMPUTED || mix_ir_may_fail(ir, node) || !mix_op_is_repeatable(node->op))
    return false;
  c->nodes[c->count++] = n;
  for (int i = 0; i < node->input_count; i++)
    if (!collect(c, node->inputs[i])) return false;
  return true;
}

/* Does a node outside the cone that depends on the sum read part of the cone? `after`: scratch, by node.
 * Operands come before uses. */
static bool needed_after(const cone *c, int sum, bool *after) {
  mix_ir *ir = c->ir;
  for (int n = 0; n < ir->node_count; n++) {
    const mix_ir_node *node = &ir->nodes[n];
    bool reads = false;
    after[n] = n == sum;
    for (int i = 0; i < node->input_count; i++) {
      int producer = mix_ir_producer(ir, node->inputs[i]);
      after[n] = after[n] || after[producer];
      reads = reads || holds(c, producer);
    }
    if (reads && after[n] && n != sum && !node->dead) return true;
  }
  return false;
}

static void sort(cone *c) {
  for (int i = 1; i < c->count; i++)
    for (int j = i; j > 0 && c->nodes[j - 1] > c->nodes[j]; j--) {
      int t = c->nodes[j];
      c->nodes[j] = c->nodes[j - 1];
      c->nodes[j - 1] = t;
    }
}

static bool recompute(cone *c, int sum) {
  mix_ir *ir = c->ir;
  int from[MAX_RECOMPUTED], to[MAX_RECOMPUTED];
  sort(c); /* operands first */
  for (int i = 0; i < c->count; i++) {
    mix_ir_node node = ir->nodes[c->nodes[i]];
    mix_type type = ir->values[node.first_output].type;
    int inputs[4];
    for (int k = 0; k < node.input_count; k++) {
      inputs[k] = node.inputs[k];
      for (int j = 0; j < i; j++)
        if (from[j] == inputs[k]) inputs[k] = to[j];
    }
    int clone = mix_ir_add(ir, node.op, node.attributes, node.input_count, inputs, 1, &type);
    if (clone < 0) return false;
    ir->nodes[clone].scope = node.scope;
    ir->nodes[clone].keep = node.keep;
    from[i] = node.first_output;
    to[i] = ir->nodes[clone].first_output;
  }
  for (int i = 0; i < c->count; i++)
    if (from[i] == ir->nodes[sum].inputs[0]) ir->nodes[sum].inputs[0] = to[i];
  return true;
}

bool mix_ir_recompute(mix_ir *ir) {
  int count = ir->node_count; /* added nodes come later and need no visit */
  bool any = false, *after = mix_ir_alloc(ir, sizeof *after * (size_t)(2 * count + 1));
  if (!after) return false;
  for (int n = 0; n < count; n++) {
    if (!mix_ir_sum(ir, &ir->nodes[n])) continue;
    cone c = {.ir = ir, .space = ir->values[ir->nodes[n].inputs[0]].shape};
    if (!collect(&c, ir->nodes[n].inputs[0]) || !c.count || ir->node_count > 2 * count ||
        !needed_after(&c, n, after))
      continue;
    if (!recompute(&c, n)) return false;
    any = true;
  }
  return !any || (mix_ir_sort(ir) && mix_pass_dce(ir)); /* what only the sum used is now dead */
}
