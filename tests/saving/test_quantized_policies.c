/* Policies that quantize: they can be made and compared, and no layer takes one while nothing computes in its
 * mode. In int8, int4 and float8 Dense and EinsumDense compute. The configs of files are those that Keras
 * 3.15.1 writes after Model.quantize. */
#include "model/support.h"
#include "saving/model_json.h"
#include "support/expect.h"

static const char *const names[][2] = {
    {"ternary_from_float32", "mode ternary "},          {"gptq/4/128_from_float32", "mode gptq/4/128 "},
    {"awq/4/-1_from_float32", "mode awq/4/-1 "},        {"int8_from_float32", "mode int8 "},
    {"int8_from_mixed_bfloat16", "mode int8 "},         {"int4_from_float32", "mode int4 "},
    {"int4/128_from_mixed_bfloat16", "mode int4/128 "}, {"float8_from_mixed_bfloat16", "mode float8 "}};
enum { NAMES = sizeof names / sizeof *names, WITHOUT_LAYERS = 3 };

/* An error that has both texts. */
static void expect_both(const char *first, const char *second) {
  if (!strstr(mix_error_message(), second))
    fail_msg("\"%s\" does not mention \"%s\"", mix_error_message(), second);
  expect_error(MIX_UNSUPPORTED, first);
}

static mix_list *same(mix_layer *layer, const mix_call_args *args) {
  (void)layer;
  return mix_list_of(mix_call_input(args, 0));
}
static const mix_layer_class own_class = {.size = sizeof own_class, .name = "Own", .call = same};

static void layers_refuse_them(void **state) {
  (void)state;
  mix_set_semantics("keras3");
  for (int i = 0; i < NAMES; i++) {
    if (i < WITHOUT_LAYERS) {
      assert_null(mix_dense(2, .name = "hidden", .dtype = names[i][0]));
      expect_both("'hidden'", names[i][1]);
      assert_null(mix_dense(2, .policy = mix_policy_new(names[i][0])));
      expect_both("'Dense'", names[i][1]);
    }
    assert_null(mix_layer_new(.layer_class = &own_class, .name = "mine", .dtype = names[i][0]));
    expect_both("'mine'", names[i][1]);
    assert_null(mix_lstm(2, .name = "loop", .dtype = names[i][0]));
    expect_both("'loop'", names[i][1]);
  }
}

static void none_becomes_the_global_policy(void **state) {
  (void)state;
  mix_set_semantics("keras3");
  for (int i = 0; i < WITHOUT_LAYERS; i++) {
    assert_int_equal(mix_set_global_policy(names[i][0]), MIX_UNSUPPORTED);
    expect_both("set_global_policy", names[i][1]);
    assert_null(mix_policy_scope_begin(mix_policy_new(names[i][0])));
    expect_both("set_global_policy", names[i][1]);
    assert_string_equal(mix_policy_name(mix_global_policy()), "float32");
  }
}

/* Layers that compute in float8 take the global policy; others, and models, refuse it, as Keras's do when
 * they are called. */
static void float8_becomes_the_global_policy(void **state) {
  (void)state;
  mix_set_semantics("keras3");
  assert_int_equal(mix_set_global_policy("float8_from_float32"), MIX_OK);
  mix_layer *dense = mix_dense(2);
  assert_string_equal(mix_policy_name(mix_layer_policy(dense)), "float8_from_float32");
  assert_non_null(mix_call(dense, mix_fill(MIX_SHAPE(2, 3), 1, F32)));
  assert_null(mix_activation("relu", .name = "act"));
  expect_both("'act'", "mode float8 ");
  assert_null(mix_sequential(mix_list_of(dense), .name = "model"));
  expect_both("'model'", "mode float8 ");
  mix_set_global_policy("float32");
}

/* They are objects as before, and their classes in files are Keras's. */
static void objects_stay(void **state) {
  (void)state;
  static const char *const classes[] = {
      "QuantizedDTypePolicy", "GPTQDTypePolicy",      "AWQDTypePolicy",  "QuantizedDTypePolicy",
      "QuantizedDTypePolicy", "QuantizedDTypePolicy", "Int4DTypePolicy", "QuantizedFloat8DTypePolicy"};
  mix_set_semantics("keras3");
  for (int i = 0; i < NAMES; i++) {
    mix_policy *policy = mix_policy_new(names[i][0]);
    char expected[100];
    snprintf(expected, sizeof expected, "{\"module\": \"keras.dtype_policies\", \"class_name\": \"%s\"",
             classes[i]);
    assert_non_null(policy);
    if (!strstr(mix_policy_serialize(policy), expected))
      fail_msg("%s: %s", names[i][0], mix_policy_serialize(policy));
    assert_true(mix_policy_equal(policy, mix_policy_deserialize(mix_policy_serialize(policy), NULL)));
  }
}

/* ---- files ---- */

