/* Built-in layers from their configs. */
#include "base/error.h"
#include "nn/layers/builtin.h"
#include <string.h>

#define ADDRESS(name) &mix_##name##_kind,
static const mix_layer_kind *const kinds[] = {MIX_BUILT_IN_LAYERS(ADDRESS)};
#undef ADDRESS

mix_layer *mix_layer_from_json(const char *class_name, const json_t *config, const mix_semantics *semantics) {
  if (mix_failed()) return NULL;
  for (size_t i = 0; class_name && i < sizeof kinds / sizeof *kinds; i++)
    if (!strcmp(kinds[i]->class.name, class_name))
      return mix_layer_read(kinds[i], config, mix_semantics_or_current(semantics));
  return mix_fail(MIX_VALUE_ERROR, "layer_from_config: there is no built-in layer class '%.60s'",
                  class_name ? class_name : "NULL");
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

mix_layer *mix_layer_deserialize(const char *text, const mix_semantics *semantics) {
  if (mix_failed()) return NULL;
  json_t *json = mix_json_parse(text, "layer_deserialize");
  const json_t *config = json_object_get(json, "config");
  const char *class_name = json_is_object(json) ? mix_json_string_or(json, "class_name", NULL) : NULL;
  if (json && !mix_failed() && (!class_name || !json_is_object(config)))
    mix_fail(MIX_VALUE_ERROR, "layer_deserialize: expected an object with class_name and config, got %.60s",
             text);
  mix_layer *layer = json ? mix_layer_from_json(class_name, config, semantics) : NULL;
  json_decref(json);
  return layer;
}
