/* Plug-ins that are none, that fail, or that lack what is needed: clear errors, and the CPU stays usable.
 * Each case is a process of its own, for a plug-in that is in use stays. */
#include "backend/xla/support.h"

#include "backend/backend.h"
#include <mixtape/policy.h>

/* Clears the error, which must be this one, and computes on the CPU. */
static void check_error(mix_status status, const char *mention, const char *other) {
  char message[2048];
  const mix_status got = mix_error_take(message, sizeof message);
  if (got != status || !strstr(message, mention) || !strstr(message, other)) {
    fprintf(stderr, "%s: %s; expected %s with \"%s\" and \"%s\"\n", mix_status_name(got), message,
            mix_status_name(status), mention, other);
    _exit(1);
  }
  CHECK(mix_set_device("cpu") == MIX_OK);
  mix_list *results = call(new_function());
  CHECK(results && mix_tensor_item(mix_list_get(results, 0)) == 41);
}

/* ---- libraries that cannot be used ---- */

static void check_refused(const char *device, const char *mention) {
  CHECK(mix_set_device(device) == MIX_UNSUPPORTED);
  check_error(MIX_UNSUPPORTED, "device \"xla\" is unavailable", mention);
  CHECK(mix_set_device(device) == MIX_UNSUPPORTED); /* a second time as the first */
  check_error(MIX_UNSUPPORTED, "device \"xla\" is unavailable", mention);
}
static void check_bad_libraries(void) {
  check_refused("xla:/nowhere/plugin.so", "/nowhere/plugin.so cannot be loaded");
  check_refused("xla:/etc/passwd", "/etc/passwd cannot be loaded");
  check_refused(fake("no_entry"), "is no PJRT plug-in: it does not export GetPjrtApi");
  check_refused(fake("no_table"), "is no PJRT plug-in: GetPjrtApi gives no table");
  check_refused(fake("old"), "version 0.7 of the PJRT API, which is too old");
  check_refused(fake("new"), "has version 1.7 of the PJRT API; expected version 0");
  check_refused(fake("refuses_to_start"), "the fake does not start");
  check_refused(fake("exhausted_client"), "no room for a client");
  check_refused(fake("no_devices"), "for the platform \"fake\", finds no device on this machine");
  CHECK(mix_set_device("xla:") == MIX_VALUE_ERROR);
  check_error(MIX_VALUE_ERROR, "set_device", "without a path");
  CHECK(strstr(mix_devices_text(), "xla: unavailable: "));
  CHECK(mix_set_device(fake("works")) == MIX_OK); /* after all of these */
}
static void bad_libraries_are_named(void **state) {
  (void)state;
  in_child(check_bad_libraries);
}

static void check_environment(void) {
  setenv("MIXTAPE_PJRT_PLUGIN", "/nowhere/tpu.so", 1);
  check_refused("xla", "/nowhere/tpu.so cannot be loaded");
  setenv("MIXTAPE_PJRT_PLUGIN", fake("works") + 4, 1);
  CHECK(mix_set_device("xla") == MIX_OK);
  CHECK(strcmp(mix_device(), "xla") == 0);
}
static void the_environment_names_one(void **state) {
  (void)state;
  in_child(check_environment);
}

static void check_none(void) {
  unsetenv("MIXTAPE_PJRT_PLUGIN");
  if (mix_set_device("xla") == MIX_OK) return; /* one is installed here */
  check_error(MIX_UNSUPPORTED, "no PJRT plug-in: give one by", "libtpu.so, xla_cuda_plugin.so and");
}
static void without_one_the_places_are_named(void **state) {
  (void)state;
  in_child(check_none);
}

static void check_single(void) {
  CHECK(mix_set_device(fake("works")) == MIX_OK);
  CHECK(strstr(mix_devices_text(), "xla: 1 device\n"));
  CHECK(strstr(mix_devices_text(), "platform: fake, fake\n  device 0: fake, fake; in use\n"));
  CHECK(mix_set_device(fake("refuses")) == MIX_UNSUPPORTED);
  check_error(MIX_UNSUPPORTED, "a process has one plug-in", "fake_works.so is in use");
  CHECK(mix_set_device("xla") == MIX_OK && mix_set_device(fake("works")) == MIX_OK);
}
static void a_process_has_one(void **state) {
  (void)state;
  in_child(check_single);
}

/* ---- plug-ins that fail ---- */

