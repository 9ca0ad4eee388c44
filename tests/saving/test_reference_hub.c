/* The recorded models of KerasHub (MIXTAPE_REFERENCE_DIR, hub): each loads, predicts what KerasHub predicted,
 * trains on as Keras did, and is written with the config that it came from. Bounds are the README's. */
#include "saving/reference_models.h"
#include "support/folder.h"

/* Of ViT's tasks the steps differ from run to run in Keras. */
static bool trains(const char *name) { return strstr(name, "-task-") && !strstr(name, "-vit-"); }

static bounds hub_bounds(const char *name) {
  if (ends(name, "-mixed_float16")) return (bounds){1e-2, 5e-3, 0, MAX_ARRAYS};
  if (ends(name, "-mixed_bfloat16")) return (bounds){5e-2, 2e-2, 0, MAX_ARRAYS};
  return (bounds){1e-5, 1e-5, 1e-4, MAX_ARRAYS};
}

/* AdamW on gradients that are rounding alone: a key's bias moves all scores of a query alike. */
static double weight_bound(const mix_variable *weight, double bound) {
  const char *name = mix_variable_name(weight);
  const bool key = strstr(name, "/key/") || strstr(name, "key_value") || strstr(name, "query_key_value");
  return key && ends(name, "bias") ? 4e-3 : bound;
}

static void check_steps(const char *name, mix_model *model, mix_npz *npz, const json_t *losses,
                        const bounds *b) {
  mix_list *x = model_arrays(npz, "x"), *y = model_arrays(npz, "y");
  for (int i = 0; i < (int)json_array_size(losses); i++)
    MIX_SCOPE {
      const double expected = json_number_value(json_array_get(losses, (size_t)i));
      mix_logs *logs = mix_model_train_on_batch(model, x, y);
      assert_no_error();
      const double got = mix_logs_get(logs, "loss");
      if (!(fabs(got - expected) <= b->loss * (i + 1) * fabs(expected)))
        fail_msg("%s: loss %d is %.9g; Keras has %.9g", name, i + 1, got, expected);
    }
  mix_list *expected = model_arrays(npz, "final"), *weights = mix_model_weights(model);
  if (b->weights == 0 || !mix_list_count(expected)) return;
  assert_int_equal(mix_list_count(weights), mix_list_count(expected));
  for (int i = 0; i < mix_list_count(expected); i++) {
    mix_variable *weight = mix_list_get(weights, i);
    assert_close(name, mix_variable_name(weight), i, mix_variable_value(weight), mix_list_get(expected, i),
                 weight_bound(weight, b->weights));
  }
}

static json_t *config_of(const char *path) {
  size_t size;
  json_t *object = NULL;
  MIX_SCOPE {
    mix_zip *zip = mix_zip_open(path);
    char *text = zip ? mix_zip_read(zip, "config.json", SIZE_MAX - 1, &size) : NULL;
    object = text ? json_loads(text, 0, NULL) : NULL;
    mix_free(text);
  }
  assert_non_null(object);
  return object;
}

/* The class and its options are the file's; the arguments of compile are compared by other tests. */
static void check_written(const char *name, mix_model *model, mix_npz *npz, int examples, double bound) {
  mix_model_save(model, in_folder("written.keras"));
  assert_no_error();
  json_t *before = config_of(model_path(name, ".keras")), *after = config_of(in_folder("written.keras"));
  json_object_del(before, "compile_config");
  json_object_del(after, "compile_config");
  if (!json_equal(before, after)) fail_msg("%s: another config is written", name);
  json_decref(before);
  json_decref(after);
  mix_model *again = mix_model_load(in_folder("written.keras"), .no_compile = true);
  mix_list *made = mix_model_predict(again, model_arrays(npz, "x"), .batch_size = examples);
  assert_no_error();
  mix_list *expected = model_arrays(npz, "predict");
  for (int i = 0; i < mix_list_count(expected); i++)
    assert_close(name, "output of the written file", i, mix_list_get(made, i), mix_list_get(expected, i),
                 bound);
}

