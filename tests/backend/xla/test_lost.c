/* A device that is lost while it works (support/pjrt/losing.c): an error that says so, whole checkpoints, and
 * a CPU that stays usable. */
#include "backend/xla/support.h"
#include "cli/program.h"
#include "support/xla.h"

static double sum_of(mix_list *results) { return results ? mix_tensor_item(mix_list_get(results, 0)) : NAN; }

static void check_lost(void) {
  char message[2048];
  CHECK(mix_error_take(message, sizeof message) == MIX_RUNTIME_ERROR);
  CHECK(strstr(message, "the device is lost"));
}

static void use_the_cpu_after_it(void) {
  setenv("MIXTAPE_LOSE_AFTER", "12", 1);
  CHECK(mix_set_device(fake("losing")) == MIX_OK);
  mix_variable *count = mix_variable_new(scalar(0), .name = "count"),
               *other = mix_variable_new(scalar(7), .name = "other");
  mix_function *function = new_function_of(count);
  int runs = 0;
  while (sum_of(call(function)) == 41) runs++;
  CHECK(runs > 1 && runs < 12);
  check_lost();
  CHECK(isnan(mix_tensor_item(mix_variable_value(count)))); /* its value was there */
  check_lost();
  CHECK(mix_variable_assign(count, scalar(5)) == MIX_RUNTIME_ERROR); /* whoever has read it, still holds it */
  check_lost();
  CHECK(mix_variable_assign_add(count, scalar(5)) == MIX_RUNTIME_ERROR);
  check_lost();
  CHECK(isnan(mix_tensor_item(mix_variable_value(count))));
  check_lost();
  CHECK(mix_set_device("cpu") == MIX_OK);
  CHECK(sum_of(call(new_function_of(other))) == 41);
  CHECK(mix_tensor_item(mix_variable_value(other)) == 8);
  CHECK(mix_synchronize() == MIX_OK);
}

static void the_cpu_stays_usable(void **state) {
  (void)state;
  XLA_OR_SKIP();
  in_child(use_the_cpu_after_it);
}

/* Training is lost between steps, and while a checkpoint is copied from the device; the newest one goes on.
 */
static void checkpoints_are_whole(void **state) {
  (void)state;
  XLA_OR_SKIP();
  for (int lost = 100; lost < 120; lost += 9) {
    char *folder = in_folder("checkpoints"), calls[16];
    snprintf(calls, sizeof calls, "%d", lost);
    setenv("MIXTAPE_LOSE_AFTER", calls, 1);
    assert_code(run_program("train", "--data", "digits", "--device", fake("losing"), "--checkpoint", folder,
                            "--checkpoint-freq", "2", "--steps", "40", "--batch-size", "16"),
                1);
    assert_has(program_err, "the device is lost");
    assert_code(run_program("train", "--data", "digits", "--device", "cpu", "--checkpoint", folder,
                            "--resume", "--steps", "40", "--batch-size", "16"),
                0);
    assert_has(program_err, "fit: goes on from ");
    forget("checkpoints");
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_cpu_stays_usable),
      cmocka_unit_test_setup_teardown(checkpoints_are_whole, folder_begin, folder_end),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
