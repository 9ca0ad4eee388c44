/* Selection by a condition, and clipping. */
#include "ops/rules.h"

static void select_gradient(mix_node *node, mix_tensor *const *output_gradients,
                            mix_tensor **input_gradients) {
  mix_tensor *condition = mix_node_input(node, 0), *dy = output_gradients[0], *zero = mix_scalar_like(dy, 0);
  input_gradients[1] = mix_unbroadcast(node, 1, mix_select(condition, dy, zero));
  input_gradients[2] = mix_unbroadcast(node, 2, mix_select(condition, zero, dy));
}

const mix_op mix_op_select = {.name = "select",
                              .tf_name = "SelectV2",
                              .signature = "b,T,T->T",
                              .types = "any",
                              .flags = MIX_OP_ELEMENTWISE,
                              .opcode = MIX_OPCODE_SELECT,
                              .infer = mix_rule_broadcast,
                              .row_independent = mix_rows_elementwise,
                              .gradient = select_gradient};

mix_tensor *mix_select(mix_tensor *condition, mix_tensor *a, mix_tensor *b) {
  return mix_apply(&mix_op_select, NULL, 3, (mix_tensor *[]){condition, a, b});
}

/* x keeps its shape; the bounds are scalars. */
static bool clip_infer(mix_node *node) {
  for (int i = 1; i < 3; i++)
    if (mix_input_value(node, i)->shape.rank != 0) return mix_rule_fail(node, "expected scalar bounds");
  return mix_rule_same(node);
}

/* dy goes to x where low <= x <= high, and to the bound outside that range. */
static void clip_gradient(mix_node *node, mix_tensor *const *output_gradients, mix_tensor **input_gradients) {
  mix_tensor *x = mix_node_input(node, 0), *dy = output_gradients[0], *zero = mix_scalar_like(dy, 0);
  mix_tensor *below = mix_less(x, mix_node_input(node, 1)), *above = mix_greater(x, mix_node_input(node, 2));
  input_gradients[0] = mix_select(mix_logical_or(below, above), zero, dy);
  input_gradients[1] = mix_reduce_to_shape(mix_select(below, dy, zero), (mix_shape){.rank = 0});
  input_gradients[2] = mix_reduce_to_shape(mix_select(above, dy, zero), (mix_shape){.rank = 0});
}

const mix_op mix_op_clip = {.name = "clip",
                            .tf_name = "ClipByValue",
                            .signature = "T,T,T->T",
                            .types = "number",
                            .flags = MIX_OP_ELEMENTWISE,
                            .opcode = MIX_OPCODE_CLIP,
                            .infer = clip_infer,
                            .row_independent = mix_rows_elementwise,
                            .gradient = clip_gradient,
                            .scalars = 1u << 1 | 1u << 2};

mix_tensor *mix_clip(mix_tensor *x, mix_tensor *low, mix_tensor *high) {
  return mix_apply(&mix_op_clip, NULL, 3, (mix_tensor *[]){x, low, high});
}
