/* Custom callbacks: which hooks are called, in which order, with which arguments, and what a failure does. */
#include "model/support.h"
#include <mixtape/callback.h>

enum { SEEN_MAX = 4096 };

typedef struct diary {
  char text[SEEN_MAX];
} diary;

static void note(diary *d, const char *what, int64_t index) {
  size_t used = strlen(d->text);
  snprintf(d->text + used, sizeof d->text - used, "%s%lld ", what, (long long)index);
}

/* Hooks that write their name and index, and check that logs are given exactly if expected. */
#define WRITER(hook, word, logged)                                                                           \
  static mix_status hook(void *context, mix_model *model, int64_t index, mix_logs *logs) {                   \
    assert_non_null(model);                                                                                  \
    assert_true((logs != NULL) == (logged));                                                                 \
    note(context, word, index);                                                                              \
    return MIX_OK;                                                                                           \
  }
WRITER(train_begin, "T", false)
WRITER(train_end, "t", true)
WRITER(epoch_begin, "E", false)
WRITER(epoch_end, "e", true)
WRITER(batch_begin, "B", false)
WRITER(batch_end, "b", true)
WRITER(test_begin, "V", false)
WRITER(test_end, "v", true)
WRITER(test_batch_begin, "C", false)
WRITER(test_batch_end, "c", true)
WRITER(predict_begin, "P", false)
WRITER(predict_end, "p", false)
WRITER(predict_batch_begin, "Q", false)
WRITER(predict_batch_end, "q", false)
WRITER(batch_end_without_logs, "b", false)

static mix_callback *writer(diary *d) {
  return mix_callback_new(.name = "writer", .context = d, .on_train_begin = train_begin,
                          .on_train_end = train_end, .on_epoch_begin = epoch_begin, .on_epoch_end = epoch_end,
                          .on_train_batch_begin = batch_begin, .on_train_batch_end = batch_end,
                          .on_test_begin = test_begin, .on_test_end = test_end,
                          .on_test_batch_begin = test_batch_begin, .on_test_batch_end = test_batch_end,
                          .on_predict_begin = predict_begin, .on_predict_end = predict_end,
                          .on_predict_batch_begin = predict_batch_begin,
                          .on_predict_batch_end = predict_batch_end);
}

static mix_tensor *zeros(int64_t n) { return mix_fill(MIX_SHAPE(n, 1), 0, F32); }

static void hooks_come_in_keras_order(void **state) {
  (void)state;
  mix_model *model = product_model(1, 0);
  diary d = {""};
  mix_model_fit(model, counting(5), zeros(5), .batch_size = 2, .epochs = 2, .validation_split = 0.4,
                .verbose = MIX_SILENT, .callbacks = mix_list_of(writer(&d)));
  assert_no_error();
  assert_string_equal(d.text, "T0 E0 B0 b0 B1 b1 V0 C0 c0 v0 e0 E1 B0 b0 B1 b1 V0 C0 c0 v0 e1 t0 ");
  diary test = {""};
  mix_model_evaluate(model, counting(5), zeros(5), .batch_size = 3, .verbose = MIX_SILENT,
                     .callbacks = mix_list_of(writer(&test)));
  assert_string_equal(test.text, "V0 C0 c0 C1 c1 v0 ");
  diary predict = {""};
  mix_model_predict(model, counting(5), .batch_size = 3, .callbacks = mix_list_of(writer(&predict)));
  assert_string_equal(predict.text, "P0 Q0 q0 Q1 q1 p0 ");
}

static mix_status mark_epoch(void *context, mix_model *model, int64_t epoch, mix_logs *logs) {
  (void)model, (void)epoch;
  const char *name = context;
  assert_false(mix_logs_has(logs, name));
  if (!strcmp(name, "second")) assert_true(mix_logs_has(logs, "first")); /* in the given order */
  return mix_logs_set(logs, name, epoch + 10.0);
}

