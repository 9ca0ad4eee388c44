/* Files of models whose kernels are integers: order, configs, attention, damage. What Keras does with them:
 * tests/oracle/integers.py. */
#include "model/support.h"
#include "support/expect.h"
#include "support/folder.h"

#include "nn/policy/quantization_config.h"
#include "saving/keras_file.h"
#include <sys/stat.h>

static mix_model *quantized(mix_model *model, const char *mode, int64_t block, bool weights_only,
                            bool inputs) {
  mix_set_log_callback(NULL, NULL);
  mix_model_quantize(model, mode, .block_size = block, .weights_only = weights_only,
                     .quantize_inputs = inputs);
  assert_no_error();
  return model;
}

static mix_model *dense_model(void) {
  mix_set_semantics("keras3");
  mix_tensor *x = mix_input(.shape = MIX_SHAPE(9));
  mix_tensor *y = mix_call(mix_dense(7, .activation = "relu", .name = "first"), x);
  return mix_model_new(x, mix_call(mix_dense(3, .name = "second"), y));
}

static mix_model *attention_model(void) {
  mix_set_semantics("keras3");
  mix_tensor *x = mix_input(.shape = MIX_SHAPE(5, 6));
  mix_tensor *y = mix_call(mix_multi_head_attention(2, 3, .name = "att"), x, .arguments = mix_list_of(x));
  return mix_model_new(
      x, mix_call(mix_grouped_query_attention(3, 4, 2, .name = "groups"), y, .arguments = mix_list_of(y)));
}

static void assert_same(mix_model *a, mix_model *b, mix_shape input) {
  assert_no_error();
  mix_list *variables = mix_model_weights(a);
  assert_int_equal(mix_list_count(variables), mix_list_count(mix_model_weights(b)));
  for (int i = 0; i < mix_list_count(variables); i++) {
    mix_variable *variable = mix_list_get(variables, i);
    mix_tensor *x = mix_variable_true_value(variable),
               *y = mix_variable_true_value(variable_at(b, mix_variable_name(variable)));
    const int64_t count = mix_shape_size(mix_tensor_shape(x));
    assert_int_equal(mix_tensor_dtype(x), mix_tensor_dtype(y));
    assert_true(mix_shape_equal(mix_tensor_shape(x), mix_tensor_shape(y)));
    for (int64_t j = 0; j < count; j++) assert_true(at(x, j) == at(y, j));
  }
  mix_tensor *x = mix_random_normal(mix_generator_new(5), input, F32);
  mix_tensor *one = mix_list_get(mix_model_predict(a, x), 0),
             *other = mix_list_get(mix_model_predict(b, x), 0);
  assert_no_error();
  const int64_t count = mix_shape_size(mix_tensor_shape(one));
  for (int64_t j = 0; j < count; j++) assert_true(at(one, j) == at(other, j));
}

static const struct {
  const char *mode;
  int64_t block;
  bool weights_only, inputs;
} ways[] = {{"int8", 0, false, false}, {"int8", 0, true, false},   {"int4", 0, false, false},
            {"int4", 4, false, false}, {"int4", -1, false, false}, {"int4", -1, false, true}};
enum { WAYS = sizeof ways / sizeof *ways };

static mix_model *made(mix_model *model, int way) {
  return quantized(model, ways[way].mode, ways[way].block, ways[way].weights_only, ways[way].inputs);
}

static void every_kind_reads_back(void **state) {
  (void)state;
  static const char *const kinds[] = {"m.keras", "m.h5", "m.weights.h5", "w.h5", "m.npz"};
  for (int way = 0; way < WAYS; way++) {
    mix_model *model = made(dense_model(), way);
    for (int k = 0; k < 5; k++) {
      if (k < 2)
        mix_model_save(model, in_folder(kinds[k]));
      else
        mix_model_save_weights(model, in_folder(kinds[k]));
      mix_model *again = k < 2 ? mix_model_load(in_folder(kinds[k])) : made(dense_model(), way);
      if (k >= 2) mix_model_load_weights(again, in_folder(kinds[k]));
      assert_same(model, again, MIX_SHAPE(4, 9));
    }
    mix_model *clone = mix_model_clone(model);
    mix_model_set_weights(clone, mix_model_get_weights(model));
    assert_same(model, clone, MIX_SHAPE(4, 9));
  }
}

