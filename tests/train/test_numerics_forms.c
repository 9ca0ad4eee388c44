/* The numerics report in a training run, as table, JSON and picture, and its errors. */
/* Holds docs/NUMERICS.md: Numerics report. */
#include "train/numerics_support.h"
#include "support/picture.h"
#include <jansson.h>
#include <unistd.h>

/* ---- in a training run ---- */

static char logged[4096];
static void keep_log(void *context, mix_log_level level, const char *message) {
  (void)context;
  if (level == MIX_LOG_WARNING && !strncmp(message, "numerics: ", 10))
    snprintf(logged, sizeof logged, "%s", message);
}

static void a_stall_in_training_names_the_layer(void **state) {
  (void)state;
  for (int stop = 0; stop < 2; stop++) {
    logged[0] = 0;
    mix_model *model = overflowing_model(NULL);
    mix_numerics *report = mix_numerics_new();
    mix_set_log_callback(keep_log, NULL);
    mix_history *history =
        mix_model_fit(model, hundreds(), ones(), .batch_size = 8, .epochs = 15, .verbose = MIX_SILENT,
                      .callbacks = mix_list_of(mix_numerics_report(.report = report, .stop_at_stall = stop)));
    mix_set_log_callback(NULL, NULL);
    assert_no_error();
    assert_int_equal(mix_history_steps(history), stop ? 17 : 30);
    assert_non_null(strstr(logged, "stalled"));
    assert_non_null(strstr(logged, "big"));
    assert_non_null(strstr(logged, "float32"));
    assert_string_equal(mix_numerics_layer(report), "big");
  }
}

/* Every fifth step is watched. After a skipped step each one is, until one is applied. */
static void sparse_watching_becomes_dense_after_a_skipped_step(void **state) {
  (void)state;
  mix_numerics *report = mix_numerics_new();
  examples e = examples_of(64, 20, 10);
  mix_set_global_policy("mixed_float16");
  mix_model *good = compiled_guide_model(20, 16);
  mix_model_fit(good, e.x, e.y, .epochs = 6, .verbose = MIX_SILENT,
                .callbacks = mix_list_of(mix_numerics_report(.report = report, .every = 5)));
  assert_no_error();
  assert_int_equal(mix_numerics_steps(report), 12);
  assert_int_equal(mix_numerics_watched(report), 3);
  mix_model *bad = overflowing_model(NULL);
  mix_model_fit(bad, hundreds(), ones(), .batch_size = 16, .epochs = 4, .verbose = MIX_SILENT,
                .callbacks = mix_list_of(mix_numerics_report(.report = report, .every = 100)));
  assert_int_equal(mix_numerics_watched(report), 4);
  assert_int_equal(mix_numerics_steps(report), 4);              /* restarted */
  assert_string_equal(mix_numerics_status(report), "overflow"); /* in the forward pass: no scale helps */
  report = scaled_run(mix_loss_scale_optimizer(mix_sgd(), .initial_scale = 0x1p60), 4);
  assert_string_equal(mix_numerics_status(report), "searching");
}

/* Keras 3 has no minimum scale: a stall is a number of consecutive skips. */
static void a_stall_without_a_floor(void **state) {
  (void)state;
  mix_set_semantics("keras3");
  mix_numerics *report =
      mix_numerics_run(overflowing_model(NULL), hundreds(), ones(), .steps = 60, .stall = 25);
  assert_no_error();
  assert_int_equal(mix_numerics_steps(report), 25);
  assert_string_equal(mix_numerics_status(report), "stalled");
  assert_string_equal(mix_numerics_layer(report), "big");
}

/* ---- output formats ---- */

