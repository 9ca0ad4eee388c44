/* libFuzzer target: any bytes as a file of Keras, an archive or HDF5. A whole model is loaded; weights alone
 * go into a small model. */
#include "base/alloc.h"
#include "nn/layer/layer.h"
#include "saving/read_weights.h"
#include <mixtape/saving.h>

/* Sizes may ask for any memory: more than a small machine has is an error, out of memory. */
enum { MEMORY = 1 << 24 };

static mix_model *small_model(void) {
  mix_zero_weights_set(true); /* initializers take most of the time */
  mix_tensor *x = mix_input(.shape = MIX_SHAPE(4));
  mix_tensor *y = mix_call(mix_dense(.units = 2), mix_call(mix_dense(.units = 3), x));
  return mix_model_new(x, y);
}

static void load(mix_keras_file *file, const char *policy) {
  const mix_load_options options = {.size = sizeof options, .path = file->name, .policy = policy};
  mix_model_of_file(file, &options);
}

static void load_weights(mix_keras_file *file) {
  mix_weights_reader reader = {.file = file, .model = small_model(), .call = "load_weights"};
  mix_read_weights(&reader);
  reader = (mix_weights_reader){
      .file = file, .model = reader.model, .call = "load_weights", .by_name = true, .skip_mismatch = true};
  mix_error_clear();
  mix_read_weights(&reader);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  mix_keras_file file;
  mix_limit_allocations(MEMORY);
  MIX_SCOPE {
    if (mix_keras_file_open_memory(&file, "input", data, size, true)) {
      load(&file, size % 2 ? "mixed_float16" : NULL);
      mix_keras_file_close(&file);
    }
    mix_error_clear();
    if (mix_keras_file_open_memory(&file, "input", data, size, false)) {
      load_weights(&file);
      mix_keras_file_close(&file);
    }
  }
  mix_error_clear();
  return 0;
}
