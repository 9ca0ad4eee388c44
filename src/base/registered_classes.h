/* Classes that the user made known by name, as Keras's register_keras_serializable. All threads share them.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct mix_registered_class {
  const char *name; /* interned: "package>name" */
  struct mix_registered_class *next;
  void *class; /* a copy */
} mix_registered_class;

typedef struct mix_registered_classes {
  pthread_mutex_t mutex;
  size_t class_size;           /* bytes */
  mix_registered_class *first; /* under the mutex */
} mix_registered_classes;

/* "package>name", interned; the package NULL or empty: Custom. NULL with the error recorded, ValueError for
 * names that are long or have '>'. `call` is for messages. */
const char *mix_registered_full_name(const char *call, const char *package, const char *name);
/* Copies the class, over a former one of that name. False with the error recorded. */
bool mix_registered_store(mix_registered_classes *classes, const char *full_name, const void *class);
/* The one of that name, or NULL. The mutex is held. */
mix_registered_class *mix_registered_find(const mix_registered_classes *classes, const char *full_name);
void mix_registered_clear(mix_registered_classes *classes);
