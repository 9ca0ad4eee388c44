/* The loss-scale optimizer of Keras 3 and of the experimental API (docs/spec/mixed_precision.md, 9.5
 * and 9.6). */
/* Holds docs/NUMERICS.md: Loss scaling. */
#include "optim/support.h"

static int keras3(void **state) { return mix_set_semantics("keras3"), setup(state); }
static int experimental(void **state) { return mix_set_semantics("experimental"), setup(state); }

static mix_optimizer *wrapped(mix_optimizer *inner, double initial, int64_t growth) {
  return mix_loss_scale_optimizer(inner, .initial_scale = initial, .dynamic_growth_steps = growth);
}

/* ---- Keras 3 ---- */

static void scaled_update(mix_sgd_options options) {
  mix_variable *v = VARIABLE(MIX_FLOAT32, "v", 1, 2, 3, 4);
  mix_optimizer *optimizer = mix_loss_scale_optimizer(mix_sgd_with(&options), .name = NULL);
  mix_tensor *scaled = VECTOR(MIX_FLOAT32, 1 * 32768.0, 6 * 32768.0, 7 * 32768.0, 2 * 32768.0);
  assert_int_equal(mix_optimizer_apply(optimizer, mix_list_of(scaled), mix_list_of(v)), MIX_OK);
  ASSERT_VALUES(v, 0, 0.5, -1, -0.5, 3);
}

static void O60_scaled_gradients(void **state) {
  (void)state;
  mix_sgd_options options = mix_sgd_defaults();
  options.learning_rate = 0.5;
  scaled_update(options);
}

static void O61_inner_loss_scale_factor_is_reset(void **state) {
  (void)state;
  mix_sgd_options options = mix_sgd_defaults();
  options.learning_rate = 0.5;
  options.loss_scale_factor = 100;
  scaled_update(options);
}

static void O62_infinite_gradients(void **state) {
  (void)state;
  mix_variable *v = VARIABLE(MIX_FLOAT32, "v", 1, 2);
  mix_optimizer *optimizer = mix_loss_scale_optimizer(mix_sgd(), .name = NULL);
  mix_optimizer_apply_gradients(optimizer, mix_list_of(VECTOR(MIX_FLOAT32, INFINITY, INFINITY)),
                                mix_list_of(v));
  ASSERT_VALUES(v, 0, 1, 2);
  assert_true(scale_of(optimizer) == 16384);
  assert_int_equal(mix_optimizer_iterations(optimizer), 0);
}

static void O63_overwrite_with_gradient(void **state) {
  (void)state;
  mix_variable *v = VARIABLE(MIX_FLOAT32, "v", 1, 2, 3, 4), *w = VARIABLE(MIX_FLOAT32, "w", 1);
  mix_optimizer *optimizer = mix_loss_scale_optimizer(mix_sgd(.learning_rate = 0.5), .name = NULL);
  mix_optimizer_overwrite_with_gradient(optimizer, v);
  mix_list *gradients = mix_list_of(VECTOR(MIX_FLOAT32, 1, 6, 7, 2), VECTOR(MIX_FLOAT32, 32768));
  mix_optimizer_apply(optimizer, gradients, mix_list_of(v, w));
  ASSERT_VALUES(v, 0, 1, 6, 7, 2);
  ASSERT_VALUES(w, 0, 0.5);
}

static void O64_three_finite_steps(void **state) {
  (void)state;
  mix_variable *v = VARIABLE(MIX_FLOAT32, "v", 1);
  mix_optimizer *optimizer = mix_loss_scale_optimizer(mix_sgd(), .name = NULL);
  for (int i = 1; i <= 3; i++) {
    mix_optimizer_apply(optimizer, mix_list_of(VECTOR(MIX_FLOAT32, 1)), mix_list_of(v));
    assert_int_equal(mix_optimizer_iterations(optimizer), i);
  }
  /* Four variables of its own, the first of which stays 0, then the inner optimizer's iteration and learning
   * rate. */
  mix_list *variables = mix_optimizer_variables(optimizer);
  assert_int_equal(mix_list_count(variables), 6);
  ASSERT_VALUES((mix_variable *)mix_list_get(variables, 0), 0, 0);
  ASSERT_VALUES((mix_variable *)mix_list_get(variables, 1), 0, 0);
  ASSERT_VALUES((mix_variable *)mix_list_get(variables, 2), 0, 3);
  ASSERT_VALUES((mix_variable *)mix_list_get(variables, 3), 0, 32768);
  ASSERT_VALUES((mix_variable *)mix_list_get(variables, 4), 0, 3);
}