/* A Sequential of two Dense layers, of which the second has that policy and config. */
static const char *model_text(const char *dtype, const char *more) {
  static char text[3000];
  snprintf(text, sizeof text,
           "{'module': 'keras', 'class_name': 'Sequential', 'config': {'name': 'sequential', 'trainable': "
           "true, 'dtype': 'float32', 'layers': [{'module': 'keras.layers', 'class_name': 'InputLayer', "
           "'config': {'batch_shape': [null, 128], 'dtype': 'float32', 'name': 'i'}}, {'module': "
           "'keras.layers', 'class_name': 'Dense', 'config': {'name': 'first', 'dtype': 'float32', 'units': "
           "4}}, {'module': 'keras.layers', 'class_name': 'Dense', 'config': {'name': 'hidden', 'trainable': "
           "true, 'dtype': %s, 'units': 8, 'activation': 'linear'%s}}]}, 'keras_version': '3.15.1'}",
           dtype, more);
  for (char *at = text; *at; at++)
    if (*at == '\'') *at = '"';
  return text;
}

static void configs_are_refused(void **state) {
  (void)state;
  static const char policy[] = "{'module': 'keras.dtype_policies', 'class_name': '%s', 'config': {'mode': "
                               "'%s', 'source_name': 'float32'%s}, 'registered_name': null}";
  static const char quantizer[] = ", 'quantization_config': {'module': 'keras.quantizers', 'class_name': "
                                  "'%s', 'config': {}, 'registered_name': null}";
  static const char *const rows[][4] = {{"GPTQDTypePolicy", "gptq/4/128", "", "GPTQConfig"},
                                        {"AWQDTypePolicy", "awq/4/128", "", "AWQConfig"}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    char dtype[300], more[300], mode[40];
    snprintf(dtype, sizeof dtype, policy, rows[i][0], rows[i][1], rows[i][2]);
    snprintf(more, sizeof more, quantizer, rows[i][3]);
    snprintf(mode, sizeof mode, "mode %s ", rows[i][1]);
    assert_null(mix_model_from_json(model_text(dtype, more)));
    expect_both("the layer 'hidden'", mode);
    assert_null(mix_model_from_json(model_text(dtype, "")));
    expect_both("the layer 'hidden'", mode);
  }
  assert_null(mix_model_from_json(model_text("'ternary_from_float32'", "")));
  expect_both("the layer 'hidden'", "mode ternary ");
}

static void float8_configs(void **state) {
  (void)state;
  static const char policy[] =
      "{'module': 'keras.dtype_policies', 'class_name': 'QuantizedFloat8DTypePolicy', "
      "'config': {'mode': 'float8', 'source_name': 'float32', 'amax_history_length': "
      "%s}, 'registered_name': null}";
  static const char quantizer[] = ", 'quantization_config': {'module': 'keras.quantizers', 'class_name': "
                                  "'%s', 'config': {}, 'registered_name': null}";
  char dtype[300], more[300];
  snprintf(dtype, sizeof dtype, policy, "12");
  snprintf(more, sizeof more, quantizer, "Float8QuantizationConfig");
  for (int i = 0; i < 2; i++) {
    mix_model *model = mix_model_from_json(model_text(dtype, i ? more : ", 'quantization_config': null"));
    assert_no_error();
    mix_layer *hidden = mix_model_get_layer(model, "hidden");
    assert_int_equal(mix_policy_amax_history_length(mix_layer_policy(hidden)), 12);
    if (!strstr(mix_layer_config(hidden), "\"class_name\": \"Float8QuantizationConfig\""))
      fail_msg("%s", mix_layer_config(hidden));
  }
  snprintf(more, sizeof more, quantizer, "Int8QuantizationConfig");
  assert_null(mix_model_from_json(model_text(dtype, more)));
  assert_non_null(strstr(mix_error_message(), "layer 'hidden'"));
  expect_error(MIX_VALUE_ERROR, "quantization_config has the mode int8");
  snprintf(dtype, sizeof dtype, policy, "0");
  assert_null(mix_model_from_json(model_text(dtype, "")));
  expect_error(MIX_VALUE_ERROR, "amax_history_length");
}

static void no_file_is_given_one(void **state) {
  (void)state;
  mix_set_semantics("keras3");
  json_t *object = json_loads(model_text("'float32'", ""), 0, NULL), *copy = json_deep_copy(object);
  for (int i = 0; i < NAMES; i++) {
    assert_false(mix_override_policy(object, names[i][0], mix_semantics_named("keras3")));
    expect_both(names[i][0], i < WITHOUT_LAYERS ? names[i][1] : "is not one for all layers of a model");
    assert_true(json_equal(object, copy));
  }
  json_decref(object);
  json_decref(copy);
}

/* The policy of the model itself is one of its config. */
static void models_refuse_them(void **state) {
  (void)state;
  char *text = strdup(model_text("'float32'", "")), changed[3000];
  const char *own = strstr(text, "\"dtype\": \"float32\"");
  snprintf(changed, sizeof changed, "%.*s\"dtype\": \"int8_from_float32\"%s", (int)(own - text), text,
           own + strlen("\"dtype\": \"float32\""));
  assert_null(mix_model_from_json(changed));
  expect_both("'sequential'", "mode int8 ");
  free(text);
}

int main(void) {
  const struct CMUnitTest tests[] = {TEST(layers_refuse_them),
                                     TEST(none_becomes_the_global_policy),
                                     TEST(objects_stay),
                                     TEST(configs_are_refused),
                                     TEST(float8_becomes_the_global_policy),
                                     TEST(float8_configs),
                                     TEST(no_file_is_given_one),
                                     TEST(models_refuse_them)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
