/* Pooling: values, shapes, paddings, where gradients go, and bad windows. */
/* Holds docs/NUMERICS.md: Windows and images. */
#include "ops/support.h"
#include <mixtape/pooling.h>

static const double five[] = {1, 2, 3, 4, 5};

static mix_tensor *line(mix_dtype dtype, int count, const double *values) {
  return tensor(dtype, MIX_SHAPE(1, count, 1), values);
}

static void windows_of_a_line(void **state) {
  (void)state;
  const mix_pool_window two = {.size = MIX_SHAPE(2)}, padded = {.size = MIX_SHAPE(2), .after = MIX_SHAPE(1)},
                        three = {MIX_SHAPE(3), MIX_SHAPE(1), MIX_SHAPE(1), MIX_SHAPE(1)};
  for (int d = 0; d < COUNT(numbers); d++) {
    mix_tensor *x = line(numbers[d], 5, five);
    has_values(mix_max_pool(x, &two), 2, NUMBERS(2, 4));       /* L11 */
    has_values(mix_max_pool(x, &padded), 3, NUMBERS(2, 4, 5)); /* L11 */
    has_values(mix_max_pool(x, &three), 5, NUMBERS(2, 3, 4, 5, 5));
  }
  for (int d = 0; d < COUNT(floating); d++) {
    mix_tensor *x = line(floating[d], 5, five);
    has_values(mix_avg_pool(x, &two), 2, NUMBERS(1.5, 3.5));            /* L12 */
    has_values(mix_avg_pool(x, &padded), 3, NUMBERS(1.5, 3.5, 5));      /* L12: the last divisor is 1 */
    has_values(mix_avg_pool(x, &three), 5, NUMBERS(1.5, 2, 3, 4, 4.5)); /* L13 */
  }
}

/* Padding is no number: the maximum of negative numbers is negative. */
static void padding_is_left_out(void **state) {
  (void)state;
  const mix_pool_window wide = {MIX_SHAPE(3), MIX_SHAPE(2), MIX_SHAPE(2), MIX_SHAPE(2)};
  const double below[] = {-4, -2, -9};
  for (int d = 0; d < COUNT(numbers); d++)
    if (numbers[d] != MIX_UINT8)
      has_values(mix_max_pool(line(numbers[d], 3, below), &wide), 3, NUMBERS(-4, -2, -9));
  for (int d = 0; d < COUNT(floating); d++)
    has_values(mix_avg_pool(line(floating[d], 3, below), &wide), 3, NUMBERS(-4, -5, -9));
  has_values(mix_max_pool(line(MIX_FLOAT32, 3, NUMBERS(1, NAN, 2)), &(mix_pool_window){.size = MIX_SHAPE(3)}),
             1, NUMBERS(NAN));
}

static void planes_and_volumes(void **state) {
  (void)state;
  mix_tensor *plane = mix_reshape(mix_range(0, 24, 1, MIX_FLOAT32), MIX_SHAPE(1, 3, 4, 2)),
             *volume = mix_reshape(mix_range(0, 24, 1, MIX_FLOAT32), MIX_SHAPE(2, 2, 3, 1, 2));
  const mix_pool_window flat = {MIX_SHAPE(2, 3), MIX_SHAPE(1, 2), MIX_SHAPE(0, 1), MIX_SHAPE(0, 0)},
                        deep = {.size = MIX_SHAPE(2, 2, 1)};
  has_values(mix_max_pool(plane, &flat), 8, NUMBERS(10, 11, 14, 15, 18, 19, 22, 23));
  has_values(mix_avg_pool(plane, &flat), 8, NUMBERS(5, 6, 8, 9, 13, 14, 16, 17));
  has_type(mix_max_pool(volume, &deep), MIX_FLOAT32, MIX_SHAPE(2, 1, 1, 1, 2));
  has_values(mix_max_pool(volume, &deep), 4, NUMBERS(8, 9, 20, 21));
  has_values(mix_avg_pool(volume, &deep), 4, NUMBERS(4, 5, 16, 17));
}

