/* --trace of train, evaluate and predict. */
#include "cli/program.h"

static void check_trace(const char *path, const char *function, int runs) {
  json_error_t error;
  json_t *root = json_load_file(path, 0, &error), *event;
  if (!root) fail_msg("%s:%d: %s", path, error.line, error.text);
  int found = 0, kernels = 0;
  size_t i;
  json_array_foreach(json_object_get(root, "traceEvents"), i, event) {
    const char *name = json_string_value(json_object_get(event, "name"));
    const char *category = json_string_value(json_object_get(event, "cat"));
    found += category && !strcmp(category, "run") && !strcmp(name, function);
    kernels += category && !strcmp(category, "kernel") && strstr(name, "dense_1/");
  }
  json_decref(root);
  assert_int_equal(found, runs);
  assert_true(kernels >= runs);
}

#define DATA "--data", "digits", "--units", "8"
static void the_first_steps(void **state) {
  (void)state;
  char *path = in_folder("trace.json");
  assert_code(run_program("train", DATA, "--steps", "12", "--trace", path), 0);
  check_trace(path, "train_step", 10);
  assert_code(run_program("train", DATA, "--steps", "3", "--loop", "custom", "--trace", path), 0);
  check_trace(path, "train_step", 3);
  assert_code(run_program("evaluate", DATA, "--trace", path), 0);
  check_trace(path, "test_step", 10);
  assert_code(run_program("predict", DATA, "--trace", path), 0);
  check_trace(path, "predict_step", 10);
}

static void a_file_that_cannot_be_written(void **state) {
  (void)state;
  assert_code(run_program("train", DATA, "--steps", "1", "--trace", "/nonexistent/trace.json"), 1);
  assert_has(program_err, "trace_start: cannot write '/nonexistent/trace.json'");
  assert_null(strstr(program_out, "Test loss")); /* before any work */
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(the_first_steps),
                                     cmocka_unit_test(a_file_that_cannot_be_written)};
  return cmocka_run_group_tests(tests, folder_begin, folder_end);
}
