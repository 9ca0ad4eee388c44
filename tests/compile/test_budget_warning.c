/* The warning of a budget above the machine's memory or its control group's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "compile/budget_warning.h"
#include <mixtape/mixtape.h>
#include <string.h>

#define MIB ((uint64_t)1 << 20)

static const char *warning(uint64_t budget, uint64_t physical, uint64_t limit) {
  static char text[320];
  return mix_budget_warning(budget * MIB, (mix_machine_memory){physical * MIB, limit * MIB}, text,
                            sizeof text);
}

static void a_budget_within_memory_is_silent(void **state) {
  (void)state;
  assert_null(warning(100, 200, 0));
  assert_null(warning(200, 200, 0));
  assert_null(warning(100, 200, 100));
  assert_null(warning(100, 0, 0)); /* nothing is known */
}

static void both_amounts_are_named(void **state) {
  (void)state;
  const char *text = warning(300, 200, 0);
  assert_non_null(text);
  assert_non_null(strstr(text, "300 MiB"));
  assert_non_null(strstr(text, "200 MiB that this machine has"));
  text = warning(150, 200, 100);
  assert_non_null(text);
  assert_non_null(strstr(text, "150 MiB"));
  assert_non_null(strstr(text, "100 MiB that this process's control group allows"));
  assert_non_null(strstr(warning(300, 200, 400), "200 MiB that this machine has"));
  assert_non_null(strstr(warning(300, 0, 200), "control group"));
}

static int warnings;
static void count_warnings(void *context, mix_log_level level, const char *message) {
  (void)context;
  warnings += level == MIX_LOG_WARNING && strstr(message, "memory budget") != NULL;
}

/* No machine has as much as an address space. */
static void a_budget_warns_once(void **state) {
  (void)state;
  mix_set_log_callback(count_warnings, NULL);
  mix_warn_of_budget(SIZE_MAX / 2);
  mix_warn_of_budget(SIZE_MAX / 2);
  mix_warn_of_budget(0);
  assert_int_equal(warnings, 1);
  mix_warn_of_budget(1);
  assert_int_equal(warnings, 1);
  mix_warn_of_budget(SIZE_MAX / 2);
  assert_int_equal(warnings, 2);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(a_budget_within_memory_is_silent),
                                     cmocka_unit_test(both_amounts_are_named),
                                     cmocka_unit_test(a_budget_warns_once)};
  return cmocka_run_group_tests_name("compile/budget_warning", tests, NULL, NULL);
}
