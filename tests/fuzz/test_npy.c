/* The .npy target on damaged files. */
#include "fuzz/mutate.h"

#include "fuzz/fuzz_npy.c"

static void damaged_npy_files(void **state) {
  (void)state;
  static const char *const dictionaries[] = {
      "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }         \n",
      "{'descr': '>u2', 'fortran_order': True, 'shape': (3, 4), }  \n",
      "{'descr': '|b1', 'fortran_order': False, 'shape': (24,), }\n",
      "{'descr': '<i8', 'fortran_order': True, 'shape': (3, 1), }\n",
      "{'descr': '<f8', 'fortran_order': False, 'shape': (), }\n",
  };
  static const size_t sizes[] = {24, 24, 24, 24, 8};
  for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
    for (int version = 1; version <= 2; version++) {
      static bytes good;
      good.size = 0;
      put_npy(&good, version, dictionaries[i], "abcdefghijklmnopqrstuvwx", sizes[i]);
      assert_non_null(mix_npy_read_memory("good", good.data, good.size));
      mutate_and_run(&good, 20000, i * 10 + (uint64_t)version);
    }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(damaged_npy_files)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
