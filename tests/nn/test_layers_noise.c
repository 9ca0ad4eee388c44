/* Noise, penalties and functions: layers that act in training, and Lambda (docs/spec/keras.md, sections 1 and
 * 7). */
#include "nn/layer_support.h"

enum { N = 4096 };
static void read_training(mix_layer *layer, mix_tensor *x, double *values) {
  mix_tensor *y = mix_call(layer, x, .training = MIX_TRUE);
  assert_non_null(y);
  expect_dtype(y, mix_layer_compute_dtype(layer));
  assert_int_equal(mix_tensor_read(y, MIX_FLOAT64, values, N), MIX_OK);
}
static void moments_of(const double *values, double *mean, double *variance) {
  *mean = *variance = 0;
  for (int i = 0; i < N; i++) *mean += values[i] / N;
  for (int i = 0; i < N; i++) *variance += (values[i] - *mean) * (values[i] - *mean) / N;
}

static void only_in_training(void **state) {
  (void)state;
  mix_tensor *x = mix_fill(MIX_SHAPE(1, 2, 2), 3, MIX_FLOAT32);
  mix_layer *layers[] = {mix_spatial_dropout1d(0.5), mix_gaussian_noise(1), mix_gaussian_dropout(0.5),
                         mix_alpha_dropout(0.5)};
  mix_tensor *mask = mix_tensor_from((uint8_t[]){1, 0}, MIX_BOOL, MIX_SHAPE(1, 2));
  for (int i = 0; i < 4; i++) {
    mix_tensor *y = mix_call(layers[i], x, .mask = mask);
    EXPECT_EXACT(y, 3, 3, 3, 3);
    assert_ptr_equal(y->mask, mask);
    assert_int_equal(mix_list_count(mix_layer_weights(layers[i])), 0);
    expect_shape(mix_call(layers[i], mix_input(.shape = MIX_SHAPE(2, 2)), .training = MIX_TRUE),
                 MIX_SHAPE(MIX_UNKNOWN, 2, 2));
  }
  mix_layer *none[] = {mix_spatial_dropout1d(0), mix_gaussian_noise(0), mix_gaussian_dropout(0),
                       mix_alpha_dropout(0)};
  for (int i = 0; i < 4; i++) EXPECT_EXACT(mix_call(none[i], x, .training = MIX_TRUE), 3, 3, 3, 3);
}
static void L29_spatial_dropout(void **state) {
  (void)state;
  const struct {
    mix_layer *layer;
    mix_shape shape;
    int inner; /* elements along the channel axis */
    bool first;
  } rows[] = {{mix_spatial_dropout1d(0.25, .seed = 5), MIX_SHAPE(8, 4, 8), 8, false},
              {mix_spatial_dropout2d(0.25, .seed = 6), MIX_SHAPE(8, 2, 2, 8), 8, false},
              {mix_spatial_dropout3d(0.25, .seed = 7), MIX_SHAPE(8, 2, 2, 1, 8), 8, false},
              {mix_spatial_dropout2d(0.25, .seed = 8, .data_format = "channels_first"), MIX_SHAPE(8, 8, 2, 2),
               8, true}};
  for (int r = 0; r < 4; r++) {
    double values[256];
    mix_tensor *y = mix_call(rows[r].layer, mix_fill(rows[r].shape, 3, MIX_FLOAT32), .training = MIX_TRUE);
    mix_tensor_read(y, MIX_FLOAT64, values, 256);
    int dropped = 0;
    for (int sample = 0; sample < 8; sample++)
      for (int channel = 0; channel < 8; channel++)
        for (int place = 0; place < 4; place++) {
          int channels_last = (sample * 4 + place) * 8 + channel,
              channels_first = (sample * 8 + channel) * 4 + place;
          double value = values[rows[r].first ? channels_first : channels_last];
          double same = values[rows[r].first ? channels_first - place : channels_last - 8 * place];
          assert_true(value == same);                        /* whole channels */
          assert_true(value == 0 || fabs(value - 4) < 1e-6); /* 3 * 4/3 in float32 */
          dropped += value == 0;
        }
    /* 64 random decisions: 16 +- 5 standard deviations of sqrt(64 * 0.25 * 0.75) = 3.5 */
    assert_in_range(dropped / 4, 1, 33);
  }
  expect_refused(mix_spatial_dropout1d(1.5), MIX_VALUE_ERROR, "rate is 1.5");
  expect_refused(mix_spatial_dropout1d(0.5, .data_format = "channels_first"), MIX_VALUE_ERROR,
                 "channels_first");
  expect_refused(mix_spatial_dropout2d(0.5, .data_format = "sideways"), MIX_VALUE_ERROR, "sideways");
  expect_refused(mix_call(mix_spatial_dropout1d(0.5), mix_fill(MIX_SHAPE(2, 2), 1, MIX_FLOAT32)),
                 MIX_VALUE_ERROR, "rank");
}
/* Means are within 5 standard errors s / sqrt(N). The variance of N normal numbers has deviation s^2 sqrt(2 /
 * N). 16-bit dtypes round each number by 2^-9 at most, which changes neither by as much. */
