/* Activations: rows F01 to F08 of docs/spec/keras.md, 19.3, and every other name against its formula in
 * double. Tolerances of the rows: half a unit of their last digit (5e-8) and a few float32 roundings of
 * values below 4 (4 * 2^-24 * 4 = 1e-6). */
#include "nn/support.h"

static const double points[] = {-2, -0.5, 0, 1, 3};
static mix_tensor *five(mix_dtype dtype) { return vector(dtype, 5, points); }
#define ROW(x, ...) EXPECT(x, 1e-6, 0, __VA_ARGS__)

static void F01_gelu(void **state) {
  (void)state;
  ROW(mix_activate("gelu", five(MIX_FLOAT32)), -0.0455003, -0.1542688, 0, 0.8413447, 2.9959503);
}
static void F02_gelu_approximate(void **state) {
  (void)state;
  ROW(mix_activate("gelu", five(MIX_FLOAT32), .approximate = true), -0.0454023, -0.1542860, 0, 0.8411920,
      2.9963626);
}
static void F03_silu(void **state) {
  (void)state;
  ROW(mix_activate("silu", five(MIX_FLOAT32)), -0.2384058, -0.1887703, 0, 0.7310586, 2.8577224);
  ROW(mix_activate("swish", five(MIX_FLOAT32)), -0.2384058, -0.1887703, 0, 0.7310586, 2.8577224);
}
static void F04_selu(void **state) {
  (void)state;
  ROW(mix_activate("selu", five(MIX_FLOAT32)), -1.5201665, -0.6917582, 0, 1.0507010, 3.1521030);
}
static void F05_mish(void **state) {
  (void)state;
  ROW(mix_activate("mish", five(MIX_FLOAT32)), -0.2525015, -0.2207438, 0, 0.8650984, 2.9865350);
}
static void F06_softplus(void **state) {
  (void)state;
  ROW(mix_activate("softplus", five(MIX_FLOAT32)), 0.1269280, 0.4740770, 0.6931472, 1.3132617, 3.0485874);
}
static void F07_hard_sigmoid_keras3(void **state) {
  (void)state;
  mix_set_semantics("keras3");
  ROW(mix_activate("hard_sigmoid", five(MIX_FLOAT32)), 0.1666667, 0.4166667, 0.5, 0.6666667, 1);
}
static void F08_hard_sigmoid_tf_keras(void **state) {
  (void)state;
  ROW(mix_activate("hard_sigmoid", five(MIX_FLOAT32)), 0.1, 0.4, 0.5, 0.7, 1);
}

/* ---- the others in float64; the tolerance 1e-14 is 45 roundings of numbers up to 20 ---- */

static double sigmoid(double x) { return 1 / (1 + exp(-x)); }
static double relu6(double x) { return fmin(fmax(x, 0), 6); }
static double f_linear(double x) { return x; }
static double f_relu(double x) { return fmax(x, 0); }
static double f_leaky(double x) { return x > 0 ? x : 0.2 * x; }
static double f_elu(double x) { return x > 0 ? x : exp(x) - 1; }
static double f_celu(double x) { return fmax(x, 0) + fmin(expm1(x), 0); }
static double f_softsign(double x) { return x / (1 + fabs(x)); }
static double f_log_sigmoid(double x) { return -log1p(exp(-x)); }
static double f_hard_silu(double x) { return x * relu6(x + 3) / 6; }
static double f_tanh_shrink(double x) { return x - tanh(x); }
static double f_hard_tanh(double x) { return fmin(fmax(x, -1), 1); }
static double f_soft_shrink(double x) { return x > 0.5 ? x - 0.5 : x < -0.5 ? x + 0.5 : 0; }
static double f_hard_shrink(double x) { return fabs(x) > 0.5 ? x : 0; }
static double f_threshold(double x) { return x > 0 ? x : 0; }
static double f_sparse_plus(double x) { return x <= -1 ? 0 : x < 1 ? (x + 1) * (x + 1) / 4 : x; }
static double f_sparse_sigmoid(double x) { return x <= -1 ? 0 : x >= 1 ? 1 : (x + 1) / 2; }
static double f_squareplus(double x) { return (x + sqrt(x * x + 4)) / 2; }

