/* The .npz target on damaged archives. */
#include "fuzz/mutate.h"

#include "fuzz/fuzz_npz.c"

static void damaged_npz_files(void **state) {
  (void)state;
  for (int compressed = 0; compressed <= 1; compressed++) {
    static zip_writer zip;
    memset(&zip, 0, sizeof zip);
    bytes kernel = {.size = 0}, bias = {.size = 0};
    put_npy(&kernel, 1, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }\n",
            "abcdefghijklmnopqrstuvwx", 24);
    put_npy(&bias, 1, "{'descr': '>i2', 'fortran_order': True, 'shape': (2, 1), }\n", "abcd", 4);
    put_member(&zip, "kernel.npy", kernel.data, kernel.size, compressed, kernel.size);
    put_member(&zip, "bias.npy", bias.data, bias.size, compressed, bias.size);
    put_zip_end(&zip);
    MIX_SCOPE {
      mix_npz *npz = mix_npz_open_memory("good", zip.file.data, zip.file.size);
      assert_int_equal(mix_npz_count(npz), 2);
      assert_non_null(mix_npz_get(npz, "bias"));
    }
    mutate_and_run(&zip.file, 50000, (uint64_t)compressed);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(damaged_npz_files)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
