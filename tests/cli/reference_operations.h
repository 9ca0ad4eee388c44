/* Shared by the tests of the recorded operations of Keras through the program: $MIXTAPE_REFERENCE_DIR/ops, a
 * model for each class of keras.ops (its README says how they were made, and the bounds). */
#ifndef TESTS_CLI_REFERENCE_OPERATIONS_H
#define TESTS_CLI_REFERENCE_OPERATIONS_H

#include "cli/program.h"

#include "support/skip.h"
#include <dirent.h>

enum { MOST_MODELS = 1024, MOST_OUTPUTS = 16 };

/* What Mixtape refuses, each with the part of the message that says why. */
typedef struct refusal {
  const char *operation, *reason;
} refusal;
static const refusal refusals[] = {
    {"Nonzero", "depends on the values"},
    {"Polar", "complex numbers"},
};

/* Its first step moves weights by thousands, past many poles of the tangent: where they come to rest depends
 * on the last bit of the gradient, 1 + tan^2 here and 1 / cos^2 in TensorFlow. The predictions are compared.
 */
static const char chaotic[] = "Tan";

static char *models[MOST_MODELS];
static int model_count;

static inline const char *model_path(const char *name, const char *end) {
  static char paths[4][1024];
  static int next;
  char *path = paths[next++ % 4];
  snprintf(path, sizeof *paths, "%s/ops/%s%s", getenv("MIXTAPE_REFERENCE_DIR"), name, end);
  return path;
}

static inline int by_text(const void *a, const void *b) {
  return strcmp(*(char *const *)a, *(char *const *)b);
}

static inline void find_models(void) {
  DIR *folder = opendir(model_path("", ""));
  for (const struct dirent *entry; folder && (entry = readdir(folder));) {
    const size_t length = strlen(entry->d_name);
    if (length > 6 && !strcmp(entry->d_name + length - 6, ".keras") && model_count < MOST_MODELS)
      models[model_count++] = strndup(entry->d_name, length - 6);
  }
  if (folder) closedir(folder);
  qsort(models, (size_t)model_count, sizeof *models, by_text);
}

/* ---- bounds ---- */

typedef struct bounds {
  double outputs, loss,
      weights; /* relative to the largest magnitude, a loss's times the number of the step */
} bounds;

/* One array with NaN and infinities in the same places; `exact`: integers and bools. */
static inline void assert_array(const char *what, mix_tensor *got, mix_tensor *expected, double bound,
                                bool sign_free) {
  assert_non_null(got);
  const mix_shape shape = mix_tensor_shape(expected), shape_of_got = mix_tensor_shape(got);
  const mix_dtype dtype = mix_tensor_dtype(expected);
  const int64_t count = mix_shape_size(shape);
  assert_int_equal(mix_tensor_dtype(got), dtype);
  assert_int_equal(shape_of_got.rank, shape.rank);
  for (int i = 0; i < shape.rank; i++) assert_int_equal(shape_of_got.dims[i], shape.dims[i]);
  double *a = malloc(sizeof *a * (size_t)(count + 1)), *b = malloc(sizeof *b * (size_t)(count + 1)),
         largest = 0, distance = 0;
  assert_int_equal(mix_tensor_read(got, MIX_FLOAT64, a, count), MIX_OK);
  assert_int_equal(mix_tensor_read(expected, MIX_FLOAT64, b, count), MIX_OK);
  for (int64_t i = 0; i < count; i++) {
    const double x = sign_free ? fabs(a[i]) : a[i], y = sign_free ? fabs(b[i]) : b[i];
    if (!isfinite(y) ? !(x == y || (x != x && y != y)) : !isfinite(x))
      fail_msg("%s: element %lld is %g; Keras has %g", what, (long long)i, x, y);
    if (!isfinite(y)) continue;
    largest = fmax(largest, fabs(y));
    distance = fmax(distance, fabs(x - y));
  }
  if (!(distance <= (mix_dtype_is_floating(dtype) ? bound * largest : 0)))
    fail_msg("%s is off by %g of %g; the bound is %g of it", what, distance, largest, bound);
  free(a);
  free(b);
}

static inline mix_tensor *array_of(mix_npz *npz, const char *stem, int index, int count) {
  char name[64];
  snprintf(name, sizeof name, count > 1 ? "%s_%d" : "%s", stem, index);
  return mix_npz_get(npz, name);
}

/* ---- a model ---- */

static inline void predict_operation(const char *name, const json_t *recorded, const bounds *b,
                                     bool sign_free) {
  char out[512];
  const int count = (int)json_integer_value(json_object_get(recorded, "outputs"));
  snprintf(out, sizeof out, "%s/out.npz", test_folder);
  assert_code(run_program("predict", "--model", model_path(name, ".keras"), "--data",
                          model_path(name, ".npz"), "--batch-size", "4", "--output", out, "--accumulate",
                          "exact"),
              0);
  MIX_SCOPE {
    mix_npz *made = mix_npz_open(out), *data = mix_npz_open(model_path(name, ".npz"));
    for (int i = 0; i < count; i++) {
      char what[128], stem[32];
      snprintf(what, sizeof what, "%.80s: output %d", name, i);
      snprintf(stem, sizeof stem, "predict_%d", i);
      assert_array(what, array_of(made, "y", i, count), mix_npz_get(data, stem), b->outputs, sign_free);
    }
  }
}

