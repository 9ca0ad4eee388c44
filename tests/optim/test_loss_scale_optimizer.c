/* The loss-scale optimizer of tf_keras (docs/spec/mixed_precision.md, 9.6). Numbers are small dyadic
 * fractions, so results are exact. */
/* Holds docs/NUMERICS.md: Loss scaling. */
#include "optim/support.h"

#include "graph/variable.h"

/* ---- losses and messages ---- */

typedef struct problem {
  mix_variable *variable;
  double factor;
} problem;
static mix_tensor *loss_of(void *context) {
  const problem *p = context;
  mix_tensor *value = mix_variable_value(p->variable);
  return mix_reduce_sum(mix_multiply(value, mix_scalar_like(value, p->factor)), MIX_ALL_AXES, false);
}
static void minimize(mix_optimizer *optimizer, mix_variable *variable, double factor) {
  problem p = {variable, factor};
  assert_int_equal(mix_optimizer_minimize_function(optimizer, loss_of, &p, mix_list_of(variable)), MIX_OK);
}

static char warning[1024];
static int warnings;
static void listen(void *context, mix_log_level level, const char *message) {
  (void)context;
  if (level != MIX_LOG_WARNING) return;
  warnings++;
  snprintf(warning, sizeof warning, "%s", message);
}

static mix_optimizer *dynamic(mix_optimizer *inner, double initial, int64_t growth) {
  return mix_loss_scale_optimizer(inner, .initial_scale = initial, .dynamic_growth_steps = growth);
}
static mix_optimizer *fixed(mix_optimizer *inner, double scale) {
  return mix_loss_scale_optimizer(inner, .fixed = true, .initial_scale = scale);
}

/* ---- scaling ---- */

static void O01_backprop_sees_the_scaled_gradient(void **state) {
  (void)state;
  mix_variable *v = VARIABLE(MIX_FLOAT32, "v", 5);
  mix_optimizer *optimizer = fixed(mix_sgd(.learning_rate = 2), 10);
  mix_list *variables = mix_list_of(v);
  mix_tape *tape = mix_tape_begin(0);
  mix_tensor *loss = mix_optimizer_get_scaled_loss(optimizer, mix_variable_value(v));
  mix_tape_end(tape);
  mix_list *scaled = mix_tape_gradient(tape, loss, variables);
  assert_true(mix_tensor_item(mix_list_get(scaled, 0)) == 10);
  mix_optimizer_apply_gradients(optimizer, mix_optimizer_get_unscaled_gradients(optimizer, scaled),
                                variables);
  /* 10 * (1 / 10) in float32: 1 / 10 rounds, the product to 1 again; 5 - 2 */
  ASSERT_VALUES(v, 0, 3);
  mix_variable *again = VARIABLE(MIX_FLOAT32, "again", 5);
  minimize(fixed(mix_sgd(.learning_rate = 2), 10), again, 1);
  ASSERT_VALUES(again, 0, 3);
}

static mix_tensor *five(void *context) { return (void)context, mix_scalar(5, MIX_FLOAT32); }
static void O02_get_scaled_loss(void **state) {
  (void)state;
  mix_optimizer *optimizer = fixed(mix_sgd(), 2);
  mix_tensor *scaled = mix_optimizer_get_scaled_loss(optimizer, mix_scalar(5, MIX_FLOAT32));
  assert_int_equal(mix_tensor_dtype(scaled), MIX_FLOAT32);
  assert_true(mix_tensor_item(scaled) == 10);
  scaled = mix_optimizer_get_scaled_loss(optimizer, mix_scalar(5, MIX_FLOAT16));
  assert_int_equal(mix_tensor_dtype(scaled), MIX_FLOAT16);
  assert_true(mix_tensor_item(scaled) == 10);
  assert_true(mix_tensor_item(mix_optimizer_get_scaled_loss_of(optimizer, five, NULL)) == 10);
}

