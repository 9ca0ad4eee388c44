/* Initialisers: exact values, limits, moments within six standard errors, orthogonality, seeds. */
#include "base/alloc.h"
#include "base/json.h"
#include "nn/support.h"
#include "nn/weights/weights.h"
#include "tensor/convert.h"

enum { N = 200 * 200 };
static double values[N];

static const double *drawn(mix_initializer *initializer, mix_dtype dtype) {
  mix_tensor *tensor = mix_initializer_call(initializer, MIX_SHAPE(200, 200), dtype);
  expect_dtype(tensor, dtype);
  assert_int_equal(mix_tensor_read(tensor, MIX_FLOAT64, values, N), MIX_OK);
  return values;
}
/* Expects that mean and deviation, and nothing outside the limits. The standard error of the mean of n
 * numbers is deviation / sqrt(n); that of the deviation is at most deviation / sqrt(n) (normal: 0.71 of it,
 * uniform 0.45, truncated less). */
static void expect_moments(mix_initializer *initializer, double mean, double deviation, double low,
                           double high) {
  double sum = 0, squares = 0, error = 6 * deviation / sqrt(N);
  drawn(initializer, MIX_FLOAT32);
  for (int i = 0; i < N; i++) {
    assert_true(values[i] >= low - 1e-6 && values[i] <= high + 1e-6);
    sum += values[i];
  }
  for (int i = 0; i < N; i++) squares += (values[i] - sum / N) * (values[i] - sum / N);
  if (fabs(sum / N - mean) > error || fabs(sqrt(squares / N) - deviation) > error)
    fail_msg("%s: mean %g, deviation %g; expected %g, %g", mix_initializer_name(initializer), sum / N,
             sqrt(squares / N), mean, deviation);
}

static void constants(void **state) {
  (void)state;
  EXPECT_EXACT(mix_initializer_call(mix_initializer_new("zeros"), MIX_SHAPE(2), MIX_FLOAT16), 0, 0);
  EXPECT_EXACT(mix_initializer_call(mix_initializer_new("Ones"), MIX_SHAPE(2), MIX_INT32), 1, 1);
  EXPECT_EXACT(
      mix_initializer_call(mix_initializer_new("constant", .value = 2.5), MIX_SHAPE(1, 2), MIX_FLOAT64), 2.5,
      2.5);
  EXPECT_EXACT(mix_initializer_call(mix_initializer_new("identity", .gain = 3), MIX_SHAPE(2, 3), MIX_FLOAT32),
               3, 0, 0, 0, 3, 0);
  EXPECT_EXACT(mix_initializer_call(mix_initializer_new("ones"), MIX_SCALAR, MIX_BOOL), 1);
}
static void plain_distributions(void **state) {
  (void)state;
  expect_moments(mix_initializer_new("random_normal"), 0, 0.05, -0.4, 0.4);
  expect_moments(mix_initializer_new("random_normal", .mean = 3, .stddev = 2), 3, 2, -20, 20);
  expect_moments(mix_initializer_new("random_uniform"), 0, 0.1 / sqrt(12), -0.05, 0.05);
  expect_moments(mix_initializer_new("random_uniform", .minval = 1, .maxval = 3), 2, 2 / sqrt(12), 1, 3);
  expect_moments(mix_initializer_new("random_uniform", .minval = MIX_ZERO, .maxval = 1), 0.5, 1 / sqrt(12), 0,
                 1);
  expect_moments(mix_initializer_new("truncated_normal", .stddev = 1), 0, 0.87962566103423978, -2, 2);
}
/* shape (200, 200): both fans are 200 */
static void variance_scaling(void **state) {
  (void)state;
  double glorot = sqrt(6.0 / 400), he = sqrt(6.0 / 200), cut = 2 / 0.87962566103423978;
  expect_moments(mix_initializer_new("glorot_uniform"), 0, glorot / sqrt(3), -glorot, glorot);
  expect_moments(mix_initializer_new("he_uniform"), 0, he / sqrt(3), -he, he);
  expect_moments(mix_initializer_new("lecun_uniform"), 0, sqrt(1.0 / 200), -sqrt(3.0 / 200), sqrt(3.0 / 200));
  expect_moments(mix_initializer_new("glorot_normal"), 0, sqrt(1.0 / 200), -cut * sqrt(1.0 / 200),
                 cut * sqrt(1.0 / 200));
  expect_moments(mix_initializer_new("HeNormal"), 0, sqrt(2.0 / 200), -cut * sqrt(2.0 / 200),
                 cut * sqrt(2.0 / 200));
  expect_moments(mix_initializer_new("lecun_normal"), 0, sqrt(1.0 / 200), -cut * sqrt(1.0 / 200),
                 cut * sqrt(1.0 / 200));
  expect_moments(mix_initializer_new("variance_scaling", .scale = 4, .mode = "fan_out",
                                     .distribution = "untruncated_normal"),
                 0, sqrt(4.0 / 200), -1, 1);
}
/* L24: Conv2D 3x3, 16 -> 32: fan_in 144, fan_out 288, limit sqrt(6/432). Both fans of a vector are its
 * length. */
