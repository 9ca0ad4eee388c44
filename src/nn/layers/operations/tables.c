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

/* Elementwise ones do, and activations but for those along axes: these along the last, where a file says so.
 */
bool mix_operation_decodes(const mix_layer *layer, const mix_call_args *args) {
  const mix_keras_operation *row = mix_keras_operation_of(layer);
  if (!row) return false;
  for (const mix_keras_operation *of = mix_keras_elementwise_operations; of->operation.name; of++)
    if (of == row) return true;
  if (!row->operation.activation) return false;
  if (mix_parameter_place(row->operation.options, "axis") < 0) return true;
  const json_t *axis = json_object_get(((const mix_keras_operation_options *)layer->data)->config, "axis");
  return json_is_integer(axis) && json_integer_value(axis) == -1;
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
