/* Kernels of Dense and EinsumDense stored as integers: docs/spec/quantization.md. Numbers of Q06, Q07, Q15
 * and Q16 are those of Keras 3.15.1. */
#include "model/support.h"

#include "graph/variable.h"
#include "nn/layers/stored_weight.h"
#include "support/expect.h"

static const double weight[] = {1,    -2,  0.5,  0.3,  1.9,   -0.7,  -0.25, 0.1,
                                0.62, 0.9, -0.4, 0.05, 0.123, 0.456, -0.789};
static mix_tensor *weight_as(mix_dtype dtype) {
  return mix_tensor_from_doubles(weight, dtype, MIX_SHAPE(5, 3));
}

static void assert_integers(mix_tensor *x, int count, const int *expected) {
  assert_no_error();
  assert_int_equal(mix_tensor_dtype(x), MIX_INT8);
  for (int i = 0; i < count; i++) assert_int_equal((int)at(x, i), expected[i]);
}

static void setup_keras3(void **state) {
  (void)state;
  mix_set_semantics("keras3");
  mix_set_accumulate("exact");
}

/* ---- quantizers ---- */

static const mix_abs_max int8_range = {.low = -127, .high = 127, .epsilon = 1e-7},
                         int4_range = {.low = -8, .high = 7, .epsilon = 1e-7};

static void Q06_one_scale_a_column(void **state) {
  setup_keras3(state);
  mix_quantized q;
  assert_true(mix_quantize_abs_max(weight_as(F32), MIX_AXES(0), &int8_range, &q));
  assert_integers(q.stored, 15,
                  (const int[]){127, -127, 80, 38, 121, -113, -32, 6, 100, 114, -25, 8, 16, 29, -127});
  assert_true(at(q.scale, 0) == 0x1.fbfffcp+6 && at(q.scale, 1) == 0x1.fcp+5 &&
              at(q.scale, 2) == 0x1.41ed2cp+7);
  assert_true(mix_shape_equal(mix_tensor_shape(q.scale), MIX_SHAPE(1, 3)));
  assert_true(mix_quantize_abs_max(weight_as(F32), MIX_AXES(0), &int4_range, &q));
  assert_integers(q.stored, 15, (const int[]){7, -7, 4, 2, 7, -6, -2, 0, 6, 6, -1, 0, 1, 2, -7});
  assert_true(at(q.scale, 0) == 0x1.bffffcp+2 && at(q.scale, 1) == 0x1.cp+1 &&
              at(q.scale, 2) == 0x1.1be756p+3);
}

/* The weights of a bfloat16 layer are quantized in float32, its inputs in bfloat16. */
static void Q07_zeros_and_bfloat16(void **state) {
  setup_keras3(state);
  mix_tensor *scale,
      *x = mix_tensor_from_doubles((const double[]){0.3, -1.7, 0.9}, MIX_BFLOAT16, MIX_SHAPE(1, 3));
  mix_tensor *q = mix_quantize_inputs(&int8_range, x, MIX_AXES(-1), &scale);
  assert_integers(q, 3, (const int[]){22, -127, 67});
  assert_true(mix_tensor_dtype(scale) == MIX_BFLOAT16 && at(scale, 0) == 74.5);
  q = mix_quantize_inputs(&int8_range, mix_fill(MIX_SHAPE(1, 3), 0, MIX_BFLOAT16), MIX_AXES(-1), &scale);
  assert_integers(q, 3, (const int[]){0, 0, 0});
  assert_near(at(scale, 0), 1.2666798e9, 100);
  q = mix_quantize_inputs(&int8_range, mix_fill(MIX_SHAPE(1, 3), 0, F32), MIX_AXES(-1), &scale);
  assert_true(at(scale, 0) == 1.27e9);
  mix_quantized made;
  assert_true(mix_quantize_abs_max(mix_fill(MIX_SHAPE(2, 1), 0, F32), MIX_AXES(0), &int8_range, &made));
  assert_integers(made.stored, 2, (const int[]){0, 0});
  assert_true(at(made.scale, 0) == 1.27e9);
}

