/* The Transformer of the examples over five seeds. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include "examples/seeds.h"

/* Of 500 numbers that were not trained on, with every word right. The floor was set before any seed had
 * run. */
static void mixed_precision_learns_as_float32(void **state) {
  (void)state;
  assert_learns_as_float32(&(seeded_example){"12_transformer", "", "3", "greedy search:"}, 0.9);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(mixed_precision_learns_as_float32)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
