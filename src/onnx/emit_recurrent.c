/* Loops that are an LSTM, GRU or RNN of ONNX: the steps of LSTM, GRU and SimpleRNN (nn/layers/recurrent)
 * without a mask, whose weights are of a layer and whose inputs are projected before the loop. */
#include "onnx/emit.h"

#include "base/error.h"
#include "tensor/convert.h"
#include <mixtape/variable.h>
#include <string.h>

enum { MAX_GATES = 4 };

/* What is found of a cell. Values are those of the body or, of weights, outside. */
typedef struct cell {
  mix_onnx_emitter *e;
  const mix_ir_node *node;
  const mix_ir *body;
  const mix_scan_attributes *a;
  int64_t units;
  const char *recurrent, *activation; /* ONNX's names; recurrent NULL: it has none */
  int recurrent_kernel, inner_bias;   /* of the body; -1: none */
  int candidate_kernel;               /* of a GRU that resets before the product; -1: none */
} cell;

/* ---- values of a graph ---- */

static const mix_ir_node *maker(const mix_ir *ir, int value) {
  return &ir->nodes[mix_ir_producer(ir, value)];
}

static bool is_op(const mix_ir *ir, int value, const mix_op *op) {
  return !maker(ir, value)->source && maker(ir, value)->op == op;
}

/* Is it the op of two operands? They go to a and b. */
static bool is_binary(const mix_ir *ir, int value, const mix_op *op, int *a, int *b) {
  if (!is_op(ir, value, op)) return false;
  *a = maker(ir, value)->inputs[0];
  *b = maker(ir, value)->inputs[1];
  return true;
}

/* The number of the argument that a value of the body is; -1: it is none. */
static int argument_of(const cell *c, int value) {
  const mix_ir_node *node = maker(c->body, value);
  return node->source == MIX_IR_ARGUMENT ? node->index : -1;
}
/* The value outside that a value of the body is; -1: it changes from step to step. */
static int outside(const cell *c, int value) {
  const int argument = argument_of(c, value);
  return argument >= c->a->carries + c->a->inputs ? c->node->inputs[argument] : -1;
}
static bool is_row(const cell *c, int value) { return argument_of(c, value) == c->a->carries; }

/* The bias that is added, if any; `value` becomes what it is added to. */
static int take_bias(const mix_ir *ir, int *value) {
  int a, b;
  if (!is_binary(ir, *value, &mix_op_bias_add, &a, &b)) return -1;
  *value = a;
  return b;
}

/* Gate `number` of z, which is found or must be that. */
static bool is_gate(const cell *c, int value, int number, int *z) {
  if (!is_op(c->body, value, &mix_op_slice)) return false;
  const mix_ir_node *node = maker(c->body, value);
  const mix_slice_attributes *a = node->attributes;
  const int last = a->size.rank - 1;
  if (last != 1 || a->begin.dims[0] || a->begin.dims[1] != number * c->units || a->size.dims[1] != c->units)
    return false;
  if (*z < 0) *z = node->inputs[0];
  return *z == node->inputs[0];
}

static const char *activation_name(const mix_op *op) {
  static const struct {
    const mix_op *op;
    const char *name;
  } names[] = {{&mix_op_sigmoid, "Sigmoid"},
               {&mix_op_tanh, "Tanh"},
               {&mix_op_relu, "Relu"},
               {&mix_op_softsign, "Softsign"},
               {&mix_op_softplus, "Softplus"}};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (names[i].op == op) return names[i].name;
  return NULL;
}

/* The activation of a value, which is found or must be that; `x`: of what. */
static bool is_activated(const cell *c, int value, const char **name, int *x) {
  const mix_ir_node *node = maker(c->body, value);
  const char *found = node->source ? NULL : activation_name(node->op);
  if (!found || (*name && strcmp(*name, found))) return false;
  *name = found;
  *x = node->inputs[0];
  return true;
}

