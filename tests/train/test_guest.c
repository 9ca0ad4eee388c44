/* The manners of a guest: modes of floating-point arithmetic, signals, locale and environment of the host
 * program are as they were, whatever they were, and its modes change no bit. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* feenableexcept */
#endif
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/machine.h"
#include "support/skip.h"
#include "train/guest_model.h"
#include <dirent.h>
#include <fenv.h>
#include <locale.h>
#include <signal.h>

extern char **environ;

static int thread_count(void) {
  DIR *tasks = opendir("/proc/self/task");
  if (!tasks) return -1;
  int count = 0;
  for (struct dirent *entry; (entry = readdir(tasks));) count += entry->d_name[0] != '.';
  closedir(tasks);
  return count;
}

/* First of all tests: no other has made a thread. */
static void one_thread_makes_none(void **state) {
  (void)state;
  if (thread_count() < 0) SKIP("there is no /proc/self/task");
  float kernel[GUEST_WEIGHTS];
  const int before = thread_count();
  mix_set_threads(1);
  guest_train(kernel);
  assert_int_equal(thread_count(), before);
}

static void train_with(mix_float_control control, int threads, float kernel[GUEST_WEIGHTS]) {
  const mix_float_control flags =
      MIX_FLOAT_DEFAULT ? 0x3f : 0; /* of exceptions that were met: they may be added */
  const mix_float_control own = mix_float_control_get();
  mix_set_threads(threads);
  mix_float_control_set(control);
  guest_train(kernel);
  const mix_float_control after = mix_float_control_get();
  mix_float_control_set(own);
  assert_true((after & ~flags) == (control & ~flags));
}

static void modes_stay_and_change_nothing(void **state) {
  (void)state;
  const int roundings[] = {FE_TONEAREST, FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO};
  for (int threads = 1; threads <= 3; threads++) {
    float expected[GUEST_WEIGHTS], kernel[GUEST_WEIGHTS];
    train_with(MIX_FLOAT_DEFAULT, threads, expected);
    for (int i = 0; i < 4; i++)
      for (int flush = 0; flush < 2; flush++) {
        fesetround(roundings[i]);
        const mix_float_control control = mix_float_control_get() | (flush ? MIX_FLUSH_SUBNORMALS : 0);
        fesetround(FE_TONEAREST);
        train_with(control, threads, kernel);
        for (int j = 0; j < GUEST_WEIGHTS; j++)
          if (memcmp(&expected[j], &kernel[j], sizeof(float)))
            fail_msg("%d threads, rounding %d, flush %d: weight %d is %a, not %a", threads, i, flush, j,
                     (double)kernel[j], (double)expected[j]);
      }
  }
}

/* As Fortran compilers arm them (-ffpe-trap); a model under mixed_float16 overflows. */
static void a_host_that_traps_is_not_trapped(void **state) {
  (void)state;
  float expected[GUEST_WEIGHTS], kernel[GUEST_WEIGHTS];
  train_with(MIX_FLOAT_DEFAULT, 2, expected);
  if (feenableexcept(FE_INVALID | FE_DIVBYZERO | FE_OVERFLOW) < 0)
    SKIP("this processor does not trap floating-point exceptions");
  mix_set_threads(2);
  guest_train(kernel);
  assert_int_equal(fegetexcept(), FE_INVALID | FE_DIVBYZERO | FE_OVERFLOW);
  fedisableexcept(FE_ALL_EXCEPT);
  assert_memory_equal(expected, kernel, sizeof kernel);
}

static void signals_locale_and_environment_stay(void **state) {
  (void)state;
  struct sigaction before[65], after;
  float kernel[GUEST_WEIGHTS];
  char locale[256];
  static char environment[2][1 << 16];
  for (int i = 1; i < 65; i++) sigaction(i, NULL, &before[i]);
  snprintf(locale, sizeof locale, "%s", setlocale(LC_ALL, NULL));
  for (int turn = 0; turn < 2; turn++) {
    size_t used = 0;
    for (char **entry = environ; *entry && used < sizeof *environment; entry++)
      used += (size_t)snprintf(environment[turn] + used, sizeof *environment - used, "%s\n", *entry);
    if (!turn) guest_train(kernel);
  }
  for (int i = 1; i < 65; i++) {
    if (sigaction(i, NULL, &after)) continue;
    if (after.sa_handler != before[i].sa_handler) fail_msg("signal %d has another handler", i);
  }
  assert_string_equal(setlocale(LC_ALL, NULL), locale);
  assert_string_equal(environment[0], environment[1]);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(one_thread_makes_none),
      cmocka_unit_test(modes_stay_and_change_nothing),
      cmocka_unit_test(a_host_that_traps_is_not_trapped),
      cmocka_unit_test(signals_locale_and_environment_stay),
  };
  return cmocka_run_group_tests(tests, folder_begin, folder_end);
}
