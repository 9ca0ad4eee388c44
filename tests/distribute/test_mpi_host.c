/* Training inside a program that has started MPI itself (tests/distribute/host.c), in each flavour that is
 * installed. */
/* Holds docs/NUMERICS.md: Several processes. */
#include "distribute/ranks.h"
#include "support/count.h"

static const char *const levels[] = {"single", "funneled", "serialized", "multiple"};
enum { LEVELS = sizeof levels / sizeof *levels };

static const char *host(void) {
  char name[64];
  snprintf(name, sizeof name, "MIXTAPE_HOST_%s", flavor);
  return getenv(name);
}

static int run_host(int ranks, const char *level, const char *task) {
  char arguments[128];
  snprintf(arguments, sizeof arguments, "%s %s", level, task);
  return run_ranks(ranks, host(), arguments);
}

static void assert_failed(int code) {
  assert_int_not_equal(code, 0);
  assert_int_not_equal(code, TIMED_OUT);
}

/* On the caller's thread, and on one of the library's. */
static void run_on_both_threads(int ranks, const char *task) {
  for (int i = 1; i < LEVELS; i += 2) assert_code(run_host(ranks, levels[i], task), 0);
}

/* The world, a part of it, one process, and the world again, with traffic of the host's own between steps. */
static void check_communicators(int ranks) {
  for (int i = 0; i < LEVELS; i++) assert_code(run_host(ranks, levels[i], "communicators"), 0);
}

static void check_both(int ranks) { run_on_both_threads(ranks, "both"); }
static void check_shards(int ranks) { run_on_both_threads(ranks, "shards"); }
static void check_handlers(int ranks) { run_on_both_threads(ranks, "handlers"); }
static void check_refusals(int ranks) { run_on_both_threads(ranks, "refusals"); }

/* Without a call of MPI after MPI_Finalize; a sum after it is an error. */
static void check_finalized(int ranks) {
  run_on_both_threads(ranks, "finalized");
  run_on_both_threads(ranks, "finalized_used");
}

/* Below MPI_THREAD_MULTIPLE the caller's thread makes all calls, with the bits of the communication thread.
 */
static void check_levels(int ranks) {
  static char first[sizeof program_out];
  for (int i = 0; i < LEVELS; i++) {
    assert_code(run_host(ranks, levels[i], "levels"), 0);
    assert_true(count_of(program_out, "0x") > 100); /* losses and weights */
    if (!i) strcpy(first, program_out);
    assert_string_equal(program_out, first);
  }
}

static void check_other_thread(int ranks) {
  for (int i = 0; i < 2; i++) {
    assert_failed(run_host(ranks, levels[i], "other_thread"));
    assert_has(program_err, "only its main thread may make calls that communicate");
  }
  for (int i = 2; i < LEVELS; i++) assert_code(run_host(ranks, levels[i], "other_thread"), 0);
}

/* The launcher ends the others, which say it too where they have the time. */
static void check_one_more_step(int ranks) {
  for (int i = 1; i < LEVELS; i += 2) {
    assert_failed(run_host(ranks, levels[i], "one_more_step"));
    assert_has(program_err, "has ended its distribution, and rank 0 makes one more collective call");
  }
}

static void check_late(int ranks) {
  char message[96];
  snprintf(message, sizeof message, "not all ranks have met within 2 s (MIXTAPE_MPI_TIMEOUT): rank 1 of %d ",
           ranks);
  setenv("MIXTAPE_MPI_TIMEOUT", "2", 1);
  for (int i = 1; i < LEVELS; i += 2) {
    assert_failed(run_host(ranks, levels[i], "late"));
    assert_has(program_err, message);
    assert_null(strstr(program_err, "rank 2 of 3 has not come"));
    assert_null(strstr(program_err, "rank 0 of 3 has not come"));
  }
  unsetenv("MIXTAPE_MPI_TIMEOUT");
}

/* An MPI that the program has loaded for itself: the flavour is given by name, a wrong one is an error. */
static void check_local(int ranks) {
  const char *other = strcmp(flavor, "mpich") ? "mpich" : "openmpi";
  char name[64], arguments[1200];
  snprintf(name, sizeof name, "MIXTAPE_LOCAL_PART_%s", flavor);
  snprintf(arguments, sizeof arguments, "'%s' %s %s %s", getenv(name), flavor, other,
           is_there(other) ? "yes" : "no");
  assert_code(run_ranks(ranks, getenv("MIXTAPE_LOCAL_HOST"), arguments), 0);
}

#define TESTS(X)                                                                                             \
  X(communicators)                                                                                           \
  X(local)                                                                                                   \
  X(both) X(shards) X(handlers) X(refusals) X(finalized) X(levels) X(other_thread) X(one_more_step) X(late)
TESTS(CASES)

int main(void) {
  const struct CMUnitTest tests[] = {TESTS(ROWS)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
