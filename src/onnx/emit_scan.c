/* Loops: as Loop, whose body takes the row of its step from the inputs. */
#include "onnx/emit.h"

#include <limits.h>
#include <string.h>

typedef struct loop {
  const mix_ir_node *node;
  const mix_scan_attributes *a;
  const char *iteration, *condition, *row; /* names inside the body */
} loop;

/* A name for each argument of the body: a carry of its own, a row of an input, or what is outside. */
static void bind(mix_onnx_emitter *e, const loop *l, const char *const *operands, const char *const *carries,
                 const char **values) {
  const mix_ir *body = l->node->body;
  for (int n = 0; n < body->node_count; n++) {
    const mix_ir_node *node = &body->nodes[n];
    if (node->dead || node->source != MIX_IR_ARGUMENT) continue;
    const int other = node->index - l->a->carries;
    const char *value = other < 0 ? carries[node->index] : operands[node->index];
    if (other >= 0 && other < l->a->inputs) {
      mix_onnx_int(e, "axis", 0);
      value = mix_onnx_node2(e, "Gather", value, l->row);
    }
    values[node->first_output] = value;
  }
}

static void declare(mix_onnx_emitter *e, mix_message *graph, const loop *l, const char *const *carries) {
  const mix_ir *body = l->node->body;
  mix_onnx_put_value(e, graph, MIX_ONNX_GRAPH_INPUT, l->iteration, MIX_INT64, 0, NULL);
  mix_onnx_put_value(e, graph, MIX_ONNX_GRAPH_INPUT, l->condition, MIX_BOOL, 0, NULL);
  for (int i = 0; i < l->a->carries; i++) {
    const mix_type type = body->values[body->results[i]].type;
    mix_onnx_put_value(e, graph, MIX_ONNX_GRAPH_INPUT, carries[i], mix_onnx_written(e, type.dtype),
                       type.shape.rank, NULL);
  }
}

/* Results have names of their own, also where they are what is outside, or one another. */
static void put_result(mix_onnx_emitter *e, mix_message *graph, const char *value, mix_type type) {
  const char *name = mix_onnx_node1(e, "Identity", value);
  mix_onnx_put_value(e, graph, MIX_ONNX_GRAPH_OUTPUT, name, mix_onnx_written(e, type.dtype), type.shape.rank,
                     NULL);
}

/* Enters the body, and leaves it. */
typedef struct outside {
  const mix_ir *ir, *others[MIX_ONNX_BATCHES - 1];
  const char **values;
  mix_message *nodes;
} outside;

static outside enter(mix_onnx_emitter *e, const mix_ir_node *node, const char **values, mix_message *graph) {
  const outside o = {e->ir, {e->others[0], e->others[1]}, e->values, e->nodes};
  const int number = (int)(node - e->ir->nodes);
  e->ir = node->body;
  for (int i = 0; i < MIX_ONNX_BATCHES - 1; i++) e->others[i] = o.others[i]->nodes[number].body;
  e->values = values;
  e->nodes = graph;
  return o;
}

static void leave(mix_onnx_emitter *e, const outside *o) {
  e->ir = o->ir;
  memcpy(e->others, o->others, sizeof e->others);
  e->values = o->values;
  e->nodes = o->nodes;
}

static bool put_body(mix_onnx_emitter *e, loop *l, const char *const *operands, mix_message *graph) {
  const mix_ir *body = l->node->body;
  const char **values = mix_ir_array(e->root, body->value_count + 1, sizeof *values),
             **carries = mix_ir_array(e->root, l->a->carries + 1, sizeof *carries);
  if (!values || !carries) return false;
  const outside o = enter(e, l->node, values, graph);
  l->iteration = mix_onnx_new_name(e, "iteration");
  l->condition = mix_onnx_new_name(e, "condition");
  for (int i = 0; i < l->a->carries; i++) carries[i] = mix_onnx_new_name(e, "carry");
  declare(e, graph, l, carries);
  l->row = l->iteration;
  if (l->a->reverse)
    l->row = mix_onnx_node2(e, "Sub", mix_onnx_scalar(e, MIX_INT64, (double)l->a->steps - 1), l->iteration);
  bind(e, l, operands, carries, values);
  const bool good = !e->failed && e->graph(e);
  e->node = l->node;
  if (good) put_result(e, graph, l->condition, (mix_type){MIX_BOOL, MIX_SCALAR});
  for (int r = 0; good && r < body->result_count; r++)
    put_result(e, graph, values[body->results[r]], body->values[body->results[r]].type);
  mix_message_text(graph, MIX_ONNX_GRAPH_NAME, l->condition);
  leave(e, &o);
  return good && !graph->failed;
}

/* The rows of a loop from the last step to the first, in the order of the steps. */
static const char *reversed(mix_onnx_emitter *e, const char *x) {
  const int64_t last = -1, before = LLONG_MIN, axis = 0;
  const char *operands[] = {x, mix_onnx_int64s(e, 1, &last), mix_onnx_int64s(e, 1, &before),
                            mix_onnx_int64s(e, 1, &axis), mix_onnx_int64s(e, 1, &last)};
  return mix_onnx_node(e, "Slice", 5, operands);
}

void mix_onnx_emit_scan(mix_onnx_emitter *e, const mix_ir_node *node) {
  loop l = {.node = node, .a = node->attributes};
  const char **names = mix_ir_array(e->root, node->input_count + node->output_count + 3, sizeof *names);
  mix_message graph = {0};
  if (!names) {
    e->failed = true;
    return;
  }
  if (mix_onnx_attribute(e, node, &l.a->steps).factor) {
    mix_onnx_refuse(e, node, "as many steps as the batch");
    return;
  }
  if (mix_onnx_emit_recurrent(e, node)) return;
  const char **operands = names + 2, **results = operands + node->input_count;
  for (int i = 0; i < node->input_count; i++) operands[i] = mix_onnx_operand(e, node, i);
  if (!put_body(e, &l, operands, &graph)) {
    e->failed = true;
    mix_message_free(&graph);
    return;
  }
  names[0] = mix_onnx_scalar(e, MIX_INT64, (double)l.a->steps);
  names[1] = NULL;
  mix_onnx_graph(e, "body", &graph);
  mix_onnx_nodes(e, "Loop", 2 + l.a->carries, names, node->output_count, results);
  for (int o = 0; o < node->output_count; o++)
    mix_onnx_result(e, node, o, o >= l.a->carries && l.a->reverse ? reversed(e, results[o]) : results[o]);
}
