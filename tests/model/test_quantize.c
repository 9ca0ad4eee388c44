/* mix_model_quantize: which layers change, what is refused before anything changes, and training afterwards.
 */
#include "model/support.h"

#include "support/expect.h"

static char heard[4096];
static int messages;
static void listen(void *context, mix_log_level level, const char *message) {
  (void)context;
  if (level != MIX_LOG_WARNING) return;
  messages++;
  strncat(heard, message, sizeof heard - strlen(heard) - 2);
  strcat(heard, "\n");
}

static void begin_listening(void) {
  heard[0] = 0;
  messages = 0;
  mix_set_log_callback(listen, NULL);
}

static mix_model *two_layers(void) {
  mix_set_semantics("keras3");
  mix_tensor *x = mix_input(.shape = MIX_SHAPE(4), .name = "in");
  mix_tensor *y = mix_call(mix_dense(3, .name = "fc1"), x);
  y = mix_call(mix_activation("relu", .name = "act"), y);
  mix_model *model = mix_model_new(x, mix_call(mix_dense(2, .name = "out"), y));
  assert_no_error();
  return model;
}

static const char *policy_of(mix_model *model, const char *layer) {
  return mix_policy_name(mix_layer_policy(mix_model_get_layer(model, layer)));
}

static void all_layers_that_can(void **state) {
  (void)state;
  mix_model *model = two_layers();
  begin_listening();
  assert_int_equal(mix_model_quantize(model, "float8"), MIX_OK);
  mix_set_log_callback(NULL, NULL);
  assert_string_equal(policy_of(model, "fc1"), "float8_from_float32");
  assert_string_equal(policy_of(model, "out"), "float8_from_float32");
  assert_string_equal(policy_of(model, "act"), "float32");
  assert_string_equal(mix_policy_name(mix_model_policy(model)), "float32");
  assert_int_equal(mix_list_count(mix_model_weights(model)), 16);
  assert_string_equal(mix_variable_name(mix_list_get(mix_model_weights(model), 0)), "fc1/kernel");
  assert_string_equal(mix_variable_name(mix_list_get(mix_model_weights(model), 2)), "fc1/inputs_scale");
  assert_int_equal(messages, 2); /* the input and the activation, as in Keras */
  assert_non_null(strstr(heard, "'act', of the class Activation, has no mode float8"));
}

static bool is_named_out(void *context, const mix_layer *layer) {
  ++*(int *)context;
  return !strcmp(mix_layer_name(layer), "out");
}

static void filters_search_in_names(void **state) {
  (void)state;
  mix_model *model = two_layers();
  begin_listening();
  assert_int_equal(mix_model_quantize(model, "float8", .filter = "c[0-9]", .amax_history_length = 5), MIX_OK);
  mix_set_log_callback(NULL, NULL);
  assert_int_equal(messages, 0);
  assert_string_equal(policy_of(model, "fc1"), "float8_from_float32");
  assert_string_equal(policy_of(model, "out"), "float32");
  assert_int_equal(mix_policy_amax_history_length(mix_layer_policy(mix_model_get_layer(model, "fc1"))), 5);
  assert_true(mix_shape_equal(mix_variable_shape(mix_list_get(mix_model_weights(model), 3)), MIX_SHAPE(5)));
  const char *const both[] = {"nothing", "^ou"};
  assert_int_equal(mix_model_quantize(model, "float8", .filters = both, .filter_count = 2), MIX_OK);
  assert_string_equal(policy_of(model, "out"), "float8_from_float32");
  int asked = 0;
  model = two_layers();
  assert_int_equal(mix_model_quantize(model, "float8", .chooses = is_named_out, .context = &asked), MIX_OK);
  assert_int_equal(asked, 4);
  assert_string_equal(policy_of(model, "fc1"), "float32");
  assert_string_equal(policy_of(model, "out"), "float8_from_float32");
}

static void layers_in_layers(void **state) {
  (void)state;
  mix_set_semantics("keras3");
  mix_tensor *x = mix_input(.shape = MIX_SHAPE(5, 6));
  mix_model *inner = mix_model_new(x, mix_call(mix_dense(6, .name = "fc"), x), .name = "inner");
  mix_tensor *y = mix_call(mix_model_layer(inner), x);
  y = mix_call(mix_multi_head_attention(2, 3, .name = "att"), y, .arguments = mix_list_of(y));
  y = mix_call(mix_time_distributed(mix_dense(2, .name = "steps"), .name = "each"), y);
  mix_model *model = mix_model_new(x, y);
  begin_listening();
  assert_int_equal(mix_model_quantize(model, "float8"), MIX_OK);
  mix_set_log_callback(NULL, NULL);
  assert_no_error();
  int scales = 0;
  mix_list *weights = mix_model_weights(model);
  for (int i = 0; i < mix_list_count(weights); i++)
    scales += strstr(mix_variable_name(mix_list_get(weights, i)), "/inputs_scale") != NULL;
  assert_int_equal(scales, 6); /* fc, four of the attention, steps */
  assert_string_equal(policy_of(model, "att"), "float32");
}

