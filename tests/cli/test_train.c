/* `mixtape train`: what it prints, logs and writes, from the same data in several forms. */
#include "base/processor.h"
#include "cli/program.h"

enum { ROWS = 100, SIDE = 4, TEST_ROWS = 30 };

/* Images whose brightest corner is the class, 0 to 3, as bytes (rows, 4, 4) and as floats (rows, 16) = bytes
 * / 255. */
static void write_data(void) {
  static uint8_t bytes[ROWS + TEST_ROWS][SIDE * SIDE];
  static double scaled[ROWS + TEST_ROWS][SIDE * SIDE];
  static int64_t labels[ROWS + TEST_ROWS];
  uint32_t noise = 1;
  for (int i = 0; i < ROWS + TEST_ROWS; i++) {
    labels[i] = i % 4;
    for (int p = 0; p < SIDE * SIDE; p++) {
      noise = noise * 1664525u + 1013904223u;
      bytes[i][p] = (uint8_t)(noise >> 24 & 63);
    }
    bytes[i][(labels[i] & 1 ? 3 : 0) + (labels[i] & 2 ? 12 : 0)] = 255;
    for (int p = 0; p < SIDE * SIDE; p++) scaled[i][p] = (double)((float)bytes[i][p] / 255.0f);
  }
  static const char *const names[] = {"x_train", "y_train", "x_test", "y_test"};
  MIX_SCOPE {
    mix_tensor *y = mix_tensor_from(labels, MIX_INT64, MIX_SHAPE(ROWS)),
               *y_test = mix_tensor_from(labels + ROWS, MIX_INT64, MIX_SHAPE(TEST_ROWS));
    mix_tensor *x = mix_tensor_from(bytes, MIX_UINT8, MIX_SHAPE(ROWS, SIDE, SIDE)),
               *x_test = mix_tensor_from(bytes[ROWS], MIX_UINT8, MIX_SHAPE(TEST_ROWS, SIDE, SIDE));
    mix_npz_save(in_folder("bytes.npz"), 4, names, (mix_tensor *const[]){x, y, x_test, y_test});
    x = mix_tensor_from(scaled, MIX_FLOAT64, MIX_SHAPE(ROWS, SIDE * SIDE)),
    x_test = mix_tensor_from(scaled[ROWS], MIX_FLOAT64, MIX_SHAPE(TEST_ROWS, SIDE * SIDE));
    mix_npz_save(in_folder("floats.npz"), 4, names, (mix_tensor *const[]){x, y, x_test, y_test});
    mix_npz_save(in_folder("untested.npz"), 2, names, (mix_tensor *const[]){x, y});
    mix_tensor *column = mix_reshape(mix_cast(y, MIX_INT32), MIX_SHAPE(ROWS, 1));
    mix_npz_save(in_folder("column.npz"), 2, names, (mix_tensor *const[]){x, column});
    mix_npz_save(in_folder("one_hot.npz"), 2, names,
                 (mix_tensor *const[]){x, mix_one_hot(y, 10, MIX_FLOAT32)});
    mix_npz_save(in_folder("short.npz"), 2, names, (mix_tensor *const[]){x, y_test});
    mix_npz_save(in_folder("unlabelled.npz"), 1, names, (mix_tensor *const[]){x});
    mix_npz_save(in_folder("pictures.npz"), 1, names + 2, (mix_tensor *const[]){x_test});
    mix_npz_save(in_folder("outside.npz"), 2, names,
                 (mix_tensor *const[]){x, mix_add(y, mix_scalar(7, MIX_INT64))}); /* 7 to 10, of 10 classes */
    mix_npz_save(in_folder("infinite.npz"), 2, names,
                 (mix_tensor *const[]){mix_multiply(x, mix_scalar(1e300, MIX_FLOAT64)), y});
  }
  assert_int_equal(mix_error(), MIX_OK);
}

static int setup(void **state) {
  if (folder_begin(state)) return -1;
  write_data();
  return 0;
}

#define TRAIN(data) "train", "--data", in_folder(data), "--units", "8", "--seed", "3"

