/* Dense and EinsumDense under policies of the mode float8: docs/spec/float8.md. */
/* Holds docs/NUMERICS.md: Float8 training. */
#include "model/support.h"

#include "graph/variable.h"
#include "support/expect.h"

static void setup_keras3(void) {
  mix_set_semantics("keras3");
  mix_set_accumulate("exact");
}

/* ---- weights ---- */

static const char *const made_first[] = {
    "inputs_scale",       "inputs_amax_history",       "kernel_scale", "kernel_amax_history",
    "outputs_grad_scale", "outputs_grad_amax_history", "kernel",       "bias"};

static const char *short_name(const mix_variable *variable) {
  return strrchr(mix_variable_name(variable), '/') + 1;
}

/* Under a policy the six come first, as in Keras; its source gives the dtypes of kernel and bias. */
static void E01_weights(void **state) {
  (void)state;
  setup_keras3();
  static const char *const names[] = {"float8_from_float32", "float8_from_mixed_bfloat16",
                                      "float8_from_bfloat16", "float8_from_mixed_float16"};
  for (int p = 0; p < 4; p++) {
    mix_policy *policy = mix_policy_new(names[p], .amax_history_length = p ? 7 : 0);
    mix_layer *layer = mix_dense(3, .policy = policy);
    mix_layer_build(layer, MIX_SHAPE(2, 4));
    assert_no_error();
    mix_list *weights = mix_layer_trainable_weights(layer);
    assert_int_equal(mix_list_count(weights), 8);
    for (int i = 0; i < 8; i++) {
      const mix_variable *variable = mix_list_get(weights, i);
      assert_string_equal(short_name(variable), made_first[i]);
      assert_int_equal(variable->dtype, i < 6 ? MIX_FLOAT32 : mix_policy_variable_dtype(policy));
      assert_int_equal(variable->overwrite_with_gradient, i < 6);
      assert_int_equal(variable->autocast, i >= 6);
      if (i >= 6) continue;
      assert_true(mix_shape_equal(variable->shape, i % 2 ? MIX_SHAPE(p ? 7 : 1024) : MIX_SCALAR));
      assert_true(at(mix_variable_true_value(mix_list_get(weights, i)), 0) == (i % 2 ? 0 : 1));
    }
  }
}

/* ---- rounding ---- */

static void expect_rounded(double x, double scale, mix_dtype dtype, mix_dtype computed, double expected) {
  const double got =
      at(mix_quantize_dequantize(ARRAY(computed, MIX_SHAPE(1), x), mix_scalar(scale, MIX_FLOAT32), dtype), 0);
  if (!(got == expected || (isnan(got) && isnan(expected))))
    fail_msg("%.9g with the scale %.9g becomes %.9g; expected %.9g", x, scale, got, expected);
}

static void E02_E20_rounding(void **state) {
  (void)state;
  static const double e4m3[][2] = {
      {449, 448},          {17, 16},     {19, 20},        {1.0625, 1}, {1.0625001, 1.125}, {0x1p-10, 0},
      {0x1.8p-10, 0x1p-9}, {-1e9, -448}, {INFINITY, 448}, {NAN, NAN}};
  for (size_t i = 0; i < sizeof e4m3 / sizeof *e4m3; i++)
    expect_rounded(e4m3[i][0], 1, MIX_FLOAT8_E4M3FN, MIX_FLOAT32, e4m3[i][1]);
  expect_rounded(INFINITY, 2, MIX_FLOAT8_E4M3FN, MIX_FLOAT32, 896);
  expect_rounded(1e9, 1, MIX_FLOAT8_E5M2, MIX_FLOAT32, 57344);
  expect_rounded(9, 1, MIX_FLOAT8_E5M2, MIX_FLOAT32, 8);
}

static void E03_the_scale_in_bfloat16(void **state) {
  (void)state;
  expect_rounded(0.3, 0.005001993, MIX_FLOAT8_E4M3FN, MIX_BFLOAT16, 0.30078125);
  const double got = at(mix_quantize_dequantize(ARRAY(F32, MIX_SHAPE(1), 0.3),
                                                mix_scalar(0.005001993, MIX_FLOAT32), MIX_FLOAT8_E4M3FN),
                        0);
  assert_near(got, 0.30011958, 1e-8); /* half of the last digit */
}

/* ---- one layer by hand ---- */

typedef struct single {
  mix_layer *layer;
  mix_list *weights;
  mix_tensor *x, *y;
  mix_list *gradients; /* of the weights, then of x */
} single;