static void Q15_blocks(void **state) {
  setup_keras3(state);
  static const double scales[] = {0x1.7e4b1cp-5, 0x1.0a3d72p-2, 0x1.47ae18p-4, 0x1.3a06d6p-4, 0x1.111116p-5,
                                  0x1.374bcap-5, 0x1.0cb2a4p-7, 0x1.f212dep-6, 0x1.aee636p-5};
  mix_quantized q;
  assert_true(mix_quantize_blocks(weight_as(F32), 0, 2, &q));
  assert_integers(q.stored, 15, (const int[]){7, -8, 7, -2, 7, -8, -8, 7, 7, 7, -8, -7, 7, 7, -8});
  assert_integers(q.zero, 9, (const int[]){-8, 0, 1, -5, 4, -8, -8, -8, 7});
  for (int i = 0; i < 9; i++) assert_true(at(q.scale, i) == scales[i]);
  mix_quantized turned; /* the same along the last axis */
  assert_true(mix_quantize_blocks(mix_transpose(weight_as(F32), MIX_AXES(1, 0)), 1, 2, &turned));
  for (int i = 0; i < 9; i++) assert_true(at(turned.scale, i) == scales[i % 3 * 3 + i / 3]);
}

/* A range without 0 is not widened. */
static void Q16_groups_that_lose_most(void **state) {
  setup_keras3(state);
  mix_quantized q;
  mix_tensor *x = ARRAY(F32, MIX_SHAPE(4, 1), 0.6, 0.7, 0.25, 0.25);
  assert_true(mix_quantize_blocks(x, 0, 2, &q));
  assert_integers(q.stored, 4, (const int[]){7, 7, 7, 7});
  assert_integers(q.zero, 2, (const int[]){-8, -8});
  assert_true(at(q.scale, 0) == (double)0.0066666706f && at(q.scale, 1) == (double)6.6666668e-09f);
}

/* Nothing is read or written outside, and NaN is no integer. */
static void what_is_odd(void **state) {
  setup_keras3(state);
  mix_quantized q;
  assert_true(mix_quantize_abs_max(mix_fill(MIX_SHAPE(0, 3), 0, F32), MIX_AXES(0), &int8_range, &q));
  assert_true(mix_quantize_abs_max(mix_fill(MIX_SHAPE(3, 0), 0, F32), MIX_AXES(0), &int8_range, &q));
  assert_true(mix_quantize_blocks(mix_fill(MIX_SHAPE(0, 3), 0, F32), 0, 4, &q));
  assert_true(mix_quantize_blocks(mix_fill(MIX_SHAPE(3, 0), 0, F32), 0, 4, &q));
  assert_true(mix_quantize_abs_max(ARRAY(F32, MIX_SHAPE(2, 1), NAN, 1), MIX_AXES(0), &int8_range, &q));
  assert_integers(q.stored, 2, (const int[]){0, 0});
  assert_true(isnan(at(q.scale, 0)));
  assert_true(mix_quantize_blocks(ARRAY(F32, MIX_SHAPE(2, 1), INFINITY, 1), 0, 2, &q));
  assert_no_error();
}

/* ---- layers ---- */

static mix_variable *named(mix_layer *layer, const char *end) {
  mix_list *weights = mix_layer_weights(layer);
  for (int i = 0; i < mix_list_count(weights); i++) {
    mix_variable *variable = mix_list_get(weights, i);
    if (!strcmp(strrchr(mix_variable_name(variable), '/') + 1, end)) return variable;
  }
  return NULL;
}

/* A model of one layer, quantized. */
static mix_layer *quantized(mix_layer *layer, mix_shape input, const char *mode, int64_t block, bool inputs,
                            bool weights_only) {
  mix_shape sample = {.rank = input.rank - 1};
  for (int i = 0; i < sample.rank; i++) sample.dims[i] = input.dims[i + 1];
  mix_tensor *x = mix_input(.shape = sample);
  mix_model *model = mix_model_new(x, mix_call(layer, x));
  mix_model_quantize(model, mode, .block_size = block, .quantize_inputs = inputs,
                     .weights_only = weights_only);
  assert_no_error();
  return layer;
}

static mix_layer *dense_of(const char *policy) {
  mix_set_semantics("keras3");
  mix_layer *layer = mix_dense(3, .no_bias = true, .dtype = policy);
  mix_layer_build(layer, MIX_SHAPE(2, 5));
  mix_layer_set_weights(layer, mix_list_of(weight_as(mix_layer_variable_dtype(layer))));
  assert_no_error();
  return layer;
}

