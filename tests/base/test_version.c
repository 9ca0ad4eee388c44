/* The linked library has the version of the headers. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <mixtape/api.h>

static void version_is_that_of_the_headers(void **state) {
  (void)state;
  assert_string_equal(mix_version(), MIXTAPE_VERSION);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(version_is_that_of_the_headers)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
