/* Convolutions as operations: shapes, paddings, errors, and values against sums written out here, in float64
 * and with rounded operands in 16 bits within the bound of their rounding. */
#include "ops/support.h"

#include <mixtape/convolution.h>

static void shapes(void **state) {
  (void)state;
  mix_tensor *x = ones(MIX_FLOAT32, MIX_SHAPE(2, 9, 8, 4)), *k = ones(MIX_FLOAT32, MIX_SHAPE(3, 2, 4, 6));
  has_type(mix_conv(x, k), MIX_FLOAT32, MIX_SHAPE(2, 7, 7, 6));
  has_type(mix_conv(x, k, .padding = "Same", .strides = MIX_SHAPE(2, 3)), MIX_FLOAT32, MIX_SHAPE(2, 5, 3, 6));
  has_type(mix_conv(x, k, .before = MIX_SHAPE(1), .after = MIX_SHAPE(0, 2), .dilation = MIX_SHAPE(4, 1)),
           MIX_FLOAT32, MIX_SHAPE(2, 2, 10, 6));
  has_type(mix_conv(x, ones(MIX_FLOAT32, MIX_SHAPE(1, 1, 2, 6)), .groups = 2), MIX_FLOAT32,
           MIX_SHAPE(2, 9, 8, 6));
  has_type(mix_depthwise_conv(x, k), MIX_FLOAT32, MIX_SHAPE(2, 7, 7, 24));
  has_type(mix_conv_transpose(x, ones(MIX_FLOAT32, MIX_SHAPE(3, 3, 5, 4)), .strides = MIX_SHAPE(2)),
           MIX_FLOAT32, MIX_SHAPE(2, 19, 17, 5));
  has_type(mix_conv(ones(MIX_FLOAT16, MIX_SHAPE(0, 5, 3)), ones(MIX_FLOAT16, MIX_SHAPE(2, 3, 4))),
           MIX_FLOAT16, MIX_SHAPE(0, 4, 4));
  has_type(mix_conv(symbolic(MIX_FLOAT32, MIX_SHAPE(MIX_UNKNOWN, MIX_UNKNOWN, 8, 4)), k, .padding = "same"),
           MIX_FLOAT32, MIX_SHAPE(MIX_UNKNOWN, MIX_UNKNOWN, 8, 6));
  has_type(mix_conv_transpose(symbolic(MIX_FLOAT32, MIX_SHAPE(MIX_UNKNOWN, MIX_UNKNOWN, 4)),
                              ones(MIX_FLOAT32, MIX_SHAPE(3, 5, 4))),
           MIX_FLOAT32, MIX_SHAPE(MIX_UNKNOWN, MIX_UNKNOWN, 5));
}

