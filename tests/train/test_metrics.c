/* Metrics in compile: weighted metrics, several outputs, names in logs, user classes, results of several
 * numbers, the numbers of a step (docs/spec/keras.md, sections 11 and 13). */
#include "model/support.h"

/* x (4, 1) = 1, 2, 3, 4 and y = 0: predictions of product_model(1, 0) are x, absolute errors are 1 to 4. */
static mix_tensor *x4(void) { return ARRAY(F32, MIX_SHAPE(4, 1), 1, 2, 3, 4); }
static mix_tensor *zeros4(void) { return ARRAY(F32, MIX_SHAPE(4, 1), 0, 0, 0, 0); }

static void compile_frozen(mix_model *model, mix_compile_options o) {
  o.size = sizeof o;
  o.optimizer = mix_sgd(.learning_rate = MIX_ZERO);
  if (!o.loss) o.loss = "mae";
  mix_model_compile_with(model, &o);
}

/* Sample weights affect the loss and the weighted metrics; the others are plain means. */
static void only_weighted_metrics_are_weighted(void **state) {
  (void)state;
  mix_model *model = product_model(1, 0);
  compile_frozen(model, (mix_compile_options){.metrics = {"mae"}, .weighted_metrics = {"mae", "mse"}});
  mix_logs *logs = mix_model_evaluate(model, x4(), zeros4(), .verbose = MIX_SILENT, .batch_size = 2,
                                      .sample_weight = ARRAY(F32, MIX_SHAPE(4), 1, 0, 3, 0));
  assert_no_error();
  assert_true(mix_logs_get(logs, "loss") == 2.5); /* (1 + 9) / 4: divided by the number of samples */
  assert_true(mix_logs_get(logs, "mae") == 2.5);
  assert_true(mix_logs_get(logs, "weighted_mae") == 2.5); /* (1 + 9) / (1 + 3) */
  assert_true(mix_logs_get(logs, "mse") == 7);            /* (1 + 27) / 4 */
  logs = mix_model_evaluate(model, x4(), zeros4(), .verbose = MIX_SILENT,
                            .sample_weight = ARRAY(F32, MIX_SHAPE(4), 0, 0, 0, 2));
  assert_true(mix_logs_get(logs, "mae") == 2.5 && mix_logs_get(logs, "weighted_mae") == 4 &&
              mix_logs_get(logs, "mse") == 16);
  logs = mix_model_evaluate(model, x4(), zeros4(), .verbose = MIX_SILENT);
  assert_true(mix_logs_get(logs, "weighted_mae") == 2.5);
}

/* Class weights are weights too, but only in training, not in validation. */
static void class_weights_weigh_weighted_metrics(void **state) {
  (void)state;
  for (int keras3 = 0; keras3 < 2; keras3++) {
    mix_set_semantics(keras3 ? "keras3" : "tf_keras");
    mix_model *model = product_model(1, 0);
    compile_frozen(model,
                   (mix_compile_options){.loss = "mse", .metrics = {"mae"}, .weighted_metrics = {"mae"}});
    mix_tensor *y = ARRAY(F32, MIX_SHAPE(4, 1), 0, 0, 1, 1); /* errors 1, 2, 2, 3 */
    mix_history *history = mix_model_fit(model, x4(), y, .batch_size = 2, .verbose = MIX_SILENT,
                                         .no_shuffle = true, .class_weight_count = 2, .class_labels = {0, 1},
                                         .class_weights = {3, 1}, .validation_x = x4(), .validation_y = y);
    assert_no_error();
    const mix_logs *logs = mix_history_epoch(history, 0);
    assert_near(mix_logs_get(logs, "mae"), 2, 0);
    assert_near(mix_logs_get(logs, "weighted_mae"), (3 * (1 + 2) + 2 + 3) / 8.0, 0);
    assert_near(mix_logs_get(logs, "val_weighted_mae"), 2, 0);
    mix_set_semantics("tf_keras");
  }
}

/* In tf_keras "crossentropy" and "ce" are metrics of compile, chosen by the first batch, under the given
 * name. In keras3 they are not metrics. */
