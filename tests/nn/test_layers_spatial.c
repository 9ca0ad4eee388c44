/* Layers over spatial axes: values (docs/spec/layers.md, L11 to L13, and numbers of Keras 3.15 and
 * tf_keras 2.21), both data formats, configs of each generation, and bad options. */
#include "nn/layer_support.h"
#include <mixtape/image.h>
#include <mixtape/pooling.h>

static mix_tensor *counted(mix_shape shape) {
  return mix_reshape(mix_range(0, (double)mix_shape_size(shape), 1, MIX_FLOAT32), shape);
}
/* i^2 mod 17 of i = 0, 1, ..., as images. */
static mix_tensor *squares(void) {
  mix_tensor *x = counted(MIX_SHAPE(1, 4, 6, 1));
  x = mix_multiply(x, x);
  return mix_floor_mod(x, mix_scalar_like(x, 17));
}
#define SHAPED(shape, ...) mix_tensor_from_doubles((const double[]){__VA_ARGS__}, MIX_FLOAT32, shape)
static mix_tensor *five(void) { return SHAPED(MIX_SHAPE(1, 5, 1), 1, 2, 3, 4, 5); }

/* ---- pooling ---- */

static void L11_L12_L13_pooling(void **state) {
  (void)state;
  EXPECT_EXACT(mix_call(mix_max_pooling1d(), five()), 2, 4);
  EXPECT_EXACT(mix_call(mix_max_pooling1d(.padding = "same"), five()), 2, 4, 5);
  EXPECT_EXACT(mix_call(mix_average_pooling1d(), five()), 1.5, 3.5);
  EXPECT_EXACT(mix_call(mix_average_pooling1d(.padding = "Same"), five()), 1.5, 3.5, 5);
  EXPECT_EXACT(mix_call(mix_average_pooling1d(3, .strides = MIX_SHAPE(1), .padding = "same"), five()), 1.5, 2,
               3, 4, 4.5);
}

/* With channels first, a layer gives what it gives between two transposes. */
static void both_formats(mix_layer *last, mix_layer *first, int rank) {
  mix_shape shape = {.rank = rank, .dims = {1, 4, 3, 3, 2}};
  mix_axes to_first = {.count = rank}, to_last = {.count = rank};
  to_first.axis[1] = rank - 1;
  to_last.axis[rank - 1] = 1;
  for (int i = 2; i < rank; i++) to_first.axis[i] = i - 1, to_last.axis[i - 1] = i;
  shape.dims[rank - 1] = 2;
  mix_tensor *x = numbers(shape, 1, MIX_FLOAT32, NULL), *wanted = mix_call(last, x),
             *got = mix_call(first, mix_transpose(x, to_first));
  if (got && mix_tensor_shape(got).rank == rank) got = mix_transpose(got, to_last);
  if (!got) fail_msg("%s: %s", mix_layer_class_name(first), mix_error_message());
  assert_true(mix_shape_equal(mix_tensor_shape(got), mix_tensor_shape(wanted)));
  double values[4 * SIZE];
  const int count = (int)mix_shape_size(mix_tensor_shape(wanted));
  assert_true(count <= 4 * SIZE);
  mix_tensor_read(wanted, MIX_FLOAT64, values, count);
  expect_values(got, count, values, 1e-6, 0); /* means add in another order */
}
static void channels_first(void **state) {
  (void)state;
#define BOTH(layer, rank, ...)                                                                               \
  both_formats(layer(__VA_ARGS__), layer(.data_format = "channels_first", __VA_ARGS__), rank)
  mix_set_semantics("keras3");
  BOTH(mix_max_pooling1d, 3, .pool_size = MIX_SHAPE(3));
  BOTH(mix_max_pooling2d, 4, .pool_size = MIX_SHAPE(2), .padding = "same");
  BOTH(mix_max_pooling3d, 5, .pool_size = MIX_SHAPE(2, 1, 3));
  BOTH(mix_average_pooling1d, 3, .pool_size = MIX_SHAPE(2));
  BOTH(mix_average_pooling2d, 4, .pool_size = MIX_SHAPE(2, 3), .strides = MIX_SHAPE(1));
  BOTH(mix_average_pooling3d, 5, .pool_size = MIX_SHAPE(2), .padding = "same");
  BOTH(mix_global_max_pooling1d, 3, .keepdims = true);
  BOTH(mix_global_max_pooling2d, 4, .keepdims = false);
  BOTH(mix_global_max_pooling3d, 5, .keepdims = true);
  BOTH(mix_global_average_pooling1d, 3, .keepdims = false);
  BOTH(mix_global_average_pooling2d, 4, .keepdims = true);
  BOTH(mix_global_average_pooling3d, 5, .keepdims = false);
  BOTH(mix_adaptive_max_pooling1d, 3, .output_size = MIX_SHAPE(3));
  BOTH(mix_adaptive_average_pooling2d, 4, .output_size = MIX_SHAPE(3, 2));
  BOTH(mix_adaptive_max_pooling3d, 5, .output_size = MIX_SHAPE(3, 2, 4));
  BOTH(mix_zero_padding1d, 3, .padding = MIX_BORDERS(1, 2));
  BOTH(mix_zero_padding2d, 4, .padding = MIX_BORDERS(1, 2));
  BOTH(mix_zero_padding3d, 5, .padding = MIX_BORDERS(1, 0, 0, 1, 0, 0));
  BOTH(mix_cropping2d, 4, .cropping = MIX_BORDERS(1, 0, 0, 2));
  BOTH(mix_cropping3d, 5, .cropping = MIX_BORDERS(1));
  BOTH(mix_up_sampling2d, 4, .factors = MIX_SHAPE(1, 2), .interpolation = "bicubic");
  BOTH(mix_up_sampling3d, 5, .factors = MIX_SHAPE(1, 2, 1));
  BOTH(mix_resizing, 4, .height = 3, .width = 5);
  BOTH(mix_center_crop, 4, .height = 2, .width = 2);
}