/* A Dense of one unit, or the same as an EinsumDense, on a row of inputs; all weights of the kernel are 1. */
static single made(const char *policy, bool einsum, int64_t history, int inputs, const double *x,
                   double bias) {
  mix_policy *of = mix_policy_new(policy, .amax_history_length = history);
  single s = {.layer = einsum ? mix_einsum_dense("ab,bc->ac", .output_shape = MIX_SHAPE(1), .bias_axes = "c",
                                                 .policy = of, .kernel_initializer = "ones")
                              : mix_dense(1, .policy = of, .kernel_initializer = "ones")};
  mix_layer_build(s.layer, MIX_SHAPE(1, inputs));
  s.weights = mix_layer_weights(s.layer);
  assert_no_error();
  mix_variable_assign(
      mix_list_get(s.weights, 7),
      mix_cast(ARRAY(F32, MIX_SHAPE(1), bias), ((mix_variable *)mix_list_get(s.weights, 7))->dtype));
  s.x = mix_tensor_from_doubles(x, mix_layer_compute_dtype(s.layer), MIX_SHAPE(1, inputs));
  return s;
}

/* The gradients of y times `upstream`. */
static void differentiate(single *s, double upstream) {
  mix_tape *tape = mix_tape_begin(.persistent = true);
  mix_tape_watch(tape, s->x);
  s->y = mix_call(s->layer, s->x, .training = MIX_TRUE);
  mix_tape_end(tape);
  mix_list *sources = mix_list_new(8, mix_list_items(s->weights));
  mix_list_append(sources, s->x);
  s->gradients = mix_tape_gradient_from(
      tape, mix_list_of(s->y),
      mix_list_of(mix_fill(mix_tensor_shape(s->y), upstream, mix_tensor_dtype(s->y))), sources);
  assert_no_error();
}

static double gradient_at(const single *s, int source, int64_t i) {
  return at(mix_list_get(s->gradients, source), i);
}

/* What an optimizer does with the six. */
static void keep_state(single *s) {
  for (int i = 0; i < 6; i++) mix_variable_assign(mix_list_get(s->weights, i), mix_list_get(s->gradients, i));
  assert_no_error();
}

static void E04_forward(void **state) {
  (void)state;
  setup_keras3();
  for (int einsum = 0; einsum < 2; einsum++) {
    const double x[] = {17, 19, 1.0625};
    single s = made("float8_from_float32", einsum, 4, 3, x, 0.1);
    assert_true(at(mix_call(s.layer, s.x), 0) == (double)(float)(37 + 0.10009765625));
    mix_variable_assign(mix_list_get(s.weights, 6), ARRAY(F32, MIX_SHAPE(3, 1), 17, 1, 1));
    assert_true(at(mix_call(s.layer, s.x), 0) == (double)(float)(16 * 16 + 21 + 0.10009765625));
    s = made("float8_from_float64", einsum, 4, 3, x, 0.1);
    assert_true(at(mix_call(s.layer, s.x), 0) == 37 + (double)0.1f);
  }
}

static void E05_backward(void **state) {
  (void)state;
  setup_keras3();
  for (int einsum = 0; einsum < 2; einsum++) {
    const double x[] = {17, 1000, -0.5};
    single s = made("float8_from_float32", einsum, 4, 3, x, 0);
    mix_variable_assign(mix_list_get(s.weights, 6), ARRAY(F32, MIX_SHAPE(3, 1), 17, 1, 1));
    differentiate(&s, -0.444); /* -0.4375 in float8_e5m2 */
    assert_near(gradient_at(&s, 6, 0), -0.4375 * 16, 0);
    assert_near(gradient_at(&s, 6, 1), -0.4375 * 448, 0);
    assert_near(gradient_at(&s, 6, 2), 0.4375 * 0.5, 0);
    assert_near(gradient_at(&s, 7, 0), -0.443359375, 0);
    assert_near(gradient_at(&s, 8, 0), -0.4375 * 16, 0);
    assert_near(gradient_at(&s, 8, 1), -0.4375, 0);
    s = made("float8_from_float64", einsum, 4, 3, x, 0);
    differentiate(&s, -0.444);
    assert_near(gradient_at(&s, 7, 0), -0.444, 0);
  }
}

static void set_history(single *s, int index, mix_tensor *values) {
  mix_variable_assign(mix_list_get(s->weights, index), values);
  assert_no_error();
}