static char printed[SEEN_MAX];
static void keep_print(void *context, mix_log_level level, const char *message) {
  (void)context, (void)level;
  strncat(printed, message, sizeof printed - strlen(printed) - 1);
}

static void the_users_come_first_then_history_then_the_bar(void **state) {
  (void)state;
  mix_model *model = product_model(1, 0);
  mix_callback *first = mix_callback_new(.on_epoch_end = mark_epoch, .context = "first");
  mix_callback *second = mix_callback_new(.on_epoch_end = mark_epoch, .context = "second");
  printed[0] = 0;
  mix_set_log_callback(keep_print, NULL);
  mix_history *history = mix_model_fit(model, counting(4), zeros(4), .epochs = 5, .initial_epoch = 3,
                                       .verbose = 2, .callbacks = mix_list_of(first, second));
  mix_set_log_callback(NULL, NULL);
  assert_no_error();
  assert_int_equal(mix_history_epochs(history), 2);
  assert_true(mix_logs_get(mix_history_epoch(history, 1), "second") == 14);
  assert_non_null(strstr(printed, "second: 13.0000")); /* the progress bar shows the added values */
  assert_int_equal(mix_history_epoch_number(history, 0), 3);
  assert_int_equal(mix_history_epoch_number(history, 2), -1);
  assert_int_equal(mix_history_get_params(history).epochs, 5);
  assert_int_equal(mix_history_get_params(history).steps, 1);
  assert_ptr_equal(mix_model_history(model), history);
}

/* Running means at the end of a batch: squares 1, then (1 + 9) / 2. */
static mix_status check_means(void *context, mix_model *model, int64_t batch, mix_logs *logs) {
  (void)model;
  assert_true(mix_logs_get(logs, "loss") == (batch ? 5 : 1));
  ++*(int *)context;
  return MIX_OK;
}
static void batch_logs_are_running_means(void **state) {
  (void)state;
  mix_model *model = product_model(1, 0);
  int calls = 0;
  mix_tensor *x = ARRAY(F32, MIX_SHAPE(2, 1), 1, 3);
  mix_model_fit(model, x, zeros(2), .batch_size = 1, .no_shuffle = true, .verbose = MIX_SILENT,
                .callbacks =
                    mix_list_of(mix_callback_new(.on_train_batch_end = check_means, .context = &calls)));
  assert_no_error();
  assert_int_equal(calls, 2);
}

static void without_batch_logs_nothing_is_read(void **state) {
  (void)state;
  mix_model *model = product_model(1, 0);
  diary d = {""};
  mix_callback *silent =
      mix_callback_new(.on_train_batch_end = batch_end_without_logs, .context = &d, .no_batch_logs = true);
  mix_model_fit(model, counting(2), zeros(2), .batch_size = 1, .verbose = MIX_SILENT,
                .callbacks = mix_list_of(silent));
  assert_no_error();
  assert_string_equal(d.text, "b0 b1 ");
  diary e = {""}; /* together with one that needs the logs */
  mix_model_fit(model, counting(2), zeros(2), .batch_size = 1, .verbose = MIX_SILENT,
                .callbacks = mix_list_of(mix_callback_new(.on_train_batch_end = batch_end_without_logs,
                                                          .context = &e, .no_batch_logs = true),
                                         mix_terminate_on_nan()));
  assert_no_error();
  assert_string_equal(e.text, "b0 b1 ");
}

static mix_status fail_in_epoch_1(void *context, mix_model *model, int64_t epoch, mix_logs *logs) {
  (void)context, (void)model, (void)logs;
  return epoch == 1 ? MIX_IO_ERROR : MIX_OK;
}
static mix_status fail_by_a_call(void *context, mix_model *model, int64_t batch, mix_logs *logs) {
  (void)context, (void)logs;
  if (batch == 1) mix_model_get_layer(model, "missing");
  return MIX_OK;
}

