/* hoist_invariants: what a step of a loop computes of values that are the same in all steps is computed once,
 * before the loop: casts of weights, which a step keeps (ops/scan_build.c) or the rewrite has put into it.
 * Nothing becomes larger by it but upcast operands of products, and nothing moves that may fail or draws
 * numbers. */
#include "passes/passes.h"
#include "tensor/shape.h"
#include <string.h>

/* A loop and what of its body is known outside. */
typedef struct hoisting {
  mix_ir *ir, *body;
  int loop;     /* node of ir */
  bool upcasts; /* casts that products read move although they are larger */
  int *outside; /* by value of the body: the same value of ir; -1: it changes, or stays in the body */
} hoisting;

static size_t bytes_of(const mix_ir *ir, int value) {
  return mix_value_bytes(ir->values[value].dtype, ir->values[value].shape);
}

static bool feeds_product(const mix_ir *ir, int value) {
  for (int n = 0; n < ir->node_count; n++)
    for (int i = 0; !ir->nodes[n].dead && ir->nodes[n].op->contraction && i < MIX_CONTRACTED; i++)
      if (ir->nodes[n].inputs[i] == value) return true;
  return false;
}

static bool moves(const hoisting *h, const mix_ir_node *node) {
  size_t in = 0, out = 0;
  if (node->dead || node->source || node->body || node->program || node->guard >= 0 || !node->input_count ||
      !mix_op_is_repeatable(node->op) || (node->op->flags & MIX_OP_CHECKS_VALUES) ||
      mix_ir_may_fail(h->body, node))
    return false;
  for (int i = 0; i < node->input_count; i++) {
    if (h->outside[node->inputs[i]] < 0) return false;
    in += bytes_of(h->body, node->inputs[i]);
  }
  for (int o = 0; o < node->output_count; o++) out += bytes_of(h->body, node->first_output + o);
  if (out <= in) return true;
  return h->upcasts && node->op->opcode == MIX_OPCODE_CAST && feeds_product(h->body, node->first_output);
}

/* The node in the graph around the loop. */
static bool move(hoisting *h, mix_ir_node *node) {
  mix_type *types = mix_ir_array(h->ir, node->output_count + 1, sizeof *types);
  int *inputs = mix_ir_array(h->ir, node->input_count + 1, sizeof *inputs);
  if (!types || !inputs) return false;
  for (int i = 0; i < node->input_count; i++) inputs[i] = h->outside[node->inputs[i]];
  for (int o = 0; o < node->output_count; o++) types[o] = h->body->values[node->first_output + o].type;
  const int made =
      mix_ir_add(h->ir, node->op, node->attributes, node->input_count, inputs, node->output_count, types);
  if (made < 0) return false;
  h->ir->nodes[made].scope = node->scope;
  h->ir->nodes[made].backward = node->backward;
  h->ir->nodes[made].keep = node->keep;
  for (int o = 0; o < node->output_count; o++)
    h->outside[node->first_output + o] = h->ir->nodes[made].first_output + o;
  node->dead = true;
  return true;
}

/* The value of a moved node becomes an operand of the loop, and an argument of its body. */
static bool add_operand(hoisting *h, int value) {
  mix_ir_node *loop = &h->ir->nodes[h->loop];
  int *inputs = mix_ir_array(h->ir, loop->input_count + 1, sizeof *inputs);
  const mix_type type = h->body->values[value].type;
  const int argument = mix_ir_add(h->body, &mix_op_placeholder, NULL, 0, NULL, 1, &type);
  if (!inputs || argument < 0) return false;
  h->body->nodes[argument].source = MIX_IR_ARGUMENT;
  h->body->nodes[argument].index = h->body->argument_count++;
  mix_ir_replace(h->body, value, h->body->nodes[argument].first_output);
  memcpy(inputs, loop->inputs, sizeof *inputs * (size_t)loop->input_count);
  inputs[loop->input_count++] = h->outside[value];
  loop->inputs = inputs;
  return true;
}

static bool hoist(mix_ir *ir, int n, bool upcasts) {
  hoisting h = {.ir = ir, .body = ir->nodes[n].body, .loop = n, .upcasts = upcasts};
  const mix_scan_attributes *attributes = ir->nodes[n].attributes;
  const int nodes = h.body->node_count, values = h.body->value_count,
            varying = attributes->carries + attributes->inputs;
  if (!(h.outside = mix_ir_ints(ir, values + 1))) return false;
  for (int v = 0; v < values; v++) h.outside[v] = -1;
  bool any = false;
  for (int m = 0; m < nodes; m++) {
    mix_ir_node *node = &h.body->nodes[m];
    if (node->source == MIX_IR_ARGUMENT && node->index >= varying)
      h.outside[node->first_output] = ir->nodes[n].inputs[node->index];
    if (!moves(&h, node)) continue;
    if (!move(&h, node)) return false;
    any = true;
  }
  const int *uses = any ? mix_ir_uses(h.body) : NULL;
  if (!uses) return !any;
  for (int m = 0; m < nodes; m++)
    for (int o = 0; o < h.body->nodes[m].output_count; o++) {
      const int value = h.body->nodes[m].first_output + o;
      if (h.body->nodes[m].dead && uses[value] && h.outside[value] >= 0 && !add_operand(&h, value))
        return false;
    }
  return mix_ir_sort(h.body);
}

bool mix_pass_hoist_invariants(mix_ir *ir) {
  const int nodes = ir->node_count;
  for (int n = 0; n < nodes; n++) {
    mix_ir *body = ir->nodes[n].dead ? NULL : ir->nodes[n].body;
    if (body && (!mix_pass_hoist_invariants(body) || !hoist(ir, n, false))) return false;
  }
  return mix_ir_sort(ir);
}

bool mix_pass_hoist_upcasts(mix_ir *ir, int loop) { return hoist(ir, loop, true); }
