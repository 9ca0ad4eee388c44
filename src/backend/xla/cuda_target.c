/* GPUs that are not here, as facts for XLA's compiler: by name, or in a file of its GpuTargetConfigProto. */
#include "backend/xla/xla.h"

#include "base/alloc.h"
#include "base/did_you_mean.h"
#include "base/error.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- by name ---- */

typedef struct facts {
  const char *name, *device;
  int major, minor, cores, fpus, threads; /* fpus and threads: of a core */
  int shared, shared_optin, l2;           /* bytes; shared: of a core */
  int bandwidth, clock;                   /* GB/s, MHz */
  int64_t bytes;
} facts;

/* NVIDIA's data sheets and tables of compute capabilities. Memory is what the driver tells of it. */
static const facts named[] = {
    {"v100", "Tesla V100-SXM2-16GB", 7, 0, 80, 64, 2048, 98304, 98304, 6291456, 900, 1530, 16945512448},
    {"t4", "Tesla T4", 7, 5, 40, 64, 1024, 65536, 65536, 4194304, 320, 1590, 15843721216},
    {"a100", "NVIDIA A100-SXM4-80GB", 8, 0, 108, 64, 2048, 167936, 166912, 41943040, 2039, 1410, 84987740160},
    {"a10", "NVIDIA A10", 8, 6, 72, 128, 1536, 102400, 101376, 6291456, 600, 1695, 23609475072},
    {"l4", "NVIDIA L4", 8, 9, 58, 128, 1536, 102400, 101376, 50331648, 300, 2040, 23676846080},
    {"l40s", "NVIDIA L40S", 8, 9, 142, 128, 1536, 102400, 101376, 100663296, 864, 2520, 47697362944},
    {"h100", "NVIDIA H100 80GB HBM3", 9, 0, 132, 128, 2048, 233472, 232448, 52428800, 3352, 1980,
     84942979072},
    {"h200", "NVIDIA H200", 9, 0, 132, 128, 2048, 233472, 232448, 52428800, 4800, 1980, 150121545728},
    {"b200", "NVIDIA B200", 10, 0, 148, 128, 2048, 233472, 232448, 132644864, 8000, 1965, 191510609920},
};
#define NAMES "v100|t4|a100|a10|l4|l40s|h100|h200|b200"

/* Those of 9.0 and later have instructions that only code for exactly them may use. */
static void write_facts(mix_text *text, const facts *f, int cuda) {
  const bool own = f->major >= 9;
  const char *version = cuda == 12 ? "12.9.0" : "13.0.0";
  mix_text_put(text,
               "gpu_device_info {\n  threads_per_block_limit: 1024 threads_per_warp: 32\n"
               "  shared_memory_per_block: 49152 shared_memory_per_core: %d\n"
               "  threads_per_core_limit: %d core_count: %d fpus_per_core: %d\n"
               "  block_dim_limit_x: 2147483647 block_dim_limit_y: 65535 block_dim_limit_z: 65535\n"
               "  memory_bandwidth: %d000000000 l2_cache_size: %d clock_rate_ghz: %d.%03d\n"
               "  device_memory_size: %lld shared_memory_per_block_optin: %d\n",
               f->shared, f->threads, f->cores, f->fpus, f->bandwidth, f->l2, f->clock / 1000,
               f->clock % 1000, (long long)f->bytes, f->shared_optin);
  mix_text_put(text, "  cuda_compute_capability { major: %d minor: %d%s }\n", f->major, f->minor,
               own ? " feature_extension: ACCELERATED_FEATURES" : "");
  mix_text_put(text,
               "  registers_per_core_limit: 65536 registers_per_block_limit: 65536\n"
               "  thread_dim_limit_x: 1024 thread_dim_limit_y: 1024 thread_dim_limit_z: 64\n"
               "  device_vendor: \"NVIDIA Corporation\" platform_version: \"Compute Capability %d.%d%s\"\n"
               "  device_address_bits: 64 pcie_bandwidth: 34359738368 ecc_enabled: true\n"
               "  name: \"%s\" driver_version: \"%s\" runtime_version: \"%s\"\n"
               "  compile_time_toolkit_version: \"%s\" dnn_version: \"9.10.0\"\n}\n",
               f->major, f->minor, own ? "a" : "", f->device, version, version, version);
  mix_text_put(text,
               "platform_name: \"CUDA\"\ndnn_version_info { major: 9 minor: 10 patch: 0 }\n"
               "device_description_str: \"%s\"\n",
               f->device);
}

