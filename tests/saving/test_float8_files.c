/* Files of float8 models: the order of their weights, attention, layers that a map makes float8, damaged
 * groups. What Keras does with them: tests/oracle/float8.py. */
#include "model/support.h"
#include "support/expect.h"
#include "support/folder.h"

#include "saving/keras_file.h"

static mix_tensor *numbers(mix_shape shape) {
  double values[512];
  for (int64_t i = 0; i < mix_shape_size(shape); i++) values[i] = (double)((i * 37) % 101) / 50 - 1;
  return mix_tensor_from_doubles(values, F32, shape);
}

static mix_model *compiled(mix_tensor *x, mix_tensor *y) {
  mix_model *model = mix_model_new(x, y);
  mix_model_quantize(model, "float8", .amax_history_length = 4);
  mix_model_compile(model, .loss = "mse", .optimizer = mix_adam());
  assert_no_error();
  return model;
}

static mix_model *dense_model(void) {
  mix_set_semantics("keras3");
  mix_tensor *x = mix_input(.shape = MIX_SHAPE(4));
  mix_tensor *y = mix_call(mix_dense(8, .activation = "relu", .name = "first"), x);
  return compiled(x, mix_call(mix_dense(2, .name = "second"), y));
}

static mix_model *attention_model(void) {
  mix_set_semantics("keras3");
  mix_tensor *x = mix_input(.shape = MIX_SHAPE(5, 6));
  mix_tensor *y = mix_call(mix_multi_head_attention(2, 3, .name = "att"), x, .arguments = mix_list_of(x));
  return compiled(
      x, mix_call(mix_grouped_query_attention(3, 4, 2, .name = "groups"), y, .arguments = mix_list_of(y)));
}

static void train(mix_model *model, mix_shape inputs, mix_shape labels) {
  for (int i = 0; i < 3; i++) mix_model_train_on_batch(model, numbers(inputs), numbers(labels));
  assert_no_error();
}

static mix_tensor *value_of(mix_model *model, const char *path) {
  return mix_variable_true_value(variable_at(model, path));
}

static void assert_same(mix_model *a, mix_model *b) {
  assert_no_error();
  mix_list *variables = mix_model_weights(a);
  assert_int_equal(mix_list_count(variables), mix_list_count(mix_model_weights(b)));
  for (int i = 0; i < mix_list_count(variables); i++) {
    mix_variable *variable = mix_list_get(variables, i);
    mix_tensor *x = mix_variable_true_value(variable), *y = value_of(b, mix_variable_name(variable));
    const int64_t count = mix_shape_size(mix_tensor_shape(x));
    assert_true(mix_shape_equal(mix_tensor_shape(x), mix_tensor_shape(y)));
    for (int64_t j = 0; j < count; j++) assert_true(at(x, j) == at(y, j));
  }
}

static void every_kind_reads_back(void **state) {
  (void)state;
  static const char *const kinds[] = {"m.keras", "m.h5", "m.weights.h5", "w.h5", "m.npz"};
  mix_model *model = dense_model();
  train(model, MIX_SHAPE(6, 4), MIX_SHAPE(6, 2));
  for (int k = 0; k < 5; k++) {
    if (k < 2)
      mix_model_save(model, in_folder(kinds[k]));
    else
      mix_model_save_weights(model, in_folder(kinds[k]));
    mix_model *again = k < 2 ? mix_model_load(in_folder(kinds[k])) : dense_model();
    if (k >= 2) mix_model_load_weights(again, in_folder(kinds[k]));
    assert_same(model, again);
    if (k < 2) train(again, MIX_SHAPE(6, 4), MIX_SHAPE(6, 2));
    if (k < 2) assert_true(mix_optimizer_iterations(mix_model_optimizer(again)) == 6);
  }
}

/* S01 of Keras: kernel, bias, then the six, whatever the order in the layer. */
static void the_order_in_archives(void **state) {
  (void)state;
  mix_model_save(dense_model(), in_folder("m.keras"));
  mix_model *made = mix_model_load(in_folder("m.keras"));
  assert_string_equal(mix_variable_name(mix_list_get(mix_model_weights(made), 0)), "first/inputs_scale");
  mix_model_save_weights(made, in_folder("m.weights.h5"));
  assert_no_error();
  mix_keras_file file;
  assert_true(mix_keras_file_open(&file, in_folder("m.weights.h5"), false));
  static const int64_t ranks[] = {2, 1, 0, 1, 0, 1, 0, 1};
  for (int i = 0; i < 8; i++) {
    char path[64];
    mix_dtype dtype;
    mix_shape shape;
    snprintf(path, sizeof path, "layers/dense/vars/%d", i);
    assert_true(mix_hdf5_describe(&file.hdf5, path, &dtype, &shape));
    assert_int_equal(shape.rank, ranks[i]);
    if (i > 2 && shape.rank) assert_int_equal(shape.dims[0], 4);
  }
  mix_keras_file_close(&file);
}

