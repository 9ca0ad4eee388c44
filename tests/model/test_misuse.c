/* What callers get wrong: NULL, other objects, shapes and axes of no rank, counts beyond all data. Each is an error that names the call
 * and what it expected; none reads past what it was given. */
#include "support.h"

#define REFUSED(call, status, part)                                                                                                \
  do {                                                                                                                             \
    assert_true(!(call));                                                                                                          \
    assert_error(status, part);                                                                                                    \
  } while (0)
/* The same of a call that returns its status. */
#define FAILS(call, status, part)                                                                                                  \
  do {                                                                                                                             \
    assert_int_equal(call, status);                                                                                                \
    assert_error(status, part);                                                                                                    \
  } while (0)

static mix_tensor *matrix(void) { return ARRAY(F32, MIX_SHAPE(2, 3), 1, -2, 3, 4, 0.5, 6); }

static void layers_are_given_nothing(void **state) {
  (void)state;
  mix_layer *layer = mix_dense(.units = 2);
  REFUSED(mix_call(NULL, matrix()), MIX_TYPE_ERROR, "call: got NULL; expected a layer");
  REFUSED(mix_call_outputs(layer, NULL), MIX_TYPE_ERROR, "got NULL for inputs");
  REFUSED(mix_call_input(NULL, 0), MIX_TYPE_ERROR, "call_input");
  REFUSED(mix_call_argument(NULL, 0), MIX_TYPE_ERROR, "call_argument");
  REFUSED(mix_layer_add_layer(layer, NULL), MIX_TYPE_ERROR, "an inner layer");
  REFUSED(mix_layer_add_layer(NULL, layer), MIX_TYPE_ERROR, "layer_add_layer");
  REFUSED(mix_layer_add_weight(NULL, "kernel"), MIX_TYPE_ERROR, "layer_add_weight");
  REFUSED(mix_layer_weights(NULL), MIX_TYPE_ERROR, "layer_weights");
  REFUSED(mix_layer_trainable_weights(NULL), MIX_TYPE_ERROR, "layer_trainable_weights");
  REFUSED(mix_layer_non_trainable_weights(NULL), MIX_TYPE_ERROR, "layer_non_trainable_weights");
  REFUSED(mix_layer_get_weights(NULL), MIX_TYPE_ERROR, "layer_get_weights");
  REFUSED(mix_layer_layers(NULL), MIX_TYPE_ERROR, "layer_layers");
  REFUSED(mix_layer_losses(NULL), MIX_TYPE_ERROR, "layer_losses");
  REFUSED(mix_layer_config(NULL), MIX_TYPE_ERROR, "layer_config");
  REFUSED(mix_layer_serialize(NULL), MIX_TYPE_ERROR, "layer_serialize");
  FAILS(mix_layer_build(NULL, MIX_SHAPE(1, 3)), MIX_TYPE_ERROR, "layer_build");
  FAILS(mix_layer_set_weights(layer, NULL), MIX_TYPE_ERROR, "a list of values");
  FAILS(mix_layer_add_loss(layer, NULL), MIX_TYPE_ERROR, "a scalar loss");
  FAILS(mix_layer_set_input_spec(NULL, NULL), MIX_TYPE_ERROR, "layer_set_input_spec");
}

