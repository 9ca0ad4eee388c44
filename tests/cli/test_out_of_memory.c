/* Memory that runs out while options are read is a failure of the run (1), not of its user (2). A line of the
 * step log that is not written for want of memory is reported with this reason. */
#include "base/alloc.h"
#include "cli/cli.h"
#include "cli/program.h"
#include "support/every_allocation.h"
#include "support/skip.h"

/* Options that are all right, so that any failure is one of memory. */
static int read_options(int64_t after) {
  static char program[] = "train", callback[] = "--callback=early_stopping:monitor=loss,patience=2",
              optimizer[] = "--optimizer=adam:learning_rate=0.5", metrics[] = "--metrics=auc,accuracy";
  char *arguments[] = {program, callback, optimizer, metrics, NULL};
  cli_options options;
  mix_shutdown(); /* no recycled scope, no free list */
  mix_inject_allocation_failure(after);
  int code = cli_parse("train", CLI_TRAIN, 4, arguments, &options);
  if (code == CLI_OK) code = cli_setup(&options);
  mix_inject_allocation_failure(-1);
  assert_int_equal(mix_error(), MIX_OK);
  return code;
}

static void options_without_memory_end_with_1(void **state) {
  (void)state;
  int64_t after = 0;
  for (int code; (code = read_options(after)) != CLI_OK; after++)
    if (code != CLI_FAILED) fail_msg("allocation %lld: exit code %d", (long long)after, code);
  assert_true(after > 20);
}

static void assert_whole_line(void) {
  json_t *lines = lines_of(in_folder("steps.jsonl"));
  assert_int_equal(json_array_size(lines), 1);
  assert_int_equal(json_object_size(json_array_get(lines, 0)), 4); /* step, loss, applied, iterations */
  json_decref(lines);
}

/* jansson runs out of memory without setting errno. */
static void a_step_log_without_memory_names_it(void **state) {
  (void)state;
  if (!REACHES_EVERY_ALLOCATION) SKIP("the sanitizer has its own malloc");
  cli_step_log log = {0};
  assert_true(cli_step_log_open(&log, in_folder("steps.jsonl"), false));
  int code, status;
  int64_t after = 0;
  do {
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
      if (!freopen(in_folder("stderr"), "w", stderr)) _exit(3);
      const mix_step_record record = {.size = sizeof record, .step = 1, .loss = 0.5};
      if (ftruncate(fileno(log.file), 0)) _exit(4);
      rewind(log.file);
      allocations_left = after;
      cli_step_log_write(&log, &record);
      const bool failed = allocations_left < 0;
      allocations_left = -1;
      fflush(NULL);
      _exit(failed);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    code = WIFEXITED(status) ? WEXITSTATUS(status) : 128;
    read_text(in_folder("stderr"), program_err, sizeof program_err);
    if (code == 1 && *program_err)
      assert_has(program_err, "could not be written whole: Cannot allocate memory");
    else
      assert_whole_line();
    after++;
  } while (code == 1);
  assert_int_equal(code, 0);
  assert_true(after > 3);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(options_without_memory_end_with_1),
                                     cmocka_unit_test(a_step_log_without_memory_names_it)};
  return cmocka_run_group_tests(tests, folder_begin, folder_end);
}
