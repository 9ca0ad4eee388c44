/* Processor features of arm64, as the Linux kernel reports them (Documentation/arch/arm64/elf_hwcaps.rst).
 * Not by /proc/cpuinfo, which under emulation is the host's. */
#include "base/processor.h"
#include "base/processor_found.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/prctl.h>

/* Named here, because older headers of the C library lack some. */
enum { ASIMD = 1 << 1, ASIMDHP = 1 << 10, CPUID = 1 << 11, ASIMDDP = 1 << 20, SVE = 1 << 22 };
enum { BF16 = 1 << 14 }; /* of the second word */

static bool has_sve256(unsigned long capabilities) {
  enum { GET_VL = 51, LENGTH = 0xffff, BYTES = 32 };
  if (!(capabilities & SVE)) return false;
  const int answer = prctl(GET_VL, 0, 0, 0, 0);
  return answer >= 0 && (answer & LENGTH) >= BYTES;
}

/* Each feature requires the previous one, because kernels are compiled so; but SDOT NEON alone. */
static uint32_t find_features(void) {
  const unsigned long first = getauxval(AT_HWCAP), second = getauxval(AT_HWCAP2);
  const bool neon = first & ASIMD, fp16 = neon && first & ASIMDHP, bf16 = fp16 && second & BF16;
  return (neon ? MIX_CPU_NEON : 0) | (neon && first & ASIMDDP ? MIX_CPU_NEON_DOT : 0) |
         (fp16 ? MIX_CPU_NEON_FP16 : 0) | (bf16 ? MIX_CPU_NEON_BF16 : 0) |
         (bf16 && has_sve256(first) ? MIX_CPU_SVE256 : 0);
}

/* The register MIDR_EL1, which the kernel reads for programs
 * (Documentation/arch/arm64/cpu-feature-registers.rst). Part numbers: Arm's technical reference manuals. */
static void find_name(mix_processor *found) {
  static const struct {
    unsigned implementer, part;
    const char *name;
  } known[] = {{0x41, 0xd03, "Arm Cortex-A53"},  {0x41, 0xd07, "Arm Cortex-A57"},
               {0x41, 0xd08, "Arm Cortex-A72"},  {0x41, 0xd0b, "Arm Cortex-A76"},
               {0x41, 0xd0c, "Arm Neoverse N1"}, {0x41, 0xd40, "Arm Neoverse V1"},
               {0x41, 0xd49, "Arm Neoverse N2"}, {0x41, 0xd4f, "Arm Neoverse V2"},
               {0x41, 0xd84, "Arm Neoverse V3"}, {0x48, 0xd01, "HiSilicon Kunpeng 920"},
               {0x46, 0x001, "Fujitsu A64FX"},   {0xc0, 0xac3, "Ampere-1"}};
  enum { KNOWN = sizeof known / sizeof *known };
  snprintf(found->name, sizeof found->name, "an arm64 processor");
  if (!(getauxval(AT_HWCAP) & CPUID)) return;
  uint64_t midr;
  __asm__("mrs %0, midr_el1" : "=r"(midr));
  const unsigned implementer = (unsigned)(midr >> 24 & 0xff), part = (unsigned)(midr >> 4 & 0xfff);
  for (int i = 0; i < KNOWN; i++)
    if (known[i].implementer == implementer && known[i].part == part) {
      snprintf(found->name, sizeof found->name, "%s", known[i].name);
      return;
    }
  snprintf(found->name, sizeof found->name, "arm64 (implementer 0x%02x, part 0x%03x)", implementer, part);
}

static bool read_line(int cache, const char *what, char *line, int size) {
  char path[96];
  snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%d/%s", cache, what);
  FILE *file = fopen(path, "re");
  if (!file) return false;
  const bool read = fgets(line, size, file) != NULL;
  fclose(file);
  return read;
}

/* sysconf knows no caches of arm64. Sizes are "64K". */
static void find_caches(mix_processor *found) {
  char type[32], text[32];
  for (int i = 0; i < 8 && read_line(i, "type", type, sizeof type); i++) {
    if (!strncmp(type, "Instruction", 11) || !read_line(i, "level", text, sizeof text)) continue;
    const long level = strtol(text, NULL, 10);
    if (level < 1 || level > 3 || !read_line(i, "size", text, sizeof text)) continue;
    char *unit;
    const int64_t size = strtoll(text, &unit, 10);
    if (size > 0) found->caches[level] = *unit == 'K' ? size << 10 : *unit == 'M' ? size << 20 : size;
  }
}

void mix_processor_find(mix_processor *found) {
  found->features = find_features();
  find_name(found);
  find_caches(found);
}

enum {
  WITH_DOT = MIX_CPU_NEON | MIX_CPU_NEON_DOT,
  WITH_FP16 = WITH_DOT | MIX_CPU_NEON_FP16,
  WITH_BF16 = WITH_FP16 | MIX_CPU_NEON_BF16 | MIX_CPU_BF16_PAIRS
};

const mix_isa_cap mix_isa_caps[] = {
    {"generic", 0},
    {"neon", MIX_CPU_NEON},
    {"neon_dot", WITH_DOT},
    {"neon_fp16", WITH_FP16},
    {"neon_bf16", WITH_BF16},
    {"sve256", WITH_BF16 | MIX_CPU_SVE256},
    {NULL, 0},
};
