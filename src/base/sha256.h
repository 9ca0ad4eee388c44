/* SHA-256 (FIPS 180-4). */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { MIX_SHA256_BYTES = 32, MIX_SHA256_BLOCK = 64, MIX_SHA256_DIGITS = 2 * MIX_SHA256_BYTES };

typedef struct mix_sha256 {
  uint32_t state[8];
  uint64_t size; /* bytes so far */
  unsigned char block[MIX_SHA256_BLOCK];
} mix_sha256;

void mix_sha256_begin(mix_sha256 *hash);
void mix_sha256_add(mix_sha256 *hash, const void *data, size_t size);
void mix_sha256_end(mix_sha256 *hash, unsigned char digest[MIX_SHA256_BYTES]);
/* All three. */
void mix_sha256_of(const void *data, size_t size, unsigned char digest[MIX_SHA256_BYTES]);
/* The digest in lower case hexadecimal digits, ended by 0. */
void mix_sha256_text(const unsigned char digest[MIX_SHA256_BYTES], char text[MIX_SHA256_DIGITS + 1]);
