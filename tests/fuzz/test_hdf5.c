/* The HDF5 target on damaged files of h5py and of the library's own writer. */
#include "fuzz/mutate.h"

#include "formats/written_hdf5.h"
#include <mixtape/mixtape.h>

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

/* Groups of one leaf and of two, attributes of every kind, a large array among small ones. */
static void fill(mix_hdf5_writer *writer, int links, int64_t elements) {
  char path[32];
  for (int i = 0; i < links; i++) {
    snprintf(path, sizeof path, "layers/d%d/vars/0", i);
    mix_hdf5_write_tensor(writer, path, mix_range(0, (double)(i % 5), 1, MIX_FLOAT32));
  }
  mix_hdf5_write_group(writer, "layers");
  mix_hdf5_write_tensor(writer, "large", mix_range(0, (double)elements, 1, MIX_FLOAT32));
  mix_hdf5_write_tensor(writer, "half", mix_range(0, 3, 1, MIX_BFLOAT16));
  mix_hdf5_write_tensor(writer, "flags", mix_fill(MIX_SHAPE(3), 1, MIX_BOOL));
  mix_hdf5_write_text(writer, "", "model_config", "{}");
  mix_hdf5_write_texts(writer, "", "layer_names", 2, (const char *const[]){"d0", "d10"});
  mix_hdf5_write_texts(writer, "layers", "weight_names0", 0, NULL);
}

static void damaged_files_of_the_writer(void **state) {
  (void)state;
  static const struct { int links, elements; } files[] = {{0, 0}, {2, 3}, {20, 1500}};
  for (size_t i = 0; i < sizeof files / sizeof *files; i++)
    MIX_SCOPE {
      static bytes good;
      written_hdf5 own;
      mix_hdf5_writer *writer = mix_hdf5_writer_new("test");
      fill(writer, files[i].links, files[i].elements);
      assert_true(take_hdf5(writer, &own) && own.size <= sizeof good.data);
      memcpy(good.data, own.data, own.size);
      good.size = own.size;
      free(own.data);
      mutate_in_steps(&good, 97, 10000, 190 + i);
    }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(damaged_hdf5_files),
                                     cmocka_unit_test(damaged_files_of_the_writer)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
