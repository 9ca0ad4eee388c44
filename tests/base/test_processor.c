/* CPU features against those the kernel reports. The cap and the override only remove features. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "support/skip.h"
#include "base/machine.h"
#include "base/processor.h"
#include "base/error.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
  BF16 = MIX_CPU_AVX512_BF16 | MIX_CPU_BF16_PAIRS | MIX_CPU_AVX512_VNNI | MIX_CPU_AVX_VNNI,
  AMX = MIX_CPU_AMX_BF16 | MIX_CPU_AMX_INT8,
  ALL = MIX_CPU_AVX2 | MIX_CPU_AVX512 | BF16 | MIX_CPU_AVX512_FP16 | AMX,
  NEON_DOT = MIX_CPU_NEON | MIX_CPU_NEON_DOT,
  NEON_FP16 = NEON_DOT | MIX_CPU_NEON_FP16,
  NEON_BF16 = NEON_FP16 | MIX_CPU_NEON_BF16 | MIX_CPU_BF16_PAIRS,
  ALL_OF_ARM64 = NEON_BF16 | MIX_CPU_SVE256
};

static bool on_arm64(void) { return !strcmp(MIX_MACHINE, "arm64"); }

/* CI runs the tests with these set. */
static const char *const settings[] = {"MIXTAPE_MAX_ISA", "MIXTAPE_BF16_PAIRS"};
enum { SETTINGS = sizeof settings / sizeof *settings };
static char *former[SETTINGS];

static int begin(void **state) {
  (void)state;
  for (int i = 0; i < SETTINGS; i++) {
    const char *value = getenv(settings[i]);
    former[i] = value ? strdup(value) : NULL;
    unsetenv(settings[i]);
  }
  return 0;
}

static int end(void **state) {
  (void)state;
  mix_cpu_override(UINT32_MAX);
  mix_set_log_callback(NULL, NULL);
  for (int i = 0; i < SETTINGS; i++) {
    if (former[i])
      setenv(settings[i], former[i], 1);
    else
      unsetenv(settings[i]);
    free(former[i]);
  }
  return 0;
}

/* Is the flag in the first "flags" line of /proc/cpuinfo, "Features" on arm64? */
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
      {MIX_CPU_AVX_VNNI, {"avx_vnni"}},
      {MIX_CPU_AVX512_VNNI, {"avx512_vnni"}},
      {MIX_CPU_AVX512_BF16, {"avx512_bf16"}},
      {MIX_CPU_AVX512_FP16, {"avx512_fp16"}},
      {MIX_CPU_AMX_BF16, {"amx_tile", "amx_bf16"}},
      {MIX_CPU_AMX_INT8, {"amx_tile", "amx_int8"}},
      {MIX_CPU_NEON, {"asimd"}},
      {MIX_CPU_NEON_DOT, {"asimddp"}},
      {MIX_CPU_NEON_FP16, {"asimdhp"}},
      {MIX_CPU_NEON_BF16, {"asimdhp", "asimdfhm", "bf16"}},
  };
  const char *first = on_arm64() ? "Features" : "flags";
  static char line[1 << 16];
  FILE *file = fopen("/proc/cpuinfo", "r");
  bool flags = false;
  while (file && !flags && fgets(line, sizeof line, file)) flags = strncmp(line, first, strlen(first)) == 0;
  if (file) fclose(file);
  if (!flags) SKIP("/proc/cpuinfo has no %s: hidden, or of the machine that emulates", first);
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    bool reported = true, found = mix_cpu_found() & rows[i].feature;
    for (int j = 0; j < 4 && rows[i].flags[j]; j++) reported = reported && has_flag(line, rows[i].flags[j]);
    if (found) assert_true(reported);
    if (reported && !(rows[i].feature & AMX)) assert_true(found); /* the kernel may deny AMX tiles */
  }
}

static void features_need_those_below(void **state) {
  (void)state;
  uint32_t found = mix_cpu_found();
  assert_int_equal(found & ~(uint32_t)(on_arm64() ? ALL_OF_ARM64 : ALL), 0);
  if (found & (MIX_CPU_NEON_DOT | MIX_CPU_NEON_FP16 | MIX_CPU_NEON_BF16)) assert_true(found & MIX_CPU_NEON);
  if (found & MIX_CPU_SVE256) assert_true(found & MIX_CPU_NEON_BF16);
  if (on_arm64()) return; /* pairs by the setting alone */
  if (found & MIX_CPU_AVX512) assert_true(found & MIX_CPU_AVX2);
  if (found & MIX_CPU_AVX_VNNI) assert_true(found & MIX_CPU_AVX2);
  if (found & (MIX_CPU_AVX512_BF16 | MIX_CPU_AVX512_FP16 | MIX_CPU_AVX512_VNNI))
    assert_true(found & MIX_CPU_AVX512);
  if (found & MIX_CPU_AMX_INT8) assert_true(found & MIX_CPU_AMX_BF16);
  if (found & (MIX_CPU_AMX_BF16 | MIX_CPU_BF16_PAIRS)) assert_true(found & MIX_CPU_AVX512_BF16);
}

