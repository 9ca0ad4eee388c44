/* --checkpoint and --resume: stopped by --steps, killed while saving, disk full. The end must equal that of a
 * run without a stop. */
#include "cli/program.h"
#include "support/skip.h"

#include <dirent.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>

enum { MAX = 48 };

/* MIXTAPE_KILLS, or 100: how often a run is killed. */
static int wanted_kills(void) {
  const char *text = getenv("MIXTAPE_KILLS");
  return text && *text ? atoi(text) : 100;
}

static void write_data(void) {
  MIX_SCOPE {
    double x[120 * 6], y[120];
    for (int i = 0; i < 720; i++) x[i] = (i * 37 % 101) / 101.0;
    for (int i = 0; i < 120; i++) y[i] = i * 7 % 10;
    const char *names[] = {"x_train", "y_train"};
    mix_tensor *tensors[] = {mix_tensor_from_doubles(x, MIX_FLOAT32, MIX_SHAPE(120, 6)),
                             mix_tensor_from_doubles(y, MIX_INT64, MIX_SHAPE(120))};
    assert_int_equal(mix_npz_save(in_folder("data.npz"), 2, names, tensors), MIX_OK);
  }
}

/* "train" with the common options, then the given ones. Weights go to NAME.npz, steps to NAME.jsonl. */
static const char *const *arguments_of(const char *loop, const char *name, const char *epochs,
                                       const char *const *more) {
  static const char *list[MAX];
  static char save[600], log[600];
  snprintf(save, sizeof save, "%s/%s.npz", test_folder, name);
  snprintf(log, sizeof log, "%s/%s.jsonl", test_folder, name);
  const char *common[] = {"train",
                          "--data",
                          in_folder("data.npz"),
                          "--units",
                          "8",
                          "--batch-size",
                          "20",
                          "--device",
                          "cpu",
                          "--loop",
                          loop,
                          "--policy",
                          "mixed_float16",
                          "--seed",
                          "5",
                          "--epochs",
                          epochs,
                          "--threads",
                          "1",
                          "--save",
                          save,
                          "--step-log",
                          log,
                          "--json",
                          "--loss-scale",
                          "dynamic:1048576:5",
                          "--validation-split",
                          "0.2"};
  int count = 0;
  for (size_t i = 0; i < sizeof common / sizeof *common; i++) list[count++] = common[i];
  for (int i = 0; more[i]; i++) list[count++] = more[i];
  assert_true(count < MAX);
  list[count] = NULL;
  return list;
}
#define RUN(loop, name, epochs, ...)                                                                         \
  run_program_to(NULL, arguments_of(loop, name, epochs, (const char *const[]){__VA_ARGS__, NULL}))

static void assert_same_files(const char *a, const char *b) {
  char command[1400];
  snprintf(command, sizeof command, "cmp '%s' '%s'", in_folder(a), in_folder(b));
  if (system(command)) fail_msg("%s and %s differ; standard error of the latest run:\n%s", a, b, program_err);
}

/* The object of --json without its times. */
static char *printed_results(void) {
  json_t *object = printed_object();
  json_object_del(object, "seconds");
  char *text = json_dumps(object, JSON_SORT_KEYS);
  json_decref(object);
  return text;
}

static void runs_stopped_by_steps_resume(void **state) {
  (void)state;
  write_data();
  static const char *const loops[] = {"fit", "custom"};
  for (int i = 0; i < 2; i++) {
    assert_code(RUN(loops[i], "straight", "4", "--verbose", "0"), 0);
    char *straight = printed_results();
    /* Within an epoch, at the end of one, at the end of all (5 steps an epoch). */
    static const char *const stops[] = {"1", "7", "10", "13", "20"};
    for (int j = 0; j < 5; j++) {
      forget("run");
      assert_code(RUN(loops[i], "resumed", "4", "--checkpoint", in_folder("run"), "--steps", stops[j]), 0);
      char *stopped = printed_results();
      assert_code(
          RUN(loops[i], "resumed", "4", "--checkpoint", in_folder("run"), "--steps", stops[j], "--resume"),
          0);
      char *again = printed_results(); /* nothing left to do: the same report */
      assert_string_equal(stopped, again);
      free(stopped);
      free(again);
      assert_code(RUN(loops[i], "resumed", "4", "--checkpoint", in_folder("run")), 1);
      assert_has(program_err, "give --resume");
      assert_code(RUN(loops[i], "resumed", "4", "--checkpoint", in_folder("run"), "--resume"), 0);
      char *resumed = printed_results();
      assert_string_equal(straight, resumed);
      assert_same_files("straight.npz", "resumed.npz");
      assert_same_files("straight.jsonl", "resumed.jsonl");
      free(resumed);
    }
    /* More epochs continue as a longer run. */
    assert_code(RUN(loops[i], "resumed", "6", "--checkpoint", in_folder("run"), "--resume"), 0);
    assert_code(RUN(loops[i], "straight", "6", "--verbose", "0"), 0);
    assert_same_files("straight.npz", "resumed.npz");
    assert_same_files("straight.jsonl", "resumed.jsonl");
    free(straight);
  }
}

