/* The target of the index of sharded weights, on damaged ones. */
#include "fuzz/mutate.h"

#include "fuzz/fuzz_weight_shards.c"

/* The index that the library writes, whose shards the target has. */
static void damaged_indexes(void **state) {
  (void)state;
  static bytes good;
  assert_true(make_shards());
  FILE *file = fopen(path_of_file("w.weights.json"), "rb");
  good.size = fread(good.data, 1, sizeof good.data, file);
  fclose(file);
  assert_true(good.size > 100 && strstr((char *)good.data, "w_00002.weights.h5"));
  MIX_SCOPE { assert_int_equal(mix_model_load_weights(model_of(3), path_of_file("w.weights.json")), MIX_OK); }
  mutate_in_steps(&good, 7, 800, 60);
  misplaced_words(&good, 800, 61);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(damaged_indexes)};
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  mix_shutdown();
  return failed;
}
