/* Policies as JSON, in the format of each generation (docs/spec/mixed_precision.md, 1.6). */
#include "base/alloc.h"
#include "base/error.h"
#include "base/json.h"
#include "nn/policy/loss_scale.h"
#include "nn/policy/policy_map.h"
#include "nn/policy/policy.h"
#include "nn/policy/quantization.h"
#include <stdio.h>
#include <string.h>

/* ---- maps ---- */

static json_t *map_config(const mix_policy *map, const mix_semantics *semantics) {
  const mix_policy_entries *entries = map->map;
  json_t *keys = json_object(), *config = json_object();
  for (int i = 0; i < entries->count; i++)
    mix_json_set(keys, entries->items[i].key, mix_policy_to_json(entries->items[i].policy, semantics));
  mix_json_set(config, "default_policy",
               entries->given          ? json_string(entries->given)
               : entries->object_given ? mix_policy_to_json(entries->otherwise, semantics)
                                       : json_null());
  mix_json_set(config, "policy_map", keys);
  return mix_json_whole(config);
}

/* ---- policies ---- */

static json_t *config_json(mix_policy *policy) {
  if (policy->map) return map_config(policy, policy->semantics);
  json_t *config = json_object();
  bool float8 = policy->quantization_mode && !strcmp(policy->quantization_mode, "float8");
  bool good = policy->quantization_mode
                  ? mix_json_set(config, "mode", json_string(policy->quantization_mode)) &&
                        mix_json_set(config, "source_name", json_string(policy->source_name))
                  : mix_json_set(config, "name", json_string(policy->name));
  if (good && float8)
    good = mix_json_set(config, "amax_history_length", json_integer(policy->amax_history_length));
  if (good && policy->loss_scale_given)
    good = mix_json_set(config, "loss_scale", mix_loss_scale_to_json(policy->loss_scale));
  if (good) return config;
  json_decref(config);
  return NULL;
}

static const char *class_of(const mix_policy *policy, const mix_semantics *semantics) {
  return policy->quantization_mode ? mix_quantization_class(policy->quantization_mode)
                                   : semantics->policy_class;
}

static const char *module_of(const mix_policy *policy, const mix_semantics *semantics) {
  if (!semantics->objects_have_module) return NULL;
  return policy->quantization_mode ? "keras.dtype_policies" : semantics->policy_module;
}

json_t *mix_policy_to_json(mix_policy *policy, const mix_semantics *semantics) {
  if (!semantics) semantics = policy->semantics;
  if (policy->map)
    return mix_json_object("keras.dtype_policies", "DTypePolicyMap", map_config(policy, semantics));
  if (!semantics->policy_always_dict && !policy->loss_scale_given) {
    if (policy->compute == MIX_DTYPE_NONE) return json_null();
    if (!mix_policy_is_mixed(policy)) return json_string(policy->name);
  }
  return mix_json_object(module_of(policy, semantics), class_of(policy, semantics), config_json(policy));
}

const char *mix_policy_serialize(mix_policy *policy) {
  return mix_given(policy, &mix_policy_class, "policy_serialize", "a policy")
             ? mix_json_keep_text(&policy->serialized, mix_policy_to_json(policy, NULL))
             : NULL;
}
const char *mix_policy_config(mix_policy *policy) {
  return mix_given(policy, &mix_policy_class, "policy_config", "a policy")
             ? mix_json_keep_text(&policy->config, config_json(policy))
             : NULL;
}

/* Fails on an unknown key. The experimental format uses `loss_scale`; the others ignore it, so that they can
 * load files of TensorFlow 2.3. */
static bool keys_known(const json_t *config) {
  static const char *const known[] = {"name", "loss_scale", "mode", "source_name", "amax_history_length"};
  const char *key;
  json_t *value;
  json_object_foreach((json_t *)config, key, value) {
    bool found = false;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) found |= !strcmp(known[i], key);
    if (found) continue;
    return mix_fail_type("policy_deserialize: the config has an unexpected key \"%.60s\"", key);
  }
  return true;
}

static mix_policy *from_config(const json_t *config, const mix_semantics *semantics) {
  if (!json_is_object(config)) return mix_fail_value("policy_deserialize: no config object");
  if (!keys_known(config)) return NULL;
  char name[80];
  mix_policy_options options = {.size = sizeof options, .semantics = semantics};
  const char *mode = mix_json_string_or(config, "mode", NULL),
             *source = mix_json_string_or(config, "source_name", NULL);
  const json_t *given = json_object_get(config, "name");
  if (json_is_number(given))
    return mix_fail_type("policy: the name is %.17g; expected a string", json_number_value(given));
  options.name = mix_json_string_or(config, "name", NULL);
  const json_t *amax = json_object_get(config, "amax_history_length");
  if (amax)
    mix_json_integer_read(amax, "amax_history_length", "an integer", 1, INT32_MAX,
                          &options.amax_history_length);
  if (mix_failed()) return NULL;
  if (mode) {
    const mix_policy *global = source ? NULL : mix_global_policy();
    if (!source) source = mix_policy_name(global);
    snprintf(name, sizeof name, "%.30s_from_%.40s", mode, source ? source : "");
    options.name = name;
  }
  const json_t *loss_scale = json_object_get(config, "loss_scale");
  if (semantics->policy_has_loss_scale && loss_scale) {
    options.loss_scale_object = mix_loss_scale_from_json(loss_scale, semantics);
    options.no_loss_scale = !options.loss_scale_object;
  }
  return mix_failed() ? NULL : mix_policy_with(&options);
}

