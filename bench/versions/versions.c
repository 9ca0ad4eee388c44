/* bench/versions: versions of the library against each other, by a model's training step or one product.
 * The candidates run interleaved in one process, so that other work on the machine slows all of them alike; a
 * ratio is the median over the rounds. Where buffers lie and whether threads sleep differs by launch: take
 * the median of several. */
#include "versions/comparison.h"
#include "cli/bench/comparison.h"
#include "product_candidate.h"
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct settings {
  const char *product, *dtype, *policy, *model, *clock;
  int64_t units, batch;
  int threads;
  double seconds;
} settings;

static int usage(const char *program) {
  fprintf(
      stderr,
      "usage: %s [--product NN|NT|TN|TT,M,N,K] [--dtype NAME] [--policy NAME] [--units N] [--batch-size N]\n"
      "       [--model NAME|FILE] [--threads N] [--seconds S] [--clock wall|processor] OLD.so NEW.so...\n"
      "A version is its build's bench/comparison.so. A step of --policy (float32 by default) of the guide's\n"
      "model of --units, or of --model as 'mixtape train' takes it, unless --product is given. The clock of\n"
      "processor time counts that of all threads.\n",
      program);
  return 2;
}

/* Returns the number of arguments read: 2, or 0 if the first is no option. */
static int read_option(char **argv, settings *s) {
  const char *name = argv[0], *value = argv[1];
  if (strncmp(name, "--", 2) || !value) return 0;
  if (!strcmp(name, "--product"))
    s->product = value;
  else if (!strcmp(name, "--dtype"))
    s->dtype = value;
  else if (!strcmp(name, "--policy"))
    s->policy = value;
  else if (!strcmp(name, "--model"))
    s->model = value;
  else if (!strcmp(name, "--clock"))
    s->clock = value;
  else if (!strcmp(name, "--units"))
    s->units = atoll(value);
  else if (!strcmp(name, "--batch-size"))
    s->batch = atoll(value);
  else if (!strcmp(name, "--threads"))
    s->threads = atoi(value);
  else if (!strcmp(name, "--seconds"))
    s->seconds = atof(value);
  else
    return 0;
  return 2;
}

/* NULL after a message. */
static void *symbol(void *module, const char *name) {
  void *found = dlsym(module, name);
  if (!found) fprintf(stderr, "versions: %s\n", dlerror());
  return found;
}

static bool prepare(const char *path, const settings *s, bench_candidate *candidate) {
  void *module = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!module) {
    fprintf(stderr, "versions: %s; a version is its build's bench/comparison.so, with a / in its path\n",
            dlerror());
    return false;
  }
  bench_comparison_step *step;
  bench_comparison_product *product;
  bench_comparison_model *model;
  *(void **)&step = symbol(module, BENCH_COMPARISON_NAME(BENCH_COMPARISON_STEP));
  *(void **)&product = symbol(module, BENCH_COMPARISON_NAME(BENCH_COMPARISON_PRODUCT));
  *(void **)&model = s->model ? symbol(module, BENCH_COMPARISON_NAME(BENCH_COMPARISON_MODEL)) : NULL;
  *(void **)&candidate->run = symbol(module, BENCH_COMPARISON_NAME(BENCH_COMPARISON_RUN));
  if (!step || !product || !candidate->run || (s->model && !model)) return false;
  candidate->context = s->product ? product(s->dtype, s->product, s->threads)
                       : s->model ? model(s->model, s->policy, s->batch, s->threads)
                                  : step(s->policy, s->units, s->batch, s->threads);
  candidate->processor_time = !strcmp(s->clock, "processor");
  if (!candidate->context) fprintf(stderr, "versions: %s has no such candidate\n", path);
  return candidate->context != NULL;
}

int main(int argc, char **argv) {
  static bench_candidate candidates[BENCH_MAX_CANDIDATES];
  settings s = {.dtype = "float32",
                .policy = "float32",
                .clock = "wall",
                .units = 4096,
                .batch = 128,
                .threads = 2,
                .seconds = 10};
  int first = 1, step;
  while (first < argc && (step = read_option(argv + first, &s)) > 0) first += step;
  const int count = argc - first;
  bench_shape shape;
  if (s.product && !bench_parse_shape(s.product, &shape)) return usage(argv[0]);
  if (count < 2 || count > BENCH_MAX_CANDIDATES || s.units < 1 || s.batch < 1 || s.threads < 1 ||
      (strcmp(s.clock, "wall") && strcmp(s.clock, "processor")))
    return usage(argv[0]);
  for (int i = 0; i < count; i++)
    if (!prepare(argv[first + i], &s, &candidates[i])) return 1;
  int rounds;
  if (!bench_interleave(candidates, count, s.seconds, &rounds)) return 1;
  if (s.product)
    printf("%s %s", s.dtype, s.product);
  else if (s.model)
    printf("step of %s, %s, batch %lld", s.model, s.policy, (long long)s.batch);
  else
    printf("step, %s, %lld units, batch %lld", s.policy, (long long)s.units, (long long)s.batch);
  printf(", %d thread%s, %s time, %d rounds\n", s.threads, s.threads == 1 ? "" : "s", s.clock, rounds);
  for (int i = 0; i < count; i++) {
    double quartiles[2];
    bench_ratio_quartiles(&candidates[0], &candidates[i], rounds, quartiles);
    printf("%-40s %10.4f ms median %10.4f best   %.3f times as fast as the first (%.3f to %.3f)\n",
           argv[first + i], 1e3 * candidates[i].median, 1e3 * candidates[i].best,
           bench_ratio(&candidates[0], &candidates[i], rounds), quartiles[0], quartiles[1]);
  }
  return 0;
}
