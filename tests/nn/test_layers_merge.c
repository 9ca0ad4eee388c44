/* Layers that change shapes and merge inputs (docs/spec/keras.md, sections 1 and 7). */
#include "nn/layer_support.h"

static mix_tensor *bools(int rows, int columns, const uint8_t *values) {
  return mix_tensor_from(values, MIX_BOOL, MIX_SHAPE(rows, columns));
}
static mix_tensor *counted(mix_shape shape) {
  return mix_reshape(mix_range(0, (double)mix_shape_size(shape), 1, MIX_FLOAT32), shape);
}
static const mix_shape open_shape = {.rank = 2, .dims = {MIX_UNKNOWN, 4}};

/* ---- shapes ---- */

static void reshape(void **state) {
  (void)state;
  mix_tensor *x = counted(MIX_SHAPE(2, 6));
  mix_tensor *y = mix_call(mix_reshape_layer(MIX_SHAPE(3, 2)), x);
  expect_shape(y, MIX_SHAPE(2, 3, 2));
  EXPECT_EXACT(y, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11);
  expect_shape(mix_call(mix_reshape_layer(MIX_SHAPE(-1, 3)), x), MIX_SHAPE(2, 2, 3));
  expect_shape(mix_call(mix_reshape_layer(MIX_SHAPE(-1)), VECTOR(MIX_FLOAT32, 1, 2)), MIX_SHAPE(2, 1));
  /* unknown batch and number of steps */
  expect_shape(mix_call(mix_reshape_layer(MIX_SHAPE(-1, 2)), mix_input(.shape = open_shape)),
               MIX_SHAPE(MIX_UNKNOWN, MIX_UNKNOWN, 2));
  expect_refused(mix_call(mix_reshape_layer(MIX_SHAPE(4)), x), MIX_VALUE_ERROR, "fill");
  expect_refused(mix_call(mix_reshape_layer(MIX_SHAPE(-1, 4)), x), MIX_VALUE_ERROR, "fill");
  expect_refused(mix_call(mix_reshape_layer(MIX_SHAPE(4)), mix_input(.shape = MIX_SHAPE(6))), MIX_VALUE_ERROR,
                 "fill");
  expect_refused(mix_reshape_layer(MIX_SHAPE(-1, -1)), MIX_VALUE_ERROR, "one of which");
  expect_refused(mix_reshape_layer(MIX_SHAPE(-2)), MIX_VALUE_ERROR, "negative");
}
static void permute(void **state) {
  (void)state;
  mix_tensor *y = mix_call(mix_permute(MIX_AXES(2, 1)), counted(MIX_SHAPE(1, 2, 3)));
  expect_shape(y, MIX_SHAPE(1, 3, 2));
  EXPECT_EXACT(y, 0, 3, 1, 4, 2, 5);
  expect_refused(mix_permute(MIX_AXES(1, 1)), MIX_VALUE_ERROR, "dims");
  expect_refused(mix_permute(MIX_AXES(0, 1)), MIX_VALUE_ERROR, "dims");
  expect_refused(mix_permute(MIX_ALL_AXES), MIX_VALUE_ERROR, "dims");
  expect_refused(mix_call(mix_permute(MIX_AXES(2, 1)), counted(MIX_SHAPE(2, 3))), MIX_VALUE_ERROR, "rank");
}
static void repeat_vector(void **state) {
  (void)state;
  mix_tensor *y = mix_call(mix_repeat_vector(3), MATRIX(MIX_FLOAT32, 2, 2, 1, 2, 3, 4));
  expect_shape(y, MIX_SHAPE(2, 3, 2));
  EXPECT_EXACT(y, 1, 2, 1, 2, 1, 2, 3, 4, 3, 4, 3, 4);
  expect_refused(mix_repeat_vector(0), MIX_VALUE_ERROR, "n is 0");
  expect_refused(mix_call(mix_repeat_vector(2), VECTOR(MIX_FLOAT32, 1)), MIX_VALUE_ERROR, "rank");
}
static void masking(void **state) {
  (void)state;
  mix_tensor *x =
      mix_tensor_from_doubles((double[]){0, 0, 0, 5, -1, -1, 0, -1}, MIX_FLOAT32, MIX_SHAPE(2, 2, 2));
  mix_tensor *y = mix_call(mix_masking(), x);
  EXPECT_EXACT(y, 0, 0, 0, 5, -1, -1, 0, -1);
  expect_shape(y->mask, MIX_SHAPE(2, 2));
  EXPECT_EXACT(mix_cast(y->mask, MIX_INT32), 0, 1, 1, 1);
  y = mix_call(mix_masking(.mask_value = -1), x);
  EXPECT_EXACT(y, 0, 0, 0, 5, 0, 0, 0, -1);
  EXPECT_EXACT(mix_cast(y->mask, MIX_INT32), 1, 1, 0, 1);
  /* the value is compared in the compute dtype */
  mix_tensor *third = mix_fill(MIX_SHAPE(1, 1, 1), 1. / 3, MIX_FLOAT32);
  EXPECT_EXACT(
      mix_cast(mix_call(mix_masking(.mask_value = 1. / 3, .dtype = "mixed_float16"), third)->mask, MIX_INT32),
      0);
}

