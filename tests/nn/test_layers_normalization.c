/* Normalisation layers: values (docs/spec/keras.md, 5 and 19.2) and the rules of each generation
 * (docs/spec/mixed_precision.md, 5.1 and 5.2). */
#include "nn/layer_support.h"
#include "nn/layers/moments.h"

static const char *const generations[] = {"tf_keras", "keras3", "experimental"};

static mix_variable *weight(mix_layer *layer, int index) {
  return mix_list_get(mix_layer_weights(layer), index);
}
static mix_tensor *column(mix_dtype dtype) { return MATRIX(dtype, 4, 1, 1, 2, 3, 6); }

/* ---- BatchNormalization ---- */

static void L19_batch_normalization_in_training(void **state) {
  (void)state;
  for (int i = 0; i < 3; i++) {
    mix_set_semantics(generations[i]);
    mix_layer *layer = mix_batch_normalization();
    mix_tensor *y = mix_call(layer, column(MIX_FLOAT32), .training = MIX_TRUE);
    EXPECT(y, 2e-7, 0, -1.0688923, -0.5344461, 0, 1.6033384); /* the table has 7 digits */
    EXPECT(mix_variable_value(weight(layer, 2)), 1e-8, 0, 0.03);
    EXPECT(mix_variable_value(weight(layer, 3)), 1e-6, 0, 1.025);
  }
}
static void L19_fused_moving_variance_is_unbiased(void **state) {
  (void)state;
  static const double wanted[] = {1.0366667, 1.025, 1.0366667};
  mix_tensor *x = mix_reshape(column(MIX_FLOAT32), MIX_SHAPE(4, 1, 1, 1));
  for (int i = 0; i < 3; i++) {
    mix_set_semantics(generations[i]);
    mix_layer *layer = mix_batch_normalization();
    EXPECT(mix_call(layer, x, .training = MIX_TRUE), 2e-7, 0, -1.0688923, -0.5344461, 0, 1.6033384);
    EXPECT(mix_variable_value(weight(layer, 3)), 1e-6, 0, wanted[i]);
    mix_layer *deep = mix_batch_normalization(.axis = 1);
    mix_call(deep, mix_reshape(x, MIX_SHAPE(4, 1, 1, 1, 1)), .training = MIX_TRUE);
    EXPECT(mix_variable_value(weight(deep, 3)), 1e-6, 0, wanted[i]);
    mix_layer *unfused = mix_batch_normalization(.not_fused = true);
    mix_call(unfused, x, .training = MIX_TRUE);
    EXPECT(mix_variable_value(weight(unfused, 3)), 1e-6, 0, 1.025);
  }
}
/* the table's seven decimals, and three roundings: the sum, the root, the product */
static void L20_inference_with_fresh_statistics(void **state) {
  (void)state;
  mix_layer *layer = mix_batch_normalization();
  EXPECT(mix_call(layer, column(MIX_FLOAT32)), 1e-7, 2e-7, 0.9995004, 1.9990007, 2.9985011, 5.9970022);
  EXPECT_EXACT(mix_variable_value(weight(layer, 2)), 0);
}
static void L22_frozen(void **state) {
  (void)state;
  mix_layer *layer = mix_batch_normalization(.not_trainable = true);
  EXPECT(mix_call(layer, column(MIX_FLOAT32), .training = MIX_TRUE), 1e-7, 2e-7, 0.9995004, 1.9990007,
         2.9985011, 5.9970022);
  EXPECT_EXACT(mix_variable_value(weight(layer, 2)), 0);
  EXPECT_EXACT(mix_variable_value(weight(layer, 3)), 1);
  assert_int_equal(mix_list_count(mix_layer_trainable_weights(layer)), 0);
  assert_int_equal(mix_list_count(mix_layer_non_trainable_weights(layer)), 4);
  mix_layer_set_trainable(layer, true);
  mix_call(layer, column(MIX_FLOAT32), .training = MIX_TRUE);
  EXPECT(mix_variable_value(weight(layer, 2)), 1e-8, 0, 0.03);
}
static void weights_of_batch_normalization(void **state) {
  (void)state;
  mix_layer *layer = mix_batch_normalization();
  mix_layer_build(layer, MIX_SHAPE(MIX_UNKNOWN, 3));
  static const char *const names[] = {"gamma", "beta", "moving_mean", "moving_variance"};
  for (int i = 0; i < 4; i++) {
    char name[64];
    snprintf(name, sizeof name, "batch_normalization/%s", names[i]);
    assert_string_equal(mix_variable_name(weight(layer, i)), name);
    expect_shape(mix_variable_value(weight(layer, i)), MIX_SHAPE(3));
  }
  assert_int_equal(mix_list_count(mix_layer_trainable_weights(layer)), 2);
  mix_layer *bare = mix_batch_normalization(.no_center = true, .no_scale = true);
  mix_layer_build(bare, MIX_SHAPE(MIX_UNKNOWN, 3));
  assert_int_equal(mix_list_count(mix_layer_weights(bare)), 2);
  expect_refused(mix_call(layer, mix_fill(MIX_SHAPE(2, 4), 1, MIX_FLOAT32)), MIX_VALUE_ERROR, "size 3");
  expect_refused(mix_call(mix_batch_normalization(), mix_input(.shape = MIX_SHAPE(MIX_UNKNOWN))),
                 MIX_VALUE_ERROR, "known");
  expect_refused(mix_call(mix_batch_normalization(), VECTOR(MIX_FLOAT32, 1)), MIX_VALUE_ERROR, "rank 2");
  expect_refused(mix_call(mix_batch_normalization(.axis = 2), column(MIX_FLOAT32)), MIX_VALUE_ERROR,
                 "axis 2");
  expect_refused(mix_batch_normalization(.epsilon = -1), MIX_VALUE_ERROR, "epsilon");
}
/* 5.1: float32 weights if the layer's dtype is 16-bit; 5.2: the variable dtype. Never cast: no autocast. */
static void batch_normalization_weight_dtypes(void **state) {
  (void)state;
  static const mix_dtype pure[] = {MIX_FLOAT32, MIX_FLOAT16, MIX_FLOAT32};
  for (int i = 0; i < 3; i++) {
    mix_set_semantics(generations[i]);
    mix_layer *layer = mix_batch_normalization(.dtype = "float16"),
              *mixed = mix_batch_normalization(.dtype = "mixed_bfloat16");
    expect_dtype(mix_call(layer, column(MIX_FLOAT32), .training = MIX_TRUE), MIX_FLOAT16);
    expect_dtype(mix_call(mixed, column(MIX_FLOAT32), .training = MIX_TRUE), MIX_BFLOAT16);
    for (int w = 0; w < 4; w++) {
      assert_int_equal(mix_variable_true_dtype(weight(layer, w)), pure[i]);
      assert_int_equal(mix_variable_true_dtype(weight(mixed, w)), MIX_FLOAT32);
      assert_false(mix_variable_is_autocast(weight(mixed, w)));
    }
  }
}
/* Statistics of 16-bit inputs are float32: 300 squared overflows float16, and 2048 + 1 is not a float16
 * number. */
