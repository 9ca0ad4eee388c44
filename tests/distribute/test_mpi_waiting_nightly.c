/* What takes half a minute: a rank that waits for long says for whom. */
#include "distribute/ranks.h"

static void check_slow_step(int ranks) {
  char name[64], command[64], message[96];
  static const char *const levels[] = {"funneled", "multiple"};
  snprintf(name, sizeof name, "MIXTAPE_HOST_%s", flavor);
  snprintf(message, sizeof message, "distribution: rank 0 of %d has waited 32 s for rank 1 (process ", ranks);
  for (int i = 0; i < 2; i++) {
    snprintf(command, sizeof command, "%s slow_step", levels[i]);
    assert_code(run_ranks(ranks, getenv(name), command), 0);
    assert_has(program_err, message);
    assert_null(strstr(program_err, "rank 2 (process"));
  }
}

#define TESTS(X) X(slow_step)
TESTS(CASES)

int main(void) {
  const struct CMUnitTest tests[] = {TESTS(ROWS)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
