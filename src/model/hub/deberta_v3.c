/* DeBERTa V3 (He et al.; arXiv:2111.09543). */
#include "base/error.h"
#include "model/hub/hub.h"
#include <stdio.h>

typedef struct deberta {
  size_t size;
  MIX_LAYER_OPTIONS
  int64_t vocabulary_size, num_layers, num_heads, hidden_dim, intermediate_dim, max_sequence_length,
      bucket_size;
  double dropout;
} deberta;

static mix_layer *encoder(const deberta *o, int index) {
  char name[64];
  snprintf(name, sizeof name, "disentangled_attention_encoder_layer_%d", index);
  return mix_hub_layer(hub_disentangled_encoder, o, name, .num_heads = o->num_heads,
                       .intermediate_dim = o->intermediate_dim,
                       .max_position_embeddings = o->max_sequence_length, .bucket_size = o->bucket_size,
                       .dropout = o->dropout, .layer_norm_epsilon = 1e-7, .stddev = MIX_HUB_STDDEV);
}

static mix_model *build(const void *options) {
  const deberta *o = options;
  mix_tensor *ids = mix_hub_tokens(o, "token_ids"), *mask = mix_hub_tokens(o, "padding_mask");
  mix_tensor *x =
      mix_call(mix_hub_layer(reversible_embedding, o, "token_embedding", .input_dim = o->vocabulary_size,
                             .output_dim = o->hidden_dim,
                             .embeddings_initializer_object = mix_hub_initializer(MIX_HUB_STDDEV)),
               ids);
  x = mix_call(mix_hub_layer(layer_normalization, o, "embeddings_layer_norm", .epsilon = 1e-7), x);
  x = mix_call(mix_hub_layer(dropout, o, "embeddings_dropout", .rate = o->dropout), x);
  mix_tensor *relative = mix_call(mix_hub_layer(hub_relative_embedding, o, "rel_embedding",
                                                .hidden_dim = o->hidden_dim, .bucket_size = o->bucket_size,
                                                .layer_norm_epsilon = 1e-7, .stddev = MIX_HUB_STDDEV),
                                  x);
  for (int i = 0; i < o->num_layers && x && relative; i++)
    x = mix_call(encoder(o, i), x, .arguments = mix_list_of(relative, mask));
  if (mix_failed()) return NULL;
  return mix_hub_model(o, mix_dict_of("token_ids", ids, "padding_mask", mask), x);
}

static const mix_field_row fields[] = {MIX_HUB_SIZE(deberta, vocabulary_size),
                                       MIX_HUB_COUNT(deberta, num_layers),
                                       MIX_HUB_SIZE(deberta, num_heads),
                                       MIX_HUB_SIZE(deberta, hidden_dim),
                                       MIX_HUB_SIZE(deberta, intermediate_dim),
                                       MIX_HUB_RATE(deberta, dropout, 0.1),
                                       MIX_HUB_SIZE_OR(deberta, max_sequence_length, 512),
                                       MIX_HUB_SIZE_OR(deberta, bucket_size, 256),
                                       {0}};
const mix_hub_family mix_hub_deberta_v3_backbone = {"DebertaV3Backbone", "deberta_v3.deberta_v3_backbone",
                                                    sizeof(deberta), fields, build};
