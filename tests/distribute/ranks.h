/* Shared by the tests of several processes: jobs that mpirun of each flavour starts, and a test of each
 * flavour with 2 and with 3 ranks. */
#ifndef TESTS_DISTRIBUTE_RANKS_H
#define TESTS_DISTRIBUTE_RANKS_H

#include "cli/program.h"
#include "support/skip.h"

#define TRAIN "train --data digits --units 16 --batch-size 128 --optimizer sgd --seed 3 --json --verbose 0 "

static const char *flavor; /* of the running test */

static inline void set_environment(void) {
  setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1);
  setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
  setenv("OMP_NUM_THREADS", "1", 1);
  unsetenv("MIXTAPE_DEVICE"); /* the tests name the defaults */
  unsetenv("MIXTAPE_ACCUMULATE");
  setenv("ASAN_OPTIONS", "detect_leaks=0", 1); /* MPI keeps memory until the process ends */
}

enum { TIMED_OUT = 124 }; /* exit code of timeout */

/* Standard output and error go to files of the test's folder. */
static inline int run_command(const char *command) {
  char line[8192], out[512], errors[512];
  snprintf(out, sizeof out, "%s/stdout", test_folder);
  snprintf(errors, sizeof errors, "%s/stderr", test_folder);
  snprintf(line, sizeof line, "timeout 600 %.4000s >%s 2>>%s </dev/null", command, out, errors);
  remove(errors);
  const int status = system(line);
  read_text(out, program_out, sizeof program_out);
  read_text(errors, program_err, sizeof program_err);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static inline const char *launcher(void) {
  return strcmp(flavor, "openmpi") ? "mpirun.mpich" : "mpirun.openmpi --oversubscribe --bind-to none";
}

/* ranks 0: without mpirun; `more`: what stands behind the program's arguments. The ranks write their standard
 * error themselves: where a job is aborted mpirun may end before it has passed it on. */
static inline int run_job(int ranks, const char *program, const char *arguments, const char *more) {
  char command[4096], start[1024] = "";
  if (ranks)
    snprintf(start, sizeof start, "%s -n %d sh -c 'exec \"$0\" \"$@\" 2>>\"%s/stderr\"' ", launcher(), ranks,
             test_folder);
  const int length = snprintf(command, sizeof command, "%s%s %s%s", start, program, arguments, more);
  assert_true(length < (int)sizeof command);
  return run_command(command);
}

static inline int run_ranks(int ranks, const char *program, const char *arguments) {
  return run_job(ranks, program, arguments, "");
}

/* The last rank has `other` as well; `environment`: its own variables, as for env. */
static inline int run_unlike(int ranks, const char *program, const char *arguments, const char *other,
                             const char *environment) {
  char last[2048];
  const int length =
      snprintf(last, sizeof last, " : -n 1 env %s %s %s %s", environment, program, arguments, other);
  assert_true(length < (int)sizeof last);
  return run_job(ranks - 1, program, arguments, last);
}

/* The launcher, and the plug-in beside the program. */
static inline bool is_there(const char *name) {
  char command[256];
  snprintf(command, sizeof command,
           "command -v mpirun.%s >/dev/null 2>&1 && "
           "test -e \"$(dirname \"$MIXTAPE_PROGRAM\")/plugins/mixtape_mpi_%s.so\"",
           name, name);
  return system(command) == 0;
}

typedef void check(int ranks);

static inline void run_check(const char *name, int ranks, check *what) {
  flavor = name;
  if (!is_there(name))
    SKIP("mpirun.%s is not installed, or its plug-in was not built: scripts/bootstrap --check", name);
  set_environment();
  what(ranks);
}

#define CASES(what)                                                                                          \
  static void what##_openmpi_2(void **state) { (void)state, run_check("openmpi", 2, check_##what); }         \
  static void what##_openmpi_3(void **state) { (void)state, run_check("openmpi", 3, check_##what); }         \
  static void what##_mpich_2(void **state) { (void)state, run_check("mpich", 2, check_##what); }             \
  static void what##_mpich_3(void **state) { (void)state, run_check("mpich", 3, check_##what); }
#define ROW(name) cmocka_unit_test_setup_teardown(name, folder_begin, folder_end)
#define ROWS(what) ROW(what##_openmpi_2), ROW(what##_openmpi_3), ROW(what##_mpich_2), ROW(what##_mpich_3),

#endif
