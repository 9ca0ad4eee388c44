/* The IDX target on damaged files, gzipped and plain. */
#include "formats/idx_bytes.h"
#include "fuzz/mutate.h"

#include "fuzz/fuzz_idx.c"

static void damaged_idx_files(void **state) {
  (void)state;
  static bytes plain, gzipped;
  put_idx(&plain, 3, (const uint32_t[]){3, 4, 5}, 0, 7);
  put_gzip(&gzipped, &plain);
  assert_non_null(mix_idx_read_memory("good", plain.data, plain.size));
  assert_non_null(mix_idx_read_memory("good", gzipped.data, gzipped.size));
  mutate_and_run(&plain, 100000, 1);
  mutate_and_run(&gzipped, 100000, 2);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(damaged_idx_files)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
