/* SHA-256 as FIPS 180-4 defines it; the names of words and sums are the standard's. */
#include "base/sha256.h"

#include "base/sha256_inside.h"

#include <string.h>

const uint32_t mix_sha256_k[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static uint32_t rotate(uint32_t x, int bits) { return x >> bits | x << (32 - bits); }

static uint32_t read_word(const unsigned char *bytes) {
  return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}

static void write_word(unsigned char *bytes, uint32_t word) {
  for (int i = 0; i < 4; i++) bytes[i] = (unsigned char)(word >> (24 - 8 * i));
}

static void expand_block(const unsigned char *block, uint32_t w[64]) {
  for (int t = 0; t < 16; t++) w[t] = read_word(block + 4 * t);
  for (int t = 16; t < 64; t++) {
    const uint32_t s0 = rotate(w[t - 15], 7) ^ rotate(w[t - 15], 18) ^ w[t - 15] >> 3;
    const uint32_t s1 = rotate(w[t - 2], 17) ^ rotate(w[t - 2], 19) ^ w[t - 2] >> 10;
    w[t] = s1 + w[t - 7] + s0 + w[t - 16];
  }
}

static void add_block(uint32_t state[8], const unsigned char *block) {
  uint32_t w[64], a = state[0], b = state[1], c = state[2], d = state[3];
  uint32_t e = state[4], f = state[5], g = state[6], h = state[7];
  expand_block(block, w);
  for (int t = 0; t < 64; t++) {
    const uint32_t s1 = rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25);
    const uint32_t s0 = rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22);
    const uint32_t t1 = h + s1 + ((e & f) ^ (~e & g)) + mix_sha256_k[t] + w[t];
    const uint32_t t2 = s0 + ((a & b) ^ (a & c) ^ (b & c));
    h = g, g = f, f = e, e = d + t1;
    d = c, c = b, b = a, a = t1 + t2;
  }
  const uint32_t added[8] = {a, b, c, d, e, f, g, h};
  for (int i = 0; i < 8; i++) state[i] += added[i];
}

void mix_sha256_add_blocks_portable(uint32_t state[8], const unsigned char *blocks, size_t count) {
  for (; count > 0; count--, blocks += MIX_SHA256_BLOCK) add_block(state, blocks);
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
