/* libFuzzer target: any bytes as the index of sharded weights, beside three good shards. Weights are read
 * into the model that wrote them, and by name into a smaller one. */
#include "base/alloc.h"
#include "base/error.h"
#include "nn/layer/layer.h"
#include "saving/read_weights.h"
#include <mixtape/saving.h>

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* More than a small machine has is an error, out of memory. */
enum { MEMORY = 1 << 24 };

static char shards_folder[64];

static const char *path_of_file(const char *name) {
  static char path[128];
  snprintf(path, sizeof path, "%s/%s", shards_folder, name);
  return path;
}

static void remove_folder(void) {
  for (int i = 0; i < 3; i++) {
    char name[32];
    snprintf(name, sizeof name, "w_0000%d.weights.h5", i);
    unlink(path_of_file(name));
  }
  unlink(path_of_file("w.weights.json"));
  rmdir(shards_folder);
}

static mix_model *model_of(int layers) {
  mix_set_semantics("keras3");
  mix_zero_weights_set(true); /* initializers take most of the time */
  mix_tensor *x = mix_input(.shape = MIX_SHAPE(4)), *y = x;
  static const char *const names[] = {"first", "second", "third"};
  for (int i = 0; i < layers; i++) y = mix_call(mix_dense(.units = 3, .name = names[i]), y);
  return mix_model_new(x, y);
}

/* The shards of the model, and its index. False: they could not be written. */
static bool make_shards(void) {
  snprintf(shards_folder, sizeof shards_folder, "/tmp/mixtape-fuzz-XXXXXX");
  if (!mkdtemp(shards_folder)) return false;
  atexit(remove_folder);
  MIX_SCOPE {
    const mix_save_weights_options options = {
        .size = sizeof options, .path = path_of_file("w.weights.json"), .max_shard_size = 60.0 / (1 << 30)};
    mix_model_save_weights_with(model_of(3), &options);
  }
  return !mix_failed();
}

static bool put_index(const uint8_t *data, size_t size) {
  FILE *file = fopen(path_of_file("w.weights.json"), "wb");
  const bool good = file && fwrite(data, 1, size, file) == size;
  return file && !fclose(file) && good;
}

static void load_weights(int layers, bool by_name) {
  mix_keras_file file;
  char path[128];
  snprintf(path, sizeof path, "%s", path_of_file("w.weights.json"));
  MIX_SCOPE {
    if (mix_keras_file_open(&file, path, false)) {
      mix_weights_reader reader = {.file = &file,
                                   .model = model_of(layers),
                                   .call = "load_weights",
                                   .by_name = by_name,
                                   .skip_mismatch = by_name};
      mix_read_weights(&reader);
      mix_keras_file_close(&file);
    }
  }
  mix_error_clear();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (!*shards_folder && !make_shards()) abort();
  mix_limit_allocations(MEMORY);
  if (!put_index(data, size)) abort();
  load_weights(3, false);
  load_weights(2, true);
  return 0;
}
