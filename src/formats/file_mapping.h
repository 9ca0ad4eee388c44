/* A file as memory whose pages the system reads when they are used, and takes back where memory is short. */
#pragma once

#include "tensor/memory.h"

/* A whole file in memory: mapped, or read where it cannot be mapped or `copies`. NULL with the error
 * recorded. */
mix_memory *mix_file_memory(const char *path, bool copies, bool *mapped);
/* The whole file, readable for a page beyond its end. Whoever shortens the file, or writes into it, changes
 * what is read or ends the process (SIGBUS); replacing the file by another of its name does neither. NULL
 * without an error: it cannot be mapped, and is to be read; with one: out of memory. */
mix_memory *mix_file_map(const char *path);