static void every_name_of_keras3(void **state) {
  (void)state;
  static const struct {
    const char *name;
    double (*function)(double);
  } rows[] = {{"linear", f_linear},
              {"relu", f_relu},
              {"leaky_relu", f_leaky},
              {"relu6", relu6},
              {"elu", f_elu},
              {"celu", f_celu},
              {"softsign", f_softsign},
              {"sigmoid", sigmoid},
              {"log_sigmoid", f_log_sigmoid},
              {"hard_silu", f_hard_silu},
              {"hard_swish", f_hard_silu},
              {"tanh", tanh},
              {"tanh_shrink", f_tanh_shrink},
              {"hard_tanh", f_hard_tanh},
              {"soft_shrink", f_soft_shrink},
              {"hard_shrink", f_hard_shrink},
              {"threshold", f_threshold},
              {"sparse_plus", f_sparse_plus},
              {"squareplus", f_squareplus},
              {"sparse_sigmoid", f_sparse_sigmoid},
              {"exponential", exp}};
  static const double x[] = {-7, -2, -1, -0.5, -0.25, 0, 0.25, 0.5, 0.75, 1, 3, 8};
  enum { N = sizeof x / sizeof *x };
  mix_set_semantics("keras3");
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    double expected[N];
    for (int j = 0; j < N; j++) expected[j] = rows[i].function(x[j]);
    expect_values(mix_activate(rows[i].name, vector(MIX_FLOAT64, N, x)), N, expected, 1e-14, 1e-14);
  }
}
static void parameters(void **state) {
  (void)state;
  mix_set_semantics("keras3");
  mix_tensor *x = five(MIX_FLOAT32); /* -2, -0.5, 0, 1, 3: every result below is exact in float32 */
  EXPECT_EXACT(mix_activate("relu", x, .negative_slope = 0.5, .max_value = 2), -1, -0.25, 0, 1, 2);
  /* At the threshold 0. */
  EXPECT_EXACT(mix_activate("relu", x, .negative_slope = 0.5, .threshold = 1), -1.5, -0.75, -0.5, 0, 3);
  EXPECT_EXACT(mix_activate("relu", x, .max_value = MIX_ZERO), 0, 0, 0, 0, 0);
  EXPECT_EXACT(mix_activate("leaky_relu", x, .negative_slope = 0.25), -0.5, -0.125, 0, 1, 3);
  EXPECT_EXACT(mix_activate("threshold", x, .threshold = 0.75, .value = -8), -8, -8, -8, 1, 3);
  EXPECT_EXACT(mix_activate("soft_shrink", x, .threshold = 1), -1, 0, 0, 0, 2);
  EXPECT(mix_activate("elu", x, .alpha = 2), 1e-6, 0, 2 * expm1(-2), 2 * expm1(-0.5), 0, 1, 3);
  EXPECT(mix_activate("celu", x, .alpha = 2), 1e-6, 0, 2 * expm1(-1), 2 * expm1(-0.25), 0, 1, 3);
}
/* Derivatives at corners and for large arguments, as in Keras (except celu's at 0, which is 2 there). */
static void derivatives(void **state) {
  (void)state;
  mix_set_semantics("keras3");
  const struct {
    const char *name;
    double max_value, threshold;
    mix_dtype dtype;
    double x[4], y[4], dy[4];
  } rows[] = {
      {"relu", 6, 0, MIX_FLOAT32, {-1, 0, 6, 7}, {0, 0, 6, 6}, {0, 0, 0, 0}},
      {"relu", 5, 0, MIX_FLOAT32, {-1, 0, 5, 7}, {0, 0, 5, 5}, {0, 0, 1, 0}},
      {"relu", 0, 1, MIX_FLOAT32, {-1, 0.5, 1, 7}, {0, 0, 0, 7}, {0, 0, 0, 1}},
      {"celu", 0, 0, MIX_FLOAT32, {-1e30, 0, 89, 1e30}, {-1, 0, 89, 1e30}, {0, 1, 1, 1}},
      {"celu", 0, 0, MIX_FLOAT16, {-65504, 0, 60000, 65504}, {-1, 0, 60000, 65504}, {0, 1, 1, 1}},
      {"sparse_plus", 0, 0, MIX_FLOAT16, {-65504, -60000, 60000, 65504}, {0, 0, 60000, 65504}, {0, 0, 1, 1}},
      {"sparse_plus", 0, 0, MIX_FLOAT32, {-1, 0, 1, 2}, {0, 0.25, 1, 2}, {0, 0.5, 1, 1}},
      {"sparse_sigmoid", 0, 0, MIX_FLOAT32, {-1, 0, 1, 2}, {0, 0.5, 1, 1}, {0, 0.5, 0, 0}}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    mix_tensor *x = vector(rows[i].dtype, 4, rows[i].x);
    mix_tape *tape = mix_tape_begin();
    mix_tape_watch(tape, x);
    mix_tensor *y =
        mix_activate(rows[i].name, x, .max_value = rows[i].max_value, .threshold = rows[i].threshold);
    mix_tape_end(tape);
    expect_values(y, 4, rows[i].y, 0, 1e-7);
    expect_values(mix_list_get(mix_tape_gradient(tape, y, mix_list_of(x)), 0), 4, rows[i].dy, 0, 0);
  }
  mix_tensor *y = mix_activate("relu", five(MIX_FLOAT32), .threshold = 1);
  for (int i = 0; i < 5; i++) assert_false(signbit(((const float *)mix_tensor_data(y))[i])); /* no -0 */
}
static void softmax_along_axes(void **state) {
  (void)state;
  double e = exp(1), e2 = exp(2);
  mix_tensor *x = MATRIX(MIX_FLOAT64, 2, 3, 0, 1, 2, 1, 1, 0);
  double s = 1 + e + e2, t = 2 * e + 1, u = 1 + e, v = 1 + e2;
  EXPECT(mix_activate("softmax", x), 1e-14, 0, 1 / s, e / s, e2 / s, e / t, e / t, 1 / t);
  EXPECT(mix_activate("softmax", x, .axis = MIX_AXIS_0), 1e-14, 0, 1 / u, 0.5, e2 / v, e / u, 0.5, 1 / v);
  EXPECT(mix_activate("softmax", x, .axis = -2), 1e-14, 0, 1 / u, 0.5, e2 / v, e / u, 0.5, 1 / v);
  expect_refused(mix_activate("softmax", x, .axis = 5), MIX_VALUE_ERROR, "axis 5");
  /* tf_keras only. */
  expect_refused(mix_activate("softmax", VECTOR(MIX_FLOAT32, 1, 2)), MIX_VALUE_ERROR, "rank 1");
  mix_set_semantics("keras3");
  EXPECT(mix_activate("softmax", VECTOR(MIX_FLOAT64, 0, 1)), 1e-14, 0, 1 / u, e / u);
  EXPECT(mix_activate("log_softmax", x), 1e-14, 0, -log(s), 1 - log(s), 2 - log(s), 1 - log(t), 1 - log(t),
         -log(t));
}
static void logits_are_remembered(void **state) {
  (void)state;
  mix_tensor *x = MATRIX(MIX_FLOAT32, 1, 2, 0, 1);
  assert_ptr_equal(mix_activate("softmax", x)->logits, x);
  assert_ptr_equal(mix_activate("sigmoid", x)->logits, x);
  assert_null(mix_activate("relu", x)->logits);
  mix_tensor *y = mix_call(mix_activation("softmax"), x);
  assert_non_null(y->logits);
  assert_null(mix_cast(y, MIX_FLOAT64)->logits);
}
static void glu_and_sparsemax(void **state) {
  (void)state;
  mix_set_semantics("keras3");
  EXPECT(mix_activate("glu", MATRIX(MIX_FLOAT64, 1, 4, 2, -3, 0, 1)), 1e-14, 0, 1, -3 * sigmoid(1));
  expect_refused(mix_activate("glu", VECTOR(MIX_FLOAT32, 1, 2, 3)), MIX_VALUE_ERROR, "even");
  /* The projection of (0.5, 0, -0.6): both first elements are in the support, tau = (0.5 + 0 - 1) / 2. */
  EXPECT(mix_activate("sparsemax", MATRIX(MIX_FLOAT64, 3, 3, 0.5, 0, -0.6, 3, 1, 1, 1, 1, 1)), 1e-14, 0, 0.75,
         0.25, 0, 1, 0, 0, 1.0 / 3, 1.0 / 3, 1.0 / 3);
}
static void dtypes_are_kept(void **state) {
  (void)state;
  static const mix_dtype dtypes[] = {MIX_FLOAT16, MIX_BFLOAT16, MIX_FLOAT32, MIX_FLOAT64};
  static const char *const names[] = {"relu",         "gelu",    "silu",        "mish",
                                      "hard_sigmoid", "softmax", "exponential", "elu"};
  for (int d = 0; d < 4; d++)
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
      expect_dtype(mix_activate(names[i], mix_reshape(five(dtypes[d]), MIX_SHAPE(1, 5))), dtypes[d]);
}
static void names_by_generation(void **state) {
  (void)state;
  mix_tensor *x = five(MIX_FLOAT32);
  assert_ptr_equal(mix_activate(NULL, x), x); /* None is linear */
  expect_refused(mix_activate("celu", x), MIX_VALUE_ERROR, "celu");
  expect_refused(mix_activate("sofmax", x), MIX_VALUE_ERROR,
                 "'sofmax' is not known to tf_keras; did you mean 'softmax'?; expected one of linear, relu, "
                 "softmax, elu, selu, softplus, softsign, silu, gelu, tanh, sigmoid, exponential, "
                 "hard_sigmoid, mish, LeakyReLU, leaky_relu, relu6");
  EXPECT(mix_activate("LeakyReLU", x), 1e-7, 0, -0.6, -0.15, 0, 1, 3);
  EXPECT(mix_activate("leaky_relu", x), 1e-7, 0, -0.4, -0.1, 0, 1, 3);
  EXPECT(mix_activate("relu6", mix_multiply(x, mix_scalar(4, MIX_FLOAT32))), 0, 0, 0, 0, 0, 4, 6);
  EXPECT(mix_activate("log_softmax", MATRIX(MIX_FLOAT64, 1, 2, 0, 0)), 1e-14, 0, -log(2), -log(2));
  mix_set_semantics("keras3");
  expect_refused(mix_activate("LeakyReLU", x), MIX_VALUE_ERROR, "LeakyReLU");
  expect_refused(mix_activate("relu", NULL), MIX_TYPE_ERROR, "expected a tensor");
}

int main(void) {
  const struct CMUnitTest tests[] = {TEST(F01_gelu),
                                     TEST(F02_gelu_approximate),
                                     TEST(F03_silu),
                                     TEST(F04_selu),
                                     TEST(F05_mish),
                                     TEST(F06_softplus),
                                     TEST(F07_hard_sigmoid_keras3),
                                     TEST(F08_hard_sigmoid_tf_keras),
                                     TEST(every_name_of_keras3),
                                     TEST(parameters),
                                     TEST(derivatives),
                                     TEST(softmax_along_axes),
                                     TEST(logits_are_remembered),
                                     TEST(glu_and_sparsemax),
                                     TEST(dtypes_are_kept),
                                     TEST(names_by_generation)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
