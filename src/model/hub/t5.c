/* T5 (Raffel et al.; arXiv:1910.10683): an encoder and a decoder, whose first layers make the bias of all. */
#include "base/error.h"
#include "model/hub/hub.h"
#include <stdio.h>

typedef struct t5 {
  size_t size;
  MIX_LAYER_OPTIONS
  int64_t vocabulary_size, num_layers, num_heads, hidden_dim, intermediate_dim, key_value_dim;
  double dropout, layer_norm_epsilon;
  const char *activation;
  bool not_gated, untied_weights;
} t5;

static mix_tensor *drop(const t5 *o, const char *side, const char *what, mix_tensor *x) {
  char name[64];
  snprintf(name, sizeof name, "%s_%s_dropout", side, what);
  return mix_call(mix_hub_layer(dropout, o, name, .rate = o->dropout), x);
}

static mix_layer *layer_of(const t5 *o, const char *side, bool is_decoder, int index) {
  char name[64];
  snprintf(name, sizeof name, "transformer_%s_layer_%d", side, index);
  return mix_hub_layer(hub_t5_layer, o, name, .num_heads = o->num_heads, .hidden_dim = o->hidden_dim,
                       .intermediate_dim = o->intermediate_dim,
                       .key_value_dim = o->key_value_dim ? o->key_value_dim : o->hidden_dim / o->num_heads,
                       .dropout = o->dropout, .layer_norm_epsilon = o->layer_norm_epsilon,
                       .activation = o->activation, .is_decoder = is_decoder, .is_gated = !o->not_gated,
                       .has_bias = index == 0);
}

/* `mask`: (batch, positions), from here on (batch, 1, positions). `encoded` and `encoded_mask`: of a decoder;
 * NULL: an encoder. */
static mix_tensor *run_stack(const t5 *o, mix_tensor *x, mix_tensor **mask, mix_tensor *encoded,
                             mix_tensor *encoded_mask) {
  const char *side = encoded ? "decoder" : "encoder";
  char name[64];
  mix_tensor *bias = NULL;
  x = drop(o, side, "embedding", x);
  *mask = x ? mix_hub_mask_of_keys(*mask) : NULL;
  for (int i = 0; i < o->num_layers && x && *mask; i++) {
    mix_list *arguments = mix_list_of(*mask);
    if (encoded) mix_list_append(arguments, encoded_mask);
    if (encoded) mix_list_append(arguments, encoded);
    if (bias) mix_list_append(arguments, bias);
    mix_list *results = mix_call_outputs(layer_of(o, side, encoded, i), x, .arguments = arguments);
    x = results ? mix_list_get(results, 0) : NULL;
    bias = results ? mix_list_get(results, 1) : NULL;
  }
  snprintf(name, sizeof name, "%s_output_layer_norm", side);
  x = mix_call(mix_hub_layer(hub_t5_norm, o, name, .epsilon = o->layer_norm_epsilon), x);
  return drop(o, side, "output", x);
}

static mix_model *build(const void *options) {
  const t5 *o = options;
  mix_tensor *encoder_ids = mix_hub_tokens(o, "encoder_token_ids"),
             *encoder_mask = mix_hub_tokens(o, "encoder_padding_mask"),
             *decoder_ids = mix_hub_tokens(o, "decoder_token_ids"),
             *decoder_mask = mix_hub_tokens(o, "decoder_padding_mask");
  if (!o->key_value_dim && o->hidden_dim < o->num_heads)
    return mix_fail_value("T5Backbone: hidden_dim is %lld for %lld heads; expected one for each",
                          (long long)o->hidden_dim, (long long)o->num_heads);
  if (o->key_value_dim > MIX_FIELD_MAX_SIZE / o->num_heads)
    return mix_fail_value("T5Backbone: key_value_dim is %lld for %lld heads; expected a smaller product",
                          (long long)o->key_value_dim, (long long)o->num_heads);
  mix_layer *table =
      mix_hub_layer(reversible_embedding, o, "token_embedding", .input_dim = o->vocabulary_size,
                    .output_dim = o->hidden_dim, .untied_weights = o->untied_weights,
                    .embeddings_initializer_object = mix_hub_initializer(1));
  mix_tensor *encoder_keys = encoder_mask, *decoder_keys = decoder_mask;
  mix_tensor *encoded = run_stack(o, mix_call(table, encoder_ids), &encoder_keys, NULL, NULL);
  mix_tensor *x =
      encoded ? run_stack(o, mix_call(table, decoder_ids), &decoder_keys, encoded, encoder_keys) : NULL;
  if (mix_failed()) return NULL;
  return mix_hub_model(o,
                       mix_dict_of("encoder_token_ids", encoder_ids, "encoder_padding_mask", encoder_mask,
                                   "decoder_token_ids", decoder_ids, "decoder_padding_mask", decoder_mask),
                       mix_dict_of("encoder_sequence_output", encoded, "decoder_sequence_output", x));
}

static const mix_field_row fields[] = {
    MIX_HUB_SIZE(t5, vocabulary_size),
    MIX_HUB_COUNT(t5, num_layers),
    MIX_HUB_SIZE(t5, num_heads),
    MIX_HUB_SIZE(t5, hidden_dim),
    MIX_HUB_SIZE(t5, intermediate_dim),
    {MIX_FIELD(t5, key_value_dim), &mix_field_integer, .range = MIX_POSITIVE, .optional = true},
    MIX_HUB_RATE(t5, dropout, 0.1),
    {MIX_FIELD(t5, activation), &mix_field_hub_activation, .text = "relu"},
    {"use_gated_activation", offsetof(t5, not_gated), &mix_field_negated},
    {MIX_FIELD(t5, layer_norm_epsilon), &mix_field_number, .number = 1e-6, .range = MIX_NOT_NEGATIVE},
    {"tie_embedding_weights", offsetof(t5, untied_weights), &mix_field_negated},
    {0}};
const mix_hub_family mix_hub_t5_backbone = {"T5Backbone", "t5.t5_backbone", sizeof(t5), fields, build};
