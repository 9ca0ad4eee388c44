/* Trains on the built-in digits under mixed_float16, saves, loads, and prints a digest of the weights and
 * what the process took: programs of each C library print the same digest. */
#include <mixtape/mixtape.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static uint64_t add_bytes(uint64_t digest, const void *data, size_t size) { /* FNV-1a */
  const unsigned char *bytes = data;
  for (size_t i = 0; i < size; i++) digest = (digest ^ bytes[i]) * UINT64_C(1099511628211);
  return digest;
}

static uint64_t digest_of(mix_model *model) {
  static float values[784 * 64];
  uint64_t digest = UINT64_C(14695981039346656037);
  mix_list *weights = mix_model_weights(model);
  for (int i = 0; i < mix_list_count(weights); i++) {
    mix_tensor *value = mix_variable_value(mix_list_get(weights, i));
    const int64_t count = mix_shape_size(mix_tensor_shape(value));
    if (mix_tensor_read(value, MIX_FLOAT32, values, count)) break;
    digest = add_bytes(digest, values, sizeof *values * (size_t)count);
  }
  return digest;
}

static void print_memory(void) {
  char line[256];
  FILE *status = fopen("/proc/self/status", "r");
  while (status && fgets(line, sizeof line, status))
    if (!strncmp(line, "VmHWM:", 6)) fputs(line, stdout);
  if (status) fclose(status);
}

int main(int argc, char **argv) {
  const char *path = argc > 1 ? argv[1] : "digits.keras";
  mix_scope *scope = mix_scope_begin();
  mix_set_seed(1);
  mix_set_threads(1);
  mix_set_global_policy("mixed_float16");
  mix_digits digits = mix_digits_load(.train = 2000, .test = 500);
  mix_model *model =
      mix_sequential(mix_list_of(mix_dense(64, "relu"), mix_dense(10, "softmax", .dtype = "float32")));
  mix_model_compile(model, .loss = "sparse_categorical_crossentropy", .optimizer = mix_adam(0.002));
  mix_model_fit(model, digits.x_train, digits.y_train, .epochs = 3, .batch_size = 64, .verbose = MIX_SILENT);
  mix_model_save(model, path);
  mix_model *loaded = mix_model_load(path);
  if (!mix_error()) printf("digest %016llx\n", (unsigned long long)digest_of(loaded));
  print_memory();
  const int code = MIX_EXIT_CODE();
  mix_scope_end(scope);
  return code;
}
