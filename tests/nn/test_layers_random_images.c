/* The layers that change images at random: seeds, ranges and shares of what is drawn, and that nothing
 * changes outside training. */
#include "nn/layer_support.h"
#include <mixtape/image.h>

enum { IMAGES = 2000 };

/* The same small image many times. */
static mix_tensor *images(mix_tensor *image) {
  mix_shape shape = mix_tensor_shape(image);
  return mix_broadcast_to(image, MIX_SHAPE(IMAGES, shape.dims[1], shape.dims[2], shape.dims[3]));
}
/* (1, 1, 2, 1) */
static mix_tensor *pair(double left, double right) {
  return mix_tensor_from_doubles((double[]){left, right}, MIX_FLOAT32, MIX_SHAPE(1, 1, 2, 1));
}
static void read_all(mix_tensor *y, int count, double *values) {
  if (!y) fail_msg("%s", mix_error_message());
  assert_int_equal(mix_shape_size(mix_tensor_shape(y)), count);
  assert_int_equal(mix_tensor_read(y, MIX_FLOAT64, values, count), MIX_OK);
}

static void same_seed_same_images(void **state) {
  (void)state;
  mix_tensor *x = numbers(MIX_SHAPE(3, 5, 4, 2), 1, MIX_FLOAT32, NULL);
/* clang-format off */
#define EACH(X)                                                                                              \
  X(mix_random_flip, )                                                                                       \
  X(mix_random_rotation, 0.2, )                                                                              \
  X(mix_random_zoom, 0.5, )                                                                                  \
  X(mix_random_translation, 0.4, 0.4, )                                                                      \
  X(mix_random_crop, 2, 2, )                                                                                 \
  X(mix_random_contrast, 0.9, .value_range = {-2, 2}, )                                                      \
  X(mix_random_brightness, 0.9, .value_range = {-2, 2}, )
/* clang-format on */
#define TWICE(layer, ...)                                                                                    \
  {                                                                                                          \
    mix_layer *a = layer(__VA_ARGS__.seed = 5), *b = layer(__VA_ARGS__.seed = 5),                            \
              *c = layer(__VA_ARGS__.seed = 6);                                                              \
    double first[SIZE], second[SIZE], third[SIZE], again[SIZE];                                              \
    mix_tensor *y = mix_call(a, x, .training = MIX_TRUE);                                                    \
    const int count = (int)mix_shape_size(mix_tensor_shape(y));                                              \
    read_all(y, count, first);                                                                               \
    read_all(mix_call(b, x, .training = MIX_TRUE), count, second);                                           \
    assert_memory_equal(first, second, sizeof(double) * (size_t)count);                                      \
    bool differs = false;                                                                                    \
    for (int i = 0; i < 20 && !differs; i++) { /* a flip may be drawn again */                               \
      read_all(mix_call(c, x, .training = MIX_TRUE), count, third);                                          \
      read_all(mix_call(a, x, .training = MIX_TRUE), count, again);                                          \
      differs = memcmp(first, third, sizeof(double) * (size_t)count) &&                                      \
                memcmp(first, again, sizeof(double) * (size_t)count);                                        \
    }                                                                                                        \
    assert_true(differs);                                                                                    \
  }
  EACH(TWICE)
}

/* Keras's default of the argument `training` is true; a model's call decides otherwise. */
static void only_in_training(void **state) {
  (void)state;
  mix_tensor *x = numbers(MIX_SHAPE(2, 5, 4, 2), 1, MIX_FLOAT32, NULL);
  mix_layer *layer = mix_random_brightness(.factor = MIX_FACTORS(0.5, 1), .value_range = {-10, 10});
  double before[SIZE], after[SIZE];
  const int count = (int)mix_shape_size(mix_tensor_shape(x));
  read_all(x, count, before);
  read_all(mix_call(layer, x, .training = MIX_FALSE), count, after);
  assert_memory_equal(before, after, sizeof(double) * (size_t)count);
  read_all(mix_call(layer, x), count, after);
  for (int i = 0; i < count; i++) assert_true(after[i] >= before[i] + 9.99 || after[i] == 10);
}

/* Of 2000 draws with probability p, the share is within 5 standard deviations. */
static void share_is(int count, double p) {
  const double deviation = sqrt(p * (1 - p) / IMAGES);
  if (fabs((double)count / IMAGES - p) > 5 * deviation)
    fail_msg("%d of %d; expected a share of %g", count, IMAGES, p);
}

