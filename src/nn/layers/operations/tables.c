/* All operations by name. */
#include "nn/layers/operations/operation.h"
#include <string.h>

const mix_operation *mix_operation_named(const char *class_name) {
  const mix_operation *const tables[] = {mix_elementwise_operations, mix_reduction_operations,
                                         mix_shape_operations,       mix_index_operations,
                                         mix_product_operations,     mix_nn_operations};
  for (size_t t = 0; class_name && t < sizeof tables / sizeof *tables; t++)
    for (const mix_operation *row = tables[t]; row->operands; row++)
      if (!strcmp(row->kind.class.name, class_name)) return row;
  return NULL;
}
