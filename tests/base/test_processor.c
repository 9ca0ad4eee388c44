/* CPU features against those the kernel reports. The cap and the override only remove features. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/processor.h"
#include "base/error.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ALL = MIX_CPU_AVX2 | MIX_CPU_AVX512 | MIX_CPU_AVX512_BF16 | MIX_CPU_AVX512_FP16 | MIX_CPU_AMX_BF16 };

static char *former_cap; /* CI runs the tests with MIXTAPE_MAX_ISA set */

static int begin(void **state) {
  (void)state;
  const char *value = getenv("MIXTAPE_MAX_ISA");
  former_cap = value ? strdup(value) : NULL;
  unsetenv("MIXTAPE_MAX_ISA");
  return 0;
}

static int end(void **state) {
  (void)state;
  mix_cpu_override(UINT32_MAX);
  mix_set_log_callback(NULL, NULL);
  if (former_cap)
    setenv("MIXTAPE_MAX_ISA", former_cap, 1);
  else
    unsetenv("MIXTAPE_MAX_ISA");
  free(former_cap);
  return 0;
}

/* Is the flag in the first "flags" line of /proc/cpuinfo? */
static bool has_flag(const char *flags, const char *flag) {
  size_t length = strlen(flag);
  for (const char *at = flags; (at = strstr(at, flag)); at += length)
    if (at[-1] == ' ' && (at[length] == ' ' || at[length] == '\n' || at[length] == '\0')) return true;
  return false;
}

static void found_is_what_the_kernel_reports(void **state) {
  (void)state;
  static const struct {
    uint32_t feature;
    const char *flags[4];
  } rows[] = {
      {MIX_CPU_AVX2, {"avx2", "fma", "f16c"}},
      {MIX_CPU_AVX512, {"avx512f", "avx512bw", "avx512dq", "avx512vl"}},
      {MIX_CPU_AVX512_BF16, {"avx512_bf16"}},
      {MIX_CPU_AVX512_FP16, {"avx512_fp16"}},
      {MIX_CPU_AMX_BF16, {"amx_tile", "amx_bf16"}},
  };
  static char line[1 << 16];
  FILE *file = fopen("/proc/cpuinfo", "r");
  bool flags = false;
  while (file && !flags && fgets(line, sizeof line, file)) flags = strncmp(line, "flags", 5) == 0;
  if (file) fclose(file);
  if (!flags) skip();
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    bool reported = true, found = mix_cpu_found() & rows[i].feature;
    for (int j = 0; j < 4 && rows[i].flags[j]; j++) reported = reported && has_flag(line, rows[i].flags[j]);
    if (found) assert_true(reported);
    if (reported && rows[i].feature != MIX_CPU_AMX_BF16)
      assert_true(found); /* the kernel may deny AMX tiles */
  }
}

static void features_need_those_below(void **state) {
  (void)state;
  uint32_t found = mix_cpu_found();
  assert_int_equal(found & ~(uint32_t)ALL, 0);
  if (found & MIX_CPU_AVX512) assert_true(found & MIX_CPU_AVX2);
  if (found & (MIX_CPU_AVX512_BF16 | MIX_CPU_AVX512_FP16)) assert_true(found & MIX_CPU_AVX512);
  if (found & MIX_CPU_AMX_BF16) assert_true(found & MIX_CPU_AVX512_BF16);
}

static void the_cap_takes_away(void **state) {
  (void)state;
  static const struct {
    const char *name;
    uint32_t allowed;
  } rows[] = {
      {"generic", 0},
      {"avx2", MIX_CPU_AVX2},
      {"avx512", MIX_CPU_AVX2 | MIX_CPU_AVX512},
      {"avx512_bf16", MIX_CPU_AVX2 | MIX_CPU_AVX512 | MIX_CPU_AVX512_BF16},
      {"avx512_fp16", ALL & ~MIX_CPU_AMX_BF16},
      {"amx", ALL},
      {"AVX2", MIX_CPU_AVX2},
      {"", ALL},
  };
  uint32_t found = mix_cpu_found();
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    setenv("MIXTAPE_MAX_ISA", rows[i].name, 1);
    assert_int_equal(mix_cpu_features(), found & rows[i].allowed);
    assert_int_equal(mix_cpu_found(), found);
  }
  unsetenv("MIXTAPE_MAX_ISA");
  assert_int_equal(mix_cpu_features(), found);
}

