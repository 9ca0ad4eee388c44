/* Machines for tests of the device "cuda": a fake driver, a fake plug-in and packages in pip's layout, in the
 * test's folder. For children of in_child, for driver and plug-in are asked once. */
#ifndef TESTS_BACKEND_XLA_MACHINES_H
#define TESTS_BACKEND_XLA_MACHINES_H

#include "backend/xla/support.h"

#include "backend/backend.h"
#include "backend/xla/xla.h"
#include "support/folder.h"
#include <dlfcn.h>

static inline const char *fakes(const char *name) {
  static char path[600];
  snprintf(path, sizeof path, "%s/fake_%s.so", getenv("MIXTAPE_FAKE_PJRT"), name);
  return path;
}

static inline void have_driver(const char *gpus, const char *version) {
  setenv("FAKE_GPUS", gpus, 1);
  setenv("FAKE_CUDA", version, 1);
  CHECK(dlopen(fakes("driver"), RTLD_NOW));
}

/* The same for programs that the test starts. */
static inline void give_driver(const char *gpus) {
  char command[1300];
  snprintf(command, sizeof command, "mkdir -p %s && ln -sf %s %s", in_folder("driver"), fakes("driver"),
           in_folder("driver/libcuda.so.1"));
  CHECK(system(command) == 0);
  setenv("LD_LIBRARY_PATH", in_folder("driver"), 1);
  setenv("FAKE_GPUS", gpus, 1);
  setenv("FAKE_CUDA", "13000", 1);
}

/* In the test's folder, which is a virtual environment of Python. */
static inline void put_file(const char *path, const char *target) {
  char command[1500];
  snprintf(command, sizeof command, "f=%s/lib/python3.12/site-packages/%s; mkdir -p ${f%%/*} && ln -sf %s $f",
           test_folder, path, target);
  CHECK(system(command) == 0);
}
static inline void have_python(void) {
  unsetenv("MIXTAPE_PJRT_PLUGIN");
  unsetenv("CONDA_PREFIX");
  setenv("CUDA_HOME", "/nowhere", 1);
  setenv("HOME", "/nowhere", 1);
  setenv("VIRTUAL_ENV", test_folder, 1);
}
static inline void have_plugin_of(int version, const char *name) {
  char path[100];
  snprintf(path, sizeof path, "jax_plugins/xla_cuda%d/xla_cuda_plugin.so", version);
  put_file(path, fakes(name));
}
static inline void have_plugin(int version) { have_plugin_of(version, "cuda"); }
static inline void have_compiler(const char *folder) {
  char path[100];
  snprintf(path, sizeof path, "nvidia/%s/bin/ptxas", folder);
  put_file(path, "/bin/true");
  snprintf(path, sizeof path, "nvidia/%s/nvvm/libdevice/libdevice.10.bc", folder);
  put_file(path, "/bin/true");
}
static inline void have_all(const char *gpus) {
  have_driver(gpus, "13000");
  have_python();
  have_plugin(13);
  have_compiler("cu13");
}

static inline void expect(const char *mention, const char *text) {
  if (strstr(text, mention)) return;
  fprintf(stderr, "\"%s\"\nis without \"%s\"\n", text, mention);
  _exit(1);
}

#endif
