/* narrow_operands: a float32 product whose operands were 16-bit numbers until then (the sum over all steps of
 * a loop that is the gradient of a weight) reads these, where a kernel widens them as it packs and sums in
 * the same order. Then no float32 form of them is stored. An epilogue takes the float32 sums. Not under
 * jit_compile, where excess_precision decides what is rounded. */
#include "passes/passes.h"

#include "tensor/shape.h"

/* The 16-bit value that the whole of `value` is cast from. -1: there is none. */
static int narrow_form(const mix_ir *ir, int value) {
  const mix_ir_node *node = &ir->nodes[mix_ir_producer(ir, value)];
  const mix_program *program = node->program;
  if (node->source || !program || node->op->contraction || node->guard >= 0 || program->load_count != 1 ||
      program->instruction_count != 1 || program->store_count != 1 || node->output_count != 1)
    return -1;
  const mix_ir_value *from = &ir->values[node->inputs[0]], *to = &ir->values[value];
  const bool whole = program->instructions[0].opcode == MIX_OPCODE_CAST && program->stores[0].reg == 1 &&
                     program->loads[0].offset == 0 && mix_shape_equal(from->shape, to->shape);
  if (!whole || to->dtype != MIX_FLOAT32 || !mix_dtype_is_16_bit(from->dtype)) return -1;
  return node->inputs[0];
}

/* Makes the sums of a product without an epilogue its result. False: out of memory. */
static bool add_epilogue(mix_ir *ir, mix_ir_node *node) {
  const mix_shape space = mix_epilogue_space(ir->values[node->first_output].shape);
  mix_program *program = mix_ir_alloc(ir, sizeof *program);
  mix_program_load *load = mix_ir_array(ir, 1, sizeof *load);
  mix_program_store *store = mix_ir_array(ir, 1, sizeof *store);
  if (!program || !load || !store) return false;
  *load = (mix_program_load){.input = MIX_FROM_ACCUMULATOR, .dtype = MIX_FLOAT32};
  load->strides[0] = space.dims[0] == 1 ? 0 : space.dims[1];
  load->strides[1] = space.dims[1] == 1 ? 0 : 1;
  *program = (mix_program){.rank = 2, .load_count = 1, .store_count = 1, .loads = load, .stores = store};
  program->dims[0] = space.dims[0], program->dims[1] = space.dims[1];
  node->program = program;
  return true;
}

/* Product n, of which both operands have narrow forms that it may read. */
static bool is_widened(const mix_ir *ir, int n) {
  const mix_ir_node *node = &ir->nodes[n];
  if (node->dead || node->source || !node->op->contraction || !node->op->contraction->epilogue ||
      !node->op->contraction->downcast)
    return false;
  const int a = narrow_form(ir, node->inputs[0]), b = narrow_form(ir, node->inputs[1]);
  if (a < 0 || b < 0 || ir->values[a].dtype != ir->values[b].dtype) return false;
  mix_product product = mix_ir_product(ir, node);
  product.dtype = ir->values[a].dtype;
  return ir->context->backend->widens_operands(ir->context, &product);
}

/* A float32 form that anything else reads is stored in any case, and the narrow one need not live so long. */
bool mix_pass_narrow_operands(mix_ir *ir) {
  if (ir->excess_precision || ir->eager || !ir->context->backend->widens_operands) return true;
  const int *uses = mix_ir_uses(ir);
  int *products = mix_ir_array(ir, ir->value_count + 1, sizeof *products);
  bool *widened = mix_ir_array(ir, ir->node_count + 1, sizeof *widened);
  if (!uses || !products || !widened) return false;
  for (int n = 0; n < ir->node_count; n++)
    if ((widened[n] = is_widened(ir, n)))
      for (int i = 0; i < MIX_CONTRACTED; i++) products[ir->nodes[n].inputs[i]]++;
  for (int n = 0; n < ir->node_count; n++) {
    mix_ir_node *node = &ir->nodes[n];
    if (!widened[n] || products[node->inputs[0]] != uses[node->inputs[0]] ||
        products[node->inputs[1]] != uses[node->inputs[1]])
      continue;
    if (!node->program && !add_epilogue(ir, node)) return false;
    for (int i = 0; i < MIX_CONTRACTED; i++) node->inputs[i] = narrow_form(ir, node->inputs[i]);
  }
  return mix_pass_dce(ir);
}