static void expect_untouched(mix_model *model) {
  assert_string_equal(policy_of(model, "fc1"), "float32");
  assert_int_equal(mix_list_count(mix_model_weights(model)), 4);
}

static void what_is_refused(void **state) {
  (void)state;
  mix_model *model = two_layers();
  begin_listening();
  expect_refused(mix_model_quantize(model, NULL) == MIX_OK, MIX_VALUE_ERROR, "no mode");
  expect_refused(mix_model_quantize(model, "float9") == MIX_OK, MIX_VALUE_ERROR,
                 "none of int8, float8, int4, gptq and awq");
  expect_refused(mix_model_quantize(model, "int8") == MIX_OK, MIX_UNSUPPORTED, "not supported yet");
  expect_refused(mix_model_quantize(model, "int4/128") == MIX_OK, MIX_UNSUPPORTED, "not supported yet");
  expect_refused(mix_model_quantize(model, "float8", .amax_history_length = -1) == MIX_OK, MIX_VALUE_ERROR,
                 "expected 1 or more");
  expect_refused(mix_model_quantize(model, "float8", .filter = "(") == MIX_OK, MIX_VALUE_ERROR,
                 "no regular expression");
  expect_refused(mix_model_quantize(model, "float8", .filter_count = 1) == MIX_OK, MIX_VALUE_ERROR, "NULL");
  expect_refused(mix_model_quantize(model, "float8", .filter = "fc", .chooses = is_named_out) == MIX_OK,
                 MIX_VALUE_ERROR, "give one");
  expect_refused(mix_model_quantize(NULL, "float8") == MIX_OK, MIX_TYPE_ERROR, "model_quantize");
  expect_untouched(model);
  mix_model_quantize(model, "float8", .filter = "out");
  expect_refused(mix_model_quantize(model, "float8") == MIX_OK, MIX_VALUE_ERROR, "already quantized");
  assert_string_equal(policy_of(model, "fc1"), "float32");
  mix_model *unbuilt = mix_sequential(mix_list_of(mix_dense(2)));
  expect_refused(mix_model_quantize(unbuilt, "float8") == MIX_OK, MIX_VALUE_ERROR, "");
  mix_set_semantics("tf_keras");
  mix_tensor *x = mix_input(.shape = MIX_SHAPE(4));
  model = mix_model_new(x, mix_call(mix_dense(2), x));
  expect_refused(mix_model_quantize(model, "float8") == MIX_OK, MIX_VALUE_ERROR, "expected one of keras3");
  mix_set_log_callback(NULL, NULL);
}

/* What was captured before is captured again; the optimizer of before does not know the new weights. */
static void before_and_after(void **state) {
  (void)state;
  mix_model *model = two_layers();
  mix_tensor *x = ARRAY(F32, MIX_SHAPE(2, 4), 17, 19, 1, 2, 3, 4, 5, 6),
             *y = mix_fill(MIX_SHAPE(2, 2), 1, F32);
  mix_model_compile(model, .loss = "mse", .optimizer = mix_sgd(.learning_rate = 1e-3));
  mix_model_train_on_batch(model, x, y);
  const double before = at(mix_list_get(mix_model_predict(model, x), 0), 0);
  begin_listening();
  mix_model_quantize(model, "float8");
  mix_set_log_callback(NULL, NULL);
  const double after = at(mix_list_get(mix_model_predict(model, x), 0), 0);
  assert_true(before != after);
  assert_near(after, before, 0.15 * (fabs(before) + 20)); /* two roundings of 1/16 of inputs up to 19 */
  assert_null(mix_model_train_on_batch(model, x, y));
  assert_error(MIX_VALUE_ERROR, "make a new optimizer");
  mix_model_compile(model, .loss = "mse", .optimizer = mix_sgd(.learning_rate = 1e-3));
  assert_non_null(mix_model_train_on_batch(model, x, y));
  assert_true(weight_at(model, 3, 0) == 19);
}

int main(void) {
  const struct CMUnitTest tests[] = {TEST(all_layers_that_can), TEST(filters_search_in_names),
                                     TEST(layers_in_layers), TEST(what_is_refused), TEST(before_and_after)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
