/* BLOOM (Le Scao et al.; arXiv:2211.05100) and Falcon (Almazrouei et al.; arXiv:2311.16867): the places of
 * keys are added to scores. */
#include "model/hub/decoder_model.h"

static const mix_hub_decoder_form bloom_block = {
    .class_name = "BloomDecoder",
    .attention_class = "BloomAttention",
    .attention = {"_self_attention_layer", "self_attention"},
    .attention_norm = {"_pre_attention_layernorm", "pre_attention_layernorm"},
    .feedforward_norm = {"_post_attention_layernorm", "post_attention_layernorm"},
    .query = {"_query_dense", "query_dense"},
    .key = {"_key_dense", "key_dense"},
    .value = {"_value_dense", "value_dense"},
    .output = {"_output_dense", "output_dense"},
    .up = {"_mlp_intermediate_dense", "mlp_intermediate_dense"},
    .down = {"_mlp_output_dense", "mlp_output_dense"},
    .scores_dropout = {"_dropout_layer", "dropout"},
    .feedforward_dropout = {"_dropout_layer", "dropout"},
    .activation = "gelu_approximate",
    .norms_first = true,
    .bias = true,
    .output_bias = true,
    .dense_bias = true,
    .dense_output = true,
    .drops_output = true,
    .slopes = true,
};
static const mix_hub_decoder_form falcon_block = {
    .class_name = "FalconTransformerDecoder",
    .attention_class = "FalconAttention",
    .attention = {"attention_layer", "attention"},
    .attention_norm = {"input_layernorm", "input_layernorm"},
    .feedforward_norm = {"post_attention_layernorm", "post_attention_layernorm"},
    .query = {"query_dense", "query_dense"},
    .key = {"key_dense", "key_dense"},
    .value = {"value_dense", "value_dense"},
    .output = {"output_dense", "output_dense"},
    .up = {"dense_h_to_4h", "dense_h_to_4h"},
    .down = {"dense_4h_to_h", "dense_4h_to_h"},
    .scores_dropout = {"attention_dropout", "attention_dropout"},
    .attention_dropout = {"attention_dropout", "attention_dropout"},
    .feedforward_dropout = {"feedforward_dropout", "feedforward_dropout"},
    .activation = "gelu",
    .norms_first = true,
    .bias = true,
    .output_bias = true,
    .dense_bias = true,
    .dense_output = true,
    .slopes = true,
    .slopes_scaled = true,
};

static mix_model *build_bloom(const void *options) {
  const mix_hub_decoder_config *o = options;
  mix_tensor *ids = mix_hub_tokens(o, "token_ids"), *x = mix_call(mix_hub_token_table(o, 0.02), ids);
  x = mix_call(mix_hub_layer(layer_normalization, o, "embedding_layernorm", .epsilon = o->layer_norm_epsilon),
               x);
  mix_hub_decoder_options block = mix_hub_block_of(o, &bloom_block);
  block.stddev = 0;
  return mix_hub_decoder_model(
      o, &(mix_hub_decoder_family){&bloom_block, "transformer_layer_%d", "final_layernorm"}, &block, ids, x);
}

/* KerasHub's blocks have the epsilon 1e-5, whatever the last norm has. */
static mix_model *build_falcon(const void *options) {
  const mix_hub_decoder_config *o = options;
  mix_tensor *ids = mix_hub_tokens(o, "token_ids"), *x = mix_call(mix_hub_token_table(o, 0), ids);
  mix_hub_decoder_options block = mix_hub_block_of(o, &falcon_block);
  block.stddev = 0;
  block.epsilon = 1e-5;
  block.feedforward_dropout = o->feedforward_dropout;
  return mix_hub_decoder_model(
      o, &(mix_hub_decoder_family){&falcon_block, "transformer_layer_%d", "final_layernorm"}, &block, ids, x);
}

static const mix_field_row of_bloom[] = {MIX_HUB_DECODER_SIZES,
                                         MIX_HUB_DECODER_SIZE(num_heads),
                                         MIX_HUB_DECODER_DROPOUT(0),
                                         MIX_HUB_DECODER_NUMBER(layer_norm_epsilon, 1e-5),
                                         {0}};
#define RATE(name, member) MIX_HUB_DECODER_NAMED(name, member, &mix_field_number, .range = MIX_BELOW_ONE)
static const mix_field_row of_falcon[] = {MIX_HUB_DECODER_SIZES,
                                          MIX_HUB_DECODER_NAMED("num_attention_heads", num_heads,
                                                                &mix_field_integer, .range = MIX_POSITIVE,
                                                                .required = true),
                                          RATE("attention_dropout_rate", dropout),
                                          RATE("feedforward_dropout_rate", feedforward_dropout),
                                          MIX_HUB_DECODER_NUMBER(layer_norm_epsilon, 1e-5),
                                          {0}};
const mix_hub_family mix_hub_bloom_backbone = {"BloomBackbone", "bloom.bloom_backbone",
                                               sizeof(mix_hub_decoder_config), of_bloom, build_bloom};
const mix_hub_family mix_hub_falcon_backbone = {"FalconBackbone", "falcon.falcon_backbone",
                                                sizeof(mix_hub_decoder_config), of_falcon, build_falcon};
