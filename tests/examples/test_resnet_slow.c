/* The residual network of the examples over five seeds: mixed precision learns as float32 does. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include "support/skip.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SEEDS = 5 };

static double test_accuracy(const char *policy, int seed) {
  const char *built = getenv("MIXTAPE_EXAMPLES_DIR");
  if (!built) SKIP("MIXTAPE_EXAMPLES_DIR is not set");
  char command[1024], line[256], label[64];
  snprintf(command, sizeof command, "'%s/10_resnet' digits %s 5 %d 2>/dev/null", built, policy, seed);
  snprintf(label, sizeof label, "%s: test accuracy ", policy);
  FILE *output = popen(command, "r");
  assert_non_null(output);
  double accuracy = -1;
  while (fgets(line, sizeof line, output))
    if (!strncmp(line, label, strlen(label))) accuracy = strtod(line + strlen(label), NULL);
  assert_int_equal(pclose(output), 0);
  assert_true(accuracy >= 0);
  return accuracy;
}

typedef struct sample {
  double mean, error; /* the standard error of the mean */
} sample;

static sample sample_seeds(const char *policy) {
  double values[SEEDS], mean = 0, squares = 0;
  for (int i = 0; i < SEEDS; i++) mean += (values[i] = test_accuracy(policy, i + 1)) / SEEDS;
  for (int i = 0; i < SEEDS; i++) squares += (values[i] - mean) * (values[i] - mean);
  print_message("%s: mean %.4f\n", policy, mean);
  return (sample){mean, sqrt(squares / (SEEDS - 1) / SEEDS)};
}

/* The floor was set when the first seed alone had run; the distance is a point or two standard errors of the
 * difference. */
static void mixed_precision_learns_as_float32(void **state) {
  (void)state;
  static const char *const policies[] = {"mixed_float16", "mixed_bfloat16"};
  const sample full = sample_seeds("float32");
  assert_true(full.mean > 0.9);
  for (int i = 0; i < 2; i++) {
    const sample mixed = sample_seeds(policies[i]);
    assert_true(fabs(mixed.mean - full.mean) < fmax(0.01, 2 * hypot(mixed.error, full.error)));
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(mixed_precision_learns_as_float32)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
