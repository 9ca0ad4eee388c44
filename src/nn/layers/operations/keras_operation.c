/* The layers of Keras 3's operations: their configs and calls. */
#include "nn/layers/operations/operation.h"

#include "base/error.h"
#include <string.h>

const mix_keras_operation *mix_keras_operation_of(const mix_layer *layer) {
  const bool is = layer->kind && layer->kind->class.call == mix_keras_operation_call;
  return is ? (const mix_keras_operation *)layer->kind : NULL;
}

/* ---- configs ---- */

mix_layer *mix_keras_operation_from_config(const mix_layer_kind *kind, const json_t *config, void *options) {
  const char *key, *expected = ((const mix_keras_operation *)kind)->operation.options;
  json_t *value, *own = json_object();
  json_object_foreach((json_t *)config, key, value) {
    if (!strcmp(key, "name")) continue;
    if (mix_parameter_place(expected, key) < 0)
      mix_fail_value("%s: the Keras operation has no option '%.60s'; expected %s", kind->call, key,
                     *expected ? expected : "none");
    mix_json_set(own, key, mix_json_copy(value));
  }
  mix_layer *layer = mix_failed() ? NULL : mix_layer_of_kind(kind, options);
  if (!layer) return json_decref(own), NULL;
  ((mix_keras_operation_options *)layer->data)->config = own;
  if (((const mix_keras_operation *)kind)->operation.draws && !json_is_integer(json_object_get(own, "seed")))
    mix_layer_generator(layer, 0);
  return mix_failed() ? NULL : layer;
}

mix_status mix_keras_operation_config(mix_layer *layer, mix_config *config) {
  json_t *own = ((const mix_keras_operation_options *)layer->data)->config;
  return !own || mix_json_update(config->object, own) ? MIX_OK : mix_error();
}

void mix_keras_operation_finalize(mix_layer *layer) {
  json_decref(((mix_keras_operation_options *)layer->data)->config);
}

/* ---- the call ---- */

json_t *mix_keras_operation_form(const mix_keras_operation *operation, int count) {
  json_t *args = json_array();
  for (int i = 0; i < count; i++) mix_json_append(args, mix_operand_form(i));
  if (operation->operation.takes_list) args = json_pack("[o]", args);
  return mix_json_whole(json_pack("{s:o,s:{}}", "args", args, "kwargs"));
}

mix_list *mix_keras_operation_call(mix_layer *layer, const mix_call_args *args) {
  const mix_keras_operation *row = mix_keras_operation_of(layer);
  mix_operands o = {.layer = layer,
                    .operation = &row->operation,
                    .tensors = mix_operand_tensors(args->inputs, args->arguments),
                    .symbolic = args->symbolic};
  json_t *form = json_incref((json_t *)mix_call_form());
  if (!form) form = mix_keras_operation_form(row, mix_list_count(o.tensors));
  const bool bound =
      !mix_failed() && mix_operands_bind(&o, json_object_get(form, "args"), json_object_get(form, "kwargs"),
                                         ((const mix_keras_operation_options *)layer->data)->config);
  mix_list *results = bound ? mix_operation_run(&o) : NULL;
  json_decref(o.values);
  json_decref(form);
  return results;
}

/* Elementwise ones do, and activations but for those along axes: these along the last, where a file says so.
 */
bool mix_operation_decodes(const mix_layer *layer, const mix_call_args *args) {
  const mix_keras_operation *row = mix_keras_operation_of(layer);
  if (!row) return false;
  if (row->operation.elementwise) return true;
  if (!row->operation.activation) return false;
  if (mix_parameter_place(row->operation.options, "axis") < 0) return true;
  const json_t *axis = json_object_get(((const mix_keras_operation_options *)layer->data)->config, "axis");
  return json_is_integer(axis) && json_integer_value(axis) == -1;
}