static void O03_get_unscaled_gradients(void **state) {
  (void)state;
  mix_list *gradients =
      mix_list_new(3, (void *[]){mix_scalar(3, MIX_FLOAT32), NULL, mix_scalar(-4, MIX_FLOAT16)});
  mix_list *unscaled = mix_optimizer_get_unscaled_gradients(fixed(mix_sgd(), 2), gradients);
  assert_int_equal(mix_list_count(unscaled), 3);
  assert_true(mix_tensor_item(mix_list_get(unscaled, 0)) == 1.5);
  assert_null(mix_list_get(unscaled, 1));
  assert_true(mix_tensor_item(mix_list_get(unscaled, 2)) == -2);
  assert_int_equal(mix_tensor_dtype(mix_list_get(unscaled, 2)), MIX_FLOAT16);
}

static void O04_sparse_values_are_unscaled(void **state) {
  (void)state;
  mix_optimizer *optimizer = fixed(mix_sgd(), 2);
  mix_tensor *values = mix_tensor_from_doubles((const double[]){4, 2, 8, 5}, MIX_FLOAT32, MIX_SHAPE(2, 2));
  mix_tensor *indices = mix_tensor_from((const int32_t[]){1, 3}, MIX_INT32, MIX_SHAPE(2));
  mix_list *unscaled =
      mix_optimizer_get_unscaled_gradients(optimizer, mix_list_of(mix_rows(values, indices, 10)));
  mix_tensor *gradient = mix_list_get(unscaled, 0);
  assert_true(mix_tensor_is_rows(gradient));
  const float *got = mix_tensor_data(mix_rows_values(gradient));
  const float expected[] = {2, 1, 4, 2.5f};
  for (int i = 0; i < 4; i++) assert_true(got[i] == expected[i]);
  const int32_t *kept = mix_tensor_data(mix_rows_indices(gradient));
  assert_true(kept[0] == 1 && kept[1] == 3);
  assert_true(mix_shape_equal(mix_tensor_shape(gradient), MIX_SHAPE(10, 2)));
}
static void O05_dynamic_two_steps(void **state) {
  (void)state;
  mix_variable *v = VARIABLE(MIX_FLOAT32, "v", 5);
  mix_optimizer *optimizer = dynamic(mix_sgd(.learning_rate = 2), 2, 1);
  minimize(optimizer, v, 1);
  ASSERT_VALUES(v, 0, 3);
  assert_true(scale_of(optimizer) == 4);
  minimize(optimizer, v, 1);
  ASSERT_VALUES(v, 0, 1);
  assert_true(scale_of(optimizer) == 8);
}

static void O06_defaults(void **state) {
  (void)state;
  mix_optimizer *optimizer = mix_loss_scale_optimizer(mix_sgd(), .fixed = false);
  assert_true(mix_optimizer_initial_scale(optimizer) == 32768);
  assert_int_equal(mix_optimizer_dynamic_growth_steps(optimizer), 2000);
  assert_true(mix_optimizer_dynamic(optimizer));
  assert_true(counter_of(optimizer) == 0);
  assert_true(scale_of(optimizer) == 32768);
}

static void O07_fixed_has_no_counter(void **state) {
  (void)state;
  mix_optimizer *optimizer = fixed(mix_sgd(), 8);
  assert_null(mix_optimizer_dynamic_counter(optimizer));
  assert_int_equal(mix_optimizer_dynamic_growth_steps(optimizer), 0);
  assert_false(mix_optimizer_dynamic(optimizer));
}

static void set_limit(mix_optimizer *optimizer, int kind, double limit) {
  const mix_status status = mix_optimizer_set_clipping(optimizer, kind == 0 ? limit : 0,
                                                       kind == 1 ? limit : 0, kind == 2 ? limit : 0);
  assert_int_equal(status, MIX_OK);
}

