/* Losses: rows C01 to C15 of docs/spec/keras.md, 19.4, the base class (10.1), and the dtypes of each
 * generation. Rows print seven digits: half a unit of the last is 5e-8; float32 losses add a few roundings.
 * 1e-6 relative covers both. */
/* Holds docs/NUMERICS.md: Softmax, cross-entropies, losses. */
#include "nn/support.h"
#include "nn/losses/loss.h"

static mix_tensor *loss_of(mix_loss *loss, mix_tensor *y, mix_tensor *p) { return mix_loss_call(loss, y, p); }
#define ROW(tensor, ...) EXPECT(tensor, 1e-7, 1e-6, __VA_ARGS__)

static void C01_sparse_categorical_crossentropy(void **state) {
  (void)state;
  mix_tensor *y = VECTOR(MIX_INT64, 1, 2), *p = MATRIX(MIX_FLOAT32, 2, 3, .05, .95, 0, .1, .8, .1);
  ROW(loss_of(mix_sparse_categorical_crossentropy(.reduction = "none"), y, p), 0.0512933, 2.3025851);
  ROW(loss_of(mix_loss_new("sparse_categorical_crossentropy"), y, p), 1.1769392);
  ROW(loss_of(mix_loss_new("SparseCategoricalCrossentropy"), MATRIX(MIX_FLOAT32, 2, 1, 1, 2), p),
      1.1769392); /* (batch, 1), float labels */
}
static void C02_categorical_crossentropy(void **state) {
  (void)state;
  ROW(loss_of(mix_categorical_crossentropy(), MATRIX(MIX_FLOAT32, 1, 3, 0, 0, 1),
              MATRIX(MIX_FLOAT32, 1, 3, .1, .2, .3)),
      0.6931472);
}
static void C03_binary_crossentropy(void **state) {
  (void)state;
  ROW(loss_of(mix_binary_crossentropy(), MATRIX(MIX_FLOAT32, 1, 2, 1, 0), MATRIX(MIX_FLOAT32, 1, 2, .6, .3)),
      0.4337503);
}
static void C04_binary_logits(void **state) {
  (void)state;
  ROW(loss_of(mix_binary_crossentropy(.from_logits = true, .reduction = "none"),
              MATRIX(MIX_FLOAT32, 2, 1, 1, 1), MATRIX(MIX_FLOAT32, 2, 1, 2, -3)),
      0.1269280, 3.0485874);
}
static void C05_huber(void **state) {
  (void)state;
  ROW(loss_of(mix_huber(.reduction = "none"), MATRIX(MIX_FLOAT32, 2, 1, 0, 0),
              MATRIX(MIX_FLOAT32, 2, 1, .5, 2)),
      0.125, 1.5);
}
static void C06_log_cosh(void **state) {
  (void)state;
  ROW(loss_of(mix_loss_new("log_cosh"), MATRIX(MIX_FLOAT32, 1, 1, 0), MATRIX(MIX_FLOAT32, 1, 1, 1)),
      0.4337808);
}
static void C07_kl_divergence(void **state) {
  (void)state;
  /* the clipped zero adds 1e-7 log(1e-7 / 0.6) = -1.6e-6 */
  EXPECT(loss_of(mix_loss_new("kld"), MATRIX(MIX_FLOAT32, 1, 2, 0, 1), MATRIX(MIX_FLOAT32, 1, 2, .6, .4)),
         2e-7, 0, 0.9162907 - 1.56e-6);
}
static void C08_poisson(void **state) {
  (void)state;
  ROW(loss_of(mix_loss_new("poisson"), MATRIX(MIX_FLOAT32, 1, 1, 1), MATRIX(MIX_FLOAT32, 1, 1, .5)),
      1.1931470);
}
/* C09: targets 1/30, 28/30, 1/30; the loss with logits log p is -sum t log p */
static void C09_label_smoothing(void **state) {
  (void)state;
  double t0 = 0.1 / 3, t1 = 0.9 + 0.1 / 3;
  double expected = -(t0 * log(.2) + t1 * log(.5) + t0 * log(.3));
  mix_tensor *y = MATRIX(MIX_FLOAT32, 1, 3, 0, 1, 0), *p = MATRIX(MIX_FLOAT32, 1, 3, .2, .5, .3);
  ROW(loss_of(mix_categorical_crossentropy(.label_smoothing = .1), y, p), expected);
  ROW(loss_of(mix_categorical_crossentropy(.label_smoothing = .1, .from_logits = true), y, mix_log(p)),
      expected);
  ROW(loss_of(mix_binary_crossentropy(.label_smoothing = .2), MATRIX(MIX_FLOAT32, 1, 1, 1),
              MATRIX(MIX_FLOAT32, 1, 1, .7)),
      -(.9 * log(.7) + .1 * log(.3)));
  expect_refused(mix_categorical_crossentropy(.label_smoothing = 1.5), MIX_VALUE_ERROR, "label_smoothing");
}
static void C10_msle(void **state) {
  (void)state;
  ROW(loss_of(mix_loss_new("MSLE"), MATRIX(MIX_FLOAT32, 1, 1, 0), MATRIX(MIX_FLOAT32, 1, 1, 1)), 0.4804529);
}
/* losses 2 and 4: mean squared errors of (0, 2) and (2, 2) */
static mix_tensor *two_and_four(mix_loss *loss, mix_tensor *weights, mix_tensor *mask) {
  return mix_loss_call(loss, mix_fill(MIX_SHAPE(2, 2), 0, MIX_FLOAT32), MATRIX(MIX_FLOAT32, 2, 2, 0, 2, 2, 2),
                       .sample_weight = weights, .mask = mask);
}
static void C11_weights(void **state) {
  (void)state;
  mix_tensor *weights = VECTOR(MIX_FLOAT32, 1, 0);
  EXPECT_EXACT(two_and_four(mix_mean_squared_error(), weights, NULL), 1);
  EXPECT_EXACT(two_and_four(mix_mean_squared_error(), mix_expand_dims(weights, 1), NULL), 1);
  EXPECT_EXACT(two_and_four(mix_mean_squared_error(.reduction = "sum"), weights, NULL), 2);
  EXPECT_EXACT(two_and_four(mix_mean_squared_error(.reduction = "none"), weights, NULL), 2, 0);
  EXPECT_EXACT(two_and_four(mix_mean_squared_error(.reduction = "auto"), mix_scalar(0.5, MIX_FLOAT64), NULL),
               1.5);
}
static void C12_mean_with_sample_weight(void **state) {
  (void)state;
  expect_refused(mix_mean_squared_error(.reduction = "mean_with_sample_weight"), MIX_VALUE_ERROR,
                 "reduction"); /* tf_keras does not have it */
  mix_set_semantics("keras3");
  mix_loss *loss = mix_mean_squared_error(.reduction = "mean_with_sample_weight");
  EXPECT_EXACT(two_and_four(loss, VECTOR(MIX_FLOAT32, 1, 0), NULL), 2);
  EXPECT_EXACT(two_and_four(loss, VECTOR(MIX_FLOAT32, 0, 0), NULL), 0); /* 0 / 0 */
  EXPECT_EXACT(two_and_four(loss, NULL, NULL), 3);
}
static void C13_mask(void **state) {
  (void)state;
  mix_set_semantics("keras3");
  EXPECT_EXACT(two_and_four(mix_mean_squared_error(), NULL, VECTOR(MIX_BOOL, 1, 0)), 2);
  EXPECT_EXACT(two_and_four(mix_mean_squared_error(), NULL, VECTOR(MIX_BOOL, 0, 0)), 0);
  EXPECT_EXACT(two_and_four(mix_mean_squared_error(.reduction = "sum"), NULL, VECTOR(MIX_BOOL, 0, 1)), 4);
}
static void C14_hinge(void **state) {
  (void)state;
  mix_tensor *y = MATRIX(MIX_FLOAT32, 1, 2, 0, 1), *p = MATRIX(MIX_FLOAT32, 1, 2, .6, .4);
  ROW(loss_of(mix_loss_new("hinge"), y, p), 1.1);
  ROW(loss_of(mix_loss_new("squared_hinge"), y, p), (1.6 * 1.6 + .6 * .6) / 2);
  ROW(loss_of(mix_loss_new("hinge"), MATRIX(MIX_FLOAT32, 1, 2, -1, 1), p), 1.1);
  ROW(loss_of(mix_loss_new("categorical_hinge"), y, p), .6 - .4 + 1);
}
static void C15_probability_zero(void **state) {
  (void)state;
  ROW(loss_of(mix_loss_new("sparse_categorical_crossentropy"), VECTOR(MIX_INT32, 0),
              MATRIX(MIX_FLOAT32, 1, 2, 0, 1)),
      16.118096);
  ROW(loss_of(mix_loss_new("categorical_crossentropy"), MATRIX(MIX_FLOAT32, 1, 2, 1, 0),
              MATRIX(MIX_FLOAT32, 1, 2, 0, 1)),
      16.118096);
}

