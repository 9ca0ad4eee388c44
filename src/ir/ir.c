#include "ir/ir.h"

#include "base/alloc.h"
#include "base/error.h"
#include <string.h>

typedef struct mix_ir_chunk {
  struct mix_ir_chunk *next;
  size_t used, size;
  max_align_t bytes[];
} mix_ir_chunk;

mix_ir *mix_ir_new(void) { return mix_calloc(1, sizeof(mix_ir)); }

void mix_ir_free(mix_ir *ir) {
  if (!ir) return;
  for (int i = 0; i < ir->held_count; i++) mix_release(ir->held[i]);
  for (int i = 0; i < ir->body_count; i++) mix_ir_free(ir->bodies[i]);
  for (int i = 0; i < ir->variable_count; i++) mix_release(ir->variables[i].variable);
  while (ir->memory) {
    mix_ir_chunk *chunk = ir->memory;
    ir->memory = chunk->next;
    mix_free(chunk);
  }
  mix_free(ir->nodes);
  mix_free(ir->values);
  mix_free(ir->variables);
  mix_free(ir->held);
  mix_free(ir->bodies);
  mix_free(ir);
}

void *mix_ir_alloc(mix_ir *ir, size_t size) {
  size = (size + sizeof(max_align_t) - 1) / sizeof(max_align_t) * sizeof(max_align_t);
  if (!ir->memory || ir->memory->used + size > ir->memory->size) {
    size_t capacity = size > 16384 ? size : 16384;
    mix_ir_chunk *chunk = mix_alloc(sizeof *chunk + capacity);
    if (!chunk) return NULL;
    *chunk = (mix_ir_chunk){.next = ir->memory, .size = capacity};
    ir->memory = chunk;
  }
  void *memory = (char *)ir->memory->bytes + ir->memory->used;
  ir->memory->used += size;
  return memset(memory, 0, size);
}

/* The copy shares nothing that passes write to. */
mix_ir *mix_ir_copy(const mix_ir *ir) {
  mix_ir *copy = mix_ir_new();
  if (!copy) return NULL;
  size_t inputs = 1;
  for (int n = 0; n < ir->node_count; n++) inputs += (size_t)ir->nodes[n].input_count;
  int *input = mix_ir_alloc(copy, sizeof *input * inputs);
  copy->results = mix_ir_array(copy, ir->result_count + 1, sizeof *copy->results);
  if (!input || !copy->results ||
      !mix_reserve(&copy->nodes, &copy->node_capacity, ir->node_count, sizeof *copy->nodes) ||
      !mix_reserve(&copy->values, &copy->value_capacity, ir->value_count, sizeof *copy->values) ||
      !mix_reserve(&copy->variables, &copy->variable_capacity, ir->variable_count, sizeof *copy->variables)) {
    mix_ir_free(copy);
    return NULL;
  }
  for (int n = 0; n < ir->node_count; n++) {
    const mix_ir_node *node = &ir->nodes[n];
    copy->nodes[copy->node_count++] = *node;
    copy->nodes[n].inputs = input;
    for (int i = 0; i < node->input_count; i++) *input++ = node->inputs[i];
  }
  for (int v = 0; v < ir->value_count; v++) copy->values[copy->value_count++] = ir->values[v];
  for (int r = 0; r < ir->result_count; r++) copy->results[copy->result_count++] = ir->results[r];
  for (int i = 0; i < ir->variable_count; i++) {
    copy->variables[copy->variable_count++] = ir->variables[i];
    mix_retain(ir->variables[i].variable);
  }
  for (int n = 0; n < copy->node_count; n++) {
    if (!copy->nodes[n].body || mix_ir_set_body(copy, n, mix_ir_copy(copy->nodes[n].body))) continue;
    mix_ir_free(copy);
    return NULL;
  }
  copy->name = ir->name;
  copy->argument_count = ir->argument_count;
  copy->eager = ir->eager;
  copy->excess_precision = ir->excess_precision;
  copy->evaluate = ir->evaluate;
  copy->context = ir->context;
  return copy;
}

