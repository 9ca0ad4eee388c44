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

/* The models that are applications or the others. Returns how many have layers that are missing. */
static inline int run_models(bool applications) {
  int missing = 0;
  find_models();
  assert_true(model_count > MODELS_WITH_MISSING_LAYERS);
  for (int i = 0; i < model_count; i++) {
    char class_name[64], examples[16];
    const bool lacking = has_missing_layer(models[i], class_name);
    missing += lacking;
    if (is_application(models[i]) != applications) continue;
    if (lacking) {
      refuse_model(models[i]);
      continue;
    }
    const bounds b = bounds_of(models[i]);
    json_t *recorded = recorded_of(models[i]);
    snprintf(examples, sizeof examples, "%d", (int)json_integer_value(json_object_get(recorded, "examples")));
    predict_model(models[i], examples, &b);
    train_model(models[i], examples, recorded, &b);
    json_decref(recorded);
  }
  for (int i = 0; i < model_count; i++) free(models[i]);
  return missing;
}

#endif
