/* Files of tf_keras whose functional model adds a loss and metrics, which it writes as layers AddLoss and
 * AddMetric behind those of the outputs (recorded/added_layers.py). */
#include "model/support.h"

#include "base/alloc.h"
#include "formats/zip_members.h"
#include "saving/recorded/added_layers.inc"
#include "support/expect.h"
#include "support/folder.h"

static const char *const files[] = {"added.keras", "added.h5"};

/* As the script has them. */
static mix_tensor *values(mix_shape shape, int phase) {
  float numbers[64];
  const int64_t count = mix_shape_size(shape);
  for (int64_t i = 0; i < count; i++) numbers[i] = (float)(0.5 * sin(1 + 0.7 * (double)i + phase));
  return mix_tensor_from(numbers, MIX_FLOAT32, shape);
}

static mix_model *load(const char *name) {
  char path[1024];
  size_t size;
  snprintf(path, sizeof path, "%s/saving/recorded/added_layers.zip", getenv("MIXTAPE_TESTS_DIR"));
  mix_zip *zip = mix_zip_open(path);
  void *bytes = zip ? mix_zip_read(zip, name, SIZE_MAX - 1, &size) : NULL;
  assert_non_null(bytes);
  FILE *file = fopen(in_folder(name), "wb");
  assert_non_null(file);
  assert_int_equal(fwrite(bytes, 1, size, file), size);
  assert_int_equal(fclose(file), 0);
  mix_free(bytes);
  return mix_model_load(in_folder(name));
}

/* Sums of dozens of products of numbers below 1 in float32, in another order, over 6 steps. */
#define NEAR 2e-6

static void assert_logs(const mix_logs *logs, const double *expected, int stride) {
  static const char *const names[] = {"loss", "mae", "size", "largest"};
  assert_no_error();
  for (int n = 0; n < 4; n++) assert_near(mix_logs_get(logs, names[n]), expected[n * stride], NEAR);
}

static void check(mix_model *model) {
  assert_no_error();
  mix_tensor *x = values(MIX_SHAPE(8, 5), 3);
  mix_tensor *y = mix_list_get(mix_model_predict(model, x), 0);
  for (int i = 0; i < 8; i++) assert_near(at(y, i), recorded_output[i], NEAR);
  assert_logs(mix_model_evaluate(model, values(MIX_SHAPE(6, 5), 0), values(MIX_SHAPE(6, 1), 7),
                                 .batch_size = 4, .verbose = MIX_SILENT),
              recorded_evaluation, 1);
  const mix_history *history = mix_model_fit(model, x, values(MIX_SHAPE(8, 1), 5), .batch_size = 4,
                                             .no_shuffle = true, .epochs = 2, .verbose = MIX_SILENT);
  for (int e = 0; e < 2; e++) assert_logs(mix_history_epoch(history, e), recorded_history + e, 2);
  mix_tensor *side = mix_variable_true_value(variable_at(model, "side/kernel"));
  for (int i = 0; i < 15; i++) assert_near(at(side, i), recorded_side[i], NEAR);
}

/* The layer that the loss alone reads has its weights, and trains. */
static void files_of_tf_keras(void **state) {
  (void)state;
  for (int f = 0; f < 2; f++) check(load(files[f]));
}

static void what_is_saved_again(void **state) {
  (void)state;
  for (int f = 0; f < 4; f++) {
    const char *path = in_folder(f % 2 ? "again.h5" : "again.keras");
    assert_int_equal(mix_model_save(load(files[f / 2]), path), MIX_OK);
    check(mix_model_load(path));
  }
  mix_model *model = load(files[0]), *from_text = mix_model_from_json(mix_model_to_json(model));
  assert_no_error();
  assert_string_equal(mix_model_to_json(from_text), mix_model_to_json(model));
}

static void clones_add_them_too(void **state) {
  (void)state;
  mix_model *model = load(files[0]), *clone = mix_model_clone(model);
  mix_model_set_weights(clone, mix_model_get_weights(model));
  mix_model_compile(clone, .loss = "mse", .metrics = {"mae"});
  assert_logs(mix_model_evaluate(clone, values(MIX_SHAPE(6, 5), 0), values(MIX_SHAPE(6, 1), 7),
                                 .batch_size = 4, .verbose = MIX_SILENT),
              recorded_evaluation, 1);
}

static void what_is_refused(void **state) {
  (void)state;
  mix_set_semantics("tf_keras");
  static const struct {
    const char *config, *message;
  } rows[] = {
      {"\"class_name\": \"AddMetric\", \"config\": {\"aggregation\": \"sum\", \"metric_name\": \"m\"}",
       "mean"},
      {"\"class_name\": \"AddMetric\", \"config\": {\"aggregation\": \"mean\"}", "metric_name"},
      {"\"class_name\": \"AddLoss\", \"config\": {\"unconditional\": 3}", "unconditional"}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    char text[256];
    snprintf(text, sizeof text, "{%s}", rows[i].config);
    mix_layer_deserialize(text, NULL);
    assert_int_not_equal(mix_error(), MIX_OK);
    assert_non_null(strstr(mix_error_message(), rows[i].message));
    mix_error_clear();
  }
  mix_model_save(load(files[0]), in_folder("k3.keras"), .semantics = mix_semantics_named("keras3"));
  expect_error(MIX_UNSUPPORTED, "keras3 has no class TFOpLambda");
}

int main(void) {
  const struct CMUnitTest tests[] = {TEST(files_of_tf_keras), TEST(what_is_saved_again),
                                     TEST(clones_add_them_too), TEST(what_is_refused)};
  return cmocka_run_group_tests(tests, folder_begin, folder_end);
}
