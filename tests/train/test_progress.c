/* The forms of progress output (docs/spec/keras.md, 15), through the log callback. Times depend on the
 * machine and match any number. */
#include "model/support.h"
#include <mixtape/callback.h>
#include <stdlib.h>
#include <time.h>

static char text[1 << 16];
static void listen(void *context, mix_log_level level, const char *message) {
  (void)context;
  size_t used = strlen(text);
  if (level == MIX_LOG_PROGRESS) snprintf(text + used, sizeof text - used, "%s", message);
}

/* Matches a pattern in which # is a time (digits with ':'), @ a rate ("12us", "3ms", "1s") and ~ a number. */
static bool follows(const char *line, const char *pattern) {
  for (; *pattern; pattern++) {
    if (*pattern == '#' || *pattern == '~' || *pattern == '@') {
      const char *allowed = *pattern == '#'   ? "0123456789:"
                            : *pattern == '@' ? "0123456789mus"
                                              : "0123456789.e+-";
      size_t length = strspn(line, allowed);
      if (!length) return false;
      line += length;
    } else if (*line++ != *pattern) {
      return false;
    }
  }
  return *line == 0;
}
static void assert_follows(const char *line, const char *pattern) {
  if (!follows(line, pattern)) fail_msg("got      '%s'\nexpected '%s'", line, pattern);
}

static mix_tensor *zeros(int64_t n) { return mix_fill(MIX_SHAPE(n, 1), 0, F32); }

static void fit_with(int verbose, int64_t epochs) {
  mix_model *model = product_model(1, 0);
  mix_set_log_callback(listen, NULL);
  text[0] = 0;
  mix_model_fit(model, counting(10), zeros(10), .batch_size = 1, .epochs = epochs, .verbose = verbose,
                .validation_split = 0.5);
  assert_no_error();
}

static void silence(void **state) {
  (void)state;
  fit_with(MIX_SILENT, 3);
  assert_string_equal(text, "");
}

/* 0 is Keras's "auto", as everywhere; quiet is what Keras's verbose=0 says. */
static void quiet_is_silent(void **state) {
  (void)state;
  mix_model *model = product_model(1, 0);
  mix_list *logger = mix_list_of(mix_progbar_logger(.count_mode = "steps"));
  mix_set_log_callback(listen, NULL);
  text[0] = 0;
  mix_model_fit(model, counting(4), zeros(4), .batch_size = 1, .quiet = true);
  mix_model_evaluate(model, counting(4), zeros(4), .quiet = true);
  mix_model_predict(model, counting(4), .quiet = true, .callbacks = logger);
  assert_no_error();
  assert_string_equal(text, "");
  mix_model_fit(model, counting(4), zeros(4), .quiet = true, .verbose = 2);
  assert_error(MIX_VALUE_ERROR, "fit: quiet is true and verbose is 2; give one");
  mix_model_evaluate(model, counting(4), zeros(4), .quiet = true, .verbose = 1);
  assert_error(MIX_VALUE_ERROR, "evaluate: quiet is true and verbose is 1; give one");
  mix_model_predict(model, counting(4), .quiet = true, .verbose = 2);
  assert_error(MIX_VALUE_ERROR, "predict: quiet is true and verbose is 2; give one");
}

static void a_line_an_epoch(void **state) {
  (void)state;
  fit_with(2, 1);
  assert_follows(text, "5/5 - #s - loss: 6.0000 - val_loss: 51.0000 - @/epoch - @/step\n");
  assert_null(strstr(text, " 0s/epoch")); /* less than a second is in ms or us */
}

static void a_nan_has_no_sign(void **state) {
  (void)state;
  mix_model *model = product_model(1, 0);
  mix_tensor *y = mix_fill(MIX_SHAPE(2, 1), -NAN, F32);
  mix_set_log_callback(listen, NULL);
  for (int verbose = 1; verbose <= 2; verbose++) {
    text[0] = 0;
    mix_model_fit(model, counting(2), y, .batch_size = 2, .verbose = verbose);
    assert_no_error();
    assert_non_null(strstr(text, " - loss: nan"));
  }
}

static void epochs_are_announced_where_there_are_several(void **state) {
  (void)state;
  fit_with(2, 2);
  assert_follows(text, "Epoch 1/2\n5/5 - #s - loss: 6.0000 - val_loss: 51.0000 - @/epoch - @/step\n"
                       "Epoch 2/2\n5/5 - #s - loss: 6.0000 - val_loss: 51.0000 - @/epoch - @/step\n");
}