static void L24_fans(void **state) {
  (void)state;
  double limit = sqrt(6.0 / 432);
  mix_tensor *kernel = mix_initializer_call(mix_initializer_new("glorot_uniform", .seed = 1),
                                            MIX_SHAPE(3, 3, 16, 32), MIX_FLOAT32);
  double largest = mix_tensor_item(mix_reduce_max(mix_abs(kernel), MIX_ALL_AXES, false));
  assert_true(fabs(limit - 0.1178511) < 5e-8);
  assert_true(largest <= limit * (1 + 1e-6) &&
              largest > 0.99 * limit); /* missed with probability 0.99^4608 = 1e-20 */
  mix_tensor *bias =
      mix_initializer_call(mix_initializer_new("glorot_uniform", .seed = 1), MIX_SHAPE(600), MIX_FLOAT32);
  largest = mix_tensor_item(mix_reduce_max(mix_abs(bias), MIX_ALL_AXES, false));
  assert_true(largest <= sqrt(6.0 / 1200) * (1 + 1e-6) &&
              largest > 0.95 * sqrt(6.0 / 1200)); /* 0.95^600 = 4e-14 */
}
/* The rows or columns, whichever are fewer, are orthonormal. Products in float64 have an error of at most the
 * dimension times a rounding. */
static void expect_orthogonal(int64_t rows, int64_t columns, double gain) {
  mix_tensor *q = mix_initializer_call(mix_initializer_new("orthogonal", .gain = gain),
                                       MIX_SHAPE(rows, columns), MIX_FLOAT64);
  bool wide = rows < columns;
  int64_t n = wide ? rows : columns;
  mix_tensor *product = mix_matmul(q, q, !wide, wide);
  double *entries = test_calloc((size_t)(n * n), sizeof *entries);
  assert_int_equal(mix_tensor_read(product, MIX_FLOAT64, entries, n * n), MIX_OK);
  for (int64_t i = 0; i < n * n; i++)
    assert_true(fabs(entries[i] - (i % (n + 1) ? 0 : gain * gain)) < 1e-13 * gain * gain);
  test_free(entries);
}
static void orthogonal(void **state) {
  (void)state;
  expect_orthogonal(7, 7, 1);
  expect_orthogonal(20, 6, 1);
  expect_orthogonal(6, 20, 2);
  expect_orthogonal(1, 5, 1);
  mix_tensor *kernel =
      mix_initializer_call(mix_initializer_new("orthogonal"), MIX_SHAPE(2, 3, 4), MIX_FLOAT32);
  expect_shape(kernel, MIX_SHAPE(2, 3, 4));
  mix_tensor *flat = mix_reshape(kernel, MIX_SHAPE(6, 4));
  EXPECT(mix_matmul(flat, flat, true, false), 1e-6, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1);
}
static void seeds(void **state) {
  (void)state;
  double first[N];
  memcpy(first, drawn(mix_initializer_new("glorot_uniform", .seed = 5), MIX_FLOAT32), sizeof first);
  assert_memory_equal(first, drawn(mix_initializer_new("glorot_uniform", .seed = 5), MIX_FLOAT32),
                      sizeof first);
  assert_memory_not_equal(first, drawn(mix_initializer_new("glorot_uniform", .seed = 6), MIX_FLOAT32),
                          sizeof first);
  assert_memory_not_equal(first, drawn(mix_initializer_new("glorot_uniform"), MIX_FLOAT32), sizeof first);
  mix_set_seed(1);
  memcpy(first, drawn(mix_initializer_new("he_normal"), MIX_FLOAT32), sizeof first);
  /* A different creation number gives a different seed. */
  assert_memory_not_equal(first, drawn(mix_initializer_new("he_normal"), MIX_FLOAT32), sizeof first);
  mix_set_seed(1);
  assert_memory_equal(first, drawn(mix_initializer_new("he_normal"), MIX_FLOAT32), sizeof first);
}
static void half_precision_is_rounded_float32(void **state) {
  (void)state;
  mix_initializer *initializer = mix_initializer_new("glorot_uniform", .seed = 5);
  double single[N];
  memcpy(single, drawn(initializer, MIX_FLOAT32), sizeof single);
  drawn(initializer, MIX_BFLOAT16);
  for (int i = 0; i < N; i++) assert_true(values[i] == mix_round_to((float)single[i], MIX_BFLOAT16));
}
static void refusals(void **state) {
  (void)state;
  expect_refused(mix_initializer_new("glorot"), MIX_VALUE_ERROR, "glorot");
  /* each name once, though aliases repeat some */
  expect_refused(
      mix_initializer_new("glorot_unifrom"), MIX_VALUE_ERROR,
      "initializer: 'glorot_unifrom' is not known; did you mean 'glorot_uniform'?; expected one of "
      "zeros, ones, constant, identity, random_normal, random_uniform, truncated_normal, "
      "variance_scaling, glorot_uniform, glorot_normal, he_uniform, he_normal, lecun_uniform, "
      "lecun_normal, orthogonal");
  assert_null(mix_initializer_new("nobody"));
  const char *zeros = strstr(mix_error_message(), "zeros");
  assert_true(zeros && !strstr(zeros + 1, "zeros"));
  mix_error_clear();
  expect_refused(mix_initializer_new(NULL), MIX_VALUE_ERROR, "NULL");
  expect_refused(mix_initializer_new("variance_scaling", .scale = -1), MIX_VALUE_ERROR, "positive");
  expect_refused(mix_initializer_new("variance_scaling", .mode = "fan"), MIX_VALUE_ERROR, "fan_avg");
  expect_refused(mix_initializer_new("variance_scaling", .mode = "fan_uot"), MIX_VALUE_ERROR,
                 "'fan_uot' is not known; did you mean 'fan_out'?; expected");
  expect_refused(mix_initializer_new("variance_scaling", .distribution = "flat"), MIX_VALUE_ERROR, "flat");
  expect_refused(mix_initializer_call(mix_initializer_new("orthogonal"), MIX_SHAPE(3), MIX_FLOAT32),
                 MIX_VALUE_ERROR, "rank");
  expect_refused(mix_initializer_call(mix_initializer_new("identity"), MIX_SHAPE(3), MIX_FLOAT32),
                 MIX_VALUE_ERROR, "matrix");
  expect_refused(mix_initializer_call(mix_initializer_new("he_normal"), MIX_SHAPE(3), MIX_INT32),
                 MIX_VALUE_ERROR, "int32");
  expect_refused(mix_initializer_call(mix_initializer_new("zeros"), MIX_SHAPE(3, MIX_UNKNOWN), MIX_INT32),
                 MIX_VALUE_ERROR, "None");
}

