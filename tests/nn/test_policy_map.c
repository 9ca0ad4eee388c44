/* Policies by layer: rows K01 to K24 (docs/spec/policy_map.md), as far as they need no file. */
#include "nn/support.h"
#include "nn/layer/layer.h"
#include <mixtape/attention.h>

static mix_policy *keras3(const char *name) {
  return mix_policy_new(name, .semantics = mix_semantics_named("keras3"));
}
static mix_policy *new_map(const char *otherwise) {
  mix_set_semantics("keras3");
  mix_policy *map = mix_policy_map_new(otherwise);
  assert_non_null(map);
  return map;
}
static void set(mix_policy *map, const char *key, const char *policy) {
  assert_int_equal(mix_policy_map_set_name(map, key, policy), MIX_OK);
}
static void expect_found(mix_policy *map, const char *path, const char *policy) {
  const mix_policy *found = mix_policy_map_lookup(map, path);
  if (!found || strcmp(mix_policy_name(found), policy))
    fail_msg("%s: %s (%s), expected %s", path, found ? mix_policy_name(found) : "none", mix_error_message(),
             policy);
}

/* ---- matching ---- */

static void K01_equal_key_then_one_expression_then_the_default(void **state) {
  (void)state;
  mix_policy *map = new_map("float32");
  set(map, "enc/.*", "mixed_float16");
  set(map, "enc/a", "mixed_bfloat16");
  expect_found(map, "enc/a", "mixed_bfloat16");
  expect_found(map, "enc/b", "mixed_float16");
  expect_found(map, "ENC/b", "float32");
  expect_found(map, "xenc/b", "float32");
  set(map, "enc/b.*", "float64");
  expect_refused(mix_policy_map_lookup(map, "enc/bb"), MIX_VALUE_ERROR,
                 "the path 'enc/bb' matches several keys: ['enc/.*', 'enc/b.*']");
}
static void K01_order_plays_no_part(void **state) {
  (void)state;
  mix_policy *map = new_map("float32");
  set(map, "a", "mixed_bfloat16");
  set(map, ".*", "mixed_float16");
  expect_found(map, "a", "mixed_bfloat16");
  mix_policy *other = new_map("float32");
  set(other, ".*", "mixed_float16");
  set(other, "a", "mixed_bfloat16");
  expect_found(other, "a", "mixed_bfloat16");
  assert_true(mix_policy_equal(map, other));
}
static void K02_a_name_serves_no_inner_layers(void **state) {
  (void)state;
  mix_policy *map = new_map("float32");
  set(map, "dec", "mixed_bfloat16");
  set(map, "enc/.*", "mixed_float16");
  expect_found(map, "dec", "mixed_bfloat16");
  expect_found(map, "dec/x", "float32");
  expect_found(map, "enc", "float32");
  expect_found(map, "enc/q", "mixed_float16");
  expect_found(map, "enc/a/b", "mixed_float16");
}

/* ---- keys ---- */