static json_t *member(json_t *object, const char *key) {
  json_t *value = json_object_get(object, key);
  if (!value) fail_msg("no '%s' in: %s", key, program_out);
  return value;
}

/* The keys of an object in order, joined by spaces. */
static const char *keys_of(json_t *object) {
  static char text[1024];
  const char *key;
  json_t *value;
  text[0] = 0;
  json_object_foreach(object, key, value) {
    size_t used = strlen(text);
    snprintf(text + used, sizeof text - used, "%s%s", used ? " " : "", key);
  }
  return text;
}

static json_t *train_json(const char *const *arguments) {
  assert_code(run_program_to(NULL, arguments), 0);
  return printed_object();
}
#define TRAIN_JSON(...) train_json((const char *const[]){__VA_ARGS__, "--json", "--verbose", "0", NULL})

/* ---- results ---- */

/* The accumulation mode of the model's largest product at the run's batch size. 32 times 1024 times 1024
 * multiplications are too few for longer chains, 64 times are just enough. A batch of 2 is too small for
 * blocks, but the mode is still reported. */
static void the_json_object_shows_how_products_sum(void **state) {
  (void)state;
  const uint32_t features = mix_cpu_features();
  const bool blocks = features & MIX_CPU_AVX512_FP16 && !(features & MIX_CPU_AMX_BF16);
  static const char *const batch_sizes[] = {"32", "64", "2"};
  for (size_t i = 0; i < sizeof batch_sizes / sizeof *batch_sizes; i++) {
    json_t *report = train_json((const char *const[]){"train", "--data", in_folder("bytes.npz"), "--policy",
                                                      "mixed_float16", "--units", "1024", "--batch-size",
                                                      batch_sizes[i], "--steps", "1", "--accumulate", "auto",
                                                      "--device", "cpu", "--json", "--verbose", "0", NULL});
    assert_string_equal(json_string_value(member(report, "accumulate")), blocks ? "blocked" : "exact");
    json_decref(report);
  }
}

static void the_json_object_has_its_members(void **state) {
  (void)state;
  json_t *report = TRAIN_JSON(TRAIN("bytes.npz"), "--policy", "mixed_bfloat16", "--epochs", "2",
                              "--validation-split", "0.25", "--accumulate", "exact", "--device", "cpu");
  assert_string_equal(keys_of(report), "policy device accumulate history test steps seconds products");
  assert_string_equal(keys_of(member(report, "products")), "kernel why");
  assert_non_null(
      strstr(json_string_value(json_object_get(member(report, "products"), "kernel")), "gemm_bf16_acc32"));
  assert_string_equal(json_string_value(member(report, "policy")), "mixed_bfloat16");
  assert_string_equal(json_string_value(member(report, "device")), "cpu");
  assert_string_equal(json_string_value(member(report, "accumulate")), "exact");
  assert_string_equal(keys_of(member(report, "history")), "loss accuracy val_loss val_accuracy");
  const char *key;
  json_t *values;
  json_object_foreach(member(report, "history"), key, values) assert_int_equal(json_array_size(values), 2);
  assert_string_equal(keys_of(member(report, "test")), "loss accuracy");
  assert_int_equal(json_integer_value(member(report, "steps")), 2 * 3); /* ceil(75 / 32) */
  assert_string_equal(keys_of(member(report, "seconds")), "start train");
  assert_true(json_real_value(member(member(report, "seconds"), "start")) > 0);
  assert_true(json_real_value(member(member(report, "seconds"), "train")) > 0);
  json_decref(report);
}

static void history_keys_of_keras3_are_sorted(void **state) {
  (void)state;
  json_t *report = TRAIN_JSON(TRAIN("untested.npz"), "--semantics", "keras3", "--validation-split", "0.2");
  assert_string_equal(keys_of(member(report, "history")), "accuracy loss val_accuracy val_loss");
  assert_null(json_object_get(report, "test"));
  json_decref(report);
}

