/* NVIDIA's GPUs as their driver tells of them, and what XLA's plug-in needs there. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* secure_getenv */
#endif
#include "backend/xla/xla.h"

#include "base/error.h"
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- the driver ---- */

static mix_cuda_driver driver;

/* Functions of libcuda.so.1 and constants of cuda.h. */
enum { MULTIPROCESSORS = 16, COMPUTE_CAPABILITY_MAJOR = 75, COMPUTE_CAPABILITY_MINOR = 76, NO_DEVICE = 100 };
static struct {
  int (*init)(unsigned flags), (*version)(int *), (*count)(int *), (*device)(int *, int number),
      (*name)(char *, int size, int device), (*bytes)(size_t *, int device),
      (*attribute)(int *, int attribute, int device);
} call;

static bool find_calls(void *library) {
  static const struct {
    const char *name;
    void *to;
  } rows[] = {{"cuInit", &call.init},
              {"cuDriverGetVersion", &call.version},
              {"cuDeviceGetCount", &call.count},
              {"cuDeviceGet", &call.device},
              {"cuDeviceGetName", &call.name},
              {"cuDeviceTotalMem_v2", &call.bytes},
              {"cuDeviceGetAttribute", &call.attribute}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    void *address = dlsym(library, rows[i].name);
    if (!address) return false;
    memcpy(rows[i].to, &address, sizeof address);
  }
  return true;
}

static void read_gpu(int number, mix_cuda_gpu *gpu) {
  int device;
  if (call.device(&device, number)) return;
  call.name(gpu->name, sizeof gpu->name, device);
  call.bytes(&gpu->bytes, device);
  call.attribute(&gpu->cores, MULTIPROCESSORS, device);
  call.attribute(&gpu->major, COMPUTE_CAPABILITY_MAJOR, device);
  call.attribute(&gpu->minor, COMPUTE_CAPABILITY_MINOR, device);
}

/* "580.65.06" of "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.65.06  ..." */
static void read_release(void) {
  FILE *file = fopen("/proc/driver/nvidia/version", "r");
  int major, minor;
  while (file && fscanf(file, "%31s", driver.release) == 1)
    if (sscanf(driver.release, "%d.%d", &major, &minor) == 2) break;
  if (file) fclose(file);
}

static void take_target(const mix_cuda_gpu *target) {
  driver.version = 13000;
  driver.count = 1;
  driver.gpus[0] = *target;
}

static void ask(void) {
  if (mix_cuda_target()) {
    take_target(mix_cuda_target());
    return;
  }
  void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  const size_t size = sizeof driver.problem;
  int error = 0, count = 0;
  if (!library || !find_calls(library)) {
    snprintf(driver.problem, size,
             "there is no NVIDIA driver, the loader finds no libcuda.so.1; install one (Debian: sudo apt "
             "install nvidia-driver, Ubuntu: sudo ubuntu-drivers install), or start the container with "
             "--gpus all");
    return;
  }
  error = call.init(0);
  if (!error) error = call.count(&count);
  if (error == NO_DEVICE || (!error && !count))
    snprintf(driver.problem, size,
             "the NVIDIA driver finds no GPU; nvidia-smi lists them, and CUDA_VISIBLE_DEVICES hides them");
  else if (error)
    snprintf(driver.problem, size,
             "the NVIDIA driver does not start, its error is %d; run nvidia-smi, and restart the machine "
             "after an update of the driver",
             error);
  if (*driver.problem) return;
  call.version(&driver.version);
  read_release();
  driver.count = count < MIX_CUDA_GPUS ? count : MIX_CUDA_GPUS;
  for (int i = 0; i < driver.count; i++) read_gpu(i, &driver.gpus[i]);
}

const mix_cuda_driver *mix_cuda_ask_driver(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, ask);
  return &driver;
}

static atomic_int gpu_in_use;
int mix_cuda_gpu_in_use(void) { return atomic_load(&gpu_in_use); }
void mix_cuda_use_gpu(int number) { atomic_store(&gpu_in_use, number); }

/* ---- what a plug-in needs ---- */

