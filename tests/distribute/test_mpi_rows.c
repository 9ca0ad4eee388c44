/* Whose rows the data of several processes are: what ranks compute on rows of their own, as many as each has,
 * is what one process computes on all of them. */
#include "distribute/worker_runs.h"

/* Numbers of the logs of all steps, which agree within rounding: other sums, in float32, over 6 steps. */
static void assert_logs_near(const char *a, const char *b, int rank) {
  char paths[2][600];
  snprintf(paths[0], sizeof paths[0], "%s/0.log", a);
  snprintf(paths[1], sizeof paths[1], "%s/%d.log", b, rank);
  FILE *one = fopen(paths[0], "r"), *many = fopen(paths[1], "r");
  assert_non_null(one);
  assert_non_null(many);
  double x, y;
  int count = 0;
  for (; fscanf(one, "%lf", &x) == 1; count++) {
    assert_int_equal(fscanf(many, "%lf", &y), 1);
    if (!(fabs(x - y) <= 1e-5 * fmax(1, fabs(x)))) fail_msg("number %d: %.9g and %.9g", count, x, y);
  }
  assert_int_equal(fscanf(many, "%lf", &y), EOF);
  assert_true(count > 0);
  fclose(one);
  fclose(many);
}

static void compare_with_one(const char *task, int ranks) {
  char format[64];
  snprintf(format, sizeof format, "rows %s %d %%s", task, ranks);
  const char *one = run_task(0, task, format), *many = run_task(ranks, task, format);
  assert_near(one, many, 1e-5);
  assert_ranks_agree(many, ranks);
  for (int r = 0; r < ranks; r++) assert_logs_near(one, many, r);
}

static void check_on_batch(int ranks) { compare_with_one("on_batch", ranks); }
static void check_shared_batch(int ranks) { compare_with_one("shared", ranks); }
static void check_fit(int ranks) { compare_with_one("fit", ranks); }
static void check_fit_dataset(int ranks) { compare_with_one("fit_dataset", ranks); }
static void check_evaluate(int ranks) { compare_with_one("evaluate", ranks); }
static void check_evaluate_dataset(int ranks) { compare_with_one("evaluate_dataset", ranks); }
static void check_mismatch(int ranks) {
  char arguments[700];
  snprintf(arguments, sizeof arguments, "rows mismatch %d %s/mismatch_%s_%d", ranks, test_folder, flavor,
           ranks);
  assert_code(run_ranks(ranks, worker(), arguments), 0);
}

#define TESTS(X)                                                                                             \
  X(on_batch)                                                                                                \
  X(shared_batch)                                                                                            \
  X(fit)                                                                                                     \
  X(fit_dataset)                                                                                             \
  X(evaluate)                                                                                                \
  X(evaluate_dataset)                                                                                        \
  X(mismatch)
TESTS(CASES)

int main(void) {
  const struct CMUnitTest tests[] = {TESTS(ROWS)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
