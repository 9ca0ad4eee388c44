/* Follows the batch through a captured graph, by the trait row_independent. */
#include "compile/row_independence.h"

#include "base/alloc.h"
#include "base/error.h"
#include <stdio.h>

/* What the axis 0 of a value is. Where a reshape joins axes, k of its rows, one after the other, stand for
 * one row of the batch; what keeps its rows keeps these too. */
typedef enum axis_kind {
  NO_BATCH,
  BATCH,    /* a row (or k) for each row of the batch, computed from it */
  REPEATED, /* for each row of the batch the same: it stands beside the batch, whatever its number of rows */
  /* The batch is behind the steps of a loop: axes (steps, batch, ...), or both joined. A row for each pair.
   */
  STEPS
} axis_kind;

typedef struct check {
  const mix_ir *ir;
  int64_t rows;
  axis_kind *kinds;           /* by value */
  int64_t *steps;             /* by value of kind STEPS: how many */
  const axis_kind *arguments; /* of a body: the kinds of its arguments; NULL: no body */
  /* Of the operands of a node. */
  mix_shape *shapes;
  bool *batched;
} check;

/* "reduce_sum in layer 'norm'" */
static const char *name_of(const mix_ir_node *node, char *text, size_t size) {
  snprintf(text, size, "%s%s%s%s", node->op->name, node->scope ? " in layer '" : "",
           node->scope ? node->scope : "", node->scope ? "'" : "");
  return text;
}

static bool fail_node(const check *c, const mix_ir_node *node) {
  char name[256];
  return mix_fail_value(
      "function_call: %s: %s mixes the rows of the batch; with .batch = MIX_ANY row i of every value "
      "depends on row i of the arguments alone; leave .batch out",
      c->ir->name, name_of(node, name, sizeof name));
}

static bool fail_operand(const check *c, const mix_ir_node *node, int operand) {
  char name[256], maker[256];
  const mix_ir_node *made = &c->ir->nodes[mix_ir_producer(c->ir, node->inputs[operand])];
  const char *source = made->source == MIX_IR_COMPUTED   ? name_of(made, maker, sizeof maker)
                       : made->source == MIX_IR_VARIABLE ? "a variable"
                                                         : "a constant";
  return mix_fail_value(
      "function_call: %s: operand %d of %s, %s, has a row of its own for each of the %lld rows of the "
      "batch; with .batch = MIX_ANY row i of every value depends on row i of the arguments alone; leave "
      ".batch out",
      c->ir->name, operand, name_of(node, name, sizeof name), source, (long long)c->rows);
}

static bool holds_batch(const check *c, mix_shape shape) {
  return shape.rank > 0 && (c->rows ? shape.dims[0] % c->rows == 0 : shape.dims[0] == 0);
}

/* The rows of a value of kind STEPS as axis 0 of its shape; rank 0: they are not. */
static mix_shape join_steps(const check *c, mix_shape shape, int64_t steps) {
  mix_shape joined = {.rank = shape.rank - 1, .dims = {steps * c->rows}};
  if (shape.rank >= 1 && shape.dims[0] == steps * c->rows) return shape;
  if (shape.rank < 2 || shape.dims[0] != steps || shape.dims[1] != c->rows) return (mix_shape){.rank = 0};
  for (int i = 1; i < joined.rank; i++) joined.dims[i] = shape.dims[i + 1];
  return joined;
}

static bool swaps_first_axes(const mix_ir_node *node) {
  const mix_transpose_attributes *attributes = node->attributes;
  return (node->op->flags & MIX_OP_TRANSPOSE) && attributes->permutation[0] == 1 &&
         attributes->permutation[1] == 0;
}

/* The batch is axis 0 of every result if it is that of the operands in `batched`. */
static bool keeps_rows(const check *c, const mix_ir_node *node) {
  if (node->op->flags & MIX_OP_VIEW) /* the same elements in the same order */
    return holds_batch(c, c->shapes[0]) && holds_batch(c, c->ir->values[node->first_output].shape);
  const mix_row_query query = {.attributes = node->attributes,
                               .input_count = node->input_count,
                               .inputs = c->shapes,
                               .batched = c->batched,
                               .result = c->ir->values[node->first_output].shape};
  return node->op->row_independent && node->op->row_independent(&query);
}

/* Would it be along the batch, if it had one? */
static bool lies_along(const check *c, const mix_ir_node *node, int operand) {
  const mix_shape shape = c->shapes[operand], result = c->ir->values[node->first_output].shape;
  if (c->batched[operand] || !shape.rank || !result.rank || shape.dims[0] != result.dims[0] || c->rows == 1)
    return false;
  c->batched[operand] = true;
  const bool along = keeps_rows(c, node);
  c->batched[operand] = false;
  return along;
}

/* An operand with rows of its own that lies along the batch; -1: none. */
static int operand_with_rows(const check *c, const mix_ir_node *node) {
  for (int i = 0; i < node->input_count; i++)
    if (c->kinds[node->inputs[i]] != REPEATED && lies_along(c, node, i)) return i;
  return -1;
}

