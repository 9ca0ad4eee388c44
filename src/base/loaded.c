/* Keeps shared objects loaded by opening them once more with RTLD_NODELETE. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* dladdr1 */
#endif
#include "base/loaded.h"
#include <dlfcn.h>
#include <link.h>
#include <stddef.h>

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