/* Clipping sees unscaled gradients: 4 is clipped to 2, and later to 3, for any scale. */
static void O08_O09_O10_clipping_sees_unscaled_gradients(void **state) {
  (void)state;
  for (int i = 0; i < 6; i++) {
    const int kind = i % 3;
    const bool legacy = i < 3;
    mix_sgd_options first = mix_sgd_defaults();
    first.learning_rate = 2;
    first.legacy = legacy;
    *(kind == 0 ? &first.clipnorm : kind == 1 ? &first.global_clipnorm : &first.clipvalue) = 2;
    mix_variable *v = VARIABLE(MIX_FLOAT32, "v", 5);
    mix_optimizer *optimizer = dynamic(mix_sgd_with(&first), 2, 1);
    minimize(optimizer, v, 4);
    ASSERT_VALUES(v, 0, 1);
    assert_true(scale_of(optimizer) == 4);
    set_limit(optimizer, kind, 3);
    minimize(optimizer, v, 4);
    ASSERT_VALUES(v, 0, -5);
    assert_true(scale_of(optimizer) == 8);
    minimize(optimizer, v, INFINITY);
    ASSERT_VALUES(v, 0, -5);
    assert_true(scale_of(optimizer) == 4);
  }
}

typedef struct clipped_step {
  mix_optimizer *optimizer;
  mix_variable *variable;
} clipped_step;
static mix_list *clipped_step_body(void *context, mix_list *arguments) {
  clipped_step *step = context;
  mix_optimizer_apply_gradients(step->optimizer, arguments, mix_list_of(step->variable));
  return mix_list_of(mix_scalar(0, MIX_FLOAT32));
}
/* A limit is a constant of a capture. */
static void a_captured_update_sees_a_new_limit(void **state) {
  (void)state;
  clipped_step step = {mix_sgd(.learning_rate = 1), VARIABLE(MIX_FLOAT32, "v", 0)};
  mix_function *function = mix_function_new(clipped_step_body, &step);
  static const double limits[] = {0, 2, 3, 0}, wanted[] = {-4, -6, -9, -13};
  for (int i = 0; i < 4; i++) {
    set_limit(step.optimizer, 2, limits[i]);
    assert_non_null(mix_function_call(function, mix_list_of(VECTOR(MIX_FLOAT32, 4))));
    ASSERT_VALUES(step.variable, 0, wanted[i]);
  }
}

static void refused_clipping(mix_optimizer *optimizer, double norm, double global, double value,
                             const char *part) {
  assert_int_equal(mix_optimizer_set_clipping(optimizer, norm, global, value), MIX_VALUE_ERROR);
  assert_non_null(strstr(mix_error_message(), part));
  mix_error_clear();
}
static void limits_that_are_refused(void **state) {
  (void)state;
  mix_variable *v = VARIABLE(MIX_FLOAT32, "v", 0);
  mix_optimizer *plain = mix_sgd(.learning_rate = 1, .clipvalue = 2);
  refused_clipping(plain, -1, 0, 0, "clipnorm is -1; expected a positive number");
  refused_clipping(plain, 0, NAN, 0, "global_clipnorm is nan");
  refused_clipping(plain, 0, 0, INFINITY, "clipvalue is inf");
  refused_clipping(plain, 1, 1, 0, "at most one of them");
  mix_optimizer_apply_gradients(plain, mix_list_of(VECTOR(MIX_FLOAT32, 4)), mix_list_of(v));
  ASSERT_VALUES(v, 0, -2); /* the former limit */
  refused_clipping(mix_sgd(.semantics = mix_semantics_named("keras3")), 1, 0, 1, "only one of them");
  mix_optimizer *inner = mix_sgd(.semantics = mix_semantics_named("experimental"));
  mix_optimizer *wrapper = mix_loss_scale_optimizer(inner, .loss_scale = mix_fixed_loss_scale(2));
  refused_clipping(wrapper, 1, 0, 0, "clipnorm=1");
  assert_int_equal(mix_optimizer_set_clipping(wrapper, 0, 1, 0), MIX_OK);
}

/* Gradients (3, 4) and 12, on which the kinds differ. Clipped with the scale 2 in them, the norms would come
 * out at half. 6.5 / 13 of a number rounds in the last bits of float32. */
