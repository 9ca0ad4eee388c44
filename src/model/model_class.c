/* The registry of classes of models. */
#include "model/model_class.h"
#include "base/alloc.h"
#include "base/error.h"
#include "base/object.h"
#include "nn/config.h"
#include "nn/layer/layer.h"
#include <pthread.h>
#include <stdio.h>
#include <string.h>

typedef struct entry {
  const char *name; /* interned: "package>name" */
  mix_model_class class;
  struct entry *next;
} entry;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static entry *entries; /* under the mutex */

static void clear(void) {
  pthread_mutex_lock(&mutex);
  while (entries) {
    entry *next = entries->next;
    mix_free(entries);
    entries = next;
  }
  pthread_mutex_unlock(&mutex);
}

/* The mutex is held. */
static entry *find(const char *name) {
  entry *at = entries;
  while (at && strcmp(at->name, name)) at = at->next;
  return at;
}

static void store(const char *name, const mix_model_class *class) {
  pthread_mutex_lock(&mutex);
  entry *place = find(name);
  if (!place && (place = mix_calloc(1, sizeof *place))) {
    place->name = name;
    place->next = entries;
    entries = place;
  }
  if (place) place->class = *class;
  pthread_mutex_unlock(&mutex);
}

static const char *full_name(const char *package, const char *name) {
  char text[256];
  if (!package || !package[0]) package = "Custom";
  const int length = snprintf(text, sizeof text, "%s>%s", package, name);
  if (length < (int)sizeof text && !strchr(package, '>') && !strchr(name, '>')) return mix_intern(text);
  return mix_fail_value("register_model: package '%.60s' and name '%.60s'; expected short names without '>'",
                        package, name);
}

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
  name = mix_failed() ? NULL : full_name(package, name && name[0] ? name : copy.name);
  if (name && mix_on_shutdown(clear)) store(name, &copy);
  return mix_error();
}

bool mix_model_class_find(const char *class_name, const char *registered_name, mix_model_class *found) {
  pthread_mutex_lock(&mutex);
  entry *place = registered_name ? find(registered_name) : NULL;
  const bool packaged = registered_name && strchr(registered_name, '>');
  for (entry *at = entries; at && !place && !packaged && class_name; at = at->next)
    if (!strcmp(at->class.name, class_name)) place = at;
  if (place) *found = place->class;
  pthread_mutex_unlock(&mutex);
  return place;
}

mix_layer *mix_config_get_layer(mix_config *config, const char *key) {
  if (mix_failed()) return NULL;
  if (!config || !key) return mix_fail_type("config_get_layer: expected a config and a key");
  const json_t *object = json_object_get(config->object, key);
  return object && !json_is_null(object) ? mix_inner_layer_read(object, "config_get_layer") : NULL;
}
