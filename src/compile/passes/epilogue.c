/* A program that reads a product over its whole space joins it: the kernel runs it over each block of the result while that is in
 * cache. */
#include "compile/passes/passes.h"

#include "tensor/shape.h"
#include <string.h>

/* The product behind a value, through a reshape (of a Dense layer on more than two dimensions, of a Flatten's gradient); -1: none. */
static int product_behind(const mix_ir *ir, int value) {
  const mix_ir_node *producer = &ir->nodes[mix_ir_producer(ir, value)];
  if (producer->op == &mix_op_reshape && !producer->source) {
    value = producer->inputs[0];
    producer = &ir->nodes[mix_ir_producer(ir, value)];
  }
  bool joins = !producer->dead && !producer->source && producer->op == &mix_op_matmul && !producer->program &&
               mix_dtype_is_floating(ir->values[value].dtype);
  return joins ? value : -1;
}

/* The next load after `load` that is a whole product, which nothing else that the program reads depends on; -1: none. */
static int product_load(mix_ir *ir, int fused_index, mix_shape space, int load) {
  const mix_ir_node *fused = &ir->nodes[fused_index];
  while (++load < fused->program->load_count) {
    int value = fused->inputs[fused->program->loads[load].input];
    if (!mix_shape_equal(ir->values[value].shape, space)) continue;
    int raw = product_behind(ir, value);
    if (raw >= 0 && !mix_ir_depends(ir, fused_index, value, mix_ir_producer(ir, raw))) return load;
  }
  return -1;
}

/* The program's space as rows and columns of the product: whole rows merge, or are split again, where every load lets them. */
static bool as_matrix(const mix_program *old, int64_t rows, int64_t columns, mix_program_load *loads) {
  for (int l = 0; l < old->load_count; l++) {
    const int64_t *s = old->loads[l].strides;
    loads[l] = old->loads[l];
    memset(loads[l].strides, 0, sizeof loads[l].strides);
    if (old->rank == 1) /* one element after the other, or the same for all */
      loads[l].strides[0] = columns == 1 || rows > 1 ? s[0] * columns : 0, loads[l].strides[1] = s[0];
    else
      loads[l].strides[0] = s[0], loads[l].strides[1] = s[1];
  }
  return old->rank == 1 || (old->rank == 2 && old->dims[0] == rows && old->dims[1] == columns);
}

static bool join(mix_ir *ir, int fused_index, int load, const int *uses) {
  mix_ir_node fused = ir->nodes[fused_index];
  const mix_program *old = fused.program;
  int value = fused.inputs[old->loads[load].input], raw = product_behind(ir, value), product_index = mix_ir_producer(ir, raw);
  mix_ir_node product = ir->nodes[product_index];
  mix_shape matrix = ir->values[raw].shape;
  mix_program *program = mix_ir_alloc(ir, sizeof *program);
  int *inputs = mix_ir_alloc(ir, sizeof(int) * (size_t)(fused.input_count + 2));
  mix_ir_value *outputs = mix_ir_alloc(ir, sizeof *outputs * (size_t)(fused.output_count + 1));
  if (!program || !inputs || !outputs) return false;
  *program = *old;
  program->loads = mix_ir_alloc(ir, sizeof *program->loads * (size_t)(old->load_count + 1));
  program->stores = mix_ir_alloc(ir, sizeof *program->stores * (size_t)(old->store_count + 1));
  if (!program->loads || !program->stores) return false;
  if (!as_matrix(old, matrix.dims[0], matrix.dims[1], program->loads)) return true;
  memcpy(program->stores, old->stores, sizeof *old->stores * (size_t)old->store_count);
  program->rank = 2;
  program->dims[0] = matrix.dims[0];
  program->dims[1] = matrix.dims[1];
  inputs[0] = product.inputs[0];
  inputs[1] = product.inputs[1];
  int input_count = 2;
  for (int l = 0; l < old->load_count; l++) {
    program->loads[l].input = l == load ? MIX_FROM_ACCUMULATOR : input_count;
    if (l != load) inputs[input_count++] = fused.inputs[old->loads[l].input];
  }
  for (int i = 0; i < fused.output_count; i++) outputs[i] = ir->values[fused.first_output + i];
  int output_count = fused.output_count;
  bool raw_needed = uses[raw] > 1 || uses[value] > 1;
  if (raw_needed) {
    program->stores[program->store_count++] = (mix_program_store){.output = output_count, .reg = load};
    outputs[output_count++] = ir->values[raw];
  } else if (value != raw) {
    ir->nodes[mix_ir_producer(ir, value)].dead = true;
  }
  int joined = mix_ir_add(ir, product.op, product.attributes, input_count, inputs, output_count, outputs);
  if (joined < 0) return false;
  ir->nodes[joined].program = program;
  ir->nodes[joined].scope = product.scope;
  ir->nodes[joined].keep = product.keep;
  ir->nodes[fused_index].dead = ir->nodes[product_index].dead = true;
  for (int i = 0; i < fused.output_count; i++) mix_ir_replace(ir, fused.first_output + i, ir->nodes[joined].first_output + i);
  if (raw_needed) mix_ir_replace(ir, raw, ir->nodes[joined].first_output + output_count - 1);
  return true;
}

/* Joins the program to the first product that takes it; *joined says whether one did. */
static bool try_products(mix_ir *ir, int n, bool *joined) {
  const mix_ir_node *fused = &ir->nodes[n];
  mix_shape space = ir->values[fused->first_output].shape;
  int count = ir->node_count;
  *joined = false;
  if (fused->dead || fused->op != &mix_op_fused || fused->guard >= 0 || fused->program->reduction || !fused->program->store_count ||
      space.rank < 2)
    return true;
  for (int load = -1; (load = product_load(ir, n, space, load)) >= 0 && !*joined;) {
    int *uses = mix_ir_uses(ir);
    if (!uses || !join(ir, n, load, uses)) return false;
    *joined = ir->node_count > count;
  }
  return true;
}

bool mix_pass_epilogue(mix_ir *ir) {
  for (int n = 0; n < ir->node_count; n++) {
    bool joined;
    if (!try_products(ir, n, &joined)) return false;
    if (!joined) continue;
    if (!mix_ir_sort(ir)) return false;
    n = -1; /* the array was put in order anew */
  }
  return true;
}
