/* Policies of a saved model: another one for its float32 layers, whose outputs then end in float32, and
 * float32 for some of its layers. */
#include "saving/model_json.h"

#include "base/error.h"
#include "nn/policy/quantization.h"
#include <string.h>

static const char *class_of(const json_t *object) {
  return json_string_value(json_object_get(object, "class_name"));
}

/* Of "float32", or of the object of that policy. NULL: none. */
static const char *policy_name(const json_t *dtype) {
  if (json_is_object(dtype)) dtype = json_object_get(json_object_get(dtype, "config"), "name");
  return json_string_value(dtype);
}

static bool is_map(const json_t *dtype) { return mix_json_is_class(dtype, "DTypePolicyMap"); }

static bool is_float32(const json_t *dtype) {
  const char *name = policy_name(dtype);
  return name && !strcmp(name, "float32");
}

static bool is_16_bit(const json_t *dtype) {
  const char *name = policy_name(dtype);
  const size_t length = name ? strlen(name) : 0; /* float16, bfloat16, and mixed_ with them */
  return is_map(dtype) || (length >= 7 && !strcmp(name + length - 7, "float16"));
}

/* Policies that quantize have no name there. */
static bool is_floating(const json_t *dtype) {
  const char *name = policy_name(dtype);
  return is_map(dtype) || (name && strstr(name, "float"));
}

/* Inputs keep their dtype, which is that of the data, and operations that of their results. */
static void set_policies(json_t *value, bool (*replaces)(const json_t *dtype), json_t *policy) {
  const char *key, *class_name = class_of(value);
  json_t *item, *config = json_object_get(value, "config");
  size_t i;
  json_array_foreach(value, i, item) set_policies(item, replaces, policy);
  if (!json_is_object(value) || (class_name && !strcmp(class_name, "InputLayer")) ||
      mix_object_is_operation(value))
    return;
  if (class_name && json_is_object(config)) {
    const bool is_model = mix_json_layers(config); /* it computes nothing by a map */
    if (replaces(json_object_get(config, "dtype")) && !(is_map(policy) && is_model))
      mix_json_set(config, "dtype", json_incref(policy));
    value = config;
  }
  json_object_foreach(value, key, item) set_policies(item, replaces, policy);
}

/* Takes the policy. */
static bool set_policy(json_t *object, bool (*replaces)(const json_t *dtype), json_t *policy) {
  if (!policy) return mix_failed() ? false : mix_fail_memory("a policy");
  set_policies(object, replaces, policy);
  json_decref(policy);
  return !mix_failed();
}

/* ---- some layers in float32 ---- */

static const char *name_of(const json_t *layer) {
  const char *name = json_string_value(json_object_get(json_object_get(layer, "config"), "name"));
  return name ? name : json_string_value(json_object_get(layer, "name"));
}

/* What follows the name and a slash in the path; NULL: the path does not begin so. */
static const char *path_inside(const char *path, const char *name) {
  const size_t length = name ? strlen(name) : 0;
  return length && !strncmp(path, name, length) && path[length] == '/' ? path + length + 1 : NULL;
}

static bool is_of_keras_hub(const json_t *object) {
  const char *name = json_string_value(json_object_get(object, "registered_name"));
  return name && !strncmp(name, "keras_hub>", 10) && !mix_json_layers(json_object_get(object, "config"));
}

/* A class of KerasHub has its layers' policies in the dtype of its backbone, by their paths. */
static void put_key(json_t *backbone, const char *key) {
  json_t *config = json_object_get(backbone, "config"), *dtype = json_object_get(config, "dtype");
  if (policy_name(dtype) && !is_16_bit(dtype)) return;
  if (!is_map(dtype))
    mix_json_set(config, "dtype",
                 json_pack("{s:s,s:s,s:{s:o,s:{}},s:n}", "module", "keras.dtype_policies", "class_name",
                           "DTypePolicyMap", "config", "default_policy",
                           dtype ? json_incref(dtype) : json_null(), "policy_map", "registered_name"));
  json_t *map = json_object_get(json_object_get(config, "dtype"), "config");
  mix_json_set(json_object_get(map, "policy_map"), key, json_string("float32"));
}

