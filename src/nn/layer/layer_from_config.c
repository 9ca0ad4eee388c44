/* Layers from their configs: of custom classes and of the built-in ones. */
#include "base/error.h"
#include "nn/layer/registry.h"
#include "nn/layers/builtin.h"
#include <string.h>

#define ADDRESS(name) &mix_##name##_kind,
static const mix_layer_kind *const kinds[] = {MIX_BUILT_IN_LAYERS(ADDRESS)};
#undef ADDRESS

static mix_layer *from_class(const char *class_name, const char *registered_name, const json_t *config,
                             const mix_semantics *semantics) {
  mix_layer_class custom;
  semantics = mix_semantics_or_current(semantics);
  /* "package>Name" in HDF5 files */
  const char *package_end = class_name ? strchr(class_name, '>') : NULL;
  if (mix_custom_layer_find(package_end ? package_end + 1 : class_name,
                            package_end && !registered_name ? class_name : registered_name, &custom))
    return mix_layer_read_custom(&custom, config, semantics);
  for (size_t i = 0; class_name && !mix_failed() && i < sizeof kinds / sizeof *kinds; i++)
    if (!strcmp(kinds[i]->class.name, class_name)) return mix_layer_read(kinds[i], config, semantics);
  return mix_fail(MIX_VALUE_ERROR,
                  "layer_from_config: there is no built-in layer class '%.60s', so layers of it are not "
                  "supported; a class of your own needs mix_register_layer",
                  class_name ? class_name : "NULL");
}

mix_layer *mix_layer_from_json(const char *class_name, const json_t *config, const mix_semantics *semantics) {
  return mix_failed() ? NULL : from_class(class_name, NULL, config, semantics);
}

mix_layer *mix_layer_from_config(const char *class_name, const char *text, const mix_semantics *semantics) {
  if (mix_failed()) return NULL;
  json_t *config = mix_json_parse(text, "layer_from_config");
  if (config && !json_is_object(config))
    mix_fail(MIX_TYPE_ERROR, "layer_from_config: the config is no object: %.60s", text);
  mix_layer *layer = config ? mix_layer_from_json(class_name, config, semantics) : NULL;
  json_decref(config);
  return layer;
}

mix_layer *mix_layer_from_object(const json_t *object, const mix_semantics *semantics, const char *call) {
  if (mix_failed()) return NULL;
  const json_t *config = json_object_get(object, "config"),
               *class_name = json_object_get(object, "class_name");
  if (!json_is_string(class_name) || !json_is_object(config))
    return mix_fail(MIX_VALUE_ERROR, "%s: expected an object with class_name and config, got %s", call,
                    mix_json_kind(object));
  const char *registered_name = json_string_value(json_object_get(object, "registered_name"));
  return from_class(json_string_value(class_name), registered_name, config, semantics);
}

mix_layer *mix_layer_deserialize(const char *text, const mix_semantics *semantics) {
  if (mix_failed()) return NULL;
  json_t *json = mix_json_parse(text, "layer_deserialize");
  mix_layer *layer = json ? mix_layer_from_object(json, semantics, "layer_deserialize") : NULL;
  json_decref(json);
  return layer;
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
  return clone;
}