static mix_tensor *gradient_of(mix_tensor *x, mix_tensor *(*pool)(mix_tensor *, const mix_pool_window *),
                               const mix_pool_window *window, const double *dy) {
  mix_tape *tape = mix_tape_begin();
  mix_tape_watch(tape, x);
  mix_tensor *y = pool(x, window);
  mix_tape_end(tape);
  mix_list *found = mix_tape_gradient_from(tape, mix_list_of(y),
                                           mix_list_of(tensor(mix_tensor_dtype(x), mix_tensor_shape(y), dy)),
                                           mix_list_of(x));
  no_error();
  return mix_list_get(found, 0);
}

/* Of equal elements the first receives the gradient, and overlapping windows add up. */
static void gradients_go_to_the_first_maximum(void **state) {
  (void)state;
  const mix_pool_window two = {MIX_SHAPE(2), MIX_SHAPE(1), MIX_SHAPE(0), MIX_SHAPE(1)};
  for (int d = 0; d < COUNT(floating); d++) {
    mix_tensor *x = line(floating[d], 5, NUMBERS(7, 7, 1, 3, 3));
    has_values(gradient_of(x, mix_max_pool, &two, NUMBERS(1, 2, 4, 8, 16)), 5, NUMBERS(1, 2, 0, 12, 16));
    has_values(gradient_of(x, mix_avg_pool, &two, NUMBERS(2, 4, 8, 16, 32)), 5, NUMBERS(1, 3, 6, 12, 40));
  }
}

/* As TensorFlow's kernel of MaxPool3D; the numbers are its. */
static void gradients_of_volumes_go_to_each_maximum(void **state) {
  (void)state;
  const mix_shape shape = MIX_SHAPE(1, 2, 2, 2, 1), twos = MIX_SHAPE(2, 2, 2), ones = MIX_SHAPE(1, 1, 1);
  const mix_pool_window whole = {.size = twos}, same = {twos, ones, MIX_SHAPE(0, 0, 0), ones};
  const double threes[] = {3, 3, 3, 3, 3, 3, 3, 3};
  for (int d = 0; d < COUNT(floating); d++) {
    mix_tensor *x = tensor(floating[d], shape, NUMBERS(0, 0, 1, 1, 0, 0, 1, 0));
    has_values(gradient_of(x, mix_max_pool, &whole, threes), 8, NUMBERS(0, 0, 3, 3, 0, 0, 3, 0));
    has_values(gradient_of(x, mix_max_pool, &same, threes), 8, NUMBERS(0, 0, 6, 12, 0, 3, 12, 6));
  }
}

/* The values where the maxima are: TensorFlow's MaxPoolGradGrad. */
static void second_gradients_read_the_maxima(void **state) {
  (void)state;
  const mix_shape none = MIX_SHAPE(0);
  const mix_pool_attributes a = {
      .size = MIX_SHAPE(2), .strides = MIX_SHAPE(2), .before = none, .after = none};
  mix_tensor *x = line(MIX_FLOAT32, 4, NUMBERS(5, 5, 1, 2));
  has_values(mix_apply(&mix_op_max_pool_grad_grad, &a, 3,
                       (mix_tensor *[]){x, mix_apply(&mix_op_max_pool, &a, 1, &x),
                                        line(MIX_FLOAT32, 4, NUMBERS(10, 20, 30, 40))}),
             2, NUMBERS(10, 40));
  mix_tensor *volume = tensor(MIX_FLOAT32, MIX_SHAPE(1, 1, 1, 4, 1), NUMBERS(5, 5, 1, 2));
  const mix_pool_attributes b = {.size = MIX_SHAPE(1, 1, 2),
                                 .strides = MIX_SHAPE(1, 1, 2),
                                 .before = MIX_SHAPE(0, 0, 0),
                                 .after = MIX_SHAPE(0, 0, 0)};
  has_values(
      mix_apply(&mix_op_max_pool_grad_grad3d, &b, 3,
                (mix_tensor *[]){volume, mix_apply(&mix_op_max_pool3d, &b, 1, &volume),
                                 tensor(MIX_FLOAT32, MIX_SHAPE(1, 1, 1, 4, 1), NUMBERS(10, 20, 30, 40))}),
      2, NUMBERS(30, 40));
  assert_string_equal(mix_op_max_pool_grad_grad3d.tf_name, "MaxPool3DGradGrad");
}