static void K03_bad_keys_and_values(void **state) {
  (void)state;
  mix_policy *map = new_map("float32");
  set(map, "a", "mixed_float16");
  assert_int_equal(mix_policy_map_set_name(map, "a", "float32"), MIX_VALUE_ERROR);
  expect_refused(NULL, MIX_VALUE_ERROR, "the key 'a' already exists");
  assert_int_equal(mix_policy_map_set_name(map, "b", "float99"), MIX_VALUE_ERROR);
  expect_refused(NULL, MIX_VALUE_ERROR, "float99");
  assert_int_equal(mix_policy_map_set(map, "b", NULL), MIX_TYPE_ERROR);
  expect_refused(NULL, MIX_TYPE_ERROR, "expected a policy");
  expect_refused(mix_policy_map_new(.default_object = map), MIX_VALUE_ERROR, "the map 'map_float32'");
  expect_refused(mix_policy_map_from_json("{\"policy_map\": 3}"), MIX_TYPE_ERROR, "policy_map is an integer");
  expect_refused(mix_policy_map_from_json("{\"policy_map\": {\"a\": 3}}"), MIX_VALUE_ERROR, "an integer");
  expect_refused(mix_policy_map_from_json("{\"policy_map\": {\"a\": \"float32\", \"a\": \"float16\"}}"),
                 MIX_VALUE_ERROR, "duplicate");
  expect_refused(mix_policy_map_from_json("{}"), MIX_VALUE_ERROR, "the object has no policy_map");
  expect_refused(mix_policy_map_from_json("[]"), MIX_TYPE_ERROR, "expected an object");
  assert_int_equal(mix_policy_map_delete(map, "c"), MIX_VALUE_ERROR);
  expect_refused(NULL, MIX_VALUE_ERROR, "no key 'c'");
  assert_int_equal(mix_policy_map_set(map, "inner", new_map("bfloat16")), MIX_OK);
  expect_found(map, "inner", "map_bfloat16");
  assert_int_equal(mix_policy_map_set(map, "self", map), MIX_VALUE_ERROR);
  expect_refused(NULL, MIX_VALUE_ERROR, "the map itself");
}
static void K03_a_bad_expression_fails_at_the_first_lookup_that_meets_it(void **state) {
  (void)state;
  mix_policy *map = new_map("float32");
  set(map, "*a", "mixed_float16");
  set(map, "b", "mixed_bfloat16");
  expect_found(map, "b", "mixed_bfloat16");
  expect_found(map, "*a", "mixed_float16");
  expect_refused(mix_policy_map_lookup(map, "c"), MIX_VALUE_ERROR, "nothing to repeat at position 0");
}
static void K04_keys_without_matching(void **state) {
  (void)state;
  mix_policy *map = new_map("float32");
  set(map, "enc/.*", "mixed_float16");
  set(map, "dec", "mixed_bfloat16");
  assert_int_equal(mix_policy_map_count(map), 2);
  assert_true(mix_policy_map_contains(map, "enc/.*"));
  assert_false(mix_policy_map_contains(map, "enc/a"));
  assert_null(mix_policy_map_get(map, "enc/a"));
  assert_string_equal(mix_policy_name(mix_policy_map_get(map, "dec")), "mixed_bfloat16");
  assert_string_equal(mix_policy_map_key(map, 0), "enc/.*");
  assert_null(mix_policy_map_key(map, 2));
  assert_int_equal(mix_policy_map_delete(map, "enc/.*"), MIX_OK);
  assert_int_equal(mix_policy_map_count(map), 1);
  assert_string_equal(mix_policy_map_key(map, 0), "dec");
}
static void K05_name_and_dtypes_of_the_default(void **state) {
  (void)state;
  mix_policy *map = new_map("mixed_bfloat16");
  char text[100];
  assert_string_equal(mix_policy_name(map), "map_mixed_bfloat16");
  assert_int_equal(mix_policy_compute_dtype(map), MIX_BFLOAT16);
  assert_int_equal(mix_policy_variable_dtype(map), MIX_FLOAT32);
  assert_null(mix_policy_quantization_mode(map));
  assert_string_equal(mix_policy_text(map, text, sizeof text), "<DTypePolicyMap \"map_mixed_bfloat16\">");
  assert_string_equal(mix_policy_quantization_mode(new_map("int8_from_float32")), "int8");
  assert_true(mix_policy_is_map(map));
  assert_false(mix_policy_is_map(keras3("float32")));
  assert_int_equal(mix_policy_map_count(keras3("float32")), 0);
  expect_refused(mix_policy_map_lookup(keras3("float32"), "a"), MIX_TYPE_ERROR, "without keys");
}
/* None is the global policy. */
static void K05_without_a_default(void **state) {
  (void)state;
  mix_set_semantics("keras3");
  mix_set_global_policy("mixed_bfloat16");
  assert_string_equal(mix_policy_name(mix_policy_map_new()), "map_mixed_bfloat16");
  mix_set_global_policy("float32");
}
static void K16_its_name_names_no_policy(void **state) {
  (void)state;
  mix_set_semantics("keras3");
  expect_refused(mix_policy_new("map_float32"), MIX_VALUE_ERROR, "map_float32");
}
static void other_generations_have_none(void **state) {
  (void)state;
  mix_policy *map = new_map("float32");
  mix_set_semantics("tf_keras");
  expect_refused(mix_policy_map_new("float32"), MIX_VALUE_ERROR, "tf_keras has no policies by layer");
  expect_refused(mix_dense(2, .policy = map), MIX_VALUE_ERROR, "expected the semantics keras3");
}

