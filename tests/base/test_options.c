/* Options structs that grow: callers compiled against a shorter one still work. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/error.h"

#include <string.h>

typedef struct first_options {
  size_t size;
  int64_t units;
} first_options;

typedef struct current_options {
  size_t size;
  int64_t units;
  const char *activation;
  double rate;
} current_options;

static int clear(void **state) {
  (void)state;
  mix_error_clear();
  return 0;
}

static void the_current_size_is_copied(void **state) {
  (void)state;
  current_options given = {.size = sizeof given, .units = 7, .activation = "relu", .rate = 0.5}, copy;
  assert_true(mix_options_copy(&copy, sizeof copy, &given, "dense"));
  assert_memory_equal(&copy, &given, sizeof copy);
}

static void an_older_struct_is_filled_with_zeros(void **state) {
  (void)state;
  first_options given = {.size = sizeof given, .units = 7};
  current_options copy;
  memset(&copy, 0xff, sizeof copy);
  assert_true(mix_options_copy(&copy, sizeof copy, &given, "dense"));
  assert_int_equal(copy.size, sizeof copy);
  assert_int_equal(copy.units, 7);
  assert_null(copy.activation);
  assert_true(copy.rate == 0);
}

static void no_options_are_the_defaults(void **state) {
  (void)state;
  current_options copy;
  memset(&copy, 0xff, sizeof copy);
  assert_true(mix_options_copy(&copy, sizeof copy, NULL, "dense"));
  assert_int_equal(copy.size, sizeof copy);
  assert_int_equal(copy.units, 0);
}

static void unknown_sizes_are_refused(void **state) {
  (void)state;
  const size_t sizes[] = {0, 1, sizeof(size_t) - 1, sizeof(current_options) + 1, SIZE_MAX};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    current_options given = {.size = sizes[i], .units = 7}, copy;
    assert_false(mix_options_copy(&copy, sizeof copy, &given, "mix_dense"));
    assert_int_equal(mix_error(), MIX_VALUE_ERROR);
    assert_non_null(strstr(mix_error_message(), "mix_dense"));
    mix_error_clear();
  }
}

static int64_t units_of(const current_options *given) {
  MIX_OPTIONS(current_options, options, given, "units_of");
  return options.units;
}

static void the_macro_returns_on_failure(void **state) {
  (void)state;
  assert_int_equal(units_of(&(current_options){.size = sizeof(current_options), .units = 9}), 9);
  assert_int_equal(units_of(&(current_options){.size = 1, .units = 9}), 0);
  assert_int_equal(mix_error(), MIX_VALUE_ERROR);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_teardown(the_current_size_is_copied, clear),
      cmocka_unit_test_teardown(an_older_struct_is_filled_with_zeros, clear),
      cmocka_unit_test_teardown(no_options_are_the_defaults, clear),
      cmocka_unit_test_teardown(unknown_sizes_are_refused, clear),
      cmocka_unit_test_teardown(the_macro_returns_on_failure, clear),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
