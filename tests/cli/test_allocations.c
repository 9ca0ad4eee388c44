/* `mixtape train` when an allocation fails, each in turn: no crash, exit code 1 or 2 and a message, or the
 * whole work done without the memory. MIXTAPE_ALLOCATIONS: how many attempts, spread over all allocations of
 * a run; 0 is each of them. */
#include "cli/program.h"
#include "support/skip.h"

enum { USUAL_ATTEMPTS = 60 };

static int attempts(void) {
  const char *text = getenv("MIXTAPE_ALLOCATIONS");
  return text && *text ? atoi(text) : USUAL_ATTEMPTS;
}

/* True if the run made that many allocations, so that one of them failed. */
static bool train_failing(int64_t allocation, const char *loop) {
  char number[32];
  snprintf(number, sizeof number, "%lld", (long long)allocation);
  setenv("MIXTAPE_FAIL_ALLOCATION", number, 1);
  forget("run");
  const int code =
      run_program("train", "--data", in_folder("data.npz"), "--units", "8", "--batch-size", "20", "--epochs",
                  "2", "--loop", loop, "--policy", "mixed_float16", "--seed", "5", "--threads", "1", "--save",
                  in_folder("saved.npz"), "--checkpoint", in_folder("run"), "--verbose", "0");
  unsetenv("MIXTAPE_FAIL_ALLOCATION");
  const bool failed = !strstr(program_err, "no allocation failed");
  if (code > 2) fail_msg("allocation %lld: exit code %d; %s", (long long)allocation, code, program_err);
  if (code && !strstr(program_err, "memory"))
    fail_msg("allocation %lld: exit code %d without its reason; %s", (long long)allocation, code,
             program_err);
  if (!failed) assert_code(code, 0);
  return failed;
}

static void write_data(void) {
  MIX_SCOPE {
    double x[120 * 6], y[120];
    for (int i = 0; i < 720; i++) x[i] = (i * 37 % 101) / 101.0;
    for (int i = 0; i < 120; i++) y[i] = i * 7 % 10;
    const char *names[] = {"x_train", "y_train"};
    mix_tensor *tensors[] = {mix_tensor_from_doubles(x, MIX_FLOAT32, MIX_SHAPE(120, 6)),
                             mix_tensor_from_doubles(y, MIX_INT64, MIX_SHAPE(120))};
    assert_int_equal(mix_npz_save(in_folder("data.npz"), 2, names, tensors), MIX_OK);
  }
}

/* The number of allocations of a run, by bisection. */
static int64_t allocations_of(const char *loop) {
  int64_t low = 0, high = 1;
  while (train_failing(high, loop)) low = high, high *= 2;
  while (high - low > 1) {
    const int64_t middle = low + (high - low) / 2;
    if (train_failing(middle, loop))
      low = middle;
    else
      high = middle;
  }
  return high;
}

static void sweep(const char *loop) {
  const char *program = getenv("MIXTAPE_FAILING_PROGRAM");
  if (!program) SKIP("MIXTAPE_FAILING_PROGRAM is not set");
  setenv("MIXTAPE_PROGRAM", program, 1);
  write_data();
  const int64_t all = allocations_of(loop), step = attempts() ? 1 + all / attempts() : 1;
  print_message("%s: %lld allocations, every %lld of them fails\n", loop, (long long)all, (long long)step);
  assert_true(all > 1000);
  for (int64_t i = 0; i < all; i += step) train_failing(i, loop);
}

static void fit_when_any_allocation_fails(void **state) { (void)state, sweep("fit"); }
static void the_custom_loop_when_any_allocation_fails(void **state) { (void)state, sweep("custom"); }

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(fit_when_any_allocation_fails),
                                     cmocka_unit_test(the_custom_loop_when_any_allocation_fails)};
  return cmocka_run_group_tests(tests, folder_begin, folder_end);
}
