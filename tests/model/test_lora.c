/* LoRA: what a layer gets, what is refused before anything changes, what trains and what it takes. Adapters:
 * test_adapters.c; recorded models: test_lora_reference.c. */
#include "model/lora_support.h"

#include "compile/compile.h"
#include "nn/layers/lora.h"
#include "optim/optimizer.h"
#include "support/expect.h"
#include "support/folder.h"
#include "tensor/shape.h"
#include <mixtape/lora.h>

static char heard[4096];
static void listen(void *context, mix_log_level level, const char *message) {
  (void)context;
  if (level == MIX_LOG_WARNING) strncat(heard, message, sizeof heard - strlen(heard) - 1);
}

static mix_layer *built(mix_layer *layer, mix_shape shape) {
  assert_no_error();
  mix_layer_build(layer, shape);
  assert_no_error();
  return layer;
}

static mix_layer *dense_of(int64_t in, int64_t units) {
  return built(mix_dense(units, .semantics = mix_semantics_named("keras3")), MIX_SHAPE(MIX_UNKNOWN, in));
}

static mix_variable *weight(mix_layer *layer, const char *name) {
  mix_list *weights = mix_layer_weights(layer);
  for (int i = 0; i < mix_list_count(weights); i++)
    if (strstr(mix_variable_name(mix_list_get(weights, i)), name)) return mix_list_get(weights, i);
  return NULL;
}

/* b is zeros at first: something to compute with. */
static void fill_b(mix_layer *layer) {
  mix_variable *b = layer->lora->b;
  mix_variable_assign(b, random_values(mix_variable_shape(b)));
  assert_no_error();
}

/* ---- layers ---- */

static void R01_R08_which_layers(void **state) {
  (void)state;
  mix_set_semantics("keras3");
  const mix_shape image = MIX_SHAPE(MIX_UNKNOWN, 8, 8, 4), rows = MIX_SHAPE(MIX_UNKNOWN, 6);
  mix_layer *good[] = {built(mix_dense(3), rows), built(mix_embedding(9, 4), rows),
                       built(mix_einsum_dense("ab,bc->ac", .output_shape = MIX_SHAPE(5)), rows),
                       built(mix_conv1d(3, 2), MIX_SHAPE(MIX_UNKNOWN, 8, 4)), built(mix_conv2d(3, 2), image)};
  for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
    assert_int_equal(mix_layer_lora_rank(good[i]), -1);
    assert_int_equal(mix_layer_enable_lora(good[i], 2), MIX_OK);
    assert_int_equal(mix_layer_lora_rank(good[i]), 2);
  }
  mix_layer *bad[] = {built(mix_depthwise_conv2d(2), image),
                      built(mix_conv2d_transpose(3, 2), image),
                      built(mix_separable_conv2d(3, 2), image),
                      built(mix_batch_normalization(), rows),
                      built(mix_lstm(3), MIX_SHAPE(MIX_UNKNOWN, 4, 3)),
                      mix_flatten()};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    mix_layer_enable_lora(bad[i], 2);
    expect_error(MIX_VALUE_ERROR, "cannot have LoRA");
  }
}

