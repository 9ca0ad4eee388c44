/* Models as legacy HDF5 files describe them: model_config and training_config (docs/spec/keras.md, 18). */
#include "base/error.h"
#include "saving/model_json.h"
#include <string.h>

/* ---- layers ---- */

static json_t *legacy_layer(json_t *object);

static bool is_model(const json_t *object) {
  return !json_is_null(json_object_get(object, "module")) &&
         (mix_json_is_class(object, "Functional") || mix_json_is_class(object, "Sequential"));
}

/* The config, of a model with its layers in the legacy form. */
static json_t *legacy_config(const json_t *object) {
  json_t *config = json_object_get(object, "config"), *layers = json_object_get(config, "layers");
  json_t *copy = mix_json_shallow_copy(config);
  if (!is_model(object) || !json_is_array(layers)) return copy;
  json_t *list = json_array();
  for (size_t i = 0; i < json_array_size(layers); i++)
    mix_json_append(list, legacy_layer(json_array_get(layers, i)));
  mix_json_set(copy, "layers", list);
  return copy;
}

/* A class of a user's is known by its registered name, one of Keras's by the name inside Keras. */
static json_t *legacy_class(const json_t *object) {
  const json_t *registered = json_object_get(object, "registered_name");
  const json_t *name = json_object_get(object, "class_name");
  if (json_is_string(registered)) return json_incref((json_t *)registered);
  const mix_layer_kind *kind = mix_layer_kind_named(json_string_value(name));
  return kind && kind->keras_name ? json_string(kind->keras_name) : json_incref((json_t *)name);
}

static json_t *legacy_layer(json_t *object) {
  static const char *const newer[] = {"module", "registered_name", "build_config", "compile_config"};
  json_t *copy = mix_json_shallow_copy(object);
  mix_json_set(copy, "class_name", legacy_class(object));
  for (size_t i = 0; i < sizeof newer / sizeof *newer; i++) json_object_del(copy, newer[i]);
  mix_json_set(copy, "config", legacy_config(object));
  return copy;
}

json_t *mix_legacy_model_json(const json_t *object) {
  json_t *model = json_pack("{s:O,s:o}", "class_name", json_object_get(object, "class_name"), "config",
                            legacy_config(object));
  if (model && !mix_failed()) return model;
  json_decref(model);
  return mix_fail_memory("the model's config");
}

/* ---- compile ---- */

/* Names become those of the functions: Keras 3 does not find losses of these files by their short names. */
static json_t *full_names(json_t *loss, const mix_semantics *semantics) {
  const char *key;
  json_t *value;
  size_t index;
  if (json_is_string(loss)) {
    const mix_loss *named = mix_loss_new(json_string_value(loss), .semantics = semantics);
    return named ? json_string(named->kind->name) : NULL;
  }
  if (json_is_array(loss)) {
    json_t *list = json_array();
    json_array_foreach(loss, index, value) mix_json_append(list, full_names(value, semantics));
    return list;
  }
  if (!json_is_object(loss) || json_object_get(loss, "class_name")) return json_incref(loss);
  json_t *object = json_object();
  json_object_foreach(loss, key, value) mix_json_set(object, key, full_names(value, semantics));
  return object;
}

/* tf_keras knows its newer optimizers as registered classes. */
static json_t *legacy_optimizer(const json_t *optimizer, const mix_semantics *semantics) {
  const char *module = json_string_value(json_object_get(optimizer, "module"));
  const char *name = json_string_value(json_object_get(optimizer, "class_name"));
  const char *package = module && !strcmp(module, "keras.optimizers") ? semantics->optimizer_package : NULL;
  return json_pack("{s:s++,s:O}", "class_name", package ? package : "", package ? ">" : "", name, "config",
                   json_object_get(optimizer, "config"));
}

json_t *mix_legacy_training_json(json_t *compiled, const mix_semantics *semantics) {
  json_t *training = mix_json_shallow_copy(compiled), *loss = json_object_get(compiled, "loss");
  json_object_del(training, "optimizer");
  if (loss) mix_json_set(training, "loss", full_names(loss, semantics));
  if (!mix_json_set(training, "optimizer_config",
                    legacy_optimizer(json_object_get(compiled, "optimizer"), semantics)) ||
      mix_failed()) {
    json_decref(training);
    return NULL;
  }
  return training;
}
