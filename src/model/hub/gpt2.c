/* GPT-2 (Radford et al.: Language models are unsupervised multitask learners) and OPT (Zhang et al.;
 * arXiv:2205.01068): decoders with a learned row for each position. */
#include "model/hub/decoder_model.h"

#define EPSILON 1e-5 /* of all norms; no option */
#define OF_BOTH                                                                                              \
  .class_name = "TransformerDecoder", .attention_class = "CachedMultiHeadAttention",                         \
  .attention = {"_self_attention_layer", "self_attention"},                                                  \
  .attention_norm = {"_self_attention_layer_norm", "self_attention_layer_norm"},                             \
  .feedforward_norm = {"_feedforward_layer_norm", "feedforward_layer_norm"},                                 \
  .up = {"_feedforward_intermediate_dense", "feedforward_intermediate_dense"},                               \
  .down = {"_feedforward_output_dense", "feedforward_output_dense"},                                         \
  .attention_dropout = {"_self_attention_dropout", "self_attention_dropout"},                                \
  .feedforward_dropout = {"_feedforward_dropout", "feedforward_dropout"}, .multi_head = true,                \
  .dense_bias = true
static const mix_hub_decoder_form gpt2_block = {OF_BOTH, .activation = "gelu_approximate"};
static const mix_hub_decoder_form opt_block = {OF_BOTH, .activation = "relu"};

static mix_model *build_gpt2(const void *options) {
  mix_hub_decoder_config own = *(const mix_hub_decoder_config *)options, *o = &own;
  own.layer_norm_epsilon = EPSILON;
  mix_tensor *ids = mix_hub_tokens(o, "token_ids"), *rows = mix_call(mix_hub_token_table(o, 0.01), ids);
  mix_tensor *positions = mix_call(mix_hub_layer(hub_position_embedding, o, "position_embedding",
                                                 .sequence_length = o->max_sequence_length, .stddev = 0.02),
                                   rows);
  mix_tensor *x = mix_call(mix_hub_add_layer(o, "embeddings_add"), mix_list_of(rows, positions));
  x = mix_call(mix_hub_layer(dropout, o, "embeddings_dropout", .rate = o->dropout), x);
  const mix_hub_decoder_options block = mix_hub_block_of(o, &gpt2_block);
  return mix_hub_decoder_model(
      o, &(mix_hub_decoder_family){&gpt2_block, "transformer_layer_%d", "layer_norm"}, &block, ids, x);
}

static mix_model *build_opt(const void *options) {
  mix_hub_decoder_config own = *(const mix_hub_decoder_config *)options, *o = &own;
  own.layer_norm_epsilon = EPSILON;
  mix_tensor *ids = mix_hub_tokens(o, "token_ids");
  mix_tensor *x =
      mix_call(mix_hub_layer(hub_token_and_position_embedding, o, "embeddings",
                             .vocabulary_size = o->vocabulary_size, .sequence_length = o->max_sequence_length,
                             .embedding_dim = o->hidden_dim, .stddev = MIX_HUB_STDDEV),
               ids);
  const mix_hub_decoder_options block = mix_hub_block_of(o, &opt_block);
  return mix_hub_decoder_model(o, &(mix_hub_decoder_family){&opt_block, "transformer_layer_%d", "layer_norm"},
                               &block, ids, x);
}

#define FIELDS(length)                                                                                       \
  MIX_HUB_DECODER_SIZES, MIX_HUB_DECODER_SIZE(num_heads), MIX_HUB_DECODER_DROPOUT(0.1),                      \
      MIX_HUB_DECODER_SIZE_OR(max_sequence_length, length)
static const mix_field_row of_gpt2[] = {FIELDS(1024), {0}}, of_opt[] = {FIELDS(2048), {0}};
const mix_hub_family mix_hub_gpt2_backbone = {"GPT2Backbone", "gpt2.gpt2_backbone",
                                              sizeof(mix_hub_decoder_config), of_gpt2, build_gpt2};
const mix_hub_family mix_hub_opt_backbone = {"OPTBackbone", "opt.opt_backbone",
                                             sizeof(mix_hub_decoder_config), of_opt, build_opt};