/* ---- maps from JSON ---- */

static mix_policy *new_map(const json_t *given, const mix_semantics *semantics) {
  mix_policy_map_options options = {.size = sizeof options, .semantics = semantics};
  if (json_is_string(given))
    options.default_policy = json_string_value(given);
  else if (given && !json_is_null(given))
    options.default_object = mix_policy_from_json(given, semantics);
  return mix_failed() ? NULL : mix_policy_map_with(&options);
}

/* A policy whose name is null, as Keras 3.15 writes them where the default is none, is the global one. */
static mix_policy *read_value(const json_t *value, const mix_semantics *semantics) {
  const json_t *config = json_object_get(value, "config"), *name = json_object_get(config, "name");
  if (json_is_string(value) || json_is_object(value))
    return json_is_null(name) ? mix_global_policy() : mix_policy_from_json(value, semantics);
  return mix_fail_value("policy_map: a policy is %s; expected its name or its object", mix_json_kind(value));
}

static mix_policy *read_map(const json_t *config, const mix_semantics *semantics) {
  const char *key;
  json_t *value, *keys = json_object_get(config, "policy_map");
  if (!json_is_object(config)) return mix_fail_value("policy_map: no config object");
  if (keys && !json_is_null(keys) && !json_is_object(keys))
    return mix_fail_type("policy_map: policy_map is %s; expected an object of keys and policies",
                         mix_json_kind(keys));
  mix_policy *map = new_map(json_object_get(config, "default_policy"), semantics);
  if (!map) return NULL;
  json_object_foreach(keys, key, value) {
    mix_policy *policy = read_value(value, semantics);
    if (!policy || mix_policy_map_set(map, key, policy)) return NULL;
  }
  return map;
}

/* ---- any policy ---- */

mix_policy *mix_policy_from_json(const json_t *json, const mix_semantics *semantics) {
  static const char *const classes[] = {"Policy", "PolicyV1", "DTypePolicy", "FloatDTypePolicy"};
  if (mix_failed() || !json) return NULL;
  if (json_is_null(json)) {
    if (!semantics->policy_infer) return mix_global_policy();
    return mix_policy_new("_infer", .semantics = semantics);
  }
  if (json_is_string(json)) return mix_policy_new(json_string_value(json), .semantics = semantics);
  if (!json_is_object(json))
    return mix_fail_value("policy_deserialize: expected a string, null or an object");
  const char *class_name = mix_json_string_or(json, "class_name", "");
  if (!class_name) return NULL;
  for (size_t i = 0; i < sizeof classes / sizeof *classes; i++)
    if (!strcmp(classes[i], class_name)) return from_config(json_object_get(json, "config"), semantics);
  if (mix_quantization_has_class(class_name)) return from_config(json_object_get(json, "config"), semantics);
  if (!strcmp(class_name, "DTypePolicyMap")) return read_map(json_object_get(json, "config"), semantics);
  return mix_fail_value("policy_deserialize: class \"%.60s\" is no policy", class_name);
}

mix_policy *mix_policy_deserialize(const char *text, const mix_semantics *semantics) {
  if (mix_failed()) return NULL;
  json_t *json = mix_json_parse(text, "policy_deserialize");
  mix_policy *policy = mix_policy_from_json(json, mix_semantics_or_current(semantics));
  json_decref(json);
  return policy;
}

mix_policy *mix_policy_map_from_json(const char *text) {
  const mix_semantics *semantics = mix_semantics_named("keras3");
  json_t *json = mix_failed() ? NULL : mix_json_parse(text, "policy_map_from_json");
  mix_policy *map = NULL;
  if (!json) return NULL;
  const json_t *config = json_object_get(json, "config");
  if (!json_is_object(json))
    mix_fail_type("policy_map_from_json: the text is %s; expected an object", mix_json_kind(json));
  else if (config && !mix_json_is_class(json, "DTypePolicyMap"))
    mix_fail_value("policy_map_from_json: the object is no DTypePolicyMap");
  else if (!config && !json_object_get(json, "policy_map") && !json_object_get(json, "default_policy"))
    mix_fail_value("policy_map_from_json: the object has no policy_map; expected "
                   "{\"default_policy\": \"float32\", \"policy_map\": {\"KEY\": \"POLICY\"}}");
  else
    map = read_map(config ? config : json, semantics);
  json_decref(json);
  return map;
}
