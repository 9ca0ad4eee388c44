/* Phi-3 (Abdin et al.; arXiv:2404.14219). */
#include "model/hub/decoder_model.h"
#include "base/error.h"
#include <math.h>

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

/* For sequences longer than those that the model was trained with. */
static bool stretch(mix_rotary *rotary, const mix_hub_decoder_config *o) {
  const int64_t half = rotary->dimensions / 2, counts[] = {o->short_factors.count, o->long_factors.count};
  const double longer = (double)o->max_sequence_length / o->rope_trained_length;
  for (int i = 0; i < 2; i++) {
    const double *values = (i ? o->long_factors : o->short_factors).values;
    bool good = counts[i] == half;
    for (int64_t k = 0; k < half && good; k++) good = values[k] > 0;
    if (!good)
      return mix_fail_value(
          "Phi3Backbone: rope_scaling_%s_factor has %lld numbers; expected %lld above 0, one "
          "for each two features of a head",
          i ? "long" : "short", (long long)counts[i], (long long)half);
  }
  if (longer > 1 && o->rope_trained_length <= 1)
    return mix_fail_value("Phi3Backbone: pretraining_sequence_length is %g; expected more than 1",
                          o->rope_trained_length);
  rotary->short_factors = o->short_factors;
  rotary->long_factors = o->long_factors;
  rotary->trained_length = o->rope_trained_length;
  if (longer > 1) rotary->magnitude = sqrt(1 + log(longer) / log(o->rope_trained_length));
  return true;
}

static mix_model *build(const void *options) {
  mix_hub_decoder_config o = *(const mix_hub_decoder_config *)options;
  o.untied = true;
  mix_tensor *ids = mix_hub_tokens(&o, "token_ids"), *x = mix_call(mix_hub_token_table(&o, 0.01), ids);
  mix_hub_decoder_options block = mix_hub_block_of(&o, &block_form);
  block.rotary = (mix_rotary){
      .dimensions = o.hidden_dim / o.num_heads, .wavelength = o.rope_max_wavelength, .scaling = 1};
  if (o.rope_scaling_type && !stretch(&block.rotary, &o)) return NULL;
  return mix_hub_decoder_model(
      &o, &(mix_hub_decoder_family){&block_form, "transformer_layer_%d", "sequence_output_layernorm"}, &block,
      ids, x);
}

static const mix_field_row fields[] = {
    MIX_HUB_DECODER_SIZES,
    MIX_HUB_DECODER_GROUPS,
    MIX_HUB_DECODER_NUMBER(layer_norm_epsilon, 1e-6),
    MIX_HUB_DECODER_DROPOUT(0),
    MIX_HUB_DECODER_SIZE_OR(max_sequence_length, 4096),
    MIX_HUB_DECODER_NAMED("pretraining_sequence_length", rope_trained_length, &mix_field_number,
                          .number = 4096, .range = MIX_POSITIVE),
    MIX_HUB_DECODER_NUMBER(rope_max_wavelength, 10000),
    MIX_HUB_DECODER_NAMED("rope_scaling_type", rope_scaling_type, &mix_field_text, .choices = "su",
                          .optional = true),
    MIX_HUB_DECODER_NAMED("rope_scaling_short_factor", short_factors, &mix_field_numbers, .optional = true),
    MIX_HUB_DECODER_NAMED("rope_scaling_long_factor", long_factors, &mix_field_numbers, .optional = true),
    {0}};
const mix_hub_family mix_hub_phi3_backbone = {"Phi3Backbone", "phi3.phi3_backbone",
                                              sizeof(mix_hub_decoder_config), fields, build};
