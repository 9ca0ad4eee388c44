/* An example's score over five seeds under each policy: mixed precision learns as float32 does. */
#ifndef TESTS_EXAMPLES_SEEDS_H
#define TESTS_EXAMPLES_SEEDS_H

#include "support/skip.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SEEDS = 5 };

/* A program with its arguments and the line with its score. */
typedef struct seeded_example {
  const char *program, *before, *after; /* arguments before the policy, and between it and the seed */
  const char *label;                    /* "test accuracy", after the policy and ": " */
} seeded_example;

static inline double score_of(const seeded_example *example, const char *policy, int seed) {
  const char *built = getenv("MIXTAPE_EXAMPLES_DIR");
  if (!built) SKIP("MIXTAPE_EXAMPLES_DIR is not set");
  char command[1024], line[256], label[64];
  snprintf(command, sizeof command, "'%s/%s' %s %s %s %d 2>/dev/null", built, example->program,
           example->before, policy, example->after, seed);
  snprintf(label, sizeof label, "%s: %s ", policy, example->label);
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

static inline sample sample_seeds(const seeded_example *example, const char *policy) {
  double values[SEEDS], mean = 0, squares = 0;
  for (int i = 0; i < SEEDS; i++) mean += (values[i] = score_of(example, policy, i + 1)) / SEEDS;
  for (int i = 0; i < SEEDS; i++) squares += (values[i] - mean) * (values[i] - mean);
  print_message("%s: mean %.4f of", policy, mean);
  for (int i = 0; i < SEEDS; i++) print_message(" %.4f", values[i]);
  print_message("\n");
  return (sample){mean, sqrt(squares / (SEEDS - 1) / SEEDS)};
}

/* float32's mean is above the floor, and those of the mixed policies are as near as a point or two standard
 * errors of the difference. */
static inline void assert_learns_as_float32(const seeded_example *example, double floor) {
  static const char *const policies[] = {"mixed_float16", "mixed_bfloat16"};
  const sample full = sample_seeds(example, "float32");
  assert_true(full.mean > floor);
  for (int i = 0; i < 2; i++) {
    const sample mixed = sample_seeds(example, policies[i]);
    assert_true(fabs(mixed.mean - full.mean) < fmax(0.01, 2 * hypot(mixed.error, full.error)));
  }
}

#endif
