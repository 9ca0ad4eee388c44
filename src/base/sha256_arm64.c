/* SHA-256 on arm64: portable C, of which an emulator can say that it is right but not what it gains. */
#include "base/sha256_inside.h"

void mix_sha256_add_blocks(uint32_t state[8], const unsigned char *blocks, size_t count) {
  mix_sha256_add_blocks_portable(state, blocks, count);
}
