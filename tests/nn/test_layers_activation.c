/* Activation layers: values of docs/spec/keras.md, section 8, and the masks of Softmax
 * (docs/spec/mixed_precision.md, 5.1 and 5.2). */
#include "nn/layer_support.h"

static mix_tensor *mask_of(int rows, int columns, const uint8_t *values) {
  return mix_tensor_from(values, MIX_BOOL, MIX_SHAPE(rows, columns));
}

static void relu(void **state) {
  (void)state;
  mix_tensor *x = MATRIX(MIX_FLOAT32, 1, 5, -2, -0.5, 0, 1, 3);
  EXPECT_EXACT(mix_call(mix_relu_layer(), x), 0, 0, 0, 1, 3);
  EXPECT_EXACT(mix_call(mix_relu_layer(.max_value = 2), x), 0, 0, 0, 1, 2);
  EXPECT_EXACT(mix_call(mix_relu_layer(.max_value = MIX_ZERO), x), 0, 0, 0, 0, 0);
  EXPECT_EXACT(mix_call(mix_relu_layer(.negative_slope = 0.5), x), -1, -0.25, 0, 1, 3);
  /* the specification's table gives x at the threshold; both generations of Keras give 0 */
  EXPECT_EXACT(mix_call(mix_relu_layer(.negative_slope = 0.5, .threshold = 1), x), -1.5, -0.75, -0.5, 0, 3);
  EXPECT_EXACT(mix_call(mix_relu_layer(.negative_slope = 0.5, .threshold = 1, .max_value = 2), x), -1.5,
               -0.75, -0.5, 0, 2);
  expect_refused(mix_relu_layer(.max_value = -1), MIX_VALUE_ERROR, "max_value is -1");
  expect_refused(mix_relu_layer(.negative_slope = -1), MIX_VALUE_ERROR, "negative_slope is -1");
  expect_refused(mix_relu_layer(.threshold = NAN), MIX_VALUE_ERROR, "threshold is nan");
}
static void leaky_elu_and_thresholded(void **state) {
  (void)state;
  mix_tensor *x = MATRIX(MIX_FLOAT32, 1, 5, -2, -0.5, 0, 1, 3);
  EXPECT(mix_call(mix_leaky_relu_layer(), x), 0, 2e-7, -0.6, -0.15, 0, 1,
         3); /* float32 roundings of 0.3 and the product */
  EXPECT_EXACT(mix_call(mix_leaky_relu_layer(.negative_slope = MIX_ZERO), x), 0, 0, 0, 1, 3);
  EXPECT(mix_call(mix_elu_layer(), x), 0, 1e-6, expm1(-2), expm1(-0.5), 0, 1, 3);
  EXPECT(mix_call(mix_elu_layer(.alpha = 2), x), 0, 1e-6, 2 * expm1(-2), 2 * expm1(-0.5), 0, 1, 3);
  EXPECT_EXACT(mix_call(mix_elu_layer(.alpha = MIX_ZERO), x), 0, 0, 0, 1, 3);
  EXPECT_EXACT(mix_call(mix_thresholded_relu(), x), 0, 0, 0, 0, 3); /* 1 is not above 1 */
  EXPECT_EXACT(mix_call(mix_thresholded_relu(.theta = MIX_ZERO), x), 0, 0, 0, 1, 3);
  expect_refused(mix_leaky_relu_layer(.negative_slope = -0.1), MIX_VALUE_ERROR, "-0.1");
  expect_refused(mix_thresholded_relu(.theta = -1), MIX_VALUE_ERROR, "theta is -1");
}
static void prelu(void **state) {
  (void)state;
  mix_tensor *x =
      mix_tensor_from_doubles((double[]){-1, -2, 3, -4, 5, -6, -7, 8}, MIX_FLOAT32, MIX_SHAPE(2, 2, 2));
  mix_layer *layer = mix_prelu();
  EXPECT_EXACT(mix_call(layer, x), 0, 0, 3, 0, 5, 0, 0, 8);
  mix_layer_set_weights(layer, mix_list_of(MATRIX(MIX_FLOAT32, 2, 2, 1, 0.5, 2, 0.25)));
  EXPECT_EXACT(mix_call(layer, x), -1, -1, 3, -1, 5, -3, -14, 8);
  mix_layer *shared = mix_prelu(.shared_axes = MIX_AXES(1), .alpha_initializer = "ones");
  EXPECT_EXACT(mix_call(shared, x), -1, -2, 3, -4, 5, -6, -7, 8);
  expect_shape(mix_list_get(mix_layer_get_weights(shared), 0), MIX_SHAPE(1, 2));
  assert_string_equal(mix_variable_name(mix_list_get(mix_layer_weights(shared), 0)), "p_re_lu_1/alpha");
  expect_refused(mix_call(layer, mix_fill(MIX_SHAPE(2, 2, 3), 1, MIX_FLOAT32)), MIX_VALUE_ERROR, "size 2");
  expect_refused(mix_call(mix_prelu(.shared_axes = MIX_AXES(0)), x), MIX_VALUE_ERROR, "shared axis 0");
  expect_refused(mix_call(mix_prelu(.shared_axes = MIX_AXES(3)), x), MIX_VALUE_ERROR, "shared axis 3");
  expect_refused(mix_call(mix_prelu(), mix_input(.shape = MIX_SHAPE(MIX_UNKNOWN, 2))), MIX_VALUE_ERROR,
                 "shared_axes");
  mix_layer *open = mix_prelu(.shared_axes = MIX_AXES(-2));
  expect_shape(mix_call(open, mix_input(.shape = MIX_SHAPE(MIX_UNKNOWN, 2))),
               MIX_SHAPE(MIX_UNKNOWN, MIX_UNKNOWN, 2));
}
static void softmax_over_axes(void **state) {
  (void)state;
  mix_tensor *x = MATRIX(MIX_FLOAT32, 2, 2, 0, log(3), log(2), log(2));
  EXPECT(mix_call(mix_softmax_layer(), x), 0, 1e-6, 0.25, 0.75, 0.5, 0.5);
  EXPECT(mix_call(mix_softmax_layer(.axis = MIX_AXES(0)), x), 0, 1e-6, 1. / 3, 0.6, 2. / 3, 0.4);
  EXPECT(mix_call(mix_softmax_layer(.axis = MIX_AXES(0, -1)), x), 0, 1e-6, 0.125, 0.375, 0.25, 0.25);
  expect_refused(mix_call(mix_softmax_layer(.axis = MIX_AXES(2)), x), MIX_VALUE_ERROR, "outside");
  expect_refused(mix_call(mix_softmax_layer(.axis = MIX_AXES(1, -1)), x), MIX_VALUE_ERROR, "twice");
  mix_tensor *infinite = MATRIX(MIX_FLOAT32, 2, 2, -INFINITY, 0, -INFINITY, -INFINITY);
  EXPECT_EXACT(mix_call(mix_softmax_layer(.axis = MIX_AXES(0, 1)), infinite), 0, 1, 0, 0);
}
static void softmax_of_a_vector(void **state) {
  (void)state;
  expect_refused(mix_call(mix_softmax_layer(), VECTOR(MIX_FLOAT32, 1, 1)), MIX_VALUE_ERROR, "rank");
  EXPECT_EXACT(
      mix_call(mix_softmax_layer(.semantics = mix_semantics_named("keras3")), VECTOR(MIX_FLOAT32, 1, 1)), 0.5,
      0.5);
}
static void L31_all_masked_row(void **state) {
  (void)state;
  mix_tensor *x = MATRIX(MIX_FLOAT32, 2, 3, 1, 2, 3, 1, 1, 9);
  mix_tensor *mask = mask_of(2, 3, (uint8_t[]){0, 0, 0, 1, 1, 0});
  /* tf_keras: -1e9 absorbs logits of this size; keras3: zeros */
  EXPECT(mix_call(mix_softmax_layer(), x, .mask = mask), 0, 1e-6, 1. / 3, 1. / 3, 1. / 3, 0.5, 0.5, 0);
  mix_set_semantics("keras3");
  EXPECT(mix_call(mix_softmax_layer(), x, .mask = mask), 0, 1e-6, 0, 0, 0, 0.5, 0.5, 0);
  EXPECT(mix_call(mix_softmax_layer(.axis = MIX_AXES(0, 1)), x, .mask = mask), 0, 1e-6, 0, 0, 0, 0.5, 0.5, 0);
  /* keras3 treats numbers above 0.5 as true */
  mix_tensor *shares = MATRIX(MIX_FLOAT32, 2, 3, 0.5, 0.4, 0, 0.6, 2, 0.1);
  EXPECT(mix_call(mix_softmax_layer(), x, .mask = shares), 0, 1e-6, 0, 0, 0, 0.5, 0.5, 0);
}
/* The substitute for -infinity is visible if a masked logit is as much larger than the kept one. */
static void softmax_mask_constants(void **state) {
  (void)state;
  const struct {
    const char *semantics, *dtype;
    double lowest;
    bool added;
  } rows[] = {{"tf_keras", "float16", -32752, true},      {"tf_keras", "bfloat16", -1e9, true},
              {"tf_keras", "float32", -1e9, true},        {"experimental", "float16", -65504, true},
              {"keras3", "float16", -3e4, false},         {"keras3", "bfloat16", -1e9, false},
              {"keras3", "mixed_float16", -3e4, false},   {"tf_keras", "mixed_float16", -32752, true},
              {"tf_keras", "mixed_bfloat16", -1e9, true}, {"keras3", "float32", -1e9, false}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    mix_set_semantics(rows[i].semantics);
    mix_dtype dtype = strstr(rows[i].dtype, "bfloat16")  ? MIX_BFLOAT16
                      : strstr(rows[i].dtype, "float16") ? MIX_FLOAT16
                                                         : MIX_FLOAT32;
    /* The kept logit equals the constant: with a constant added to the masked logit, both have equal
     * shares. */
    mix_tensor *x = MATRIX(dtype, 1, 2, 0, rows[i].lowest);
    mix_tensor *y =
        mix_call(mix_softmax_layer(.dtype = rows[i].dtype), x, .mask = mask_of(1, 2, (uint8_t[]){0, 1}));
    expect_dtype(y, dtype);
    if (rows[i].added)
      EXPECT_EXACT(y, 0.5, 0.5);
    else
      EXPECT_EXACT(y, 0, 0.5);
  }
}
static void softmax_remembers_its_logits(void **state) {
  (void)state;
  mix_tensor *x = MATRIX(MIX_FLOAT32, 1, 2, 1, 2);
  assert_ptr_equal(mix_call(mix_softmax_layer(), x)->logits, x);
  mix_set_semantics("keras3");
  assert_null(mix_call(mix_softmax_layer(), x, .mask = mask_of(1, 2, (uint8_t[]){1, 1}))->logits);
}
static void masks_pass(void **state) {
  (void)state;
  mix_tensor *mask = mask_of(1, 2, (uint8_t[]){1, 0}), *x = MATRIX(MIX_FLOAT32, 1, 2, 1, 2);
  mix_layer *layers[] = {mix_softmax_layer(), mix_relu_layer(), mix_leaky_relu_layer(),
                         mix_prelu(),         mix_elu_layer(),  mix_thresholded_relu()};
  for (int i = 0; i < 6; i++) assert_ptr_equal(mix_call(layers[i], x, .mask = mask)->mask, mask);
}

int main(void) {
  const struct CMUnitTest tests[] = {TEST(relu),
                                     TEST(leaky_elu_and_thresholded),
                                     TEST(prelu),
                                     TEST(softmax_over_axes),
                                     TEST(softmax_of_a_vector),
                                     TEST(L31_all_masked_row),
                                     TEST(softmax_mask_constants),
                                     TEST(softmax_remembers_its_logits),
                                     TEST(masks_pass)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