/* z = x + h R, with or without a bias. */
static bool is_state_product(cell *c, int value, int state) {
  int h;
  c->inner_bias = take_bias(c->body, &value);
  return is_binary(c->body, value, &mix_op_matmul, &h, &c->recurrent_kernel) && argument_of(c, h) == state;
}

/* ---- the cells ---- */

/* The bias comes last, after the state's product. */
static bool is_lstm(cell *c) {
  int o, tanh_c, f, i, g, z = -1, zo, zi, zf, zg, state, fc, ig, x, product, next = -1;
  const int h1 = c->body->results[0], c1 = c->body->results[1];
  if (!is_binary(c->body, h1, &mix_op_multiply, &o, &tanh_c) || !is_activated(c, o, &c->recurrent, &zo) ||
      !is_activated(c, tanh_c, &c->activation, &next) || next != c1 ||
      !is_binary(c->body, c1, &mix_op_add, &fc, &ig) ||
      !is_binary(c->body, fc, &mix_op_multiply, &f, &state) || argument_of(c, state) != 1 ||
      !is_binary(c->body, ig, &mix_op_multiply, &i, &g) || !is_activated(c, f, &c->recurrent, &zf) ||
      !is_activated(c, i, &c->recurrent, &zi) || !is_activated(c, g, &c->activation, &zg))
    return false;
  if (!is_gate(c, zi, 0, &z) || !is_gate(c, zf, 1, &z) || !is_gate(c, zg, 2, &z) || !is_gate(c, zo, 3, &z))
    return false;
  const int bias = take_bias(c->body, &z);
  if (!is_binary(c->body, z, &mix_op_add, &x, &product) || !is_row(c, x)) return false;
  const bool good = is_state_product(c, product, 0) && c->inner_bias < 0;
  c->inner_bias = bias;
  return good;
}

static bool is_one(const cell *c, int value) {
  const mix_ir_node *node = maker(c->body, value);
  if (!node->source)
    return (node->op->flags & MIX_OP_UNIFORM) && ((const mix_shape_attributes *)node->attributes)->value == 1;
  if (node->source != MIX_IR_CONSTANT || mix_shape_size(c->body->values[value].shape) != 1) return false;
  const void *data = mix_ir_map_constant(node);
  const bool one = data && mix_load_double(data, c->body->values[value].dtype, 0) == 1;
  if (data) mix_ir_unmap_constant(node);
  return one;
}

/* A gate of the inputs plus one of the state's product. */
static bool is_gate_sum(const cell *c, int value, int number, int *inner) {
  int x, s, row = -1;
  return is_binary(c->body, value, &mix_op_add, &x, &s) && is_gate(c, x, number, &row) && is_row(c, row) &&
         is_gate(c, s, number, inner);
}

/* The state's share of the candidate: r times its gate, or the product of r times the state. */
static bool is_candidate(cell *c, int value, int r, int *inner) {
  int reset, other, x, share, row = -1, state;
  if (!is_binary(c->body, value, &mix_op_add, &x, &share) || !is_gate(c, x, 2, &row) || !is_row(c, row))
    return false;
  if (is_binary(c->body, share, &mix_op_multiply, &reset, &other))
    return reset == r && is_gate(c, other, 2, inner);
  return is_binary(c->body, share, &mix_op_matmul, &other, &c->candidate_kernel) &&
         is_binary(c->body, other, &mix_op_multiply, &reset, &state) && reset == r &&
         argument_of(c, state) == 0;
}

/* The reset gate is found by the candidate, which multiplies it. */
static bool find_reset(const cell *c, int candidate, int *r) {
  int x, share, other;
  if (!is_binary(c->body, candidate, &mix_op_add, &x, &share)) return false;
  if (is_binary(c->body, share, &mix_op_matmul, &other, &x)) share = other;
  return is_binary(c->body, share, &mix_op_multiply, r, &other);
}