static void assert_variable(mix_layer *layer, const char *name, mix_dtype dtype, mix_shape shape) {
  const mix_variable *variable = named(layer, name);
  assert_non_null(variable);
  assert_int_equal(variable->dtype, dtype);
  assert_true(mix_shape_equal(variable->shape, shape));
  assert_false(variable->trainable);
}

static void Q08_scales_have_the_variable_dtype(void **state) {
  setup_keras3(state);
  static const char *const policies[] = {"float32", "mixed_bfloat16", "bfloat16", "float64"};
  static const mix_dtype dtypes[] = {MIX_FLOAT32, MIX_FLOAT32, MIX_BFLOAT16, MIX_FLOAT64};
  for (int p = 0; p < 4; p++) {
    mix_layer *layer = quantized(dense_of(policies[p]), MIX_SHAPE(2, 5), "int8", 0, false, false);
    assert_variable(layer, "kernel_scale", dtypes[p], MIX_SHAPE(3));
    layer = quantized(dense_of(policies[p]), MIX_SHAPE(2, 5), "int4", 2, false, false);
    assert_variable(layer, "kernel_scale", dtypes[p], MIX_SHAPE(3, 3));
    assert_variable(layer, "kernel_zero", MIX_INT8, MIX_SHAPE(3, 3));
    assert_variable(layer, "g_idx", MIX_FLOAT32, MIX_SHAPE(5));
  }
}

static void Q09_weights_of_dense(void **state) {
  setup_keras3(state);
  mix_layer *layer = quantized(mix_dense(3), MIX_SHAPE(2, 5), "int8", 0, false, false);
  assert_variable(layer, "kernel", MIX_INT8, MIX_SHAPE(5, 3));
  assert_variable(layer, "kernel_scale", MIX_FLOAT32, MIX_SHAPE(3));
  assert_int_equal(mix_list_count(mix_layer_trainable_weights(layer)), 1);
  assert_string_equal(strrchr(mix_variable_name(mix_list_get(mix_layer_weights(layer), 0)), '/'), "/bias");
  layer = quantized(mix_dense(3), MIX_SHAPE(2, 5), "int4", -1, false, false);
  assert_variable(layer, "kernel", MIX_INT8, MIX_SHAPE(5, 2));
  assert_variable(layer, "kernel_scale", MIX_FLOAT32, MIX_SHAPE(3));
  assert_null(named(layer, "kernel_zero"));
}

static const double row[] = {0.5, -1.25, 3, 0.1, -0.7};

/* y and the gradient of x for an upstream of ones. */
static mix_tensor *call(mix_layer *layer, mix_dtype dtype, mix_tensor **gradient) {
  mix_tensor *x = mix_tensor_from_doubles(row, dtype, MIX_SHAPE(1, 5));
  mix_tape *tape = mix_tape_begin(.persistent = true);
  mix_tape_watch(tape, x);
  mix_tensor *y = mix_call(layer, x, .training = MIX_TRUE);
  mix_tape_end(tape);
  if (gradient) *gradient = mix_list_get(mix_tape_gradient(tape, y, mix_list_of(x)), 0);
  assert_no_error();
  return y;
}

static float integer_at(mix_layer *layer, int64_t i) {
  return (float)at(mix_variable_true_value(named(layer, "kernel")), i);
}
static float scale_at(mix_layer *layer, int64_t i) {
  return (float)at(mix_variable_true_value(named(layer, "kernel_scale")), i);
}

/* The integers of the row sum up exactly; one division by both scales. The gradient takes no notice of the
 * inputs' rounding. */
static void Q10_Q11_dense_int8(void **state) {
  setup_keras3(state);
  mix_layer *layer = quantized(dense_of("float32"), MIX_SHAPE(1, 5), "int8", 0, false, false);
  mix_tensor *gradient, *y = call(layer, F32, &gradient);
  const float of_inputs = 127.0f / (3.0f + 1e-7f);
  for (int j = 0; j < 3; j++) {
    int sum = 0;
    for (int i = 0; i < 5; i++)
      sum += (int)nearbyintf((float)row[i] * of_inputs) * (int)integer_at(layer, 3 * i + j);
    assert_true(at(y, j) == (double)((float)sum / (scale_at(layer, j) * of_inputs)));
  }
  for (int i = 0; i < 5; i++) {
    double sum = 0;
    for (int j = 0; j < 3; j++) sum += (double)(integer_at(layer, 3 * i + j) / scale_at(layer, j));
    assert_near(at(gradient, i), sum, 1e-6);
  }
}