static void R02_R03_R04_R09_weights(void **state) {
  (void)state;
  mix_set_semantics("keras3");
  mix_layer *layer = built(mix_dense(5, .name = "fc", .dtype = "mixed_bfloat16"), MIX_SHAPE(MIX_UNKNOWN, 7));
  mix_layer_enable_lora(layer, 2);
  mix_list *weights = mix_layer_weights(layer);
  static const char *const names[] = {"fc/kernel", "fc/bias", "fc/lora_kernel_a", "fc/lora_kernel_b"};
  assert_int_equal(mix_list_count(weights), 4);
  for (int i = 0; i < 4; i++) {
    const mix_variable *variable = mix_list_get(weights, i);
    assert_string_equal(variable->name, names[i]);
    assert_int_equal(variable->trainable, i > 0);
    assert_int_equal(variable->dtype, MIX_FLOAT32);
  }
  assert_true(mix_shape_equal(mix_variable_shape(mix_list_get(weights, 2)), MIX_SHAPE(7, 2)));
  assert_true(mix_shape_equal(mix_variable_shape(mix_list_get(weights, 3)), MIX_SHAPE(2, 5)));
  assert_int_equal(mix_list_count(mix_layer_trainable_weights(layer)), 3);
  assert_string_equal(mix_policy_name(mix_layer_policy(layer)), "mixed_bfloat16");
  assert_true(layer->lora->alpha == 2); /* none was given */
  const double bound = sqrt(6.0 / 7);   /* he_uniform */
  double *a = read_all(mix_variable_value(layer->lora->a), 14), largest = 0;
  for (int i = 0; i < 14; i++) largest = fmax(largest, fabs(a[i]));
  assert_true(largest > 0 && largest <= bound);
  free(a);
}

/* Whether rank is below the last axis or not: both ways give W + (alpha / rank) a . b. */
static void R05_forward(void **state) {
  (void)state;
  for (int64_t rank = 1; rank < 8; rank += 3) {
    mix_layer *layer = dense_of(6, 4);
    mix_layer_enable_lora(layer, rank, .alpha = 3);
    fill_b(layer);
    mix_tensor *x = random_values(MIX_SHAPE(3, 6));
    mix_tensor *merged = mix_add(mix_variable_value(weight(layer, "/kernel")),
                                 mix_multiply(mix_scalar(3.0 / (double)rank, MIX_FLOAT32),
                                              mix_matmul(mix_variable_value(layer->lora->a),
                                                         mix_variable_value(layer->lora->b), false, false)));
    assert_values(mix_call(layer, x), mix_matmul(x, merged, false, false), 2e-6);
    assert_int_equal(mix_lora_is_apart(layer), rank < 4);
  }
}

/* An equation that sums over the kernel's last letter is merged. */
static void R05_equations(void **state) {
  (void)state;
  mix_set_semantics("keras3");
  static const struct {
    const char *equation;
    mix_shape shape, output;
  } cases[] = {{"abc,cde->abde", MIX_SHAPE(2, 3, 4), MIX_SHAPE(MIX_UNKNOWN, 5, 6)},
               {"abcd,cde->abe", MIX_SHAPE(2, 3, 4, 5), MIX_SHAPE(MIX_UNKNOWN, 6)},
               {"ab,cb->ac", MIX_SHAPE(2, 4), MIX_SHAPE(5)},
               {"...b,bc->...c", MIX_SHAPE(2, 3, 4), MIX_SHAPE(5)},
               {"ab...,bc->ac...", MIX_SHAPE(2, 4, 3), MIX_SHAPE(5)},
               {"abr,rst->atbs", MIX_SHAPE(2, 3, 4), MIX_SHAPE(5, 3, 6)}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    mix_tensor *x = random_values(cases[i].shape);
    mix_layer *layer = mix_einsum_dense(cases[i].equation, .output_shape = cases[i].output);
    mix_call(layer, x);
    assert_no_error();
    mix_layer_enable_lora(layer, 2, .alpha = 5);
    fill_b(layer);
    mix_tensor *with = mix_call(layer, x);
    assert_no_error();
    assert_true(mix_lora_merge(layer));
    assert_values(with, mix_call(layer, x), 1e-5);
  }
}

static void R16_grouped_convolution(void **state) {
  (void)state;
  mix_set_semantics("keras3");
  for (int64_t groups = 1; groups < 3; groups++) {
    mix_layer *layer = built(mix_conv2d(6, 3, .groups = groups, .padding = "same", .strides = MIX_SHAPE(2)),
                             MIX_SHAPE(MIX_UNKNOWN, 5, 5, 4));
    mix_layer_enable_lora(layer, 2, .alpha = 1);
    assert_true(mix_shape_equal(mix_variable_shape(layer->lora->a), MIX_SHAPE(3, 3, 4 / groups, 2)));
    fill_b(layer);
    mix_tensor *x = random_values(MIX_SHAPE(2, 5, 5, 4)), *with = mix_call(layer, x);
    assert_true(mix_lora_merge(layer));
    assert_values(with, mix_call(layer, x), 1e-5);
  }
}

