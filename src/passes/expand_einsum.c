/* expand_einsum: an Einstein sum becomes a product of matrices. The labels of both operands and the result
 * are a batch, those of one operand are rows or columns, the others are summed over. An operand is transposed
 * unless its labels stand together in that order; a last dimension stays last, so that rows are copied
 * whole. Without a sum it is an element-wise product. The rewrite has seen the sum as one op, as TensorFlow's
 * does. */
#include "passes/passes.h"

/* Labels of one kind, in order. */
typedef struct group {
  mix_shape labels;
  int64_t size; /* product of their dimensions */
} group;

typedef struct expansion {
  mix_ir *ir;
  int node;
  mix_shape labels[2], result; /* of the operands, the first one with the rows */
  int values[2];
  group batch, own[2], summed;
} expansion;

static int64_t size_of(const expansion *e, int64_t label) {
  for (int k = 0; k < 2; k++) {
    const int at = mix_einsum_find(&e->labels[k], label);
    if (at >= 0) return e->ir->values[e->values[k]].shape.dims[at];
  }
  return 1;
}

static void add_label(const expansion *e, group *g, int64_t label) {
  g->labels.dims[g->labels.rank++] = label;
  g->size *= size_of(e, label);
}

static void sort_labels(expansion *e) {
  e->batch = e->own[0] = e->own[1] = e->summed = (group){.size = 1};
  for (int i = 0; i < e->result.rank; i++) {
    const int64_t label = e->result.dims[i];
    const bool in_first = mix_einsum_find(&e->labels[0], label) >= 0,
               in_second = mix_einsum_find(&e->labels[1], label) >= 0;
    add_label(e, in_first && in_second ? &e->batch : &e->own[in_second], label);
  }
  for (int i = 0; i < e->labels[0].rank; i++)
    if (mix_einsum_find(&e->result, e->labels[0].dims[i]) < 0) add_label(e, &e->summed, e->labels[0].dims[i]);
}

/* The operand whose labels the result has first becomes the one with the rows. */
static void choose_rows(expansion *e) {
  for (int i = 0; i < e->result.rank; i++) {
    const bool in_first = mix_einsum_find(&e->labels[0], e->result.dims[i]) >= 0,
               in_second = mix_einsum_find(&e->labels[1], e->result.dims[i]) >= 0;
    if (in_first && in_second) continue;
    if (in_second) {
      const mix_shape labels = e->labels[0];
      const int value = e->values[0];
      e->labels[0] = e->labels[1], e->values[0] = e->values[1];
      e->labels[1] = labels, e->values[1] = value;
    }
    return;
  }
}

/* A node on one value; -1: out of memory. */
static int add_view(const expansion *e, const mix_op *op, const void *attributes, int value,
                    mix_shape shape) {
  const mix_type type = {.dtype = e->ir->values[value].dtype, .shape = shape};
  const int node = mix_ir_add(e->ir, op, attributes, 1, &value, 1, &type);
  if (node < 0) return -1;
  e->ir->nodes[node].scope = e->ir->nodes[e->node].scope;
  e->ir->nodes[node].keep = e->ir->nodes[e->node].keep;
  return e->ir->nodes[node].first_output;
}

static int transposed(const expansion *e, int value, const mix_shape *labels, const mix_shape *order) {
  mix_transpose_attributes *attributes = mix_ir_alloc(e->ir, sizeof *attributes);
  const mix_shape from = e->ir->values[value].shape;
  mix_shape to = {.rank = order->rank};
  bool moves = false;
  for (int i = 0; attributes && i < MIX_MAX_RANK; i++) {
    const int at = i < order->rank ? mix_einsum_find(labels, order->dims[i]) : i;
    attributes->permutation[i] = at;
    if (i < order->rank) to.dims[i] = from.dims[at];
    moves |= at != i;
  }
  if (!attributes) return -1;
  return moves ? add_view(e, &mix_op_transpose, attributes, value, to) : value;
}

static int reshaped(const expansion *e, int value, mix_shape shape) {
  mix_shape_attributes *attributes = mix_ir_alloc(e->ir, sizeof *attributes);
  if (!attributes) return -1;
  attributes->shape = shape;
  const mix_shape now = e->ir->values[value].shape;
  bool same = now.rank == shape.rank;
  for (int i = 0; same && i < now.rank; i++) same = now.dims[i] == shape.dims[i];
  return same ? value : add_view(e, &mix_op_reshape, attributes, value, shape);
}

static void append(mix_shape *labels, const group *g) {
  for (int i = 0; i < g->labels.rank; i++) labels->dims[labels->rank++] = g->labels.dims[i];
}

static mix_shape order_of(const group *first, const group *second, const group *third) {
  mix_shape order = {.rank = 0};
  append(&order, first);
  append(&order, second);
  if (third) append(&order, third);
  return order;
}

