/* Shared by the tests that read the files that Keras 3 and tf_keras wrote (files/record.py). */
#ifndef TESTS_SAVING_RECORDED_FILES_H
#define TESTS_SAVING_RECORDED_FILES_H

#include "model/support.h"

#include "base/alloc.h"
#include "formats/npz.h"
#include "formats/zip_members.h"
#include "support/folder.h"

enum { MAX_ARRAYS = 64 };

/* ---- the class that the files have ---- */

typedef struct twice {
  mix_layer *first, *second;
  mix_variable *own;
} twice;

static inline mix_status twice_build(mix_layer *layer, int count, const mix_shape *shapes) {
  twice *t = mix_layer_data(layer);
  (void)count, (void)shapes;
  t->second = mix_layer_add_layer(layer, mix_dense(.units = 2, .name = "second"));
  t->first = mix_layer_add_layer(layer, mix_dense(.units = 3, .name = "first"));
  t->own = mix_layer_add_weight(layer, "own", .shape = MIX_SHAPE(2), .initializer = "ones");
  return mix_error();
}

static inline mix_list *twice_call(mix_layer *layer, const mix_call_args *args) {
  twice *t = mix_layer_data(layer);
  mix_tensor *y = mix_call(t->second, mix_call(t->first, mix_call_input(args, 0)));
  return mix_list_of(mix_multiply(y, mix_variable_value(t->own)));
}

static const mix_layer_class twice_class = {.size = sizeof(mix_layer_class),
                                            .name = "Twice",
                                            .instance_size = sizeof(twice),
                                            .build = twice_build,
                                            .call = twice_call};
static const mix_layer_class *const classes[] = {&twice_class, NULL};

/* ---- the files ---- */

static inline mix_zip *files(const char *generation) {
  char path[1024];
  snprintf(path, sizeof path, "%s/saving/files/%s.zip", getenv("MIXTAPE_TESTS_DIR"), generation);
  mix_zip *zip = mix_zip_open(path);
  assert_no_error();
  return zip;
}

/* The member as a file in the test's folder; NULL: there is none. */
static inline const char *extract(const char *generation, const char *name, const char *end) {
  char member[64];
  size_t size;
  mix_zip *zip = files(generation);
  snprintf(member, sizeof member, "%s%s", name, end);
  if (!mix_zip_has(zip, member)) return NULL;
  void *bytes = mix_zip_read(zip, member, SIZE_MAX - 1, &size);
  FILE *file = fopen(in_folder(member), "wb");
  assert_non_null(bytes);
  assert_non_null(file);
  assert_int_equal(fwrite(bytes, 1, size, file), size);
  fclose(file);
  mix_free(bytes);
  return in_folder(member);
}

static inline mix_list *arrays(mix_npz *npz, const char *stem) {
  char name[80];
  mix_list *list = mix_list_new(0, NULL);
  for (int i = 0; i < MAX_ARRAYS; i++) {
    snprintf(name, sizeof name, "%s_%d", stem, i);
    mix_tensor *next = mix_npz_get(npz, name);
    if (!next) break;
    mix_list_append(list, next);
  }
  return list;
}

#endif
