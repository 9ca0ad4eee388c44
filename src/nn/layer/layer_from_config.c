/* Layers from their configs: of custom classes and of the built-in ones. */
#include "base/error.h"
#include "nn/layer/registry.h"
#include "nn/layers/operations/operation.h"
#include "nn/layers/recurrent/recurrent.h"
#include <string.h>

#define ADDRESS(name) &mix_##name##_kind,
static const mix_layer_kind *const kinds[] = {MIX_BUILT_IN_LAYERS(ADDRESS)};
#undef ADDRESS

static _Thread_local const mix_inner_layer_reader *inner_reader;

const mix_inner_layer_reader *mix_inner_layer_reader_set(const mix_inner_layer_reader *reader) {
  const mix_inner_layer_reader *former = inner_reader;
  inner_reader = reader;
  return former;
}

/* Archives have the public name of a class, legacy files Keras's own. */
const mix_layer_kind *mix_layer_kind_named(const char *class_name) {
  for (size_t i = 0; class_name && i < sizeof kinds / sizeof *kinds; i++)
    if (!strcmp(kinds[i]->class.name, class_name) ||
        (kinds[i]->keras_name && !strcmp(kinds[i]->keras_name, class_name)))
      return kinds[i];
  return NULL;
}

static mix_layer *from_class(const char *class_name, const char *registered_name, const json_t *config,
                             const mix_semantics *semantics) {
  mix_layer_class custom;
  semantics = mix_semantics_or_current(semantics);
  /* "package>Name" in HDF5 files */
  const char *package_end = class_name ? strchr(class_name, '>') : NULL;
  if (mix_custom_layer_find(package_end ? package_end + 1 : class_name,
                            package_end && !registered_name ? class_name : registered_name, &custom))
    return mix_layer_read_custom(&custom, config, semantics);
  const mix_layer_kind *kind = mix_failed() ? NULL : mix_layer_kind_named(class_name);
  if (kind) return mix_layer_read(kind, config, semantics);
  const mix_keras_operation *operation = mix_keras_operation_named(class_name);
  if (operation) return mix_layer_read(&operation->kind, config, semantics);
  return mix_fail_value(
      "layer_from_config: there is no built-in layer class '%.60s', so layers of it are not "
      "supported; a class of your own needs mix_register_layer",
      class_name ? class_name : "NULL");
}

/* ---- operations ---- */

/* The arguments of the first call in the form of Keras 3; NULL: it has another. */
static const json_t *first_arguments(const json_t *object) {
  return json_object_get(json_array_get(json_object_get(object, "inbound_nodes"), 0), "args");
}

bool mix_object_is_operation(const json_t *object) {
  const char *module = json_string_value(json_object_get(object, "module"));
  if (module) return !strncmp(module, "keras.src.ops", strlen("keras.src.ops"));
  const char *name = json_string_value(json_object_get(object, "class_name"));
  const mix_keras_operation *operation = mix_keras_operation_named(name);
  const json_t *arguments = first_arguments(object), *config = json_object_get(object, "config");
  if (!operation || !arguments || json_object_get(config, "trainable")) return false;
  return operation->operation.takes_list == json_is_array(json_array_get(arguments, 0));
}

/* By its class alone: a class of the user's or of keras.layers may have the same name. */
static mix_layer *operation_from_object(const json_t *object, const mix_semantics *semantics,
                                        const char *call) {
  const char *name = json_string_value(json_object_get(object, "class_name"));
  const char *module = json_string_value(json_object_get(object, "module"));
  const mix_keras_operation *operation = mix_keras_operation_named(name);
  if (operation)
    return mix_layer_read(&operation->kind, json_object_get(object, "config"),
                          mix_semantics_or_current(semantics));
  return mix_fail_unsupported(
      "%s: the Keras operation '%.60s' (%.60s) is not supported; compute it in a layer of your "
      "own, whose class mix_register_layer takes",
      call, name, module);
}

