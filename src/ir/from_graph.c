/* Import from the graph: an iterative walk from the results, then nodes in order of creation. */
#include "base/alloc.h"
#include "base/error.h"
#include "ir/ir.h"
#include "graph/lock.h"
#include <stdlib.h>
#include <string.h>

typedef struct node_set {
  mix_node **nodes; /* in the order in which they were found */
  int count, capacity;
  int *table;  /* open addressing: index into nodes, + 1 */
  int *values; /* first value of node i; -1: none yet */
  int table_size;
} node_set;

static size_t node_hash(const mix_node *node) { return ((uintptr_t)node >> 4) * 0x9e3779b97f4a7c15u >> 11; }

static int set_find(const node_set *set, const mix_node *node) {
  if (!set->table_size) return -1;
  for (size_t at = node_hash(node) & (size_t)(set->table_size - 1); set->table[at];
       at = (at + 1) & (size_t)(set->table_size - 1))
    if (set->nodes[set->table[at] - 1] == node) return set->table[at] - 1;
  return -1;
}

static bool set_add(node_set *set, mix_node *node) {
  if (set_find(set, node) >= 0) return true;
  if (!mix_reserve(&set->nodes, &set->capacity, set->count + 1, sizeof *set->nodes)) return false;
  if ((set->count + 1) * 2 > set->table_size) {
    int size = set->table_size ? set->table_size * 2 : 256;
    int *table = mix_calloc((size_t)size, sizeof *table);
    if (!table) return false;
    for (int i = 0; i < set->count; i++) {
      size_t at = node_hash(set->nodes[i]) & (size_t)(size - 1);
      while (table[at]) at = (at + 1) & (size_t)(size - 1);
      table[at] = i + 1;
    }
    mix_free(set->table);
    set->table = table;
    set->table_size = size;
  }
  set->nodes[set->count++] = node;
  size_t at = node_hash(node) & (size_t)(set->table_size - 1);
  while (set->table[at]) at = (at + 1) & (size_t)(set->table_size - 1);
  set->table[at] = set->count;
  return true;
}

/* Adds all nodes that the roots need, breadth first. Stops at finished values. */
static bool set_close(node_set *set) {
  for (int i = 0; i < set->count; i++) {
    mix_node *node = set->nodes[i];
    if (mix_node_finished(node)) continue;
    for (int j = 0; j < node->input_count; j++)
      if (!set_add(set, node->inputs[j].node)) return false;
  }
  return true;
}

static int by_sequence(const void *a, const void *b) {
  uint64_t x = (*(mix_node *const *)a)->sequence, y = (*(mix_node *const *)b)->sequence;
  return x < y ? -1 : x > y;
}

static bool set_sort(node_set *set) {
  if (set->count > 0) qsort(set->nodes, (size_t)set->count, sizeof *set->nodes, by_sequence);
  if (set->table) memset(set->table, 0, sizeof *set->table * (size_t)set->table_size);
  for (int i = 0; i < set->count; i++) {
    size_t at = node_hash(set->nodes[i]) & (size_t)(set->table_size - 1);
    while (set->table[at]) at = (at + 1) & (size_t)(set->table_size - 1);
    set->table[at] = i + 1;
  }
  set->values = mix_alloc(sizeof *set->values * (size_t)(set->count + 1));
  if (!set->values) return false;
  for (int i = 0; i < set->count; i++) set->values[i] = -1;
  return true;
}