static void computations_are_given_nothing(void **state) {
  (void)state;
  mix_tensor *x = matrix(), **none = NULL;
  mix_loss *loss = mix_mean_squared_error();
  mix_loss_scale *scale = mix_dynamic_loss_scale(0);
  FAILS(mix_evaluate(1, none), MIX_TYPE_ERROR, "evaluate");
  REFUSED(mix_add_n(2, none), MIX_TYPE_ERROR, "add_n");
  REFUSED(mix_concat(2, none, 0), MIX_TYPE_ERROR, "concat");
  REFUSED(mix_activate("relu", NULL), MIX_TYPE_ERROR, "activate");
  REFUSED(mix_initializer_call(NULL, MIX_SHAPE(2), F32), MIX_TYPE_ERROR, "initializer_call");
  REFUSED(mix_regularizer_call(NULL, x), MIX_TYPE_ERROR, "a regularizer");
  REFUSED(mix_regularizer_call(mix_regularizer_new("l2"), NULL), MIX_TYPE_ERROR, "a weight");
  REFUSED(mix_constraint_call(NULL, x), MIX_TYPE_ERROR, "a constraint");
  REFUSED(mix_constraint_call(mix_constraint_new("non_neg"), NULL), MIX_TYPE_ERROR, "a weight");
  REFUSED(mix_loss_call(NULL, x, x), MIX_TYPE_ERROR, "a loss");
  REFUSED(mix_loss_call(loss, NULL, x), MIX_TYPE_ERROR, "labels");
  REFUSED(mix_loss_call(loss, x, NULL), MIX_TYPE_ERROR, "predictions");
  REFUSED(mix_loss_scale_value(NULL), MIX_TYPE_ERROR, "loss_scale_value");
  REFUSED(mix_loss_scale_update(NULL, mix_scalar(1, MIX_BOOL)), MIX_TYPE_ERROR, "a loss scale");
  REFUSED(mix_loss_scale_update(scale, NULL), MIX_TYPE_ERROR, "a bool scalar");
  REFUSED(mix_all_finite_of(NULL), MIX_TYPE_ERROR, "a list of gradients");
  REFUSED(mix_optimizer_scale_loss(mix_sgd(), NULL), MIX_TYPE_ERROR, "optimizer_scale_loss");
  REFUSED(mix_schedule_call(mix_exponential_decay(0.1, 10, 0.5, false), NULL), MIX_TYPE_ERROR, "schedule_call");
  REFUSED(mix_optimizer_for_policy(NULL, NULL), MIX_TYPE_ERROR, "optimizer_for_policy");
  FAILS(mix_optimizer_exclude_from_weight_decay(mix_sgd(), NULL, 1, NULL), MIX_VALUE_ERROR, "1 names at NULL");
  FAILS(mix_optimizer_exclude_from_weight_decay(mix_sgd(), NULL, -1, NULL), MIX_VALUE_ERROR, "-1 names");
  REFUSED(mix_metric_variables(NULL), MIX_TYPE_ERROR, "metric_variables");
  REFUSED(mix_metric_result_tensor(NULL), MIX_TYPE_ERROR, "metric_result");
  FAILS(mix_metric_build(NULL, MIX_SHAPE(1), MIX_SHAPE(1)), MIX_TYPE_ERROR, "metric_build");
  FAILS(mix_metric_reset(NULL), MIX_TYPE_ERROR, "metric_reset");
  FAILS(mix_metric_update(NULL, x), MIX_TYPE_ERROR, "metric_update");
  REFUSED(mix_numerics_run(NULL, x, x), MIX_TYPE_ERROR, "numerics_run");
  FAILS(mix_numerics_write_png(NULL, "picture.png"), MIX_TYPE_ERROR, "numerics_write_png");
}

static void texts_are_asked_of_nothing(void **state) {
  (void)state;
  REFUSED(mix_policy_serialize(NULL), MIX_TYPE_ERROR, "policy_serialize");
  REFUSED(mix_policy_config(NULL), MIX_TYPE_ERROR, "policy_config");
  REFUSED(mix_loss_scale_serialize(NULL), MIX_TYPE_ERROR, "loss_scale_serialize");
  REFUSED(mix_loss_scale_config(NULL), MIX_TYPE_ERROR, "loss_scale_config");
  REFUSED(mix_optimizer_serialize(NULL), MIX_TYPE_ERROR, "optimizer_serialize");
  REFUSED(mix_optimizer_get_config(NULL), MIX_TYPE_ERROR, "optimizer_get_config");
  REFUSED(mix_metric_get_config(NULL), MIX_TYPE_ERROR, "metric_get_config");
  REFUSED(mix_numerics_table(NULL, true), MIX_TYPE_ERROR, "numerics_table");
  REFUSED(mix_numerics_json(NULL), MIX_TYPE_ERROR, "numerics_json");
  /* No room for a text is no text. */
  assert_string_equal(mix_tensor_text(matrix(), NULL, 100), "");
  assert_string_equal(mix_variable_text(mix_variable_new(matrix()), NULL, 100), "");
  assert_string_equal(mix_policy_text(mix_global_policy(), NULL, 100), "");
  assert_string_equal(mix_loss_scale_text(mix_fixed_loss_scale(2), NULL, 100), "");
  assert_string_equal(mix_shape_text(MIX_SHAPE(1), NULL, 100), "");
  mix_metric_update_options unset = {.values = matrix()}; /* its size is not set */
  FAILS(mix_metric_update_with(mix_metric_mean(), &unset), MIX_VALUE_ERROR, "the options' size is 0");
}

