/* Shared by the tests of the program: a temporary folder, and runs of `mixtape` with captured output. */
#ifndef TESTS_CLI_PROGRAM_H
#define TESTS_CLI_PROGRAM_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "support/folder.h"
#include <fcntl.h>
#include <jansson.h>
#include <math.h>
#include <mixtape/mixtape.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;
static char program_out[1 << 18], program_err[1 << 18]; /* of the latest run */
static bool (*program_begins)(void);                    /* in its process, before it; false: exit code 125 */

static inline void read_text(const char *path, char *text, size_t size) {
  FILE *file = fopen(path, "r");
  assert_non_null(file);
  size_t used = fread(text, 1, size, file);
  fclose(file);
  assert_true(used < size);
  text[used] = 0;
}

/* Runs the program with standard output going to `out` (NULL: captured). Returns the exit code, or 128 + the
 * signal that ended it. */
static inline int run_program_to(const char *out, const char *const *arguments) {
  const char *program = getenv("MIXTAPE_PROGRAM");
  assert_non_null(program);
  const char *list[64] = {program};
  for (int i = 0; arguments[i]; i++) {
    assert_true(i < 62);
    list[i + 1] = arguments[i];
  }
  char kept[512], errors[512];
  snprintf(kept, sizeof kept, "%s/stdout", test_folder);
  snprintf(errors, sizeof errors, "%s/stderr", test_folder);
  pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    int in = open("/dev/null", O_RDONLY), to = open(out ? out : kept, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    int error = open(errors, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    if (in < 0 || to < 0 || error < 0) _exit(126);
    dup2(in, 0), dup2(to, 1), dup2(error, 2);
    close(in), close(to), close(error);
    /* Its path may be closed to another user; the shell reads a script, which begins an emulator, by it. */
    const int file = open(program, O_RDONLY);
    if (program_begins && !program_begins()) _exit(125);
    fexecve(file, (char *const *)list, environ);
    _exit(127);
  }
  int status;
  assert_int_equal(waitpid(child, &status, 0), child);
  program_out[0] = 0;
  if (!out) read_text(kept, program_out, sizeof program_out);
  read_text(errors, program_err, sizeof program_err);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* run_program("train", "--data", path, ...) returns the exit code. */
#define run_program(...) run_program_to(NULL, (const char *const[]){__VA_ARGS__, NULL})

static inline void assert_code(int got, int expected) {
  if (got == expected) return;
  fail_msg("exit code %d, expected %d; standard error:\n%s", got, expected, program_err);
}

static inline void assert_has(const char *text, const char *part) {
  if (!strstr(text, part)) fail_msg("'%s' is missing in: %s", part, text);
}

/* The single JSON object that the program printed. The caller releases it with json_decref. */
static inline json_t *printed_object(void) {
  json_error_t error;
  json_t *object = json_loads(program_out, 0, &error);
  if (!object) fail_msg("no JSON: %s in: %s", error.text, program_out);
  assert_true(json_is_object(object));
  return object;
}

/* The JSON object of each line of a file, as an array. */
static inline json_t *lines_of(const char *path) {
  static char text[1 << 18];
  read_text(path, text, sizeof text);
  json_t *lines = json_array();
  for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
    json_t *object = json_loads(line, 0, NULL);
    assert_true(json_is_object(object));
    json_array_append_new(lines, object);
  }
  return lines;
}

/* A number, or one of the strings "nan", "inf", "-inf". */
static inline double number_in(const json_t *value) {
  if (json_is_string(value)) return strtod(json_string_value(value), NULL);
  assert_true(json_is_number(value));
  return json_number_value(value);
}

#endif
