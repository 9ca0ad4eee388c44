/* The target of Keras's files on damaged ones of both generations (tests/saving/files/record.py). */
#include "fuzz/mutate.h"

#include "base/alloc.h"
#include "formats/zip_members.h"
#include "fuzz/fuzz_keras_file.c"

static const struct {
  const char *generation, *file;
} seeds[] = {{"keras3", "scaled.keras"},      {"tf_keras", "schedule.keras"},
             {"keras3", "schedule.h5"},       {"tf_keras", "old_scaled.h5"},
             {"keras3", "scaled.weights.h5"}, {"tf_keras", "pieces.legacy.h5"}};

/* The target loads it. */
static void check_seed(const bytes *good) {
  mix_keras_file file;
  assert_true(mix_keras_file_open_memory(&file, "seed", good->data, good->size, false));
  mix_keras_file_close(&file);
  if (!mix_keras_file_open_memory(&file, "seed", good->data, good->size, true)) {
    assert_true(strstr(mix_error_message(), "no model in the file"));
    mix_error_clear();
    return;
  }
  const mix_load_options options = {.size = sizeof options, .path = "seed"};
  MIX_SCOPE { assert_non_null(mix_model_of_file(&file, &options)); }
  mix_keras_file_close(&file);
}

static void damaged_files_of_keras(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof seeds / sizeof *seeds; i++) {
    static bytes good;
    char path[1024];
    snprintf(path, sizeof path, "%s/saving/files/%s.zip", getenv("MIXTAPE_TESTS_DIR"), seeds[i].generation);
    void *file = mix_zip_read(mix_zip_open(path), seeds[i].file, sizeof good.data, &good.size);
    assert_non_null(file);
    memcpy(good.data, file, good.size);
    mix_free(file);
    check_seed(&good);
    mutate_in_steps(&good, 211, 5000, 80 + i);
    large_numbers_in_place(&good, 1000, 90 + i);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(damaged_files_of_keras)};
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  mix_shutdown();
  return failed;
}
