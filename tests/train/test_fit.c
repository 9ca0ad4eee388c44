/* fit: which rows it trains on and in which order, what it reports, and its errors. The losses of
 * product_model are squares of the rows' numbers, which identify the rows of a step. */
#include "data/pipeline/array_batches.h"
#include "model/support.h"

static mix_tensor *zeros(int64_t n) { return mix_fill(MIX_SHAPE(n, 1), 0, F32); }

static void Y01_the_last_part_is_held_back(void **state) {
  (void)state;
  mix_model *model = product_model(1, 0);
  for (int shuffled = 0; shuffled < 2; shuffled++) {
    step_losses_seen seen = {.count = 0};
    mix_history *history = mix_model_fit(model, counting(10), zeros(10), .batch_size = 1,
                                         .validation_split = 0.2, .no_shuffle = !shuffled, .seed = 5,
                                         .on_step = see_step, .context = &seen, .verbose = MIX_SILENT);
    assert_no_error();
    assert_int_equal(seen.count, 8);
    bool rows[10] = {false};
    for (int i = 0; i < 8; i++) {
      rows[(int)sqrt(seen.loss[i])] = true;
      if (!shuffled) assert_true(seen.loss[i] == i * i);
    }
    for (int i = 0; i < 8; i++) assert_true(rows[i]); /* split off before shuffling */
    assert_true(mix_logs_get(mix_history_epoch(history, 0), "val_loss") == (64 + 81) / 2.0);
  }
}

static void Y02_an_empty_part_is_refused(void **state) {
  (void)state;
  mix_model *model = product_model(1, 0);
  assert_null(mix_model_fit(model, counting(1), zeros(1), .validation_split = 0.5));
  assert_error(MIX_VALUE_ERROR, "training part empty");
}

static void Y03_the_short_last_batch_is_kept(void **state) {
  (void)state;
  mix_model *model = product_model(1, 0);
  step_losses_seen seen = {.count = 0};
  mix_history *history = mix_model_fit(model, counting(100), zeros(100), .no_shuffle = true,
                                       .on_step = see_step, .context = &seen, .verbose = MIX_SILENT);
  assert_int_equal(mix_history_steps(history), 4);
  assert_int_equal(seen.count, 4);
  assert_true(seen.loss[3] == (96 * 96 + 97 * 97 + 98 * 98 + 99 * 99) / 4.0);
  assert_true(seen.loss[0] == 31 * 63 / 6.0 * 32 / 32 ||
              fabs(seen.loss[0] - 31 * 63 / 6.0) < 1e-4); /* (0^2 + ... + 31^2) / 32 */
}

/* 60,000 rows, a fifth of them for validation, in batches of 8192: 6 and 2 steps; the last batches have 7040
 * and 3808 rows. Only the rows 47999 and 59999 are not zero, so the losses show the sizes of the last
 * batches. */
static void Y04_the_guides_numbers(void **state) {
  (void)state;
  mix_model *model = product_model(1, 0);
  step_losses_seen seen = {.count = 0};
  float *x = calloc(60000, sizeof *x);
  x[47999] = x[59999] = 1;
  mix_tensor *rows = mix_tensor_from(x, F32, MIX_SHAPE(60000, 1));
  free(x);
  mix_history *history =
      mix_model_fit(model, rows, zeros(60000), .batch_size = 8192, .validation_split = 0.2,
                    .no_shuffle = true, .on_step = see_step, .context = &seen, .verbose = MIX_SILENT);
  assert_int_equal(mix_history_steps(history), 6);
  assert_near(seen.loss[5], 1.0 / 7040, 1e-10); /* float32: 1 / 7040 with relative error 2^-24 */
  assert_near(mix_logs_get(mix_history_epoch(history, 0), "val_loss"), 1.0 / 12000, 1e-10);
  mix_tensor *arrays[] = {rows};
  mix_batches *validation = mix_batches_new(1, arrays, 48000, 12000, 8192, "fit");
  assert_int_equal(mix_batches_count(validation), 2);
  assert_int_equal(mix_batches_size(validation, 1), 3808);
}

