#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* sched_getaffinity */
#endif
#include "base/processor.h"
#include "base/cpu_quota.h"
#include "base/error.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#endif

static struct {
  uint32_t features;
  char name[49];
  int64_t caches[4]; /* bytes of level 1 (data), 2, 3 at [1], [2], [3] */
} found = {.name = "unknown processor", .caches = {0, 32 << 10, 1 << 20, 16 << 20}};

#if defined(__x86_64__)

typedef struct leaf {
  uint32_t a, b, c, d;
} leaf;

static leaf cpuid(uint32_t number, uint32_t part) {
  leaf l = {0, 0, 0, 0};
  if (!__get_cpuid_count(number, part, &l.a, &l.b, &l.c, &l.d)) l = (leaf){0, 0, 0, 0};
  return l;
}

static inline bool bit(uint32_t word, int n) { return word >> n & 1; }

/* The register state that the operating system saves at a context switch. Valid only if CPUID reports
 * OSXSAVE. */
static uint64_t xcr0(void) {
  uint32_t low, high;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (uint64_t)high << 32 | low;
}

/* Linux grants the 8 KiB of tile data (state component 18) to the whole process on request:
 * Documentation/arch/x86/xstate.rst. */
static bool tiles_permitted(void) {
  enum { ARCH_GET_XCOMP_PERM = 0x1022, ARCH_REQ_XCOMP_PERM = 0x1023, XFEATURE_XTILEDATA = 18 };
  unsigned long granted = 0;
  return syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA) == 0 &&
         syscall(SYS_arch_prctl, ARCH_GET_XCOMP_PERM, &granted) == 0 && (granted >> XFEATURE_XTILEDATA & 1);
}

/* Does VDPBF16PS multiply faster than float32's fused multiply-adds? At twice their rate on AMD's processors
 * from Zen 4 on (family 0x19; bench/results/2026-11-24-bf16-amd.md), at half of it on Intel's. */
static bool pairs_gain(void) {
  enum { FAMILY_OF_ZEN4 = 0x19, EXTENDED = 15 };
  const leaf vendor = cpuid(0, 0);
  const uint32_t version = cpuid(1, 0).a, base = version >> 8 & 15;
  const uint32_t family = base == EXTENDED ? base + (version >> 20 & 255) : base;
  return vendor.b == signature_AMD_ebx && vendor.d == signature_AMD_edx && vendor.c == signature_AMD_ecx &&
         family >= FAMILY_OF_ZEN4;
}

/* CPUID bits: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2A; XCR0: volume 1,
 * chapter 13. Each feature requires the previous one, because the kernels are compiled so. */
static uint32_t detect_features(void) {
  enum { STATE_AVX = 0x6, STATE_AVX512 = 0xe6, STATE_TILES = 0x60000 };
  leaf one = cpuid(1, 0), seven = cpuid(7, 0), seven_one = seven.a >= 1 ? cpuid(7, 1) : (leaf){0, 0, 0, 0};
  if (!bit(one.c, 27)) return 0;
  uint64_t state = xcr0();
  bool avx2 = (state & STATE_AVX) == STATE_AVX && bit(one.c, 28) && bit(one.c, 12) && bit(one.c, 29) &&
              bit(seven.b, 5);
  bool avx512 = avx2 && (state & STATE_AVX512) == STATE_AVX512 && bit(seven.b, 16) && bit(seven.b, 17) &&
                bit(seven.b, 30) && bit(seven.b, 31);
  bool bf16 = avx512 && bit(seven_one.a, 5), fp16 = avx512 && bit(seven.d, 23);
  bool amx = bf16 && bit(seven.d, 24) && bit(seven.d, 22) && (state & STATE_TILES) == STATE_TILES &&
             tiles_permitted();
  return (avx2 ? MIX_CPU_AVX2 : 0) | (avx512 ? MIX_CPU_AVX512 : 0) | (bf16 ? MIX_CPU_AVX512_BF16 : 0) |
         (fp16 ? MIX_CPU_AVX512_FP16 : 0) | (amx ? MIX_CPU_AMX_BF16 : 0) |
         (bf16 && pairs_gain() ? MIX_CPU_BF16_PAIRS : 0);
}

