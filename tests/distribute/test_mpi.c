/* Training in several processes: mpirun of each flavour that is installed starts tests/distribute/worker.c
 * and the program, and what they save is compared with one process. */
/* Holds docs/NUMERICS.md: Several processes. */
#include "distribute/worker_runs.h"

/* ---- tests, once with 2 ranks and once with 3 ---- */

static void check_collectives(int ranks) { assert_code(run_ranks(ranks, worker(), "collectives"), 0); }

/* O13: in tests/distribute/worker.c. */
static void check_one_nan(int ranks) { assert_code(run_ranks(ranks, worker(), "one_nan"), 0); }
static void check_one_check(int ranks) { assert_code(run_ranks(ranks, worker(), "one_check"), 0); }

/* 50 steps; 97 rows in batches of 32: the last batch has one row, so that other ranks have none. */
static void check_float32(int ranks) {
  const char *one = run_task(0, "float32", "train %s float32 97 32 50"),
             *many = run_task(ranks, "float32", "train %s float32 97 32 50");
  assert_near(one, many, 1e-5);
  assert_ranks_agree(many, ranks);
}

static void check_integers(int ranks) {
  const char *one = run_task(0, "integers", "integers %s"),
             *many = run_task(ranks, "integers", "integers %s");
  assert_same_bits(one, 0, many, 0);
  assert_ranks_agree(many, ranks);
}

/* Every line of the log but the loss: step, verdict, loss scale, good steps. */
static void read_verdicts(const char *folder, int rank, char *text, size_t size, int *skipped) {
  char path[600], line[256];
  snprintf(path, sizeof path, "%s/%d.log", folder, rank);
  FILE *file = fopen(path, "r");
  assert_non_null(file);
  size_t used = 0;
  *skipped = 0;
  while (fgets(line, sizeof line, file)) {
    *strrchr(line, ' ') = 0;
    *skipped += strstr(line, " 0 ") != NULL;
    used += (size_t)snprintf(text + used, size - used, "%s\n", line);
  }
  fclose(file);
}

/* From a loss scale that overflows at first. */
static void check_loss_scale(int ranks) {
  static char verdicts[2][8192];
  int skipped[2];
  const char *one = run_task(0, "mixed", "train %s mixed_float16 96 32 20"),
             *many = run_task(ranks, "mixed", "train %s mixed_float16 96 32 20");
  read_verdicts(one, 0, verdicts[0], sizeof verdicts[0], &skipped[0]);
  assert_true(skipped[0] > 0 && skipped[0] < 20);
  for (int r = 0; r < ranks; r++) {
    read_verdicts(many, r, verdicts[1], sizeof verdicts[1], &skipped[1]);
    assert_string_equal(verdicts[0], verdicts[1]);
  }
  assert_ranks_agree(many, ranks);
}

/* Sums have another order, and where that moves a last bit a value becomes the next float8 number (E20); a
 * scale or history that is a sum of the ranks' is twice or three times as large. */
static void check_float8(int ranks) {
  const char *one = run_task(0, "float8", "float8 %s"), *many = run_task(ranks, "float8", "float8 %s");
  assert_near(one, many, 1e-3);
  assert_ranks_agree(many, ranks);
}

static void check_batch_norm(int ranks) {
  const char *one = run_task(0, "norm", "batch_norm %s"), *many = run_task(ranks, "norm", "batch_norm %s");
  assert_near(one, many, 1e-4);
  assert_ranks_agree(many, ranks);
}

static void check_one_value(int ranks) {
  const char *one = run_task(0, "value", "one_value %s"), *many = run_task(ranks, "value", "one_value %s");
  assert_near(one, many, 1e-5);
  assert_ranks_agree(many, ranks);
}

static void check_batch_norm_alone(int ranks) {
  static weights w;
  const char *many = run_task(ranks, "norm_alone", "batch_norm_alone %s");
  read_weights(many, 0, &w);
  for (int64_t i = 0; i < w.count; i++) assert_true(isfinite(w.values[i]));
  assert_ranks_agree(many, ranks);
}

