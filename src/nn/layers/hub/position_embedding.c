/* PositionEmbedding: a learned row for each position. */
#include "base/error.h"
#include "nn/layer/decoding.h"
#include "nn/layers/hub/hub.h"

typedef struct position_embedding {
  mix_hub_position_embedding_options options;
  mix_variable *table; /* borrowed from the layer's weights */
} position_embedding;

static mix_status position_embedding_build(mix_layer *layer, int count, const mix_shape *shapes) {
  position_embedding *p = layer->data;
  if (shapes[0].rank < 2)
    return mix_fail_status(MIX_VALUE_ERROR, "%s: the input has shape %s; expected (..., positions, features)",
                           layer->name, MIX_SHAPE_TEXT(shapes[0]));
  p->table = mix_layer_add_weight(
      layer, "embeddings", .shape = MIX_SHAPE(p->options.sequence_length, shapes[0].dims[shapes[0].rank - 1]),
      .initializer_object = mix_hub_initializer(p->options.stddev));
  return mix_error();
}

static mix_list *position_embedding_call(mix_layer *layer, const mix_call_args *args) {
  const position_embedding *p = layer->data;
  mix_tensor *x = mix_call_input(args, 0), *table = x ? mix_variable_value(p->table) : NULL, *rows;
  if (!table) return NULL;
  const mix_shape shape = mix_tensor_shape(x);
  const int64_t positions = shape.dims[shape.rank - 2];
  if (positions > p->options.sequence_length)
    return mix_fail_value("%s: the input has %lld positions; expected at most %lld, the model's longest "
                          "sequence",
                          layer->name, (long long)positions, (long long)p->options.sequence_length);
  if (mix_tensor_is_symbolic(x))
    return mix_one_result(mix_add(x, mix_slice(table, MIX_SHAPE(0, 0), MIX_SHAPE(1, -1))));
  if (mix_decoding_now())
    rows = mix_gather(table, mix_call_positions(args), 0);
  else
    rows = mix_slice(table, MIX_SHAPE(0, 0), MIX_SHAPE(positions, shape.dims[shape.rank - 1]));
  return mix_one_result(rows ? mix_broadcast_to(rows, shape) : NULL);
}

#define FIELD(member) MIX_FIELD(mix_hub_position_embedding_options, member)
static const mix_field_row fields[] = {{FIELD(sequence_length), &mix_field_integer, .range = MIX_POSITIVE},
                                       {FIELD(stddev), &mix_field_number},
                                       {0}};
MIX_LAYER_KIND_ONLY(hub_position_embedding, mix_hub_position_embedding_options, .fields = fields,
                    .keras3_only = true, .decodes = mix_decodes,
                    MIX_LAYER_CLASS(.name = "PositionEmbedding", .instance_size = sizeof(position_embedding),
                                    .build = position_embedding_build, .call = position_embedding_call,
                                    .output_shape = mix_layer_same_shape, .supports_masking = true))
