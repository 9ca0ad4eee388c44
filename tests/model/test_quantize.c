/* mix_model_quantize: which layers change, what is refused before anything changes, and training afterwards.
 */
#include "model/support.h"

#include "base/alloc.h"
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
  begin_listening();
  assert_int_equal(mix_model_quantize(model, "float8", .filters = both, .filter_count = 2), MIX_OK);
  assert_int_equal(messages, 1);
  assert_non_null(strstr(heard, "\"nothing\" is found in no layer's name of"));
  begin_listening();
  assert_int_equal(mix_model_quantize(model, "int8", .filter = "OUT", .filters = both, .filter_count = 1),
                   MIX_OK);
  mix_set_log_callback(NULL, NULL);
  assert_int_equal(messages, 2);
  assert_non_null(strstr(heard, "\"OUT\" is found"));
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
  expect_refused(mix_model_quantize(model, "gptq/4/128") == MIX_OK, MIX_VALUE_ERROR, "none of int8");
  expect_refused(mix_model_quantize(model, "ternary") == MIX_OK, MIX_UNSUPPORTED, "not supported");
  expect_refused(mix_model_quantize(model, "gptq") == MIX_OK, MIX_UNSUPPORTED, "\"gptq\" is not supported");
  expect_refused(mix_model_quantize(model, "awq") == MIX_OK, MIX_UNSUPPORTED, "\"awq\" is not supported");
  expect_refused(mix_model_quantize(model, "int4/128") == MIX_OK, MIX_VALUE_ERROR, "none of int8");
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

/* ---- int8 and int4 ---- */

/* P14 */
static void Q01_to_Q05_modes_and_their_defaults(void **state) {
  (void)state;
  mix_model *model = two_layers();
  begin_listening();
  assert_int_equal(mix_model_quantize(model, "int8", .filter = "fc1"), MIX_OK);
  assert_int_equal(messages, 0);
  assert_int_equal(mix_model_quantize(model, "int4", .filter = "^out$"), MIX_OK);
  assert_string_equal(policy_of(model, "fc1"), "int8_from_float32");
  assert_string_equal(policy_of(model, "out"), "int4/128_from_float32");
  assert_non_null(
      strstr(mix_layer_config(mix_model_get_layer(model, "fc1")), "\"value_range\": [-127, 127]"));
  assert_non_null(strstr(mix_layer_config(mix_model_get_layer(model, "out")), "\"block_size\": 128"));
  model = two_layers();
  assert_int_equal(mix_model_quantize(model, "int4", .block_size = -1, .quantize_inputs = true), MIX_OK);
  assert_int_equal(messages, 2);
  assert_non_null(strstr(heard, "'act', of the class Activation, has no mode int4"));
  assert_string_equal(policy_of(model, "fc1"), "int4/-1_from_float32");
  model = two_layers();
  mix_model_quantize(model, "int8", .weights_only = true);
  assert_non_null(
      strstr(mix_layer_config(mix_model_get_layer(model, "fc1")), "\"activation_quantizer\": null"));
  mix_set_log_callback(NULL, NULL);
}

