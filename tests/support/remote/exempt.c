/* The test cases that do not run on the device "remote": those about kernel names, speed, or the text and
 * steps of CPU plans; and all cases on the device "xla" where its plug-in is not. Each is skipped, and says
 * so. "*": all of a program. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct {
  const char *program, *test, *reason;
} exempt[] = {
    {"speculative_update", "*", "two ways of one update: the steps of CPU plans"},
    {"training_step", "the_steady_state_allocates_nothing", "speed: what a run of the CPU allocates"},
    {"stages", "the_log_says_the_same", "the passes of CPU plans"},
};

static void skip_test(void **state) {
  (void)state;
  skip();
}

static const char *reason_of(const char *device, const char *test) {
  extern const char *__progname;
  const char *plugin = getenv("MIXTAPE_PJRT_PLUGIN");
  if (!strcmp(device, "xla"))
    return plugin && !access(plugin, R_OK) ? NULL
                                           : "no PJRT plug-in, which scripts/bootstrap --check fetches";
  for (size_t i = 0; i < sizeof exempt / sizeof *exempt; i++)
    if (!strcmp(exempt[i].program, __progname) &&
        (!strcmp(exempt[i].test, test) || !strcmp(exempt[i].test, "*")))
      return exempt[i].reason;
  return NULL;
}

int __real__cmocka_run_group_tests(const char *name, const struct CMUnitTest *tests, const size_t count,
                                   CMFixtureFunction setup, CMFixtureFunction teardown);
int __wrap__cmocka_run_group_tests(const char *name, const struct CMUnitTest *tests, const size_t count,
                                   CMFixtureFunction setup, CMFixtureFunction teardown) {
  const char *device = getenv("MIXTAPE_TEST_DEVICE");
  if (!device || (strcmp(device, "remote") && strcmp(device, "xla")))
    return __real__cmocka_run_group_tests(name, tests, count, setup, teardown);
  struct CMUnitTest *list = calloc(count + 1, sizeof *list);
  if (!list) return 1;
  for (size_t i = 0; i < count; i++) {
    list[i] = tests[i];
    const char *reason = reason_of(device, tests[i].name);
    if (!reason) continue;
    printf("not on the device %s: %s: %s\n", device, tests[i].name, reason);
    list[i].test_func = skip_test;
    list[i].setup_func = list[i].teardown_func = NULL;
  }
  const int failures = __real__cmocka_run_group_tests(name, list, count, setup, teardown);
  free(list);
  return failures;
}
