/* Which inputs a layer casts: rows A01 to A15 of docs/spec/mixed_precision.md, 9.3, and W18, W23, W24.
 * A14 and A15 are in the tests of Embedding and LayerNormalization. NumPy arrays are
 * tensors here (A11). */
/* Holds docs/NUMERICS.md: Terms. */
#include "nn/custom.h"

static mix_tensor *input(mix_dtype dtype) { return mix_fill(MIX_SHAPE(2, 3), 1, dtype); }

/* Records the dtype that the layer's call sees. */
static mix_dtype seen;
static mix_list *see_input(mix_layer *layer, const mix_call_args *args) {
  (void)layer;
  seen = mix_tensor_dtype(mix_call_input(args, 0));
  return mix_list_of(mix_call_input(args, 0));
}

static void A01_mixed_dense_casts_down(void **state) {
  (void)state;
  expect_dtype(mix_call(mix_dense(.units = 2, .dtype = "mixed_float16"), input(MIX_FLOAT32)), MIX_FLOAT16);
  mix_call(probe_new("mixed_float16", see_input, NULL), input(MIX_FLOAT32));
  assert_int_equal(seen, MIX_FLOAT16);
}
static void A02_float32_dense_casts_float64(void **state) {
  (void)state;
  expect_dtype(mix_call(mix_dense(.units = 2, .dtype = "float32"), input(MIX_FLOAT64)), MIX_FLOAT32);
}
static void A03_float64_dense_casts_up(void **state) {
  (void)state;
  expect_dtype(mix_call(mix_dense(.units = 2, .dtype = "float64"), input(MIX_FLOAT16)), MIX_FLOAT64);
}
static void A04_integers_stay(void **state) {
  (void)state;
  mix_layer *layer = mix_layer_new(&my_layer_class, .dtype = "mixed_float16");
  expect_dtype(mix_call(layer, input(MIX_INT32)), MIX_INT32);
  expect_dtype(mix_call(layer, input(MIX_BOOL)), MIX_BOOL);
}
static void A05_every_item_of_the_first_argument(void **state) {
  (void)state;
  mix_layer *layer = mix_layer_new(&my_layer_class, .dtype = "mixed_float16");
  mix_list *results =
      mix_call_outputs(layer, mix_list_of(input(MIX_FLOAT32), input(MIX_INT32), input(MIX_FLOAT64)));
  expect_dtype(mix_list_get(results, 0), MIX_FLOAT16);
  expect_dtype(mix_list_get(results, 1), MIX_INT32);
  expect_dtype(mix_list_get(results, 2), MIX_FLOAT16);
}
static mix_list *two_arguments(const char *dtype) {
  mix_layer *layer = mix_layer_new(&my_layer_class, .dtype = dtype);
  return mix_call_outputs(layer, input(MIX_FLOAT32), .arguments = mix_list_of(input(MIX_FLOAT32)));
}
static void A06_second_argument_stays(void **state) {
  (void)state;
  mix_list *results = two_arguments("mixed_float16");
  expect_dtype(mix_list_get(results, 0), MIX_FLOAT16);
  expect_dtype(mix_list_get(results, 1), MIX_FLOAT32);
}
static void A07_keras3_casts_all_arguments(void **state) {
  (void)state;
  mix_set_semantics("keras3");
  mix_list *results = two_arguments("mixed_float16");
  expect_dtype(mix_list_get(results, 0), MIX_FLOAT16);
  expect_dtype(mix_list_get(results, 1), MIX_FLOAT16);
}
static void W23_two_arguments_in_float64(void **state) {
  (void)state;
  mix_list *results = two_arguments("float64");
  expect_dtype(mix_list_get(results, 0), MIX_FLOAT64);
  expect_dtype(mix_list_get(results, 1), MIX_FLOAT32);
}
static void A08_autocast_off(void **state) {
  (void)state;
  mix_layer *layer = mix_layer_new(&my_layer_class, .dtype = "mixed_float16", .no_autocast = true);
  expect_dtype(mix_call(layer, input(MIX_FLOAT32)), MIX_FLOAT32);
}
static void A10_the_specification_sees_the_uncast_input(void **state) {
  (void)state;
  mix_layer *layer = mix_layer_new(&my_layer_class, .dtype = "mixed_float16");
  mix_input_spec spec = {.size = sizeof spec, .dtype = "float16"};
  mix_layer_set_input_spec(layer, &spec);
  expect_refused(mix_call(layer, input(MIX_FLOAT64)), MIX_VALUE_ERROR, "float64");
  expect_dtype(mix_call(layer, input(MIX_FLOAT16)), MIX_FLOAT16);
  mix_set_semantics("keras3"); /* casts before the check */
  layer = mix_layer_new(&my_layer_class, .dtype = "mixed_float16");
  mix_layer_set_input_spec(layer, &spec);
  expect_dtype(mix_call(layer, input(MIX_FLOAT64)), MIX_FLOAT16);
}
static void A11_arrays_are_cast(void **state) {
  (void)state;
  double numbers[6] = {1, 2, 3, 4, 5, 6};
  mix_tensor *array = mix_tensor_wrap(numbers, MIX_FLOAT64, MIX_SHAPE(2, 3), NULL);
  mix_tensor *result = mix_call(mix_layer_new(&my_layer_class, .dtype = "float32"), array);
  expect_dtype(result, MIX_FLOAT32);
  EXPECT_EXACT(result, 1, 2, 3, 4, 5, 6);
}
/* A12, for the layer: the float64 input of a functional model reaches the Dense layer uncast, which casts
 * it. */