/* ---- regularisers and constraints ---- */

static void regularizers(void **state) {
  (void)state;
  mix_tensor *w = MATRIX(MIX_FLOAT64, 2, 2, 1, -2, 3, 0);
  EXPECT(mix_regularizer_call(mix_regularizer_new("l1"), w), 1e-15, 0, 0.06);
  EXPECT(mix_regularizer_call(mix_regularizer_new("L2"), w), 1e-15, 0, 0.14);
  EXPECT(mix_regularizer_call(mix_regularizer_new("l1_l2"), w), 1e-15, 0, 0.2); /* tf_keras: 0.01 each */
  EXPECT(mix_regularizer_call(mix_regularizer_new("l1_l2", .l1 = 1), w), 1e-15, 0, 6);
  EXPECT(mix_regularizer_call(mix_regularizer_new("l1_l2", .l1 = 1, .l2 = 0.5), w), 1e-15, 0, 13);
  mix_set_semantics("keras3");
  EXPECT_EXACT(mix_regularizer_call(mix_regularizer_new("l1_l2"), w), 0);
  /* rows (1, -2)/sqrt 5 and (1, 0): |cosine| 1/sqrt 5, one pair */
  EXPECT(mix_regularizer_call(mix_regularizer_new("orthogonal_regularizer", .factor = 2), w), 1e-15, 0,
         2 / sqrt(5));
  expect_refused(mix_regularizer_new("l3"), MIX_VALUE_ERROR, "l3");
  expect_refused(mix_regularizer_new("l2", .l2 = -1), MIX_VALUE_ERROR, "negative");
}
static void constraints(void **state) {
  (void)state;
  mix_tensor *w = MATRIX(MIX_FLOAT64, 2, 2, 3, 0.3, 4, -0.4); /* columns of norms 5 and 0.5 */
  EXPECT(mix_constraint_call(mix_constraint_new("max_norm"), w), 1e-6, 0, 1.2, 0.3, 1.6, -0.4);
  EXPECT(mix_constraint_call(mix_constraint_new("unit_norm"), w), 1e-6, 0, 0.6, 0.6, 0.8, -0.8);
  EXPECT_EXACT(mix_constraint_call(mix_constraint_new("non_neg"), w), 3, 0.3, 4, 0);
  EXPECT(
      mix_constraint_call(mix_constraint_new("min_max_norm", .min_value = 1, .max_value = 2, .rate = 0.5), w),
      1e-6, 0, 3 * 0.7, 0.45, 4 * 0.7, -0.6);
  /* both axes: a norm of 5.024938 */
  EXPECT(mix_constraint_call(mix_constraint_new("unit_norm", .axes = MIX_AXES(0, 1)), w), 1e-6, 0,
         3 / sqrt(25.25), 0.3 / sqrt(25.25), 4 / sqrt(25.25), -0.4 / sqrt(25.25));
  expect_refused(mix_constraint_new("unit_norm", .axes = {.count = 9}), MIX_VALUE_ERROR, "axes.count is 9");
  expect_refused(mix_constraint_new("tight"), MIX_VALUE_ERROR, "tight");
}