/* The guide's last lines, printed as Python prints the double of a float32. */
static void without_json_the_guides_lines_are_printed(void **state) {
  (void)state;
  json_t *report = TRAIN_JSON(TRAIN("bytes.npz"), "--epochs", "2");
  double loss = number_in(member(member(report, "test"), "loss")),
         accuracy = number_in(member(member(report, "test"), "accuracy"));
  json_decref(report);
  assert_code(run_program(TRAIN("bytes.npz"), "--epochs", "2", "--verbose", "0"), 0);
  double printed_loss, printed_accuracy;
  int used = 0;
  assert_int_equal(
      sscanf(program_out, "Test loss: %lf\nTest accuracy: %lf\n%n", &printed_loss, &printed_accuracy, &used),
      2);
  assert_int_equal(used, (int)strlen(program_out));
  assert_true(printed_loss == loss && printed_accuracy == accuracy); /* same seed, same bits */
  assert_has(program_err, "data: ");
}

static void without_test_data_nothing_is_printed(void **state) {
  (void)state;
  assert_code(run_program(TRAIN("untested.npz"), "--verbose", "0"), 0);
  assert_string_equal(program_out, "");
}

static void numbers_that_are_not_finite_are_strings(void **state) {
  (void)state;
  json_t *report = TRAIN_JSON(TRAIN("infinite.npz"), "--step-log", in_folder("steps.jsonl"), "--epochs", "1",
                              "--steps", "2");
  assert_string_equal(json_string_value(json_array_get(member(member(report, "history"), "loss"), 0)), "nan");
  json_t *steps = lines_of(in_folder("steps.jsonl"));
  assert_string_equal(json_string_value(json_object_get(json_array_get(steps, 0), "loss")), "nan");
  json_decref(steps);
  json_decref(report);
}

static void a_run_without_an_applied_step_says_so(void **state) {
  (void)state;
  static const char *const loops[] = {"fit", "custom"};
  for (int i = 0; i < 2; i++) {
    assert_code(run_program(TRAIN("infinite.npz"), "--loop", loops[i], "--policy", "mixed_float16", "--steps",
                            "2", "--verbose", "0"),
                0);
    assert_has(program_err, "none of the 2 steps was applied");
  }
}

/* ---- the log of steps ---- */

static void check_step_log(const char *loop) {
  json_t *report =
      TRAIN_JSON(TRAIN("bytes.npz"), "--policy", "mixed_float16", "--loop", loop, "--loss-scale",
                 "dynamic:1e7:2", "--step-log", in_folder("steps.jsonl"), "--epochs", "3", "--no-shuffle");
  json_t *steps = lines_of(in_folder("steps.jsonl"));
  assert_int_equal(json_array_size(steps), 3 * 4);
  assert_int_equal(json_integer_value(member(report, "steps")), 12);
  double scale = 1e7;
  int64_t good = 0, applied_count = 0;
  for (size_t i = 0; i < json_array_size(steps); i++) {
    json_t *step = json_array_get(steps, i);
    assert_string_equal(keys_of(step), "step loss accuracy applied iterations loss_scale good_steps");
    assert_int_equal(json_integer_value(json_object_get(step, "step")), (int64_t)i + 1);
    assert_true(isfinite(number_in(json_object_get(step, "loss"))));
    assert_true(number_in(json_object_get(step, "accuracy")) >= 0 &&
                number_in(json_object_get(step, "accuracy")) <= 1);
    /* tf_keras counts skipped steps too. */
    assert_int_equal(json_integer_value(json_object_get(step, "iterations")), (int64_t)i + 1);
    bool applied = json_is_true(json_object_get(step, "applied"));
    good = applied ? good + 1 : 0;
    scale = !applied ? scale / 2 : good == 2 ? scale * 2 : scale;
    good = good == 2 ? 0 : good;
    applied_count += applied;
    /* Powers of two times 1e7 are exact in float32. */
    assert_true(number_in(json_object_get(step, "loss_scale")) == scale);
    assert_int_equal(json_integer_value(json_object_get(step, "good_steps")), good);
  }
  assert_true(applied_count > 0 && applied_count < 12);
  /* The epoch's numbers are the means of the steps' numbers, weighted by their rows: 32, 32, 32, 4. */
  double loss = 0;
  for (size_t i = 0; i < 4; i++)
    loss += (i < 3 ? 32 : 4) * number_in(json_object_get(json_array_get(steps, i), "loss")) / 100;
  double reported = number_in(json_array_get(member(member(report, "history"), "loss"), 0));
  assert_true(fabs(loss - reported) <= 1e-6 * fabs(loss)); /* float32 sums of four */
  json_decref(steps);
  json_decref(report);
}

