/* Kernels of integers that stay in the mapping of their file while LoRA trains beside them. */
#include "support/skip.h"
#include "model/support.h"

#include "graph/variable.h"
#include "support/folder.h"
#include <mixtape/lora.h>

enum { WIDTH = 128, ROWS = 8 }; /* kernels of 16 KiB in int8 and of 8 KiB in int4 */

static mix_model *model_of(const char *mode, int64_t block) {
  mix_set_semantics("keras3");
  mix_tensor *x = mix_input(.shape = MIX_SHAPE(WIDTH));
  mix_tensor *y = mix_call(mix_dense(WIDTH, "tanh", .name = "a"), x);
  mix_model *model = mix_model_new(x, mix_call(mix_dense(WIDTH, .name = "b"), y));
  mix_model_quantize(model, mode, .block_size = block);
  assert_no_error();
  return model;
}

static mix_tensor *trained(const char *path, bool copies, bool *in_file) {
  mix_set_seed(1); /* of LoRA's weights */
  mix_model *model = mix_model_load(path, .copy_weights = copies);
  mix_model_enable_lora(model, 4);
  mix_model_compile(model, .loss = "mse", .optimizer = mix_sgd(.learning_rate = 0.1));
  int64_t state[2] = {3, 0};
  mix_tensor *seed = mix_tensor_from(state, MIX_INT64, MIX_SHAPE(2)),
             *x = mix_stateless_uniform(seed, MIX_SHAPE(ROWS, WIDTH), F32);
  mix_model_fit(model, x, mix_fill(MIX_SHAPE(ROWS, WIDTH), 1, F32), .epochs = 3, .quiet = true);
  mix_tensor *prediction = mix_list_get(mix_model_predict(model, x), 0);
  assert_no_error();
  *in_file = variable_at(model, "a/kernel")->in_file && variable_at(model, "b/kernel")->in_file;
  return prediction;
}

static void kernels_stay_in_the_file(void **state) {
  (void)state;
  if (!on_host()) SKIP("the device has memory of its own");
  static const struct {
    const char *mode;
    int64_t block;
  } cases[] = {{"int8", 0}, {"int4", -1}, {"int4", 32}};
  const char *path = in_folder("quantized.keras");
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    bool mapped, copied;
    mix_model *model = model_of(cases[i].mode, cases[i].block);
    assert_int_equal(mix_variable_true_dtype(variable_at(model, "a/kernel")), MIX_INT8);
    mix_model_save(model, path);
    mix_tensor *y = trained(path, false, &mapped), *same = trained(path, true, &copied);
    assert_true(mapped && !copied);
    assert_memory_equal(mix_tensor_data(y), mix_tensor_data(same), ROWS * WIDTH * sizeof(float));
  }
}

static int begin(void **state) { return folder_begin(state) || setup(state); }
static int end(void **state) { return teardown(state) || folder_end(state); }

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test_setup_teardown(kernels_stay_in_the_file, begin, end)};
  return cmocka_run_group_tests_name("integers in files", tests, NULL, NULL);
}
