/* Threads that the system refuses: an error, not the end of the process. The test's own pthread_create stands
 * before the C library's. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* RTLD_NEXT */
#endif
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include "backend/host/executor.h"

#include <dlfcn.h>
#include <errno.h>
#include <mixtape/mixtape.h>
#include <pthread.h>
#include <string.h>

static int threads_left = -1; /* that are still created; negative: all */

typedef int creator(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
                   void *argument) {
  static creator *next;
  if (!next) *(void **)&next = dlsym(RTLD_NEXT, "pthread_create");
  if (threads_left == 0) return EAGAIN;
  if (threads_left > 0) threads_left--;
  return next(thread, attributes, run, argument);
}

static double product(void) {
  double sum = -1;
  MIX_SCOPE {
    mix_tensor *x = mix_fill(MIX_SHAPE(512, 512), 1, MIX_FLOAT32);
    mix_tensor *y = mix_reduce_sum(mix_matmul(x, x, false, false), MIX_ALL_AXES, false);
    if (mix_evaluate(1, &y) == MIX_OK) sum = mix_tensor_item(y);
  }
  return sum;
}

static void refused_threads_are_an_error(void **state) {
  (void)state;
  mix_set_device("cpu");
  for (int allowed = 0; allowed < 3; allowed++) {
    mix_set_threads(4);
    threads_left = allowed;
    const double sum = product();
    threads_left = -1;
    assert_true(sum == -1);
    assert_int_equal(mix_error(), MIX_RUNTIME_ERROR);
    assert_non_null(strstr(mix_error_message(), "3 threads cannot be created"));
    mix_error_clear();
  }
  mix_set_threads(1);
  threads_left = 0;
  assert_true(product() == 512.0 * 512 * 512); /* needs none */
  threads_left = -1;
  mix_set_threads(4);
  assert_true(product() == 512.0 * 512 * 512);
  threads_left = 0;
  assert_true(product() == 512.0 * 512 * 512); /* they are there */
  threads_left = -1;
}

static mix_list *same(void *context, mix_list *element) { return (void)context, element; }
static void a_pipeline_without_threads_is_an_error(void **state) {
  (void)state;
  MIX_SCOPE {
    mix_dataset *data =
        mix_dataset_map(mix_dataset_range(0, 9, 1), same, .context = NULL, .num_parallel_calls = 3);
    threads_left = 0;
    assert_null(mix_iterator_next(mix_dataset_iterate(data)));
    threads_left = -1;
    assert_int_equal(mix_error(), MIX_RUNTIME_ERROR);
    mix_error_clear();
    threads_left = 1; /* one is enough */
    mix_iterator *iterator = mix_dataset_iterate(data);
    int count = 0;
    while (mix_iterator_next(iterator)) count++;
    threads_left = -1;
    assert_int_equal(mix_error(), MIX_OK);
    assert_int_equal(count, 9);
  }
}

int main(void) {
  mix_host_take_all_threads(true);
  const struct CMUnitTest tests[] = {cmocka_unit_test(refused_threads_are_an_error),
                                     cmocka_unit_test(a_pipeline_without_threads_is_an_error)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
