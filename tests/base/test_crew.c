/* Crews: every share is done once, stage after stage, by whoever is there; nobody waits for a thread that
 * does not come, and no wake-up is lost. A test that hangs is ended by its alarm. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* gettid */
#endif
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/awaited.h"
#include "base/crew.h"
#include "base/error.h"
#include "base/machine.h"
#include <mixtape/mixtape.h>
#include <omp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SECONDS = 300, MAX_SHARES = 16, MAX_STAGES = 12 };

static int begin(void **state) {
  (void)state;
  alarm(SECONDS);
  return 0;
}

static int end(void **state) {
  (void)state;
  alarm(0);
  return 0;
}

static uint64_t next(uint64_t *seed) {
  *seed = *seed * 6364136223846793005u + 1442695040888963407u;
  return *seed >> 33;
}

/* What is done is written without atomics: the crew orders it. */
typedef struct record {
  mix_crew_stage stages[MAX_STAGES];
  int done[MAX_STAGES][MAX_SHARES];
  int begun[MAX_STAGES]; /* by share 0 of each */
  atomic_int together[MAX_STAGES];
  atomic_bool wrong;
  uint64_t delays; /* seed; 0: none */
  pthread_t caller;
} record;

static void delay(const record *r, int stage, int share) {
  uint64_t seed = r->delays + (uint64_t)(stage * MAX_SHARES + share);
  if (!r->delays) return;
  next(&seed);
  switch (next(&seed) % 16) {
  case 0: usleep(200); break;
  case 1: sched_yield(); break;
  case 2:
    for (int i = 0; i < 3000; i++) mix_pause();
    break;
  default: break;
  }
}

static void do_share(void *context, int stage, int share) {
  record *r = context;
  for (int s = 0; s < stage; s++)
    for (int i = 0; i < r->stages[s].shares; i++)
      if (r->done[s][i] != 1) r->wrong = true;
  if (stage && !r->begun[stage - 1]) r->wrong = true;
  if (r->stages[stage].caller_first && !share && !pthread_equal(r->caller, pthread_self())) r->wrong = true;
  delay(r, stage, share);
  if (share == 0) r->begun[stage] = 1;
  if (r->stages[stage].together) { /* ends only if all shares run at the same time */
    atomic_fetch_add(&r->together[stage], 1);
    while (atomic_load(&r->together[stage]) < r->stages[stage].shares) sched_yield();
  }
  r->done[stage][share]++;
}

static bool all_done_once(const record *r, int stages) {
  for (int s = 0; s < MAX_STAGES; s++)
    for (int i = 0; i < MAX_SHARES; i++)
      if (r->done[s][i] != (s < stages && i < r->stages[s].shares)) return false;
  return !r->wrong;
}

/* Random works on random numbers of threads, with pauses in which helpers fall asleep. */
static bool run_works(uint64_t seed, int works, int most) {
  record *r = malloc(sizeof *r);
  bool good = r != NULL;
  for (int i = 0; i < works && good; i++) {
    const int threads = 2 + (int)(next(&seed) % (uint64_t)(most - 1)),
              stages = 1 + (int)next(&seed) % MAX_STAGES;
    memset(r, 0, sizeof *r);
    r->delays = next(&seed) % 2 ? next(&seed) : 0;
    r->caller = pthread_self();
    for (int s = 0; s < stages; s++) {
      const int shares = next(&seed) % 4 ? threads : 1 + (int)(next(&seed) % (uint64_t)threads);
      r->stages[s] = (mix_crew_stage){
          .shares = shares, .together = next(&seed) % 5 == 0, .caller_first = next(&seed) % 3 == 0};
    }
    const mix_crew_work work = {r->stages, stages, do_share, r};
    good = mix_crew_run(&work, threads) == MIX_CREW_DONE && all_done_once(r, stages);
    if (next(&seed) % 64 == 0) usleep(300);
  }
  free(r);
  return good;
}

static void every_share_once_in_order(void **state) {
  (void)state;
  assert_true(run_works(1, 3000, 2));
  assert_true(run_works(2, 1500, 4));
}

static void more_threads_than_cores(void **state) {
  (void)state;
  assert_true(run_works(3, 300, MAX_SHARES));
}

static void *owner(void *seed) { return run_works((uint64_t)(uintptr_t)seed, 300, 3) ? seed : NULL; }

/* Each thread has a crew of its own, which ends with it. */
static void several_owners_that_end(void **state) {
  (void)state;
  for (int round = 0; round < 4; round++) {
    pthread_t threads[4];
    for (uintptr_t i = 0; i < 4; i++)
      assert_int_equal(pthread_create(&threads[i], NULL, owner, (void *)(10 + i)), 0);
    for (int i = 0; i < 4; i++) {
      void *good;
      assert_int_equal(pthread_join(threads[i], &good), 0);
      assert_non_null(good);
    }
  }
}