/* Bins of different lengths, here 2 of 6 and of 4 elements, share elements. */
static void adaptive_pooling(void **state) {
  (void)state;
  EXPECT(mix_call(mix_adaptive_average_pooling2d(.output_size = MIX_SHAPE(3, 4)), squares()), 0, 1e-6, 4.5,
         8.25, 13.25, 10.25, 10.25, 13.25, 8.25, 4.5, 7.25, 9.5, 7.25, 2.75);
  EXPECT_EXACT(mix_call(mix_adaptive_max_pooling1d(3), SHAPED(MIX_SHAPE(1, 7, 1), 1, 9, 3, 2, 8, 0, 4)), 9, 8,
               8);
  expect_refused(mix_adaptive_max_pooling1d(), MIX_TYPE_ERROR, "output_size is missing");
  /* each bin is a node of the graph */
  expect_refused(mix_adaptive_max_pooling1d(65537), MIX_VALUE_ERROR,
                 "output_size has 65537; expected at most 65536 along an axis");
  expect_refused(mix_adaptive_average_pooling2d(.output_size = MIX_SHAPE(2, INT64_C(1000000000000))),
                 MIX_VALUE_ERROR, "output_size has 1000000000000");
}

static void masked_steps_are_left_out(void **state) {
  (void)state;
  mix_tensor *x = SHAPED(MIX_SHAPE(2, 3, 1), 1, 2, 6, 4, 8, 9);
  mix_tensor *mask = mix_cast(MATRIX(MIX_INT32, 2, 3, 1, 1, 0, 1, 0, 1), MIX_BOOL);
  static const char *const generations[] = {"tf_keras", "keras3"};
  for (int g = 0; g < 2; g++) {
    mix_set_semantics(generations[g]);
    mix_tensor *y = mix_call(mix_global_average_pooling1d(), x, .mask = mask);
    EXPECT_EXACT(y, 1.5, 6.5);
    assert_null(y->mask);
  }
}

/* ---- borders and sizes ---- */

static void borders(void **state) {
  (void)state;
  EXPECT_EXACT(mix_call(mix_zero_padding1d(.padding = MIX_BORDERS(0, 2)), five()), 1, 2, 3, 4, 5, 0, 0);
  EXPECT_EXACT(mix_call(mix_cropping1d(.cropping = MIX_BORDERS(1, 2)), five()), 2, 3);
  EXPECT_EXACT(mix_call(mix_cropping2d(.cropping = MIX_BORDERS(1, 2)), squares()), 13, 13, 9, 4);
  EXPECT_EXACT(mix_call(mix_cropping2d(.cropping = MIX_BORDERS(3, 0, 0, 4)), squares()), 1, 4);
  EXPECT_EXACT(mix_call(mix_up_sampling1d(2), SHAPED(MIX_SHAPE(1, 2, 2), 1, 2, 3, 4)), 1, 2, 1, 2, 3, 4, 3,
               4);
  mix_tensor *x = mix_slice(squares(), MIX_SHAPE(0, 0, 0, 0), MIX_SHAPE(1, 2, 3, 1));
  EXPECT(
      mix_call(
          mix_up_sampling2d(.factors = MIX_SHAPE(2, 1), .data_format = NULL, .interpolation = "bilinear"), x),
      0, 1e-6, 0, 1, 4, 0.5, 4.5, 6.25, 1.5, 11.5, 10.75, 2, 15, 13);
}

