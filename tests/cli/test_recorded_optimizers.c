/* Muon and ScheduleFreeAdamW as real Keras trained with them: the cases optimizer-* of
 * $MIXTAPE_REFERENCE_DIR/precision (its README has the bounds), through the program, and the state through
 * the library. */
#include "cli/program.h"

#include "support/skip.h"
#include <dirent.h>

static const char *path_of(const char *name, const char *end) {
  static char paths[4][1024];
  static int next;
  next = (next + 1) % 4;
  snprintf(paths[next], sizeof paths[next], "%s/precision/%s%s", getenv("MIXTAPE_REFERENCE_DIR"), name, end);
  return paths[next];
}

/* The largest difference, relative to the largest magnitude of what is expected. */
static double distance(mix_tensor *got, mix_tensor *expected) {
  const int64_t count = mix_shape_size(mix_tensor_shape(expected));
  assert_int_equal(mix_shape_size(mix_tensor_shape(got)), count);
  double *a = malloc(2 * sizeof *a * (size_t)count), *b = a + count, largest = 1e-30, most = 0;
  assert_int_equal(mix_tensor_read(got, MIX_FLOAT64, a, count), MIX_OK);
  assert_int_equal(mix_tensor_read(expected, MIX_FLOAT64, b, count), MIX_OK);
  for (int64_t i = 0; i < count; i++) {
    largest = fmax(largest, fabs(b[i]));
    most = fmax(most, fabs(a[i] - b[i]));
    assert_true(isfinite(a[i]));
  }
  free(a);
  return most / largest;
}

static void assert_within(const char *name, const char *what, int index, double got, double bound) {
  if (!(got <= bound)) fail_msg("%s: %s %d differs by %.1e, more than %.1e", name, what, index, got, bound);
}

static void assert_losses(const char *name, const json_t *recorded, double bound) {
  char line[4096];
  FILE *log = fopen(in_folder("steps.jsonl"), "r");
  assert_non_null(log);
  const json_t *losses = json_object_get(recorded, "losses");
  size_t step = 0;
  while (fgets(line, sizeof line, log)) {
    json_t *json = json_loads(line, 0, NULL), *loss = json_object_get(json, "loss");
    if (loss) {
      const double expected = json_real_value(json_array_get(losses, step++));
      assert_within(name, "loss", (int)step, fabs(json_number_value(loss) / expected - 1),
                    bound * (double)step);
    }
    json_decref(json);
  }
  fclose(log);
  assert_int_equal(step, json_array_size(losses));
}

/* Of the recorded weight: `quantize` puts the eight of a float8 layer after kernel and bias, a file that is
 * loaded puts its six before them (P11). */
static int recorded_place(const char *name, int index) {
  if (!strstr(name, "float8")) return index;
  return index / 8 * 8 + (index % 8 + 2) % 8;
}

/* Weights after the last step; the state in Keras's order (O06, O11). */
static void assert_trained(const char *name, const char *file, int64_t steps, double bound) {
  mix_npz *recorded = mix_npz_open(path_of(name, ".npz"));
  mix_model *model = mix_model_load(file);
  assert_int_equal(mix_error(), MIX_OK);
  mix_list *weights = mix_model_get_weights(model);
  mix_list *state = mix_optimizer_variables(mix_model_optimizer(model));
  char array[64];
  for (int i = 0; i < mix_list_count(weights); i++) {
    snprintf(array, sizeof array, "step%lld_%d", (long long)steps, recorded_place(name, i));
    assert_within(name, "weight", i, distance(mix_list_get(weights, i), mix_npz_require(recorded, array)),
                  bound);
  }
  if (strstr(name, "float8")) return; /* whose state was not recorded */
  for (int i = 0; i < mix_list_count(state); i++) {
    snprintf(array, sizeof array, "optimizer_%d", i);
    mix_tensor *value = mix_variable_true_value(mix_list_get(state, i));
    assert_within(name, "state", i, distance(value, mix_npz_require(recorded, array)), bound);
  }
  snprintf(array, sizeof array, "optimizer_%d", mix_list_count(state));
  assert_null(mix_npz_get(recorded, array));
}