static void Q12_inputs_stay_floating(void **state) {
  setup_keras3(state);
  mix_layer *layer = quantized(dense_of("float32"), MIX_SHAPE(1, 5), "int8", 0, false, true);
  mix_tensor *gradient, *y = call(layer, F32, &gradient);
  for (int j = 0; j < 3; j++) {
    double sum = 0;
    for (int i = 0; i < 5; i++) sum += (double)(float)row[i] * (double)integer_at(layer, 3 * i + j);
    assert_near(at(y, j), sum / (double)scale_at(layer, j), 1e-6);
  }
  assert_near(at(gradient, 0),
              (double)(127 / scale_at(layer, 0) - 127 / scale_at(layer, 1) + 80 / scale_at(layer, 2)), 1e-6);
}

static mix_layer *einsum_of(const char *equation, mix_shape result, mix_shape input) {
  mix_layer *layer = mix_einsum_dense(equation, .output_shape = result);
  mix_layer_build(layer, input);
  assert_no_error();
  return layer;
}

/* Dense divides the sum: 5/3. EinsumDense divides the kernel: five of 0.333984375. */
static void Q13_dense_and_einsum_divide_elsewhere(void **state) {
  setup_keras3(state);
  const mix_shape input = MIX_SHAPE(1, 5);
  mix_layer *layers[] = {mix_dense(1, .no_bias = true, .dtype = "bfloat16"),
                         mix_einsum_dense("ab,bc->ac", .output_shape = MIX_SHAPE(1), .dtype = "bfloat16")};
  for (int i = 0; i < 2; i++) {
    mix_layer *layer = quantized(layers[i], input, "int4", -1, false, false);
    mix_variable_assign(named(layer, "kernel"), mix_fill(MIX_SHAPE(5, 1), 1, MIX_INT8));
    mix_variable_assign(named(layer, "kernel_scale"), mix_fill(MIX_SHAPE(1), 3, MIX_BFLOAT16));
    mix_tensor *y = mix_call(layer, mix_fill(input, 1, MIX_BFLOAT16));
    assert_no_error();
    assert_true(at(y, 0) == (i ? 1.671875 : 1.6640625));
  }
}

/* The scale is read in the compute dtype; the product with integers up to 15 is then exact, and is rounded.
 */
static void Q17_the_kernel_of_blocks(void **state) {
  setup_keras3(state);
  mix_layer *layer = quantized(dense_of("mixed_bfloat16"), MIX_SHAPE(5, 5), "int4", 2, false, false);
  mix_tensor *eye = mix_one_hot(mix_range(0, 5, 1, MIX_INT32), 5, F32), *y = mix_call(layer, eye);
  mix_tensor *scales = mix_cast(mix_variable_true_value(named(layer, "kernel_scale")), MIX_BFLOAT16),
             *zeros = mix_variable_true_value(named(layer, "kernel_zero")),
             *q = mix_unpack_int4(mix_variable_true_value(named(layer, "kernel")), 1, 3);
  for (int i = 0; i < 15; i++) {
    const int group = i / 6 * 3 + i % 3;
    const double exact = (at(q, i) - at(zeros, group)) * at(scales, group);
    assert_true(at(y, i) == at(mix_scalar(exact, MIX_BFLOAT16), 0));
  }
}

