/* The recorded float8 models ($MIXTAPE_REFERENCE_DIR/precision, whose README has the bounds): quantized here
 * they are what Keras made of them, and they predict and train as Keras did. */
#include "saving/reference_models.h"
#include "support/folder.h"

typedef struct recording {
  char name[128];
  json_t *json;
  mix_npz *npz;
  int examples;
} recording;

static const char *path_of(const recording *r, const char *end) {
  static char path[1024];
  snprintf(path, sizeof path, "%s/precision/%s%s", getenv("MIXTAPE_REFERENCE_DIR"), r->name, end);
  return path;
}

/* ---- bounds ---- */

/* Three times what Keras differs from itself by where a last bit moves: a rounding to float8 may decide. */
static double spread_of(const recording *r, const char *what) {
  const char *kind;
  json_t *of_kind;
  double largest = 0;
  json_object_foreach(json_object_get(r->json, "spread"), kind, of_kind) largest =
      fmax(largest, json_number_value(json_object_get(of_kind, what)));
  return 3 * largest;
}

static bool is_policy(const recording *r, const char *name) {
  return !strcmp(json_string_value(json_object_get(r->json, "policy")), name);
}

static double bound_of(const recording *r, const char *what, double float32, double bfloat16,
                       double float16) {
  const double bound = is_policy(r, "float32")          ? float32
                       : is_policy(r, "mixed_bfloat16") ? bfloat16
                                                        : float16;
  return fmax(bound, spread_of(r, what));
}

static double output_bound(const recording *r, const char *what) {
  return bound_of(r, what, 1e-5, 8e-2, 5e-2);
}

/* ---- weights ---- */

static bool is_float8_state(const recording *r, int index) {
  const json_t *variables = json_object_get(json_object_get(r->json, "after"), "variables");
  return json_is_true(json_object_get(json_array_get(variables, (size_t)index), "overwrite"));
}

static const char *recorded_path(const recording *r, int index) {
  const json_t *variables = json_object_get(json_object_get(r->json, "after"), "variables");
  return json_string_value(json_object_get(json_array_get(variables, (size_t)index), "path"));
}

/* By its path: in a layer of a file the scales come before the kernel, as in Keras. */
static mix_tensor *weight_at_path(mix_model *model, const char *path) {
  mix_list *variables = mix_model_weights(model);
  for (int i = 0; i < mix_list_count(variables); i++)
    if (!strcmp(mix_variable_name(mix_list_get(variables, i)), path))
      return mix_variable_true_value(mix_list_get(variables, i));
  fail_msg("there is no weight '%s'", path);
  return NULL;
}

/* Under 16 bits scales and histories alone. */
static void check_step(const recording *r, mix_model *model, int step) {
  char stem[16];
  snprintf(stem, sizeof stem, "step%d", step);
  mix_list *expected = model_arrays(r->npz, stem);
  for (int i = 0; i < mix_list_count(expected); i++)
    if (is_policy(r, "float32") || (is_policy(r, "mixed_bfloat16") && is_float8_state(r, i)))
      assert_close(r->name, stem, i, weight_at_path(model, recorded_path(r, i)), mix_list_get(expected, i),
                   bound_of(r, stem, 1e-4, 8e-2, 0));
}

/* The paths and values of Keras, to the bits. */
static void check_quantized(const recording *r, mix_model *model) {
  mix_list *expected = model_arrays(r->npz, "init");
  assert_int_equal(mix_list_count(mix_model_weights(model)), mix_list_count(expected));
  for (int i = 0; i < mix_list_count(expected); i++)
    assert_close(r->name, "init", i, weight_at_path(model, recorded_path(r, i)), mix_list_get(expected, i),
                 0);
}

/* P11: quantized here, they are in this order. */
static void check_order(const recording *r, mix_model *model) {
  mix_list *variables = mix_model_weights(model);
  for (int i = 0; i < mix_list_count(variables); i++)
    assert_string_equal(mix_variable_name(mix_list_get(variables, i)), recorded_path(r, i));
}

/* TensorFlow's graphs round the sum of a convolution and its bias once, where Keras without a graph, and this
 * library, round both; a rounding to float8 makes 0.11 of it, in Keras too. Training holds its bounds. */
static bool rounds_twice(const recording *r, const char *stem) {
  return !strcmp(r->name, "float8-conv_dense-mixed_bfloat16") && !strcmp(stem, "after");
}

static void check_predictions(const recording *r, mix_model *model, const char *stem) {
  mix_list *made = mix_model_predict(model, model_arrays(r->npz, "x"), .batch_size = r->examples);
  assert_no_error();
  mix_list *expected = model_arrays(r->npz, stem);
  assert_int_equal(mix_list_count(made), mix_list_count(expected));
  for (int i = 0; i < mix_list_count(expected) && !rounds_twice(r, stem); i++)
    assert_close(r->name, stem, i, mix_list_get(made, i), mix_list_get(expected, i), output_bound(r, stem));
}

/* ---- training ---- */

static mix_list *inputs_of_step(const recording *r, int step) {
  mix_list *x = model_arrays(r->npz, "x");
  mix_tensor *factors = mix_npz_get(r->npz, "x_factors");
  if (!factors) return x;
  mix_list *scaled = mix_list_new(0, NULL);
  for (int i = 0; i < mix_list_count(x); i++) {
    mix_tensor *one = mix_list_get(x, i), *factor = mix_slice(factors, MIX_SHAPE(step % 12), MIX_SHAPE(1));
    mix_list_append(scaled, mix_multiply(one, mix_cast(factor, mix_tensor_dtype(one))));
  }
  return scaled;
}

