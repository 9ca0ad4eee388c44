/* Rescaling, Normalization, Discretization, CategoryEncoding and Embedding (docs/spec/keras.md, sections 1
 * and 7). */
#include "nn/layer_support.h"

static mix_tensor *ids_of(int rows, int columns, const int32_t *values) {
  return mix_tensor_from(values, MIX_INT32, MIX_SHAPE(rows, columns));
}
#define IDS(rows, columns, ...) ids_of(rows, columns, (int32_t[]){__VA_ARGS__})

static void rescaling(void **state) {
  (void)state;
  mix_layer *layer = mix_rescaling(.scale = 0.5, .offset = -1, .dtype = "mixed_float16");
  mix_tensor *y = mix_call(layer, IDS(1, 3, 0, 2, 255)); /* integers are cast to the compute dtype */
  expect_dtype(y, MIX_FLOAT16);
  EXPECT_EXACT(y, -1, 0, 126.5);
  expect_refused(mix_rescaling(.offset = 1), MIX_TYPE_ERROR, "scale");
  EXPECT_EXACT(mix_call(mix_rescaling(.scale = MIX_ZERO, .offset = 3), MATRIX(MIX_FLOAT32, 1, 1, 7)), 3);
}

/* ---- Normalization ---- */

static void normalization_adapts(void **state) {
  (void)state;
  mix_tensor *data = MATRIX(MIX_FLOAT32, 4, 2, 1, 10, 2, 10, 3, 30, 6, 30);
  mix_layer *layer = mix_normalization();
  EXPECT_EXACT(mix_call(layer, MATRIX(MIX_FLOAT32, 1, 2, 5, 6)), 5, 6); /* not adapted: mean 0, variance 1 */
  assert_int_equal(mix_normalization_adapt(layer, data), MIX_OK);
  mix_list *weights = mix_layer_weights(layer);
  assert_int_equal(mix_list_count(weights), 3);
  EXPECT_EXACT(mix_variable_value(mix_list_get(weights, 0)), 3, 20);
  EXPECT_EXACT(mix_variable_value(mix_list_get(weights, 1)), 3.5, 100);
  expect_dtype(mix_variable_value(mix_list_get(weights, 2)), MIX_INT64);
  EXPECT_EXACT(mix_variable_value(mix_list_get(weights, 2)), 4);
  assert_int_equal(mix_list_count(mix_layer_trainable_weights(layer)), 0);
  EXPECT(mix_call(layer, MATRIX(MIX_FLOAT32, 1, 2, 3, 35)), 0, 1e-6, 0, 1.5);
  /* adapting again replaces the statistics */
  assert_int_equal(mix_normalization_adapt(layer, MATRIX(MIX_FLOAT32, 1, 2, 7, 8)), MIX_OK);
  EXPECT_EXACT(mix_call(layer, MATRIX(MIX_FLOAT32, 1, 2, 7, 8)), 0, 0); /* variance 0: divided by 1e-7 */
}
static void normalization_pools_batches(void **state) {
  (void)state;
  mix_tensor *data = MATRIX(MIX_FLOAT64, 5, 1, 1, 2, 3, 6, 8); /* mean 4, squares 114 / 5 - 16 = 6.8 */
  mix_layer *layer = mix_normalization(.dtype = "float64");
  mix_normalization_reset(layer);
  mix_normalization_update(layer, mix_slice(data, MIX_SHAPE(0, 0), MIX_SHAPE(2, 1)));
  mix_normalization_update(layer, mix_slice(data, MIX_SHAPE(2, 0), MIX_SHAPE(3, 1)));
  mix_list *values = mix_layer_get_weights(layer);
  EXPECT(mix_list_get(values, 0), 0, 1e-15, 4);
  EXPECT(mix_list_get(values, 1), 0, 1e-15, 6.8);
  EXPECT_EXACT(mix_list_get(values, 2), 5);
}
static void normalization_axes(void **state) {
  (void)state;
  mix_tensor *x = MATRIX(MIX_FLOAT32, 2, 2, 1, 3, 5, 7);
  mix_layer *all = mix_normalization(.axis_none = true);
  mix_normalization_adapt(all, x); /* mean 4, variance 5 */
  EXPECT(mix_call(all, x), 1e-7, 1e-6, -3 / sqrt(5), -1 / sqrt(5), 1 / sqrt(5), 3 / sqrt(5));
  expect_shape(mix_list_get(mix_layer_get_weights(all), 0), MIX_SCALAR);
  EXPECT_EXACT(mix_list_get(mix_layer_get_weights(all), 2), 4);
  mix_layer *inverse = mix_normalization(.mean = VECTOR(MIX_FLOAT32, 1, 2),
                                         .variance = mix_scalar(9, MIX_FLOAT32), .invert = true);
  EXPECT_EXACT(mix_call(inverse, x), 4, 11, 16, 23);
  assert_int_equal(mix_list_count(mix_layer_weights(inverse)), 0);
  expect_status(mix_normalization_adapt(inverse, x), MIX_RUNTIME_ERROR, "given");
  expect_status(mix_normalization_adapt(mix_dense(1), x), MIX_TYPE_ERROR, "Normalization");
  expect_refused(mix_normalization(.mean = VECTOR(MIX_FLOAT32, 1)), MIX_VALUE_ERROR, "both");
  expect_refused(mix_normalization(.axis = MIX_AXES(1), .axis_none = true), MIX_VALUE_ERROR, "axis_none");
  expect_refused(mix_call(mix_normalization(), mix_input(.shape = MIX_SHAPE(MIX_UNKNOWN))), MIX_VALUE_ERROR,
                 "known");
}
/* Keras writes mean and variance of the kept axes as nested lists. */
static void normalization_of_nested_numbers(void **state) {
  (void)state;
  mix_layer *layer = mix_layer_from_config(
      "Normalization", "{\"axis\": [-1], \"mean\": [[1, 2]], \"variance\": [[[4], [9]]]}", NULL);
  EXPECT(mix_call(layer, MATRIX(MIX_FLOAT32, 2, 2, 1, 2, 3, 4)), 0, 1e-7, 0, 0, 1, 2. / 3);
  expect_refused(mix_layer_from_config("Normalization", "{\"mean\": [[\"1\"]], \"variance\": 1}", NULL),
                 MIX_TYPE_ERROR, "numbers");
  expect_refused(mix_layer_from_config("Normalization", "{\"mean\": {}, \"variance\": 1}", NULL),
                 MIX_TYPE_ERROR, "numbers");
}
/* Keras 3 passes masks on, tf_keras does not. */
static void masks_of_preprocessing(void **state) {
  (void)state;
  mix_tensor *x = mix_fill(MIX_SHAPE(1, 2, 2), 1, MIX_FLOAT32),
             *mask = mix_fill(MIX_SHAPE(1, 2), 1, MIX_BOOL);
  for (int i = 0; i < 2; i++) {
    mix_set_semantics(i ? "keras3" : "tf_keras");
    assert_ptr_equal(mix_call(mix_rescaling(2), x, .mask = mask)->mask, i ? mask : NULL);
    assert_ptr_equal(mix_call(mix_normalization(), x, .mask = mask)->mask, i ? mask : NULL);
  }
}
/* 5.1: weights in the compute dtype; 5.2: in the variable dtype. */
static void normalization_weight_dtypes(void **state) {
  (void)state;
  const struct {
    const char *semantics;
    mix_dtype dtype;
    double mean;
  } rows[] = {
      {"tf_keras", MIX_FLOAT16, 2048}, {"experimental", MIX_FLOAT16, 2048}, {"keras3", MIX_FLOAT32, 2049}};
  for (int i = 0; i < 3; i++) {
    mix_set_semantics(rows[i].semantics);
    mix_layer *layer = mix_normalization(.dtype = "mixed_float16");
    /* Not representable in float16: ties to even, 2048. */
    mix_normalization_adapt(layer, MATRIX(MIX_FLOAT32, 1, 1, 2049));
    mix_variable *mean = mix_list_get(mix_layer_weights(layer), 0);
    assert_int_equal(mix_variable_true_dtype(mean), rows[i].dtype);
    EXPECT_EXACT(mix_variable_value(mean), rows[i].mean);
    expect_dtype(mix_call(layer, MATRIX(MIX_FLOAT32, 1, 1, 2049)), MIX_FLOAT16);
  }
}

