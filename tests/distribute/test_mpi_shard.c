/* The optimizer's state, divided among the ranks: NUMERICS.md, the same bits as without. */
#include "distribute/worker_runs.h"

static void check_task(int ranks, const char *task) {
  char arguments[64];
  snprintf(arguments, sizeof arguments, "shard %s", task);
  assert_code(run_ranks(ranks, worker(), arguments), 0);
}

static void check_equal(int ranks) { check_task(ranks, "equal"); }
static void check_eager(int ranks) { check_task(ranks, "eager"); }
static void check_seeds(int ranks) { check_task(ranks, "seeds"); }
static void check_memory(int ranks) { check_task(ranks, "memory"); }
static void check_budget(int ranks) { check_task(ranks, "budget"); }
static void check_changed(int ranks) { check_task(ranks, "changed"); }
static void check_wrong(int ranks) { check_task(ranks, "wrong"); }
static void check_checkpoint(int ranks) { run_task(ranks, "checkpoint", "shard checkpoint %s"); }

/* A checkpoint of several ranks on one, and the other way round. */
static void check_other_ranks(int ranks) {
  for (int one_first = 0; one_first < 2; one_first++) {
    char name[64], second[700];
    snprintf(name, sizeof name, "other_ranks_%d", one_first);
    const char *folder = run_task(one_first ? 0 : ranks, name, "shard first_part %s");
    snprintf(second, sizeof second, "shard second_part %s", folder);
    assert_code(run_ranks(one_first ? ranks : 0, worker(), second), 0);
  }
}

#define TESTS(X)                                                                                             \
  X(equal)                                                                                                   \
  X(eager)                                                                                                   \
  X(seeds)                                                                                                   \
  X(memory)                                                                                                  \
  X(budget)                                                                                                  \
  X(changed)                                                                                                 \
  X(wrong)                                                                                                   \
  X(checkpoint)                                                                                              \
  X(other_ranks)
TESTS(CASES)

int main(void) {
  const struct CMUnitTest tests[] = {TESTS(ROWS)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
