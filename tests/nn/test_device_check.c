/* The report on GPUs: rows D01 to D13 of docs/spec/mixed_precision.md, 9.2. Each test starts with the flag of
 * a new process. */
#include "nn/support.h"
#include <pthread.h>

typedef struct machine {
  int count;
  const mix_gpu_fact *gpus;
} machine;

static int provide(void *context, mix_gpu_fact *facts, int capacity) {
  const machine *m = context;
  for (int i = 0; i < m->count && i < capacity; i++) facts[i] = m->gpus[i];
  return m->count;
}
#define GPU(gpu, major, minor)                                                                               \
  { gpu, true, major, minor }
#define WITH(...)                                                                                            \
  static const mix_gpu_fact gpus[] = {__VA_ARGS__};                                                          \
  machine m = {sizeof gpus / sizeof *gpus, gpus};                                                            \
  (void)state;                                                                                               \
  mix_device_check_provider(provide, &m)

static void expect_report(mix_log_level level, int mentions, const char *const *texts) {
  assert_int_equal(log_count, 1);
  assert_int_equal(log_level, level);
  assert_non_null(
      strstr(log_text, level == MIX_LOG_INFO ? "(mixed_float16): OK" : "(mixed_float16): WARNING"));
  const char *from = log_text; /* in that order */
  for (int i = 0; i < mentions; i++) {
    from = strstr(from, texts[i]);
    if (!from) fail_msg("\"%s\" is missing, or out of order, in \"%s\"", texts[i], log_text);
    from += strlen(texts[i]);
  }
}
#define REPORT(level, ...)                                                                                   \
  do {                                                                                                       \
    assert_non_null(mix_policy_new("mixed_float16"));                                                        \
    expect_report(level, (int)(sizeof((const char *[]){__VA_ARGS__}) / sizeof(char *)),                      \
                  (const char *[]){__VA_ARGS__});                                                            \
  } while (0)

