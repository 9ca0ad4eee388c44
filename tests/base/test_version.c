/* The linked library has the version of the headers. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <mixtape/api.h>
#include <stdio.h>

static void version_is_that_of_the_headers(void **state) {
  (void)state;
  assert_string_equal(mix_version(), MIXTAPE_VERSION);
}

static void numbers_are_those_of_the_text(void **state) {
  (void)state;
  char text[32];
  snprintf(text, sizeof text, "%d.%d.%d", MIX_VERSION_MAJOR, MIX_VERSION_MINOR, MIX_VERSION_PATCH);
  assert_string_equal(mix_version(), text);
  const int number = mix_version_number();
  snprintf(text, sizeof text, "%d.%d.%d", number / 10000, number / 100 % 100, number % 100);
  assert_string_equal(mix_version(), text);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(version_is_that_of_the_headers),
                                     cmocka_unit_test(numbers_are_those_of_the_text)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