/* Metrics with more state than a total and a count, some of it created by the first batch: stopped in each
 * step of an epoch. */
static void metrics_with_much_state_resume(void **state) {
  (void)state;
  write_data();
  MIX_SCOPE {
    mix_npz *data = mix_npz_open(in_folder("data.npz"));
    mix_tensor *x = mix_npz_require(data, "x_train"),
               *y = mix_one_hot(mix_npz_require(data, "y_train"), 10, MIX_FLOAT32);
    mix_npz_save(in_folder("onehot.npz"), 2, (const char *const[]){"x_train", "y_train"},
                 (mix_tensor *const[]){x, y});
  }
  assert_int_equal(mix_error(), MIX_OK);
#define MUCH                                                                                                 \
  "--data", in_folder("onehot.npz"), "--loss", "categorical_crossentropy", "--metrics",                      \
      "auc:num_thresholds=20,multi_label=true,precision:thresholds=0.05:0.1,f1_score,r2_score,"              \
      "recall_at_precision:precision=0.1,mean_io_u:num_classes=10,sparse_y_true=false,"                      \
      "sparse_y_pred=false,auc:name=area"
  assert_code(RUN("fit", "straight", "2", MUCH), 0);
  char *straight = printed_results();
  static const char *const stops[] = {"1", "2", "4", "5", "6", "8"};
  for (int i = 0; i < 6; i++) {
    forget("run");
    assert_code(RUN("fit", "resumed", "2", MUCH, "--checkpoint", in_folder("run"), "--steps", stops[i]), 0);
    assert_code(RUN("fit", "resumed", "2", MUCH, "--checkpoint", in_folder("run"), "--resume"), 0);
    char *resumed = printed_results();
    assert_string_equal(straight, resumed);
    assert_same_files("straight.jsonl", "resumed.jsonl");
    free(resumed);
  }
  /* Within an epoch a run cannot continue with other metrics. */
  forget("run");
  assert_code(RUN("fit", "resumed", "2", MUCH, "--checkpoint", in_folder("run"), "--steps", "7"), 0);
  assert_code(RUN("fit", "resumed", "2", "--data", in_folder("onehot.npz"), "--loss",
                  "categorical_crossentropy", "--metrics", "auc", "--checkpoint", in_folder("run"),
                  "--resume"),
              1);
  assert_has(program_err, "metrics: ");
  free(straight);
}

