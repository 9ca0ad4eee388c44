/* Shared by the tests of the recorded models of other precisions, through the library and through the program
 * ($MIXTAPE_REFERENCE_DIR/precision, whose README has the bounds). */
#ifndef TESTS_SAVING_PRECISION_RECORDINGS_H
#define TESTS_SAVING_PRECISION_RECORDINGS_H

#include "saving/reference_models.h"
#include "support/folder.h"

typedef struct recording {
  char name[128];
  json_t *json;
  mix_npz *npz;
  int examples;
} recording;

static inline const char *path_of(const recording *r, const char *end) {
  static char path[1024];
  snprintf(path, sizeof path, "%s/precision/%s%s", getenv("MIXTAPE_REFERENCE_DIR"), r->name, end);
  return path;
}

/* ---- bounds ---- */

/* Three times what Keras differs from itself by where a last bit moves: a rounding to float8 may decide. */
static inline double spread_of(const recording *r, const char *what) {
  const char *kind;
  json_t *of_kind;
  double largest = 0;
  json_object_foreach(json_object_get(r->json, "spread"), kind, of_kind) largest =
      fmax(largest, json_number_value(json_object_get(of_kind, what)));
  return 3 * largest;
}

static inline bool is_policy(const recording *r, const char *name) {
  return !strcmp(json_string_value(json_object_get(r->json, "policy")), name);
}

static inline double bound_of_policy(const recording *r, double float32, double bfloat16, double float16) {
  return is_policy(r, "float32") ? float32 : is_policy(r, "mixed_bfloat16") ? bfloat16 : float16;
}

/* ---- how a model was made one of integers: its mode says it ---- */

static inline bool has_part(const recording *r, const char *part) {
  return strstr(json_string_value(json_object_get(r->json, "mode")), part) != NULL;
}

static inline mix_quantize_options options_of(const recording *r) {
  const char *mode = json_string_value(json_object_get(r->json, "mode")), *block = strstr(mode, "block");
  mix_quantize_options options = {.size = sizeof options,
                                  .mode = has_part(r, "int8") ? "int8" : "int4",
                                  .filter = json_string_value(json_object_get(r->json, "filters"))};
  if (block) options.block_size = atoi(block + strlen("block"));
  if (has_part(r, "channel")) options.block_size = -1;
  options.quantize_inputs = has_part(r, "inputs");
  options.weights_only = has_part(r, "weights");
  if (has_part(r, "range")) {
    options.weight_low = -63, options.weight_high = 63;
    options.input_low = -100, options.input_high = 100;
    options.input_epsilon = 1e-3;
  }
  return options;
}

/* ---- weights ---- */

static inline const json_t *recorded_variable(const recording *r, int index) {
  return json_array_get(json_object_get(json_object_get(r->json, "after"), "variables"), (size_t)index);
}

static inline const char *recorded_path(const recording *r, int index) {
  return json_string_value(json_object_get(recorded_variable(r, index), "path"));
}

/* Whether made here or read from a file, they are in this order. */
static inline void check_order(const recording *r, mix_model *model) {
  mix_list *variables = mix_model_weights(model);
  for (int i = 0; i < mix_list_count(variables); i++)
    assert_string_equal(mix_variable_name(mix_list_get(variables, i)), recorded_path(r, i));
}

/* ---- what a model computes ---- */

static inline void assert_all_close(const recording *r, const char *stem, mix_list *got, mix_list *expected,
                                    double bound) {
  assert_no_error();
  assert_int_equal(mix_list_count(got), mix_list_count(expected));
  for (int i = 0; i < mix_list_count(expected); i++)
    assert_close(r->name, stem, i, mix_list_get(got, i), mix_list_get(expected, i), bound);
}

static inline mix_list *predict(const recording *r, mix_model *model) {
  return mix_model_predict(model, model_arrays(r->npz, "x"), .batch_size = r->examples);
}

static inline int recorded_steps(const recording *r) {
  return (int)json_array_size(json_object_get(r->json, "losses"));
}

/* What the weights after the last step are called. */
static inline const char *last_step(const recording *r) {
  static char stem[16];
  snprintf(stem, sizeof stem, "step%d", recorded_steps(r));
  return stem;
}

