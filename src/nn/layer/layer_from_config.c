/* Built-in layers from their configs. */
#include "base/error.h"
#include "nn/layers/builtin.h"
#include "nn/weights/weights.h"
#include <string.h>

static mix_layer *dense_from(const json_t *config, const mix_semantics *semantics) {
  mix_common_config c = mix_common_config_of(config, semantics);
  mix_dense_options o = {
      .size = sizeof o, .units = mix_json_integer_or(config, "units", 0), MIX_COMMON_CONFIG(c)};
  o.activation = mix_json_string_or(config, "activation", NULL);
  o.no_bias = !mix_json_boolean_or(config, "use_bias", true);
  o.kernel_initializer_object = mix_initializer_from_json(json_object_get(config, "kernel_initializer"));
  o.bias_initializer_object = mix_initializer_from_json(json_object_get(config, "bias_initializer"));
  o.kernel_regularizer = mix_regularizer_from_json(json_object_get(config, "kernel_regularizer"), semantics);
  o.bias_regularizer = mix_regularizer_from_json(json_object_get(config, "bias_regularizer"), semantics);
  o.kernel_constraint = mix_constraint_from_json(json_object_get(config, "kernel_constraint"));
  o.bias_constraint = mix_constraint_from_json(json_object_get(config, "bias_constraint"));
  return mix_dense_with(&o);
}
static mix_layer *activation_from(const json_t *config, const mix_semantics *semantics) {
  mix_common_config c = mix_common_config_of(config, semantics);
  return mix_activation(mix_json_string_or(config, "activation", NULL), MIX_COMMON_CONFIG(c));
}
static mix_layer *flatten_from(const json_t *config, const mix_semantics *semantics) {
  mix_common_config c = mix_common_config_of(config, semantics);
  return mix_flatten(.data_format = mix_json_string_or(config, "data_format", NULL), MIX_COMMON_CONFIG(c));
}
static mix_layer *dropout_from(const json_t *config, const mix_semantics *semantics) {
  mix_common_config c = mix_common_config_of(config, semantics);
  return mix_dropout(.rate = mix_json_number_or(config, "rate", 0),
                     .noise_shape = mix_json_shape(json_object_get(config, "noise_shape")),
                     .seed = (uint64_t)mix_json_integer_or(config, "seed", 0), MIX_COMMON_CONFIG(c));
}

static const struct {
  const char *class_name;
  mix_layer *(*make)(const json_t *config, const mix_semantics *semantics);
} makers[] = {{"Dense", dense_from},
              {"Activation", activation_from},
              {"Flatten", flatten_from},
              {"Dropout", dropout_from},
#define FROM(class_name, name) {#class_name, mix_##name##_from},
              MIX_BUILT_IN_LAYERS(FROM)};

mix_layer *mix_layer_from_json(const char *class_name, const json_t *config, const mix_semantics *semantics) {
  if (mix_failed()) return NULL;
  for (size_t i = 0; class_name && i < sizeof makers / sizeof *makers; i++)
    if (!strcmp(makers[i].class_name, class_name))
      return makers[i].make(config, mix_semantics_or_current(semantics));
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
