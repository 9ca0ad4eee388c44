/* Resizing along an axis and projective transforms against numbers of TensorFlow 2.21 (tf.image.resize and
 * ImageProjectiveTransformV3, written by tests/ops/record_images.py). */
/* Holds docs/NUMERICS.md: Windows and images. */
#include "ops/support.h"
#include <mixtape/image.h>

/* TensorFlow computes places in float32: those of up to 7 are off by two half ulps, 2^-21, and so are
 * weights. Neighbours differ by at most 7: 3.4e-6, and sums of numbers up to 5 have some half ulps of 3e-7
 * more. */
enum { LENGTH = 7, PIXELS = 12 };
static const double line[LENGTH] = {3, 1, -2, 5, 0, 4, 2};
static const double bound = 4e-6;

static const struct {
  mix_interpolation interpolation;
  int length;
  bool antialias;
  double expected[10];
} resized[] = {
    {MIX_NEAREST, 4, false, {3, -2, 0, 2}},
    {MIX_NEAREST, 4, true, {3, -2, 0, 2}},
    {MIX_NEAREST, 10, false, {3, 1, 1, -2, 5, 5, 0, 4, 4, 2}},
    {MIX_NEAREST, 10, true, {3, 1, 1, -2, 5, 5, 0, 4, 4, 2}},
    {MIX_BILINEAR, 4, false, {2.25, -1.125, 0.625, 2.75}},
    {MIX_BILINEAR, 4, true, {1.90476191, 0.559999347, 2.20000029, 2.76190472}},
    {MIX_BILINEAR,
     10,
     false,
     {3, 1.9000001, 0.25, -1.85000014, 2.54999924, 3.25000048, 0.199998856, 3, 3.10000038, 2}},
    {MIX_BILINEAR,
     10,
     true,
     {2.99999976, 1.9000001, 0.25, -1.85000014, 2.549999, 3.25000048, 0.199998856, 3, 3.10000038, 2}},
    {MIX_BICUBIC, 4, false, {2.47861719, -1.52148438, 0.276367188, 2.80800724}},
    {MIX_BICUBIC, 4, true, {1.86615372, 0.472426862, 2.34132862, 2.74782324}},
    {MIX_BICUBIC,
     10,
     false,
     {3.12139082, 2.12842703, 0.0859375, -2.07424355, 3.04258442, 3.78155088, 0.00393718015, 3.2109375,
      3.32274151, 1.87860918}},
    {MIX_BICUBIC,
     10,
     true,
     {3.12114024, 2.1279974, 0.0859375, -2.07443666, 3.03912473, 3.77893758, 0.00406169845, 3.2109375,
      3.32330871, 1.87885976}},
    {MIX_LANCZOS3, 4, false, {2.7150135, -1.35831451, 0.367223978, 3.01883411}},
    {MIX_LANCZOS3, 4, true, {1.68193865, 0.429879606, 2.57244277, 2.58286715}},
    {MIX_LANCZOS3,
     10,
     false,
     {3.08904791, 2.4730885, -0.401139796, -2.17324972, 3.23636031, 3.93880987, -0.0566830337, 3.04137373,
      3.55980682, 1.72749305}},
    {MIX_LANCZOS3,
     10,
     true,
     {3.08904791, 2.4730885, -0.401139796, -2.17324972, 3.23636031, 3.93880987, -0.0566830337, 3.04137373,
      3.55980682, 1.72749305}},
    {MIX_LANCZOS5, 4, false, {3.05342412, -1.17172718, 0.441544414, 3.35002661}},
    {MIX_LANCZOS5, 4, true, {1.62450683, 0.38877067, 2.69163632, 2.42341614}},
    {MIX_LANCZOS5,
     10,
     false,
     {2.91406894, 2.85786891, -0.795404375, -2.26089382, 3.44031644, 3.88501596, -0.0987309515, 2.77386689,
      3.90867186, 1.52540517}},
    {MIX_LANCZOS5,
     10,
     true,
     {2.91406894, 2.85786891, -0.795404375, -2.26089382, 3.44031644, 3.88501596, -0.0987309515, 2.77386689,
      3.90867186, 1.52540517}},
    {MIX_AREA, 4, false, {2.14285731, 0.428571463, 2, 2.85714293}},
    {MIX_AREA, 4, true, {2.14285731, 0.428571463, 2, 2.85714293}},
    {MIX_AREA,
     10,
     false,
     {3, 1.85714281, 0.571428895, -2, 3, 3.57142878, 0, 3.42857099, 3.14285684, 2.00000095}},
    {MIX_AREA,
     10,
     true,
     {3, 1.85714281, 0.571428895, -2, 3, 3.57142878, 0, 3.42857099, 3.14285684, 2.00000095}},
    {MIX_GAUSSIAN, 4, false, {2.24491882, -0.614661336, 1.10632491, 2.75508213}},
    {MIX_GAUSSIAN, 4, true, {1.69140506, 0.753404975, 2.14282084, 2.65360904}},
    {MIX_GAUSSIAN,
     10,
     false,
     {2.86172318, 1.85293984, 0.291748703, -1.00359142, 2.46644688, 3.11800098, 0.9522838, 2.89177585,
      3.06200504, 2.13827682}},
    {MIX_GAUSSIAN,
     10,
     true,
     {2.86172318, 1.85293984, 0.291748703, -1.00359142, 2.46644688, 3.11800098, 0.9522838, 2.89177585,
      3.06200504, 2.13827682}},
    {MIX_MITCHELL_CUBIC, 4, false, {2.36914229, -1.01844656, 0.726238132, 2.80913997}},
    {MIX_MITCHELL_CUBIC, 4, true, {1.75849867, 0.643074334, 2.29384351, 2.68796587}},
    {MIX_MITCHELL_CUBIC,
     10,
     false,
     {3.00474548, 2.03131461, 0.125867665, -1.52331281, 2.71681833, 3.44097877, 0.498021126, 3.00781202,
      3.2137506, 1.99525476}},
    {MIX_MITCHELL_CUBIC,
     10,
     true,
     {3.00474548, 2.03131461, 0.125867665, -1.52331281, 2.71681833, 3.44097877, 0.498021126, 3.00781202,
      3.2137506, 1.99525476}},
};

