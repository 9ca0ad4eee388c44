/* The registry of layer classes, as Keras's register_keras_serializable. */
#include "nn/layer/registry.h"
#include "base/alloc.h"
#include "base/error.h"
#include "base/object.h"
#include "base/registered_classes.h"
#include <string.h>

static mix_registered_classes layers = {PTHREAD_MUTEX_INITIALIZER, sizeof(mix_layer_class), NULL};
static _Thread_local const mix_layer_class *const *custom_layers;

const mix_layer_class *const *mix_custom_layers_set(const mix_layer_class *const *classes) {
  const mix_layer_class *const *former = custom_layers;
  custom_layers = classes;
  return former;
}

static void clear(void) { mix_registered_clear(&layers); }

mix_status mix_register_layer(const char *package, const char *name, const mix_layer_class *layer_class) {
  mix_layer_class copy;
  if (mix_failed()) return mix_error();
  if (!layer_class) return mix_fail_status(MIX_TYPE_ERROR, "register_layer: needs a layer class");
  if (!mix_options_copy(&copy, sizeof copy, layer_class, "register_layer")) return mix_error();
  if (!copy.name || !copy.name[0] || !copy.call)
    return mix_fail_status(MIX_VALUE_ERROR, "register_layer: a layer class needs a name and a call function");
  if (!(copy.name = mix_intern(copy.name))) return mix_error();
  name = mix_registered_full_name("register_layer", package, name && name[0] ? name : copy.name);
  if (name && mix_on_shutdown(clear)) mix_registered_store(&layers, name, &copy);
  return mix_error();
}

static const mix_layer_class *class_of(const mix_registered_class *at) { return at->class; }

const char *mix_registered_name(const mix_layer_class *layer_class) {
  const char *name = layer_class->name;
  pthread_mutex_lock(&layers.mutex);
  for (const mix_registered_class *at = layers.first; at; at = at->next)
    if (class_of(at)->call == layer_class->call && !strcmp(class_of(at)->name, layer_class->name))
      name = at->name;
  pthread_mutex_unlock(&layers.mutex);
  return name;
}

/* Is `name` the registered one, or the part behind its package? */
static bool names(const mix_registered_class *at, const char *name) {
  return name && (!strcmp(at->name, name) || !strcmp(strchr(at->name, '>') + 1, name) ||
                  !strcmp(class_of(at)->name, name));
}

bool mix_custom_layer_find(const char *class_name, const char *registered_name, mix_layer_class *found) {
  for (const mix_layer_class *const *at = custom_layers; at && *at; at++)
    if (class_name && (*at)->name && !strcmp((*at)->name, class_name))
      return mix_options_copy(found, sizeof *found, *at, "custom layer");
  pthread_mutex_lock(&layers.mutex);
  const mix_registered_class *place = registered_name ? mix_registered_find(&layers, registered_name) : NULL;
  for (const mix_registered_class *at = layers.first; at && !place; at = at->next)
    if (names(at, class_name)) place = at;
  if (place) *found = *class_of(place);
  pthread_mutex_unlock(&layers.mutex);
  return place;
}