/* ---- merging ---- */

static void elementwise(void **state) {
  (void)state;
  mix_tensor *a = MATRIX(MIX_FLOAT32, 1, 3, 1, 2, 6), *b = MATRIX(MIX_FLOAT32, 1, 3, 4, -2, 3),
             *c = MATRIX(MIX_FLOAT32, 1, 3, 1, 3, 0);
  mix_list *three = mix_list_of(a, b, c);
  EXPECT_EXACT(mix_call(mix_add_layer(), three), 6, 3, 9);
  EXPECT_EXACT(mix_call(mix_subtract_layer(), mix_list_of(a, b)), -3, 4, 3);
  EXPECT_EXACT(mix_call(mix_multiply_layer(), three), 4, -12, 0);
  EXPECT_EXACT(mix_call(mix_average(), three), 2, 1, 3);
  EXPECT_EXACT(mix_call(mix_maximum_layer(), three), 4, 3, 6);
  EXPECT_EXACT(mix_call(mix_minimum_layer(), three), 1, -2, 0);
  EXPECT_EXACT(mix_call(mix_add_layer(), mix_list_of(a)), 1, 2, 6);
  EXPECT_EXACT(mix_call(mix_add_layer(), mix_list_of(MATRIX(MIX_INT32, 1, 1, 3), MATRIX(MIX_INT32, 1, 1, 4))),
               7);
  expect_refused(mix_call(mix_subtract_layer(), three), MIX_VALUE_ERROR, "exactly 2");
  expect_refused(mix_call(mix_add_layer(), a), MIX_VALUE_ERROR, "list");
  expect_refused(mix_call(mix_add_layer(), mix_list_of(a, counted(MIX_SHAPE(2, 3)))), MIX_VALUE_ERROR,
                 "batch size");
  expect_refused(mix_call(mix_add_layer(), mix_list_of(a, counted(MIX_SHAPE(1, 4)))), MIX_VALUE_ERROR,
                 "broadcast");
}
static void L30_lower_ranks_are_expanded_at_axis_1(void **state) {
  (void)state;
  mix_tensor *low = MATRIX(MIX_FLOAT32, 2, 3, 10, 20, 30, 40, 50, 60), *high = counted(MIX_SHAPE(2, 4, 3));
  mix_tensor *y = mix_call(mix_add_layer(), mix_list_of(low, high));
  expect_shape(y, MIX_SHAPE(2, 4, 3));
  double values[24];
  mix_tensor_read(y, MIX_FLOAT64, values, 24);
  for (int i = 0; i < 24; i++) assert_true(values[i] == i + 10 * (i / 12 * 3 + i % 3 + 1));
  mix_list *symbols =
      mix_list_of(mix_input(.shape = MIX_SHAPE(3)), mix_input(.shape = MIX_SHAPE(MIX_UNKNOWN, 3)));
  expect_shape(mix_call(mix_add_layer(), symbols), MIX_SHAPE(MIX_UNKNOWN, MIX_UNKNOWN, 3));
}
/* Every element of the first argument's list is cast (docs/spec/mixed_precision.md, 5.1). */
static void inputs_of_merges_are_cast(void **state) {
  (void)state;
  mix_tensor *a = MATRIX(MIX_FLOAT32, 1, 1, 1), *b = MATRIX(MIX_FLOAT64, 1, 1, 2);
  expect_dtype(mix_call(mix_add_layer(.dtype = "mixed_bfloat16"), mix_list_of(a, b)), MIX_BFLOAT16);
  expect_dtype(mix_call(mix_concatenate(.dtype = "mixed_float16"), mix_list_of(a, b)), MIX_FLOAT16);
}
static void masks_of_merges(void **state) {
  (void)state;
  mix_tensor *x = counted(MIX_SHAPE(1, 3, 2)), *y = counted(MIX_SHAPE(1, 3, 2));
  mix_tensor *first = bools(1, 3, (uint8_t[]){1, 1, 0}), *second = bools(1, 3, (uint8_t[]){0, 1, 1});
  mix_list *inputs = mix_list_of(x, y);
  EXPECT_EXACT(
      mix_cast(mix_call(mix_add_layer(), inputs, .masks = mix_list_of(first, second))->mask, MIX_INT32), 0, 1,
      0);
  assert_ptr_equal(mix_call(mix_add_layer(), inputs, .masks = mix_list_of(NULL, second))->mask, second);
  assert_null(mix_call(mix_add_layer(), inputs)->mask);
  /* along the features the masks are combined by and; along the steps they are concatenated */
  EXPECT_EXACT(
      mix_cast(mix_call(mix_concatenate(), inputs, .masks = mix_list_of(first, second))->mask, MIX_INT32), 0,
      1, 0);
  EXPECT_EXACT(mix_cast(mix_call(mix_concatenate(.axis = 1), inputs, .masks = mix_list_of(first, NULL))->mask,
                        MIX_INT32),
               1, 1, 0, 1, 1, 1);
  assert_null(mix_call(mix_concatenate(), inputs)->mask);
  assert_null(mix_call(mix_dot(.axes = MIX_AXES(2)), inputs, .masks = mix_list_of(first, second))->mask);
}
/* Keras 3: masks are combined by or, and there is no mask if an input has none. Multiply, Maximum and Minimum
 * ignore masked values. The numbers are Keras 3's. */
