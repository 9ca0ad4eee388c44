/* libFuzzer target: any bytes as a .npy file. */
#include "formats/npy.h"
#include <mixtape/object.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  MIX_SCOPE { mix_npy_read_memory("input", data, size); }
  mix_error_clear();
  return 0;
}