static bool is_gru(cell *c) {
  int kept, changed, z, state, rest, one, z2, candidate, zs, rs, cs, r, inner = -1;
  if (!is_binary(c->body, c->body->results[0], &mix_op_add, &kept, &changed) ||
      !is_binary(c->body, kept, &mix_op_multiply, &z, &state) || argument_of(c, state) != 0 ||
      !is_binary(c->body, changed, &mix_op_multiply, &rest, &candidate) ||
      !is_binary(c->body, rest, &mix_op_subtract, &one, &z2) || z2 != z || !is_one(c, one) ||
      !is_activated(c, z, &c->recurrent, &zs) || !is_activated(c, candidate, &c->activation, &cs) ||
      !find_reset(c, cs, &r) || !is_activated(c, r, &c->recurrent, &rs))
    return false;
  return is_gate_sum(c, zs, 0, &inner) && is_gate_sum(c, rs, 1, &inner) && is_candidate(c, cs, r, &inner) &&
         is_state_product(c, inner, 0);
}

static bool is_simple(cell *c) {
  int sum, x, product;
  return is_activated(c, c->body->results[0], &c->activation, &sum) &&
         is_binary(c->body, sum, &mix_op_add, &x, &product) && is_row(c, x) &&
         is_state_product(c, product, 0);
}

static const struct cell_kind {
  const char *op;
  int carries, gates;
  int order[MAX_GATES]; /* of our gates in ONNX's weights */
  bool (*is)(cell *c);
} kinds[] = {
    {"LSTM", 2, 4, {0, 3, 1, 2}, is_lstm}, {"GRU", 1, 3, {0, 1, 2}, is_gru}, {"RNN", 1, 1, {0}, is_simple}};

/* ---- weights ---- */

/* A weight before it is rounded; NULL without an error: it is computed in another way. */
static mix_tensor *weight_of(const mix_ir *ir, int value) {
  const mix_ir_node *node = maker(ir, value);
  if (node->source == MIX_IR_VARIABLE) return mix_variable_true_value(ir->variables[node->index].variable);
  if (node->source || node->input_count != 1) return NULL;
  mix_tensor *x = weight_of(ir, node->inputs[0]);
  const mix_slice_attributes *slice = node->attributes;
  if (!x || (node->op->flags & MIX_OP_READ) || node->op == &mix_op_cast) return x;
  if (node->op->flags & MIX_OP_VIEW) return mix_reshape(x, ir->values[value].shape);
  return node->op->flags & MIX_OP_SLICE ? mix_slice(x, slice->begin, slice->size) : NULL;
}

/* (rows, gates units) as (1, gates units, rows), gates in ONNX's order. */
static mix_tensor *gates_first(const struct cell_kind *kind, mix_tensor *x, int64_t units) {
  mix_tensor *parts[MAX_GATES];
  const int64_t rows = mix_tensor_shape(x).dims[0];
  for (int i = 0; i < kind->gates; i++)
    parts[i] = mix_slice(x, MIX_SHAPE(0, kind->order[i] * units), MIX_SHAPE(rows, units));
  x = kind->gates > 1 ? mix_concat(kind->gates, parts, 1) : x;
  return mix_expand_dims(mix_transpose(x, MIX_AXES(1, 0)), 0);
}

/* Biases of inputs and state, either of which may be NULL, as (1, 2 gates units). */
static mix_tensor *biases(const struct cell_kind *kind, mix_tensor *of_inputs, mix_tensor *of_state,
                          int64_t units) {
  mix_tensor *given[] = {of_inputs, of_state}, *parts[2];
  const int64_t count = kind->gates * units;
  for (int i = 0; i < 2; i++)
    parts[i] = given[i] ? mix_reshape(gates_first(kind, mix_reshape(given[i], MIX_SHAPE(1, count)), units),
                                      MIX_SHAPE(1, count))
                        : mix_fill(MIX_SHAPE(1, count), 0, mix_tensor_dtype(given[!i]));
  return mix_concat(2, parts, 1);
}

