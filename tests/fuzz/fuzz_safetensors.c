/* libFuzzer target: any bytes as safetensors; every tensor is read. */
#include "formats/safetensors.h"
#include <mixtape/object.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  MIX_SCOPE {
    mix_safetensors *file = mix_safetensors_open_memory("input", data, size);
    for (int i = 0; file && i < mix_safetensors_count(file); i++) {
      mix_stored_tensor_value(mix_safetensors_at(file, i));
      mix_error_clear();
    }
  }
  mix_error_clear();
  return 0;
}