static void unknown_dimensions(void **state) {
  (void)state;
  const mix_pool_window two = {.size = MIX_SHAPE(2)};
  has_type(mix_max_pool(symbolic(MIX_FLOAT32, MIX_SHAPE(MIX_UNKNOWN, 5, 3)), &two), MIX_FLOAT32,
           MIX_SHAPE(MIX_UNKNOWN, 2, 3));
  has_type(mix_avg_pool(symbolic(MIX_FLOAT32, MIX_SHAPE(2, MIX_UNKNOWN, 3)), &two), MIX_FLOAT32,
           MIX_SHAPE(2, MIX_UNKNOWN, 3));
  has_type(mix_max_pool(ones(MIX_FLOAT32, MIX_SHAPE(0, 4, 3)), &two), MIX_FLOAT32, MIX_SHAPE(0, 2, 3));
}

static void bad_windows(void **state) {
  (void)state;
  mix_tensor *x = ones(MIX_FLOAT32, MIX_SHAPE(2, 5, 3));
#define REFUSED(...)                                                                                         \
  refused(mix_max_pool(x, &(mix_pool_window)__VA_ARGS__), MIX_VALUE_ERROR, "max_pool", "(2, 5, 3)")
  REFUSED({.size = MIX_SHAPE(6)});
  REFUSED({.size = MIX_SHAPE(0)});
  REFUSED({.size = MIX_SHAPE(2, 2)});
  REFUSED({.size = MIX_SHAPE(2), .strides = MIX_SHAPE(0)});
  REFUSED({.size = MIX_SHAPE(2), .before = MIX_SHAPE(2)});
  REFUSED({.size = MIX_SHAPE(2), .after = MIX_SHAPE(-1)});
  REFUSED(
      {.size = MIX_SHAPE(INT64_MAX), .before = MIX_SHAPE(INT64_MAX - 1), .after = MIX_SHAPE(INT64_MAX - 1)});
  refused(mix_max_pool(ones(MIX_FLOAT32, MIX_SHAPE(2, 5)), &(mix_pool_window){.size = MIX_SHAPE(2)}),
          MIX_VALUE_ERROR, "max_pool", "spatial");
  refused(mix_avg_pool(ones(MIX_INT32, MIX_SHAPE(2, 5, 3)), &(mix_pool_window){.size = MIX_SHAPE(2)}),
          MIX_TYPE_ERROR, "avg_pool", "int32");
  refused(mix_max_pool(x, NULL), MIX_TYPE_ERROR, "max_pool", "NULL");
  refused(mix_avg_pool(NULL, &(mix_pool_window){.size = MIX_SHAPE(2)}), MIX_TYPE_ERROR, "avg_pool", "NULL");
}

int main(void) {
  const struct CMUnitTest tests[] = {TEST(windows_of_a_line),
                                     TEST(padding_is_left_out),
                                     TEST(planes_and_volumes),
                                     TEST(gradients_go_to_the_first_maximum),
                                     TEST(gradients_of_volumes_go_to_each_maximum),
                                     TEST(second_gradients_read_the_maxima),
                                     TEST(unknown_dimensions),
                                     TEST(bad_windows)};
  return cmocka_run_group_tests_name("ops/pooling", tests, NULL, NULL);
}
