/* What SHA-256's files share. */
#pragma once

#include <stddef.h>
#include <stdint.h>

extern const uint32_t mix_sha256_k[64];
/* Adds `count` blocks of 64 bytes to the state, by the fastest instructions that this processor has. */
void mix_sha256_add_blocks(uint32_t state[8], const unsigned char *blocks, size_t count);
/* sha256_portable.c */
void mix_sha256_add_blocks_portable(uint32_t state[8], const unsigned char *blocks, size_t count);