/* Marks the operands of a kind; the number of those marked. */
static int mark(const check *c, const mix_ir_node *node, axis_kind kind) {
  int marked = 0;
  for (int i = 0; i < node->input_count; i++) {
    c->shapes[i] = c->ir->values[node->inputs[i]].shape;
    marked += c->batched[i] = c->kinds[node->inputs[i]] == kind;
  }
  return marked;
}

/* Of a node without the batch: are the rows of its result equal? */
static bool repeats(const check *c, const mix_ir_node *node) {
  const mix_shape shape = c->ir->values[node->first_output].shape;
  if (shape.rank < 1 || node->source) return false;
  if (node->op->flags & MIX_OP_UNIFORM) return true;
  if (node->op->flags & MIX_OP_BROADCAST)
    return c->shapes[0].rank < shape.rank || c->shapes[0].dims[0] == 1 ||
           c->kinds[node->inputs[0]] == REPEATED;
  return mark(c, node, REPEATED) && keeps_rows(c, node) && operand_with_rows(c, node) < 0;
}

/* ---- steps of loops ---- */

static void set_kind(const check *c, int value, axis_kind kind, int64_t steps) {
  c->kinds[value] = kind;
  c->steps[value] = steps;
}

/* (batch, steps, ...) to (steps, batch, ...), or back. False: something else. */
static bool follow_swap(const check *c, const mix_ir_node *node) {
  if (!swaps_first_axes(node)) return false;
  const mix_shape shape = c->ir->values[node->inputs[0]].shape;
  const axis_kind kind = c->kinds[node->inputs[0]];
  if (kind == BATCH && shape.dims[0] == c->rows)
    return set_kind(c, node->first_output, STEPS, shape.dims[1]), true;
  if (kind != STEPS || shape.dims[0] != c->steps[node->inputs[0]] || shape.dims[1] != c->rows) return false;
  return set_kind(c, node->first_output, BATCH, 0), true;
}

/* Its operands of kind STEPS, with joined axes, are the batch of an op that keeps rows. */
static bool follow_steps(const check *c, const mix_ir_node *node) {
  int64_t steps = 0;
  const mix_shape own = c->ir->values[node->first_output].shape;
  for (int i = 0; i < node->input_count; i++)
    if (c->batched[i]) steps = c->steps[node->inputs[i]];
  const mix_shape result = join_steps(c, own, steps);
  bool keeps = result.rank > 0 && node->output_count == 1;
  for (int i = 0; i < node->input_count && keeps; i++) {
    const int value = node->inputs[i];
    if (c->batched[i]) {
      c->shapes[i] = join_steps(c, c->shapes[i], steps);
      keeps = c->shapes[i].rank > 0 && c->steps[value] == steps;
    } else {
      keeps = c->kinds[value] == NO_BATCH && (c->shapes[i].rank <= result.rank || own.rank == result.rank);
    }
  }
  const mix_row_query query = {.attributes = node->attributes,
                               .input_count = node->input_count,
                               .inputs = c->shapes,
                               .batched = c->batched,
                               .result = result};
  if (keeps && !(node->op->flags & MIX_OP_VIEW))
    keeps = node->op->row_independent && node->op->row_independent(&query);
  if (!keeps) return fail_node(c, node);
  return set_kind(c, node->first_output, STEPS, steps), true;
}

static bool follow(const check *c, const mix_ir_node *node);

/* A step of a loop: the carry and step i of the inputs have the batch as axis 0. */
static bool follow_body(const check *c, const mix_ir_node *node, const axis_kind *arguments,
                        axis_kind *results) {
  const mix_ir *body = node->body;
  int operands = 1;
  for (int n = 0; n < body->node_count; n++)
    if (body->nodes[n].input_count > operands) operands = body->nodes[n].input_count;
  check inside = {.ir = body, .rows = c->rows, .arguments = arguments};
  inside.kinds = mix_calloc((size_t)body->value_count + 1, sizeof *inside.kinds);
  inside.steps = mix_calloc((size_t)body->value_count + 1, sizeof *inside.steps);
  inside.shapes = mix_calloc((size_t)operands, sizeof *inside.shapes);
  inside.batched = mix_calloc((size_t)operands, sizeof *inside.batched);
  bool good = inside.kinds && inside.steps && inside.shapes && inside.batched;
  for (int n = 0; n < body->node_count && good; n++) good = follow(&inside, &body->nodes[n]);
  for (int r = 0; r < body->result_count && good; r++) results[r] = inside.kinds[body->results[r]];
  mix_free(inside.kinds);
  mix_free(inside.steps);
  mix_free(inside.shapes);
  mix_free(inside.batched);
  return good;
}

static bool has_one_row_each(const check *c, mix_shape shape, int axis) {
  return shape.rank > axis && shape.dims[axis] == c->rows;
}

