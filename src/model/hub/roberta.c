/* RoBERTa (Liu et al.; arXiv:1907.11692), XLM-RoBERTa (Conneau et al.; arXiv:1911.02116) and DistilBERT (Sanh
 * et al.; arXiv:1910.01108): encoders without segments. */
#include "base/error.h"
#include "model/hub/hub.h"
#include <stdio.h>

typedef struct roberta {
  size_t size;
  MIX_LAYER_OPTIONS
  int64_t vocabulary_size, num_layers, num_heads, hidden_dim, intermediate_dim, max_sequence_length;
  double dropout;
} roberta;

static mix_model *build_named(const roberta *o, const char *embeddings, double epsilon) {
  mix_tensor *ids = mix_hub_tokens(o, "token_ids"), *mask = mix_hub_tokens(o, "padding_mask");
  mix_tensor *x =
      mix_call(mix_hub_layer(hub_token_and_position_embedding, o, embeddings,
                             .vocabulary_size = o->vocabulary_size, .sequence_length = o->max_sequence_length,
                             .embedding_dim = o->hidden_dim, .stddev = MIX_HUB_STDDEV),
               ids);
  x = mix_call(mix_hub_layer(layer_normalization, o, "embeddings_layer_norm", .epsilon = epsilon), x);
  x = mix_call(mix_hub_layer(dropout, o, "embeddings_dropout", .rate = o->dropout), x);
  for (int i = 0; i < o->num_layers && x; i++) {
    char name[32];
    snprintf(name, sizeof name, "transformer_layer_%d", i);
    x = mix_call(mix_hub_layer(hub_transformer_encoder, o, name, .num_heads = o->num_heads,
                               .intermediate_dim = o->intermediate_dim, .activation = "gelu",
                               .dropout = o->dropout, .layer_norm_epsilon = epsilon,
                               .stddev = MIX_HUB_STDDEV),
                 x, .arguments = mix_list_of(mask));
  }
  if (mix_failed()) return NULL;
  return mix_hub_model(o, mix_dict_of("token_ids", ids, "padding_mask", mask), x);
}

static mix_model *build(const void *options) { return build_named(options, "embeddings", 1e-5); }
static mix_model *build_distil_bert(const void *options) {
  return build_named(options, "token_and_position_embedding", 1e-12);
}

static const mix_field_row fields[] = {MIX_HUB_SIZE(roberta, vocabulary_size),
                                       MIX_HUB_COUNT(roberta, num_layers),
                                       MIX_HUB_SIZE(roberta, num_heads),
                                       MIX_HUB_SIZE(roberta, hidden_dim),
                                       MIX_HUB_SIZE(roberta, intermediate_dim),
                                       MIX_HUB_RATE(roberta, dropout, 0.1),
                                       MIX_HUB_SIZE_OR(roberta, max_sequence_length, 512),
                                       {0}};
const mix_hub_family mix_hub_roberta_backbone = {"RobertaBackbone", "roberta.roberta_backbone",
                                                 sizeof(roberta), fields, build};
const mix_hub_family mix_hub_xlm_roberta_backbone = {"XLMRobertaBackbone", "xlm_roberta.xlm_roberta_backbone",
                                                     sizeof(roberta), fields, build};
const mix_hub_family mix_hub_distil_bert_backbone = {"DistilBertBackbone", "distil_bert.distil_bert_backbone",
                                                     sizeof(roberta), fields, build_distil_bert};