static void wrong_options_and_checkpoints(void **state) {
  (void)state;
  write_data();
  forget("run");
  assert_code(RUN("fit", "a", "1", "--resume"), 2);
  assert_has(program_err, "--resume needs --checkpoint");
  assert_code(RUN("fit", "a", "1", "--checkpoint-freq", "3"), 2);
  assert_has(program_err, "--checkpoint-freq needs --checkpoint");
  assert_code(RUN("fit", "a", "1", "--checkpoint", in_folder("run"), "--checkpoint-freq", "0"), 2);
  assert_has(program_err, "expected epoch or a positive");
  assert_code(RUN("fit", "a", "1", "--checkpoint", "/dev/full"), 1);
  assert_has(program_err, "/dev/full");
  /* Without a checkpoint, --resume starts from the beginning. */
  assert_code(RUN("fit", "a", "1", "--checkpoint", in_folder("run"), "--resume"), 0);
  assert_has(program_err, "holds none yet");
  /* Checkpoints of another loop, another model, another batch size. */
  assert_code(RUN("custom", "a", "2", "--checkpoint", in_folder("run"), "--resume"), 1);
  assert_has(program_err, "a checkpoint of another loop; give --loop fit");
  assert_code(RUN("fit", "a", "2", "--checkpoint", in_folder("run"), "--resume", "--units", "9"), 1);
  assert_has(program_err, "'dense_1/kernel' is float32 (6, 9), in the checkpoint");
  assert_code(RUN("fit", "a", "2", "--checkpoint", in_folder("run"), "--resume", "--batch-size", "10"), 1);
  assert_has(program_err, "batch_size is 10 here, 20 in the checkpoint");
  assert_code(RUN("fit", "a", "2", "--checkpoint", in_folder("run"), "--resume", "--optimizer", "adam"), 1);
  assert_has(program_err, "the optimizer is Adam");
  /* What no shape shows: another learning rate, seed, data. By force the run goes on. */
  static const char *const loops[] = {"fit", "custom"};
  for (int i = 0; i < 2; i++) {
    forget("run");
    assert_code(RUN(loops[i], "a", "1", "--checkpoint", in_folder("run"), "--optimizer", "sgd"), 0);
#define AGAIN(...) RUN(loops[i], "a", "2", "--checkpoint", in_folder("run"), __VA_ARGS__)
    assert_code(AGAIN("--resume", "--optimizer", "sgd:learning_rate=0.5"), 1);
    assert_has(program_err, "optimizer: learning_rate is 0.5 here, 0.01");
    assert_code(AGAIN("--resume", "--optimizer", "sgd", "--seed", "6"), 1);
    assert_has(program_err, "seed is 6 here, 5 in the checkpoint");
    assert_code(AGAIN("--resume", "--optimizer", "sgd", "--loss", "mse"), 1);
    assert_has(program_err, "loss[0].class_name");
    if (!strcmp(loops[i], "fit")) {
      assert_code(AGAIN("--resume", "--optimizer", "sgd", "--class-weight", "0=3"), 1);
      assert_has(program_err, "class weights");
    }
    assert_code(AGAIN("--resume=perhaps", "--optimizer", "sgd"), 2);
    assert_has(program_err, "expected --resume or --resume=force");
    assert_code(AGAIN("--resume=force", "--optimizer", "sgd:learning_rate=0.5", "--batch-size", "10"), 0);
    assert_has(program_err, "resumed by force");
    assert_code(AGAIN("--resume", "--optimizer", "sgd:learning_rate=0.5", "--batch-size", "10"), 0);
#undef AGAIN
  }
  forget("run");
  assert_code(RUN("custom", "a", "1", "--checkpoint", in_folder("run")), 0);
  assert_code(RUN("fit", "a", "2", "--checkpoint", in_folder("run"), "--resume"), 1);
  assert_has(program_err, "not by a fit");
  assert_code(RUN("custom", "a", "2", "--checkpoint", in_folder("run"), "--resume", "--batch-size", "10"), 1);
  assert_has(program_err, "\"batch 10\" here, \"batch 20\" in");
  assert_code(
      RUN("custom", "a", "2", "--checkpoint", in_folder("run"), "--resume", "--validation-split", "0.5"), 1);
  assert_has(program_err, "\"float32 (60, 6)\" here, \"float32 (96, 6)\" in");
}

/* ---- the folder and its files ---- */

/* A newest checkpoint that cannot be read now ends the run; one that is damaged gives way to the previous. */
static void only_a_damaged_checkpoint_falls_back(void **state) {
  (void)state;
  write_data();
  static const char *const loops[] = {"fit", "custom"};
  for (int i = 0; i < 2; i++) {
    forget("run");
    assert_code(RUN(loops[i], "straight", "4", "--verbose", "0"), 0);
    assert_code(RUN(loops[i], "resumed", "4", "--checkpoint", in_folder("run"), "--steps", "7"), 0);
    char newest[600], aside[600];
    snprintf(newest, sizeof newest, "%s/run/checkpoint-7.npz", test_folder);
    snprintf(aside, sizeof aside, "%s/aside.npz", test_folder);
    assert_int_equal(rename(newest, aside), 0);
    assert_int_equal(symlink("checkpoint-7.npz", newest), 0); /* ELOOP, also for root */
    assert_code(RUN(loops[i], "resumed", "4", "--checkpoint", in_folder("run"), "--resume"), 1);
    assert_has(program_err, "checkpoint-7.npz: cannot be opened");
    assert_int_equal(unlink(newest), 0);
    assert_int_equal(rename(aside, newest), 0);
    FILE *file = fopen(newest, "r+");
    assert_int_equal(fseek(file, 100, SEEK_SET), 0);
    assert_int_equal(fputs("damaged", file) >= 0 && fclose(file) == 0, 1);
    assert_code(RUN(loops[i], "resumed", "4", "--checkpoint", in_folder("run"), "--resume"), 0);
    assert_has(program_err, "checkpoint-7.npz");
    assert_same_files("straight.npz", "resumed.npz");
    assert_same_files("straight.jsonl", "resumed.jsonl");
  }
}