static void crossentropy_by_its_short_names(void **state) {
  (void)state;
  examples e = examples_of(12, 6, 3);
  mix_tensor *inputs = mix_input(.shape = MIX_SHAPE(6));
  mix_model *model = mix_model_new(inputs, mix_call(mix_dense(.units = 3, .activation = "softmax"), inputs));
  mix_model_compile(model, .loss = "sparse_categorical_crossentropy",
                    .optimizer = mix_sgd(.learning_rate = MIX_ZERO),
                    .metrics = {"crossentropy", "ce", "accuracy"});
  mix_history *history =
      mix_model_fit(model, e.x, e.y, .batch_size = 12, .epochs = 3, .verbose = MIX_SILENT,
                    .callbacks = mix_list_of(mix_early_stopping(.monitor = "ce", .patience = 1)));
  assert_no_error();
  /* It does not decrease. The callback knows that smaller is better. */
  assert_int_equal(mix_history_epochs(history), 2);
  const mix_logs *logs = mix_history_epoch(history, 0);
  const double loss = mix_logs_get(logs, "loss"); /* the same values in another order of summation */
  assert_near(mix_logs_get(logs, "crossentropy"), loss, 4e-7 * loss);
  assert_near(mix_logs_get(logs, "ce"), loss, 4e-7 * loss);
  mix_set_semantics("keras3");
  mix_model *other = product_model(1, 0);
  assert_int_equal(mix_model_compile(other, .loss = "mse", .metrics = {"ce"}), MIX_VALUE_ERROR);
  assert_error(MIX_VALUE_ERROR, "'ce' is not known to keras3");
  mix_set_semantics("tf_keras");
}

/* Class indices (3) with predictions (3, 3): tf_keras gives losses and metrics labels (3, 1), which
 * broadcast; recorded from tf_keras 2.21. keras3 rejects them. Metrics that take class indices are
 * unchanged. */
static void labels_gain_a_column(void **state) {
  (void)state;
  mix_tensor *x = ARRAY(F32, MIX_SHAPE(3, 3), .1, .2, .7, .3, .3, .4, .5, .25, .25),
             *y = ARRAY(MIX_INT64, MIX_SHAPE(3), 0, 2, 1);
  for (int keras3 = 0; keras3 < 2; keras3++) {
    mix_set_semantics(keras3 ? "keras3" : "tf_keras");
    mix_tensor *inputs = mix_input(.shape = MIX_SHAPE(3));
    mix_model *model = mix_model_new(inputs, mix_call(mix_activation("linear"), inputs));
    mix_model_compile(model, .loss = "mse",
                      .metrics = {"mse", "mae", "categorical_accuracy", "binary_accuracy", "hinge",
                                  "RootMeanSquaredError", "sparse_categorical_accuracy"});
    if (keras3) {
      mix_model_evaluate(model, ARRAY(F32, MIX_SHAPE(2, 3), .1, .2, .7, .3, .3, .4),
                         ARRAY(MIX_INT64, MIX_SHAPE(2), 0, 2), .verbose = MIX_SILENT);
      assert_error(MIX_VALUE_ERROR, "do not broadcast");
      continue;
    }
    mix_logs *logs = mix_model_evaluate(model, x, y, .verbose = MIX_SILENT);
    static const struct {
      const char *name;
      double value;
    } rows[] = {{"loss", 1.1394444704055786},
                {"mse", 1.1394444704055786},
                {"mae", 0.8888888955116272},
                {"hinge", 0.6666666865348816},
                {"categorical_accuracy", 1 / 3.},
                {"binary_accuracy", 2 / 9.},
                {"root_mean_squared_error", 1.0674476623535156},
                {"sparse_categorical_accuracy", 1 / 3.}};
    assert_no_error();
    /* sums of nine numbers below 4 */
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
      assert_near(mix_logs_get(logs, rows[i].name), rows[i].value, 5e-7);
    mix_model_compile(model, .loss = "sparse_categorical_crossentropy",
                      .metrics = {"mean_io_u:num_classes=3,sparse_y_pred=false", "auc:name=area"});
    mix_model_evaluate(model, x, y, .verbose = MIX_SILENT);
    assert_error(MIX_VALUE_ERROR, "metric area: labels have shape (3, 1) and predictions (3, 3)");
    mix_model_compile(model, .loss = "sparse_categorical_crossentropy",
                      .metrics = {"mean_io_u:num_classes=3,sparse_y_pred=false"});
    logs = mix_model_evaluate(model, x, y, .verbose = MIX_SILENT);
    assert_no_error();
    assert_near(mix_logs_get(logs, "mean_io_u"), 1 / 6., 5e-7);
  }
  mix_set_semantics("tf_keras");
}

/* ---- names ---- */

static void expect_names(mix_model *model, mix_tensor *x, void *y, int count, const char *const *names) {
  mix_logs *logs = mix_model_test_on_batch(model, x, y);
  assert_no_error();
  assert_int_equal(mix_logs_count(logs), count);
  for (int i = 0; i < count; i++) assert_string_equal(mix_logs_name(logs, i), names[i]);
}

