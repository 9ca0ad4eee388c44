/* One test for each instruction set, with the set in its name. It is skipped if the processor lacks the set
 * or MIXTAPE_MAX_ISA forbids it, because the dispatch would then run another kernel under that name. Include
 * <cmocka.h> first. */
#ifndef TESTS_BACKEND_INSTRUCTION_SETS_H
#define TESTS_BACKEND_INSTRUCTION_SETS_H

#include "support/skip.h"
#include "base/processor.h"

typedef struct instruction_set {
  const char *name;
  uint32_t features;
} instruction_set;

static const instruction_set instruction_sets[] = {
    {"generic", 0},
    {"avx2", MIX_CPU_AVX2},
    {"avx512", MIX_CPU_AVX2 | MIX_CPU_AVX512},
    {"amx", MIX_CPU_AVX2 | MIX_CPU_AVX512 | MIX_CPU_AVX512_BF16 | MIX_CPU_AMX_BF16},
    {"avx512bf16", MIX_CPU_AVX2 | MIX_CPU_AVX512 | MIX_CPU_AVX512_BF16 | MIX_CPU_BF16_PAIRS},
    {"avxvnni", MIX_CPU_AVX2 | MIX_CPU_AVX_VNNI},
    {"avx512vnni", MIX_CPU_AVX2 | MIX_CPU_AVX512 | MIX_CPU_AVX512_VNNI},
};

static inline int use_instruction_set(void **state) {
  mix_cpu_override(((const instruction_set *)*state)->features);
  return 0;
}
static inline int restore_instruction_set(void **state) {
  (void)state;
  mix_cpu_override(UINT32_MAX);
  return 0;
}
/* Skips the test if the instruction set is missing. Returns the set in use. */
static inline const instruction_set *needed_instruction_set(void **state) {
  const instruction_set *set = *state;
  if (set->features != mix_cpu_features()) SKIP("this processor lacks the instruction set");
  return set;
}
#define NEED_INSTRUCTION_SET(state) ((void)needed_instruction_set(state))
#define ON_SET(test, name, index)                                                                            \
  { #test "_" name, test, use_instruction_set, restore_instruction_set, (void *)&instruction_sets[index] }
#define ON_EACH_SET(test) ON_SET(test, "generic", 0), ON_SET(test, "avx2", 1), ON_SET(test, "avx512", 2)
/* For products: only they have AMX kernels, and kernels for pairs of bfloat16. */
#define ON_EACH_SET_OF_PRODUCTS(test)                                                                        \
  ON_EACH_SET(test), ON_SET(test, "amx", 3), ON_SET(test, "avx512bf16", 4)
/* For products of int8. */
#define ON_EACH_SET_OF_INTEGERS(test)                                                                        \
  ON_SET(test, "generic", 0), ON_SET(test, "avx2", 1), ON_SET(test, "avxvnni", 5),                           \
      ON_SET(test, "avx512vnni", 6)

#endif
