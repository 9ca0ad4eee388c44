/* Layers alone as JSON, both ways. */
#include "base/error.h"
#include "saving/model_json.h"

/* NULL with the error recorded. */
static json_t *object_of(mix_layer *layer, const char *call) {
  return mix_given(layer, &mix_layer_object_class, call, "a layer") ? mix_layer_object_with_models(layer)
                                                                    : NULL;
}

const char *mix_layer_config(mix_layer *layer) {
  const char *text = NULL;
  MIX_SCOPE {
    json_t *object = object_of(layer, "layer_config"), *config = json_object_get(object, "config");
    if (config) text = mix_json_keep_text(&layer->config, json_incref(config));
    json_decref(object);
  }
  return text;
}

const char *mix_layer_serialize(mix_layer *layer) {
  const char *text = NULL;
  MIX_SCOPE {
    json_t *object = object_of(layer, "layer_serialize");
    if (object) text = mix_json_keep_text(&layer->serialized, object);
  }
  return text;
}

mix_layer *mix_layer_deserialize(const char *text, const mix_semantics *semantics) {
  if (mix_failed()) return NULL;
  json_t *object = mix_json_parse(text, "layer_deserialize");
  mix_layer *layer = object ? mix_layer_from_saved(object, semantics, "layer_deserialize") : NULL;
  json_decref(object);
  return layer;
}

mix_layer *mix_layer_from_config(const char *class_name, const char *text, const mix_semantics *semantics) {
  if (mix_failed()) return NULL;
  json_t *config = mix_json_parse(text, "layer_from_config");
  if (config && !json_is_object(config))
    mix_fail_type("layer_from_config: the config is no object: %.60s", text);
  json_t *object = config && !mix_failed() ? json_object() : NULL;
  if (config && !object && !mix_failed()) mix_fail_memory("a config");
  if (object && class_name) mix_json_set(object, "class_name", json_string(class_name));
  if (object) mix_json_set(object, "config", json_incref(config));
  mix_layer *layer = object ? mix_layer_from_saved(object, semantics, "layer_from_config") : NULL;
  json_decref(object);
  json_decref(config);
  return layer;
}