static void gaussian_noise(void **state) {
  (void)state;
  static const char *const policies[] = {"float32", "mixed_float16", "mixed_bfloat16", "float64"};
  for (int p = 0; p < 4; p++) {
    double a[N], b[N], mean, variance, s = 0.5;
    mix_layer *layer = mix_gaussian_noise(.stddev = s, .seed = 3, .dtype = policies[p]);
    mix_tensor *x = mix_fill(MIX_SHAPE(1, N), 1, MIX_FLOAT32);
    read_training(layer, x, a);
    read_training(layer, x, b);
    assert_memory_not_equal(a, b, sizeof a); /* the generator advances */
    moments_of(a, &mean, &variance);
    assert_true(fabs(mean - 1) < 5 * s / sqrt(N));
    assert_true(fabs(variance - s * s) < 5 * s * s * sqrt(2. / N));
  }
  expect_refused(mix_gaussian_noise(-1), MIX_VALUE_ERROR, "stddev is -1");
}
static void gaussian_dropout(void **state) {
  (void)state;
  double a[N], mean, variance, s = 2 * sqrt(0.2 / 0.8);
  read_training(mix_gaussian_dropout(.rate = 0.2, .seed = 3), mix_fill(MIX_SHAPE(1, N), 2, MIX_FLOAT32), a);
  moments_of(a, &mean, &variance);
  assert_true(fabs(mean - 2) < 5 * s / sqrt(N));
  assert_true(fabs(variance - s * s) < 5 * s * s * sqrt(2. / N));
  expect_refused(mix_gaussian_dropout(1), MIX_VALUE_ERROR, "rate is 1");
  expect_refused(mix_gaussian_dropout(-0.5), MIX_VALUE_ERROR, "rate is -0.5");
}
static void alpha_dropout(void **state) {
  (void)state;
  const double r = 0.25, lowest = -1.7580993408473766, a = pow((1 - r) * (1 + r * lowest * lowest), -0.5),
               b = -a * lowest * r;
  double values[N];
  int dropped = 0;
  read_training(mix_alpha_dropout(.rate = r, .seed = 3), mix_fill(MIX_SHAPE(1, N), 1, MIX_FLOAT32), values);
  for (int i = 0; i < N; i++) {
    bool low = fabs(values[i] - (a * lowest + b)) < 1e-6;
    assert_true(low || fabs(values[i] - (a + b)) < 1e-6);
    dropped += low;
  }
  assert_true(fabs(dropped - r * N) < 5 * sqrt(N * r * (1 - r)));
  /* decisions shared along an axis */
  mix_layer *shared = mix_alpha_dropout(.rate = 0.5, .seed = 3, .noise_shape = MIX_SHAPE(MIX_UNKNOWN, 1));
  mix_tensor_read(mix_call(shared, mix_fill(MIX_SHAPE(64, 4), 1, MIX_FLOAT32), .training = MIX_TRUE),
                  MIX_FLOAT64, values, 256);
  for (int i = 0; i < 256; i++) assert_true(values[i] == values[i / 4 * 4]);
  expect_refused(mix_alpha_dropout(1), MIX_VALUE_ERROR, "rate is 1");
  expect_refused(mix_call(shared, mix_fill(MIX_SHAPE(1, 2, 3), 1, MIX_FLOAT32)), MIX_VALUE_ERROR,
                 "noise_shape");
}
static mix_list *train(void *layer, mix_list *arguments) {
  return mix_list_of(mix_call(layer, mix_list_get(arguments, 0), .training = MIX_TRUE));
}
static void captured_noise_advances(void **state) {
  (void)state;
  mix_layer *layers[] = {mix_spatial_dropout1d(0.5, .seed = 4), mix_gaussian_noise(1, .seed = 4),
                         mix_gaussian_dropout(0.5, .seed = 4), mix_alpha_dropout(0.5, .seed = 4)};
  mix_list *arguments = mix_list_of(mix_fill(MIX_SHAPE(4, 2, 8), 1, MIX_FLOAT32));
  for (int i = 0; i < 4; i++) {
    double a[64], b[64];
    mix_function *function = mix_function_new(train, layers[i]);
    mix_tensor_read(mix_list_get(mix_function_call(function, arguments), 0), MIX_FLOAT64, a, 64);
    mix_tensor_read(mix_list_get(mix_function_call(function, arguments), 0), MIX_FLOAT64, b, 64);
    assert_memory_not_equal(a, b, sizeof a);
  }
}
static void activity_regularization(void **state) {
  (void)state;
  mix_tensor *x = MATRIX(MIX_FLOAT32, 2, 2, 1, -2, 3, -4); /* sum of absolutes 10, of squares 30 */
  for (int i = 0; i < 2; i++) {
    mix_set_semantics(i ? "keras3" : "tf_keras");
    mix_layer *layer = mix_activity_regularization(.l1 = 0.5, .l2 = 0.25);
    EXPECT_EXACT(mix_call(layer, x), 1, -2, 3, -4);
    mix_list *losses = mix_layer_losses(layer);
    assert_int_equal(mix_list_count(losses), 1);
    EXPECT_EXACT(mix_list_get(losses, 0), 6.25); /* divided by the batch size */
  }
  expect_refused(mix_activity_regularization(.l1 = -1), MIX_VALUE_ERROR, "l1");
}