/* product_model with w = 1: squares 1 and 4 of the rows 1 and 2. */
static void Y09_class_weights(void **state) {
  (void)state;
  mix_tensor *inputs = mix_input(.shape = MIX_SHAPE(2));
  mix_set_semantics("keras3");
  mix_model *model = mix_model_new(inputs, mix_call(mix_activation("softmax"), inputs));
  mix_model_compile(model, .loss = "sparse_categorical_crossentropy",
                    .optimizer = mix_sgd(.learning_rate = MIX_ZERO));
  mix_tensor *x = ARRAY(F32, MIX_SHAPE(2, 2), 0, 0, 0, 0), *y = ARRAY(MIX_INT64, MIX_SHAPE(2), 0, 1);
  step_losses_seen seen = {.count = 0};
  /* Class 1 is not listed and has weight 1 in Keras 3: log 2 times 2 and 1. */
  mix_model_fit(model, x, y, .batch_size = 1, .no_shuffle = true, .class_weight_count = 1,
                .class_labels = {0}, .class_weights = {2}, .on_step = see_step, .context = &seen,
                .verbose = MIX_SILENT);
  assert_no_error();
  assert_near(seen.loss[0], 2 * log(2), 1e-6); /* softmax and log in float32 */
  assert_near(seen.loss[1], log(2), 1e-6);
  /* Class weights belong to that fit only. */
  assert_near(mix_logs_get(mix_model_train_on_batch(model, x, y), "loss"), log(2), 1e-6);
  assert_near(mix_logs_get(mix_model_evaluate(model, x, y, .verbose = MIX_SILENT), "loss"), log(2), 1e-6);
}

/* Keras 2.21 and 3.15: smoothed labels are rounded, labels (rows, time, 1) weight each time step. Labels 0.9
 * and 0.1 with probability 1/2. */
static void class_weights_of_smoothed_and_of_sequences(void **state) {
  (void)state;
  mix_tensor *inputs = mix_input(.shape = MIX_SHAPE(1));
  mix_model *model = mix_model_new(inputs, mix_call(mix_activation("sigmoid"), inputs));
  mix_model_compile(model, .loss = "binary_crossentropy", .optimizer = mix_sgd(.learning_rate = MIX_ZERO));
  mix_tensor *x = mix_fill(MIX_SHAPE(2, 1), 0, F32), *y = ARRAY(F32, MIX_SHAPE(2, 1), 0.9, 0.1);
  mix_history *history = mix_model_fit(model, x, y, .class_weight_count = 2, .class_labels = {0, 1},
                                       .class_weights = {1, 3}, .verbose = MIX_SILENT);
  assert_no_error();
  assert_near(mix_logs_get(mix_history_epoch(history, 0), "loss"), (3 + 1) / 2.0 * log(2), 1e-6);
  inputs = mix_input(.shape = MIX_SHAPE(2, 3));
  model = mix_model_new(inputs, mix_call(mix_activation("softmax"), inputs));
  mix_model_compile(model, .loss = "sparse_categorical_crossentropy",
                    .optimizer = mix_sgd(.learning_rate = MIX_ZERO));
  x = mix_fill(MIX_SHAPE(2, 2, 3), 0, F32), y = ARRAY(MIX_INT64, MIX_SHAPE(2, 2, 1), 0, 1, 2, 1);
  history = mix_model_fit(model, x, y, .class_weight_count = 3, .class_labels = {0, 1, 2},
                          .class_weights = {1, 2, 4}, .verbose = MIX_SILENT);
  assert_no_error();
  assert_near(mix_logs_get(mix_history_epoch(history, 0), "loss"), (1 + 2 + 4 + 2) / 4.0 * log(3), 1e-6);
}

/* NaN is not a class; it must not become class 0. */
static void labels_that_are_nan_are_refused(void **state) {
  (void)state;
  mix_tensor *inputs = mix_input(.shape = MIX_SHAPE(3));
  mix_model *model = mix_model_new(inputs, mix_call(mix_activation("softmax"), inputs));
  mix_model_compile(model, .loss = "sparse_categorical_crossentropy", .optimizer = mix_sgd());
  mix_tensor *x = mix_fill(MIX_SHAPE(2, 3), 0, F32);
  assert_non_null(mix_model_evaluate(model, x, ARRAY(F32, MIX_SHAPE(2), 0, 2), .verbose = MIX_SILENT));
  assert_null(mix_model_evaluate(model, x, ARRAY(F32, MIX_SHAPE(2), 0, NAN), .verbose = MIX_SILENT));
  assert_error(MIX_VALUE_ERROR, "label -9223372036854773760, which NaN becomes as an integer, (element 1)");
}

/* A device with a queue reports a label when a value is read, after the step: which it is, not its row. */
static void assert_label_error(int label, const char *place) {
  char text[40];
  snprintf(text, sizeof text, "label %d (element ", label);
  assert_error(MIX_VALUE_ERROR, on_host() ? place : text);
}

