/* The registry of classes of models. */
#include "model/model_class.h"
#include "base/alloc.h"
#include "base/error.h"
#include "base/object.h"
#include "base/registered_classes.h"
#include "nn/config.h"
#include "nn/layer/layer.h"
#include <string.h>

static mix_registered_classes models = {PTHREAD_MUTEX_INITIALIZER, sizeof(mix_model_class), NULL};

static void clear(void) { mix_registered_clear(&models); }

mix_status mix_register_model(const char *package, const char *name, const mix_model_class *model_class) {
  mix_model_class copy;
  if (mix_failed()) return mix_error();
  if (!model_class) return mix_fail_status(MIX_TYPE_ERROR, "register_model: needs a model class");
  if (!mix_options_copy(&copy, sizeof copy, model_class, "register_model")) return mix_error();
  if (!copy.name || !copy.name[0] || !copy.from_config)
    return mix_fail_status(MIX_VALUE_ERROR,
                           "register_model: a model class needs a name and a function from_config");
  copy.name = mix_intern(copy.name);
  if (copy.module) copy.module = mix_intern(copy.module);
  name = mix_failed()
             ? NULL
             : mix_registered_full_name("register_model", package, name && name[0] ? name : copy.name);
  if (name && mix_on_shutdown(clear)) mix_registered_store(&models, name, &copy);
  return mix_error();
}

static const mix_model_class *class_of(const mix_registered_class *at) { return at->class; }

bool mix_model_class_find(const char *class_name, const char *registered_name, mix_model_class *found) {
  pthread_mutex_lock(&models.mutex);
  const mix_registered_class *place = registered_name ? mix_registered_find(&models, registered_name) : NULL;
  const bool packaged = registered_name && strchr(registered_name, '>');
  for (const mix_registered_class *at = models.first; at && !place && !packaged && class_name; at = at->next)
    if (!strcmp(class_of(at)->name, class_name)) place = at;
  if (place) *found = *class_of(place);
  pthread_mutex_unlock(&models.mutex);
  return place;
}

mix_layer *mix_config_get_layer(mix_config *config, const char *key) {
  if (mix_failed()) return NULL;
  if (!config || !key) return mix_fail_type("config_get_layer: expected a config and a key");
  const json_t *object = json_object_get(config->object, key);
  return object && !json_is_null(object) ? mix_inner_layer_read(object, "config_get_layer") : NULL;
}
