/* Policies: rows P01 to P50 of docs/spec/mixed_precision.md, 9.1. Where Python passes an object that is no
 * string, C passes NULL (for "not a string") or calls mix_policy_from_dtype (for a dtype object). P49 needs
 * distribution strategies, which do not exist. */
#include "nn/support.h"
#include <pthread.h>

static void expect_policy(mix_policy *policy, const char *name, mix_dtype compute, mix_dtype variable) {
  assert_non_null(policy);
  assert_string_equal(mix_policy_name(policy), name);
  assert_int_equal(mix_policy_compute_dtype(policy), compute);
  assert_int_equal(mix_policy_variable_dtype(policy), variable);
}
static void expect_text(mix_policy *policy, const char *expected) {
  char text[300];
  assert_string_equal(mix_policy_text(policy, text, sizeof text), expected);
}
static mix_policy *experimental(const char *name) {
  return mix_policy_new(name, .semantics = mix_semantics_named("experimental"));
}
static mix_policy *keras3(const char *name) {
  return mix_policy_new(name, .semantics = mix_semantics_named("keras3"));
}

static void P01_mixed_float16(void **state) {
  (void)state;
  expect_policy(mix_policy_new("mixed_float16"), "mixed_float16", MIX_FLOAT16, MIX_FLOAT32);
}
static void P02_mixed_bfloat16(void **state) {
  (void)state;
  expect_policy(mix_policy_new("mixed_bfloat16"), "mixed_bfloat16", MIX_BFLOAT16, MIX_FLOAT32);
}
static void P03_plain_floats(void **state) {
  (void)state;
  static const mix_dtype dtypes[] = {MIX_FLOAT16, MIX_BFLOAT16, MIX_FLOAT32, MIX_FLOAT64};
  for (int i = 0; i < 4; i++)
    expect_policy(mix_policy_new(mix_dtype_name(dtypes[i])), mix_dtype_name(dtypes[i]), dtypes[i], dtypes[i]);
  assert_int_equal(log_count, 0);
}
/* TensorFlow's other names: the policy keeps the given one. */
static void names_of_c(void **state) {
  (void)state;
  expect_policy(mix_policy_new("half"), "half", MIX_FLOAT16, MIX_FLOAT16);
  expect_policy(mix_policy_new("float"), "float", MIX_FLOAT32, MIX_FLOAT32);
  expect_policy(mix_policy_new("double"), "double", MIX_FLOAT64, MIX_FLOAT64);
  assert_string_equal(mix_policy_serialize(mix_policy_new("half")), "\"half\"");
  mix_set_semantics("keras3");
  expect_refused(mix_policy_new("half"), MIX_VALUE_ERROR, "half");
}
static void P04_other_dtypes(void **state) {
  (void)state;
  static const mix_dtype dtypes[] = {MIX_INT32, MIX_BOOL, MIX_COMPLEX64, MIX_STRING, MIX_INT8};
  for (int i = 0; i < 5; i++)
    expect_policy(mix_policy_new(mix_dtype_name(dtypes[i])), mix_dtype_name(dtypes[i]), dtypes[i], dtypes[i]);
}
static void P05_infer(void **state) {
  (void)state;
  expect_policy(mix_policy_new("_infer"), "_infer", MIX_DTYPE_NONE, MIX_DTYPE_NONE);
}
static void P06_unknown_name(void **state) {
  (void)state;
  expect_refused(mix_policy_new("abc"), MIX_VALUE_ERROR, "abc");
  expect_refused(mix_policy_new("mixed_float32"), MIX_VALUE_ERROR, "mixed_float32");
  expect_refused(mix_policy_new(""), MIX_VALUE_ERROR, "''");
}
/* Policy(5): a name that is no string comes from a config; in C, a missing name is NULL. */
static void P07_no_string(void **state) {
  (void)state;
  expect_refused(mix_policy_deserialize("{\"class_name\": \"Policy\", \"config\": {\"name\": 5}}", NULL),
                 MIX_TYPE_ERROR, "the name is 5; expected a string");
  expect_refused(mix_policy_new(NULL), MIX_TYPE_ERROR, "NULL");
}
static void P08_dtype_object(void **state) {
  (void)state;
  expect_refused(mix_policy_from_dtype(MIX_FLOAT16), MIX_TYPE_ERROR, "name");
}
static void P09_infer_float32_vars(void **state) {
  (void)state;
  expect_refused(mix_policy_new("infer_float32_vars"), MIX_VALUE_ERROR,
                 "'mixed_float16' or 'mixed_bfloat16'");
  expect_refused(mix_policy_new("infer_with_float32_vars"), MIX_VALUE_ERROR,
                 "'mixed_float16' or 'mixed_bfloat16'");
}
static void P10_float16_with_float32_vars(void **state) {
  (void)state;
  expect_refused(mix_policy_new("float16_with_float32_vars"), MIX_VALUE_ERROR, "the policy 'mixed_float16'");
}
static void P11_bfloat16_with_float32_vars(void **state) {
  (void)state;
  expect_refused(mix_policy_new("bfloat16_with_float32_vars"), MIX_VALUE_ERROR,
                 "the policy 'mixed_bfloat16'");
}
static void P12_int8_with_float32_vars(void **state) {
  (void)state;
  assert_null(mix_policy_new("int8_with_float32_vars"));
  assert_null(strstr(mix_error_message(), "instead"));
  expect_error(MIX_VALUE_ERROR, "int8_with_float32_vars");
}
static void P13_printed(void **state) {
  (void)state;
  expect_text(mix_policy_new("mixed_float16"), "<Policy \"mixed_float16\">");
}
static void P14_printed_with_loss_scale(void **state) {
  (void)state;
  mix_set_semantics("experimental");
  expect_text(mix_policy_new("float16", .loss_scale = 2),
              "<Policy \"float16\", loss_scale=FixedLossScale(2.0)>");
  expect_text(mix_policy_new("float32"), "<Policy \"float32\", loss_scale=None>");
  expect_text(
      mix_policy_new("mixed_float16"),
      "<Policy \"mixed_float16\", loss_scale=DynamicLossScale(current_loss_scale=32768.0, num_good_steps=0, "
      "initial_loss_scale=32768.0, increment_period=2000, multiplier=2.0)>");
}
static void P15_default_loss_scale(void **state) {
  (void)state;
  mix_loss_scale *loss_scale = mix_policy_loss_scale(experimental("mixed_float16"));
  assert_true(mix_loss_scale_is_dynamic(loss_scale));
  assert_true(mix_loss_scale_initial(loss_scale) == 32768);
  assert_int_equal(mix_loss_scale_increment_period(loss_scale), 2000);
  assert_true(mix_loss_scale_multiplier(loss_scale) == 2);
}
static void P16_no_loss_scale(void **state) {
  (void)state;
  mix_policy *policy = mix_policy_new("mixed_float16", .no_loss_scale = true,
                                      .semantics = mix_semantics_named("experimental"));
  assert_non_null(policy);
  assert_null(mix_policy_loss_scale(policy));
}
static void P17_none_by_default(void **state) {
  (void)state;
  static const char *const names[] = {"mixed_bfloat16", "float16", "float32"};
  for (int i = 0; i < 3; i++) {
    mix_policy *policy = experimental(names[i]);
    assert_non_null(policy);
    assert_null(mix_policy_loss_scale(policy));
  }
}
static void P18_warns_where_useless(void **state) {
  (void)state;
  mix_set_semantics("experimental");
  assert_non_null(mix_policy_new("float32", .loss_scale = 2.0));
  assert_int_equal(log_count, 1);
  assert_int_equal(log_level, MIX_LOG_WARNING);
  assert_non_null(strstr(log_text, "2.0"));
  assert_non_null(strstr(log_text, "float32"));
}
static void P19_no_warning_for_float16(void **state) {
  (void)state;
  mix_set_semantics("experimental");
  mix_policy *policy = mix_policy_new("float16", .loss_scale = 2.0);
  assert_int_equal(log_count, 0);
  assert_false(mix_loss_scale_is_dynamic(mix_policy_loss_scale(policy)));
  assert_true(mix_loss_scale_initial(mix_policy_loss_scale(policy)) == 2);
}
static void P20_bad_loss_scale(void **state) {
  (void)state;
  mix_set_semantics("experimental");
  expect_refused(mix_policy_new("mixed_float16", .loss_scale_name = "abc"), MIX_VALUE_ERROR, "abc");
}
static void P21_global_default(void **state) {
  (void)state;
  expect_policy(mix_global_policy(), "float32", MIX_FLOAT32, MIX_FLOAT32);
}
static void P22_global_follows_floatx(void **state) {
  (void)state;
  assert_int_equal(mix_set_floatx("float64"), MIX_OK);
  expect_policy(mix_global_policy(), "float64", MIX_FLOAT64, MIX_FLOAT64);
}
static void P23_layer_keeps_its_policy(void **state) {
  (void)state;
  mix_set_global_policy("mixed_float16");
  mix_layer *layer = mix_dense(.units = 2);
  assert_int_equal(mix_set_global_policy(NULL), MIX_OK);
  assert_string_equal(mix_policy_name(mix_layer_policy(layer)), "mixed_float16");
  assert_string_equal(mix_policy_name(mix_global_policy()), "float32");
}
static void P24_global_must_be_floating(void **state) {
  (void)state;
  mix_set_global_policy("float16");
  expect_status(mix_set_global_policy("int32"), MIX_VALUE_ERROR, "int32");
  expect_status(mix_set_global_policy("complex64"), MIX_VALUE_ERROR, "complex64");
  assert_string_equal(mix_policy_name(mix_global_policy()), "float16");
  assert_int_equal(mix_set_global_policy("_infer"), MIX_OK);
}
static void P25_mixed_refused_under_rewrite(void **state) {
  (void)state;
  assert_int_equal(mix_graph_rewrite_set(true), MIX_OK);
  expect_status(mix_set_global_policy("mixed_float16"), MIX_VALUE_ERROR, "rewrite");
  assert_string_equal(mix_policy_name(mix_global_policy()), "float32");
}
static void P26_plain_allowed_under_rewrite(void **state) {
  (void)state;
  mix_graph_rewrite_set(true);
  assert_int_equal(mix_set_global_policy("float64"), MIX_OK);
  assert_int_equal(mix_set_global_policy("float16"), MIX_OK);
}
static void P27_rewrite_refused_under_mixed(void **state) {
  (void)state;
  mix_set_global_policy("mixed_float16");
  expect_status(mix_graph_rewrite_set(true), MIX_VALUE_ERROR, "mixed");
  assert_false(mix_graph_rewrite_enabled());
}
static void P28_rewrite_after_reset(void **state) {
  (void)state;
  mix_set_global_policy("mixed_float16");
  mix_set_global_policy("float32");
  assert_int_equal(mix_graph_rewrite_set(true), MIX_OK);
  assert_true(mix_graph_rewrite_enabled());
}
static void P29_nested_scopes(void **state) {
  (void)state;
  mix_policy_scope *outer = mix_policy_scope_begin(mix_policy_new("float16"));
  mix_policy_scope *inner = mix_policy_scope_begin(mix_policy_new("bfloat16"));
  assert_string_equal(mix_policy_name(mix_global_policy()), "bfloat16");
  mix_policy_scope_end(inner);
  assert_string_equal(mix_policy_name(mix_global_policy()), "float16");
  mix_policy_scope_end(outer);
  mix_set_floatx("float64"); /* back to "never set": floatx decides */
  assert_string_equal(mix_policy_name(mix_global_policy()), "float64");
}
/* An error inside the scope is pending when the scope ends. */
static void P30_scope_around_an_error(void **state) {
  (void)state;
  mix_set_global_policy("bfloat16");
  mix_policy_scope *scope = mix_policy_scope_begin(mix_policy_new("mixed_float16"));
  assert_null(mix_policy_new("abc"));
  mix_policy_scope_end(scope);
  expect_error(MIX_VALUE_ERROR, "abc");
  assert_string_equal(mix_policy_name(mix_global_policy()), "bfloat16");
}
static void *read_global(void *result) {
  snprintf(result, 40, "%s", mix_policy_name(mix_global_policy()));
  return NULL;
}
static void P31_other_threads_see_it(void **state) {
  (void)state;
  char seen[40] = "";
  pthread_t thread;
  mix_set_global_policy("mixed_float16");
  assert_int_equal(pthread_create(&thread, NULL, read_global, seen), 0);
  pthread_join(thread, NULL);
  assert_string_equal(seen, "mixed_float16");
}
static void P32_serialize_plain(void **state) {
  (void)state;
  assert_string_equal(mix_policy_serialize(mix_policy_new("float32")), "\"float32\"");
  assert_string_equal(mix_policy_config(mix_policy_new("float32")), "{\"name\": \"float32\"}");
}
static void P33_serialize_infer(void **state) {
  (void)state;
  assert_string_equal(mix_policy_serialize(mix_policy_new("_infer")), "null");
}
static void P34_serialize_mixed(void **state) {
  (void)state;
  assert_string_equal(mix_policy_serialize(mix_policy_new("mixed_float16")),
                      "{\"module\": \"keras.mixed_precision\", \"class_name\": \"Policy\", "
                      "\"config\": {\"name\": \"mixed_float16\"}, \"registered_name\": null}");
  mix_set_semantics("keras3");
  assert_string_equal(
      mix_policy_serialize(mix_policy_new("float32")),
      "{\"module\": \"keras\", \"class_name\": \"DTypePolicy\", \"config\": {\"name\": \"float32\"}, "
      "\"registered_name\": null}");
  mix_set_semantics("experimental");
  assert_string_equal(mix_policy_serialize(mix_policy_new("mixed_float16")),
                      "{\"class_name\": \"Policy\", \"config\": {\"name\": \"mixed_float16\"}}");
  assert_string_equal(
      mix_policy_serialize(mix_policy_new("float16", .loss_scale = 2)),
      "{\"class_name\": \"Policy\", \"config\": {\"name\": \"float16\", \"loss_scale\": {\"class_name\": "
      "\"FixedLossScale\", \"config\": {\"loss_scale_value\": 2.0}}}}");
}
static void P35_deserialize(void **state) {
  (void)state;
  static const char *const names[] = {"float32", "_infer", "mixed_float16"};
  for (int i = 0; i < 3; i++)
    assert_string_equal(
        mix_policy_name(mix_policy_deserialize(mix_policy_serialize(mix_policy_new(names[i])), NULL)),
        names[i]);
  const mix_semantics *experimental_semantics = mix_semantics_named("experimental");
  mix_policy *scaled = mix_policy_new("mixed_float16", .loss_scale = 8, .semantics = experimental_semantics);
  mix_policy *again = mix_policy_deserialize(mix_policy_serialize(scaled), experimental_semantics);
  assert_true(mix_loss_scale_initial(mix_policy_loss_scale(again)) == 8);
  assert_false(mix_loss_scale_is_dynamic(mix_policy_loss_scale(again)));
}
static void P36_loss_scale_dropped(void **state) {
  (void)state;
  mix_policy *policy = mix_policy_deserialize(
      "{\"class_name\": \"Policy\", \"config\": {\"name\": \"float32\", \"loss_scale\": "
      "{\"class_name\": \"FixedLossScale\", \"config\": {\"loss_scale_value\": 2.0}}}}",
      NULL);
  assert_string_equal(mix_policy_name(policy), "float32");
  assert_null(mix_policy_loss_scale(policy));
  expect_refused(
      mix_policy_deserialize(
          "{\"class_name\": \"Policy\", \"config\": {\"name\": \"float32\", \"colour\": 1}}", NULL),
      MIX_TYPE_ERROR, "colour");
}
static void P37_old_class_name(void **state) {
  (void)state;
  expect_policy(mix_policy_deserialize(
                    "{\"class_name\": \"PolicyV1\", \"config\": {\"name\": \"mixed_bfloat16\"}}", NULL),
                "mixed_bfloat16", MIX_BFLOAT16, MIX_FLOAT32);
  expect_refused(mix_policy_deserialize("{\"class_name\": \"Dense\", \"config\": {}}", NULL), MIX_VALUE_ERROR,
                 "Dense");
}
static void P38_layer_dtype(void **state) {
  (void)state;
  mix_set_global_policy("mixed_float16");
  mix_layer *layer = mix_dense(.units = 2, .dtype = "float64");
  assert_int_equal(mix_layer_compute_dtype(layer), MIX_FLOAT64);
  assert_int_equal(mix_layer_variable_dtype(layer), MIX_FLOAT64);
}
/* A policy never equals a string: in C they are different types. */
static void P39_equality(void **state) {
  (void)state;
  assert_true(mix_policy_equal(keras3("mixed_float16"), keras3("mixed_float16")));
  assert_false(mix_policy_equal(keras3("mixed_float16"), keras3("mixed_bfloat16")));
  assert_false(mix_policy_equal(keras3("int8_from_mixed_bfloat16"), keras3("mixed_bfloat16")));
  assert_false(mix_policy_equal(mix_policy_new("mixed_float16"),
                                mix_policy_new("mixed_float16"))); /* tf_keras: identity */
}
static void P40_keras3_bad_names(void **state) {
  (void)state;
  char text[300];
  memset(text, 'x', sizeof text - 1);
  text[sizeof text - 1] = 0;
  static const char *const names[] = {
      "", "invalid", "float3", "@mixed_float16", "_infer", "float16_with_float32_vars", "complex64"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    expect_refused(keras3(names[i]), MIX_VALUE_ERROR, "cannot be converted");
  expect_refused(keras3(text), MIX_VALUE_ERROR, "cannot be converted");
  expect_refused(keras3("mixed_flaot16"), MIX_VALUE_ERROR, "; did you mean 'mixed_float16'?; valid names");
}
/* DTypePolicy(123): NULL means "the global policy" there, so a dtype object represents a non-string. */
static void P41_keras3_no_string(void **state) {
  (void)state;
  mix_set_semantics("keras3");
  expect_refused(
      mix_policy_deserialize("{\"class_name\": \"DTypePolicy\", \"config\": {\"name\": 123}}", NULL),
      MIX_TYPE_ERROR, "the name is 123; expected a string");
  expect_refused(mix_policy_from_dtype(MIX_INT32), MIX_TYPE_ERROR, "string");
}
static void P42_keras3_integer(void **state) {
  (void)state;
  expect_policy(keras3("uint8"), "uint8", MIX_UINT8, MIX_UINT8);
}
/* set_dtype_policy(42): an object that is not a policy. */
static void P43_keras3_bad_setters(void **state) {
  (void)state;
  mix_set_semantics("keras3");
  expect_status(mix_set_global_policy(NULL), MIX_VALUE_ERROR, "expected");
  expect_status(mix_set_global_policy_object(NULL), MIX_VALUE_ERROR, "expected");
  expect_status(mix_set_global_policy_object((void *)mix_scalar(42, MIX_INT64)), MIX_VALUE_ERROR, "expected");
}
static void P44_keras3_integer_global(void **state) {
  (void)state;
  mix_set_semantics("keras3");
  assert_int_equal(mix_set_global_policy("int32"), MIX_OK);
}
static void P45_keras3_copies_the_global_name(void **state) {
  (void)state;
  mix_set_semantics("keras3");
  mix_set_global_policy("mixed_float16");
  expect_policy(mix_policy_new(NULL), "mixed_float16", MIX_FLOAT16, MIX_FLOAT32);
}
static void keras3_stores_the_global_policy_at_first_read(void **state) {
  (void)state;
  mix_set_semantics("keras3");
  assert_string_equal(mix_policy_name(mix_global_policy()), "float32");
  mix_set_floatx("float64");
  assert_string_equal(mix_policy_name(mix_global_policy()), "float32");
}
static void P46_quantized(void **state) {
  (void)state;
  expect_refused(keras3("int8_from_float16"), MIX_VALUE_ERROR, "doesn't work well");
  mix_policy *policy = keras3("int8_from_mixed_bfloat16");
  expect_policy(policy, "int8_from_mixed_bfloat16", MIX_BFLOAT16, MIX_FLOAT32);
  assert_string_equal(mix_policy_quantization_mode(policy), "int8");
  assert_non_null(keras3("int4/128_from_float32"));
  assert_non_null(keras3("gptq/4/128_from_float32"));
  assert_non_null(keras3("awq/4/-1_from_float32"));
  expect_refused(keras3("int7_from_float32"), MIX_VALUE_ERROR, "cannot be converted");
  expect_refused(keras3("awq/3/128_from_float32"), MIX_VALUE_ERROR, "cannot be converted");
  /* 2^32 + 128 and 2^32 + 4 */
  expect_refused(keras3("int4/4294967424_from_float32"), MIX_VALUE_ERROR, "cannot be converted");
  expect_refused(keras3("gptq/4/4294967424_from_float32"), MIX_VALUE_ERROR, "cannot be converted");
  expect_refused(keras3("gptq/4294967300/128_from_float32"), MIX_VALUE_ERROR, "cannot be converted");
  mix_policy *again = mix_policy_deserialize(mix_policy_serialize(policy), mix_semantics_named("keras3"));
  assert_true(mix_policy_equal(policy, again));
}
/* amax_history_length="512": in C a value of the wrong kind can only come from a file. */
static void P47_amax_history_length(void **state) {
  (void)state;
  const mix_semantics *semantics = mix_semantics_named("keras3");
  assert_int_equal(mix_policy_amax_history_length(keras3("float8_from_float32")), 1024);
  mix_policy *policy =
      mix_policy_new("float8_from_float32", .semantics = semantics, .amax_history_length = 512);
  assert_int_equal(mix_policy_amax_history_length(policy), 512);
  assert_int_equal(
      mix_policy_amax_history_length(mix_policy_deserialize(mix_policy_serialize(policy), semantics)), 512);
  static const char *const bad[] = {"\"512\"", "512.0", "null"};
  for (int i = 0; i < 3; i++) {
    char text[300];
    snprintf(text, sizeof text,
             "{\"class_name\": \"QuantizedFloat8DTypePolicy\", \"config\": {\"mode\": \"float8\", "
             "\"source_name\": \"float32\", \"amax_history_length\": %s}}",
             bad[i]);
    expect_refused(mix_policy_deserialize(text, semantics), MIX_TYPE_ERROR, "amax_history_length");
  }
}
static void P48_experimental_integer_global(void **state) {
  (void)state;
  mix_set_semantics("experimental");
  assert_int_equal(mix_set_global_policy("int32"), MIX_OK);
}
static void P50_policy_of_no_layer(void **state) {
  (void)state;
  expect_refused(mix_layer_policy((mix_layer *)mix_scalar(1, MIX_FLOAT32)), MIX_VALUE_ERROR, "no layer");
}
static void a_loss_scale_is_refused_outside_the_experimental_semantics(void **state) {
  (void)state;
  expect_refused(mix_policy_new("mixed_float16", .loss_scale = 8), MIX_TYPE_ERROR, "experimental");
}
static void semantics_names(void **state) {
  (void)state;
  expect_status(mix_set_semantics("keras4"), MIX_VALUE_ERROR, "keras4");
  assert_int_equal(mix_set_semantics("keras3"), MIX_OK);
  assert_string_equal(mix_semantics_name(mix_semantics_current()), "keras3");
}

static void floatx_and_casting(void **state) {
  (void)state;
  assert_int_equal(mix_floatx(), MIX_FLOAT32);
  assert_int_equal(mix_set_floatx("bfloat16"), MIX_OK);
  assert_int_equal(mix_floatx(), MIX_BFLOAT16);
  expect_status(mix_set_floatx("int32"), MIX_VALUE_ERROR, "int32");
  assert_int_equal(mix_floatx(), MIX_BFLOAT16);
  assert_true(mix_policy_should_cast_variables(mix_policy_new("mixed_float16")));
  assert_false(mix_policy_should_cast_variables(mix_policy_new("float16")));
  assert_false(mix_policy_should_cast_variables(NULL));
}

int main(void) {
  const struct CMUnitTest tests[] = {TEST(P01_mixed_float16),
                                     TEST(P02_mixed_bfloat16),
                                     TEST(P03_plain_floats),
                                     TEST(names_of_c),
                                     TEST(P04_other_dtypes),
                                     TEST(P05_infer),
                                     TEST(P06_unknown_name),
                                     TEST(P07_no_string),
                                     TEST(P08_dtype_object),
                                     TEST(P09_infer_float32_vars),
                                     TEST(P10_float16_with_float32_vars),
                                     TEST(P11_bfloat16_with_float32_vars),
                                     TEST(P12_int8_with_float32_vars),
                                     TEST(P13_printed),
                                     TEST(P14_printed_with_loss_scale),
                                     TEST(P15_default_loss_scale),
                                     TEST(P16_no_loss_scale),
                                     TEST(P17_none_by_default),
                                     TEST(P18_warns_where_useless),
                                     TEST(P19_no_warning_for_float16),
                                     TEST(P20_bad_loss_scale),
                                     TEST(P21_global_default),
                                     TEST(P22_global_follows_floatx),
                                     TEST(P23_layer_keeps_its_policy),
                                     TEST(P24_global_must_be_floating),
                                     TEST(P25_mixed_refused_under_rewrite),
                                     TEST(P26_plain_allowed_under_rewrite),
                                     TEST(P27_rewrite_refused_under_mixed),
                                     TEST(P28_rewrite_after_reset),
                                     TEST(P29_nested_scopes),
                                     TEST(P30_scope_around_an_error),
                                     TEST(P31_other_threads_see_it),
                                     TEST(P32_serialize_plain),
                                     TEST(P33_serialize_infer),
                                     TEST(P34_serialize_mixed),
                                     TEST(P35_deserialize),
                                     TEST(P36_loss_scale_dropped),
                                     TEST(P37_old_class_name),
                                     TEST(P38_layer_dtype),
                                     TEST(P39_equality),
                                     TEST(P40_keras3_bad_names),
                                     TEST(P41_keras3_no_string),
                                     TEST(P42_keras3_integer),
                                     TEST(P43_keras3_bad_setters),
                                     TEST(P44_keras3_integer_global),
                                     TEST(P45_keras3_copies_the_global_name),
                                     TEST(keras3_stores_the_global_policy_at_first_read),
                                     TEST(P46_quantized),
                                     TEST(P47_amax_history_length),
                                     TEST(P48_experimental_integer_global),
                                     TEST(P50_policy_of_no_layer),
                                     TEST(a_loss_scale_is_refused_outside_the_experimental_semantics),
                                     TEST(semantics_names),
                                     TEST(floatx_and_casting)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
