/* libFuzzer target: any bytes as a model of ONNX; the model is made, and not called. */
#include "onnx/import.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  MIX_SCOPE {
    mix_onnx_file file;
    if (mix_onnx_open_memory(&file, "input", data, size)) mix_import_file(&file, NULL);
  }
  mix_error_clear();
  return 0;
}
