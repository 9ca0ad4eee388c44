/* Loops: the state of a `while` is the step, the carry, the outputs so far, the error word if the body checks
 * values, and what the body only reads: inputs and invariants. */
#include "backend/xla/emit_inside.h"

#include "base/alloc.h"
#include <string.h>

typedef struct layout {
  const mix_scan_attributes *a;
  int outputs, error, fixed, count; /* where they begin in the state; error -1: none */
  int output_count, fixed_count;
} layout;

static layout layout_of(const mix_emitter *e, const mix_ir_node *node) {
  layout l = {.a = node->attributes, .error = -1};
  l.outputs = 1 + l.a->carries;
  l.output_count = node->output_count - l.a->carries;
  l.fixed = l.outputs + l.output_count;
  if (e->signature->error_parameter >= 0 && mix_emit_checks(node->body)) l.error = l.fixed++;
  l.fixed_count = node->input_count - l.a->carries;
  l.count = l.fixed + l.fixed_count;
  return l;
}

static void first_state(mix_emitter *e, const mix_ir_node *node, const layout *l, mix_hlo *state) {
  state[0] = mix_hlo_whole(&e->w, mix_type_of(MIX_INT32, MIX_SCALAR), 0);
  for (int i = 0; i < l->a->carries; i++) state[1 + i] = mix_emit_operand(e, node, i);
  for (int o = 0; o < l->output_count; o++)
    state[l->outputs + o] = mix_hlo_number(&e->w, mix_emit_type(e, node, l->a->carries + o), 0);
  if (l->error >= 0) state[l->error] = e->error;
  for (int i = 0; i < l->fixed_count; i++) state[l->fixed + i] = mix_emit_operand(e, node, l->a->carries + i);
}

/* The arguments of the body. */
static void bind(mix_emitter *e, const mix_ir *body, const layout *l, const mix_hlo *state, mix_hlo row) {
  for (int n = 0; n < body->node_count; n++) {
    const mix_ir_node *node = &body->nodes[n];
    if (node->dead || node->source != MIX_IR_ARGUMENT) continue;
    const int other = node->index - l->a->carries;
    mix_hlo value = other < 0 ? state[1 + node->index] : state[l->fixed + other];
    if (other >= 0 && other < l->a->inputs) value = mix_hlo_row(&e->w, value, row);
    e->values[node->first_output] = value;
  }
}

static void step(mix_emitter *e, const mix_ir *body, const layout *l, const mix_hlo *state, mix_hlo *next) {
  mix_hlo_writer *w = &e->w;
  const mix_hlo one = mix_hlo_like(w, state[0], 1),
                row = l->a->reverse
                          ? mix_hlo_subtract(w, mix_hlo_like(w, state[0], (double)l->a->steps - 1), state[0])
                          : state[0];
  bind(e, body, l, state, row);
  if (l->error >= 0) e->error = state[l->error];
  if (!e->graph(e, body)) {
    e->failed = true;
    return;
  }
  memcpy(next, state, sizeof *next * (size_t)l->count);
  next[0] = mix_hlo_add(w, state[0], one);
  for (int i = 0; i < l->a->carries; i++) next[1 + i] = e->values[body->results[i]];
  for (int o = 0; o < l->output_count; o++)
    next[l->outputs + o] =
        mix_hlo_put_row(w, state[l->outputs + o], e->values[body->results[l->a->carries + o]], row);
  if (l->error >= 0) next[l->error] = e->error;
}

static void loop_over(mix_emitter *e, const mix_ir_node *node, const layout *l, mix_hlo *state,
                      mix_hlo *next) {
  mix_hlo_writer *w = &e->w;
  const mix_ir *outer = e->ir;
  mix_hlo *outer_values = e->values;
  const bool *outer_decisive = e->decisive;
  mix_hlo *values = mix_alloc(sizeof *values * (size_t)(node->body->value_count + 1));
  if (!values) {
    e->failed = true;
    return;
  }
  first_state(e, node, l, state);
  mix_hlo_loop loop = mix_hlo_while(w, l->count, state);
  const mix_hlo steps = mix_hlo_like(w, state[0], (double)l->a->steps);
  mix_hlo_do(w, mix_hlo_compare(w, "LT", state[0], steps));
  if (mix_emit_enter(e, node->body, values))
    step(e, node->body, l, state, next);
  else
    e->failed = true;
  e->ir = outer;
  e->values = outer_values;
  e->decisive = outer_decisive;
  mix_free(values);
  if (e->failed) return;
  mix_hlo_end(w, &loop, next);
  if (l->error >= 0) e->error = state[l->error];
  for (int o = 0; o < node->output_count; o++) mix_emit_result(e, node, o, state[1 + o]);
}

/* Without steps nothing has a row to read. */
static void no_steps(mix_emitter *e, const mix_ir_node *node, const layout *l) {
  for (int o = 0; o < node->output_count; o++)
    mix_emit_result(e, node, o,
                    o < l->a->carries ? mix_emit_operand(e, node, o)
                                      : mix_hlo_number(&e->w, mix_emit_type(e, node, o), 0));
}

void mix_emit_scan(mix_emitter *e, const mix_ir_node *node) {
  const layout l = layout_of(e, node);
  if (!l.a->steps) {
    no_steps(e, node, &l);
    return;
  }
  mix_hlo *state = mix_alloc(sizeof *state * 2 * (size_t)l.count);
  if (state)
    loop_over(e, node, &l, state, state + l.count);
  else
    e->failed = true;
  mix_free(state);
}
