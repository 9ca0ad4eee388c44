/* `mixtape bench`: every subject runs and its numbers hang together. Times are not judged: the machine may be busy. */
#include "cli/program.h"

static json_t *bench(const char *only) {
  const char *const arguments[] = {"bench", "--quick",   "--json", "--units", "8",  "--batch-size",
                                   "16",    "--threads", "2",      "--only",  only, NULL};
  const int code = run_program_to(NULL, arguments);
  if (code) print_error("%s", program_err);
  assert_int_equal(code, 0);
  json_error_t error;
  json_t *object = json_loads(program_out, 0, &error);
  assert_non_null(object);
  assert_int_equal(json_integer_value(json_object_get(json_object_get(object, "machine"), "threads")), 2);
  return object;
}

static double number(const json_t *object, const char *name) {
  assert_true(json_is_number(json_object_get(object, name)));
  return json_number_value(json_object_get(object, name));
}

static void steps_of_each_policy(void **state) {
  (void)state;
  json_t *object = bench("steps"), *steps = json_object_get(object, "steps");
  assert_int_equal(json_array_size(steps), 1);
  json_t *policies = json_object_get(json_array_get(steps, 0), "policies");
  assert_int_equal(json_array_size(policies), 4);
  assert_string_equal(json_string_value(json_object_get(json_array_get(policies, 0), "policy")), "float32");
  for (size_t i = 0; i < json_array_size(policies); i++) {
    const json_t *row = json_array_get(policies, i);
    assert_true(number(row, "best_seconds") > 0 && number(row, "step_seconds") >= number(row, "best_seconds"));
    assert_true(number(row, "nodes") > 8 && number(row, "captured_nodes") > number(row, "nodes"));
    assert_true(number(row, "arena_bytes") > 0 && number(row, "unshared_bytes") >= number(row, "arena_bytes"));
    assert_true(number(row, "plan_bytes") > number(row, "arena_bytes"));
  }
  assert_true(number(json_array_get(policies, 0), "speed_to_float32") == 1);
  json_decref(object);
}

static void dispatch_update_and_start(void **state) {
  (void)state;
  json_t *object = bench("dispatch"), *row = json_object_get(object, "dispatch");
  assert_true(number(row, "step_best") > 0 && number(row, "smallest_step_best") > number(row, "step_best"));
  json_decref(object);
  object = bench("update"), row = json_object_get(object, "update");
  assert_true(number(row, "best_bytes_per_second") >= number(row, "bytes_per_second"));
  json_decref(object);
  object = bench("start"), row = json_object_get(object, "start");
  assert_true(number(row, "first_step_best") > 0 && number(row, "process_best") >= number(row, "first_step_best"));
  json_decref(object);
}

static void what_is_unknown_is_refused(void **state) {
  (void)state;
  const char *const arguments[] = {"bench", "--only", "weather", NULL};
  assert_int_equal(run_program_to(NULL, arguments), 2);
  assert_non_null(strstr(program_err, "dispatch"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(steps_of_each_policy),
      cmocka_unit_test(dispatch_update_and_start),
      cmocka_unit_test(what_is_unknown_is_refused),
  };
  return cmocka_run_group_tests(tests, program_begin, program_end);
}
