/* What Embedding and ReversibleEmbedding share: rows of a table at integer indices. */
#pragma once

#include "nn/layer/layer.h"

/* (input_dim, output_dim); borrowed from the layer's weights. */
typedef struct mix_embedding_table {
  mix_variable *embeddings;
} mix_embedding_table;

/* The rows at the indices, in the layer's compute dtype. */
mix_tensor *mix_embedding_rows(const mix_layer *layer, const mix_embedding_table *table, mix_tensor *indices);
/* The mask of the indices that are not 0. */
static inline mix_tensor *mix_embedding_mask(mix_tensor *indices) {
  return mix_not_equal(indices, mix_scalar_like(indices, 0));
}
