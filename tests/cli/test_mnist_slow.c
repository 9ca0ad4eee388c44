/* The guide's model on real MNIST: `fit` under each policy, and the guide's own sizes. The custom loop and
 * the graph rewrite, which other tests run on small data by day, learn it in test_mnist_loops_nightly.c. */
#include "cli/mnist.h"

/* 375 steps of 128 are the 48,000 images that a validation split of 0.2 leaves. */
static void steps_and_history(void **state) {
  (void)state;
  if (!at_hand()) SKIP("MIXTAPE_DATA_DIR is not set");
  trained_accuracy(1, (const char *[]){"--validation-split", "0.2", NULL});
  json_t *report = printed_object();
  assert_int_equal(json_integer_value(json_object_get(report, "steps")), 5 * 375);
  json_t *history = json_object_get(report, "history");
  assert_int_equal(json_array_size(json_object_get(history, "val_accuracy")), 5);
  json_decref(report);
}

static void fit_learns_mnist_under_every_policy(void **state) { (void)state, check_policies("fit"); }

/* The guide's own fit: batches of 8192, six steps an epoch, above 0.9 after five epochs. 512 units instead of
 * its 4096. */
static void W11_the_guides_fit(void **state) {
  (void)state;
  if (!at_hand()) SKIP("MIXTAPE_DATA_DIR is not set");
  assert_code(run_program("train", "--data", "mnist", "--units", "512", "--batch-size", "8192", "--epochs",
                          "5", "--validation-split", "0.2", "--seed", "1", "--policy", "mixed_float16",
                          "--verbose", "2"),
              0);
  assert_has(program_err, "Epoch 5/5\n6/6 - ");
  double loss, accuracy;
  assert_int_equal(sscanf(program_out, "Test loss: %lf\nTest accuracy: %lf\n", &loss, &accuracy), 2);
  print_message("test accuracy %.4f\n", accuracy);
  assert_true(accuracy > 0.9);
}

/* MIXTAPE_GUIDE_SEEDS, or 0: from how many seeds the guide's own size is trained; minutes each. */
static int guide_seeds(void) {
  const char *text = getenv("MIXTAPE_GUIDE_SEEDS");
  return text && *text ? atoi(text) : 0;
}

/* The guide's own model and fit, 4096 units and five epochs. "Usually" above 0.9: for more than half of the
 * seeds from 1 on. */
static void W11_M10_the_guides_fit_of_4096_units(void **state) {
  (void)state;
  if (!at_hand()) SKIP("MIXTAPE_DATA_DIR is not set");
  if (!guide_seeds()) SKIP("MIXTAPE_GUIDE_SEEDS is not set (.ci/nightly guide)");
  int above = 0;
  for (int seed = 1; seed <= guide_seeds(); seed++) {
    char number[16];
    snprintf(number, sizeof number, "%d", seed);
    assert_code(run_program("train", "--data", "mnist", "--units", "4096", "--batch-size", "8192", "--epochs",
                            "5", "--validation-split", "0.2", "--seed", number, "--policy", "mixed_float16",
                            "--verbose", "2"),
                0);
    assert_has(program_err, "Epoch 5/5\n6/6 - ");
    double loss, accuracy;
    assert_int_equal(sscanf(program_out, "Test loss: %lf\nTest accuracy: %lf\n", &loss, &accuracy), 2);
    print_message("4096 units, seed %d: test accuracy %.4f\n", seed, accuracy);
    above += accuracy > 0.9;
  }
  assert_true(2 * above > guide_seeds());
}

/* The guide's own size, one epoch: M10's counts and W03's model. */
static void W03_M10_4096_units(void **state) {
  (void)state;
  if (!at_hand()) SKIP("MIXTAPE_DATA_DIR is not set");
  assert_code(run_program("train", "--data", "mnist", "--units", "4096", "--batch-size", "8192", "--epochs",
                          "1", "--validation-split", "0.2", "--policy", "mixed_float16", "--json",
                          "--verbose", "2"),
              0);
  assert_has(program_err, "6/6 - ");
  json_t *report = printed_object(), *history = json_object_get(report, "history");
  assert_int_equal(json_integer_value(json_object_get(report, "steps")), 6);
  assert_true(isfinite(number_in(json_array_get(json_object_get(history, "val_loss"), 0))));
  json_decref(report);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(W11_the_guides_fit), cmocka_unit_test(W11_M10_the_guides_fit_of_4096_units),
      cmocka_unit_test(W03_M10_4096_units), cmocka_unit_test(steps_and_history),
      cmocka_unit_test(fit_learns_mnist_under_every_policy)};
  return cmocka_run_group_tests(tests, folder_begin, folder_end);
}