static void R07_regularizer(void **state) {
  (void)state;
  for (int generation = 0; generation < 2; generation++) {
    mix_layer *layer = built(mix_dense(3, .kernel_regularizer = mix_regularizer_new("l2", .l2 = 0.5),
                                       .semantics = mix_semantics_named(generation ? "keras3" : "tf_keras")),
                             MIX_SHAPE(MIX_UNKNOWN, 4));
    assert_int_equal(mix_list_count(mix_layer_losses(layer)), 1);
    mix_layer_enable_lora(layer, 2);
    mix_list *losses = mix_layer_losses(layer);
    assert_int_equal(mix_list_count(losses), 2);
    mix_tensor *a = mix_variable_value(layer->lora->a);
    assert_values(
        mix_list_get(losses, 0),
        mix_multiply(mix_scalar(0.5, MIX_FLOAT32), mix_reduce_sum(mix_multiply(a, a), MIX_ALL_AXES, false)),
        1e-6);
  }
}

/* E18: float8 and LoRA. */
static void R08_errors(void **state) {
  (void)state;
  mix_set_semantics("keras3");
  mix_layer *layer = mix_dense(3, .name = "fc");
  mix_layer_enable_lora(layer, 2);
  expect_error(MIX_VALUE_ERROR, "'fc' has no weights yet");
  built(layer, MIX_SHAPE(MIX_UNKNOWN, 4));
  mix_layer_enable_lora(layer, -1);
  expect_error(MIX_VALUE_ERROR, "rank is -1");
  mix_layer_enable_lora(layer, 2, .alpha = (double)NAN);
  expect_error(MIX_VALUE_ERROR, "alpha is nan");
  mix_layer_enable_lora(layer, 2, .a_initializer = "none_such");
  expect_error(MIX_VALUE_ERROR, "none_such");
  mix_layer_enable_lora(layer, INT64_MAX / 8);
  assert_true(mix_error() != MIX_OK);
  mix_error_clear();
  assert_int_equal(mix_list_count(mix_layer_weights(layer)), 2);
  mix_layer_enable_lora(layer, 2);
  mix_layer_enable_lora(layer, 2);
  expect_error(MIX_VALUE_ERROR, "'fc' has LoRA already, of rank 2");
  layer = built(mix_dense(3, .kernel_constraint = mix_constraint_new("non_neg")), MIX_SHAPE(MIX_UNKNOWN, 4));
  mix_layer_enable_lora(layer, 2);
  expect_error(MIX_VALUE_ERROR, "constraint of its kernel");
  layer = built(mix_dense(3, .dtype = "float8_from_float32"), MIX_SHAPE(MIX_UNKNOWN, 4));
  mix_layer_enable_lora(layer, 2);
  expect_error(MIX_UNSUPPORTED, "float8");
  mix_layer_enable_lora(NULL, 2);
  expect_error(MIX_TYPE_ERROR, "expected a layer");
}

static void R08_rank_0_and_warnings(void **state) {
  (void)state;
  mix_layer *layer = dense_of(4, 3);
  mix_tensor *x = random_values(MIX_SHAPE(2, 4)), *before = mix_call(layer, x);
  mix_layer_enable_lora(layer, 0);
  assert_no_error();
  assert_values(mix_call(layer, x), before, 0);
  assert_int_equal(mix_list_count(mix_layer_trainable_weights(layer)), 3);
  mix_set_log_callback(listen, NULL);
  heard[0] = 0;
  mix_layer_enable_lora(dense_of(4, 3), 3);
  assert_string_equal(heard, "");
  mix_layer_enable_lora(dense_of(4, 3), 4);
  assert_non_null(strstr(heard, "rank 4 is above the smaller side"));
  heard[0] = 0;
  layer = dense_of(4, 3);
  mix_layer_enable_lora(layer, 2, .alpha = MIX_ZERO);
  mix_set_log_callback(NULL, NULL);
  assert_non_null(strstr(heard, "alpha is 0"));
  fill_b(layer);
  assert_no_error();
}