static void batch_normalization_widens(void **state) {
  (void)state;
  mix_tensor *x = MATRIX(MIX_FLOAT16, 4, 1, 1000, -1000, 1000, -1000),
             *big = MATRIX(MIX_FLOAT16, 2, 1, 2048, 2050);
  for (int i = 0; i < 3; i++) {
    mix_set_semantics(generations[i]);
    EXPECT(mix_call(mix_batch_normalization(.dtype = "mixed_float16"), x, .training = MIX_TRUE), 0, 1e-3, 1,
           -1, 1, -1);
    mix_layer *layer =
        mix_batch_normalization(.dtype = "mixed_float16", .momentum = MIX_ZERO, .epsilon = MIX_ZERO);
    EXPECT_EXACT(mix_call(layer, big, .training = MIX_TRUE), -1, 1);
    EXPECT_EXACT(mix_variable_value(weight(layer, 2)), 2049);
    EXPECT_EXACT(mix_variable_value(weight(layer, 3)), 1);
  }
}
/* tf_keras: moving -= (moving - batch) (1 - momentum); keras3: moving momentum + batch (1 - momentum). In
 * float32 they differ for these numbers. */
static void moving_average_formulas(void **state) {
  (void)state;
  float old = 0.75f, batch = 0.1f, share = (float)(1 - 0.9), momentum = 0.9f;
  volatile float step = (old - batch) * share, kept = old * momentum, added = batch * share;
  const double wanted[] = {old - step, kept + added, old - step};
  assert_true(wanted[0] != wanted[1]);
  for (int i = 0; i < 3; i++) {
    mix_set_semantics(generations[i]);
    mix_layer *layer =
        mix_batch_normalization(.momentum = 0.9, .moving_mean_initializer_object =
                                                     mix_initializer_new("constant", .value = old));
    mix_call(layer, MATRIX(MIX_FLOAT32, 2, 1, batch, batch), .training = MIX_TRUE);
    EXPECT_EXACT(mix_variable_value(weight(layer, 2)), wanted[i]);
  }
}
static void fused_is_refused(void **state) {
  (void)state;
  expect_refused(mix_batch_normalization(.fused = true, .dtype = "float64"), MIX_VALUE_ERROR, "float64");
  expect_refused(mix_batch_normalization(.fused = true, .not_fused = true), MIX_VALUE_ERROR, "both");
  expect_refused(mix_call(mix_batch_normalization(.fused = true), column(MIX_FLOAT32)), MIX_VALUE_ERROR,
                 "rank 2");
  mix_set_semantics("keras3"); /* it has no argument `fused` */
  assert_non_null(mix_batch_normalization(.fused = true, .dtype = "float64"));
}
static void batch_normalization_masks(void **state) {
  (void)state;
  /* (2, 2, 1): the last step of the second sample is masked; mean 2, variance 2/3 of 1, 2, 3 */
  mix_tensor *x = mix_tensor_from_doubles((double[]){1, 2, 3, 100}, MIX_FLOAT32, MIX_SHAPE(2, 2, 1));
  mix_tensor *mask = mix_tensor_from((uint8_t[]){1, 1, 1, 0}, MIX_BOOL, MIX_SHAPE(2, 2));
  for (int i = 0; i < 3; i++) {
    mix_set_semantics(generations[i]);
    mix_layer *layer = mix_batch_normalization(.momentum = MIX_ZERO, .epsilon = MIX_ZERO);
    mix_tensor *y = mix_call(layer, x, .mask = mask, .training = MIX_TRUE);
    EXPECT(y, 0, 1e-6, -sqrt(1.5), 0, sqrt(1.5), 98 * sqrt(1.5));
    EXPECT(mix_variable_value(weight(layer, 2)), 0, 1e-6, 2);
    EXPECT(mix_variable_value(weight(layer, 3)), 0, 1e-6, 2. / 3);
    assert_ptr_equal(y->mask, mask);
  }
  /* fused: ignored with a warning, once */
  mix_set_semantics("tf_keras");
  mix_layer *fused = mix_batch_normalization(.momentum = MIX_ZERO);
  mix_tensor *image = mix_reshape(x, MIX_SHAPE(2, 2, 1, 1)), *wide = mix_reshape(mask, MIX_SHAPE(2, 2, 1));
  for (int i = 0; i < 2; i++) mix_call(fused, image, .mask = wide, .training = MIX_TRUE);
  EXPECT(mix_variable_value(weight(fused, 2)), 0, 1e-6, 26.5);
  assert_int_equal(log_count, 1);
  assert_int_equal(log_level, MIX_LOG_WARNING);
}
static mix_list *train(void *layer, mix_list *arguments) {
  return mix_list_of(mix_call(layer, mix_list_get(arguments, 0), .training = MIX_TRUE));
}
static void statistics_move_inside_captures(void **state) {
  (void)state;
  for (int i = 0; i < 3; i++) {
    mix_set_semantics(generations[i]);
    mix_layer *layer = mix_batch_normalization(.momentum = 0.5, .dtype = "mixed_float16"),
              *twin = mix_batch_normalization(.momentum = 0.5);
    mix_function *function = mix_function_new(train, layer);
    mix_list *arguments = mix_list_of(column(MIX_FLOAT32));
    for (int step = 0; step < 3; step++) {
      assert_non_null(mix_function_call(function, arguments));
      mix_call(twin, column(MIX_FLOAT32), .training = MIX_TRUE);
    }
    EXPECT_EXACT(mix_variable_value(weight(layer, 2)), 3 * (1 - 0.125)); /* powers of two: exact */
    EXPECT(mix_variable_value(weight(layer, 3)), 0, 1e-6,
           mix_tensor_item(mix_variable_value(weight(twin, 3))));
  }
}
/* Gradients go through the batch's own statistics only, not through the moving averages to a later
 * inference. */