mix_layer *mix_layer_from_object(const json_t *object, const mix_semantics *semantics, const char *call) {
  if (mix_failed()) return NULL;
  const json_t *config = json_object_get(object, "config"),
               *class_name = json_object_get(object, "class_name");
  if (!json_is_string(class_name) || !json_is_object(config))
    return mix_fail_value("%s: expected an object with class_name and config, got %s", call,
                          mix_json_kind(object));
  if (mix_object_is_operation(object)) return operation_from_object(object, semantics, call);
  const char *registered_name = json_string_value(json_object_get(object, "registered_name"));
  return from_class(json_string_value(class_name), registered_name, config, semantics);
}

mix_layer *mix_layer_copy(mix_layer *layer) {
  if (mix_failed()) return NULL;
  if (layer->kind == &mix_lambda_kind) return mix_layer_of_kind(layer->kind, layer->data);
  json_t *config = mix_layer_config_json(layer);
  mix_layer *clone = NULL;
  if (config)
    clone = layer->kind ? mix_layer_read(layer->kind, config, layer->semantics)
                        : mix_layer_read_custom(&layer->class, config, layer->semantics);
  json_decref(config);
  if (clone && clone->policy->map && layer->matched && !mix_layer_match_policy(clone, layer->map_path))
    return NULL;
  return clone;
}

/* ---- options that are layers ---- */

static mix_layer *read_inner(const mix_field *field, const json_t *object) {
  return inner_reader ? inner_reader->read(inner_reader->context, object)
                      : mix_layer_from_object(object, field->rules, field->call);
}

mix_layer *mix_inner_layer_read(const json_t *object, const char *call) {
  return read_inner(&(mix_field){.call = call}, object);
}

static bool resolve_layer(const mix_field *field) {
  mix_layer *layer = *(mix_layer **)field->value;
  if (layer && !mix_is(layer, &mix_layer_object_class))
    return mix_fail_value("%s: %s is another object; expected a layer", field->call, field->name);
  return mix_retain_field(field);
}
static json_t *write_layer(const mix_field *field) {
  mix_layer *layer = *(mix_layer **)field->value;
  return layer ? mix_layer_object_json(layer, mix_layer_config_json(layer)) : json_null();
}
static bool read_layer(const mix_field *field, const json_t *value) {
  if (json_is_null(value)) return true;
  *(mix_layer **)field->value = read_inner(field, value);
  return !mix_failed();
}
const mix_value_kind mix_field_layer = {"a layer",   sizeof(mix_layer *), resolve_layer, mix_release_field,
                                        write_layer, read_layer,          NULL};

static bool resolve_layers(const mix_field *field) {
  mix_list *given = *(mix_list **)field->value, *copy;
  if (!mix_is(given, &mix_list_class))
    return mix_fail_value("%s: %s is another object; expected a list of layers", field->call, field->name);
  for (int i = 0; i < mix_list_count(given); i++)
    if (!mix_is(mix_list_get(given, i), &mix_layer_object_class))
      return mix_fail_value("%s: item %d of %s is no layer", field->call, i, field->name);
  copy = mix_retain(mix_list_new(mix_list_count(given), mix_list_items(given)));
  *(mix_list **)field->value = copy;
  return copy != NULL;
}
static json_t *write_layers(const mix_field *field) {
  mix_list *layers = *(mix_list **)field->value;
  json_t *array = json_array();
  for (int i = 0; i < mix_list_count(layers); i++) {
    mix_layer *layer = mix_list_get(layers, i);
    mix_json_append(array, mix_layer_object_json(layer, mix_layer_config_json(layer)));
  }
  return array;
}
static bool read_layers(const mix_field *field, const json_t *value) {
  if (!json_is_array(value)) return mix_field_mistyped(field, value);
  mix_list *layers = mix_list_new(0, NULL);
  for (size_t i = 0; i < json_array_size(value) && !mix_failed(); i++)
    mix_list_append(layers, read_inner(field, json_array_get(value, i)));
  *(mix_list **)field->value = layers;
  return !mix_failed();
}
const mix_value_kind mix_field_layers = {"a list of layers",
                                         sizeof(mix_list *),
                                         resolve_layers,
                                         mix_release_field,
                                         write_layers,
                                         read_layers,
                                         NULL};