static void errors(void **state) {
  (void)state;
  mix_tensor *x = ones(MIX_FLOAT32, MIX_SHAPE(2, 9, 8, 4)), *k = ones(MIX_FLOAT32, MIX_SHAPE(3, 2, 4, 6));
  refused(mix_conv(x, NULL), MIX_TYPE_ERROR, "conv", "NULL");
  refused(mix_conv(x, ones(MIX_FLOAT32, MIX_SHAPE(3, 4, 6))), MIX_VALUE_ERROR, "conv", "same rank");
  refused(mix_conv(ones(MIX_FLOAT32, MIX_SHAPE(3, 3)), ones(MIX_FLOAT32, MIX_SHAPE(3, 3))), MIX_VALUE_ERROR,
          "conv", "1 to 3 spatial axes");
  refused(mix_conv(x, ones(MIX_FLOAT16, MIX_SHAPE(3, 2, 4, 6))), MIX_TYPE_ERROR, "conv", "float16");
  refused(mix_conv(ones(MIX_INT32, MIX_SHAPE(1, 3, 3)), ones(MIX_INT32, MIX_SHAPE(1, 3, 3))), MIX_TYPE_ERROR,
          "conv", "int32");
  refused(mix_conv(x, ones(MIX_FLOAT32, MIX_SHAPE(3, 2, 3, 6))), MIX_VALUE_ERROR, "conv",
          "4 channels and the kernel is for 3");
  refused(mix_conv(x, k, .groups = 2), MIX_VALUE_ERROR, "conv", "for 8, in all groups");
  refused(mix_conv(x, ones(MIX_FLOAT32, MIX_SHAPE(1, 1, 2, 5)), .groups = 2), MIX_VALUE_ERROR, "conv",
          "2 groups do not divide 5 filters");
  refused(mix_conv(x, k, .groups = -3), MIX_VALUE_ERROR, "conv", "groups is -3");
  refused(mix_conv(x, k, .strides = MIX_SHAPE(1, 0)), MIX_VALUE_ERROR, "conv", "strides holds 0");
  refused(mix_conv(x, k, .strides = MIX_SHAPE(1, 1, 1)), MIX_VALUE_ERROR, "conv", "strides has 3 numbers");
  refused(mix_conv(x, k, .before = MIX_SHAPE(-1)), MIX_VALUE_ERROR, "conv", "before holds -1");
  refused(mix_conv(x, k, .padding = "causal"), MIX_VALUE_ERROR, "conv", "'causal'");
  refused(mix_conv(x, k, .padding = "same", .after = MIX_SHAPE(1)), MIX_VALUE_ERROR, "conv", "one of both");
  refused(mix_conv(x, k, .dilation = MIX_SHAPE(5)), MIX_VALUE_ERROR, "conv", "covers 11 cells");
  refused(mix_conv(x, k, .dilation = MIX_SHAPE(INT64_MAX / 2)), MIX_VALUE_ERROR, "conv", "can be counted");
  refused(mix_conv(x, k, .before = MIX_SHAPE(INT64_MAX)), MIX_VALUE_ERROR, "conv", "can be counted");
  refused(mix_conv(x, k, .before = MIX_SHAPE((int64_t)1 << 59)), MIX_VALUE_ERROR, "conv", "more elements");
  refused(mix_depthwise_conv(x, ones(MIX_FLOAT32, MIX_SHAPE(3, 2, 5, 6))), MIX_VALUE_ERROR, "depthwise_conv",
          "4 channels");
  refused(mix_conv_transpose(x, ones(MIX_FLOAT32, MIX_SHAPE(3, 3, 5, 4)), .strides = MIX_SHAPE(2),
                             .output_padding = MIX_SHAPE(0, 2)),
          MIX_VALUE_ERROR, "conv_transpose", "output_padding 2");
  refused(mix_conv_transpose(ones(MIX_FLOAT32, MIX_SHAPE(1, 3, 4)), ones(MIX_FLOAT32, MIX_SHAPE(3, 5, 4)),
                             .padding = "causal"),
          MIX_VALUE_ERROR, "conv_transpose", "'causal'");
  const mix_conv_attributes no_groups = {.strides = MIX_SHAPE(1, 1),
                                         .dilation = MIX_SHAPE(1, 1),
                                         .before = MIX_SHAPE(0, 0),
                                         .after = MIX_SHAPE(0, 0)};
  refused(mix_apply(&mix_op_conv, &no_groups, 2, (mix_tensor *[]){x, k}), MIX_VALUE_ERROR, "conv",
          "0 groups");
}

/* ---- values ---- */

enum { BATCH = 2, HEIGHT = 5, WIDTH = 6, CHANNELS = 3, CELLS = 3, FILTERS = 4 };
enum { IMAGE = BATCH * HEIGHT * WIDTH * CHANNELS, KERNEL = CELLS * CELLS * CHANNELS * FILTERS };

static double number(int i) { return fmod(0.618033988749895 * (i + 1) * (i % 7 + 1), 1) * 2 - 1; }

/* "same" with stride 2 on rows and columns: one cell after the 6 columns, one before and after the 5 rows. */
static double value(const double *x, const double *k, int n, int row, int column, int f, double *magnitudes) {
  double sum = 0;
  *magnitudes = 0;
  for (int i = 0; i < CELLS; i++)
    for (int j = 0; j < CELLS; j++)
      for (int c = 0; c < CHANNELS; c++) {
        const int y = 2 * row + i - 1, z = 2 * column + j;
        if (y < 0 || y >= HEIGHT || z >= WIDTH) continue;
        const double term = x[((n * HEIGHT + y) * WIDTH + z) * CHANNELS + c] *
                            k[((i * CELLS + j) * CHANNELS + c) * FILTERS + f];
        sum += term, *magnitudes += fabs(term);
      }
  return sum;
}

