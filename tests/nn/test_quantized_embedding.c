/* Embedding and ReversibleEmbedding stored as integers (rows Q20 to Q23). The numbers are those of Keras 3.15
 * on TensorFlow 2.21 (recorded/quantized_embedding.py). */
#include "nn/keras3_support.h"
#include "support/expect.h"
#include <mixtape/mixtape.h>

enum { ROWS = 4, WIDTH = 5, IDS = 6 };

static mix_tensor *ids(void) {
  return mix_tensor_from((int32_t[]){0, 2, 1, 3, 3, 0}, MIX_INT32, MIX_SHAPE(2, 3));
}

/* ---- recorded numbers ---- */

typedef struct recorded {
  const char *mode, *policy, *kind;
  int weights;
  const char *names[7];
  double values[7][20], rows[30], logits[24], of_hidden[30]; /* the last: the gradient */
} recorded;
static const recorded runs[] = {
#include "nn/recorded/quantized_embedding.inc"
};
enum { RUNS = sizeof runs / sizeof *runs };

static bool is_kind(const recorded *r, const char *kind) { return !strcmp(r->kind, kind); }

/* Its weights are sines. */
static mix_layer *float_layer(const recorded *r) {
  mix_layer *layer = is_kind(r, "plain")
                         ? mix_embedding(ROWS, WIDTH, .name = "words", .dtype = r->policy)
                         : mix_reversible_embedding(ROWS, WIDTH, .name = "words", .dtype = r->policy,
                                                    .untied_weights = is_kind(r, "untied"),
                                                    .logit_soft_cap = is_kind(r, "capped") ? 0.5 : 0);
  mix_layer_build(layer, MIX_SHAPE(2, 3));
  mix_list *weights = mix_layer_weights(layer), *values = mix_list_new(0, NULL);
  for (int w = 0; w < mix_list_count(weights); w++)
    mix_list_append(values, sines(mix_variable_shape(mix_list_get(weights, w)), 1.0 + w));
  assert_int_equal(mix_layer_set_weights(layer, values), MIX_OK);
  return layer;
}

/* The mode with the options that the recording names behind it. */
static mix_status quantize(mix_layer *layer, const char *mode) {
  mix_tensor *x = mix_input(.shape = MIX_SHAPE(3), .dtype = "int32");
  mix_model *model = mix_model_new(x, mix_call(layer, x));
  mix_quantize_options o = {.size = sizeof o, .filter = "embedding|words"};
  char name[16];
  snprintf(name, sizeof name, "%.*s", (int)strcspn(mode, "-"), mode);
  if (strstr(mode, "block2")) o.block_size = 2;
  if (strstr(mode, "channel") || strstr(mode, "inputs")) o.block_size = -1;
  o.weights_only = strstr(mode, "weights");
  o.quantize_inputs = strstr(mode, "inputs");
  o.mode = name;
  return mix_model_quantize_with(model, &o);
}

/* The last binary digit of numbers around 1. */
static double unit_of(const recorded *r) {
  if (!strstr(r->policy, "float16")) return 0x1p-23;
  return strstr(r->policy, "bfloat16") ? 0x1p-8 : 0x1p-11;
}

/* Integers and scales to the last bit that nine digits show. */
static void check_weights(const recorded *r, mix_layer *layer) {
  mix_list *weights = mix_layer_weights(layer);
  assert_int_equal(mix_list_count(weights), r->weights);
  for (int i = 0; i < r->weights; i++) {
    mix_variable *variable = mix_list_get(weights, i);
    char path[64];
    snprintf(path, sizeof path, "words/%s", r->names[i]);
    assert_string_equal(mix_variable_name(variable), path);
    assert_false(mix_variable_trainable(variable));
    const bool integers = mix_variable_dtype(variable) == MIX_INT8;
    assert_true(integers ==
                !(strstr(path, "scale") || strstr(path, "g_idx") || strstr(path, "reverse_embeddings_zero")));
    expect_values(mix_variable_true_value(variable), (int)mix_shape_size(mix_variable_shape(variable)),
                  r->values[i], 0, integers ? 0 : 1e-7);
  }
}

