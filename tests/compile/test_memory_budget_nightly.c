/* Random models at memory budgets, each in every policy: the same bits (test_memory_budget.c has one each).
 */
/* Holds docs/NUMERICS.md: The same bits again. */
#include "compile/budget_models.h"

static void random_models(void **state) {
  (void)state;
  static const char *const optimizers[] = {"sgd", "adam", "lamb", "adafactor"};
  int repeating = 0;
  for (int seed = 1; seed <= 20; seed++) {
    const task t = {.build = random_model, .rows = 64, .optimizer = optimizers[seed % 4]};
    for (int p = 0; p < POLICIES; p++) repeating += same_bits_at_all_budgets(&t, policies[p], seed) > 0;
  }
  assert_true(repeating >= 30);
}

int main(void) {
  const struct CMUnitTest tests[] = {TEST(random_models)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
