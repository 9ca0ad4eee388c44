/* A plug-in that contains the library is unloaded while a thread that used it, the threads of a plan and
 * those of a pipeline live; and one whose functions a pipeline calls. Where its code went away, the process
 * would be ended by a signal. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "support/skip.h"
#include <dlfcn.h>
#include <mixtape/dataset.h>
#include <mixtape/ops.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct use {
  const char *function;
  pthread_barrier_t used, unloaded;
  int result;
  void *plugin;
} use;

static void *use_plugin(void *context) {
  use *x = context;
  int (*function)(void);
  *(void **)&function = dlsym(x->plugin, x->function);
  x->result = function ? function() : -1;
  pthread_barrier_wait(&x->used);
  pthread_barrier_wait(&x->unloaded);
  return NULL;
}

/* Ends the process, 0 if all is well. */
static void use_and_unload(const char *function) {
  use x = {.function = function};
  pthread_t thread;
  alarm(120);
  x.plugin = dlopen(getenv("MIXTAPE_PLUGIN"), RTLD_NOW | RTLD_LOCAL);
  if (!x.plugin) fprintf(stderr, "%s\n", dlerror());
  if (!x.plugin) _exit(99);
  pthread_barrier_init(&x.used, NULL, 2);
  pthread_barrier_init(&x.unloaded, NULL, 2);
  if (pthread_create(&thread, NULL, use_plugin, &x)) _exit(98);
  pthread_barrier_wait(&x.used);
  if (dlclose(x.plugin)) _exit(97);
  usleep(1000); /* the pipeline's threads go on */
  pthread_barrier_wait(&x.unloaded);
  pthread_join(thread, NULL);
  exit(x.result == 1 ? 0 : 96);
}

/* In a process of its own: a library that stays for one case stays for all. */
static void unload_after(const char *function) {
  if (!getenv("MIXTAPE_PLUGIN")) SKIP("the sanitizers do not support a second library");
  fflush(NULL);
  const pid_t child = fork();
  assert_true(child >= 0);
  if (!child) use_and_unload(function);
  int status;
  assert_int_equal(waitpid(child, &status, 0), child);
  if (status) fail_msg("%s ended with status %d", function, status);
}

static void a_thread_without_others_ends_after_the_library(void **state) {
  (void)state;
  unload_after("make_object");
}

static void a_thread_ends_after_the_library(void **state) {
  (void)state;
  unload_after("compute");
}

static void a_pass_outlives_the_library(void **state) {
  (void)state;
  unload_after("begin_pass");
}

/* ---- functions of a plug-in ---- */

static void *make_element(int64_t index) {
  return index < 3 ? mix_list_of(mix_fill(MIX_SHAPE(1), (double)index, MIX_INT64)) : NULL;
}
static void *make_dataset(int64_t index) { return mix_dataset_range(index, 3, 1); }
static void *(*const element_maker)(int64_t) = make_element, *(*const dataset_maker)(int64_t) = make_dataset;

/* A data set of three elements, made by the function of that name. */
static mix_dataset *dataset_with(void *plugin, int kind) {
  static const char *const names[] = {"same", "all", "generate", "expand"};
  union {
    void *symbol;
    mix_dataset_function map;
    mix_dataset_predicate filter;
    mix_dataset_generator generate;
    mix_dataset_expansion expand;
  } function = {.symbol = dlsym(plugin, names[kind])};
  mix_dataset *numbers = mix_dataset_range(0, 3, 1);
  void *elements = (void *)&element_maker, *datasets = (void *)&dataset_maker;
  assert_non_null(function.symbol);
  switch (kind) {
  case 0: return mix_dataset_map(numbers, function.map, .num_parallel_calls = 2);
  case 1: return mix_dataset_filter(numbers, function.filter);
  case 2: return mix_dataset_from_generator(function.generate, .context = elements);
  default:
    return mix_dataset_interleave(mix_dataset_range(0, 1, 1), function.expand, .context = datasets,
                                  .cycle_length = 1);
  }
}

/* Each kind in a process of its own too. */
static void functions_stay(void **state) {
  (void)state;
  for (int kind = 0; kind < 4; kind++) {
    const pid_t child = fork();
    assert_true(child >= 0);
    if (!child) {
      int count = 0;
      void *plugin = dlopen(getenv("MIXTAPE_FUNCTIONS_PLUGIN"), RTLD_NOW | RTLD_LOCAL);
      if (!plugin) _exit(99);
      mix_iterator *iterator = mix_dataset_iterate(mix_dataset_prefetch(dataset_with(plugin, kind), 1));
      dlclose(plugin);
      while (mix_iterator_next(iterator)) count++;
      _exit(count);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    if (status != 3 << 8) fail_msg("kind %d ended with status %d", kind, status);
  }
}

/* A fake, and the one for CPUs where it is at hand: its threads and the end of the process come later. */
static void a_pjrt_plug_in_outlives_the_library(void **state) {
  (void)state;
  char path[600];
  const char *fakes = getenv("MIXTAPE_FAKE_PJRT"), *real = getenv("MIXTAPE_TEST_PJRT");
  assert_non_null(fakes);
  snprintf(path, sizeof path, "%s/fake_works.so", fakes);
  setenv("MIXTAPE_UNLOAD_PJRT", real && !access(real, R_OK) ? real : path, 1);
  unload_after("run_on_xla");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_thread_without_others_ends_after_the_library),
      cmocka_unit_test(a_thread_ends_after_the_library), cmocka_unit_test(a_pass_outlives_the_library),
      cmocka_unit_test(functions_stay), cmocka_unit_test(a_pjrt_plug_in_outlives_the_library)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
