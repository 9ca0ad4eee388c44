/* SHA-256 as FIPS 180-4 defines it. */
#include "base/sha256.h"

#include "base/sha256_inside.h"
#include <string.h>

static void write_word(unsigned char *bytes, uint32_t word) {
  for (int i = 0; i < 4; i++) bytes[i] = (unsigned char)(word >> (24 - 8 * i));
}

void mix_sha256_begin(mix_sha256 *hash) {
  *hash = (mix_sha256){.state = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c,
                                 0x1f83d9ab, 0x5be0cd19}};
}

void mix_sha256_add(mix_sha256 *hash, const void *data, size_t size) {
  const unsigned char *bytes = data;
  const size_t held = hash->size % MIX_SHA256_BLOCK;
  if (!size) return;
  hash->size += size;
  if (held) {
    const size_t room = MIX_SHA256_BLOCK - held, taken = size < room ? size : room;
    memcpy(hash->block + held, bytes, taken);
    if (taken < room) return;
    mix_sha256_add_blocks(hash->state, hash->block, 1);
    bytes += taken, size -= taken;
  }
  const size_t left = size % MIX_SHA256_BLOCK;
  if (size > left) mix_sha256_add_blocks(hash->state, bytes, size / MIX_SHA256_BLOCK);
  if (left) memcpy(hash->block, bytes + size - left, left);
}

void mix_sha256_end(mix_sha256 *hash, unsigned char digest[MIX_SHA256_BYTES]) {
  static const unsigned char padding[MIX_SHA256_BLOCK] = {0x80};
  const uint64_t bits = 8 * hash->size;
  const size_t held = hash->size % MIX_SHA256_BLOCK;
  unsigned char length[8];
  write_word(length, (uint32_t)(bits >> 32));
  write_word(length + 4, (uint32_t)bits);
  mix_sha256_add(hash, padding, (held < 56 ? 56 : 120) - held);
  mix_sha256_add(hash, length, sizeof length);
  for (int i = 0; i < 8; i++) write_word(digest + 4 * i, hash->state[i]);
}

void mix_sha256_of(const void *data, size_t size, unsigned char digest[MIX_SHA256_BYTES]) {
  mix_sha256 hash;
  mix_sha256_begin(&hash);
  mix_sha256_add(&hash, data, size);
  mix_sha256_end(&hash, digest);
}

void mix_sha256_text(const unsigned char digest[MIX_SHA256_BYTES], char text[MIX_SHA256_DIGITS + 1]) {
  static const char digits[] = "0123456789abcdef";
  for (int i = 0; i < MIX_SHA256_DIGITS; i++) text[i] = digits[digest[i / 2] >> (i % 2 ? 0 : 4) & 15];
  text[MIX_SHA256_DIGITS] = 0;
}
