/* The recorded models of $MIXTAPE_REFERENCE_DIR/models (their README says how they were made, and the
 * bounds): each loads, predicts what Keras predicted, and trains on as Keras did; those with layers that do
 * not exist yet are refused by the layer's name. */
#include "model/support.h"

#include "base/json.h"
#include "support/skip.h"
#include <dirent.h>
#include <sys/stat.h>

enum { MAX_FILES = 1024, MAX_ARRAYS = 512 };
/* How many files have layers that are still missing. New layers make it smaller. */
enum { MISSING = 228 };

static char *names[MAX_FILES];
static int name_count;

static const char *path_of(const char *name, const char *end) {
  static char path[1024];
  snprintf(path, sizeof path, "%s/models/%s%s", getenv("MIXTAPE_REFERENCE_DIR"), name, end);
  return path;
}

static bool ends(const char *name, const char *end) {
  return strlen(name) > strlen(end) && !strcmp(name + strlen(name) - strlen(end), end);
}

static int by_text(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

static void find_names(void) {
  DIR *folder = opendir(path_of("", ""));
  for (const struct dirent *entry; folder && (entry = readdir(folder));)
    if (ends(entry->d_name, ".keras") && name_count < MAX_FILES)
      names[name_count++] = strndup(entry->d_name, strlen(entry->d_name) - 6);
  if (folder) closedir(folder);
  qsort(names, (size_t)name_count, sizeof *names, by_text);
}

/* ---- bounds ---- */

/* Relative to the largest magnitude, a loss's times the number of the step; 0: not compared. */
typedef struct bounds {
  double outputs, loss, weights;
  int losses; /* how many */
} bounds;

static bool is_application(const char *name) { return name[3] >= 'A' && name[3] <= 'Z'; }
static bool is_one_of(const char *name, const char *a, const char *b) {
  return strstr(name, a) || strstr(name, b);
}

static bounds bounds_of(const char *name) {
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
static mix_list *arrays(mix_npz *npz, const char *stem) {
  char name[32];
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

static double *read_all(mix_tensor *tensor, int64_t count) {
  double *values = malloc(sizeof *values * (size_t)(count + 1));
  assert_non_null(values);
  assert_int_equal(mix_tensor_read(tensor, MIX_FLOAT64, values, count), MIX_OK);
  return values;
}

static void assert_close(const char *model, const char *what, int index, mix_tensor *got,
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

/* ---- one model ---- */

static void check_predictions(const char *name, mix_model *model, mix_npz *npz, int examples, double bound) {
  mix_list *made = mix_model_predict(model, arrays(npz, "x"), .batch_size = examples);
  assert_no_error();
  mix_list *expected = arrays(npz, "predict");
  assert_int_equal(mix_list_count(made), mix_list_count(expected));
  for (int i = 0; i < mix_list_count(expected); i++)
    assert_close(name, "output", i, mix_list_get(made, i), mix_list_get(expected, i), bound);
}

static void check_training(const char *name, mix_model *model, mix_npz *npz, const json_t *losses,
                           const bounds *b) {
  mix_list *x = arrays(npz, "x"), *y = arrays(npz, "y");
  for (int i = 0; i < (int)json_array_size(losses); i++)
    MIX_SCOPE {
      const double expected = json_number_value(json_array_get(losses, (size_t)i));
      mix_logs *logs = mix_model_train_on_batch(model, x, y);
      assert_no_error();
      const double got = mix_logs_get(logs, "loss");
      if (i < b->losses && !(fabs(got - expected) <= b->loss * (i + 1) * fabs(expected)))
        fail_msg("%s: loss %d is %.9g; Keras has %.9g", name, i + 1, got, expected);
    }
  mix_list *expected = arrays(npz, "final"), *weights = mix_model_get_weights(model);
  if (b->weights == 0 || !mix_list_count(expected)) return;
  assert_int_equal(mix_list_count(weights), mix_list_count(expected));
  for (int i = 0; i < mix_list_count(expected); i++)
    assert_close(name, "weight", i, mix_list_get(weights, i), mix_list_get(expected, i), b->weights);
}

static void check_loss_scale(const char *name, mix_model *model, const json_t *recorded) {
  const json_t *scale = json_object_get(recorded, "loss_scale");
  mix_optimizer *optimizer = mix_model_optimizer(model);
  if (!scale) return;
  if (!mix_optimizer_dynamic(optimizer)) fail_msg("%s: the loss is not scaled", name);
  assert_true(at(mix_optimizer_loss_scale(optimizer), 0) == json_number_value(scale));
  assert_int_equal(mix_optimizer_iterations(optimizer),
                   json_integer_value(json_object_get(recorded, "iterations")));
}

static bool check_model(const char *name) {
  const bounds b = bounds_of(name);
  mix_model *model = mix_model_load(path_of(name, ".keras"));
  if (!model) {
    assert_error(MIX_VALUE_ERROR, "there is no built-in layer class");
    return false;
  }
  assert_no_error();
  json_t *recorded = json_load_file(path_of(name, ".json"), 0, NULL);
  assert_non_null(recorded);
  mix_npz *npz = mix_npz_open(path_of(name, ".npz"));
  assert_no_error();
  check_predictions(name, model, npz, (int)json_integer_value(json_object_get(recorded, "examples")),
                    b.outputs);
  check_training(name, model, npz, json_object_get(recorded, "losses"), &b);
  check_loss_scale(name, model, recorded);
  json_decref(recorded);
  return true;
}

/* ---- tests ---- */

static void every_model_whose_layers_exist(void **state) {
  (void)state;
  int missing = 0;
  if (!getenv("MIXTAPE_REFERENCE_DIR")) SKIP("MIXTAPE_REFERENCE_DIR is unset");
  find_names();
  assert_true(name_count > MISSING);
  mix_set_accumulate("exact");
  for (int i = 0; i < name_count; i++)
    MIX_SCOPE {
      if (!check_model(names[i])) missing++;
    }
  for (int i = 0; i < name_count; i++) free(names[i]);
  print_message("%d of %d models have layers that are missing\n", missing, name_count);
  assert_int_equal(missing, MISSING);
}

int main(void) {
  const struct CMUnitTest tests[] = {TEST(every_model_whose_layers_exist)};
  return cmocka_run_group_tests_name("reference models", tests, NULL, NULL);
}