/* Operand k as matrices (batch, own, summed), or (batch, summed, own): *summed_first. */
static int matrices(const expansion *e, int k, bool *summed_first) {
  const mix_shape *labels = &e->labels[k];
  const int64_t last = labels->rank ? labels->dims[labels->rank - 1] : -1;
  *summed_first = mix_einsum_find(&e->summed.labels, last) < 0;
  const group *own = &e->own[k], *second = *summed_first ? &e->summed : own,
              *third = *summed_first ? own : &e->summed;
  const mix_shape order = order_of(&e->batch, second, third);
  const int value = transposed(e, e->values[k], labels, &order);
  mix_shape shape = {.rank = 0};
  if (e->batch.labels.rank) shape.dims[shape.rank++] = e->batch.size;
  shape.dims[shape.rank++] = second->size;
  shape.dims[shape.rank++] = third->size;
  return value < 0 ? -1 : reshaped(e, value, shape);
}

/* The dimensions of these labels. */
static mix_shape shape_of(const expansion *e, const mix_shape *labels) {
  mix_shape shape = {.rank = labels->rank};
  for (int i = 0; i < labels->rank; i++) shape.dims[i] = size_of(e, labels->dims[i]);
  return shape;
}

/* The node becomes the op of the value, whose node goes. */
static void take_place(const expansion *e, int value) {
  mix_ir_node *node = &e->ir->nodes[e->node], *made = &e->ir->nodes[mix_ir_producer(e->ir, value)];
  node->op = made->op;
  node->attributes = made->attributes;
  node->inputs = made->inputs;
  node->input_count = made->input_count;
  made->dead = true;
}

static bool as_product(expansion *e) {
  bool first_transposed, second_transposed;
  const int a = matrices(e, 0, &first_transposed), b = a < 0 ? -1 : matrices(e, 1, &second_transposed);
  mix_matmul_attributes *flags = b < 0 ? NULL : mix_ir_alloc(e->ir, sizeof *flags);
  if (!flags) return false;
  flags->transpose_a = first_transposed;
  flags->transpose_b = !second_transposed;
  const bool batch = e->batch.labels.rank > 0;
  mix_type type = {.dtype = e->ir->values[a].dtype, .shape = {.rank = 0}};
  if (batch) type.shape.dims[type.shape.rank++] = e->batch.size;
  for (int k = 0; k < 2; k++) type.shape.dims[type.shape.rank++] = e->own[k].size;
  const int node = mix_ir_add(e->ir, batch ? &mix_op_batch_matmul : &mix_op_matmul, flags, 2,
                              (const int[]){a, b}, 1, &type);
  if (node < 0) return false;
  e->ir->nodes[node].scope = e->ir->nodes[e->node].scope;
  e->ir->nodes[node].keep = e->ir->nodes[e->node].keep;
  e->ir->nodes[node].backward = e->ir->nodes[e->node].backward;
  const mix_shape order = order_of(&e->batch, &e->own[0], &e->own[1]);
  int value = reshaped(e, e->ir->nodes[node].first_output, shape_of(e, &order));
  if (value >= 0) value = transposed(e, value, &order, &e->result);
  if (value < 0) return false;
  take_place(e, value);
  return true;
}

/* Operand k with the dimensions of the result, 1 where it has none. */
static int aligned(const expansion *e, int k) {
  mix_shape order = {.rank = 0}, shape = {.rank = e->result.rank};
  for (int i = 0; i < e->result.rank; i++) {
    const bool has = mix_einsum_find(&e->labels[k], e->result.dims[i]) >= 0;
    if (has) order.dims[order.rank++] = e->result.dims[i];
    shape.dims[i] = has ? size_of(e, e->result.dims[i]) : 1;
  }
  const int value = transposed(e, e->values[k], &e->labels[k], &order);
  return value < 0 ? -1 : reshaped(e, value, shape);
}

static bool as_multiplication(const expansion *e) {
  const int a = aligned(e, 0), b = a < 0 ? -1 : aligned(e, 1);
  if (b < 0) return false;
  mix_ir_node *node = &e->ir->nodes[e->node];
  node->op = &mix_op_multiply;
  node->attributes = NULL;
  node->inputs[0] = a;
  node->inputs[1] = b;
  return true;
}

/* Nodes that are added stand at the end of the array until it is sorted. */
static bool expand(mix_ir *ir, int n) {
  const mix_ir_node *node = &ir->nodes[n];
  const mix_einsum_attributes *labels = node->attributes;
  expansion e = {.ir = ir,
                 .node = n,
                 .labels = {labels->a, labels->b},
                 .result = labels->result,
                 .values = {node->inputs[0], node->inputs[1]}};
  choose_rows(&e);
  sort_labels(&e);
  return e.summed.labels.rank ? as_product(&e) : as_multiplication(&e);
}

bool mix_pass_expand_einsum(mix_ir *ir) {
  const int count = ir->node_count;
  bool any = false;
  for (int n = 0; n < count; n++) {
    if (ir->nodes[n].dead || ir->nodes[n].source || !(ir->nodes[n].op->flags & MIX_OP_EINSUM)) continue;
    if (!expand(ir, n)) return false;
    any = true;
  }
  return !any || mix_ir_sort(ir);
}
