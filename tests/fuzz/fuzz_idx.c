/* libFuzzer target: any bytes as an IDX file, gzipped or plain. */
#include "formats/idx.h"
#include <mixtape/object.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  MIX_SCOPE { mix_idx_read_memory("input", data, size); }
  mix_error_clear();
  return 0;
}
