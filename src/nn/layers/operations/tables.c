/* All operations by name. */
#include "nn/layers/operations/operation.h"
#include <string.h>

const mix_keras_operation *mix_keras_operation_named(const char *class_name) {
  static const mix_keras_operation *const tables[] = {
      mix_keras_elementwise_operations, mix_keras_reduction_operations, mix_keras_shape_operations,
      mix_keras_index_operations,       mix_keras_product_operations,   mix_keras_nn_operations};
  for (size_t t = 0; class_name && t < sizeof tables / sizeof *tables; t++)
    for (const mix_keras_operation *row = tables[t]; row->operation.name; row++)
      if (!strcmp(row->operation.name, class_name)) return row;
  return NULL;
}

const mix_operation *mix_tf_operation_named(const char *function) {
  static const mix_operation *const tables[] = {mix_tf_elementwise_operations, mix_tf_reduction_operations,
                                                mix_tf_shape_operations,       mix_tf_index_operations,
                                                mix_tf_product_operations,     mix_tf_nn_operations};
  for (size_t t = 0; function && t < sizeof tables / sizeof *tables; t++)
    for (const mix_operation *row = tables[t]; row->name; row++)
      if (!strcmp(row->name, function)) return row;
  return NULL;
}
