/* Keeps shared objects loaded by opening them once more with RTLD_NODELETE, and loads libraries that few
 * programs need. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* dl_iterate_phdr */
#endif
#include "base/loaded.h"
#include <dlfcn.h>
#include <link.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef struct search {
  uintptr_t address;
  const char *path; /* of the object that has the address; "": the program; NULL: none */
} search;

static int look_at(struct dl_phdr_info *object, size_t size, void *context) {
  search *s = context;
  for (int i = 0; i < object->dlpi_phnum && !s->path; i++) {
    const uintptr_t begin = (uintptr_t)object->dlpi_addr + object->dlpi_phdr[i].p_vaddr;
    if (object->dlpi_phdr[i].p_type == PT_LOAD && s->address >= begin &&
        s->address - begin < object->dlpi_phdr[i].p_memsz)
      s->path = object->dlpi_name;
  }
  return s->path != NULL;
}

void mix_keep_loaded(const void *address) {
  search s = {.address = (uintptr_t)address};
  if (!dl_iterate_phdr(look_at, &s) || s.path[0] == '\0') return; /* the program is never unloaded */
  void *handle = dlopen(s.path, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
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
