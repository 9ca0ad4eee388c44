/* Training in float8 with delayed scaling: the scale of a step comes from the largest magnitudes of former
 * steps. Scales and histories are variables whose "gradient" is their next value (Keras 3's
 * compute_float8_scale and compute_float8_amax_history). */
#include "ops/rules.h"

/* The largest finite numbers. */
static const double e4m3fn_max = 448, e5m2_max = 57344;

/* 1 / (max / amax) if the amax is positive and finite, else the old scale. Its reciprocal is taken twice, as
 * in Keras. */
static mix_tensor *next_scale(mix_tensor *scale, mix_tensor *history, double max) {
  mix_tensor *one = mix_scalar_like(scale, 1), *amax = mix_reduce_max(history, MIX_ALL_AXES, false);
  mix_tensor *old = mix_divide(one, scale), *factor = mix_divide(mix_scalar_like(scale, max), amax);
  mix_tensor *good = mix_logical_and(mix_greater(amax, mix_scalar_like(amax, 0)), mix_is_finite(amax));
  return mix_divide(one, mix_select(good, factor, old));
}

/* The history moves by one entry to the left, its first entry to the end; then the largest magnitude of `x`
 * becomes the first. */
static mix_tensor *next_history(mix_tensor *history, mix_tensor *x) {
  mix_tensor *amax = mix_reshape(mix_reduce_max(mix_abs(x), MIX_ALL_AXES, false), MIX_SHAPE(1));
  amax = mix_cast(amax, mix_tensor_dtype(history));
  const int64_t length = mix_tensor_shape(history).dims[0];
  if (length < 2) return amax;
  mix_tensor *parts[] = {amax, mix_slice(history, MIX_SHAPE(2), MIX_SHAPE(length - 2)),
                         mix_slice(history, MIX_SHAPE(0), MIX_SHAPE(1))};
  return mix_concat(3, parts, 0);
}

/* Both as the gradients of the last two operands. */
static void set_state_gradients(mix_node *node, mix_tensor *x, double max, mix_tensor **input_gradients) {
  mix_tensor **state = input_gradients + node->input_count - 2;
  mix_tensor *scale = mix_node_input(node, node->input_count - 2),
             *history = mix_node_input(node, node->input_count - 1);
  state[0] = next_scale(scale, history, max);
  state[1] = next_history(history, x);
}

static bool infer(mix_node *node) {
  const mix_shape scale = mix_input_value(node, node->input_count - 2)->shape,
                  history = mix_input_value(node, node->input_count - 1)->shape;
  if (scale.rank || history.rank != 1 || history.dims[0] < 1)
    return mix_rule_fail(node, "expected a scalar scale and a history of at least one entry");
  return mix_rule_same(node);
}

/* Operands: x quantized and dequantized, x, scale, history. */
static void operand_gradient(mix_node *node, mix_tensor *const *output_gradients,
                             mix_tensor **input_gradients) {
  input_gradients[0] = output_gradients[0];
  set_state_gradients(node, mix_node_input(node, 1), e4m3fn_max, input_gradients);
}

/* Operands: y, scale, history, which are those of y's gradient. */
static void result_gradient(mix_node *node, mix_tensor *const *output_gradients,
                            mix_tensor **input_gradients) {
  mix_tensor *dy = output_gradients[0];
  input_gradients[0] = mix_quantize_dequantize(dy, mix_node_input(node, 1), MIX_FLOAT8_E5M2);
  set_state_gradients(node, dy, e5m2_max, input_gradients);
}

const mix_op mix_op_delayed_scaling_operand = {.name = "delayed_scaling_operand",
                                               .signature = "T,T,f,f->T",
                                               .types = "float",
                                               .flags = MIX_OP_ALIAS,
                                               .infer = infer,
                                               .gradient = operand_gradient};
const mix_op mix_op_delayed_scaling_result = {.name = "delayed_scaling_result",
                                              .signature = "T,f,f->T",
                                              .types = "float",
                                              .flags = MIX_OP_ALIAS,
                                              .infer = infer,
                                              .gradient = result_gradient};

mix_tensor *mix_delayed_scaling_operand(mix_tensor *x, mix_tensor *scale, mix_tensor *history) {
  mix_tensor *quantized = mix_quantize_dequantize(x, scale, MIX_FLOAT8_E4M3FN);
  return history ? mix_apply(&mix_op_delayed_scaling_operand, NULL, 4,
                             (mix_tensor *[]){quantized, x, scale, history})
                 : quantized;
}

mix_tensor *mix_delayed_scaling_result(mix_tensor *y, mix_tensor *scale, mix_tensor *history) {
  return mix_apply(&mix_op_delayed_scaling_result, NULL, 3, (mix_tensor *[]){y, scale, history});
}