static void flips(void **state) {
  (void)state;
  static const char *const generations[] = {"tf_keras", "keras3"};
  const double cells[] = {1, 2, 3, 4};
  mix_tensor *x = images(mix_tensor_from_doubles(cells, MIX_FLOAT32, MIX_SHAPE(1, 2, 2, 1)));
  static double y[4 * IMAGES];
  for (int g = 0; g < 2; g++) {
    mix_set_semantics(generations[g]);
    int seen[5] = {0}; /* by the first cell: 1 as it was, 2 left and right, 3 up and down, 4 both */
    read_all(mix_call(mix_random_flip(.seed = 1), x, .training = MIX_TRUE), 4 * IMAGES, y);
    for (int i = 0; i < IMAGES; i++) {
      seen[(int)y[4 * i]]++;
      assert_true(y[4 * i] + y[4 * i + 3] == 5 && y[4 * i + 1] + y[4 * i + 2] == 5);
    }
    for (int c = 1; c <= 4; c++)
      if (g == 0)
        share_is(seen[c], 0.25);
      else if (c == 1 || c == 4)
        share_is(seen[c], 0.5);
      else
        assert_int_equal(seen[c], 0);
    read_all(mix_call(mix_random_flip("horizontal", .seed = 1), x, .training = MIX_TRUE), 4 * IMAGES, y);
    memset(seen, 0, sizeof seen);
    for (int i = 0; i < IMAGES; i++) seen[(int)y[4 * i]]++;
    share_is(seen[2], 0.5);
    assert_int_equal(seen[3] + seen[4], 0);
  }
}

static void crops(void **state) {
  (void)state;
  mix_tensor *x = mix_reshape(mix_range(0, 20, 1, MIX_FLOAT32), MIX_SHAPE(1, 4, 5, 1));
  mix_layer *layer = mix_random_crop(3, 3, .seed = 2);
  bool seen[2][3] = {{false}};
  for (int i = 0; i < 200; i++) {
    double y[9];
    read_all(mix_call(layer, x, .training = MIX_TRUE), 9, y);
    const int top = (int)y[0] / 5, left = (int)y[0] % 5;
    assert_true(top < 2 && left < 3);
    for (int j = 0; j < 9; j++) assert_true(y[j] == (top + j / 3) * 5 + left + j % 3);
    seen[top][left] = true;
  }
  for (int i = 0; i < 6; i++) assert_true(seen[i / 3][i % 3]);
}

/* Checks that the numbers fill [low, high] evenly: extremes within 1 % of the width, the mean within 5
 * standard deviations of that of 2000 uniform numbers. */
static void fill_range(const double *drawn, double low, double high) {
  double least = INFINITY, most = -INFINITY, sum = 0;
  for (int i = 0; i < IMAGES; i++) {
    least = fmin(least, drawn[i]);
    most = fmax(most, drawn[i]);
    sum += drawn[i];
  }
  const double width = high - low, rounding = 1e-4 * fmax(fabs(low), fabs(high));
  if (least < low - rounding || least > low + width / 100 || most > high + rounding ||
      most < high - width / 100 || fabs(sum / IMAGES - (low + high) / 2) > 5 * width / sqrt(12. * IMAGES))
    fail_msg("%g to %g, mean %g; expected %g to %g", least, most, sum / IMAGES, low, high);
}

