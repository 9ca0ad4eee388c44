/* Products of layers whose policy has the mode float8: inputs and kernel are rounded to float8 numbers, and
 * so is the gradient that arrives at the product (Keras's `_float8_call`). */
#pragma once

#include "nn/layer/layer.h"

enum { MIX_FLOAT8_INPUTS, MIX_FLOAT8_KERNEL, MIX_FLOAT8_OUTPUTS_GRADIENT, MIX_FLOAT8_OPERANDS };

/* The scale of each, and its largest magnitudes in former steps; borrowed from the layer's weights. NULL: the
 * layer is not float8, and the functions below give their operand back. */
typedef struct mix_float8 {
  mix_variable *scale[MIX_FLOAT8_OPERANDS], *history[MIX_FLOAT8_OPERANDS];
} mix_float8;

/* Adds the six weights, with histories of that many entries. False with the error recorded. */
bool mix_float8_add_weights(mix_layer *layer, mix_float8 *float8, int64_t history_length);
/* The same in a layer's `build`, if its policy has the mode; else the record becomes empty. */
bool mix_float8_build(mix_layer *layer, mix_float8 *float8);
/* The inputs or the kernel of the product. In training a tape finds the next scale and history. */
mix_tensor *mix_float8_operand(const mix_float8 *float8, int operand, mix_tensor *x, bool training);
mix_tensor *mix_float8_result(const mix_float8 *float8, mix_tensor *product);
/* The bias of the product: of a float32 layer rounded to bfloat16 and back, as Keras does for the sake of
 * fused kernels. */
mix_tensor *mix_float8_bias(const mix_float8 *float8, mix_tensor *bias);
