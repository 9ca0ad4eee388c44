/* Results of nodes, and what is asked about graphs and dtypes. */
#include "backend/xla/emit_inside.h"

#include "ir/decisions.h"

bool mix_emit_checks(const mix_ir *ir) {
  for (int n = 0; n < ir->node_count; n++) {
    const mix_ir_node *node = &ir->nodes[n];
    if (node->dead || node->source) continue;
    const bool fails = (node->op->flags & MIX_OP_ELEMENTWISE) && node->input_count &&
                       mix_opcode_may_fail(node->op->opcode, ir->values[node->inputs[0]].dtype);
    if (node->body ? mix_emit_checks(node->body) : fails || (node->op->flags & MIX_OP_CHECKS_VALUES))
      return true;
  }
  return false;
}

void mix_emit_result(mix_emitter *e, const mix_ir_node *node, int output, mix_hlo value) {
  const mix_type type = mix_emit_type(e, node, output);
  e->values[node->first_output + output] =
      mix_hlo_reshape(&e->w, mix_hlo_convert(&e->w, value, type.dtype), type.shape);
}

const char *mix_emit_precision(const mix_emitter *e, mix_dtype dtype) {
  if (dtype == MIX_FLOAT64) return "HIGHEST";
  return dtype == MIX_FLOAT32 ? e->precision : NULL;
}

mix_dtype mix_emit_product_dtype(const mix_emitter *e, const mix_ir_node *node, mix_dtype dtype) {
  const bool rounds = e->decisive && !e->decisive[node->first_output] && mix_dtype_is_16_bit(dtype) &&
                      mix_emit_type(e, node, 0).dtype == dtype;
  return rounds ? dtype : mix_emit_wide(dtype);
}

bool mix_emit_enter(mix_emitter *e, mix_ir *ir, mix_hlo *values) {
  for (int v = 0; v < ir->value_count; v++) values[v].number = -1;
  e->ir = ir;
  e->values = values;
  e->decisive = e->root->excess_precision ? mix_ir_decisive_values(ir) : NULL;
  return e->decisive || !e->root->excess_precision;
}