/* A task's own layers have the backbone's dtype, and its table of tokens may lie deeper in that. */
static void keep_by_map(json_t *object, const char *path) {
  char key[600];
  json_t *backbone = json_object_get(json_object_get(object, "config"), "backbone");
  const char *name = backbone ? name_of(backbone) : NULL, *inside = path_inside(path, name);
  if (name && !strcmp(path, name)) {
    set_policy(backbone, is_16_bit, json_string("float32"));
    return;
  }
  snprintf(key, sizeof key, backbone && !inside ? "(.*/)?%.500s(/.*)?" : "%.500s(/.*)?",
           inside ? inside : path);
  put_key(backbone ? backbone : object, key);
}

/* False: there is no layer of that path. `suggestion` sees the names at its end. */
static bool keep(json_t *object, const char *path, mix_did_you_mean *suggestion) {
  json_t *layer, *layers = mix_json_layers(json_object_get(object, "config"));
  size_t i;
  if (is_of_keras_hub(object)) return keep_by_map(object, path), true; /* mix_check_kept looks for it */
  json_array_foreach(layers, i, layer) {
    const char *name = name_of(layer), *inside = name ? path_inside(path, name) : NULL;
    if (!name || !json_is_object(layer)) continue;
    mix_did_you_mean_try(suggestion, name);
    if (!strcmp(path, name)) return set_policy(layer, is_16_bit, json_string("float32")), true;
    if (inside && keep(layer, inside, suggestion)) return true;
  }
  return false;
}

static bool fail_unknown(const char *path, mix_did_you_mean *suggestion, const char *call) {
  char hint[100];
  return mix_fail_value("%s: float32_layers: the model has no layer '%s'%s", call, path,
                        mix_did_you_mean_hint(suggestion, hint, sizeof hint));
}

bool mix_keep_float32(json_t *object, const char *const *layers, const char *call) {
  for (int i = 0; layers && layers[i]; i++) {
    mix_did_you_mean suggestion = {.word = layers[i]};
    if (!keep(object, layers[i], &suggestion)) return fail_unknown(layers[i], &suggestion, call);
  }
  return true;
}

static bool has_layer(const mix_layer *layer, const char *path, mix_did_you_mean *suggestion) {
  for (int i = 0; i < mix_list_count(layer->layers); i++) {
    const mix_layer *inner = mix_list_items(layer->layers)[i];
    const char *inside = path_inside(path, inner->name);
    mix_did_you_mean_try(suggestion, inner->name);
    if (!strcmp(path, inner->name) || (inside && has_layer(inner, inside, suggestion))) return true;
  }
  return false;
}

bool mix_check_kept(const mix_layer *model, const char *const *layers, const char *call) {
  for (int i = 0; layers && layers[i]; i++) {
    const char *slash = strrchr(layers[i], '/');
    mix_did_you_mean suggestion = {.word = slash ? slash + 1 : layers[i]};
    if (!has_layer(model, layers[i], &suggestion)) return fail_unknown(layers[i], &suggestion, call);
  }
  return true;
}

/* ---- outputs ---- */

typedef struct casts {
  json_t *object, *layers; /* of the model */
} casts;

static bool is_taken(const json_t *layers, const char *name) {
  size_t i;
  const json_t *layer;
  json_array_foreach(layers, i, layer) {
    const char *other = json_string_value(json_object_get(json_object_get(layer, "config"), "name"));
    if (other && !strcmp(other, name)) return true;
  }
  return false;
}

/* Appends an Activation in float32 that is named after the layer before it. */
static json_t *append_cast(const casts *c, const char *before, char *name, size_t size) {
  snprintf(name, size, "%.200s_float32", before);
  for (int number = 1; is_taken(c->layers, name); number++)
    snprintf(name, size, "%.200s_float32_%d", before, number);
  json_t *layer = json_pack("{s:s, s:s, s:{s:s, s:s, s:s}}", "class_name", "Activation", "name", name,
                            "config", "name", name, "activation", "linear", "dtype", "float32");
  return mix_json_append(c->layers, layer) ? layer : NULL;
}