/* ---- a thread that does not come ---- */

static atomic_int held, holding;
static pid_t helper; /* the thread that is held */

static void hold(int signal) {
  (void)signal;
  atomic_store(&holding, 1);
  while (atomic_load(&held)) usleep(100);
  atomic_store(&holding, 0);
}

static void note_helper(void *context, int stage, int share) {
  (void)context, (void)stage;
  if (share == 1) helper = gettid();
}

/* The helper hangs in a signal's handler, as if another process had its core; the work ends all the same. */
static void a_thread_that_does_not_come_is_not_waited_for(void **state) {
  (void)state;
  const mix_crew_stage together = {.shares = 2, .together = true};
  const mix_crew_work introduction = {&together, 1, note_helper, NULL};
  assert_int_equal(mix_crew_run(&introduction, 2), MIX_CREW_DONE);
  assert_true(helper && helper != gettid());
  signal(SIGUSR1, hold);
  atomic_store(&held, 1);
  assert_int_equal(tgkill(getpid(), helper, SIGUSR1), 0);
  while (!atomic_load(&holding)) usleep(100);
  for (int work = 0; work < 100; work++) {
    record r = {0};
    for (int s = 0; s < MAX_STAGES; s++) r.stages[s].shares = 2;
    const mix_crew_work alone = {r.stages, MAX_STAGES, do_share, &r};
    assert_int_equal(mix_crew_run(&alone, 2), MIX_CREW_DONE);
    assert_true(all_done_once(&r, MAX_STAGES));
  }
  assert_int_equal(atomic_load(&holding), 1); /* it was away all the time */
  atomic_store(&held, 0);
  assert_int_equal(mix_crew_run(&introduction, 2), MIX_CREW_DONE); /* waits for it */
  signal(SIGUSR1, SIG_DFL);
}

/* ---- where there is no crew ---- */

static void no_crew_inside_a_parallel_region(void **state) {
  (void)state;
  atomic_int too_few = 0;
#pragma omp parallel num_threads(2)
  {
    record r = {.stages = {{.shares = 2}}};
    const mix_crew_work work = {r.stages, 1, do_share, &r};
    if (mix_crew_run(&work, 2) == MIX_CREW_TOO_FEW && !r.done[0][0]) atomic_fetch_add(&too_few, 1);
  }
  assert_int_equal(too_few, 2);
}

static void no_crew_in_a_child(void **state) {
  (void)state;
  assert_true(run_works(4, 5, 2));
  const pid_t child = fork();
  if (child == 0) {
    record r = {.stages = {{.shares = 2}}};
    const mix_crew_work work = {r.stages, 1, do_share, &r};
    _exit(mix_crew_run(&work, 2) != MIX_CREW_TOO_FEW || r.done[0][0]);
  }
  int status;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_int_equal(status, 0);
}

/* ---- numbers that are awaited ---- */

enum { ROUNDS = 20000 };

typedef struct exchange {
  mix_awaited there, back;
  int patience;
} exchange;

static void *answer(void *argument) {
  exchange *x = argument;
  for (uint64_t i = 0; i < ROUNDS; i++) {
    mix_awaited_wait(&x->there, i, x->patience);
    mix_awaited_set(&x->back, i + 1);
  }
  return NULL;
}

/* Two threads that wake each other, asleep in nearly every round or in some. */
static void no_wake_up_is_lost(void **state) {
  (void)state;
  static const int patience[] = {0, 1, 1000, 10000};
  for (size_t s = 0; s < sizeof patience / sizeof *patience; s++) {
    exchange x = {.patience = patience[s]};
    pthread_t other;
    assert_int_equal(pthread_create(&other, NULL, answer, &x), 0);
    for (uint64_t i = 0; i < ROUNDS; i++) {
      mix_awaited_set(&x.there, i + 1);
      mix_awaited_wait(&x.back, i, x.patience);
    }
    assert_int_equal(pthread_join(other, NULL), 0);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(every_share_once_in_order, begin, end),
      cmocka_unit_test_setup_teardown(more_threads_than_cores, begin, end),
      cmocka_unit_test_setup_teardown(several_owners_that_end, begin, end),
      cmocka_unit_test_setup_teardown(a_thread_that_does_not_come_is_not_waited_for, begin, end),
      cmocka_unit_test_setup_teardown(no_crew_inside_a_parallel_region, begin, end),
      cmocka_unit_test_setup_teardown(no_crew_in_a_child, begin, end),
      cmocka_unit_test_setup_teardown(no_wake_up_is_lost, begin, end),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
