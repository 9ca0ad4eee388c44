/* Tables of embeddings and their rows. */
#include "nn/layers/embedding_table.h"

#include "nn/layers/lora.h"
#include "ops/table.h"

static mix_stored_shape stored_shape(mix_shape shape) {
  return (mix_stored_shape){.name = "embeddings",
                            .shape = shape,
                            .kept = {.count = 1, .axis = {0}},
                            .packed_axis = 1,
                            .scale = MIX_SHAPE(shape.dims[0])};
}

/* In files all of a table comes before the next one: no other weight is between its integers and scales. */
static bool in_order(const mix_embedding_table *table) {
  table->stored.stored->saved_first = false;
  return true;
}

bool mix_embedding_build(mix_layer *layer, mix_embedding_table *table, const mix_weight_options *options,
                         const char *config) {
  const mix_stored_shape of = stored_shape(options->shape);
  if (mix_layer_stores_integers(layer))
    return mix_stored_build(layer, config, &of, &table->stored) && in_order(table);
  table->embeddings = mix_layer_add_weight_with(layer, options);
  return table->embeddings;
}

bool mix_embedding_quantize(mix_layer *layer, mix_embedding_table *table,
                            const mix_quantization_config *config) {
  const mix_stored_shape of = stored_shape(table->embeddings->shape);
  if (!mix_stored_replace(layer, table->embeddings, config, &of, &table->stored)) return false;
  table->embeddings = NULL;
  return in_order(table);
}

const mix_stored_weight *mix_embedding_stored(const mix_embedding_table *table, mix_shape *shape) {
  if (!table->stored.bits) return NULL;
  *shape = table->stored.of.shape;
  return &table->stored;
}

static mix_tensor *rows_of(mix_variable *variable, mix_tensor *indices) {
  return mix_gather(mix_variable_true_value(variable), indices, 0);
}

/* In the wider dtype of a and the table, which are not autocast. The gradient of a is dense, as Keras's,
 * which comes through the merged table. */
static mix_tensor *add_low_rank(const mix_layer *layer, mix_tensor *y, mix_tensor *indices) {
  if (!y) return NULL;
  if (mix_tensor_dtype(y) != MIX_FLOAT64) y = mix_cast(y, MIX_FLOAT32);
  mix_tensor *a = mix_identity(mix_lora_a(layer, mix_tensor_dtype(y)));
  return mix_lora_add(layer, y, mix_gather(a, indices, 0));
}

mix_tensor *mix_embedding_rows(const mix_layer *layer, const mix_embedding_table *table,
                               mix_tensor *indices) {
  const mix_stored_weight *w = &table->stored;
  indices = mix_index_values(indices);
  const bool apart = mix_lora_is_apart(layer);
  if (!w->bits) {
    mix_tensor *y = apart ? rows_of(table->embeddings, indices)
                          : mix_gather(mix_lora_kernel(layer, table->embeddings), indices, 0);
    return mix_cast(apart ? add_low_rank(layer, y, indices) : y, layer->compute);
  }
  const mix_stored_options options = {.size = sizeof options,
                                      .bits = w->bits,
                                      .columns = w->of.shape.dims[1],
                                      .block = w->block,
                                      .transposed = true,
                                      .dtype = layer->compute};
  mix_tensor *scale = mix_cast(rows_of(w->scale, indices), layer->compute);
  mix_tensor *zero = w->zero ? rows_of(w->zero, indices) : NULL,
             *y = mix_dequantize_stored(rows_of(w->stored, indices), scale, zero, &options);
  return apart ? mix_cast(add_low_rank(layer, y, indices), layer->compute) : y;
}
