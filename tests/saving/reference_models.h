/* Shared by the tests of the recorded models of $MIXTAPE_REFERENCE_DIR/models and hub (their READMEs say how
 * they were made, and the bounds), through the library and through the program. */
#ifndef TESTS_SAVING_REFERENCE_MODELS_H
#define TESTS_SAVING_REFERENCE_MODELS_H

#include "model/support.h"

#include "base/alloc.h"
#include "base/json.h"
#include "formats/zip_members.h"
#include "nn/layers/operations/operation.h"
#include "support/skip.h"
#include <dirent.h>

enum { MAX_FILES = 1024, MAX_ARRAYS = 512 };
/* How many files have layers that are missing. 0: none may be refused. */
enum { MODELS_WITH_MISSING_LAYERS = 0 };

static const char *recordings = "models"; /* the folder */
static char *models[MAX_FILES];
static int model_count;

static inline const char *model_path(const char *name, const char *end) {
  static char path[1024];
  snprintf(path, sizeof path, "%s/%s/%s%s", getenv("MIXTAPE_REFERENCE_DIR"), recordings, name, end);
  return path;
}

static inline bool ends(const char *name, const char *end) {
  return strlen(name) > strlen(end) && !strcmp(name + strlen(name) - strlen(end), end);
}

static inline int by_text(const void *a, const void *b) {
  return strcmp(*(char *const *)a, *(char *const *)b);
}

static inline void find_models(void) {
  DIR *folder = opendir(model_path("", ""));
  for (const struct dirent *entry; folder && (entry = readdir(folder));)
    if (ends(entry->d_name, ".keras") && model_count < MAX_FILES)
      models[model_count++] = strndup(entry->d_name, strlen(entry->d_name) - 6);
  if (folder) closedir(folder);
  qsort(models, (size_t)model_count, sizeof *models, by_text);
}

/* MIXTAPE_REFERENCE_PART, K/N: every N-th model, from the K-th on. */
static inline bool is_in_part(int number) {
  const char *part = getenv("MIXTAPE_REFERENCE_PART");
  int k = 1, n = 1;
  if (part && *part && (sscanf(part, "%d/%d", &k, &n) != 2 || n < 1 || k < 1 || k > n)) {
    fprintf(stderr, "MIXTAPE_REFERENCE_PART is %s; expected K/N\n", part);
    exit(1);
  }
  return number % n == k - 1;
}

/* ---- bounds ---- */

/* Relative to the largest magnitude, a loss's times the number of the step; 0: not compared. */
typedef struct bounds {
  double outputs, loss, weights;
  int losses; /* how many */
} bounds;

static inline bool is_application(const char *name) { return name[3] >= 'A' && name[3] <= 'Z'; }
static inline bool is_one_of(const char *name, const char *a, const char *b) {
  return strstr(name, a) || strstr(name, b);
}

static inline bounds bounds_of(const char *name) {
  if (is_application(name)) return (bounds){5e-4, 2e-3, 0, 1};
  if (ends(name, "-mixed_float16"))
    return is_one_of(name, "resnet", "mobile") ? (bounds){1e-2, 2e-2, 0, MAX_ARRAYS}
                                               : (bounds){1e-2, 5e-3, 3e-2, MAX_ARRAYS};
  if (ends(name, "-mixed_bfloat16"))
    return (bounds){5e-2,
                    is_one_of(name, "resnet", "mobile") ? 1e-1
                    : strstr(name, "shared")            ? 6e-2
                                                        : 2e-2,
                    0, MAX_ARRAYS};
  return (bounds){1e-5, 1e-5, 5e-5, MAX_ARRAYS};
}

/* ---- arrays ---- */

/* STEM, or STEM_0, STEM_1, ...: one tensor or a list. */
static inline mix_list *model_arrays(mix_npz *npz, const char *stem) {
  char name[64];
  mix_list *list = mix_list_new(0, NULL);
  mix_tensor *one = mix_npz_get(npz, stem);
  if (one) mix_list_append(list, one);
  for (int i = 0; !one && i < MAX_ARRAYS; i++) {
    snprintf(name, sizeof name, "%s_%d", stem, i);
    mix_tensor *next = mix_npz_get(npz, name);
    if (!next) break;
    mix_list_append(list, next);
  }
  return list;
}

static inline double *read_all(mix_tensor *tensor, int64_t count) {
  double *values = malloc(sizeof *values * (size_t)(count + 1));
  assert_non_null(values);
  assert_int_equal(mix_tensor_read(tensor, MIX_FLOAT64, values, count), MIX_OK);
  return values;
}

static inline void assert_close(const char *model, const char *what, int index, mix_tensor *got,
                                mix_tensor *expected, double bound) {
  const int64_t count = mix_shape_size(mix_tensor_shape(expected));
  assert_true(got && mix_shape_equal(mix_tensor_shape(got), mix_tensor_shape(expected)));
  double *a = read_all(got, count), *b = read_all(expected, count), largest = 0, distance = 0;
  for (int64_t i = 0; i < count; i++) {
    largest = fmax(largest, fabs(b[i]));
    distance = fabs(a[i] - b[i]) <= distance ? distance : fabs(a[i] - b[i]);
  }
  if (!(distance <= bound * largest))
    fail_msg("%s: %s %d is off by %g of %g, which is more than %g", model, what, index, distance, largest,
             bound);
  free(a);
  free(b);
}

/* ---- layers that are missing ---- */

static inline bool is_built_in(const char *class_name) {
  static const char *const others[] = {"InputLayer", "Functional", "Model", "Sequential"};
  for (size_t i = 0; i < sizeof others / sizeof *others; i++)
    if (!strcmp(others[i], class_name)) return true;
  return mix_layer_kind_named(class_name) || mix_keras_operation_named(class_name);
}

/* The first class of a layer that is not built in; NULL: all are. */
static inline const char *missing_class(json_t *value) {
  const char *key, *found = NULL, *name = json_string_value(json_object_get(value, "class_name")),
                   *module = json_string_value(json_object_get(value, "module"));
  json_t *item, *inside = name ? json_object_get(value, "config") : value;
  size_t i;
  const bool layer =
      name && ((module && !strncmp(module, "keras.layers", 12)) || json_object_get(value, "inbound_nodes"));
  if (layer && !is_built_in(name)) return name;
  json_array_foreach(value, i, item) if (!found) found = missing_class(item);
  json_object_foreach(inside, key, item) if (!found) found = missing_class(item);
  return found;
}

/* Copies the class into `text`, whose size is 64. False: every class of the model is built in. */
static inline bool has_missing_layer(const char *model, char *text) {
  size_t size;
  bool missing = false;
  MIX_SCOPE {
    mix_zip *zip = mix_zip_open(model_path(model, ".keras"));
    char *config = zip ? mix_zip_read(zip, "config.json", SIZE_MAX - 1, &size) : NULL;
    json_t *object = config ? json_loads(config, 0, NULL) : NULL;
    assert_non_null(object);
    const char *found = missing_class(json_object_get(object, "config"));
    if ((missing = found != NULL)) snprintf(text, 64, "%s", found);
    json_decref(object);
    mix_free(config);
  }
  return missing;
}

#endif
