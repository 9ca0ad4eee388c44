/* Loss scales: rows S01 to S25 of docs/spec/mixed_precision.md, 9.5, run op by op and as one captured
 * function; O46, O47. */
/* Holds docs/NUMERICS.md: Loss scaling. */
#include "nn/support.h"
#include <float.h>

/* One eager update; `finite` is the result of the finite test. */
static void step(mix_loss_scale *loss_scale, bool finite) {
  mix_scope *scope = mix_scope_begin();
  mix_tensor *apply = mix_loss_scale_update(loss_scale, mix_scalar(finite, MIX_BOOL));
  assert_non_null(apply);
  assert_true((mix_tensor_item(apply) != 0) == (finite || !mix_loss_scale_is_dynamic(loss_scale)));
  mix_scope_end(scope);
}
static double scale_of(mix_loss_scale *loss_scale) {
  return mix_tensor_item(mix_loss_scale_value(loss_scale));
}
static double steps_of(mix_loss_scale *loss_scale) {
  return mix_tensor_item(mix_variable_value(mix_loss_scale_good_steps(loss_scale)));
}

/* Expects these scales after each letter of `sequence`. Every number here is exact in float32. */
static void follow(mix_loss_scale *loss_scale, const char *sequence, const double *scales) {
  assert_non_null(loss_scale);
  for (int i = 0; sequence[i]; i++) {
    step(loss_scale, sequence[i] == 'T');
    if (scale_of(loss_scale) != (float)scales[i])
      fail_msg("%s, step %d: the scale is %g, expected %g", sequence, i + 1, scale_of(loss_scale), scales[i]);
  }
}

static mix_list *update_body(void *context, mix_list *arguments) {
  mix_tensor *apply = mix_loss_scale_update(context, mix_list_get(arguments, 0));
  return mix_list_of(apply, mix_loss_scale_value(context));
}
/* The same sequence; each step is a call of one captured function. */
static void follow_captured(mix_loss_scale *loss_scale, const char *sequence, const double *scales) {
  mix_function *function = mix_function_new(update_body, loss_scale);
  for (int i = 0; sequence[i]; i++) {
    mix_scope *scope = mix_scope_begin();
    mix_list *results = mix_function_call(function, mix_list_of(mix_scalar(sequence[i] == 'T', MIX_BOOL)));
    assert_non_null(results);
    assert_true((mix_tensor_item(mix_list_get(results, 0)) != 0) == (sequence[i] == 'T'));
    assert_true(mix_tensor_item(mix_list_get(results, 1)) == (float)scales[i]);
    mix_scope_end(scope);
    assert_true(scale_of(loss_scale) == (float)scales[i]);
  }
}
#define DYNAMIC(initial, period, factor)                                                                     \
  mix_dynamic_loss_scale(.initial_loss_scale = initial, .increment_period = period, .multiplier = factor)
#define ROW(number, initial, period, factor, sequence, ...)                                                  \
  static void number(void **state) {                                                                         \
    (void)state;                                                                                             \
    follow(DYNAMIC(initial, period, factor), sequence, (double[]){__VA_ARGS__});                             \
    follow_captured(DYNAMIC(initial, period, factor), sequence, (double[]){__VA_ARGS__});                    \
  }

ROW(S01_grows_every_second_step, 1, 2, 2, "TTTTTT", 1, 2, 2, 4, 4, 8)
ROW(S02_growth_to_infinity_is_refused, FLT_MAX / 4, 2, 2, "TTTTTT", FLT_MAX / 4, FLT_MAX / 2, FLT_MAX / 2,
    FLT_MAX, FLT_MAX, FLT_MAX)
ROW(S03_halves, 1024, 2, 2, "FFFFFF", 512, 256, 128, 64, 32, 16)
ROW(S04_never_below_one, 16, 2, 2, "FFFFFF", 8, 4, 2, 1, 1, 1)
ROW(S05_finite_then_not, 1, 2, 2, "TTTFT", 1, 2, 2, 1, 1)
ROW(S06_period_of_one, 1, 1, 2, "TTTFTT", 2, 4, 8, 4, 8, 16)
ROW(S07_alternating_up, 1, 1, 2, "TFTFTFTFT", 2, 1, 2, 1, 2, 1, 2, 1, 2)
ROW(S08_alternating_down, 32, 2, 2, "TFTFTFT", 32, 16, 16, 8, 8, 4, 4)
ROW(S09_multiplier_three, 4, 2, 3, "TTFTT", 4, 12, 4, 4, 12)
ROW(S10_mixture, 4, 2, 2, "FTTTFTFTTTF", 2, 2, 4, 4, 2, 2, 1, 1, 2, 2, 1)
ROW(S14_odd_initial_scale, 3, 1, 2, "FFF", 1.5, 1, 1)
ROW(S15_two_growths, 2, 1, 2, "TT", 4, 8)

