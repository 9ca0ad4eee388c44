/* Files that Keras 3 and tf_keras wrote (files/record.py): they load, predict and train on, with the state of
 * their optimizers, as after loading in Keras. Bounds are those of the recorded models
 * (test_reference_models.c). */
#include "model/support.h"

#include "saving/recorded_files.h"
#include "support/expect.h"

/* A case of the script; relative bounds of outputs, losses (times the step) and final weights. */
typedef struct recorded {
  const char *name;
  double outputs, losses, weights; /* 0: not compared */
} recorded;
static const recorded float32_cases[] = {
    {"nested", 1e-5, 1e-5, 5e-5},    {"scaled", 1e-5, 1e-5, 5e-5},   {"schedule", 1e-5, 1e-5, 5e-5},
    {"nadam", 1e-5, 1e-5, 5e-5},     {"averages", 1e-5, 1e-5, 5e-5}, {"custom", 1e-5, 1e-5, 5e-5},
    {"adafactor", 1e-5, 1e-5, 5e-5}, {"conv", 1e-5, 1e-5, 5e-5},     {"masked", 1e-5, 1e-5, 5e-5}};
static const recorded accumulate = {"accumulate", 1e-5, 1e-5, 5e-5};
static const recorded old = {"old", 1e-5, 1e-5, 5e-5}, old_scaled = {"old_scaled", 1e-5, 1e-5, 5e-5};
static const recorded policies = {"policies", 5e-2, 2e-2, 0}; /* as those in bfloat16 */
static const char *const generations[] = {"keras3", "tf_keras"};

/* ---- comparing ---- */

static void assert_close(const char *what, mix_tensor *got, mix_tensor *expected, double bound) {
  const int64_t count = mix_shape_size(mix_tensor_shape(expected));
  double largest = 0, distance = 0;
  assert_non_null(got);
  assert_true(mix_shape_equal(mix_tensor_shape(got), mix_tensor_shape(expected)));
  for (int64_t i = 0; i < count; i++) {
    largest = fmax(largest, fabs(at(expected, i)));
    const double off = fabs(at(got, i) - at(expected, i));
    distance = off <= distance ? distance : off;
  }
  if (!(distance <= bound * largest)) fail_msg("%s is off by %g of %g", what, distance, largest);
}

static void check_predictions(const recorded *r, mix_model *model, mix_npz *npz, const char *what) {
  mix_list *made = mix_model_predict(model, arrays(npz, "x")), *expected = arrays(npz, "predict");
  assert_no_error();
  assert_true(mix_list_count(expected) > 0);
  assert_int_equal(mix_list_count(made), mix_list_count(expected));
  for (int i = 0; i < mix_list_count(expected); i++)
    assert_close(what, mix_list_get(made, i), mix_list_get(expected, i), r->outputs);
}

/* `kind`: what Keras went on from. */
static void check_training(const recorded *r, mix_model *model, mix_npz *npz, const char *kind,
                           const char *what) {
  char name[64];
  snprintf(name, sizeof name, "%s_losses", kind);
  mix_tensor *losses = mix_npz_get(npz, name);
  assert_non_null(losses);
  for (int i = 0; i < 3; i++) {
    mix_logs *logs = mix_model_train_on_batch(model, arrays(npz, "x"), arrays(npz, "y"));
    assert_no_error();
    const double got = mix_logs_get(logs, "loss"), expected = at(losses, i);
    if (!(fabs(got - expected) <= r->losses * (i + 1) * fabs(expected)))
      fail_msg("%s: loss %d is %.9g; Keras has %.9g", what, i + 1, got, expected);
  }
  snprintf(name, sizeof name, "%s_final", kind);
  mix_list *finals = arrays(npz, name), *weights = mix_model_get_weights(model);
  assert_int_equal(mix_list_count(weights), mix_list_count(finals));
  for (int i = 0; r->weights > 0 && i < mix_list_count(finals); i++)
    assert_close(what, mix_list_get(weights, i), mix_list_get(finals, i), r->weights);
  snprintf(name, sizeof name, "%s_scale", kind);
  const double scale = at(mix_npz_get(npz, name), 0);
  if (scale != 0) assert_true(at(mix_optimizer_loss_scale(mix_model_optimizer(model)), 0) == scale);
}

/* ---- whole models ---- */

/* `like`: the kind of file that Keras went on from in the same way. */
static void check_file(const recorded *r, const char *generation, const char *end, const char *like) {
  char what[128];
  snprintf(what, sizeof what, "%s %s%s", generation, r->name, end);
  const char *path = extract(generation, r->name, end);
  if (!path) return;
  mix_model *model = mix_model_load(path, .custom_layers = classes);
  if (!model) fail_msg("%s: %s", what, mix_error_message());
  mix_npz *npz = mix_npz_open(extract(generation, r->name, ".npz"));
  check_predictions(r, model, npz, what);
  check_training(r, model, npz, like, what);
}

