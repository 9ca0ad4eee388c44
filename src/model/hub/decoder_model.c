/* The graph that the backbones of decoders share. */
#include "model/hub/decoder_model.h"
#include "base/error.h"
#include <stdio.h>

mix_hub_decoder_options mix_hub_block_of(const mix_hub_decoder_config *o, const mix_hub_decoder_form *form) {
  return (mix_hub_decoder_options){.size = sizeof(mix_hub_decoder_options),
                                   .policy = o->policy,
                                   .semantics = o->semantics,
                                   .form = form,
                                   .heads = o->num_heads,
                                   .groups = o->num_key_value_heads,
                                   .head_dim = o->head_dim,
                                   .window = o->sliding_window,
                                   .intermediate_dim = o->intermediate_dim,
                                   .dropout = o->dropout,
                                   .feedforward_dropout = o->dropout,
                                   .epsilon = o->layer_norm_epsilon,
                                   .stddev = 0.02};
}

mix_layer *mix_hub_token_table(const mix_hub_decoder_config *o, double stddev) {
  mix_initializer *rows = stddev ? mix_hub_normal(stddev) : mix_initializer_new("random_uniform");
  return rows ? mix_hub_layer(reversible_embedding, o, "token_embedding", .input_dim = o->vocabulary_size,
                              .output_dim = o->hidden_dim, .untied_weights = o->untied,
                              .embeddings_initializer_object = rows)
              : NULL;
}

mix_model *mix_hub_decoder_model(const mix_hub_decoder_config *o, const mix_hub_decoder_family *family,
                                 const mix_hub_decoder_options *block, mix_tensor *ids, mix_tensor *x) {
  mix_tensor *mask = mix_hub_tokens(o, "padding_mask");
  for (int i = 0; i < o->num_layers && x && mask; i++) {
    char name[40];
    mix_hub_decoder_options options = *block;
    snprintf(name, sizeof name, family->block_name, i);
    options.name = name;
    if (family->alternate_windows && i % 2) options.window = 0;
    x = mix_call(mix_hub_decoder_with(&options), x, .arguments = mix_list_of(mask));
  }
  mix_layer *norm =
      mix_hub_decoder_norm(family->form, o->layer_norm_epsilon, family->norm_name, o->policy, o->semantics);
  x = x && norm ? mix_call(norm, x) : NULL;
  return x ? mix_hub_model(o, mix_dict_of("token_ids", ids, "padding_mask", mask), x) : NULL;
}
