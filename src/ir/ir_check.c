/* Checks that a node read from text fits its op. Passes create nodes that public operations do not:
 * element-wise nodes with broadcasting operands, identities that broadcast, and programs for whole chains. */
#include "base/alloc.h"
#include "base/error.h"
#include "ir/ir.h"
#include "tensor/shape.h"
#include <stdio.h>
#include <string.h>

#define WRONG(...) return snprintf(problem, size, __VA_ARGS__), false

static mix_type type_of(const mix_ir *ir, int value) {
  return (mix_type){ir->values[value].dtype, ir->values[value].shape};
}

/* Creates the node as the public operations would, from operands of these types. On failure `problem` gets
 * its message. */
static mix_node *make(const mix_op *op, const void *attributes, int count, const mix_type *operands,
                      char *problem, size_t size) {
  mix_edge *edges = mix_calloc((size_t)count + 1, sizeof *edges);
  if (!edges) return NULL;
  bool good = true;
  for (int i = 0; i < count && good; i++)
    good = (edges[i].node = mix_node_placeholder(operands[i].dtype, operands[i].shape, false)) != NULL;
  mix_node *node = good ? mix_node_new(op, attributes, count, edges) : NULL;
  for (int i = 0; i < count; i++) mix_release(edges[i].node);
  mix_free(edges);
  if (!node && mix_error() != MIX_MEMORY_ERROR) mix_error_take(problem, size);
  return node;
}

/* Uses the types of the node's operands, all with shape `as` if that is not NULL. */
static mix_node *make_from_values(mix_ir *ir, const mix_op *op, const mix_ir_node *node, int count,
                                  const mix_shape *as, char *problem, size_t size) {
  mix_type *types = mix_ir_array(ir, count + 1, sizeof *types);
  if (!types) return NULL;
  for (int i = 0; i < count; i++) {
    types[i] = type_of(ir, node->inputs[i]);
    if (as && !(op->scalars >> i & 1)) types[i].shape = *as;
  }
  return make(op, node->attributes, count, types, problem, size);
}

/* If an attribute, not an operand, determines the dtype of a result, checks that the op allows it. */
static bool free_dtypes_allowed(const mix_op *op, const mix_node *made) {
  const char *result = strstr(op->signature, "->") + 2;
  for (int o = 0; o < made->output_count; o++, result += result[1] == ',' ? 2 : 1) {
    int number = 0;
    char met[16] = "";
    if (*result < 'A' || *result > 'Z') continue;
    for (const char *p = op->signature; *p && *p != *result; p++)
      if (*p >= 'A' && *p <= 'Z' && !strchr(met, *p)) met[number++] = *p;
    if (!mix_op_allows(op, number, made->outputs[o].dtype)) return false;
  }
  return true;
}

static bool same_results(const mix_ir *ir, const mix_ir_node *node, const mix_node *made, char *problem,
                         size_t size) {
  if (made->output_count != node->output_count)
    WRONG("%s has %d results, not %d", node->op->name, made->output_count, node->output_count);
  for (int o = 0; o < node->output_count; o++) {
    const mix_ir_value *value = &ir->values[node->first_output + o];
    if (value->dtype != made->outputs[o].dtype || !mix_shape_equal(value->shape, made->outputs[o].shape))
      WRONG("result %d of %s is %s%s, not %s%s", o, node->op->name, mix_dtype_name(made->outputs[o].dtype),
            MIX_SHAPE_TEXT(made->outputs[o].shape), mix_dtype_name(value->dtype),
            MIX_SHAPE_TEXT(value->shape));
  }
  if (!free_dtypes_allowed(node->op, made)) WRONG("%s cannot make that dtype", node->op->name);
  return true;
}

static int operand_count(const mix_op *op) {
  int count = 0;
  for (const char *p = op->signature; *p != '-'; p++) count += *p != ',';
  return count;
}

/* True for an addition of the pass "expand_add_n": operands may mix 16-bit dtypes and float32, and the sum
 * is rounded to the dtype of the result. */
static bool is_sum(const mix_ir *ir, const mix_ir_node *node) {
  bool small = node->op->accumulator == MIX_FLOAT32;
  for (int i = -1; i < node->input_count && small; i++) {
    mix_dtype dtype = ir->values[i < 0 ? node->first_output : node->inputs[i]].dtype;
    small = mix_dtype_is_floating(dtype) && dtype != MIX_FLOAT64;
  }
  return small;
}