/* Of step `step`, from 0. */
static inline void check_loss(const recording *r, int step, double got, double bound) {
  const double expected = json_number_value(json_array_get(json_object_get(r->json, "losses"), (size_t)step));
  if (!(fabs(got - expected) <= bound * (step + 1) * fabs(expected)))
    fail_msg("%s: loss %d is %.9g; Keras has %.9g", r->name, step + 1, got, expected);
}

/* The recorded loss scale after a step; NULL: there is none. */
static inline const json_t *recorded_scale(const recording *r, int step) {
  return json_array_get(json_object_get(r->json, "loss_scales"), (size_t)step);
}

static inline void train_step(const recording *r, mix_model *model, mix_list *x, int step,
                              double loss_bound) {
  mix_logs *logs = mix_model_train_on_batch(model, x, model_arrays(r->npz, "y"));
  const json_t *scale = recorded_scale(r, step);
  assert_no_error();
  check_loss(r, step, mix_logs_get(logs, "loss"), loss_bound);
  if (scale)
    assert_true(at(mix_optimizer_loss_scale(mix_model_optimizer(model)), 0) == json_number_value(scale));
}

/* All steps, on the same batch. */
static inline void train_steps(const recording *r, mix_model *model, double loss_bound) {
  for (int step = 0; step < recorded_steps(r); step++)
    MIX_SCOPE { train_step(r, model, model_arrays(r->npz, "x"), step, loss_bound); }
}

/* Reads back to the same bits. */
static inline void check_saved(const recording *r, mix_model *model) {
  const char *path = in_folder("trained.keras");
  mix_list *before = predict(r, model), *variables = mix_model_weights(model);
  mix_model_save(model, path);
  mix_model *again = mix_model_load(path);
  assert_no_error();
  assert_all_close(r, "saved", predict(r, again), before, 0);
  assert_int_equal(mix_list_count(mix_model_weights(again)), mix_list_count(variables));
  for (int i = 0; i < mix_list_count(variables); i++) {
    mix_variable *variable = mix_list_get(variables, i);
    assert_close(r->name, "saved weight", i,
                 mix_variable_true_value(variable_at(again, mix_variable_name(variable))),
                 mix_variable_true_value(variable), 0);
  }
}

/* ---- tests ---- */

/* The recording whose name is the test's state. */
typedef void run_recording_of(const recording *r);
static run_recording_of *run_recording; /* of this program */

static inline void run(void **state) {
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

static inline void not_here(void **state) {
  (void)state;
  SKIP("there are no recordings in MIXTAPE_REFERENCE_DIR/precision");
}

static char *names[MAX_FILES];

/* Is the recording one of the program's? */
typedef bool is_wanted_recording(const char *name);

static inline int find_recordings(is_wanted_recording *is_wanted) {
  const char *folder = getenv("MIXTAPE_REFERENCE_DIR");
  char path[1024];
  int count = 0;
  snprintf(path, sizeof path, "%s/precision", folder ? folder : "");
  DIR *files = folder ? opendir(path) : NULL;
  for (const struct dirent *entry; files && (entry = readdir(files));)
    if (ends(entry->d_name, ".json") && count < MAX_FILES) {
      names[count] = strndup(entry->d_name, strlen(entry->d_name) - 5);
      if (is_wanted(names[count]))
        count++;
      else
        free(names[count]);
    }
  if (files) closedir(files);
  qsort(names, (size_t)count, sizeof *names, by_text);
  return count;
}

/* MIXTAPE_REFERENCE_SUBSET: one of each kind. */
static inline bool is_in_subset(const char *name, const char *const *subset, size_t count) {
  const char *asked = getenv("MIXTAPE_REFERENCE_SUBSET");
  bool chosen = !asked || !*asked;
  for (size_t i = 0; i < count; i++) chosen |= !strcmp(subset[i], name);
  return chosen;
}

/* A test for each recording. */
static inline int run_recordings(const char *group, is_wanted_recording *is_wanted,
                                 run_recording_of *run_one) {
  static struct CMUnitTest tests[MAX_FILES];
  const int count = find_recordings(is_wanted);
  run_recording = run_one;
  tests[0] = (struct CMUnitTest)TEST(not_here);
  for (int i = 0; i < count; i++)
    tests[i] = (struct CMUnitTest){names[i], run, forget_errors, NULL, names[i]};
  const int failed =
      _cmocka_run_group_tests(group, tests, (size_t)(count ? count : 1), folder_begin, folder_end);
  for (int i = 0; i < count; i++) free(names[i]);
  return failed;
}

#endif
