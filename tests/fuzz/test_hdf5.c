/* The HDF5 target on damaged files of h5py. */
#include "fuzz/mutate.h"

#include "fuzz/fuzz_hdf5.c"

static void damaged_hdf5_files(void **state) {
  (void)state;
  static const char *const names[] = {"latest",
                                      "earliest",
                                      "refused",
                                      "small-earliest",
                                      "small-earliest-attributes",
                                      "small-earliest-chunks",
                                      "small-v108",
                                      "small-v108-attributes",
                                      "small-v108-chunks",
                                      "small-latest",
                                      "small-latest-attributes"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    static bytes good;
    char path[1024];
    snprintf(path, sizeof path, "%s/formats/hdf5/%s.h5", getenv("MIXTAPE_TESTS_DIR"), names[i]);
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    good.size = fread(good.data, 1, sizeof good.data, file);
    fclose(file);
    mutate_in_steps(&good, 97, 10000, 90 + i);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(damaged_hdf5_files)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
