/* Files of traces: their events, and that every step of every traced run is there. */
#ifndef TESTS_SUPPORT_TRACE_H
#define TESTS_SUPPORT_TRACE_H

#include <jansson.h>
#include <mixtape/trace.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static inline json_t *events_of(const char *path, json_t **root) {
  json_error_t error;
  *root = json_load_file(path, 0, &error);
  if (!*root) fail_msg("%s: line %d: %s", path, error.line, error.text);
  json_t *events = json_object_get(*root, "traceEvents");
  assert_true(json_is_array(events));
  return events;
}

static inline double number_of(const json_t *event, const char *key) {
  const json_t *value = json_object_get(event, key);
  if (!json_is_number(value)) fail_msg("no number '%s'", key);
  return json_number_value(value);
}
static inline const char *text_of(const json_t *event, const char *key) {
  const json_t *value = json_object_get(event, key);
  if (!json_is_string(value)) fail_msg("no text '%s'", key);
  return json_string_value(value);
}

static inline bool is_complete(const json_t *event) { return !strcmp(text_of(event, "ph"), "X"); }
static inline bool is_run(const json_t *event) {
  return is_complete(event) && !strcmp(text_of(event, "cat"), "run");
}

static inline bool is_kernel(const json_t *event) {
  return is_complete(event) && !strcmp(text_of(event, "cat"), "kernel");
}
/* Work of the input pipeline of that name; "input": the wait for it. */
static inline bool is_input(const json_t *event, const char *name) {
  return is_complete(event) && !strcmp(text_of(event, "cat"), "input") &&
         !strcmp(text_of(event, "name"), name);
}

/* The first run of that function. */
static inline const json_t *run_of(json_t *events, const char *function) {
  size_t i;
  json_t *event;
  json_array_foreach(events, i,
                     event) if (is_run(event) && !strcmp(text_of(event, "name"), function)) return event;
  fail_msg("no run of %s", function);
  return NULL;
}

/* Times are whole nanoseconds; the sum of two as doubles is not exact. */
static const double slack = 0.5e-3;
static inline void assert_inside(const json_t *inner, const json_t *outer) {
  assert_true(number_of(inner, "ts") >= number_of(outer, "ts") - slack);
  assert_true(number_of(inner, "ts") + number_of(inner, "dur") <=
              number_of(outer, "ts") + number_of(outer, "dur") + slack);
}

/* Steps 0 to n - 1 of each run are there with all shares that ran, inside it in time; on one thread none
 * begins before the one before it has ended. Returns the number of runs of the function. */
static inline int check_runs(json_t *events, const char *function) {
  int runs = 0;
  size_t i, k;
  json_t *run, *event;
  json_array_foreach(events, i, run) {
    if (!is_run(run)) continue;
    runs += !strcmp(text_of(run, "name"), function);
    const json_t *args = json_object_get(run, "args");
    const int number = (int)number_of(args, "run"), steps = (int)number_of(args, "steps");
    assert_true(steps > 0 && steps < 4096);
    unsigned char *seen = calloc((size_t)steps, 1);
    double end[64] = {0};
    json_array_foreach(events, k, event) {
      if (!is_kernel(event)) continue;
      const json_t *of = json_object_get(event, "args");
      if ((int)number_of(of, "run") != number) continue;
      seen[(int)number_of(of, "step")] = 1;
      assert_inside(event, run);
      const int thread = (int)number_of(event, "tid");
      assert_true(thread > 0 && thread < 64 && number_of(event, "dur") >= 0);
      assert_true(number_of(of, "share") < number_of(of, "shares"));
      assert_true(*text_of(of, "op") && *text_of(of, "kernel") && *text_of(of, "operands") != ' ');
      assert_non_null(strstr(text_of(event, "name"), text_of(of, "op")));
      assert_true(number_of(event, "ts") >= end[thread] - slack);
      end[thread] = number_of(event, "ts") + number_of(event, "dur");
    }
    for (int s = 0; s < steps; s++)
      if (!seen[s]) fail_msg("run %d of %s: step %d is missing", number, text_of(run, "name"), s);
    free(seen);
  }
  return runs;
}

#endif
