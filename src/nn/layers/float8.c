/* Scales, histories and roundings of float8 layers. */
#include "nn/layers/float8.h"

#include "base/error.h"
#include "ops/table.h"
#include <string.h>

bool mix_float8_add_weights(mix_layer *layer, mix_float8 *float8, int64_t history_length) {
  static const char *const scales[] = {"inputs_scale", "kernel_scale", "outputs_grad_scale"};
  static const char *const histories[] = {"inputs_amax_history", "kernel_amax_history",
                                          "outputs_grad_amax_history"};
  for (int i = 0; i < MIX_FLOAT8_OPERANDS; i++) {
    float8->scale[i] =
        mix_layer_add_weight(layer, scales[i], .shape = MIX_SCALAR, .dtype = "float32", .initializer = "ones",
                             .no_autocast = true, .overwrite_with_gradient = true);
    float8->history[i] =
        mix_layer_add_weight(layer, histories[i], .shape = MIX_SHAPE(history_length), .dtype = "float32",
                             .initializer = "zeros", .no_autocast = true, .overwrite_with_gradient = true);
  }
  return !mix_failed();
}

bool mix_float8_build(mix_layer *layer, mix_float8 *float8) {
  const char *mode = mix_layer_quantization_mode(layer);
  *float8 = (mix_float8){0};
  return !mode || strcmp(mode, "float8") ||
         mix_float8_add_weights(layer, float8, mix_layer_amax_history_length(layer));
}

/* Neither is autocast. */
static mix_tensor *value_of(mix_variable *variable) { return mix_variable_true_value(variable); }

mix_tensor *mix_float8_operand(const mix_float8 *float8, int operand, mix_tensor *x, bool training) {
  if (!float8->scale[operand]) return x;
  return mix_delayed_scaling_operand(x, value_of(float8->scale[operand]),
                                     training ? value_of(float8->history[operand]) : NULL);
}

mix_tensor *mix_float8_result(const mix_float8 *float8, mix_tensor *product) {
  const int i = MIX_FLOAT8_OUTPUTS_GRADIENT;
  if (!float8->scale[i]) return product;
  return mix_delayed_scaling_result(product, value_of(float8->scale[i]), value_of(float8->history[i]));
}

mix_tensor *mix_float8_bias(const mix_float8 *float8, mix_tensor *bias) {
  if (!float8->scale[0] || mix_tensor_dtype(bias) != MIX_FLOAT32) return bias;
  return mix_cast(mix_cast(bias, MIX_BFLOAT16), MIX_FLOAT32);
}