static void check_refuses(void) {
  CHECK(mix_set_device(fake("refuses")) == MIX_OK);
  mix_variable *count = mix_variable_new(scalar(0), .name = "count");
  mix_function *function = mix_function_new(twice_and_one, count);
  CHECK(!call(function));
  check_error(MIX_UNSUPPORTED, "cannot compile function", "the fake knows no op");
  CHECK(mix_tensor_item(mix_variable_value(count)) == 0);
  CHECK(call(function) && mix_tensor_item(mix_variable_value(count)) == 1); /* on the CPU */
}
static void check_exhausted(void) {
  CHECK(mix_set_device(fake("exhausted")) == MIX_OK);
  CHECK(!call(new_function()));
  check_error(MIX_MEMORY_ERROR, "copying to the device", "the fake has no memory");
}
/* Told by the message alone, as XLA's CPU does. The variable keeps its value. */
static void check_exhausted_run(void) {
  CHECK(mix_set_device(fake("exhausted_run")) == MIX_OK);
  mix_variable *count = mix_variable_new(scalar(3), .name = "count");
  mix_function *function = new_function_of(count);
  CHECK(!call(function));
  check_error(MIX_MEMORY_ERROR, "Out of memory allocating a run", "use a smaller batch");
  CHECK(mix_tensor_item(mix_variable_value(count)) == 3);
}
static void check_fails(void) {
  CHECK(mix_set_device(fake("fails")) == MIX_OK);
  CHECK(!call(new_function()));
  check_error(MIX_RUNTIME_ERROR, "running function", "the fake fails");
}
static void check_results(void) {
  CHECK(mix_set_device(fake("works")) == MIX_OK);
  mix_variable *count = mix_variable_new(scalar(0), .name = "count");
  CHECK(!call(mix_function_new(twice_and_one, count))); /* its programs have one result */
  check_error(MIX_INTERNAL_ERROR, "the program of function has 1 results", "expected");
  CHECK(mix_set_device("xla") == MIX_OK);
  mix_list *results = call(new_function());
  CHECK(results && mix_tensor_item(mix_list_get(results, 0)) == 0);
}
/* Each run that writes a variable takes its buffer. */
static void check_donates(void) {
  CHECK(mix_set_device(fake("donates")) == MIX_OK);
  mix_variable *count = mix_variable_new(scalar(3), .name = "count");
  mix_function *function = mix_function_new(twice_and_one, count);
  for (int i = 0; i < 3; i++) {
    CHECK(call(function));
    CHECK(mix_tensor_item(mix_variable_value(count)) == 0); /* what the program gives */
  }
}
static void a_program_that_is_refused(void **state) {
  (void)state;
  in_child(check_refuses);
}
static void memory_that_is_exhausted(void **state) {
  (void)state;
  in_child(check_exhausted);
  in_child(check_exhausted_run);
}
static void a_run_that_fails(void **state) {
  (void)state;
  in_child(check_fails);
}
static void variables_are_donated(void **state) {
  (void)state;
  in_child(check_donates);
}
static void a_wrong_number_of_results(void **state) {
  (void)state;
  in_child(check_results);
}

/* ---- the policy check ---- */

static char log_text[600];
static mix_log_level log_level;
static void keep_message(void *context, mix_log_level level, const char *message) {
  (void)context;
  log_level = level;
  snprintf(log_text, sizeof log_text, "%s", message);
}
static void check_policy(const char *policy, mix_log_level level, const char *mention) {
  mix_set_log_callback(keep_message, NULL);
  CHECK(mix_set_device(fake("tpu")) == MIX_OK);
  CHECK(mix_policy_new(policy));
  CHECK(log_level == level && strstr(log_text, mention) && strstr(log_text, "multiples of 128"));
  log_text[0] = 0;
  CHECK(mix_policy_new(policy) && !log_text[0]); /* once a process */
}
static void check_float16(void) {
  check_policy("mixed_float16", MIX_LOG_WARNING, "(mixed_float16): WARNING\nYour TPU may run slowly");
}
static void check_bfloat16(void) {
  check_policy("mixed_bfloat16", MIX_LOG_INFO, "(mixed_bfloat16): OK\nYour TPU will likely run quickly");
}
static void policies_suit_tpus_or_not(void **state) {
  (void)state;
  in_child(check_float16);
  in_child(check_bfloat16);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(bad_libraries_are_named), TEST(the_environment_names_one), TEST(without_one_the_places_are_named),
      TEST(a_process_has_one),       TEST(a_program_that_is_refused), TEST(memory_that_is_exhausted),
      TEST(a_run_that_fails),        TEST(a_wrong_number_of_results), TEST(policies_suit_tpus_or_not),
      TEST(variables_are_donated),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