/* ---- the table's other rows ---- */

static void regressions(void **state) {
  (void)state;
  mix_tensor *y = MATRIX(MIX_FLOAT32, 1, 2, 1, 4), *p = MATRIX(MIX_FLOAT32, 1, 2, 2, 1);
  ROW(loss_of(mix_loss_new("mse"), y, p), 5);
  ROW(loss_of(mix_loss_new("MAE"), y, p), 2);
  ROW(loss_of(mix_loss_new("mape"), y, p), 100 * (1 + .75) / 2);
  ROW(loss_of(mix_huber(.delta = 2), y, p), (.5 + 4) / 2); /* 2 * 3 - 2 */
  ROW(loss_of(mix_loss_new("cosine_similarity"), y, p), -6 / (sqrt(17) * sqrt(5)));
  ROW(loss_of(mix_loss_new("MeanSquaredError"), VECTOR(MIX_FLOAT32, 1, 2), MATRIX(MIX_FLOAT32, 2, 1, 2, 4)),
      2.5); /* (B) against (B, 1) */
}
/* A loss uses the logits that predictions remember, or logits given as such: recorded from Keras 3.15 and
 * tf_keras 2.21. From the probabilities, which float32 rounds and the loss clips, the 6.67 would be 5.1 to
 * 5.3. */
static void focal_by_logits(void **state) {
  (void)state;
  static const char *const generations[] = {"tf_keras", "keras3"};
  for (int g = 0; g < 2; g++) {
    mix_set_semantics(generations[g]);
    mix_tensor *y = MATRIX(MIX_FLOAT32, 2, 3, 1, 0, 0, 1, 0, 0),
               *x = MATRIX(MIX_FLOAT32, 2, 3, 8, -2, 0.5, 1, 20, -3);
    mix_loss *loss = mix_loss_new("binary_focal_crossentropy", .reduction = "none");
    ROW(loss_of(loss, y, mix_activate("sigmoid", x)), 0.1264051, 6.6742554);
    ROW(loss_of(loss, y, mix_activate("softmax", x)), 9.9339566e-08, 6.7710872);
    ROW(loss_of(mix_loss_new("binary_focal_crossentropy", .reduction = "none", .from_logits = true), y, x),
        0.1264051, 6.6742554);
  }
  mix_set_semantics("tf_keras");
}

/* Class indices with one prediction for each class: tf_keras broadcasts them against probabilities, but not
 * against logits. */
static void binary_labels_have_the_shape_of_the_logits(void **state) {
  (void)state;
  mix_tensor *y = MATRIX(MIX_FLOAT32, 3, 1, 0, 2, 1),
             *p = MATRIX(MIX_FLOAT32, 3, 3, .1, .2, .7, .3, .3, .4, .5, .25, .25);
  ROW(loss_of(mix_binary_crossentropy(), y, p), 1.1580563); /* from tf_keras 2.21 */
  expect_refused(loss_of(mix_binary_crossentropy(.from_logits = true), y, p), MIX_VALUE_ERROR,
                 "sparse_categorical_crossentropy");
  mix_set_semantics("keras3");
  expect_refused(loss_of(mix_binary_crossentropy(), y, p), MIX_VALUE_ERROR,
                 "labels have shape (3, 1) and predictions (3, 3)");
  mix_set_semantics("tf_keras");
}

static void one_hot_labels_are_no_class_numbers(void **state) {
  (void)state;
  mix_tensor *y = MATRIX(MIX_FLOAT32, 2, 3, 1, 0, 0, 0, 0, 1),
             *p = MATRIX(MIX_FLOAT32, 2, 3, .1, .2, .7, .3, .3, .4);
  expect_refused(
      loss_of(mix_sparse_categorical_crossentropy(), y, p), MIX_VALUE_ERROR,
      "labels have shape (2, 3) and predictions (2, 3); expected a class index for each (one-hot labels want "
      "categorical_crossentropy)");
}