int mix_ir_add(mix_ir *ir, const mix_op *op, const void *attributes, int input_count, const int *inputs,
               int output_count, const mix_type *types) {
  if (!mix_reserve(&ir->nodes, &ir->node_capacity, ir->node_count + 1, sizeof *ir->nodes) ||
      !mix_reserve(&ir->values, &ir->value_capacity, ir->value_count + output_count, sizeof *ir->values))
    return -1;
  int *copy = mix_ir_ints(ir, input_count + 1);
  if (!copy) return -1;
  if (input_count) memcpy(copy, inputs, sizeof(int) * (size_t)input_count);
  int index = ir->node_count++;
  ir->nodes[index] = (mix_ir_node){.op = op,
                                   .attributes = attributes,
                                   .input_count = input_count,
                                   .output_count = output_count,
                                   .inputs = copy,
                                   .first_output = ir->value_count,
                                   .guard = -1,
                                   .guard_key = -1};
  for (int i = 0; i < output_count; i++)
    ir->values[ir->value_count++] = (mix_ir_value){.type = types[i], .node = index, .output = i};
  return index;
}

bool mix_ir_set_body(mix_ir *ir, int node, mix_ir *body) {
  ir->nodes[node].body = NULL;
  if (!body) return false;
  if (!mix_reserve(&ir->bodies, &ir->body_capacity, ir->body_count + 1, sizeof *ir->bodies))
    return mix_ir_free(body), false;
  ir->nodes[node].body = ir->bodies[ir->body_count++] = body;
  return true;
}

bool mix_ir_hold(mix_ir *ir, void *object) {
  if (!mix_reserve(&ir->held, &ir->held_capacity, ir->held_count + 1, sizeof *ir->held)) return false;
  ir->held[ir->held_count++] = mix_retain(object);
  return true;
}

int mix_ir_add_cast(mix_ir *ir, int value, mix_dtype dtype, const char *scope) {
  mix_cast_attributes *attributes = mix_ir_alloc(ir, sizeof *attributes);
  if (!attributes) return -1;
  attributes->dtype = dtype;
  const int node = mix_ir_add(ir, &mix_op_cast, attributes, 1, &value, 1,
                              &(mix_type){.dtype = dtype, .shape = ir->values[value].shape});
  if (node < 0) return -1;
  ir->nodes[node].scope = scope;
  return ir->nodes[node].first_output;
}

int mix_ir_add_constant(mix_ir *ir, mix_memory *memory, size_t offset, mix_type type) {
  if (!mix_ir_hold(ir, memory)) return -1;
  int node = mix_ir_add(ir, &mix_op_constant, NULL, 0, NULL, 1, &type);
  if (node < 0) return -1;
  ir->nodes[node].source = MIX_IR_CONSTANT;
  ir->nodes[node].memory = memory;
  ir->nodes[node].offset = offset;
  return ir->nodes[node].first_output;
}

const void *mix_ir_map_constant(const mix_ir_node *node) {
  const char *bytes = mix_memory_map(node->memory, MIX_MAP_READ);
  return bytes ? bytes + node->offset : NULL;
}
void mix_ir_unmap_constant(const mix_ir_node *node) { mix_memory_unmap(node->memory); }

int mix_ir_add_variable(mix_ir *ir, mix_variable *variable) {
  if (!mix_reserve(&ir->variables, &ir->variable_capacity, ir->variable_count + 1, sizeof *ir->variables))
    return -1;
  int node = mix_ir_add(ir, &mix_op_placeholder, NULL, 0, NULL, 1,
                        &(mix_type){.dtype = variable->dtype, .shape = variable->shape});
  if (node < 0) return -1;
  ir->nodes[node].source = MIX_IR_VARIABLE;
  ir->nodes[node].index = ir->variable_count;
  int entry = ir->nodes[node].first_output;
  ir->variables[ir->variable_count] =
      (mix_ir_variable){.variable = mix_retain(variable), .entry = entry, .exit = entry, .guard = -1};
  return ir->variable_count++;
}

void mix_ir_replace(mix_ir *ir, int from, int to) {
  for (int n = 0; n < ir->node_count; n++) {
    mix_ir_node *node = &ir->nodes[n];
    if (node->dead) continue;
    for (int i = 0; i < node->input_count; i++)
      if (node->inputs[i] == from) node->inputs[i] = to;
    if (node->guard == from) node->guard = to;
  }
  for (int i = 0; i < ir->result_count; i++)
    if (ir->results[i] == from) ir->results[i] = to;
  for (int i = 0; i < ir->variable_count; i++) {
    if (ir->variables[i].exit == from) ir->variables[i].exit = to;
    if (ir->variables[i].guard == from) ir->variables[i].guard = to;
  }
}

