/* The target of zip archives on damaged ones with the members of a .keras, stored and deflated. */
#include "fuzz/mutate.h"

#include "fuzz/fuzz_zip_members.c"

static void damaged_archives(void **state) {
  (void)state;
  for (int deflated = 0; deflated <= 1; deflated++) {
    static zip_writer zip;
    size_t length;
    memset(&zip, 0, sizeof zip);
    put_member(&zip, "metadata.json", "{\"keras_version\": \"3.15.0\"}", 27, deflated, 27);
    put_member(&zip, "config.json", "{}", 2, deflated, 2);
    put_member(&zip, "model.weights.h5", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", 32, deflated, 32);
    put_zip_end(&zip);
    MIX_SCOPE {
      mix_zip *good = mix_zip_open_memory("good", zip.file.data, zip.file.size);
      void *weights = mix_zip_read(good, "model.weights.h5", 32, &length);
      assert_non_null(weights);
      assert_int_equal(length, 32);
      mix_free(weights);
    }
    mutate_and_run(&zip.file, 30000, 90 + (uint64_t)deflated);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(damaged_archives)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
