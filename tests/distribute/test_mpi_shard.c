/* The optimizer's state, divided among the ranks: NUMERICS.md, the same bits as without. */
#include "distribute/worker_runs.h"

static void check_task(int ranks, const char *task) {
  char arguments[64];
  snprintf(arguments, sizeof arguments, "shard %s", task);
  assert_code(run_ranks(ranks, worker(), arguments), 0);
}

static void check_equal(int ranks) { check_task(ranks, "equal"); }
static void check_eager(int ranks) { check_task(ranks, "eager"); }
static void check_memory(int ranks) { check_task(ranks, "memory"); }
static void check_changed(int ranks) { check_task(ranks, "changed"); }
static void check_wrong(int ranks) { check_task(ranks, "wrong"); }
static void check_checkpoint(int ranks) { run_task(ranks, "checkpoint", "shard checkpoint %s"); }

#define TESTS(X)                                                                                             \
  X(equal)                                                                                                   \
  X(eager)                                                                                                   \
  X(memory)                                                                                                  \
  X(changed)                                                                                                 \
  X(wrong)                                                                                                   \
  X(checkpoint)
TESTS(CASES)

int main(void) {
  const struct CMUnitTest tests[] = {TESTS(ROWS)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
