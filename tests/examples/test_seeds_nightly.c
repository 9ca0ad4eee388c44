/* The networks of the examples over five seeds: mixed precision learns as float32 does. */
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

/* An example, its arguments before the policy and its epochs, the least mean score in float32, and what its
 * line calls the score: the test accuracy if NULL. */
typedef struct example {
  const char *program, *arguments;
  int epochs;
  double floor;
  const char *score;
  int first_seed;
} example;

static double score_of(const example *x, const char *policy, int seed) {
  const char *built = getenv("MIXTAPE_EXAMPLES_DIR");
  if (!built) SKIP("MIXTAPE_EXAMPLES_DIR is not set");
  char command[1024], line[256], label[64];
  snprintf(command, sizeof command, "'%s/%s' %s %s %d %d 2>/dev/null", built, x->program, x->arguments,
           policy, x->epochs, seed);
  snprintf(label, sizeof label, "%s: %s ", policy, x->score ? x->score : "test accuracy");
  FILE *output = popen(command, "r");
  assert_non_null(output);
  double score = -1;
  while (fgets(line, sizeof line, output))
    if (!strncmp(line, label, strlen(label))) score = strtod(line + strlen(label), NULL);
  assert_int_equal(pclose(output), 0);
  assert_true(score >= 0);
  return score;
}

typedef struct sample {
  double mean, error; /* the standard error of the mean */
} sample;

static sample sample_seeds(const example *x, const char *policy) {
  double values[SEEDS], mean = 0, squares = 0;
  for (int i = 0; i < SEEDS; i++) mean += (values[i] = score_of(x, policy, x->first_seed + i)) / SEEDS;
  for (int i = 0; i < SEEDS; i++) squares += (values[i] - mean) * (values[i] - mean);
  print_message("%s, %s: mean %.4f\n", x->program, policy, mean);
  return (sample){mean, sqrt(squares / (SEEDS - 1) / SEEDS)};
}

/* The distance is a point or two standard errors of the difference. */
static void learns_as_float32(const example *x) {
  static const char *const policies[] = {"mixed_float16", "mixed_bfloat16"};
  const sample full = sample_seeds(x, "float32");
  assert_true(full.mean > x->floor);
  for (int i = 0; i < 2; i++) {
    const sample mixed = sample_seeds(x, policies[i]);
    assert_true(fabs(mixed.mean - full.mean) < fmax(0.01, 2 * hypot(mixed.error, full.error)));
  }
}

/* Seeds are those from first_seed on. None of them may have run when the floor is set: a new floor needs new
 * seeds. */

static void resnet(void **state) {
  (void)state;
  learns_as_float32(&(const example){"10_resnet", "digits", 5, 0.9, NULL, 101});
}

/* Guessing gives 0.25. */
static void lstm(void **state) {
  (void)state;
  learns_as_float32(&(const example){"11_lstm", "", 10, 0.95, NULL, 1});
}

/* Of 500 numbers that were not trained on, with every word right. */
static void transformer(void **state) {
  (void)state;
  learns_as_float32(&(const example){"12_transformer", "", 3, 0.9, "greedy search:", 1});
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(resnet), cmocka_unit_test(lstm),
                                     cmocka_unit_test(transformer)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