static void detect_name(void) {
  leaf parts[3];
  if (cpuid(0x80000000u, 0).a < 0x80000004u) return;
  for (uint32_t i = 0; i < 3; i++) parts[i] = cpuid(0x80000002u + i, 0);
  char text[sizeof parts + 1] = {0};
  memcpy(text, parts, sizeof parts);
  char *start = text + strspn(text, " ");
  size_t length = strlen(start);
  while (length > 0 && start[length - 1] == ' ') start[--length] = '\0';
  if (length > 0) snprintf(found.name, sizeof found.name, "%s", start);
}

/* Leaf 4 (Intel) and leaf 0x8000001D (AMD) describe the caches in the same format. */
static void detect_caches(void) {
  bool amd =
      !bit(cpuid(1, 0).a, 31) && cpuid(0x80000000u, 0).a >= 0x8000001Du && bit(cpuid(0x80000001u, 0).c, 22);
  enum { NONE, DATA, INSTRUCTIONS };
  for (uint32_t i = 0; i < 16; i++) {
    leaf l = cpuid(amd ? 0x8000001Du : 4, i);
    uint32_t type = l.a & 31, level = l.a >> 5 & 7;
    if (type == NONE) break;
    if (type == INSTRUCTIONS || level < 1 || level > 3) continue;
    found.caches[level] =
        (int64_t)((l.b >> 22) + 1) * ((l.b >> 12 & 1023) + 1) * ((l.b & 4095) + 1) * ((int64_t)l.c + 1);
  }
}

#else

static uint32_t detect_features(void) { return 0; }
static void detect_name(void) {}
static void detect_caches(void) {}

#endif

static void detect(void) {
  static const int names[4] = {
      [1] = _SC_LEVEL1_DCACHE_SIZE, [2] = _SC_LEVEL2_CACHE_SIZE, [3] = _SC_LEVEL3_CACHE_SIZE};
  found.features = detect_features();
  detect_name();
  for (int level = 1; level <= 3; level++) {
    long size = sysconf(names[level]);
    if (size > 0) found.caches[level] = size;
  }
  detect_caches(); /* sysconf adds up an AMD processor's third-level caches, which only some cores share */
}

static void detect_once(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, detect);
}

enum { BF16 = MIX_CPU_AVX512_BF16 | MIX_CPU_BF16_PAIRS };

/* Each value of MIXTAPE_MAX_ISA includes the previous ones. */
static const struct {
  const char *name;
  uint32_t allowed;
} caps[] = {
    {"generic", 0},
    {"avx2", MIX_CPU_AVX2},
    {"avx512", MIX_CPU_AVX2 | MIX_CPU_AVX512},
    {"avx512_bf16", MIX_CPU_AVX2 | MIX_CPU_AVX512 | BF16},
    {"avx512_fp16", MIX_CPU_AVX2 | MIX_CPU_AVX512 | BF16 | MIX_CPU_AVX512_FP16},
    {"amx", MIX_CPU_AVX2 | MIX_CPU_AVX512 | BF16 | MIX_CPU_AVX512_FP16 | MIX_CPU_AMX_BF16},
};

static uint32_t cap(void) {
  static atomic_bool warned;
  const char *name = getenv("MIXTAPE_MAX_ISA");
  if (!name || !*name) return UINT32_MAX;
  for (size_t i = 0; i < sizeof caps / sizeof *caps; i++)
    if (strcasecmp(name, caps[i].name) == 0) return caps[i].allowed;
  if (!atomic_exchange(&warned, true))
    mix_log_message(
        MIX_LOG_WARNING,
        "MIXTAPE_MAX_ISA is \"%s\", which is ignored; expected generic, avx2, avx512, avx512_bf16, "
        "avx512_fp16 or amx",
        name);
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
  return on && features & MIX_CPU_AVX512_BF16 ? features | MIX_CPU_BF16_PAIRS
                                              : features & ~(uint32_t)MIX_CPU_BF16_PAIRS;
}

uint32_t mix_cpu_features(void) { return choose_pairs(mix_cpu_found() & cap()); }

const char *mix_cpu_features_text(uint32_t features, char *text, int size) {
  static const char *const names[] = {"avx2",        "avx512",   "avx512_bf16",
                                      "avx512_fp16", "amx_bf16", "bf16_pairs"};
  if (size <= 0) return "";
  int length = 0;
  text[0] = '\0';
  for (int i = 0; i < (int)(sizeof names / sizeof *names) && length < size; i++)
    if (features >> i & 1)
      length += snprintf(text + length, (size_t)(size - length), "%s%s", length ? ", " : "", names[i]);
  if (length == 0) snprintf(text, (size_t)size, "none beyond x86-64");
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