static void repeat(mix_loss_scale *loss_scale, int count) {
  for (int i = 0; i < count; i++) step(loss_scale, true);
}
static void S11_to_S13_defaults(void **state) {
  (void)state;
  mix_loss_scale *loss_scale = mix_dynamic_loss_scale(), *other = mix_dynamic_loss_scale();
  repeat(loss_scale, 1999);
  assert_true(scale_of(loss_scale) == 32768 && steps_of(loss_scale) == 1999); /* S11 */
  step(loss_scale, true);
  assert_true(scale_of(loss_scale) == 65536 && steps_of(loss_scale) == 0); /* S12 */
  repeat(other, 1999);
  step(other, false);
  repeat(other, 1999);
  assert_true(scale_of(other) == 16384 && steps_of(other) == 1999); /* S13 */
}
static void S16_what_counts_as_finite(void **state) {
  (void)state;
  mix_tensor *finite = VECTOR(MIX_FLOAT16, 1, -2, 65504), *nan = VECTOR(MIX_FLOAT32, 1, NAN),
             *inf = VECTOR(MIX_BFLOAT16, -INFINITY, 0);
  assert_true(mix_tensor_item(mix_all_finite_of(mix_list_of(NULL, finite))) == 1);
  assert_true(mix_tensor_item(mix_all_finite_of(mix_list_of(NULL, nan))) == 0);
  assert_true(mix_tensor_item(mix_all_finite_of(mix_list_of(finite, inf))) == 0);
  assert_true(mix_tensor_item(mix_all_finite_of(mix_list_new(0, NULL))) == 1);
}
static void S17_counters(void **state) {
  (void)state;
  static const double counters[] = {0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0};
  mix_loss_scale *loss_scale = DYNAMIC(4, 2, 2);
  const char *sequence = "FTTTFTFTTTF";
  for (int i = 0; sequence[i]; i++) {
    step(loss_scale, sequence[i] == 'T');
    assert_true(steps_of(loss_scale) == counters[i]);
  }
}
static void S18_fixed(void **state) {
  (void)state;
  mix_loss_scale *loss_scale = mix_fixed_loss_scale(1000);
  step(loss_scale, false); /* `step` checks that the gradients are applied */
  assert_true(scale_of(loss_scale) == 1000);
  assert_null(mix_loss_scale_good_steps(loss_scale));
}

/* ---- keras3 ---- */

#define ROW3(number, initial, period, sequence, ...)                                                         \
  static void number(void **state) {                                                                         \
    (void)state;                                                                                             \
    mix_set_semantics("keras3");                                                                             \
    follow(DYNAMIC(initial, period, 2), sequence, (double[]){__VA_ARGS__});                                  \
    follow_captured(DYNAMIC(initial, period, 2), sequence, (double[]){__VA_ARGS__});                         \
  }
ROW3(S20_keras3_halves, 400, 2000, "FFFF", 200, 100, 50, 25)
ROW3(S21_keras3_grows, 2, 2, "TTTTTTTT", 2, 4, 4, 8, 8, 16, 16, 32)
ROW3(S22_keras3_no_floor, 1, 2000, "FFF", 0.5, 0.25, 0.125)
ROW3(S23_keras3_no_cap, 0x1p126, 1, "TTTF", 0x1p127, INFINITY, INFINITY, INFINITY)
ROW3(S24_keras3_mixture, 4, 2, "FTTTFTFTTTF", 2, 2, 4, 4, 2, 2, 1, 1, 2, 2, 1)
static void S25_keras3_defaults(void **state) {
  (void)state;
  mix_set_semantics("keras3");
  mix_loss_scale *loss_scale = mix_dynamic_loss_scale();
  repeat(loss_scale, 1999);
  assert_true(scale_of(loss_scale) == 32768);
  step(loss_scale, true);
  assert_true(scale_of(loss_scale) == 65536);
}

