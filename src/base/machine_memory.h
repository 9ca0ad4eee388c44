/* The memory that this process may use. */
#pragma once

#include <stdint.h>

typedef struct mix_machine_memory {
  uint64_t physical; /* bytes of the machine */
  uint64_t limit;    /* the least that the control group of this process or a group around it allows, by
                        memory.max (version 2) or memory.limit_in_bytes (version 1) */
} mix_machine_memory;
/* 0 stands for no limit, and for what cannot be read. `root` stands before all paths: "", or a test's
 * folder. */
mix_machine_memory mix_find_machine_memory(const char *root);