/* Runs of 7 and 13 steps, which leave checkpoints 7 and 13: what falls back goes on from 7. */
static void two_checkpoints(const char *loop) {
  forget("run");
  assert_code(RUN(loop, "resumed", "4", "--checkpoint", in_folder("run"), "--steps", "7"), 0);
  assert_code(RUN(loop, "resumed", "4", "--checkpoint", in_folder("run"), "--steps", "13", "--resume"), 0);
}
static int resume(const char *loop) {
  return RUN(loop, "resumed", "4", "--checkpoint", in_folder("run"), "--resume");
}
static void resumes_whole(const char *loop) {
  assert_code(resume(loop), 0);
  assert_same_files("straight.npz", "resumed.npz");
  assert_same_files("straight.jsonl", "resumed.jsonl");
}

/* EMFILE where the newest file is opened, and nowhere else. */
static void too_many_open_files_end_the_run(void **state) {
  (void)state;
  write_data();
  const char *failing = getenv("MIXTAPE_FAILING_PROGRAM");
  if (!failing) SKIP("MIXTAPE_FAILING_PROGRAM is not set");
  static const char *const loops[] = {"fit", "custom"};
  char former[1024];
  snprintf(former, sizeof former, "%s", getenv("MIXTAPE_PROGRAM"));
  for (int i = 0; i < 2; i++) {
    assert_code(RUN(loops[i], "straight", "4", "--verbose", "0"), 0);
    two_checkpoints(loops[i]);
    setenv("MIXTAPE_PROGRAM", failing, 1);
    setenv("MIXTAPE_FAIL_OPEN", in_folder("run/checkpoint-13.npz"), 1);
    const int code = resume(loops[i]);
    setenv("MIXTAPE_PROGRAM", former, 1);
    unsetenv("MIXTAPE_FAIL_OPEN");
    assert_code(code, 1);
    assert_has(program_err, "checkpoint-13.npz: cannot be opened: Too many open files");
    resumes_whole(loops[i]);
  }
}

static bool become_nobody(void) { return setuid(65534) == 0; }

/* Root may read any file: the program runs as a user who may not. */
static void a_file_that_may_not_be_read_ends_the_run(void **state) {
  (void)state;
  write_data();
  static const char *const loops[] = {"fit", "custom"};
  for (int i = 0; i < 2; i++) {
    char newest[600], command[200];
    assert_code(RUN(loops[i], "straight", "4", "--verbose", "0"), 0);
    two_checkpoints(loops[i]);
    snprintf(newest, sizeof newest, "%s/run/checkpoint-13.npz", test_folder);
    assert_int_equal(chmod(newest, 0), 0);
    if (geteuid() == 0) {
      snprintf(command, sizeof command, "chown -R 65534 '%s'", test_folder);
      if (system(command)) SKIP("root cannot give files away here");
      program_begins = become_nobody;
    }
    const int code = resume(loops[i]);
    program_begins = NULL;
    if (code == 125) SKIP("root cannot become user 65534 here");
    assert_code(code, 1);
    assert_has(program_err, "checkpoint-13.npz: cannot be opened: Permission denied");
    assert_int_equal(chmod(newest, 0644), 0);
    resumes_whole(loops[i]);
  }
}