static void the_step_log_of_fit(void **state) { (void)state, check_step_log("fit"); }
static void the_step_log_of_the_custom_loop(void **state) { (void)state, check_step_log("custom"); }

static void without_loss_scaling_the_log_has_no_scale(void **state) {
  (void)state;
  assert_code(run_program(TRAIN("bytes.npz"), "--verbose", "0", "--step-log", in_folder("steps.jsonl"),
                          "--metrics", "sparse_top_k_categorical_accuracy,accuracy", "--steps", "1"),
              0);
  json_t *steps = lines_of(in_folder("steps.jsonl"));
  assert_int_equal(json_array_size(steps), 1);
  assert_string_equal(keys_of(json_array_get(steps, 0)),
                      "step loss sparse_top_k_categorical_accuracy accuracy applied iterations");
  json_decref(steps);
  assert_code(run_program(TRAIN("bytes.npz"), "--verbose", "0", "--policy", "mixed_float16", "--loss-scale",
                          "8", "--step-log", in_folder("steps.jsonl"), "--steps", "1"),
              0);
  steps = lines_of(in_folder("steps.jsonl"));
  assert_string_equal(keys_of(json_array_get(steps, 0)),
                      "step loss accuracy applied iterations loss_scale"); /* fixed: no good steps */
  json_decref(steps);
}

/* ---- number of steps ---- */

static int64_t steps_made(const char *const *arguments) {
  json_t *report = train_json(arguments);
  int64_t steps = json_integer_value(member(report, "steps"));
  json_decref(report);
  return steps;
}
#define STEPS_MADE(...)                                                                                      \
  steps_made((const char *const[]){TRAIN("bytes.npz"), "--json", "--verbose", "0", __VA_ARGS__, NULL})

static void steps_end_training_whatever_the_epochs(void **state) {
  (void)state;
  for (int custom = 0; custom < 2; custom++) {
    const char *loop = custom ? "custom" : "fit";
    assert_int_equal(STEPS_MADE("--loop", loop, "--steps", "6", "--epochs", "1000"), 6); /* 4 in an epoch */
    assert_int_equal(STEPS_MADE("--loop", loop, "--steps", "9"), 9);
    assert_int_equal(STEPS_MADE("--loop", loop), 4);
    assert_int_equal(STEPS_MADE("--loop", loop, "--batch-size", "1000000"), 1);
    assert_int_equal(STEPS_MADE("--loop", loop, "--batch-size", "4294967296"), 1);
  }
}

/* ---- progress ---- */

static void epochs_are_announced_where_there_are_several(void **state) {
  (void)state;
  assert_code(run_program(TRAIN("bytes.npz"), "--verbose", "2"), 0);
  assert_null(strstr(program_err, "Epoch"));
  assert_has(program_err, "4/4 - 0s - loss: ");
  assert_code(run_program(TRAIN("bytes.npz"), "--verbose", "2", "--epochs", "2"), 0);
  assert_has(program_err, "Epoch 1/2\n4/4 - ");
  assert_has(program_err, "Epoch 2/2\n4/4 - ");
  /* As many epochs as the steps need. */
  assert_code(run_program(TRAIN("bytes.npz"), "--verbose", "2", "--steps", "6"), 0);
  assert_has(program_err, "Epoch 1/2\n4/4 - ");
  assert_has(program_err, "Epoch 2/2\n2/2 - ");
  assert_code(run_program(TRAIN("bytes.npz"), "--verbose", "0", "--epochs", "2"), 0);
  assert_null(strstr(program_err, "loss"));
  assert_code(run_program(TRAIN("bytes.npz"), "--verbose", "1"), 0);
  assert_has(program_err, "4/4 [==============================] - 0s");
  assert_code(run_program(TRAIN("bytes.npz"), "--loop", "custom", "--epochs", "2"), 0);
  assert_has(program_err, "Epoch 1: loss=");
  assert_has(program_err, "Epoch 2: loss=");
  assert_null(strstr(program_err, "Epoch 0: loss="));
}