/* ---- from a file ---- */

/* Behind "key:", or NULL. */
static const char *value_of(const char *text, const char *key) {
  const size_t length = strlen(key);
  for (const char *at = text; (at = strstr(at, key)); at += length)
    if ((at == text || strchr(" \t\n{", at[-1])) && at[length] == ':') return at + length + 1;
  return NULL;
}

static int64_t number_of(const char *text, const char *key) {
  const char *value = text ? value_of(text, key) : NULL;
  return value ? strtoll(value, NULL, 10) : 0;
}

/* The part of a file that the key of a kept program needs. */
static bool read_gpu(const char *path, const char *text, mix_cuda_gpu *gpu) {
  const char *capability = strstr(text, "cuda_compute_capability"), *name = value_of(text, "name"), *lacks;
  *gpu = (mix_cuda_gpu){.major = (int)number_of(capability, "major"),
                        .minor = (int)number_of(capability, "minor"),
                        .cores = (int)number_of(text, "core_count"),
                        .bytes = (size_t)number_of(text, "device_memory_size")};
  if (!name || sscanf(name, " \"%95[^\"]\"", gpu->name) != 1) snprintf(gpu->name, sizeof gpu->name, "a GPU");
  lacks = gpu->major <= 0            ? "cuda_compute_capability { major: ... }"
          : gpu->cores <= 0          ? "core_count: ..."
          : (int64_t)gpu->bytes <= 0 ? "device_memory_size: ..."
                                     : NULL;
  return !lacks || mix_fail_value("%s: facts of a GPU without \"%s\"; expected a GpuTargetConfigProto of XLA "
                                  "as text",
                                  path, lacks);
}

/* A file has a few lines. NULL with the error recorded. */
static char *read_file(const char *path) {
  enum { MOST = 1 << 16 };
  FILE *file = fopen(path, "re");
  char *text = file ? mix_calloc(1, MOST + 1) : NULL;
  if (!file) mix_fail_io("the facts of a GPU: cannot open '%s': %s", path, strerror(errno));
  const size_t size = text ? fread(text, 1, MOST, file) : 0;
  const bool good = text && !ferror(file) && size < MOST && strlen(text) == size;
  if (text && !good) mix_fail_value("%s: no facts of a GPU as text of less than 64 KiB", path);
  if (file) fclose(file);
  if (good) return text;
  mix_free(text);
  return NULL;
}

/* ---- the target of the process ---- */

static const facts *chosen;
static char *given; /* the text of a file */
static mix_cuda_gpu target;

const mix_cuda_gpu *mix_cuda_target(void) { return chosen || given ? &target : NULL; }

void mix_cuda_write_target(mix_text *text, int cuda) {
  if (given)
    mix_text_put(text, "%s", given);
  else
    write_facts(text, chosen, cuda);
}

bool mix_cuda_set_target(const char *name) {
  char hint[100];
  for (size_t i = 0; i < sizeof named / sizeof *named && !chosen; i++)
    if (!strcmp(name, named[i].name)) chosen = &named[i];
  if (chosen) {
    target = (mix_cuda_gpu){.major = chosen->major,
                            .minor = chosen->minor,
                            .cores = chosen->cores,
                            .bytes = (size_t)chosen->bytes};
    snprintf(target.name, sizeof target.name, "%s", chosen->device);
    return true;
  }
  if (!strpbrk(name, "./"))
    return mix_fail_value("there is no target \"%s\"%s; expected %s, or a file of facts, NAME.txtpb", name,
                          mix_did_you_mean_choice(name, NAMES, hint, sizeof hint), NAMES);
  if ((given = read_file(name)) && read_gpu(name, given, &target)) return true;
  mix_free(given);
  given = NULL;
  return false;
}