/* An unknown name: the message has the nearest name, or all names. */
static void unknown_names_get_a_suggestion(void **state) {
  (void)state;
  expect_refused(mix_loss_new("categorical_crosentropy"), MIX_VALUE_ERROR,
                 "did you mean 'categorical_crossentropy'?");
  expect_refused(mix_loss_new("speed"), MIX_VALUE_ERROR, "known: mean_squared_error, ");
  /* "dice" does not exist in this generation. */
  expect_refused(mix_loss_new("dicee"), MIX_VALUE_ERROR, "known: ");
}

static void focal(void **state) {
  (void)state;
  double p = .6, q = .3; /* y = 1, 0: p_t = .6, .7 */
  double plain = (pow(.4, 2) * -log(p) + pow(.3, 2) * -log(1 - q)) / 2;
  double balanced = (.25 * pow(.4, 2) * -log(p) + .75 * pow(.3, 2) * -log(1 - q)) / 2;
  mix_tensor *y = MATRIX(MIX_FLOAT32, 1, 2, 1, 0), *x = MATRIX(MIX_FLOAT32, 1, 2, p, q);
  EXPECT(loss_of(mix_loss_new("binary_focal_crossentropy"), y, x), 5e-7, 0, plain);
  EXPECT(loss_of(mix_loss_new("binary_focal_crossentropy", .apply_class_balancing = true), y, x), 5e-7, 0,
         balanced);
  EXPECT(loss_of(mix_loss_new("categorical_focal_crossentropy"), MATRIX(MIX_FLOAT32, 1, 2, 1, 0),
                 MATRIX(MIX_FLOAT32, 1, 2, .6, .4)),
         5e-7, 0, .25 * pow(.4, 2) * -log(.6));
}
static void keras3_only(void **state) {
  (void)state;
  mix_tensor *y = MATRIX(MIX_FLOAT32, 1, 4, 1, 0, 1, 0), *p = MATRIX(MIX_FLOAT32, 1, 4, .5, .5, 1, 0);
  expect_refused(mix_loss_new("dice"), MIX_VALUE_ERROR, "dice");
  mix_set_semantics("keras3");
  EXPECT(loss_of(mix_loss_new("dice"), y, p), 5e-7, 0, 1 - 3.0 / 4);
  EXPECT(loss_of(mix_loss_new("tversky", .alpha = .25, .beta = .5), y, p), 5e-7, 0,
         1 - 1.5 / (1.5 + .25 * .5 + .5 * .5));
  EXPECT(loss_of(mix_loss_new("categorical_generalized_cross_entropy"), VECTOR(MIX_INT32, 0),
                 MATRIX(MIX_FLOAT32, 1, 2, .64, .36)),
         5e-7, 0, (1 - .8) / .5);
  EXPECT(loss_of(mix_loss_new("ce"), VECTOR(MIX_INT32, 1), MATRIX(MIX_FLOAT32, 1, 2, .5, .5)), 5e-7, 0,
         log(2));
  EXPECT(
      loss_of(mix_loss_new("crossentropy"), MATRIX(MIX_INT32, 1, 2, 0, 1), MATRIX(MIX_FLOAT32, 1, 2, .5, .5)),
      5e-7, 0, log(2));
  EXPECT(loss_of(mix_loss_new("crossentropy"), MATRIX(MIX_FLOAT32, 1, 1, 1), MATRIX(MIX_FLOAT32, 1, 1, .5)),
         5e-7, 0, log(2));
}

/* ---- logits ---- */

static void stored_logits_are_used(void **state) {
  (void)state;
  mix_tensor *x = MATRIX(MIX_FLOAT32, 1, 2, 100, 0), *p = mix_call(mix_activation("softmax"), x);
  /* The clipped form gives 16.1. */
  ROW(loss_of(mix_loss_new("sparse_categorical_crossentropy"), VECTOR(MIX_INT32, 1), p), 100);
  ROW(loss_of(mix_loss_new("categorical_crossentropy"), MATRIX(MIX_FLOAT32, 1, 2, 0, 1), p), 100);
  mix_tensor *s = mix_activate("sigmoid", MATRIX(MIX_FLOAT32, 1, 1, 50));
  ROW(loss_of(mix_loss_new("binary_crossentropy"), MATRIX(MIX_FLOAT32, 1, 1, 0), s), 50);
  assert_int_equal(log_count, 0);
  ROW(loss_of(mix_sparse_categorical_crossentropy(.from_logits = true), VECTOR(MIX_INT32, 1), p), 100);
  assert_int_equal(log_level, MIX_LOG_WARNING);
  assert_int_equal(log_count, 1);
}
/* keras3 converts a float16 prediction to float32 first, which loses the logits. tf_keras computes in float16
 * and uses them. */
static void keras3_loses_the_logits_of_float16(void **state) {
  (void)state;
  mix_tensor *x = MATRIX(MIX_FLOAT16, 1, 2, 50, 0), *y = VECTOR(MIX_INT32, 1);
  mix_tensor *loss = loss_of(mix_loss_new("sparse_categorical_crossentropy"), y, mix_activate("softmax", x));
  expect_dtype(loss, MIX_FLOAT16);
  EXPECT_EXACT(loss, 50);
  mix_set_semantics("keras3");
  loss = loss_of(mix_loss_new("sparse_categorical_crossentropy"), y, mix_activate("softmax", x));
  expect_dtype(loss, MIX_FLOAT32);
  ROW(loss, 16.118096);
  ROW(loss_of(mix_loss_new("sparse_categorical_crossentropy"), y,
              mix_activate("softmax", mix_cast(x, MIX_FLOAT32))),
      50); /* not converted: kept */
}
static void other_axes(void **state) {
  (void)state;
  mix_tensor *p = MATRIX(MIX_FLOAT32, 3, 2, .05, .1, .95, .8, 0, .1); /* C01, transposed */
  ROW(loss_of(mix_sparse_categorical_crossentropy(.axis = -2, .reduction = "none"), VECTOR(MIX_INT64, 1, 2),
              p),
      0.0512933, 2.3025851);
  mix_tensor *y = MATRIX(MIX_FLOAT32, 3, 2, 0, 0, 1, 0, 0, 1);
  ROW(loss_of(mix_categorical_crossentropy(.axis = -2, .reduction = "none"), y, p), 0.0512933, 2.3025851);
}
static void ignored_class(void **state) {
  (void)state;
  mix_tensor *p = MATRIX(MIX_FLOAT32, 3, 3, .05, .95, 0, .1, .8, .1, .2, .2, .6);
  mix_loss *loss = mix_sparse_categorical_crossentropy(.has_ignore_class = true, .ignore_class = -1);
  ROW(loss_of(loss, VECTOR(MIX_INT32, 1, 2, -1), p), 1.1769392); /* the mean of the two */
  loss =
      mix_sparse_categorical_crossentropy(.has_ignore_class = true, .ignore_class = -1, .reduction = "none");
  ROW(loss_of(loss, VECTOR(MIX_INT32, 1, -1, 2), p), 0.0512933, 0, -log(.6));
}

