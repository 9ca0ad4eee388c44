/* Attention in functional models of Keras 3: masks by name, masks of operations, arrays in calls, and the
 * operation DotProductAttention. The numbers are those of Keras 3.15 on TensorFlow 2.21. */
#include "model/support.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/json.h"
#include "base/text.h"
#include "saving/model_json.h"
#include "support/expect.h"
#include "saving/keras3_text.h"

/* ---- models of one or two layers behind six inputs ---- */

#define Q TENSOR("q", "[null, 3, 2]", "float32")
#define V TENSOR("v", "[null, 3, 2]", "float32")
#define M TENSOR("m", "[null, 3]", "bool")
#define N TENSOR("n", "[null, 3]", "bool")
#define I TENSOR("i", "[null, 3]", "int32")
#define X TENSOR("x", "[null, 2, 2, 2]", "float32")
#define Y TENSOR("y", "[null, 2, 2, 2]", "float32")
#define LAYER(module, class_name, name, config, args, kwargs)                                                \
  "{\"module\": \"" module "\", \"class_name\": \"" class_name "\", \"config\": {\"name\": \"" name          \
  "\"" config "}, \"registered_name\": null, \"name\": \"" name "\", \"inbound_nodes\": [{\"args\": [" args  \
  "], \"kwargs\": {" kwargs "}}]}"
#define ARRAY_FORM(class_name, value, dtype)                                                                 \
  "{\"class_name\": \"" class_name "\", \"config\": {\"value\": " value ", \"dtype\": \"" dtype "\"}}"

/* The caller frees it. The last layer is the output, "l". */
static char *text_of(const char *layers) {
  mix_text text = {.grows = true};
  mix_text_put(&text,
               "{\"module\": \"keras.src.models.functional\", \"class_name\": \"Functional\", \"config\": "
               "{\"name\": \"model\", \"trainable\": true, \"layers\": [%s%s], \"input_layers\": "
               "[[\"q\", 0, 0], [\"v\", 0, 0], [\"m\", 0, 0], [\"n\", 0, 0], [\"i\", 0, 0], [\"x\", 0, 0], "
               "[\"y\", 0, 0]], \"output_layers\": [\"l\", 0, 0]}, \"registered_name\": \"Functional\"}",
               INPUT("q", "[null, 3, 2]", "float32") AND_INPUT("v", "[null, 3, 2]", "float32")
                   AND_INPUT("m", "[null, 3]", "bool") AND_INPUT("n", "[null, 3]", "bool")
                       AND_INPUT("i", "[null, 3]", "int32") AND_INPUT("x", "[null, 2, 2, 2]", "float32")
                           AND_INPUT("y", "[null, 2, 2, 2]", "float32") ", ",
               layers);
  assert_false(text.failed);
  return text.text;
}

static mix_tensor *result_of(mix_model *model) {
  if (!model) fail_msg("%s", mix_error_message());
  mix_list *inputs = mix_list_of(
      ARRAY(F32, MIX_SHAPE(1, 3, 2), .5, -1, 1, .25, -.75, .5),
      ARRAY(F32, MIX_SHAPE(1, 3, 2), 1, .5, -.5, 2, .25, -1), ARRAY(MIX_BOOL, MIX_SHAPE(1, 3), 1, 1, 0),
      ARRAY(MIX_BOOL, MIX_SHAPE(1, 3), 1, 0, 1), ARRAY(MIX_INT32, MIX_SHAPE(1, 3), 7, 0, 2),
      ARRAY(F32, MIX_SHAPE(1, 2, 2, 2), .5, -1, 1, .25, -.75, .5, 2, -.5),
      ARRAY(F32, MIX_SHAPE(1, 2, 2, 2), 1, .5, -.5, 2, .25, -1, -1.5, .75));
  mix_tensor *result = mix_call(model->layer, inputs);
  if (!result) fail_msg("%s", mix_error_message());
  return result;
}

