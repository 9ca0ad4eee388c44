/* GPT-NeoX (Black et al.; arXiv:2204.06745): attention and the dense layers side by side, rotary positions in
 * a part of each head. */
#include "model/hub/decoder_model.h"

static const mix_hub_decoder_form block_form = {
    .class_name = "GPTNeoXDecoder",
    .attention_class = "GPTNeoXAttention",
    .attention = {"_self_attention_layer", "self_attention"},
    .attention_norm = {"_self_attention_layer_norm", "self_attention_layer_norm"},
    .feedforward_norm = {"_feedforward_layer_norm", "feedforward_layer_norm"},
    .query = {"_qkv_dense", "query_key_value"},
    .output = {"_output_dense", "attention_output"},
    .up = {"_feedforward_intermediate_dense", "feedforward_intermediate_dense"},
    .down = {"_feedforward_output_dense", "feedforward_output_dense"},
    .scores_dropout = {"_attn_dropout_layer", "attention_dropout"},
    .attention_dropout = {"_self_attention_dropout", "self_attention_dropout"},
    .activation = "gelu_approximate",
    .parallel = true,
    .bias = true,
    .output_bias = true,
    .dense_bias = true,
    .dense_output = true,
    .einsum_output = true,
};

static mix_model *build(const void *options) {
  const mix_hub_decoder_config *o = options;
  mix_tensor *ids = mix_hub_tokens(o, "token_ids"), *x = mix_call(mix_hub_token_table(o, 0.01), ids);
  x = mix_call(mix_hub_layer(dropout, o, "embeddings_dropout", .rate = o->dropout), x);
  mix_hub_decoder_options block = mix_hub_block_of(o, &block_form);
  const double part = (double)(o->hidden_dim / o->num_heads) * o->rotary_percentage;
  block.rotary =
      (mix_rotary){.dimensions = (int64_t)part, .wavelength = o->rope_max_wavelength, .scaling = 1};
  return mix_hub_decoder_model(
      o, &(mix_hub_decoder_family){&block_form, "transformer_layer_%d", "layer_norm"}, &block, ids, x);
}

static const mix_field_row fields[] = {MIX_HUB_DECODER_SIZES,
                                       MIX_HUB_DECODER_SIZE(num_heads),
                                       MIX_HUB_DECODER_DROPOUT(0),
                                       {MIX_FIELD(mix_hub_decoder_config, rotary_percentage),
                                        &mix_field_number, .number = 0.25, .range = MIX_UNIT_INTERVAL},
                                       MIX_HUB_DECODER_NAMED("rotary_max_wavelength", rope_max_wavelength,
                                                             &mix_field_number, .number = 10000,
                                                             .range = MIX_POSITIVE),
                                       MIX_HUB_DECODER_SIZE_OR(max_sequence_length, 512),
                                       MIX_HUB_DECODER_NUMBER(layer_norm_epsilon, 1e-5),
                                       {0}};
const mix_hub_family mix_hub_gpt_neo_x_backbone = {"GPTNeoXBackbone", "gpt_neo_x.gpt_neo_x_backbone",
                                                   sizeof(mix_hub_decoder_config), fields, build};
