/* dce: dead code elimination. Removes nodes that no result, variable, guard or stateful node needs. A loop
 * loses the outputs, carries, inputs and invariants that nothing needs, together with its body. */
#include "passes/passes.h"

#include "base/alloc.h"
#include <string.h>

typedef struct marks {
  char *node, *value; /* is needed */
} marks;

static void need(const mix_ir *ir, marks *m, int value) {
  m->value[value] = 1;
  m->node[mix_ir_producer(ir, value)] = 1;
}

static void need_operands(const mix_ir *ir, marks *m, const mix_ir_node *node) {
  for (int i = 0; i < node->input_count; i++) need(ir, m, node->inputs[i]);
  if (node->guard >= 0) need(ir, m, node->guard);
}

static bool new_marks(mix_ir *ir, marks *m) {
  m->node = mix_ir_alloc(ir, (size_t)ir->node_count + 1);
  m->value = mix_ir_alloc(ir, (size_t)ir->value_count + 1);
  return m->node && m->value;
}

static bool is_removable(const mix_ir_node *node) {
  return !(node->op->flags & MIX_OP_STATEFUL) && (!node->source || node->source == MIX_IR_CONSTANT);
}

/* ---- loops ---- */

/* Which arguments of a body do these results need? `arguments` is a mark for each. */
static bool find_arguments(mix_ir *body, const char *results, char *arguments) {
  marks m;
  if (!new_marks(body, &m)) return false;
  for (int r = 0; r < body->result_count; r++)
    if (results[r]) need(body, &m, body->results[r]);
  for (int n = body->node_count - 1; n >= 0; n--) {
    const mix_ir_node *node = &body->nodes[n];
    if (!m.node[n] && !(node->op->flags & MIX_OP_STATEFUL)) continue;
    need_operands(body, &m, node);
    if (node->source == MIX_IR_ARGUMENT) arguments[node->index] = 1;
  }
  return true;
}

/* A carry is needed if its last value is, or if a needed result reads it. */
static bool find_needed(mix_ir *body, int carries, char *results, char *arguments) {
  for (bool more = true; more;) {
    if (!find_arguments(body, results, arguments)) return false;
    more = false;
    for (int i = 0; i < carries; i++) {
      more = more || (arguments[i] && !results[i]);
      results[i] = arguments[i] = results[i] || arguments[i];
    }
  }
  return true;
}

/* Keeps the marked arguments, numbered anew, and results. */
static void trim_body(mix_ir *body, const char *results, const char *arguments) {
  int kept = 0;
  for (int r = 0; r < body->result_count; r++)
    if (results[r]) body->results[kept++] = body->results[r];
  body->result_count = kept;
  for (int n = 0; n < body->node_count; n++) {
    mix_ir_node *node = &body->nodes[n];
    if (node->source != MIX_IR_ARGUMENT) continue;
    node->dead = !arguments[node->index];
    int number = 0;
    for (int i = 0; i < node->index; i++) number += arguments[i];
    node->index = number;
  }
}

/* Gives the node results of its own for those that are kept. `becomes`: old value -> new one. */
static bool trim_node(mix_ir *ir, int n, const char *results, const char *arguments, int *becomes) {
  mix_ir_node *node = &ir->nodes[n];
  const mix_scan_attributes *old = node->attributes;
  mix_scan_attributes *attributes = mix_ir_alloc(ir, sizeof *attributes);
  if (!attributes || !mix_reserve(&ir->values, &ir->value_capacity, ir->value_count + node->output_count,
                                  sizeof *ir->values))
    return false;
  *attributes = *old;
  attributes->carries = attributes->inputs = 0;
  int first = ir->value_count, operands = 0;
  for (int i = 0; i < node->input_count; i++) {
    if (!arguments[i]) continue;
    attributes->carries += i < old->carries;
    attributes->inputs += i >= old->carries && i < old->carries + old->inputs;
    node->inputs[operands++] = node->inputs[i];
  }
  for (int o = 0; o < node->output_count; o++) {
    if (!results[o]) continue;
    becomes[node->first_output + o] = ir->value_count;
    ir->values[ir->value_count] = (mix_ir_value){
        .type = ir->values[node->first_output + o].type, .node = n, .output = ir->value_count - first};
    ir->value_count++;
  }
  node->attributes = attributes;
  node->input_count = operands;
  node->output_count = ir->value_count - first;
  node->first_output = first;
  node->body->argument_count = operands;
  return true;
}

static bool all(const char *marks, int count) {
  for (int i = 0; i < count; i++)
    if (!marks[i]) return false;
  return true;
}

static bool trim_loop(mix_ir *ir, int n, const marks *m, int *becomes) {
  const mix_ir_node *node = &ir->nodes[n];
  mix_ir *body = node->body;
  const int carries = ((const mix_scan_attributes *)node->attributes)->carries;
  char *results = mix_ir_alloc(ir, (size_t)node->output_count + 1);
  char *arguments = mix_ir_alloc(ir, (size_t)node->input_count + 1);
  if (!results || !arguments) return false;
  memcpy(results, m->value + node->first_output, (size_t)node->output_count);
  if (!find_needed(body, carries, results, arguments)) return false;
  if (all(results, node->output_count) && all(arguments, node->input_count)) return mix_pass_dce(body);
  trim_body(body, results, arguments);
  return trim_node(ir, n, results, arguments, becomes) && mix_pass_dce(body);
}

/* ---- the pass ---- */

static void rename_values(mix_ir *ir, const int *becomes, int count) {
  for (int v = 0; v < count; v++)
    if (becomes[v] >= 0) mix_ir_replace(ir, v, becomes[v]);
}

bool mix_pass_dce(mix_ir *ir) {
  const int value_count = ir->value_count;
  marks m;
  int *becomes = mix_ir_ints(ir, value_count + 1);
  if (!new_marks(ir, &m) || !becomes) return false;
  for (int v = 0; v < value_count; v++) becomes[v] = -1;
  for (int i = 0; i < ir->result_count; i++) need(ir, &m, ir->results[i]);
  for (int i = 0; i < ir->variable_count; i++) {
    need(ir, &m, ir->variables[i].exit);
    if (ir->variables[i].guard >= 0) need(ir, &m, ir->variables[i].guard);
  }
  /* Operands come before uses, so one backward scan marks everything reachable. */
  for (int n = ir->node_count - 1; n >= 0; n--) {
    if (!m.node[n] && !(ir->nodes[n].op->flags & MIX_OP_STATEFUL)) {
      ir->nodes[n].dead = is_removable(&ir->nodes[n]) || ir->nodes[n].dead;
      continue;
    }
    if (ir->nodes[n].body && !trim_loop(ir, n, &m, becomes)) return false;
    need_operands(ir, &m, &ir->nodes[n]);
  }
  rename_values(ir, becomes, value_count);
  return mix_ir_sort(ir);
}