int *mix_ir_uses(mix_ir *ir) {
  int *uses = mix_ir_ints(ir, ir->value_count + 1);
  if (!uses) return NULL;
  for (int n = 0; n < ir->node_count; n++) {
    if (ir->nodes[n].dead) continue;
    for (int i = 0; i < ir->nodes[n].input_count; i++) uses[ir->nodes[n].inputs[i]]++;
    if (ir->nodes[n].guard >= 0) uses[ir->nodes[n].guard]++;
  }
  for (int i = 0; i < ir->result_count; i++) uses[ir->results[i]]++;
  for (int i = 0; i < ir->variable_count; i++) {
    if (ir->variables[i].exit != ir->variables[i].entry) uses[ir->variables[i].exit]++;
    if (ir->variables[i].guard >= 0) uses[ir->variables[i].guard]++;
  }
  return uses;
}

static int guard_of(const mix_ir_node *node) { return node->guard >= 0 ? node->guard : node->guard_key; }

/* True if no node is dead and operands precede their uses, so that sorting would change nothing. */
static bool is_sorted(const mix_ir *ir) {
  for (int n = 0; n < ir->node_count; n++) {
    const mix_ir_node *node = &ir->nodes[n];
    const int guard = guard_of(node);
    if (node->dead || (guard >= 0 && mix_ir_producer(ir, guard) >= n)) return false;
    for (int i = 0; i < node->input_count; i++)
      if (mix_ir_producer(ir, node->inputs[i]) >= n) return false;
  }
  return true;
}

int *mix_ir_collective_before(mix_ir *ir) {
  int *before = mix_ir_array(ir, ir->node_count + 1, sizeof *before), latest = -1;
  for (int n = 0; before && n < ir->node_count; n++) {
    const bool collective = !ir->nodes[n].dead && mix_op_is_collective(ir->nodes[n].op);
    before[n] = collective ? latest : -1;
    if (collective) latest = n;
  }
  return before;
}

int mix_ir_predecessor(const mix_ir *ir, const int *collective_before, int n, int i) {
  const mix_ir_node *node = &ir->nodes[n];
  if (i < node->input_count) return mix_ir_producer(ir, node->inputs[i]);
  if (i > node->input_count) return collective_before[n];
  const int guard = guard_of(node);
  return guard < 0 ? -1 : mix_ir_producer(ir, guard);
}

/* Depth first from each node in its present order: operands are emitted before the node. */
bool mix_ir_sort(mix_ir *ir) {
  if (is_sorted(ir)) return true;
  int count = ir->node_count, emitted = 0;
  int *order = mix_ir_ints(ir, count + 1);
  int *stack = mix_ir_ints(ir, count + 1);
  int *next = mix_ir_ints(ir, count + 1);
  char *state = mix_ir_alloc(ir, (size_t)count + 1); /* 0 new, 1 on the stack, 2 emitted */
  mix_ir_node *sorted = mix_ir_array(ir, count + 1, sizeof *sorted);
  const int *before = mix_ir_collective_before(ir);
  if (!order || !stack || !next || !state || !sorted || !before) return false;
  for (int root = 0; root < count; root++) {
    if (ir->nodes[root].dead || state[root]) continue;
    int depth = 0;
    stack[depth++] = root;
    state[root] = 1;
    while (depth) {
      int n = stack[depth - 1];
      if (next[n] == ir->nodes[n].input_count + 2) {
        state[n] = 2;
        order[emitted++] = n;
        depth--;
        continue;
      }
      int producer = mix_ir_predecessor(ir, before, n, next[n]++);
      if (producer < 0) continue;
      if (state[producer] == 1)
        return mix_fail_internal("compile: the graph has a cycle through %s", ir->nodes[producer].op->name);
      if (state[producer] == 0) {
        state[producer] = 1;
        stack[depth++] = producer;
      }
    }
  }
  for (int i = 0; i < emitted; i++) {
    sorted[i] = ir->nodes[order[i]];
    for (int o = 0; o < sorted[i].output_count; o++) ir->values[sorted[i].first_output + o].node = i;
  }
  memcpy(ir->nodes, sorted, sizeof *sorted * (size_t)emitted);
  ir->node_count = emitted;
  return true;
}
