/* fit, evaluate and predict on data sets, with sample weights, and with given numbers of steps. Losses are
 * squares of the rows' numbers. */
#include "model/support.h"

static mix_tensor *zeros(int64_t n) { return mix_fill(MIX_SHAPE(n, 1), 0, F32); }
static mix_dataset *pairs(int64_t n, int64_t batch) {
  return mix_dataset_batch(mix_dataset_from_tensors(counting(n), zeros(n)), batch);
}

static char warned[1024];
static void keep_warning(void *context, mix_log_level level, const char *message) {
  (void)context;
  if (level == MIX_LOG_WARNING) snprintf(warned, sizeof warned, "%s", message);
}

/* Three batches of rows 0, 1 and 2, repeated. */
static void Y12_steps_go_on_through_a_repeated_data_set(void **state) {
  (void)state;
  static const char *const semantics[] = {"tf_keras", "keras3"};
  static const double expected[] = {0, 1, 4, 0, 1, 4};
  for (int s = 0; s < 2; s++) {
    mix_set_semantics(semantics[s]);
    step_losses_seen seen = {.count = 0};
    mix_history *history =
        mix_model_fit(product_model(1, 0), mix_dataset_repeat(pairs(3, 1), -1), NULL, .steps_per_epoch = 2,
                      .epochs = 3, .on_step = see_step, .context = &seen, .verbose = MIX_SILENT);
    assert_no_error();
    assert_int_equal(seen.count, 6);
    assert_int_equal(mix_history_epochs(history), 3);
    for (int i = 0; i < 6; i++) assert_true(seen.loss[i] == expected[i]);
    assert_true(mix_logs_get(mix_history_epoch(history, 1), "loss") == 2); /* (4 + 0) / 2 */
  }
}

static void a_data_set_has_one_pass_for_each_epoch(void **state) {
  (void)state;
  step_losses_seen seen = {.count = 0};
  mix_history *history = mix_model_fit(product_model(1, 0), pairs(3, 2), NULL, .epochs = 2,
                                       .on_step = see_step, .context = &seen, .verbose = MIX_SILENT);
  assert_no_error();
  static const double expected[] = {0.5, 4, 0.5, 4};
  assert_int_equal(seen.count, 4);
  for (int i = 0; i < 4; i++) assert_true(seen.loss[i] == expected[i]);
  assert_near(mix_logs_get(mix_history_epoch(history, 1), "loss"), 5 / 3.0, 1e-6);
  seen.count = 0; /* steps_per_epoch equal to the cardinality: each epoch starts a new pass */
  mix_model_fit(product_model(1, 0), pairs(2, 1), NULL, .epochs = 3, .steps_per_epoch = 2,
                .on_step = see_step, .context = &seen, .verbose = MIX_SILENT);
  assert_no_error();
  assert_int_equal(seen.count, 6);
}

static char drawn[4096];
static void keep_drawn(void *context, mix_log_level level, const char *message) {
  (void)context;
  if (level == MIX_LOG_PROGRESS) strncat(drawn, message, sizeof drawn - strlen(drawn) - 1);
}

static mix_list *three_batches(void *context, int64_t index) {
  (void)context;
  return index < 3
             ? mix_list_of(mix_fill(MIX_SHAPE(1, 1), (double)index, F32), mix_fill(MIX_SHAPE(1, 1), 0, F32))
             : NULL;
}
static mix_list *no_batches(void *context, int64_t index) {
  (void)context, (void)index;
  return NULL;
}
static void the_length_need_not_be_known(void **state) {
  (void)state;
  mix_dataset *data = mix_dataset_from_generator(three_batches);
  drawn[0] = 0;
  mix_set_log_callback(keep_drawn, NULL);
  mix_history *history = mix_model_fit(product_model(1, 0), data, NULL, .epochs = 2, .verbose = 1);
  mix_set_log_callback(NULL, NULL);
  assert_no_error();
  assert_non_null(strstr(drawn, "      1/Unknown - ")); /* the next epoch's bar knows the total */
  assert_non_null(strstr(drawn, "\r3/3 [====="));
  assert_non_null(strstr(drawn, "\r1/3 [====="));
  assert_int_equal(mix_history_steps(history), 6);
  assert_int_equal(mix_history_get_params(history).steps, 3);
  assert_near(
      mix_logs_get(mix_model_evaluate(product_model(1, 0), data, NULL, .verbose = MIX_SILENT), "loss"),
      5 / 3.0, 1e-6);
  assert_null(mix_model_fit(product_model(1, 0), mix_dataset_from_generator(no_batches), NULL,
                            .verbose = MIX_SILENT));
  assert_error(MIX_VALUE_ERROR, "no batches");
  assert_null(mix_model_evaluate(product_model(1, 0), mix_dataset_from_generator(no_batches), NULL,
                                 .verbose = MIX_SILENT));
  assert_error(MIX_VALUE_ERROR, "no batches");
}