static void O66_dynamic_false(void **state) {
  (void)state;
  assert_non_null(mix_loss_scale_optimizer(mix_sgd(), .fixed = false));
  assert_null(mix_loss_scale_optimizer(mix_sgd(), .fixed = true, .initial_scale = 8));
  assert_int_equal(mix_error(), MIX_VALUE_ERROR);
  assert_non_null(strstr(mix_error_message(), "loss_scale_factor"));
  mix_error_clear();
}

static void O70_scale_loss_before_build(void **state) {
  (void)state;
  mix_optimizer *optimizer = wrapped(mix_sgd(), 3, 0);
  assert_true(mix_tensor_item(mix_optimizer_scale_loss(optimizer, mix_scalar(1, MIX_FLOAT32))) == 3);
  /* No cast of the scale: a float16 loss becomes float32 and does not overflow. */
  optimizer = mix_loss_scale_optimizer(mix_sgd(), .name = NULL);
  mix_tensor *scaled = mix_optimizer_scale_loss(optimizer, mix_scalar(4, MIX_FLOAT16));
  assert_int_equal(mix_tensor_dtype(scaled), MIX_FLOAT32);
  assert_true(mix_tensor_item(scaled) == 131072);
  assert_null(mix_optimizer_get_scaled_loss(optimizer, mix_scalar(1, MIX_FLOAT32)));
  ASSERT_ERROR(MIX_ATTRIBUTE_ERROR);
}

/* Expects these scales after each step; -1 stands for infinity. */
static void sequence(double initial, int64_t growth, const char *steps, const double *scales, bool captured) {
  mix_variable *v = VARIABLE(MIX_FLOAT32, "v", 1);
  mix_optimizer *optimizer = wrapped(mix_sgd(.learning_rate = MIX_ZERO), initial, growth);
  captured_update update = captured_update_of(optimizer, mix_list_of(v));
  for (int i = 0; steps[i]; i++) {
    mix_list *gradients = mix_list_of(VECTOR(MIX_FLOAT32, steps[i] == 'T' ? 1 : NAN));
    if (captured)
      run_captured(&update, gradients);
    else
      mix_optimizer_apply_gradients(optimizer, gradients, update.variables);
    assert_no_error();
    double scale = scale_of(optimizer);
    if (scales[i] < 0)
      assert_true(isinf(scale));
    else
      assert_near(scale, scales[i], 0);
  }
}