/* ---- data ---- */

static void bytes_are_divided_by_255_and_flattened(void **state) {
  (void)state;
  for (int custom = 0; custom < 2; custom++) {
    const char *loop = custom ? "custom" : "fit";
    json_t *bytes =
               TRAIN_JSON(TRAIN("bytes.npz"), "--epochs", "2", "--loop", loop, "--validation-split", "0.2"),
           *floats =
               TRAIN_JSON(TRAIN("floats.npz"), "--epochs", "2", "--loop", loop, "--validation-split", "0.2");
    /* Both are float32(byte) / 255. */
    assert_true(json_equal(json_object_get(bytes, "history"), json_object_get(floats, "history")));
    assert_true(json_equal(json_object_get(bytes, "test"), json_object_get(floats, "test")));
    json_decref(bytes);
    json_decref(floats);
  }
}

static void labels_may_be_a_column_or_one_hot(void **state) {
  (void)state;
  json_t *plain = TRAIN_JSON(TRAIN("untested.npz")), *column = TRAIN_JSON(TRAIN("column.npz"));
  assert_true(json_equal(json_object_get(plain, "history"), json_object_get(column, "history")));
  json_decref(column);
  json_t *one_hot = TRAIN_JSON(TRAIN("one_hot.npz"), "--loss", "categorical_crossentropy");
  double a = number_in(json_array_get(member(member(plain, "history"), "loss"), 0)),
         b = number_in(json_array_get(member(member(one_hot, "history"), "loss"), 0));
  assert_true(fabs(a - b) <= 1e-4 * a); /* the same loss by another formula: float32 over four steps */
  json_decref(one_hot);
  json_decref(plain);
}

/* In the custom loop too, with the same count of right answers. */
static void one_hot_labels_in_the_custom_loop(void **state) {
  (void)state;
  json_t *plain = TRAIN_JSON(TRAIN("untested.npz"), "--loop", "custom"),
         *one_hot =
             TRAIN_JSON(TRAIN("one_hot.npz"), "--loop", "custom", "--loss", "categorical_crossentropy");
  assert_true(json_equal(member(member(plain, "history"), "accuracy"),
                         member(member(one_hot, "history"), "accuracy")));
  json_decref(one_hot);
  json_decref(plain);
}

/* The names are those of the first metric of a class in Keras, although names were used before. */
static void metrics_have_the_names_of_the_first_of_their_class(void **state) {
  (void)state;
  json_t *report =
      TRAIN_JSON(TRAIN("one_hot.npz"), "--loss", "categorical_crossentropy", "--metrics", "AUC,Precision");
  assert_string_equal(keys_of(member(report, "history")), "loss auc precision");
  json_decref(report);
}

/* tf_keras keeps the state of metrics in the policy's dtype, so the accuracy is a double. */
static void histories_of_float64_are_float64(void **state) {
  (void)state;
  static const char *const semantics[] = {"tf_keras", "keras3"};
  for (int i = 0; i < 2; i++) {
    json_t *report = TRAIN_JSON(TRAIN("untested.npz"), "--policy", "float64", "--semantics", semantics[i]);
    double accuracy = number_in(json_array_get(member(member(report, "history"), "accuracy"), 0));
    double loss = number_in(json_array_get(member(member(report, "history"), "loss"), 0)),
           right = round(accuracy * ROWS);
    assert_true(accuracy == (i ? (double)(float)(right / ROWS) : right / ROWS));
    assert_true((loss == (double)(float)loss) == i);
    json_decref(report);
  }
}