static bool check_elementwise(mix_ir *ir, const mix_ir_node *node, char *problem, size_t size) {
  mix_shape space = ir->values[node->first_output].shape, merged = {.rank = 0};
  const mix_op *op = node->op->elementwise ? node->op->elementwise : node->op; /* operands broadcast */
  if (node->input_count != operand_count(op))
    WRONG("%s takes %d operands, not %d", op->name, operand_count(op), node->input_count);
  for (int i = 0; i < node->input_count; i++) {
    mix_shape shape = ir->values[node->inputs[i]].shape;
    if (!mix_shape_broadcasts_to(shape, space) || !mix_shape_broadcast(merged, shape, &merged))
      WRONG("operand %%%d does not broadcast to the result", node->inputs[i]);
  }
  if (op->opcode != MIX_OPCODE_IDENTITY && !mix_shape_equal(merged, space))
    WRONG("the operands are smaller than the result");
  if (is_sum(ir, node)) return true;
  mix_node *made = make_from_values(ir, op, node, node->input_count, &space, problem, size);
  bool good = made && same_results(ir, node, made, problem, size);
  mix_release(made);
  return good;
}

/* Does a block of the shape broadcast to the space? mix_program_check holds loads inside of their operand. */
static bool holds_slice(mix_shape shape, mix_shape space) {
  if (shape.rank > space.rank) return false;
  for (int d = shape.rank - 1, s = space.rank - 1; d >= 0; d--, s--)
    if (shape.dims[d] != 1 && shape.dims[d] < space.dims[s]) return false;
  return true;
}

/* All stored values have one shape, the iteration space, and all loaded values broadcast to it. */
static bool check_space(const mix_ir *ir, const mix_ir_node *node, char *problem, size_t size) {
  const mix_program *program = node->program;
  const mix_shape *space = NULL;
  for (int s = 0; s < program->store_count; s++) {
    if (program->stores[s].output >= node->output_count)
      WRONG("there is no result %d", program->stores[s].output);
    const mix_shape *shape = &ir->values[node->first_output + program->stores[s].output].shape;
    if (!space) space = shape;
    if (!mix_shape_equal(*space, *shape)) WRONG("its results differ in shape");
  }
  /* A finite check alone stores nothing: the space is the shape of the largest operand. */
  for (int l = 0; l < program->load_count && !space; l++) {
    int input = program->loads[l].input;
    if (input < 0 || input >= node->input_count) continue;
    const mix_shape *shape = &ir->values[node->inputs[input]].shape;
    bool largest = true;
    for (int k = 0; k < node->input_count; k++)
      largest &= mix_shape_broadcasts_to(ir->values[node->inputs[k]].shape, *shape);
    if (largest) space = shape;
  }
  if (!space) WRONG("it has no space: nothing is stored, and no operand is as large as the others");
  for (int l = 0; l < program->load_count; l++) {
    int input = program->loads[l].input;
    if (input >= node->input_count) WRONG("r%d loads operand %d of %d", l, input, node->input_count);
    if (input >= 0 && !holds_slice(ir->values[node->inputs[input]].shape, *space))
      WRONG("operand %d does not broadcast to the results", input);
  }
  return true;
}

static bool check_program(mix_ir *ir, const mix_ir_node *node, char *problem, size_t size) {
  mix_type *inputs = mix_ir_array(ir, node->input_count + 1, sizeof *inputs);
  mix_type *outputs = mix_ir_array(ir, node->output_count + 1, sizeof *outputs);
  if (!inputs || !outputs) return false;
  for (int i = 0; i < node->input_count; i++) inputs[i] = type_of(ir, node->inputs[i]);
  for (int o = 0; o < node->output_count; o++) outputs[o] = type_of(ir, node->first_output + o);
  return mix_program_check(node->program, node->input_count, inputs, node->output_count, outputs, problem,
                           size);
}

/* A product with an epilogue: the program runs over the whole product and reads it. */
static bool check_epilogue(mix_ir *ir, const mix_ir_node *node, char *problem, size_t size) {
  if (!node->op->contraction || !node->op->contraction->epilogue || node->input_count < MIX_CONTRACTED)
    WRONG("only matmul and fused have programs");
  mix_node *made = make_from_values(ir, node->op, node, MIX_CONTRACTED, NULL, problem, size);
  if (!made) return false;
  mix_value product = made->outputs[0];
  mix_release(made);
  const mix_program *program = node->program;
  const mix_shape matrix = mix_epilogue_space(product.shape);
  if (program->rank != 2 || matrix.rank != 2 || program->dims[0] != matrix.dims[0] ||
      program->dims[1] != matrix.dims[1])
    WRONG("the program does not run over the product");
  int reads = 0;
  for (int l = 0; l < program->load_count; l++) {
    bool raw = program->loads[l].input == MIX_FROM_ACCUMULATOR;
    reads += raw;
    const bool wide = program->loads[l].dtype == node->op->accumulator && product.dtype != MIX_FLOAT64;
    if (raw && program->loads[l].dtype != product.dtype && !wide)
      WRONG("the product is %s", mix_dtype_name(product.dtype));
    if (!raw && program->loads[l].input < MIX_CONTRACTED) WRONG("r%d loads an operand of the product", l);
  }
  if (!reads || program->reduction > MIX_REDUCE_ALL_FINITE || program->sum_count)
    WRONG("the program must read the product, and may end in no sum");
  /* Results may have other shapes: fusion looks through a reshape between product and program. */
  return check_program(ir, node, problem, size);
}

