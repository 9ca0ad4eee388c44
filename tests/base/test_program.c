/* The macros of mixtape/program.h, which end a program with the message of its error. */
#include "model/support.h"
#include <mixtape/program.h>
#include <mixtape/variable_lists.h>
#include <sys/wait.h>
#include <unistd.h>

/* What the macros write goes to a pipe; the child's exit code is theirs. */
static int code_of(int (*program)(void), char *text, size_t size) {
  int ends[2], status;
  assert_int_equal(pipe(ends), 0);
  fflush(NULL);
  const pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], STDERR_FILENO);
    const int code = program();
    fflush(NULL);
    _exit(code);
  }
  close(ends[1]);
  const ssize_t got = read(ends[0], text, size - 1);
  text[got > 0 ? got : 0] = 0;
  close(ends[0]);
  assert_int_equal(waitpid(child, &status, 0), child);
  return WEXITSTATUS(status);
}
static int ends_well(void) {
  MIX_CHECK(mix_scalar(1, F32));
  return MIX_EXIT_CODE();
}
static int ends_badly(void) {
  mix_variables_values(mix_list_of(NULL));
  return MIX_EXIT_CODE();
}
static int is_checked(void) {
  MIX_CHECK(mix_variables_values(mix_list_of(NULL)));
  return 7;
}
static void programs_end_with_the_message(void **state) {
  (void)state;
  char text[512];
  assert_int_equal(code_of(ends_well, text, sizeof text), 0);
  assert_string_equal(text, "");
  assert_int_equal(code_of(ends_badly, text, sizeof text), 1);
  assert_string_equal(text, "TypeError: variables_values: item 0 of the list is no variable\n");
  assert_int_equal(code_of(is_checked, text, sizeof text), 1);
  assert_non_null(strstr(text, "test_program.c:"));
}

int main(void) {
  const struct CMUnitTest tests[] = {TEST(programs_end_with_the_message)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