static void Q03_Q05_what_int8_and_int4_refuse(void **state) {
  (void)state;
  mix_model *model = two_layers();
  begin_listening();
#define REFUSED(message, ...)                                                                                \
  expect_refused(mix_model_quantize(model, __VA_ARGS__) == MIX_OK, MIX_VALUE_ERROR, message)
  REFUSED("block_size is -2", "int4", .block_size = -2);
  REFUSED("block_size is 4 in the mode", "int8", .block_size = 4);
  REFUSED("do not go together", "int4", .quantize_inputs = true);
  REFUSED("do not go together", "int4", .block_size = 4, .weight_low = -8, .weight_high = 7);
  REFUSED("expected (-8, 7) in int4", "int4", .block_size = -1, .weight_low = -7, .weight_high = 7);
  REFUSED("value_range is (-129, 127)", "int8", .weight_low = -129, .weight_high = 127);
  REFUSED("value_range is (5, 5)", "int8", .input_low = 5, .input_high = 5);
  REFUSED("epsilon is -1", "int8", .input_epsilon = -1);
  REFUSED("epsilon is nan", "int8", .weight_epsilon = NAN);
  REFUSED("give one", "int8", .weights_only = true, .quantize_inputs = true);
  REFUSED("options of int8 and int4", "float8", .weights_only = true);
  expect_untouched(model);
  mix_model_quantize(model, "int8", .filter = "out");
  REFUSED("already quantized", "int8");
  REFUSED("already quantized", "int4");
  REFUSED("already quantized", "float8");
#undef REFUSED
  assert_string_equal(policy_of(model, "fc1"), "float32");
  mix_set_global_policy("mixed_float16");
  model = two_layers();
  mix_set_global_policy("float32");
  expect_refused(mix_model_quantize(model, "int8") == MIX_OK, MIX_VALUE_ERROR, "computes in float16");
  assert_int_equal(mix_model_quantize(model, "int4"), MIX_OK);
  mix_model *unbuilt = mix_sequential(mix_list_of(mix_dense(2)));
  expect_refused(mix_model_quantize(unbuilt, "int8") == MIX_OK, MIX_VALUE_ERROR, "");
  mix_set_log_callback(NULL, NULL);
}

/* The layer around it divides the kernel in each step. */
static void a_normalized_kernel_stays_floating(void **state) {
  (void)state;
  mix_set_semantics("keras3");
  mix_tensor *x = mix_input(.shape = MIX_SHAPE(12)),
             *y = mix_call(mix_spectral_normalization(mix_dense(4, .name = "inner"), .name = "norm"), x);
  mix_model *model = mix_model_new(x, mix_call(mix_dense(4, .name = "out"), y));
  static const char *const modes[] = {"int8", "int4"};
  for (int i = 0; i < 2; i++) {
    expect_refused(mix_model_quantize(model, modes[i]) == MIX_OK, MIX_UNSUPPORTED,
                   "layer 'norm' around 'inner' changes its weights");
    assert_string_equal(policy_of(model, "out"), "float32");
  }
  assert_int_equal(mix_model_quantize(model, "int4", .filter = "^out"), MIX_OK);
  assert_string_equal(policy_of(model, "out"), "int4/128_from_float32");
}

/* The optimizer holds what is trainable: the biases. Layers before a quantized one train through it. */
static void Q24_training_afterwards(void **state) {
  (void)state;
  for (int mode = 0; mode < 3; mode++) {
    mix_model *model = two_layers();
    mix_tensor *x = ARRAY(F32, MIX_SHAPE(2, 4), 1, 2, 3, 4, 5, 6, 7, 8),
               *y = mix_fill(MIX_SHAPE(2, 2), 1, F32);
    begin_listening();
    mix_model_quantize(model, mode ? "int4" : "int8", .filter = mode == 2 ? "out" : ".");
    mix_set_log_callback(NULL, NULL);
    mix_model_compile(model, .loss = "mse", .optimizer = mix_adam(.learning_rate = 0.1));
    double first = 0, last = 0;
    for (int step = 0; step < 20; step++) {
      last = mix_logs_get(mix_model_train_on_batch(model, x, y), "loss");
      if (!step) first = last;
    }
    assert_no_error();
    assert_true(last < first / 2);
    mix_list *variables = mix_optimizer_variables(mix_model_optimizer(model));
    int slots = 0;
    for (int i = 0; i < mix_list_count(variables); i++)
      slots += mix_shape_size(mix_variable_shape(mix_list_get(variables, i))) > 1;
    assert_int_equal(slots, mode == 2 ? 6 : 4);
  }
}

/* Bytes of a kernel of 512 x 512 with its scales against those of float32: in int8 one of four and 4 a
 * column; in int4 half a byte, 5 a group of 128 and 4 a row. */
