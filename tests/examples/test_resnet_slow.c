/* The residual network of the examples over five seeds. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include "examples/seeds.h"

/* The floor was set when the first seed alone had run. */
static void mixed_precision_learns_as_float32(void **state) {
  (void)state;
  assert_learns_as_float32(&(seeded_example){"10_resnet", "digits", "5", "test accuracy"}, 0.9);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(mixed_precision_learns_as_float32)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