/* Kernels see rows of a shuffled batch; messages have those of the data. */
static void messages_have_the_rows_of_labels(void **state) {
  (void)state;
  mix_tensor *inputs = mix_input(.shape = MIX_SHAPE(3));
  mix_model *model = mix_model_new(inputs, mix_call(mix_activation("softmax"), inputs));
  mix_model_compile(model, .loss = "sparse_categorical_crossentropy", .optimizer = mix_sgd());
  for (int row = 0; row < 8; row++)
    MIX_SCOPE {
      double labels[8] = {0, 1, 2, 0, 1, 2, 0, 1};
      char expected[60];
      labels[row] = 7;
      mix_tensor *x = mix_fill(MIX_SHAPE(8, 3), 0, F32),
                 *y = mix_tensor_from_doubles(labels, MIX_INT64, MIX_SHAPE(8));
      snprintf(expected, sizeof expected, "; label 7 is in row %d of y", row);
      assert_null(mix_model_fit(model, x, y, .batch_size = 3, .seed = 5, .verbose = MIX_SILENT));
      assert_label_error(7, expected);
      assert_null(mix_model_evaluate(model, x, y, .batch_size = 3, .verbose = MIX_SILENT));
      assert_label_error(7, expected);
      if (row >= 4) {
        snprintf(expected, sizeof expected, "; label 7 is in row %d of the validation data", row - 4);
        assert_null(mix_model_fit(model, x, y, .validation_split = 0.5, .verbose = MIX_SILENT));
        assert_label_error(7, expected);
      }
      snprintf(expected, sizeof expected, "; label 7 is in row %d of batch %d of", row % 3, row / 3);
      mix_dataset *data = mix_dataset_batch(mix_dataset_from_tensors(x, y), 3);
      assert_null(mix_model_fit(model, data, NULL, .verbose = MIX_SILENT));
      assert_label_error(7, expected);
    }
}

/* Its shapes are known when its first step runs. */
static void messages_have_the_rows_of_labels_of_an_unbuilt_model(void **state) {
  (void)state;
  mix_model *model = mix_sequential(mix_list_of(mix_dense(3, "softmax")));
  mix_model_compile(model, .loss = "sparse_categorical_crossentropy", .optimizer = mix_sgd());
  mix_tensor *x = mix_fill(MIX_SHAPE(8, 3), 0, F32),
             *y = mix_tensor_from_doubles((const double[8]){0, 1, 2, 0, 1, 9, 0, 1}, MIX_INT64, MIX_SHAPE(8));
  assert_null(mix_model_fit(model, x, y, .batch_size = 3, .seed = 5, .verbose = MIX_SILENT));
  assert_label_error(9, "; label 9 is in row 5 of y");
}

static void class_weights_of_tf_keras_name_every_class(void **state) {
  (void)state;
  mix_tensor *inputs = mix_input(.shape = MIX_SHAPE(3));
  mix_model *model = mix_model_new(inputs, mix_call(mix_activation("softmax"), inputs));
  mix_model_compile(model, .loss = "sparse_categorical_crossentropy",
                    .optimizer = mix_sgd(.learning_rate = MIX_ZERO));
  mix_tensor *x = mix_fill(MIX_SHAPE(3, 3), 0, F32), *y = ARRAY(MIX_INT64, MIX_SHAPE(3), 0, 1, 2);
  assert_null(mix_model_fit(model, x, y, .class_weight_count = 2, .class_labels = {0, 2},
                            .class_weights = {1, 1}, .verbose = MIX_SILENT));
  assert_error(MIX_VALUE_ERROR, "all classes from 0 on");
  assert_null(mix_model_fit(model, x, y, .class_weight_count = 3, .class_labels = {0, 2, 0},
                            .class_weights = {1, 1, 1}, .verbose = MIX_SILENT));
  assert_error(MIX_VALUE_ERROR, "twice");
  /* Label 2 occurs. */
  assert_null(mix_model_fit(model, x, y, .class_weight_count = 2, .class_labels = {0, 1},
                            .class_weights = {1, 1}, .verbose = MIX_SILENT));
  assert_error(MIX_VALUE_ERROR,
               on_host() ? "fit: the class weights lack class 2, which is the label of row 2 of y; they have "
                           "classes 0 to 1, and each class needs a weight"
                         : "gather: index 2 (element ");
  assert_null(mix_model_fit(model, x, y, .class_weight_count = 1, .class_labels = {-1}, .class_weights = {1},
                            .verbose = MIX_SILENT));
  assert_error(MIX_VALUE_ERROR, "-1");
  assert_null(mix_model_fit(model, x, y, .class_weight_count = MIX_CLASS_MAX + 1, .verbose = MIX_SILENT));
  assert_error(MIX_VALUE_ERROR, "class_weight_count");
}

