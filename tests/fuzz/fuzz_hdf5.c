/* libFuzzer target: any bytes as an HDF5 file; every group, attribute and data set is read. */
#include "formats/hdf5.h"
#include <mixtape/object.h>
#include <stdio.h>
#include <string.h>

typedef struct walk {
  mix_hdf5 *file;
  const char *path;
  int depth, visits;
} walk;

enum { MAX_DEPTH = 8, MAX_VISITS = 60 };

static void read_attributes(mix_hdf5 *file, const char *path) {
  static const char *const names[] = {"layer_names", "weight_names0", "model_config", "dtype", "name"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    mix_hdf5_value value;
    if (mix_hdf5_attribute(file, path, names[i], &value)) mix_hdf5_value_free(&value);
    mix_error_clear();
  }
}

/* What shares the bytes of the file is copied from, so that the sanitizer sees a read past the end. */
static void read_data(mix_hdf5 *file, const char *path) {
  mix_dtype dtype;
  mix_shape shape;
  mix_hdf5_value value;
  const bool fits = mix_hdf5_describe(file, path, &dtype, &shape) && mix_shape_size(shape) < 1 << 16;
  mix_error_clear();
  if (fits)
    MIX_SCOPE {
      mix_tensor *borrowed = mix_hdf5_borrow(file, path);
      const void *data = borrowed ? mix_tensor_data(borrowed) : NULL;
      static unsigned char copy[1 << 19];
      if (data) memcpy(copy, data, (size_t)mix_shape_size(shape) * mix_dtype_size(dtype));
      mix_error_clear();
      mix_hdf5_tensor(file, path);
      mix_error_clear();
      if (mix_hdf5_dataset(file, path, &value)) mix_hdf5_value_free(&value);
    }
  mix_error_clear();
}

static bool visit(void *context, const char *name, bool is_group) {
  walk *w = context;
  char path[512];
  snprintf(path, sizeof path, "%s%s%s", w->path, *w->path ? "/" : "", name);
  mix_error_clear();
  read_attributes(w->file, path);
  if (!is_group) read_data(w->file, path);
  walk inner = {w->file, path, w->depth + 1, w->visits};
  if (is_group && w->depth < MAX_DEPTH) mix_hdf5_list(w->file, path, visit, &inner);
  mix_error_clear();
  w->visits = inner.visits + 1;
  return w->visits < MAX_VISITS;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  mix_hdf5 file;
  MIX_SCOPE {
    walk w = {&file, "", 0, 0};
    if (mix_hdf5_open(&file, "input", data, size)) {
      read_attributes(&file, "");
      mix_hdf5_list(&file, "", visit, &w);
    }
    mix_hdf5_close(&file);
  }
  mix_error_clear();
  return 0;
}