static void a_failure_ends_fit_and_leaves_the_history(void **state) {
  (void)state;
  mix_model *model = product_model(1, 0);
  diary d = {""};
  mix_callback *failing = mix_callback_new(.name = "failing", .on_epoch_end = fail_in_epoch_1);
  assert_null(mix_model_fit(model, counting(2), zeros(2), .epochs = 5, .verbose = MIX_SILENT,
                            .callbacks = mix_list_of(failing, writer(&d))));
  assert_error(MIX_IO_ERROR, "callback 'failing' returned OSError from on_epoch_end");
  assert_string_equal(d.text, "T0 E0 B0 b0 e0 E1 B0 b0 "); /* no end of training, as in Keras */
  mix_history *history = mix_model_history(model);
  assert_int_equal(mix_history_epochs(history), 1);
  assert_true(mix_logs_get(mix_history_epoch(history, 0), "loss") == 0.5);
  assert_int_equal(mix_history_steps(history), 2);
  failing = mix_callback_new(.on_train_batch_end = fail_by_a_call);
  assert_null(mix_model_fit(model, counting(3), zeros(3), .batch_size = 1, .verbose = MIX_SILENT,
                            .callbacks = mix_list_of(failing)));
  assert_error(MIX_VALUE_ERROR, "missing");
  assert_int_equal(mix_history_epochs(mix_model_history(model)), 0);
  assert_int_equal(mix_history_steps(mix_model_history(model)), 2);
  /* The model can still be used. */
  assert_non_null(mix_model_fit(model, counting(2), zeros(2), .verbose = MIX_SILENT));
  failing = mix_callback_new(.on_test_batch_end = fail_by_a_call);
  assert_null(mix_model_evaluate(model, counting(3), zeros(3), .batch_size = 1, .verbose = MIX_SILENT,
                                 .callbacks = mix_list_of(failing)));
  assert_error(MIX_VALUE_ERROR, "missing");
  failing = mix_callback_new(.on_predict_batch_end = fail_by_a_call);
  assert_null(mix_model_predict(model, counting(3), .batch_size = 1, .callbacks = mix_list_of(failing)));
  assert_error(MIX_VALUE_ERROR, "missing");
}

/* The failure does not hide what the optimizer is asked: no silent zeros. */
static mix_status ask_after_a_failure(void *context, mix_model *model, int64_t index, mix_logs *logs) {
  (void)index, (void)logs;
  mix_optimizer *optimizer = mix_model_optimizer(model);
  double *answers = context;
  mix_tensor_item(NULL);
  answers[0] = mix_optimizer_learning_rate(optimizer);
  answers[1] = (double)mix_optimizer_iterations(optimizer);
  return mix_error();
}
static void the_optimizer_answers_after_a_failure(void **state) {
  (void)state;
  for (int scheduled = 0; scheduled < 2; scheduled++) {
    mix_model *model = product_model(1, 0);
    mix_schedule *schedule = scheduled ? mix_exponential_decay(0.25, 1, 1, false) : NULL;
    mix_model_compile(model, .loss = "mse",
                      .optimizer = mix_sgd(.learning_rate = scheduled ? 0 : 0.25, .schedule = schedule));
    double answers[2] = {0, 0};
    mix_callback *asking = mix_callback_new(.on_epoch_end = ask_after_a_failure, .context = answers);
    assert_null(mix_model_fit(model, counting(4), zeros(4), .batch_size = 2, .verbose = MIX_SILENT,
                              .callbacks = mix_list_of(asking)));
    assert_error(MIX_TYPE_ERROR, "tensor_item"); /* the first error is the one reported */
    assert_true(answers[0] == 0.25);
    assert_true(answers[1] == 2);
  }
}

static mix_status stop_at(void *context, mix_model *model, int64_t index, mix_logs *logs) {
  (void)logs;
  return index == *(int *)context ? mix_model_set_stop_training(model, true) : MIX_OK;
}