/* ---- dtypes ---- */

static void dtype_of_each_generation(void **state) {
  (void)state;
  static const mix_dtype dtypes[] = {MIX_FLOAT16, MIX_BFLOAT16, MIX_FLOAT32, MIX_FLOAT64};
  for (int i = 0; i < 4; i++) {
    mix_set_semantics("tf_keras");
    mix_tensor *p = mix_fill(MIX_SHAPE(2, 2), 2, dtypes[i]), *y = mix_fill(MIX_SHAPE(2, 2), 1, MIX_INT32);
    mix_tensor *loss = mix_loss_call(mix_loss_new("mse"), y, p, .sample_weight = VECTOR(MIX_FLOAT64, 1, 1));
    expect_dtype(loss, dtypes[i]); /* labels and weights are cast to the output's dtype */
    EXPECT_EXACT(loss, 1);
    expect_dtype(loss_of(mix_huber(), y, p), MIX_FLOAT32); /* huber runs in floatx */
    mix_set_semantics("keras3");
    expect_dtype(loss_of(mix_loss_new("mse"), y, p), MIX_FLOAT32);
    expect_dtype(loss_of(mix_loss_new("mse", .dtype = "float64"), y, p), MIX_FLOAT64);
  }
}
/* In float16 epsilon is 2^-23 and 1 - epsilon is 1: the lower clip acts, the upper one does not. */
static void epsilon_in_float16(void **state) {
  (void)state;
  mix_tensor *p = MATRIX(MIX_FLOAT16, 2, 2, 0, 1, 1, 0), *y = VECTOR(MIX_INT32, 0, 0);
  /* log(2^-23) = -15.942 rounds to -15.9453125 (spacing 2^-7). Sample 2 has log 1 = 0 against that: the
   * softmax cross-entropy is log(1 + 1.2e-7), which float16 rounds to 2^-23 = 1.19e-7. */
  EXPECT_EXACT(loss_of(mix_sparse_categorical_crossentropy(.reduction = "none"), y, p), 15.9453125, 0x1p-23);
}
/* Holds docs/NUMERICS.md: Sums. */
/* The sum of 70000 ones exceeds 65504. */
static void float16_means_do_not_overflow(void **state) {
  (void)state;
  EXPECT_EXACT(loss_of(mix_loss_new("mae"), mix_fill(MIX_SHAPE(70000, 1), 0, MIX_FLOAT16),
                       mix_fill(MIX_SHAPE(70000, 1), 1, MIX_FLOAT16)),
               1);
}
static void refusals(void **state) {
  (void)state;
  expect_refused(mix_loss_new("loss of patience"), MIX_VALUE_ERROR, "patience");
  expect_refused(mix_loss_new("Mse"), MIX_VALUE_ERROR, "Mse");
  expect_refused(mix_loss_new("mse", .reduction = "average"), MIX_VALUE_ERROR, "average");
  expect_refused(loss_of(mix_loss_new("mse"), VECTOR(MIX_INT32, 1), VECTOR(MIX_INT32, 1)), MIX_TYPE_ERROR,
                 "int32");
  expect_refused(loss_of(mix_loss_new("categorical_crossentropy"), VECTOR(MIX_INT32, 1),
                         MATRIX(MIX_FLOAT32, 1, 2, 1, 0)),
                 MIX_VALUE_ERROR, "sparse_categorical_crossentropy");
}
static mix_tensor *own(void *context, mix_tensor *y_true, mix_tensor *y_pred) {
  return mix_multiply(mix_squeeze(mix_subtract(y_pred, y_true), MIX_AXES(-1)),
                      mix_scalar_like(y_pred, *(double *)context));
}
static void a_function_of_ones_own(void **state) {
  (void)state;
  double factor = 3;
  mix_loss *loss = mix_loss_new(.function = own, .context = &factor, .name = "own");
  EXPECT_EXACT(loss_of(loss, MATRIX(MIX_FLOAT32, 2, 1, 1, 2), MATRIX(MIX_FLOAT32, 2, 1, 2, 5)), 6);
  assert_string_equal(mix_loss_name(loss), "own");
}
static void json(void **state) {
  (void)state;
  mix_loss *loss = mix_sparse_categorical_crossentropy(.from_logits = true, .has_ignore_class = true,
                                                       .ignore_class = 3, .reduction = "sum");
  json_t *first = mix_loss_to_json(loss), *second = mix_loss_to_json(mix_loss_from_json(first, NULL));
  assert_true(json_equal(first, second));
  assert_int_equal(json_integer_value(json_object_get(json_object_get(second, "config"), "ignore_class")), 3);
  json_decref(first);
  json_decref(second);
}
static void json_of_focal_losses(void **state) {
  (void)state;
  static const char *const names[] = {"binary_focal_crossentropy", "categorical_focal_crossentropy"};
  for (int i = 0; i < 2; i++) {
    mix_loss *loss =
        mix_loss_new(names[i], .gamma = MIX_ZERO, .alpha = 0.75, .apply_class_balancing = i == 0);
    json_t *first = mix_loss_to_json(loss), *second = mix_loss_to_json(mix_loss_from_json(first, NULL));
    assert_int_equal(mix_error(), MIX_OK);
    assert_true(json_equal(first, second));
    const json_t *config = json_object_get(second, "config");
    assert_true(json_number_value(json_object_get(config, "gamma")) == 0);
    assert_true(json_number_value(json_object_get(config, "alpha")) == 0.75);
    assert_int_equal(json_is_true(json_object_get(config, "apply_class_balancing")), i == 0);
    json_object_set_new(json_object_get(first, "config"), "reduction", json_null());
    mix_tensor *values = loss_of(mix_loss_from_json(first, NULL), MATRIX(MIX_FLOAT32, 2, 2, 0, 1, 1, 0),
                                 MATRIX(MIX_FLOAT32, 2, 2, .4, .6, .5, .5));
    assert_int_equal(mix_tensor_shape(values).rank, 1); /* one value for each example */
    json_decref(first);
    json_decref(second);
  }
}

/* ---- gradients and captures ---- */

