#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* sched_getaffinity */
#endif
#include "base/processor.h"
#include "base/cpu_quota.h"
#include "base/error.h"
#include "base/machine.h"
#include "base/processor_found.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

static mix_processor found = {.name = "unknown processor", .caches = {0, 32 << 10, 1 << 20, 16 << 20}};

static void detect(void) { mix_processor_find(&found); }

static void detect_once(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, detect);
}

/* "generic, avx2 or amx" */
static const char *caps_text(char *text, size_t size) {
  size_t length = 0;
  text[0] = '\0';
  for (const mix_isa_cap *x = mix_isa_caps; x->name && length < size; x++) {
    const char *between = x == mix_isa_caps ? "" : x[1].name ? ", " : " or ";
    length += (size_t)snprintf(text + length, size - length, "%s%s", between, x->name);
  }
  return text;
}

static uint32_t cap(void) {
  static atomic_bool warned;
  const char *name = getenv("MIXTAPE_MAX_ISA");
  if (!name || !*name) return UINT32_MAX;
  for (const mix_isa_cap *x = mix_isa_caps; x->name; x++)
    if (strcasecmp(name, x->name) == 0) return x->allowed;
  char text[128];
  if (!atomic_exchange(&warned, true))
    mix_log_message(MIX_LOG_WARNING, "MIXTAPE_MAX_ISA is \"%s\", which is ignored; expected %s", name,
                    caps_text(text, sizeof text));
  return UINT32_MAX;
}

static _Atomic uint32_t override = UINT32_MAX;

void mix_cpu_override(uint32_t features) { atomic_store(&override, features); }

uint32_t mix_cpu_found(void) {
  detect_once();
  return found.features & atomic_load(&override);
}

/* MIXTAPE_BF16_PAIRS decides instead of vendor and family. */
static uint32_t choose_pairs(uint32_t features) {
  static atomic_bool warned;
  const char *choice = getenv("MIXTAPE_BF16_PAIRS");
  if (!choice || !*choice) return features;
  const bool on = strcasecmp(choice, "on") == 0;
  if (!on && strcasecmp(choice, "off") != 0) {
    if (!atomic_exchange(&warned, true))
      mix_log_message(MIX_LOG_WARNING, "MIXTAPE_BF16_PAIRS is \"%s\", which is ignored; expected on or off",
                      choice);
    return features;
  }
  return on && features & (MIX_CPU_AVX512_BF16 | MIX_CPU_NEON_BF16)
             ? features | MIX_CPU_BF16_PAIRS
             : features & ~(uint32_t)MIX_CPU_BF16_PAIRS;
}

uint32_t mix_cpu_features(void) { return choose_pairs(mix_cpu_found() & cap()); }

const char *mix_cpu_features_text(uint32_t features, char *text, int size) {
  static const char *const names[] = {"avx2",        "avx512",    "avx_vnni",   "avx512_vnni", "avx512_bf16",
                                      "avx512_fp16", "amx_bf16",  "bf16_pairs", "neon",        "neon_dot",
                                      "neon_fp16",   "neon_bf16", "sve256",     "amx_int8"};
  if (size <= 0) return "";
  int length = 0;
  text[0] = '\0';
  for (int i = 0; i < (int)(sizeof names / sizeof *names) && length < size; i++)
    if (features >> i & 1)
      length += snprintf(text + length, (size_t)(size - length), "%s%s", length ? ", " : "", names[i]);
  if (length == 0) snprintf(text, (size_t)size, "none beyond " MIX_MACHINE);
  return text;
}

const char *mix_cpu_name(void) {
  detect_once();
  return found.name;
}

int64_t mix_cpu_cache(int level) {
  detect_once();
  return level >= 1 && level <= 3 ? found.caches[level] : 0;
}

static int cores_of_affinity(void) {
  /* The call fails for a set smaller than the kernel's own, whose size is unknown. */
  for (int processors = 1024; processors <= 1 << 20; processors *= 4) {
    cpu_set_t *set = CPU_ALLOC(processors);
    if (!set) break;
    size_t size = CPU_ALLOC_SIZE(processors);
    int cores = sched_getaffinity(0, size, set) == 0 ? CPU_COUNT_S(size, set) : 0;
    CPU_FREE(set);
    if (cores > 0) return cores;
  }
  long online = sysconf(_SC_NPROCESSORS_ONLN);
  return online > 0 ? (int)online : 1;
}

static int quota;
static void read_quota(void) { quota = mix_cpu_quota(""); }

int mix_cpu_cores(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, read_quota);
  const int cores = cores_of_affinity();
  return quota && quota < cores ? quota : cores;
}
