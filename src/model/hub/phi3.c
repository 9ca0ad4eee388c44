/* Phi-3 (Abdin et al.; arXiv:2404.14219). */
#include "model/hub/decoder_model.h"

static const mix_hub_decoder_form block_form = {
    .class_name = "Phi3Decoder",
    .attention_class = "Phi3Attention",
    .norm_class = "Phi3LayerNorm",
    .norm = MIX_HUB_RMS_NORM,
    .attention = {"attention", "attention"},
    .attention_norm = {"pre_attention_layernorm", "pre_attention_layernorm"},
    .feedforward_norm = {"post_attention_layernorm", "post_attention_layernorm"},
    .query = {"query_dense", "query"},
    .key = {"key_dense", "key"},
    .value = {"value_dense", "value"},
    .output = {"output_dense", "attention_output"},
    .up = {"feedforward_intermediate_dense", "feedforward_intermediate_dense"},
    .gate = {"feedforward_gate_dense", "feedforward_gate_dense"},
    .down = {"feedforward_output_dense", "feedforward_output_dense"},
    .heads_dropout = {"dropout_layer", "dropout"},
    .attention_dropout = {"attention_dropout", "attention_dropout"},
    .feedforward_dropout = {"feedforward_dropout", "feedforward_dropout"},
    .activation = "silu",
    .norms_first = true,
    .wide_gate = true,
};

static mix_model *build(const void *options) {
  mix_hub_decoder_config o = *(const mix_hub_decoder_config *)options;
  o.untied = true;
  mix_tensor *ids = mix_hub_tokens(&o, "token_ids"), *x = mix_call(mix_hub_token_table(&o, 0.01), ids);
  mix_hub_decoder_options block = mix_hub_block_of(&o, &block_form);
  block.rotary = (mix_rotary){
      .dimensions = o.hidden_dim / o.num_heads, .wavelength = o.rope_max_wavelength, .scaling = 1};
  return mix_hub_decoder_model(
      &o, &(mix_hub_decoder_family){&block_form, "transformer_layer_%d", "sequence_output_layernorm"}, &block,
      ids, x);
}

/* Frequencies that change with the length ("su") are not here. */
static const mix_field_row fields[] = {MIX_HUB_DECODER_SIZES,
                                       MIX_HUB_DECODER_GROUPS,
                                       MIX_HUB_DECODER_NUMBER(layer_norm_epsilon, 1e-6),
                                       MIX_HUB_DECODER_DROPOUT(0),
                                       MIX_HUB_DECODER_SIZE_OR(max_sequence_length, 4096),
                                       MIX_HUB_DECODER_NAMED("pretraining_sequence_length",
                                                             rope_trained_length, &mix_field_number,
                                                             .number = 4096),
                                       MIX_HUB_DECODER_NUMBER(rope_max_wavelength, 10000),
                                       MIX_HUB_ONLY("rope_scaling_type", "null"),
                                       MIX_HUB_ONLY("rope_scaling_short_factor", "null"),
                                       MIX_HUB_ONLY("rope_scaling_long_factor", "null"),
                                       {0}};
const mix_hub_family mix_hub_phi3_backbone = {"Phi3Backbone", "phi3.phi3_backbone",
                                              sizeof(mix_hub_decoder_config), fields, build};