static void near(mix_tensor *y, int count, const double *expected, double limit) {
  double got[64];
  no_error();
  read_into(y, count, got);
  for (int i = 0; i < count; i++)
    if (!(fabs(got[i] - expected[i]) <= limit))
      fail_msg("element %d is %.9g, expected %.9g", i, got[i], expected[i]);
}

static void lines_are_resized_as_tensorflow_does(void **state) {
  (void)state;
  mix_tensor *x = tensor(MIX_FLOAT32, MIX_SHAPE(1, LENGTH, 1, 1), line);
  for (int i = 0; i < COUNT(resized); i++)
    near(mix_resize_axis(x, 1, resized[i].length, resized[i].interpolation, resized[i].antialias),
         resized[i].length, resized[i].expected, bound);
}

static void every_axis_and_dtype(void **state) {
  (void)state;
  const double twice[] = {3, 30, 1, 10, -2, -20, 5, 50, 0, 0, 4, 40, 2, 20};
  for (int d = 0; d < COUNT(floating); d++) {
    mix_tensor *x = tensor(floating[d], MIX_SHAPE(LENGTH, 2), twice),
               *y = mix_resize_axis(x, 0, 4, MIX_BILINEAR, false);
    has_type(y, floating[d], MIX_SHAPE(4, 2));
    /* the dtype's rounding, and places in float32: weights within 1e-6, of numbers of up to 50 */
    const double limit = 40 * unit_roundoff(floating[d]) + 5e-5;
    near(y, 8, NUMBERS(2.25, 22.5, -1.125, -11.25, 0.625, 6.25, 2.75, 27.5), limit);
    near(mix_resize_axis(mix_transpose(x, MIX_AXES(1, 0)), -1, 4, MIX_BILINEAR, false), 8,
         NUMBERS(2.25, -1.125, 0.625, 2.75, 22.5, -11.25, 6.25, 27.5), limit);
  }
  near(mix_resize_axis(tensor(MIX_FLOAT32, MIX_SHAPE(LENGTH), line), 0, LENGTH, MIX_BICUBIC, true), LENGTH,
       line, 0);
}