static void stored_kernels_are_small(void **state) {
  (void)state;
  enum { SIZE = 512 };
  static const double expected[] = {0.25 + 4.0 / SIZE / 4, 0.125 + 5.0 / 128 / 4 + 4.0 / SIZE / 4};
  for (int int4 = 0; int4 < 2; int4++) {
    mix_set_semantics("keras3");
    mix_tensor *x = mix_input(.shape = MIX_SHAPE(SIZE));
    mix_model *model = mix_model_new(x, mix_call(mix_dense(SIZE, .no_bias = true), x));
    begin_listening();
    mix_model_quantize(model, int4 ? "int4" : "int8");
    mix_set_log_callback(NULL, NULL);
    double bytes = 0;
    mix_list *weights = mix_model_weights(model);
    for (int i = 0; i < mix_list_count(weights); i++) {
      const mix_variable *weight = mix_list_get(weights, i);
      bytes += (double)mix_dtype_size(mix_variable_true_dtype(weight)) *
               (double)mix_shape_size(mix_variable_shape(weight));
    }
    assert_near(bytes / (4.0 * SIZE * SIZE), expected[int4], 1e-9);
    assert_true(bytes / (4.0 * SIZE * SIZE) <= (int4 ? 0.14 : 0.26));
  }
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

/* ---- out of memory ---- */

/* A model of one layer that can be quantized. */
static mix_model *one_layer(int kind) {
  mix_set_semantics("keras3");
  const bool table = kind >= 2;
  mix_tensor *x = mix_input(.shape = MIX_SHAPE(3), .dtype = table ? "int32" : "float32");
  mix_layer *layer = kind == 0   ? mix_dense(5, .name = "it")
                     : kind == 1 ? mix_einsum_dense("ab,bc->ac", .output_shape = MIX_SHAPE(5), .name = "it")
                     : kind == 2 ? mix_embedding(4, 5, .name = "it")
                                 : mix_reversible_embedding(4, 5, .untied_weights = true, .name = "it");
  mix_tensor *y = mix_call(layer, x);
  if (kind == 3) y = mix_call(layer, y, .reverse = true);
  return mix_model_new(x, y);
}

/* Each allocation of a quantization fails in turn: the layer then is what it was. */
static void a_layer_stays_whole_when_memory_fails(void **state) {
  (void)state;
  static const char *const modes[] = {"int8", "int4", "float8"};
  begin_listening();
  for (int kind = 0; kind < 4; kind++)
    for (int mode = 0; mode < (kind < 2 ? 3 : 2); mode++) {
      bool done = false;
      int failures = 0;
      mix_model *model = one_layer(kind);
      mix_tensor *x = ARRAY(kind < 2 ? F32 : MIX_INT32, MIX_SHAPE(1, 3), 1, 0, 2);
      const double before = at(mix_list_get(mix_model_predict(model, x), 0), 1);
      const int weights = mix_list_count(mix_model_weights(model));
      char *config = strdup(mix_layer_config(mix_model_get_layer(model, "it")));
      assert_no_error();
      for (int64_t after = 0; !done; after++) {
        MIX_SCOPE {
          mix_inject_allocation_failure(after);
          done = mix_model_quantize(model, modes[mode], .filter = "it") == MIX_OK;
          mix_inject_allocation_failure(-1);
          if (!done) {
            assert_error(MIX_MEMORY_ERROR, NULL);
            failures++;
            assert_true(at(mix_list_get(mix_model_predict(model, x), 0), 1) == before);
            assert_int_equal(mix_list_count(mix_model_weights(model)), weights);
            assert_string_equal(mix_layer_config(mix_model_get_layer(model, "it")), config);
          }
        }
      }
      assert_true(failures > 20);
      assert_near(at(mix_list_get(mix_model_predict(model, x), 0), 1), before, 0.5);
      free(config);
    }
  mix_set_log_callback(NULL, NULL);
}

int main(void) {
  const struct CMUnitTest tests[] = {TEST(all_layers_that_can),
                                     TEST(filters_search_in_names),
                                     TEST(layers_in_layers),
                                     TEST(what_is_refused),
                                     TEST(before_and_after),
                                     TEST(Q01_to_Q05_modes_and_their_defaults),
                                     TEST(Q03_Q05_what_int8_and_int4_refuse),
                                     TEST(a_normalized_kernel_stays_floating),
                                     TEST(Q24_training_afterwards),
                                     TEST(stored_kernels_are_small),
                                     TEST(a_layer_stays_whole_when_memory_fails)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