static void Q18_scales_of_einsums(void **state) {
  setup_keras3(state);
  static const struct {
    const char *equation;
    mix_shape result, input, scale;
  } rows[] = {{"ab,bc->ac", MIX_SHAPE(4), MIX_SHAPE(2, 6), MIX_SHAPE(1, 4)},
              {"ab,cb->ac", MIX_SHAPE(4), MIX_SHAPE(2, 6), MIX_SHAPE(1, 4)},
              {"abc,bd->adc", MIX_SHAPE(4, 3), MIX_SHAPE(2, 5, 3), MIX_SHAPE(1, 4, 1)},
              {"abc,cde->abde", MIX_SHAPE(7, 2, 3), MIX_SHAPE(2, 7, 5), MIX_SHAPE(1, 1, 2, 3)},
              {"abcd,cde->abe", MIX_SHAPE(7, 5), MIX_SHAPE(2, 7, 2, 3), MIX_SHAPE(1, 1, 5)},
              {"abc,ced->abde", MIX_SHAPE(7, 2, 3), MIX_SHAPE(2, 7, 5), MIX_SHAPE(1, 1, 2, 3)}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    mix_layer *layer = einsum_of(rows[i].equation, rows[i].result, rows[i].input);
    mix_tensor *kernel = mix_variable_value(mix_list_get(mix_layer_weights(layer), 0)),
               *x = mix_random_normal(mix_generator_new(7), rows[i].input, F32), *before = mix_call(layer, x);
    const mix_shape shape = mix_tensor_shape(kernel);
    quantized(layer, rows[i].input, "int8", 0, false, false);
    assert_variable(layer, "kernel", MIX_INT8, shape);
    assert_variable(layer, "kernel_scale", MIX_FLOAT32, rows[i].scale);
    mix_tensor *after = mix_call(layer, x);
    for (int64_t k = 0; k < mix_shape_size(mix_tensor_shape(after)); k++)
      assert_near(at(after, k), at(before, k),
                  0.1); /* two roundings of 1/254 of sums of six numbers up to 3 */
  }
}

/* The axes that are summed over are one after the other: reshaped, not transposed. */
static void Q19_einsums_of_4_bits(void **state) {
  setup_keras3(state);
  mix_layer *layer = einsum_of("ab,cb->ac", MIX_SHAPE(4), MIX_SHAPE(2, 6));
  mix_tensor *kernel =
      mix_reshape(mix_variable_value(mix_list_get(mix_layer_weights(layer), 0)), MIX_SHAPE(6, 4));
  mix_quantized expected;
  assert_true(mix_quantize_blocks(kernel, 0, 4, &expected));
  quantized(layer, MIX_SHAPE(2, 6), "int4", 4, false, false);
  assert_variable(layer, "kernel", MIX_INT8, MIX_SHAPE(6, 2));
  assert_variable(layer, "kernel_scale", MIX_FLOAT32, MIX_SHAPE(2, 4));
  mix_tensor *packed = mix_pack_int4(expected.stored, 1),
             *got = mix_variable_true_value(named(layer, "kernel"));
  for (int i = 0; i < 12; i++) assert_true(at(got, i) == at(packed, i));
}

static void Q26_an_ellipsis(void **state) {
  setup_keras3(state);
  mix_tensor *x = mix_input(.shape = MIX_SHAPE(4, 6));
  mix_tensor *y = mix_call(mix_dense(6, .name = "first"), x);
  mix_model *model = mix_model_new(
      x, mix_call(mix_einsum_dense("...b,bc->...c", .output_shape = MIX_SHAPE(2), .name = "e"), y));
  assert_int_equal(mix_model_quantize(model, "int8"), MIX_TYPE_ERROR);
  expect_error(MIX_TYPE_ERROR, "has an ellipsis");
  assert_int_equal(mix_model_quantize(model, "int4"), MIX_TYPE_ERROR);
  expect_error(MIX_TYPE_ERROR, "has an ellipsis");
  assert_string_equal(mix_policy_name(mix_layer_policy(mix_model_get_layer(model, "first"))), "float32");
  assert_null(mix_call(
      mix_einsum_dense("...b,bc->...c", .output_shape = MIX_SHAPE(2), .dtype = "int8_from_float32"), x));
  expect_error(MIX_TYPE_ERROR, "has an ellipsis");
  assert_int_equal(mix_model_quantize(model, "float8"), MIX_OK);
}

/* ---- under a policy ---- */

