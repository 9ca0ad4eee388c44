/* Embedding: rows of a table at integer indices, gathered in the variable's dtype and then cast
 * (docs/spec/mixed_precision.md, 5.1). */
#include "nn/layer/decoding.h"
#include "nn/layers/builtin.h"
#include "nn/layers/embedding_table.h"
#include "nn/layers/lora.h"

typedef struct embedding {
  mix_embedding_options options;
  mix_embedding_table table;
} embedding;

static mix_status embedding_build(mix_layer *layer, int count, const mix_shape *input_shapes) {
  embedding *e = mix_layer_data(layer);
  const mix_embedding_options *o = &e->options;
  const mix_weight_options embeddings = MIX_EMBEDDINGS_OF(o);
  mix_embedding_build(layer, &e->table, &embeddings, o->quantization_config);
  return mix_lora_build(layer);
}

static mix_status embedding_quantize(mix_layer *layer, const mix_quantization *quantization) {
  embedding *e = mix_layer_data(layer);
  e->options.quantization_config = mix_quantization_config_text(&quantization->config);
  if (e->options.quantization_config) mix_embedding_quantize(layer, &e->table, &quantization->config);
  return mix_lora_follow(layer);
}

static const mix_stored_weight *embedding_stored(const mix_layer *layer, mix_shape *shape) {
  return mix_embedding_stored(&((const embedding *)layer->data)->table, shape);
}

static mix_list *embedding_call(mix_layer *layer, const mix_call_args *args) {
  const embedding *e = mix_layer_data(layer);
  return mix_one_result(mix_embedding_rows(layer, &e->table, mix_call_input(args, 0)));
}

static mix_tensor *embedding_mask(mix_layer *layer, const mix_call_args *args) {
  const embedding *e = mix_layer_data(layer);
  return e->options.mask_zero ? mix_embedding_mask(mix_call_input(args, 0)) : NULL;
}

static mix_shape embedding_output_shape(mix_layer *layer, int count, const mix_shape *input_shapes) {
  mix_shape shape = input_shapes[0];
  if (shape.rank < MIX_MAX_RANK)
    shape.dims[shape.rank++] = ((const embedding *)mix_layer_data(layer))->options.output_dim;
  return shape;
}

#define FIELD(member) MIX_FIELD(mix_embedding_options, member)
static const mix_field_row fields[] = {
    {"batch_input_shape", 0, &mix_field_fixed, .text = "[null, null]", .optional = true,
     .only = MIX_RULE(input_batch_input_shape)},
    {FIELD(input_dim), &mix_field_integer, .range = MIX_POSITIVE},
    {FIELD(output_dim), &mix_field_integer, .range = MIX_POSITIVE},
    MIX_INITIALIZER_FIELD(mix_embedding_options, embeddings_initializer, "random_uniform"),
    {FIELD(embeddings_regularizer), &mix_field_regularizer},
    {FIELD(activity_regularizer), &mix_field_regularizer},
    {FIELD(embeddings_constraint), &mix_field_constraint},
    {FIELD(mask_zero), &mix_field_boolean},
    {"input_length", 0, &mix_field_fixed, .text = "null", .optional = true,
     .only = MIX_RULE(input_batch_input_shape)},
    MIX_QUANTIZATION_CONFIG_FIELD(mix_embedding_options),
    MIX_LORA_FIELDS(mix_embedding_options),
    {0}};
MIX_LAYER_KIND(embedding, mix_embedding_options, .fields = fields, .quantize = embedding_quantize,
               MIX_LORA_OF(mix_embedding_options, embeddings), .lora_alpha_lost = true,
               .stored = embedding_stored, .decodes = mix_decodes,
               MIX_LAYER_CLASS(.name = "Embedding", .instance_size = sizeof(embedding),
                               .build = embedding_build, .call = embedding_call,
                               .output_shape = embedding_output_shape, .no_autocast = true,
                               .compute_mask = embedding_mask))