/* ---- objects ---- */

/* FixedLossScale("x") and FixedLossScale(tensor) are impossible in C; NaN replaces them. */
/* A tensor as the value: the only parameter is a double, so a compiler refuses it. */
_Static_assert(_Generic(&mix_fixed_loss_scale, mix_loss_scale *(*)(double) : 1, default : 0),
               "mix_fixed_loss_scale takes a number only");
static void O46_bad_fixed_values(void **state) {
  (void)state;
  expect_refused(mix_fixed_loss_scale(0.5), MIX_VALUE_ERROR, "at least 1");
  expect_refused(mix_fixed_loss_scale(NAN), MIX_VALUE_ERROR, "at least 1");
  expect_refused(mix_loss_scale_get("x"), MIX_VALUE_ERROR, "\"x\"");
}
static void O47_fixed_one(void **state) {
  (void)state;
  assert_true(scale_of(mix_fixed_loss_scale(1)) == 1);
  expect_dtype(mix_loss_scale_value(mix_fixed_loss_scale(1)), MIX_FLOAT32);
}
/* Fixed scales of 0.5 are an object's in the experimental API, a wrapper's number in tf_keras, and a factor
 * of any dtype in keras3. */
static void texts(void **state) {
  (void)state;
  static const struct {
    const char *text;
    double initial; /* 0: refused */
    int64_t period; /* 0: fixed */
    const char *semantics;
  } rows[] = {{"128", 128, 0, NULL},
              {"0.5", 0.5, 0, NULL},
              {"0.5", 0.5, 0, "keras3"},
              {"0.5", 0, 0, "experimental"},
              {"1e300", 1e300, 0, "keras3"},
              {"1e300", 0, 0, NULL},
              {"dynamic", 32768, 2000, NULL},
              {"dynamic:0.25", 0.25, 2000, "experimental"},
              {"dynamic:1024:5", 1024, 5, "keras3"},
              {"dynamic:1e300", 0, 0, "keras3"},
              {"auto", 0, 0, NULL},
              {"", 0, 0, NULL},
              {"0", 0, 0, NULL},
              {"-8", 0, 0, NULL},
              {"8x", 0, 0, NULL},
              {"8:5", 0, 0, NULL},
              {"nan", 0, 0, NULL},
              {"inf", 0, 0, NULL},
              {"dynamics", 0, 0, NULL},
              {"dynamic:", 0, 0, NULL},
              {"dynamic:0", 0, 0, NULL},
              {"dynamic::5", 0, 0, NULL},
              {"dynamic:8:", 0, 0, NULL},
              {"dynamic:8:0", 0, 0, NULL},
              {"dynamic:8:1.5", 0, 0, NULL},
              {"dynamic:8:5:5", 0, 0, NULL}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    const mix_semantics *semantics = rows[i].semantics ? mix_semantics_named(rows[i].semantics) : NULL;
    mix_loss_scale *scale = mix_loss_scale_from_text(rows[i].text, semantics);
    if (!rows[i].initial) {
      expect_refused(scale, MIX_VALUE_ERROR, "");
      continue;
    }
    if (!scale) fail_msg("'%s': %s", rows[i].text, mix_error_message());
    assert_true(mix_loss_scale_initial(scale) == rows[i].initial);
    assert_int_equal(mix_loss_scale_is_dynamic(scale), rows[i].period != 0);
    assert_int_equal(mix_loss_scale_increment_period(scale), rows[i].period);
  }
  assert_null(mix_loss_scale_from_text("none", NULL));
  assert_int_equal(mix_error(), MIX_OK);
  expect_refused(mix_loss_scale_from_text(NULL, NULL), MIX_TYPE_ERROR, "no text");
}
static void get_and_config(void **state) {
  (void)state;
  assert_null(mix_loss_scale_get(NULL));
  assert_true(mix_loss_scale_is_dynamic(mix_loss_scale_get("dynamic")));
  assert_string_equal(mix_loss_scale_config(mix_fixed_loss_scale(8)), "{\"loss_scale_value\": 8.0}");
  mix_loss_scale *dynamic = DYNAMIC(2, 3, 4);
  assert_string_equal(mix_loss_scale_config(dynamic),
                      "{\"initial_loss_scale\": 2.0, \"increment_period\": 3, \"multiplier\": 4.0}");
  mix_loss_scale *again = mix_loss_scale_deserialize(mix_loss_scale_serialize(dynamic));
  assert_true(mix_loss_scale_initial(again) == 2 && mix_loss_scale_multiplier(again) == 4);
  assert_int_equal(mix_loss_scale_increment_period(again), 3);
  assert_true(mix_loss_scale_initial(mix_loss_scale_deserialize("16")) == 16);
  assert_null(mix_loss_scale_deserialize("null"));
  expect_refused(mix_loss_scale_deserialize("{\"class_name\": \"MyLossScale\", \"config\": {}}"),
                 MIX_VALUE_ERROR, "MyLossScale");
  expect_refused(mix_loss_scale_deserialize("{\"class_name\": "), MIX_VALUE_ERROR, "JSON");
}
/* float32 holds the scale, and its reciprocal divides the gradients. */
static void scales_that_float32_does_not_hold(void **state) {
  (void)state;
  const double refused[] = {INFINITY, -INFINITY, NAN, 1e39, -1e39, 1e300, 3.5e38, 1e-45, 1e-46, 2.9e-39};
  for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
    expect_refused(DYNAMIC(refused[i], 2, 2), MIX_VALUE_ERROR,
                   isnan(refused[i]) ? "initial_loss_scale is nan; expected a number" : "float32");
    mix_loss_scale *fixed = mix_fixed_loss_scale(refused[i]);
    assert_null(fixed);
    assert_int_equal(mix_error_take(NULL, 0), MIX_VALUE_ERROR);
  }
  const double accepted[] = {3.4e38, 0x1p127, 1, 1e-3, 0x1p-126, -2};
  for (size_t i = 0; i < sizeof accepted / sizeof *accepted; i++) assert_non_null(DYNAMIC(accepted[i], 2, 2));
  expect_refused(mix_loss_scale_deserialize("1e300"), MIX_VALUE_ERROR, "infinite");
}
/* JSON has no infinity; the error is the same as that of an optimizer's config. */
static void an_infinite_scale_has_no_config(void **state) {
  (void)state;
  mix_loss_scale *multiplier = DYNAMIC(2, 2, INFINITY);
  expect_refused(mix_loss_scale_config(multiplier), MIX_VALUE_ERROR, "'multiplier'");
  expect_refused(mix_loss_scale_serialize(multiplier), MIX_VALUE_ERROR, "'multiplier'");
}
static void state_is_two_untrainable_variables(void **state) {
  (void)state;
  mix_loss_scale *loss_scale = mix_dynamic_loss_scale();
  assert_int_equal(mix_variable_true_dtype(mix_loss_scale_variable(loss_scale)), MIX_FLOAT32);
  assert_int_equal(mix_variable_true_dtype(mix_loss_scale_good_steps(loss_scale)), MIX_INT64);
  assert_false(mix_variable_trainable(mix_loss_scale_variable(loss_scale)));
}