static const char *put_weight(cell *c, const char *what, mix_tensor *value, mix_dtype dtype) {
  mix_onnx_emitter *e = c->e;
  if (!value || mix_evaluate(1, &value) != MIX_OK) {
    e->failed = true;
    return "";
  }
  const mix_dtype from = mix_tensor_dtype(value), to = mix_onnx_written(e, e->keeps_weights ? from : dtype);
  const char *name = mix_onnx_add_tensor(
      e, mix_onnx_new_name(e, what),
      (mix_onnx_initializer){.dtype = to, .from = from, .shape = mix_tensor_shape(value), .value = value});
  return mix_onnx_cast(e, name, to, dtype);
}

/* ---- inputs ---- */

/* The inputs before their projection, (steps, batch, features), and what projects them. */
typedef struct projection {
  int x;
  mix_tensor *kernel, *bias; /* bias NULL: none */
} projection;

/* False: they come in another way, or an error is recorded. */
static bool find_projection(const cell *c, projection *p) {
  const mix_ir *ir = c->e->ir;
  int value = c->node->inputs[c->a->carries], x, kernel;
  const int bias = take_bias(ir, &value);
  if (bias < 0 && is_binary(ir, value, &mix_op_add, &x, &kernel) && ir->values[kernel].shape.rank < 3)
    return false;
  if (!is_op(ir, value, &mix_op_reshape) || ir->values[value].shape.rank != 3) return false;
  if (!is_binary(ir, maker(ir, value)->inputs[0], &mix_op_matmul, &x, &kernel)) return false;
  if (!is_op(ir, x, &mix_op_reshape)) return false;
  p->x = maker(ir, x)->inputs[0];
  p->kernel = weight_of(ir, kernel);
  p->bias = bias >= 0 ? weight_of(ir, bias) : NULL;
  const mix_shape shape = ir->values[p->x].shape, projected = ir->values[value].shape;
  return p->kernel && (bias < 0 || p->bias) && shape.rank == 3 && shape.dims[0] == projected.dims[0] &&
         shape.dims[1] == projected.dims[1];
}

/* ---- the whole ---- */

static bool fits(cell *c, const struct cell_kind *kind) {
  c->recurrent = c->activation = NULL;
  c->inner_bias = c->candidate_kernel = c->recurrent_kernel = -1;
  if (c->a->carries != kind->carries || !kind->is(c) || outside(c, c->recurrent_kernel) < 0) return false;
  if (c->inner_bias >= 0 && outside(c, c->inner_bias) < 0) return false;
  if (c->candidate_kernel >= 0 && outside(c, c->candidate_kernel) < 0) return false;
  for (int r = c->a->carries; r < c->body->result_count; r++)
    if (c->body->results[r] != c->body->results[0]) return false;
  return true;
}

static mix_tensor *weight_outside(const cell *c, int value) {
  return value < 0 ? NULL : weight_of(c->e->ir, outside(c, value));
}

static mix_tensor *recurrent_kernel(const cell *c) {
  mix_tensor *parts[] = {weight_outside(c, c->recurrent_kernel), weight_outside(c, c->candidate_kernel)};
  return c->candidate_kernel < 0 || !parts[0] || !parts[1] ? parts[0] : mix_concat(2, parts, 1);
}

static bool begins_with_zeros(const cell *c, int carry) {
  const mix_ir_node *node = maker(c->e->ir, c->node->inputs[carry]);
  return !node->source && (node->op->flags & MIX_OP_UNIFORM) &&
         ((const mix_shape_attributes *)node->attributes)->value == 0;
}

/* A first state as (1, batch, units); NULL: zeros. */
static const char *first_state(const cell *c, int carry) {
  const int64_t axis = 0;
  return begins_with_zeros(c, carry)
             ? NULL
             : mix_onnx_node2(c->e, "Unsqueeze", mix_onnx_operand(c->e, c->node, carry),
                              mix_onnx_int64s(c->e, 1, &axis));
}