static void data_that_run_out_stop_training_in_tf_keras(void **state) {
  (void)state;
  warned[0] = 0;
  mix_set_log_callback(keep_warning, NULL);
  mix_history *history = mix_model_fit(product_model(1, 0), pairs(5, 1), NULL, .steps_per_epoch = 3,
                                       .epochs = 4, .verbose = MIX_SILENT);
  assert_no_error();
  assert_int_equal(mix_history_steps(history), 5);
  assert_int_equal(mix_history_epochs(history), 2);
  assert_non_null(strstr(warned, "ran out after 2 of 3 steps"));
  assert_true(mix_logs_get(mix_history_epoch(history, 1), "loss") == (9 + 16) / 2.0);
  history = mix_model_fit(product_model(1, 0), counting(4), zeros(4), .batch_size = 2, .steps_per_epoch = 3,
                          .epochs = 4, .verbose = MIX_SILENT);
  /* Arrays are repeated `epochs` times: 3, 3 and 2 steps. */
  assert_int_equal(mix_history_steps(history), 8);
  assert_int_equal(mix_history_epochs(history), 3);
  history = mix_model_fit(product_model(1, 0), pairs(4, 1), NULL, .steps_per_epoch = 2, .epochs = 4,
                          .verbose = MIX_SILENT);
  assert_no_error(); /* no data is left for the third epoch */
  assert_int_equal(mix_history_epochs(history), 2);
}
static void data_that_run_out_end_the_epoch_in_keras3(void **state) {
  (void)state;
  mix_set_semantics("keras3");
  warned[0] = 0;
  mix_set_log_callback(keep_warning, NULL);
  mix_history *history = mix_model_fit(product_model(1, 0), pairs(5, 1), NULL, .steps_per_epoch = 3,
                                       .epochs = 4, .verbose = MIX_SILENT);
  assert_no_error();
  assert_int_equal(mix_history_steps(history), 3 + 2 + 3 + 2);
  assert_int_equal(mix_history_epochs(history), 4);
  assert_non_null(strstr(warned, "the epoch ends"));
  history = mix_model_fit(product_model(1, 0), pairs(4, 1), NULL, .steps_per_epoch = 2, .epochs = 4,
                          .verbose = MIX_SILENT);
  assert_no_error();
  assert_int_equal(mix_history_steps(history), 8);
}

static void steps_per_epoch_of_arrays(void **state) {
  (void)state;
  step_losses_seen seen = {.count = 0};
  /* Without batch_size it determines the batch size: ceil(5 / 2) = 3. */
  mix_model_fit(product_model(1, 0), counting(5), zeros(5), .steps_per_epoch = 2, .no_shuffle = true,
                .on_step = see_step, .context = &seen, .verbose = MIX_SILENT);
  assert_no_error();
  assert_int_equal(seen.count, 2);
  assert_near(seen.loss[0], 5 / 3.0, 1e-6);
  assert_true(seen.loss[1] == (9 + 16) / 2.0);
}

/* Batches of one row from 0 to 4, two steps an epoch: tf_keras continues past the last row, Keras 3 ends an
 * epoch there. */
