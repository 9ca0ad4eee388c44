/* TokenAndPositionEmbedding: a table of tokens, which calls in reverse use too, and one of positions. */
#include "base/error.h"
#include "nn/layer/decoding.h"
#include "nn/layers/hub/hub.h"

typedef struct token_and_position {
  mix_hub_token_and_position_embedding_options options;
  mix_layer *tokens, *positions; /* borrowed from the layer */
} token_and_position;

static mix_status token_and_position_build(mix_layer *layer, int count, const mix_shape *shapes) {
  token_and_position *t = layer->data;
  const mix_hub_token_and_position_embedding_options *o = &t->options;
  mix_shape rows = shapes[0];
  if (rows.rank != 2)
    return mix_fail_status(MIX_VALUE_ERROR, "%s: the input has shape %s; expected (batch, positions)",
                           layer->name, MIX_SHAPE_TEXT(rows));
  mix_layer *tokens = mix_hub_layer(reversible_embedding, layer, "token_embedding",
                                    .input_dim = o->vocabulary_size, .output_dim = o->embedding_dim,
                                    .untied_weights = o->untied_weights, .mask_zero = o->mask_zero,
                                    .embeddings_initializer_object = mix_hub_initializer(o->stddev));
  t->tokens = mix_hub_add(layer, tokens, "token_embedding", rows);
  rows.dims[rows.rank++] = o->embedding_dim;
  t->positions = mix_hub_add(layer,
                             mix_hub_layer(hub_position_embedding, layer, "position_embedding",
                                           .sequence_length = o->sequence_length, .stddev = o->stddev),
                             "position_embedding", rows);
  return mix_error();
}

static mix_list *token_and_position_call(mix_layer *layer, const mix_call_args *args) {
  const token_and_position *t = layer->data;
  mix_tensor *rows = mix_call(t->tokens, mix_call_input(args, 0));
  mix_tensor *sum = rows ? mix_hub_sum(rows, mix_call(t->positions, rows)) : NULL;
  if (sum && rows->mask && !sum->mask) sum->mask = mix_retain(rows->mask);
  return mix_one_result(sum);
}

static mix_shape token_and_position_output_shape(mix_layer *layer, int count, const mix_shape *shapes) {
  mix_shape shape = shapes[0];
  if (shape.rank < MIX_MAX_RANK)
    shape.dims[shape.rank++] = ((const token_and_position *)layer->data)->options.embedding_dim;
  return shape;
}

#define FIELD(member) MIX_FIELD(mix_hub_token_and_position_embedding_options, member)
static const mix_field_row fields[] = {
    {FIELD(vocabulary_size), &mix_field_integer, .range = MIX_POSITIVE},
    {FIELD(sequence_length), &mix_field_integer, .range = MIX_POSITIVE},
    {FIELD(embedding_dim), &mix_field_integer, .range = MIX_POSITIVE},
    {FIELD(stddev), &mix_field_number},
    {"tie_weights", offsetof(mix_hub_token_and_position_embedding_options, untied_weights),
     &mix_field_negated},
    {FIELD(mask_zero), &mix_field_boolean},
    {0}};
MIX_LAYER_KIND_ONLY(hub_token_and_position_embedding, mix_hub_token_and_position_embedding_options,
                    .fields = fields, .keras3_only = true, .decodes = mix_decodes,
                    MIX_LAYER_CLASS(.name = "TokenAndPositionEmbedding",
                                    .instance_size = sizeof(token_and_position),
                                    .build = token_and_position_build, .call = token_and_position_call,
                                    .output_shape = token_and_position_output_shape, .no_autocast = true))