/* The first error stands: what comes after it is not looked at. */
static void a_pending_error_stays(void **state) {
  (void)state;
  mix_tensor *x = matrix();
  assert_null(mix_dense());
  assert_null(mix_call(NULL, x));
  assert_null(mix_layer_weights(NULL));
  assert_int_equal(mix_layer_build(NULL, MIX_SHAPE(1)), MIX_VALUE_ERROR);
  assert_error(MIX_VALUE_ERROR, "dense: units is 0");
}

static void lists_hold_other_objects(void **state) {
  (void)state;
  mix_layer *layer = mix_dense(.units = 2);
  mix_list *others = mix_list_of(layer);
  REFUSED(mix_call(layer, others), MIX_TYPE_ERROR, "item 0");
  REFUSED(mix_call(layer, matrix(), .arguments = others), MIX_TYPE_ERROR, "item 0 of arguments");
  REFUSED(mix_call(layer, matrix(), .masks = others), MIX_TYPE_ERROR, "item 0 of masks");
  REFUSED(mix_call(layer, matrix(), .initial_state = others), MIX_TYPE_ERROR, "item 0 of initial_state");
  REFUSED(mix_dataset_from_list(others), MIX_TYPE_ERROR, "item 0 is another object");
}

/* A shape or a list of axes has room for MIX_MAX_RANK numbers, whatever its count says. */
static void ranks_that_are_none(void **state) {
  (void)state;
  const mix_shape ranks[] = {{.rank = MIX_MAX_RANK + 1}, {.rank = 1000000}, {.rank = -1}};
  const mix_axes counts[] = {{.count = MIX_MAX_RANK + 1}, {.count = -1}};
  char text[160];
  for (int i = 0; i < 3; i++) {
    assert_int_equal(mix_shape_size(ranks[i]), MIX_UNKNOWN);
    assert_false(mix_shape_equal(ranks[i], ranks[i]));
    assert_non_null(strstr(mix_shape_text(ranks[i], text, sizeof text), "rank"));
    REFUSED(mix_fill(ranks[i], 1, F32), MIX_VALUE_ERROR, "fill");
    REFUSED(mix_dropout(.rate = 0.5, .noise_shape = ranks[i]), MIX_VALUE_ERROR, "dropout: noise_shape has rank");
    REFUSED(mix_alpha_dropout(.rate = 0.5, .noise_shape = ranks[i]), MIX_VALUE_ERROR, "alpha_dropout: noise_shape has rank");
    FAILS(mix_layer_build(mix_dense(.units = 2), ranks[i]), MIX_VALUE_ERROR, "layer_build: input_shape has rank");
    assert_int_equal(mix_layer_output_shape(mix_dense(.units = 2), ranks[i]).rank, 0);
    assert_error(MIX_VALUE_ERROR, "layer_output_shape: input_shape has rank");
  }
  for (int i = 0; i < 2; i++) {
    REFUSED(mix_normalization(.axis = counts[i]), MIX_VALUE_ERROR, "normalization: axis names");
    REFUSED(mix_layer_normalization(.axis = counts[i]), MIX_VALUE_ERROR, "layer_normalization: axis names");
    REFUSED(mix_rms_normalization(.axis = counts[i]), MIX_VALUE_ERROR, "rms_normalization: axis names");
    REFUSED(mix_unit_normalization(.axis = counts[i]), MIX_VALUE_ERROR, "unit_normalization: axis names");
    REFUSED(mix_softmax_layer(.axis = counts[i]), MIX_VALUE_ERROR, "softmax_layer: axis names");
    REFUSED(mix_prelu(.shared_axes = counts[i]), MIX_VALUE_ERROR, "prelu: shared_axes names");
    REFUSED(mix_reduce_sum(matrix(), counts[i], false), MIX_VALUE_ERROR, "reduce_sum");
  }
}

