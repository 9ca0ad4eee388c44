/* The recorded models through the library: each loads, predicts what Keras predicted, and trains on as Keras
 * did; those with layers that do not exist yet are refused by the layer's name. */
/* Holds docs/NUMERICS.md: Loops and recurrent layers. */
#include "saving/reference_models.h"

/* ---- one model ---- */

static void check_predictions(const char *name, mix_model *model, mix_npz *npz, int examples, double bound) {
  mix_list *made = mix_model_predict(model, model_arrays(npz, "x"), .batch_size = examples);
  assert_no_error();
  mix_list *expected = model_arrays(npz, "predict");
  assert_int_equal(mix_list_count(made), mix_list_count(expected));
  for (int i = 0; i < mix_list_count(expected); i++)
    assert_close(name, "output", i, mix_list_get(made, i), mix_list_get(expected, i), bound);
}

static void check_training(const char *name, mix_model *model, mix_npz *npz, const json_t *losses,
                           const bounds *b) {
  mix_list *x = model_arrays(npz, "x"), *y = model_arrays(npz, "y");
  for (int i = 0; i < (int)json_array_size(losses); i++)
    MIX_SCOPE {
      const double expected = json_number_value(json_array_get(losses, (size_t)i));
      mix_logs *logs = mix_model_train_on_batch(model, x, y);
      assert_no_error();
      const double got = mix_logs_get(logs, "loss");
      if (i < b->losses && !(fabs(got - expected) <= b->loss * (i + 1) * fabs(expected)))
        fail_msg("%s: loss %d is %.9g; Keras has %.9g", name, i + 1, got, expected);
    }
  mix_list *expected = model_arrays(npz, "final"), *weights = mix_model_get_weights(model);
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

/* False: it has layers that are missing. Applications are run by tests/cli/test_reference_applications_slow.c
 * alone. */
static bool check_model(const char *name) {
  char class_name[64];
  const bounds b = bounds_of(name);
  const bool lacking = has_missing_layer(name, class_name);
  if (is_application(name)) return !lacking;
  mix_model *model = mix_model_load(model_path(name, ".keras"));
  if (lacking) {
    assert_error(MIX_VALUE_ERROR, "there is no built-in layer class");
    return false;
  }
  assert_no_error();
  json_t *recorded = json_load_file(model_path(name, ".json"), 0, NULL);
  assert_non_null(recorded);
  mix_npz *npz = mix_npz_open(model_path(name, ".npz"));
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
  find_models();
  assert_true(model_count > MODELS_WITH_MISSING_LAYERS);
  mix_set_accumulate("exact");
  for (int i = 0; i < model_count; i++)
    MIX_SCOPE {
      if (!check_model(models[i])) missing++;
    }
  for (int i = 0; i < model_count; i++) free(models[i]);
  print_message("%d of %d models have layers that are missing\n", missing, model_count);
  assert_int_equal(missing, MODELS_WITH_MISSING_LAYERS);
}

int main(void) {
  const struct CMUnitTest tests[] = {TEST(every_model_whose_layers_exist)};
  return cmocka_run_group_tests_name("reference models", tests, NULL, NULL);
}