/* ---- Discretization ---- */

static void discretization(void **state) {
  (void)state;
  mix_tensor *x = MATRIX(MIX_FLOAT32, 2, 4, -1.5, 1, 3.4, 0.5, 0, 3, 1.3, NAN);
  mix_layer *layer = mix_discretization(.bin_boundaries = (double[]){0, 1, 2}, .boundary_count = 3);
  mix_tensor *y = mix_call(layer, x);
  expect_dtype(y, MIX_INT64);
  EXPECT_EXACT(y, 0, 2, 3, 1, 1, 3, 2, 3); /* a boundary belongs to the bin above it */
  EXPECT_EXACT(mix_call(layer, IDS(1, 3, -7, 1, 9)), 0, 2, 3);
  mix_layer *count = mix_discretization(.bin_boundaries = (double[]){0, 1, 2}, .boundary_count = 3,
                                        .output_mode = "count", .dtype = "float32");
  EXPECT_EXACT(mix_call(count, x), 1, 1, 1, 1, 0, 1, 1, 2);
  expect_dtype(mix_call(mix_discretization(.bin_boundaries = (double[]){0}, .boundary_count = 1,
                                           .output_mode = "one_hot"),
                        MATRIX(MIX_FLOAT32, 1, 1, 0)),
               MIX_FLOAT32);
  EXPECT_EXACT(mix_call(mix_discretization(.bin_boundaries = (double[]){0}, .boundary_count = 1,
                                           .output_mode = "multi_hot"),
                        x),
               1, 1, 0, 1);
  expect_refused(mix_discretization(), MIX_VALUE_ERROR, "either");
  expect_refused(mix_discretization(.bin_boundaries = (double[]){0}, .boundary_count = 1, .num_bins = 2),
                 MIX_VALUE_ERROR, "either");
  expect_refused(mix_discretization(.bin_boundaries = (double[]){1, 1}, .boundary_count = 2), MIX_VALUE_ERROR,
                 "ascending");
  expect_refused(mix_discretization(.num_bins = 2, .output_mode = "loud"), MIX_VALUE_ERROR, "loud");
  expect_refused(mix_discretization(.num_bins = 2, .dtype = "float32"), MIX_VALUE_ERROR, "integer dtype");
  expect_refused(mix_discretization(.num_bins = 2, .epsilon = 1), MIX_VALUE_ERROR, "epsilon");
  expect_refused(mix_call(mix_discretization(.num_bins = 2), x), MIX_RUNTIME_ERROR, "adapt");
  expect_status(mix_discretization_adapt(layer, x), MIX_RUNTIME_ERROR, "given");
}
/* Quantiles of 0 ... 999 in four bins. Epsilon bounds the distance of a boundary from its rank: 0.01 *
 * 1000. */
