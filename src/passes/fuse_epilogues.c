/* fuse_epilogues: a program that reads a product over its whole space becomes the epilogue of the product.
 * The kernel runs it on each block of the result while the block is in cache. It may end in a finite check,
 * such as that of a gradient before its update. */
#include "passes/passes.h"

#include "tensor/shape.h"
#include <string.h>

/* One walk over the nodes in order. A fused node takes the position of its program, which keeps the order
 * valid unless the product itself has a user before that position. In that case the array is sorted and the
 * walk starts again. A program that only tests the product, and reads no later value, leaves it in place: its
 * operands need not live longer. */
typedef struct joining {
  mix_ir *ir;
  int *uses, *first_use;  /* by value: number of uses, and the first user */
  int *becomes;           /* by value */
  int *seen, *stack;      /* seen: by node, the latest search that visited it */
  int *collective_before; /* by node: it stands after this one, as if it read it; -1: none */
  int search;
  bool unordered;
} joining;

/* The product behind a value, or -1. A reshape may stand between (a Dense layer on more than two dimensions,
 * the gradient of Flatten). */
static int product_behind(const mix_ir *ir, int value) {
  const mix_ir_node *producer = &ir->nodes[mix_ir_producer(ir, value)];
  if ((producer->op->flags & MIX_OP_VIEW) && !producer->source) {
    value = producer->inputs[0];
    producer = &ir->nodes[mix_ir_producer(ir, value)];
  }
  const mix_contraction *contraction = producer->op->contraction;
  bool joins = !producer->dead && !producer->source && contraction && contraction->epilogue &&
               !producer->program && mix_dtype_is_floating(ir->values[value].dtype);
  return joins ? value : -1;
}

/* Pushes the producers of the node's operands that stand at `target` or later, except that of value
 * `except`. */
static void push_producers(joining *j, int n, int except, int target, int *depth) {
  const mix_ir_node *node = &j->ir->nodes[n];
  for (int i = 0; i < node->input_count + 2; i++) {
    if (i < node->input_count && node->inputs[i] == except) continue;
    int producer = mix_ir_predecessor(j->ir, j->collective_before, n, i);
    if (producer < target || j->seen[producer] == j->search) continue;
    j->seen[producer] = j->search;
    j->stack[(*depth)++] = producer;
  }
}

/* Does any operand of node `from`, other than value `except`, depend on node `target`? */
static bool depends(joining *j, int from, int except, int target) {
  int depth = 0;
  j->search++;
  push_producers(j, from, except, target, &depth);
  while (depth) {
    int n = j->stack[--depth];
    if (n == target) return true;
    push_producers(j, n, -1, target, &depth);
  }
  return false;
}

/* Does the backend run the program as the epilogue of the product that computes value `raw`? */
static bool supports_epilogue(const mix_ir *ir, int raw, const mix_program *program) {
  const mix_product product = mix_ir_product(ir, &ir->nodes[mix_ir_producer(ir, raw)]);
  const mix_backend *backend = ir->context->backend;
  return backend->supports_epilogue && backend->supports_epilogue(ir->context, &product, program);
}

/* The next load after `load` that is a whole product on which no other load of the program depends, or -1. */
static int product_load(joining *j, int fused_index, mix_shape space, int load) {
  const mix_ir *ir = j->ir;
  const mix_ir_node *fused = &ir->nodes[fused_index];
  while (++load < fused->program->load_count) {
    int value = fused->inputs[fused->program->loads[load].input];
    if (!mix_shape_equal(ir->values[value].shape, space)) continue;
    int raw = product_behind(ir, value);
    if (raw >= 0 && supports_epilogue(ir, raw, fused->program) &&
        !depends(j, fused_index, value, mix_ir_producer(ir, raw)))
      return load;
  }
  return -1;
}

/* Rewrites the loads over the rows and columns of the product. Whole rows merge or split where the strides of
 * every load allow it. */
static bool as_matrix(const mix_program *old, int64_t rows, int64_t columns, mix_program_load *loads) {
  for (int l = 0; l < old->load_count; l++) {
    const int64_t *s = old->loads[l].strides;
    loads[l] = old->loads[l];
    memset(loads[l].strides, 0, sizeof loads[l].strides);
    if (old->rank == 1) /* contiguous, or one element broadcast */
      loads[l].strides[0] = columns == 1 || rows > 1 ? s[0] * columns : 0, loads[l].strides[1] = s[0];
    else
      loads[l].strides[0] = s[0], loads[l].strides[1] = s[1];
  }
  return old->rank == 1 || (old->rank == 2 && old->dims[0] == rows && old->dims[1] == columns);
}