/* ---- Lambda ---- */

static mix_tensor *scaled_if_training(void *context, const mix_call_args *args) {
  mix_tensor *x = mix_call_input(args, 0);
  return args->training ? mix_multiply(x, mix_scalar_like(x, *(double *)context)) : x;
}
static mix_tensor *sum_of_inputs(void *context, const mix_call_args *args) {
  (void)context;
  return mix_add(mix_call_input(args, 0), mix_call_input(args, 1));
}
static mix_tensor *positive(void *context, const mix_call_args *args) {
  (void)context;
  mix_tensor *x = mix_call_input(args, 0);
  return mix_greater(x, mix_scalar_like(x, 0));
}
static mix_tensor *nothing(void *context, const mix_call_args *args) {
  (void)context, (void)args;
  return NULL;
}
static void lambda(void **state) {
  (void)state;
  double factor = 3;
  mix_tensor *x = MATRIX(MIX_FLOAT32, 1, 2, 1, -2),
             *mask = mix_tensor_from((uint8_t[]){1, 0}, MIX_BOOL, MIX_SHAPE(1, 2));
  mix_layer *layer =
      mix_lambda(scaled_if_training, .context = &factor, .dtype = "mixed_float16", .function_name = "scaled");
  EXPECT_EXACT(mix_call(layer, x, .training = MIX_TRUE), 3, -6);
  mix_tensor *y = mix_call(layer, x, .mask = mask);
  expect_dtype(y, MIX_FLOAT16);
  EXPECT_EXACT(y, 1, -2);
  assert_null(y->mask); /* dropped without a mask function */
  EXPECT_EXACT(
      mix_cast(mix_call(mix_lambda(scaled_if_training, .context = &factor, .mask = positive), x)->mask,
               MIX_INT32),
      1, 0);
  EXPECT_EXACT(mix_call(mix_lambda(sum_of_inputs), mix_list_of(x, x)), 2, -4);
  expect_shape(mix_call(layer, mix_input(.shape = MIX_SHAPE(2))), MIX_SHAPE(MIX_UNKNOWN, 2));
  expect_refused(mix_lambda(NULL), MIX_TYPE_ERROR, "function");
  expect_refused(mix_call(mix_lambda(nothing), x), MIX_TYPE_ERROR, "no results");
  expect_refused(mix_layer_from_config("Lambda", mix_layer_config(layer), NULL), MIX_VALUE_ERROR, "scaled");
}

int main(void) {
  const struct CMUnitTest tests[] = {TEST(only_in_training),        TEST(L29_spatial_dropout),
                                     TEST(gaussian_noise),          TEST(gaussian_dropout),
                                     TEST(alpha_dropout),           TEST(captured_noise_advances),
                                     TEST(activity_regularization), TEST(lambda)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