static void a_folder_in_use_is_refused(void **state) {
  (void)state;
  write_data();
  static const char *const loops[] = {"fit", "custom"};
  for (int i = 0; i < 2; i++) {
    forget("run");
    assert_int_equal(mkdir(in_folder("run"), 0777), 0);
    const int folder = open(in_folder("run"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(flock(folder, LOCK_EX), 0);
    assert_code(RUN(loops[i], "a", "1", "--checkpoint", in_folder("run")), 1);
    assert_has(program_err, "is in use by another process");
    close(folder);
    assert_code(RUN(loops[i], "a", "1", "--checkpoint", in_folder("run")), 0);
  }
}

/* ---- killed while saving ---- */

static pid_t start(const char *const *arguments, rlim_t file_size) {
  pid_t child = fork();
  assert_true(child >= 0);
  if (child) return child;
  int null = open("/dev/null", O_RDWR);
  dup2(null, 0), dup2(null, 1), dup2(null, 2);
  if (file_size != RLIM_INFINITY) {
    struct rlimit limit = {file_size, file_size};
    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &limit);
    char errors[600];
    snprintf(errors, sizeof errors, "%s/stderr", test_folder);
    dup2(open(errors, O_WRONLY | O_CREAT | O_TRUNC, 0666), 2);
  }
  const char *list[MAX + 2] = {getenv("MIXTAPE_PROGRAM")};
  for (int i = 0; arguments[i]; i++) list[i + 1] = arguments[i];
  execv(list[0], (char *const *)list);
  _exit(127);
}

/* Is that process writing a checkpoint file, or has it ended? */
static bool saves_or_ended(pid_t child, int *status) {
  char part[64];
  bool saves = false;
  snprintf(part, sizeof part, ".part-%ld-", (long)child);
  DIR *directory = opendir(in_folder("run"));
  for (struct dirent *entry; directory && !saves && (entry = readdir(directory));)
    saves = strstr(entry->d_name, part);
  if (directory) closedir(directory);
  return saves || waitpid(child, status, WNOHANG) == child;
}

static void runs_killed_while_saving_resume(void **state) {
  (void)state;
  write_data();
  forget("run");
  static const char *const loops[] = {"fit", "custom"};
  for (int i = 0; i < 2; i++) {
    const char *loop = loops[i], *epochs = "60";
    assert_code(RUN(loop, "straight", epochs, "--verbose", "0"), 0);
    uint32_t random = 9;
    forget("run");
    remove(in_folder("resumed.jsonl"));
    for (int kills = 0; kills < wanted_kills() / 2;) {
      int status = -1;
      pid_t child = start(arguments_of(loop, "resumed", epochs,
                                       (const char *const[]){"--checkpoint", in_folder("run"),
                                                             "--checkpoint-freq", "1", "--resume", NULL}),
                          RLIM_INFINITY);
      /* Waits for a few saves, then up to 2 ms into one. */
      random = random * 1664525u + 1013904223u;
      for (uint32_t saves = random >> 28;
           !saves_or_ended(child, &status) || (status < 0 && saves-- > 0 && usleep(500) == 0);)
        usleep(100);
      usleep((random >> 8) % 2000);
      if (status < 0) {
        kill(child, SIGKILL);
        assert_int_equal(waitpid(child, &status, 0), child);
        kills += WIFSIGNALED(status);
      }
      if (WIFEXITED(status)) { /* it ended in the meantime */
        assert_int_equal(WEXITSTATUS(status), 0);
        assert_same_files("straight.npz", "resumed.npz");
        forget("run");
        remove(in_folder("resumed.jsonl"));
      }
    }
    assert_code(RUN(loop, "resumed", epochs, "--checkpoint", in_folder("run"), "--resume"), 0);
    assert_same_files("straight.npz", "resumed.npz");
    assert_same_files("straight.jsonl", "resumed.jsonl");
    DIR *directory = opendir(in_folder("run")); /* half-written files are removed */
    for (struct dirent *entry; (entry = readdir(directory));) assert_null(strstr(entry->d_name, ".part-"));
    closedir(directory);
  }
}

static void a_full_disk_is_an_error_and_loses_nothing(void **state) {
  (void)state;
  write_data();
  forget("run");
  assert_code(RUN("fit", "straight", "4", "--verbose", "0"), 0);
  assert_code(RUN("fit", "resumed", "4", "--checkpoint", in_folder("run"), "--steps", "7"), 0);
  int status;
  pid_t child = start(arguments_of("fit", "resumed", "4",
                                   (const char *const[]){"--checkpoint", in_folder("run"), "--resume", NULL}),
                      6000);
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_int_equal(WEXITSTATUS(status), 1);
  read_text(in_folder("stderr"), program_err, sizeof program_err);
  assert_has(program_err, "checkpoint-10.npz cannot be written");
  assert_code(RUN("fit", "resumed", "4", "--checkpoint", in_folder("run"), "--resume"), 0);
  assert_same_files("straight.npz", "resumed.npz");
  assert_same_files("straight.jsonl", "resumed.jsonl");
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(runs_stopped_by_steps_resume),
                                     cmocka_unit_test(metrics_with_much_state_resume),
                                     cmocka_unit_test(wrong_options_and_checkpoints),
                                     cmocka_unit_test(only_a_damaged_checkpoint_falls_back),
                                     cmocka_unit_test(too_many_open_files_end_the_run),
                                     cmocka_unit_test(a_file_that_may_not_be_read_ends_the_run),
                                     cmocka_unit_test(a_folder_in_use_is_refused),
                                     cmocka_unit_test(runs_killed_while_saving_resume),
                                     cmocka_unit_test(a_full_disk_is_an_error_and_loses_nothing)};
  return cmocka_run_group_tests(tests, folder_begin, folder_end);
}
