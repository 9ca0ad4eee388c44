/* Memory that runs out while options are read is a failure of the run (1), not of its user (2). */
#include "base/alloc.h"
#include "cli/cli.h"
#include "cli/program.h"

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

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(options_without_memory_end_with_1)};
  return cmocka_run_group_tests(tests, folder_begin, folder_end);
}
