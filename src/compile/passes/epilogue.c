/* A program that reads a product over its whole space joins it: the kernel runs it over each block of the result while that is in
 * cache. */
#include "compile/passes/passes.h"

#include "tensor/shape.h"
#include <string.h>

static int product_load(const mix_ir *ir, const mix_ir_node *fused, mix_shape space) {
  for (int l = 0; l < fused->program->load_count; l++) {
    int value = fused->inputs[fused->program->loads[l].input];
    const mix_ir_node *producer = &ir->nodes[mix_ir_producer(ir, value)];
    if (!producer->dead && producer->op == &mix_op_matmul && !producer->program && mix_dtype_is_floating(ir->values[value].dtype) &&
        mix_shape_equal(ir->values[value].shape, space))
      return l;
  }
  return -1;
}

static bool join(mix_ir *ir, int fused_index, int load, mix_shape space, const int *uses) {
  mix_ir_node fused = ir->nodes[fused_index];
  const mix_program *old = fused.program;
  int raw = fused.inputs[old->loads[load].input], product_index = mix_ir_producer(ir, raw);
  mix_ir_node product = ir->nodes[product_index];
  mix_program *program = mix_ir_alloc(ir, sizeof *program);
  int *inputs = mix_ir_alloc(ir, sizeof(int) * (size_t)(fused.input_count + 2));
  mix_ir_value *outputs = mix_ir_alloc(ir, sizeof *outputs * (size_t)(fused.output_count + 1));
  if (!program || !inputs || !outputs) return false;
  *program = *old;
  program->loads = mix_ir_alloc(ir, sizeof *program->loads * (size_t)(old->load_count + 1));
  program->stores = mix_ir_alloc(ir, sizeof *program->stores * (size_t)(old->store_count + 1));
  if (!program->loads || !program->stores) return false;
  memcpy(program->stores, old->stores, sizeof *old->stores * (size_t)old->store_count);
  program->rank = 2;
  program->dims[0] = space.dims[0];
  program->dims[1] = space.dims[1];
  inputs[0] = product.inputs[0];
  inputs[1] = product.inputs[1];
  int input_count = 2;
  for (int l = 0; l < old->load_count; l++) {
    int value = fused.inputs[old->loads[l].input];
    program->loads[l] = (mix_program_load){.input = MIX_FROM_ACCUMULATOR, .dtype = old->loads[l].dtype};
    mix_program_strides(ir->values[value].shape, space, program->loads[l].strides);
    if (l == load) continue;
    program->loads[l].input = input_count;
    inputs[input_count++] = value;
  }
  for (int i = 0; i < fused.output_count; i++) outputs[i] = ir->values[fused.first_output + i];
  int output_count = fused.output_count;
  bool raw_needed = uses[raw] > 1;
  if (raw_needed) {
    program->stores[program->store_count++] = (mix_program_store){.output = output_count, .reg = load};
    outputs[output_count++] = ir->values[raw];
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

bool mix_pass_epilogue(mix_ir *ir) {
  for (int n = 0; n < ir->node_count; n++) {
    const mix_ir_node *fused = &ir->nodes[n];
    if (fused->dead || fused->op != &mix_op_fused || fused->guard >= 0 || fused->program->reduction || !fused->program->store_count)
      continue;
    mix_shape space = ir->values[fused->first_output].shape;
    if (space.rank != 2) continue;
    int load = product_load(ir, fused, space);
    if (load < 0) continue;
    int raw = fused->inputs[fused->program->loads[load].input];
    if (mix_ir_depends(ir, n, raw, mix_ir_producer(ir, raw))) continue;
    int *uses = mix_ir_uses(ir);
    if (!uses || !join(ir, n, load, space, uses) || !mix_ir_sort(ir)) return false;
    n = -1; /* the array was put in order anew */
  }
  return true;
}