/* Kernel, bias, and what belongs to the kernel. */
static void Q28_the_order_in_archives(void **state) {
  (void)state;
  static const mix_dtype dtypes[] = {MIX_INT8, MIX_FLOAT32, MIX_FLOAT32, MIX_INT8, MIX_FLOAT32};
  const mix_shape shapes[] = {MIX_SHAPE(9, 4), MIX_SHAPE(7), MIX_SHAPE(3, 7), MIX_SHAPE(3, 7), MIX_SHAPE(9)};
  mix_model *model = quantized(dense_model(), "int4", 4, false, false);
  mix_model_save(model, in_folder("m.keras"));
  mix_keras_file file;
  assert_true(mix_keras_file_open(&file, in_folder("m.keras"), true));
  for (int i = 0; i < 5; i++) {
    char path[64];
    mix_dtype dtype;
    mix_shape shape;
    snprintf(path, sizeof path, "layers/dense/vars/%d", i);
    assert_true(mix_hdf5_describe(&file.hdf5, path, &dtype, &shape));
    assert_int_equal(dtype, dtypes[i]);
    assert_true(mix_shape_equal(shape, shapes[i]));
  }
  mix_keras_file_close(&file);
}

/* What a config says comes back, and one without a block size is per channel. */
static void Q29_configs(void **state) {
  (void)state;
  mix_model *model = dense_model();
  mix_model_quantize(model, "int8", .weight_low = -63, .weight_high = 63, .input_low = -100,
                     .input_high = 100, .input_epsilon = 1e-3);
  mix_model_save(model, in_folder("m.keras"));
  mix_model *again = mix_model_load(in_folder("m.keras"));
  assert_same(model, again, MIX_SHAPE(4, 9));
  const char *config = mix_layer_config(mix_model_get_layer(again, "first"));
  assert_non_null(strstr(config, "\"value_range\": [-63, 63]"));
  assert_non_null(strstr(config, "\"value_range\": [-100, 100], \"epsilon\": 0.001"));
  mix_quantization_config read;
  assert_true(
      mix_quantization_config_parse("{\"class_name\": \"Int4QuantizationConfig\", \"config\": {}}", &read));
  assert_int_equal(read.block_size, -1);
  static const char *const bad[][2] = {
      {"{\"class_name\": \"Int4QuantizationConfig\", \"config\": {\"block_size\": 0}}", "block_size is 0"},
      {"{\"class_name\": \"Int4QuantizationConfig\", \"config\": {\"block_size\": -2}}", "block_size"},
      {"{\"class_name\": \"Int8QuantizationConfig\", \"config\": {\"activation_quantizer\": {\"class_name\": "
       "\"AbsMaxQuantizer\", \"config\": {\"value_range\": [-300, 127]}}}}",
       "value_range is (-300, 127)"},
      {"{\"class_name\": \"Int8QuantizationConfig\", \"config\": {\"weight_quantizer\": {\"class_name\": "
       "\"AbsMaxQuantizer\", \"config\": {\"output_dtype\": \"uint8\"}}}}",
       "output_dtype is 'uint8'"}};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    assert_false(mix_quantization_config_parse(bad[i][0], &read));
    expect_error(MIX_VALUE_ERROR, bad[i][1]);
  }
  assert_false(mix_quantization_config_parse(
      "{\"class_name\": \"Int8QuantizationConfig\", \"config\": {\"weight_quantizer\": {\"class_name\": "
      "\"Own\", \"config\": {}}}}",
      &read));
  expect_error(MIX_UNSUPPORTED, "AbsMaxQuantizer");
  assert_false(mix_quantization_config_parse("{\"class_name\": \"GPTQConfig\"}", &read));
  expect_error(MIX_UNSUPPORTED, "GPTQConfig");
  assert_false(mix_quantization_config_parse("[1]", &read));
  expect_error(MIX_UNSUPPORTED, "not supported");
}

