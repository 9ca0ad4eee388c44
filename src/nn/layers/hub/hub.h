/* Layers of KerasHub's models, which are made of the layers that are here. Their inner layers stand under the
 * attributes that KerasHub's files have. */
#pragma once

#include "nn/layers/builtin.h"

/* mix_hub_layer(dense, owner, "logits", .units = 3): a layer of that name, with the policy and the generation
 * of its owner: the layer around it, or the options of the model. */
#define mix_hub_layer(class, owner, text, ...)                                                               \
  mix_##class##_with(&(const mix_##class##_options){.size = sizeof(mix_##class##_options),                   \
                                                    .name = text,                                            \
                                                    .policy = (owner)->policy,                               \
                                                    .semantics = (owner)->semantics,                         \
                                                    __VA_ARGS__})

/* Of a norm's options, where 0 means the default. */
#define MIX_HUB_EPSILON(epsilon) ((epsilon) == 0 ? MIX_ZERO : (epsilon))

/* ---- inner layers, in `build` ---- */

/* Builds an inner layer for inputs of that shape. `attribute` is static. Borrowed from the layer. */
mix_layer *mix_hub_add(mix_layer *layer, mix_layer *inner, const char *attribute, mix_shape shape);
/* Layers named after their attribute without its '_'. stddev: of a truncated normal kernel; 0: Keras's
 * default. */
mix_layer *mix_hub_dense(mix_layer *layer, const char *attribute, int64_t units, double stddev,
                         mix_shape shape);
mix_layer *mix_hub_norm(mix_layer *layer, const char *attribute, double epsilon, mix_shape shape);
mix_layer *mix_hub_dropout(mix_layer *layer, const char *attribute, double rate, mix_shape shape);
/* NULL for 0. */
mix_initializer *mix_hub_initializer(double stddev);

/* ---- what calls share ---- */

/* An activation by the name that configs of KerasHub have: those of Keras, and gelu_approximate. */
mix_tensor *mix_hub_activate(const char *name, mix_tensor *x);
/* const char *: such a name, or the object of a function of Keras or KerasHub. */
extern const mix_value_kind mix_field_hub_activation;
/* A mask of keys (batch, keys) as one of scores (batch, 1, keys), bool. NULL for NULL. */
mix_tensor *mix_hub_attention_mask(mix_tensor *padding_mask);

/* x + y, which have two dtypes where a map of policies gave the layers several: Keras promotes them. */
mix_tensor *mix_hub_sum(mix_tensor *x, mix_tensor *y);

/* A symbolic tensor, for calls whose sizes are unknown: layers are called again on known ones. */
mix_tensor *mix_hub_symbolic(mix_dtype dtype, mix_shape shape);

/* ---- the layers ---- */

/* PositionEmbedding: the first rows of a table, for inputs (..., positions, features). */
typedef struct mix_hub_position_embedding_options {
  size_t size;
  MIX_LAYER_OPTIONS
  int64_t sequence_length;
  double stddev;
} mix_hub_position_embedding_options;
mix_layer *mix_hub_position_embedding_with(const mix_hub_position_embedding_options *options);

/* TokenAndPositionEmbedding: the sum of rows for tokens (batch, positions) and for their positions. */
typedef struct mix_hub_token_and_position_embedding_options {
  size_t size;
  MIX_LAYER_OPTIONS
  int64_t vocabulary_size, sequence_length, embedding_dim;
  double stddev;
  bool untied_weights, mask_zero;
} mix_hub_token_and_position_embedding_options;
mix_layer *
mix_hub_token_and_position_embedding_with(const mix_hub_token_and_position_embedding_options *options);

/* TransformerEncoder: self-attention and two dense layers, each with a residual. Arguments: the mask of the
 * keys (batch, positions); may be missing. is_decoder: a TransformerDecoder with cross-attention, whose
 * further arguments are the other sequence and its mask. */
typedef struct mix_hub_transformer_encoder_options {
  size_t size;
  MIX_LAYER_OPTIONS
  int64_t num_heads, intermediate_dim;
  double dropout, layer_norm_epsilon, stddev;
  const char *activation;
  bool normalize_first, is_decoder;
} mix_hub_transformer_encoder_options;
mix_layer *mix_hub_transformer_encoder_with(const mix_hub_transformer_encoder_options *options);