/* d mean CE / d logits = (softmax - one_hot) / batch */
static void gradient_of_the_guides_loss(void **state) {
  (void)state;
  double e = exp(1), e2 = exp(2), s = 1 + e + e2;
  mix_variable *x = mix_variable_new(MATRIX(MIX_FLOAT64, 2, 3, 0, 1, 2, 2, 1, 0));
  mix_set_floatx("float64");
  mix_tape *tape = mix_tape_begin(0);
  mix_tensor *p = mix_activate("softmax", mix_variable_value(x));
  mix_tensor *loss = loss_of(mix_loss_new("sparse_categorical_crossentropy"), VECTOR(MIX_INT32, 2, 1), p);
  mix_tape_end(tape);
  EXPECT(mix_list_get(mix_tape_gradient(tape, loss, mix_list_of(x)), 0), 1e-15, 1e-14, 1 / s / 2, e / s / 2,
         (e2 / s - 1) / 2, e2 / s / 2, (e / s - 1) / 2, 1 / s / 2);
}
static mix_list *loss_body(void *loss, mix_list *arguments) {
  return mix_list_of(mix_loss_call(loss, mix_list_get(arguments, 0), mix_list_get(arguments, 1),
                                   .sample_weight = mix_list_get(arguments, 2)));
}
static void captured(void **state) {
  (void)state;
  mix_function *function = mix_function_new(loss_body, mix_mean_squared_error());
  mix_list *results = mix_function_call(function, mix_list_of(mix_fill(MIX_SHAPE(2, 2), 0, MIX_FLOAT32),
                                                              MATRIX(MIX_FLOAT32, 2, 2, 0, 2, 2, 2),
                                                              VECTOR(MIX_FLOAT32, 1, 0)));
  EXPECT_EXACT(mix_list_get(results, 0), 1);
}

/* Keras 3.15.1 on these arrays. About twelve float32 operations on numbers about 1 (circle: exponents up to
 * gamma): 1e-6 (1e-5) relative. */
static void region_losses_as_keras(void **state) {
  (void)state;
  mix_set_semantics("keras3");
  mix_tensor *p = MATRIX(MIX_FLOAT32, 6, 4, 0.8125, 0.078125, 0.171875, 0.234375, 0.171875, 0.8125, 0.875,
                         0.578125, 0.03125, 0.09375, 0.328125, 0.4375, 0.625, 0.484375, 0.265625, 0.15625,
                         0.6875, 0.734375, 0.03125, 0.109375, 0.453125, 0.390625, 0.890625, 0.515625);
  mix_tensor *y =
      MATRIX(MIX_FLOAT32, 6, 4, 0, 0, 1, 1, 0, 1, 1, 1, 1, 0, 0, 1, 1, 1, 1, 0, 1, 0, 0, 1, 1, 0, 0, 0);
  static const struct {
    const char *loss;
    int axis;
    double value;
  } rows[] = {{"dice", 0, 0.497959197},    {"dice", -1, 0.543797672},   {"dice", -2, 0.495683223},
              {"tversky", 0, 0.462490916}, {"tversky", -1, 0.50153774}, {"tversky", -2, 0.464360595}};
  for (int i = 0; i < 6; i++) {
    bool tversky = i >= 3;
    mix_loss *loss = mix_loss_new(rows[i].loss, .axis = rows[i].axis, .alpha = tversky ? 0.25 : 0,
                                  .beta = tversky ? 0.75 : 0);
    double got = mix_tensor_item(mix_loss_call(loss, y, p));
    if (!(fabs(got - rows[i].value) <= 1e-6)) fail_msg("%s, axis %d: %.9g", rows[i].loss, rows[i].axis, got);
  }
  mix_tensor *e =
      MATRIX(MIX_FLOAT32, 6, 4, -0.731489778, 0.609574854, 0.268212914, 0.146297961, -0.533075154,
             -0.0627147257, -0.627147257, 0.564432502, -0.0536441803, -0.831484795, -0.429153442, 0.348687172,
             0.0308606718, -0.246885374, -0.493770748, -0.833238125, 0.229047, 0.327210009, 0.0327210017,
             0.916188002, 0.789437413, -0.535689652, 0.197359353, 0.225553542);
  mix_tensor *labels = VECTOR(MIX_INT32, 0, 1, 0, 2, 1, 3), *weight = VECTOR(MIX_FLOAT32, 1, 0, 2, 1, .5, 1);
  mix_loss *circles[] = {mix_loss_new("circle"), mix_loss_new("Circle", .gamma = 2, .margin = 0.25),
                         mix_loss_new("circle", .gamma = 2, .keep_diagonal = true)};
  static const double values[][3] = {{103.466606, 139.468903, 626.970947},
                                     {4.13355875, 4.80538416, 14.498909},
                                     {3.12906957, 3.51020598, 9.0144577}};
  for (int i = 0; i < 3; i++) {
    mix_tape *tape = mix_tape_begin();
    mix_tape_watch(tape, e);
    mix_tensor *loss = mix_loss_call(circles[i], labels, e);
    mix_tape_end(tape);
    mix_tensor *gradient = mix_list_get(mix_tape_gradient(tape, loss, mix_list_of(e)), 0);
    double got[] = {mix_tensor_item(loss),
                    mix_tensor_item(mix_loss_call(circles[i], labels, e, .sample_weight = weight)),
                    mix_tensor_item(mix_reduce_sum(mix_abs(gradient), MIX_ALL_AXES, false))};
    for (int k = 0; k < 3; k++)
      if (!(fabs(got[k] - values[i][k]) <= 1e-5 * values[i][k]))
        fail_msg("circle %d, %d: %.9g", i, k, got[k]);
  }
  expect_refused(mix_loss_call(circles[0], labels, labels), MIX_VALUE_ERROR, "embeddings");
  expect_refused(mix_loss_call(mix_loss_new("dice", .axis = 3), y, p), MIX_VALUE_ERROR, "axis 3");
  mix_set_semantics("tf_keras");
  expect_refused(mix_loss_new("circle"), MIX_VALUE_ERROR, "circle");
}