static void no_gradient_through_moving_statistics(void **state) {
  (void)state;
  mix_layer *layer = mix_batch_normalization(.momentum = 0.5);
  mix_tensor *x = column(MIX_FLOAT32), *ones = mix_fill(MIX_SHAPE(1, 1), 1, MIX_FLOAT32);
  mix_call(layer, x, .training = MIX_TRUE);
  mix_tape *tape = mix_tape_begin();
  mix_tape_watch(tape, x);
  mix_call(layer, x, .training = MIX_TRUE);
  mix_tensor *y = mix_reduce_sum(mix_call(layer, ones), MIX_ALL_AXES, false);
  mix_tape_end(tape);
  assert_null(mix_list_get(mix_tape_gradient(tape, y, mix_list_of(x)), 0));
}
static void symbolic_training_changes_nothing(void **state) {
  (void)state;
  mix_layer *layer = mix_batch_normalization();
  mix_tensor *y = mix_call(layer, mix_input(.shape = MIX_SHAPE(3)), .training = MIX_TRUE);
  expect_shape(y, MIX_SHAPE(MIX_UNKNOWN, 3));
  EXPECT_EXACT(mix_variable_value(weight(layer, 2)), 0, 0, 0);
}
static void integers_are_cast(void **state) {
  (void)state;
  mix_tensor *x = mix_tensor_from((int32_t[]){1, 3}, MIX_INT32, MIX_SHAPE(1, 2));
  mix_layer *layers[] = {mix_batch_normalization(), mix_layer_normalization(), mix_unit_normalization(),
                         mix_normalization(), mix_rms_normalization()};
  for (int i = 0; i < 5; i++) expect_dtype(mix_call(layers[i], x), MIX_FLOAT32);
}

