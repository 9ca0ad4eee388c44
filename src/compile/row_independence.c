/* Follows the batch through a captured graph, by the trait row_independent. */
#include "compile/row_independence.h"

#include "base/alloc.h"
#include "base/error.h"
#include <stdio.h>

/* What the axis 0 of a value is. Where a reshape joins axes, k of its rows, one after the other, stand for
 * one row of the batch; what keeps its rows keeps these too. */
typedef enum axis_kind {
  NO_BATCH,
  BATCH,   /* a row (or k) for each row of the batch, computed from it */
  REPEATED /* for each row of the batch the same: it stands beside the batch, whatever its number of rows */
} axis_kind;

typedef struct check {
  const mix_ir *ir;
  int64_t rows;
  axis_kind *kinds; /* by value */
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
  mix_fail(MIX_VALUE_ERROR,
           "function_call: %s: %s mixes the rows of the batch; with .batch = MIX_ANY row i of every value "
           "depends on row i of the arguments alone; leave .batch out",
           c->ir->name, name_of(node, name, sizeof name));
  return false;
}

static bool fail_operand(const check *c, const mix_ir_node *node, int operand) {
  char name[256], maker[256];
  const mix_ir_node *made = &c->ir->nodes[mix_ir_producer(c->ir, node->inputs[operand])];
  const char *source = made->source == MIX_IR_COMPUTED   ? name_of(made, maker, sizeof maker)
                       : made->source == MIX_IR_VARIABLE ? "a variable"
                                                         : "a constant";
  mix_fail(MIX_VALUE_ERROR,
           "function_call: %s: operand %d of %s, %s, has a row of its own for each of the %lld rows of the "
           "batch; with .batch = MIX_ANY row i of every value depends on row i of the arguments alone; leave "
           ".batch out",
           c->ir->name, operand, name_of(node, name, sizeof name), source, (long long)c->rows);
  return false;
}

static bool holds_batch(const check *c, mix_shape shape) {
  return shape.rank > 0 && (c->rows ? shape.dims[0] % c->rows == 0 : shape.dims[0] == 0);
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

static bool follow(const check *c, const mix_ir_node *node) {
  axis_kind kind = NO_BATCH;
  if (node->source == MIX_IR_ARGUMENT) {
    if (c->ir->values[node->first_output].shape.rank > 0) kind = BATCH;
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
    if (c->ir->variables[i].exit != c->ir->variables[i].entry) {
      mix_fail(
          MIX_VALUE_ERROR,
          "function_call: %s changes the variable '%s'; with .batch = MIX_ANY, which is for inference, a "
          "call may run several times, on rows that are not the caller's; leave .batch out",
          c->ir->name, c->ir->variables[i].variable->name);
      return false;
    }
  for (int r = 0; r < c->ir->result_count; r++)
    if (c->kinds[c->ir->results[r]] != BATCH || c->ir->values[c->ir->results[r]].shape.dims[0] != c->rows) {
      mix_fail(
          MIX_VALUE_ERROR,
          "function_call: result %d of %s has no row for each of the batch; with .batch = MIX_ANY axis 0 "
          "of every result is that of the arguments; leave .batch out",
          r, c->ir->name);
      return false;
    }
  return true;
}

bool mix_check_row_independence(const mix_ir *ir, int64_t rows) {
  int operands = 1;
  for (int n = 0; n < ir->node_count; n++)
    if (ir->nodes[n].input_count > operands) operands = ir->nodes[n].input_count;
  check c = {.ir = ir,
             .rows = rows,
             .kinds = mix_calloc((size_t)ir->value_count + 1, sizeof *c.kinds),
             .shapes = mix_calloc((size_t)operands, sizeof *c.shapes),
             .batched = mix_calloc((size_t)operands, sizeof *c.batched)};
  bool good = c.kinds && c.shapes && c.batched;
  for (int n = 0; n < ir->node_count && good; n++) good = follow(&c, &ir->nodes[n]);
  good = good && check_ends(&c);
  mix_free(c.kinds);
  mix_free(c.shapes);
  mix_free(c.batched);
  return good;
}