int main(void) {
  const struct CMUnitTest tests[] = {TEST(S01_grows_every_second_step),
                                     TEST(S02_growth_to_infinity_is_refused),
                                     TEST(scales_that_float32_does_not_hold),
                                     TEST(S03_halves),
                                     TEST(S04_never_below_one),
                                     TEST(S05_finite_then_not),
                                     TEST(S06_period_of_one),
                                     TEST(S07_alternating_up),
                                     TEST(S08_alternating_down),
                                     TEST(S09_multiplier_three),
                                     TEST(S10_mixture),
                                     TEST(S11_to_S13_defaults),
                                     TEST(S14_odd_initial_scale),
                                     TEST(S15_two_growths),
                                     TEST(S16_what_counts_as_finite),
                                     TEST(S17_counters),
                                     TEST(S18_fixed),
                                     TEST(S20_keras3_halves),
                                     TEST(S21_keras3_grows),
                                     TEST(S22_keras3_no_floor),
                                     TEST(S23_keras3_no_cap),
                                     TEST(S24_keras3_mixture),
                                     TEST(S25_keras3_defaults),
                                     TEST(O46_bad_fixed_values),
                                     TEST(O47_fixed_one),
                                     TEST(texts),
                                     TEST(get_and_config),
                                     TEST(an_infinite_scale_has_no_config),
                                     TEST(state_is_two_untrainable_variables)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