/* ---- the other layers ---- */

static void L21_layer_normalization(void **state) {
  (void)state;
  for (int i = 0; i < 3; i++) {
    mix_set_semantics(generations[i]);
    mix_tensor *x = mix_reshape(column(MIX_FLOAT32), MIX_SHAPE(1, 4));
    EXPECT(mix_call(mix_layer_normalization(), x), 2e-7, 0, -1.0688923, -0.5344461, 0, 1.6033384);
    mix_layer *layer = mix_layer_normalization(.axis = MIX_AXES(2, 1), .gamma_initializer = "ones",
                                               .beta_initializer = "ones");
    EXPECT(mix_call(layer, mix_reshape(x, MIX_SHAPE(1, 2, 2))), 3e-7, 0, -0.0688923, 0.4655539, 1, 2.6033384);
    expect_shape(mix_variable_value(weight(layer, 0)), MIX_SHAPE(2, 2));
  }
  expect_refused(mix_call(mix_layer_normalization(.axis = MIX_AXES(1, 1)), column(MIX_FLOAT32)),
                 MIX_VALUE_ERROR, "twice");
  expect_refused(mix_call(mix_layer_normalization(.axis = MIX_AXES(3)), column(MIX_FLOAT32)), MIX_VALUE_ERROR,
                 "outside");
  expect_refused(mix_call(mix_layer_normalization(), mix_input(.shape = MIX_SHAPE(MIX_UNKNOWN))),
                 MIX_VALUE_ERROR, "known");
}
/* 1 + 2^-12 is not a float16 number: if the input is cast first, all elements are equal. */
static void A15_layer_normalization_is_not_cast(void **state) {
  (void)state;
  mix_tensor *x = MATRIX(MIX_FLOAT32, 1, 2, 1, 1 + 0x1p-12);
  static const double wanted[] = {0, 1, 0};
  for (int i = 0; i < 3; i++) {
    mix_set_semantics(generations[i]);
    mix_layer *layer = mix_layer_normalization(.dtype = "mixed_float16", .epsilon = MIX_ZERO);
    if (wanted[i] == 0) layer = mix_layer_normalization(.dtype = "mixed_float16");
    mix_tensor *y = mix_call(layer, x);
    expect_dtype(y, MIX_FLOAT16);
    EXPECT(y, 0, 1e-3, -wanted[i], wanted[i]);
    assert_int_equal(mix_variable_true_dtype(weight(layer, 0)), MIX_FLOAT32);
    assert_false(mix_variable_is_autocast(weight(layer, 0)));
  }
  mix_set_semantics("keras3");
  mix_layer *group = mix_group_normalization(.groups = 1, .dtype = "mixed_float16", .epsilon = MIX_ZERO);
  mix_tensor *y = mix_call(group, x);
  expect_dtype(y, MIX_FLOAT16);
  EXPECT(y, 0, 1e-3, -1, 1);
}
/* 5.1: the fused rules round before gamma and beta, which act in the input's dtype. Other axes, small
 * epsilons and keras3 round once. */
static void layer_normalization_affine_dtype(void **state) {
  (void)state;
  mix_tensor *x = MATRIX(MIX_FLOAT16, 1, 2, -1, 1);
  const double gamma = 1 + 0x1p-11, normal = 1 / sqrt(1 + 1e-3);
  /* in float16 gamma rounds to 1 (to even) */
  const struct {
    const char *semantics;
    double epsilon, wanted;
  } rows[] = {{"tf_keras", 1e-3, normal}, {"experimental", 1e-3, normal}, {"keras3", 1e-3, normal * gamma}};
  for (int i = 0; i < 3; i++) {
    mix_set_semantics(rows[i].semantics);
    mix_layer *layer =
        mix_layer_normalization(.dtype = "mixed_float16", .no_center = true,
                                .gamma_initializer_object = mix_initializer_new("constant", .value = gamma));
    double rounded;
    mix_tensor_read(mix_scalar(rows[i].wanted, MIX_FLOAT16), MIX_FLOAT64, &rounded, 1);
    EXPECT_EXACT(mix_call(layer, x), -rounded, rounded);
  }
  /* Not fused: epsilon below 1.001e-5. Equal up to rounding of (1 + 2^-11) / sqrt(1 + 1e-5), which is above 1
   * + 2^-11 - 2^-17. */
  mix_set_semantics("tf_keras");
  mix_layer *layer = mix_layer_normalization(.dtype = "mixed_float16", .no_center = true, .epsilon = 1e-6,
                                             .gamma_initializer_object =
                                                 mix_initializer_new("constant", .value = 1 + 0x1.8p-11));
  EXPECT_EXACT(mix_call(layer, x), -(1 + 0x1p-10), 1 + 0x1p-10);
}
/* 5.1: without float32 variables nothing is widened: centred squares of 300 overflow float16, and 1 /
 * sqrt(infinity) is 0. */
