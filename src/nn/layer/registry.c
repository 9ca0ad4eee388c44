/* The registry of layer classes, as Keras's register_keras_serializable. */
#include "nn/layer/registry.h"
#include "base/alloc.h"
#include "base/error.h"
#include "base/object.h"
#include <pthread.h>
#include <stdio.h>
#include <string.h>

typedef struct entry {
  const char *name; /* interned: "package>name" */
  mix_layer_class class;
  struct entry *next;
} entry;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static entry *entries; /* under the mutex */
static _Thread_local const mix_layer_class *const *custom_layers;

const mix_layer_class *const *mix_custom_layers_set(const mix_layer_class *const *classes) {
  const mix_layer_class *const *former = custom_layers;
  custom_layers = classes;
  return former;
}

static void clear(void) {
  pthread_mutex_lock(&mutex);
  while (entries) {
    entry *next = entries->next;
    mix_free(entries);
    entries = next;
  }
  pthread_mutex_unlock(&mutex);
}

/* The entry of that name; the mutex is held. */
static entry *find(const char *name) {
  entry *at = entries;
  while (at && strcmp(at->name, name)) at = at->next;
  return at;
}

static const char *full_name(const char *package, const char *name) {
  char text[256];
  if (!package || !package[0]) package = "Custom";
  int length = snprintf(text, sizeof text, "%s>%s", package, name);
  if (length < (int)sizeof text && !strchr(package, '>') && !strchr(name, '>')) return mix_intern(text);
  return mix_fail_value("register_layer: package '%.60s' and name '%.60s'; expected short names without '>'",
                        package, name);
}

static bool store(const char *name, const mix_layer_class *class) {
  pthread_mutex_lock(&mutex);
  entry *place = find(name);
  if (!place && (place = mix_calloc(1, sizeof *place))) {
    place->name = name;
    place->next = entries;
    entries = place;
  }
  if (place) place->class = *class;
  pthread_mutex_unlock(&mutex);
  return place;
}

mix_status mix_register_layer(const char *package, const char *name, const mix_layer_class *layer_class) {
  mix_layer_class copy;
  if (mix_failed()) return mix_error();
  if (!layer_class) return mix_fail_status(MIX_TYPE_ERROR, "register_layer: needs a layer class");
  if (!mix_options_copy(&copy, sizeof copy, layer_class, "register_layer")) return mix_error();
  if (!copy.name || !copy.name[0] || !copy.call)
    return mix_fail_status(MIX_VALUE_ERROR, "register_layer: a layer class needs a name and a call function");
  if (!(copy.name = mix_intern(copy.name))) return mix_error();
  name = full_name(package, name && name[0] ? name : copy.name);
  if (name && mix_on_shutdown(clear)) store(name, &copy);
  return mix_error();
}

const char *mix_registered_name(const mix_layer_class *layer_class) {
  const char *name = layer_class->name;
  pthread_mutex_lock(&mutex);
  for (entry *at = entries; at; at = at->next)
    if (at->class.call == layer_class->call && !strcmp(at->class.name, layer_class->name)) name = at->name;
  pthread_mutex_unlock(&mutex);
  return name;
}

/* Is `name` the registered one, or the part behind its package? */
static bool names(const entry *at, const char *name) {
  return name && (!strcmp(at->name, name) || !strcmp(strchr(at->name, '>') + 1, name) ||
                  !strcmp(at->class.name, name));
}

bool mix_custom_layer_find(const char *class_name, const char *registered_name, mix_layer_class *found) {
  for (const mix_layer_class *const *at = custom_layers; at && *at; at++)
    if (class_name && (*at)->name && !strcmp((*at)->name, class_name))
      return mix_options_copy(found, sizeof *found, *at, "custom layer");
  pthread_mutex_lock(&mutex);
  entry *place = registered_name ? find(registered_name) : NULL;
  for (entry *at = entries; at && !place; at = at->next)
    if (names(at, class_name)) place = at;
  if (place) *found = place->class;
  pthread_mutex_unlock(&mutex);
  return place;
}