static void W01_the_guides_gpu(void **state) {
  WITH(GPU("Tesla V100", 7, 0));
  REPORT(MIX_LOG_INFO, "Tesla V100, compute capability 7.0");
}
static void D01_one_good(void **state) {
  WITH(GPU("G1", 7, 1));
  REPORT(MIX_LOG_INFO, "Your GPU will likely run quickly", "G1, compute capability 7.1");
}
static void D02_several_good(void **state) {
  WITH(GPU("G1", 7, 0), GPU("G2", 7, 1), GPU("G3", 8, 0));
  REPORT(MIX_LOG_INFO, "Your GPUs will likely run quickly", "all");
  assert_null(strstr(log_text, "G2"));
}
static void D03_one_slow(void **state) {
  WITH(GPU("G1", 6, 0));
  REPORT(MIX_LOG_WARNING, "Your GPU may run slowly", "\n  G1, compute capability 6.0\n",
         "https://developer.nvidia.com/cuda-gpus", "workers");
}
static void D04_unnamed(void **state) {
  WITH({NULL, false, 0, 0});
  REPORT(MIX_LOG_WARNING, "Your GPU may run slowly",
         "  Unknown GPU, no compute capability (probably not an Nvidia GPU)\n");
}
static void D05_several_slow(void **state) {
  WITH(GPU("G1", 6, 0), GPU("G2", 3, 10));
  REPORT(MIX_LOG_WARNING, "Your GPUs may run slowly", "  G1, compute capability 6.0\n",
         "  G2, compute capability 3.10\n");
}
static void D06_equal_neighbours_merge(void **state) {
  WITH(GPU("G1", 6, 0), GPU("G1", 6, 0), GPU("G1", 6, 0), GPU("G2", 3, 10));
  REPORT(MIX_LOG_WARNING, "  G1, compute capability 6.0 (x3)\n  G2, compute capability 3.10\n");
}
static void D07_mixture(void **state) {
  WITH(GPU("G1", 7, 0), GPU("G1", 7, 0), GPU("G2", 6, 0));
  REPORT(MIX_LOG_WARNING, "Some of your GPUs may run slowly",
         "  G1, compute capability 7.0 (x2)\n  G2, compute capability 6.0\n");
}
/* Only neighbours merge, and supported GPUs come first in any order. */
static void D07_mixture_in_another_order(void **state) {
  WITH(GPU("G2", 6, 0), GPU("G1", 7, 0), GPU("G3", 5, 0), GPU("G2", 6, 0));
  REPORT(MIX_LOG_WARNING,
         "\n  G1, compute capability 7.0\n  G2, compute capability 6.0\n  G3, compute capability 5.0\n"
         "  G2, compute capability 6.0\n");
}
static void D08_no_gpu(void **state) {
  (void)state;
  REPORT(MIX_LOG_WARNING, "does not have a GPU", "at least 7.0", "workers");
}
static void D09_once_a_process(void **state) {
  WITH(GPU("G1", 6, 0));
  assert_non_null(mix_policy_new("mixed_float16"));
  assert_non_null(mix_policy_new("mixed_float16"));
  assert_int_equal(log_count, 1);
}
static void *make_policy(void *results) {
  MIX_SCOPE { *(bool *)results = mix_policy_new("mixed_float16") != NULL; }
  return NULL;
}
static void D09_once_a_process_of_several_threads(void **state) {
  WITH(GPU("G1", 6, 0));
  pthread_t threads[8];
  bool results[8];
  for (int i = 0; i < 8; i++)
    assert_int_equal(pthread_create(&threads[i], NULL, make_policy, &results[i]), 0);
  for (int i = 0; i < 8; i++) assert_int_equal(pthread_join(threads[i], NULL), 0);
  for (int i = 0; i < 8; i++) assert_true(results[i]);
  assert_int_equal(log_count, 1);
}
static void D10_bfloat16_uses_it_up(void **state) {
  WITH(GPU("G1", 6, 0));
  assert_non_null(mix_policy_new("mixed_bfloat16"));
  assert_non_null(mix_policy_new("mixed_float16"));
  assert_int_equal(log_count, 0);
}
/* The experimental generation compares with a misspelt name, so bfloat16 does not set the flag. */
static void D10_experimental_bfloat16_does_not(void **state) {
  WITH(GPU("G1", 6, 0));
  mix_set_semantics("experimental");
  assert_non_null(mix_policy_new("mixed_bfloat16"));
  assert_non_null(mix_policy_new("mixed_float16"));
  assert_int_equal(log_count, 1);
}
static void D11_plain_float16(void **state) {
  WITH(GPU("G1", 6, 0));
  assert_non_null(mix_policy_new("float16"));
  assert_int_equal(log_count, 0);
  assert_non_null(mix_policy_new("mixed_float16")); /* the flag is not set yet */
  assert_int_equal(log_count, 1);
}
static void D12_minor_is_no_fraction(void **state) {
  WITH(GPU("G1", 3, 10));
  REPORT(MIX_LOG_WARNING, "3.10");
}
static void D13_two_digits(void **state) {
  WITH(GPU("G1", 10, 0));
  REPORT(MIX_LOG_INFO, "10.0");
}
static void keras3_never_checks(void **state) {
  WITH(GPU("G1", 6, 0));
  mix_set_semantics("keras3");
  assert_non_null(mix_policy_new("mixed_float16"));
  assert_int_equal(log_count, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {TEST(D01_one_good),
                                     TEST(W01_the_guides_gpu),
                                     TEST(D02_several_good),
                                     TEST(D03_one_slow),
                                     TEST(D04_unnamed),
                                     TEST(D05_several_slow),
                                     TEST(D06_equal_neighbours_merge),
                                     TEST(D07_mixture),
                                     TEST(D07_mixture_in_another_order),
                                     TEST(D08_no_gpu),
                                     TEST(D09_once_a_process),
                                     TEST(D09_once_a_process_of_several_threads),
                                     TEST(D10_bfloat16_uses_it_up),
                                     TEST(D10_experimental_bfloat16_does_not),
                                     TEST(D11_plain_float16),
                                     TEST(D12_minor_is_no_fraction),
                                     TEST(D13_two_digits),
                                     TEST(keras3_never_checks)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