/* Numbers of Keras, in float32, of up to 16. */
#define SIZED(layer, ...) EXPECT(mix_call(layer, squares()), 4e-6, 0, __VA_ARGS__)
static void sizes_as_keras(void **state) {
  (void)state;
  mix_set_semantics("keras3");
  SIZED(mix_resizing(3, 3, .crop_to_aspect_ratio = true), 3.69444466, 7.58333349, 14.8055563, 14.75, 9.75,
        8.08333302, 6.49999809, 11.500001, 8.02777767);
  SIZED(mix_resizing(3, 3, .pad_to_aspect_ratio = true, .fill_value = -1), -0.25, 2.75, 5.5, 10.25, 9.75, 4.5,
        0.75, 5.75, 2);
  SIZED(mix_resizing(2, 3, .antialias = true), 6.00000095, 9.7857151, 9.02040958, 7.73469496, 9.58928585,
        4.5510211);
  SIZED(mix_center_crop(3, 3), 1, 4, 9, 15, 13, 13, 16, 9, 4);
  SIZED(mix_center_crop(5, 3), 4, 6.5, 9, 10.3000002, 11.0500002, 11.8000002, 11, 9.75, 8.5, 9, 8.29999924,
        7.59999943, 9, 12.5, 16);
  mix_tensor *bytes = mix_call(mix_resizing(2, 3, "bicubic"), mix_cast(squares(), MIX_UINT8));
  assert_int_equal(mix_tensor_dtype(bytes), MIX_UINT8);
  EXPECT_EXACT(bytes, 4, 10, 11, 7, 10, 2);
  mix_tensor *whole = mix_call(mix_random_crop(2, 2), squares(), .training = MIX_FALSE);
  assert_int_equal(mix_shape_size(mix_tensor_shape(whole)), 24);
  mix_set_semantics("tf_keras");
  mix_tensor *floats = mix_call(mix_resizing(2, 3), mix_cast(squares(), MIX_UINT8));
  assert_int_equal(mix_tensor_dtype(floats), MIX_FLOAT32);
  EXPECT(floats, 4e-6, 0, 4.5, 9.75, 10.25, 7.25, 9.5, 2.75);
  EXPECT(mix_call(mix_random_crop(2, 2), squares(), .training = MIX_FALSE), 4e-6, 0, 8.25, 13.25, 9.5, 7.25);
}

static void one_image(void **state) {
  (void)state;
  mix_tensor *x = counted(MIX_SHAPE(4, 6, 2));
  mix_layer *const layers[] = {mix_resizing(2, 3), mix_center_crop(2, 3), mix_random_crop(2, 3)};
  for (int i = 0; i < 3; i++) expect_shape(mix_call(layers[i], x, .training = MIX_TRUE), MIX_SHAPE(2, 3, 2));
  mix_layer *const same[] = {mix_random_flip(), mix_random_rotation(.factor = MIX_FACTOR(0.2)),
                             mix_random_contrast(.factor = MIX_FACTOR(0.2)),
                             mix_random_brightness(.factor = MIX_FACTOR(0.2))};
  for (int i = 0; i < 4; i++) expect_shape(mix_call(same[i], x, .training = MIX_TRUE), MIX_SHAPE(4, 6, 2));
}

static void unknown_sizes(void **state) {
  (void)state;
  mix_tensor *x = mix_input(.shape = MIX_SHAPE(MIX_UNKNOWN, MIX_UNKNOWN, 3));
  mix_layer *const growing[] = {mix_max_pooling2d(.padding = "same"), mix_average_pooling2d(),
                                mix_zero_padding2d(), mix_cropping2d(1), mix_up_sampling2d()};
  for (int i = 0; i < 5; i++)
    expect_shape(mix_call(growing[i], x), MIX_SHAPE(MIX_UNKNOWN, MIX_UNKNOWN, MIX_UNKNOWN, 3));
  mix_layer *const sizing[] = {mix_resizing(2, 3), mix_center_crop(2, 3), mix_random_crop(2, 3)};
  for (int i = 0; i < 3; i++) expect_shape(mix_call(sizing[i], x), MIX_SHAPE(MIX_UNKNOWN, 2, 3, 3));
}

/* ---- configs ---- */

