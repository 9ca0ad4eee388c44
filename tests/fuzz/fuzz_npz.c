/* libFuzzer target: any bytes as a .npz archive; every member is read. */
#include "formats/npz.h"
#include <mixtape/object.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  MIX_SCOPE {
    mix_npz *npz = mix_npz_open_memory("input", data, size);
    for (int i = 0; npz && i < mix_npz_count(npz); i++) {
      mix_npz_get(npz, mix_npz_name(npz, i));
      mix_error_clear();
    }
  }
  mix_error_clear();
  return 0;
}