static void discretization_adapts(void **state) {
  (void)state;
  mix_layer *layer = mix_discretization(.num_bins = 4);
  mix_tensor *data = mix_reshape(mix_range(0, 1000, 1, MIX_FLOAT32), MIX_SHAPE(1000, 1));
  assert_int_equal(mix_discretization_adapt(layer, data), MIX_OK);
  for (int i = 1; i < 4; i++)
    EXPECT_EXACT(mix_call(layer, MATRIX(MIX_FLOAT32, 1, 2, 250. * i - 25, 250. * i + 25)), i - 1, i);
  mix_layer *again = made_again(layer); /* the config contains learnt boundaries */
  EXPECT_EXACT(mix_call(again, MATRIX(MIX_FLOAT32, 1, 2, 100, 900)), 0, 3);
  mix_discretization_reset(layer);
  for (int i = 0; i < 4; i++)
    mix_discretization_update(layer, mix_slice(data, MIX_SHAPE(250 * i, 0), MIX_SHAPE(250, 1)));
  for (int i = 1; i < 4; i++) /* Several summaries: several times epsilon. */
    EXPECT_EXACT(mix_call(layer, MATRIX(MIX_FLOAT32, 1, 2, 250. * i - 45, 250. * i + 45)), i - 1, i);
  /* Keras's own test: with few values, boundaries are midpoints between them */
  mix_layer *few = mix_discretization(.num_bins = 2);
  mix_discretization_adapt(few, VECTOR(MIX_FLOAT32, 1, 2, 3, 4));
  EXPECT_EXACT(mix_call(few, VECTOR(MIX_FLOAT32, 1, 2, 3, 4)), 0, 1, 1, 1);
}

/* ---- CategoryEncoding ---- */

