/* A plug-in that contains the library is unloaded while a thread that used it, OpenMP's threads and those of
 * a pipeline live. Where its code went away, the process would be ended by a signal. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
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

static void unload_after(const char *function) {
  use x = {.function = function};
  pthread_t thread;
  x.plugin = dlopen(getenv("MIXTAPE_PLUGIN"), RTLD_NOW | RTLD_LOCAL);
  if (!x.plugin) print_message("%s\n", dlerror());
  assert_non_null(x.plugin);
  pthread_barrier_init(&x.used, NULL, 2);
  pthread_barrier_init(&x.unloaded, NULL, 2);
  assert_int_equal(pthread_create(&thread, NULL, use_plugin, &x), 0);
  pthread_barrier_wait(&x.used);
  assert_int_equal(dlclose(x.plugin), 0);
  usleep(1000); /* the pipeline's threads go on */
  pthread_barrier_wait(&x.unloaded);
  pthread_join(thread, NULL);
  assert_int_equal(x.result, 1);
}

static void a_thread_ends_after_the_library(void **state) {
  (void)state;
  unload_after("compute");
}

static void a_pass_outlives_the_library(void **state) {
  (void)state;
  unload_after("begin_pass");
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
  if (!getenv("MIXTAPE_PLUGIN")) return 0; /* the sanitizers do not support a second library */
  const struct CMUnitTest tests[] = {cmocka_unit_test(a_thread_ends_after_the_library),
                                     cmocka_unit_test(a_pass_outlives_the_library),
                                     cmocka_unit_test(a_pjrt_plug_in_outlives_the_library)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