static void epochs_of_arrays_continue_after_the_last_one(void **state) {
  (void)state;
  static const int rows[2][12] = {{0, 1, 2, 3, 4, 0, 1, 2, 3, 4, 0, 1}, {0, 1, 2, 3, 4, 0, 1, 2, 3, 4}};
  for (int keras3 = 0; keras3 < 2; keras3++) {
    mix_set_semantics(keras3 ? "keras3" : "tf_keras");
    step_losses_seen seen = {.count = 0};
    mix_history *history = mix_model_fit(product_model(1, 0), counting(5), zeros(5), .batch_size = 1,
                                         .epochs = 6, .steps_per_epoch = 2, .no_shuffle = true,
                                         .on_step = see_step, .context = &seen, .verbose = MIX_SILENT);
    assert_no_error();
    assert_int_equal(mix_history_epochs(history), 6);
    assert_int_equal(seen.count, keras3 ? 10 : 12);
    for (int i = 0; i < seen.count; i++) assert_true(seen.loss[i] == rows[keras3][i] * rows[keras3][i]);
  }
}

/* Shuffled: every row is used once before any is used again. */
static void epochs_of_shuffled_arrays_use_all_rows(void **state) {
  (void)state;
  step_losses_seen seen = {.count = 0};
  mix_model_fit(product_model(1, 0), counting(6), zeros(6), .batch_size = 1, .epochs = 6,
                .steps_per_epoch = 2, .seed = 3, .on_step = see_step, .context = &seen,
                .verbose = MIX_SILENT);
  assert_no_error();
  assert_int_equal(seen.count, 12);
  for (int pass = 0; pass < 2; pass++) {
    int times[6] = {0};
    for (int i = 0; i < 6; i++) times[(int)sqrt(seen.loss[6 * pass + i])]++;
    for (int row = 0; row < 6; row++) assert_int_equal(times[row], 1);
  }
}

static void options_that_exclude_data_sets(void **state) {
  (void)state;
  mix_model *model = product_model(1, 0);
  assert_null(mix_model_fit(model, pairs(4, 2), NULL, .batch_size = 2, .verbose = MIX_SILENT));
  assert_error(MIX_VALUE_ERROR, "batch_size is 2 with a data set");
  assert_null(mix_model_evaluate(model, pairs(4, 2), NULL, .batch_size = 2, .verbose = MIX_SILENT));
  assert_error(MIX_VALUE_ERROR, "batch_size is 2 with a data set");
  assert_null(mix_model_predict(model, pairs(4, 2), .batch_size = 2));
  assert_error(MIX_VALUE_ERROR, "batch_size is 2 with a data set");
  assert_null(mix_model_fit(model, pairs(4, 2), zeros(4), .verbose = MIX_SILENT));
  assert_error(MIX_VALUE_ERROR, "y given beside a data set");
  assert_null(mix_model_fit(model, pairs(4, 2), NULL, .sample_weight = zeros(4), .verbose = MIX_SILENT));
  assert_error(MIX_VALUE_ERROR, "sample_weight given beside a data set");
  assert_null(mix_model_fit(model, pairs(4, 2), NULL, .validation_split = 0.5, .verbose = MIX_SILENT));
  assert_error(MIX_VALUE_ERROR, "validation_split");
  assert_null(mix_model_fit(model, mix_dataset_repeat(pairs(4, 2), -1), NULL, .verbose = MIX_SILENT));
  assert_error(MIX_VALUE_ERROR, "never ends");
  assert_null(mix_model_fit(model, mix_dataset_batch(mix_dataset_from_tensors(counting(4)), 2), NULL,
                            .verbose = MIX_SILENT));
  assert_error(MIX_VALUE_ERROR, "1 tensors");
  assert_null(mix_model_fit(model, mix_dataset_from_tensors(mix_range(0, 4, 1, F32), mix_range(0, 4, 1, F32)),
                            NULL, .verbose = MIX_SILENT));
  assert_error(MIX_VALUE_ERROR, "scalar");
  static const struct {
    mix_fit_options options;
    const char *part;
  } wrong[] = {{{.steps_per_epoch = -1}, "steps_per_epoch is -1"},
               {{.validation_steps = -1}, "validation_steps is -1"},
               {{.validation_batch_size = -1}, "validation_batch_size is -1"},
               {{.validation_freq = -1}, "validation_freq is -1"}};
  for (int i = 0; i < 4; i++) {
    mix_fit_options options = wrong[i].options;
    options.size = sizeof options, options.x = counting(2), options.y = zeros(2);
    assert_null(mix_model_fit_with(model, &options));
    assert_error(MIX_VALUE_ERROR, wrong[i].part);
  }
}

