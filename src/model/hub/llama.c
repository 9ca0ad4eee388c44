/* Llama (Touvron et al.; arXiv:2302.13971), Mistral (Jiang et al.; arXiv:2310.06825) and Qwen (Bai et al.;
 * arXiv:2309.16609): grouped heads with rotary positions, and a gated product. */
#include "model/hub/decoder_model.h"
#include "base/error.h"
#include <math.h>

#define OF_ALL                                                                                               \
  .norm = MIX_HUB_RMS_NORM, .attention = {"_self_attention_layer", "self_attention"},                        \
  .attention_norm = {"_self_attention_layernorm", "self_attention_layernorm"},                               \
  .feedforward_norm = {"_feedforward_layernorm", "feedforward_layernorm"},                                   \
  .query = {"_query_dense", "query"}, .key = {"_key_dense", "key"}, .value = {"_value_dense", "value"},      \
  .output = {"_output_dense", "attention_output"},                                                           \
  .up = {"_feedforward_intermediate_dense", "feedforward_intermediate_dense"},                               \
  .gate = {"_feedforward_gate_dense", "feedforward_gate_dense"},                                             \
  .down = {"_feedforward_output_dense", "feedforward_output_dense"},                                         \
  .attention_dropout = {"_self_attention_dropout", "self_attention_dropout"},                                \
  .heads_dropout = {"_dropout_layer", "dropout"}, .activation = "silu", .wide_gate = true
static const mix_hub_decoder_form llama_block = {OF_ALL, .class_name = "LlamaTransformerDecoder",
                                                 .attention_class = "LlamaAttention",
                                                 .norm_class = "LlamaLayerNorm"};
static const mix_hub_decoder_form mistral_block = {OF_ALL, .class_name = "MistralTransformerDecoder",
                                                   .attention_class = "CachedMistralAttention",
                                                   .norm_class = "MistralLayerNormalization"};
static const mix_hub_decoder_form qwen_block = {OF_ALL, .class_name = "QwenTransformerDecoder",
                                                .attention_class = "QwenAttention",
                                                .norm_class = "QwenLayerNorm", .bias = true};

static mix_model *build(const mix_hub_decoder_config *o, const mix_hub_decoder_form *form, bool untied) {
  mix_hub_decoder_config own = *o;
  own.untied = untied;
  mix_tensor *ids = mix_hub_tokens(o, "token_ids"), *x = mix_call(mix_hub_token_table(&own, 0.01), ids);
  mix_hub_decoder_options block = mix_hub_block_of(o, form);
  block.rotary = (mix_rotary){.dimensions = o->head_dim ? o->head_dim : o->hidden_dim / o->num_heads,
                              .wavelength = o->rope_max_wavelength,
                              .scaling = form == &llama_block ? 1 : o->rope_scaling_factor};
  if (isfinite(o->rope_stretch) && form == &llama_block) {
    block.rotary.stretch = o->rope_stretch;
    block.rotary.low = o->rope_low;
    block.rotary.high = o->rope_high;
    block.rotary.trained_length = o->rope_trained_length;
  }
  return mix_hub_decoder_model(
      o, &(mix_hub_decoder_family){form, "transformer_layer_%d", "sequence_output_layernorm"}, &block, ids,
      x);
}

/* KerasHub reads rope_position_scaling_factor and does not use it. */
static mix_model *build_llama(const void *options) {
  const mix_hub_decoder_config *o = options;
  const int given = isfinite(o->rope_stretch) + isfinite(o->rope_low) + isfinite(o->rope_high) +
                    isfinite(o->rope_trained_length);
  if (given % 4 || (given && o->rope_high <= o->rope_low))
    return mix_fail_value("LlamaBackbone: %d of rope_frequency_adjustment_factor, rope_low_freq_factor, "
                          "rope_high_freq_factor and rope_pretraining_sequence_length; expected all or none, "
                          "and the high factor above the low one",
                          given);
  return build(o, &llama_block, !o->tied);
}
static mix_model *build_mistral(const void *options) { return build(options, &mistral_block, true); }
static mix_model *build_qwen(const void *options) {
  mix_hub_decoder_config o = *(const mix_hub_decoder_config *)options;
  if (!o.use_sliding_window) o.sliding_window = 0;
  return build(&o, &qwen_block, o.untied);
}

#define SHARED                                                                                               \
  MIX_HUB_DECODER_SIZES, MIX_HUB_DECODER_GROUPS, MIX_HUB_DECODER_DROPOUT(0),                                 \
      MIX_HUB_DECODER_NUMBER(rope_max_wavelength, 10000), MIX_HUB_DECODER_NUMBER(layer_norm_epsilon, 1e-6)
#define SCALING MIX_HUB_DECODER_NUMBER(rope_scaling_factor, 1)
#define ADJUSTMENT(name, member)                                                                             \
  MIX_HUB_DECODER_NAMED(name, member, &mix_field_number, .number = INFINITY, .range = MIX_POSITIVE)
static const mix_field_row of_llama[] = {
    SHARED,
    MIX_HUB_DECODER_NAMED("rope_position_scaling_factor", rope_scaling_factor, &mix_field_number,
                          .number = 1),
    ADJUSTMENT("rope_frequency_adjustment_factor", rope_stretch),
    ADJUSTMENT("rope_low_freq_factor", rope_low),
    ADJUSTMENT("rope_high_freq_factor", rope_high),
    ADJUSTMENT("rope_pretraining_sequence_length", rope_trained_length),
    MIX_HUB_DECODER_NAMED("tie_word_embeddings", tied, &mix_field_boolean),
    {0}};
static const mix_field_row of_mistral[] = {
    SHARED,
    SCALING,
    MIX_HUB_DECODER_NAMED("sliding_window", sliding_window, &mix_field_integer, .range = MIX_POSITIVE,
                          .optional = true),
    MIX_HUB_DECODER_NAMED("head_dim", head_dim, &mix_field_integer, .range = MIX_POSITIVE, .optional = true),
    {0}};
static const mix_field_row of_qwen[] = {
    SHARED,
    SCALING,
    MIX_HUB_DECODER_NAMED("tie_word_embeddings", untied, &mix_field_negated),
    MIX_HUB_DECODER_NAMED("use_sliding_window_attention", use_sliding_window, &mix_field_boolean),
    MIX_HUB_DECODER_NAMED("sliding_window_size", sliding_window, &mix_field_integer, .range = MIX_POSITIVE,
                          .optional = true),
    {0}};
#define BACKBONE(name, module, fields, build)                                                                \
  { name, module, sizeof(mix_hub_decoder_config), fields, build }
const mix_hub_family mix_hub_llama_backbone =
    BACKBONE("LlamaBackbone", "llama.llama_backbone", of_llama, build_llama);
const mix_hub_family mix_hub_llama3_backbone =
    BACKBONE("Llama3Backbone", "llama3.llama3_backbone", of_llama, build_llama);
const mix_hub_family mix_hub_mistral_backbone =
    BACKBONE("MistralBackbone", "mistral.mistral_backbone", of_mistral, build_mistral);
const mix_hub_family mix_hub_qwen_backbone =
    BACKBONE("QwenBackbone", "qwen.qwen_backbone", of_qwen, build_qwen);
