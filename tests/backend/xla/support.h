/* Shared by the tests of plug-ins: each case is a process of its own, for a plug-in that is in use stays. */
#ifndef TESTS_BACKEND_XLA_SUPPORT_H
#define TESTS_BACKEND_XLA_SUPPORT_H

#include "compile/support.h"
#include "support/skip.h"

#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

/* Runs the body in a child; it passes if the child ends well. */
static inline void in_child(void (*body)(void)) {
  const pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    body();
    fflush(NULL);
    _exit(0);
  }
  int status;
  assert_int_equal(waitpid(child, &status, 0), child);
  if (!WIFEXITED(status) || WEXITSTATUS(status)) fail_msg("the child ended with status %d", status);
}
/* A failed assertion would go on in the parent's tests. */
#define CHECK(condition)                                                                                     \
  do {                                                                                                       \
    if (condition) break;                                                                                    \
    fprintf(stderr, "%s:%d: %s\n  pending: %s\n", __FILE__, __LINE__, #condition, mix_error_message());      \
    _exit(1);                                                                                                \
  } while (0)

static inline const char *fake(const char *name) {
  static char device[600];
  CHECK(getenv("MIXTAPE_FAKE_PJRT"));
  snprintf(device, sizeof device, "xla:%s/fake_%s.so", getenv("MIXTAPE_FAKE_PJRT"), name);
  return device;
}

static inline mix_list *twice_and_one(void *variable, mix_list *arguments) {
  if (variable) mix_variable_assign_add(variable, scalar(1));
  return mix_list_of(mix_add(mix_multiply(mix_list_get(arguments, 0), scalar(2)), scalar(1)));
}
/* NULL: without a variable. */
static inline mix_function *new_function_of(mix_variable *variable) {
  return mix_function_new(twice_and_one, variable);
}
static inline mix_function *new_function(void) { return new_function_of(NULL); }
static inline mix_list *call(mix_function *function) {
  return mix_function_call(function, mix_list_of(scalar(20)));
}

#endif