static void the_json_holds_everything(void **state) {
  (void)state;
  mix_numerics *report =
      mix_numerics_run(overflowing_model(NULL), hundreds(), ones(), .steps = 3, .batch_size = 16);
  json_t *root = json_loads(mix_numerics_json(report), 0, NULL);
  assert_non_null(root);
  assert_string_equal(json_string_value(json_object_get(root, "policy")), "mixed_float16");
  assert_int_equal(json_integer_value(json_object_get(root, "steps")), 3);
  assert_int_equal(json_integer_value(json_object_get(root, "watched")), 3);
  assert_int_equal(json_integer_value(json_object_get(root, "skipped")), 3);
  json_t *scale = json_object_get(root, "loss_scale");
  assert_true(json_is_true(json_object_get(scale, "dynamic")));
  assert_near(json_number_value(json_object_get(scale, "first")), 32768, 0);
  assert_near(json_number_value(json_object_get(scale, "last")), 8192, 0);
  json_t *verdict = json_object_get(root, "verdict");
  assert_string_equal(json_string_value(json_object_get(verdict, "status")), mix_numerics_status(report));
  assert_string_equal(json_string_value(json_object_get(verdict, "layer")), "big");
  assert_true(json_array_size(json_object_get(verdict, "advice")) > 0);
  assert_int_equal(json_array_size(json_object_get(root, "events")), 3);
  json_t *event = json_array_get(json_object_get(root, "events"), 0);
  assert_string_equal(json_string_value(json_object_get(event, "pass")), "forward");
  assert_string_equal(json_string_value(json_object_get(event, "layer")), "big");
  assert_string_equal(json_string_value(json_object_get(event, "value")), "inf");
  json_t *tensors = json_object_get(root, "tensors"), *tensor;
  assert_int_equal(json_array_size(tensors), mix_numerics_row_count(report));
  size_t i;
  json_array_foreach(tensors, i, tensor) {
    static const char *const parts[] = {"forward", "gradient"};
    for (int p = 0; p < 2; p++) {
      json_t *s = json_object_get(tensor, parts[p]);
      assert_non_null(s);
      if (json_is_null(s)) continue;
      int64_t sum = 0;
      size_t b;
      json_t *count;
      json_array_foreach(json_object_get(json_object_get(s, "histogram"), "counts"), b, count) sum +=
          json_integer_value(count);
      static const char *const others[] = {"zeros", "infinities", "nans"};
      for (int o = 0; o < 3; o++) sum += json_integer_value(json_object_get(s, others[o]));
      assert_int_equal(sum, json_integer_value(json_object_get(s, "elements")));
      assert_true(sum > 0);
    }
  }
  json_decref(root);
}

static void the_table_shows_layers_and_failures(void **state) {
  (void)state;
  mix_numerics *report =
      mix_numerics_run(overflowing_model(NULL), hundreds(), ones(), .steps = 3, .batch_size = 16);
  const char *table = mix_numerics_table(report, false);
  static const char *const parts[] = {"Numerics of 3 steps",
                                      "mixed_float16",
                                      "3 skipped",
                                      "Verdict: ",
                                      "steps 1-3",
                                      "big/matmul",
                                      "small/kernel",
                                      "last/output",
                                      "Gradients of the scaled loss",
                                      "left out"};
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
    if (!strstr(table, parts[i])) fail_msg("'%s' is missing in:\n%s", parts[i], table);
  assert_null(strstr(table, "small/matmul"));
  assert_non_null(strstr(mix_numerics_table(report, true), "small/matmul"));
}

/* The mark of an infinity is a box of 40 by 20, partly covered by its letters. */
static void the_picture_can_be_read(void **state) {
  (void)state;
  const char *path = "numerics-test.png";
  mix_numerics *report =
      mix_numerics_run(overflowing_model(NULL), hundreds(), ones(), .steps = 2, .batch_size = 16);
  assert_int_equal(mix_numerics_write_png(report, path), MIX_OK);
  picture bad = read_picture(path);
  assert_true(bad.image.width >= 1100 && bad.image.width < 2400);
  assert_true(pixels_of(&bad, 0xd62728) > 400);
  assert_true(pixels_of(&bad, 0xffffff) > (int)(bad.image.width * bad.image.height / 3));
  report = mix_numerics_run(overflowing_model("float32"), hundreds(), ones(), .steps = 2, .batch_size = 16);
  assert_int_equal(mix_numerics_write_png(report, path), MIX_OK);
  picture good = read_picture(path);
  assert_int_equal(pixels_of(&good, 0xd62728), 0);
  assert_true(pixels_of(&good, 0x08306b) > 100);     /* the colour of "all values in one power of two" */
  assert_true(good.image.height < bad.image.height); /* no intermediate value overflows here */
  free(good.pixels);
  free(bad.pixels);
  assert_int_equal(unlink(path), 0);
}