static bool check_fused(mix_ir *ir, const mix_ir_node *node, char *problem, size_t size) {
  if (!node->program) WRONG("its program is missing: lines behind it that begin with four blanks");
  for (int l = 0; l < node->program->load_count; l++)
    if (node->program->loads[l].input == MIX_FROM_ACCUMULATOR)
      WRONG("only the program of a matmul reads a product");
  return check_space(ir, node, problem, size) && check_program(ir, node, problem, size);
}

/* ---- loops ---- */

static const mix_ir_value *argument_of(const mix_ir *body, int index) {
  for (int n = 0; n < body->node_count; n++)
    if (body->nodes[n].source == MIX_IR_ARGUMENT && body->nodes[n].index == index)
      return &body->values[body->nodes[n].first_output];
  return NULL;
}

static bool same_type(const mix_ir_value *a, const mix_ir_value *b) {
  return a->dtype == b->dtype && mix_shape_equal(a->shape, b->shape);
}

/* Is `all` that many values of the type of `one`? */
static bool is_stack(const mix_ir_value *all, const mix_ir_value *one, int64_t steps) {
  mix_shape shape = {.rank = all->shape.rank - 1};
  if (all->shape.rank < 1 || all->shape.dims[0] != steps || all->dtype != one->dtype) return false;
  for (int i = 0; i < shape.rank; i++) shape.dims[i] = all->shape.dims[i + 1];
  return mix_shape_equal(shape, one->shape);
}

/* Arguments and results of the body are those of one step. */
static bool check_loop(const mix_ir *ir, const mix_ir_node *node, char *problem, size_t size) {
  const mix_ir *body = node->body;
  const mix_scan_attributes *a = node->attributes;
  if (!body) WRONG("its body is missing: lines behind it that begin with a bar");
  if (a->steps < 0 || a->carries < 0 || a->inputs < 0 || a->carries > node->input_count ||
      a->inputs > node->input_count - a->carries || a->carries > node->output_count)
    WRONG("its numbers of steps, carries and inputs do not fit its operands");
  if (body->argument_count != node->input_count || body->result_count != node->output_count)
    WRONG("the body has %d arguments and %d results; expected %d and %d", body->argument_count,
          body->result_count, node->input_count, node->output_count);
  for (int i = 0; i < node->input_count; i++) {
    const mix_ir_value *operand = &ir->values[node->inputs[i]], *argument = argument_of(body, i);
    const bool stacked = i >= a->carries && i < a->carries + a->inputs;
    if (!argument || !(stacked ? is_stack(operand, argument, a->steps) : same_type(operand, argument)))
      WRONG("operand %d does not fit argument %d of the body", i, i);
  }
  for (int o = 0; o < node->output_count; o++) {
    const mix_ir_value *result = &ir->values[node->first_output + o], *one = &body->values[body->results[o]];
    if (!(o < a->carries ? same_type(result, one) && same_type(one, &ir->values[node->inputs[o]])
                         : is_stack(result, one, a->steps)))
      WRONG("result %d does not fit that of the body", o);
  }
  return true;
}

bool mix_ir_check(mix_ir *ir, const mix_ir_node *node, char *problem, size_t size) {
  if (node->op->flags & MIX_OP_LOOP) {
    if (node->program || node->guard >= 0) WRONG("a loop has no program and stands under no condition");
    return check_loop(ir, node, problem, size);
  }
  if (node->body) WRONG("only a loop has a body");
  if (node->op->flags & MIX_OP_PROGRAM) return check_fused(ir, node, problem, size);
  if (node->program) return check_epilogue(ir, node, problem, size);
  if (node->guard >= 0) WRONG("only fused programs stand under a condition");
  if ((node->op->flags & MIX_OP_ELEMENTWISE) && node->op->opcode != MIX_OPCODE_NONE)
    return check_elementwise(ir, node, problem, size);
  if (strchr(node->op->signature, '*') ? node->input_count == 0
                                       : node->input_count != operand_count(node->op))
    WRONG("%d operands do not fit the signature %s of %s", node->input_count, node->op->signature,
          node->op->name);
  mix_node *made = make_from_values(ir, node->op, node, node->input_count, NULL, problem, size);
  bool good = made && same_results(ir, node, made, problem, size);
  const char *violation = good && node->op->violation ? node->op->violation(made) : NULL;
  mix_release(made);
  if (violation) WRONG("%s", violation);
  return good;
}