mix_program *mix_epilogue_program(mix_ir *ir, const mix_program *old, int load, mix_shape matrix,
                                  bool *fits) {
  mix_program *program = mix_ir_alloc(ir, sizeof *program);
  *fits = true;
  if (!program) return NULL;
  *program = *old;
  program->loads = mix_ir_array(ir, old->load_count + 1, sizeof *program->loads);
  program->stores = mix_ir_array(ir, old->store_count + 1, sizeof *program->stores);
  if (!program->loads || !program->stores) return NULL;
  matrix = mix_epilogue_space(matrix);
  if (!(*fits = as_matrix(old, matrix.dims[0], matrix.dims[1], program->loads))) return NULL;
  memcpy(program->stores, old->stores, sizeof *old->stores * (size_t)old->store_count);
  program->rank = 2;
  program->dims[0] = matrix.dims[0];
  program->dims[1] = matrix.dims[1];
  for (int l = 0, input = MIX_CONTRACTED; l < old->load_count; l++)
    program->loads[l].input = l == load ? MIX_FROM_ACCUMULATOR : input++;
  return program;
}

/* Users of `old` now read `fresh`, which node `at` defines. */
static void replace(joining *j, int old, int fresh, int own_uses, int at) {
  j->becomes[old] = fresh;
  j->uses[fresh] = j->uses[old] - own_uses;
  j->first_use[fresh] = j->first_use[old];
  if (own_uses && j->first_use[old] < at) j->unordered = true;
}

static bool known_before(const mix_ir *ir, int count, const int *values, int node) {
  for (int i = 0; i < count; i++)
    if (mix_ir_producer(ir, values[i]) >= node) return false;
  return true;
}

/* False: out of memory. *joined says whether the epilogue was fused. */
static bool join(joining *j, int fused_index, int load, bool *joined) {
  mix_ir *ir = j->ir;
  mix_ir_node fused = ir->nodes[fused_index];
  const mix_program *old = fused.program;
  int value = fused.inputs[old->loads[load].input], raw = product_behind(ir, value),
      product_index = mix_ir_producer(ir, raw);
  mix_ir_node product = ir->nodes[product_index];
  mix_program *program = mix_epilogue_program(ir, old, load, ir->values[raw].shape, joined);
  if (!program) return !*joined;
  int *inputs = mix_ir_ints(ir, fused.input_count + MIX_CONTRACTED);
  mix_type *outputs = mix_ir_array(ir, fused.output_count + 1, sizeof *outputs);
  if (!inputs || !outputs) return false;
  int input_count = MIX_CONTRACTED, output_count = fused.output_count;
  inputs[0] = product.inputs[0];
  inputs[1] = product.inputs[1];
  for (int l = 0; l < old->load_count; l++)
    if (l != load) inputs[input_count++] = fused.inputs[old->loads[l].input];
  for (int i = 0; i < fused.output_count; i++) outputs[i] = ir->values[fused.first_output + i].type;
  bool raw_needed = j->uses[raw] > 1 || j->uses[value] > 1;
  if (raw_needed) {
    program->stores[program->store_count++] = (mix_program_store){.output = output_count, .reg = load};
    outputs[output_count++] = ir->values[raw].type;
  } else if (value != raw) {
    ir->nodes[mix_ir_producer(ir, value)].dead = true;
  }
  int made = mix_ir_add(ir, product.op, product.attributes, input_count, inputs, output_count, outputs);
  if (made < 0) return false;
  ir->nodes[made].program = program;
  ir->nodes[made].scope = product.scope;
  ir->nodes[made].keep = product.keep;
  const bool stays = !old->store_count &&
                     known_before(ir, input_count - MIX_CONTRACTED, inputs + MIX_CONTRACTED, product_index);
  const int at = stays ? product_index : fused_index;
  ir->nodes[fused_index].dead = ir->nodes[product_index].dead = true;
  ir->nodes[at] = ir->nodes[made];
  ir->nodes[made].dead = true;
  int first = ir->nodes[at].first_output;
  for (int i = 0; i < output_count; i++) ir->values[first + i].node = at;
  for (int i = 0; i < fused.output_count; i++) replace(j, fused.first_output + i, first + i, 0, at);
  if (raw_needed) replace(j, raw, first + output_count - 1, 1, at);
  return true;
}