static void A12_the_inner_layer_casts(void **state) {
  (void)state;
  mix_tensor *x = mix_input(.shape = MIX_SHAPE(3), .dtype = "float64");
  expect_dtype(x, MIX_FLOAT64);
  expect_dtype(mix_call(mix_dense(.units = 2, .dtype = "mixed_float16"), x), MIX_FLOAT16);
}
static void A13_softmax_in_float32(void **state) {
  (void)state;
  mix_set_global_policy("mixed_float16");
  mix_tensor *h = mix_call(mix_dense(.units = 4), input(MIX_FLOAT32));
  expect_dtype(h, MIX_FLOAT16);
  expect_dtype(mix_call(mix_activation("softmax", .dtype = "float32"), h), MIX_FLOAT32);
}
static void inputs_follow_floatx_not_the_policy(void **state) {
  (void)state;
  mix_set_global_policy("mixed_float16");
  expect_dtype(mix_input(.shape = MIX_SHAPE(3)), MIX_FLOAT32);
}
/* Dense casts integer inputs itself. */
static void dense_takes_integers(void **state) {
  (void)state;
  mix_layer *layer = mix_dense(.units = 1, .dtype = "mixed_float16", .kernel_initializer = "ones");
  mix_tensor *y = mix_call(layer, MATRIX(MIX_INT32, 1, 3, 1, 2, 3));
  expect_dtype(y, MIX_FLOAT16);
  EXPECT_EXACT(y, 6);
}
static void SimpleDense_gets_mixed_precision_automatically(void **state) {
  (void)state;
  mix_set_global_policy("mixed_float16");
  mix_layer *layer = simple_dense_new(2, NULL);
  mix_tensor *y = mix_call(layer, MATRIX(MIX_FLOAT32, 1, 3, 1, 2, 4));
  expect_dtype(y, MIX_FLOAT16);
  EXPECT_EXACT(y, 7, 7);
  simple_dense *d = mix_layer_data(layer);
  assert_int_equal(mix_variable_dtype(d->kernel), MIX_FLOAT32); /* W25: outside the call */
  assert_string_equal(mix_variable_name(d->kernel), "simple_dense/kernel");
}
static void AddRandom_uses_the_input_dtype(void **state) {
  (void)state;
  mix_set_global_policy("mixed_float16");
  mix_list *results = mix_call_outputs(mix_layer_new(&add_random_class), input(MIX_FLOAT32));
  expect_dtype(mix_list_get(results, 0), MIX_FLOAT16);
  double sum[6], random[6];
  mix_tensor_read(mix_list_get(results, 0), MIX_FLOAT64, sum, 6);
  mix_tensor_read(mix_list_get(results, 1), MIX_FLOAT64, random, 6);
  for (int i = 0; i < 6; i++) {
    assert_true(random[i] >= 0 && random[i] < 1);
    assert_true(fabs(sum[i] - (1 + random[i])) <= 0x1p-11); /* half an ulp of [1, 2) in float16 */
  }
}
static void W24_mixing_dtypes_is_a_type_error(void **state) {
  (void)state;
  mix_set_global_policy("mixed_float16");
  expect_refused(mix_call(mix_layer_new(&careless_add_random_class), input(MIX_FLOAT32)), MIX_TYPE_ERROR,
                 "float16");
}
static void arguments_of_another_kind(void **state) {
  (void)state;
  mix_layer *layer = mix_layer_new(&my_layer_class);
  expect_refused(mix_call(layer, layer), MIX_TYPE_ERROR, "tensor or a list");
  expect_refused(mix_call(layer, mix_list_of(layer)), MIX_TYPE_ERROR, "no tensor");
  expect_refused(mix_call(layer, mix_list_new(0, NULL)), MIX_VALUE_ERROR, "empty");
  expect_refused(mix_call(layer, NULL), MIX_TYPE_ERROR, "my_layer: got NULL");
  expect_refused(mix_call(NULL, input(MIX_FLOAT32)), MIX_TYPE_ERROR, "expected a layer");
  expect_refused(mix_call(layer, input(MIX_FLOAT32), .arguments = mix_list_of(layer)), MIX_TYPE_ERROR,
                 "item 0 of arguments");
  expect_refused(mix_call(layer, input(MIX_FLOAT32), .masks = mix_list_of(layer)), MIX_TYPE_ERROR,
                 "item 0 of masks");
  expect_refused(mix_call(layer, input(MIX_FLOAT32), .initial_state = mix_list_of(layer)), MIX_TYPE_ERROR,
                 "item 0 of initial_state");
}

