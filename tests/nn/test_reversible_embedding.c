/* ReversibleEmbedding: both directions, gradients of its tables, masks, configs and calls of functional
 * models. The numbers are those of Keras 3.15 on TensorFlow 2.21 (recorded/reversible_embedding.py). */
#include "nn/keras3_support.h"
#include "support/expect.h"
#include <mixtape/mixtape.h>

enum { ROWS = 5, WIDTH = 4 };

static mix_tensor *ids_of(int rows, int columns, const int32_t *ids) {
  return mix_tensor_from(ids, MIX_INT32, MIX_SHAPE(rows, columns));
}
#define IDS(rows, columns, ...) ids_of(rows, columns, (int32_t[]){__VA_ARGS__})

/* ---- recorded numbers ---- */

typedef struct recorded {
  mix_reversible_embedding_options options;
  const char *rows_dtype, *logits_dtype;
  double rows[24], logits[30], of_table[20], of_reverse[20], of_hidden[24]; /* the last three: gradients */
} recorded;
static const recorded runs[] = {
#include "nn/recorded/reversible_embedding.inc"
};

static mix_tensor *weighted(mix_tensor *y, double phase) {
  return mix_reduce_sum(mix_multiply(mix_cast(y, MIX_FLOAT32), sines(mix_tensor_shape(y), phase)),
                        MIX_ALL_AXES, false);
}

/* Each of the four roundings of a capped logit, and of at most six terms of a gradient below 2, may fall the
 * other way where a sum is in another order. */
static double unit_of(const recorded *r) {
  const char *texts[] = {r->options.dtype, r->options.reverse_dtype};
  double unit = 0x1p-22;
  for (int i = 0; i < 2; i++)
    if (texts[i] && strstr(texts[i], "float16")) unit = strstr(texts[i], "bfloat16") ? 0x1p-8 : 0x1p-11;
  return unit;
}

static void run_one(const recorded *r) {
  mix_reversible_embedding_options o = r->options;
  o.size = sizeof o, o.input_dim = ROWS, o.output_dim = WIDTH, o.mask_zero = true;
  mix_layer *layer = mix_reversible_embedding_with(&o);
  mix_layer_build(layer, MIX_SHAPE(2, 3));
  mix_list *values = mix_list_new(0, NULL), *sources = mix_list_new(0, NULL);
  mix_list *weights = mix_layer_weights(layer);
  for (int w = 0; w < mix_list_count(weights); w++) {
    mix_list_append(values, sines(mix_variable_shape(mix_list_get(weights, w)), 1.0 + w));
    mix_list_append(sources, mix_list_get(weights, w));
  }
  assert_int_equal(mix_list_count(weights), o.untied_weights ? 2 : 1);
  assert_int_equal(mix_layer_set_weights(layer, values), MIX_OK);
  mix_tensor *hidden = mix_cast(sines(MIX_SHAPE(2, 3, WIDTH), 0.3), mix_layer_compute_dtype(layer));
  mix_tape *tape = mix_tape_begin();
  mix_tape_watch(tape, hidden);
  mix_list_append(sources, hidden);
  mix_tensor *rows = mix_call(layer, IDS(2, 3, 0, 2, 1, 3, 3, 0)),
             *logits = mix_call(layer, hidden, .reverse = true);
  if (!logits) fail_msg("%s", mix_error_message());
  mix_tensor *loss = mix_add(weighted(rows, 0.1), weighted(logits, 0.2));
  mix_tape_end(tape);
  mix_list *gradients = mix_tape_gradient(tape, loss, sources);
  const double unit = unit_of(r);
  assert_string_equal(mix_dtype_name(mix_tensor_dtype(rows)), r->rows_dtype);
  assert_string_equal(mix_dtype_name(mix_tensor_dtype(logits)), r->logits_dtype);
  expect_values(rows, 24, r->rows, 1e-8, 1e-8);
  expect_values(logits, 30, r->logits, 4 * unit, 0);
  expect_values(mix_list_get(gradients, 0), 20, r->of_table, 12 * unit, 0);
  if (o.untied_weights) expect_values(mix_list_get(gradients, 1), 20, r->of_reverse, 12 * unit, 0);
  expect_values(mix_list_get(gradients, mix_list_count(sources) - 1), 24, r->of_hidden, 12 * unit, 0);
}