/* ---- JSON ---- */

static const char written[] =
    "{\"module\": \"keras.dtype_policies\", \"class_name\": \"DTypePolicyMap\", \"config\": "
    "{\"default_policy\": \"float32\", \"policy_map\": {\"fc.*\": {\"module\": \"keras\", "
    "\"class_name\": \"DTypePolicy\", \"config\": {\"name\": \"mixed_bfloat16\"}, \"registered_name\": "
    "null}}}, \"registered_name\": null}";

static void K10_config(void **state) {
  (void)state;
  mix_policy *map = new_map("float32");
  set(map, "fc.*", "mixed_bfloat16");
  assert_string_equal(mix_policy_serialize(map), written);
  assert_true(mix_policy_equal(mix_policy_deserialize(written, NULL), map));
  assert_true(mix_policy_equal(mix_policy_map_from_json(written), map));
  assert_true(mix_policy_equal(
      mix_policy_map_from_json(
          "{\"default_policy\": \"float32\", \"policy_map\": {\"fc.*\": \"mixed_bfloat16\"}}"),
      map));
  assert_string_equal(mix_policy_config(map),
                      "{\"default_policy\": \"float32\", \"policy_map\": {\"fc.*\": {\"module\": \"keras\", "
                      "\"class_name\": \"DTypePolicy\", \"config\": {\"name\": \"mixed_bfloat16\"}, "
                      "\"registered_name\": null}}}");
  assert_false(mix_policy_equal(map, new_map("float32")));
  assert_false(mix_policy_equal(map, keras3("float32")));
}
/* Keras writes the names of a map without a default as null, and reads them as the global policy; ours keep
 * theirs. */
static void K11_without_a_default(void **state) {
  (void)state;
  mix_policy *map = new_map(NULL);
  set(map, "a", "mixed_bfloat16");
  const char *text = mix_policy_serialize(map);
  assert_non_null(strstr(text, "\"default_policy\": null"));
  assert_string_equal(mix_policy_name(mix_policy_map_get(mix_policy_map_from_json(text), "a")),
                      "mixed_bfloat16");
  mix_policy *read = mix_policy_map_from_json(
      "{\"default_policy\": null, \"policy_map\": {\"a\": {\"module\": \"keras\", \"class_name\": "
      "\"DTypePolicy\", \"config\": {\"name\": null}, \"registered_name\": null}}}");
  assert_non_null(read);
  assert_string_equal(mix_policy_name(mix_policy_map_get(read, "a")), "float32");
}

/* ---- layers ---- */

static mix_shape shape_of(int64_t a, int64_t b) { return (mix_shape){2, {a, b}}; }