static void layer_normalization_in_pure_float16(void **state) {
  (void)state;
  mix_tensor *x = MATRIX(MIX_FLOAT16, 1, 2, -300, 300);
  static const double wanted[] = {0, 1, 0};
  for (int i = 0; i < 3; i++) {
    mix_set_semantics(generations[i]);
    EXPECT(mix_call(mix_layer_normalization(.dtype = "float16"), x), 0, 1e-3, -wanted[i], wanted[i]);
    EXPECT(mix_call(mix_layer_normalization(.dtype = "mixed_float16"), x), 0, 1e-3, -1, 1);
  }
}
static void group_normalization(void **state) {
  (void)state;
  /* groups (1, 3) and (10, 30) of each sample */
  mix_tensor *x = MATRIX(MIX_FLOAT32, 1, 4, 1, 3, 10, 30);
  mix_layer *layer = mix_group_normalization(.groups = 2, .epsilon = MIX_ZERO);
  EXPECT(mix_call(layer, x), 0, 1e-6, -1, 1, -1, 1);
  mix_layer_set_weights(layer, mix_list_of(VECTOR(MIX_FLOAT32, 1, 2, 3, 4), VECTOR(MIX_FLOAT32, 0, 0, 1, 1)));
  EXPECT(mix_call(layer, x), 0, 1e-6, -1, 2, -2, 5);
  /* over the spatial axis too, channels first: (1, 2, 2), a group for each channel */
  mix_layer *first = mix_group_normalization(.groups = -1, .axis = 1, .epsilon = MIX_ZERO);
  EXPECT(mix_call(first, mix_reshape(x, MIX_SHAPE(1, 2, 2))), 0, 1e-6, -1, 1, -1, 1);
  expect_refused(mix_call(mix_group_normalization(), x), MIX_VALUE_ERROR, "32 groups");
  expect_refused(mix_call(mix_group_normalization(.groups = 3), x), MIX_VALUE_ERROR, "divide");
  expect_refused(mix_group_normalization(.groups = -2), MIX_VALUE_ERROR, "groups");
  expect_refused(mix_call(mix_group_normalization(.groups = 1, .axis = -2), x), MIX_VALUE_ERROR, "batch");
}
/* y and the gradient of x, times dy, of images with the channels first. */
static void normalize_groups(int axis, mix_tensor *x, mix_tensor *dy, mix_tensor *results[2]) {
  static const mix_axes to_last = {4, {0, 2, 3, 1}}, to_first = {4, {0, 3, 1, 2}};
  mix_layer *layer = mix_group_normalization(.groups = 2, .axis = axis, .dtype = "float64");
  mix_tape *tape = mix_tape_begin();
  mix_tape_watch(tape, x);
  mix_tensor *y = mix_call(layer, axis == 1 ? x : mix_transpose(x, to_last));
  results[0] = axis == 1 ? y : mix_transpose(y, to_first);
  mix_tensor *product = mix_multiply(results[0], dy);
  mix_tape_end(tape);
  results[1] = mix_list_get(mix_tape_gradient(tape, product, mix_list_of(x)), 0);
}
/* With the channels last, moments are those of rows of a group first. */
static void groups_of_images_with_channels_last(void **state) {
  (void)state;
  const mix_shape shape = MIX_SHAPE(2, 16, 3, 5);
  mix_generator *generator = mix_generator_new(1);
  mix_tensor *x = mix_add(mix_random_uniform(generator, shape, MIX_FLOAT64), mix_scalar(1000, MIX_FLOAT64)),
             *dy = mix_random_uniform(generator, shape, MIX_FLOAT64), *first[2], *last[2];
  normalize_groups(1, x, dy, first);
  normalize_groups(-1, x, dy, last);
  for (int i = 0; i < 2; i++)
    assert_true(mix_tensor_item(mix_reduce_max(mix_abs(mix_subtract(first[i], last[i])), MIX_AXES(), false)) <
                1e-8);
}
/* 5.1: in the compute dtype, where variances overflow; 5.2: in float32. */
static void group_normalization_widens_in_keras3(void **state) {
  (void)state;
  mix_tensor *x = MATRIX(MIX_FLOAT16, 1, 2, -300, 300);
  static const double wanted[] = {0, 1, 0};
  for (int i = 0; i < 3; i++) {
    mix_set_semantics(generations[i]);
    mix_layer *layer = mix_group_normalization(.groups = 1, .dtype = "mixed_float16");
    EXPECT(mix_call(layer, x), 0, 1e-3, -wanted[i], wanted[i]);
    assert_int_equal(mix_variable_is_autocast(weight(layer, 0)), i != 1);
  }
}
static void rms_normalization(void **state) {
  (void)state;
  mix_tensor *x = MATRIX(MIX_FLOAT32, 1, 2, 3, -3);
  EXPECT(mix_call(mix_rms_normalization(), x), 0, 1e-6, 1, -1);
  EXPECT(mix_call(mix_rms_normalization(.axis = MIX_AXES(0)), MATRIX(MIX_FLOAT32, 2, 1, 0, 2)), 0, 1e-6, 0,
         sqrt(2));
  /* 5.2: computes in float32: 300^2 overflows float16. The scale is read in the compute dtype. */
  mix_set_semantics("keras3");
  mix_layer *layer = mix_rms_normalization(.dtype = "mixed_float16");
  mix_tensor *y = mix_call(layer, MATRIX(MIX_FLOAT16, 1, 2, 300, -300));
  expect_dtype(y, MIX_FLOAT16);
  EXPECT(y, 0, 1e-3, 1, -1);
  assert_true(mix_variable_is_autocast(weight(layer, 0)));
  assert_string_equal(mix_variable_name(weight(layer, 0)), "rms_normalization_2/scale");
}
static void unit_normalization(void **state) {
  (void)state;
  for (int i = 0; i < 3; i++) {
    mix_set_semantics(generations[i]);
    EXPECT(mix_call(mix_unit_normalization(), MATRIX(MIX_FLOAT32, 2, 2, 3, 4, 0, 0)), 0, 1e-6, 0.6, 0.8, 0,
           0);
    /* in the compute dtype the smallest square is 0 in float16, and 0 / 0 is NaN */
    EXPECT(mix_call(mix_unit_normalization(.dtype = "mixed_float16"), MATRIX(MIX_FLOAT32, 1, 2, 0, 0)), 0, 0,
           NAN, NAN);
    /* no widening: 300^2 overflows */
    EXPECT_EXACT(
        mix_call(mix_unit_normalization(.dtype = "mixed_float16"), MATRIX(MIX_FLOAT32, 1, 2, 300, 1)), 0, 0);
  }
  /* a length of 1e-9: the minimum length is 1e-6 in tf_keras, 1e-12 in keras3 */
  mix_tensor *tiny = MATRIX(MIX_FLOAT32, 1, 1, 1e-9);
  mix_set_semantics("tf_keras");
  EXPECT(mix_call(mix_unit_normalization(), tiny), 0, 1e-5, 1e-3);
  mix_set_semantics("keras3");
  EXPECT(mix_call(mix_unit_normalization(), tiny), 0, 1e-5, 1);
}
/* 5.2: moments of 16-bit values are float32, clipped to +-65504 before the down-cast (bfloat16 too); 5.1: not
 * clipped. */
