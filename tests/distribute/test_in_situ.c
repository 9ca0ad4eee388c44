/* examples/16_in_situ, a program with MPI of its own that trains between its time steps: killed at random and
 * started again until it is done, it leaves the restart file of a run that was not killed, byte for byte. */
#include "distribute/ranks.h"

#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { TIME_STEPS = 80, KILLS = 2, STARTS_MAX = 10000 };

/* MIXTAPE_KILLS, of all of which a case does a hundredth. */
static int wanted_kills(void) {
  const char *text = getenv("MIXTAPE_KILLS");
  return text ? 1 + atoi(text) / 100 : KILLS;
}

/* ---- a job ---- */

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static void pause_for(double seconds) {
  nanosleep(&(const struct timespec){(time_t)seconds, (long)(fmod(seconds, 1) * 1e9)}, NULL);
}

/* Each rank writes its process number into a file before it becomes the program. */
static pid_t start(int ranks, const char *name) {
  char command[4096];
  unlink(in_folder("pids"));
  unlink(in_folder("out"));
  const int length = snprintf(command, sizeof command,
                              "cd %s && exec timeout 600 %s -n %d sh -c 'echo $$ >>pids; exec "
                              "\"$MIXTAPE_EXAMPLES_DIR/16_in_situ_%s\" %d %s' >out 2>errors </dev/null",
                              test_folder, launcher(), ranks, flavor, TIME_STEPS, name);
  assert_true(length < (int)sizeof command);
  const pid_t child = fork();
  if (!child) execl("/bin/sh", "sh", "-c", command, (char *)NULL);
  assert_true(child > 0);
  return child;
}

static bool has_ended(pid_t child, int *status) { return waitpid(child, status, WNOHANG) == child; }

/* Waits until rank 0 has begun its time steps. False if the job ends before. */
static bool has_begun(pid_t child, int *status) {
  char text[256];
  while (true) {
    FILE *file = fopen(in_folder("out"), "r");
    const size_t size = file ? fread(text, 1, sizeof text - 1, file) : 0;
    if (file) fclose(file);
    text[size] = 0;
    if (strstr(text, "from step")) return true;
    if (has_ended(child, status)) return false;
    pause_for(0.002);
  }
}

/* One of the ranks. */
static void kill_rank(uint64_t random) {
  int pids[3], count = 0;
  FILE *file = fopen(in_folder("pids"), "r");
  assert_non_null(file);
  while (count < 3 && fscanf(file, "%d", &pids[count]) == 1) count++;
  fclose(file);
  assert_true(count > 0);
  kill(pids[random % (uint64_t)count], SIGKILL); /* which may be over */
}

static void assert_done(int status) {
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return;
  read_text(in_folder("errors"), program_err, sizeof program_err);
  fail_msg("status %d: %s", status, program_err);
}

/* ---- the check ---- */

/* SplitMix64. */
static uint64_t random_next(uint64_t *state) {
  uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
  z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
  return z ^ z >> 31;
}

/* Gives the seconds from the first time step to the end. */
static double run_straight(int ranks) {
  int status = 0;
  const pid_t child = start(ranks, "straight");
  assert_true(has_begun(child, &status));
  const double begun = now();
  assert_true(waitpid(child, &status, 0) == child);
  assert_done(status);
  return now() - begun;
}

/* Kills a rank at a random moment of the run. True if the run was over before. */
static bool run_and_kill(int ranks, double seconds, uint64_t *random) {
  int status = 0;
  const pid_t child = start(ranks, "killed");
  bool over = !has_begun(child, &status);
  if (!over) pause_for(seconds * (double)(random_next(random) >> 11) * 0x1p-53);
  if (!over && !(over = has_ended(child, &status))) {
    kill_rank(random_next(random));
    assert_true(waitpid(child, &status, 0) == child);
    over = WIFEXITED(status) && WEXITSTATUS(status) == 0;
  }
  if (over) assert_done(status);
  return over;
}

static void assert_same_files(void) {
  char command[1200];
  snprintf(command, sizeof command, "cd %s && test -s straight && cmp straight killed >&2", test_folder);
  assert_int_equal(system(command), 0);
}

static void check_kills(int ranks) {
  if (!getenv("MIXTAPE_EXAMPLES_DIR")) SKIP("the examples are not built");
  uint64_t random = (uint64_t)ranks;
  int kills = 0, starts = 0;
  const double seconds = run_straight(ranks);
  while (kills < wanted_kills() && starts++ < STARTS_MAX) {
    const bool over = run_and_kill(ranks, seconds, &random);
    kills += !over;
    if (over) assert_same_files(), unlink(in_folder("killed"));
  }
  assert_true(kills == wanted_kills());
  int status = 0;
  const pid_t child = start(ranks, "killed");
  assert_true(waitpid(child, &status, 0) == child);
  assert_done(status);
  assert_same_files();
}

static void check_rank_counts(int ranks) {
  if (!getenv("MIXTAPE_EXAMPLES_DIR")) SKIP("the examples are not built");
  int status = 0;
  run_straight(ranks);
  const pid_t child = start(1, "straight");
  assert_true(waitpid(child, &status, 0) == child && status != 0);
  read_text(in_folder("errors"), program_err, sizeof program_err);
  assert_has(program_err, "not a restart file of as many ranks");
}

CASES(kills)
static void kills_openmpi_1(void **state) { (void)state, run_check("openmpi", 1, check_kills); }
static void kills_mpich_1(void **state) { (void)state, run_check("mpich", 1, check_kills); }
static void rank_counts_openmpi(void **state) { (void)state, run_check("openmpi", 2, check_rank_counts); }
static void rank_counts_mpich(void **state) { (void)state, run_check("mpich", 2, check_rank_counts); }

int main(void) {
  const struct CMUnitTest tests[] = {ROW(kills_openmpi_1), ROW(kills_mpich_1),
                                     ROWS(kills) ROW(rank_counts_openmpi), ROW(rank_counts_mpich)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