/* R02: the constructor's options. R13: which classes keep alpha. */
static void R13_constructor(void **state) {
  (void)state;
  mix_set_semantics("keras3");
  mix_layer *dense = built(mix_dense(3, .lora_rank = 2, .lora_alpha = 8), MIX_SHAPE(MIX_UNKNOWN, 4));
  assert_true(dense->lora->alpha == 2);
  mix_layer *table = built(mix_embedding(5, 4, .lora_rank = 2, .lora_alpha = 8), MIX_SHAPE(MIX_UNKNOWN, 4));
  assert_true(table->lora->alpha == 2);
  mix_layer *conv = built(mix_conv1d(3, 2, .lora_rank = 2, .lora_alpha = 8), MIX_SHAPE(MIX_UNKNOWN, 4, 3));
  assert_true(conv->lora->alpha == 8);
  mix_layer *einsum =
      built(mix_einsum_dense("ab,bc->ac", .output_shape = MIX_SHAPE(5), .lora_rank = 2, .lora_alpha = 8),
            MIX_SHAPE(MIX_UNKNOWN, 4));
  assert_true(einsum->lora->alpha == 8);
  const char *config = mix_layer_config(conv);
  assert_non_null(strstr(config, "\"lora_rank\": 2"));
  assert_non_null(strstr(config, "\"lora_alpha\": 8"));
  assert_null(strstr(mix_layer_config(dense_of(4, 3)), "lora"));
  mix_layer *frozen = dense_of(4, 3);
  mix_layer_enable_lora(frozen, 2, .alpha = 6);
  assert_non_null(strstr(mix_layer_config(frozen), "\"lora_alpha\": 6"));
  built(mix_dense(3, .kernel_constraint = mix_constraint_new("non_neg")), MIX_SHAPE(MIX_UNKNOWN, 4));
  mix_layer_build(mix_dense(3, .lora_rank = 2, .kernel_constraint = mix_constraint_new("non_neg")),
                  MIX_SHAPE(MIX_UNKNOWN, 4));
  expect_error(MIX_VALUE_ERROR, "beside a constraint");
  expect_refused(mix_dense(3, .lora_rank = -2), MIX_VALUE_ERROR, "lora_rank");
}

/* ---- models ---- */

static void R10_functions_are_captured_again(void **state) {
  (void)state;
  mix_model *model = two_layers("out");
  mix_tensor *x = random_values(MIX_SHAPE(4, 12));
  mix_list *before = mix_model_predict(model, x);
  mix_layer *layer = mix_model_get_layer(model, "out");
  mix_layer_enable_lora(layer, 2);
  fill_b(layer);
  mix_list *after = mix_model_predict(model, x);
  assert_no_error();
  double *a = read_all(mix_list_get(before, 0), 16), *b = read_all(mix_list_get(after, 0), 16);
  assert_true(memcmp(a, b, 16 * sizeof *a) != 0);
  free(a);
  free(b);
}

static void which_layers_of_a_model(void **state) {
  (void)state;
  mix_model *model = two_layers("out");
  mix_model_enable_lora(model, 2, .filter = "none_such");
  expect_error(MIX_VALUE_ERROR, "no layer that can have LoRA");
  mix_model_enable_lora(model, 2, .filter = "(");
  expect_error(MIX_VALUE_ERROR, "no regular expression");
  mix_model_enable_lora(model, 2, .filter = "^fc");
  assert_int_equal(mix_layer_lora_rank(mix_model_get_layer(model, "fc1")), 2);
  assert_int_equal(mix_layer_lora_rank(mix_model_get_layer(model, "out")), -1);
  mix_model_enable_lora(model, 2);
  expect_error(MIX_VALUE_ERROR, "'fc1' has LoRA already");
  assert_int_equal(mix_layer_lora_rank(mix_model_get_layer(model, "out")), -1);
  mix_model_enable_lora(NULL, 2);
  assert_true(mix_error() != MIX_OK);
  mix_error_clear();
}