/* A 16-bit logit is rounded at most four times, each of the six terms of a gradient (below 2) twice. */
static void check_reverse(const recorded *r, mix_layer *layer) {
  mix_tensor *hidden = mix_cast(sines(MIX_SHAPE(2, 3, WIDTH), 0.3), mix_layer_compute_dtype(layer));
  const double unit = unit_of(r);
  mix_tape *tape = mix_tape_begin();
  mix_tape_watch(tape, hidden);
  mix_tensor *logits = mix_call(layer, hidden, .reverse = true);
  if (!logits) fail_msg("%s %s %s: %s", r->mode, r->policy, r->kind, mix_error_message());
  mix_tensor *loss = mix_reduce_sum(
      mix_multiply(mix_cast(logits, MIX_FLOAT32), sines(mix_tensor_shape(logits), 0.2)), MIX_ALL_AXES, false);
  mix_tape_end(tape);
  mix_list *gradients = mix_tape_gradient(tape, loss, mix_list_of(hidden));
  expect_dtype(logits, mix_layer_compute_dtype(layer));
  expect_values(logits, 24, r->logits, 4 * unit, 0);
  expect_values(mix_list_get(gradients, 0), 30, r->of_hidden, 12 * unit, 0);
}

static void run_one(const recorded *r) {
  mix_layer *layer = float_layer(r);
  assert_int_equal(quantize(layer, r->mode), MIX_OK);
  check_weights(r, layer);
  mix_tensor *rows = mix_call(layer, ids());
  expect_dtype(rows, mix_layer_compute_dtype(layer));
  expect_values(rows, 30, r->rows, 1e-8, strstr(r->policy, "float16") ? 0 : 1e-7);
  if (!is_kind(r, "plain")) check_reverse(r, layer);
}

static void run_kinds(const char *kind, const char *other) {
  int count = 0;
  for (int i = 0; i < RUNS; i++)
    if (is_kind(&runs[i], kind) || is_kind(&runs[i], other)) {
      MIX_SCOPE { run_one(&runs[i]); }
      count++;
    }
  assert_true(count);
}

static void Q20_rows_have_scales_of_their_own(void **state) {
  (void)state;
  run_kinds("plain", "plain");
}
static void Q21_tied_and_untied_tables_are_multiplied_in_reverse(void **state) {
  (void)state;
  run_kinds("tied", "untied");
}
static void Q23_logits_are_capped_before_and_after(void **state) {
  (void)state;
  run_kinds("capped", "capped");
}

/* Of each row only its largest element has a gradient. */
static void Q22_the_gradient_flows_through_the_scale_of_the_inputs(void **state) {
  (void)state;
  mix_layer *layer = mix_reversible_embedding(ROWS, WIDTH);
  mix_layer_build(layer, MIX_SHAPE(2, 3));
  assert_int_equal(quantize(layer, "int8"), MIX_OK);
  mix_tensor *hidden = MATRIX(MIX_FLOAT32, 2, WIDTH, 1, -3, 2, 0.5, 0, -1, 0.25, 0.5, 0, 0.75);
  mix_tape *tape = mix_tape_begin();
  mix_tape_watch(tape, hidden);
  mix_tensor *loss = mix_reduce_sum(mix_call(layer, hidden, .reverse = true), MIX_ALL_AXES, false);
  mix_tape_end(tape);
  double gradient[2 * WIDTH];
  mix_tensor_read(mix_list_get(mix_tape_gradient(tape, loss, mix_list_of(hidden)), 0), MIX_FLOAT64, gradient,
                  2 * WIDTH);
  for (int i = 0; i < 2 * WIDTH; i++) assert_true((gradient[i] != 0) == (i == 1 || i == WIDTH));
}

/* ---- policies, modes, memory ---- */

