/* Convolution layers: rows L01 to L10, L24 and L25 of docs/spec/keras.md, orders of channels, transposed
 * sizes, and errors. The recorded models of tests/saving hold them beside Keras. */
#include "nn/sines.h"
#include <mixtape/convolution.h>

static const char *const policies[] = {"float32", "mixed_float16", "mixed_bfloat16",
                                       "float16", "bfloat16",      "float64"};
enum { POLICIES = sizeof policies / sizeof *policies };

static void set_weights(mix_layer *layer, int count, const double *kernel) {
  mix_list *weights = mix_layer_weights(layer), *values = mix_list_new(0, NULL);
  mix_shape shape = mix_variable_shape(mix_list_get(weights, 0));
  assert_int_equal(mix_shape_size(shape), count);
  mix_list_append(values, mix_tensor_from_doubles(kernel, MIX_FLOAT64, shape));
  assert_int_equal(mix_layer_set_weights(layer, values), MIX_OK);
}

/* The results are those numbers, rounded to the result's dtype. */
static void expect_rounded(mix_tensor *y, int count, const double *expected) {
  double rounded[64];
  assert_true(y && count <= 64);
  assert_int_equal(mix_shape_size(mix_tensor_shape(y)), count);
  mix_tensor *tensor = mix_tensor_from_doubles(expected, mix_tensor_dtype(y), MIX_SHAPE(count));
  assert_int_equal(mix_tensor_read(tensor, MIX_FLOAT64, rounded, count), MIX_OK);
  expect_values(y, count, rounded, 0, 0);
}

typedef struct row {
  const char *padding;
  int64_t strides, dilation;
  int count;
  double expected[5];
} row;

/* A kernel on x = 1 to 5, in every policy, generation, and as a convolution of the other numbers of axes. */
static void check_rows(int cells, const double *kernel, int rows, const row *table) {
  static const char *const generations[] = {"tf_keras", "keras3", "experimental"};
  const double x[5] = {1, 2, 3, 4, 5};
  for (int i = 0; i < rows; i++)
    for (int p = 0; p < POLICIES; p++)
      for (int g = 0; g < 3; g++)
        MIX_SCOPE {
          const row *r = &table[i];
          mix_set_semantics(generations[g]);
          mix_layer *layer =
              mix_conv1d(1, cells, .strides = MIX_SHAPE(r->strides), .dilation_rate = MIX_SHAPE(r->dilation),
                         .padding = r->padding, .no_bias = true, .dtype = policies[p]);
          mix_tensor *in = mix_tensor_from_doubles(x, MIX_FLOAT32, MIX_SHAPE(1, 5, 1));
          assert_non_null(mix_call(layer, in));
          set_weights(layer, cells, kernel);
          expect_rounded(mix_call(layer, in), r->count, r->expected);
          if (strcmp(r->padding, "causal") == 0) continue;
          layer = mix_conv2d(1, .kernel_size = MIX_SHAPE(1, cells), .strides = MIX_SHAPE(1, r->strides),
                             .dilation_rate = MIX_SHAPE(1, r->dilation), .padding = r->padding,
                             .no_bias = true, .dtype = policies[p]);
          in = mix_tensor_from_doubles(x, MIX_FLOAT32, MIX_SHAPE(1, 1, 5, 1));
          assert_non_null(mix_call(layer, in));
          set_weights(layer, cells, kernel);
          expect_rounded(mix_call(layer, in), r->count, r->expected);
        }
}

static void L01_to_L09_one_axis(void **state) {
  (void)state;
  static const row rows[] = {{"valid", 1, 1, 3, {321, 432, 543}},             /* L01 */
                             {"valid", 2, 1, 2, {321, 543}},                  /* L02 */
                             {"valid", 1, 2, 1, {531}},                       /* L03 */
                             {"same", 1, 1, 5, {210, 321, 432, 543, 54}},     /* L04 */
                             {"same", 2, 1, 3, {210, 432, 54}},               /* L05 */
                             {"same", 1, 2, 5, {310, 420, 531, 42, 53}},      /* L06 */
                             {"causal", 1, 1, 5, {100, 210, 321, 432, 543}},  /* L07 */
                             {"causal", 2, 1, 3, {100, 321, 543}},            /* L08 */
                             {"causal", 1, 2, 5, {100, 200, 310, 420, 531}}}; /* L09 */
  check_rows(3, (const double[]){1, 10, 100}, 9, rows);
}

