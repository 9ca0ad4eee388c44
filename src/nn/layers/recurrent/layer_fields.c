/* Options that are layers. */
#include "base/error.h"
#include "nn/layers/recurrent/recurrent.h"

/* ---- one ---- */

static bool resolve_layer(const mix_fields *fields, const mix_field_row *field, void *options) {
  mix_layer *layer = *(mix_layer **)mix_field_at(field, options);
  if (!layer) return true;
  if (!mix_is(layer, &mix_layer_object_class))
    return mix_fail(MIX_VALUE_ERROR, "%s: %s is another object; expected a layer", fields->call, field->name),
           false;
  mix_retain(layer);
  return true;
}
static void release_object(const mix_field_row *field, void *options) {
  mix_release(*(void **)mix_field_at(field, options));
}
static json_t *write_layer(const mix_fields *fields, const mix_field_row *field, const void *options) {
  (void)fields;
  mix_layer *layer = *(mix_layer *const *)mix_field_at(field, options);
  return layer ? mix_layer_object_json(layer, mix_layer_config_json(layer)) : json_null();
}
static bool read_layer(const mix_fields *fields, const mix_field_row *field, const json_t *value,
                       void *options) {
  if (json_is_null(value)) return true;
  *(mix_layer **)mix_field_at(field, options) = mix_layer_from_object(value, fields->rules, fields->call);
  return !mix_failed();
}
const mix_value_kind mix_field_layer = {"a layer",   sizeof(mix_layer *), resolve_layer, release_object,
                                        write_layer, read_layer,          NULL};

/* ---- several ---- */

static bool resolve_layers(const mix_fields *fields, const mix_field_row *field, void *options) {
  mix_list *given = *(mix_list **)mix_field_at(field, options), *copy;
  if (!mix_is(given, &mix_list_class))
    return mix_fail(MIX_VALUE_ERROR, "%s: %s is another object; expected a list of layers", fields->call,
                    field->name),
           false;
  for (int i = 0; i < mix_list_count(given); i++)
    if (!mix_is(mix_list_get(given, i), &mix_layer_object_class))
      return mix_fail(MIX_VALUE_ERROR, "%s: item %d of %s is no layer", fields->call, i, field->name), false;
  copy = mix_retain(mix_list_new(mix_list_count(given), mix_list_items(given)));
  *(mix_list **)mix_field_at(field, options) = copy;
  return copy != NULL;
}
static json_t *write_layers(const mix_fields *fields, const mix_field_row *field, const void *options) {
  (void)fields;
  mix_list *layers = *(mix_list *const *)mix_field_at(field, options);
  json_t *array = json_array();
  for (int i = 0; i < mix_list_count(layers); i++) {
    mix_layer *layer = mix_list_get(layers, i);
    json_array_append_new(array, mix_layer_object_json(layer, mix_layer_config_json(layer)));
  }
  return array;
}
static bool read_layers(const mix_fields *fields, const mix_field_row *field, const json_t *value,
                        void *options) {
  if (!json_is_array(value)) return mix_field_mistyped(field, value), false;
  mix_list *layers = mix_list_new(0, NULL);
  for (size_t i = 0; i < json_array_size(value) && !mix_failed(); i++)
    mix_list_append(layers, mix_layer_from_object(json_array_get(value, i), fields->rules, fields->call));
  *(mix_list **)mix_field_at(field, options) = layers;
  return !mix_failed();
}
const mix_value_kind mix_field_layers = {
    "a list of layers", sizeof(mix_list *), resolve_layers, release_object, write_layers, read_layers, NULL};
