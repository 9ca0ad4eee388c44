/* The forms of progress output (docs/spec/keras.md, 15), through the log callback. Times depend on the
 * machine and match any number. */
#include "model/support.h"

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

static void a_line_an_epoch(void **state) {
  (void)state;
  fit_with(2, 1);
  assert_follows(text, "5/5 - #s - loss: 6.0000 - val_loss: 51.0000 - #s/epoch - @/step\n");
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
  assert_follows(text, "Epoch 1/2\n5/5 - #s - loss: 6.0000 - val_loss: 51.0000 - #s/epoch - @/step\n"
                       "Epoch 2/2\n5/5 - #s - loss: 6.0000 - val_loss: 51.0000 - #s/epoch - @/step\n");
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
  assert_follows(text, "4/4 - #s - loss: 3283.5000 - #s/epoch - @/step\n");
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
  assert_follows(text, "Epoch 1/2\n5/5 - #s - loss: 28.5000 - #s/epoch - @/step\nEpoch 2/2\n"
                       "2/2 - #s - loss: 3.5000 - #s/epoch - @/step\n");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(silence),
      TEST(a_line_an_epoch),
      TEST(a_nan_has_no_sign),
      TEST(epochs_are_announced_where_there_are_several),
      TEST(the_bar),
      TEST(keras3_has_a_bar_and_a_line_of_its_own),
      TEST(evaluate_has_the_same_forms),
      TEST(small_numbers_have_exponents),
      TEST(a_limit_of_steps_is_the_target),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