/* The operands are rounded to the dtype first. What remains: sums of 27 products in float32 (28 roundings of
 * 2^-24 of the sum of magnitudes; in float64 of 2^-53), and the result's own rounding, half a unit in the
 * last place. */
static void values_of_every_dtype(void **state) {
  (void)state;
  for (int d = 0; d < COUNT(floating); d++) {
    const mix_dtype dtype = floating[d];
    double image[IMAGE], kernel[KERNEL], got[BATCH * 3 * 3 * FILTERS];
    for (int i = 0; i < IMAGE; i++) image[i] = number(i);
    for (int i = 0; i < KERNEL; i++) kernel[i] = number(i + 777);
    mix_tensor *x = tensor(dtype, MIX_SHAPE(BATCH, HEIGHT, WIDTH, CHANNELS), image),
               *k = tensor(dtype, MIX_SHAPE(CELLS, CELLS, CHANNELS, FILTERS), kernel);
    read_into(x, IMAGE, image), read_into(k, KERNEL, kernel);
    read_into(mix_conv(x, k, .strides = MIX_SHAPE(2), .padding = "same"), COUNT(got), got);
    const double sum = dtype == MIX_FLOAT64 ? 28 * 0x1p-53 : 28 * 0x1p-24,
                 rounding = dtype == MIX_FLOAT16    ? 0x1p-11
                            : dtype == MIX_BFLOAT16 ? 0x1p-8
                            : dtype == MIX_FLOAT32  ? 0x1p-24
                                                    : 0x1p-53;
    for (int i = 0; i < COUNT(got); i++) {
      double magnitudes;
      const double wanted = value(image, kernel, i / (9 * FILTERS), i / (3 * FILTERS) % 3, i / FILTERS % 3,
                                  i % FILTERS, &magnitudes);
      const double bound = sum * magnitudes + rounding * (fabs(wanted) + sum * magnitudes) + 0x1p-25;
      if (!(fabs(got[i] - wanted) <= bound))
        fail_msg("%s, element %d: %.9g, not %.9g", mix_dtype_name(dtype), i, got[i], wanted);
    }
  }
}

/* The transpose is the adjoint: <conv(x), y> = <x, conv_transpose(y)>, with integers exactly. */
static void the_transpose_is_the_adjoint(void **state) {
  (void)state;
  double image[2 * 7 * 6 * 3], kernel[3 * 3 * 3 * 4], other[2 * 4 * 3 * 4];
  for (int i = 0; i < COUNT(image); i++) image[i] = i * 7 % 5 - 2;
  for (int i = 0; i < COUNT(kernel); i++) kernel[i] = i * 5 % 7 - 3;
  for (int i = 0; i < COUNT(other); i++) other[i] = i * 11 % 9 - 4;
  mix_tensor *x = tensor(MIX_FLOAT64, MIX_SHAPE(2, 7, 6, 3), image),
             *k = tensor(MIX_FLOAT64, MIX_SHAPE(3, 3, 3, 4), kernel),
             *y = tensor(MIX_FLOAT64, MIX_SHAPE(2, 4, 3, 4), other);
  mix_tensor *forward = mix_conv(x, k, .strides = MIX_SHAPE(2), .padding = "same");
  mix_tensor *back =
      mix_conv_transpose(y, k, .strides = MIX_SHAPE(2), .padding = "same", .output_padding = MIX_SHAPE(0, 1));
  has_type(back, MIX_FLOAT64, MIX_SHAPE(2, 7, 6, 3));
  double a, b;
  read_into(mix_reduce_sum(mix_multiply(forward, y), MIX_ALL_AXES, false), 1, &a);
  read_into(mix_reduce_sum(mix_multiply(back, x), MIX_ALL_AXES, false), 1, &b);
  assert_true(a == b);
}

int main(void) {
  const struct CMUnitTest tests[] = {TEST(shapes), TEST(errors), TEST(values_of_every_dtype),
                                     TEST(the_transpose_is_the_adjoint)};
  return cmocka_run_group_tests_name("convolutions", tests, NULL, NULL);
}
