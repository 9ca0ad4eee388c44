/* A map with policies that quantize, for a file without the weights of quantized layers: the model is read
 * under the policies that they are made from, and made anew under the map, with its scales and histories. */
#include "saving/model_json.h"

#include "base/error.h"
#include <mixtape/variable.h>
#include <string.h>

bool mix_map_quantizes(const mix_policy *map) {
  bool any = false;
  for (int i = 0; mix_policy_is_map(map) && i < mix_policy_map_count(map); i++)
    any |= mix_policy_quantization_mode(map->map->items[i].policy) != NULL;
  return any || (mix_policy_is_map(map) && mix_policy_quantization_mode(map));
}

/* Layers that store integers are made of weights that are known, and not by a map. */
static bool stores_integers(const mix_policy *policy) {
  const char *mode = mix_policy_quantization_mode(policy);
  return mode && (!strcmp(mode, "int8") || !strcmp(mode, "int4"));
}

static mix_policy *source_of(const mix_policy *policy) {
  return policy->source_name ? mix_policy_new(policy->source_name, .semantics = policy->semantics)
                             : (mix_policy *)policy;
}

mix_policy *mix_map_of_sources(const mix_policy *map) {
  bool integers = stores_integers(map->map->otherwise);
  for (int i = 0; i < map->map->count; i++) integers |= stores_integers(map->map->items[i].policy);
  if (integers)
    return mix_fail_unsupported(
        "model_load: the policy_map '%s' has a policy of the mode int8 or int4, which "
        "a file of floating weights cannot take; load it without, and quantize it "
        "with mix_model_quantize",
        map->name);
  mix_policy *otherwise = source_of(map->map->otherwise);
  mix_policy *sources =
      otherwise ? mix_policy_map_new(NULL, .default_object = otherwise, .semantics = map->semantics) : NULL;
  for (int i = 0; sources && i < map->map->count; i++) {
    mix_policy *policy = source_of(map->map->items[i].policy);
    if (!policy || mix_policy_map_set(sources, map->map->items[i].key, policy)) return NULL;
  }
  return sources;
}

static const char *last_name(const mix_variable *variable) {
  const char *name = mix_variable_name(variable), *slash = strrchr(name, '/');
  return slash ? slash + 1 : name;
}

/* Both are made from one text; weights that only a quantized layer has keep their first values. */
static bool copy_weights(const mix_layer *from, mix_layer *to) {
  for (int i = 0; i < mix_list_count(from->weights); i++) {
    mix_variable *weight = mix_list_get(from->weights, i);
    for (int k = 0; k < mix_list_count(to->weights); k++) {
      mix_variable *other = mix_list_get(to->weights, k);
      if (!strcmp(last_name(weight), last_name(other)))
        mix_variable_assign(other, mix_variable_true_value(weight));
    }
  }
  if (mix_list_count(from->layers) != mix_list_count(to->layers))
    return mix_fail_internal("model_load: '%s' has other layers under the map", to->name);
  for (int i = 0; i < mix_list_count(from->layers) && !mix_failed(); i++)
    copy_weights(mix_list_get(from->layers, i), mix_list_get(to->layers, i));
  return !mix_failed();
}

mix_model *mix_model_under_map(mix_model *model, mix_policy *map, const mix_layer_class *const *classes) {
  const mix_from_json_options structure = {
      .size = sizeof structure, .semantics = model->semantics, .custom_layers = classes};
  json_t *object = mix_model_saved_json(model, model->state);
  mix_model *made = object && mix_override_policies(object, map, model->semantics)
                        ? mix_model_from_object(object, &structure, true)
                        : NULL;
  json_decref(object);
  return made && copy_weights(model->layer, made->layer) ? made : NULL;
}
