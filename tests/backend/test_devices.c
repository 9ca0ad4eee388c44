/* Device, threads, accumulation and float32 precision: start values from the environment, settings by calls,
 * and what both refuse. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "backend/backend.h"
#include "backend/communicator.h"
#include "backend/cpu/isa.h"
#include "base/machine.h"
#include "base/processor.h"
#include <mixtape/device.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Runs first: the environment counts until a call has made the setting. */
static void a_bad_environment_is_an_error_that_names_it(void **state) {
  (void)state;
  setenv("MIXTAPE_DEVICE", "tpu", 1);
  assert_non_null(mix_backend_current());
  assert_int_equal(mix_error(), MIX_VALUE_ERROR);
  assert_non_null(strstr(mix_error_message(), "MIXTAPE_DEVICE"));
  assert_non_null(strstr(mix_error_message(), "\"tpu\""));
  mix_error_clear();
  setenv("MIXTAPE_ACCUMULATE", "sloppy", 1);
  setenv("MIXTAPE_FLOAT32_PRECISION", "medium", 1); /* the second one is read, and refused, too */
  mix_matmul_precision_default();
  assert_int_equal(mix_error(), MIX_VALUE_ERROR);
  assert_non_null(strstr(mix_error_message(), "MIXTAPE_ACCUMULATE"));
  mix_error_clear();
  setenv("MIXTAPE_ACCUMULATE", "blocked", 1);
  mix_matmul_precision_default();
  assert_int_equal(mix_error(), MIX_VALUE_ERROR);
  assert_non_null(strstr(mix_error_message(), "MIXTAPE_FLOAT32_PRECISION"));
  mix_error_clear();
  setenv("MIXTAPE_MEMORY", "some", 1);
  mix_memory_use_default();
  assert_int_equal(mix_error(), MIX_VALUE_ERROR);
  assert_non_null(strstr(mix_error_message(), "MIXTAPE_MEMORY"));
  assert_non_null(strstr(mix_error_message(), "\"auto\", \"fast\" or \"least\", or an amount such as"));
  mix_error_clear();
  static const char *const bad[] = {"many", "-1", "3x", "100000"};
  for (int i = 0; i < 4; i++) {
    setenv("MIXTAPE_THREADS", bad[i], 1);
    assert_true(mix_threads() >= 1);
    assert_int_equal(mix_error(), MIX_VALUE_ERROR);
    assert_non_null(strstr(mix_error_message(), "MIXTAPE_THREADS"));
    mix_error_clear();
  }
}

static void start_values(void **state) {
  (void)state;
  setenv("MIXTAPE_DEVICE", "ref", 1);
  setenv("MIXTAPE_ACCUMULATE", "blocked", 1);
  setenv("MIXTAPE_FLOAT32_PRECISION", "high", 1);
  setenv("MIXTAPE_MEMORY", "least", 1);
  setenv("MIXTAPE_THREADS", "3", 1);
  assert_string_equal(mix_memory_name(), "least");
  assert_string_equal(mix_device(), "ref");
  assert_ptr_equal(mix_backend_current(), &mix_backend_ref);
  assert_string_equal(mix_accumulate(), "blocked");
  assert_int_equal(mix_matmul_precision_default().accumulation, MIX_ACCUMULATE_BLOCKED);
  assert_string_equal(mix_float32_precision_name(), "high");
  assert_int_equal(mix_threads(), 3);
  assert_int_equal(mix_error(), MIX_OK);
}