static void expect_config(mix_layer *layer, const char *config) {
  if (!layer || !strstr(mix_layer_config(layer), config))
    fail_msg("%s is not in %s", config, layer ? mix_layer_config(layer) : mix_error_message());
}

static void configs(void **state) {
  (void)state;
  expect_config(mix_max_pooling1d(), "\"pool_size\": [2], \"padding\": \"valid\", \"strides\": [2], "
                                     "\"data_format\": \"channels_last\"");
  expect_config(mix_global_max_pooling2d(), "\"data_format\": \"channels_last\", \"keepdims\": false");
  expect_config(mix_zero_padding1d(2), "\"padding\": [2, 2]}");
  expect_config(mix_zero_padding3d(), "\"padding\": [[1, 1], [1, 1], [1, 1]]");
  expect_config(mix_cropping2d(), "\"cropping\": [[0, 0], [0, 0]]");
  expect_config(mix_up_sampling1d(3), "\"size\": 3}");
  expect_config(mix_resizing(2, 3), "\"height\": 2, \"width\": 3, \"interpolation\": \"bilinear\", "
                                    "\"crop_to_aspect_ratio\": false}");
  expect_config(mix_random_rotation(.factor = MIX_FACTOR(0.1)),
                "\"factor\": 0.1, \"fill_mode\": \"reflect\"");
  expect_config(mix_random_rotation(.factor = MIX_FACTOR(0.1)), "\"rng_type\": \"stateful\"");
  expect_config(mix_random_contrast(.factor = MIX_FACTOR(0.2)), "\"factor\": 0.2, \"seed\": null");
  mix_set_semantics("keras3");
  expect_config(mix_zero_padding1d(2), "\"padding\": [2, 2], \"data_format\": \"channels_last\"");
  expect_config(mix_resizing(2, 3), "\"pad_to_aspect_ratio\": false, \"fill_mode\": \"constant\", "
                                    "\"fill_value\": 0.0, \"antialias\": false");
  expect_config(mix_random_rotation(.factor = MIX_FACTOR(0.1)), "\"factor\": [-0.1, 0.1]");
  expect_config(mix_random_rotation(.factor = MIX_FACTORS(0.2, -0.1)), "\"factor\": [-0.1, 0.2]");
  expect_config(mix_random_zoom(.height_factor = MIX_FACTOR(0.2)),
                "\"height_factor\": 0.2, \"width_factor\": null");
  expect_config(
      mix_random_translation(.height_factor = MIX_FACTOR(0.1), .width_factor = MIX_FACTORS(-0.1, 0.3)),
      "\"height_factor\": 0.1, \"width_factor\": [-0.1, 0.3]");
  expect_config(mix_random_contrast(.factor = MIX_FACTOR(0.2)),
                "\"factor\": [0, 0.2], \"value_range\": [0, 255]");
  expect_config(mix_random_brightness(.factor = MIX_FACTOR(0.2)),
                "\"factor\": [-0.2, 0.2], \"value_range\": [0, 255]");
  expect_config(mix_random_flip(), "\"mode\": \"horizontal_and_vertical\", \"seed\": null");
}

