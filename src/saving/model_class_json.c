/* Models whose objects have a class and its options, not layers: both ways. */
#include "saving/model_json.h"

#include "base/error.h"
#include "base/alloc.h"
#include "model/hub/hub.h"
#include "model/model_class.h"
#include "nn/config.h"
#include "nn/policy/policy.h"
#include <string.h>

static const char *text_of(const json_t *object, const char *key) {
  return json_string_value(json_object_get(object, key));
}

/* ---- from JSON ---- */

static bool take_policy(mix_json_reader *reader, const json_t *value, mix_layer *layer) {
  mix_policy *policy =
      value && !json_is_null(value) ? mix_policy_from_json(value, reader->semantics) : layer->policy;
  if (!policy) return false;
  mix_retain(policy);
  mix_release(layer->policy);
  layer->policy = policy;
  layer->compute = policy->compute;
  layer->variable = policy->variable;
  if (!strcmp(mix_policy_name(policy), "mixed_float16")) reader->mixed_float16 = true;
  return true;
}

/* What the object says of the model itself. A family's model has its policy already. */
static bool take_class(mix_json_reader *reader, const json_t *object, mix_model *model,
                       const mix_hub_family *family) {
  static const char *const keys[] = {"module", "class_name", "config", "registered_name"};
  mix_layer *layer = model->layer;
  const json_t *config = json_object_get(object, "config");
  const char *name = mix_json_string_or(config, "name", NULL);
  if (!mix_layer_is_structured(layer))
    return mix_fail_value(
        "model_from_json: class '%.60s' made a subclassed model; expected a functional or a "
        "sequential one",
        text_of(object, "class_name"));
  json_decref(layer->origin); /* of a function that gave a model of another class */
  json_t *origin = layer->origin = json_object();
  for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
    const json_t *value = json_object_get(object, keys[i]);
    mix_json_set(origin, keys[i], value ? mix_json_copy(value) : json_null());
  }
  json_t *options = json_object_get(origin, "config");
  const bool is_backbone = family && !json_object_get(config, "backbone"); /* its policy may be left out */
  if (is_backbone && !json_object_get(options, "dtype")) mix_json_set(options, "dtype", json_null());
  if (name) layer->name = mix_intern(name);
  layer->class.name = mix_intern(text_of(object, "class_name"));
  if (!take_policy(reader, family ? NULL : json_object_get(config, "dtype"), layer)) return false;
  if (!mix_json_boolean_or(config, "trainable", true)) mix_layer_set_trainable(layer, false);
  return !mix_failed();
}

static mix_model *make(const mix_json_reader *reader, const mix_model_class *class,
                       const mix_hub_family *family, const json_t *config) {
  if (family) return mix_hub_make(family, config, reader->semantics);
  mix_config given = {.object = mix_json_copy(config)};
  mix_model *model = given.object ? class->from_config(&given) : NULL;
  json_decref(given.object);
  if (!model && !mix_failed())
    return mix_fail_value("model_from_json: class '%.60s' made no model of its config", class->name);
  return model && mix_model_given(model, "model_from_json") ? model : NULL;
}

mix_model *mix_reader_class(mix_json_reader *reader, const json_t *object, bool *is_model) {
  const char *class_name = text_of(object, "class_name"), *registered = text_of(object, "registered_name");
  const json_t *config = json_object_get(object, "config");
  const mix_hub_family *family = NULL;
  mix_model_class class;
  *is_model = false;
  if (!class_name) return NULL;
  if (!mix_model_class_find(class_name, registered, &class) &&
      !(family = mix_hub_family_of(class_name, registered))) {
    *is_model = mix_failed();
    return NULL;
  }
  *is_model = true;
  if (!json_is_object(config))
    return mix_fail_value("model_from_json: the config of '%.60s' is %s; expected an object", class_name,
                          mix_json_kind(config));
  mix_model *model = make(reader, &class, family, config);
  return model && take_class(reader, object, model, family) ? model : NULL;
}

/* ---- to JSON ---- */

/* The policies of layers that were quantized, by their paths. */
static void put_quantized(json_t *map, const mix_layer *layer) {
  for (int i = 0; i < mix_list_count(layer->layers); i++) {
    mix_layer *inner = mix_list_items(layer->layers)[i];
    if (inner->kind && inner->kind->quantize && inner->path && mix_layer_quantization_mode(inner))
      mix_json_set(map, inner->path, mix_policy_to_json(mix_layer_own_policy(inner), inner->semantics));
    put_quantized(map, inner);
  }
}

/* The policy of the model's config: KerasHub says there which layers are quantized. */
static json_t *policy_json(const mix_layer *model) {
  const char *name = mix_policy_name(model->policy);
  json_t *map = json_object();
  if (!model->policy->map) put_quantized(map, model);
  if (!json_object_size(map)) {
    json_decref(map);
    return mix_policy_to_json(model->policy, model->semantics);
  }
  json_t *plain = strcmp(name, "float32") ? json_string(name) : json_null();
  return json_pack("{s:s,s:s,s:{s:o,s:o},s:n}", "module", "keras.dtype_policies", "class_name",
                   "DTypePolicyMap", "config", "default_policy", plain, "policy_map", map, "registered_name");
}

json_t *mix_class_object_json(const mix_layer *model) {
  json_t *object = mix_json_copy(model->origin), *config = json_object_get(object, "config");
  if (!object) return NULL;
  if (json_object_get(config, "name")) mix_json_set(config, "name", json_string(model->name));
  if (json_object_get(config, "trainable")) mix_json_set(config, "trainable", json_boolean(model->trainable));
  if (json_object_get(config, "dtype")) mix_json_set(config, "dtype", policy_json(model));
  return mix_json_whole(object);
}

mix_layer *mix_class_inner_model(const mix_layer *model, const json_t *object) {
  const char *name = text_of(json_object_get(object, "config"), "name");
  if (!name || !text_of(object, "class_name")) return NULL;
  for (int i = 0; i < mix_list_count(model->layers); i++) {
    mix_layer *inner = mix_list_items(model->layers)[i];
    if (inner->is_model && !strcmp(inner->name, name)) return inner;
  }
  return NULL;
}