static void moments_are_clipped_in_keras3(void **state) {
  (void)state;
  static const mix_dtype dtypes[] = {MIX_FLOAT16, MIX_BFLOAT16};
  for (int i = 0; i < 2; i++) {
    mix_tensor *mean, *variance, *x = VECTOR(dtypes[i], -60000, 60000);
    assert_true(mix_moments(x, MIX_ALL_AXES, true, &mean, &variance));
    expect_dtype(variance, dtypes[i]);
    EXPECT_EXACT(mean, 0);
    EXPECT_EXACT(variance, i ? 65536 : 65504); /* bfloat16 rounds 65504 to 65536 */
    assert_true(mix_moments(x, MIX_ALL_AXES, false, &mean, &variance));
    if (i)
      assert_true(mix_tensor_item(variance) > 3e9);
    else
      EXPECT_EXACT(variance, INFINITY);
  }
}
static void masks_pass(void **state) {
  (void)state;
  mix_tensor *x = mix_fill(MIX_SHAPE(1, 2, 2), 1, MIX_FLOAT32),
             *mask = mix_tensor_from((uint8_t[]){1, 0}, MIX_BOOL, MIX_SHAPE(1, 2));
  mix_layer *layers[] = {mix_batch_normalization(), mix_layer_normalization(),
                         mix_group_normalization(.groups = 1), mix_unit_normalization()};
  for (int i = 0; i < 4; i++) assert_ptr_equal(mix_call(layers[i], x, .mask = mask)->mask, mask);
  assert_null(mix_call(mix_rms_normalization(), x, .mask = mask)->mask);
}

