/* Weights that are stored as integers of 8 or 4 bits, under policies of the modes int8 and int4: their
 * variables, their quantization and the products with them. Dense, EinsumDense and the embeddings share it.
 */
#pragma once

#include "nn/layer/layer.h"
#include "nn/policy/quantization_config.h"

/* What a layer says of a weight. */
typedef struct mix_stored_shape {
  const char *name;    /* "kernel": its variables are kernel, kernel_scale, kernel_zero and g_idx */
  mix_shape shape;     /* of the float weight; of 4 bits of rank 2 */
  mix_axes kept;       /* the axes that have scales of their own, in the order of the scale */
  int packed_axis;     /* 4 bits: along which two numbers share a byte */
  mix_shape variable;  /* 8 bits: the variable's shape, if it is another than `shape`; rank 0: it is not */
  mix_shape scale;     /* the shape of the scale's variable where there are no blocks */
  bool float_zero;     /* the zeros have the layer's variable dtype instead of int8 */
  bool no_group_index; /* there is no variable g_idx */
} mix_stored_shape;

/* A weight of a layer. Variables are borrowed from the layer's list. */
typedef struct mix_stored_weight {
  int bits; /* 8 or 4; 0: the layer has a float weight, and all else is empty */
  mix_stored_shape of;
  int64_t block;                    /* rows of a group; 0: no blocks */
  mix_variable *stored, *scale;     /* int8, of 4 bits packed; in the variable dtype */
  mix_variable *zero, *group_index; /* of blocks alone */
  mix_abs_max inputs;               /* how inputs are quantized, if they are */
} mix_stored_weight;

/* Does the layer's policy store weights as integers? Then layers do not add the float weight in `build`. */
bool mix_layer_stores_integers(const mix_layer *layer);
/* In `build` of such a layer: adds the variables, zeros with scales of one. `config`: the text of the layer's
 * quantization_config or NULL, which decides before the policy. False with the error recorded. */
bool mix_stored_build(mix_layer *layer, const char *config, const mix_stored_shape *of,
                      mix_stored_weight *weight);
/* In `quantize`: replaces a float weight of the layer by the variables and their values (rows Q06, Q15),
 * which come last in its list. `source` may be reshaped to `of->shape`. False with the error recorded. */
bool mix_stored_replace(mix_layer *layer, mix_variable *source, const mix_quantization_config *config,
                        const mix_stored_shape *of, mix_stored_weight *weight);
/* Gives the variables the values of a float weight, quantized anew by the mode's own range. */
mix_status mix_stored_assign(const mix_stored_weight *weight, mix_tensor *value);

/* The integers, of the shape `of.shape`. */
mix_tensor *mix_stored_integers(const mix_stored_weight *weight);
/* The weight in a dtype, of the shape `of.shape`: q / scale, or (q - zero) scale, in float32. Reads the
 * variables as the call does, so that a 16-bit layer rounds the scale first. */
mix_tensor *mix_stored_value(const mix_stored_weight *weight, mix_dtype dtype);
/* x (..., rows) times a weight of rank 2 (rows, columns) in x's dtype: of rows quantized to integers if the
 * layer's inputs are. The gradient goes to x alone, straight through. */
mix_tensor *mix_stored_product(const mix_stored_weight *weight, mix_tensor *x);
/* x as integers, dynamically with one scale over the axes (rows Q06, Q07). *scale keeps the axes, with size
 * 1, and has x's dtype. No gradient. NULL with the error recorded. */
mix_tensor *mix_quantize_inputs(const mix_abs_max *how, mix_tensor *x, mix_axes axes, mix_tensor **scale);

/* quantize_weight.c: the arithmetic of NumPy in the value's dtype, to the bit. */
typedef struct mix_quantized {
  mix_tensor *stored;       /* int8, of the value's shape; packed where that was asked for */
  mix_tensor *scale, *zero; /* the value's shape with a size of 1, or of the groups, along reduced axes; zero,
                             * int8, of blocks alone */
} mix_quantized;
/* What mix_stored_assign assigns. False with the error recorded. */
bool mix_stored_quantize(const mix_stored_weight *weight, mix_tensor *value, mix_quantized *result);
/* One scale over the reduced axes of a float tensor. */
bool mix_quantize_abs_max(mix_tensor *value, mix_axes reduced, const mix_abs_max *how, mix_quantized *result);
/* Blocks of so many elements along an axis, from -8 to 7. */
bool mix_quantize_blocks(mix_tensor *value, int axis, int64_t block, mix_quantized *result);
