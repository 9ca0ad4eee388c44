/* Table loading: mix_model_load of a file with 25 million parameters, from memory that the system keeps of
 * it; processor time, and the largest memory of the process above what it had before, over the file's size.
 */
#include "tables.h"
#include <mixtape/saving.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { WIDTH = 5000, QUICK_WIDTH = 1000, MAX_RUNS = 15 };

static double processor_seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Bytes after the name in /proc/self/status: "VmHWM:" is the largest since it was reset. */
static double memory_now(const char *name) {
  char line[256];
  long kilobytes = 0;
  FILE *file = fopen("/proc/self/status", "r");
  while (file && fgets(line, sizeof line, file))
    if (!strncmp(line, name, strlen(name))) kilobytes = strtol(line + strlen(name), NULL, 10);
  if (file) fclose(file);
  return 1024.0 * (double)kilobytes;
}

static void reset_largest(void) {
  FILE *file = fopen("/proc/self/clear_refs", "w");
  if (file) fputs("5", file), fclose(file);
}

static bool write_model(const char *path, int64_t width) {
  mix_tensor *x = mix_input(.shape = MIX_SHAPE(width));
  return mix_model_save(mix_model_new(x, mix_call(mix_dense(.units = width), x)), path) == MIX_OK;
}

typedef struct result {
  double seconds[MAX_RUNS], processor[MAX_RUNS], memory;
} result;

static bool load(const char *path, result *r, int run) {
  bool good = false;
  reset_largest();
  const double before = memory_now("VmRSS:"), begin = bench_now(), processor = processor_seconds();
  MIX_SCOPE { good = mix_model_load(path) != NULL; }
  r->seconds[run] = bench_now() - begin;
  r->processor[run] = processor_seconds() - processor;
  r->memory = memory_now("VmHWM:") - before;
  return good;
}

static bool one_file(const bench_settings *settings, const char *end, json_t *rows) {
  static result r;
  const char *folder = getenv("TMPDIR");
  char path[4096];
  struct stat file;
  const int runs = settings->quick ? 5 : MAX_RUNS;
  snprintf(path, sizeof path, "%s/mixtape-bench-%ld%s", folder && *folder ? folder : "/tmp", (long)getpid(),
           end);
  bool good = false;
  MIX_SCOPE { good = write_model(path, settings->quick ? QUICK_WIDTH : WIDTH); }
  good = good && load(path, &r, 0) && stat(path, &file) == 0; /* reads it into memory */
  for (int i = 0; i < runs && good; i++) good = load(path, &r, i);
  unlink(path);
  if (!good) return false;
  const double seconds = bench_median(r.seconds, runs), processor = bench_median(r.processor, runs);
  json_array_append_new(rows, json_pack("{s:s, s:I, s:f, s:f, s:f, s:f}", "file", end, "bytes",
                                        (json_int_t)file.st_size, "seconds", seconds, "best", r.seconds[0],
                                        "processor_seconds", processor, "memory_bytes", r.memory));
  if (settings->text)
    printf("%-8s %8.1f %10.1f %10.1f %12.1f %10.2f\n", end, (double)file.st_size / 1e6, 1e3 * seconds,
           1e3 * r.seconds[0], 1e3 * processor, r.memory / (double)file.st_size);
  return true;
}

bool bench_loading(const bench_settings *settings) {
  static const char *const ends[] = {".keras", ".h5"};
  json_t *rows = json_array();
  bool good = true;
  if (settings->text)
    printf("\nloading a model of %d parameters\n%-8s %8s %10s %10s %12s %10s\n",
           (settings->quick ? QUICK_WIDTH : WIDTH) * ((settings->quick ? QUICK_WIDTH : WIDTH) + 1), "file",
           "MB", "ms", "best ms", "processor ms", "memory");
  for (size_t i = 0; i < sizeof ends / sizeof *ends && good; i++) good = one_file(settings, ends[i], rows);
  json_object_set_new(settings->json, "loading", rows);
  return good;
}