static void assert_failed(int code) {
  assert_int_not_equal(code, 0);
  assert_int_not_equal(code, TIMED_OUT);
}

/* The job ends by itself. The ranks that are left say which one it was, if the launcher leaves them the
 * time. */
static void check_death(int ranks) { assert_failed(run_ranks(ranks, worker(), "dies")); }

/* The program always says which rank was killed. Its process is in the message at the start. */
static void check_killed(int ranks) {
  char script[1024], command[2048];
  snprintf(script, sizeof script, "%s/kill.sh", test_folder);
  FILE *file = fopen(script, "w");
  assert_non_null(file);
  fprintf(file,
          "tries=0\n"
          "until process=$(sed -n 's/.* rank 1 is process \\([0-9]*\\).*/\\1/p' %s/stderr)\n"
          "[ -n \"$process\" ] || [ $tries -ge 600 ]\n"
          "do sleep 0.1; tries=$((tries + 1)); done\n"
          "[ -z \"$process\" ] || kill -9 $process\n",
          test_folder);
  fclose(file);
  snprintf(command, sizeof command,
           "sh -c 'sh %s & exec %s -n %d %s " TRAIN "--epochs 100000 --distribute mpi'", script, launcher(),
           ranks, getenv("MIXTAPE_PROGRAM"));
  assert_failed(run_command(command));
  assert_has(program_err, "rank 1 (process ");
  assert_has(program_err, "was ended by signal 9");
  assert_null(strstr(program_err, "rank 0 (process ")); /* which the launcher ended after it */
}

/* A numerics report asks for gradients that cross the sums of a synchronized normalization. */
static void check_watched(int ranks) { run_task(ranks, "watched", "watched %s"); }

static void check_observer(int ranks) {
  assert_failed(run_ranks(ranks, worker(), "observer ."));
  assert_has(program_err, "callbacks[0] is nothing here, {\"class\": \"numerics_report\"");
}

static void check_difference(int ranks) {
  static const char *const cases[][2] = {
      {"batch_size", "batch_size is 8 here, 16 on rank 0"},
      {"patience", "callbacks[0].config.patience is 2 here, 1 on rank 0"},
      {"schedule",
       "callbacks[0] is {\"class\": \"learning_rate_scheduler\", \"config\": {}} here, nothing on"},
      {"validation", "validation data[0].sha256 is"},
      {"class_weights", "class weights: 1 is 0.5 here, 2.0 on rank 0"},
      {"seed", "seed is \"none ("}};
  char name[64], arguments[64];
  snprintf(name, sizeof name, "rank 1 of %d", ranks);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    snprintf(arguments, sizeof arguments, "differs %s", cases[i][0]);
    assert_failed(run_ranks(ranks, worker(), arguments));
    assert_has(program_err, name);
    assert_has(program_err, cases[i][1]);
  }
}

/* Callbacks that only write files, and callbacks of the user's, may be on rank 0 alone. */
static void check_files_of_one_rank(int ranks) {
  char path[600];
  snprintf(path, sizeof path, "%s/log.csv", run_task(ranks, "one_log", "files %s"));
  assert_int_equal(access(path, F_OK), 0);
}

/* ---- the program ---- */

static double number_of(const char *list, const char *name) {
  json_t *object = printed_object(), *part = json_object_get(object, list);
  json_t *value = json_object_get(part, name);
  if (json_is_array(value)) value = json_array_get(value, json_array_size(value) - 1); /* the last epoch */
  const double number = number_in(value);
  json_decref(object);
  return number;
}