static void follow(const char *name) {
  const bool mixed = strstr(name, "mixed_bfloat16");
  const char *begin = strstr(name, "float8") ? ".after.keras" : ".keras"; /* quantized before it trained */
  json_t *recorded = json_load_file(path_of(name, ".json"), 0, NULL);
  assert_non_null(recorded);
  const int64_t steps = json_integer_value(json_object_get(recorded, "steps"));
  char epochs[24], examples[24], out[512];
  snprintf(epochs, sizeof epochs, "%lld", (long long)steps);
  snprintf(examples, sizeof examples, "%lld",
           (long long)json_integer_value(json_object_get(recorded, "examples")));
  snprintf(out, sizeof out, "%s", in_folder("out.keras"));
  assert_code(run_program("train", "--model", path_of(name, begin), "--data", path_of(name, ".npz"),
                          "--batch-size", examples, "--epochs", epochs, "--no-shuffle", "--accumulate",
                          "exact", "--step-log", in_folder("steps.jsonl"), "--save", out, "--verbose", "0"),
              0);
  assert_losses(name, recorded, mixed ? 2e-2 : 1e-5);
  if (!mixed)
    MIX_SCOPE { assert_trained(name, out, steps, 1e-4); }
  /* the state that Keras saved goes into a model, and predictions are Keras's */
  assert_code(run_program("predict", "--model", path_of(name, ".trained.keras"), "--data",
                          path_of(name, ".npz"), "--batch-size", examples, "--output", in_folder("y.npz"),
                          "--accumulate", "exact"),
              0);
  MIX_SCOPE {
    mix_tensor *y = mix_npz_require(mix_npz_open(in_folder("y.npz")), "y"),
               *expected = mix_npz_require(mix_npz_open(path_of(name, ".npz")), "trained_0");
    assert_within(name, "prediction", 0, distance(y, expected), mixed ? 5e-2 : 1e-5);
    if (!mixed) assert_trained(name, path_of(name, ".trained.keras"), steps, 0);
  }
  json_decref(recorded);
}

/* MIXTAPE_REFERENCE_SUBSET: each optimizer, decay, 16 bits and float8. */
static const char *const subset[] = {"optimizer-muon-decay-mlp", "optimizer-muon-float8-mlp",
                                     "optimizer-schedule-free-embedding_conv",
                                     "optimizer-schedule-free-mlp-mixed_bfloat16"};
enum { IN_SUBSET = sizeof subset / sizeof *subset };

static bool is_subset_asked(void) {
  const char *asked = getenv("MIXTAPE_REFERENCE_SUBSET");
  return asked && *asked;
}
static bool is_wanted(const char *stem) {
  bool wanted = !is_subset_asked();
  for (int i = 0; i < IN_SUBSET; i++) wanted |= !strcmp(subset[i], stem);
  return wanted;
}

/* O01 to O12 together. */
static void they_train_as_in_keras(void **state) {
  (void)state;
  if (!getenv("MIXTAPE_REFERENCE_DIR")) SKIP("MIXTAPE_REFERENCE_DIR is not set: no recorded optimizers");
  DIR *folder = opendir(path_of("", ""));
  int count = 0;
  for (const struct dirent *entry; folder && (entry = readdir(folder));) {
    const char *name = entry->d_name, *end = strstr(name, ".json");
    char stem[256];
    if ((strncmp(name, "optimizer-", 10) && strncmp(name, "h-optimizer-", 12)) || !end) continue;
    snprintf(stem, sizeof stem, "%.*s", (int)(end - name), name);
    if (!is_wanted(stem)) continue;
    follow(stem);
    count++;
  }
  if (folder) closedir(folder);
  if (!count) fail_msg("no case optimizer-* in %s", path_of("", ""));
  if (is_subset_asked()) assert_int_equal(count, IN_SUBSET);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(they_train_as_in_keras, folder_begin, folder_end)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
