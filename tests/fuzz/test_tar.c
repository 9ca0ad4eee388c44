/* The tar target on damaged archives, gzipped and plain. */
#include "formats/tar_bytes.h"
#include "fuzz/mutate.h"

#include "fuzz/fuzz_tar.c"

static void damaged_archives(void **state) {
  (void)state;
  static bytes plain, gzipped;
  put_tar_member(&plain, "folder/", '5', "", 0);
  put_tar_member(&plain, "folder/a", '0', "content", 7);
  put_tar_member(&plain, "folder/b", 0, "", 0);
  put_tar_end(&plain);
  put_gzip(&gzipped, &plain);
  assert_true(mix_tar_read("good", plain.data, plain.size, release, NULL));
  assert_true(mix_tar_read("good", gzipped.data, gzipped.size, release, NULL));
  mutate_and_run(&plain, 20000, 1);
  mutate_and_run(&gzipped, 20000, 2);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(damaged_archives)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
