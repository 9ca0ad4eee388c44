/* The target of ONNX on damaged graphs. */
#include "fuzz/mutate.h"

#include "fuzz/fuzz_onnx.c"
#include "onnx/graphs.h"

static void damage(mix_message good, int rounds, uint64_t seed) {
  static bytes file;
  assert_true(!good.failed && good.size <= sizeof file.data);
  memcpy(file.data, good.data, good.size);
  file.size = good.size;
  mix_message_free(&good);
  MIX_SCOPE {
    mix_onnx_file read;
    assert_true(mix_onnx_open_memory(&read, "good", file.data, file.size));
    assert_non_null(mix_import_file(&read, NULL));
  }
  mutate_and_run(&file, rounds, seed);
}

static void damaged_products(void **state) {
  (void)state;
  damage(graph_mlp(), 2000, 1);
}
static void damaged_convolutions(void **state) {
  (void)state;
  damage(graph_cnn(), 2000, 2);
}
static void damaged_words(void **state) {
  (void)state;
  damage(graph_words(), 2000, 3);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(damaged_products),
                                     cmocka_unit_test(damaged_convolutions), cmocka_unit_test(damaged_words)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
