/* Keras 3's Int8QuantizationConfig, Int4QuantizationConfig and Float8QuantizationConfig, with all defaults
 * filled in: how the weights and the inputs of a layer are quantized. */
#pragma once

#include <jansson.h>
#include <mixtape/ops.h>

/* An AbsMaxQuantizer: scale = high / (largest magnitude + epsilon); values times scale, rounded half to even
 * and clipped, are the integers. */
typedef struct mix_abs_max {
  bool given; /* weights: else the mode's own range; inputs: else they are not quantized */
  double low, high, epsilon;
  mix_axes axes; /* as files have them, which no layer asks for; none: none */
} mix_abs_max;

typedef struct mix_quantization_config {
  const char *mode; /* "int8", "int4" or "float8", static */
  mix_abs_max weights, inputs;
  int64_t block_size; /* int4: rows of a group; -1: one scale for all rows of a column */
} mix_quantization_config;

/* What Model.quantize(mode) takes: int8 quantizes inputs, int4 has blocks of 128. `mode` may have numbers
 * ("int4/4"); NULL: it is none of the three. */
bool mix_quantization_config_default(const char *mode, mix_quantization_config *config);
/* From the object in a file, with Keras's ValueErrors. False with the error recorded. */
bool mix_quantization_config_read(const json_t *object, mix_quantization_config *config);
/* The object as Keras writes it; a new reference. NULL with the error recorded. */
json_t *mix_quantization_config_json(const mix_quantization_config *config);
/* The same as interned text, which options keep, and back. NULL or false with the error recorded. */
const char *mix_quantization_config_text(const mix_quantization_config *config);
bool mix_quantization_config_parse(const char *text, mix_quantization_config *config);
/* Keras's ValueErrors: ranges outside int8, quantizers of one's own beside blocks, other numbers. */
bool mix_quantization_config_check(const mix_quantization_config *config, const char *call);
