/* Where plug-ins are searched, by the names that their packages have. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* secure_getenv, dladdr */
#endif
#include "backend/xla/xla.h"

#include <dlfcn.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Their folders are those of pip's packages; NULL: there is no package. */
static const struct {
  const char *name, *folder;
} libraries[] = {
    {"libtpu.so", "libtpu"}, {"xla_cuda_plugin.so", "jax_plugins/xla_cuda1[0-9]"}, {"xla_cpu_pjrt.so", NULL}};
enum { LIBRARIES = sizeof libraries / sizeof *libraries, CUDA = 1, PATH = 1024 };

/* The newest version comes first. */
static void put_matches(mix_text *list, const char *pattern) {
  glob_t found = {0};
  if (glob(pattern, 0, NULL, &found) == 0)
    for (size_t i = found.gl_pathc; i-- > 0;) mix_text_put(list, "%s\n", found.gl_pathv[i]);
  globfree(&found);
}

/* Of a Python below a folder: Python itself is not started, for that takes longer than searching. */
static void put_of_python(mix_text *list, int library, const char *folder, const char *below) {
  char pattern[PATH];
  if (!folder || !*folder) return;
  snprintf(pattern, sizeof pattern, "%s%s/lib*/python3*/*-packages/%s/%s", folder, below,
           libraries[library].folder, libraries[library].name);
  put_matches(list, pattern);
}

static void put_in(mix_text *list, int library, const char *folder, int length) {
  char path[PATH];
  snprintf(path, sizeof path, "%.*s/%s", length, folder, libraries[library].name);
  if (!access(path, R_OK)) mix_text_put(list, "%s\n", path);
}

static void put_beside_us(mix_text *list, int library) {
  Dl_info us;
  const char *slash = dladdr(libraries, &us) && us.dli_fname ? strrchr(us.dli_fname, '/') : NULL;
  if (slash) put_in(list, library, us.dli_fname, (int)(slash - us.dli_fname));
}

static void put_library(mix_text *list, int library) {
  static const char *const folders[] = {"/usr/local/lib/pjrt", "/usr/lib/pjrt"};
  put_beside_us(list, library);
  if (libraries[library].folder) {
    put_of_python(list, library, secure_getenv("VIRTUAL_ENV"), "");
    put_of_python(list, library, secure_getenv("CONDA_PREFIX"), "");
    put_of_python(list, library, secure_getenv("HOME"), "/.local");
    put_of_python(list, library, "/usr/local", "");
    put_of_python(list, library, "/usr", "");
  }
  mix_text_put(list, "%s\n", libraries[library].name);
  for (int f = 0; f < 2; f++) put_in(list, library, folders[f], (int)strlen(folders[f]));
}

void mix_xla_list_plugins(mix_text *list, bool cuda) {
  for (int i = 0; i < LIBRARIES; i++)
    if (i == CUDA ? !*mix_cuda_ask_driver()->problem : !cuda) put_library(list, i);
}

const char *mix_xla_places(bool cuda) {
  return cuda
             ? "xla_cuda_plugin.so beside the library, in the Python packages below $VIRTUAL_ENV, "
               "$CONDA_PREFIX, ~/.local, /usr/local and /usr, where the loader looks, in "
               "/usr/local/lib/pjrt and in /usr/lib/pjrt"
             : "libtpu.so, xla_cuda_plugin.so and xla_cpu_pjrt.so beside the library, in the Python packages "
               "below $VIRTUAL_ENV, $CONDA_PREFIX, ~/.local, /usr/local and /usr, where the loader looks, in "
               "/usr/local/lib/pjrt and in /usr/lib/pjrt";
}
