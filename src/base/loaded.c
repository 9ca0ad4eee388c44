/* Keeps shared objects loaded by opening them once more with RTLD_NODELETE, and loads libraries that few
 * programs need. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* dladdr1 */
#endif
#include "base/loaded.h"
#include <dlfcn.h>
#include <link.h>
#include <stddef.h>
#include <string.h>

void mix_keep_loaded(const void *address) {
  Dl_info info;
  struct link_map *object = NULL;
  if (!dladdr1(address, &info, (void **)&object, RTLD_DL_LINKMAP) || !object) return;
  if (object->l_name[0] == '\0') return; /* the program, which is never unloaded */
  void *handle = dlopen(object->l_name, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
  if (handle) dlclose(handle);
}

void mix_keep_library_loaded(void) {
  static const char here;
  mix_keep_loaded(&here);
}

static bool take_functions(void *library, const mix_library_function *functions) {
  for (; functions->name; functions++) {
    void *found = dlsym(library, functions->name);
    if (!found) return false;
    memcpy(functions->pointer, &found, sizeof found); /* POSIX allows it for what dlsym gives */
  }
  return true;
}

bool mix_load_library(const char *const *names, const mix_library_function *functions) {
  for (; *names; names++) {
    void *library = dlopen(*names, RTLD_NOW | RTLD_LOCAL);
    if (library && take_functions(library, functions)) return true;
    if (library) dlclose(library);
  }
  return false;
}
