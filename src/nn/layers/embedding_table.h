/* What Embedding and ReversibleEmbedding share: rows of a table (input_dim, output_dim) at integer indices,
 * whose numbers are floating or stored as integers, with a scale of each row or of each block in it. */
#pragma once

#include "nn/layers/stored_weight.h"

typedef struct mix_embedding_table {
  mix_variable *embeddings; /* borrowed from the layer's weights; NULL: `stored` */
  mix_stored_weight stored;
} mix_embedding_table;

/* The weight that the options of either layer describe. */
#define MIX_EMBEDDINGS_OF(options)                                                                           \
  {                                                                                                          \
    .size = sizeof(mix_weight_options), .name = "embeddings",                                                \
    .shape = MIX_SHAPE((options)->input_dim, (options)->output_dim), .no_autocast = true,                    \
    .initializer_object = (options)->embeddings_initializer_object,                                          \
    .regularizer_object = (options)->embeddings_regularizer,                                                 \
    .constraint_object = (options)->embeddings_constraint                                                    \
  }

/* In `build`: adds the weight, with initializer, regularizer and constraint of `options`, or what is stored
 * instead. `config`: as of mix_stored_build. False with the error recorded. */
bool mix_embedding_build(mix_layer *layer, mix_embedding_table *table, const mix_weight_options *options,
                         const char *config);
/* Replaces the weight by integers (rows Q06, Q15, Q20). False with the error recorded. */
bool mix_embedding_quantize(mix_layer *layer, mix_embedding_table *table,
                            const mix_quantization_config *config);
/* What the table stores, and its shape; NULL: it is floating. */
const mix_stored_weight *mix_embedding_stored(const mix_embedding_table *table, mix_shape *shape);
/* The rows at the indices, in the layer's compute dtype; of the stored table only these become floating. */
mix_tensor *mix_embedding_rows(const mix_layer *layer, const mix_embedding_table *table, mix_tensor *indices);
/* The mask of the indices that are not 0. */
static inline mix_tensor *mix_embedding_mask(mix_tensor *indices) {
  return mix_not_equal(indices, mix_scalar_like(indices, 0));
}