static void masks_of_merges_in_keras3(void **state) {
  (void)state;
  mix_set_semantics("keras3");
  mix_tensor *a = mix_tensor_from_doubles((double[]){1, 2, 3, 4, 5, 6}, MIX_FLOAT32, MIX_SHAPE(1, 3, 2));
  mix_tensor *b = mix_tensor_from_doubles((double[]){7, 1, -1, 5, 2, 9}, MIX_FLOAT32, MIX_SHAPE(1, 3, 2));
  mix_tensor *first = bools(1, 3, (uint8_t[]){1, 0, 0}), *second = bools(1, 3, (uint8_t[]){1, 1, 0});
  const struct {
    mix_layer *layer;
    double both[6], one[6];
  } rows[] = {{mix_add_layer(), {8, 3, 2, 9, 7, 15}, {8, 3, 2, 9, 7, 15}},
              {mix_subtract_layer(), {-6, 1, 4, -1, 3, -3}, {-6, 1, 4, -1, 3, -3}},
              {mix_average(), {4, 1.5, 1, 4.5, 3.5, 7.5}, {4, 1.5, 1, 4.5, 3.5, 7.5}},
              {mix_multiply_layer(), {7, 2, -1, 5, 0, 0}, {7, 2, -1, 5, 2, 9}},
              {mix_maximum_layer(), {7, 2, -1, 5, 5, 6}, {7, 2, -1, 5, 2, 9}},
              {mix_minimum_layer(), {1, 1, -1, 5, 5, 6}, {1, 1, -1, 5, 2, 9}}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    mix_tensor *y = mix_call(rows[i].layer, mix_list_of(a, b), .masks = mix_list_of(first, second));
    expect_values(y, 6, rows[i].both, 0, 0);
    EXPECT_EXACT(mix_cast(y->mask, MIX_INT32), 1, 1, 0);
    y = mix_call(rows[i].layer, mix_list_of(a, b), .masks = mix_list_of(first, NULL));
    expect_values(y, 6, rows[i].one, 0, 0);
    assert_null(y->mask);
  }
  mix_tensor *y = mix_call(mix_concatenate(), mix_list_of(a, b), .masks = mix_list_of(first, second));
  EXPECT_EXACT(mix_cast(y->mask, MIX_INT32), 1, 1, 0);
  /* inputs that are expanded lose their masks */
  mix_tensor *row = MATRIX(MIX_FLOAT32, 1, 2, 2, 3);
  EXPECT_EXACT(mix_call(mix_multiply_layer(), mix_list_of(a, row), .masks = mix_list_of(first, NULL)), 2, 6,
               6, 12, 10, 18);
}
static void concatenate(void **state) {
  (void)state;
  mix_tensor *a = MATRIX(MIX_FLOAT32, 2, 1, 1, 2), *b = MATRIX(MIX_FLOAT32, 2, 2, 3, 4, 5, 6);
  EXPECT_EXACT(mix_call(mix_concatenate(), mix_list_of(a, b)), 1, 3, 4, 2, 5, 6);
  EXPECT_EXACT(mix_call(mix_concatenate(.axis = MIX_AXIS_0), mix_list_of(a, a)), 1, 2, 1, 2);
  expect_refused(mix_call(mix_concatenate(.axis = MIX_AXIS_0), mix_list_of(a, b)), MIX_VALUE_ERROR, "fit");
  expect_refused(mix_call(mix_concatenate(.axis = 2), mix_list_of(a, b)), MIX_VALUE_ERROR, "axis 2");
  expect_refused(mix_call(mix_concatenate(), a), MIX_VALUE_ERROR, "list");
}
static void dot(void **state) {
  (void)state;
  mix_tensor *a = MATRIX(MIX_FLOAT32, 2, 2, 1, 2, 3, 4), *b = MATRIX(MIX_FLOAT32, 2, 2, 5, 6, 7, 8);
  mix_tensor *y = mix_call(mix_dot(.axes = MIX_AXES(1)), mix_list_of(a, b));
  expect_shape(y, MIX_SHAPE(2, 1));
  EXPECT_EXACT(y, 17, 53);
  /* (1, 2, 3) with (1, 3, 2) along the threes: rows times columns */
  mix_tensor *x = counted(MIX_SHAPE(1, 2, 3)), *z = counted(MIX_SHAPE(1, 3, 2));
  y = mix_call(mix_dot(.axes = MIX_AXES(2, 1)), mix_list_of(x, z));
  expect_shape(y, MIX_SHAPE(1, 2, 2));
  EXPECT_EXACT(y, 10, 13, 28, 40);
  y = mix_call(mix_dot(.axes = MIX_AXES(1, 2)),
               mix_list_of(x, z)); /* along the twos: sum_k x[k, i] z[j, k] */
  expect_shape(y, MIX_SHAPE(1, 3, 3));
  EXPECT_EXACT(y, 3, 9, 15, 4, 14, 24, 5, 19, 33);
  expect_shape(mix_call(mix_dot(.axes = MIX_AXES(-1)), mix_list_of(a, counted(MIX_SHAPE(2, 5, 2)))),
               MIX_SHAPE(2, 5));
  expect_shape(mix_call(mix_dot(.axes = MIX_AXES(2, 1)),
                        mix_list_of(counted(MIX_SHAPE(1, 2, 3)), counted(MIX_SHAPE(1, 3, 4, 5)))),
               MIX_SHAPE(1, 2, 4, 5));
  EXPECT(mix_call(mix_dot(.axes = MIX_AXES(1), .normalize = true),
                  mix_list_of(MATRIX(MIX_FLOAT32, 1, 2, 3, 4), MATRIX(MIX_FLOAT32, 1, 2, 4, 3))),
         0, 1e-6, 0.96);
  mix_tensor *symbol = mix_input(.shape = MIX_SHAPE(MIX_UNKNOWN, 3));
  expect_shape(mix_call(mix_dot(.axes = MIX_AXES(2)), mix_list_of(symbol, symbol)),
               MIX_SHAPE(MIX_UNKNOWN, MIX_UNKNOWN, MIX_UNKNOWN));
  expect_refused(mix_call(mix_dot(.axes = MIX_AXES(1)), mix_list_of(a, counted(MIX_SHAPE(2, 3)))),
                 MIX_VALUE_ERROR, "differ");
  expect_refused(mix_call(mix_dot(.axes = MIX_AXES(0)), mix_list_of(a, b)), MIX_VALUE_ERROR, "batch");
  expect_refused(mix_call(mix_dot(.axes = MIX_AXES(3)), mix_list_of(a, b)), MIX_VALUE_ERROR, "outside");
  expect_refused(mix_call(mix_dot(.axes = MIX_AXES(1)), mix_list_of(a)), MIX_VALUE_ERROR, "exactly 2");
  expect_refused(mix_dot(.axes = MIX_ALL_AXES), MIX_VALUE_ERROR, "axes");
}

int main(void) {
  const struct CMUnitTest tests[] = {TEST(reshape),
                                     TEST(permute),
                                     TEST(repeat_vector),
                                     TEST(masking),
                                     TEST(elementwise),
                                     TEST(L30_lower_ranks_are_expanded_at_axis_1),
                                     TEST(inputs_of_merges_are_cast),
                                     TEST(masks_of_merges),
                                     TEST(masks_of_merges_in_keras3),
                                     TEST(concatenate),
                                     TEST(dot)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