static void the_bar(void **state) {
  (void)state;
  fit_with(1, 1);
  const char *last = strrchr(text, '\r');
  assert_non_null(last);
  const char *end = strchr(last, '\n');
  assert_non_null(end);
  assert_string_equal(end, "\n");
  char line[256];
  snprintf(line, sizeof line, "%.*s", (int)(end - last - 1), last + 1);
  size_t length = strlen(line);
  while (length && line[length - 1] == ' ') line[--length] = 0; /* padding over the previous, longer line */
  assert_follows(line, "5/5 [==============================] - #s @/step - loss: 6.0000 - val_loss: 51.0000");
  assert_true(text[0] == '\r'); /* drawn during training: the first step is always shown */
  char first[128];
  snprintf(first, sizeof first, "%.*s", (int)strcspn(text + 1, "\r"), text + 1);
  assert_follows(first, "1/5 [=====>........................] - ETA: #s - loss: ~");
}

static void keras3_has_a_bar_and_a_line_of_its_own(void **state) {
  (void)state;
  mix_set_semantics("keras3");
  fit_with(2, 1);
  assert_follows(text, "5/5 - #s - @/step - loss: 6.0000 - val_loss: 51.0000\n");
  fit_with(1, 1);
  const char *last = strrchr(text, '\r');
  assert_non_null(strstr(last, "\033[1m5/5\033[0m \033[32m"
                               "━━━━━━━━━━━━━━━━━━━━"
                               "\033[0m\033[37m\033[0m \033[1m"));
  assert_non_null(strstr(last, "/step - loss: 6.0000 - val_loss: 51.0000"));
}

static void evaluate_has_the_same_forms(void **state) {
  (void)state;
  mix_model *model = product_model(1, 0);
  mix_set_log_callback(listen, NULL);
  text[0] = 0;
  mix_model_evaluate(model, counting(100), zeros(100), .verbose = 2);
  assert_follows(text, "4/4 - #s - loss: 3283.5000 - @/epoch - @/step\n");
  text[0] = 0;
  mix_model_evaluate(model, counting(4), zeros(4), .verbose = MIX_SILENT);
  assert_string_equal(text, "");
}

/* Numbers too small for four decimals have an exponent; in the line of verbose 2 negative ones have it
 * too. */
static mix_tensor *scaled(void *context, mix_tensor *y_true, mix_tensor *y_pred) {
  (void)y_true;
  return mix_multiply(mix_squeeze(y_pred, MIX_AXES(-1)), mix_scalar_like(y_pred, *(double *)context));
}
static void small_numbers_have_exponents(void **state) {
  (void)state;
  double factor = 0;
  mix_model *model = product_model(1, 0);
  mix_set_log_callback(listen, NULL);
  static const struct {
    double factor;
    int verbose;
    const char *shown;
  } rows[] = {{0, 2, "loss: 0.0000e+00 "},
              {0x1p-10, 2, "loss: 9.7656e-04 "},
              {0.5, 2, "loss: 0.5000 "},
              {-0.5, 2, "loss: -5.0000e-01 "},
              {-0.5, 1, "loss: -0.5000"}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    factor = rows[i].factor;
    mix_model_compile(model, .loss_object = mix_loss_new(.function = scaled, .context = &factor),
                      .optimizer = mix_sgd(.learning_rate = MIX_ZERO));
    text[0] = 0;
    mix_model_evaluate(model, ARRAY(F32, MIX_SHAPE(1, 1), 1), zeros(1), .verbose = rows[i].verbose);
    assert_no_error();
    if (!strstr(text, rows[i].shown)) fail_msg("'%s' is missing in '%s'", rows[i].shown, text);
  }
}

static void a_limit_of_steps_is_the_target(void **state) {
  (void)state;
  mix_model *model = product_model(1, 0);
  mix_set_log_callback(listen, NULL);
  text[0] = 0;
  mix_model_fit(model, counting(10), zeros(10), .batch_size = 2, .epochs = 2, .steps = 7, .no_shuffle = true,
                .verbose = 2);
  assert_follows(text, "Epoch 1/2\n5/5 - #s - loss: 28.5000 - @/epoch - @/step\nEpoch 2/2\n"
                       "2/2 - #s - loss: 3.5000 - @/epoch - @/step\n");
}