static void K07_the_default_before_there_is_a_path(void **state) {
  (void)state;
  mix_policy *map = new_map("float32");
  set(map, ".*", "mixed_bfloat16");
  mix_layer *dense = mix_dense(2, .name = "d", .policy = map);
  mix_layer *activation = mix_activation("relu", .name = "act", .policy = map);
  assert_int_equal(mix_layer_compute_dtype(dense), MIX_FLOAT32);
  assert_int_equal(mix_layer_build(dense, shape_of(3, 2)), MIX_OK);
  assert_int_equal(mix_layer_compute_dtype(dense), MIX_BFLOAT16);
  mix_tensor *x = mix_tensor_from_doubles((const double[]){1, 2}, MIX_FLOAT32, shape_of(1, 2));
  assert_int_equal(mix_tensor_dtype(mix_call(dense, x)), MIX_BFLOAT16);
  assert_int_equal(mix_tensor_dtype(mix_call(activation, x)), MIX_FLOAT32);
}
static void K08_a_layer_keeps_the_whole_map(void **state) {
  (void)state;
  mix_policy *map = new_map("float32");
  set(map, "d", "mixed_bfloat16");
  mix_layer *dense = mix_dense(2, .name = "d", .policy = map);
  assert_int_equal(mix_layer_build(dense, shape_of(3, 2)), MIX_OK);
  assert_ptr_equal(mix_layer_policy(dense), map);
  assert_string_equal(mix_policy_name(mix_layer_matched_policy(dense)), "mixed_bfloat16");
  assert_int_equal(mix_layer_compute_dtype(dense), MIX_BFLOAT16);
  assert_int_equal(mix_layer_variable_dtype(dense), MIX_FLOAT32);
  assert_non_null(strstr(mix_layer_config(dense), "\"class_name\": \"DTypePolicyMap\""));
}
static void K09_attention_hands_its_map_on(void **state) {
  (void)state;
  mix_policy *map = new_map("float32");
  set(map, "att/(query|key)", "mixed_bfloat16");
  mix_layer *attention = mix_multi_head_attention(2, 2, .name = "att", .policy = map);
  mix_tensor *x =
      mix_tensor_from_doubles((const double[]){1, 2, 3, 4}, MIX_FLOAT32, (mix_shape){3, {1, 2, 2}});
  assert_non_null(mix_call_outputs(attention, x, .arguments = mix_list_of(x)));
  assert_int_equal(mix_layer_compute_dtype(attention), MIX_FLOAT32);
  int in_16_bits = 0;
  for (int i = 0; i < mix_list_count(attention->layers); i++) {
    const mix_layer *inner = mix_list_get(attention->layers, i);
    const bool expected = !strcmp(inner->name, "query") || !strcmp(inner->name, "key");
    in_16_bits += inner->compute == MIX_BFLOAT16;
    assert_int_equal(inner->compute == MIX_BFLOAT16, expected);
  }
  assert_int_equal(in_16_bits, 2);
}
static void K01_a_layer_that_several_keys_match(void **state) {
  (void)state;
  mix_policy *map = new_map("float32");
  set(map, "d.*", "mixed_bfloat16");
  set(map, ".*", "float32");
  mix_layer *dense = mix_dense(2, .name = "d1", .policy = map);
  assert_int_equal(mix_layer_build(dense, shape_of(3, 2)), MIX_VALUE_ERROR);
  expect_refused(NULL, MIX_VALUE_ERROR, "'d1' matches several keys: ['d.*', '.*']");
}
static void K24_the_global_policy_may_be_a_map(void **state) {
  (void)state;
  mix_policy *map = new_map("float32");
  set(map, "d", "mixed_float16");
  assert_int_equal(mix_set_global_policy_object(map), MIX_OK);
  mix_layer *dense = mix_dense(2, .name = "d");
  mix_set_global_policy("float32");
  assert_int_equal(mix_layer_build(dense, shape_of(3, 2)), MIX_OK);
  assert_int_equal(mix_layer_compute_dtype(dense), MIX_FLOAT16);
}
/* What lacks the mode fails when it is called, and not what a key gives another policy. */
static void K17_a_quantized_default(void **state) {
  (void)state;
  mix_policy *map = new_map("int8_from_float32");
  set(map, "d", "mixed_bfloat16");
  mix_layer *dense = mix_dense(2, .name = "d", .policy = map);
  assert_int_equal(mix_layer_build(dense, shape_of(3, 2)), MIX_OK);
  assert_int_equal(mix_layer_compute_dtype(dense), MIX_BFLOAT16);
  mix_layer *flatten = mix_flatten(.name = "f", .policy = map);
  assert_non_null(flatten);
  mix_tensor *x = mix_tensor_from_doubles((const double[]){1, 2}, MIX_FLOAT32, shape_of(1, 2));
  expect_refused(mix_call(flatten, x), MIX_UNSUPPORTED, "'f'");
  mix_layer *dropout = mix_dropout(0.5, .name = "drop", .policy = map);
  expect_refused(mix_call(dropout, x), MIX_UNSUPPORTED, "'drop'");
}

/* ---- quantized policies ---- */