/* Forms that Keras also accepts. */
static void configs_are_read(void **state) {
  (void)state;
  static const struct {
    const char *name, *config, *written;
  } rows[] = {
      {"MaxPooling2D", "{\"pool_size\": 3, \"strides\": null}",
       "\"pool_size\": [3, 3], \"padding\": \"valid\", \"strides\": [3, 3]"},
      {"ZeroPadding2D", "{\"padding\": 2}", "\"padding\": [[2, 2], [2, 2]]"},
      {"ZeroPadding2D", "{\"padding\": [1, 2]}", "\"padding\": [[1, 1], [2, 2]]"},
      {"Cropping3D", "{\"cropping\": [[0, 1], 2, [3, 4]]}", "\"cropping\": [[0, 1], [2, 2], [3, 4]]"},
      {"UpSampling2D", "{\"size\": 3, \"interpolation\": \"Lanczos3\"}", "\"interpolation\": \"lanczos3\""},
      {"RandomZoom", "{\"height_factor\": [-0.1, 0.2]}", "\"height_factor\": [-0.1, 0.2]"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    expect_config(mix_layer_from_config(rows[i].name, rows[i].config, NULL), rows[i].written);
}

/* ---- bad options and inputs ---- */

#define BAD(layer, mentions) expect_refused(layer, MIX_VALUE_ERROR, mentions)
static void bad_options(void **state) {
  (void)state;
  BAD(mix_max_pooling2d(MIX_INT_ZERO), "pool_size has 0");
  BAD(mix_max_pooling2d(.pool_size = MIX_SHAPE(2, 2, 2)), "one, or 2");
  BAD(mix_max_pooling2d(.strides = MIX_SHAPE(2, -1)), "strides has -1");
  BAD(mix_max_pooling2d(.padding = "causal"), "padding 'causal'");
  BAD(mix_max_pooling2d(.data_format = "first"), "data_format 'first'");
  BAD(mix_zero_padding2d(.padding = MIX_BORDERS(1, 2, 3)), "padding has 3 numbers");
  BAD(mix_zero_padding2d(-1), "zero_padding2d: padding is -1; expected 0 or more");
  BAD(mix_cropping1d(.data_format = "channels_first"), "data_format");
  BAD(mix_up_sampling3d(.interpolation = "nearest"), "interpolation 'nearest'");
  BAD(mix_up_sampling2d(.interpolation = "cubic"), "interpolation 'cubic'");
  BAD(mix_resizing(-1, 3), "height");
  BAD(mix_resizing(2, 3, "bilinear", true, true), "aspect_ratio");
  BAD(mix_random_flip("diagonal"), "mode 'diagonal'");
  BAD(mix_random_rotation(.factor = MIX_FACTOR(0.1), .fill_mode = "mirror"), "fill_mode 'mirror'");
  BAD(mix_random_rotation(.factor = MIX_FACTOR(0.1), .interpolation = "bicubic"), "interpolation 'bicubic'");
  BAD(mix_random_rotation(.factor = MIX_FACTORS(0.2, -0.1)), "factor");
  BAD(mix_random_zoom(.height_factor = MIX_FACTOR(2)), "height_factor");
  BAD(mix_random_zoom(.height_factor = MIX_FACTORS(-1, 0)), "height_factor");
  BAD(mix_random_translation(.height_factor = MIX_FACTOR(0.1), .width_factor = MIX_FACTOR(1.5)),
      "width_factor");
  BAD(mix_random_contrast(.factor = MIX_FACTOR(-0.5)), "factor");
  BAD(mix_random_brightness(.factor = MIX_FACTOR(1.5)), "factor");
  BAD(mix_random_brightness(.factor = MIX_FACTOR(0.5), .value_range = {0, INFINITY}), "value_range");
  expect_refused(mix_random_zoom(), MIX_TYPE_ERROR, "height_factor is missing");
  mix_set_semantics("keras3");
  expect_refused(mix_average_pooling2d(), MIX_TYPE_ERROR, "pool_size is missing");
  BAD(mix_resizing(2, 3, "area"), "interpolation 'area'");
  BAD(mix_random_rotation(.factor = MIX_FACTOR(1.5)), "factor");
}

static void bad_inputs(void **state) {
  (void)state;
  mix_tensor *x = counted(MIX_SHAPE(1, 4, 6, 1));
  BAD(mix_call(mix_max_pooling2d(.pool_size = MIX_SHAPE(5, 1)), x), "(1, 4, 6, 1)");
  BAD(mix_call(mix_max_pooling1d(), x), "rank");
  BAD(mix_call(mix_cropping2d(.cropping = MIX_BORDERS(2, 0)), x), "leaves nothing");
  BAD(mix_call(mix_zero_padding2d(INT64_MAX), x), "pad");
  BAD(mix_call(mix_random_flip(), mix_reshape(x, MIX_SHAPE(4, 6)), .training = MIX_TRUE), "rank 4");
  BAD(mix_up_sampling1d(INT64_MAX), "up_sampling1d: size is 9223372036854775807; expected a smaller number");
  BAD(mix_call(mix_up_sampling1d(INT64_MAX / 8), five()), "counted");
  mix_set_semantics("keras3");
  BAD(mix_call(mix_adaptive_max_pooling2d(2), mix_input(.shape = MIX_SHAPE(MIX_UNKNOWN, 4, 1))), "known");
}

int main(void) {
  const struct CMUnitTest tests[] = {TEST(L11_L12_L13_pooling),
                                     TEST(channels_first),
                                     TEST(adaptive_pooling),
                                     TEST(masked_steps_are_left_out),
                                     TEST(borders),
                                     TEST(sizes_as_keras),
                                     TEST(one_image),
                                     TEST(unknown_sizes),
                                     TEST(configs),
                                     TEST(configs_are_read),
                                     TEST(bad_options),
                                     TEST(bad_inputs)};
  return cmocka_run_group_tests_name("nn/layers_spatial", tests, NULL, NULL);
}
