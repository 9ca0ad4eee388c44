/* Which nodes can fail on the values they meet, so that writes of variables wait for them. Not what fails
 * only if an earlier node has, after which nothing is written: a repeated node, and a check of indices that
 * are checked before, as the gradient of an embedding does. Nor what only hands on shares of variables. */
#include "compile/plan_steps.h"

#include "ops/collective.h"
#include "ops/index_bound.h"

static int64_t bound_of(const mix_ir *ir, const mix_ir_node *node) {
  return node->input_count > 1
             ? mix_index_bound(node->op, node->attributes, ir->values[node->inputs[0]].shape)
             : -1;
}

/* Do earlier nodes check the same indices for no greater bound? */
static bool is_checked_before(const mix_ir *ir, const int *base, const int *checks, int count, int n) {
  const mix_ir_node *node = &ir->nodes[n];
  const int64_t bound = bound_of(ir, node);
  for (int i = 0; i < count && bound >= 0; i++) {
    const mix_ir_node *earlier = &ir->nodes[checks[i]];
    if (base[earlier->inputs[1]] == base[node->inputs[1]] && bound_of(ir, earlier) <= bound) return true;
  }
  return false;
}

static bool body_may_fail(const mix_ir *body);

static bool may_fail(const mix_ir_node *node) {
  if (node->source || node->repeated || mix_op_hands_on(node->op)) return false;
  if (node->body) return body_may_fail(node->body);
  return (node->op->flags & MIX_OP_CHECKS_VALUES) || (node->program && mix_program_may_fail(node->program));
}

static bool body_may_fail(const mix_ir *body) {
  for (int n = 0; n < body->node_count; n++)
    if (!body->nodes[n].dead && may_fail(&body->nodes[n])) return true;
  return false;
}

bool *mix_failing_nodes(mix_ir *ir, const int *base) {
  bool *failing = mix_ir_flags(ir, ir->node_count + 1);
  int *checks = mix_ir_ints(ir, ir->node_count + 1), count = 0;
  if (!failing || !checks) return NULL;
  for (int n = 0; n < ir->node_count; n++) {
    const mix_ir_node *node = &ir->nodes[n];
    failing[n] = may_fail(node) && !is_checked_before(ir, base, checks, count, n);
    if (failing[n] && node->guard < 0 && bound_of(ir, node) >= 0) checks[count++] = n;
  }
  return failing;
}
