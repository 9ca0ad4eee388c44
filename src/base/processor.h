/* Processor features: of x86-64 by CPUID, XCR0 and, for AMX, the kernel's permission; of arm64 by what the
 * kernel says (HWCAP). */
#pragma once

#include <stdbool.h>
#include <stdint.h>

typedef enum mix_cpu_feature {
  MIX_CPU_AVX2 = 1 << 0,     /* AVX2, FMA and F16C together */
  MIX_CPU_AVX512 = 1 << 1,   /* AVX-512 F, BW, DQ, VL */
  MIX_CPU_AVX_VNNI = 1 << 2, /* on vectors of 32 bytes */
  MIX_CPU_AVX512_VNNI = 1 << 3,
  MIX_CPU_AVX512_BF16 = 1 << 4,
  MIX_CPU_AVX512_FP16 = 1 << 5,
  MIX_CPU_AMX_BF16 = 1 << 6,   /* AMX tiles and bfloat16, permission granted */
  MIX_CPU_BF16_PAIRS = 1 << 7, /* bfloat16's products outrun float32's: chosen by vendor and family */
  MIX_CPU_NEON = 1 << 8,       /* Advanced SIMD of arm64 */
  MIX_CPU_NEON_DOT = 1 << 9,   /* its products of four int8 (SDOT) */
  MIX_CPU_NEON_FP16 = 1 << 10, /* its float16 arithmetic */
  MIX_CPU_NEON_BF16 = 1 << 11,
  MIX_CPU_SVE256 = 1 << 12,   /* SVE with vectors of 256 bits or more: no kernels yet */
  MIX_CPU_AMX_INT8 = 1 << 13, /* beside MIX_CPU_AMX_BF16 */
} mix_cpu_feature;

/* The features to use: those of the processor, limited by MIXTAPE_MAX_ISA (generic, avx2, avx512,
 * avx512_bf16, avx512_fp16, amx, where VNNI belongs to avx512_bf16; on arm64 generic, neon, neon_dot,
 * neon_fp16, neon_bf16, sve256), MIX_CPU_BF16_PAIRS as MIXTAPE_BF16_PAIRS says (on, off; on needs the
 * processor's bfloat16 in force). */
uint32_t mix_cpu_features(void);
/* The features of the processor, without that limit. */
uint32_t mix_cpu_found(void);
/* "avx2, avx512, ..." or "none beyond x86-64". */
const char *mix_cpu_features_text(uint32_t features, char *text, int size);
/* The processor's model name, and the size in bytes of its cache of level 1 (data), 2 or 3. A default size
 * is returned if it is unknown. */
const char *mix_cpu_name(void);
int64_t mix_cpu_cache(int level);
/* The number of cores that this process may use: those of its affinity, or whole cores of the CPU quota of
 * its control groups, which is read once (base/cpu_quota.h). */
int mix_cpu_cores(void);
/* For tests: pretend that only these features exist. UINT32_MAX restores the real ones. */
void mix_cpu_override(uint32_t features);
