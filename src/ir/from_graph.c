/* Import from the graph: an iterative walk from the results, then nodes in order of creation. */
#include "base/alloc.h"
#include "base/error.h"
#include "graph/body.h"
#include "graph/lock.h"
#include "graph/node_set.h"
#include "ir/ir.h"
#include <stdlib.h>
#include <string.h>

typedef struct import {
  mix_node_set set;
  int *values; /* first value of node i; -1: none yet */
  /* The graph of a body is cut at its parameters, which are its arguments; NULL: no body. */
  const mix_body *body;
} import;

static int parameter_of(const import *from, mix_edge edge) {
  return from->body ? mix_body_parameter(from->body, edge) : -1;
}

static bool is_alias(const mix_node *node) { return node->op->flags & MIX_OP_ALIAS && !node->symbolic; }

/* Adds all nodes that the roots need, breadth first. Stops at finished values and at parameters. */
static bool set_close(import *from) {
  mix_node_set *set = &from->set;
  for (int i = 0; i < set->count; i++) {
    mix_node *node = set->nodes[i];
    if (mix_node_finished(node)) continue;
    const int used = is_alias(node) ? node->output_count : node->input_count;
    for (int j = 0; j < used; j++)
      if (parameter_of(from, node->inputs[j]) < 0 && !mix_node_set_add(set, node->inputs[j].node))
        return false;
  }
  return true;
}

static bool set_order(import *from) {
  mix_node_set_sort(&from->set);
  from->values = mix_alloc(sizeof *from->values * (size_t)(from->set.count + 1));
  if (!from->values) return false;
  for (int i = 0; i < from->set.count; i++) from->values[i] = -1;
  return true;
}

/* The parameters of a body are its first values, in order. Result i of an alias is its operand i. */
static int edge_value(const import *from, mix_edge edge) {
  for (;;) {
    const int parameter = parameter_of(from, edge);
    if (parameter >= 0) return parameter;
    if (!is_alias(edge.node) || mix_node_finished(edge.node)) break;
    edge = edge.node->inputs[edge.output];
  }
  return from->values[mix_node_set_find(&from->set, edge.node)] + edge.output;
}

/* A finished value becomes a constant. The ir retains its buffer, unless that is the storage of a
 * variable, which will change, and the plan outlives this call: then the bytes are copied. */
static int add_constants(mix_ir *ir, mix_node *node, bool outlives) {
  int first = -1;
  for (int i = 0; i < node->output_count; i++) {
    mix_memory *memory = node->outputs[i].memory, *copy = NULL;
    if (outlives && mix_memory_is_storage(memory)) {
      copy = mix_memory_new(&mix_host_memory, mix_memory_bytes(memory));
      if (!copy || !mix_memory_copy(copy, memory)) return mix_release(copy), -1;
    }
    int value = mix_ir_add_constant(ir, copy ? copy : memory, 0, node->outputs[i].type);
    mix_release(copy);
    if (value < 0) return -1;
    if (i == 0) first = value;
  }
  return first;
}

static int add_source(mix_ir *ir, mix_ir_source source, int index, const mix_value *type) {
  int node = mix_ir_add(ir, &mix_op_placeholder, NULL, 0, NULL, 1, &type->type);
  if (node < 0) return -1;
  ir->nodes[node].source = source;
  ir->nodes[node].index = index;
  return ir->nodes[node].first_output;
}

static mix_ir *import_body(const mix_body *body);

static int add_computed(mix_ir *ir, const import *from, mix_node *node) {
  int *inputs = mix_ir_array(ir, node->input_count + 1, sizeof *inputs);
  mix_type *types = mix_ir_array(ir, node->output_count + 1, sizeof *types);
  void *attributes = NULL;
  if (!inputs || !types) return -1;
  for (int i = 0; i < node->input_count; i++) inputs[i] = edge_value(from, node->inputs[i]);
  for (int i = 0; i < node->output_count; i++) types[i] = node->outputs[i].type;
  if (node->op->attributes_size) {
    if (!(attributes = mix_ir_alloc(ir, node->op->attributes_size))) return -1;
    memcpy(attributes, node->attributes, node->op->attributes_size);
  }
  int index = mix_ir_add(ir, node->op, attributes, node->input_count, inputs, node->output_count, types);
  if (index < 0 || (node->body && !mix_ir_set_body(ir, index, import_body(node->body)))) return -1;
  ir->nodes[index].scope = node->scope;
  ir->nodes[index].keep = node->keep;
  ir->nodes[index].backward = node->backward;
  return ir->nodes[index].first_output;
}

static bool add_nodes(mix_ir *ir, import *from, bool outlives) {
  for (int i = 0; i < from->set.count; i++) {
    mix_node *node = from->set.nodes[i];
    if (from->values[i] >= 0) continue; /* an argument, or the entry value of a variable */
    if (mix_node_finished(node))
      from->values[i] = add_constants(ir, node, outlives);
    else if (node->op->flags & MIX_OP_COMPLEX)
      return mix_fail_unsupported(
          "evaluate: a result%s%s is complex; only its real or imaginary part, its magnitude or its angle "
          "can be one",
          node->scope ? " of " : "", node->scope ? node->scope : "");
    else if (((node->op->flags & MIX_OP_READ) && node->input_count == 1) || is_alias(node))
      from->values[i] = edge_value(from, node->inputs[0]);
    else if ((node->op->flags & MIX_OP_SOURCE) || node->symbolic)
      return mix_fail_runtime(
          node->symbolic
              ? "evaluate: a symbolic tensor (from mix_input) has no value; call a model on data instead"
              : "evaluate: this tensor belongs to a captured function and has no value outside it");
    else
      from->values[i] = add_computed(ir, from, node);
    if (from->values[i] < 0) return false;
  }
  return true;
}

