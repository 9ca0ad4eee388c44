/* BART (Lewis et al.; arXiv:1910.13461): an encoder, and a decoder that attends to what it gives. */
#include "base/error.h"
#include "model/hub/hub.h"
#include <stdio.h>

typedef struct bart {
  size_t size;
  MIX_LAYER_OPTIONS
  int64_t vocabulary_size, num_layers, num_heads, hidden_dim, intermediate_dim, max_sequence_length;
  double dropout;
} bart;

static const char *named(const char *side, const char *name, char text[64]) {
  snprintf(text, 64, "%s_%s", side, name);
  return text;
}

/* `side`: "encoder" or "decoder". */
static mix_tensor *embed(const bart *o, mix_layer *table, mix_tensor *ids, const char *side) {
  char name[64];
  mix_tensor *tokens = mix_call(table, ids);
  mix_layer *position = mix_hub_layer(hub_position_embedding, o, named(side, "position_embedding", name),
                                      .sequence_length = o->max_sequence_length, .stddev = MIX_HUB_STDDEV);
  mix_tensor *positions = mix_call(position, tokens);
  mix_layer *sum = mix_hub_add_layer(o, named(side, "embeddings_add", name));
  mix_tensor *x = positions ? mix_call(sum, mix_list_of(tokens, positions)) : NULL;
  x = mix_call(
      mix_hub_layer(layer_normalization, o, named(side, "embeddings_layer_norm", name), .epsilon = 1e-5), x);
  return mix_call(mix_hub_layer(dropout, o, named(side, "embeddings_dropout", name), .rate = o->dropout), x);
}

static mix_layer *layer_of(const bart *o, bool is_decoder, int index) {
  char name[64];
  snprintf(name, sizeof name, "transformer_%s_layer_%d", is_decoder ? "decoder" : "encoder", index);
  return mix_hub_layer(hub_transformer_encoder, o, name, .num_heads = o->num_heads,
                       .intermediate_dim = o->intermediate_dim, .activation = "gelu", .dropout = o->dropout,
                       .layer_norm_epsilon = 1e-5, .stddev = MIX_HUB_STDDEV, .is_decoder = is_decoder);
}

static mix_model *build(const void *options) {
  const bart *o = options;
  mix_tensor *encoder_ids = mix_hub_tokens(o, "encoder_token_ids"),
             *encoder_mask = mix_hub_tokens(o, "encoder_padding_mask"),
             *decoder_ids = mix_hub_tokens(o, "decoder_token_ids"),
             *decoder_mask = mix_hub_tokens(o, "decoder_padding_mask");
  mix_layer *table = mix_hub_layer(reversible_embedding, o, "token_embedding",
                                   .input_dim = o->vocabulary_size, .output_dim = o->hidden_dim,
                                   .embeddings_initializer_object = mix_hub_initializer(MIX_HUB_STDDEV));
  mix_tensor *encoded = embed(o, table, encoder_ids, "encoder");
  for (int i = 0; i < o->num_layers && encoded; i++)
    encoded = mix_call(layer_of(o, false, i), encoded, .arguments = mix_list_of(encoder_mask));
  mix_tensor *x = encoded ? embed(o, table, decoder_ids, "decoder") : NULL;
  for (int i = 0; i < o->num_layers && x; i++)
    x = mix_call(layer_of(o, true, i), x, .arguments = mix_list_of(decoder_mask, encoded, encoder_mask));
  if (mix_failed()) return NULL;
  return mix_hub_model(o,
                       mix_dict_of("encoder_token_ids", encoder_ids, "encoder_padding_mask", encoder_mask,
                                   "decoder_token_ids", decoder_ids, "decoder_padding_mask", decoder_mask),
                       mix_dict_of("encoder_sequence_output", encoded, "decoder_sequence_output", x));
}

static const mix_field_row fields[] = {MIX_HUB_SIZE(bart, vocabulary_size),
                                       MIX_HUB_COUNT(bart, num_layers),
                                       MIX_HUB_SIZE(bart, num_heads),
                                       MIX_HUB_SIZE(bart, hidden_dim),
                                       MIX_HUB_SIZE(bart, intermediate_dim),
                                       MIX_HUB_RATE(bart, dropout, 0.1),
                                       MIX_HUB_SIZE_OR(bart, max_sequence_length, 1024),
                                       {0}};
const mix_hub_family mix_hub_bart_backbone = {"BartBackbone", "bart.bart_backbone", sizeof(bart), fields,
                                              build};