/* Versions of CUDA for which there are plug-ins, and what they need: the least driver, as nvidia-smi and as
 * the driver itself name it, and the least compute capability, times ten. */
static const struct {
  int cuda, release, capability;
  const char *compiler; /* packages with ptxas and libdevice */
} versions[] = {{13, 580, 75, "nvidia-cuda-nvcc nvidia-nvvm"}, {12, 525, 52, "nvidia-cuda-nvcc-cu12"}};
enum { VERSIONS = sizeof versions / sizeof *versions };

static bool is_driven(int v) { return driver.version / 1000 >= versions[v].cuda; }
static bool is_computed(int v, int gpu) {
  return driver.gpus[gpu].major * 10 + driver.gpus[gpu].minor >= versions[v].capability;
}

const char *mix_cuda_remedy(int gpu) {
  static char text[2][120];
  for (int v = 0; v < VERSIONS; v++) {
    snprintf(text[v], sizeof text[v], "run: pip install \"jax-cuda%d-plugin[with-cuda]\"", versions[v].cuda);
    if (is_driven(v) && is_computed(v, gpu)) return text[v];
  }
  return "update the driver to release 580 or newer; GPUs below compute capability 5.2 cannot be used";
}

/* The row of the version that a path names, as pip's folders do; -1: it names none. */
static int version_of(const char *path) {
  char name[16];
  for (int v = 0; v < VERSIONS; v++) {
    snprintf(name, sizeof name, "cuda%d", versions[v].cuda);
    if (strstr(path, name)) return v;
  }
  return -1;
}

int mix_cuda_version_of(const char *plugin) {
  const int v = version_of(plugin);
  return versions[v < 0 ? 0 : v].cuda;
}

static char toolkit[600]; /* the folder with ptxas and libdevice; "": none is known */

static bool is_toolkit(const char *folder) {
  char path[700];
  snprintf(path, sizeof path, "%s/bin/ptxas", folder);
  if (access(path, X_OK)) return false;
  snprintf(path, sizeof path, "%s/nvvm/libdevice/libdevice.10.bc", folder);
  return access(path, R_OK) == 0;
}

/* Beside the plug-in, as pip puts them, then those of a CUDA toolkit. */
static bool find_toolkit(const char *plugin) {
  static const char *const pip[] = {"../../nvidia/cu13", "../../nvidia/cuda_nvcc"};
  const char *slash = strrchr(plugin, '/'), *home = secure_getenv("CUDA_HOME");
  for (int i = 0; slash && i < 2; i++) {
    snprintf(toolkit, sizeof toolkit, "%.*s/%s", (int)(slash - plugin), plugin, pip[i]);
    if (is_toolkit(toolkit)) return true;
  }
  snprintf(toolkit, sizeof toolkit, "%s", home ? home : "/usr/local/cuda");
  if (is_toolkit(toolkit)) return true;
  *toolkit = 0;
  return false;
}

const char *mix_cuda_toolkit(void) { return toolkit; }

bool mix_cuda_check(const char *plugin, int gpu) {
  const int v = version_of(plugin);
  const mix_cuda_gpu *g = &driver.gpus[gpu];
  if (v >= 0 && !is_driven(v))
    mix_fail(MIX_UNSUPPORTED, "%s needs a driver of release %d or newer, and this one is for CUDA %d.%d; %s",
             plugin, versions[v].release, driver.version / 1000, driver.version % 1000 / 10,
             mix_cuda_remedy(gpu));
  else if (v >= 0 && !is_computed(v, gpu))
    mix_fail(MIX_UNSUPPORTED, "%s needs compute capability %d.%d, and GPU %d, %s, has %d.%d; %s", plugin,
             versions[v].capability / 10, versions[v].capability % 10, gpu, g->name, g->major, g->minor,
             mix_cuda_remedy(gpu));
  else if (!find_toolkit(plugin))
    mix_fail(MIX_UNSUPPORTED,
             "%s needs ptxas and libdevice.10.bc beside it in pip's folders, in $CUDA_HOME or in "
             "/usr/local/cuda; run: pip install %s",
             plugin, versions[v < 0 ? 0 : v].compiler);
  return !mix_failed();
}

