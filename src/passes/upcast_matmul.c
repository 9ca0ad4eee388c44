/* upcast_matmul: on processors without 16-bit matrix multiplication. There a 16-bit product upcasts its
 * operands to float32 while it packs them, although float32 operands could be read in place. Where the
 * backend prefers it (small products, for which packing costs most), the product becomes matmul_downcast: it
 * reads the same numbers as float32 and rounds its result. The upcasts join the programs that produce the
 * operands, cached copies of weights hold float32, and those of a loop's fixed operands are made before it.
 * The bits do not change. Not under jit_compile, where excess_precision would drop both casts, and not in
 * eager graphs. */
#include "passes/passes.h"

static bool prefers_upcast(const mix_ir *ir, const mix_ir_node *node) {
  if (node->dead || node->source || node->program) return false;
  if (!node->op->contraction || !node->op->contraction->downcast) return false;
  const mix_product product = mix_ir_product(ir, node);
  const mix_backend *backend = ir->context->backend;
  return mix_dtype_is_16_bit(product.dtype) && backend->prefers_upcast &&
         backend->prefers_upcast(ir->context, &product);
}

/* Of loop n, before its fixed operands are looked for. */
static bool upcast_in_body(mix_ir *ir, int n) {
  return mix_pass_upcast_matmul(ir->nodes[n].body) && mix_pass_hoist_upcasts(ir, n);
}

bool mix_pass_upcast_matmul(mix_ir *ir) {
  if (ir->excess_precision || ir->eager) return true;
  int nodes = ir->node_count, values = ir->value_count;
  int *wide = mix_ir_ints(ir, values + 1);
  if (!wide) return false;
  for (int v = 0; v < values; v++) wide[v] = -1;
  for (int n = 0; n < nodes; n++)
    if (prefers_upcast(ir, &ir->nodes[n]) && !mix_ir_downcast(ir, n, -1, -1, wide)) return false;
  for (int n = 0; n < nodes; n++)
    if (!ir->nodes[n].dead && ir->nodes[n].body && !upcast_in_body(ir, n)) return false;
  return mix_ir_sort(ir);
}