/* Frozen kernels have no slots, and nothing of their shape is computed. */
static void what_training_takes(void **state) {
  (void)state;
  mix_model *model = two_layers("out");
  mix_model_enable_lora(model, 2);
  compile(model);
  mix_list *kernels = mix_list_of(weight(mix_model_get_layer(model, "fc1"), "/kernel"),
                                  weight(mix_model_get_layer(model, "out"), "/kernel"));
  mix_list *before = mix_list_of(mix_identity(mix_variable_value(mix_list_get(kernels, 0))),
                                 mix_identity(mix_variable_value(mix_list_get(kernels, 1))));
  mix_evaluate(2, (mix_tensor *[]){mix_list_get(before, 0), mix_list_get(before, 1)});
  fit(model);
  for (int i = 0; i < 2; i++)
    assert_values(mix_variable_value(mix_list_get(kernels, i)), mix_list_get(before, i), 0);
  size_t bytes = 0;
  mix_list *slots = mix_optimizer_variables(mix_model_optimizer(model));
  for (int i = 0; i < mix_list_count(slots); i++) {
    const mix_variable *slot = mix_list_get(slots, i);
    if (slot->shape.rank) bytes += mix_value_bytes(slot->dtype, slot->shape);
  }
  assert_int_equal(bytes, 2 * 4 * (16 + 4 + 2 * (12 + 16) + 2 * (16 + 4))); /* Adam has two slots a weight */
  const char *graph = mix_function_dump(mix_model_train_function(model), "passes");
  assert_non_null(graph);
  int found = 0;
  for (const char *at = graph; (at = strstr(at, "(12, 16)")); at++) {
    found++;
    if (strncmp(at, "(12, 16) = variable 'fc1/kernel'", 32))
      fail_msg("another of the kernel's shape: %.60s", at);
  }
  assert_int_equal(found, 1);
}

static void R12_R14_files(void **state) {
  (void)state;
  mix_model *model = two_layers("out"), *plain = two_layers("out");
  mix_tensor *x = random_values(MIX_SHAPE(4, 12));
  mix_model_enable_lora(model, 2, .alpha = 6);
  compile(model);
  fit(model);
  mix_list *trained = mix_model_predict(model, x);
  mix_model_save_weights(model, in_folder("lora.weights.h5"));
  mix_model_load_weights(plain, in_folder("lora.weights.h5"));
  assert_no_error();
  assert_values(mix_list_get(mix_model_predict(plain, x), 0), mix_list_get(trained, 0), 1e-6);
  mix_model_save_weights(plain, in_folder("plain.weights.h5"));
  mix_model_load_weights(model, in_folder("plain.weights.h5"));
  assert_no_error();
  assert_values(mix_list_get(mix_model_predict(model, x), 0), mix_list_get(trained, 0), 1e-6);
  assert_true(
      mix_tensor_item(mix_reduce_max(mix_abs(mix_variable_value(mix_model_get_layer(model, "out")->lora->a)),
                                     MIX_ALL_AXES, false)) == 0);
  mix_model_save(model, in_folder("lora.keras"));
  mix_model *again = mix_model_load(in_folder("lora.keras"));
  assert_no_error();
  assert_int_equal(mix_layer_lora_rank(mix_model_get_layer(again, "fc1")), 2);
  assert_values(mix_list_get(mix_model_predict(again, x), 0), mix_list_get(trained, 0), 1e-6);
}