static bool add_results(mix_ir *ir, const import *from, int count, const mix_edge *results) {
  ir->results = mix_ir_ints(ir, count + 1);
  if (!ir->results) return false;
  ir->result_count = count;
  for (int i = 0; i < count; i++) ir->results[i] = edge_value(from, results[i]);
  return true;
}

static bool build(mix_ir *ir, import *from, int result_count, const mix_edge *results, int argument_count,
                  mix_node *const *arguments, const mix_capture *capture) {
  mix_node_set *set = &from->set;
  for (int i = 0; i < argument_count; i++)
    if (!mix_node_set_add(set, arguments[i])) return false;
  for (int i = 0; i < result_count; i++)
    if (!mix_node_set_add(set, results[i].node)) return false;
  for (int i = 0; capture && i < capture->binding_count; i++)
    if (!mix_node_set_add(set, capture->bindings[i].entry) ||
        !mix_node_set_add(set, capture->bindings[i].current.node))
      return false;
  for (int i = 0; capture && i < capture->stateful_count; i++)
    if (!mix_node_set_add(set, capture->stateful[i])) return false;
  if (!set_close(from) || !set_order(from)) return false;
  ir->argument_count = argument_count;
  for (int i = 0; i < argument_count; i++)
    if ((from->values[mix_node_set_find(set, arguments[i])] =
             add_source(ir, MIX_IR_ARGUMENT, i, &arguments[i]->outputs[0])) < 0)
      return false;
  for (int i = 0; capture && i < capture->binding_count; i++) {
    const mix_binding *binding = &capture->bindings[i];
    if (!mix_reserve(&ir->variables, &ir->variable_capacity, ir->variable_count + 1, sizeof *ir->variables))
      return false;
    ir->variables[ir->variable_count++] =
        (mix_ir_variable){.variable = mix_retain(binding->variable), .guard = -1};
    int value = add_source(ir, MIX_IR_VARIABLE, i, &binding->entry->outputs[0]);
    if (value < 0) return false;
    ir->variables[i].entry = from->values[mix_node_set_find(set, binding->entry)] = value;
  }
  if (!add_nodes(ir, from, capture != NULL)) return false;
  for (int i = 0; i < ir->variable_count; i++)
    ir->variables[i].exit = edge_value(from, capture->bindings[i].current);
  return add_results(ir, from, result_count, results);
}

static bool build_body(mix_ir *ir, import *from) {
  const mix_body *body = from->body;
  for (int i = 0; i < body->parameter_count; i++) {
    const mix_edge edge = body->parameters[i];
    if (add_source(ir, MIX_IR_ARGUMENT, i, &edge.node->outputs[edge.output]) < 0) return false;
  }
  ir->argument_count = body->parameter_count;
  for (int i = 0; i < body->result_count; i++)
    if (mix_body_parameter(body, body->results[i]) < 0 &&
        !mix_node_set_add(&from->set, body->results[i].node))
      return false;
  return set_close(from) && set_order(from) && add_nodes(ir, from, true) &&
         add_results(ir, from, body->result_count, body->results);
}

static mix_ir *import_done(mix_ir *ir, import *from, bool good) {
  mix_node_set_clear(&from->set);
  mix_free(from->values);
  if (good) return ir;
  mix_ir_free(ir);
  return NULL;
}

static mix_ir *import_body(const mix_body *body) {
  mix_ir *ir = mix_ir_new();
import from = {.body = body };
  return ir ? import_done(ir, &from, build_body(ir, &from)) : NULL;
}

mix_ir *mix_ir_from_graph(int result_count, const mix_edge *results, int argument_count,
                          mix_node *const *arguments, const mix_capture *capture) {
  mix_ir *ir = mix_ir_new();
import from = {.body = NULL };
  return ir ? import_done(ir, &from,
                          build(ir, &from, result_count, results, argument_count, arguments, capture))
            : NULL;
}

/* Descends only into nodes of this capture, and collects the outside nodes that they use. */
mix_node **mix_nodes_outside(int result_count, const mix_edge *results, const mix_capture *capture,
                             int *count) {
  mix_node_set set = {0};
  bool good = true;
  mix_graph_lock();
  for (int i = 0; i < result_count && good; i++) good = mix_node_set_add(&set, results[i].node);
  for (int i = 0; i < capture->binding_count && good; i++)
    good = mix_node_set_add(&set, capture->bindings[i].current.node);
  for (int i = 0; i < capture->stateful_count && good; i++)
    good = mix_node_set_add(&set, capture->stateful[i]);
  for (int i = 0; i < set.count && good; i++)
    for (int j = 0; j < set.nodes[i]->input_count && good && set.nodes[i]->capture == capture &&
                    !mix_node_finished(set.nodes[i]);
         j++)
      good = mix_node_set_add(&set, set.nodes[i]->inputs[j].node);
  *count = 0;
  for (int i = 0; i < set.count && good; i++)
    if (!mix_node_finished(set.nodes[i]) && set.nodes[i]->capture != capture)
      set.nodes[(*count)++] = set.nodes[i];
  mix_graph_unlock();
  mix_free(set.table);
  if (good && set.nodes) return set.nodes;
  mix_free(set.nodes);
  return good ? mix_alloc(sizeof *set.nodes) : NULL;
}
