/* Table start: time from the start of the program `mixtape` to the end of its first training step, on an .npz
 * of 1,000 examples. */
#include "tables.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

enum { EXAMPLES = 1000, WIDTH = 784, MAX_RUNS = 31, PATIENCE = 60000 /* milliseconds */ };

static bool write_examples(const char *path) {
  int64_t labels[EXAMPLES];
  for (int i = 0; i < EXAMPLES; i++) labels[i] = i % 10;
  mix_generator *generator = mix_generator_new(5);
  mix_tensor *x = mix_random_uniform(generator, MIX_SHAPE(EXAMPLES, WIDTH), MIX_FLOAT32);
  mix_tensor *arrays[] = {x, mix_tensor_from(labels, MIX_INT64, MIX_SHAPE(EXAMPLES))};
  static const char *const names[] = {"x_train", "y_train"};
  return mix_npz_save(path, 2, names, arrays) == MIX_OK;
}

static bool complain(const char *what, int error) {
  fprintf(stderr, "bench: process start: %s: %s\n", what, strerror(error));
  return false;
}

static long long units_of(const bench_settings *settings) {
  return settings->units ? (long long)settings->units : 64;
}
static long long batch_of(const bench_settings *settings) {
  return settings->batch ? (long long)settings->batch : 128;
}

/* The build's program: ../mixtape, from this program's folder. */
static bool find_program(char *path, size_t size) {
  static const char name[] = "../mixtape";
  const ssize_t length = readlink("/proc/self/exe", path, size - sizeof name);
  if (length < 0) return false;
  path[length] = 0;
  char *slash = strrchr(path, '/');
  if (slash) memcpy(slash + 1, name, sizeof name);
  return slash != NULL;
}

/* The step log is a pipe. Its first byte arrives at the end of the first step. */
static bool time_process(const char *program, const char *data, const bench_settings *settings,
                         double *first_step, double *whole) {
  int ends[2];
  if (pipe(ends)) return complain("pipe", errno);
  for (int i = 0; i < 2; i++) fcntl(ends[i], F_SETFD, FD_CLOEXEC);
  char log[32], threads[16], units[24], batch[24];
  snprintf(log, sizeof log, "/dev/fd/%d", STDERR_FILENO + 1);
  snprintf(threads, sizeof threads, "%d", settings->threads);
  snprintf(units, sizeof units, "%lld", units_of(settings));
  snprintf(batch, sizeof batch, "%lld", batch_of(settings));
  char *arguments[] = {"mixtape",      "train", "--data",    (char *)data, "--units",   units,
                       "--batch-size", batch,   "--steps",   "1",          "--verbose", "0",
                       "--step-log",   log,     "--threads", threads,      NULL};
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO + 1);
  pid_t child;
  const double begin = bench_now();
  const int error = posix_spawn(&child, program, &actions, NULL, arguments, environ);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  bool good = !error || complain(program, error);
  char byte;
  int status = 0;
  if (good) {
    struct pollfd reading = {.fd = ends[0], .events = POLLIN};
    good = poll(&reading, 1, PATIENCE) == 1 && read(ends[0], &byte, 1) == 1;
    *first_step = bench_now() - begin;
    char rest[4096];
    while (good && read(ends[0], rest, sizeof rest) > 0) continue;
    if (!good) {
      complain("`mixtape train` ended, or waited too long, before its first step", ECANCELED);
      kill(child, SIGKILL);
    }
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
    *whole = bench_now() - begin;
    if (good && status) good = complain("the program failed", ECANCELED);
  }
  close(ends[0]);
  return good;
}

bool bench_start(const bench_settings *settings) {
  const char *folder = getenv("TMPDIR");
  char path[4096], program[4096];
  if (!find_program(program, sizeof program)) return complain("no path to the program `mixtape`", errno);
  snprintf(path, sizeof path, "%s/mixtape-bench-%ld.npz", folder && *folder ? folder : "/tmp",
           (long)getpid());
  if (!write_examples(path)) return false;
  double first[MAX_RUNS], whole[MAX_RUNS];
  const int runs = settings->quick ? 7 : MAX_RUNS;
  bool good = time_process(program, path, settings, first, whole); /* reads the program into memory */
  for (int i = 0; i < runs && good; i++) good = time_process(program, path, settings, &first[i], &whole[i]);
  unlink(path);
  if (!good) return false;
  const double median = bench_median(first, runs), all = bench_median(whole, runs);
  json_object_set_new(settings->json, "start",
                      json_pack("{s:i, s:f, s:f, s:f, s:f}", "runs", runs, "first_step_seconds", median,
                                "first_step_best", first[0], "process_seconds", all, "process_best",
                                whole[0]));
  if (settings->text)
    printf("\nprocess start to the end of its first step (%lld units, batch %lld, .npz of 1,000 examples): "
           "%.1f ms (best %.1f); to its exit %.1f ms (best %.1f); %d runs\n",
           units_of(settings), batch_of(settings), 1e3 * median, 1e3 * first[0], 1e3 * all, 1e3 * whole[0],
           runs);
  return true;
}
