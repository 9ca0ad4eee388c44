/* Ranks of `mixtape train` whose options are wrong or differ, which are alone, or which cannot start MPI. */
#include "distribute/ranks.h"
#include "support/count.h"

/* A rank that cannot begin is named, and ends the others, which wait for it. */
static void check_usage(int ranks) {
  static const struct {
    const char *other, *message;
  } cases[] = {{"--bogus", "unknown option '--bogus'"},
               {"--resume", "--resume needs --checkpoint DIR"},
               {"--model missing.keras", "--units belongs to --model guide"},
               {"--optimizer bogus", "--optimizer: ValueError: optimizer: unknown optimizer"},
               {"--distribute mip", "--distribute: 'mip' given"},
               {"--help", "--help is not given to all ranks"}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char message[256];
    assert_code(
        run_unlike(ranks, getenv("MIXTAPE_PROGRAM"), TRAIN "--steps 2 --distribute mpi", cases[i].other, ""),
        2);
    snprintf(message, sizeof message, "rank %d of %d: %s", ranks - 1, ranks, cases[i].message);
    assert_has(program_err, message);
  }
}

/* A message longer than any buffer on its way is told whole. Launchers may write others' lines into it. */
static void check_long_message(int ranks) {
  enum { LENGTH = 20000 };
  char other[64], message[64];
  snprintf(other, sizeof other, "--resume=$(printf %%0%dd 0 | tr 0 Q)", LENGTH);
  assert_code(run_unlike(ranks, getenv("MIXTAPE_PROGRAM"), TRAIN "--steps 2 --distribute mpi", other, ""), 2);
  snprintf(message, sizeof message, "rank %d of %d: --resume: 'QQQ", ranks - 1, ranks);
  assert_has(program_err, message);
  assert_int_equal(count_of(program_err, "Q"), LENGTH);
}

/* Options that change numbers, on the last rank alone. */
static void check_options(int ranks) {
#define RUN "train --data digits --units 16 --batch-size 128 --verbose 0 --epochs 3 --distribute mpi "
#define MIXED RUN "--policy mixed_float16 --loss-scale none"
  static const struct {
    const char *all, *other, *message, *environment;
  } cases[] = {
      {RUN, "--callback early_stopping:monitor=loss,patience=0,min_delta=5",
       "{\"class\": \"early_stopping\""},
      {RUN, "--callback reduce_lr_on_plateau:monitor=loss", "{\"class\": \"reduce_lr_on_plateau\""},
      {RUN, "--class-weight 0=3", "class weights: 0 is 3.0 here, nothing on rank 0"},
      {RUN, "--device ref", "device is \"ref\" here, \"cpu\" on rank 0"},
      {RUN, "--accumulate blocked", "accumulate is \"blocked\" here, \"auto\" on rank 0"},
      {RUN, "--deterministic", "deterministic is true here, false on rank 0"},
      {RUN, "--graph-rewrite bfloat16", "graph rewrite is \"bfloat16\" here, \"off\" on rank 0"},
      {RUN, "--metrics accuracy,mse", "metrics[1] is"},
      {RUN, "--loop custom", "loop custom is 1 here, 0 on rank 0"},
      {RUN, "--seed 4", "seed is 4 here, \"none ("},
      {RUN "--validation-split 0.1", "--validation-split 0.2", "rows is 9600 here, 10800 on rank 0"},
      {MIXED, "--policy mixed_bfloat16", "dtype.config.name is \"mixed_bfloat16\" here"},
      {RUN "--graph-rewrite bfloat16 ", "",
       "environment of the graph rewrite: LEVEL is \"TREAT_INFER_AS_DENY\" here, nothing on rank 0",
       "TF_AUTO_MIXED_PRECISION_GRAPH_REWRITE_LEVEL=TREAT_INFER_AS_DENY"},
      {RUN "--graph-rewrite bfloat16 ", "",
       "environment of the graph rewrite: DENYLIST_ADD is \"Relu\" here, nothing on rank 0",
       "TF_AUTO_MIXED_PRECISION_GRAPH_REWRITE_DENYLIST_ADD=Relu"},
  };
  char rank[64];
  snprintf(rank, sizeof rank, "rank %d of %d", ranks - 1, ranks);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const char *environment = cases[i].environment ? cases[i].environment : "";
    assert_code(run_unlike(ranks, getenv("MIXTAPE_PROGRAM"), cases[i].all, cases[i].other, environment), 1);
    assert_has(program_err, rank);
    assert_has(program_err, cases[i].message);
  }
}

