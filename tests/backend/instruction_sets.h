/* One test for each instruction set, with the set in its name. It is skipped if the processor lacks the set
 * or MIXTAPE_MAX_ISA forbids it, because the dispatch would then run another kernel under that name. Include
 * <cmocka.h> first. */
#ifndef TESTS_BACKEND_INSTRUCTION_SETS_H
#define TESTS_BACKEND_INSTRUCTION_SETS_H

#include "support/skip.h"
#include "backend/cpu/isa.h"
#include "base/processor_found.h"

#include <string.h>

typedef struct instruction_set {
  const char *name;
  uint32_t features;
} instruction_set;

#define SET_NUMBER(set, ...) SET_##set,
#define SET_ROW(set, features, ...) {#set, features},
enum { MIX_VECTOR_SETS(SET_NUMBER) VECTOR_SETS, BEST_SET = 0 };
enum { AFTER_VECTOR_SETS = VECTOR_SETS - 1, MIX_PRODUCT_SETS(SET_NUMBER) MIX_DOT_SETS(SET_NUMBER) ALL_SETS };
static const instruction_set instruction_sets[] = {MIX_VECTOR_SETS(SET_ROW) MIX_PRODUCT_SETS(SET_ROW)
                                                       MIX_DOT_SETS(SET_ROW)};

/* With those that MIXTAPE_MAX_ISA by the name of a vector set leaves: AVX-512's kernels run beside AVX2's. */
static inline uint32_t features_with(const instruction_set *set) {
  if (set >= instruction_sets + VECTOR_SETS) return set->features;
  for (const mix_isa_cap *cap = mix_isa_caps; cap->name; cap++)
    if (!strcmp(cap->name, set->name)) return cap->allowed;
  return set->features;
}

static inline int use_instruction_set(void **state) {
  mix_cpu_override(features_with(*state));
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
  if (features_with(set) != mix_cpu_features()) SKIP("this processor lacks the instruction set");
  return set;
}
#define NEED_INSTRUCTION_SET(state) ((void)needed_instruction_set(state))
#define ON_SET(set, test)                                                                                    \
  { #test "_" #set, test, use_instruction_set, restore_instruction_set, (void *)&instruction_sets[SET_##set] }
#define AND_ON_SIMD_SET(set, features, vectors, test) , ON_SET(set, test)
#define AND_ON_PRODUCT_SET(set, features, test) , ON_SET(set, test)
#define AND_ON_EACH_SIMD_SET(test) MIX_SIMD_SETS(AND_ON_SIMD_SET, test)
#define ON_EACH_SET(test) ON_SET(generic, test) AND_ON_EACH_SIMD_SET(test)
/* For products: only they have kernels for tiles and for pairs of bfloat16. */
#define ON_EACH_SET_OF_PRODUCTS(test) ON_EACH_SET(test) MIX_PRODUCT_SETS(AND_ON_PRODUCT_SET, test)
/* For products of int8. */
#define ON_EACH_SET_OF_INTEGERS(test) ON_EACH_SET_OF_PRODUCTS(test) MIX_DOT_SETS(AND_ON_SIMD_SET, test)

#endif