static void Q27_made_under_a_policy(void **state) {
  setup_keras3(state);
  static const char *const policies[] = {"int8_from_float32", "int4_from_float32", "int4/2_from_float32"};
  static const char *const names[] = {"bias", "kernel", "kernel_scale", "kernel_zero", "g_idx"};
  for (int p = 0; p < 3; p++) {
    mix_layer *layer = mix_dense(3, .dtype = policies[p]);
    mix_layer_build(layer, MIX_SHAPE(2, 5));
    assert_no_error();
    mix_list *weights = mix_layer_weights(layer);
    assert_int_equal(mix_list_count(weights), p == 2 ? 5 : 3);
    for (int i = 0; i < mix_list_count(weights); i++)
      assert_string_equal(strrchr(mix_variable_name(mix_list_get(weights, i)), '/') + 1, names[i]);
    assert_variable(layer, "kernel", MIX_INT8, MIX_SHAPE(5, p ? 2 : 3));
    assert_variable(layer, "kernel_scale", MIX_FLOAT32, p == 2 ? MIX_SHAPE(3, 3) : MIX_SHAPE(3));
    assert_true(at(mix_variable_true_value(named(layer, "kernel")), 0) == 0 && scale_at(layer, 0) == 1);
    mix_tensor *y = mix_call(layer, mix_fill(MIX_SHAPE(2, 5), 1, F32));
    assert_true(at(y, 0) == 0);
  }
  static const char weights_only[] =
      "{\"class_name\": \"Int8QuantizationConfig\", \"config\": {\"activation_quantizer\": null}}";
  mix_layer *layer = mix_dense(1, .dtype = "int8_from_float32", .quantization_config = weights_only);
  mix_call(layer, ARRAY(F32, MIX_SHAPE(1, 2), 1, 1e-4));
  mix_variable_assign(named(layer, "kernel"), mix_fill(MIX_SHAPE(2, 1), 1, MIX_INT8));
  assert_true(at(mix_call(layer, ARRAY(F32, MIX_SHAPE(1, 2), 1, 1e-4)), 0) == (double)(1 + 1e-4f));
  assert_null(mix_call(mix_dense(1, .dtype = "int4_from_float32", .quantization_config = weights_only),
                       mix_fill(MIX_SHAPE(1, 2), 1, F32)));
  expect_error(MIX_VALUE_ERROR, "one mode in both");
  assert_null(mix_dense(1, .quantization_config = "{"));
  expect_error(MIX_VALUE_ERROR, "quantization_config");
}

/* Functions agree with single calls, and a batch of any size with its rows. */
static mix_list *body(void *context, mix_list *arguments) {
  return mix_list_of(mix_call(context, mix_list_get(arguments, 0)));
}
static void functions_agree(void **state) {
  setup_keras3(state);
  for (int i = 0; i < 3; i++) {
    mix_layer *layer =
        quantized(dense_of("float32"), MIX_SHAPE(1, 5), i ? "int4" : "int8", i == 1 ? -1 : 0, i == 1, false);
    mix_tensor *x = mix_random_normal(mix_generator_new(3), MIX_SHAPE(7, 5), F32);
    mix_function *function = mix_function_new(body, layer);
    mix_tensor *y = mix_call(layer, x), *z = mix_list_get(mix_function_call(function, mix_list_of(x)), 0);
    assert_no_error();
    for (int k = 0; k < 21; k++) assert_true(at(y, k) == at(z, k));
    mix_tensor *one = mix_call(layer, mix_slice(x, MIX_SHAPE(4, 0), MIX_SHAPE(1, 5)));
    for (int k = 0; k < 3 && !i; k++) assert_true(at(one, k) == at(y, 12 + k));
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {TEST(Q06_one_scale_a_column),
                                     TEST(Q07_zeros_and_bfloat16),
                                     TEST(Q15_blocks),
                                     TEST(Q16_groups_that_lose_most),
                                     TEST(what_is_odd),
                                     TEST(Q08_scales_have_the_variable_dtype),
                                     TEST(Q09_weights_of_dense),
                                     TEST(Q10_Q11_dense_int8),
                                     TEST(Q12_inputs_stay_floating),
                                     TEST(Q13_dense_and_einsum_divide_elsewhere),
                                     TEST(Q17_the_kernel_of_blocks),
                                     TEST(Q18_scales_of_einsums),
                                     TEST(Q19_einsums_of_4_bits),
                                     TEST(Q26_an_ellipsis),
                                     TEST(Q27_made_under_a_policy),
                                     TEST(functions_agree)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