static void the_callback_by_name_writes_its_files(void **state) {
  (void)state;
  mix_callback *callback = mix_callback_from_text("NumericsReport:every=2,json=n.json,table=n.txt,png=n.png");
  mix_model_fit(product_model(1, 0.125), counting(4), counting(4), .batch_size = 1, .verbose = MIX_SILENT,
                .callbacks = mix_list_of(callback));
  assert_no_error();
  json_t *root = json_load_file("n.json", 0, NULL);
  assert_int_equal(json_integer_value(json_object_get(root, "watched")), 2);
  assert_int_equal(json_integer_value(json_object_get(root, "steps")), 4);
  json_decref(root);
  picture p = read_picture("n.png");
  free(p.pixels);
  assert_int_equal(unlink("n.json") | unlink("n.txt") | unlink("n.png"), 0);
}

/* ---- bad input ---- */

static void wrong_calls_are_errors(void **state) {
  (void)state;
  mix_model *model = product_model(1, 0.125);
  mix_tensor *x = counting(4);
  assert_null(mix_numerics_run(model, x, x, .steps = -1));
  assert_error(MIX_VALUE_ERROR, "steps");
  assert_null(mix_numerics_report(.every = -2));
  assert_error(MIX_VALUE_ERROR, "every");
  assert_null(mix_numerics_report(.stall = -2));
  assert_error(MIX_VALUE_ERROR, "stall");
  assert_null(mix_numerics_report(.png = ""));
  assert_error(MIX_VALUE_ERROR, "empty");
  assert_null(mix_numerics_report(.report = (mix_numerics *)x));
  assert_error(MIX_TYPE_ERROR, "numerics report");
  assert_null(mix_numerics_run(guide_model(3, 3), x, x, .steps = 1));
  assert_error(MIX_RUNTIME_ERROR, "compiled");
  assert_null(mix_model_fit(
      model, x, x, .verbose = MIX_SILENT,
      .callbacks = mix_list_of(mix_numerics_report(.every = 1), mix_numerics_report(.every = 1))));
  assert_error(MIX_RUNTIME_ERROR, "one numerics report");
  mix_numerics *report = mix_numerics_new();
  assert_string_equal(mix_numerics_status(report), "no steps");
  mix_numerics_row row;
  assert_int_equal(mix_numerics_get_row(report, 0, &row, sizeof row), MIX_VALUE_ERROR);
  assert_error(MIX_VALUE_ERROR, "index 0 of 0");
  assert_non_null(strstr(mix_numerics_table(report, true), "No step"));
  assert_non_null(strstr(mix_numerics_json(report), "\"tensors\":[]"));
  assert_int_equal(mix_numerics_write_png(report, NULL), MIX_TYPE_ERROR);
  assert_error(MIX_TYPE_ERROR, "path");
  /* no watcher is left: the model still trains */
  assert_non_null(mix_model_fit(model, x, x, .verbose = MIX_SILENT));
  assert_no_error();
}

/* The check comes before training: the weight is unchanged. */
static void a_file_that_cannot_be_written_fails_before_training(void **state) {
  (void)state;
  static const char *const texts[] = {"numerics_report:png=/nowhere/a.png", "numerics_report:json=/nowhere/a",
                                      "numerics_report:table=/"};
  for (int i = 0; i < 3; i++) {
    mix_model *model = product_model(3, 0.125);
    assert_null(mix_model_fit(model, counting(4), counting(4), .verbose = MIX_SILENT,
                              .callbacks = mix_list_of(mix_callback_from_text(texts[i]))));
    assert_error(MIX_IO_ERROR, "cannot write");
    assert_near(weight_at(model, 0, 0), 3, 0);
  }
  mix_numerics *report = mix_numerics_run(product_model(1, 0), counting(4), counting(4), .steps = 1);
  assert_int_equal(mix_numerics_write_png(report, "/nowhere/a.png"), MIX_IO_ERROR);
  assert_error(MIX_IO_ERROR, "/nowhere/a.png");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(a_stall_in_training_names_the_layer),
      TEST(sparse_watching_becomes_dense_after_a_skipped_step),
      TEST(a_stall_without_a_floor),
      TEST(the_json_holds_everything),
      TEST(the_table_shows_layers_and_failures),
      TEST(the_picture_can_be_read),
      TEST(the_callback_by_name_writes_its_files),
      TEST(wrong_calls_are_errors),
      TEST(a_file_that_cannot_be_written_fails_before_training),
  };
  return cmocka_run_group_tests_name("model/numerics_forms", tests, NULL, NULL);
}