static void archives(void **state) {
  (void)state;
  for (int g = 0; g < 2; g++)
    for (size_t i = 0; i < sizeof float32_cases / sizeof *float32_cases; i++)
      check_file(&float32_cases[i], generations[g], ".keras", "keras");
  check_file(&accumulate, "keras3", ".keras", "keras");
  check_file(&old, "tf_keras", ".keras", "keras");
  check_file(&old_scaled, "tf_keras", ".keras", "keras");
}

/* From .h5 tf_keras loses the state of a LossScaleOptimizerV3. Keras 3 does not go on at all. */
static void whole_models_in_hdf5(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof float32_cases / sizeof *float32_cases; i++) {
    check_file(&float32_cases[i], "keras3", ".h5", "keras");
    const char *name = float32_cases[i].name;
    const bool lost = !strcmp(name, "scaled");
    check_file(&float32_cases[i], "tf_keras", ".h5", lost ? "keras" : "h5");
  }
  check_file(&accumulate, "keras3", ".h5", "keras");
  check_file(&old, "tf_keras", ".h5", "h5");
  check_file(&old_scaled, "tf_keras", ".h5", "h5");
}

/* A layer under mixed_float16 makes compile scale the loss, whatever the global policy is. */
static void policies_of_single_layers(void **state) {
  (void)state;
  for (int g = 0; g < 2; g++) {
    check_file(&policies, generations[g], ".keras", "keras");
    mix_model *model = mix_model_load(extract(generations[g], "policies", ".keras"));
    assert_no_error();
    assert_true(mix_optimizer_dynamic(mix_model_optimizer(model)));
    assert_string_equal(mix_policy_name(mix_model_policy(model)), "mixed_float16");
    mix_model *plain = mix_model_load(extract(generations[g], "policies", ".keras"), .no_compile = true);
    assert_no_error();
    assert_null(mix_model_optimizer(plain));
  }
  assert_true(
      mix_optimizer_dynamic(mix_model_optimizer(mix_model_load(extract("tf_keras", "policies", ".h5")))));
}

static void another_generation_than_the_file(void **state) {
  (void)state;
  mix_model *model =
      mix_model_load(extract("keras3", "averages", ".keras"), .semantics = mix_semantics_named("tf_keras"));
  assert_no_error();
  check_predictions(&float32_cases[4], model, mix_npz_open(extract("keras3", "averages", ".npz")),
                    "averages");
}

/* ---- weights ---- */

/* The model of the case with new weights. `compiled`: with an optimizer of no steps. */
static mix_model *fresh(const char *generation, const char *name, bool compiled) {
  size_t size;
  char member[64];
  snprintf(member, sizeof member, "%s.keras", name);
  extract(generation, name, ".keras");
  mix_zip *zip = mix_zip_open(in_folder(member));
  char *config = mix_zip_read(zip, "config.json", SIZE_MAX - 1, &size);
  assert_non_null(config);
  mix_set_seed(99);
  mix_model *model = mix_model_from_json(config, .no_compile = !compiled, .custom_layers = classes);
  mix_free(config);
  assert_no_error();
  if (compiled)
    mix_optimizer_build(mix_optimizer_scales_loss(mix_model_optimizer(model))
                            ? mix_optimizer_inner(mix_model_optimizer(model))
                            : mix_model_optimizer(model),
                        mix_model_trainable_variables(model));
  return model;
}

static void check_weights(const recorded *r, const char *generation, const char *end, bool compiled) {
  char what[128];
  snprintf(what, sizeof what, "%s %s%s", generation, r->name, end);
  const char *path = extract(generation, r->name, end);
  if (!path) return;
  mix_model *model = fresh(generation, r->name, compiled);
  mix_npz *npz = mix_npz_open(extract(generation, r->name, ".npz"));
  mix_model_load_weights(model, path);
  if (mix_error()) fail_msg("%s: %s", what, mix_error_message());
  check_predictions(r, model, npz, what);
  if (compiled) check_training(r, model, npz, "keras", what);
}

static void weights_by_path(void **state) {
  (void)state;
  for (int g = 0; g < 2; g++)
    for (size_t i = 0; i < sizeof float32_cases / sizeof *float32_cases; i++) {
      check_weights(&float32_cases[i], generations[g], ".weights.h5", true);
      check_weights(&float32_cases[i], generations[g], ".weights.h5", false);
      check_weights(&float32_cases[i], generations[g], ".keras", false);
    }
  for (int g = 0; g < 2; g++) check_weights(&policies, generations[g], ".weights.h5", false);
}

