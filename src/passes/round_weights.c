/* round_weights: where memory is to be least (mix_set_memory), a product of few examples reads a float32
 * weight and rounds it on the way, so that no 16-bit copy of the weight exists; if
 * anything else reads the 16-bit weight, the copy serves all. The product becomes
 * matmul_downcast with round_operands; its other operand is upcast, which rounds to the same numbers. The
 * bits do not change. Not under jit_compile, where excess_precision would drop the upcast with the rounding
 * before it. */
#include "backend/backend.h"
#include "passes/passes.h"
#include "tensor/shape.h"
#include "tensor/type.h"
#include <string.h>

/* The upcast operand takes 4 bytes an element more, the copy of the weight 2. */
enum { TIMES_SMALLER = 4 };

static bool is_cast_of(const mix_ir_node *node, int value) {
  return !node->dead && node->op->opcode == MIX_OPCODE_CAST && node->inputs[0] == value;
}

/* The operand that is the weight's cast, where the product may read the weight; -1: it may not. */
static int weight_operand(const mix_ir *ir, const mix_ir_node *node, int cast) {
  if (node->dead || node->source || node->program || !node->op->contraction) return -1;
  const mix_op *downcast = node->op->contraction->downcast;
  if (!downcast || !downcast->contraction->round_operands) return -1;
  const int operand = node->inputs[1] == cast;
  if (node->inputs[operand] != cast || node->inputs[!operand] == cast) return -1;
  const int64_t weight = mix_shape_size(ir->values[cast].shape),
                other = mix_shape_size(ir->values[node->inputs[!operand]].shape);
  const mix_backend *backend = ir->context->backend;
  const mix_product product = mix_ir_product(ir, node);
  const bool may = weight / TIMES_SMALLER >= other && backend->rounds_operands &&
                   backend->rounds_operands(ir->context, &product);
  return may ? operand : -1;
}

/* The other operand as float32; the cast is made once. -1 with the error recorded. */
static int upcast(mix_ir *ir, int value, mix_dtype dtype, int *wide, const char *scope) {
  if (wide[value] >= 0) return wide[value];
  mix_cast_attributes *attributes = mix_ir_alloc(ir, sizeof *attributes);
  if (!attributes) return -1;
  attributes->dtype = dtype;
  const int node = mix_ir_add(ir, &mix_op_cast, attributes, 1, &value, 1,
                              &(mix_type){.dtype = dtype, .shape = ir->values[value].shape});
  if (node < 0) return -1;
  ir->nodes[node].scope = scope;
  return wide[value] = ir->nodes[node].first_output;
}

/* Makes product n read the weight itself as that operand. */
static bool read_weight(mix_ir *ir, int n, int operand, int weight, int *wide) {
  const mix_op *op = ir->nodes[n].op, *downcast = op->contraction->downcast;
  const mix_dtype dtype = ir->values[ir->nodes[n].inputs[operand]].dtype;
  char *attributes = mix_ir_alloc(ir, downcast->attributes_size);
  const int other = upcast(ir, ir->nodes[n].inputs[!operand], op->accumulator, wide, ir->nodes[n].scope);
  if (!attributes || other < 0) return false;
  memcpy(attributes, ir->nodes[n].attributes, op->attributes_size);
  *(mix_dtype *)(attributes + downcast->contraction->result_dtype->offset) = dtype;
  *(bool *)(attributes + downcast->contraction->round_operands->offset) = true;
  mix_ir_node *node = &ir->nodes[n];
  node->inputs[operand] = weight;
  node->inputs[!operand] = other;
  node->op = downcast;
  node->attributes = attributes;
  return true;
}

/* Do products that may read the weight itself use its cast, and nothing else? */
static bool only_products_read(const mix_ir *ir, int nodes, int cast, const int *uses) {
  int products = 0;
  for (int m = 0; m < nodes; m++) products += weight_operand(ir, &ir->nodes[m], cast) >= 0;
  return products > 0 && products == uses[cast];
}

bool mix_pass_round_weights(mix_ir *ir) {
  if (ir->context->memory != MIX_MEMORY_LEAST || ir->excess_precision || ir->eager) return true;
  const int nodes = ir->node_count, values = ir->value_count;
  int *wide = mix_ir_alloc(ir, sizeof *wide * (size_t)(values + 1));
  const int *uses = mix_ir_uses(ir);
  if (!wide || !uses) return false;
  for (int v = 0; v < values; v++) wide[v] = -1;
  for (int i = 0; i < ir->variable_count; i++)
    for (int n = 0; n < nodes; n++) {
      const int weight = ir->variables[i].entry, cast = ir->nodes[n].first_output;
      if (!is_cast_of(&ir->nodes[n], weight) || ir->values[weight].dtype != MIX_FLOAT32 ||
          !mix_dtype_is_16_bit(ir->values[cast].dtype) || !only_products_read(ir, nodes, cast, uses))
        continue;
      for (int m = 0; m < nodes; m++) {
        const int operand = weight_operand(ir, &ir->nodes[m], cast);
        if (operand >= 0 && !read_weight(ir, m, operand, weight, wide)) return false;
      }
      ir->nodes[n].dead = true;
    }
  return mix_ir_sort(ir);
}
