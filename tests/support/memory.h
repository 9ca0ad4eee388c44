/* The bytes of a memory, for tests that look at them. */
#ifndef MIX_TESTS_SUPPORT_MEMORY_H
#define MIX_TESTS_SUPPORT_MEMORY_H

#include "tensor/memory.h"
#include <stdlib.h>

/* The bytes themselves if they are the host's, else a copy, which sixteen later calls leave alone. */
static inline void *bytes_of_memory(mix_memory *memory) {
  static void *copies[16];
  static int calls;
  if (mix_memory_device_of(memory) == &mix_host_memory) {
    void *bytes = mix_memory_map(memory, MIX_MAP_WRITE);
    mix_memory_unmap(memory);
    return bytes;
  }
  void **copy = &copies[calls++ % 16];
  free(*copy);
  *copy = malloc(mix_memory_bytes(memory) + 1);
  return *copy && mix_memory_copy_out(memory, 0, *copy, mix_memory_bytes(memory)) ? *copy : NULL;
}

#endif
