/* upcast_matmul: on processors without 16-bit matrix multiplication. There a 16-bit product upcasts its
 * operands to float32 while it packs them, although float32 operands could be read in place. Where the
 * backend prefers it (small products, for which packing costs most), the product becomes matmul_downcast: it
 * reads the same numbers as float32 and rounds its result. The upcasts join the programs that produce the
 * operands, cached copies of weights hold float32, and those of a loop's fixed operands are made before it.
 * The bits do not change. Not under jit_compile, where excess_precision would drop both casts, and not in
 * eager graphs. */
#include "backend/backend.h"
#include "passes/passes.h"
#include "tensor/type.h"
#include <string.h>

static bool prefers_upcast(const mix_ir *ir, const mix_ir_node *node) {
  if (node->dead || node->source || node->program) return false;
  if (!node->op->contraction || !node->op->contraction->downcast) return false;
  const mix_product product = mix_ir_product(ir, node);
  const mix_backend *backend = ir->context->backend;
  return mix_dtype_is_16_bit(product.dtype) && backend->prefers_upcast &&
         backend->prefers_upcast(ir->context, &product);
}

/* The value in the dtype of the sums, float32; the cast is made once. -1 with the error recorded. */
static int upcast(mix_ir *ir, int value, mix_dtype dtype, int *wide, const char *scope) {
  if (wide[value] >= 0) return wide[value];
  mix_cast_attributes *attributes = mix_ir_alloc(ir, sizeof *attributes);
  if (!attributes) return -1;
  attributes->dtype = dtype;
  int node = mix_ir_add(ir, &mix_op_cast, attributes, 1, &value, 1,
                        &(mix_type){.dtype = dtype, .shape = ir->values[value].shape});
  if (node < 0) return -1;
  ir->nodes[node].scope = scope;
  return wide[value] = ir->nodes[node].first_output;
}

/* The attributes of the op that rounds its result to `dtype`. NULL: out of memory. */
static void *downcast_attributes(mix_ir *ir, const mix_ir_node *product, mix_dtype dtype) {
  const mix_op *downcast = product->op->contraction->downcast;
  char *attributes = mix_ir_alloc(ir, downcast->attributes_size);
  if (!attributes) return NULL;
  memcpy(attributes, product->attributes, product->op->attributes_size);
  *(mix_dtype *)(attributes + downcast->contraction->result_dtype->offset) = dtype;
  return attributes;
}

/* Of loop n, before its fixed operands are looked for. */
static bool upcast_in_body(mix_ir *ir, int n) {
  return mix_pass_upcast_matmul(ir->nodes[n].body) && mix_pass_hoist_upcasts(ir, n);
}

bool mix_pass_upcast_matmul(mix_ir *ir) {
  if (ir->excess_precision || ir->eager) return true;
  int nodes = ir->node_count, values = ir->value_count;
  int *wide = mix_ir_alloc(ir, sizeof(int) * (size_t)(values + 1));
  if (!wide) return false;
  for (int v = 0; v < values; v++) wide[v] = -1;
  for (int n = 0; n < nodes; n++) {
    if (!prefers_upcast(ir, &ir->nodes[n])) continue;
    const mix_op *op = ir->nodes[n].op;
    void *attributes = downcast_attributes(ir, &ir->nodes[n], ir->values[ir->nodes[n].inputs[0]].dtype);
    if (!attributes) return false;
    for (int i = 0; i < MIX_CONTRACTED; i++) {
      int operand = upcast(ir, ir->nodes[n].inputs[i], op->accumulator, wide, ir->nodes[n].scope);
      if (operand < 0) return false;
      ir->nodes[n].inputs[i] = operand;
    }
    ir->nodes[n].op = op->contraction->downcast;
    ir->nodes[n].attributes = attributes;
  }
  for (int n = 0; n < nodes; n++)
    if (!ir->nodes[n].dead && ir->nodes[n].body && !upcast_in_body(ir, n)) return false;
  return mix_ir_sort(ir);
}
