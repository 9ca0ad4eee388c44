/* Blocks of decoders: attention of each position to those before it, and two or three products behind it,
 * each with a residual. A family's block is a form, which names the inner layers as its files have them. */
#pragma once

#include "nn/layers/hub/hub.h"

/* ---- rotary positions (Su et al.: RoFormer; arXiv:2104.09864) ---- */

typedef struct mix_rotary {
  int64_t dimensions; /* so many of each head rotate; 0: none */
  double wavelength, scaling;
  /* Longer waves are stretched by `stretch`, those above `low` waves in the length that the model was trained
   * with, and from `high` waves on none are (Llama 3.1). stretch 0: none are. */
  double stretch, low, high, trained_length;
  /* Frequencies are divided by short_factors, and by long_factors where a sequence is longer than
   * trained_length; cosines and sines are times `magnitude` (Ding et al.: LongRoPE; arXiv:2402.13753). No
   * factors: neither. */
  mix_numbers short_factors, long_factors;
  double magnitude;
} mix_rotary;
/* The rows of the factors, in the options of block and attention. */
#define MIX_ROTARY_FIELDS(type)                                                                              \
  {"short_factors", offsetof(type, rotary.short_factors), &mix_field_numbers, .optional = true}, {           \
    "long_factors", offsetof(type, rotary.long_factors), &mix_field_numbers, .optional = true                \
  }
/* x (batch, positions, heads, dimension), rotated by its places (positions). */
mix_tensor *mix_rotate(mix_tensor *x, const mix_rotary *rotary, mix_tensor *places);

/* ---- attention ---- */

/* An inner layer: the attribute of files, and its name. */
typedef struct mix_hub_part {
  const char *attribute, *name;
} mix_hub_part;

typedef enum mix_hub_norm_form {
  MIX_HUB_LAYER_NORM,
  MIX_HUB_RMS_NORM,
  MIX_HUB_OFFSET_RMS_NORM
} mix_hub_norm_form;

typedef struct mix_hub_decoder_form {
  const char *class_name, *attention_class, *norm_class; /* norm_class: NULL: LayerNormalization */
  mix_hub_norm_form norm;
  mix_hub_part attention, attention_norm, feedforward_norm;
  mix_hub_part query, key, value, output;              /* key without an attribute: `query` makes all three */
  mix_hub_part up, gate, down;                         /* gate without an attribute: there is none */
  mix_hub_part attention_dropout, feedforward_dropout; /* of results; without an attribute: none */
  mix_hub_part scores_dropout, heads_dropout;          /* of probabilities; of what the heads give */
  mix_hub_part post_attention_norm, post_feedforward_norm; /* where the options ask for them */
  const char *activation;                                  /* mix_hub_activate */
  bool multi_head;        /* the attention is Keras's MultiHeadAttention, whose parts are not named here */
  bool norms_first;       /* norms are made before what they feed: the order of weights */
  bool parallel;          /* both parts take the block's input */
  bool bias, output_bias; /* of query, key and value; of the output */
  bool dense_bias;        /* of up and down */
  bool heads_first;       /* kernels of query, key and value are (heads, features, dimension) */
  bool dense_output;      /* the output's kernel is (heads x dimension, features), of a Dense layer */
  bool einsum_output;     /* or of an EinsumDense */
  bool drops_output;      /* the dropout of probabilities is applied to the output too */
  bool einsum_dense;      /* up, gate and down are EinsumDense */
  bool wide_gate;         /* the activation is in float32 */
  bool slopes, slopes_scaled; /* the places of keys are added to scores, before these are scaled */
} mix_hub_decoder_form;

/* What block and attention have in common. */
#define MIX_HUB_ATTENTION_OPTIONS                                                                            \
  const mix_hub_decoder_form *form;                                                                          \
  int64_t heads, groups; /* groups: heads of keys and values */                                              \
  int64_t head_dim;      /* 0: features / heads */                                                           \
  int64_t window;        /* 0: none */                                                                       \
  double dropout;        /* of probabilities, or of what the heads give */                                   \
  double soft_cap;       /* of scores; 0: none */                                                            \
  double stddev;         /* of kernels, normal; 0: glorot_uniform */                                         \
  mix_rotary rotary;

typedef struct mix_hub_attention_options {
  size_t size;
  MIX_LAYER_OPTIONS
  MIX_HUB_ATTENTION_OPTIONS
} mix_hub_attention_options;
mix_layer *mix_hub_attention_with(const mix_hub_attention_options *options);

/* An EinsumDense over the last axis of x (batch, positions, features), built. NULL with the error recorded.
 */
typedef struct mix_hub_kernel_options {
  bool bias, heads_first;
  double stddev;
} mix_hub_kernel_options;
mix_layer *mix_hub_projection(mix_layer *layer, mix_hub_part part, mix_shape input, int bound,
                              mix_shape sizes, const mix_hub_kernel_options *options);
/* For one of the options above; NULL with the error recorded. */
mix_initializer *mix_hub_normal(double stddev);
/* NULL for a rate of 0, or with the error recorded. */
mix_layer *mix_hub_drop(mix_layer *layer, mix_hub_part part, double rate, mix_shape shape);

/* ---- the block ---- */

/* Arguments: the mask of the keys (batch, positions); may be missing. */
typedef struct mix_hub_decoder_options {
  size_t size;
  MIX_LAYER_OPTIONS
  MIX_HUB_ATTENTION_OPTIONS
  int64_t intermediate_dim;
  double epsilon, feedforward_dropout;
  bool post_attention_norm, post_feedforward_norm;
} mix_hub_decoder_options;
mix_layer *mix_hub_decoder_with(const mix_hub_decoder_options *options);

/* A norm of that form, of a class named as the family's. */
mix_layer *mix_hub_decoder_norm(const mix_hub_decoder_form *form, double epsilon, const char *name,
                                mix_policy *policy, const mix_semantics *semantics);

/* Gemma's norm: x / rms(x) * (1 + scale). */
typedef struct mix_hub_offset_rms_norm_options {
  size_t size;
  MIX_LAYER_OPTIONS
  double epsilon;
} mix_hub_offset_rms_norm_options;
mix_layer *mix_hub_offset_rms_norm_with(const mix_hub_offset_rms_norm_options *options);