static void data_that_does_not_fit_ends_with_1(void **state) {
  (void)state;
  assert_code(run_program(TRAIN("short.npz")), 1);
  assert_has(program_err, "100");
  assert_code(run_program(TRAIN("unlabelled.npz")), 1);
  assert_has(program_err, "y_train");
  assert_code(run_program(TRAIN("pictures.npz")), 1);
  assert_has(program_err, "x_train");
  assert_code(run_program(TRAIN("outside.npz"), "--verbose", "0"), 1);
  assert_has(program_err, "ValueError");
  assert_has(program_err, "label");
  assert_code(run_program(TRAIN("outside.npz"), "--verbose", "0", "--loop", "custom"), 1);
  assert_has(program_err, "label");
}

static void damaged_archives_end_with_1(void **state) {
  (void)state;
  static char whole[1 << 16];
  FILE *file = fopen(in_folder("bytes.npz"), "rb");
  size_t size = fread(whole, 1, sizeof whole, file);
  fclose(file);
  assert_true(size > 1000 && size < sizeof whole);
  for (int kind = 0; kind < 3; kind++) {
    static char copy[1 << 16];
    memcpy(copy, whole, size);
    if (kind == 1) memset(copy + 40, 0xff, 30); /* the first member's NumPy header */
    if (kind == 2) memset(copy, 'x', size);
    file = fopen(in_folder("damaged.npz"), "wb");
    fwrite(copy, 1, kind == 0 ? size / 2 : size, file);
    fclose(file);
    assert_code(run_program(TRAIN("damaged.npz")), 1);
    assert_has(program_err, "damaged.npz");
  }
  file = fopen(in_folder("damaged.npz"), "wb");
  fclose(file);
  assert_code(run_program(TRAIN("damaged.npz")), 1);
}

/* ---- weights ---- */

static void saved_weights_are_read_again(void **state) {
  (void)state;
  json_t *trained = TRAIN_JSON(TRAIN("bytes.npz"), "--epochs", "3", "--save", in_folder("weights.npz"));
  assert_code(run_program("evaluate", "--data", in_folder("bytes.npz"), "--units", "8", "--init-weights",
                          in_folder("weights.npz"), "--json", "--verbose", "0"),
              0);
  json_t *evaluated = printed_object();
  assert_true(json_equal(json_object_get(trained, "test"), json_object_get(evaluated, "test")));
  assert_string_equal(keys_of(evaluated), "policy device accumulate test products");
  json_decref(trained);
  json_decref(evaluated);
  static const char *const names[] = {"dense_1/kernel", "dense_1/bias",        "dense_2/kernel",
                                      "dense_2/bias",   "dense_logits/kernel", "dense_logits/bias"};
  MIX_SCOPE {
    mix_npz *npz = mix_npz_open(in_folder("weights.npz"));
    assert_int_equal(mix_npz_count(npz), 6);
    for (int i = 0; i < 6; i++) {
      assert_string_equal(mix_npz_name(npz, i), names[i]);
      assert_int_equal(mix_tensor_dtype(mix_npz_get(npz, names[i])), MIX_FLOAT32);
    }
  }
}

static void weights_that_do_not_fit_are_named(void **state) {
  (void)state;
  assert_code(run_program(TRAIN("bytes.npz"), "--verbose", "0", "--save", in_folder("eight.npz")), 0);
  assert_code(run_program("train", "--data", in_folder("bytes.npz"), "--units", "16", "--init-weights",
                          in_folder("eight.npz")),
              1);
  assert_has(program_err, "dense_1/kernel");
  assert_has(program_err, "(16, 16)");
  assert_has(program_err, "(16, 8)");
  /* The file has no weights at all. */
  assert_code(run_program(TRAIN("bytes.npz"), "--init-weights", in_folder("untested.npz")), 1);
}

/* ---- the state of the optimizer ---- */

/* Has the checkpoint at `path`, of Adam with two slots, such slots, and a variable of that name? */
static void assert_state(const char *path, bool narrow, const char *other) {
  MIX_SCOPE {
    char names[4096] = "";
    mix_npz *npz = mix_npz_open(in_folder(path));
    mix_tensor *bytes = mix_npz_require(npz, "optimizer/names");
    const int64_t length = mix_shape_size(mix_tensor_shape(bytes));
    assert_true(length > 0 && length < (int64_t)sizeof names);
    assert_int_equal(mix_tensor_read(bytes, MIX_UINT8, names, length), MIX_OK);
    assert_non_null(strstr(names, "v/dense_1/kernel"));
    if (other) assert_has(names, other);
    assert_int_equal(mix_npz_get(npz, "optimizer/2@bfloat16") != NULL, narrow);
    mix_error_clear();
  }
}