static void E06_the_next_scale(void **state) {
  (void)state;
  setup_keras3();
  static const double amax[][2] = {{2.5, 0.0055803573}, {1e-37, 0}, {INFINITY, 3}, {0, 3}};
  for (int i = 0; i < 4; i++) {
    const double x[] = {1, 1};
    single s = made("float8_from_float32", false, 3, 2, x, 0);
    mix_variable_assign(mix_list_get(s.weights, 0), mix_scalar(3, MIX_FLOAT32));
    set_history(&s, 1, ARRAY(F32, MIX_SHAPE(3), 0, amax[i][0], 0));
    differentiate(&s, 1);
    assert_near(gradient_at(&s, 0, 0), amax[i][1], 6e-10); /* a digit behind those of the row */
  }
}

static void E07_the_next_history(void **state) {
  (void)state;
  setup_keras3();
  static const double histories[4][4] = {{7, 3, 4, 1}, {7, 1}, {7}, {NAN, 3, 4, 1}};
  const int lengths[] = {4, 2, 1, 4};
  for (int h = 0; h < 4; h++) {
    const double x[] = {h == 3 ? NAN : -7, 1}, before[] = {1, 2, 3, 4};
    single s = made("float8_from_float32", false, lengths[h], 2, x, 0);
    set_history(&s, 1, mix_tensor_from_doubles(before, F32, MIX_SHAPE(lengths[h])));
    differentiate(&s, 1);
    for (int i = 0; i < lengths[h]; i++) {
      const double got = gradient_at(&s, 1, i), expected = histories[h][i];
      assert_true(got == expected || (isnan(got) && isnan(expected)));
    }
  }
}

/* A step's scale is of the steps before; the first two have the scale 1. */
static void E08_E09_when_and_of_what(void **state) {
  (void)state;
  setup_keras3();
  const double x[] = {900, 17};
  single s = made("float8_from_float32", false, 4, 2, x, 0);
  const double scales[] = {1, 1, 900. / 448}, results[] = {448 + 16, 448 + 16, 900 + 8 * (900. / 448)};
  for (int step = 0; step < 3; step++) {
    assert_near(at(mix_variable_true_value(mix_list_get(s.weights, 0)), 0), scales[step], 1e-6);
    differentiate(&s, 0.3);
    assert_near(at(s.y, 0), results[step], step < 2 ? 0 : 1e-4);
    assert_true(gradient_at(&s, 1, 0) == 900);
    assert_true(gradient_at(&s, 5, 0) == (double)0.3f);
    keep_state(&s);
  }
}

/* ---- models ---- */

static mix_model *small_model(const char *source, mix_optimizer *optimizer) {
  char policy[64];
  snprintf(policy, sizeof policy, "float8_from_%s", source);
  mix_tensor *x = mix_input(.shape = MIX_SHAPE(4));
  mix_tensor *y = mix_call(mix_dense(8, .activation = "relu", .dtype = policy, .name = "first"), x);
  mix_model *model = mix_model_new(x, mix_call(mix_dense(2, .dtype = policy, .name = "second"), y));
  mix_model_compile(model, .loss = "mse", .optimizer = optimizer);
  assert_no_error();
  return model;
}

static mix_tensor *numbers(int64_t rows, int64_t columns) {
  double values[256];
  for (int64_t i = 0; i < rows * columns; i++) values[i] = (double)((i * 37) % 101) / 50 - 1;
  return mix_tensor_from_doubles(values, F32, MIX_SHAPE(rows, columns));
}

static void train(mix_model *model, int steps) {
  for (int i = 0; i < steps; i++)
    MIX_SCOPE { mix_model_train_on_batch(model, numbers(6, 4), numbers(6, 2)); }
  assert_no_error();
}

static bool same_weights(mix_list *a, mix_list *b) {
  bool same = mix_list_count(a) == mix_list_count(b);
  for (int i = 0; i < mix_list_count(a) && same; i++) {
    const int64_t count = mix_shape_size(mix_tensor_shape(mix_list_get(a, i)));
    for (int64_t j = 0; j < count && same; j++) same = at(mix_list_get(a, i), j) == at(mix_list_get(b, i), j);
  }
  return same;
}

static void E10_training_alone(void **state) {
  (void)state;
  setup_keras3();
  mix_model *model = small_model("float32", mix_sgd());
  train(model, 2);
  mix_list *before = mix_model_get_weights(model);
  mix_model_predict(model, numbers(6, 4));
  mix_model_evaluate(model, numbers(6, 4), numbers(6, 2));
  assert_no_error();
  assert_true(same_weights(before, mix_model_get_weights(model)));
  train(model, 1);
  assert_false(same_weights(before, mix_model_get_weights(model)));
}