static void assert_names(mix_layer *layer, int count, const char *const *names) {
  mix_list *weights = mix_layer_weights(layer);
  assert_int_equal(mix_list_count(weights), count);
  for (int i = 0; i < count; i++) assert_string_equal(mix_variable_name(mix_list_get(weights, i)), names[i]);
}

/* R04: their order. R06: the integers' product, and x . a . b of inputs that are not rounded. Q25, R18: LoRA
 * that was there before stays. */
static void Q25_R06_R18_integers(void **state) {
  (void)state;
  static const char *const names[] = {"fc1/bias",   "fc1/lora_kernel_a", "fc1/lora_kernel_b",
                                      "fc1/kernel", "fc1/kernel_scale",  "fc1/kernel_zero",
                                      "fc1/g_idx"};
  static const struct {
    const char *mode;
    int64_t block;
    int weights;
  } cases[] = {{"int8", 0, 5}, {"int4", -1, 5}, {"int4", 4, 7}};
  mix_tensor *x = random_values(MIX_SHAPE(4, 12));
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    for (int before = 0; before < 2; before++) {
      mix_model *model = two_layers("out");
      mix_layer *fc1 = mix_model_get_layer(model, "fc1"), *out = mix_model_get_layer(model, "out");
      if (before) mix_model_enable_lora(model, 2, .alpha = 5);
      mix_model_quantize(model, cases[i].mode, .block_size = cases[i].block);
      if (!before) mix_model_enable_lora(model, 2, .alpha = 5);
      assert_no_error();
      assert_names(fc1, cases[i].weights, names);
      assert_true(mix_shape_equal(mix_variable_shape(fc1->lora->a), MIX_SHAPE(12, 2)));
      mix_tensor *h = random_values(MIX_SHAPE(3, 16)), *plain = mix_call(out, h);
      fill_b(out);
      mix_tensor *low = mix_matmul(mix_matmul(h, mix_variable_value(out->lora->a), false, false),
                                   mix_variable_value(out->lora->b), false, false);
      assert_values(mix_call(out, h), mix_add(plain, mix_multiply(mix_scalar(2.5, MIX_FLOAT32), low)), 1e-5);
      compile(model);
      fit(model);
      mix_list *trained = mix_model_predict(model, x);
      mix_model_save(model, in_folder("integers.keras"));
      mix_model *again = mix_model_load(in_folder("integers.keras"));
      assert_no_error();
      assert_int_equal(mix_layer_lora_rank(mix_model_get_layer(again, "fc1")), 2);
      assert_values(mix_list_get(mix_model_predict(again, x), 0), mix_list_get(trained, 0), 0.3);
      mix_model_merge_lora(model);
      assert_no_error();
      assert_values(mix_list_get(mix_model_predict(model, x), 0),
                    mix_list_get(mix_model_predict(again, x), 0), 1e-5);
      assert_int_equal(mix_list_count(mix_layer_trainable_weights(fc1)), 1);
    }
}

static void float8_beside_lora(void **state) {
  (void)state;
  mix_model *model = two_layers("out");
  mix_model_enable_lora(model, 2, .filter = "out");
  mix_model_quantize(model, "float8");
  expect_error(MIX_UNSUPPORTED, "'out' has LoRA");
}