/* tf_keras takes the middle and the rings around it from the diagonal. */
static void radial_constraint(void **state) {
  (void)state;
  static const double wanted[4][25] = {
      {0, 0, 0, 0},
      {4, 4, 4, 4, 0, 4, 4, 4, 4},
      {15, 15, 15, 15, 15, 5, 5, 15, 15, 5, 5, 15, 15, 15, 15, 15},
      {18, 18, 18, 18, 18, 18, 12, 12, 12, 18, 18, 12, 6, 12, 18, 18, 12, 12, 12, 18, 18, 18, 18, 18, 18}};
  mix_constraint *radial = mix_constraint_new("RadialConstraint");
  for (int64_t size = 2; size < 6; size++) {
    mix_tensor *w = mix_range(0, (double)(size * size), 1, MIX_FLOAT32);
    mix_tensor *got = mix_constraint_call(radial, mix_reshape(w, MIX_SHAPE(size, size, 1, 1)));
    expect_values(got, size * size, wanted[size - 2], 0, 0);
  }
  mix_tensor *channels = mix_reshape(mix_range(0, 24, 1, MIX_FLOAT32), MIX_SHAPE(2, 2, 2, 3));
  EXPECT_EXACT(mix_constraint_call(radial, channels), 0, 1, 2, 3, 4, 5, 0, 1, 2, 3, 4, 5, 0, 1, 2, 3, 4, 5, 0,
               1, 2, 3, 4, 5);
  expect_refused(mix_constraint_call(radial, mix_fill(MIX_SHAPE(2, 3, 1, 1), 0, MIX_FLOAT32)),
                 MIX_VALUE_ERROR, "(2, 3, 1, 1)");
  expect_refused(mix_constraint_call(radial, mix_fill(MIX_SHAPE(2, 2), 0, MIX_FLOAT32)), MIX_VALUE_ERROR,
                 "(2, 2)");
}

static mix_tensor *a_penalty(void *context, mix_tensor *weight) {
  (void)context;
  return weight;
}
static void names_and_seeds(void **state) {
  (void)state;
  assert_int_equal(mix_initializer_seed(mix_initializer_new("he_normal", .seed = 7)), 7);
  assert_true(mix_initializer_seed(mix_initializer_new("he_normal")) != 0); /* a seed of its own */
  assert_int_equal(mix_initializer_seed(mix_initializer_new("zeros")), 0);
  assert_string_equal(mix_regularizer_name(mix_regularizer_new("L1L2")), "l1_l2");
  assert_null(mix_regularizer_name(mix_regularizer_new(.function = a_penalty)));
  assert_string_equal(mix_constraint_name(mix_constraint_new("NonNeg")), "non_neg");
  assert_null(mix_constraint_name(mix_constraint_new(.function = a_penalty)));
}

