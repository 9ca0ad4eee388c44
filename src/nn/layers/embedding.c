/* Embedding: rows of a table at integer indices, gathered in the variable's dtype and then cast
 * (docs/spec/mixed_precision.md, 5.1). */
#include "base/error.h"
#include "nn/layers/builtin.h"
#include "nn/weights/weights.h"

typedef struct embedding {
  int64_t input_dim, output_dim;
  mix_initializer *initializer;
  mix_regularizer *regularizer;
  mix_constraint *constraint;
  bool mask_zero;
  mix_variable *embeddings; /* (input_dim, output_dim); owned by the layer's list */
} embedding;

static mix_status embedding_build(mix_layer *layer, int count, const mix_shape *input_shapes) {
  (void)count, (void)input_shapes;
  embedding *e = mix_layer_data(layer);
  e->embeddings =
      mix_layer_add_weight(layer, "embeddings", .shape = MIX_SHAPE(e->input_dim, e->output_dim),
                           .no_autocast = true, .initializer_object = e->initializer,
                           .regularizer_object = e->regularizer, .constraint_object = e->constraint);
  return mix_error();
}

static mix_list *embedding_call(mix_layer *layer, const mix_call_args *args) {
  const embedding *e = mix_layer_data(layer);
  mix_tensor *indices = mix_call_input(args, 0);
  mix_dtype dtype = mix_tensor_dtype(indices);
  if (dtype != MIX_INT32 && dtype != MIX_INT64) indices = mix_cast(indices, MIX_INT32);
  return mix_one_result(mix_cast(mix_gather(mix_variable_value(e->embeddings), indices, 0), layer->compute));
}

static mix_tensor *embedding_mask(mix_layer *layer, const mix_call_args *args) {
  mix_tensor *indices = mix_call_input(args, 0);
  return ((const embedding *)mix_layer_data(layer))->mask_zero
             ? mix_not_equal(indices, mix_scalar_like(indices, 0))
             : NULL;
}

static mix_shape embedding_output_shape(mix_layer *layer, int count, const mix_shape *input_shapes) {
  (void)count;
  mix_shape shape = input_shapes[0];
  if (shape.rank < MIX_MAX_RANK)
    shape.dims[shape.rank++] = ((const embedding *)mix_layer_data(layer))->output_dim;
  return shape;
}

static mix_status embedding_config(mix_layer *layer, mix_config *config) {
  const embedding *e = mix_layer_data(layer);
  mix_config_integer(config, "input_dim", e->input_dim);
  mix_config_integer(config, "output_dim", e->output_dim);
  bool good =
      mix_json_set(config->object, "embeddings_initializer", mix_initializer_to_json(e->initializer)) &&
      mix_json_set(config->object, "embeddings_regularizer", mix_regularizer_to_json(e->regularizer)) &&
      mix_json_set(config->object, "embeddings_constraint", mix_constraint_to_json(e->constraint)) &&
      mix_json_set(config->object, "mask_zero", json_boolean(e->mask_zero));
  return good ? MIX_OK : mix_error();
}

static void embedding_finalize(mix_layer *layer) {
  embedding *e = mix_layer_data(layer);
  mix_release(e->initializer);
  mix_release(e->regularizer);
  mix_release(e->constraint);
}

static const mix_layer_class class = {.size = sizeof(mix_layer_class),
                                      .name = "Embedding",
                                      .instance_size = sizeof(embedding),
                                      .build = embedding_build,
                                      .call = embedding_call,
                                      .output_shape = embedding_output_shape,
                                      .get_config = embedding_config,
                                      .finalize = embedding_finalize,
                                      .no_autocast = true,
                                      .compute_mask = embedding_mask};

mix_embedding_options mix_embedding_defaults(void) {
  return (mix_embedding_options){.size = sizeof(mix_embedding_options)};
}

mix_layer *mix_embedding_with(const mix_embedding_options *options) {
  if (mix_failed()) return NULL;
  MIX_OPTIONS(mix_embedding_options, o, options, "embedding");
  if (o.input_dim <= 0 || o.output_dim <= 0)
    return mix_fail(MIX_VALUE_ERROR,
                    "embedding: input_dim is %lld, output_dim %lld; expected positive numbers",
                    (long long)o.input_dim, (long long)o.output_dim);
  mix_initializer *initializer = mix_initializer_or(o.embeddings_initializer, o.embeddings_initializer_object,
                                                    "random_uniform", "embedding");
  mix_layer *layer = mix_layer_make(&class, MIX_LAYER_COMMON(o), "embedding");
  if (!layer) return NULL;
  *(embedding *)layer->data = (embedding){.input_dim = o.input_dim,
                                          .output_dim = o.output_dim,
                                          .initializer = mix_retain(initializer),
                                          .regularizer = mix_retain(o.embeddings_regularizer),
                                          .constraint = mix_retain(o.embeddings_constraint),
                                          .mask_zero = o.mask_zero};
  return mix_scoped(layer);
}

mix_layer *mix_embedding_from(const json_t *config, const mix_semantics *semantics) {
  mix_common_config c = mix_common_config_of(config, semantics);
  return mix_embedding(.input_dim = mix_json_integer_or(config, "input_dim", 0),
                       .output_dim = mix_json_integer_or(config, "output_dim", 0), MIX_COMMON_CONFIG(c),
                       .embeddings_initializer_object =
                           mix_initializer_from_json(json_object_get(config, "embeddings_initializer")),
                       .embeddings_regularizer = mix_regularizer_from_json(
                           json_object_get(config, "embeddings_regularizer"), semantics),
                       .embeddings_constraint =
                           mix_constraint_from_json(json_object_get(config, "embeddings_constraint")),
                       .mask_zero = mix_json_boolean_or(config, "mask_zero", false));
}