/* DeBERTa's rows of relative positions (batch, 2 bucket_size, hidden_dim), for inputs of that batch. */
typedef struct mix_hub_relative_embedding_options {
  size_t size;
  MIX_LAYER_OPTIONS
  int64_t hidden_dim, bucket_size;
  double layer_norm_epsilon, stddev;
} mix_hub_relative_embedding_options;
mix_layer *mix_hub_relative_embedding_with(const mix_hub_relative_embedding_options *options);

/* Its attention and, as disentangled_encoder, its layer. Arguments: these rows, and the mask of the keys:
 * (batch, 1, positions) of the attention, (batch, positions) of the layer. */
typedef struct mix_hub_disentangled_options {
  size_t size;
  MIX_LAYER_OPTIONS
  int64_t num_heads, intermediate_dim, max_position_embeddings, bucket_size;
  double dropout, layer_norm_epsilon, stddev;
} mix_hub_disentangled_options, mix_hub_disentangled_encoder_options;
mix_layer *mix_hub_disentangled_with(const mix_hub_disentangled_options *options);
mix_layer *mix_hub_disentangled_encoder_with(const mix_hub_disentangled_options *options);

/* ViT's patches of images (batch, height, width, channels), with rows of their positions and before them one
 * for the class. */
typedef struct mix_hub_vit_patches_options {
  size_t size;
  MIX_LAYER_OPTIONS
  int64_t hidden_dim, patch_height, patch_width;
  bool no_class_token, no_patch_bias;
} mix_hub_vit_patches_options;
mix_layer *mix_hub_vit_patches_with(const mix_hub_vit_patches_options *options);

/* Its encoder, a block of it, and the block's dense layers. */
typedef struct mix_hub_vit_options {
  size_t size;
  MIX_LAYER_OPTIONS
  int64_t num_layers, num_heads, mlp_dim;
  double dropout_rate, attention_dropout, layer_norm_epsilon;
  bool no_mha_bias, no_mlp_bias;
} mix_hub_vit_options, mix_hub_vit_encoder_options, mix_hub_vit_block_options, mix_hub_vit_mlp_options;
mix_layer *mix_hub_vit_encoder_with(const mix_hub_vit_options *options);
mix_layer *mix_hub_vit_block_with(const mix_hub_vit_options *options);
mix_layer *mix_hub_vit_mlp_with(const mix_hub_vit_options *options);

/* ---- T5 (Raffel et al.; arXiv:1910.10683) ---- */

/* x / rms(x) * weight, in the compute dtype. */
typedef struct mix_hub_t5_norm_options {
  size_t size;
  MIX_LAYER_OPTIONS
  double epsilon;
} mix_hub_t5_norm_options;
mix_layer *mix_hub_t5_norm_with(const mix_hub_t5_norm_options *options);

/* A layer, and its attention. Results: hidden states and the bias of scores. Arguments of the layer: the mask
 * of the keys (batch, 1, keys); of a decoder that of the other sequence, and this; without has_bias the bias
 * of the layer before. Of the attention: the mask (batch, queries or 1, keys), the bias or, of is_cross, the
 * other sequence. */
typedef struct mix_hub_t5_options {
  size_t size;
  MIX_LAYER_OPTIONS
  int64_t num_heads, hidden_dim, intermediate_dim, key_value_dim;
  double dropout, layer_norm_epsilon;
  const char *activation;
  bool is_decoder, is_gated, has_bias, is_cross;
} mix_hub_t5_options, mix_hub_t5_layer_options, mix_hub_t5_attention_options;
mix_layer *mix_hub_t5_layer_with(const mix_hub_t5_options *options);
mix_layer *mix_hub_t5_attention_with(const mix_hub_t5_options *options);

extern const mix_layer_kind mix_hub_position_embedding_kind, mix_hub_token_and_position_embedding_kind,
    mix_hub_transformer_encoder_kind, mix_hub_relative_embedding_kind, mix_hub_disentangled_kind,
    mix_hub_disentangled_encoder_kind, mix_hub_vit_patches_kind, mix_hub_vit_encoder_kind,
    mix_hub_vit_block_kind, mix_hub_vit_mlp_kind, mix_hub_t5_norm_kind, mix_hub_t5_layer_kind,
    mix_hub_t5_attention_kind;
