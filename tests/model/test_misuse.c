/* Misuse of calls: NULL, wrong objects, invalid ranks and axes, huge counts. Each is an error that names the
 * call and what it expected; none reads past its arguments. */
#include "model/support.h"

#define REFUSED(call, status, part)                                                                          \
  do {                                                                                                       \
    assert_true(!(call));                                                                                    \
    assert_error(status, part);                                                                              \
  } while (0)
/* The same for a call that returns a status. */
#define FAILS(call, status, part)                                                                            \
  do {                                                                                                       \
    assert_int_equal(call, status);                                                                          \
    assert_error(status, part);                                                                              \
  } while (0)

static mix_tensor *matrix(void) { return ARRAY(F32, MIX_SHAPE(2, 3), 1, -2, 3, 4, 0.5, 6); }

static void layers_given_null(void **state) {
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

static void computations_given_null(void **state) {
  (void)state;
  mix_tensor *x = matrix(), **none = NULL;
  mix_loss *loss = mix_mean_squared_error();
  mix_loss_scale *scale = mix_dynamic_loss_scale();
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
  REFUSED(mix_schedule_call(mix_exponential_decay(0.1, 10, 0.5, false), NULL), MIX_TYPE_ERROR,
          "schedule_call");
  REFUSED(mix_optimizer_for_policy(NULL, NULL), MIX_TYPE_ERROR, "optimizer_for_policy");
  FAILS(mix_optimizer_exclude_from_weight_decay(mix_sgd(), NULL, 1, NULL), MIX_VALUE_ERROR,
        "1 names at NULL");
  FAILS(mix_optimizer_exclude_from_weight_decay(mix_sgd(), NULL, -1, NULL), MIX_VALUE_ERROR, "-1 names");
  REFUSED(mix_metric_variables(NULL), MIX_TYPE_ERROR, "metric_variables");
  REFUSED(mix_metric_result_tensor(NULL), MIX_TYPE_ERROR, "metric_result");
  FAILS(mix_metric_build(NULL, MIX_SHAPE(1), MIX_SHAPE(1)), MIX_TYPE_ERROR, "metric_build");
  FAILS(mix_metric_reset(NULL), MIX_TYPE_ERROR, "metric_reset");
  FAILS(mix_metric_update(NULL, x), MIX_TYPE_ERROR, "metric_update");
  REFUSED(mix_numerics_run(NULL, x, x), MIX_TYPE_ERROR, "numerics_run");
  FAILS(mix_numerics_write_png(NULL, "picture.png"), MIX_TYPE_ERROR, "numerics_write_png");
}

static void texts_of_null(void **state) {
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
  /* Without a buffer the text is empty. */
  assert_string_equal(mix_tensor_text(matrix(), NULL, 100), "");
  assert_string_equal(mix_variable_text(mix_variable_new(matrix()), NULL, 100), "");
  assert_string_equal(mix_policy_text(mix_global_policy(), NULL, 100), "");
  assert_string_equal(mix_loss_scale_text(mix_fixed_loss_scale(2), NULL, 100), "");
  assert_string_equal(mix_shape_text(MIX_SHAPE(1), NULL, 100), "");
  mix_metric_update_options unset = {.values = matrix()}; /* its size is not set */
  FAILS(mix_metric_update_with(mix_metric_mean(), &unset), MIX_VALUE_ERROR, "the options' size is 0");
}

/* The first error is kept: later calls do not check anything. */
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

/* A shape or a list of axes holds MIX_MAX_RANK numbers, whatever its count says. */
static void invalid_ranks(void **state) {
  (void)state;
  const mix_shape ranks[] = {{.rank = MIX_MAX_RANK + 1}, {.rank = 1000000}, {.rank = -1}};
  const mix_axes counts[] = {{.count = MIX_MAX_RANK + 1}, {.count = -1}};
  char text[160];
  for (int i = 0; i < 3; i++) {
    assert_int_equal(mix_shape_size(ranks[i]), MIX_UNKNOWN);
    assert_false(mix_shape_equal(ranks[i], ranks[i]));
    assert_non_null(strstr(mix_shape_text(ranks[i], text, sizeof text), "rank"));
    REFUSED(mix_fill(ranks[i], 1, F32), MIX_VALUE_ERROR, "fill");
    REFUSED(mix_dropout(.rate = 0.5, .noise_shape = ranks[i]), MIX_VALUE_ERROR,
            "dropout: noise_shape has rank");
    REFUSED(mix_alpha_dropout(.rate = 0.5, .noise_shape = ranks[i]), MIX_VALUE_ERROR,
            "alpha_dropout: noise_shape has rank");
    FAILS(mix_layer_build(mix_dense(.units = 2), ranks[i]), MIX_VALUE_ERROR,
          "layer_build: input_shape has rank");
    assert_int_equal(mix_layer_output_shape(mix_dense(.units = 2), ranks[i]).rank, 0);
    assert_error(MIX_VALUE_ERROR, "layer_output_shape: input_shape has rank");
  }
  static const char *const says[] = {"names 9 axes; expected 0 to 8",
                                     "is a list of axes, and is the number -1; expected MIX_AXES(-1)"};
#define AXES_REFUSED(call, name)                                                                             \
  do {                                                                                                       \
    snprintf(text, sizeof text, "%s %s", name, says[i]);                                                     \
    REFUSED(call, MIX_VALUE_ERROR, text);                                                                    \
  } while (0)
  for (int i = 0; i < 2; i++) {
    AXES_REFUSED(mix_normalization(.axis = counts[i]), "normalization: axis");
    AXES_REFUSED(mix_layer_normalization(.axis = counts[i]), "layer_normalization: axis");
    AXES_REFUSED(mix_rms_normalization(.axis = counts[i]), "rms_normalization: axis");
    AXES_REFUSED(mix_unit_normalization(.axis = counts[i]), "unit_normalization: axis");
    AXES_REFUSED(mix_softmax_layer(.axis = counts[i]), "softmax_layer: axis");
    AXES_REFUSED(mix_prelu(.shared_axes = counts[i]), "prelu: shared_axes");
    snprintf(text, sizeof text, "a list of %d axes; expected 0 to 8", counts[i].count);
    REFUSED(mix_reduce_sum(matrix(), counts[i], false), MIX_VALUE_ERROR, text);
  }
#undef AXES_REFUSED
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

/* An unknown name: the message lists the valid names, or the nearest one. */
static void unknown_names(void **state) {
  (void)state;
  REFUSED(mix_dense(.units = 2, .activation = "rleu"), MIX_VALUE_ERROR, "relu, ");
  REFUSED(mix_activation("rleu"), MIX_VALUE_ERROR, "relu, ");
  REFUSED(mix_activate("rleu", matrix()), MIX_VALUE_ERROR, "relu, ");
  REFUSED(mix_dense(.units = 2, .kernel_initializer = "glorot"), MIX_VALUE_ERROR,
          "glorot_uniform, glorot_normal");
  REFUSED(mix_regularizer_new("l3"), MIX_VALUE_ERROR, "l1, l2, l1_l2, orthogonal_regularizer");
  REFUSED(mix_constraint_new("max"), MIX_VALUE_ERROR, "max_norm, unit_norm, non_neg, min_max_norm");
  REFUSED(mix_loss_new("mean_squared_eror"), MIX_VALUE_ERROR, "did you mean 'mean_squared_error'");
  REFUSED(mix_metric_new("acuracy"), MIX_VALUE_ERROR, "did you mean 'accuracy'");
  mix_model *model = mix_sequential(mix_list_of(mix_dense(.units = 2, .name = "hidden")));
  REFUSED(mix_model_get_layer(model, "hiden"), MIX_VALUE_ERROR, "is named 'hiden'; did you mean 'hidden'?");
  REFUSED(mix_model_get_layer(model, NULL), MIX_TYPE_ERROR, "name is NULL");
  REFUSED(mix_spatial_dropout2d(.rate = 0.5, .data_format = "NHWC"), MIX_VALUE_ERROR,
          "channels_last or channels_first");
}

/* JSON has no infinity and only UTF-8: the error names the cause, not out of memory. */
static void configs_that_cannot_be_written(void **state) {
  (void)state;
  REFUSED(mix_layer_config(mix_masking(.mask_value = INFINITY)), MIX_VALUE_ERROR, "'mask_value'");
  REFUSED(mix_layer_config(mix_dense(.units = 2, .name = "\xff\xfe")), MIX_VALUE_ERROR, "not UTF-8");
  REFUSED(mix_loss_scale_optimizer(mix_sgd(), .initial_scale = NAN), MIX_VALUE_ERROR,
          "the loss scale is nan");
}

/* An option that is NaN would make every weight NaN. */
#define NAN_REFUSED(name, option, ...)                                                                       \
  REFUSED(mix_##name(__VA_ARGS__), MIX_VALUE_ERROR, #name ": " option " is nan; expected a ")
static void options_that_are_nan(void **state) {
  (void)state;
  NAN_REFUSED(sgd, "learning_rate", .learning_rate = NAN);
  NAN_REFUSED(sgd, "momentum", .momentum = NAN);
  NAN_REFUSED(sgd, "weight_decay", .weight_decay = NAN);
  NAN_REFUSED(sgd, "decay", .decay = NAN);
  NAN_REFUSED(sgd, "clipnorm", .clipnorm = NAN);
  NAN_REFUSED(sgd, "global_clipnorm", .global_clipnorm = NAN);
  NAN_REFUSED(sgd, "clipvalue", .clipvalue = NAN);
  NAN_REFUSED(sgd, "loss_scale_factor", .loss_scale_factor = NAN);
  NAN_REFUSED(sgd, "ema_momentum", .ema_momentum = NAN);
  NAN_REFUSED(rmsprop, "rho", .rho = NAN);
  NAN_REFUSED(rmsprop, "momentum", .momentum = NAN);
  NAN_REFUSED(rmsprop, "epsilon", .epsilon = NAN);
  NAN_REFUSED(adam, "beta_1", .beta_1 = NAN);
  NAN_REFUSED(adam, "beta_2", .beta_2 = NAN);
  NAN_REFUSED(adam, "epsilon", .epsilon = NAN);
  NAN_REFUSED(adamw, "weight_decay", .weight_decay = NAN);
  NAN_REFUSED(nadam, "beta_1", .beta_1 = NAN);
  NAN_REFUSED(adamax, "beta_2", .beta_2 = NAN);
  NAN_REFUSED(adagrad, "initial_accumulator_value", .initial_accumulator_value = NAN);
  NAN_REFUSED(adadelta, "rho", .rho = NAN);
  NAN_REFUSED(adafactor, "beta_2_decay", .beta_2_decay = NAN);
  NAN_REFUSED(adafactor, "clip_threshold", .clip_threshold = NAN);
  NAN_REFUSED(ftrl, "learning_rate_power", .learning_rate_power = NAN);
  NAN_REFUSED(ftrl, "beta", .beta = NAN);
  NAN_REFUSED(lamb, "beta_1", .beta_1 = NAN);
  NAN_REFUSED(lion, "beta_1", .beta_1 = NAN);
  NAN_REFUSED(dropout, "rate", .rate = NAN);
  NAN_REFUSED(spatial_dropout1d, "rate", .rate = NAN);
  NAN_REFUSED(gaussian_dropout, "rate", .rate = NAN);
  NAN_REFUSED(alpha_dropout, "rate", .rate = NAN);
  NAN_REFUSED(gaussian_noise, "stddev", .stddev = NAN);
  NAN_REFUSED(batch_normalization, "momentum", .momentum = NAN);
  NAN_REFUSED(batch_normalization, "epsilon", .epsilon = NAN);
  NAN_REFUSED(batch_normalization, "renorm_momentum", .renorm_momentum = NAN);
  NAN_REFUSED(batch_normalization, "renorm_rmax", .renorm_rmax = NAN);
  NAN_REFUSED(layer_normalization, "epsilon", .epsilon = NAN);
  NAN_REFUSED(group_normalization, "epsilon", .epsilon = NAN);
  NAN_REFUSED(rms_normalization, "epsilon", .epsilon = NAN);
  NAN_REFUSED(leaky_relu_layer, "negative_slope", .negative_slope = NAN);
  NAN_REFUSED(elu_layer, "alpha", .alpha = NAN);
  NAN_REFUSED(relu_layer, "max_value", .max_value = NAN);
  NAN_REFUSED(thresholded_relu, "theta", .theta = NAN);
  NAN_REFUSED(masking, "mask_value", .mask_value = NAN);
  NAN_REFUSED(rescaling, "scale", .scale = NAN);
  NAN_REFUSED(rescaling, "offset", .scale = 1, .offset = NAN);
  NAN_REFUSED(activity_regularization, "l1", .l1 = NAN);
  NAN_REFUSED(lstm, "dropout", .units = 1, .dropout = NAN);
  NAN_REFUSED(gru, "recurrent_dropout", .units = 1, .recurrent_dropout = NAN);
  NAN_REFUSED(multi_head_attention, "dropout", .num_heads = 1, .key_dim = 1, .dropout = NAN);
  NAN_REFUSED(reduce_lr_on_plateau, "factor", .factor = NAN);
  NAN_REFUSED(activate, "negative_slope", "leaky_relu", matrix(), .negative_slope = NAN);
  NAN_REFUSED(activate, "max_value", "relu", matrix(), .max_value = NAN);
  NAN_REFUSED(activate, "threshold", "threshold", matrix(), .threshold = NAN);
  NAN_REFUSED(activate, "alpha", "elu", matrix(), .alpha = NAN);
}
#undef NAN_REFUSED

static void numbers_of_lists_and_of_objects_that_are_nan(void **state) {
  (void)state;
  REFUSED(mix_initializer_new("random_normal", .stddev = NAN), MIX_VALUE_ERROR, "stddev is nan");
  REFUSED(mix_constraint_new("max_norm", .max_value = NAN), MIX_VALUE_ERROR, "max_value is nan");
  REFUSED(mix_loss_new("huber", .delta = NAN), MIX_VALUE_ERROR, "delta is nan");
  REFUSED(mix_metric_new("binary_accuracy", .threshold = NAN), MIX_VALUE_ERROR, "threshold is nan");
  REFUSED(mix_metric_new("precision", .thresholds = MIX_NUMBERS(0.5, NAN)), MIX_VALUE_ERROR,
          "number 1 of thresholds is nan");
  REFUSED(mix_exponential_decay(NAN, 10, 0.5, false), MIX_VALUE_ERROR, "initial_learning_rate is nan");
  REFUSED(mix_exponential_decay(1, NAN, 0.5, false), MIX_VALUE_ERROR, "decay_steps is nan");
  REFUSED(mix_exponential_decay(1, 10, NAN, false), MIX_VALUE_ERROR, "decay_rate is nan");
  REFUSED(mix_cosine_decay(1, 10, NAN, 0, 0), MIX_VALUE_ERROR, "alpha is nan");
  REFUSED(mix_cosine_decay(1, 10, 0, 1, NAN), MIX_VALUE_ERROR, "warmup_steps is nan");
  const double numbers[] = {1, 0.5}, broken[] = {1, NAN};
  REFUSED(mix_piecewise_constant_decay(1, broken + 1, numbers), MIX_VALUE_ERROR, "a boundary is nan");
  REFUSED(mix_piecewise_constant_decay(1, numbers, broken), MIX_VALUE_ERROR, "a value is nan");
  REFUSED(mix_discretization(.bin_boundaries = broken + 1, .boundary_count = 1), MIX_VALUE_ERROR,
          "boundary 0 is nan");
  REFUSED(mix_discretization(.bin_boundaries = broken, .boundary_count = 2), MIX_VALUE_ERROR,
          "boundary 1 is nan after 1");
  REFUSED(mix_discretization(.num_bins = 2, .boundary_count = 2), MIX_VALUE_ERROR, "without bin_boundaries");
  assert_non_null(mix_early_stopping(.baseline = NAN)); /* none */
  assert_non_null(
      mix_activate("threshold", matrix(), .value = NAN, .semantics = mix_semantics_named("keras3")));
  mix_model *model = product_model(1, 0.5);
  FAILS(mix_model_compile(model, .loss = "mse", .loss_weights = {NAN}), MIX_VALUE_ERROR,
        "model_compile: loss_weights[0] is nan; expected a number");
  REFUSED(mix_model_fit(model, counting(2), counting(2), .class_weight_count = 2, .class_labels = {0, 1},
                        .class_weights = {1, NAN}),
          MIX_VALUE_ERROR, "fit: class_weights[1] is nan; expected a number");
}

/* ---- user functions that return nothing, or call themselves ---- */

static mix_tensor *no_loss(void *context, mix_tensor *y_true, mix_tensor *y_pred) {
  (void)context, (void)y_true, (void)y_pred;
  return NULL;
}
static mix_tensor *no_penalty(void *context, mix_tensor *weight) {
  (void)context, (void)weight;
  return NULL;
}
static mix_status failed_update(mix_metric *metric, const mix_metric_args *args) {
  (void)metric, (void)args;
  return MIX_RUNTIME_ERROR;
}
static mix_tensor *no_result(mix_metric *metric) {
  (void)metric;
  return NULL;
}
static mix_list *no_results(mix_layer *layer, const mix_call_args *args) {
  (void)layer, (void)args;
  return mix_list_new(0, NULL);
}
static mix_list *calls_itself(mix_layer *layer, const mix_call_args *args) {
  return mix_call_outputs(layer, mix_call_input(args, 0));
}
static mix_shape no_shape(mix_layer *layer, int count, const mix_shape *shapes) {
  (void)layer, (void)count, (void)shapes;
  return (mix_shape){.rank = 77};
}
static mix_list *endless(void *context, mix_list *arguments) {
  return mix_function_call(*(mix_function **)context, arguments);
}
static mix_status bad_hook(void *context, mix_model *model, int64_t index, mix_logs *logs) {
  (void)context, (void)model, (void)index, (void)logs;
  return mix_dense() ? MIX_OK : mix_error();
}

static void functions_that_return_null(void **state) {
  (void)state;
  static const mix_metric_class metric_class = {
      .size = sizeof(mix_metric_class), .name = "Nothing", .update = failed_update, .result = no_result};
  static const mix_layer_class layer_class = {
      .size = sizeof(mix_layer_class), .name = "Nothing", .call = no_results, .output_shape = no_shape};
  mix_tensor *x = matrix();
  REFUSED(mix_loss_call(mix_loss_new(.function = no_loss, .name = "mine"), x, x), MIX_TYPE_ERROR,
          "mine: the function given returned NULL");
  REFUSED(mix_regularizer_call(mix_regularizer_new(.function = no_penalty), x), MIX_TYPE_ERROR,
          "regularizer: the function given");
  REFUSED(mix_constraint_call(mix_constraint_new(.function = no_penalty), x), MIX_TYPE_ERROR,
          "constraint: the function given");
  REFUSED(mix_schedule_call(mix_schedule_function(no_penalty, NULL), mix_scalar(1, MIX_INT64)),
          MIX_TYPE_ERROR, "schedule: the function");
  FAILS(mix_metric_update(mix_metric_new(.function = no_loss, .name = "mine"), x, x), MIX_TYPE_ERROR,
        "mine: the function given");
  mix_metric *metric = mix_metric_new(.metric_class = &metric_class, .name = "mine");
  FAILS(mix_metric_update(metric, x), MIX_RUNTIME_ERROR, "metric mine: update failed");
  REFUSED(mix_metric_result_tensor(metric), MIX_TYPE_ERROR, "mine: the function given");
  mix_layer *layer = mix_layer_new(&layer_class, .name = "mine");
  REFUSED(mix_call(layer, x), MIX_TYPE_ERROR, "mine: call returned no results");
  assert_int_equal(mix_layer_output_shape(layer, MIX_SHAPE(2, 3)).rank, 0);
  assert_error(MIX_VALUE_ERROR, "mine: the result of output_shape has rank 77");
}

static void cycles_of_objects_and_calls(void **state) {
  (void)state;
  static const mix_layer_class layer_class = {
      .size = sizeof(mix_layer_class), .name = "Endless", .call = calls_itself};
  mix_layer *outer = mix_dense(.units = 2, .name = "outer"), *inner = mix_dense(.units = 2, .name = "inner");
  assert_ptr_equal(mix_layer_add_layer(outer, inner), inner);
  REFUSED(mix_layer_add_layer(inner, outer), MIX_VALUE_ERROR, "'inner' would hold itself, by 'outer'");
  REFUSED(mix_layer_add_layer(inner, inner), MIX_VALUE_ERROR, "'inner' would hold itself");
  mix_model *model = mix_sequential(NULL, .name = "chain"),
            *around = mix_sequential(mix_list_of(mix_model_layer(model)));
  FAILS(mix_sequential_add(model, mix_model_layer(model)), MIX_VALUE_ERROR, "'chain' would hold itself");
  FAILS(mix_sequential_add(model, mix_model_layer(around)), MIX_VALUE_ERROR, "'chain' would hold itself");
  REFUSED(mix_call(mix_layer_new(&layer_class, .name = "endless"), matrix()), MIX_RUNTIME_ERROR,
          "endless: calls of layers inside calls");
  mix_function *function = NULL;
  function = mix_function_new(endless, &function, .name = "endless");
  REFUSED(mix_function_call(function, mix_list_of(matrix())), MIX_RUNTIME_ERROR,
          "endless: calls inside calls");
  assert_non_null(mix_call(outer, matrix())); /* the failed calls left no state */
  assert_no_error();
}

/* An error in a hook names the callback. */
static void hooks_that_fail(void **state) {
  (void)state;
  mix_model *model = mix_sequential(mix_list_of(mix_dense(.units = 1)));
  mix_model_compile(model, .loss = "mse", .optimizer_name = "sgd");
  mix_callback *callback = mix_callback_new(.name = "mine", .on_epoch_end = bad_hook);
  REFUSED(mix_model_fit(model, matrix(), ARRAY(F32, MIX_SHAPE(2, 1), 1, 2), .verbose = MIX_SILENT,
                        .callbacks = mix_list_of(callback)),
          MIX_VALUE_ERROR,
          "dense: units is 0; expected a positive number (in callback 'mine', on_epoch_end)");
}

/* A Sequential built by data knows its shapes too. */
static void a_summary_after_fit(void **state) {
  (void)state;
  mix_model *model =
      mix_sequential(mix_list_of(mix_dense(.units = 4), mix_dropout(.rate = 0.1), mix_dense(.units = 1)));
  assert_non_null(strstr(mix_model_summary(model), " ? "));
  mix_model_compile(model, .loss = "mse", .optimizer_name = "sgd");
  assert_non_null(mix_model_fit(model, matrix(), ARRAY(F32, MIX_SHAPE(2, 1), 1, 2), .verbose = MIX_SILENT));
  const char *summary = mix_model_summary(model);
  assert_non_null(strstr(summary, "(None, 4)"));
  assert_non_null(strstr(summary, "(None, 1)"));
  assert_null(strstr(summary, " ? "));
}

static void a_scalar_names_itself(void **state) {
  (void)state;
  REFUSED(mix_scalar(1, MIX_STRING), MIX_TYPE_ERROR, "scalar: no tensor can have dtype string");
}

int main(void) {
  const struct CMUnitTest tests[] = {TEST(layers_given_null),
                                     TEST(computations_given_null),
                                     TEST(texts_of_null),
                                     TEST(a_pending_error_stays),
                                     TEST(lists_hold_other_objects),
                                     TEST(invalid_ranks),
                                     TEST(numbers_that_cannot_be_counted),
                                     TEST(unknown_names),
                                     TEST(configs_that_cannot_be_written),
                                     TEST(options_that_are_nan),
                                     TEST(numbers_of_lists_and_of_objects_that_are_nan),
                                     TEST(a_scalar_names_itself),
                                     TEST(functions_that_return_null),
                                     TEST(cycles_of_objects_and_calls),
                                     TEST(hooks_that_fail),
                                     TEST(a_summary_after_fit)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