/* Keras 3 rounds to the input's dtype before it casts to the layer's. */
static void keras3_rounds_to_the_inputs_dtype(void **state) {
  (void)state;
  mix_set_semantics("keras3");
  mix_tensor *x = MATRIX(MIX_FLOAT16, 1, 4, 0.5, -1.25, 2, 0.75);
  mix_tensor *y = mix_call(mix_layer_normalization(.dtype = "float32"), x);
  expect_dtype(y, MIX_FLOAT32);
  EXPECT_EXACT(y, 0, -1.5087890625, 1.2939453125, 0.215576171875);
  y = mix_call(mix_group_normalization(.groups = 2, .dtype = "float32"), x);
  expect_dtype(y, MIX_FLOAT32);
  EXPECT_EXACT(y, 0.99951171875, -0.99951171875, 0.99853515625, -0.99853515625);
}

/* tf_keras: gamma and beta have the axes in the given order, and are applied in memory order; Keras 3 sorts
 * the axes. */
static void order_of_the_axes(void **state) {
  (void)state;
  mix_tensor *x = mix_reshape(mix_range(0, 24, 1, MIX_FLOAT32), MIX_SHAPE(2, 3, 4));
  for (int i = 0; i < 2; i++) {
    mix_set_semantics(i ? "keras3" : "tf_keras");
    mix_layer *layer = mix_layer_normalization(.axis = MIX_AXES(-1, -2));
    mix_layer_build(layer, mix_tensor_shape(x));
    mix_shape shape = i ? MIX_SHAPE(3, 4) : MIX_SHAPE(4, 3);
    expect_shape(mix_list_get(mix_layer_get_weights(layer), 0), shape);
    mix_tensor *gamma = mix_reshape(mix_range(0, 12, 1, MIX_FLOAT32), shape);
    mix_layer_set_weights(layer, mix_list_of(gamma, mix_zeros_like(gamma)));
    mix_tensor *first = mix_slice(mix_call(layer, x), MIX_SHAPE(0, 0, 0), MIX_SHAPE(1, 3, 4));
    EXPECT(first, 2e-6, 1e-6, 0, -1.3035175, -2.0276938, -2.1725292, -1.7380232, -0.7241764, 0.8690118,
           3.0415409, 5.7934117, 9.1246228, 13.0351753, 17.5250683);
  }
}
/* The config of a built tf_keras layer has [1]. */
static void axis_as_a_list(void **state) {
  (void)state;
  mix_layer *layer = mix_layer_from_config("BatchNormalization", "{\"axis\": [1]}", NULL);
  mix_layer_build(layer, MIX_SHAPE(2, 3, 4));
  expect_shape(mix_list_get(mix_layer_get_weights(layer), 0), MIX_SHAPE(3));
  expect_refused(mix_layer_from_config("BatchNormalization", "{\"axis\": [1, 2]}", NULL), MIX_TYPE_ERROR,
                 "axis");
}

/* ---- batch renormalization and SpectralNormalization: numbers of Keras 3.15 ---- */

static void batch_renormalization(void **state) {
  (void)state;
  expect_refused(mix_batch_normalization(.renorm = true), MIX_VALUE_ERROR, "keras3");
  mix_set_semantics("keras3");
  expect_refused(mix_batch_normalization(.renorm = true, .renorm_rmax = 1, .renorm_rmin = 2), MIX_VALUE_ERROR,
                 "renorm_rmax is 1");
  mix_layer *layer =
      mix_batch_normalization(.renorm = true, .momentum = 0.5, .renorm_momentum = 0.75, .renorm_rmax = 1.25,
                              .renorm_rmin = 0.5, .renorm_dmax = 2, .synchronized = true);
  static const double y[3][4] = {{0.663884461, 1.3319422, 2, 4.00417328},
                                 {0.66374141, 1.33187068, 2, 4.00438786},
                                 {0.663715065, 1.33185756, 2, 4.00442743}};
  for (int i = 0; i < 3; i++) {
    mix_tensor *x = column(MIX_FLOAT32);
    expect_values(mix_call(layer, mix_multiply(x, mix_scalar_like(x, i + 1)), .training = MIX_TRUE), 4, y[i],
                  0, 2e-6);
  }
  static const double weights[] = {1, 0, 6.375, 16.8141022, 4.10062218, 3.796875, 2.78972745};
  assert_int_equal(mix_list_count(mix_layer_weights(layer)), 7);
  for (int i = 0; i < 7; i++) expect_values(mix_variable_value(weight(layer, i)), 1, weights + i, 0, 1e-6);
  EXPECT(mix_call(layer, column(MIX_FLOAT32), .training = MIX_FALSE), 0, 2e-6, -1.31077671, -1.06691122,
         -0.82304579, -0.0914494991);
  assert_non_null(strstr(mix_layer_config(layer),
                         "\"synchronized\": true, \"renorm\": true, \"renorm_clipping\": "
                         "{\"rmax\": 1.25, \"rmin\": 0.5, \"dmax\": 2}, "
                         "\"renorm_momentum\": 0.75"));
  made_again(layer);
  assert_non_null(strstr(mix_layer_config(mix_batch_normalization()),
                         "\"synchronized\": false, \"renorm\": false, \"renorm_clipping\": null"));
}