/* Keras 3.15.1 on these arrays: some 50 operations of float32 on numbers below 10. */
static void ctc_as_keras(void **state) {
  (void)state;
  mix_set_semantics("keras3");
  static const double logits[] = {
      -0.8,  -1.32, -0.25, 0.42,  1.14,  0.11,  -0.55, -0.78, 0.75,  1.63,  0.27,  -1.23, -0.96, 1.6,
      0.2,   -1.73, -0.08, -1.16, -0.63, -0.49, -0.71, 0.55,  -0.06, -0.59, 0.41,  0.83,  -1.64, -0.26,
      -0.98, -0.17, -1.29, 0.02,  -0.04, -0.3,  -1.05, -0.4,  -1.09, -1.36, 0.22,  -1.11, 1.17,  0.72,
      -2,    0.27,  -1.1,  0.03,  0.04,  -1.99, -0.23, -0.26, 0.96,  -1.18, 0.74,  -1.1,  -0.33, -0.84,
      1.45,  0.57,  2.43,  0.64,  0.84,  0.84,  -0.61, -0.07, 1.35,  -0.4,  0.19,  -0.02, 0.61,  -0.36,
      -0.15, 0.24,  0.1,   -0.86, 0.9,   -1.3,  -1.2,  -1.28, 0.97,  -0.36, -0.97, -1.14, 0.42,  -1.05,
      -1.27, 0.61,  -1.2,  -0.32, -0.01, -0.45, -0.05, 1.34,  -0.52, -1.26, -1.84, -0.2};
  static const double values[] = {6.02546453, 3.94262218, 6.23078585, 8.04860878};
  static const double of_first[] = {-0.471218824, -0.291323245, 0.258118093,   0.504423976,  0.032956183,
                                    -0.178299114, 0.058497373,  0.0868455917,  0.0245855451, -0.0110894442,
                                    -0.046623975, 0.0331279822, -0.0255086534, 0.735459268,  -0.736274898,
                                    0.026324369,  -0.558911324, 0.131616205,   0.170085758,  0.257209241,
                                    0.104845896,  0.465804398,  -0.719623208,  0.148973092};
  mix_tensor *x = mix_cast(mix_tensor_from_doubles(logits, MIX_FLOAT64, MIX_SHAPE(4, 6, 4)), MIX_FLOAT32);
  mix_tensor *y = MATRIX(MIX_INT32, 4, 4, 1, 2, 2, 0, 3, 1, 0, 0, 0, 0, 0, 0, 2, 2, 2, 0);
  mix_tape *tape = mix_tape_begin();
  mix_tape_watch(tape, x);
  mix_tensor *loss = mix_loss_call(mix_loss_new("ctc", .reduction = "none"), y, x);
  mix_tape_end(tape);
  mix_tensor *gradient = mix_list_get(mix_tape_gradient(tape, loss, mix_list_of(x)), 0);
  double got[4], slopes[96];
  mix_tensor_read(loss, MIX_FLOAT64, got, 4);
  mix_tensor_read(gradient, MIX_FLOAT64, slopes, 96);
  for (int i = 0; i < 4; i++) assert_true(fabs(got[i] - values[i]) <= 2e-6 * values[i]);
  for (int i = 0; i < 24; i++) assert_true(fabs(slopes[i] - of_first[i]) <= 5e-6);
  assert_true(fabs(mix_tensor_item(mix_loss_call(mix_loss_new("CTC"), y, x)) - 6.06187) <= 1e-5);
  /* More labels than steps: no alignment is possible, but nothing is NaN. */
  mix_tensor *few = mix_slice(x, MIX_SHAPE(0, 0, 0), MIX_SHAPE(4, 2, 4));
  mix_tensor *costs = mix_loss_call(mix_loss_new("ctc", .reduction = "none"), y, few);
  mix_tensor_read(costs, MIX_FLOAT64, got, 4);
  assert_true(got[0] > 1e29 && got[1] < 10 && got[2] < 10 && got[3] > 1e29);
  expect_refused(mix_loss_call(mix_loss_new("ctc"), y, y), MIX_VALUE_ERROR, "logits (batch, steps, classes)");
  mix_set_semantics("tf_keras");
}

/* A label that no class has was a label of probability 1. */
static void ctc_labels_are_classes(void **state) {
  (void)state;
  static const struct {
    double label;
    const char *part;
  } cases[] = {{4, "index 4 (element 1) is outside"},
               {-1, "index -1 (element 1) is outside"},
               {0x1p32, "index 4294967296 (element 1) is outside"},
               {NAN, "which NaN becomes as an integer, (element 1)"},
               {-INFINITY, "which -inf becomes as an integer, (element 1)"},
               {INFINITY, "which inf becomes as an integer, (element 1)"},
               {1.5, "index with a fraction (element 1)"}};
  mix_set_semantics("keras3");
  mix_tensor *x = mix_fill(MIX_SHAPE(1, 3, 4), 0.5, MIX_FLOAT32);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    mix_tensor *y = MATRIX(MIX_FLOAT64, 1, 2, 1, cases[i].label);
    assert_null(mix_tensor_data(mix_loss_call(mix_loss_new("ctc"), y, x)));
    assert_non_null(strstr(mix_error_message(), cases[i].part));
    assert_int_equal(mix_error_take(NULL, 0), MIX_VALUE_ERROR);
  }
  mix_set_semantics("tf_keras");
}

/* ---- numbers of tf_keras 2.21 and Keras 3.15 on these arrays, within some float32 roundings of numbers near
 * 1 ---- */

#define NEAR(tensor, ...) EXPECT(tensor, 1e-6, 1e-6, __VA_ARGS__)
static const char *const GENERATIONS[] = {"tf_keras", "keras3"};

/* d loss / d x, for predictions `activation` of x (NULL: x itself). */
static mix_tensor *slope(mix_loss *loss, mix_tensor *y, mix_tensor *x, const char *activation) {
  mix_tape *tape = mix_tape_begin();
  mix_tape_watch(tape, x);
  mix_tensor *value = mix_loss_call(loss, y, activation ? mix_activate(activation, x) : x);
  mix_tape_end(tape);
  return mix_list_get(mix_tape_gradient(tape, value, mix_list_of(x)), 0);
}
static mix_tensor *thirds(void) { return MATRIX(MIX_FLOAT32, 3, 3, .1, .2, .7, .5, .25, .25, .3, .3, .4); }
static mix_tensor *one_hot(void) { return MATRIX(MIX_FLOAT32, 3, 3, 1, 0, 0, 0, 1, 0, 0, 0, 1); }