static void devices(void **state) {
  (void)state;
  assert_int_equal(mix_set_device("cpu"), MIX_OK);
  assert_ptr_equal(mix_backend_current(), &mix_backend_cpu);
  setenv("MIXTAPE_PJRT_PLUGIN", "/nowhere/xla_cuda_plugin.so", 1);
  assert_int_equal(mix_set_device("cuda"), MIX_UNSUPPORTED);
  assert_non_null(strstr(mix_error_message(), "cuda"));
  assert_non_null(strstr(mix_error_message(), "unavailable"));
  assert_int_equal(mix_set_device("ref"), MIX_UNSUPPORTED); /* pending */
  mix_error_clear();
  assert_int_equal(mix_set_device("abacus"), MIX_VALUE_ERROR);
  mix_error_clear();
  assert_int_equal(mix_set_device(NULL), MIX_VALUE_ERROR);
  mix_error_clear();
  assert_string_equal(mix_device(), "cpu");
  assert_int_equal(mix_set_device("ref"), MIX_OK);
  assert_int_equal(mix_set_device("auto"), MIX_OK);
  assert_string_equal(mix_device(), "cpu");
}

/* `mixtape --device` asks by name, too. */
static void names_of_devices(void **state) {
  (void)state;
  assert_ptr_equal(mix_backend_named("auto"), &mix_backend_cpu);
  assert_ptr_equal(mix_backend_named("cuda"), &mix_backend_cuda);
  assert_ptr_equal(mix_backend_named("xla"), &mix_backend_xla);
  assert_ptr_equal(mix_backend_named("xla:plugin.so"), &mix_backend_xla);
  static const char *const none[] = {"", "cp", "cpus", "cpu:0", ":", "XLA", "xla.so"};
  for (size_t i = 0; i < sizeof none / sizeof *none; i++) assert_null(mix_backend_named(none[i]));
  assert_int_equal(mix_set_device("cpus"), MIX_VALUE_ERROR);
  assert_non_null(strstr(mix_error_message(), "did you mean 'cpu'"));
  assert_non_null(strstr(mix_error_message(), "expected auto|cpu|cuda|cuda:N|ref|xla|xla:PLUGIN.so"));
  mix_error_clear();
}

/* Nor does their number, then, make other plans. */
static void only_a_device_with_threads_has_them_in_its_context(void **state) {
  (void)state;
  mix_set_threads(3);
  mix_set_device("ref");
  const mix_context ref = mix_context_default(), cpu = mix_context_on(&mix_backend_cpu, &ref);
  assert_int_equal(ref.threads, 0);
  assert_int_equal(cpu.threads, 3);
  mix_set_threads(2);
  const mix_context fewer = mix_context_default();
  assert_true(mix_context_key(&fewer) == mix_context_key(&ref));
  mix_set_device("cpu");
}

static void threads(void **state) {
  (void)state;
  assert_int_equal(mix_set_threads(5), MIX_OK);
  assert_int_equal(mix_threads(), 5);
  assert_int_equal(mix_set_threads(-1), MIX_VALUE_ERROR);
  mix_error_clear();
  assert_int_equal(mix_threads(), 5);
  setenv("OMP_NUM_THREADS", "7,2", 1);
  assert_int_equal(mix_set_threads(0), MIX_OK);
  assert_int_equal(mix_threads(), 7);
  unsetenv("OMP_NUM_THREADS");
  assert_int_equal(mix_set_threads(0), MIX_OK);
  assert_int_equal(mix_threads(), mix_cpu_cores());
}

static void accumulation(void **state) {
  (void)state;
  static const char *const names[] = {"auto", "exact", "blocked"};
  for (int i = 0; i < 3; i++) {
    assert_int_equal(mix_set_accumulate(names[i]), MIX_OK);
    assert_string_equal(mix_accumulate(), names[i]);
    assert_int_equal(mix_matmul_precision_default().accumulation, i);
  }
  assert_int_equal(mix_set_accumulate("double"), MIX_VALUE_ERROR);
  assert_non_null(strstr(mix_error_message(), "expected \"auto\", \"exact\" or \"blocked\""));
  mix_error_clear();
  assert_string_equal(mix_accumulate(), "blocked");
}

