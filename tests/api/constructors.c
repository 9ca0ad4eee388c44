/* Every public function that returns an object, with plain arguments, when memory runs out: each of its
 * allocations fails in turn, the library's own and those of libzip and jansson, in a scope that has
 * no memory yet. It returns NULL with MIX_MEMORY_ERROR, or succeeds all the same. misuse.py writes the calls
 * from the headers. They run in a child process, which is started anew behind a call that ended it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "plain_arguments.h"
#include "support/every_allocation.h"
#include "support/folder.h"
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct constructor {
  const void *(*make)(int64_t after);
  const char *function;
} constructor;

static bool every; /* allocation of the process, not only the library's own */

static void fail_after(int64_t after) {
  if (mix_error() != MIX_OK) return;
  if (every)
    allocations_left = after;
  else
    mix_inject_allocation_failure(after);
}

#include "constructors_calls.h"

enum { COUNT = sizeof constructors / sizeof *constructors };

/* What happened, for the parent process. */
typedef struct outcomes {
  int next;             /* the function that runs, or is to run */
  int64_t after[COUNT]; /* the allocation that failed last */
  int64_t failures[COUNT];
  bool plain[COUNT], ended[COUNT]; /* succeeds with memory; ended the process */
  char wrong[COUNT][160];          /* the first wrong outcome; empty: none */
} outcomes;
static outcomes *shared;

/* True while an allocation failed. */
static bool attempt(int i, int64_t after) {
  char message[96];
  mix_shutdown(); /* no recycled scope, no free list */
  mix_set_semantics("tf_keras");
  mix_set_global_policy("float32");
  mix_scope *scope = mix_scope_begin();
  const bool made = constructors[i].make(after) != NULL,
             failed = every ? after >= 0 && allocations_left < 0 : !mix_allocation_failure_injected();
  allocations_left = -1;
  mix_inject_allocation_failure(-1);
  const mix_status status = mix_error_take(message, sizeof message);
  if (scope) mix_scope_end(scope);
  mix_error_clear();
  if (after < 0) shared->plain[i] = made && status == MIX_OK;
  const bool right = made ? status == MIX_OK : status == MIX_MEMORY_ERROR;
  if (after >= 0 && failed && !right && !*shared->wrong[i])
    snprintf(shared->wrong[i], sizeof *shared->wrong, "allocation %lld: %s, %s: %s", (long long)after,
             made ? "an object" : "NULL", mix_status_name(status), message);
  return failed;
}

static void run_row(int i) {
  attempt(i, -1);
  if (!shared->plain[i]) return;
  /* Of many allocations some. */
  for (int all = 0; all <= REACHES_EVERY_ALLOCATION; all++) {
    every = all;
    for (int64_t after = 0; attempt(i, shared->after[i] = after); after += 1 + after / 32)
      shared->failures[i]++;
  }
  every = false;
}

static void run_child(void) {
  for (int i = 1; i < 32; i++) signal(i, SIG_DFL); /* cmocka catches some */
  if (!freopen("child.txt", "a", stderr) || !freopen("/dev/null", "a", stdout)) _exit(126);
  for (; shared->next < COUNT; shared->next++) {
    alarm(300); /* a call that waits for ever ends here */
    run_row(shared->next);
  }
  _exit(0);
}

static int run_all(void **state) {
  (void)state;
  shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED || chdir(test_folder) != 0) return -1;
  while (shared->next < COUNT) {
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) run_child();
    int status;
    if (child < 0 || waitpid(child, &status, 0) != child) return -1;
    if (shared->next < COUNT) shared->ended[shared->next++] = true;
  }
  return 0;
}

static void failed_allocations_are_memory_errors(void **state) {
  (void)state;
  int wrong = 0, tried = 0;
  int64_t failures = 0;
  for (int i = 0; i < COUNT; i++) {
    tried += shared->plain[i];
    failures += shared->failures[i];
    if (shared->ended[i])
      print_error("%s: allocation %lld: the process ended\n", constructors[i].function,
                  (long long)shared->after[i]);
    else if (*shared->wrong[i])
      print_error("%s: %s\n", constructors[i].function, shared->wrong[i]);
    wrong += shared->ended[i] || *shared->wrong[i];
  }
  assert_true(tried * 10 >= COUNT * 7);
  assert_true(failures > 10 * (int64_t)COUNT / 2);
  assert_int_equal(wrong, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(failed_allocations_are_memory_errors)};
  if (folder_begin(NULL) != 0) return 1;
  return cmocka_run_group_tests(tests, run_all, folder_end);
}
