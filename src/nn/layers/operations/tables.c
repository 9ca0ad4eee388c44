/* All operations by name. */
#include "nn/layers/operations/operation.h"
#include <string.h>

const mix_keras_operation *mix_keras_operation_named(const char *class_name) {
#define TABLE(family) mix_keras_##family##_operations,
  static const mix_keras_operation *const tables[] = {MIX_KERAS_FAMILIES(TABLE)};
#undef TABLE
  for (size_t t = 0; class_name && t < sizeof tables / sizeof *tables; t++)
    for (const mix_keras_operation *row = tables[t]; row->operation.name; row++)
      if (!strcmp(row->operation.name, class_name)) return row;
  return NULL;
}

const mix_operation *mix_tf_operation_named(const char *function) {
#define TABLE(family) mix_tf_##family##_operations,
  static const mix_operation *const tables[] = {MIX_TF_FAMILIES(TABLE)};
#undef TABLE
  for (size_t t = 0; function && t < sizeof tables / sizeof *tables; t++)
    for (const mix_operation *row = tables[t]; row->name; row++)
      if (!strcmp(row->name, function)) return row;
  return NULL;
}