/* Projections of two features to one head of two, and back, that change nothing. */
static mix_model *with_identities(mix_model *model) {
  if (!model) fail_msg("%s", mix_error_message());
  if (!mix_list_count(mix_layer_weights(model->layer))) return model;
  mix_list *values = mix_list_new(0, NULL);
  for (int i = 0; i < 4; i++) {
    mix_list_append(values, ARRAY(F32, i < 3 ? MIX_SHAPE(2, 1, 2) : MIX_SHAPE(1, 2, 2), 1, 0, 0, 1));
    mix_list_append(values, mix_fill(i < 3 ? MIX_SHAPE(1, 2) : MIX_SHAPE(2), 0, F32));
  }
  assert_int_equal(mix_layer_set_weights(model->layer, values), MIX_OK);
  return model;
}

static void expect_numbers(mix_tensor *y, int count, const double *numbers) {
  assert_int_equal(mix_shape_size(mix_tensor_shape(y)), count);
  const double bound = mix_tensor_dtype(y) == MIX_FLOAT16 ? 2e-3 : 1e-6;
  for (int k = 0; k < count; k++) assert_near(at(y, k), numbers[k], bound);
}

/* The calls of the last layer of a text. */
static json_t *calls_of(const char *text) {
  json_t *json = mix_json_parse(text, "test"), *layers = mix_json_layers(json_object_get(json, "config"));
  json_t *layer = json_array_get(layers, json_array_size(layers) - 1);
  json_t *calls = json_incref(json_object_get(layer, "inbound_nodes"));
  json_decref(json);
  return calls;
}

/* Reads, computes, writes the call as `written` (NULL: as it is read), and reads and computes that. */
static void check(const char *layers, const char *written, int count, const double *numbers) {
  MIX_SCOPE {
    char *text = text_of(layers), *expected_text = text_of(written ? written : layers);
    mix_model *model = with_identities(mix_model_from_json(text));
    expect_numbers(result_of(model), count, numbers);
    const char *again = mix_model_to_json(model);
    if (!again) fail_msg("%s", mix_error_message());
    json_t *expected = calls_of(expected_text), *got = calls_of(again);
    if (!json_equal(expected, got)) fail_msg("written as %s", mix_json_text(got));
    json_decref(expected);
    json_decref(got);
    expect_numbers(result_of(with_identities(mix_model_from_json(again))), count, numbers);
    expect_numbers(result_of(with_identities(mix_model_clone(model))), count, numbers);
    mix_free(text);
    mix_free(expected_text);
  }
}
#define NUMBERS(...)                                                                                         \
  sizeof((const double[]){__VA_ARGS__}) / sizeof(double), (const double[]) { __VA_ARGS__ }

#define TYPE ", \"trainable\": true, \"dtype\": \"float32\""
#define HEADS TYPE ", \"num_heads\": 1, \"key_dim\": 2"
#define ATTENTION(args, kwargs) LAYER("keras.layers", "MultiHeadAttention", "l", HEADS, args, kwargs)

/* ---- masks ---- */

/* Only key 0 is in both masks. */
static void key_mask_without_key(void **state) {
  (void)state;
  check(ATTENTION(Q ", " V, "\"value_mask\": " M ", \"key_mask\": " N), NULL, NUMBERS(1, .5, 1, .5, 1, .5));
  check(ATTENTION(Q ", " V, "\"query_mask\": " N ", \"value_mask\": " M ", \"key_mask\": " N
                            ", \"use_causal_mask\": true"),
        NULL, NUMBERS(1, .5, 1, .5, 1, .5));
  check(ATTENTION(Q, "\"key_mask\": " N ", \"value\": " V), NULL,
        NUMBERS(0.4832425117492676, -0.5335150361061096, 0.7667575478553772, 0.03351500630378723,
                0.6498228311538696, -0.20035424828529358));
  check(ATTENTION(Q ", " V ", null", "\"key_mask\": " N), NULL,
        NUMBERS(0.4832425117492676, -0.5335150361061096, 0.7667575478553772, 0.03351500630378723,
                0.6498228311538696, -0.20035424828529358));
}