static void spectral_normalization(void **state) {
  (void)state;
  static const char *const names[] = {"tf_keras", "keras3"};
  const double eye[] = {1, 0, 0, 0, 1, 0, 0, 0, 1}, kernel[] = {1, 2, 3, -1, 0.5, 4}, u[] = {0.6, 0.8};
  const double divided[] = {0.22006619, 0.44013238, 0.660198569, -0.22006619, 0.110033095, 0.880264759};
  for (int g = 0; g < 2; g++) {
    mix_set_semantics(names[g]);
    mix_layer *dense = mix_dense(2, .no_bias = true), *layer = mix_spectral_normalization(dense, 2);
    mix_tensor *x = mix_tensor_from_doubles(eye, MIX_FLOAT32, MIX_SHAPE(3, 3));
    mix_call(layer, x);
    assert_int_equal(mix_list_count(mix_layer_weights(layer)), 2);
    mix_layer_set_weights(layer, mix_list_of(mix_tensor_from_doubles(kernel, MIX_FLOAT32, MIX_SHAPE(3, 2)),
                                             mix_tensor_from_doubles(u, MIX_FLOAT32, MIX_SHAPE(1, 2))));
    expect_values(mix_call(layer, x), 6, kernel, 0, 0);
    expect_values(mix_call(layer, x, .training = MIX_TRUE), 6, divided, 1e-7, 1e-6);
    expect_values(mix_variable_value(weight(dense, 0)), 6, divided, 1e-7, 1e-6);
    EXPECT(mix_variable_value(weight(layer, 1)), 0, 1e-6, 0.231577829, 0.972816288);
    /* a kernel of zeros stays, and so does the vector */
    mix_layer_set_weights(layer, mix_list_of(mix_fill(MIX_SHAPE(3, 2), 0, MIX_FLOAT32),
                                             mix_tensor_from_doubles(u, MIX_FLOAT32, MIX_SHAPE(1, 2))));
    EXPECT_EXACT(mix_call(layer, x, .training = MIX_TRUE), 0, 0, 0, 0, 0, 0);
    EXPECT(mix_variable_value(weight(layer, 1)), 1e-7, 0, 0.6, 0.8);
  }
  /* the penalty of the kernel counts once */
  mix_layer *layer =
      mix_spectral_normalization(mix_dense(2, .kernel_regularizer = mix_regularizer_new("l2")));
  mix_call(layer, mix_fill(MIX_SHAPE(1, 3), 1, MIX_FLOAT32));
  assert_int_equal(mix_list_count(mix_layer_losses(layer)), 1);
  expect_refused(mix_spectral_normalization(), MIX_TYPE_ERROR, "layer is missing");
  expect_refused(mix_spectral_normalization(mix_dense(2), -1), MIX_VALUE_ERROR, "power_iterations");
  expect_refused(mix_spectral_normalization(mix_dense(2), 1025), MIX_VALUE_ERROR,
                 "power_iterations is 1025; expected at most 1024");
  expect_refused(
      mix_call(mix_spectral_normalization(mix_flatten()), mix_fill(MIX_SHAPE(1, 3), 1, MIX_FLOAT32)),
      MIX_VALUE_ERROR, "no weight 'kernel'");
}

int main(void) {
  const struct CMUnitTest tests[] = {TEST(L19_batch_normalization_in_training),
                                     TEST(batch_renormalization),
                                     TEST(spectral_normalization),
                                     TEST(L19_fused_moving_variance_is_unbiased),
                                     TEST(L20_inference_with_fresh_statistics),
                                     TEST(L22_frozen),
                                     TEST(weights_of_batch_normalization),
                                     TEST(batch_normalization_weight_dtypes),
                                     TEST(batch_normalization_widens),
                                     TEST(moving_average_formulas),
                                     TEST(fused_is_refused),
                                     TEST(batch_normalization_masks),
                                     TEST(statistics_move_inside_captures),
                                     TEST(no_gradient_through_moving_statistics),
                                     TEST(symbolic_training_changes_nothing),
                                     TEST(integers_are_cast),
                                     TEST(L21_layer_normalization),
                                     TEST(A15_layer_normalization_is_not_cast),
                                     TEST(layer_normalization_affine_dtype),
                                     TEST(layer_normalization_in_pure_float16),
                                     TEST(group_normalization),
                                     TEST(groups_of_images_with_channels_last),
                                     TEST(group_normalization_widens_in_keras3),
                                     TEST(rms_normalization),
                                     TEST(unit_normalization),
                                     TEST(moments_are_clipped_in_keras3),
                                     TEST(masks_pass),
                                     TEST(keras3_rounds_to_the_inputs_dtype),
                                     TEST(order_of_the_axes),
                                     TEST(axis_as_a_list)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