/* The kinds of the arguments of one step from those of the operands. */
static bool find_arguments(const check *c, const mix_ir_node *node, axis_kind *arguments) {
  const mix_scan_attributes *a = node->attributes;
  for (int i = 0; i < node->input_count; i++) {
    const axis_kind kind = c->kinds[node->inputs[i]];
    const mix_shape shape = c->ir->values[node->inputs[i]].shape;
    const bool carry = i < a->carries, stacked = !carry && i < a->carries + a->inputs;
    arguments[i] = kind;
    if (carry && kind == REPEATED) arguments[i] = BATCH;
    if (stacked && kind == STEPS && c->steps[node->inputs[i]] == a->steps) arguments[i] = BATCH;
    if (arguments[i] == STEPS || (stacked && kind != STEPS && kind != NO_BATCH) ||
        (arguments[i] == BATCH && !has_one_row_each(c, shape, stacked)))
      return fail_node(c, node);
  }
  return true;
}

static bool follow_loop(const check *c, const mix_ir_node *node) {
  const mix_scan_attributes *a = node->attributes;
  axis_kind *arguments = mix_calloc((size_t)(node->input_count + node->output_count) + 1, sizeof *arguments);
  axis_kind *results = arguments + node->input_count;
  bool good = arguments && find_arguments(c, node, arguments) && follow_body(c, node, arguments, results);
  for (int o = 0; o < node->output_count && good; o++) {
    const bool carry = o < a->carries, batch = results[o] == BATCH || (carry && results[o] == REPEATED);
    const mix_shape one = node->body->values[node->body->results[o]].shape;
    if ((results[o] != NO_BATCH && !batch) || (carry && batch != (arguments[o] == BATCH)) ||
        (batch && !has_one_row_each(c, one, 0)))
      good = fail_node(c, node);
    set_kind(c, node->first_output + o, !batch ? NO_BATCH : carry ? BATCH : STEPS, a->steps);
  }
  mix_free(arguments);
  return good;
}

/* ---- nodes ---- */

static axis_kind argument_kind(const check *c, const mix_ir_node *node) {
  if (c->arguments) return c->arguments[node->index];
  return c->ir->values[node->first_output].shape.rank > 0 ? BATCH : NO_BATCH;
}

static bool follow(const check *c, const mix_ir_node *node) {
  axis_kind kind = NO_BATCH;
  if (node->op->flags & MIX_OP_LOOP) return follow_loop(c, node);
  if (node->op->flags & MIX_OP_BARRIER)
    return set_kind(c, node->first_output, c->kinds[node->inputs[0]], c->steps[node->inputs[0]]), true;
  if (!node->source && follow_swap(c, node)) return true;
  if (!node->source && mark(c, node, STEPS)) return follow_steps(c, node);
  if (node->source == MIX_IR_ARGUMENT) {
    kind = argument_kind(c, node);
  } else if (mark(c, node, BATCH)) {
    if (!keeps_rows(c, node)) return fail_node(c, node);
    const int other = operand_with_rows(c, node);
    if (other >= 0) return fail_operand(c, node, other);
    kind = BATCH;
  } else if (repeats(c, node)) {
    kind = REPEATED;
  }
  for (int o = 0; o < node->output_count; o++) c->kinds[node->first_output + o] = kind;
  return true;
}

static bool check_ends(const check *c) {
  for (int i = 0; i < c->ir->variable_count; i++)
    if (c->ir->variables[i].exit != c->ir->variables[i].entry)
      return mix_fail_value(
          "function_call: %s changes the variable '%s'; with .batch = MIX_ANY, which is for inference, a "
          "call may run several times, on rows that are not the caller's; leave .batch out",
          c->ir->name, c->ir->variables[i].variable->name);
  for (int r = 0; r < c->ir->result_count; r++)
    if (c->kinds[c->ir->results[r]] != BATCH || c->ir->values[c->ir->results[r]].shape.dims[0] != c->rows)
      return mix_fail_value(
          "function_call: result %d of %s has no row for each of the batch; with .batch = MIX_ANY axis 0 "
          "of every result is that of the arguments; leave .batch out",
          r, c->ir->name);
  return true;
}

bool mix_check_row_independence(const mix_ir *ir, int64_t rows) {
  int operands = 1;
  for (int n = 0; n < ir->node_count; n++)
    if (ir->nodes[n].input_count > operands) operands = ir->nodes[n].input_count;
  check c = {.ir = ir,
             .rows = rows,
             .kinds = mix_calloc((size_t)ir->value_count + 1, sizeof *c.kinds),
             .steps = mix_calloc((size_t)ir->value_count + 1, sizeof *c.steps),
             .shapes = mix_calloc((size_t)operands, sizeof *c.shapes),
             .batched = mix_calloc((size_t)operands, sizeof *c.batched)};
  bool good = c.kinds && c.steps && c.shapes && c.batched;
  for (int n = 0; n < ir->node_count && good; n++) good = follow(&c, &ir->nodes[n]);
  good = good && check_ends(&c);
  mix_free(c.kinds);
  mix_free(c.steps);
  mix_free(c.shapes);
  mix_free(c.batched);
  return good;
}