static mix_list *slow_element(void *context, int64_t index) {
  nanosleep(&(struct timespec){.tv_nsec = 350000000}, NULL);
  return index < 3 ? mix_list_of(counting(2), zeros(2)) : NULL;
}
/* Four waits of 0.35 s, that for the end among them, beside steps of microseconds. */
static void an_epoch_that_waits_for_input_says_so(void **state) {
  (void)state;
  mix_model *model = product_model(1, 0);
  mix_set_log_callback(listen, NULL);
  for (int verbose = 1; verbose <= 2; verbose++) {
    text[0] = 0;
    mix_model_fit(model, mix_dataset_from_generator(slow_element, .cardinality = 3), NULL, .epochs = 1,
                  .verbose = verbose);
    assert_no_error();
    const char *input = strstr(text, " - input ");
    assert_non_null(input);
    assert_follows(input, " - input # %\n");
    assert_true(atoi(input + strlen(" - input ")) >= 10 && atoi(input + strlen(" - input ")) <= 100);
  }
}

/* ---- ProgbarLogger. Lines are those of tests/spec/recorded/record_progbar.py. ---- */

enum { FIT, EVALUATE, PREDICT };

/* Runs with 1, 2, 3, 4, 5 in batches of one: losses 1, 2.5, ... 11. */
static void run_with(int what, int verbose, mix_callback *logger) {
  mix_model *model = product_model(1, 0);
  mix_tensor *x = ARRAY(F32, MIX_SHAPE(5, 1), 1, 2, 3, 4, 5);
  mix_list *callbacks = mix_list_of(logger);
  mix_set_log_callback(listen, NULL);
  text[0] = 0;
  if (what == FIT)
    mix_model_fit(model, x, zeros(5), .batch_size = 1, .epochs = 2, .verbose = verbose, .no_shuffle = true,
                  .callbacks = callbacks);
  if (what == EVALUATE)
    mix_model_evaluate(model, x, zeros(5), .batch_size = 1, .verbose = verbose, .callbacks = callbacks);
  if (what == PREDICT)
    mix_model_predict(model, x, .batch_size = 1, .verbose = verbose, .callbacks = callbacks);
  mix_set_log_callback(NULL, NULL);
}

static mix_callback *steps_logger(void) { return mix_progbar_logger(.count_mode = "steps"); }

static void a_logger_takes_the_place_of_fit_s_own(void **state) {
  (void)state;
  run_with(FIT, 2, steps_logger());
  assert_no_error();
  assert_follows(text, "Epoch 1/2\n5/5 - #s - loss: 11.0000 - @/epoch - @/step\n"
                       "Epoch 2/2\n5/5 - #s - loss: 11.0000 - @/epoch - @/step\n");
  run_with(EVALUATE, 2, steps_logger());
  assert_follows(text, "5/5 - #s - loss: 11.0000 - @/epoch - @/step\n");
  run_with(PREDICT, 2, steps_logger());
  assert_follows(text, "5/5 - #s - @/epoch - @/step\n");
  for (int what = FIT; what <= PREDICT; what++) {
    run_with(what, MIX_SILENT, steps_logger());
    assert_string_equal(text, "");
  }
  run_with(PREDICT, 0, NULL);
  assert_error(MIX_TYPE_ERROR, "item 0 of callbacks is no callback");
}

static void predict_shows_its_progress_where_asked(void **state) {
  (void)state;
  mix_model *model = product_model(1, 0);
  mix_set_log_callback(listen, NULL);
  text[0] = 0;
  mix_model_predict(model, counting(3), .batch_size = 1);
  assert_string_equal(text, "");
  mix_model_predict(model, counting(3), .batch_size = 1, .verbose = 2);
  assert_follows(text, "3/3 - #s - @/epoch - @/step\n");
  run_with(PREDICT, 1, steps_logger());
  assert_non_null(strstr(text, "\r1/5 [=====>........................] - ETA: "));
  assert_non_null(strstr(text, "\r5/5 [==============================] - "));
}

static void samples_are_not_seen(void **state) {
  (void)state;
  run_with(FIT, 1, mix_progbar_logger(.count_mode = NULL));
  assert_no_error();
  const char *second = strstr(text, "Epoch 2/2\n");
  assert_non_null(second);
  assert_non_null(strstr(text, "Epoch 1/2\n\r      0/Unknown - "));
  assert_non_null(strstr(text, "/sample - loss: 11.0000\n"));
  assert_ptr_equal(strstr(second, "\r0/5 [..............................] - ETA: 0s - loss: 1.0000"),
                   second + strlen("Epoch 2/2\n"));
  run_with(EVALUATE, 2, mix_callback_from_text("progbar_logger"));
  assert_follows(text, "5/5 - #s - loss: 11.0000 - @/epoch - @/sample\n");
}

