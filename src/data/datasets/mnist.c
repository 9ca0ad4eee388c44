/* MNIST: finds or downloads mnist.npz or the four IDX files. */

#include "base/alloc.h"
#include "base/error.h"
#include "data/datasets/find_files.h"
#include "formats/file.h"
#include "formats/idx.h"
#include "data/datasets/images.h"
#include "formats/npz.h"
#include <stdio.h>

/* keras/src/datasets/mnist.py */
#define KERAS_URL "https://storage.googleapis.com/tensorflow/tf-keras-datasets/mnist.npz"
#define KERAS_SHA256 "731c5ac602752760c8e48fbffcf8c3b850d9dc2a2aedcf2cc48468fc17b673d1"
#define KERAS_LIMIT ((size_t)16 << 20) /* the file has 11,490,434 bytes */

#define ARRAY_COUNT 4 /* x_train, y_train, x_test, y_test: the order of struct mix_images */
static const char *const array_names[ARRAY_COUNT] = {"x_train", "y_train", "x_test", "y_test"};
/* LeCun's file names, and the variants with a dot that some archives use. */
static const char *const idx_names[2][ARRAY_COUNT] = {
    {"train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte",
     "t10k-labels-idx1-ubyte"},
    {"train-images.idx3-ubyte", "train-labels.idx1-ubyte", "t10k-images.idx3-ubyte",
     "t10k-labels.idx1-ubyte"},
};

/* The arrays of an archive as uint8 tensors. */
static bool load_npz(const char *path, mix_npz *npz, mix_tensor *arrays[ARRAY_COUNT]) {
  for (int i = 0; i < ARRAY_COUNT; i++) {
    if (!(arrays[i] = mix_npz_require(npz, array_names[i]))) return false;
    if (mix_tensor_dtype(arrays[i]) == MIX_UINT8) continue;
    return mix_fail_format("mnist_load: %s: %s has dtype %s; Keras's file has uint8", path, array_names[i],
                           mix_dtype_name(mix_tensor_dtype(arrays[i])));
  }
  return true;
}

/* The path of an IDX file in the folder, plain or gzipped, under either name; mix_free it. NULL if there is
 * none, or out of memory with the error recorded. */
static char *find_idx(const char *folder, int array) {
  for (int style = 0; style < 2; style++)
    for (int gzipped = 0; gzipped < 2; gzipped++) {
      char name[64];
      snprintf(name, sizeof name, "%s%s", idx_names[style][array], gzipped ? ".gz" : "");
      char *path = mix_path_join(folder, name);
      if (!path || mix_file_exists(path)) return path;
      mix_free(path);
    }
  return NULL;
}

static bool load_idx(const char *folder, char *const paths[ARRAY_COUNT], mix_tensor *arrays[ARRAY_COUNT]) {
  for (int i = 0; i < ARRAY_COUNT; i++) {
    if (!paths[i])
      return mix_fail_io("mnist_load: %s holds some of the four IDX files but not %s (.gz or plain)", folder,
                         idx_names[0][i]);
    if (!(arrays[i] = mix_idx_load(paths[i]))) return false;
  }
  return true;
}

/* Searches one folder. True if data was found; `images` or the error then holds the result. */
static bool search_folder(const char *folder, mix_images *images, mix_tensor *arrays[ARRAY_COUNT]) {
  char *npz_path = mix_path_join(folder, "mnist.npz");
  if (!npz_path) return true;
  bool found = mix_file_exists(npz_path);
  if (found) {
    mix_npz *npz = mix_npz_open(npz_path);
    if (npz && load_npz(npz_path, npz, arrays)) images->source = mix_images_source("MNIST from %s", npz_path);
  }
  mix_free(npz_path);
  if (found) return true;
  char *paths[ARRAY_COUNT];
  for (int i = 0; i < ARRAY_COUNT; i++) found |= (paths[i] = find_idx(folder, i)) != NULL;
  if (found && !mix_failed() && load_idx(folder, paths, arrays))
    images->source = mix_images_source("MNIST from the IDX files in %s", folder);
  for (int i = 0; i < ARRAY_COUNT; i++) mix_free(paths[i]);
  return found || mix_failed();
}

/* What a search fills. */
typedef struct found_files {
  mix_images *images;
  mix_tensor *arrays[ARRAY_COUNT];
} found_files;

static bool search(const char *folder, void *context) {
  found_files *found = context;
  return search_folder(folder, found->images, found->arrays);
}

static void take(const void *data, size_t size, void *context) {
  found_files *found = context;
  mix_scope *scope = mix_scope_begin(); /* the archive must be released before `data` */
  mix_npz *npz = mix_npz_open_memory(KERAS_URL, data, size);
  if (npz && load_npz(KERAS_URL, npz, found->arrays))
    found->images->source = mix_images_source("MNIST downloaded from %s", KERAS_URL);
  for (int i = 0; i < ARRAY_COUNT; i++) mix_scope_leave(found->arrays[i]);
  mix_scope_end(scope);
}

static const mix_data_files files = {
    .call = "mnist_load",
    .folder = "mnist",
    .missing = "neither mnist.npz nor the IDX files are",
    .missing_there = "neither mnist.npz nor the four IDX files (plain or .gz) are",
    .remedy = "Put mnist.npz (" KERAS_URL
              ") or the four IDX files into a folder and set MIXTAPE_DATA_DIR to it, or "
              "use the built-in data set (mix_digits_load, --data digits)",
    .kept_as = "mnist.npz",
    .request = {.url = KERAS_URL, .sha256 = KERAS_SHA256, .limit = KERAS_LIMIT},
    .search = search,
    .take = take};

mix_mnist mix_mnist_load_with(const mix_mnist_options *given) {
  mix_mnist images = {0};
  mix_mnist_options options;
  if (!mix_options_copy(&options, sizeof options, given, "mnist_load")) return images;
  mix_scope *scope = mix_scope_begin();
  if (!scope) return images;
  found_files found = {.images = &images};
  if (mix_data_files_find(&files, options.directory, options.optional, &found) &&
      mix_images_check(images.source, found.arrays))
    mix_images_finish(&images, found.arrays, options.bytes);
  mix_images_leave(&images);
  mix_scope_end(scope);
  return images;
}