/* sigmoid(0) - y, and the full slope of a hinge whose margin is met exactly. */
static void slopes_at_the_kinks(void **state) {
  (void)state;
  mix_tensor *y = MATRIX(MIX_FLOAT32, 1, 4, 0, 1, .3, 0), *x = MATRIX(MIX_FLOAT32, 1, 4, 0, 0, -0.0, 1);
  for (int g = 0; g < 2; g++) {
    mix_set_semantics(GENERATIONS[g]);
    mix_loss *logits = mix_binary_crossentropy(.from_logits = true);
    ROW(loss_of(logits, y, x), 0.84817582);
    NEAR(slope(logits, y, x, NULL), 0.125, -0.125, 0.05, 0.18276465);
    NEAR(slope(mix_binary_crossentropy(), y, x, "sigmoid"), 0.125, -0.125, 0.05, 0.18276465);
    NEAR(slope(mix_loss_new("binary_focal_crossentropy", .from_logits = true), y, x, NULL), 0.074571699,
         -0.074571699, 0.029828679, 0.19205868);
    NEAR(slope(mix_loss_new("hinge"), MATRIX(MIX_FLOAT32, 1, 3, -1, 1, 1),
               MATRIX(MIX_FLOAT32, 1, 3, -1, 1, .5), NULL),
         1. / 3, -1. / 3, -1. / 3);
    NEAR(slope(mix_loss_new("categorical_hinge"), MATRIX(MIX_FLOAT32, 1, 2, 0, 1),
               MATRIX(MIX_FLOAT32, 1, 2, 1, 2), NULL),
         1, -1);
  }
}

/* A sample counts if it is in the mask of the predictions and is not of the ignored class. */
static void ignored_class_and_mask(void **state) {
  (void)state;
  mix_tensor *y = VECTOR(MIX_INT32, 2, -1, 0), *mask = VECTOR(MIX_BOOL, 1, 1, 0),
             *weight = VECTOR(MIX_FLOAT32, 2, 1, 1);
  for (int g = 0; g < 2; g++) {
    mix_set_semantics(GENERATIONS[g]);
    mix_loss *mean = mix_sparse_categorical_crossentropy(.has_ignore_class = true, .ignore_class = -1),
             *sum = mix_sparse_categorical_crossentropy(.has_ignore_class = true, .ignore_class = -1,
                                                        .reduction = "sum");
    ROW(mix_loss_call(mean, y, thirds(), .mask = mask), 0.356675);
    ROW(mix_loss_call(sum, y, thirds(), .mask = mask, .sample_weight = weight), 0.71334994);
    ROW(mix_loss_call(mean, VECTOR(MIX_INT32, -1, -1, -1), thirds()),
        0); /* docs/spec/keras.md, 10.1: 0 / 0 is 0 (tf_keras: NaN) */
  }
}

/* Ignored predictions have no gradient, even if they are NaN. keras3 overwrites the predictions, which loses
 * their logits. */
static void ignored_predictions(void **state) {
  (void)state;
  mix_tensor *y = VECTOR(MIX_INT32, 1, -1), *x = MATRIX(MIX_FLOAT32, 2, 3, 40, 0, 0, 0, 40, 0);
  for (int g = 0; g < 2; g++) {
    mix_set_semantics(GENERATIONS[g]);
    mix_loss *loss = mix_sparse_categorical_crossentropy(.has_ignore_class = true, .ignore_class = -1);
    NEAR(slope(loss, y, MATRIX(MIX_FLOAT32, 2, 3, .2, .3, .5, NAN, .1, .2), NULL), 1, -7. / 3, 1, 0, 0, 0);
    ROW(loss_of(loss, y, mix_activate("softmax", x)), g ? 16.118095 : 40);
    NEAR(slope(loss, y, x, "softmax"), g ? 0 : 1, g ? 0 : -1, 0, 0, 0, 0);
  }
}

/* Labels with an extra last dimension of 1 lose it, for every loss. A vector against (batch, 1) stays a
 * vector in tf_keras only, where the loss is then one value for the whole batch. */
static void ranks_are_aligned(void **state) {
  (void)state;
  mix_tensor *y = mix_expand_dims(one_hot(), -1), *v = VECTOR(MIX_FLOAT32, 1, 2, 3),
             *twos = MATRIX(MIX_FLOAT32, 3, 1, 2, 2, 2);
  for (int g = 0; g < 2; g++) {
    mix_set_semantics(GENERATIONS[g]);
    NEAR(loss_of(mix_loss_new("kl_divergence"), y, thirds()), 1.5350537);
    NEAR(loss_of(mix_loss_new("categorical_hinge"), y, thirds()), 1.25);
    NEAR(loss_of(mix_categorical_crossentropy(), y, thirds()), 1.5350567);
    NEAR(loss_of(mix_loss_new("categorical_hinge"), VECTOR(MIX_FLOAT32, 1, 0, 1),
                 MATRIX(MIX_FLOAT32, 3, 1, .2, .7, .4)),
         g ? 1.0333333 : 1.1);
    NEAR(loss_of(mix_mean_squared_error(.reduction = "sum"), v, twos), g ? 2 : 2. / 3);
    mix_tensor *weighted =
        mix_loss_call(mix_mean_squared_error(), v, twos, .sample_weight = VECTOR(MIX_FLOAT32, 1, 0, 0));
    if (g)
      NEAR(weighted, 1. / 3);
    else
      expect_refused(weighted, MIX_VALUE_ERROR, "weights have shape (3) and the values of the loss ()");
  }
}

/* keras3 divides by the sum of the weights before broadcasting. */
static void weights_that_are_broadcast(void **state) {
  (void)state;
  mix_set_semantics("keras3");
  mix_loss *loss = mix_mean_squared_error(.reduction = "mean_with_sample_weight");
  mix_tensor *y = mix_fill(MIX_SHAPE(2, 3, 1), 1, MIX_FLOAT32),
             *p = mix_fill(MIX_SHAPE(2, 3, 1), 0, MIX_FLOAT32);
  EXPECT_EXACT(mix_loss_call(loss, y, p, .sample_weight = MATRIX(MIX_FLOAT32, 2, 1, 1, 1)), 3);
  EXPECT_EXACT(mix_loss_call(loss, y, p, .sample_weight = mix_fill(MIX_SHAPE(2, 1, 1), 1, MIX_FLOAT32)), 3);
}

/* In float32 6 / 5 would give 1.00000004. */
static void float64_masks(void **state) {
  (void)state;
  mix_tensor *y = mix_fill(MIX_SHAPE(2, 3, 1), 1, MIX_FLOAT64),
             *p = mix_fill(MIX_SHAPE(2, 3, 1), 0, MIX_FLOAT64);
  EXPECT(mix_loss_call(mix_mean_squared_error(), y, p, .mask = MATRIX(MIX_BOOL, 2, 3, 1, 0, 1, 1, 1, 1)),
         1e-15, 0, 1);
}