#define POOLING(kwargs) LAYER("keras.layers", "GlobalAveragePooling1D", "l", TYPE, Q, kwargs)
#define MASK TENSOR("ct", "[null, 3]", "bool")
#define NOT_ZERO LAYER("keras.src.ops.numpy", "NotEqual", "ne", "", I ", 0", "") ", "
#define CONVERT                                                                                              \
  LAYER("keras.src.ops.core", "ConvertToTensor", "ct",                                                       \
        ", \"dtype\": null, \"sparse\": null, \"ragged\": null", TENSOR("ne", "[null, 3]", "bool"), "")      \
  ", "

/* What Attention makes of the mask of an Embedding. */
static void masks_of_operations(void **state) {
  (void)state;
  check(NOT_ZERO CONVERT POOLING("\"mask\": " MASK), NULL, NUMBERS(-.125, -.25));
}

/* ---- arrays ---- */

#define LOWER "[[[true, false, false], [true, true, false], [true, true, true]]]"
#define CAUSAL                                                                                               \
  NUMBERS(1, .5, 0.5335150361061096, 0.9664850234985352, -0.11765176057815552, 1.2683205604553223)
#define VALUES "[[[1.0, 0.5], [-0.5, 2.0], [0.25, -1.0]]]"
#define ADD(array) LAYER("keras.layers", "Add", "l", TYPE, "[" Q ", " array "]", "")

static void arrays_in_calls(void **state) {
  (void)state;
  check(ATTENTION(Q ", " V, "\"attention_mask\": " ARRAY_FORM("__tensor__", LOWER, "bool")), NULL, CAUSAL);
  check(ATTENTION(Q ", " V, "\"attention_mask\": " ARRAY_FORM("__numpy__", LOWER, "bool")),
        ATTENTION(Q ", " V, "\"attention_mask\": " ARRAY_FORM("__tensor__", LOWER, "bool")), CAUSAL);
  check(ATTENTION(Q ", " ARRAY_FORM("__tensor__", VALUES, "float32"), "\"use_causal_mask\": true"), NULL,
        CAUSAL);
  check(POOLING("\"mask\": " ARRAY_FORM("__tensor__", "[[true, false, true]]", "bool")), NULL,
        NUMBERS(-.125, -.25));
  check(ADD(ARRAY_FORM("__tensor__", VALUES, "float32")), NULL, NUMBERS(1.5, -.5, .5, 2.25, -.5, -.5));
  check(ADD(ARRAY_FORM("__tensor__", "[[[1.0, 2.0]]]", "float32")), NULL, NUMBERS(1.5, 1, 2, 2.25, .25, 2.5));
}

/* One sample of a constant is added to each of a batch. */
static void arrays_of_one_sample(void **state) {
  (void)state;
  mix_tensor *x = mix_input(.shape = MIX_SHAPE(2)), *constant = ARRAY(F32, MIX_SHAPE(1, 2), 1, 2);
  mix_layer *layer = mix_add_layer(.semantics = mix_semantics_named("keras3"));
  mix_model *model = mix_model_new(x, mix_call(layer, mix_list_of(x, constant)));
  mix_tensor *y = mix_call(model->layer, ARRAY(F32, MIX_SHAPE(3, 2), 1, 2, 3, 4, 5, 6));
  assert_no_error();
  expect_numbers(y, NUMBERS(2, 4, 4, 6, 6, 8));
}

typedef struct refusal {
  const char *layers;
  mix_status status;
  const char *mentions;
} refusal;

static void check_refusals(const refusal *rows, size_t count) {
  for (size_t k = 0; k < count; k++)
    MIX_SCOPE {
      char *text = text_of(rows[k].layers);
      if (mix_model_from_json(text)) fail_msg("row %zu is read", k);
      expect_error(rows[k].status, rows[k].mentions);
      mix_free(text);
    }
}

