/* Gemma (Gemma Team; arXiv:2403.08295) and Gemma 2 (arXiv:2408.00118): rows times the root of the features,
 * norms whose scale is added to 1, and where the options say so windows in every other block, soft caps and
 * norms behind both parts. */
#include "model/hub/decoder_model.h"
#include <math.h>

static const mix_hub_decoder_form block_form = {
    .class_name = "GemmaDecoderBlock",
    .attention_class = "CachedGemmaAttention",
    .norm = MIX_HUB_OFFSET_RMS_NORM,
    .attention = {"attention", "attention"},
    .attention_norm = {"pre_attention_norm", "pre_attention_norm"},
    .post_attention_norm = {"post_attention_norm", "post_attention_norm"},
    .feedforward_norm = {"pre_ffw_norm", "pre_ffw_norm"},
    .post_feedforward_norm = {"post_ffw_norm", "post_ffw_norm"},
    .query = {"query_dense", "query"},
    .key = {"key_dense", "key"},
    .value = {"value_dense", "value"},
    .output = {"output_dense", "attention_output"},
    .gate = {"gating_ffw", "ffw_gating"},
    .up = {"gating_ffw_2", "ffw_gating_2"},
    .down = {"ffw_linear", "ffw_linear"},
    .scores_dropout = {"dropout_layer", "dropout"},
    .attention_dropout = {"attention_dropout", "attention_dropout"},
    .activation = "gelu_approximate",
    .norms_first = true,
    .heads_first = true,
    .einsum_dense = true,
};

/* KerasHub's blocks have the epsilon 1e-6, whatever the last norm has, and scale by the head's dimension
 * whatever query_head_dim_normalize says. */
static mix_model *build(const void *options) {
  const mix_hub_decoder_config *o = options;
  mix_initializer *normal = mix_initializer_new("variance_scaling", .distribution = "untruncated_normal");
  mix_layer *table =
      mix_hub_layer(reversible_embedding, o, "token_embedding", .input_dim = o->vocabulary_size,
                    .output_dim = o->hidden_dim, .embeddings_initializer_object = normal,
                    .logit_soft_cap = isfinite(o->final_soft_cap) ? o->final_soft_cap : 0);
  mix_tensor *ids = mix_hub_tokens(o, "token_ids"), *x = table ? mix_call(table, ids) : NULL;
  x = mix_call(mix_hub_layer(rescaling, o, NULL, .scale = sqrt((double)o->hidden_dim)), x);
  mix_hub_decoder_options block = mix_hub_block_of(o, &block_form);
  block.intermediate_dim = o->intermediate_dim / 2;
  block.epsilon = 1e-6;
  block.stddev = 0;
  block.soft_cap = isfinite(o->attention_soft_cap) ? o->attention_soft_cap : 0;
  block.window = o->use_sliding_window ? o->sliding_window : 0;
  block.post_attention_norm = o->post_attention_norm;
  block.post_feedforward_norm = o->post_feedforward_norm;
  block.rotary = (mix_rotary){.dimensions = o->head_dim, .wavelength = 10000, .scaling = 1};
  return mix_hub_decoder_model(
      o, &(mix_hub_decoder_family){&block_form, "decoder_block_%d", "final_normalization", true}, &block, ids,
      x);
}

#define CAP(name, member)                                                                                    \
  MIX_HUB_DECODER_NAMED(name, member, &mix_field_number, .number = INFINITY, .range = MIX_POSITIVE)
static const mix_field_row fields[] = {
    MIX_HUB_DECODER_SIZES,
    MIX_HUB_DECODER_GROUPS,
    MIX_HUB_DECODER_SIZE(head_dim),
    MIX_HUB_DECODER_NUMBER(layer_norm_epsilon, 1e-6),
    MIX_HUB_DECODER_DROPOUT(0),
    MIX_HUB_DECODER_NAMED("query_head_dim_normalize", ignored, &mix_field_boolean),
    MIX_HUB_DECODER_NAMED("use_post_ffw_norm", post_feedforward_norm, &mix_field_boolean),
    MIX_HUB_DECODER_NAMED("use_post_attention_norm", post_attention_norm, &mix_field_boolean),
    CAP("final_logit_soft_cap", final_soft_cap),
    CAP("attention_logit_soft_cap", attention_soft_cap),
    MIX_HUB_DECODER_NAMED("sliding_window_size", sliding_window, &mix_field_integer, .number = 4096,
                          .range = MIX_POSITIVE),
    MIX_HUB_DECODER_NAMED("use_sliding_window_attention", use_sliding_window, &mix_field_boolean),
    {0}};
const mix_hub_family mix_hub_gemma_backbone = {"GemmaBackbone", "gemma.gemma_backbone",
                                               sizeof(mix_hub_decoder_config), fields, build};