/* What all ranks have wrong is reported once. */
static void check_usage_of_all(int ranks) {
  static const char *const others[] = {"--bogus", "--optimizer bogus"};
  for (int i = 0; i < 2; i++) {
    char arguments[512], message[64];
    snprintf(arguments, sizeof arguments, TRAIN "--steps 2 --distribute mpi %s", others[i]);
    assert_code(run_ranks(ranks, getenv("MIXTAPE_PROGRAM"), arguments), 2);
    snprintf(message, sizeof message, "rank 0 of %d: ", ranks);
    assert_has(program_err, message);
    assert_int_equal(count_of(program_err, "bogus"), 1);
  }
  assert_code(run_ranks(ranks, getenv("MIXTAPE_PROGRAM"), "train --distribute mpi --help"), 0);
}

static void check_alone(int ranks) {
  assert_code(run_ranks(ranks, getenv("MIXTAPE_PROGRAM"), TRAIN "--steps 2"), 0);
  for (int r = 0; r < ranks; r++) {
    char message[64];
    snprintf(message, sizeof message, "rank %d of %d trains alone", r, ranks);
    assert_has(program_err, message);
  }
}

/* The last rank trains alone, or is stopped before it has begun: the others say for whom they have waited. */
static void check_missing(int ranks) {
  static const char *const last[] = {"%s " TRAIN "--epochs 100000", "sh -c 'kill -STOP $$; exec %s'"};
  char more[1024] = " : -n 1 ", message[128];
  snprintf(message, sizeof message,
           "not all ranks have met within 3 s (MIXTAPE_MPI_TIMEOUT): rank %d of %d has not come", ranks - 1,
           ranks);
  setenv("MIXTAPE_MPI_TIMEOUT", "3", 1);
  for (int i = 0; i < 2; i++) {
    snprintf(more + 8, sizeof more - 8, last[i], getenv("MIXTAPE_PROGRAM"));
    const int code = run_job(ranks - 1, getenv("MIXTAPE_PROGRAM"), TRAIN "--steps 2 --distribute mpi", more);
    assert_int_not_equal(code, 0);
    assert_int_not_equal(code, TIMED_OUT);
    assert_has(program_err, message);
  }
  unsetenv("MIXTAPE_MPI_TIMEOUT");
}

/* Without a plug-in MPI does not start on this rank. */
static void check_no_plugin(int ranks) {
  char message[64];
  assert_code(run_unlike(ranks, getenv("MIXTAPE_PROGRAM"), TRAIN "--steps 2 --distribute mpi", "",
                         "MIXTAPE_MPI_PLUGIN=/missing.so"),
              1);
  snprintf(message, sizeof message, "rank %d cannot join the others", ranks - 1);
  assert_has(program_err, message);
  assert_has(program_err, "the plug-in /missing.so cannot be loaded");
}

/* As srun without --mpi starts it: processes that would each train alone. */
static void check_srun_without_mpi(int ranks) {
  char command[1024];
  snprintf(command, sizeof command,
           "env SLURM_PROCID=0 SLURM_STEP_NUM_TASKS=%d %s " TRAIN "--steps 1 --distribute mpi", ranks,
           getenv("MIXTAPE_PROGRAM"));
  assert_code(run_command(command), 1);
  assert_has(program_err, "give it --mpi=pmix (Open MPI) or --mpi=pmi2 (MPICH)");
}

/* --shard needs ranks, is the same on all, and changes no number. */
static void check_shard(int ranks) {
  static char whole[sizeof program_out];
  const char *program = getenv("MIXTAPE_PROGRAM");
  assert_code(run_ranks(0, program, TRAIN "--steps 1 --shard optimizer"), 2);
  assert_has(program_err, "it needs --distribute mpi");
  assert_code(run_ranks(0, program, TRAIN "--steps 1 --distribute mpi --shard optimizer"), 1);
  assert_has(program_err, "the distribution has one rank");
  assert_code(run_unlike(ranks, program, TRAIN "--steps 1 --distribute mpi ", "--shard optimizer", ""), 1);
  assert_has(program_err, "gives 1, rank 0 gives 0");
  for (int divided = 0; divided < 2; divided++) {
    const char *arguments = divided ? TRAIN "--steps 5 --distribute mpi --optimizer adam --shard optimizer"
                                    : TRAIN "--steps 5 --distribute mpi --optimizer adam";
    assert_code(run_ranks(ranks, program, arguments), 0);
    char *times = strstr(program_out, "\"seconds\"");
    assert_non_null(times);
    *times = '\0';
    if (divided) assert_string_equal(program_out, whole);
    strcpy(whole, program_out);
  }
}

#define TESTS(X)                                                                                             \
  X(shard)                                                                                                   \
  X(usage) X(long_message) X(usage_of_all) X(options) X(alone) X(missing) X(no_plugin) X(srun_without_mpi)
TESTS(CASES)

/* test_mpi_usage [FILTER]: of the names of tests. By day jobs of two ranks, by night those of three. */
int main(int argc, char **argv) {
  if (argc > 1) cmocka_set_test_filter(argv[1]);
  const struct CMUnitTest tests[] = {TESTS(ROWS)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