/* The iteration space of a program: the shape of its stores, or of its largest operand if it only tests. */
static mix_shape space_of(const mix_ir *ir, const mix_ir_node *fused) {
  const mix_program *program = fused->program;
  if (program->store_count) return ir->values[fused->first_output + program->stores[0].output].shape;
  mix_shape space = {.rank = 0};
  for (int l = 0; l < program->load_count; l++) {
    mix_shape shape = ir->values[fused->inputs[program->loads[l].input]].shape;
    if (mix_shape_broadcasts_to(space, shape)) space = shape;
  }
  return space;
}

/* Fuses the program into the first product that accepts it. */
static bool try_products(joining *j, int n) {
  mix_ir *ir = j->ir;
  const mix_ir_node *fused = &ir->nodes[n];
  if (fused->dead || !(fused->op->flags & MIX_OP_PROGRAM) || fused->guard >= 0) return true;
  if (!(fused->program->store_count || fused->program->reduction)) return true;
  mix_shape space = space_of(ir, fused);
  bool joined = false;
  for (int load = -1; space.rank >= 2 && !joined && (load = product_load(j, n, space, load)) >= 0;)
    if (!join(j, n, load, &joined)) return false;
  return true;
}

static bool tables_make(mix_ir *ir, joining *j) {
  int values = ir->value_count, nodes = ir->node_count;
  for (int n = 0; n < ir->node_count; n++) /* space for the results of fused nodes */
    if (ir->nodes[n].op->flags & MIX_OP_PROGRAM) values += ir->nodes[n].output_count + 1, nodes++;
  *j = (joining){.ir = ir,
                 .uses = mix_ir_ints(ir, values + 1),
                 .first_use = mix_ir_ints(ir, values + 1),
                 .becomes = mix_ir_ints(ir, values + 1),
                 .seen = mix_ir_ints(ir, nodes + 1),
                 .stack = mix_ir_ints(ir, nodes + 1),
                 .collective_before = mix_ir_collective_before(ir)};
  const int *uses = mix_ir_uses(ir);
  if (!j->uses || !j->first_use || !j->becomes || !j->seen || !j->stack || !j->collective_before || !uses)
    return false;
  memcpy(j->uses, uses, sizeof(int) * (size_t)ir->value_count);
  for (int v = 0; v < values; v++) j->becomes[v] = v, j->first_use[v] = nodes;
  for (int n = ir->node_count - 1; n >= 0; n--)
    for (int i = 0; i < ir->nodes[n].input_count && !ir->nodes[n].dead; i++)
      j->first_use[ir->nodes[n].inputs[i]] = n;
  return true;
}

static void apply(joining *j) {
  mix_ir *ir = j->ir;
  for (int n = 0; n < ir->node_count; n++) {
    mix_ir_node *node = &ir->nodes[n];
    for (int i = 0; i < node->input_count; i++) node->inputs[i] = j->becomes[node->inputs[i]];
    if (node->guard >= 0) node->guard = j->becomes[node->guard];
  }
  for (int i = 0; i < ir->result_count; i++) ir->results[i] = j->becomes[ir->results[i]];
  for (int i = 0; i < ir->variable_count; i++) {
    mix_ir_variable *variable = &ir->variables[i];
    variable->exit = j->becomes[variable->exit];
    if (variable->guard >= 0) variable->guard = j->becomes[variable->guard];
  }
}

bool mix_pass_fuse_epilogues(mix_ir *ir) {
  joining j;
  do {
    if (!tables_make(ir, &j)) return false;
    for (int n = 0, count = ir->node_count; n < count && !j.unordered; n++) {
      mix_ir_node *node = &ir->nodes[n];
      for (int i = 0; i < node->input_count; i++) node->inputs[i] = j.becomes[node->inputs[i]];
      if (node->guard >= 0) node->guard = j.becomes[node->guard];
      if (!try_products(&j, n)) return false;
    }
    apply(&j);
    if (!mix_ir_sort(ir)) return false;
  } while (j.unordered);
  return true;
}