/* Batches of 3 and 1 with mean losses 1 and 5. */
static void Y11_the_epochs_loss_weighs_batches_by_rows(void **state) {
  (void)state;
  mix_model *model = product_model(1, 0);
  mix_model_compile(model, .loss = "mae", .optimizer = mix_sgd(.learning_rate = MIX_ZERO),
                    .metrics = {"mae"});
  mix_history *history = mix_model_fit(model, ARRAY(F32, MIX_SHAPE(4, 1), 1, 1, 1, 5), zeros(4),
                                       .batch_size = 3, .no_shuffle = true, .verbose = MIX_SILENT);
  assert_true(mix_logs_get(mix_history_epoch(history, 0), "loss") == 2);
  assert_true(mix_logs_get(mix_history_epoch(history, 0), "mae") == 2);
}

static void check_history_keys(const char *semantics, const char *const *names) {
  mix_set_semantics(semantics);
  mix_model *model = compiled_guide_model(4, 4);
  examples e = examples_of(20, 4, 3);
  mix_history *history =
      mix_model_fit(model, e.x, e.y, .validation_split = 0.25, .epochs = 2, .verbose = MIX_SILENT);
  assert_int_equal(mix_history_epochs(history), 2);
  for (int epoch = 0; epoch < 2; epoch++) {
    const mix_logs *logs = mix_history_epoch(history, epoch);
    assert_int_equal(mix_logs_count(logs), 4);
    for (int i = 0; i < 4; i++) assert_string_equal(mix_logs_name(logs, i), names[i]);
  }
}
static void Y13_history_keys(void **state) {
  (void)state;
  check_history_keys("keras3", (const char *const[]){"accuracy", "loss", "val_accuracy", "val_loss"});
  check_history_keys("tf_keras", (const char *const[]){"loss", "accuracy", "val_loss", "val_accuracy"});
}

static void validation_data_wins_over_a_split(void **state) {
  (void)state;
  mix_model *model = product_model(1, 0);
  mix_history *history = mix_model_fit(model, counting(10), zeros(10), .validation_split = 0.2,
                                       .validation_x = ARRAY(F32, MIX_SHAPE(1, 1), 3),
                                       .validation_y = zeros(1), .verbose = MIX_SILENT);
  assert_true(mix_logs_get(mix_history_epoch(history, 0), "val_loss") == 9);
  assert_near(mix_logs_get(mix_history_epoch(history, 0), "loss"), 285 / 10.0, 1e-5); /* all ten rows */
  assert_null(
      mix_model_fit(model, counting(10), zeros(10), .validation_x = counting(2), .verbose = MIX_SILENT));
  assert_error(MIX_TYPE_ERROR, "validation_y");
}

static void steps_and_epochs_end_training(void **state) {
  (void)state;
  mix_model *model = product_model(1, 0);
  mix_history *history = mix_model_fit(model, counting(10), zeros(10), .batch_size = 4, .epochs = 100,
                                       .steps = 7, .verbose = MIX_SILENT);
  assert_int_equal(mix_history_steps(history), 7);
  assert_int_equal(mix_history_epochs(history), 3);
  assert_int_equal(mix_optimizer_iterations(mix_model_optimizer(model)), 7);
  history = mix_model_fit(model, counting(10), zeros(10), .batch_size = 4, .epochs = 5, .initial_epoch = 3,
                          .verbose = MIX_SILENT);
  assert_int_equal(mix_history_steps(history), 6); /* epochs is the final index */
  assert_int_equal(mix_history_epochs(history), 2);
  history =
      mix_model_fit(model, counting(10), zeros(10), .epochs = 2, .initial_epoch = 2, .verbose = MIX_SILENT);
  assert_int_equal(mix_history_epochs(history), 0);
  assert_int_equal(mix_optimizer_iterations(mix_model_optimizer(model)), 13);
  assert_null(mix_history_epoch(history, 0));
}

/* The order of the rows in two epochs. */
static void orders_of(uint64_t seed, double *loss) {
  mix_model *model = product_model(1, 0);
  step_losses_seen seen = {.count = 0};
  mix_model_fit(model, counting(50), zeros(50), .batch_size = 1, .epochs = 2, .seed = seed,
                .on_step = see_step, .context = &seen, .verbose = MIX_SILENT);
  assert_int_equal(seen.count, 100);
  memcpy(loss, seen.loss, 100 * sizeof *loss);
}

