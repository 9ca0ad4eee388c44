/* BERT (Devlin et al.; arXiv:1810.04805), ALBERT (Lan et al.; arXiv:1909.11942), whose layers repeat, and
 * ELECTRA (Clark et al.; arXiv:2003.10555). */
#include "base/error.h"
#include "model/hub/hub.h"
#include <stdio.h>

typedef struct bert {
  size_t size;
  MIX_LAYER_OPTIONS
  int64_t vocabulary_size, num_layers, num_heads, hidden_dim, intermediate_dim, max_sequence_length,
      num_segments;
  int64_t embedding_dim;                     /* 0: hidden_dim */
  int64_t num_groups, num_inner_repetitions; /* of ALBERT: 0 elsewhere */
  double dropout;
} bert;

/* The sum of the rows of tokens, positions and segments. */
static mix_tensor *embed(const bert *o, mix_tensor *ids, mix_tensor *segments) {
  const int64_t features = o->embedding_dim ? o->embedding_dim : o->hidden_dim;
  mix_layer *tokens = mix_hub_layer(reversible_embedding, o, "token_embedding",
                                    .input_dim = o->vocabulary_size, .output_dim = features,
                                    .embeddings_initializer_object = mix_hub_initializer(MIX_HUB_STDDEV));
  mix_layer *positions = mix_hub_layer(hub_position_embedding, o, "position_embedding",
                                       .sequence_length = o->max_sequence_length, .stddev = MIX_HUB_STDDEV);
  mix_layer *kinds =
      mix_hub_layer(embedding, o, "segment_embedding", .input_dim = o->num_segments, .output_dim = features,
                    .embeddings_initializer_object = mix_hub_initializer(MIX_HUB_STDDEV));
  mix_tensor *rows = mix_call(tokens, ids);
  mix_tensor *of_positions = mix_call(positions, rows), *of_segments = mix_call(kinds, segments);
  if (mix_failed()) return NULL;
  mix_tensor *x =
      mix_call(mix_hub_add_layer(o, "embeddings_add"), mix_list_of(rows, of_positions, of_segments));
  x = mix_call(mix_hub_layer(layer_normalization, o, "embeddings_layer_norm", .epsilon = 1e-12), x);
  return mix_call(mix_hub_layer(dropout, o, "embeddings_dropout", .rate = o->dropout), x);
}

static mix_layer *encoder(const bert *o, const char *name) {
  return mix_hub_layer(hub_transformer_encoder, o, name, .num_heads = o->num_heads,
                       .intermediate_dim = o->intermediate_dim, .activation = "gelu_approximate",
                       .dropout = o->dropout, .layer_norm_epsilon = 1e-12, .stddev = MIX_HUB_STDDEV);
}

static mix_tensor *encode(const bert *o, mix_tensor *x, mix_tensor *mask) {
  for (int i = 0; i < o->num_layers && x; i++) {
    char name[32];
    snprintf(name, sizeof name, "transformer_layer_%d", i);
    x = mix_call(encoder(o, name), x, .arguments = mix_list_of(mask));
  }
  return x;
}

/* Each layer of a group is called again for every layer that the group stands for. */
static mix_tensor *encode_groups(const bert *o, mix_tensor *x, mix_tensor *mask) {
  char name[64];
  if (o->num_layers % o->num_groups)
    return mix_fail_value("AlbertBackbone: num_layers is %lld and num_groups %lld; expected a multiple",
                          (long long)o->num_layers, (long long)o->num_groups);
  if (o->num_layers * o->num_inner_repetitions > MIX_HUB_MAX_LAYERS)
    return mix_fail_value("AlbertBackbone: num_layers is %lld and num_inner_repetitions %lld; expected a "
                          "product of at most %d",
                          (long long)o->num_layers, (long long)o->num_inner_repetitions, MIX_HUB_MAX_LAYERS);
  for (int g = 0; g < o->num_groups && x; g++) {
    mix_list *group = mix_list_new(0, NULL);
    for (int i = 0; i < o->num_inner_repetitions; i++) {
      snprintf(name, sizeof name, "group_%d_inner_layer_%d", g, i);
      mix_list_append(group, encoder(o, name));
    }
    for (int64_t call = 0; call < o->num_layers / o->num_groups && x; call++)
      for (int i = 0; i < mix_list_count(group) && x; i++)
        x = mix_call(mix_list_get(group, i), x, .arguments = mix_list_of(mask));
  }
  return x;
}

static mix_model *build(const void *options) {
  const bert *o = options;
  mix_tensor *ids = mix_hub_tokens(o, "token_ids"), *segments = mix_hub_tokens(o, "segment_ids"),
             *mask = mix_hub_tokens(o, "padding_mask"), *x = embed(o, ids, segments);
  if (o->num_groups || (o->embedding_dim && o->embedding_dim != o->hidden_dim))
    x = mix_call(mix_hub_layer(dense, o, o->num_groups ? "embedding_projection" : "embeddings_projection",
                               .units = o->hidden_dim,
                               .kernel_initializer_object = mix_hub_initializer(MIX_HUB_STDDEV)),
                 x);
  x = o->num_groups ? encode_groups(o, x, mask) : encode(o, x, mask);
  mix_tensor *pooled =
      mix_call(mix_hub_layer(dense, o, "pooled_dense", .units = o->hidden_dim, .activation = "tanh",
                             .kernel_initializer_object = mix_hub_initializer(MIX_HUB_STDDEV)),
               mix_hub_position(x, 0));
  if (mix_failed()) return NULL;
  return mix_hub_model(o, mix_dict_of("token_ids", ids, "segment_ids", segments, "padding_mask", mask),
                       mix_dict_of("sequence_output", x, "pooled_output", pooled));
}

#define SHARED(rate)                                                                                         \
  MIX_HUB_COUNT(bert, num_layers), MIX_HUB_SIZE(bert, num_heads), MIX_HUB_SIZE(bert, hidden_dim),            \
      MIX_HUB_SIZE(bert, intermediate_dim), MIX_HUB_RATE(bert, dropout, rate),                               \
      MIX_HUB_SIZE_OR(bert, max_sequence_length, 512), MIX_HUB_SIZE_OR(bert, num_segments, 2)
static const mix_field_row of_bert[] = {MIX_HUB_SIZE(bert, vocabulary_size), SHARED(0.1), {0}};
const mix_hub_family mix_hub_bert_backbone = {"BertBackbone", "bert.bert_backbone", sizeof(bert), of_bert,
                                              build};
#define COUNT_OF_ONE(member)                                                                                 \
  { MIX_FIELD(bert, member), &mix_field_layer_count, .number = 1, .range = MIX_POSITIVE }
static const mix_field_row of_albert[] = {MIX_HUB_SIZE(bert, vocabulary_size), SHARED(0),
                                          MIX_HUB_SIZE(bert, embedding_dim),   COUNT_OF_ONE(num_groups),
                                          COUNT_OF_ONE(num_inner_repetitions), {0}};
const mix_hub_family mix_hub_albert_backbone = {"AlbertBackbone", "albert.albert_backbone", sizeof(bert),
                                                of_albert, build};
static const mix_field_row of_electra[] = {{"vocab_size", offsetof(bert, vocabulary_size), &mix_field_integer,
                                            .range = MIX_POSITIVE, .required = true},
                                           SHARED(0.1),
                                           MIX_HUB_SIZE(bert, embedding_dim),
                                           {0}};
const mix_hub_family mix_hub_electra_backbone = {"ElectraBackbone", "electra.electra_backbone", sizeof(bert),
                                                 of_electra, build};