static void brightness_and_contrast(void **state) {
  (void)state;
  static double y[2 * IMAGES], drawn[IMAGES];
  mix_tensor *x = images(pair(100, 120));
  read_all(
      mix_call(mix_random_brightness(.factor = MIX_FACTORS(-0.1, 0.3), .seed = 3), x, .training = MIX_TRUE),
      2 * IMAGES, y);
  for (int i = 0; i < IMAGES; i++) {
    drawn[i] = y[2 * i] - 100;
    assert_true(fabs(y[2 * i + 1] - y[2 * i] - 20) < 1e-4); /* one number for an image */
  }
  fill_range(drawn, -25.5, 76.5);
  mix_set_semantics("keras3");
  read_all(mix_call(mix_random_contrast(.factor = MIX_FACTORS(0.2, 0.6), .seed = 3), x, .training = MIX_TRUE),
           2 * IMAGES, y);
  for (int i = 0; i < IMAGES; i++) {
    drawn[i] = (y[2 * i + 1] - y[2 * i]) / 20;
    assert_true(fabs(y[2 * i + 1] + y[2 * i] - 220) < 1e-4); /* the mean stays */
  }
  fill_range(drawn, 0.8, 1.6);
  /* keras3 raises contrast only, where the factor is one number; tf_keras draws one number for a batch */
  read_all(mix_call(mix_random_contrast(.factor = MIX_FACTOR(0.5), .seed = 3), x, .training = MIX_TRUE),
           2 * IMAGES, y);
  for (int i = 0; i < IMAGES; i++) drawn[i] = (y[2 * i + 1] - y[2 * i]) / 20;
  fill_range(drawn, 1, 1.5);
  mix_set_semantics("tf_keras");
  read_all(mix_call(mix_random_contrast(.factor = MIX_FACTOR(0.5), .seed = 3), x, .training = MIX_TRUE),
           2 * IMAGES, y);
  for (int i = 1; i < IMAGES; i++) assert_true(y[2 * i] == y[0]);
  /* and both clip */
  read_all(mix_call(mix_random_brightness(.factor = MIX_FACTORS(0.9, 1), .seed = 3), x, .training = MIX_TRUE),
           2 * IMAGES, y);
  for (int i = 0; i < IMAGES; i++) assert_true(y[2 * i] == 255);
}

/* A ramp 0, 1, 2, ... tells how far it was moved, zoomed and turned. */
static void translations_zooms_and_rotations(void **state) {
  (void)state;
  enum { WIDTH = 21 };
  static double y[WIDTH * IMAGES], drawn[IMAGES];
  mix_tensor *ramp = mix_reshape(mix_range(0, WIDTH, 1, MIX_FLOAT32), MIX_SHAPE(1, 1, WIDTH, 1));
  read_all(mix_call(mix_random_translation(.height_factor = MIX_FACTOR(0),
                                           .width_factor = MIX_FACTORS(-0.2, 0.1), .seed = 4),
                    images(ramp), .training = MIX_TRUE),
           WIDTH * IMAGES, y);
  for (int i = 0; i < IMAGES; i++) drawn[i] = 10 - y[WIDTH * i + 10];
  fill_range(drawn, -0.2 * WIDTH, 0.1 * WIDTH);
  read_all(mix_call(mix_random_zoom(.height_factor = MIX_FACTOR(0), .width_factor = MIX_FACTORS(-0.5, 0.3),
                                    .seed = 4),
                    images(ramp), .training = MIX_TRUE),
           WIDTH * IMAGES, y);
  for (int i = 0; i < IMAGES; i++) {
    drawn[i] = y[WIDTH * i + 11] - y[WIDTH * i + 10] - 1;
    assert_true(fabs(y[WIDTH * i + 10] - 10) < 1e-4); /* the centre stays */
  }
  fill_range(drawn, -0.5, 0.3);
  /* of a plane that rises to the right, the slope along x is the cosine of the angle, along y minus its sine
   */
  mix_tensor *plane =
      mix_broadcast_to(mix_slice(ramp, MIX_SHAPE(0, 0, 0, 0), MIX_SHAPE(1, 1, 5, 1)), MIX_SHAPE(1, 5, 5, 1));
  static double z[25 * IMAGES];
  read_all(mix_call(mix_random_rotation(.factor = MIX_FACTORS(-0.1, 0.2), .seed = 4), images(plane),
                    .training = MIX_TRUE),
           25 * IMAGES, z);
  for (int i = 0; i < IMAGES; i++) {
    const double *at = z + 25 * i;
    assert_true(fabs(at[12] - 2) < 1e-4);
    drawn[i] = atan2((at[7] - at[17]) / 2, (at[13] - at[11]) / 2) / (2 * M_PI);
  }
  fill_range(drawn, -0.1, 0.2);
}

int main(void) {
  const struct CMUnitTest tests[] = {TEST(same_seed_same_images),
                                     TEST(only_in_training),
                                     TEST(flips),
                                     TEST(crops),
                                     TEST(brightness_and_contrast),
                                     TEST(translations_zooms_and_rotations)};
  return cmocka_run_group_tests_name("nn/layers_random_images", tests, NULL, NULL);
}
