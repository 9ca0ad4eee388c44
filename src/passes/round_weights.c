/* round_weights: where the 16-bit copies of weights are not worth their memory (mix_set_memory), a product
 * reads a float32 weight and rounds it on the way, so that no 16-bit copy of the weight exists; if anything
 * else reads the 16-bit weight, the copy serves all. The product becomes matmul_downcast with round_operands.
 * Of few examples the other operand is upcast, which rounds to the same numbers and is read in place; of
 * more, or where memory is to be least and a kernel reads both, it stays in 16 bits. The bits do not change.
 * Not under jit_compile, where excess_precision would drop the upcast with the rounding before it. */
#include "passes/passes.h"
#include "tensor/shape.h"

enum {
  TIMES_SMALLER = 4, /* the upcast operand takes 4 bytes an element more, the copy of the weight 2 */
  MANY_ROWS = 32,    /* products of fewer have kernels of their own, which read operands of one dtype */
};

static bool is_cast_weight(const mix_ir *ir, int value) {
  const mix_ir_node *node = &ir->nodes[mix_ir_producer(ir, value)];
  return !node->source && node->op->opcode == MIX_OPCODE_CAST &&
         ir->nodes[mix_ir_producer(ir, node->inputs[0])].source == MIX_IR_VARIABLE;
}

/* Is a copy of the weight smaller than the rounded batch? Where products are upcast, that would live for this
 * product alone, beside its float32 form, which the product of the weight's gradient reads. */
static bool is_worth_copy(const mix_ir *ir, const mix_product *product, int64_t weight, int other) {
  const mix_backend *backend = ir->context->backend;
  const mix_ir_node *node = &ir->nodes[mix_ir_producer(ir, other)];
  return !node->source && node->op->opcode == MIX_OPCODE_CAST &&
         mix_shape_size(ir->values[other].shape) / 2 >= weight && backend->prefers_upcast &&
         backend->prefers_upcast(ir->context, product);
}

/* The operand that is the weight's cast, where the product may read the weight; -1: it may not. `upcasts`: is
 * the other one upcast? */
static int weight_operand(const mix_ir *ir, const mix_ir_node *node, int cast, bool *upcasts) {
  if (node->dead || node->source || node->program || !node->op->contraction) return -1;
  const mix_op *downcast = node->op->contraction->downcast;
  if (!downcast || !downcast->contraction->round_operands) return -1;
  const int operand = node->inputs[1] == cast;
  if (node->inputs[operand] != cast || node->inputs[!operand] == cast) return -1;
  const int64_t weight = mix_shape_size(ir->values[cast].shape),
                other = mix_shape_size(ir->values[node->inputs[!operand]].shape);
  const mix_backend *backend = ir->context->backend;
  const mix_product product = mix_ir_product(ir, node);
  const bool may = backend->rounds_operand && !is_cast_weight(ir, node->inputs[!operand]) &&
                   !is_worth_copy(ir, &product, weight, node->inputs[!operand]) &&
                   backend->rounds_operand(ir->context, &product, operand);
  const bool stays =
      may && ir->context->memory == MIX_MEMORY_LEAST && product.result.dims[!operand] >= MANY_ROWS;
  *upcasts = !stays && weight / TIMES_SMALLER >= other && backend->rounds_operands(ir->context, &product);
  return *upcasts || may ? operand : -1;
}

/* Where only a training step may do without copies, a weight that the graph does not write keeps its copy,
 * which serves every run. */
static bool needs_no_copy(const mix_ir *ir, const mix_ir_variable *weight) {
  if (ir->values[weight->entry].dtype != MIX_FLOAT32 || weight->variable->share) return false;
  return ir->context->memory != MIX_MEMORY_AUTO || weight->exit != weight->entry;
}

/* By value: the products that may read the weight instead of this 16-bit form of it; -1: it is no such form.
 * NULL: out of memory. */
static int *count_products(mix_ir *ir) {
  int *products = mix_ir_array(ir, ir->value_count + 1, sizeof *products);
  bool *is_weight = mix_ir_array(ir, ir->value_count + 1, sizeof *is_weight);
  if (!products || !is_weight) return NULL;
  for (int i = 0; i < ir->variable_count; i++)
    is_weight[ir->variables[i].entry] = needs_no_copy(ir, &ir->variables[i]);
  for (int v = 0; v < ir->value_count; v++) products[v] = -1;
  for (int n = 0; n < ir->node_count; n++) {
    const mix_ir_node *node = &ir->nodes[n];
    if (!node->dead && !node->source && node->op->opcode == MIX_OPCODE_CAST && is_weight[node->inputs[0]] &&
        mix_dtype_is_16_bit(ir->values[node->first_output].dtype))
      products[node->first_output] = 0;
  }
  for (int n = 0; n < ir->node_count; n++)
    for (int i = 0; i < ir->nodes[n].input_count && i < MIX_CONTRACTED; i++) {
      const int cast = ir->nodes[n].inputs[i];
      bool upcasts;
      if (products[cast] >= 0) products[cast] += weight_operand(ir, &ir->nodes[n], cast, &upcasts) >= 0;
    }
  return products;
}

/* The copies that nothing but such products read. Returns how many; `bytes`: what they take in all. */
static int find_needless_copies(const mix_ir *ir, const int *products, const int *uses, int *copies,
                                size_t *bytes) {
  int count = 0;
  *bytes = 0;
  for (int n = 0; n < ir->node_count; n++) {
    const int cast = ir->nodes[n].first_output;
    if (ir->nodes[n].dead || products[cast] <= 0 || products[cast] != uses[cast]) continue;
    copies[count++] = n;
    *bytes += mix_value_bytes(ir->values[cast].dtype, ir->values[cast].shape);
  }
  return count;
}

bool mix_pass_round_weights(mix_ir *ir) {
  const mix_backend *backend = ir->context->backend;
  if (!backend->rounds_operands || ir->excess_precision || ir->eager) return true;
  const int nodes = ir->node_count, values = ir->value_count;
  int *wide = mix_ir_array(ir, values + 1, sizeof *wide),
      *copies = mix_ir_array(ir, nodes + 1, sizeof *copies);
  const int *uses = mix_ir_uses(ir), *products = count_products(ir);
  size_t bytes;
  if (!wide || !copies || !uses || !products) return false;
  const int count = find_needless_copies(ir, products, uses, copies, &bytes);
  if (!count || !backend->avoids_copies || !backend->avoids_copies(ir->context, bytes)) return true;
  for (int v = 0; v < values; v++) wide[v] = -1;
  for (int i = 0; i < count; i++) {
    const int weight = ir->nodes[copies[i]].inputs[0], cast = ir->nodes[copies[i]].first_output;
    for (int m = 0; m < nodes; m++) {
      bool upcasts;
      const int operand = weight_operand(ir, &ir->nodes[m], cast, &upcasts);
      if (operand >= 0 && !mix_ir_downcast(ir, m, operand, weight, upcasts ? wide : NULL)) return false;
    }
    ir->nodes[copies[i]].dead = true;
  }
  return mix_ir_sort(ir);
}