/* tf_keras logs a metric given by class name under the class's own name, keras3 under the given name. */
static void names_of_one_output(void **state) {
  (void)state;
  mix_model *model = product_model(1, 0);
  compile_frozen(model, (mix_compile_options){.metrics = {"mse", "MeanAbsoluteError"},
                                              .weighted_metrics = {"mse", "mape"}});
  expect_names(model, x4(), zeros4(), 5,
               (const char *const[]){"loss", "mse", "mean_absolute_error", "weighted_mse", "mape"});
  compile_frozen(model, (mix_compile_options){.metrics = {"mse", "mse"}});
  assert_error(MIX_VALUE_ERROR, "two metrics are called 'mse'");
  mix_set_semantics("keras3");
  model = product_model(1, 0);
  compile_frozen(model, (mix_compile_options){.metrics = {"mse", "MeanAbsoluteError", "mse"},
                                              .weighted_metrics = {"mse"}});
  expect_names(model, x4(), zeros4(), 5,
               (const char *const[]){"loss", "mse", "MeanAbsoluteError", "mse_1", "weighted_mse"});
  mix_set_semantics("tf_keras");
}

static mix_model *two_outputs(void) {
  mix_tensor *inputs = mix_input(.shape = MIX_SHAPE(1));
  mix_layer *a =
      mix_dense(.units = 1, .no_bias = true,
                .kernel_initializer_object = mix_initializer_new("constant", .value = 1), .name = "a");
  mix_layer *b =
      mix_dense(.units = 1, .no_bias = true,
                .kernel_initializer_object = mix_initializer_new("constant", .value = 2), .name = "b");
  return mix_model_new(inputs, mix_list_of(mix_call(a, inputs), mix_call(b, inputs)));
}

/* Each output has its own metrics. tf_keras keeps an output's metrics together, keras3 puts the weighted ones
 * last. */
static void each_output_has_its_own(void **state) {
  (void)state;
  for (int keras3 = 0; keras3 < 2; keras3++) {
    mix_set_semantics(keras3 ? "keras3" : "tf_keras");
    mix_model *model = two_outputs();
    compile_frozen(
        model,
        (mix_compile_options){
            .metric_objects = mix_list_of(mix_list_of(mix_metric_new("mae"), mix_metric_new("mse")), NULL),
            .weighted_metric_objects = mix_list_of(mix_metric_new("mae"), mix_metric_new("mse"))});
    const char *const tf_keras_names[] = {"loss",  "a_loss",         "b_loss", "a_mae",
                                          "a_mse", "a_weighted_mae", "b_mse"};
    mix_list *labels = mix_list_of(zeros4(), zeros4());
    expect_names(model, x4(), labels, 7, tf_keras_names);
    mix_logs *logs = mix_model_evaluate(model, x4(), labels, .verbose = MIX_SILENT,
                                        .sample_weight = ARRAY(F32, MIX_SHAPE(4), 0, 0, 1, 1));
    assert_true(mix_logs_get(logs, "a_mae") == 2.5 && mix_logs_get(logs, "a_weighted_mae") == 3.5);
    /* (36 + 64) / 2, 30 / 4. */
    assert_true(mix_logs_get(logs, "b_mse") == 50 && mix_logs_get(logs, "a_mse") == 7.5);
    mix_set_semantics("tf_keras");
  }
  mix_model *model = two_outputs();
  compile_frozen(model, (mix_compile_options){.metric_objects = mix_list_of(mix_metric_new("mae"))});
  assert_error(MIX_VALUE_ERROR, "1 items of metric_objects; the model has 2 outputs");
  mix_metric *metric = mix_metric_new("mae");
  compile_frozen(model, (mix_compile_options){.metric_objects = mix_list_of(metric, metric)});
  assert_error(MIX_VALUE_ERROR, "is given twice");
}

/* ---- a user class ---- */

/* The largest error so far in each column. Its state has the shape of a row. */
static mix_status worst_build(mix_metric *metric, mix_shape y_true, mix_shape y_pred) {
  (void)y_true;
  mix_metric_add_variable(metric, "worst", .shape = MIX_SHAPE(y_pred.dims[y_pred.rank - 1]), .value = -1);
  return mix_error();
}
static mix_status worst_update(mix_metric *metric, const mix_metric_args *args) {
  mix_variable *worst = mix_list_get(mix_metric_variables(metric), 0);
  mix_tensor *error =
      mix_abs(mix_subtract(args->y_pred, mix_cast(args->y_true, mix_tensor_dtype(args->y_pred))));
  mix_tensor *largest = mix_cast(mix_reduce_max(error, MIX_AXES(0), false), mix_metric_dtype(metric));
  return mix_variable_assign(worst, mix_maximum(mix_variable_value(worst), largest));
}
static mix_tensor *worst_result(mix_metric *metric) {
  return mix_variable_value(mix_list_get(mix_metric_variables(metric), 0));
}
static int finalized;
static void worst_finalize(mix_metric *metric) { finalized += *(int *)mix_metric_data(metric); }
static const mix_metric_class worst = {.size = sizeof(mix_metric_class),
                                       .name = "WorstError",
                                       .instance_size = sizeof(int),
                                       .build = worst_build,
                                       .update = worst_update,
                                       .result = worst_result,
                                       .finalize = worst_finalize};

