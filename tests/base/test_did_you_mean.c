/* "Did you mean": missing, extra, changed and swapped letters; for a name of three letters at most one. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/did_you_mean.h"
#include <string.h>

static const char *const words[] = {
    "accuracy", "auc", "mse", "steps", "step-log", "train", "top_k_categorical_accuracy"};

static const char *nearest_to(const char *word) {
  mix_did_you_mean nearest = {.word = word};
  for (size_t i = 0; i < sizeof words / sizeof *words; i++) mix_did_you_mean_try(&nearest, words[i]);
  return nearest.found;
}

static void near_words_are_found(void **state) {
  (void)state;
  static const char *const rows[][2] = {{"acuracy", "accuracy"},
                                        {"accurracy", "accuracy"},
                                        {"accurasy", "accuracy"},
                                        {"trian", "train"},
                                        {"Accuracy", "accuracy"},
                                        {"step_log", "step-log"},
                                        {"step", "steps"},
                                        {"acu", "auc"},
                                        {"categorical_accuracy_top_k", NULL},
                                        {"speed", NULL},
                                        {"", NULL},
                                        {"m", NULL},
                                        {"top_k_categorical_acuracy", "top_k_categorical_accuracy"}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    const char *found = nearest_to(rows[i][0]);
    if (!found != !rows[i][1] || (found && strcmp(found, rows[i][1])))
      fail_msg("'%s': %s", rows[i][0], found ? found : "nothing");
  }
}

static void words_of_any_length_are_taken(void **state) {
  (void)state;
  static char word[4096];
  memset(word, 'a', sizeof word - 1);
  assert_null(nearest_to(word));
  word[64] = 0;
  assert_null(nearest_to(word));
  word[63] = 0;
  assert_null(nearest_to(word));
  mix_did_you_mean nearest = {.word = "a"};
  mix_did_you_mean_try(&nearest, word);
  assert_null(nearest.found);
}

static void the_hint(void **state) {
  (void)state;
  char text[40];
  mix_did_you_mean nearest = {.word = "trian"};
  assert_string_equal(mix_did_you_mean_hint(&nearest, text, sizeof text), "");
  mix_did_you_mean_try(&nearest, "train");
  assert_string_equal(mix_did_you_mean_hint(&nearest, text, sizeof text), "; did you mean 'train'?");
}

static void one_of_the_choices(void **state) {
  (void)state;
  char text[100];
  static const char choices[] = "fan_in|fan_out|fan_avg";
  assert_string_equal(mix_did_you_mean_choice("fan_ot", choices, text, sizeof text),
                      "; did you mean 'fan_out'?");
  assert_string_equal(mix_did_you_mean_choice("fanavg", choices, text, sizeof text),
                      "; did you mean 'fan_avg'?");
  /* the first of equals */
  assert_string_equal(mix_did_you_mean_choice("fan_i", choices, text, sizeof text),
                      "; did you mean 'fan_in'?");
  assert_string_equal(mix_did_you_mean_choice("speed", choices, text, sizeof text), "");
  assert_string_equal(mix_did_you_mean_choice("speed", "", text, sizeof text), "");
  char longer[200];
  memset(longer, 'x', sizeof longer);
  memcpy(longer + 100, "|train", 7);
  assert_string_equal(mix_did_you_mean_choice("trian", longer, text, sizeof text), "; did you mean 'train'?");
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(near_words_are_found),
                                     cmocka_unit_test(words_of_any_length_are_taken),
                                     cmocka_unit_test(the_hint), cmocka_unit_test(one_of_the_choices)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
