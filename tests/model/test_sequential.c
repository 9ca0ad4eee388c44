/* Sequential models: built by data, by a shape, or by a call. */
#include "base/processor.h"
#include "model/model.h"
#include "model/support.h"
#include <mixtape/device.h>

static mix_layer *scaling(double w, const char *name) {
  return mix_dense(.units = 1, .no_bias = true,
                   .kernel_initializer_object = mix_initializer_new("constant", .value = w), .name = name);
}

static void data_builds_it(void **state) {
  (void)state;
  mix_model *model = mix_sequential(mix_list_of(scaling(2, "two"), scaling(3, "three")));
  assert_int_equal(mix_list_count(mix_model_weights(model)), 0);
  assert_true(at(mix_model_call(model, ARRAY(F32, MIX_SHAPE(1, 1), 5)), 0) == 30);
  assert_int_equal(mix_list_count(mix_model_weights(model)), 2);
  /* As in tf_keras when the model is called first. */
  assert_string_equal(mix_variable_name(mix_list_get(mix_model_weights(model), 0)), "sequential/two/kernel");
}

static void fit_builds_it_inside_its_first_step(void **state) {
  (void)state;
  mix_model *model = mix_sequential(mix_list_of(mix_dense(.units = 8, .activation = "relu"),
                                                mix_dense(.units = 3, .activation = "softmax")));
  mix_model_compile(model, .loss = "sparse_categorical_crossentropy",
                    .optimizer = mix_adam(.learning_rate = 0.01), .metrics = {"accuracy"});
  examples e = examples_of(90, 5, 3);
  mix_history *history = mix_model_fit(model, e.x, e.y, .epochs = 30, .verbose = MIX_SILENT);
  assert_no_error();
  assert_int_equal(mix_list_count(mix_model_weights(model)), 4);
  assert_true(mix_logs_get(mix_history_epoch(history, 29), "loss") <
              0.7 * mix_logs_get(mix_history_epoch(history, 0), "loss"));
  assert_true(mix_logs_get(mix_model_evaluate(model, e.x, e.y, .verbose = MIX_SILENT), "accuracy") > 0.8);
}

static void a_shape_builds_it(void **state) {
  (void)state;
  mix_model *model =
      mix_sequential(mix_list_of(mix_flatten(.name = "flat"), mix_dense(.units = 4, .name = "dense")));
  assert_int_equal(mix_model_build(model, MIX_SHAPE(MIX_UNKNOWN, 2, 3)), MIX_OK);
  mix_list *weights = mix_model_weights(model);
  assert_int_equal(mix_list_count(weights), 2);
  assert_true(mix_shape_equal(mix_variable_shape(mix_list_get(weights, 0)), MIX_SHAPE(6, 4)));
  const char *text = mix_model_summary(model);
  assert_non_null(strstr(text, "(None, 6)"));
  assert_non_null(strstr(text, "(None, 4)"));
  assert_non_null(strstr(text, "Total params: 28 "));
  assert_int_equal(mix_model_build(model, MIX_SCALAR), MIX_VALUE_ERROR);
  assert_error(MIX_VALUE_ERROR, "batch dimension");
}

static void layers_are_added_one_by_one(void **state) {
  (void)state;
  mix_model *model = mix_sequential(NULL);
  assert_int_equal(mix_sequential_add(model, scaling(2, "two")), MIX_OK);
  assert_int_equal(mix_sequential_add(model, scaling(3, "three")), MIX_OK);
  assert_int_equal(mix_list_count(mix_model_layers(model)), 2);
  assert_int_equal(mix_sequential_add(model, scaling(4, "two")), MIX_VALUE_ERROR);
  assert_error(MIX_VALUE_ERROR, "unique names; 'two' is taken");
  assert_int_equal(mix_sequential_add(model, NULL), MIX_TYPE_ERROR);
  mix_error_clear();
  mix_tensor *x = mix_input(.shape = MIX_SHAPE(1));
  assert_int_equal(mix_sequential_add(mix_model_new(x, x), scaling(1, "one")), MIX_TYPE_ERROR);
  assert_error(MIX_TYPE_ERROR, "functional");
}

static void before_it_is_built_there_are_no_weights_to_set_or_save(void **state) {
  (void)state;
  mix_model *model = mix_sequential(mix_list_of(scaling(2, "two")));
  assert_null(mix_model_get_weights(model));
  assert_error(MIX_VALUE_ERROR, "no weights yet");
  mix_model_set_weights(model, mix_list_of(ARRAY(F32, MIX_SHAPE(1, 1), 1)));
  assert_error(MIX_VALUE_ERROR, "no weights yet");
  mix_model_save_weights(model, "/tmp/mixtape-never-written.npz");
  assert_error(MIX_VALUE_ERROR, "no weights yet");
  mix_model_load_weights(model, "/tmp/mixtape-never-written.npz");
  assert_error(MIX_VALUE_ERROR, "no weights yet");
  assert_non_null(mix_model_summary(model));
}

/* The summary names the largest product and does not count an embedding table. 1024 examples by (8, 4) are
 * too few for float16 sums, 1024 by (2048, 128) enough for their longer chains. */
static void the_summary_names_the_largest_product(void **state) {
  (void)state;
  mix_set_device(default_device()), mix_set_accumulate("auto");
  const uint32_t features = mix_cpu_features();
  const bool blocks = features & MIX_CPU_AVX512_FP16 && !(features & MIX_CPU_AMX_BF16);
  mix_layer *looked_up = mix_embedding(.input_dim = 2048, .output_dim = 128, .dtype = "mixed_float16");
  mix_model *model =
      mix_sequential(mix_list_of(looked_up, mix_flatten(), mix_dense(.units = 4, .dtype = "mixed_float16")));
  assert_int_equal(mix_model_build(model, MIX_SHAPE(MIX_UNKNOWN, 1)), MIX_OK);
  assert_string_equal(mix_model_kernel_info(model, MIX_FLOAT16, 1024).accumulation,
                      blocks ? "blocked" : "exact");
  mix_layer *dense = mix_dense(.units = 128, .dtype = "mixed_float16");
  model = mix_sequential(mix_list_of(dense));
  assert_int_equal(mix_model_build(model, MIX_SHAPE(MIX_UNKNOWN, 2048)), MIX_OK);
  assert_string_equal(mix_model_kernel_info(model, MIX_FLOAT16, 1024).accumulation,
                      blocks ? "blocked" : "exact");
}

static void another_width_after_building_is_refused(void **state) {
  (void)state;
  mix_model *model = mix_sequential(mix_list_of(scaling(2, "two")));
  mix_model_call(model, ARRAY(F32, MIX_SHAPE(1, 1), 5));
  assert_null(mix_model_call(model, ARRAY(F32, MIX_SHAPE(1, 2), 5, 6)));
  assert_error(MIX_VALUE_ERROR, "two");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(data_builds_it),
      TEST(fit_builds_it_inside_its_first_step),
      TEST(a_shape_builds_it),
      TEST(layers_are_added_one_by_one),
      TEST(before_it_is_built_there_are_no_weights_to_set_or_save),
      TEST(the_summary_names_the_largest_product),
      TEST(another_width_after_building_is_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