static void legacy_weights_in_order(void **state) {
  (void)state;
  for (int g = 0; g < 2; g++)
    for (size_t i = 0; i < sizeof float32_cases / sizeof *float32_cases; i++) {
      check_weights(&float32_cases[i], generations[g], ".legacy.h5", false);
      check_weights(&float32_cases[i], generations[g], ".h5", false);
      check_weights(&float32_cases[i], generations[g], ".h5", true);
    }
}

static mix_model *two_layers(const char *first, const char *second, int units) {
  mix_tensor *x = mix_input(.shape = MIX_SHAPE(4));
  mix_tensor *y = mix_call(mix_dense(.units = 3, .name = first), x);
  return mix_model_new(x, mix_call(mix_dense(.units = units, .name = second), y));
}

/* Z11: by order into layers of other names; by name those of other names stay as they are. */
static void Z11_by_order_and_by_name(void **state) {
  (void)state;
  const char *path = extract("tf_keras", "old", ".legacy.h5");
  mix_model *whole = mix_model_load(extract("tf_keras", "old", ".h5"));
  mix_model *other = two_layers("a", "b", 2), *named = two_layers("dense_1", "b", 2);
  assert_int_equal(mix_model_load_weights(other, path), MIX_OK);
  for (int w = 0; w < 4; w++) assert_true(weight_at(other, w, 0) == weight_at(whole, w, 0));
  const double before[] = {weight_at(named, 0, 0), weight_at(named, 2, 0)};
  const mix_load_weights_options options = {.size = sizeof options, .path = path, .by_name = true};
  assert_int_equal(mix_model_load_weights_with(named, &options), MIX_OK);
  assert_true(weight_at(named, 0, 0) == weight_at(whole, 0, 0) && weight_at(named, 0, 0) != before[0]);
  assert_true(weight_at(named, 2, 0) == before[1]);
}

static void Z12_names_in_pieces(void **state) {
  (void)state;
  mix_model *whole = mix_model_load(extract("tf_keras", "old", ".h5")), *other = two_layers("a", "b", 2);
  assert_int_equal(mix_model_load_weights(other, extract("tf_keras", "pieces", ".legacy.h5")), MIX_OK);
  for (int w = 0; w < 4; w++) assert_true(weight_at(other, w, 0) == weight_at(whole, w, 0));
}

static void Z06_layers_of_other_names(void **state) {
  (void)state;
  mix_model *whole = mix_model_load(extract("keras3", "scaled", ".keras")), *other = two_layers("a", "b", 2);
  assert_int_equal(mix_model_load_weights(other, extract("keras3", "scaled", ".weights.h5")), MIX_OK);
  for (int w = 0; w < 4; w++) assert_true(weight_at(other, w, 0) == weight_at(whole, w, 0));
}

/* Z07, and what else does not fit. The model stays as it was. */
static void Z07_weights_that_do_not_fit(void **state) {
  (void)state;
  static const char *const ends[] = {".weights.h5", ".legacy.h5"};
  for (int e = 0; e < 2; e++) {
    const char *path = extract("tf_keras", "old", ends[e]);
    mix_model *model = two_layers("a", "b", 5);
    const double before = weight_at(model, 0, 0);
    mix_model_load_weights(model, path);
    expect_error(MIX_VALUE_ERROR, "'b/kernel' has shape (3, 5), but");
    assert_true(weight_at(model, 0, 0) == before);
    const mix_load_weights_options options = {.size = sizeof options, .path = path, .skip_mismatch = true};
    assert_int_equal(mix_model_load_weights_with(model, &options), MIX_OK);
    assert_true(weight_at(model, 0, 0) != before);
  }
}

static int begin(void **state) { return folder_begin(state) || setup(state); }
static int end(void **state) { return teardown(state) || folder_end(state); }

int main(void) {
#define FILES_TEST(function) cmocka_unit_test_setup_teardown(function, begin, end)
  const struct CMUnitTest tests[] = {FILES_TEST(archives),
                                     FILES_TEST(whole_models_in_hdf5),
                                     FILES_TEST(policies_of_single_layers),
                                     FILES_TEST(another_generation_than_the_file),
                                     FILES_TEST(weights_by_path),
                                     FILES_TEST(legacy_weights_in_order),
                                     FILES_TEST(Z12_names_in_pieces),
                                     FILES_TEST(Z06_layers_of_other_names),
                                     FILES_TEST(Z11_by_order_and_by_name),
                                     FILES_TEST(Z07_weights_that_do_not_fit)};
  return cmocka_run_group_tests_name("files of Keras", tests, NULL, NULL);
}