static void L10_extra_padding_is_at_the_end(void **state) {
  (void)state;
  static const row rows[] = {{"same", 1, 1, 5, {21, 32, 43, 54, 5}}, {"same", 2, 1, 3, {21, 43, 5}}};
  check_rows(2, (const double[]){1, 10}, 2, rows);
}

static void expect_weight(mix_layer *layer, int index, const char *name, mix_shape shape) {
  mix_variable *weight = mix_list_get(mix_layer_weights(layer), index);
  const char *path = mix_variable_name(weight), *slash = strrchr(path, '/');
  assert_string_equal(slash ? slash + 1 : path, name);
  assert_true(mix_shape_equal(mix_variable_shape(weight), shape));
}

/* Uniform in +-limit: no number above, and the largest of 4608 within 1 % of it but for a chance of 1e-20. */
static void L24_conv2d_weights(void **state) {
  (void)state;
  enum { COUNT = 3 * 3 * 16 * 32 };
  mix_layer *layer = mix_conv2d(32, 3);
  mix_call(layer, mix_fill(MIX_SHAPE(1, 4, 4, 16), 1, MIX_FLOAT32));
  expect_weight(layer, 0, "kernel", MIX_SHAPE(3, 3, 16, 32));
  expect_weight(layer, 1, "bias", MIX_SHAPE(32));
  static double kernel[COUNT];
  double largest = 0;
  mix_tensor_read(mix_list_get(mix_layer_get_weights(layer), 0), MIX_FLOAT64, kernel, COUNT);
  for (int i = 0; i < COUNT; i++) largest = fmax(largest, fabs(kernel[i]));
  const double limit = sqrt(6. / 432);
  assert_true(largest <= limit * (1 + 1e-6) && largest > 0.99 * limit);
}

static void L25_depthwise_weights(void **state) {
  (void)state;
  for (int k3 = 0; k3 < 2; k3++) {
    mix_set_semantics(k3 ? "keras3" : "tf_keras");
    mix_layer *layer = mix_depthwise_conv2d(3, .depth_multiplier = 2);
    expect_shape(mix_call(layer, mix_fill(MIX_SHAPE(1, 4, 4, 16), 1, MIX_FLOAT32)), MIX_SHAPE(1, 2, 2, 32));
    expect_weight(layer, 0, k3 ? "kernel" : "depthwise_kernel", MIX_SHAPE(3, 3, 16, 2));
    expect_weight(layer, 1, "bias", MIX_SHAPE(32));
  }
  mix_layer *layer = mix_separable_conv2d(5, 3, .depth_multiplier = 2);
  expect_shape(mix_call(layer, mix_fill(MIX_SHAPE(1, 4, 4, 3), 1, MIX_FLOAT32)), MIX_SHAPE(1, 2, 2, 5));
  expect_weight(layer, 0, "depthwise_kernel", MIX_SHAPE(3, 3, 3, 2));
  expect_weight(layer, 1, "pointwise_kernel", MIX_SHAPE(1, 1, 6, 5));
  expect_weight(layer, 2, "bias", MIX_SHAPE(5));
  layer = mix_conv2d_transpose(5, .kernel_size = MIX_SHAPE(3, 2));
  mix_call(layer, mix_fill(MIX_SHAPE(1, 4, 4, 3), 1, MIX_FLOAT32));
  expect_weight(layer, 0, "kernel", MIX_SHAPE(3, 2, 5, 3));
  expect_weight(layer, 1, "bias", MIX_SHAPE(5));
  layer = mix_conv1d(6, 3, .groups = 3);
  mix_call(layer, mix_fill(MIX_SHAPE(1, 4, 6), 1, MIX_FLOAT32));
  expect_weight(layer, 0, "kernel", MIX_SHAPE(3, 2, 6));
}