/* ---- options of the client ---- */

typedef struct memory_use {
  double share; /* of the GPU's memory, at most */
  bool at_once;
} memory_use;

/* XLA's own default takes 0.75 at once, also where others use the GPU. */
static const memory_use grow = {.share = 0.9};

/* The share that an amount like "8GiB" is; 0: it is none. */
static double share_of(const char *text, double bytes) {
  static const char *const units[] = {"", "KiB", "MiB", "GiB", "TiB"};
  char *end;
  double amount = strtod(text, &end);
  for (int u = 0; u < 5; u++, amount *= 1024)
    if (!strcmp(end, units[u])) return !u ? amount : bytes > 0 ? amount / bytes : 0;
  return 0;
}

static bool read_memory_use(int gpu, memory_use *use) {
  const char *text = getenv("MIXTAPE_DEVICE_MEMORY");
  const double bytes = (double)driver.gpus[gpu].bytes;
  *use = grow;
  if (!text || !*text || !strcmp(text, "grow")) return true;
  *use = (memory_use){.share = share_of(text, bytes), .at_once = true};
  if (use->share > 0 && use->share <= 1) return true;
  return mix_fail(
             MIX_VALUE_ERROR,
             "MIXTAPE_DEVICE_MEMORY is \"%s\"; expected a share such as 0.9 or an amount such as 8GiB of "
             "the GPU's %.1f GiB, which are taken at once, or \"grow\"",
             text, bytes / (1 << 30)),
         false;
}

int mix_cuda_client_options(int gpu, pjrt_option options[MIX_CUDA_CLIENT_OPTIONS]) {
  static int64_t number; /* read while the client is made */
  memory_use use;
  if (!read_memory_use(gpu, &use)) return -1;
  number = gpu;
  options[0] = (pjrt_option){
      .name = "visible_devices", .type = PJRT_OPTION_INT64S, .value.integers = &number, .value_size = 1};
  options[1] = (pjrt_option){.name = "memory_fraction",
                             .type = PJRT_OPTION_FLOAT,
                             .value.number = (float)use.share,
                             .value_size = 1};
  options[2] = (pjrt_option){
      .name = "preallocate", .type = PJRT_OPTION_BOOL, .value.flag = use.at_once, .value_size = 1};
  for (int i = 0; i < MIX_CUDA_CLIENT_OPTIONS; i++) {
    options[i].struct_size = sizeof *options;
    options[i].name_size = strlen(options[i].name);
  }
  return MIX_CUDA_CLIENT_OPTIONS;
}

/* ---- reports ---- */

/* Memory bounds what XLA computes twice; what the driver tells of it is a little less than what is sold. */
void mix_cuda_put_key(mix_text *key) {
  const mix_cuda_gpu *gpu = &mix_cuda_ask_driver()->gpus[mix_cuda_gpu_in_use()];
  const size_t step = (size_t)8 << 30;
  mix_text_put(key, "capability %d.%d, %d multiprocessors, %zu GiB\n", gpu->major, gpu->minor, gpu->cores,
               (gpu->bytes + step - 1) / step * 8);
}

int mix_cuda_facts(mix_gpu_fact *facts, int capacity) {
  mix_cuda_ask_driver();
  for (int i = 0; i < driver.count && i < capacity; i++) {
    const mix_cuda_gpu *gpu = &driver.gpus[(i + mix_cuda_gpu_in_use()) % driver.count];
    facts[i] = (mix_gpu_fact){.name = gpu->name, .has_capability = gpu->major > 0, gpu->major, gpu->minor};
  }
  return driver.count;
}

void mix_cuda_describe(mix_text *text) {
  for (int i = 0; i < driver.count; i++) {
    const mix_cuda_gpu *gpu = &driver.gpus[i];
    mix_text_put(text, "cuda:%d: %s, compute capability %d.%d, %.1f GiB, driver %s%sfor CUDA %d.%d\n", i,
                 gpu->name, gpu->major, gpu->minor, (double)gpu->bytes / (1 << 30), driver.release,
                 *driver.release ? " " : "", driver.version / 1000, driver.version % 1000 / 10);
  }
}