static inline void check_losses(const char *name, const char *log, const json_t *losses, double bound) {
  FILE *file = fopen(log, "r");
  char line[4096];
  assert_non_null(file);
  for (size_t i = 0; i < json_array_size(losses); i++) {
    assert_non_null(fgets(line, sizeof line, file));
    json_t *step = json_loads(line, 0, NULL);
    const json_t *expected = json_array_get(losses, i), *got = json_object_get(step, "loss");
    if (json_is_number(expected)) {
      const double a = json_number_value(got), y = json_number_value(expected);
      if (!json_is_number(got) || !(fabs(a - y) <= bound * (double)(i + 1) * fabs(y)))
        fail_msg("%s: loss %zu is %.9g; Keras has %.9g", name, i + 1, a, y);
    }
    json_decref(step);
  }
  fclose(file);
}

static inline void train_operation(const char *name, const json_t *recorded, const bounds *b, bool half) {
  char log[512], saved[512], steps[16];
  const json_t *losses = json_object_get(recorded, "losses");
  if (!json_array_size(losses)) return;
  snprintf(log, sizeof log, "%s/steps.jsonl", test_folder);
  snprintf(saved, sizeof saved, "%s/saved.npz", test_folder);
  snprintf(steps, sizeof steps, "%zu", json_array_size(losses));
  assert_code(run_program("train", "--model", model_path(name, ".keras"), "--data", model_path(name, ".npz"),
                          "--batch-size", "4", "--epochs", steps, "--no-shuffle", "--accumulate", "exact",
                          "--verbose", "0", "--step-log", log, "--save", saved, half ? "--loss-scale" : NULL,
                          "none"),
              0);
  check_losses(name, log, losses, b->loss);
  MIX_SCOPE {
    mix_npz *made = mix_npz_open(saved), *data = mix_npz_open(model_path(name, ".npz"));
    for (int i = 0; i < mix_npz_count(made); i++) {
      char what[128], stem[32];
      snprintf(what, sizeof what, "%.80s: weight %d", name, i);
      snprintf(stem, sizeof stem, "final_%d", i);
      assert_array(what, mix_npz_get(made, mix_npz_name(made, i)), mix_npz_get(data, stem), b->weights,
                   false);
    }
  }
}

static int refused_count;

static inline bool is_refused(const char *name, const char *operation) {
  char out[512];
  snprintf(out, sizeof out, "%s/out.npz", test_folder);
  for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
    if (strcmp(refusals[i].operation, operation)) continue;
    assert_code(run_program("predict", "--model", model_path(name, ".keras"), "--data",
                            model_path(name, ".npz"), "--output", out),
                1);
    assert_has(program_err, refusals[i].reason);
    refused_count++;
    return true;
  }
  return false;
}

/* The model whose name is the test's state. */
static inline void run_operation(void **state) {
  const char *name = *state;
  json_t *recorded = json_load_file(model_path(name, ".json"), 0, NULL);
  assert_non_null(recorded);
  const char *operation = json_string_value(json_object_get(recorded, "op"));
  const bool half = !strcmp(json_string_value(json_object_get(recorded, "policy")), "mixed_float16"),
             sign_free = !strcmp(operation, "Qr") || !strcmp(operation, "SVD") || !strcmp(operation, "Eigh");
  const bounds b = half ? (bounds){4e-3, 2e-3, 1e-2} : (bounds){1e-5, 1e-5, 5e-5};
  if (!is_refused(name, operation)) {
    predict_operation(name, recorded, &b, sign_free);
    if (strcmp(operation, chaotic)) train_operation(name, recorded, &b, half);
  }
  json_decref(recorded);
}

static inline void no_operations(void **state) {
  (void)state;
  SKIP("MIXTAPE_REFERENCE_DIR is unset, or has no folder ops");
}
static inline int forget_errors(void **state) {
  (void)state;
  mix_error_clear();
  return 0;
}

/* A test for every `stride`-th model. */
static inline int run_operations(int stride) {
  static struct CMUnitTest tests[MOST_MODELS + 1];
  size_t count = 0;
  const char *folder = getenv("MIXTAPE_REFERENCE_DIR");
  if (folder && *folder) find_models();
  for (int i = 0; i < model_count; i += stride)
    tests[count++] = (struct CMUnitTest){models[i], run_operation, forget_errors, NULL, models[i]};
  if (!count) tests[count++] = (struct CMUnitTest){"no_operations", no_operations, NULL, NULL, NULL};
  const int failed = _cmocka_run_group_tests("reference operations", tests, count, folder_begin, folder_end);
  const int held = (int)count - (failed > 0 ? failed : 0) - refused_count;
  print_message("%d of %zu recorded operations hold their bounds, %d are refused with a reason\n", held,
                count, refused_count);
  for (int i = 0; i < model_count; i++) free(models[i]);
  return failed;
}

#endif