static void channels_may_come_first(void **state) {
  (void)state;
  mix_layer *last = mix_conv2d(3, 2, .activation = "relu"),
            *first = mix_conv2d(3, 2, .activation = "relu", .data_format = "channels_first");
  mix_tensor *x = numbers(MIX_SHAPE(2, 4, 3, 2), 1, MIX_FLOAT32, NULL);
  mix_tensor *turned = mix_transpose(x, MIX_AXES(0, 3, 1, 2));
  mix_tensor *y = mix_call(last, x);
  mix_call(first, turned);
  mix_layer_set_weights(first, mix_layer_get_weights(last));
  double expected[2 * 3 * 2 * 3];
  mix_tensor_read(mix_transpose(y, MIX_AXES(0, 3, 1, 2)), MIX_FLOAT64, expected, 36);
  expect_values(mix_call(first, turned), 36, expected, 0, 0);
  expect_shape(mix_call(first, mix_input(.shape = MIX_SHAPE(2, MIX_UNKNOWN, 5))),
               MIX_SHAPE(MIX_UNKNOWN, 3, MIX_UNKNOWN, 4));
}

/* Lengths of section 2.2, for one axis. */
static void transposed_lengths(void **state) {
  (void)state;
  static const struct {
    int64_t cells, stride, dilation, given; /* given: output_padding, -1: None */
    const char *padding;
    int64_t length; /* of 5 cells */
  } rows[] = {{3, 1, 1, -1, "valid", 7}, {3, 2, 1, -1, "valid", 11}, {2, 3, 1, -1, "valid", 15},
              {3, 2, 1, 1, "valid", 12}, {3, 2, 1, -1, "same", 10},  {3, 2, 1, 0, "same", 9},
              {3, 2, 1, 1, "same", 10},  {4, 3, 1, 2, "same", 14},   {3, 1, 2, -1, "valid", 9}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    mix_layer *layer = mix_conv1d_transpose(
        2, rows[i].cells, .strides = MIX_SHAPE(rows[i].stride), .padding = rows[i].padding,
        .dilation_rate = MIX_SHAPE(rows[i].dilation),
        .output_padding = rows[i].given < 0 ? (mix_shape){.rank = 0} : MIX_SHAPE(rows[i].given));
    expect_shape(mix_call(layer, mix_fill(MIX_SHAPE(1, 5, 3), 1, MIX_FLOAT32)),
                 MIX_SHAPE(1, rows[i].length, 2));
  }
}

/* ---- a kernel for each place ---- */

typedef struct local {
  int axes;
  const char *kernel_shape;
  mix_locally_connected_options options;
  double y[64], of_kernel, of_bias[32], of_x[64]; /* gradients; of the kernel's the product with sines */
} local;
static const local locals[] = {
#include "nn/recorded/locally_connected.inc"
};

static mix_tensor *weighted(mix_tensor *y, double phase) {
  return mix_reduce_sum(mix_multiply(mix_cast(y, MIX_FLOAT32), sines(mix_tensor_shape(y), phase)),
                        MIX_ALL_AXES, false);
}

static void expect_shape_text(mix_shape shape, const char *expected) {
  char text[64] = "";
  for (int i = 0; i < shape.rank; i++)
    snprintf(text + strlen(text), sizeof text - strlen(text), "%s%d", i ? "x" : "", (int)shape.dims[i]);
  assert_string_equal(text, expected);
}

