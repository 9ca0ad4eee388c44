/* The target of checkpoints in memory on damaged ones of two models, with a position in the data. */
#include "fuzz/mutate.h"

#include "fuzz/fuzz_checkpoint_memory.c"

static void damaged_checkpoints(void **state) {
  (void)state;
  static bytes good;
  make_checkpoint();
  MIX_SCOPE {
    mix_iterator *batches = mix_dataset_iterate(dataset);
    assert_non_null(mix_iterator_next(batches));
    mix_tensor *whole = mix_checkpoint_to_memory(checkpoint, 3, batches);
    assert_non_null(whole);
    good.size = (size_t)mix_shape_size(mix_tensor_shape(whole));
    assert_true(good.size <= sizeof good.data);
    memcpy(good.data, mix_tensor_data(whole), good.size);
  }
  assert_int_equal(give_back(good.data, good.size), 3); /* the valid one */
  mutate_and_run(&good, 3000, 6);
  assert_int_equal(give_back(good.data, good.size), 3); /* no damage left anything behind */
  mix_release(checkpoint);
  mix_release(dataset);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(damaged_checkpoints)};
  return cmocka_run_group_tests(tests, folder_begin, data_end);
}