/* The config has a map with the policies of the projections, by which they are made float8 again. */
static void attention_reads_back(void **state) {
  (void)state;
  mix_model *model = attention_model();
  train(model, MIX_SHAPE(2, 5, 6), MIX_SHAPE(2, 5, 6));
  const char *config = mix_layer_config(mix_model_get_layer(model, "att"));
  assert_non_null(strstr(config, "\"class_name\": \"DTypePolicyMap\""));
  assert_non_null(strstr(config, "\"att/query\": {\"module\": \"keras.dtype_policies\""));
  mix_model_save(model, in_folder("m.keras"));
  mix_model *again = mix_model_load(in_folder("m.keras"));
  assert_same(model, again);
  train(again, MIX_SHAPE(2, 5, 6), MIX_SHAPE(2, 5, 6));
  mix_model_save(again, in_folder("n.keras"));
  assert_same(again, mix_model_load(in_folder("n.keras")));
  mix_model *clone = mix_model_clone(model);
  assert_int_equal(mix_list_count(mix_model_weights(clone)), mix_list_count(mix_model_weights(model)));
}

static mix_model *plain_model(void) {
  mix_set_semantics("keras3");
  mix_tensor *x = mix_input(.shape = MIX_SHAPE(4));
  mix_model *model = mix_model_new(x, mix_call(mix_dense(2, .name = "second"), x));
  mix_model_compile(model, .loss = "mse", .optimizer = mix_adam());
  return model;
}

/* A file of float32 layers whose map makes one float8: it begins with scales of 1. */
static void a_map_makes_layers_float8(void **state) {
  (void)state;
  mix_model *model = plain_model();
  train(model, MIX_SHAPE(6, 4), MIX_SHAPE(6, 2));
  mix_model_save(model, in_folder("m.keras"));
  mix_policy *map = mix_policy_map_new("float32");
  mix_policy_map_set_name(map, "sec.*", "float8_from_float32");
  mix_model *float8 = mix_model_load(in_folder("m.keras"), .policy_map = map);
  assert_no_error();
  assert_true(at(value_of(float8, "second/kernel"), 3) == at(value_of(model, "second/kernel"), 3));
  assert_true(at(value_of(float8, "second/inputs_scale"), 0) == 1);
  assert_true(at(value_of(float8, "second/outputs_grad_amax_history"), 1023) == 0);
  train(float8, MIX_SHAPE(6, 4), MIX_SHAPE(6, 2));
  assert_true(at(value_of(float8, "second/inputs_amax_history"), 0) == 1);
  expect_refused(mix_model_quantize(float8, "float8") == MIX_OK, MIX_VALUE_ERROR, "a map");
}

/* Weights of a float model are none of a float8 model, and the other way round. */
static void counts_must_agree(void **state) {
  (void)state;
  mix_model *plain = plain_model(), *float8 = plain_model();
  mix_model_quantize(float8, "float8");
  mix_model_save_weights(plain, in_folder("p.weights.h5"));
  mix_model_save_weights(float8, in_folder("f.weights.h5"));
  assert_no_error();
  expect_refused(mix_model_load_weights(float8, in_folder("p.weights.h5")) == MIX_OK, MIX_VALUE_ERROR,
                 "has 8 variables");
  expect_refused(mix_model_load_weights(plain, in_folder("f.weights.h5")) == MIX_OK, MIX_VALUE_ERROR,
                 "has 2 variables");
}

#undef TEST
static int begin(void **state) {
  *state = mix_scope_begin();
  return folder_begin(NULL);
}
static int end(void **state) {
  mix_scope_end(*state);
  const mix_status left = mix_error();
  mix_error_clear();
  return folder_end(NULL) || left != MIX_OK ? -1 : 0;
}
#define TEST(function) cmocka_unit_test_setup_teardown(function, begin, end)

int main(void) {
  const struct CMUnitTest tests[] = {TEST(every_kind_reads_back), TEST(the_order_in_archives),
                                     TEST(attention_reads_back), TEST(a_map_makes_layers_float8),
                                     TEST(counts_must_agree)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