static void category_encoding(void **state) {
  (void)state;
  mix_tensor *ids = IDS(2, 3, 3, 0, 3, 1, 1, 1);
  mix_set_global_policy("mixed_float16");
  mix_tensor *y = mix_call(mix_category_encoding(4), ids);
  expect_dtype(y, MIX_FLOAT32); /* 5.1: floatx, not the policy */
  EXPECT_EXACT(y, 1, 0, 0, 1, 0, 1, 0, 0);
  expect_dtype(mix_call(mix_category_encoding(4, .dtype = "mixed_float16"), ids), MIX_FLOAT16);
  EXPECT_EXACT(mix_call(mix_category_encoding(4, .output_mode = "count"), ids), 1, 0, 0, 2, 0, 3, 0, 0);
  EXPECT_EXACT(mix_call(mix_category_encoding(4, .output_mode = "count"), ids,
                        .arguments = mix_list_of(MATRIX(MIX_FLOAT32, 2, 3, 0.5, 2, 0.25, 1, 1, 1))),
               2, 0, 0, 0.75, 0, 3, 0, 0);
  mix_layer *one_hot = mix_category_encoding(3, .output_mode = "one_hot");
  y = mix_call(one_hot, IDS(2, 1, 2, 0));
  expect_shape(y, MIX_SHAPE(2, 3));
  EXPECT_EXACT(y, 0, 0, 1, 1, 0, 0);
  expect_shape(mix_call(one_hot, IDS(1, 2, 2, 0)), MIX_SHAPE(1, 2, 3));
  EXPECT_EXACT(mix_call(one_hot, VECTOR(MIX_FLOAT32, 1, 2)), 0, 1, 0, 0, 0, 1);
  expect_refused(mix_category_encoding(0), MIX_VALUE_ERROR, "num_tokens");
  expect_refused(mix_category_encoding(3, .output_mode = "int"), MIX_VALUE_ERROR, "int");
  expect_refused(mix_call(one_hot, ids, .arguments = mix_list_of(ids)), MIX_VALUE_ERROR, "weights");
  mix_set_semantics("keras3");
  /* The dtype of its variables. */
  expect_dtype(mix_call(mix_category_encoding(4, .dtype = "mixed_float16"), ids), MIX_FLOAT32);
}
static void ids_outside(void **state) {
  (void)state;
  mix_tensor *y = mix_call(mix_category_encoding(2), IDS(1, 2, 1, 2));
  assert_null(mix_tensor_data(y));
  assert_int_not_equal(mix_error_take(NULL, 0), MIX_OK);
  mix_set_semantics("keras3");
  EXPECT_EXACT(mix_call(mix_category_encoding(2), IDS(1, 2, 1, 2)), 0, 1);
}

/* ---- Embedding ---- */

static void embedding(void **state) {
  (void)state;
  mix_layer *layer = mix_embedding(3, 2);
  mix_layer_build(layer, MIX_SHAPE(MIX_UNKNOWN, 2));
  mix_layer_set_weights(layer, mix_list_of(MATRIX(MIX_FLOAT32, 3, 2, 0, 1, 10, 11, 20, 21)));
  mix_tensor *y = mix_call(layer, IDS(1, 2, 2, 0));
  expect_shape(y, MIX_SHAPE(1, 2, 2));
  EXPECT_EXACT(y, 20, 21, 0, 1);
  assert_null(y->mask);
  assert_string_equal(mix_variable_name(mix_list_get(mix_layer_weights(layer), 0)), "embedding/embeddings");
  expect_shape(mix_call(layer, mix_input(.shape = MIX_SHAPE(MIX_UNKNOWN), .dtype = "int32")),
               MIX_SHAPE(MIX_UNKNOWN, MIX_UNKNOWN, 2));
  expect_refused(mix_embedding(0, 2), MIX_VALUE_ERROR, "input_dim");
  expect_refused(mix_embedding(2, -1), MIX_VALUE_ERROR, "output_dim");
  assert_null(mix_tensor_data(mix_call(layer, IDS(1, 1, 3))));
  assert_int_not_equal(mix_error_take(NULL, 0), MIX_OK);
}
static void A14_embedding_of_floating_indices(void **state) {
  (void)state;
  static const char *const generations[] = {"tf_keras", "keras3", "experimental"};
  for (int i = 0; i < 3; i++) {
    mix_set_semantics(generations[i]);
    mix_layer *layer = mix_embedding(.input_dim = 5000, .output_dim = 1, .dtype = "mixed_float16");
    mix_layer_build(layer, MIX_SHAPE(MIX_UNKNOWN, 1));
    mix_tensor *parity = mix_floor_mod(mix_range(0, 5000, 1, MIX_FLOAT32), mix_scalar(2, MIX_FLOAT32));
    mix_layer_set_weights(layer, mix_list_of(mix_reshape(parity, MIX_SHAPE(5000, 1))));
    /* 4097 is not a float16 number: indices cast to the compute dtype would read row 4096 */
    mix_tensor *y = mix_call(layer, MATRIX(MIX_FLOAT32, 1, 2, 4097, 4096));
    expect_dtype(y, MIX_FLOAT16);
    EXPECT_EXACT(y, 1, 0);
    mix_variable *table = mix_list_get(mix_layer_weights(layer), 0);
    assert_int_equal(mix_variable_true_dtype(table), MIX_FLOAT32);
    assert_false(mix_variable_is_autocast(table));
  }
}