static const char *squeezed(const cell *c, const char *x, int64_t axis) {
  return mix_onnx_node2(c->e, "Squeeze", x, mix_onnx_int64s(c->e, 1, &axis));
}

static void put_attributes(const cell *c, const struct cell_kind *kind) {
  const char *names[] = {c->recurrent, c->activation, c->activation};
  mix_onnx_int(c->e, "hidden_size", c->units);
  mix_onnx_text(c->e, "direction", c->a->reverse ? "reverse" : "forward");
  if (c->recurrent) mix_onnx_texts(c->e, "activations", kind->carries + 1, names);
  if (!c->recurrent) mix_onnx_texts(c->e, "activations", 1, &c->activation);
  if (c->recurrent && kind->carries == 1) mix_onnx_int(c->e, "linear_before_reset", c->candidate_kernel < 0);
}

static void put_cell(cell *c, const struct cell_kind *kind, const projection *p, mix_tensor *recurrent,
                     mix_tensor *inner_bias) {
  mix_onnx_emitter *e = c->e;
  const mix_dtype dtype = c->body->values[c->body->results[0]].dtype;
  const bool biased = p->bias || inner_bias;
  const char *operands[7] = {e->values[p->x],
                             put_weight(c, "W", gates_first(kind, p->kernel, c->units), dtype),
                             put_weight(c, "R", gates_first(kind, recurrent, c->units), dtype)},
             *results[3];
  if (biased) operands[3] = put_weight(c, "B", biases(kind, p->bias, inner_bias, c->units), dtype);
  int count = biased ? 4 : 3;
  for (int i = 0; i < kind->carries; i++)
    if ((operands[5 + i] = first_state(c, i))) count = 6 + i;
  put_attributes(c, kind);
  mix_onnx_nodes(e, kind->op, count, operands, 1 + kind->carries, results);
  for (int o = 0; o < c->node->output_count; o++) {
    const bool last = o < kind->carries;
    mix_onnx_result(e, c->node, o, squeezed(c, results[last ? 1 + o : 0], last ? 0 : 1));
  }
}

/* Finds out which cell a loop is, and what is before it. NULL: another, or an error is recorded. */
static const struct cell_kind *find(cell *c, projection *p) {
  const mix_ir *ir = c->e->ir;
  const mix_shape state = ir->values[c->node->inputs[0]].shape;
  const struct cell_kind *kind = NULL;
  if (c->a->inputs != 1 || c->a->carries < 1 || state.rank != 2 || ir != c->e->root) return NULL;
  c->units = state.dims[1];
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds && !kind; i++)
    if (fits(c, &kinds[i])) kind = &kinds[i];
  if (!kind || !find_projection(c, p) || !recurrent_kernel(c)) return NULL;
  return c->inner_bias >= 0 && !weight_outside(c, c->inner_bias) ? NULL : kind;
}

int mix_onnx_recurrent_needs(mix_onnx_emitter *e, const mix_ir_node *node,
                             int needs[MIX_ONNX_RECURRENT_NEEDS]) {
  cell c = {.e = e, .node = node, .body = node->body, .a = node->attributes};
  projection p = {0};
  int count = 0;
  if (!find(&c, &p)) return 0;
  needs[count++] = p.x;
  for (int i = 0; i < c.a->carries; i++)
    if (!begins_with_zeros(&c, i)) needs[count++] = node->inputs[i];
  return count;
}

bool mix_onnx_emit_recurrent(mix_onnx_emitter *e, const mix_ir_node *node) {
  cell c = {.e = e, .node = node, .body = node->body, .a = node->attributes};
  projection p = {0};
  const struct cell_kind *kind = find(&c, &p);
  if (kind) put_cell(&c, kind, &p, recurrent_kernel(&c), weight_outside(&c, c.inner_bias));
  return kind;
}