/* P09, P10. */
static void layers_made_under_a_policy_begin_with_zeros(void **state) {
  (void)state;
  mix_layer *layer =
      mix_reversible_embedding(ROWS, WIDTH, .untied_weights = true, .dtype = "int4/2_from_mixed_bfloat16");
  EXPECT_EXACT(mix_call(layer, MATRIX(MIX_INT32, 1, 1, 2)), 0, 0, 0, 0, 0);
  mix_list *weights = mix_layer_weights(layer);
  assert_int_equal(mix_list_count(weights), 7);
  EXPECT_EXACT(mix_variable_true_value(mix_list_get(weights, 3)), 0, 0, 1, 1, 2); /* g_idx */
  expect_shape(mix_variable_true_value(mix_list_get(weights, 4)), MIX_SHAPE(3, ROWS));
  expect_shape(mix_variable_true_value(mix_list_get(weights, 5)), MIX_SHAPE(3, ROWS));
  layer = mix_embedding(ROWS, WIDTH, .dtype = "int4_from_float32");
  EXPECT_EXACT(mix_call(layer, MATRIX(MIX_INT32, 1, 1, 2)), 0, 0, 0, 0, 0);
  weights = mix_layer_weights(layer);
  assert_int_equal(mix_list_count(weights), 2);
  expect_shape(mix_variable_true_value(mix_list_get(weights, 0)), MIX_SHAPE(ROWS, 3));
  expect_shape(mix_variable_true_value(mix_list_get(weights, 1)), MIX_SHAPE(ROWS));
}

static void Q02_embeddings_have_no_float8(void **state) {
  (void)state;
  for (int i = 0; i < 2; i++) {
    mix_layer *layer = i ? mix_embedding(ROWS, WIDTH) : mix_reversible_embedding(ROWS, WIDTH);
    mix_layer_build(layer, MIX_SHAPE(2, 3));
    log_count = 0;
    assert_int_equal(quantize(layer, "float8"), MIX_OK);
    assert_int_equal(log_count, 1);
    assert_non_null(strstr(log_text, "has no mode float8"));
    assert_int_equal(mix_list_count(mix_layer_weights(layer)), 1);
  }
}

static void Q03_quantized_tables_are_not_quantized_again(void **state) {
  (void)state;
  mix_layer *layer = float_layer(&(const recorded){.policy = "float32", .kind = "untied"});
  assert_int_equal(quantize(layer, "int8"), MIX_OK);
  expect_status(quantize(layer, "int4"), MIX_VALUE_ERROR, "already quantized");
}

static mix_list *rows_body(void *context, mix_list *arguments) {
  return mix_list_of(mix_call(context, mix_list_get(arguments, 0)));
}

/* Six rows of a table of 2048 by 256, whose floating form is 2 MiB: only these become floating. */
static void only_gathered_rows_are_dequantized(void **state) {
  (void)state;
  static const char *const modes[] = {"int8", "int4", "int4-channel"};
  for (int i = 0; i < 3; i++) {
    mix_layer *layer = mix_reversible_embedding(2048, 256);
    mix_layer_build(layer, MIX_SHAPE(2, 3));
    assert_int_equal(quantize(layer, modes[i]), MIX_OK);
    mix_function *function = mix_function_new(rows_body, layer);
    assert_non_null(mix_function_call(function, mix_list_of(ids())));
    mix_plan_report report;
    assert_int_equal(mix_function_report(function, &report, sizeof report), MIX_OK);
    assert_true(report.arena_bytes <= 3 * IDS * 256 * 4);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(Q20_rows_have_scales_of_their_own),
      TEST(Q21_tied_and_untied_tables_are_multiplied_in_reverse),
      TEST(Q22_the_gradient_flows_through_the_scale_of_the_inputs),
      TEST(Q23_logits_are_capped_before_and_after),
      TEST(layers_made_under_a_policy_begin_with_zeros),
      TEST(Q02_embeddings_have_no_float8),
      TEST(Q03_quantized_tables_are_not_quantized_again),
      TEST(only_gathered_rows_are_dequantized),
  };
  return cmocka_run_group_tests_name("quantized embeddings", tests, NULL, NULL);
}