typedef struct seen {
  int steps;
  double worst[8][2];
} seen;
static void on_step(void *context, const mix_step_record *record) {
  seen *s = context;
  for (int i = 0; i < 2; i++)
    s->worst[s->steps][i] = mix_logs_get(record->metrics, i ? "worst_error[1]" : "worst_error[0]");
  s->steps++;
}

static void a_user_class(void **state) {
  (void)state;
  mix_clear_names();
  finalized = 0;
  MIX_SCOPE {
    mix_tensor *inputs = mix_input(.shape = MIX_SHAPE(2));
    mix_model *model = mix_model_new(inputs, mix_call(mix_activation("linear"), inputs));
    mix_metric *metric = mix_metric_new(.metric_class = &worst);
    *(int *)mix_metric_data(metric) = 1;
    assert_string_equal(mix_metric_name(metric), "worst_error");
    assert_null(mix_metric_result_tensor(metric)); /* its shape is unknown */
    assert_error(MIX_VALUE_ERROR, "before the first update");
    mix_tensor *x = ARRAY(F32, MIX_SHAPE(4, 2), 1, 0, 5, 1, 2, 9, 0, 3),
               *y = ARRAY(F32, MIX_SHAPE(4, 2), 0, 0, 0, 0, 0, 0, 0, 0);
    compile_frozen(model, (mix_compile_options){.metric_objects = mix_list_of(metric)});
    seen s = {0};
    mix_history *history = mix_model_fit(model, x, y, .batch_size = 1, .verbose = MIX_SILENT,
                                         .no_shuffle = true, .on_step = on_step, .context = &s);
    assert_no_error();
    /* each step's own numbers, and the epoch's */
    static const double steps[4][2] = {{1, 0}, {5, 1}, {2, 9}, {0, 3}};
    for (int i = 0; i < 4; i++) assert_true(s.worst[i][0] == steps[i][0] && s.worst[i][1] == steps[i][1]);
    const mix_logs *logs = mix_history_epoch(history, 0);
    assert_true(mix_logs_get(logs, "worst_error[0]") == 5 && mix_logs_get(logs, "worst_error[1]") == 9);
    mix_metric_result(metric);
    assert_error(MIX_VALUE_ERROR, "2 numbers");
    mix_metric_reset(metric);
    assert_true(at(mix_metric_result_tensor(metric), 1) == -1);
  }
  assert_int_equal(finalized, 1);
  mix_metric_class lame = worst;
  lame.result = NULL;
  assert_null(mix_metric_new(.metric_class = &lame));
  assert_error(MIX_VALUE_ERROR, "a result function");
  assert_null(mix_metric_new("mae", .metric_class = &worst));
  assert_error(MIX_VALUE_ERROR, "one of the three");
}

/* The variables that a checkpoint saves in the middle of an epoch. */
static void the_state_of_all_metrics(void **state) {
  (void)state;
  mix_model *model = two_outputs();
  compile_frozen(model, (mix_compile_options){.metrics = {"mae"}});
  mix_list *metrics = mix_model_metrics(model), *variables = mix_model_metrics_variables(model);
  assert_int_equal(mix_list_count(metrics), 5);
  assert_string_equal(mix_metric_name(mix_list_get(metrics, 0)), "loss");
  assert_int_equal(mix_list_count(variables), 10);
  mix_model_train_on_batch(model, x4(), mix_list_of(zeros4(), zeros4()));
  assert_near(at(mix_variable_true_value(mix_list_get(variables, 6)), 0), 10, 0); /* a_mae's total */
  assert_near(at(mix_variable_true_value(mix_list_get(variables, 7)), 0), 4, 0);  /* and its count */
  /* A class whose state depends on shapes: it is built from the model's output. */
  compile_frozen(model, (mix_compile_options){.metric_objects =
                                                  mix_list_of(mix_metric_new(.metric_class = &worst), NULL)});
  assert_int_equal(mix_list_count(mix_model_metrics_variables(model)), 7);
  assert_no_error();
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(only_weighted_metrics_are_weighted),
      TEST(class_weights_weigh_weighted_metrics),
      TEST(crossentropy_by_its_short_names),
      TEST(labels_gain_a_column),
      TEST(names_of_one_output),
      TEST(each_output_has_its_own),
      TEST(a_user_class),
      TEST(the_state_of_all_metrics),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
