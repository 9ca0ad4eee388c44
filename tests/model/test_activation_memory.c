/* What a training step keeps of each example for the backward pass: in 16-bit policies at most 0.55 of
 * float32's bytes, in a residual network with normalisations. Arguments and small values leave a margin above
 * one half. */
#include "model/support.h"
#include <mixtape/convolution.h>
#include <mixtape/function.h>
#include <mixtape/random.h>

enum { SIDE = 8, CHANNELS = 8, BLOCKS = 4, LAYERS = 1 + 2 * BLOCKS };

static mix_tensor *normalized(mix_tensor *x, int64_t filters) {
  x = mix_call(mix_conv2d(filters, 3, .padding = "same", .no_bias = true), x);
  return mix_call(mix_batch_normalization(), x);
}

static mix_tensor *relu(mix_tensor *x) { return mix_call(mix_activation("relu"), x); }

static mix_model *residual_network(void) {
  mix_tensor *inputs = mix_input(.shape = MIX_SHAPE(SIDE, SIDE, 3)), *x = relu(normalized(inputs, CHANNELS));
  for (int block = 0; block < BLOCKS; block++) {
    mix_tensor *y = normalized(relu(normalized(x, CHANNELS)), CHANNELS);
    x = relu(mix_call(mix_add_layer(.name = NULL), mix_list_of(x, y)));
  }
  x = mix_call(mix_dense(10), mix_call(mix_global_average_pooling2d(.name = NULL), x));
  return mix_model_new(inputs, mix_call(mix_activation("softmax", .dtype = "float32"), x));
}

static double bytes_of_step(const char *policy, int64_t batch) {
  double bytes = 0;
  MIX_SCOPE {
    mix_set_seed(1);
    mix_set_global_policy(policy);
    mix_model *model = residual_network();
    mix_model_compile(model, .loss = "sparse_categorical_crossentropy", .optimizer = mix_sgd());
    mix_tensor *x = mix_random_uniform(mix_generator_new(1), MIX_SHAPE(batch, SIDE, SIDE, 3), MIX_FLOAT32);
    mix_model_train_on_batch(model, x, mix_fill(MIX_SHAPE(batch), 0, MIX_INT32));
    mix_plan_report report;
    mix_function_report(mix_model_train_function(model), &report, sizeof report);
    mix_set_global_policy("float32");
    bytes = (double)report.arena_bytes;
  }
  assert_int_equal(mix_error(), MIX_OK);
  return bytes;
}

static double bytes_of_example(const char *policy) {
  enum { FEW = 4, MANY = 12 };
  return (bytes_of_step(policy, MANY) - bytes_of_step(policy, FEW)) / (MANY - FEW);
}

static void at_most_55_percent_of_float32(void **state) {
  (void)state;
  const double full = bytes_of_example("float32");
  /* Of each layer the results of convolution and activation. */
  const double least = LAYERS * 2 * SIDE * SIDE * CHANNELS * 4.0;
  print_message("float32 %.0f bytes an example, %.2f of two values a layer\n", full, full / least);
  assert_true(full <= 1.2 * least);
  static const char *const policies[] = {"mixed_float16", "mixed_bfloat16"};
  for (int i = 0; i < 2; i++) {
    const double half = bytes_of_example(policies[i]);
    print_message("%s %.3f of it\n", policies[i], half / full);
    assert_true(half <= 0.55 * full);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {TEST(at_most_55_percent_of_float32)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
