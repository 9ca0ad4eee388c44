/* Shared by the tests that run the recorded models through the program. */
#ifndef TESTS_CLI_REFERENCE_MODELS_H
#define TESTS_CLI_REFERENCE_MODELS_H

#include "cli/program.h"
#include "saving/reference_models.h"

/* A file of this folder for each process, which the next model replaces. */
static inline const char *kept_path(const char *name, char *path) {
  snprintf(path, 512, "%s/%s", test_folder, name);
  return path;
}

static inline json_t *recorded_of(const char *name) {
  json_t *recorded = json_load_file(model_path(name, ".json"), 0, NULL);
  assert_non_null(recorded);
  return recorded;
}

static inline mix_npz *open_npz(const char *path) {
  mix_npz *npz = mix_npz_open(path);
  assert_no_error();
  return npz;
}

static inline void predict_model(const char *name, const char *examples, const bounds *b) {
  char model[1024], data[1024], out[512];
  snprintf(model, sizeof model, "%s", model_path(name, ".keras"));
  snprintf(data, sizeof data, "%s", model_path(name, ".npz"));
  assert_code(run_program("predict", "--model", model, "--data", data, "--batch-size", examples, "--output",
                          kept_path("out.npz", out), "--accumulate", "exact"),
              0);
  MIX_SCOPE {
    mix_list *made = model_arrays(open_npz(out), "y"), *expected = model_arrays(open_npz(data), "predict");
    assert_int_equal(mix_list_count(made), mix_list_count(expected));
    for (int i = 0; i < mix_list_count(expected); i++)
      assert_close(name, "output", i, mix_list_get(made, i), mix_list_get(expected, i), b->outputs);
  }
}

/* The step log's losses, and at its end the state of loss scaling. */
static inline void check_steps(const char *name, const char *path, const json_t *recorded, const bounds *b) {
  const json_t *losses = json_object_get(recorded, "losses"),
               *scale = json_object_get(recorded, "loss_scale");
  json_t *lines = lines_of(path);
  assert_int_equal(json_array_size(lines), json_array_size(losses));
  for (int i = 0; i < (int)json_array_size(losses) && i < b->losses; i++) {
    const double expected = json_number_value(json_array_get(losses, (size_t)i)),
                 got = number_in(json_object_get(json_array_get(lines, (size_t)i), "loss"));
    if (!(fabs(got - expected) <= b->loss * (i + 1) * fabs(expected)))
      fail_msg("%s: loss %d is %.9g; Keras has %.9g", name, i + 1, got, expected);
  }
  const json_t *last = json_array_get(lines, json_array_size(lines) - 1);
  if (scale) {
    assert_true(number_in(json_object_get(last, "loss_scale")) == json_number_value(scale));
    assert_int_equal(json_integer_value(json_object_get(last, "iterations")),
                     json_integer_value(json_object_get(recorded, "iterations")));
  }
  json_decref(lines);
}

/* The archive's members are in the order of get_weights(). */
static inline void check_weights(const char *name, const char *saved, const bounds *b) {
  MIX_SCOPE {
    mix_npz *npz = open_npz(saved);
    mix_list *expected = model_arrays(open_npz(model_path(name, ".npz")), "final");
    if (b->weights > 0 && mix_list_count(expected)) {
      assert_int_equal(mix_npz_count(npz), mix_list_count(expected));
      for (int i = 0; i < mix_list_count(expected); i++)
        assert_close(name, "weight", i, mix_npz_get(npz, mix_npz_name(npz, i)), mix_list_get(expected, i),
                     b->weights);
    }
  }
}

static inline void train_model(const char *name, const char *examples, const json_t *recorded,
                               const bounds *b) {
  char model[1024], data[1024], log[512], saved[512], steps[32];
  const size_t count = json_array_size(json_object_get(recorded, "losses"));
  if (!count) return;
  snprintf(model, sizeof model, "%s", model_path(name, ".keras"));
  snprintf(data, sizeof data, "%s", model_path(name, ".npz"));
  snprintf(steps, sizeof steps, "%zu", count);
  assert_code(run_program("train", "--model", model, "--data", data, "--batch-size", examples, "--epochs",
                          steps, "--no-shuffle", "--accumulate", "exact", "--verbose", "0", "--step-log",
                          kept_path("steps.jsonl", log), "--save", kept_path("saved.npz", saved)),
              0);
  check_steps(name, log, recorded, b);
  check_weights(name, saved, b);
}

