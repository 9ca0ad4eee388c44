/* The bytes of a memory, for tests that look at them. */
#ifndef MIX_TESTS_SUPPORT_MEMORY_H
#define MIX_TESTS_SUPPORT_MEMORY_H

#include "tensor/memory.h"

/* Of the host: stays valid when unmapped. */
static inline void *bytes_of_memory(mix_memory *memory) {
  void *bytes = mix_memory_map(memory, MIX_MAP_WRITE);
  if (bytes) mix_memory_unmap(memory);
  return bytes;
}

#endif