/* Keras refuses its own such files. */
static void Q30_attention_reads_back(void **state) {
  (void)state;
  for (int way = 0; way < WAYS; way++) {
    mix_model *model = made(attention_model(), way);
    for (int h5 = 0; h5 < 2; h5++) {
      mix_model_save(model, in_folder(h5 ? "m.h5" : "m.keras"));
      mix_model *again = mix_model_load(in_folder(h5 ? "m.h5" : "m.keras"));
      assert_same(model, again, MIX_SHAPE(2, 5, 6));
      mix_model_save(again, in_folder("again.keras"));
      assert_same(model, mix_model_load(in_folder("again.keras")), MIX_SHAPE(2, 5, 6));
    }
  }
}

static void assert_refused(mix_model *model, const char *file, const char *message) {
  assert_int_equal(mix_model_load_weights(model, file), MIX_VALUE_ERROR);
  expect_error(MIX_VALUE_ERROR, message);
}

/* Files that do not fit the layers, and numbers that no quantizer makes. */
static void what_does_not_fit(void **state) {
  (void)state;
  mix_model *four = quantized(dense_model(), "int4", 4, false, false);
  mix_model_save_weights(four, in_folder("four.weights.h5"));
  assert_refused(dense_model(), in_folder("four.weights.h5"), "has 2 variables");
  assert_refused(quantized(dense_model(), "int8", 0, false, false), in_folder("four.weights.h5"),
                 "has 3 variables");
  assert_refused(quantized(dense_model(), "int4", 3, false, false), in_folder("four.weights.h5"),
                 "has other groups than"); /* three of 3 rows, in arrays of the same shapes */
  mix_set_semantics("keras3");
  mix_tensor *x = mix_input(.shape = MIX_SHAPE(9));
  mix_tensor *y = mix_call(mix_dense(9, .activation = "relu", .name = "first"), x);
  mix_model *wide = mix_model_new(x, mix_call(mix_dense(3, .name = "second"), y));
  assert_refused(quantized(wide, "int4", 4, false, false), in_folder("four.weights.h5"), "has shape (9, 5)");
  mix_variable_assign(variable_at(four, "first/kernel_scale"), mix_fill(MIX_SHAPE(3, 7), NAN, F32));
  mix_model_save(four, in_folder("m.keras"));
  mix_model *again = mix_model_load(in_folder("m.keras"));
  assert_no_error();
  assert_true(isnan(at(mix_list_get(mix_model_predict(again, mix_fill(MIX_SHAPE(1, 9), 1, F32)), 0), 0)));
}

/* A map is for policies of floating weights. */
static void a_map_stores_no_integers(void **state) {
  (void)state;
  mix_model_save(dense_model(), in_folder("m.keras"));
  mix_policy *map = mix_policy_map_new("float32");
  mix_policy_map_set(map, "first", mix_policy_new("int8_from_float32"));
  assert_null(mix_model_load(in_folder("m.keras"), .policy_map = map));
  expect_error(MIX_UNSUPPORTED, "quantize it with mix_model_quantize");
}

/* The file of a kernel of 256 x 256, against float32's. */
static void files_are_small(void **state) {
  (void)state;
  enum { SIZE = 256 };
  for (int int4 = 0; int4 < 2; int4++) {
    struct stat info;
    mix_set_semantics("keras3");
    mix_tensor *x = mix_input(.shape = MIX_SHAPE(SIZE));
    mix_model *model = mix_model_new(x, mix_call(mix_dense(SIZE), x));
    quantized(model, int4 ? "int4" : "int8", 0, false, false);
    mix_model_save_weights(model, in_folder("m.weights.h5"));
    assert_no_error();
    assert_int_equal(stat(in_folder("m.weights.h5"), &info), 0);
    const double part = ((double)info.st_size - 12288) / (4.0 * SIZE * SIZE); /* what holds the arrays */
    assert_true(part <= (int4 ? 0.15 : 0.26)); /* 256 rows of g_idx are 0.004 of it, of 4096 nothing */
  }
}

#undef TEST
static int begin(void **state) { return folder_begin(NULL) || setup(state); }
static int end(void **state) { return teardown(state) || folder_end(NULL); }
#define TEST(function) cmocka_unit_test_setup_teardown(function, begin, end)

int main(void) {
  const struct CMUnitTest tests[] = {TEST(every_kind_reads_back), TEST(Q28_the_order_in_archives),
                                     TEST(Q29_configs),           TEST(Q30_attention_reads_back),
                                     TEST(what_does_not_fit),     TEST(a_map_stores_no_integers),
                                     TEST(files_are_small)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