static void float32_precision(void **state) {
  (void)state;
  assert_int_equal(mix_set_float32_precision("highest"), MIX_OK);
  assert_int_equal(mix_matmul_precision_default().float32, MIX_FLOAT32_HIGHEST);
  assert_int_equal(mix_set_float32_precision("half"), MIX_VALUE_ERROR);
  assert_non_null(strstr(mix_error_message(), "\"half\""));
  mix_error_clear();
  assert_string_equal(mix_float32_precision_name(), "highest");
}

static void memory(void **state) {
  (void)state;
  assert_int_equal(mix_set_memory("fast"), MIX_OK);
  assert_int_equal(mix_context_default().memory, MIX_MEMORY_FAST);
  mix_context context = mix_context_default();
  const uint64_t key = mix_context_key(&context);
  assert_int_equal(mix_set_memory("little"), MIX_VALUE_ERROR);
  assert_non_null(strstr(mix_error_message(), "set_memory: there is no use of memory \"little\""));
  mix_error_clear();
  assert_int_equal(mix_set_memory("least"), MIX_OK);
  context = mix_context_default();
  assert_int_equal(context.memory, MIX_MEMORY_LEAST);
  assert_int_not_equal(mix_context_key(&context), key);
  assert_int_equal(mix_set_memory("auto"), MIX_OK);
  assert_int_equal(mix_context_default().memory, MIX_MEMORY_AUTO);
  assert_string_equal(mix_memory_name(), "auto");
}

static void memory_budget(void **state) {
  (void)state;
  mix_context context = mix_context_default();
  const uint64_t without = mix_context_key(&context);
  assert_int_equal(mix_memory_budget(), 0);
  assert_int_equal(mix_set_memory_budget(5 << 20), MIX_OK);
  assert_int_equal(mix_memory_budget(), 5 << 20);
  assert_int_not_equal(mix_context_key(&context), without);
  assert_int_equal(mix_set_memory("5.5 MiB"), MIX_OK);
  assert_int_equal(mix_memory_budget(), 11 << 19);
  assert_int_equal(mix_set_memory("least"), MIX_OK); /* beside it */
  assert_int_equal(mix_memory_budget(), 11 << 19);
  assert_string_equal(mix_memory_name(), "least");
  static const char *const wrong[] = {"0", "0MiB", "5XB", "5 MiB B", "-5MiB", "nan", "1e30GiB"};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    assert_int_equal(mix_set_memory(wrong[i]), MIX_VALUE_ERROR);
    assert_non_null(strstr(mix_error_message(), wrong[i]));
    assert_non_null(strstr(mix_error_message(), "or an amount such as \"512MiB\""));
    mix_error_clear();
  }
  assert_int_equal(mix_set_memory("auto"), MIX_OK);
  assert_int_equal(mix_set_memory_budget(0), MIX_OK);
  assert_int_equal(mix_context_key(&context), without);
}

/* Plans of several distributions live side by side, on every device. */
static void each_communicator_has_a_key(void **state) {
  (void)state;
  static uint64_t keys[2][MIX_COMMUNICATORS + 1];
  mix_communicator c = {.ranks = 2};
  for (int d = 0; d < 2; d++) {
    mix_set_device(d ? "ref" : "cpu");
    mix_context context = mix_context_default();
    for (unsigned n = 0; n <= MIX_COMMUNICATORS; n++) {
      c.number = n;
      context.communicator = n ? &c : NULL;
      keys[d][n] = mix_context_key(&context);
    }
  }
  const uint64_t *all = keys[0];
  for (int i = 0; i < 2 * (MIX_COMMUNICATORS + 1); i++)
    for (int k = 0; k < i; k++) assert_true(all[i] != all[k]);
  mix_set_device("cpu");
}

/* Any change moves the key of compiled plans; a former setting gives its former key. */
static uint64_t key_now(void) {
  const mix_context context = mix_context_default();
  return mix_context_key(&context);
}