static void S20_to_S24_sequences(void **state) {
  (void)state;
  static const struct {
    double initial;
    int64_t growth;
    const char *steps;
    double scales[11];
  } rows[] = {{400, 2000, "FFFF", {200, 100, 50, 25}},
              {2, 2, "TTTTTTTT", {2, 4, 4, 8, 8, 16, 16, 32}},
              {1, 2000, "FFF", {0.5, 0.25, 0.125}},
              {0x1p126, 1, "TTT", {0x1p127, -1, -1}},
              {4, 2, "FTTTFTFTTTF", {2, 2, 4, 4, 2, 2, 1, 1, 2, 2, 1}}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    for (int captured = 0; captured < 2; captured++)
      sequence(rows[i].initial, rows[i].growth, rows[i].steps, rows[i].scales, captured);
}

static void S25_two_thousand_steps(void **state) {
  (void)state;
  mix_variable *v = VARIABLE(MIX_FLOAT32, "v", 1);
  mix_optimizer *optimizer = mix_loss_scale_optimizer(mix_sgd(), .name = NULL);
  captured_update update = captured_update_of(optimizer, mix_list_of(v));
  mix_list *gradients = mix_list_of(VECTOR(MIX_FLOAT32, 0));
  run_captured(&update, gradients); /* the function belongs to the test's scope */
  for (int i = 1; i < 1999; i++)
    MIX_SCOPE { run_captured(&update, gradients); }
  assert_true(scale_of(optimizer) == 32768 && counter_of(optimizer) == 1999);
  run_captured(&update, gradients);
  assert_true(scale_of(optimizer) == 65536 && counter_of(optimizer) == 0);
}

/* A non-finite micro-step neither updates, nor accumulates, nor counts. */
static void accumulation_under_a_dynamic_scale(void **state) {
  (void)state;
  mix_variable *v = VARIABLE(MIX_FLOAT32, "v", 5);
  mix_optimizer *optimizer = wrapped(mix_sgd(.learning_rate = 1, .gradient_accumulation_steps = 2), 4, 2000);
  captured_update update = captured_update_of(optimizer, mix_list_of(v));
  run_captured(&update, mix_list_of(VECTOR(MIX_FLOAT32, 4 * 1)));
  run_captured(&update, mix_list_of(VECTOR(MIX_FLOAT32, NAN)));
  ASSERT_VALUES(v, 0, 5);
  ASSERT_VALUES(mix_optimizer_slot(optimizer, v, "gradient_accumulator"), 0, 1);
  run_captured(&update, mix_list_of(VECTOR(MIX_FLOAT32, 2 * 3)));
  ASSERT_VALUES(v, 0, 3);
  assert_int_equal(mix_optimizer_iterations(optimizer), 1);
}

/* ---- experimental ---- */

static void O41_policy_carries_the_scale(void **state) {
  (void)state;
  mix_policy *policy = mix_policy_new("mixed_float16", .loss_scale = 8);
  mix_optimizer *optimizer = mix_optimizer_for_policy(mix_sgd(), policy);
  assert_true(mix_optimizer_scales_loss(optimizer));
  assert_ptr_equal(mix_optimizer_loss_scale_object(optimizer), mix_policy_loss_scale(policy));
  assert_false(mix_optimizer_dynamic(optimizer));
  assert_true(scale_of(optimizer) == 8);
  mix_optimizer *plain = mix_sgd();
  assert_ptr_equal(mix_optimizer_for_policy(plain, mix_policy_new("mixed_bfloat16")), plain);
}

static void O42_clipping_inside_is_refused(void **state) {
  (void)state;
  assert_null(mix_loss_scale_optimizer(mix_sgd(.clipnorm = 1), .loss_scale = mix_loss_scale_get("dynamic")));
  ASSERT_ERROR(MIX_VALUE_ERROR);
}

static void O43_no_loss_scale(void **state) {
  (void)state;
  assert_null(mix_loss_scale_optimizer(mix_sgd(), .loss_scale = NULL));
  ASSERT_ERROR(MIX_VALUE_ERROR);
}

static void O44_multiplier_four(void **state) {
  (void)state;
  mix_variable *v = VARIABLE(MIX_FLOAT32, "v", 1);
  mix_loss_scale *scale =
      mix_dynamic_loss_scale(.initial_loss_scale = 1, .increment_period = 1, .multiplier = 4);
  mix_optimizer *optimizer = mix_loss_scale_optimizer(mix_sgd(), .loss_scale = scale);
  mix_optimizer_apply_gradients(optimizer, mix_list_of(VECTOR(MIX_FLOAT32, 1)), mix_list_of(v));
  assert_true(scale_of(optimizer) == 4);
}

static void O45_nan_step_does_not_count(void **state) {
  (void)state;
  mix_variable *v = VARIABLE(MIX_FLOAT32, "v", 1);
  mix_optimizer *optimizer = mix_loss_scale_optimizer(mix_sgd(), .loss_scale = mix_loss_scale_get("dynamic"));
  mix_optimizer_apply_gradients(optimizer, mix_list_of(VECTOR(MIX_FLOAT32, NAN)), mix_list_of(v));
  assert_int_equal(mix_optimizer_iterations(optimizer), 0);
  ASSERT_VALUES(v, 0, 1);
}

#define KERAS3(function) cmocka_unit_test_setup_teardown(function, keras3, teardown)
#define EXPERIMENTAL(function) cmocka_unit_test_setup_teardown(function, experimental, teardown)

int main(void) {
  const struct CMUnitTest tests[] = {KERAS3(O60_scaled_gradients),
                                     KERAS3(O61_inner_loss_scale_factor_is_reset),
                                     KERAS3(O62_infinite_gradients),
                                     KERAS3(O63_overwrite_with_gradient),
                                     KERAS3(O64_three_finite_steps),
                                     KERAS3(O66_dynamic_false),
                                     KERAS3(O70_scale_loss_before_build),
                                     KERAS3(S20_to_S24_sequences),
                                     KERAS3(S25_two_thousand_steps),
                                     KERAS3(accumulation_under_a_dynamic_scale),
                                     EXPERIMENTAL(O41_policy_carries_the_scale),
                                     EXPERIMENTAL(O42_clipping_inside_is_refused),
                                     EXPERIMENTAL(O43_no_loss_scale),
                                     EXPERIMENTAL(O44_multiplier_four),
                                     EXPERIMENTAL(O45_nan_step_does_not_count)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