static void numbers_and_gradients_are_those_of_keras(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof runs / sizeof *runs; i++)
    MIX_SCOPE { run_one(&runs[i]); }
}

/* ---- masks, shapes, errors ---- */

static void the_mask_is_of_the_indices_alone(void **state) {
  (void)state;
  mix_layer *layer = mix_reversible_embedding(.input_dim = 3, .output_dim = 2, .mask_zero = true);
  mix_tensor *rows = mix_call(layer, IDS(1, 3, 2, 0, 1));
  assert_non_null(rows->mask);
  EXPECT_EXACT(mix_cast(rows->mask, MIX_INT32), 1, 0, 1);
  assert_null(mix_call(layer, rows, .reverse = true)->mask);
  layer = mix_reversible_embedding(3, 2);
  assert_null(mix_call(layer, IDS(1, 3, 2, 0, 1))->mask);
}

/* Also whole numbers, and two unknown axes, for which there is no reshape to one matrix. */
static void any_rank_from_2_is_reversed(void **state) {
  (void)state;
  mix_layer *layer = mix_reversible_embedding(3, 2);
  mix_layer_build(layer, MIX_SHAPE(MIX_UNKNOWN, 2));
  mix_layer_set_weights(layer, mix_list_of(MATRIX(MIX_FLOAT32, 3, 2, 0, 1, 10, 11, 20, 21)));
  EXPECT_EXACT(mix_call(layer, IDS(1, 2, 1, 2), .reverse = true), 2, 32, 62);
  mix_tensor *x = mix_input(.shape = MIX_SHAPE(MIX_UNKNOWN, 2)), *y = mix_call(layer, x, .reverse = true);
  expect_shape(y, MIX_SHAPE(MIX_UNKNOWN, MIX_UNKNOWN, 3));
  mix_tensor *four = mix_reshape(MATRIX(MIX_FLOAT32, 2, 2, 1, 2, 0, 1), MIX_SHAPE(1, 2, 1, 2));
  mix_tensor *logits = mix_call(layer, four, .reverse = true);
  expect_shape(logits, MIX_SHAPE(1, 2, 1, 3));
  EXPECT_EXACT(logits, 2, 32, 62, 1, 11, 21);
}

static void what_does_not_fit_is_refused(void **state) {
  (void)state;
  mix_layer *layer = mix_reversible_embedding(3, 2, .name = "words");
  expect_refused(mix_call(layer, MATRIX(MIX_FLOAT32, 1, 3, 1, 2, 3), .reverse = true), MIX_VALUE_ERROR,
                 "output_dim 2 as its last dimension");
  expect_refused(mix_call(layer, VECTOR(MIX_FLOAT32, 1, 2), .reverse = true), MIX_VALUE_ERROR, "rank 2");
  expect_refused(mix_call(mix_dense(2), MATRIX(MIX_FLOAT32, 1, 2, 1, 2), .reverse = true), MIX_TYPE_ERROR,
                 "has no argument reverse");
  expect_refused(mix_call(mix_embedding(3, 2), IDS(1, 2, 1, 2), .reverse = true), MIX_TYPE_ERROR,
                 "has no argument reverse");
  expect_refused(mix_reversible_embedding(0, 2), MIX_VALUE_ERROR, "input_dim");
  expect_refused(mix_reversible_embedding(3, 2, .reverse_dtype = "int32"), MIX_VALUE_ERROR, "reverse_dtype");
  expect_refused(mix_reversible_embedding(3, 2, .reverse_dtype = "half"), MIX_VALUE_ERROR, "bfloat16");
}

/* ---- configs and calls ---- */