static void check_model(const char *name) {
  const bounds b = hub_bounds(name);
  mix_model *model = mix_model_load(model_path(name, ".keras"));
  if (mix_error() != MIX_OK) fail_msg("%s: %s", name, mix_error_message());
  json_t *recorded = json_load_file(model_path(name, ".json"), 0, NULL);
  mix_npz *npz = mix_npz_open(model_path(name, ".npz"));
  assert_non_null(recorded);
  assert_no_error();
  const int examples = (int)json_integer_value(json_object_get(recorded, "examples"));
  mix_list *made = mix_model_predict(model, model_arrays(npz, "x"), .batch_size = examples);
  if (mix_error() != MIX_OK) fail_msg("%s: %s", name, mix_error_message());
  mix_list *expected = model_arrays(npz, "predict");
  assert_int_equal(mix_list_count(made), mix_list_count(expected));
  for (int i = 0; i < mix_list_count(expected); i++)
    assert_close(name, "output", i, mix_list_get(made, i), mix_list_get(expected, i), b.outputs);
  check_written(name, model, npz, examples, b.outputs);
  if (trains(name)) check_steps(name, model, npz, json_object_get(recorded, "losses"), &b);
  const json_t *scale = json_object_get(recorded, "loss_scale");
  if (scale && trains(name))
    assert_true(at(mix_optimizer_loss_scale(mix_model_optimizer(model)), 0) == json_number_value(scale));
  json_decref(recorded);
}

static void every_model_of_keras_hub(void **state) {
  (void)state;
  recordings = "hub";
  if (!getenv("MIXTAPE_REFERENCE_DIR")) SKIP("MIXTAPE_REFERENCE_DIR is unset");
  find_models();
  assert_true(model_count > 0);
  mix_set_accumulate("exact");
  for (int i = 0; i < model_count; i++)
    MIX_SCOPE {
      if (is_in_part(i)) check_model(models[i]);
    }
  for (int i = 0; i < model_count; i++) free(models[i]);
}

/* What KerasHub published as a folder predicts the same from a file, and from a folder written here. */
static void folders(void **state) {
  (void)state;
  static const char *const names[] = {"bert", "gpt2", "llama", "gemma"};
  recordings = "hub";
  if (!getenv("MIXTAPE_REFERENCE_DIR")) SKIP("MIXTAPE_REFERENCE_DIR is unset");
  mix_set_accumulate("exact");
  for (size_t n = 0; n < sizeof names / sizeof *names; n++)
    MIX_SCOPE {
      char folder[64], file[64];
      snprintf(folder, sizeof folder, "presets/%s", names[n]);
      snprintf(file, sizeof file, "hub-%s", names[n]);
      mix_model *model = mix_model_load(model_path(folder, ""));
      mix_npz *npz = mix_npz_open(model_path(file, ".npz"));
      mix_model_save(model, in_folder("preset/"));
      mix_model_save(model, in_folder("preset.keras"));
      mix_list *x = model_arrays(npz, "x"), *expected = mix_model_predict(model, x, .batch_size = 4);
      mix_list *made[] = {mix_model_predict(mix_model_load(in_folder("preset")), x, .batch_size = 4),
                          mix_model_predict(mix_model_load(in_folder("preset.keras")), x, .batch_size = 4)};
      assert_no_error();
      for (int i = 0; i < 2 * mix_list_count(expected); i++)
        assert_close(names[n], "output", i / 2, mix_list_get(made[i % 2], i / 2),
                     mix_list_get(expected, i / 2), 0);
    }
}

int main(void) {
  const struct CMUnitTest tests[] = {TEST(every_model_of_keras_hub), TEST(folders)};
  return cmocka_run_group_tests_name("models of KerasHub", tests, folder_begin, folder_end);
}