static void a_logger_that_fit_used_is_silent_in_evaluate(void **state) {
  (void)state;
  mix_callback *logger = steps_logger();
  run_with(FIT, MIX_SILENT, logger);
  run_with(EVALUATE, 2, logger);
  assert_string_equal(text, "");
  run_with(PREDICT, 2, logger);
  assert_follows(text, "5/5 - #s - @/epoch - @/step\n");
}

static mix_status add_extra(void *context, mix_model *model, int64_t batch, mix_logs *logs) {
  (void)context, (void)model;
  return mix_logs_set(logs, "extra", (double)batch);
}
static mix_status add_late(void *context, mix_model *model, int64_t epoch, mix_logs *logs) {
  (void)context, (void)model, (void)epoch;
  return mix_logs_set(logs, "late", 10);
}
static void fit_with_extra(int verbose, mix_callback *logger, bool first) {
  mix_model *model = product_model(1, 0);
  mix_callback *extra = mix_callback_new(.on_train_batch_end = add_extra, .on_epoch_end = add_late);
  mix_set_log_callback(listen, NULL);
  text[0] = 0;
  mix_model_fit(model, counting(5), zeros(5), .batch_size = 1, .verbose = verbose, .no_shuffle = true,
                .callbacks = first ? mix_list_of(logger, extra) : mix_list_of(extra, logger));
  assert_no_error();
}

static void the_place_of_a_logger_says_what_it_shows(void **state) {
  (void)state;
  fit_with_extra(2, steps_logger(), true);
  assert_null(strstr(text, "late"));
  fit_with_extra(2, steps_logger(), false);
  assert_non_null(strstr(text, " - late: 10.0000 - "));
  assert_null(strstr(text, "extra")); /* a line an epoch shows the logs of the epoch */
}

static void numbers_of_others_are_averaged_in_tf_keras(void **state) {
  (void)state;
  fit_with_extra(1, steps_logger(), false);
  assert_non_null(strstr(strrchr(text, '\r'), " - loss: 6.0000 - extra: 2.0000 - late: 10.0000"));
  fit_with_extra(1, mix_callback_from_text("ProgbarLogger:count_mode=steps,stateful_metrics=other:extra"),
                 false);
  assert_non_null(strstr(strrchr(text, '\r'), " - loss: 6.0000 - extra: 4.0000 - late: 10.0000"));
  mix_set_semantics("keras3");
  fit_with_extra(1, mix_progbar_logger(.count_mode = NULL), false);
  assert_non_null(strstr(strrchr(text, '\r'), " - loss: 6.0000 - extra: 4.0000 - late: 10.0000"));
}

static void keras3_s_logger_has_no_arguments(void **state) {
  (void)state;
  assert_null(mix_progbar_logger(.count_mode = "batches"));
  assert_error(MIX_VALUE_ERROR, "count_mode 'batches' is not known; expected samples or steps");
  mix_set_semantics("keras3");
  run_with(FIT, 2, steps_logger());
  assert_error(MIX_TYPE_ERROR, "count_mode or stateful_metrics");
  run_with(FIT, 2, mix_callback_from_text("progbar_logger"));
  assert_no_error();
  assert_follows(text, "Epoch 1/2\n5/5 - #s - @/step - loss: 11.0000\nEpoch 2/2\n"
                       "5/5 - #s - @/step - loss: 11.0000\n");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(silence),
      TEST(quiet_is_silent),
      TEST(a_line_an_epoch),
      TEST(a_nan_has_no_sign),
      TEST(epochs_are_announced_where_there_are_several),
      TEST(the_bar),
      TEST(keras3_has_a_bar_and_a_line_of_its_own),
      TEST(evaluate_has_the_same_forms),
      TEST(small_numbers_have_exponents),
      TEST(a_limit_of_steps_is_the_target),
      TEST(an_epoch_that_waits_for_input_says_so),
      TEST(a_logger_takes_the_place_of_fit_s_own),
      TEST(predict_shows_its_progress_where_asked),
      TEST(samples_are_not_seen),
      TEST(a_logger_that_fit_used_is_silent_in_evaluate),
      TEST(the_place_of_a_logger_says_what_it_shows),
      TEST(numbers_of_others_are_averaged_in_tf_keras),
      TEST(keras3_s_logger_has_no_arguments),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