/* One object on standard output, with the losses and metrics of all rows. The files are those of rank 0. */
static void check_program(int ranks) {
  static const struct {
    const char *list, *name;
  } numbers[] = {{"history", "loss"}, {"history", "accuracy"}, {"test", "loss"}, {"test", "accuracy"}};
  double one[4];
  char arguments[1024], path[512];
  assert_code(run_ranks(0, getenv("MIXTAPE_PROGRAM"), TRAIN "--steps 20 --distribute mpi"), 0);
  for (int i = 0; i < 4; i++) one[i] = number_of(numbers[i].list, numbers[i].name);
  snprintf(arguments, sizeof arguments,
           TRAIN "--steps 20 --distribute mpi --tensorboard %s/logs --trace %s/trace.json", test_folder,
           test_folder);
  assert_code(run_ranks(ranks, getenv("MIXTAPE_PROGRAM"), arguments), 0);
  for (int i = 0; i < 4; i++)
    assert_true(fabs(number_of(numbers[i].list, numbers[i].name) - one[i]) <= 1e-4 * one[i]);
  snprintf(path, sizeof path, "%s/logs/train", test_folder);
  assert_int_equal(access(path, F_OK), 0);
  snprintf(path, sizeof path, "%s/trace.json", test_folder);
  assert_int_equal(access(path, F_OK), 0);
}

/* The loop with the gradient tape, over the end of an epoch, whose last batch is not full. A run on ranks is
 * continued by another number of them. */
static void check_custom_loop(int ranks) {
#define LOOP TRAIN "--loop custom --validation-split 0.1 --distribute mpi --policy %s --steps %d "
  static const char *const policies[] = {"float32", "mixed_float16"};
  static const struct {
    const char *list, *name;
  } numbers[] = {{"history", "loss"}, {"history", "accuracy"}, {"history", "val_loss"},
                 {"test", "loss"},    {"test", "accuracy"},    {"history", "val_accuracy"}};
  double one[6];
  char arguments[1024];
  for (int p = 0; p < 2; p++) {
    const double bound = p ? 1e-2 : 1e-5; /* rows are rounded to 16 bits apart from the others' */
    snprintf(arguments, sizeof arguments, LOOP, policies[p], 100);
    assert_code(run_ranks(0, getenv("MIXTAPE_PROGRAM"), arguments), 0);
    for (int i = 0; i < 6; i++) one[i] = number_of(numbers[i].list, numbers[i].name);
    snprintf(arguments, sizeof arguments, LOOP "--checkpoint %s/%s", policies[p], 90, test_folder,
             policies[p]);
    assert_code(run_ranks(ranks, getenv("MIXTAPE_PROGRAM"), arguments), 0);
    snprintf(arguments, sizeof arguments, LOOP "--checkpoint %s/%s --resume", policies[p], 100, test_folder,
             policies[p]);
    assert_code(run_ranks(ranks == 2 ? 3 : 2, getenv("MIXTAPE_PROGRAM"), arguments), 0);
    for (int i = 0; i < 6; i++) {
      const double many = number_of(numbers[i].list, numbers[i].name);
      if (!(fabs(many - one[i]) <= bound * fabs(one[i])))
        fail_msg("%s: %s %s: %.9g, %.9g in one process", policies[p], numbers[i].list, numbers[i].name, many,
                 one[i]);
    }
  }
}

/* Callbacks that write files are those of rank 0, however their names are spelled. Each rank has a folder of
 * its own to write to. */