/* Fractions are rounded down, so that what is no row before row 0 is not row 0. */
static void what_is_no_index_is_refused(void **state) {
  (void)state;
  static const struct {
    double index;
    const char *part;
  } cases[] = {
      {NAN, "which NaN becomes as an integer, (element 1) is outside the gathered axis, [0, 3)"},
      {-INFINITY, "which -inf becomes as an integer, (element 1) is outside the gathered axis, [0, 3)"},
      {INFINITY, "which inf becomes as an integer, (element 1) is outside the gathered axis, [0, 3)"},
      {0x1p32, "index 4294967296 (element 1) is outside the gathered axis, [0, 3)"},
      {-0.5, "index with a fraction (element 1) is outside the gathered axis, [0, 3)"},
      {-1, "index -1 (element 1) is outside the gathered axis, [0, 3)"},
      {3, "index 3 (element 1) is outside the gathered axis, [0, 3)"}};
  mix_layer *layer = mix_embedding(3, 2, .name = "words");
  mix_layer_build(layer, MIX_SHAPE(MIX_UNKNOWN, 2));
  mix_layer_set_weights(layer, mix_list_of(MATRIX(MIX_FLOAT32, 3, 2, 0, 1, 10, 11, 20, 21)));
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    for (int floats = 0; floats < 2; floats++) {
      mix_dtype dtype = floats ? MIX_FLOAT64 : MIX_FLOAT32;
      assert_null(mix_tensor_data(mix_call(layer, MATRIX(dtype, 1, 2, 1, cases[i].index))));
      assert_non_null(strstr(mix_error_message(), cases[i].part));
      assert_non_null(strstr(mix_error_message(), "words"));
      assert_int_equal(mix_error_take(NULL, 0), MIX_VALUE_ERROR);
    }
  }
  EXPECT_EXACT(mix_call(layer, MATRIX(MIX_FLOAT32, 1, 2, 2, 1.5)), 20, 21, 10, 11);
  mix_layer *counts = mix_category_encoding(3, .output_mode = "count");
  assert_null(mix_tensor_data(mix_call(counts, MATRIX(MIX_FLOAT32, 1, 2, 1, -0.5))));
  assert_int_equal(mix_error_take(NULL, 0), MIX_VALUE_ERROR);
}
static void L32_mask_zero(void **state) {
  (void)state;
  mix_tensor *y =
      mix_call(mix_embedding(.input_dim = 4, .output_dim = 2, .mask_zero = true), IDS(1, 3, 3, 0, 1));
  expect_shape(y->mask, MIX_SHAPE(1, 3));
  EXPECT_EXACT(mix_cast(y->mask, MIX_INT32), 1, 0, 1);
  mix_tensor *z = mix_call(mix_relu_layer(), y); /* the mask is passed on */
  assert_ptr_equal(z->mask, y->mask);
}
/* 5.1: the table is gathered in its own dtype; rows used twice sum their gradients in float32. */
static void embedding_gradient_is_float32(void **state) {
  (void)state;
  mix_layer *layer = mix_embedding(.input_dim = 2, .output_dim = 1, .dtype = "mixed_float16");
  mix_layer_build(layer, MIX_SHAPE(MIX_UNKNOWN, 3));
  mix_tape *tape = mix_tape_begin();
  mix_tensor *y = mix_call(layer, IDS(1, 3, 1, 1, 1));
  mix_tensor *weighted =
      mix_multiply(y, mix_tensor_from_doubles((double[]){2048, 1, 1}, MIX_FLOAT16, MIX_SHAPE(1, 3, 1)));
  mix_tensor *loss = mix_reduce_sum(mix_cast(weighted, MIX_FLOAT32), MIX_ALL_AXES, false);
  mix_tape_end(tape);
  mix_tensor *gradient = mix_list_get(mix_tape_gradient(tape, loss, mix_layer_trainable_weights(layer)), 0);
  expect_dtype(gradient, MIX_FLOAT32);
  EXPECT_EXACT(gradient, 0, 2050); /* summed one by one in float16: 2048 */
}

int main(void) {
  const struct CMUnitTest tests[] = {TEST(rescaling),
                                     TEST(normalization_adapts),
                                     TEST(normalization_pools_batches),
                                     TEST(normalization_axes),
                                     TEST(normalization_of_nested_numbers),
                                     TEST(masks_of_preprocessing),
                                     TEST(normalization_weight_dtypes),
                                     TEST(discretization),
                                     TEST(discretization_adapts),
                                     TEST(category_encoding),
                                     TEST(ids_outside),
                                     TEST(embedding),
                                     TEST(A14_embedding_of_floating_indices),
                                     TEST(what_is_no_index_is_refused),
                                     TEST(L32_mask_zero),
                                     TEST(embedding_gradient_is_float32)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
