/* CIFAR-10: finds or downloads the six binary files. */
#include <mixtape/cifar10.h>

#include "base/alloc.h"
#include "base/error.h"
#include "data/datasets/find_files.h"
#include "data/datasets/images.h"
#include "formats/tar.h"
#include "graph/unfilled_tensor.h"
#include "ops/with_number.h"
#include <string.h>

#define URL "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz"
#define SHA256 "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd"
#define LIMIT ((size_t)192 << 20) /* the archive has 170,052,171 bytes */
#define ARCHIVE "cifar-10-binary.tar.gz"
#define FOLDER "cifar-10-batches-bin"

/* A record: the label, then the planes red, green and blue. */
enum { SIDE = 32, PIXELS = SIDE * SIDE, COLOURS = 3, RECORD = 1 + COLOURS * PIXELS, CLASSES = 10, FILES = 6 };
static const char *const names[FILES] = {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin",
                                         "data_batch_4.bin", "data_batch_5.bin", "test_batch.bin"};
enum { TEST_FILE = 5 };

typedef struct found_files {
  mix_images *images;
  mix_tensor *arrays[4]; /* x_train, y_train, x_test, y_test */
} found_files;

typedef struct contents {
  unsigned char *data[FILES];
  size_t size[FILES];
} contents;

static void release(contents *c) {
  for (int i = 0; i < FILES; i++) mix_free(c->data[i]);
}

/* ---- records to tensors ---- */

static bool check(const char *where, const contents *c) {
  for (int i = 0; i < FILES; i++) {
    if (!c->data[i])
      return mix_fail_io("cifar10_load: %s holds some of the six files but not %s", where, names[i]);
    if (!c->size[i] || c->size[i] % RECORD)
      return mix_fail_format("%s/%s: %zu bytes; expected a multiple of %d", where, names[i], c->size[i],
                             RECORD);
    for (size_t record = 0; record < c->size[i] / RECORD; record++)
      if (c->data[i][record * RECORD] >= CLASSES)
        return mix_fail_format("%s/%s: label %zu is %d; expected 0 to 9", where, names[i], record,
                               c->data[i][record * RECORD]);
  }
  return true;
}

/* The images and labels of files [first, last]. */
static bool unpack(const contents *c, int first, int last, mix_tensor **x, mix_tensor **y) {
  int64_t count = 0;
  for (int i = first; i <= last; i++) count += (int64_t)(c->size[i] / RECORD);
  void *pixels, *labels;
  *x = mix_tensor_unfilled(MIX_UINT8, MIX_SHAPE(count, SIDE, SIDE, COLOURS), &pixels);
  *y = *x ? mix_tensor_unfilled(MIX_UINT8, MIX_SHAPE(count, 1), &labels) : NULL;
  if (!*y) return false;
  unsigned char *to = pixels, *label = labels;
  for (int i = first; i <= last; i++)
    for (const unsigned char *from = c->data[i], *end = from + c->size[i]; from < end; from += RECORD) {
      *label++ = from[0];
      for (int p = 0; p < PIXELS; p++)
        for (int colour = 0; colour < COLOURS; colour++) *to++ = from[1 + colour * PIXELS + p];
    }
  return true;
}

static void unpack_all(const char *where, const contents *c, const char *how, found_files *found) {
  if (!mix_failed() && check(where, c) && unpack(c, 0, TEST_FILE - 1, &found->arrays[0], &found->arrays[1]) &&
      unpack(c, TEST_FILE, TEST_FILE, &found->arrays[2], &found->arrays[3]))
    found->images->source = mix_images_source("CIFAR-10 %s %s", how, where);
}

/* ---- where they are ---- */

/* The six files in a folder; true if there is at least one. */
static bool search_folder(const char *folder, found_files *found) {
  contents c = {{NULL}};
  bool any = false;
  for (int i = 0; i < FILES && !mix_failed(); i++) {
    char *path = mix_path_join(folder, names[i]);
    if (path && mix_file_exists(path)) {
      c.data[i] = mix_file_read(path, LIMIT, &c.size[i]);
      any = true;
    }
    mix_free(path);
  }
  if (any) unpack_all(folder, &c, "from", found);
  release(&c);
  return any || mix_failed();
}

static bool keep_member(void *context, const char *path, void *content, size_t size) {
  contents *c = context;
  const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
  for (int i = 0; i < FILES; i++)
    if (!strcmp(name, names[i]) && !c->data[i]) {
      c->data[i] = content;
      c->size[i] = size;
      return true;
    }
  mix_free(content);
  return true;
}

static void read_archive(const char *name, const void *data, size_t size, const char *how,
                         found_files *found) {
  contents c = {{NULL}};
  if (mix_tar_read(name, data, size, keep_member, &c)) unpack_all(name, &c, how, found);
  release(&c);
}

static bool search_archive(const char *folder, found_files *found) {
  char *path = mix_path_join(folder, ARCHIVE);
  const bool exists = path && mix_file_exists(path);
  size_t size;
  void *data = exists ? mix_file_read(path, LIMIT, &size) : NULL;
  if (data) read_archive(path, data, size, "from", found);
  mix_free(data);
  mix_free(path);
  return exists || mix_failed();
}

static bool search(const char *folder, void *context) {
  char *inner = mix_path_join(folder, FOLDER);
  const bool found = !inner || search_folder(inner, context) || search_folder(folder, context) ||
                     search_archive(folder, context);
  mix_free(inner);
  return found;
}

static void take(const void *data, size_t size, void *context) {
  found_files *found = context;
  read_archive(URL, data, size, "downloaded from", found);
}

static const mix_data_files files = {
    .call = "cifar10_load",
    .folder = "cifar10",
    .missing = "neither " FOLDER " nor " ARCHIVE " is",
    .missing_there = "neither the folder " FOLDER " nor its files nor " ARCHIVE " are",
    .remedy = "Put " ARCHIVE " (" URL ") or what it contains into a folder and set MIXTAPE_DATA_DIR to it",
    .kept_as = ARCHIVE,
    .request = {.url = URL, .sha256 = SHA256, .limit = LIMIT},
    .search = search,
    .take = take};

static mix_tensor *scaled(mix_tensor *bytes) {
  mix_tensor *x = bytes ? mix_cast(bytes, MIX_FLOAT32) : NULL;
  return x ? mix_over(x, 255) : NULL;
}
static mix_tensor *numbers(mix_tensor *labels) {
  return labels ? mix_cast(mix_squeeze(labels, MIX_AXES(1)), MIX_INT64) : NULL;
}

mix_cifar10 mix_cifar10_load_with(const mix_cifar10_options *given) {
  mix_cifar10 images = {0};
  mix_cifar10_options options;
  if (!mix_options_copy(&options, sizeof options, given, "cifar10_load")) return images;
  mix_scope *scope = mix_scope_begin();
  if (!scope) return images;
  found_files found = {.images = &images};
  if (mix_data_files_find(&files, options.directory, options.optional, &found)) {
    images.x_train = options.bytes ? found.arrays[0] : scaled(found.arrays[0]);
    images.y_train = options.bytes ? found.arrays[1] : numbers(found.arrays[1]);
    images.x_test = options.bytes ? found.arrays[2] : scaled(found.arrays[2]);
    images.y_test = options.bytes ? found.arrays[3] : numbers(found.arrays[3]);
    if (!mix_failed())
      mix_evaluate(4, (mix_tensor *[]){images.x_train, images.y_train, images.x_test, images.y_test});
  }
  mix_images_leave(&images);
  mix_scope_end(scope);
  return images;
}