static void the_cap_takes_away(void **state) {
  (void)state;
  static const struct {
    const char *name;
    uint32_t allowed;
    bool arm64;
  } rows[] = {
      {"generic", 0, false},
      {"avx2", MIX_CPU_AVX2, false},
      {"avx512", MIX_CPU_AVX2 | MIX_CPU_AVX512, false},
      {"avx512_bf16", MIX_CPU_AVX2 | MIX_CPU_AVX512 | BF16, false},
      {"avx512_fp16", ALL & ~AMX, false},
      {"amx", ALL, false},
      {"AVX2", MIX_CPU_AVX2, false},
      {"", ALL, false},
      {"generic", 0, true},
      {"neon", MIX_CPU_NEON, true},
      {"neon_dot", NEON_DOT, true},
      {"neon_fp16", NEON_FP16, true},
      {"neon_bf16", NEON_BF16, true},
      {"sve256", ALL_OF_ARM64, true},
      {"NEON", MIX_CPU_NEON, true},
      {"", ALL_OF_ARM64, true},
  };
  uint32_t found = mix_cpu_found();
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    if (rows[i].arm64 != on_arm64()) continue;
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

/* VDPBF16PS gains on AMD's processors that have it. */
static void pairs_go_by_vendor(void **state) {
  (void)state;
  static char text[1 << 12];
  FILE *file = fopen("/proc/cpuinfo", "r");
  const size_t length = file ? fread(text, 1, sizeof text - 1, file) : 0;
  if (file) fclose(file);
  text[length] = 0;
  const uint32_t found = mix_cpu_found();
  if (!(found & MIX_CPU_AVX512_BF16)) SKIP("this processor lacks AVX512-BF16");
  if (strstr(text, "AuthenticAMD")) assert_true(found & MIX_CPU_BF16_PAIRS);
  if (strstr(text, "GenuineIntel")) assert_false(found & MIX_CPU_BF16_PAIRS);
}

/* On needs the instruction in force; a bad value is ignored with one warning. */
static void pairs_go_by_the_setting(void **state) {
  (void)state;
  const uint32_t found = mix_cpu_found();
  const bool possible = found & (MIX_CPU_AVX512_BF16 | MIX_CPU_NEON_BF16);
  int warnings = 0;
  mix_set_log_callback(count_warnings, &warnings);
  setenv("MIXTAPE_BF16_PAIRS", "off", 1);
  assert_int_equal(mix_cpu_features(), found & ~(uint32_t)MIX_CPU_BF16_PAIRS);
  setenv("MIXTAPE_BF16_PAIRS", "ON", 1);
  assert_int_equal(mix_cpu_features(), found | (possible ? MIX_CPU_BF16_PAIRS : 0));
  setenv("MIXTAPE_MAX_ISA", on_arm64() ? "neon_fp16" : "avx512", 1);
  assert_false(mix_cpu_features() & MIX_CPU_BF16_PAIRS);
  unsetenv("MIXTAPE_MAX_ISA");
  setenv("MIXTAPE_BF16_PAIRS", "", 1);
  assert_int_equal(mix_cpu_features(), found);
  assert_int_equal(warnings, 0);
  setenv("MIXTAPE_BF16_PAIRS", "avx1024", 1);
  assert_int_equal(mix_cpu_features(), found);
  assert_int_equal(mix_cpu_features(), found);
  assert_int_equal(warnings, 1);
}

static void the_override_takes_away(void **state) {
  (void)state;
  uint32_t found = mix_cpu_found();
  mix_cpu_override(MIX_CPU_AVX2 | MIX_CPU_NEON);
  assert_int_equal(mix_cpu_features(), found & (MIX_CPU_AVX2 | MIX_CPU_NEON));
  mix_cpu_override(0);
  assert_int_equal(mix_cpu_found(), 0);
  mix_cpu_override(UINT32_MAX);
  assert_int_equal(mix_cpu_features(), found);
}

static void features_as_text(void **state) {
  (void)state;
  char text[100];
  assert_string_equal(mix_cpu_features_text(0, text, sizeof text), "none beyond " MIX_MACHINE);
  assert_string_equal(mix_cpu_features_text(MIX_CPU_AVX512, text, sizeof text), "avx512");
  assert_string_equal(
      mix_cpu_features_text(ALL, text, sizeof text),
      "avx2, avx512, avx_vnni, avx512_vnni, avx512_bf16, avx512_fp16, amx_bf16, bf16_pairs, amx_int8");
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
  CPU_ZERO(&one);
  for (int i = 0; i < CPU_SETSIZE && CPU_COUNT(&one) == 0; i++)
    if (CPU_ISSET(i, &all)) CPU_SET(i, &one);
  if (sched_setaffinity(0, sizeof one, &one) != 0) SKIP("the thread may not choose its core");
  assert_int_equal(mix_cpu_cores(), 1);
  sched_setaffinity(0, sizeof all, &all);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(found_is_what_the_kernel_reports, begin, end),
      cmocka_unit_test_setup_teardown(features_need_those_below, begin, end),
      cmocka_unit_test_setup_teardown(the_cap_takes_away, begin, end),
      cmocka_unit_test_setup_teardown(pairs_go_by_vendor, begin, end),
      cmocka_unit_test_setup_teardown(pairs_go_by_the_setting, begin, end),
      cmocka_unit_test_setup_teardown(an_unknown_cap_is_ignored_with_a_warning, begin, end),
      cmocka_unit_test_setup_teardown(the_override_takes_away, begin, end),
      cmocka_unit_test_setup_teardown(features_as_text, begin, end),
      cmocka_unit_test_setup_teardown(names_caches_and_cores, begin, end),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