static void refused_arrays(void **state) {
  (void)state;
  static const refusal rows[] = {
      {ADD(ARRAY_FORM("__tensor__", VALUES, "float7")), MIX_VALUE_ERROR, "float7"},
      {ADD(ARRAY_FORM("__tensor__", "[[1.0], [1.0, 2.0]]", "float32")), MIX_TYPE_ERROR, "lists of numbers"},
      {ADD(ARRAY_FORM("__tensor__", "\"x\"", "float32")), MIX_TYPE_ERROR, "array of a string"},
      {ADD("{\"class_name\": \"__tensor__\"}"), MIX_VALUE_ERROR, "'none'"},
      {ADD("{\"class_name\": \"__tensors__\"}"), MIX_VALUE_ERROR, "another object"},
      {ADD(ARRAY_FORM("__tensor__", "[[[1.0, 2.0, 3.0]]]", "float32")), MIX_VALUE_ERROR, "broadcast"},
  };
  check_refusals(rows, sizeof rows / sizeof *rows);
}

static void arrays_that_no_text_holds(void **state) {
  (void)state;
  static const struct {
    const char *generation, *mentions;
    double number;
  } rows[] = {{"keras3", "not finite", INFINITY}, {"tf_keras", "holds data", 1}};
  for (int k = 0; k < 2; k++)
    MIX_SCOPE {
      mix_set_semantics(rows[k].generation);
      mix_tensor *x = mix_input(.shape = MIX_SHAPE(2)),
                 *constant = mix_fill(MIX_SHAPE(1, 2), rows[k].number, F32);
      mix_model *model = mix_model_new(x, mix_call(mix_add_layer(), mix_list_of(x, constant)));
      assert_no_error();
      assert_null(mix_model_to_json(model));
      expect_error(MIX_UNSUPPORTED, rows[k].mentions);
    }
}

/* ---- DotProductAttention ---- */

#define DOT(config, args, kwargs) LAYER("keras.src.ops.nn", "DotProductAttention", "l", config, args, kwargs)
#define DEFAULTS ", \"is_causal\": false, \"flash_attention\": null, \"attn_logits_soft_cap\": null"
#define IS_CAUSAL ", \"is_causal\": true, \"flash_attention\": false, \"attn_logits_soft_cap\": null"
#define NONE "\"bias\": null, \"mask\": null, \"scale\": null"
#define XYY X ", " Y ", " Y
#define BIAS ARRAY_FORM("__tensor__", "[[0.5, -1.0], [0.0, 2.0]]", "float32")
#define CUT "[[[true, false], [true, true]], [[false, true], [false, false]]]"
#define HALF(name, of) LAYER("keras.src.ops.core", "Cast", name, ", \"dtype\": \"float16\"", of, "") ", "
#define HX TENSOR("hx", "[null, 2, 2, 2]", "float16")
#define HY TENSOR("hy", "[null, 2, 2, 2]", "float16")
#define SECOND 0.6498228311538696, -0.20035424828529358, -0.7744279503822327, 1.6569651365280151

static void dot_product_attention(void **state) {
  (void)state;
  check(DOT(DEFAULTS, XYY, NONE), NULL,
        NUMBERS(0.4832425117492676, -0.5335150361061096, -0.7833148837089539, 1.6458563804626465, SECOND));
  check(DOT(IS_CAUSAL, XYY, NONE), NULL, NUMBERS(1, .5, -.5, 2, SECOND));
  check(DOT(DEFAULTS, XYY, "\"scale\": 1"), NULL,
        NUMBERS(0.43381375074386597, -0.6323724985122681, -0.7120687961578369, 1.7349140644073486,
                0.6600536108016968, -0.17989277839660645, -0.7018132209777832, 1.747733473777771));
  check(DOT(DEFAULTS, XYY, "\"bias\": " BIAS), NULL,
        NUMBERS(0.7518893480300903, 0.0037787258625030518, -0.5810564756393433, 1.898679256439209,
                0.35038062930107117, -0.7992388010025024, -1.2364752292633057, 1.0794060230255127));
  /* three axes are those of heads, queries and keys */
  check(DOT(DEFAULTS, XYY, "\"mask\": " ARRAY_FORM("__numpy__", CUT, "bool")), NULL,
        NUMBERS(1, .5, -1.5, .75, 0.6498228311538696, -0.20035424828529358, -1, 1.375));
  check(DOT(IS_CAUSAL, XYY, "\"bias\": " BIAS ", \"scale\": 2.0"), NULL,
        NUMBERS(1, .5, -.5, 2, 0.37338733673095703, -0.7532253265380859, -0.8208213448524475,
                1.5989733934402466));
  check(HALF("hx", X) HALF("hy", Y) DOT(DEFAULTS, HX ", " HY ", " HY, "\"bias\": " BIAS), NULL,
        NUMBERS(0.75146484375, 0.003662109375, -0.5810546875, 1.8984375, 0.350341796875, -0.79931640625,
                -1.236328125, 1.0791015625));
}