/* What cannot be loaded is refused for a class that the registry lacks. */
static inline void refuse_model(const char *name) {
  char model[1024], expected[128];
  snprintf(model, sizeof model, "%s", model_path(name, ".keras"));
  assert_code(run_program("summary", "--model", model), 1);
  assert_has(program_err, "there is no built-in layer class");
  assert_has(program_err, "mix_register_layer");
  assert_has(program_err, "config.layers[");
  const char *found = strchr(program_err, '\'');
  assert_int_equal(sscanf(found, "'%63[^']'", expected), 1);
  if (is_built_in(expected)) fail_msg("%s is refused for %s, which is built in", name, expected);
}

/* The model whose name is the test's state. */
static inline void run_model(void **state) {
  const char *name = *state;
  char class_name[64], examples[16];
  if (has_missing_layer(name, class_name)) {
    refuse_model(name);
    return;
  }
  const bounds b = bounds_of(name);
  json_t *recorded = recorded_of(name);
  snprintf(examples, sizeof examples, "%d", (int)json_integer_value(json_object_get(recorded, "examples")));
  predict_model(name, examples, &b);
  train_model(name, examples, recorded, &b);
  json_decref(recorded);
}

static inline void count_models(void **state) {
  (void)state;
  int missing = 0;
  char class_name[64];
  for (int i = 0; i < model_count; i++) missing += has_missing_layer(models[i], class_name);
  print_message("%d of %d models have layers that are missing\n", missing, model_count);
  assert_true(model_count > MODELS_WITH_MISSING_LAYERS);
  assert_int_equal(missing, MODELS_WITH_MISSING_LAYERS);
}

static inline void no_models(void **state) {
  (void)state;
  SKIP("MIXTAPE_REFERENCE_DIR is unset");
}

/* MIXTAPE_REFERENCE_SUBSET: one of each family and policy. */
static const char *const subset[] = {
    "k3-attention",         "k3-batch-normalization-4d", "k3-bidirectional-lstm", "k3-cnn-gru-mixed_float16",
    "k3-conv2d-groups",     "k3-conv2d-transpose-valid", "k3-einsum-dense",       "k3-max-pooling2d",
    "k3-resizing-nearest",  "k3-transformer-float32",    "tfk-separable-conv2d",  "tfk-shared-mixed_bfloat16",
    "tfk-text-lstm-float32"};
static inline bool is_subset_asked(void) {
  const char *asked = getenv("MIXTAPE_REFERENCE_SUBSET");
  return asked && *asked;
}
static inline bool is_in_subset(const char *name) {
  for (size_t i = 0; i < sizeof subset / sizeof *subset; i++)
    if (!strcmp(subset[i], name)) return true;
  return false;
}
static inline void subset_is_recorded(void **state) {
  (void)state;
  size_t found = 0;
  for (int i = 0; i < model_count; i++) found += is_in_subset(models[i]);
  assert_int_equal(found, sizeof subset / sizeof *subset);
}
/* What the model before left pending. */
static inline int forget_errors(void **state) {
  (void)state;
  mix_error_clear();
  return 0;
}

/* A test for each of the models that are applications, or of the others. */
static inline int run_models(bool applications) {
  static struct CMUnitTest tests[MAX_FILES + 2];
  size_t count = 0;
  const char *folder = getenv("MIXTAPE_REFERENCE_DIR");
  if (folder && *folder) {
    find_models();
    tests[count++] = (struct CMUnitTest)TEST(count_models);
    if (is_subset_asked()) tests[count++] = (struct CMUnitTest)TEST(subset_is_recorded);
  } else
    tests[count++] = (struct CMUnitTest)TEST(no_models);
  for (int i = 0; i < model_count; i++) {
    const bool chosen = is_subset_asked() ? is_in_subset(models[i]) : is_in_part(i);
    if (chosen && is_application(models[i]) == applications)
      tests[count++] = (struct CMUnitTest){models[i], run_model, forget_errors, NULL, models[i]};
  }
  const int failed = _cmocka_run_group_tests("reference models", tests, count, folder_begin, folder_end);
  for (int i = 0; i < model_count; i++) free(models[i]);
  return failed;
}

#endif