static void K18_modes_and_text(void **state) {
  (void)state;
  static const char *const rows[][2] = {
      {"int8_from_float32", "<QuantizedDTypePolicy \"int8_from_float32\">"},
      {"float8_from_float32", "<QuantizedFloat8DTypePolicy \"float8_from_float32\">"},
      {"int4/128_from_float32", "<Int4DTypePolicy \"int4/128_from_float32\">"}};
  char text[200];
  for (int i = 0; i < 3; i++)
    assert_string_equal(mix_policy_text(keras3(rows[i][0]), text, sizeof text), rows[i][1]);
  assert_string_equal(mix_policy_quantization_mode(keras3("int4/128_from_float32")), "int4");
  assert_string_equal(mix_policy_quantization_mode(keras3("gptq/4/128_from_float32")), "gptq");
  assert_null(mix_policy_quantization_mode(keras3("mixed_float16")));
  mix_policy *policy = keras3("float8_from_mixed_bfloat16");
  assert_int_equal(mix_policy_compute_dtype(policy), MIX_BFLOAT16);
  assert_int_equal(mix_policy_variable_dtype(policy), MIX_FLOAT32);
}
static void K19_to_K21_names(void **state) {
  (void)state;
  mix_set_semantics("keras3");
  expect_refused(mix_dense(2, .dtype = "int8"), MIX_VALUE_ERROR, "'int8' is a mode of quantization");
  static const char *const bad[] = {"float8",
                                    "int8_from_float16",
                                    "int8_from_mixed_float16",
                                    "int9_from_float32",
                                    "int4/0_from_float32",
                                    "int4/x_from_float32",
                                    "gptq_from_float32",
                                    "float9_from_float32"};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
    expect_refused(keras3(bad[i]), MIX_VALUE_ERROR, bad[i]);
  static const char *const good[] = {"int4_from_float16", "int4_from_mixed_float16", "float8_from_float16",
                                     "float8_from_mixed_float16", "int8_from_bfloat16"};
  for (size_t i = 0; i < sizeof good / sizeof *good; i++)
    assert_string_equal(mix_policy_name(keras3(good[i])), good[i]);
}
static void K22_a_config_without_a_source(void **state) {
  (void)state;
  mix_set_semantics("keras3");
  mix_set_global_policy("mixed_bfloat16");
  mix_policy *policy = mix_policy_deserialize(
      "{\"class_name\": \"QuantizedDTypePolicy\", \"config\": {\"mode\": \"int8\", \"source_name\": null}}",
      NULL);
  mix_set_global_policy("float32");
  assert_non_null(policy);
  assert_string_equal(mix_policy_name(policy), "int8_from_mixed_bfloat16");
}
/* Nothing is computed here: a key may be read, looked up and written. */
static void K13_keys_of_quantized_policies(void **state) {
  (void)state;
  mix_policy *map = new_map("float32");
  set(map, "stem", "float8_from_mixed_bfloat16");
  set(map, "fc.*", "int4/128_from_float32");
  expect_found(map, "fc1", "int4/128_from_float32");
  mix_policy *read = mix_policy_map_from_json(mix_policy_serialize(map));
  assert_true(mix_policy_equal(read, map));
  expect_found(read, "stem", "float8_from_mixed_bfloat16");
}
static void K23_equality(void **state) {
  (void)state;
  assert_true(mix_policy_equal(keras3("int8_from_float32"), keras3("int8_from_float32")));
  assert_false(mix_policy_equal(keras3("int8_from_float32"), keras3("float32")));
  mix_set_semantics("keras3");
  assert_false(mix_policy_equal(mix_policy_new("float8_from_float32", .amax_history_length = 8),
                                mix_policy_new("float8_from_float32", .amax_history_length = 16)));
}

int main(void) {
  const struct CMUnitTest tests[] = {TEST(K01_equal_key_then_one_expression_then_the_default),
                                     TEST(K01_order_plays_no_part),
                                     TEST(K02_a_name_serves_no_inner_layers),
                                     TEST(K03_bad_keys_and_values),
                                     TEST(K03_a_bad_expression_fails_at_the_first_lookup_that_meets_it),
                                     TEST(K04_keys_without_matching),
                                     TEST(K05_name_and_dtypes_of_the_default),
                                     TEST(K05_without_a_default),
                                     TEST(K16_its_name_names_no_policy),
                                     TEST(other_generations_have_none),
                                     TEST(K10_config),
                                     TEST(K11_without_a_default),
                                     TEST(K07_the_default_before_there_is_a_path),
                                     TEST(K08_a_layer_keeps_the_whole_map),
                                     TEST(K09_attention_hands_its_map_on),
                                     TEST(K01_a_layer_that_several_keys_match),
                                     TEST(K24_the_global_policy_may_be_a_map),
                                     TEST(K17_a_quantized_default),
                                     TEST(K18_modes_and_text),
                                     TEST(K19_to_K21_names),
                                     TEST(K22_a_config_without_a_source),
                                     TEST(K13_keys_of_quantized_policies),
                                     TEST(K23_equality)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