static const struct {
  mix_fill_mode fill_mode;
  mix_interpolation interpolation;
  bool far;
  double expected[PIXELS];
} transformed[] = {
    {MIX_FILL_CONSTANT, MIX_NEAREST, false, {-1, -1, 2, 3, 0, 1, 6, 7, 4, 9, 9, 10}},
    {MIX_FILL_CONSTANT,
     MIX_BILINEAR,
     false,
     {-0.829999983, 0.0173011422, 1.28513336, 2.92452884, 1.11111128, 3.06930757, 4.95145702, 6.76190519,
      4.66264057, 7.0999999, 8.92156982, 8.91789436}},
    {MIX_FILL_REFLECT, MIX_NEAREST, false, {1, 1, 2, 3, 0, 1, 6, 7, 4, 9, 9, 10}},
    {MIX_FILL_REFLECT,
     MIX_BILINEAR,
     false,
     {0.699999988, 1.47058821, 2.21153855, 2.92452884, 1.11111128, 3.06930757, 4.95145702, 6.76190519,
      5.30612278, 7.0999999, 8.92156982, 10.2115383}},
    {MIX_FILL_WRAP, MIX_NEAREST, false, {9, 9, 10, 3, 0, 1, 6, 7, 7, 9, 9, 2}},
    {MIX_FILL_WRAP,
     MIX_BILINEAR,
     false,
     {8.69999981, 9.47058868, 10.2115383, 2.92452884, 1.11111128, 3.06930757, 4.95145702, 6.76190519,
      8.30612278, 7.0999999, 8.92156982, 2.21153879}},
    {MIX_FILL_NEAREST, MIX_NEAREST, false, {1, 1, 2, 3, 0, 1, 6, 7, 4, 9, 9, 10}},
    {MIX_FILL_NEAREST,
     MIX_BILINEAR,
     false,
     {0.699999988, 1.47058821, 2.21153855, 2.92452884, 1.11111128, 3.06930757, 4.95145702, 6.76190519,
      5.30612278, 7.0999999, 8.92156982, 10.2115383}},
    {MIX_FILL_CONSTANT, MIX_NEAREST, true, {-1, -1, -1, -1, -1, -1, -1, -1, 5, -1, -1, -1}},
    {MIX_FILL_CONSTANT, MIX_BILINEAR, true, {-1, -1, -1, -1, -1, -1, -1, -1, 5.59999943, -1, -1, -1}},
    {MIX_FILL_REFLECT, MIX_NEAREST, true, {9, 9, 11, 8, 5, 5, 7, 4, 5, 5, 7, 4}},
    {MIX_FILL_REFLECT,
     MIX_BILINEAR,
     true,
     {7.99999952, 7.69999886, 9.79999924, 6.79999924, 3.60000038, 3.30000043, 5.40000057, 2.40000057,
      5.59999943, 5.29999924, 7.39999962, 4.39999962}},
    {MIX_FILL_WRAP, MIX_NEAREST, true, {9, 10, 11, 11, 5, 6, 7, 7, 5, 6, 7, 7}},
    {MIX_FILL_WRAP,
     MIX_BILINEAR,
     true,
     {9.20000076, 10.0999994, 11, 11, 6.79999924, 7.69999981, 8.59999943, 8.59999943, 5.59999943, 6.5,
      7.39999962, 7.39999962}},
    {MIX_FILL_NEAREST, MIX_NEAREST, true, {1, 0, 0, 0, 1, 0, 0, 0, 5, 4, 4, 4}},
    {MIX_FILL_NEAREST,
     MIX_BILINEAR,
     true,
     {1.20000005, 0, 0, 0, 1.20000005, 0, 0, 0, 5.59999943, 4.39999962, 4.39999962, 4.39999962}},
};