/* Losses and metrics may stand under the names of outputs. */
static void rename_output(const casts *c, const char *before, const char *name) {
  static const char *const keys[] = {"loss", "loss_weights", "metrics", "weighted_metrics"};
  json_t *compiled = json_object_get(c->object, "compile_config");
  for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
    json_t *named = json_object_get(compiled, keys[i]), *value = json_object_get(named, before);
    if (!value || class_of(named)) continue;
    mix_json_set(named, name, json_incref(value));
    json_object_del(named, before);
  }
}

/* Replaces each [layer, call, result] in the structure by the result of a cast. */
static void cast_outputs(const casts *c, json_t *structure) {
  char name[256];
  const char *key, *before = json_string_value(json_array_get(structure, 0));
  json_t *item;
  size_t i;
  if (!before) {
    json_array_foreach(structure, i, item) cast_outputs(c, item);
    json_object_foreach(structure, key, item) cast_outputs(c, item);
    return;
  }
  json_t *layer = append_cast(c, before, name, sizeof name);
  if (!layer) return;
  json_t *call = mix_json_copy(structure);
  mix_json_append(call, json_object());
  mix_json_set(layer, "inbound_nodes", json_pack("[[o]]", call));
  rename_output(c, before, name);
  json_array_clear(structure);
  mix_json_append(structure, json_string(name));
  mix_json_append(structure, json_integer(0));
  mix_json_append(structure, json_integer(0));
}

static void cast_last(const casts *c) {
  char name[256];
  const json_t *last = json_array_get(c->layers, json_array_size(c->layers) - 1);
  const char *before = json_string_value(json_object_get(json_object_get(last, "config"), "name"));
  if (!before) return;
  append_cast(c, before, name, sizeof name);
  rename_output(c, before, name);
}

static bool computes_in_16_bits(const mix_policy *policy) {
  return policy && mix_dtype_is_floating(mix_policy_compute_dtype(policy)) &&
         mix_dtype_size(mix_policy_compute_dtype(policy)) == 2;
}

bool mix_override_policy(json_t *object, const char *name, const mix_semantics *semantics) {
  mix_policy *policy = mix_policy_new(name, .semantics = mix_semantics_or_current(semantics));
  json_t *config = json_object_get(object, "config");
  casts c = {object, mix_json_layers(config)};
  if (!mix_policy_check_global(policy, "model_load")) return false;
  if (mix_policy_quantization_mode(policy))
    return mix_fail_unsupported("model_load: the policy '%s' of the mode %s is not one for all layers of a "
                                "model; load it without, and quantize it with mix_model_quantize",
                                name, mix_policy_quantization_mode(policy));
  if (!set_policy(object, is_float32, json_string(name))) return false;
  if (!json_is_array(c.layers)) return true; /* a class with options, or no model */
  if (!computes_in_16_bits(policy)) return !mix_failed();
  json_t *outputs = json_object_get(config, "output_layers");
  if (outputs)
    cast_outputs(&c, outputs);
  else
    cast_last(&c);
  return !mix_failed();
}

bool mix_override_policies(json_t *object, mix_policy *map, const mix_semantics *semantics) {
  if (!mix_given(map, &mix_policy_class, "model_load", "a map of policies in .policy_map")) return false;
  if (!map->map)
    return mix_fail_type("model_load: policy_map is the policy '%s'; expected a map of mix_policy_map_new",
                         map->name);
  if (!semantics->policy_maps)
    return mix_fail_value(
        "model_load: policies by layer are of Keras 3, and the file is of %s; `mixtape convert "
        "--semantics keras3` makes one of Keras 3",
        semantics->name);
  return set_policy(object, is_floating, mix_policy_to_json(map, semantics));
}