/* R15: the tied reverse uses the merged table, an untied one has no LoRA. R17: Keras refuses its own file. */
static void R15_R17_reversible_embedding(void **state) {
  (void)state;
  mix_set_semantics("keras3");
  for (int untied = 0; untied < 2; untied++) {
    mix_layer *layer = mix_reversible_embedding(6, 5, .untied_weights = untied, .name = "table");
    mix_tensor *tokens = mix_cast(mix_fill(MIX_SHAPE(2, 3), 4, MIX_FLOAT32), MIX_INT32);
    mix_call(layer, tokens);
    mix_tensor *h = random_values(MIX_SHAPE(2, 5)), *before = mix_call(layer, h, .reverse = true);
    mix_layer_enable_lora(layer, 2, .alpha = 6);
    assert_no_error();
    fill_b(layer);
    mix_tensor *rows = mix_call(layer, tokens), *back = mix_call(layer, h, .reverse = true);
    assert_no_error();
    mix_tensor *kept = untied ? before : NULL;
    assert_true(mix_lora_merge(layer));
    assert_values(mix_call(layer, tokens), rows, 1e-5);
    assert_values(mix_call(layer, h, .reverse = true), back, 1e-5);
    if (kept) assert_values(back, kept, 0);
    mix_tensor *in = mix_input(.shape = MIX_SHAPE(3), .dtype = "int32");
    mix_model *model = mix_model_new(
        in, mix_call(mix_reversible_embedding(6, 5, .untied_weights = untied, .lora_rank = 2), in));
    mix_model_save(model, in_folder("table.keras"));
    model = mix_model_load(in_folder("table.keras"));
    assert_no_error();
    assert_int_equal(mix_list_count(mix_model_weights(model)), 3 + untied);
  }
}

static void merging(void **state) {
  (void)state;
  mix_model *model = two_layers("out");
  mix_tensor *x = random_values(MIX_SHAPE(4, 12));
  mix_model_merge_lora(model); /* none has it */
  assert_no_error();
  mix_model_enable_lora(model, 2);
  compile(model);
  fit(model);
  mix_list *trained = mix_model_predict(model, x);
  mix_model_merge_lora(model);
  assert_no_error();
  assert_int_equal(mix_list_count(mix_model_weights(model)), 4);
  assert_int_equal(mix_list_count(mix_model_trainable_variables(model)), 4);
  assert_values(mix_list_get(mix_model_predict(model, x), 0), mix_list_get(trained, 0), 1e-6);
  mix_model_enable_lora(model, 3);
  assert_no_error();
}

/* ---- other generations ---- */

/* Of tf_keras, whose configs have no lora_rank. */
static void files_of_tf_keras(void **state) {
  (void)state;
  mix_set_semantics("tf_keras");
  mix_tensor *x = mix_input(.shape = MIX_SHAPE(4)), *ones = mix_fill(MIX_SHAPE(1, 4), 1, MIX_FLOAT32);
  mix_model *model = mix_model_new(x, mix_call(mix_dense(3, .name = "fc1"), x));
  mix_model_enable_lora(model, 1, .b_initializer = "ones");
  mix_model_save(model, in_folder("tf.h5"));
  expect_error(MIX_UNSUPPORTED, "layer 'fc1' has LoRA, which no .h5 of tf_keras can say");
  assert_int_equal(mix_model_save(model, in_folder("tf.keras")), MIX_OK);
  mix_model *merged = mix_model_load(in_folder("tf.keras"));
  assert_values(mix_list_get(mix_model_predict(merged, ones), 0),
                mix_list_get(mix_model_predict(model, ones), 0), 1e-6);
  mix_model_merge_lora(model);
  assert_int_equal(mix_model_save(model, in_folder("tf.h5")), MIX_OK);
  assert_non_null(mix_model_load(in_folder("tf.h5")));
  mix_set_semantics("keras3");
}

int main(void) {
  const struct CMUnitTest tests[] = {TEST(R01_R08_which_layers),
                                     TEST(R02_R03_R04_R09_weights),
                                     TEST(R05_forward),
                                     TEST(R05_equations),
                                     TEST(R16_grouped_convolution),
                                     TEST(R07_regularizer),
                                     TEST(R08_errors),
                                     TEST(R08_rank_0_and_warnings),
                                     TEST(R13_constructor),
                                     TEST(R10_functions_are_captured_again),
                                     TEST(which_layers_of_a_model),
                                     TEST(what_training_takes),
                                     TEST(R12_R14_files),
                                     TEST(Q25_R06_R18_integers),
                                     TEST(float8_beside_lora),
                                     TEST(R15_R17_reversible_embedding),
                                     TEST(merging),
                                     TEST(files_of_tf_keras)};
  return cmocka_run_group_tests(tests, folder_begin, folder_end);
}