/* Two heads of the query share each of the key and the value. */
static void grouped_dot_product_attention(void **state) {
  (void)state;
#define PARTS LAYER("keras.src.ops.numpy", "Reshape", "p", ", \"newshape\": [-1, 2, 4, 1]", X, "") ", "
#define GROUPS                                                                                               \
  LAYER("keras.src.ops.numpy", "Reshape", "r", ", \"newshape\": [-1, 2, 4, 1]", Y, "")                       \
  ", " LAYER("keras.src.ops.numpy", "Take", "g", ", \"axis\": 2",                                            \
             TENSOR("r", "[null, 2, 4, 1]", "float32") ", [0, 1]", "") ", "
#define G TENSOR("g", "[null, 2, 2, 1]", "float32")
  check(PARTS GROUPS DOT(DEFAULTS, TENSOR("p", "[null, 2, 4, 1]", "float32") ", " G ", " G, NONE), NULL,
        NUMBERS(0.6944999694824219, 0.49061596393585205, 0.2263617068529129, -0.11100012063980103,
                0.5222269296646118, 0.6944999694824219, 0.42886120080947876, -0.5187680125236511));
}

static void refused_dot_products(void **state) {
  (void)state;
  static const refusal rows[] = {
      {DOT(", \"attn_logits_soft_cap\": 2.0", XYY, NONE), MIX_UNSUPPORTED, "attn_logits_soft_cap"},
      {DOT(DEFAULTS, Q ", " V ", " V, NONE), MIX_VALUE_ERROR, "four axes"},
      {DOT(DEFAULTS, X ", " Y ", " Q, NONE), MIX_VALUE_ERROR, "four axes"},
      {DOT(DEFAULTS, X ", " Y ", 3", NONE), MIX_VALUE_ERROR, "four axes"},
      {DOT(DEFAULTS, X ", " Y, NONE), MIX_TYPE_ERROR, "lacks its operand value"},
      {DOT(DEFAULTS, XYY, "\"mask\": " BIAS), MIX_TYPE_ERROR, "expected bool"},
      {DOT(", \"is_causal\": 1", XYY, NONE), MIX_TYPE_ERROR, "is_causal"},
      {DOT(DEFAULTS, XYY, "\"scale\": \"x\""), MIX_TYPE_ERROR, "scale"},
      {DOT(DEFAULTS,
           X ", " ARRAY_FORM("__tensor__", "[[[[1.0, 2.0], [1.0, 2.0], [1.0, 2.0]]]]", "float32") ", " Y,
           NONE),
       MIX_VALUE_ERROR, "heads"},
  };
  check_refusals(rows, sizeof rows / sizeof *rows);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(key_mask_without_key),  TEST(masks_of_operations),
      TEST(arrays_in_calls),       TEST(arrays_of_one_sample),
      TEST(refused_arrays),        TEST(arrays_that_no_text_holds),
      TEST(dot_product_attention), TEST(grouped_dot_product_attention),
      TEST(refused_dot_products),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