static void shuffling_follows_the_seed(void **state) {
  (void)state;
  double first[100], again[100], other[100];
  orders_of(7, first);
  orders_of(7, again);
  orders_of(8, other);
  assert_memory_equal(first, again, sizeof first);
  assert_memory_not_equal(first, other, sizeof first);
  assert_memory_not_equal(first, first + 50, 50 * sizeof *first); /* each epoch has an order of its own */
  for (int epoch = 0; epoch < 2; epoch++)
    for (int row = 0; row < 50; row++) {
      int count = 0;
      for (int i = 0; i < 50; i++) count += first[50 * epoch + i] == row * row;
      assert_int_equal(count, 1);
    }
}

static void the_same_seed_and_threads_give_the_same_bits(void **state) {
  (void)state;
  static const char *const policies[] = {"float32", "mixed_float16", "mixed_bfloat16"};
  for (int p = 0; p < 3; p++) {
    unsigned char *bits[2];
    size_t size[2];
    for (int run = 0; run < 2; run++) {
      mix_set_seed(11);
      mix_set_global_policy(policies[p]);
      mix_model *model = compiled_guide_model(20, 16);
      examples e = examples_of(200, 20, 10);
      mix_model_fit(model, e.x, e.y, .epochs = 3, .verbose = MIX_SILENT);
      assert_no_error();
      bits[run] = bits_of(mix_model_weights(model), &size[run]);
    }
    assert_int_equal(size[0], size[1]);
    assert_memory_equal(bits[0], bits[1], size[0]);
    free(bits[0]);
    free(bits[1]);
  }
}

static void a_batch_larger_than_the_data_is_the_data(void **state) {
  (void)state;
  mix_model *model = product_model(1, 0);
  mix_history *history =
      mix_model_fit(model, counting(3), zeros(3), .batch_size = INT64_MAX, .verbose = MIX_SILENT);
  assert_no_error();
  assert_int_equal(mix_history_steps(history), 1);
  assert_near(mix_logs_get(mix_history_epoch(history, 0), "loss"), 5 / 3.0, 1e-6);
}

static void arrays_are_taken_in_floatx(void **state) {
  (void)state;
  mix_model *model = product_model(1, 0);
  static const mix_dtype dtypes[] = {MIX_FLOAT64, MIX_FLOAT16, MIX_BFLOAT16};
  for (int i = 0; i < 3; i++) {
    mix_tensor *x = ARRAY(dtypes[i], MIX_SHAPE(2, 1), 1.5, 2), *y = ARRAY(dtypes[i], MIX_SHAPE(2, 1), 0, 0);
    assert_near(mix_logs_get(mix_model_evaluate(model, x, y, .verbose = MIX_SILENT), "loss"), (2.25 + 4) / 2,
                0);
    assert_int_equal(mix_tensor_dtype(mix_list_get(mix_model_predict(model, x), 0)), F32);
  }
}

static void the_record_of_a_step(void **state) {
  (void)state;
  mix_set_global_policy("mixed_float16");
  mix_model *model = guide_model(4, 4);
  mix_model_compile(model, .loss = "sparse_categorical_crossentropy",
                    .optimizer = mix_loss_scale_optimizer(mix_sgd(.learning_rate = 0.1), .initial_scale = 4,
                                                          .dynamic_growth_steps = 2),
                    .metrics = {"accuracy"});
  examples e = examples_of(20, 4, 3);
  step_losses_seen seen = {.count = 0};
  mix_model_fit(model, e.x, e.y, .batch_size = 4, .on_step = see_step, .context = &seen,
                .verbose = MIX_SILENT);
  assert_no_error();
  static const double scales[] = {4, 8, 8, 16, 16};
  static const int64_t good[] = {1, 0, 1, 0, 1};
  for (int i = 0; i < 5; i++)
    assert_true(seen.applied[i] && seen.scale[i] == scales[i] && seen.good_steps[i] == good[i]);
}

static void lengths_must_agree(void **state) {
  (void)state;
  mix_model *model = product_model(1, 0);
  assert_null(mix_model_fit(model, counting(3), zeros(4), .verbose = MIX_SILENT));
  assert_error(MIX_VALUE_ERROR, "3 and 4 rows");
  assert_null(mix_model_evaluate(model, counting(3), zeros(4), .verbose = MIX_SILENT));
  assert_error(MIX_VALUE_ERROR, "3 and 4 rows");
  assert_null(mix_model_train_on_batch(model, counting(3), zeros(4)));
  assert_error(MIX_VALUE_ERROR, "3 and 4 rows");
  assert_true(weight_at(model, 0, 0) == 1);
}