static void O08_kinds_of_clipping(void **state) {
  (void)state;
  static const double wanted[3][3] = {{-1.5, -2, -2.5}, {-1.5, -2, -6}, {-3, -3.5, -3.5}};
  for (int kind = 0; kind < 3; kind++) {
    mix_sgd_options options = mix_sgd_defaults();
    options.learning_rate = 1;
    if (kind == 0) options.clipnorm = 2.5;
    if (kind == 1) options.global_clipnorm = 6.5;
    if (kind == 2) options.clipvalue = 3.5;
    mix_variable *a = VARIABLE(MIX_FLOAT32, "a", 0, 0), *b = VARIABLE(MIX_FLOAT32, "b", 0);
    mix_optimizer *optimizer = dynamic(mix_sgd_with(&options), 2, 1);
    mix_list *scaled = mix_list_of(VECTOR(MIX_FLOAT32, 6, 8), VECTOR(MIX_FLOAT32, 24));
    mix_optimizer_apply_gradients(optimizer, mix_optimizer_get_unscaled_gradients(optimizer, scaled),
                                  mix_list_of(a, b));
    assert_no_error();
    ASSERT_VALUES(a, 1e-6, wanted[kind][0], wanted[kind][1]);
    ASSERT_VALUES(b, 1e-6, wanted[kind][2]);
    assert_true(scale_of(optimizer) == 4);
  }
}

static void O11_O12_vector_then_nan(void **state) {
  (void)state;
  mix_variable *v = VARIABLE(MIX_FLOAT32, "v", 1, 2);
  mix_optimizer *optimizer = dynamic(mix_sgd(.learning_rate = 1), 2, 1);
  minimize(optimizer, v, 2);
  ASSERT_VALUES(v, 0, -1, 0);
  assert_true(scale_of(optimizer) == 4);
  minimize(optimizer, v, NAN);
  ASSERT_VALUES(v, 0, -1, 0);
  assert_true(scale_of(optimizer) == 2);
}

static void O14_momentum_slot(void **state) {
  (void)state;
  mix_variable *v = VARIABLE(MIX_FLOAT32, "v", 1, 2);
  mix_optimizer *optimizer = dynamic(mix_sgd(.learning_rate = 1, .momentum = 1), 2, 1);
  minimize(optimizer, v, 1);
  ASSERT_VALUES(v, 0, 0, 1);
  ASSERT_VALUES(mix_optimizer_slot(optimizer, v, "momentum"), 0, -1, -1);
  assert_true(scale_of(optimizer) == 4);
  minimize(optimizer, v, 1);
  ASSERT_VALUES(v, 0, -2, -1);
  ASSERT_VALUES(mix_optimizer_slot(optimizer, v, "momentum"), 0, -2, -2);
  assert_true(scale_of(optimizer) == 8);
}