static void check_files(int ranks) {
  static const char *const written[] = {"log.csv", "model.keras", "logs", "report.html"};
  char script[512], path[600];
  for (int r = 0; r < ranks; r++) {
    snprintf(path, sizeof path, "%s/%d", test_folder, r);
    assert_int_equal(mkdir(path, 0777), 0);
  }
  snprintf(script, sizeof script, "%s/files.sh", test_folder);
  FILE *file = fopen(script, "w");
  assert_non_null(file);
  fprintf(file,
          "cd \"%s/${OMPI_COMM_WORLD_RANK:-$PMI_RANK}\" && exec %s " TRAIN
          "--steps 2 --distribute mpi --callback CSVLogger:filename=log.csv "
          "--callback ModelCheckpoint:filepath=model.keras,monitor=loss "
          "--callback Tensor_Board:log_dir=logs --callback NumericsReport:html=report.html\n",
          test_folder, getenv("MIXTAPE_PROGRAM"));
  fclose(file);
  assert_code(run_ranks(ranks, "sh", script), 0);
  for (int r = 0; r < ranks; r++)
    for (size_t i = 0; i < sizeof written / sizeof *written; i++) {
      snprintf(path, sizeof path, "%s/%d/%s", test_folder, r, written[i]);
      if ((access(path, F_OK) == 0) != (r == 0)) fail_msg("rank %d: %s", r, written[i]);
    }
}

/* Saved by one number of ranks, continued by another: as in one process. */
static void check_resume(int ranks) {
  char arguments[1024];
  double one = 0, loss = 0;
  snprintf(arguments, sizeof arguments, TRAIN "--steps 12 --distribute mpi");
  assert_code(run_ranks(0, getenv("MIXTAPE_PROGRAM"), arguments), 0);
  one = number_of("test", "loss");
  snprintf(arguments, sizeof arguments, TRAIN "--steps 6 --distribute mpi --checkpoint %s/saved",
           test_folder);
  assert_code(run_ranks(ranks, getenv("MIXTAPE_PROGRAM"), arguments), 0);
  snprintf(arguments, sizeof arguments, TRAIN "--steps 12 --distribute mpi --checkpoint %s/saved --resume",
           test_folder);
  assert_code(run_ranks(ranks == 2 ? 3 : 2, getenv("MIXTAPE_PROGRAM"), arguments), 0);
  loss = number_of("test", "loss");
  assert_true(fabs(loss - one) <= 1e-5 * one);
}

/* Rank 0 sees a folder of its own, which is two steps behind that of the others. */
static void check_other_checkpoint(int ranks) {
  char script[512], arguments[1024];
  for (int other = 0; other < 2; other++) {
    snprintf(arguments, sizeof arguments, TRAIN "--steps %d --distribute mpi --checkpoint %s/saved_%d",
             other ? 8 : 6, test_folder, other);
    assert_code(run_ranks(0, getenv("MIXTAPE_PROGRAM"), arguments), 0);
  }
  snprintf(script, sizeof script, "%s/resume.sh", test_folder);
  FILE *file = fopen(script, "w");
  assert_non_null(file);
  fprintf(file,
          "[ \"${OMPI_COMM_WORLD_RANK:-$PMI_RANK}\" = 0 ] && other=0 || other=1\n"
          "exec %s " TRAIN "--steps 12 --distribute mpi --checkpoint %s/saved_$other --resume\n",
          getenv("MIXTAPE_PROGRAM"), test_folder);
  fclose(file);
  assert_failed(run_ranks(ranks, "sh", script));
  assert_has(program_err, "step 6 on rank 0; all ranks must see one folder");
}

#define TESTS(X)                                                                                             \
  X(collectives)                                                                                             \
  X(one_nan)                                                                                                 \
  X(one_check)                                                                                               \
  X(float32)                                                                                                 \
  X(integers)                                                                                                \
  X(loss_scale)                                                                                              \
  X(float8)                                                                                                  \
  X(batch_norm)                                                                                              \
  X(batch_norm_alone)                                                                                        \
  X(one_value)                                                                                               \
  X(death)                                                                                                   \
  X(killed)                                                                                                  \
  X(difference)                                                                                              \
  X(files_of_one_rank)                                                                                       \
  X(program)                                                                                                 \
  X(custom_loop)                                                                                             \
  X(files)                                                                                                   \
  X(watched)                                                                                                 \
  X(observer)                                                                                                \
  X(resume)                                                                                                  \
  X(other_checkpoint)
TESTS(CASES)

int main(void) {
  const struct CMUnitTest tests[] = {TESTS(ROWS)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