/* Squares 1, 4, 9 with weights 2, 0, 1: (2 + 0 + 9) / 3. */
static void sample_weights_weigh_the_loss(void **state) {
  (void)state;
  mix_model *model = product_model(1, 0);
  mix_tensor *x = ARRAY(F32, MIX_SHAPE(3, 1), 1, 2, 3), *w = ARRAY(F32, MIX_SHAPE(3), 2, 0, 1);
  step_losses_seen seen = {.count = 0};
  mix_model_fit(model, x, zeros(3), .sample_weight = w, .batch_size = 1, .no_shuffle = true,
                .on_step = see_step, .context = &seen, .verbose = MIX_SILENT);
  assert_no_error();
  assert_true(seen.loss[0] == 2 && seen.loss[1] == 0 && seen.loss[2] == 9);
  double expected = 11 / 3.0;
  assert_near(
      mix_logs_get(mix_model_evaluate(model, x, zeros(3), .sample_weight = w, .verbose = MIX_SILENT), "loss"),
      expected, 1e-6);
  assert_near(mix_logs_get(mix_model_evaluate(model, x, zeros(3), .verbose = MIX_SILENT), "loss"), 14 / 3.0,
              1e-6);
  mix_tensor *whole = mix_cast(w, MIX_INT32);
  assert_near(
      mix_logs_get(mix_model_evaluate(model, x, zeros(3), .sample_weight = whole, .verbose = MIX_SILENT),
                   "loss"),
      expected, 1e-6);
  mix_dataset *data = mix_dataset_batch(mix_dataset_from_tensors(x, zeros(3), w), 3);
  assert_near(mix_logs_get(mix_model_evaluate(model, data, NULL, .verbose = MIX_SILENT), "loss"), expected,
              1e-6);
  assert_near(
      mix_logs_get(mix_history_epoch(mix_model_fit(model, data, NULL, .verbose = MIX_SILENT), 0), "loss"),
      expected, 1e-6);
  assert_near(mix_logs_get(mix_model_train_on_batch(model, x, zeros(3)), "loss"), 14 / 3.0, 1e-6);
  assert_null(mix_model_fit(model, x, zeros(3), .sample_weight = zeros(4), .verbose = MIX_SILENT));
  assert_error(MIX_VALUE_ERROR, "3 and 4 rows");
  assert_null(mix_model_fit(model, x, zeros(3), .sample_weight = mix_list_of(w, w), .verbose = MIX_SILENT));
  assert_error(MIX_VALUE_ERROR, "2 arrays of sample weights");
}

/* A validation split takes the last sample weights too. The gradient is weighted: dw = 2 w x^2 weight, the
 * step 0.25 of it. */
static void sample_weights_are_split_and_train(void **state) {
  (void)state;
  mix_model *model = product_model(1, 0.25);
  mix_tensor *x = ARRAY(F32, MIX_SHAPE(2, 1), 1, 2), *w = ARRAY(F32, MIX_SHAPE(2), 0.5, 3);
  mix_history *history = mix_model_fit(model, x, zeros(2), .sample_weight = w, .validation_split = 0.5,
                                       .no_shuffle = true, .verbose = MIX_SILENT);
  assert_no_error();
  assert_true(weight_at(model, 0, 0) == 0.75);
  assert_true(mix_logs_get(mix_history_epoch(history, 0), "loss") == 0.5);
  assert_true(mix_logs_get(mix_history_epoch(history, 0), "val_loss") == 3 * 1.5 * 1.5);
}

