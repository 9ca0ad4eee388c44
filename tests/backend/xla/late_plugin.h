/* The plug-in whose copies finish late (support/pjrt/late.c), and what it counts. */
#ifndef TESTS_BACKEND_XLA_LATE_PLUGIN_H
#define TESTS_BACKEND_XLA_LATE_PLUGIN_H

#include "backend/xla/support.h"
#include "support/xla.h"

#include <dlfcn.h>

/* The device, before the fake of this name, or the plug-in for CPUs. */
static inline const char *late(const char *name) {
  char path[600];
  snprintf(path, sizeof path, "%s/fake_%s.so", getenv("MIXTAPE_FAKE_PJRT"), name ? name : "");
  setenv("MIXTAPE_LATE_PJRT", name ? path : strchr(xla_device(), ':') + 1, 1);
  return fake("late");
}

static inline int calls(const char *what) {
  void *library = dlopen(strchr(fake("late"), ':') + 1, RTLD_NOW | RTLD_NOLOAD);
  int (*count)(const char *) = NULL;
  CHECK(library);
  *(void **)&count = dlsym(library, "late_count");
  CHECK(count);
  return count(what);
}

#endif