static mix_tensor *sparse_seen;
static mix_list *see_sparse(mix_layer *layer, const mix_call_args *args) {
  (void)layer;
  sparse_seen = mix_call_input(args, 0);
  return mix_list_of(sparse_seen);
}
/* A tensor in the layout "rows" is this library's sparse tensor. */
static void A09_sparse_values_are_cast(void **state) {
  (void)state;
  mix_tensor *indices = mix_tensor_from((const int32_t[]){2, 0}, MIX_INT32, MIX_SHAPE(2));
  mix_tensor *sparse = mix_rows(input(MIX_FLOAT32), indices, 4);
  mix_call(probe_new("mixed_float16", see_sparse, NULL), sparse);
  assert_true(mix_tensor_is_rows(sparse_seen));
  expect_dtype(sparse_seen, MIX_FLOAT16);
  expect_dtype(mix_rows_values(sparse_seen), MIX_FLOAT16);
  EXPECT_EXACT(mix_rows_indices(sparse_seen), 2, 0);
  EXPECT_EXACT(sparse_seen, 1, 1, 1, 0, 0, 0, 1, 1, 1, 0, 0, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {TEST(A01_mixed_dense_casts_down),
                                     TEST(A02_float32_dense_casts_float64),
                                     TEST(A03_float64_dense_casts_up),
                                     TEST(A04_integers_stay),
                                     TEST(A05_every_item_of_the_first_argument),
                                     TEST(A06_second_argument_stays),
                                     TEST(A07_keras3_casts_all_arguments),
                                     TEST(W23_two_arguments_in_float64),
                                     TEST(A09_sparse_values_are_cast),
                                     TEST(A08_autocast_off),
                                     TEST(A10_the_specification_sees_the_uncast_input),
                                     TEST(A11_arrays_are_cast),
                                     TEST(A12_the_inner_layer_casts),
                                     TEST(A13_softmax_in_float32),
                                     TEST(inputs_follow_floatx_not_the_policy),
                                     TEST(dense_takes_integers),
                                     TEST(SimpleDense_gets_mixed_precision_automatically),
                                     TEST(AddRandom_uses_the_input_dtype),
                                     TEST(W24_mixing_dtypes_is_a_type_error),
                                     TEST(arguments_of_another_kind)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