/* Each class with its rows in Keras's order; numbers that are not the defaults, and zeros that are zero. */
static void configs_are_read_and_written(void **state) {
  (void)state;
  static const struct {
    char what;
    const char *class_name, *config;
  } cases[] = {{'i', "Zeros", "{}"},
               {'i', "Ones", "{}"},
               {'i', "Constant", "{\"value\": 2.5}"},
               {'i', "Constant", "{\"value\": [[1.0, -2.0], [0.5, 4.0]]}"},
               {'i', "Constant",
                "{\"value\": {\"class_name\": \"__numpy__\", \"config\": {\"value\": [1.0, 2.0], "
                "\"dtype\": \"float32\"}}}"},
               {'i', "Identity", "{\"gain\": 0.0}"},
               {'i', "RandomNormal", "{\"mean\": 1.0, \"stddev\": 0.0, \"seed\": null}"},
               {'i', "TruncatedNormal", "{\"mean\": 0.0, \"stddev\": 2.0, \"seed\": 5}"},
               {'i', "RandomUniform", "{\"minval\": 0.0, \"maxval\": 0.0, \"seed\": 5}"},
               {'i', "VarianceScaling",
                "{\"scale\": 2.0, \"mode\": \"fan_out\", \"distribution\": \"uniform\", \"seed\": 5}"},
               {'i', "GlorotUniform", "{\"seed\": null}"},
               {'i', "HeNormal", "{\"seed\": 7}"},
               {'i', "Orthogonal", "{\"gain\": 2.0, \"seed\": 7}"},
               {'r', "L1", "{\"l1\": 0.5}"},
               {'r', "L2", "{\"l2\": 0.0}"},
               {'r', "L1L2", "{\"l1\": 0.0, \"l2\": 0.5}"},
               {'r', "OrthogonalRegularizer", "{\"factor\": 0.0, \"mode\": \"columns\"}"},
               {'c', "MaxNorm", "{\"max_value\": 0.0, \"axis\": 1}"},
               {'c', "UnitNorm", "{\"axis\": 0}"},
               {'c', "NonNeg", "{}"},
               {'c', "MinMaxNorm", "{\"min_value\": 0.5, \"rate\": 0.0, \"max_value\": 3.0, \"axis\": -1}"}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const char what = cases[i].what;
    char text[300];
    snprintf(text, sizeof text,
             "{\"module\": \"keras.%s\", \"class_name\": \"%s\", \"config\": %s, \"registered_name\": null}",
             what == 'i'   ? "initializers"
             : what == 'r' ? "regularizers"
                           : "constraints",
             cases[i].class_name, cases[i].config);
    json_t *json = mix_json_parse(text, "test");
    json_t *written =
        what == 'i'   ? mix_initializer_to_json(mix_initializer_from_json(json), &mix_semantics_tf_keras)
        : what == 'r' ? mix_regularizer_to_json(mix_regularizer_from_json(json, &mix_semantics_tf_keras))
                      : mix_constraint_to_json(mix_constraint_from_json(json));
    char *again = mix_json_text(written);
    assert_string_equal(again, text);
    mix_free(again);
    json_decref(written);
    json_decref(json);
  }
}

/* Constant(matrix) of a config: broadcast to the shape and cast to its dtype. */
static void constant_arrays(void **state) {
  (void)state;
  static const char *const configs[] = {
      "{\"class_name\": \"Constant\", \"config\": {\"value\": [1, 2.5]}}",
      "{\"class_name\": \"Constant\", \"config\": {\"value\": {\"class_name\": \"__numpy__\", \"config\": "
      "{\"value\": [1.0, 2.5], \"dtype\": \"float64\"}}}}"};
  for (int i = 0; i < 2; i++) {
    json_t *json = mix_json_parse(configs[i], "test");
    mix_initializer *initializer = mix_initializer_from_json(json);
    double got[4];
    mix_tensor *value = mix_initializer_call(initializer, MIX_SHAPE(2, 2), MIX_FLOAT16);
    assert_int_equal(mix_tensor_dtype(value), MIX_FLOAT16);
    assert_int_equal(mix_tensor_read(value, MIX_FLOAT64, got, 4), MIX_OK);
    assert_true(got[0] == 1 && got[1] == 2.5 && got[2] == 1 && got[3] == 2.5);
    assert_null(mix_initializer_call(initializer, MIX_SHAPE(2, 3), MIX_FLOAT32));
    assert_int_equal(mix_error(), MIX_VALUE_ERROR);
    mix_error_clear();
    json_decref(json);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {TEST(constants),
                                     TEST(plain_distributions),
                                     TEST(variance_scaling),
                                     TEST(L24_fans),
                                     TEST(orthogonal),
                                     TEST(seeds),
                                     TEST(half_precision_is_rounded_float32),
                                     TEST(refusals),
                                     TEST(regularizers),
                                     TEST(constraints),
                                     TEST(radial_constraint),
                                     TEST(names_and_seeds),
                                     TEST(configs_are_read_and_written),
                                     TEST(constant_arrays)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