static void run_local(const local *l) {
  mix_locally_connected_options o = l->options;
  o.size = sizeof o;
  mix_layer *layer = l->axes == 1 ? mix_locally_connected1d_with(&o) : mix_locally_connected2d_with(&o);
  const bool first = !strcmp(o.data_format, "channels_first"), half = strcmp(o.dtype, "float32");
  const mix_shape shape = l->axes == 1 ? (first ? MIX_SHAPE(2, 3, 7) : MIX_SHAPE(2, 7, 3))
                                       : (first ? MIX_SHAPE(2, 2, 4, 3) : MIX_SHAPE(2, 4, 3, 2));
  mix_tensor *x = mix_cast(sines(shape, 0.3), half ? MIX_FLOAT16 : MIX_FLOAT32);
  mix_layer_build(layer, shape);
  mix_list *weights = mix_layer_weights(layer);
  const mix_shape of_kernel = mix_variable_shape(mix_list_get(weights, 0)),
                  of_bias = mix_variable_shape(mix_list_get(weights, 1));
  expect_shape_text(of_kernel, l->kernel_shape);
  mix_layer_set_weights(layer, mix_list_of(sines(of_kernel, 1), sines(of_bias, 2)));
  mix_tape *tape = mix_tape_begin();
  mix_tape_watch(tape, x);
  mix_tensor *y = mix_call(layer, x), *loss = weighted(y, 0.1);
  mix_tape_end(tape);
  mix_list *gradients =
      mix_tape_gradient(tape, loss, mix_list_of(mix_list_get(weights, 0), mix_list_get(weights, 1), x));
  if (!gradients) fail_msg("%s", mix_error_message());
  /* At most 12 terms below 1 in another order; of float16 TensorFlow rounds some of their sums. */
  const double unit = half ? 12 * 0x1p-11 : 12 * 0x1p-24;
  expect_values(y, (int)mix_shape_size(mix_tensor_shape(y)), l->y, unit, 0);
  expect_values(weighted(mix_list_get(gradients, 0), 0.2), 1, &l->of_kernel, half ? 0x1p-8 : 0x1p-18,
                0); /* up to 300 products */
  expect_values(mix_list_get(gradients, 1), (int)mix_shape_size(of_bias), l->of_bias, unit, 0);
  expect_values(mix_list_get(gradients, 2), (int)mix_shape_size(shape), l->of_x, unit, 0);
}
static void locally_connected_layers_are_those_of_keras(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof locals / sizeof *locals; i++)
    MIX_SCOPE { run_local(&locals[i]); }
}

static void refused_locally_connected_layers(void **state) {
  (void)state;
  mix_tensor *line = mix_fill(MIX_SHAPE(1, 4, 3), 1, MIX_FLOAT32);
  expect_refused(mix_locally_connected1d(2, 3, .padding = "same"), MIX_VALUE_ERROR, "use implementation 2");
  expect_refused(mix_locally_connected1d(2, 3, .padding = "causal"), MIX_VALUE_ERROR, "padding 'causal'");
  expect_refused(mix_locally_connected1d(2, 3, .implementation = 4), MIX_VALUE_ERROR, "implementation is 4");
  expect_refused(mix_locally_connected2d(0, 3), MIX_VALUE_ERROR, "filters");
  expect_refused(mix_call(mix_locally_connected1d(2, 5), line), MIX_VALUE_ERROR, "at least the kernel's");
  expect_refused(mix_call(mix_locally_connected2d(2, 2), line), MIX_VALUE_ERROR, "expected 4 dimensions");
  expect_refused(mix_call(mix_locally_connected1d(2, 2), mix_input(.shape = MIX_SHAPE(MIX_UNKNOWN, 3))),
                 MIX_VALUE_ERROR, "known sizes");
  /* Cells beyond the input, of which bytes of tables cannot be counted. */
  for (int implementation = 2; implementation <= 3; implementation++)
    expect_refused(mix_call(mix_locally_connected1d(1, (int64_t)1 << 59, .padding = "same",
                                                    .implementation = implementation),
                            line),
                   MIX_VALUE_ERROR, "can be counted");
}