static void configs_are_those_of_keras(void **state) {
  (void)state;
  assert_string_equal(
      strstr(mix_layer_config(mix_reversible_embedding(3, 2)), "\"input_dim\""),
      "\"input_dim\": 3, \"output_dim\": 2, \"embeddings_initializer\": {\"module\": \"keras.initializers\", "
      "\"class_name\": \"RandomUniform\", \"config\": {\"minval\": -0.05, \"maxval\": 0.05, \"seed\": null}, "
      "\"registered_name\": null}, \"embeddings_regularizer\": null, \"activity_regularizer\": null, "
      "\"embeddings_constraint\": null, \"mask_zero\": false, \"quantization_config\": null, "
      "\"tie_weights\": true, \"reverse_dtype\": null, \"logit_soft_cap\": null}");
  made_again(mix_reversible_embedding(3, 2));
  mix_layer *again = made_again(
      mix_reversible_embedding(3, 2, .untied_weights = true, .reverse_dtype = "float32", .logit_soft_cap = 30,
                               .mask_zero = true, .embeddings_regularizer = mix_regularizer_new("l2")));
  assert_non_null(strstr(mix_layer_config(again), "\"tie_weights\": false, \"reverse_dtype\": \"float32\", "
                                                  "\"logit_soft_cap\": 30"));
}

static mix_model *model_both_ways(void) {
  mix_layer *layer = mix_reversible_embedding(5, 4, .name = "words");
  mix_tensor *ids = mix_input(.shape = MIX_SHAPE(3), .dtype = "int32", .name = "ids");
  mix_tensor *hidden = mix_call(mix_dense(4, "tanh", .name = "mid"), mix_call(layer, ids));
  return mix_model_new(ids, mix_call(layer, hidden, .reverse = true));
}

static void expect_same_model(mix_model *model, const char *text) {
  mix_model *again = mix_model_from_json(text);
  if (!again) fail_msg("%s", mix_error_message());
  assert_int_equal(mix_model_set_weights(again, mix_model_get_weights(model)), MIX_OK);
  mix_tensor *x = IDS(2, 3, 0, 2, 1, 3, 3, 4);
  double expected[30];
  mix_tensor_read(mix_call(mix_model_layer(model), x), MIX_FLOAT64, expected, 30);
  expect_values(mix_call(mix_model_layer(again), x), 30, expected, 0, 0);
  assert_string_equal(mix_model_to_json(again), mix_model_to_json(model));
}

/* The text with one piece replaced. */
static const char *replaced(const char *text, const char *old, const char *new) {
  static char result[8192];
  const char *place = strstr(text, old);
  assert_non_null(place);
  snprintf(result, sizeof result, "%.*s%s%s", (int)(place - text), text, new, place + strlen(old));
  return result;
}

static void models_call_it_both_ways(void **state) {
  (void)state;
  mix_model *model = model_both_ways();
  assert_int_equal(mix_list_count(mix_model_weights(model)), 3);
  const char *text = mix_model_to_json(model), *reverse = "\"kwargs\": {\"reverse\": true}";
  assert_non_null(strstr(text, "\"kwargs\": {}"));
  expect_same_model(model, text);
  mix_model *clone = mix_model_clone(model);
  assert_string_equal(mix_model_to_json(clone), text);
  /* `layer(x, True)` */
  const char *positional = replaced(text, "[\"mid\", 0, 0]}}], \"kwargs\": {\"reverse\": true}",
                                    "[\"mid\", 0, 0]}}, true], \"kwargs\": {}");
  expect_same_model(model, positional);
  expect_refused(mix_model_from_json(replaced(text, reverse, "\"kwargs\": {\"reverse\": 3}")), MIX_TYPE_ERROR,
                 "reverse of layer 'words' is an integer");
  expect_refused(mix_model_from_json(replaced(text, reverse, "\"kwargs\": {\"reversed\": true}")),
                 MIX_VALUE_ERROR, "reversed");
  expect_status(mix_model_save(model, "no folder/x.keras", .semantics = mix_semantics_named("tf_keras")),
                MIX_UNSUPPORTED, "tf_keras has no class ReversibleEmbedding");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(numbers_and_gradients_are_those_of_keras),
      TEST(the_mask_is_of_the_indices_alone),
      TEST(any_rank_from_2_is_reversed),
      TEST(what_does_not_fit_is_refused),
      TEST(configs_are_those_of_keras),
      TEST(models_call_it_both_ways),
  };
  return cmocka_run_group_tests_name("reversible embedding", tests, NULL, NULL);
}
