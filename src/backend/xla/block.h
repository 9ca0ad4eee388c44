/* Blocks of memory of the device "xla": their bytes are a buffer of the plug-in, or the host's until a run
 * needs them. While the host has a block mapped, they are in both places. Nothing here waits for a run. */
#pragma once

#include "backend/xla/xla.h"

#include <pthread.h>

typedef struct mix_xla_block {
  pthread_mutex_t lock;
  size_t bytes;
  pjrt_buffer *buffer; /* of `type` */
  mix_type type;
  char *host;
  int maps;
  int kept; /* references of kept values: with the lock of the runs */
} mix_xla_block;

/* The block that a handle names, and where in it the bytes of the handle begin. */
mix_xla_block *mix_xla_block_of(mix_memory *memory);
size_t mix_xla_offset_of(mix_memory *memory);

/* ---- the caller holds the lock ---- */

void mix_xla_drop_buffer(mix_xla_block *b);
void mix_xla_drop_host(mix_xla_block *b);
/* The host's bytes, with the value of the buffer if there is one. False with the error recorded. */
bool mix_xla_make_host(mix_xla_block *b);
/* A buffer of this type. NULL with the error recorded. */
pjrt_buffer *mix_xla_make_buffer(mix_xla_block *b, mix_type type);