static void class_and_sample_weights(void **state) {
  (void)state;
  static const char *const semantics[] = {"tf_keras", "keras3"};
  for (int s = 0; s < 2; s++) {
    mix_set_semantics(semantics[s]);
    mix_tensor *inputs = mix_input(.shape = MIX_SHAPE(2));
    mix_model *model = mix_model_new(inputs, mix_call(mix_activation("softmax"), inputs));
    mix_model_compile(model, .loss = "sparse_categorical_crossentropy",
                      .optimizer = mix_sgd(.learning_rate = MIX_ZERO));
    mix_tensor *x = mix_fill(MIX_SHAPE(2, 2), 0, F32), *y = ARRAY(MIX_INT64, MIX_SHAPE(2), 0, 1),
               *w = ARRAY(F32, MIX_SHAPE(2), 5, 7);
    step_losses_seen seen = {.count = 0};
    mix_model_fit(model, x, y, .batch_size = 1, .no_shuffle = true, .sample_weight = w,
                  .class_weight_count = 2, .class_labels = {0, 1}, .class_weights = {2, 3},
                  .on_step = see_step, .context = &seen, .verbose = MIX_SILENT);
    if (s == 1) {
      assert_error(MIX_VALUE_ERROR, "class weights and sample weights");
      continue;
    }
    assert_no_error();
    assert_near(seen.loss[0], 10 * log(2), 1e-5); /* log 2 in float32, times 10: 10 * 2^-24 */
    assert_near(seen.loss[1], 21 * log(2), 1e-5);
  }
}

static void validation_by_steps_batches_and_epochs(void **state) {
  (void)state;
  mix_model *model = product_model(1, 0);
  mix_history *history = mix_model_fit(
      model, counting(2), zeros(2), .epochs = 5, .validation_freq = 2, .validation_x = counting(4),
      .validation_y = zeros(4), .validation_batch_size = 1, .validation_steps = 3, .verbose = MIX_SILENT);
  assert_no_error();
  for (int e = 0; e < 5; e++)
    assert_true(mix_logs_has(mix_history_epoch(history, e), "val_loss") == (e == 1 || e == 3));
  assert_near(mix_logs_get(mix_history_epoch(history, 1), "val_loss"), 5 / 3.0, 1e-6); /* rows 0, 1, 2 */
  history = mix_model_fit(model, counting(2), zeros(2), .epochs = 2, .batch_size = 2,
                          .validation_x = mix_dataset_repeat(pairs(4, 1), -1), .validation_steps = 3,
                          .verbose = MIX_SILENT);
  assert_no_error();
  for (int e = 0; e < 2; e++)
    assert_near(mix_logs_get(mix_history_epoch(history, e), "val_loss"), 5 / 3.0, 1e-6);
  history = mix_model_fit(model, counting(2), zeros(2), .validation_x = ARRAY(F32, MIX_SHAPE(2, 1), 1, 2),
                          .validation_y = zeros(2),
                          .validation_sample_weight = ARRAY(F32, MIX_SHAPE(2), 4, 1), .verbose = MIX_SILENT);
  assert_no_error();
  assert_true(mix_logs_get(mix_history_epoch(history, 0), "val_loss") == 4);
}

static void evaluate_takes_steps(void **state) {
  (void)state;
  mix_model *model = product_model(1, 0);
  warned[0] = 0;
  mix_set_log_callback(keep_warning, NULL);
  assert_true(mix_logs_get(mix_model_evaluate(model, counting(4), zeros(4), .batch_size = 1, .steps = 2,
                                              .verbose = MIX_SILENT),
                           "loss") == 0.5);
  assert_true(mix_logs_get(mix_model_evaluate(model, pairs(4, 1), NULL, .steps = 2, .verbose = MIX_SILENT),
                           "loss") == 0.5);
  assert_string_equal(warned, "");
  assert_true(mix_logs_get(mix_model_evaluate(model, pairs(2, 1), NULL, .steps = 5, .verbose = MIX_SILENT),
                           "loss") == 0.5);
  assert_non_null(strstr(warned, "ran out after 2 of 5"));
}