static void numbers_that_cannot_be_counted(void **state) {
  (void)state;
  mix_layer *huge = mix_reshape_layer(MIX_SHAPE(INT64_MAX, INT64_MAX));
  REFUSED(mix_call(huge, matrix()), MIX_VALUE_ERROR, "does not fill target_shape");
  mix_tensor *x = mix_input(.shape = MIX_SHAPE(3));
  mix_model *model = mix_model_new(x, mix_call(mix_dense(.units = 1), x));
  mix_model_compile(model, .loss = "mse", .optimizer_name = "sgd");
  mix_tensor *y = ARRAY(F32, MIX_SHAPE(2, 1), 1, 2);
  assert_non_null(mix_model_fit(model, matrix(), y, .verbose = MIX_SILENT, .steps_per_epoch = INT64_MAX));
  assert_non_null(mix_model_evaluate(model, matrix(), y, .verbose = MIX_SILENT, .steps = INT64_MAX));
  assert_non_null(mix_model_predict(model, matrix(), .steps = INT64_MAX));
  assert_no_error();
}

/* An unknown name: the message lists those there are. */
static void names_that_are_none(void **state) {
  (void)state;
  REFUSED(mix_dense(.units = 2, .activation = "rleu"), MIX_VALUE_ERROR, "relu, ");
  REFUSED(mix_activation("rleu"), MIX_VALUE_ERROR, "relu, ");
  REFUSED(mix_activate("rleu", matrix()), MIX_VALUE_ERROR, "relu, ");
  REFUSED(mix_dense(.units = 2, .kernel_initializer = "glorot"), MIX_VALUE_ERROR, "glorot_uniform, glorot_normal");
  REFUSED(mix_regularizer_new("l3"), MIX_VALUE_ERROR, "l1, l2, l1_l2, orthogonal_regularizer");
  REFUSED(mix_constraint_new("max"), MIX_VALUE_ERROR, "max_norm, unit_norm, non_neg, min_max_norm");
  REFUSED(mix_loss_new("mean_square"), MIX_VALUE_ERROR, "mean_squared_error, ");
  REFUSED(mix_metric_new("acuracy"), MIX_VALUE_ERROR, "metric.h");
  REFUSED(mix_spatial_dropout2d(.rate = 0.5, .data_format = "NHWC"), MIX_VALUE_ERROR, "channels_last or channels_first");
}

/* JSON has no NaN and no text but UTF-8; that is said, and is no want of memory. */
static void configs_that_cannot_be_written(void **state) {
  (void)state;
  REFUSED(mix_layer_config(mix_masking(.mask_value = NAN)), MIX_VALUE_ERROR, "'mask_value'");
  REFUSED(mix_layer_config(mix_dense(.units = 2, .name = "\xff\xfe")), MIX_VALUE_ERROR, "not UTF-8");
  REFUSED(mix_optimizer_serialize(mix_loss_scale_optimizer(mix_sgd(), .initial_scale = NAN)), MIX_VALUE_ERROR, "'initial_scale'");
}

static void a_scalar_names_itself(void **state) {
  (void)state;
  REFUSED(mix_scalar(1, MIX_STRING), MIX_TYPE_ERROR, "scalar: no tensor can have dtype string");
}

int main(void) {
  const struct CMUnitTest tests[] = {TEST(layers_are_given_nothing),       TEST(computations_are_given_nothing),
                                     TEST(texts_are_asked_of_nothing),     TEST(a_pending_error_stays),
                                     TEST(lists_hold_other_objects),       TEST(ranks_that_are_none),
                                     TEST(numbers_that_cannot_be_counted), TEST(names_that_are_none),
                                     TEST(configs_that_cannot_be_written), TEST(a_scalar_names_itself)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