static void images_are_transformed_as_tensorflow_does(void **state) {
  (void)state;
  const double close[] = {0.8, -0.4, 0.7, 0.3, 1.1, -0.9, 0.02, -0.01},
               far[] = {-3.1, 0, 1.2, 0, 2.7, -4.3, 0, 0};
  mix_tensor *images = mix_reshape(mix_range(0, PIXELS, 1, MIX_FLOAT32), MIX_SHAPE(1, 3, 4, 1));
  for (int i = 0; i < COUNT(transformed); i++) {
    mix_tensor *t = tensor(MIX_FLOAT32, MIX_SHAPE(1, 8), transformed[i].far ? far : close);
    /* coordinates in float32, times pixels of up to 11 */
    near(mix_projective_transform(images, t, transformed[i].interpolation, transformed[i].fill_mode, -1),
         PIXELS, transformed[i].expected, 2e-5);
  }
}

/* Each image has its own transform; channels move together; a divisor of zero gives the fill value. */
static void batches_and_channels(void **state) {
  (void)state;
  const double t[] = {1, 0, 0, 0, 1, 0, 0, 0, -1, 0, 1, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0, -1, 0};
  const double pixels[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
  for (int d = 0; d < COUNT(floating); d++) {
    mix_tensor *y =
        mix_projective_transform(tensor(floating[d], MIX_SHAPE(3, 1, 2, 2), pixels),
                                 tensor(MIX_FLOAT32, MIX_SHAPE(3, 8), t), MIX_NEAREST, MIX_FILL_REFLECT, 0.5);
    has_type(y, floating[d], MIX_SHAPE(3, 1, 2, 2));
    near(y, PIXELS, NUMBERS(1, 2, 3, 4, 7, 8, 5, 6, 9, 10, 0.5, 0.5), 0);
  }
}

static void bad_operands(void **state) {
  (void)state;
  mix_tensor *x = ones(MIX_FLOAT32, MIX_SHAPE(2, 3, 4, 1)), *t = ones(MIX_FLOAT32, MIX_SHAPE(2, 8));
  refused(mix_resize_axis(x, 4, 2, MIX_NEAREST, false), MIX_VALUE_ERROR, "resize_axis", "axis 4", "-4 to 3");
  refused(mix_resize_axis(x, 1, 0, MIX_NEAREST, false), MIX_VALUE_ERROR, "resize_axis", "0 elements");
  refused(mix_resize_axis(x, 1, 2, (mix_interpolation)99, false), MIX_VALUE_ERROR, "resize_axis",
          "interpolation");
  refused(mix_resize_axis(ones(MIX_INT32, MIX_SHAPE(3)), 0, 2, MIX_NEAREST, false), MIX_TYPE_ERROR,
          "resize_axis", "int32");
  refused(mix_resize_axis(NULL, 0, 2, MIX_NEAREST, false), MIX_TYPE_ERROR, "resize_axis", "NULL");
  refused(mix_projective_transform(x, ones(MIX_FLOAT32, MIX_SHAPE(3, 8)), MIX_NEAREST, MIX_FILL_WRAP, 0),
          MIX_VALUE_ERROR, "projective_transform", "(batch, 8)");
  refused(mix_projective_transform(x, t, MIX_BICUBIC, MIX_FILL_WRAP, 0), MIX_VALUE_ERROR, "interpolation");
  refused(mix_projective_transform(x, ones(MIX_FLOAT16, MIX_SHAPE(2, 8)), MIX_NEAREST, MIX_FILL_WRAP, 0),
          MIX_TYPE_ERROR, "projective_transform", "float16");
  refused(mix_projective_transform(ones(MIX_FLOAT32, MIX_SHAPE(2, 3)), t, MIX_NEAREST, MIX_FILL_WRAP, 0),
          MIX_VALUE_ERROR, "projective_transform", "height");
}

int main(void) {
  const struct CMUnitTest tests[] = {TEST(lines_are_resized_as_tensorflow_does), TEST(every_axis_and_dtype),
                                     TEST(images_are_transformed_as_tensorflow_does),
                                     TEST(batches_and_channels), TEST(bad_operands)};
  return cmocka_run_group_tests_name("ops/images", tests, NULL, NULL);
}