static void refused_options(void **state) {
  (void)state;
  expect_refused(mix_conv2d(0, 3), MIX_VALUE_ERROR, "filters");
  expect_refused(mix_conv2d(2, .kernel_size = MIX_SHAPE(3, 3, 3)), MIX_VALUE_ERROR,
                 "kernel_size has 3 numbers");
  expect_refused(mix_conv2d(2, .kernel_size = MIX_SHAPE(3, 0)), MIX_VALUE_ERROR, "kernel_size holds 0");
  expect_refused(mix_conv2d(2), MIX_TYPE_ERROR, "kernel_size is missing");
  expect_refused(mix_conv2d(2, 3, .strides = MIX_SHAPE(0)), MIX_VALUE_ERROR, "strides holds 0");
  expect_refused(mix_conv2d(2, 3, .strides = MIX_SHAPE(2), .dilation_rate = MIX_SHAPE(1, 2)), MIX_VALUE_ERROR,
                 "both strides and dilation_rate");
  expect_refused(mix_conv2d(2, 3, .padding = "causal"), MIX_VALUE_ERROR, "padding 'causal'");
  expect_refused(mix_conv1d(2, 3, .padding = "full"), MIX_VALUE_ERROR, "or causal");
  expect_refused(mix_conv2d(4, 3, .groups = 3), MIX_VALUE_ERROR, "3 groups do not divide 4 filters");
  expect_refused(mix_conv2d(4, 3, .groups = -1), MIX_VALUE_ERROR, "groups is -1");
  expect_refused(mix_conv2d(4, 3, .data_format = "first"), MIX_VALUE_ERROR, "data_format");
  expect_refused(mix_conv2d(4, 3, .activation = "nothing"), MIX_VALUE_ERROR, "nothing");
  expect_refused(mix_depthwise_conv2d(3, .depth_multiplier = -2), MIX_VALUE_ERROR, "depth_multiplier is -2");
  expect_refused(mix_conv2d_transpose(2, 3, .strides = MIX_SHAPE(2), .output_padding = MIX_SHAPE(2)),
                 MIX_VALUE_ERROR, "output_padding is 2");
  expect_refused(mix_conv1d(2, .kernel_size = MIX_SHAPE(1, 2, 3, 4, 5, 6, 7, 8)), MIX_VALUE_ERROR,
                 "kernel_size");
}

static void refused_inputs(void **state) {
  (void)state;
  mix_tensor *image = mix_fill(MIX_SHAPE(1, 4, 4, 3), 1, MIX_FLOAT32);
  expect_refused(mix_call(mix_conv1d(2, 3), image), MIX_VALUE_ERROR, "expected 3 dimensions");
  expect_refused(mix_call(mix_conv2d(2, 3), mix_input(.shape = MIX_SHAPE(4, 4, MIX_UNKNOWN))),
                 MIX_VALUE_ERROR, "known number of channels");
  expect_refused(mix_call(mix_conv2d(4, 3, .groups = 2), image), MIX_VALUE_ERROR,
                 "2 groups do not divide the channels");
  expect_refused(mix_call(mix_conv2d(2, 5), image), MIX_VALUE_ERROR, "covers 5 cells");
  expect_refused(mix_call(mix_conv2d(2, 2, .dilation_rate = MIX_SHAPE(1, 4)), image), MIX_VALUE_ERROR,
                 "covers 5 cells");
  expect_refused(mix_call(mix_separable_conv2d(2, 5), image), MIX_VALUE_ERROR, "covers 5 cells");
  mix_layer *built = mix_conv2d(2, 3);
  mix_call(built, image);
  expect_refused(mix_call(built, mix_fill(MIX_SHAPE(1, 4, 4, 2), 1, MIX_FLOAT32)), MIX_VALUE_ERROR, "3");
  expect_refused(mix_call(mix_conv2d_transpose(2, 4, .strides = MIX_SHAPE(2), .padding = "same",
                                               .output_padding = MIX_SHAPE(0)),
                          image),
                 MIX_VALUE_ERROR, "the convolution whose gradient it is");
  expect_refused(
      mix_call(mix_conv2d(2, .kernel_size = MIX_SHAPE(INT64_MAX / 2, 1), .padding = "same"), image),
      MIX_VALUE_ERROR, "");
}

int main(void) {
  const struct CMUnitTest tests[] = {TEST(L01_to_L09_one_axis),
                                     TEST(L10_extra_padding_is_at_the_end),
                                     TEST(L24_conv2d_weights),
                                     TEST(L25_depthwise_weights),
                                     TEST(channels_may_come_first),
                                     TEST(transposed_lengths),
                                     TEST(locally_connected_layers_are_those_of_keras),
                                     TEST(refused_locally_connected_layers),
                                     TEST(refused_options),
                                     TEST(refused_inputs)};
  return cmocka_run_group_tests_name("convolution layers", tests, NULL, NULL);
}