static void the_option_optimizer_state_reaches_the_optimizer(void **state) {
  (void)state;
  static const char *const states[][3] = {{"float32", "mixed_bfloat16", NULL},
                                          {"bfloat16", "mixed_float16", NULL},
                                          {"bfloat16-stochastic", "mixed_float16", "state_seed"},
                                          {"bfloat16-kahan", "bfloat16", "dense_1/kernel/compensation"}};
  static const char *const loops[] = {"fit", "custom"};
  for (int l = 0; l < 2; l++)
    for (size_t i = 0; i < sizeof states / sizeof *states; i++) {
      char folder[64], path[96];
      snprintf(folder, sizeof folder, "%s_%s", loops[l], states[i][0]);
      snprintf(path, sizeof path, "%s/checkpoint-2.npz", folder);
      assert_code(run_program(TRAIN("untested.npz"), "--loop", loops[l], "--steps", "2", "--optimizer",
                              "adam", "--policy", states[i][1], "--optimizer-state", states[i][0],
                              "--checkpoint", in_folder(folder), "--verbose", "0"),
                  0);
      assert_state(path, i > 0, states[i][2]);
    }
  /* of a model's file, with its optimizer */
  assert_code(run_program(TRAIN("untested.npz"), "--steps", "2", "--optimizer", "adam", "--policy",
                          "mixed_bfloat16", "--save", in_folder("adam.keras"), "--verbose", "0"),
              0);
  assert_code(run_program("train", "--model", in_folder("adam.keras"), "--data", in_folder("untested.npz"),
                          "--steps", "2", "--optimizer-state", "bfloat16-stochastic", "--checkpoint",
                          in_folder("of_file"), "--verbose", "0"),
              0);
  assert_state("of_file/checkpoint-2.npz", true, "state_seed");
  assert_code(run_program(TRAIN("untested.npz"), "--optimizer-state", "bfloat16-kahan"), 1);
  assert_has(program_err, "there are none; use the policy bfloat16");
  assert_code(run_program(TRAIN("untested.npz"), "--optimizer-state", "float16"), 2);
}

static void class_weights_change_the_loss(void **state) {
  (void)state;
  json_t *plain =
      TRAIN_JSON(TRAIN("untested.npz"), "--semantics", "keras3", "--optimizer", "sgd:learning_rate=1e-30");
  json_t *weighted = TRAIN_JSON(TRAIN("untested.npz"), "--semantics", "keras3", "--optimizer",
                                "sgd:learning_rate=1e-30", "--class-weight", "0=2,1=2,2=2,3=2");
  double a = number_in(json_array_get(member(member(plain, "history"), "loss"), 0)),
         b = number_in(json_array_get(member(member(weighted, "history"), "loss"), 0));
  /* Weights do not move. The loss doubles, up to the roundings of four batches. */
  assert_true(fabs(b - 2 * a) <= 1e-6 * b);
  json_decref(plain);
  json_decref(weighted);
  /* tf_keras requires every class; the program gives the others weight 1 */
  json_t *some = TRAIN_JSON(TRAIN("untested.npz"), "--class-weight", "0=1,2=3");
  json_t *all =
      TRAIN_JSON(TRAIN("untested.npz"), "--class-weight", "0=1,1=1,2=3,3=1,4=1,5=1,6=1,7=1,8=1,9=1");
  assert_true(json_equal(member(some, "history"), member(all, "history")));
  json_decref(some);
  json_decref(all);
}

/* ---- reproducibility ---- */

