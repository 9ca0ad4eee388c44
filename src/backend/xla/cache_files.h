/* The folder of compiled programs: MIXTAPE_XLA_CACHE, else $XDG_CACHE_HOME/mixtape or ~/.cache/mixtape. */
#pragma once

#include "base/sha256.h"
#include <limits.h>
#include <stdbool.h>

enum { MIX_XLA_DRIVER = 64 };

typedef struct mix_xla_cache {
  char path[PATH_MAX + 16];
  bool named; /* by MIXTAPE_XLA_CACHE */
  int folder; /* -1: not open */
} mix_xla_cache;

/* What all files may take; the ones used longest ago go first. Tests set less. */
extern uint64_t mix_xla_cache_bytes;

/* False without an error: it is off (path ""), or is not there and not to be made. False with the error
 * recorded: others could write to it, or it cannot be made. */
bool mix_xla_cache_open(mix_xla_cache *cache, bool make);
void mix_xla_cache_close(mix_xla_cache *cache);
/* The program with this key (mix_free); NULL: there is none, or it is damaged or of another driver. */
char *mix_xla_cache_read(const mix_xla_cache *cache, const unsigned char key[MIX_SHA256_BYTES],
                         const char *driver, size_t *size);
/* False: it cannot be written, and the first time a warning says why, or it is larger than all files may
 * be. */
bool mix_xla_cache_write(const mix_xla_cache *cache, const unsigned char key[MIX_SHA256_BYTES],
                         const char *driver, const char *program, size_t size);