static void O15_iterations_of_a_skipped_step(void **state) {
  (void)state;
  static const struct {
    const char *semantics;
    int after_skip;
  } rows[] = {{"tf_keras", 2}, {"experimental", 1}, {"keras3", 1}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    for (int captured = 0; captured < 2; captured++) {
      mix_set_semantics(rows[i].semantics);
      mix_variable *v = VARIABLE(MIX_FLOAT32, "v", 1);
      mix_optimizer *optimizer = dynamic(mix_rmsprop(.momentum = 0.5), 8, 2);
      captured_update update = captured_update_of(optimizer, mix_list_of(v));
      const double gradients[] = {1, NAN};
      double weight = 1, velocity = 0;
      for (int step = 0; step < 2; step++) {
        mix_list *list = mix_list_of(VECTOR(MIX_FLOAT32, gradients[step]));
        if (captured)
          run_captured(&update, list);
        else
          mix_optimizer_apply_gradients(optimizer, list, update.variables);
        assert_no_error();
        assert_int_equal(mix_optimizer_iterations(optimizer), step == 0 ? 1 : rows[i].after_skip);
        if (step == 1) {
          ASSERT_VALUES(v, 0, weight);
          ASSERT_VALUES(mix_optimizer_slot(optimizer, v, "velocity"), 0, velocity);
        }
        weight = value_at(v, 0);
        velocity = value_at(mix_optimizer_slot(optimizer, v, "velocity"), 0);
        assert_true(weight < 1 && velocity > 0);
      }
      assert_true(scale_of(optimizer) == 4);
    }
}

static void O16_learning_rate_is_the_inners(void **state) {
  (void)state;
  mix_optimizer *inner = mix_sgd(.learning_rate = 1), *optimizer = dynamic(inner, 2, 1);
  mix_optimizer_set_learning_rate(optimizer, 0.5);
  assert_true(mix_optimizer_learning_rate(inner) == 0.5);
  assert_true(mix_optimizer_learning_rate(optimizer) == 0.5);
}

static void O17_variables_are_the_inners(void **state) {
  (void)state;
  mix_variable *v = VARIABLE(MIX_FLOAT32, "v", 1);
  mix_optimizer *inner = mix_sgd(.momentum = 0.5), *optimizer = dynamic(inner, 2, 1);
  mix_optimizer_build(optimizer, mix_list_of(v));
  assert_int_equal(mix_list_count(mix_optimizer_variables(inner)), 3);
  assert_int_equal(mix_list_count(mix_optimizer_variables(optimizer)), 3);
}

/* ---- construction errors ---- */

static void O23_wrapper_around_a_wrapper(void **state) {
  (void)state;
  assert_null(mix_loss_scale_optimizer(dynamic(mix_sgd(), 2, 1), .fixed = false));
  ASSERT_ERROR(MIX_TYPE_ERROR);
}

static void O24_wrapped_twice(void **state) {
  (void)state;
  mix_optimizer *inner = mix_sgd();
  assert_non_null(mix_loss_scale_optimizer(inner, .fixed = false));
  assert_null(mix_loss_scale_optimizer(inner, .fixed = false));
  ASSERT_ERROR(MIX_VALUE_ERROR);
}

static void O26_fixed_without_scale(void **state) {
  (void)state;
  assert_null(mix_loss_scale_optimizer(mix_sgd(), .fixed = true));
  ASSERT_ERROR(MIX_VALUE_ERROR);
}

static void O27_fixed_with_growth(void **state) {
  (void)state;
  assert_null(
      mix_loss_scale_optimizer(mix_sgd(), .fixed = true, .initial_scale = 1, .dynamic_growth_steps = 2));
  ASSERT_ERROR(MIX_VALUE_ERROR);
}

static void O28_inner_is_no_optimizer(void **state) {
  (void)state;
  assert_null(mix_loss_scale_optimizer((mix_optimizer *)mix_scalar(1, MIX_FLOAT32), .fixed = false));
  ASSERT_ERROR(MIX_TYPE_ERROR);
  assert_null(mix_loss_scale_optimizer(NULL, .fixed = false));
  ASSERT_ERROR(MIX_TYPE_ERROR);
}

/* ---- warnings ---- */

static void O29_O30_O31_warnings(void **state) {
  (void)state;
  mix_variable *v = VARIABLE(MIX_FLOAT32, "v", 1);
  mix_list *variables = mix_list_of(v), *gradients = mix_list_of(VECTOR(MIX_FLOAT32, 1));
  mix_set_log_callback(listen, NULL);
  warnings = 0;
  mix_optimizer_apply_gradients(dynamic(mix_sgd(), 2, 1), gradients, variables);
  assert_int_equal(warnings, 1);
  assert_non_null(strstr(warning, "get_scaled_loss and get_unscaled_gradients"));

  mix_optimizer *scaled = dynamic(mix_sgd(), 2, 1);
  mix_optimizer_get_scaled_loss(scaled, mix_scalar(1, MIX_FLOAT32));
  mix_optimizer_apply_gradients(scaled, gradients, variables);
  assert_int_equal(warnings, 2);
  assert_non_null(strstr(warning, "without get_unscaled_gradients"));

  mix_optimizer *unscaled = dynamic(mix_sgd(), 2, 1);
  mix_list *true_gradients = mix_optimizer_get_unscaled_gradients(unscaled, gradients);
  mix_optimizer_apply_gradients(unscaled, true_gradients, variables);
  assert_int_equal(warnings, 3);
  assert_non_null(strstr(warning, "without get_scaled_loss"));
  mix_optimizer_get_scaled_loss(unscaled, mix_scalar(1, MIX_FLOAT32));
  mix_optimizer_apply_gradients(unscaled, true_gradients, variables);
  assert_int_equal(warnings, 3);

  minimize(dynamic(mix_sgd(), 2, 1), v, 1);
  assert_int_equal(warnings, 3);
  mix_set_log_callback(NULL, NULL);
}

/* ---- state ---- */

/* loss v + 1, lr 1, momentum 1, initial scale 1, growth 2: step, save, step, restore, step. */
static void O33_state_can_be_saved_and_restored(void **state) {
  (void)state;
  mix_variable *v = VARIABLE(MIX_FLOAT32, "v", 2);
  mix_optimizer *optimizer = dynamic(mix_sgd(.learning_rate = 1, .momentum = 1), 1, 2);
  minimize(optimizer, v, 1);
  mix_loss_scale *scale = mix_optimizer_loss_scale_object(optimizer);
  mix_variable *all[] = {v, mix_optimizer_slot(optimizer, v, "momentum"),
                         mix_optimizer_iterations_variable(optimizer), mix_loss_scale_variable(scale),
                         mix_optimizer_dynamic_counter(optimizer)};
  double saved[5];
  for (int i = 0; i < 5; i++) saved[i] = value_at(all[i], 0);
  ASSERT_VALUES(v, 0, 1);
  assert_true(counter_of(optimizer) == 1);
  ASSERT_VALUES(all[1], 0, -1);
  minimize(optimizer, v, 1);
  for (int i = 0; i < 5; i++)
    mix_variable_assign(all[i], mix_tensor_from_doubles(&saved[i], mix_variable_true_dtype(all[i]),
                                                        mix_variable_shape(all[i])));
  ASSERT_VALUES(v, 0, 1);
  assert_true(scale_of(optimizer) == 1 && counter_of(optimizer) == 1);
  minimize(optimizer, v, 1);
  ASSERT_VALUES(v, 0, -1);
  ASSERT_VALUES(all[1], 0, -2);
  assert_int_equal(mix_optimizer_iterations(optimizer), 2);
  assert_true(scale_of(optimizer) == 2);
}

/* The steps of O35 without a model: finite, finite, finite, NaN, finite. */
static void O35_five_steps(void **state) {
  (void)state;
  mix_variable *v = VARIABLE(MIX_FLOAT32, "v", 1);
  mix_optimizer *optimizer = dynamic(mix_sgd(.learning_rate = 1), 2, 2);
  captured_update update = captured_update_of(optimizer, mix_list_of(v));
  const double gradients[] = {1, 1, 1, NAN, 1}, weights[] = {0, -1, -2, -2, -3}, scales[] = {2, 4, 4, 2, 2};
  for (int i = 0; i < 5; i++) {
    run_captured(&update, mix_list_of(VECTOR(MIX_FLOAT32, gradients[i])));
    ASSERT_VALUES(v, 0, weights[i]);
    assert_true(scale_of(optimizer) == scales[i]);
  }
  assert_int_equal(update.traces, 1);
}

static void O36_float16_loss_overflows(void **state) {
  (void)state;
  mix_optimizer *optimizer = mix_loss_scale_optimizer(mix_sgd(), .fixed = false);
  assert_true(isinf(mix_tensor_item(mix_optimizer_get_scaled_loss(optimizer, mix_scalar(4, MIX_FLOAT16)))));
}

static void O37_scales_that_are_not_positive(void **state) {
  (void)state;
  assert_true(scale_of(dynamic(mix_sgd(), MIX_ZERO, 1)) == 0);
  assert_true(scale_of(dynamic(mix_sgd(), -1, 1)) == -1);
  assert_true(scale_of(fixed(mix_sgd(), MIX_ZERO)) == 0);
  assert_true(scale_of(fixed(mix_sgd(), 0.5)) == 0.5);
}

static void scales_that_float32_does_not_hold(void **state) {
  (void)state;
  assert_null(dynamic(mix_sgd(), 1e39, 1));
  assert_int_equal(mix_error_take(NULL, 0), MIX_VALUE_ERROR);
  assert_null(fixed(mix_sgd(), 1e300));
  assert_int_equal(mix_error_take(NULL, 0), MIX_VALUE_ERROR);
  /* Keras 3's factor has the dtype of the loss: float64 holds 1e300. */
  mix_set_semantics("keras3");
  mix_optimizer *wide = mix_sgd(.loss_scale_factor = 1e300), *narrow = mix_sgd(.loss_scale_factor = 1e300);
  mix_set_semantics("tf_keras");
  assert_int_equal(
      mix_optimizer_build(wide, mix_list_of(mix_variable_new(mix_scalar(1, MIX_FLOAT64), .name = "v"))),
      MIX_OK);
  assert_int_equal(
      mix_optimizer_build(narrow, mix_list_of(mix_variable_new(mix_scalar(1, MIX_FLOAT32), .name = "v"))),
      MIX_VALUE_ERROR);
  assert_non_null(strstr(mix_error_message(), "infinite"));
  mix_error_clear();
}

static void O38_O39_O40_wrapping_by_policy(void **state) {
  (void)state;
  mix_optimizer *plain = mix_sgd(),
                *wrapped = mix_optimizer_for_policy(plain, mix_policy_new("mixed_float16"));
  assert_ptr_equal(mix_optimizer_inner(wrapped), plain);
  assert_true(mix_optimizer_dynamic(wrapped));
  static const char *const others[] = {"mixed_bfloat16", "float16", "float32"};
  for (int i = 0; i < 3; i++) {
    mix_optimizer *other = mix_sgd();
    assert_ptr_equal(mix_optimizer_for_policy(other, mix_policy_new(others[i])), other);
  }
  mix_optimizer *given = fixed(mix_sgd(), 8);
  assert_ptr_equal(mix_optimizer_for_policy(given, mix_policy_new("mixed_float16")), given);
}

/* ---- schedule of the scale ---- */

static void S16_absent_gradients_count_as_finite(void **state) {
  (void)state;
  mix_variable *a = VARIABLE(MIX_FLOAT32, "a", 1), *b = VARIABLE(MIX_FLOAT32, "b", 1);
  mix_optimizer *optimizer = dynamic(mix_sgd(), 4, 1);
  mix_optimizer_apply_gradients(optimizer, mix_list_new(2, (void *[]){NULL, VECTOR(MIX_FLOAT32, 1)}),
                                mix_list_of(a, b));
  assert_true(scale_of(optimizer) == 8);
  mix_optimizer_apply_gradients(optimizer, mix_list_new(2, (void *[]){NULL, VECTOR(MIX_FLOAT32, NAN)}),
                                mix_list_of(a, b));
  assert_true(scale_of(optimizer) == 4);
  mix_optimizer_apply_gradients(optimizer, mix_list_new(2, NULL), mix_list_of(a, b));
  ASSERT_ERROR(MIX_VALUE_ERROR);
}

static void S18_fixed_scale_applies_what_is_not_finite(void **state) {
  (void)state;
  mix_variable *v = VARIABLE(MIX_FLOAT32, "v", 1);
  mix_optimizer *optimizer = fixed(mix_sgd(), 1000);
  mix_optimizer_apply_gradients(optimizer, mix_list_of(VECTOR(MIX_FLOAT32, NAN)), mix_list_of(v));
  assert_true(isnan(value_at(v, 0)));
  assert_true(scale_of(optimizer) == 1000);
}

/* The scale and the counter after each step of a sequence, S05, S08 and S10 with S17, through a captured
 * update. */
static void S05_S08_S10_S17_sequences(void **state) {
  (void)state;
  static const struct {
    double initial;
    int64_t period;
    const char *steps;
    double scales[11];
    int counters[11];
  } rows[] = {{1, 2, "TTTFT", {1, 2, 2, 1, 1}, {1, 0, 1, 0, 1}},
              {32, 2, "TFTFTFT", {32, 16, 16, 8, 8, 4, 4}, {1, 0, 1, 0, 1, 0, 1}},
              {4, 2, "FTTTFTFTTTF", {2, 2, 4, 4, 2, 2, 1, 1, 2, 2, 1}, {0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0}}};
  for (size_t row = 0; row < sizeof rows / sizeof *rows; row++) {
    mix_variable *v = VARIABLE(MIX_FLOAT32, "v", 1);
    mix_optimizer *optimizer = dynamic(mix_sgd(), rows[row].initial, rows[row].period);
    captured_update update = captured_update_of(optimizer, mix_list_of(v));
    for (int i = 0; rows[row].steps[i]; i++) {
      run_captured(&update, mix_list_of(VECTOR(MIX_FLOAT32, rows[row].steps[i] == 'T' ? 1 : INFINITY)));
      assert_near(scale_of(optimizer), rows[row].scales[i], 0);
      assert_near(counter_of(optimizer), rows[row].counters[i], 0);
    }
  }
}

/* Whether the latest update was applied, as recorded for each step. */
static mix_list *applied_body(void *context, mix_list *gradients) {
  captured_update *update = context;
  mix_optimizer_apply_gradients(update->optimizer, gradients, update->variables);
  return mix_list_of(mix_optimizer_applied(update->optimizer));
}
static void applied_is_part_of_the_capture(void **state) {
  (void)state;
  mix_variable *v = VARIABLE(MIX_FLOAT32, "v", 1);
  captured_update update = captured_update_of(dynamic(mix_sgd(), 4, 1), mix_list_of(v));
  mix_function *step = mix_function_new(applied_body, &update, .name = "step");
  const double gradients[] = {1, NAN, 1};
  for (int i = 0; i < 3; i++) {
    mix_list *result = mix_function_call(step, mix_list_of(VECTOR(MIX_FLOAT32, gradients[i])));
    assert_no_error();
    assert_true(mix_tensor_item(mix_list_get(result, 0)) == (i != 1));
  }
}

static void plain_optimizers_have_no_scaled_loss(void **state) {
  (void)state;
  assert_null(mix_optimizer_get_scaled_loss(mix_sgd(), mix_scalar(1, MIX_FLOAT32)));
  ASSERT_ERROR(MIX_ATTRIBUTE_ERROR);
  assert_null(mix_optimizer_loss_scale(mix_sgd()));
}

int main(void) {
  const struct CMUnitTest tests[] = {TEST(O01_backprop_sees_the_scaled_gradient),
                                     TEST(O02_get_scaled_loss),
                                     TEST(O03_get_unscaled_gradients),
                                     TEST(O04_sparse_values_are_unscaled),
                                     TEST(O05_dynamic_two_steps),
                                     TEST(O06_defaults),
                                     TEST(O07_fixed_has_no_counter),
                                     TEST(O08_O09_O10_clipping_sees_unscaled_gradients),
                                     TEST(O08_kinds_of_clipping),
                                     TEST(a_captured_update_sees_a_new_limit),
                                     TEST(limits_that_are_refused),
                                     TEST(O11_O12_vector_then_nan),
                                     TEST(O14_momentum_slot),
                                     TEST(O15_iterations_of_a_skipped_step),
                                     TEST(O16_learning_rate_is_the_inners),
                                     TEST(O17_variables_are_the_inners),
                                     TEST(O23_wrapper_around_a_wrapper),
                                     TEST(O24_wrapped_twice),
                                     TEST(O26_fixed_without_scale),
                                     TEST(O27_fixed_with_growth),
                                     TEST(O28_inner_is_no_optimizer),
                                     TEST(O29_O30_O31_warnings),
                                     TEST(O33_state_can_be_saved_and_restored),
                                     TEST(O35_five_steps),
                                     TEST(O36_float16_loss_overflows),
                                     TEST(O37_scales_that_are_not_positive),
                                     TEST(scales_that_float32_does_not_hold),
                                     TEST(O38_O39_O40_wrapping_by_policy),
                                     TEST(S16_absent_gradients_count_as_finite),
                                     TEST(S18_fixed_scale_applies_what_is_not_finite),
                                     TEST(S05_S08_S10_S17_sequences),
                                     TEST(applied_is_part_of_the_capture),
                                     TEST(plain_optimizers_have_no_scaled_loss)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