/* E11: with all rules together. */
/* E14: one of the recordings accumulates. */
static void train_step(const recording *r, mix_model *model, int step) {
  const double expected = json_number_value(json_array_get(json_object_get(r->json, "losses"), (size_t)step));
  mix_logs *logs = mix_model_train_on_batch(model, inputs_of_step(r, step), model_arrays(r->npz, "y"));
  assert_no_error();
  const double got = mix_logs_get(logs, "loss"), bound = bound_of(r, "losses", 1e-5, 3e-2, 1e-2);
  if (!(fabs(got - expected) <= bound * (step + 1) * fabs(expected)))
    fail_msg("%s: loss %d is %.9g; Keras has %.9g", r->name, step + 1, got, expected);
  const json_t *scale = json_array_get(json_object_get(r->json, "loss_scales"), (size_t)step);
  if (scale)
    assert_true(at(mix_optimizer_loss_scale(mix_model_optimizer(model)), 0) == json_number_value(scale));
  check_step(r, model, step + 1);
}

/* Reads back to the same bits. */
static void check_saved(const recording *r, mix_model *model) {
  char path[512];
  snprintf(path, sizeof path, "%s/trained.keras", test_folder);
  mix_list *x = model_arrays(r->npz, "x"), *before = mix_model_predict(model, x, .batch_size = r->examples);
  mix_model_save(model, path);
  mix_model *again = mix_model_load(path);
  assert_no_error();
  mix_list *after = mix_model_predict(again, x, .batch_size = r->examples);
  assert_close(r->name, "saved", 0, mix_list_get(after, 0), mix_list_get(before, 0), 0);
  mix_list *a = mix_model_get_weights(model), *b = mix_model_get_weights(again);
  assert_int_equal(mix_list_count(a), mix_list_count(b));
  for (int i = 0; i < mix_list_count(a); i++)
    assert_close(r->name, "saved weight", i, mix_list_get(b, i), mix_list_get(a, i), 0);
}

/* ---- one recording ---- */

static void run_recording(const recording *r) {
  const int steps = (int)json_array_size(json_object_get(r->json, "losses"));
  mix_model *model = mix_model_load(path_of(r, ".keras"));
  assert_no_error();
  check_predictions(r, model, "predict");
  mix_model_quantize(model, "float8", .filter = json_string_value(json_object_get(r->json, "filters")),
                     .amax_history_length = json_integer_value(json_object_get(r->json, "history")));
  assert_no_error();
  check_quantized(r, model);
  check_order(r, model);
  check_predictions(r, model, "after");
  model = mix_model_load(path_of(r, ".after.keras"));
  assert_no_error();
  check_quantized(r, model);
  for (int step = 0; step < steps; step++)
    MIX_SCOPE { train_step(r, model, step); }
  check_predictions(r, model, "trained");
  check_saved(r, model);
  model = mix_model_load(path_of(r, ".trained.keras"));
  assert_no_error();
  check_predictions(r, model, "trained");
}

static void run(void **state) {
  recording r;
  snprintf(r.name, sizeof r.name, "%s", (const char *)*state);
  mix_set_accumulate("exact");
  MIX_SCOPE {
    r.json = json_load_file(path_of(&r, ".json"), 0, NULL);
    r.npz = mix_npz_open(path_of(&r, ".npz"));
    assert_non_null(r.json);
    assert_no_error();
    r.examples = (int)json_integer_value(json_object_get(r.json, "examples"));
    run_recording(&r);
    json_decref(r.json);
  }
}

static int forget_errors(void **state) {
  (void)state;
  mix_error_clear();
  return 0;
}

static void not_here(void **state) {
  (void)state;
  SKIP("there are no recordings in MIXTAPE_REFERENCE_DIR/precision");
}

static char *names[MAX_FILES];

static int find_recordings(void) {
  const char *folder = getenv("MIXTAPE_REFERENCE_DIR");
  char path[1024];
  int count = 0;
  snprintf(path, sizeof path, "%s/precision", folder ? folder : "");
  DIR *files = folder ? opendir(path) : NULL;
  for (const struct dirent *entry; files && (entry = readdir(files));)
    if (!strncmp(entry->d_name, "float8-", 7) && ends(entry->d_name, ".json") && count < MAX_FILES)
      names[count++] = strndup(entry->d_name, strlen(entry->d_name) - 5);
  if (files) closedir(files);
  qsort(names, (size_t)count, sizeof *names, by_text);
  return count;
}

int main(void) {
  static struct CMUnitTest tests[MAX_FILES];
  const int count = find_recordings();
  tests[0] = (struct CMUnitTest)TEST(not_here);
  for (int i = 0; i < count; i++)
    tests[i] = (struct CMUnitTest){names[i], run, forget_errors, NULL, names[i]};
  const int failed = _cmocka_run_group_tests("float8 recordings", tests, (size_t)(count ? count : 1),
                                             folder_begin, folder_end);
  for (int i = 0; i < count; i++) free(names[i]);
  return failed;
}