static void the_same_seed_and_threads_give_the_same_bits(void **state) {
  (void)state;
  static char first[1 << 16], again[1 << 16], other[1 << 16];
#define LOGGED(seed)                                                                                         \
  run_program("train", "--data", in_folder("bytes.npz"), "--units", "8", "--seed", seed, "--threads", "2",   \
              "--policy", "mixed_float16", "--epochs", "3", "--verbose", "0", "--step-log",                  \
              in_folder("steps.jsonl"))
  assert_code(LOGGED("5"), 0);
  read_text(in_folder("steps.jsonl"), first, sizeof first);
  assert_code(LOGGED("5"), 0);
  read_text(in_folder("steps.jsonl"), again, sizeof again);
  assert_code(LOGGED("6"), 0);
  read_text(in_folder("steps.jsonl"), other, sizeof other);
#undef LOGGED
  assert_string_equal(first, again);
  assert_string_not_equal(first, other);
}

/* float32 programs keep their bits. 16-bit programs may keep more digits: some roundings of 2^-11 change the
 * loss of two epochs by less than a hundredth. The report of both loops says that excess precision was
 * allowed. */
static void jit_compile_stays_near(void **state) {
  (void)state;
  static const char *const policies[] = {"float32", "mixed_float16"}, *const loops[] = {"fit", "custom"};
  for (int p = 0; p < 2; p++)
    for (int l = 0; l < 2; l++) {
      double losses[2];
      for (int jit = 0; jit < 2; jit++) {
        json_t *report = TRAIN_JSON(TRAIN("bytes.npz"), "--epochs", "2", "--policy", policies[p], "--loop",
                                    loops[l], "--loss-scale", p ? "dynamic" : "none",
                                    jit ? "--jit-compile" : "--no-shuffle", "--no-shuffle");
        losses[jit] = number_in(member(member(report, "test"), "loss"));
        assert_int_equal(json_is_true(json_object_get(report, "jit_compile")), jit);
        json_decref(report);
      }
      assert_true(p ? fabs(losses[0] - losses[1]) <= 1e-2 * losses[0] : losses[0] == losses[1]);
    }
}

static void digits_need_no_file(void **state) {
  (void)state;
  json_t *report = TRAIN_JSON("train", "--data", "digits", "--units", "32", "--batch-size", "64", "--epochs",
                              "2", "--seed", "1");
  double accuracy = number_in(member(member(report, "test"), "accuracy"));
  if (!(accuracy > 0.7)) fail_msg("accuracy on the built-in digits after two epochs: %g", accuracy);
  json_decref(report);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_json_object_has_its_members),
      cmocka_unit_test(the_json_object_shows_how_products_sum),
      cmocka_unit_test(history_keys_of_keras3_are_sorted),
      cmocka_unit_test(without_json_the_guides_lines_are_printed),
      cmocka_unit_test(without_test_data_nothing_is_printed),
      cmocka_unit_test(numbers_that_are_not_finite_are_strings),
      cmocka_unit_test(a_run_without_an_applied_step_says_so),
      cmocka_unit_test(the_step_log_of_fit),
      cmocka_unit_test(the_step_log_of_the_custom_loop),
      cmocka_unit_test(without_loss_scaling_the_log_has_no_scale),
      cmocka_unit_test(steps_end_training_whatever_the_epochs),
      cmocka_unit_test(epochs_are_announced_where_there_are_several),
      cmocka_unit_test(bytes_are_divided_by_255_and_flattened),
      cmocka_unit_test(labels_may_be_a_column_or_one_hot),
      cmocka_unit_test(one_hot_labels_in_the_custom_loop),
      cmocka_unit_test(metrics_have_the_names_of_the_first_of_their_class),
      cmocka_unit_test(histories_of_float64_are_float64),
      cmocka_unit_test(data_that_does_not_fit_ends_with_1),
      cmocka_unit_test(damaged_archives_end_with_1),
      cmocka_unit_test(saved_weights_are_read_again),
      cmocka_unit_test(weights_that_do_not_fit_are_named),
      cmocka_unit_test(the_option_optimizer_state_reaches_the_optimizer),
      cmocka_unit_test(class_weights_change_the_loss),
      cmocka_unit_test(the_same_seed_and_threads_give_the_same_bits),
      cmocka_unit_test(jit_compile_stays_near),
      cmocka_unit_test(digits_need_no_file),
  };
  return cmocka_run_group_tests(tests, setup, folder_end);
}
