/* A checkpoint with a corrected checksum, so that a fuzzer reaches what comes behind it. */
#ifndef TESTS_FUZZ_SEALED_CHECKPOINT_H
#define TESTS_FUZZ_SEALED_CHECKPOINT_H

#include "base/alloc.h"
#include "base/sha256.h"
#include "formats/archive.h"
#include <string.h>

/* A copy whose last bytes are the seal of the others; mix_free it. NULL: too short. */
static inline uint8_t *sealed_checkpoint(const uint8_t *data, size_t size) {
  uint8_t digest[MIX_SHA256_BYTES], *sealed = size >= MIX_ARCHIVE_SEAL_SIZE ? mix_alloc(size) : NULL;
  char digits[MIX_ARCHIVE_DIGITS + 1];
  if (!sealed) return NULL;
  memcpy(sealed, data, size);
  memcpy(sealed + size - MIX_ARCHIVE_SEAL_SIZE, MIX_ARCHIVE_SEAL, MIX_ARCHIVE_SEAL_SIZE - MIX_ARCHIVE_DIGITS);
  mix_sha256_of(sealed, size - MIX_ARCHIVE_DIGITS, digest);
  mix_sha256_text(digest, digits);
  memcpy(sealed + size - MIX_ARCHIVE_DIGITS, digits, MIX_ARCHIVE_DIGITS);
  return sealed;
}

#endif
