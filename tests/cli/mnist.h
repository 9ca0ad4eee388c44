/* The guide's model on real MNIST (MIXTAPE_DATA_DIR): 64 units, batches of 128 and five epochs, for each
 * policy and five seeds. The goal: mean test accuracies of at least 0.965, within 0.4 points of each other.
 */
#ifndef TESTS_CLI_MNIST_H
#define TESTS_CLI_MNIST_H

#include "support/skip.h"
#include "cli/program.h"

static inline bool at_hand(void) {
  const char *folder = getenv("MIXTAPE_DATA_DIR");
  return folder && *folder;
}

enum { SEEDS = 5 };

/* Test accuracy of one run. rest: options that the runs differ in, NULL at the end. */
static inline double trained_accuracy(int seed, const char *const *rest) {
  char number[16];
  snprintf(number, sizeof number, "%d", seed);
  const char *arguments[32] = {"train",    "--data", "mnist",  "--units",   "64", "--batch-size", "128",
                               "--epochs", "5",      "--json", "--verbose", "0",  "--seed",       number};
  int count = 14;
  while (*rest) arguments[count++] = *rest++;
  assert_code(run_program_to(NULL, arguments), 0);
  assert_has(program_err, "data: MNIST");
  json_t *report = printed_object();
  double accuracy = number_in(json_object_get(json_object_get(report, "test"), "accuracy"));
  json_decref(report);
  return accuracy;
}

static inline double mean_accuracy(const char *const *rest, const char *what) {
  double sum = 0;
  for (int seed = 1; seed <= SEEDS; seed++) {
    double accuracy = trained_accuracy(seed, rest);
    print_message("%s, seed %d: test accuracy %.4f\n", what, seed, accuracy);
    sum += accuracy;
  }
  print_message("%s: mean %.4f\n", what, sum / SEEDS);
  return sum / SEEDS;
}

static inline void assert_goal(const double mean[3]) {
  double worst = fmin(mean[0], fmin(mean[1], mean[2])), best = fmax(mean[0], fmax(mean[1], mean[2]));
  assert_true(worst >= 0.965);
  assert_true(best - worst <= 0.004);
}

static inline void check_policies(const char *loop) {
  if (!at_hand()) SKIP("MIXTAPE_DATA_DIR is not set");
  static const char *const policies[] = {"float32", "mixed_float16", "mixed_bfloat16"};
  double mean[3];
  for (int i = 0; i < 3; i++) {
    char what[64];
    snprintf(what, sizeof what, "%s, %s", policies[i], loop);
    mean[i] = mean_accuracy(
        (const char *[]){"--validation-split", "0.2", "--policy", policies[i], "--loop", loop, NULL}, what);
  }
  assert_goal(mean);
}

#endif
