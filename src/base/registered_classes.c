#include "base/registered_classes.h"
#include "base/alloc.h"
#include "base/error.h"
#include "base/object.h"
#include <stdio.h>
#include <string.h>

const char *mix_registered_full_name(const char *call, const char *package, const char *name) {
  char text[256];
  if (!package || !package[0]) package = "Custom";
  const int length = snprintf(text, sizeof text, "%s>%s", package, name);
  if (length < (int)sizeof text && !strchr(package, '>') && !strchr(name, '>')) return mix_intern(text);
  return mix_fail_value("%s: package '%.60s' and name '%.60s'; expected short names without '>'", call,
                        package, name);
}

mix_registered_class *mix_registered_find(const mix_registered_classes *classes, const char *full_name) {
  mix_registered_class *at = classes->first;
  while (at && strcmp(at->name, full_name)) at = at->next;
  return at;
}

bool mix_registered_store(mix_registered_classes *classes, const char *full_name, const void *class) {
  const size_t size = classes->class_size;
  pthread_mutex_lock(&classes->mutex);
  mix_registered_class *place = mix_registered_find(classes, full_name);
  if (!place && (place = mix_calloc(1, sizeof *place + size))) {
    place->name = full_name;
    place->class = place + 1;
    place->next = classes->first;
    classes->first = place;
  }
  if (place) memcpy(place->class, class, size);
  pthread_mutex_unlock(&classes->mutex);
  return place;
}

void mix_registered_clear(mix_registered_classes *classes) {
  pthread_mutex_lock(&classes->mutex);
  while (classes->first) {
    mix_registered_class *next = classes->first->next;
    mix_free(classes->first);
    classes->first = next;
  }
  pthread_mutex_unlock(&classes->mutex);
}