static void no_data_is_refused(void **state) {
  (void)state;
  mix_model *model = product_model(1, 0);
  mix_tensor *none = mix_tensor_from("", F32, MIX_SHAPE(0, 1));
  assert_null(mix_model_fit(model, none, none, .verbose = MIX_SILENT));
  assert_error(MIX_VALUE_ERROR, "no rows");
  assert_null(mix_model_evaluate(model, none, none, .verbose = MIX_SILENT));
  assert_error(MIX_VALUE_ERROR, "no rows");
  assert_null(mix_model_predict(model, none));
  assert_error(MIX_VALUE_ERROR, "no rows");
  const mix_on_batch_options batch = {.size = sizeof batch, .x = none, .y = none, .rows = MIX_LOCAL};
  assert_null(mix_model_train_on_batch_with(model, &batch));
  assert_error(MIX_VALUE_ERROR, "no rows");
}

static void numbers_out_of_range_are_refused(void **state) {
  (void)state;
  mix_model *model = product_model(1, 0);
  mix_tensor *x = counting(4), *y = zeros(4);
  assert_null(mix_model_fit(model, x, y, .batch_size = -1));
  assert_error(MIX_VALUE_ERROR, "batch_size is -1");
  assert_null(mix_model_fit(model, x, y, .epochs = -1));
  assert_error(MIX_VALUE_ERROR, "epochs is -1");
  assert_null(mix_model_fit(model, x, y, .initial_epoch = -1));
  assert_error(MIX_VALUE_ERROR, "initial_epoch is -1");
  assert_null(mix_model_fit(model, x, y, .steps = -1));
  assert_error(MIX_VALUE_ERROR, "steps is -1");
  assert_null(mix_model_fit(model, x, y, .validation_split = 1));
  assert_error(MIX_VALUE_ERROR, "validation_split is 1");
  assert_null(mix_model_fit(model, x, y, .validation_split = NAN));
  assert_error(MIX_VALUE_ERROR, "validation_split");
  assert_null(mix_model_evaluate(model, x, y, .batch_size = -3));
  assert_error(MIX_VALUE_ERROR, "batch_size is -3");
  assert_null(mix_model_predict(model, x, .batch_size = -3));
  assert_error(MIX_VALUE_ERROR, "batch_size is -3");
}

static void widths_must_fit_the_model(void **state) {
  (void)state;
  mix_model *model = product_model(1, 0);
  assert_null(mix_model_fit(model, mix_fill(MIX_SHAPE(4, 2), 1, F32), zeros(4), .verbose = MIX_SILENT));
  assert_error(MIX_VALUE_ERROR, "product");
  assert_null(mix_model_fit(model, mix_input(.shape = MIX_SHAPE(1)), zeros(4)));
  assert_error(MIX_TYPE_ERROR, "symbolic");
  assert_null(mix_model_fit(model, mix_scalar(1, F32), mix_scalar(1, F32)));
  assert_error(MIX_VALUE_ERROR, "scalar");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(Y01_the_last_part_is_held_back),
      TEST(Y02_an_empty_part_is_refused),
      TEST(Y03_the_short_last_batch_is_kept),
      TEST(Y04_the_guides_numbers),
      TEST(Y09_class_weights),
      TEST(class_weights_of_smoothed_and_of_sequences),
      TEST(labels_that_are_nan_are_refused),
      TEST(class_weights_of_tf_keras_name_every_class),
      TEST(messages_have_the_rows_of_labels),
      TEST(messages_have_the_rows_of_labels_of_an_unbuilt_model),
      TEST(Y11_the_epochs_loss_weighs_batches_by_rows),
      TEST(Y13_history_keys),
      TEST(validation_data_wins_over_a_split),
      TEST(steps_and_epochs_end_training),
      TEST(shuffling_follows_the_seed),
      TEST(the_same_seed_and_threads_give_the_same_bits),
      TEST(a_batch_larger_than_the_data_is_the_data),
      TEST(arrays_are_taken_in_floatx),
      TEST(the_record_of_a_step),
      TEST(lengths_must_agree),
      TEST(no_data_is_refused),
      TEST(numbers_out_of_range_are_refused),
      TEST(widths_must_fit_the_model),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