static int edge_value(const node_set *set, mix_edge edge) {
  return set->values[set_find(set, edge.node)] + edge.output;
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

static int add_computed(mix_ir *ir, const node_set *set, mix_node *node) {
  int small[16], *inputs = small;
  mix_type types[8];
  if (node->output_count > 8)
    return mix_fail(MIX_INTERNAL_ERROR, "compile: %s has too many results", node->op->name), -1;
  if (node->input_count > 16 && !(inputs = mix_ir_alloc(ir, sizeof *inputs * (size_t)node->input_count)))
    return -1;
  for (int i = 0; i < node->input_count; i++) inputs[i] = edge_value(set, node->inputs[i]);
  for (int i = 0; i < node->output_count; i++) types[i] = node->outputs[i].type;
  void *attributes = NULL;
  if (node->op->attributes_size) {
    if (!(attributes = mix_ir_alloc(ir, node->op->attributes_size))) return -1;
    memcpy(attributes, node->attributes, node->op->attributes_size);
  }
  int index = mix_ir_add(ir, node->op, attributes, node->input_count, inputs, node->output_count, types);
  if (index < 0) return -1;
  ir->nodes[index].scope = node->scope;
  ir->nodes[index].keep = node->keep;
  return ir->nodes[index].first_output;
}

static bool add_nodes(mix_ir *ir, node_set *set, bool outlives) {
  for (int i = 0; i < set->count; i++) {
    mix_node *node = set->nodes[i];
    if (set->values[i] >= 0) continue; /* an argument, or the entry value of a variable */
    if (mix_node_finished(node))
      set->values[i] = add_constants(ir, node, outlives);
    else if ((node->op->flags & MIX_OP_READ) && node->input_count == 1)
      set->values[i] = edge_value(set, node->inputs[0]);
    else if ((node->op->flags & MIX_OP_SOURCE) || node->symbolic) {
      mix_fail(MIX_RUNTIME_ERROR,
               node->symbolic
                   ? "evaluate: a symbolic tensor (from mix_input) has no value; call a model on data instead"
                   : "evaluate: this tensor belongs to a captured function and has no value outside it");
      return false;
    } else
      set->values[i] = add_computed(ir, set, node);
    if (set->values[i] < 0) return false;
  }
  return true;
}

static bool build(mix_ir *ir, node_set *set, int result_count, const mix_edge *results, int argument_count,
                  mix_node *const *arguments, const mix_capture *capture) {
  for (int i = 0; i < argument_count; i++)
    if (!set_add(set, arguments[i])) return false;
  for (int i = 0; i < result_count; i++)
    if (!set_add(set, results[i].node)) return false;
  for (int i = 0; capture && i < capture->binding_count; i++)
    if (!set_add(set, capture->bindings[i].entry) || !set_add(set, capture->bindings[i].current.node))
      return false;
  for (int i = 0; capture && i < capture->stateful_count; i++)
    if (!set_add(set, capture->stateful[i])) return false;
  if (!set_close(set) || !set_sort(set)) return false;
  ir->argument_count = argument_count;
  for (int i = 0; i < argument_count; i++)
    if ((set->values[set_find(set, arguments[i])] =
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
    ir->variables[i].entry = set->values[set_find(set, binding->entry)] = value;
  }
  if (!add_nodes(ir, set, capture != NULL)) return false;
  for (int i = 0; i < ir->variable_count; i++)
    ir->variables[i].exit = edge_value(set, capture->bindings[i].current);
  ir->results = mix_ir_alloc(ir, sizeof(int) * (size_t)(result_count + 1));
  if (!ir->results) return false;
  ir->result_count = result_count;
  for (int i = 0; i < result_count; i++) ir->results[i] = edge_value(set, results[i]);
  return true;
}

mix_ir *mix_ir_from_graph(int result_count, const mix_edge *results, int argument_count,
                          mix_node *const *arguments, const mix_capture *capture) {
  mix_ir *ir = mix_ir_new();
  if (!ir) return NULL;
  node_set set = {0};
  bool good = build(ir, &set, result_count, results, argument_count, arguments, capture);
  mix_free(set.nodes);
  mix_free(set.table);
  mix_free(set.values);
  if (good) return ir;
  mix_ir_free(ir);
  return NULL;
}

/* Descends only into nodes of this capture, and collects the outside nodes that they use. */
mix_node **mix_nodes_outside(int result_count, const mix_edge *results, const mix_capture *capture,
                             int *count) {
  node_set set = {0};
  bool good = true;
  mix_graph_lock();
  for (int i = 0; i < result_count && good; i++) good = set_add(&set, results[i].node);
  for (int i = 0; i < capture->binding_count && good; i++)
    good = set_add(&set, capture->bindings[i].current.node);
  for (int i = 0; i < capture->stateful_count && good; i++) good = set_add(&set, capture->stateful[i]);
  for (int i = 0; i < set.count && good; i++)
    for (int j = 0; j < set.nodes[i]->input_count && good && set.nodes[i]->capture == capture &&
                    !mix_node_finished(set.nodes[i]);
         j++)
      good = set_add(&set, set.nodes[i]->inputs[j].node);
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
