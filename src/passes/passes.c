/* Helpers that several passes share, and the list of disabled passes. */
#include "passes/passes.h"

#include <stdlib.h>
#include <string.h>

const char *mix_passes_disabled(void) { return getenv("MIXTAPE_DISABLE_PASSES"); }

static bool is_listed(const char *list, const char *name) {
  size_t length = strlen(name);
  while (list && *list) {
    size_t word = strcspn(list, ",");
    if (word == length && !strncmp(list, name, length)) return true;
    list += word + (list[word] == ',');
  }
  return false;
}

bool mix_pass_wanted(const mix_ir *ir, const char *name) {
  const char *const *listed = ir->context->backend->passes;
  while (listed && *listed && strcmp(*listed, name)) listed++;
  return (!listed || *listed) && !is_listed(mix_passes_disabled(), name);
}

void mix_program_strides(mix_shape shape, mix_shape space, int64_t strides[MIX_MAX_RANK]) {
  int64_t stride = 1;
  for (int d = 0; d < MIX_MAX_RANK; d++) strides[d] = 0;
  for (int d = shape.rank - 1, s = space.rank - 1; d >= 0; d--, s--) {
    strides[s] = shape.dims[d] == 1 ? 0 : stride;
    stride *= shape.dims[d];
  }
}

bool *mix_ir_conditions(mix_ir *ir) {
  bool *condition = mix_ir_flags(ir, ir->value_count + 1);
  for (int n = 0; condition && n < ir->node_count; n++)
    if (ir->nodes[n].guard >= 0) condition[ir->nodes[n].guard] = true;
  for (int i = 0; condition && i < ir->variable_count; i++)
    if (ir->variables[i].guard >= 0) condition[ir->variables[i].guard] = true;
  return condition;
}

mix_product mix_ir_product(const mix_ir *ir, const mix_ir_node *node) {
  const mix_ir_value *a = &ir->values[node->inputs[0]], *b = &ir->values[node->inputs[1]];
  return (mix_product){.op = node->op,
                       .attributes = node->attributes,
                       .transpose_a = mix_op_transposes(node->op, node->attributes, 0),
                       .transpose_b = mix_op_transposes(node->op, node->attributes, 1),
                       .dtype = a->dtype,
                       .a = a->shape,
                       .b = b->shape,
                       .result = ir->values[node->first_output].shape};
}

bool mix_ir_may_fail(const mix_ir *ir, const mix_ir_node *node) {
  return mix_opcode_may_fail((mix_opcode)node->op->opcode, ir->values[node->first_output].dtype);
}

/* The value in this dtype. -1: out of memory. */
static int upcast(mix_ir *ir, int value, mix_dtype dtype, int *wide, const char *scope) {
  if (wide[value] >= 0) return wide[value];
  return wide[value] = mix_ir_add_cast(ir, value, dtype, scope);
}

bool mix_ir_downcast(mix_ir *ir, int n, int rounded, int weight, int *wide) {
  const mix_op *op = ir->nodes[n].op;
  const mix_contraction *downcast = op->contraction->downcast->contraction;
  char *attributes = mix_ir_alloc(ir, op->contraction->downcast->attributes_size);
  if (!attributes) return false;
  memcpy(attributes, ir->nodes[n].attributes, op->attributes_size);
  *(mix_dtype *)(attributes + downcast->result_dtype->offset) = ir->values[ir->nodes[n].inputs[0]].dtype;
  if (rounded >= 0) *(bool *)(attributes + downcast->round_operands->offset) = true;
  for (int i = 0; i < MIX_CONTRACTED; i++) {
    if (i != rounded && !wide) continue;
    const int operand =
        i == rounded ? weight : upcast(ir, ir->nodes[n].inputs[i], op->accumulator, wide, ir->nodes[n].scope);
    if (operand < 0) return false;
    ir->nodes[n].inputs[i] = operand;
  }
  ir->nodes[n].op = op->contraction->downcast;
  ir->nodes[n].attributes = attributes;
  return true;
}