/* The gradient that arrives is the scaled one, of a loss times 32768. */
static void E15_the_scaled_gradient(void **state) {
  (void)state;
  setup_keras3();
  mix_set_global_policy("mixed_float16");
  double amax[2];
  for (int scaled = 0; scaled < 2; scaled++) {
    mix_model *model = small_model("mixed_float16", mix_sgd(.learning_rate = 0.001));
    if (!scaled)
      mix_model_compile(model, .loss = "mse",
                        .optimizer = mix_loss_scale_optimizer(mix_sgd(), .initial_scale = 1024));
    mix_list *weights = mix_model_get_weights(small_model("mixed_float16", mix_sgd()));
    for (int i = 6; i < 16; i += i == 7 ? 7 : 1) { /* kernels and biases: the same in both */
      mix_tensor *value = mix_list_get(weights, i);
      mix_variable_assign(mix_list_get(mix_model_weights(model), i),
                          mix_fill(mix_tensor_shape(value), 0.125, F32));
    }
    train(model, 1);
    assert_true(mix_optimizer_iterations(mix_model_optimizer(model)) == 1);
    amax[scaled] = weight_at(model, 13, 0);
  }
  mix_set_global_policy("float32");
  assert_true(amax[0] > 0);
  assert_near(amax[1] / amax[0], 32, 0.1); /* float16 gradients have 11 bits */
}

static void E17_a_frozen_layer(void **state) {
  (void)state;
  setup_keras3();
  mix_model *model = small_model("float32", mix_sgd());
  mix_layer *first = mix_model_get_layer(model, "first");
  mix_layer_set_trainable(first, false);
  mix_model_compile(model, .loss = "mse", .optimizer = mix_sgd());
  mix_list *before = mix_layer_get_weights(first);
  train(model, 2);
  assert_true(same_weights(before, mix_layer_get_weights(first)));
  assert_true(weight_at(model, 9, 0) > 0); /* the history of the second layer's inputs */
}

static void E19_jit_compile_keeps_roundings(void **state) {
  (void)state;
  setup_keras3();
  double losses[2];
  mix_list *start = NULL;
  for (int jit = 0; jit < 2; jit++) {
    mix_model *model = small_model("float32", mix_sgd(.learning_rate = 0.05));
    if (jit) mix_model_set_weights(model, start);
    start = mix_model_get_weights(model);
    mix_model_compile(model, .loss = "mse", .optimizer = mix_sgd(.learning_rate = 0.05), .jit_compile = jit);
    train(model, 30);
    losses[jit] = mix_logs_get(mix_model_evaluate(model, numbers(6, 4), numbers(6, 2)), "loss");
  }
  assert_near(losses[1] / losses[0], 1, 1e-5);
}

/* An infinity in the inputs is a value that the report names. */
static void a_nan_stays_in_the_history(void **state) {
  (void)state;
  setup_keras3();
  mix_model *model = small_model("float32", mix_sgd());
  mix_tensor *x = mix_fill(MIX_SHAPE(6, 4), INFINITY, F32);
  mix_model_train_on_batch(model, x, numbers(6, 2));
  assert_no_error();
  assert_true(isinf(weight_at(model, 1, 0)));
  assert_true(weight_at(model, 0, 0) == 1);
  train(model, 1);
  assert_true(weight_at(model, 0, 0) == 1);
}

static int begin(void **state) { return *state = mix_scope_begin(), 0; }
static int end(void **state) {
  mix_scope_end(*state);
  mix_status left = mix_error();
  mix_error_clear();
  mix_set_semantics("tf_keras");
  return left == MIX_OK ? 0 : -1;
}
#undef TEST
#define TEST(function) cmocka_unit_test_setup_teardown(function, begin, end)

int main(void) {
  const struct CMUnitTest tests[] = {TEST(E01_weights),
                                     TEST(E02_E20_rounding),
                                     TEST(E03_the_scale_in_bfloat16),
                                     TEST(E04_forward),
                                     TEST(E05_backward),
                                     TEST(E06_the_next_scale),
                                     TEST(E07_the_next_history),
                                     TEST(E08_E09_when_and_of_what),
                                     TEST(E10_training_alone),
                                     TEST(E15_the_scaled_gradient),
                                     TEST(E17_a_frozen_layer),
                                     TEST(E19_jit_compile_keeps_roundings),
                                     TEST(a_nan_stays_in_the_history)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
