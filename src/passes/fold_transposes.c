/* fold_transposes: removes transposes. A transpose of an operand of a contraction becomes its flag, which
 * packing applies at no cost. This requires that the backend sums in the same order either way, except
 * under jit_compile. Under jit_compile a transpose of the result swaps the operands: (A B)^T = B^T A^T. Two
 * transposes in a row are merged. One that only moves dimensions of size 1 becomes a reshape. */
#include "passes/passes.h"
#include "tensor/shape.h"
#include <string.h>

static const int *permutation_of(const mix_ir_node *node) {
  return ((const mix_transpose_attributes *)node->attributes)->permutation;
}

static bool is_transpose(const mix_ir_node *node) {
  return !node->source && !node->dead && (node->op->flags & MIX_OP_TRANSPOSE);
}
static bool is_product(const mix_ir_node *node) {
  return !node->source && !node->dead && !node->program && node->op->contraction;
}

/* Does it transpose each matrix of a batch and nothing else? */
static bool transposes_matrices(const mix_ir *ir, const mix_ir_node *node) {
  int rank = ir->values[node->first_output].shape.rank;
  for (int i = 0; i < rank - 2; i++)
    if (permutation_of(node)[i] != i) return false;
  return rank >= 2 && permutation_of(node)[rank - 1] == rank - 2;
}

static bool has_flag(const mix_ir_node *node, int operand) {
  return node->op->contraction->transpose[operand] != NULL;
}

/* The attributes of a contraction with these flags. NULL: out of memory. */
static void *with_flags(mix_ir *ir, const mix_op *op, const void *attributes, bool transpose_a,
                        bool transpose_b) {
  const bool flags[MIX_CONTRACTED] = {transpose_a, transpose_b};
  char *copy = mix_ir_alloc(ir, op->attributes_size);
  if (!copy) return NULL;
  memcpy(copy, attributes, op->attributes_size);
  for (int i = 0; i < MIX_CONTRACTED; i++)
    if (op->contraction->transpose[i]) *(bool *)(copy + op->contraction->transpose[i]->offset) = flags[i];
  return copy;
}

/* Reads the operand of the transpose instead, with the flag inverted. */
static bool fold_operand(mix_ir *ir, int n, int operand) {
  mix_ir_node *node = &ir->nodes[n];
  const mix_ir_node *producer = &ir->nodes[mix_ir_producer(ir, node->inputs[operand])];
  if (!has_flag(node, operand) || !is_transpose(producer) || !transposes_matrices(ir, producer)) return true;
  mix_product now = mix_ir_product(ir, node), then = now;
  mix_shape stored = ir->values[producer->inputs[0]].shape;
  if (operand)
    then.b = stored, then.transpose_b = !now.transpose_b;
  else
    then.a = stored, then.transpose_a = !now.transpose_a;
  then.attributes = with_flags(ir, node->op, node->attributes, then.transpose_a, then.transpose_b);
  if (!then.attributes) return false;
  const mix_backend *backend = ir->context->backend;
  if (!ir->excess_precision && !(backend->same_product && backend->same_product(ir->context, &now, &then)))
    return true;
  node->inputs[operand] = producer->inputs[0];
  node->attributes = then.attributes;
  return true;
}

/* Node n transposes a product that has no other use: it becomes the product with its operands swapped. */
static bool transpose_product(mix_ir *ir, int n, const int *uses) {
  mix_ir_node *node = &ir->nodes[n];
  const mix_ir_node *product = &ir->nodes[mix_ir_producer(ir, node->inputs[0])];
  if (!ir->excess_precision || !is_product(product) || !product->op->contraction->swaps ||
      uses[node->inputs[0]] != 1 || !transposes_matrices(ir, node))
    return true;
  const bool transpose_a = !mix_op_transposes(product->op, product->attributes, 1),
             transpose_b = !mix_op_transposes(product->op, product->attributes, 0);
  int *inputs = mix_ir_ints(ir, MIX_CONTRACTED);
  if (!inputs) return false;
  inputs[0] = product->inputs[1], inputs[1] = product->inputs[0];
  node->op = product->op;
  node->inputs = inputs;
  node->input_count = MIX_CONTRACTED;
  node->attributes = with_flags(ir, product->op, product->attributes, transpose_a, transpose_b);
  if (product->scope) node->scope = product->scope;
  node->backward = product->backward;
  return node->attributes != NULL;
}

/* A transpose of a transpose becomes one transpose. */
static bool compose(mix_ir *ir, mix_ir_node *node) {
  const mix_ir_node *inner = &ir->nodes[mix_ir_producer(ir, node->inputs[0])];
  mix_transpose_attributes *attributes = mix_ir_alloc(ir, sizeof *attributes);
  if (!attributes) return false;
  for (int i = 0; i < MIX_MAX_RANK; i++)
    attributes->permutation[i] = permutation_of(inner)[permutation_of(node)[i]];
  node->attributes = attributes;
  node->inputs[0] = inner->inputs[0];
  return true;
}

/* Do the dimensions larger than 1 keep their order? */
static bool keeps_memory(const mix_ir *ir, const mix_ir_node *node) {
  mix_shape from = ir->values[node->inputs[0]].shape;
  int last = -1;
  for (int i = 0; i < from.rank; i++) {
    int axis = permutation_of(node)[i];
    if (from.dims[axis] == 1) continue;
    if (axis < last) return false;
    last = axis;
  }
  return true;
}

static bool becomes_reshape(mix_ir *ir, mix_ir_node *node) {
  mix_shape_attributes *attributes = mix_ir_alloc(ir, sizeof *attributes);
  if (!attributes) return false;
  attributes->shape = ir->values[node->first_output].shape;
  node->op = &mix_op_reshape;
  node->attributes = attributes;
  return true;
}

bool mix_pass_fold_transposes(mix_ir *ir) {
  int *becomes = mix_ir_ints(ir, ir->value_count + 1);
  int *uses = mix_ir_uses(ir);
  if (!becomes || !uses) return false;
  for (int v = 0; v < ir->value_count; v++) becomes[v] = v;
  for (int n = 0; n < ir->node_count; n++) {
    mix_ir_node *node = &ir->nodes[n];
    for (int i = 0; i < node->input_count; i++) node->inputs[i] = becomes[node->inputs[i]];
    if (is_transpose(node)) {
      if (is_transpose(&ir->nodes[mix_ir_producer(ir, node->inputs[0])]) && !compose(ir, node)) return false;
      if (mix_shape_equal(ir->values[node->inputs[0]].shape, ir->values[node->first_output].shape) &&
          keeps_memory(ir, node)) {
        becomes[node->first_output] = node->inputs[0];
        node->dead = true;
      } else if (keeps_memory(ir, node) ? !becomes_reshape(ir, node) : !transpose_product(ir, n, uses)) {
        return false;
      }
    }
    if (is_product(node) && (!fold_operand(ir, n, 0) || !fold_operand(ir, n, 1))) return false;
  }
  for (int i = 0; i < ir->result_count; i++) ir->results[i] = becomes[ir->results[i]];
  for (int i = 0; i < ir->variable_count; i++) ir->variables[i].exit = becomes[ir->variables[i].exit];
  return mix_ir_sort(ir);
}