static void count_warnings(void *context, mix_log_level level, const char *message) {
  if (level == MIX_LOG_WARNING && strstr(message, "avx1024")) ++*(int *)context;
}

static void an_unknown_cap_is_ignored_with_a_warning(void **state) {
  (void)state;
  int warnings = 0;
  mix_set_log_callback(count_warnings, &warnings);
  setenv("MIXTAPE_MAX_ISA", "avx1024", 1);
  assert_int_equal(mix_cpu_features(), mix_cpu_found());
  assert_int_equal(mix_cpu_features(), mix_cpu_found());
  assert_int_equal(warnings, 1); /* once, not on every query */
  assert_int_equal(mix_error(), MIX_OK);
}

static void the_override_takes_away(void **state) {
  (void)state;
  uint32_t found = mix_cpu_found();
  mix_cpu_override(MIX_CPU_AVX2);
  assert_int_equal(mix_cpu_features(), found & MIX_CPU_AVX2);
  mix_cpu_override(0);
  assert_int_equal(mix_cpu_found(), 0);
  mix_cpu_override(UINT32_MAX);
  assert_int_equal(mix_cpu_features(), found);
}

static void features_as_text(void **state) {
  (void)state;
  char text[100];
  assert_string_equal(mix_cpu_features_text(0, text, sizeof text), "none beyond x86-64");
  assert_string_equal(mix_cpu_features_text(MIX_CPU_AVX512, text, sizeof text), "avx512");
  assert_string_equal(mix_cpu_features_text(ALL, text, sizeof text),
                      "avx2, avx512, avx512_bf16, avx512_fp16, amx_bf16");
  assert_string_equal(mix_cpu_features_text(ALL, text, 9), "avx2, av");
  assert_string_equal(mix_cpu_features_text(ALL, text, 0), "");
}

static void names_caches_and_cores(void **state) {
  (void)state;
  assert_true(strlen(mix_cpu_name()) > 0);
  assert_in_range(mix_cpu_cache(1), 4 << 10, 1 << 20);
  assert_in_range(mix_cpu_cache(2), mix_cpu_cache(1), INT64_C(1) << 30);
  assert_in_range(mix_cpu_cache(3), mix_cpu_cache(1), INT64_C(1) << 32);
  assert_int_equal(mix_cpu_cache(0), 0);
  assert_int_equal(mix_cpu_cache(4), 0);
  cpu_set_t all, one;
  assert_int_equal(sched_getaffinity(0, sizeof all, &all), 0);
  assert_int_equal(mix_cpu_cores(), CPU_COUNT(&all));
  CPU_ZERO(&one);
  for (int i = 0; i < CPU_SETSIZE && CPU_COUNT(&one) == 0; i++)
    if (CPU_ISSET(i, &all)) CPU_SET(i, &one);
  if (sched_setaffinity(0, sizeof one, &one) != 0) skip();
  assert_int_equal(mix_cpu_cores(), 1);
  sched_setaffinity(0, sizeof all, &all);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(found_is_what_the_kernel_reports, begin, end),
      cmocka_unit_test_setup_teardown(features_need_those_below, begin, end),
      cmocka_unit_test_setup_teardown(the_cap_takes_away, begin, end),
      cmocka_unit_test_setup_teardown(an_unknown_cap_is_ignored_with_a_warning, begin, end),
      cmocka_unit_test_setup_teardown(the_override_takes_away, begin, end),
      cmocka_unit_test_setup_teardown(features_as_text, begin, end),
      cmocka_unit_test_setup_teardown(names_caches_and_cores, begin, end),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
