/* Every public function with malformed arguments: NULL, objects of other kinds, impossible numbers, shapes,
 * dtypes, texts and sizes. misuse.py writes the calls from the headers. None may crash or end the process; an
 * object of the wrong kind is an error wherever NULL is one, and of an argument that is no object queried;
 * one of an ended scope always is. The calls run in a child process, which is started anew behind a call that
 * ended it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "plain_arguments.h"
#include "support/folder.h"
#include <limits.h>
#include <math.h>
#include <mixtape/mixtape.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct misuse {
  void (*call)(void);
  const char *function, *what;
  bool wrong_kind, first_argument;
} misuse;

/* Reads the result of a call. */
static size_t read_text(const char *text) { return text ? strlen(text) : 0; }

/* The handle of an object whose scope has ended; with the address sanitizer, which would end the process
 * where the library asks for its class, another object. */
#ifdef __SANITIZE_ADDRESS__
#define ENDED(object, other) ((void *)(other))
static const bool keeps_handles = false;
#else
#define ENDED(object, other)                                                                                 \
  __extension__({                                                                                            \
    mix_scope *scope_ = mix_scope_begin();                                                                   \
    void *object_ = (void *)(object);                                                                        \
    mix_scope_end(scope_);                                                                                   \
    object_;                                                                                                 \
  })
static const bool keeps_handles = true;
#endif

#include "misuse_calls.h"

enum { CALLS = sizeof calls / sizeof calls[0] };

/* ---- running the calls ---- */

typedef struct outcomes {
  int next; /* the call that runs, or is to run */
  mix_status status[CALLS];
  bool ended[CALLS];       /* the call ended the process */
  char message[CALLS][96]; /* the beginning of its error */
} outcomes;

static outcomes *shared;

static void run_call(int i) {
  mix_set_semantics("tf_keras");
  mix_set_global_policy("float32");
  mix_error_clear();
  MIX_SCOPE {
    alarm(300); /* a call that waits for ever ends here */
    calls[i].call();
    shared->status[i] = mix_error_take(shared->message[i], sizeof shared->message[i]);
  }
  mix_error_clear();
}

static void run_child(void) {
  for (int i = 1; i < 32; i++) signal(i, SIG_DFL); /* cmocka catches some */
  if (!freopen("child.txt", "a", stderr) || !freopen("/dev/null", "a", stdout)) _exit(126);
  struct rlimit files = {1 << 26, 1 << 26}; /* bytes of a file that a call writes */
  setrlimit(RLIMIT_FSIZE, &files);
  memset(long_text, 'x', sizeof long_text - 1);
  for (; shared->next < CALLS; shared->next++) run_call(shared->next);
  _exit(0);
}

static int run_calls(void **state) {
  (void)state;
  shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED || chdir(test_folder) != 0) return -1;
  while (shared->next < CALLS) {
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) run_child();
    int status;
    if (child < 0 || waitpid(child, &status, 0) != child) return -1;
    if (shared->next < CALLS) shared->ended[shared->next++] = true;
  }
  return 0;
}

static void no_call_ends_the_process(void **state) {
  (void)state;
  int ended = 0;
  for (int i = 0; i < CALLS; i++)
    if (shared->ended[i]) {
      print_error("%s, %s: the process ended\n", calls[i].function, calls[i].what);
      ended++;
    }
  assert_int_equal(ended, 0);
}

/* The status of the call of the same function in which the argument of call `i` is NULL. */
static mix_status status_of_null(int i) {
  while (i > 0 && strcmp(calls[i - 1].function, calls[i].function) == 0 && calls[i].wrong_kind) i--;
  return shared->status[i];
}

static void objects_of_the_wrong_kind_are_errors(void **state) {
  (void)state;
  int accepted = 0, tried = 0;
  for (int i = 0; i < CALLS; i++) {
    if (!calls[i].wrong_kind || shared->ended[i]) continue;
    tried++;
    const bool ended = keeps_handles && strstr(calls[i].what, "ENDED");
    const bool query = !ended && calls[i].first_argument && status_of_null(i) == MIX_OK;
    if (query || shared->status[i] != MIX_OK) continue;
    print_error("%s, %s: accepted\n", calls[i].function, calls[i].what);
    accepted++;
  }
  assert_true(tried > 500);
  assert_int_equal(accepted, 0);
}

/* Otherwise the malformed argument would not be what the call refuses. */
static void most_plain_calls_succeed(void **state) {
  (void)state;
  int failed = 0;
  for (int i = 0; i < CALLS; i++) {
    if (strcmp(calls[i].what, "plain arguments") || shared->status[i] == MIX_OK) continue;
    print_message("%s: %s\n", calls[i].function, shared->message[i]);
    failed++;
  }
  assert_true(failed * 10 <= FUNCTIONS);
}

/* An allocation of an impossible size is an error of the library, not of the sanitizer. */
const char *__asan_default_options(void);
const char *__asan_default_options(void) { return "allocator_may_return_null=1:detect_leaks=0"; }

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(no_call_ends_the_process),
                                     cmocka_unit_test(objects_of_the_wrong_kind_are_errors),
                                     cmocka_unit_test(most_plain_calls_succeed)};
  if (keeps_handles) setenv("MIXTAPE_DEBUG", "scopes", 1);
  if (folder_begin(NULL) != 0) return 1;
  return cmocka_run_group_tests(tests, run_calls, folder_end);
}
