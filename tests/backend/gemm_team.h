/* Runs a gemm kernel with a team of POSIX threads, which a thread checker understands, without the executor.
 * Include <cmocka.h> first. */
#ifndef TESTS_BACKEND_GEMM_TEAM_H
#define TESTS_BACKEND_GEMM_TEAM_H

#include "backend/host/barrier.h"
#include "backend/plan_thread.h"
#include <pthread.h>

enum { MAX_THREADS = 3, LARGEST_TEAM = 7 };

typedef struct worker {
  const mix_kernel *kernel;
  const mix_kernel_args *args;
  mix_team team;
} worker;

static inline void *work(void *context) {
  const worker *w = context;
  run_as_in_a_plan(w->kernel, w->args, &w->team);
  return NULL;
}

/* Returns how many barriers the team passed. */
static inline int run_team(const mix_kernel *kernel, const mix_kernel_args *args, int size) {
  mix_barrier barrier = {0};
  pthread_t handles[LARGEST_TEAM];
  worker workers[LARGEST_TEAM];
  for (int i = 0; i < size; i++) {
    workers[i] = (worker){kernel, args, {i, size, &barrier}};
    if (i) assert_int_equal(pthread_create(&handles[i], NULL, work, &workers[i]), 0);
  }
  work(&workers[0]);
  for (int i = 1; i < size; i++) pthread_join(handles[i], NULL);
  return (int)mix_awaited_number(&barrier.generation);
}

#endif