static void predict_on_data_sets(void **state) {
  (void)state;
  mix_model *model = product_model(2, 0);
  mix_dataset *const data[] = {
      pairs(5, 2), mix_dataset_batch(mix_dataset_from_tensors(counting(5)), 2),
      mix_dataset_batch(mix_dataset_from_tensors(counting(5), zeros(5), zeros(5)), 2)};
  for (int i = 0; i < 3; i++) {
    mix_tensor *outputs = mix_list_get(mix_model_predict(model, data[i]), 0);
    assert_no_error();
    assert_int_equal(mix_tensor_shape(outputs).dims[0], 5);
    for (int row = 0; row < 5; row++) assert_true(at(outputs, row) == 2 * row);
  }
  mix_tensor *outputs =
      mix_list_get(mix_model_predict(model, mix_dataset_repeat(pairs(5, 2), -1), .steps = 4), 0);
  assert_int_equal(mix_tensor_shape(outputs).dims[0], 2 + 2 + 1 + 2); /* a repeat keeps the short batch */
}

static mix_model *two_outputs(void) {
  mix_tensor *inputs = mix_input(.shape = MIX_SHAPE(1));
  mix_tensor *outputs[2];
  for (int i = 0; i < 2; i++)
    outputs[i] =
        mix_call(mix_dense(.units = 1, .no_bias = true, .name = i ? "b" : "a",
                           .kernel_initializer_object = mix_initializer_new("constant", .value = i + 1.0)),
                 inputs);
  mix_model *model = mix_model_new(inputs, mix_list_of(outputs[0], outputs[1]));
  mix_model_compile(model, .loss = "mse", .optimizer = mix_sgd(.learning_rate = MIX_ZERO));
  return model;
}
/* Losses 1 and 4 of row 1. */
static void weights_for_each_output(void **state) {
  (void)state;
  mix_model *model = two_outputs();
  mix_tensor *x = ARRAY(F32, MIX_SHAPE(1, 1), 1), *two = ARRAY(F32, MIX_SHAPE(1), 2),
             *three = ARRAY(F32, MIX_SHAPE(1), 3);
  mix_list *y = mix_list_of(zeros(1), zeros(1));
  assert_true(mix_logs_get(mix_model_evaluate(model, x, y, .sample_weight = two, .verbose = MIX_SILENT),
                           "loss") == 10);
  assert_true(mix_logs_get(mix_model_evaluate(model, x, y, .sample_weight = mix_list_of(two, three),
                                              .verbose = MIX_SILENT),
                           "loss") == 14);
  assert_true(mix_logs_get(mix_model_evaluate(model, x, y, .verbose = MIX_SILENT), "loss") == 5);
  mix_dataset *data = mix_dataset_batch(mix_dataset_from_tensors(x, zeros(1), zeros(1), two, three), 1);
  assert_true(mix_logs_get(mix_model_evaluate(model, data, NULL, .verbose = MIX_SILENT), "loss") == 14);
  mix_list *outputs = mix_model_predict(model, data);
  assert_int_equal(mix_list_count(outputs), 2);
  assert_true(at(mix_list_get(outputs, 1), 0) == 2);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(Y12_steps_go_on_through_a_repeated_data_set),
      TEST(a_data_set_has_one_pass_for_each_epoch),
      TEST(the_length_need_not_be_known),
      TEST(data_that_run_out_stop_training_in_tf_keras),
      TEST(data_that_run_out_end_the_epoch_in_keras3),
      TEST(steps_per_epoch_of_arrays),
      TEST(epochs_of_arrays_continue_after_the_last_one),
      TEST(epochs_of_shuffled_arrays_use_all_rows),
      TEST(options_that_exclude_data_sets),
      TEST(sample_weights_weigh_the_loss),
      TEST(sample_weights_are_split_and_train),
      TEST(class_and_sample_weights),
      TEST(validation_by_steps_batches_and_epochs),
      TEST(evaluate_takes_steps),
      TEST(predict_on_data_sets),
      TEST(weights_for_each_output),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
