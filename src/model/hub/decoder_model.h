/* Backbones of decoders: rows of tokens, blocks, a norm. A family's file has the form of its block, its rows,
 * and what its blocks are given. */
#pragma once

#include "model/hub/hub.h"
#include "nn/layers/hub/decoder.h"

/* The options of all families; the rows of each say which it has. */
typedef struct mix_hub_decoder_config {
  size_t size;
  MIX_LAYER_OPTIONS
  int64_t vocabulary_size, num_layers, num_heads, num_key_value_heads, hidden_dim, intermediate_dim,
      max_sequence_length;
  int64_t head_dim, sliding_window; /* 0: none is given */
  double dropout, feedforward_dropout, layer_norm_epsilon;
  double rotary_percentage, rope_max_wavelength, rope_scaling_factor;
  double rope_stretch, rope_low, rope_high, rope_trained_length; /* NaN or infinity: none */
  const char *rope_scaling_type;                                 /* NULL: none */
  mix_numbers short_factors, long_factors;
  double attention_soft_cap, final_soft_cap; /* infinity: none */
  bool tied, untied, ignored, use_sliding_window, post_attention_norm, post_feedforward_norm;
} mix_hub_decoder_config;

/* How a family's graph differs. */
typedef struct mix_hub_decoder_family {
  const mix_hub_decoder_form *form;
  const char *block_name, *norm_name; /* "transformer_layer_%d", "layer_norm" */
  bool alternate_windows;             /* every other block has none, the first one has */
} mix_hub_decoder_family;

/* The block that most options are for; the family's file completes it. */
mix_hub_decoder_options mix_hub_block_of(const mix_hub_decoder_config *o, const mix_hub_decoder_form *form);
/* The table of tokens, "token_embedding"; stddev: of its normal initializer, 0: uniform. */
mix_layer *mix_hub_token_table(const mix_hub_decoder_config *o, double stddev);
/* The model of x, made of `ids`. */
mix_model *mix_hub_decoder_model(const mix_hub_decoder_config *o, const mix_hub_decoder_family *family,
                                 const mix_hub_decoder_options *block, mix_tensor *ids, mix_tensor *x);

/* ---- rows ---- */

#define MIX_HUB_DECODER_SIZE(member) MIX_HUB_SIZE(mix_hub_decoder_config, member)
#define MIX_HUB_DECODER_SIZE_OR(member, value) MIX_HUB_SIZE_OR(mix_hub_decoder_config, member, value)
#define MIX_HUB_DECODER_NUMBER(member, value)                                                                \
  { MIX_FIELD(mix_hub_decoder_config, member), &mix_field_number, .number = value, .range = MIX_POSITIVE }
#define MIX_HUB_DECODER_SIZES                                                                                \
  MIX_HUB_DECODER_SIZE(vocabulary_size), MIX_HUB_COUNT(mix_hub_decoder_config, num_layers),                  \
      MIX_HUB_DECODER_SIZE(hidden_dim), MIX_HUB_DECODER_SIZE(intermediate_dim)
#define MIX_HUB_DECODER_NAMED(name, member, ...)                                                             \
  { name, offsetof(mix_hub_decoder_config, member), __VA_ARGS__ }
/* Of groups of heads: num_query_heads and num_key_value_heads. */
#define MIX_HUB_DECODER_GROUPS                                                                               \
  MIX_HUB_DECODER_NAMED("num_query_heads", num_heads, &mix_field_integer, .range = MIX_POSITIVE,             \
                        .required = true),                                                                   \
      MIX_HUB_DECODER_SIZE(num_key_value_heads)
#define MIX_HUB_DECODER_DROPOUT(value)                                                                       \
  { MIX_FIELD(mix_hub_decoder_config, dropout), &mix_field_number, .number = value, .range = MIX_BELOW_ONE }