static void stop_training_ends_after_the_step_or_the_epoch(void **state) {
  (void)state;
  mix_model *model = product_model(1, 0);
  int at = 1;
  mix_callback *stop = mix_callback_new(.on_train_batch_end = stop_at, .context = &at);
  mix_history *history =
      mix_model_fit(model, counting(5), zeros(5), .batch_size = 1, .epochs = 3, .validation_x = counting(2),
                    .validation_y = zeros(2), .verbose = MIX_SILENT, .callbacks = mix_list_of(stop));
  assert_int_equal(mix_history_steps(history), 2);
  assert_int_equal(mix_history_epochs(history), 1);
  assert_true(mix_logs_get(mix_history_epoch(history, 0), "val_loss") == 0.5);
  assert_true(mix_model_stop_training(model));
  stop = mix_callback_new(.on_epoch_end = stop_at, .context = &at);
  history = mix_model_fit(model, counting(5), zeros(5), .epochs = 9, .verbose = MIX_SILENT,
                          .callbacks = mix_list_of(stop));
  assert_int_equal(mix_history_epochs(history), 2);
  /* A new fit starts over. */
  history = mix_model_fit(model, counting(5), zeros(5), .epochs = 3, .verbose = MIX_SILENT);
  assert_int_equal(mix_history_epochs(history), 3);
  assert_false(mix_model_stop_training(model));
}

static mix_status evaluate_inside(void *context, mix_model *model, int64_t epoch, mix_logs *logs) {
  (void)context, (void)epoch;
  mix_logs *inner = mix_model_evaluate(model, ARRAY(F32, MIX_SHAPE(1, 1), 3), ARRAY(F32, MIX_SHAPE(1, 1), 0),
                                       .verbose = MIX_SILENT);
  return mix_logs_set(logs, "inner", mix_logs_get(inner, "loss"));
}
static void a_hook_may_use_the_model(void **state) {
  (void)state;
  mix_model *model = product_model(1, 0);
  mix_history *history =
      mix_model_fit(model, counting(2), zeros(2), .epochs = 2, .verbose = MIX_SILENT,
                    .callbacks = mix_list_of(mix_callback_new(.on_epoch_end = evaluate_inside)));
  assert_no_error();
  for (int e = 0; e < 2; e++) {
    assert_true(mix_logs_get(mix_history_epoch(history, e), "inner") == 9);
    assert_true(mix_logs_get(mix_history_epoch(history, e), "loss") == 0.5);
  }
}

static void released(void *context) { ++*(int *)context; }
static void a_callback_releases_its_context_once(void **state) {
  (void)state;
  int count = 0;
  MIX_SCOPE {
    mix_callback *callback = mix_callback_new(.context = &count, .release = released, .name = "mine");
    assert_string_equal(mix_callback_name(callback), "mine");
    mix_list_of(callback, callback);
    assert_int_equal(count, 0);
  }
  assert_int_equal(count, 1);
}

static void only_callbacks_are_taken(void **state) {
  (void)state;
  mix_model *model = product_model(1, 0);
  assert_null(mix_model_fit(model, counting(2), zeros(2), .verbose = MIX_SILENT,
                            .callbacks = mix_list_of(counting(2))));
  assert_error(MIX_TYPE_ERROR, "item 0 of callbacks");
  assert_null(mix_model_evaluate(model, counting(2), zeros(2), .verbose = MIX_SILENT,
                                 .callbacks = (mix_list *)counting(2)));
  assert_error(MIX_TYPE_ERROR, "callbacks is no list");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(hooks_come_in_keras_order),
      TEST(the_users_come_first_then_history_then_the_bar),
      TEST(batch_logs_are_running_means),
      TEST(without_batch_logs_nothing_is_read),
      TEST(a_failure_ends_fit_and_leaves_the_history),
      TEST(the_optimizer_answers_after_a_failure),
      TEST(stop_training_ends_after_the_step_or_the_epoch),
      TEST(a_hook_may_use_the_model),
      TEST(a_callback_releases_its_context_once),
      TEST(only_callbacks_are_taken),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
