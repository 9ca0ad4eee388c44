/* What processor_ARCHITECTURE.c finds out for processor.c. CMake builds the file of its architecture. */
#pragma once

#include <stdint.h>

typedef struct mix_processor {
  uint32_t features;
  char name[49];
  int64_t caches[4]; /* bytes of level 1 (data), 2, 3 at [1], [2], [3] */
} mix_processor;

/* Sets what it finds, and leaves the rest. */
void mix_processor_find(mix_processor *found);

/* Values of MIXTAPE_MAX_ISA, of which each includes the previous ones; ended by a NULL name. */
typedef struct mix_isa_cap {
  const char *name;
  uint32_t allowed;
} mix_isa_cap;
extern const mix_isa_cap mix_isa_caps[];
