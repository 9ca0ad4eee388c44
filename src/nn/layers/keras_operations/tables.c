/* All operations by name. */
#include "nn/layers/keras_operations/keras_operation.h"
#include <string.h>

const mix_keras_operation *mix_keras_operation_named(const char *class_name) {
  const mix_keras_operation *const tables[] = {
      mix_keras_elementwise_operations, mix_keras_reduction_operations, mix_keras_shape_operations,
      mix_keras_index_operations,       mix_keras_product_operations,   mix_keras_nn_operations};
  for (size_t t = 0; class_name && t < sizeof tables / sizeof *tables; t++)
    for (const mix_keras_operation *row = tables[t]; row->operands; row++)
      if (!strcmp(row->kind.class.name, class_name)) return row;
  return NULL;
}
