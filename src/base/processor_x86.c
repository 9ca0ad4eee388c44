/* Processor features of x86-64: CPUID, XCR0 and, for AMX, the kernel's permission. */
#include "base/processor.h"
#include "base/processor_found.h"

#include <cpuid.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

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
 * from Zen 4 on (family 0x19; bench/results/products.md), at half of it on Intel's. */
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
static uint32_t find_features(void) {
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
         (amx && bit(seven.d, 25) ? MIX_CPU_AMX_INT8 : 0) | (bf16 && pairs_gain() ? MIX_CPU_BF16_PAIRS : 0) |
         (avx512 && bit(seven.c, 11) ? MIX_CPU_AVX512_VNNI : 0) |
         (avx2 && bit(seven_one.a, 4) ? MIX_CPU_AVX_VNNI : 0);
}

static void find_name(mix_processor *found) {
  leaf parts[3];
  if (cpuid(0x80000000u, 0).a < 0x80000004u) return;
  for (uint32_t i = 0; i < 3; i++) parts[i] = cpuid(0x80000002u + i, 0);
  char text[sizeof parts + 1] = {0};
  memcpy(text, parts, sizeof parts);
  char *start = text + strspn(text, " ");
  size_t length = strlen(start);
  while (length > 0 && start[length - 1] == ' ') start[--length] = '\0';
  if (length > 0) snprintf(found->name, sizeof found->name, "%s", start);
}

/* Leaf 4 (Intel) and leaf 0x8000001D (AMD) describe the caches in the same format. */
static void find_caches(mix_processor *found) {
  bool amd =
      !bit(cpuid(1, 0).a, 31) && cpuid(0x80000000u, 0).a >= 0x8000001Du && bit(cpuid(0x80000001u, 0).c, 22);
  enum { NONE, DATA, INSTRUCTIONS };
  for (uint32_t i = 0; i < 16; i++) {
    leaf l = cpuid(amd ? 0x8000001Du : 4, i);
    uint32_t type = l.a & 31, level = l.a >> 5 & 7;
    if (type == NONE) break;
    if (type == INSTRUCTIONS || level < 1 || level > 3) continue;
    found->caches[level] =
        (int64_t)((l.b >> 22) + 1) * ((l.b >> 12 & 1023) + 1) * ((l.b & 4095) + 1) * ((int64_t)l.c + 1);
  }
}

void mix_processor_find(mix_processor *found) {
  found->features = find_features();
  find_name(found);
  find_caches(found);
}

enum { BF16 = MIX_CPU_AVX512_BF16 | MIX_CPU_BF16_PAIRS | MIX_CPU_AVX512_VNNI | MIX_CPU_AVX_VNNI };

const mix_isa_cap mix_isa_caps[] = {
    {"generic", 0},
    {"avx2", MIX_CPU_AVX2},
    {"avx512", MIX_CPU_AVX2 | MIX_CPU_AVX512},
    {"avx512_bf16", MIX_CPU_AVX2 | MIX_CPU_AVX512 | BF16},
    {"avx512_fp16", MIX_CPU_AVX2 | MIX_CPU_AVX512 | BF16 | MIX_CPU_AVX512_FP16},
    {"amx", MIX_CPU_AVX2 | MIX_CPU_AVX512 | BF16 | MIX_CPU_AVX512_FP16 | MIX_CPU_AMX_BF16 | MIX_CPU_AMX_INT8},
    {NULL, 0},
};