static void the_key_is_a_function_of_the_settings(void **state) {
  (void)state;
  mix_set_device("cpu");
  mix_set_threads(2);
  mix_set_accumulate("auto");
  uint64_t keys[6] = {key_now()};
  mix_set_device("ref");
  keys[1] = key_now();
  mix_set_device("cpu");
  assert_true(key_now() == keys[0]);
  mix_set_threads(3);
  keys[2] = key_now();
  mix_set_threads(2);
  mix_set_accumulate("exact");
  keys[3] = key_now();
  mix_set_accumulate("auto");
  mix_set_float32_precision("high");
  keys[4] = key_now();
  mix_set_float32_precision("highest");
  bool capped = mix_cpu_features() != 0;
  mix_cpu_override(0);
  keys[5] = key_now();
  mix_cpu_override(UINT32_MAX);
  for (int i = 0; i < 6; i++)
    for (int j = 0; j < i; j++)
      if (capped || i < 5) assert_true(keys[i] != keys[j]);
  assert_true(key_now() == keys[0]);
}

/* Without any instruction set: each special product of 16-bit numbers is named, with what it needs. */
static void expect_refused_products(const char *text) {
#define NAME_AND_NEEDS(id, dtype, engine, name, features, ...) {"gemm_" name, dtype, features},
  static const struct {
    const char *name;
    mix_dtype dtype;
    uint32_t needs;
  } special[] = {MIX_SPECIAL_PRODUCTS(NAME_AND_NEEDS)};
  char line[256], needs[160];
  for (size_t i = 0; i < sizeof special / sizeof *special; i++) {
    snprintf(line, sizeof line, "    not %s: needs %s\n", special[i].name,
             mix_cpu_features_text(special[i].needs, needs, sizeof needs));
    if (!strstr(text, line) != (mix_dtype_size(special[i].dtype) != 2))
      fail_msg("\"%s\" is not in:\n%s", line, text);
  }
}

static void the_text_says_what_serves(void **state) {
  (void)state;
  mix_set_device("cpu");
  mix_set_threads(2);
  mix_set_accumulate("exact");
  const char *text = mix_devices_text();
  static const char *const expected[] = {
      "instruction sets found: ",
      "instruction sets in force: ",
      "matmul of float16 (1024, 1024): ",
      "matmul of bfloat16",
      "matmul of float32",
      "matmul of float64",
      "matmul of int32",
      "cuda: unavailable: ",
      "in force: device cpu, 2 threads, accumulation exact, float32 precision highest\n"};
  for (size_t i = 0; i < sizeof expected / sizeof *expected; i++)
    if (!strstr(text, expected[i])) fail_msg("\"%s\" is not in:\n%s", expected[i], text);
  assert_non_null(strstr(text, mix_cpu_name()));
  mix_cpu_override(0);
  assert_non_null(strstr(mix_devices_text(), "in force: none beyond " MIX_MACHINE));
  /* Under auto: what was asked before and refused, and what 16-bit products come to. */
  mix_set_accumulate("auto");
  expect_refused_products(mix_devices_text());
  assert_null(strstr(mix_devices_text(), "operands of another dtype"));
  assert_non_null(
      strstr(mix_devices_text(), "large products here accumulate: float16 exact, bfloat16 exact\n"));
  assert_string_equal(mix_accumulate_in_force(MIX_FLOAT16), "exact");
  mix_cpu_override(UINT32_MAX);
  mix_set_accumulate("exact");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_bad_environment_is_an_error_that_names_it),
      cmocka_unit_test(start_values),
      cmocka_unit_test(devices),
      cmocka_unit_test(names_of_devices),
      cmocka_unit_test(only_a_device_with_threads_has_them_in_its_context),
      cmocka_unit_test(threads),
      cmocka_unit_test(accumulation),
      cmocka_unit_test(float32_precision),
      cmocka_unit_test(memory),
      cmocka_unit_test(memory_budget),
      cmocka_unit_test(each_communicator_has_a_key),
      cmocka_unit_test(the_key_is_a_function_of_the_settings),
      cmocka_unit_test(the_text_says_what_serves),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