static void generalized_cross_entropy(void **state) {
  (void)state;
  mix_set_semantics("keras3");
  const char *name = "CategoricalGeneralizedCrossEntropy";
  mix_tensor *y = VECTOR(MIX_INT32, 2, 0, 1);
  NEAR(loss_of(mix_loss_new(name), y, thirds()), 0.60567373);
  NEAR(slope(mix_loss_new(name), y, thirds(), NULL), 0, 0, -0.39840955, -0.47140452, 0, 0, 0, -0.60858059, 0);
  mix_loss *nine = mix_loss_new(name, .q = 0.9, .reduction = "none");
  NEAR(loss_of(nine, y, thirds()), 0.30509129, 0.51568139, 0.73512948);
  NEAR(loss_of(nine, mix_expand_dims(mix_cast(y, MIX_FLOAT32), -1), thirds()), 0.30509129, 0.51568139,
       0.73512948);
  json_t *config = mix_loss_to_json(nine);
  NEAR(loss_of(mix_loss_from_json(config, NULL), y, thirds()), 0.30509129, 0.51568139, 0.73512948);
  json_decref(config);
  expect_refused(mix_loss_new(name, .q = 1.5), MIX_VALUE_ERROR, "between 0 and 1");
  expect_refused(mix_loss_new(name, .q = MIX_ZERO), MIX_VALUE_ERROR, "between 0 and 1");
  expect_refused(loss_of(nine, one_hot(), thirds()), MIX_VALUE_ERROR, "a class index for each");
}

/* The minimum length is 1e-7 in keras3, 1e-6 in tf_keras. */
static void cosine_of_short_vectors(void **state) {
  (void)state;
  mix_tensor *y = MATRIX(MIX_FLOAT32, 1, 2, 1, 1), *p = MATRIX(MIX_FLOAT32, 1, 2, 1e-8, 1e-8);
  NEAR(loss_of(mix_loss_new("cosine_similarity"), y, p), -0.014142135);
  mix_set_semantics("keras3");
  NEAR(loss_of(mix_loss_new("cosine_similarity"), y, p), -0.14142136);
  NEAR(slope(mix_loss_new("cosine_similarity"), y, p, NULL), -7071067.5, -7071067.5);
}

/* tf_keras uses the logits that predictions remember, also those of a sigmoid; keras3 uses the given
 * predictions. */
static void categorical_focal_by_logits(void **state) {
  (void)state;
  static const double values[2][2][2] = {{{0.14697833, 0.14697833}, {0.14697833, 0.14697833}},
                                         {{0.14697833, 0.12930448}, {0.13086742, 0.12702429}}};
  for (int g = 0; g < 2; g++)
    for (int sigmoid = 0; sigmoid < 2; sigmoid++)
      for (int from_logits = 0; from_logits < 2; from_logits++) {
        mix_set_semantics(GENERATIONS[g]);
        mix_loss *loss = mix_loss_new("categorical_focal_crossentropy", .from_logits = from_logits);
        NEAR(loss_of(loss, one_hot(), mix_activate(sigmoid ? "sigmoid" : "softmax", thirds())),
             values[g][sigmoid][from_logits]);
      }
}

static void the_first_axis(void **state) {
  (void)state;
  mix_set_semantics("keras3");
  mix_tensor *y = MATRIX(MIX_FLOAT32, 2, 2, 1, 0, 1, 1), *p = MATRIX(MIX_FLOAT32, 2, 2, .9, .2, .6, .7);
  NEAR(loss_of(mix_loss_new("cosine_similarity", .axis = MIX_AXIS_0, .reduction = "none"),
               MATRIX(MIX_FLOAT32, 2, 2, 1, 2, 3, 1), MATRIX(MIX_FLOAT32, 2, 2, 1, 0, 2, 1)),
       -0.98994946, -0.44721359);
  mix_loss *losses[] = {mix_binary_crossentropy(.axis = MIX_AXIS_0, .reduction = "none"),
                        mix_loss_new("dice", .axis = MIX_AXIS_0, .reduction = "none")};
  static const double values[][2] = {{0.30809307, 0.28990924}, {0.14285713, 0.26315796}};
  for (int i = 0; i < 2; i++) {
    NEAR(loss_of(losses[i], y, p), values[i][0], values[i][1]);
    json_t *config = mix_loss_to_json(losses[i]);
    assert_int_equal(json_integer_value(json_object_get(json_object_get(config, "config"), "axis")), 0);
    NEAR(loss_of(mix_loss_from_json(config, NULL), y, p), values[i][0], values[i][1]);
    json_decref(config);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {TEST(C01_sparse_categorical_crossentropy),
                                     TEST(region_losses_as_keras),
                                     TEST(ctc_as_keras),
                                     TEST(ctc_labels_are_classes),
                                     TEST(C02_categorical_crossentropy),
                                     TEST(C03_binary_crossentropy),
                                     TEST(C04_binary_logits),
                                     TEST(C05_huber),
                                     TEST(C06_log_cosh),
                                     TEST(C07_kl_divergence),
                                     TEST(C08_poisson),
                                     TEST(C09_label_smoothing),
                                     TEST(C10_msle),
                                     TEST(C11_weights),
                                     TEST(C12_mean_with_sample_weight),
                                     TEST(C13_mask),
                                     TEST(C14_hinge),
                                     TEST(C15_probability_zero),
                                     TEST(regressions),
                                     TEST(focal),
                                     TEST(focal_by_logits),
                                     TEST(one_hot_labels_are_no_class_numbers),
                                     TEST(binary_labels_have_the_shape_of_the_logits),
                                     TEST(unknown_names_get_a_suggestion),
                                     TEST(keras3_only),
                                     TEST(stored_logits_are_used),
                                     TEST(keras3_loses_the_logits_of_float16),
                                     TEST(other_axes),
                                     TEST(ignored_class),
                                     TEST(dtype_of_each_generation),
                                     TEST(epsilon_in_float16),
                                     TEST(float16_means_do_not_overflow),
                                     TEST(refusals),
                                     TEST(a_function_of_ones_own),
                                     TEST(json),
                                     TEST(json_of_focal_losses),
                                     TEST(gradient_of_the_guides_loss),
                                     TEST(captured),
                                     TEST(slopes_at_the_kinks),
                                     TEST(ignored_class_and_mask),
                                     TEST(ignored_predictions),
                                     TEST(ranks_are_aligned),
                                     TEST(weights_that_are_broadcast),
                                     TEST(float64_masks),
                                     TEST(generalized_cross_entropy),
                                     TEST(cosine_of_short_vectors),
                                     TEST(categorical_focal_by_logits),
                                     TEST(the_first_axis)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
