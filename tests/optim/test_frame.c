/* The common part of all rules: clipping, decay, averages, accumulation, constraints, absent gradients, state
 * (docs/spec/keras.md, 19.5). */
/* Holds docs/NUMERICS.md: Optimizers. */
#include "optim/support.h"

#include "graph/variable.h"
#include <mixtape/regularizer.h>

static void apply_one(mix_optimizer *optimizer, mix_variable *variable, mix_tensor *gradient) {
  mix_optimizer_apply_gradients(optimizer, mix_list_of(gradient), mix_list_of(variable));
  assert_no_error();
}

static const char *const generations[] = {"tf_keras", "keras3", "experimental"};

static void U01_clipnorm(void **state) {
  (void)state;
  for (int g = 0; g < 3; g++) {
    mix_set_semantics(generations[g]);
    mix_variable *weight = VARIABLE(MIX_FLOAT32, "w", 0, 0);
    apply_one(mix_sgd(.learning_rate = 1, .clipnorm = 1), weight, VECTOR(MIX_FLOAT32, 3, 4));
    ASSERT_VALUES(weight, 1e-7, -0.6, -0.8); /* one rounding of numbers below 1 */
    mix_variable *still = VARIABLE(MIX_FLOAT32, "s", 0, 0);
    apply_one(mix_sgd(.learning_rate = 1, .clipnorm = 1), still, VECTOR(MIX_FLOAT32, 0, 0));
    ASSERT_VALUES(still, 0, 0, 0);
  }
}

static void global_norm(double clip, double first, double second) {
  for (int g = 0; g < 3; g++) {
    mix_set_semantics(generations[g]);
    mix_variable *a = VARIABLE(MIX_FLOAT32, "a", 0), *b = VARIABLE(MIX_FLOAT32, "b", 0);
    mix_optimizer_apply_gradients(mix_sgd(.learning_rate = 1, .global_clipnorm = clip),
                                  mix_list_of(VECTOR(MIX_FLOAT32, 3), VECTOR(MIX_FLOAT32, 4)),
                                  mix_list_of(a, b));
    ASSERT_VALUES(a, 1e-6, -first);
    ASSERT_VALUES(b, 1e-6, -second);
  }
}
static void U02_global_clipnorm_unchanged(void **state) { (void)state, global_norm(5, 3, 4); }
static void U03_global_clipnorm(void **state) { (void)state, global_norm(1, 0.6, 0.8); }

static void a_non_finite_global_norm_affects_all(void **state) {
  (void)state;
  mix_variable *a = VARIABLE(MIX_FLOAT32, "a", 0), *b = VARIABLE(MIX_FLOAT32, "b", 0);
  mix_optimizer_apply_gradients(mix_sgd(.global_clipnorm = 1),
                                mix_list_of(VECTOR(MIX_FLOAT32, INFINITY), VECTOR(MIX_FLOAT32, 4)),
                                mix_list_of(a, b));
  assert_true(isnan(value_at(a, 0)) && isnan(value_at(b, 0)));
}

static void U04_clipvalue(void **state) {
  (void)state;
  mix_variable *weight = VARIABLE(MIX_FLOAT32, "w", 0, 0);
  apply_one(mix_sgd(.learning_rate = 1, .clipvalue = 0.5), weight, VECTOR(MIX_FLOAT32, -2, 0.1));
  ASSERT_VALUES(weight, 1e-8, 0.5, -0.1);
}

/* Keras 3 unscales and clips a float16 gradient of a float32 variable in float16. The numbers are Keras's,
 * all of them float16 numbers. */
static void keras3_gradients_keep_their_dtype_until_the_rule(void **state) {
  (void)state;
  mix_set_semantics("keras3");
  mix_variable *unscaled = VARIABLE(MIX_FLOAT32, "u", 0, 0), *clipped = VARIABLE(MIX_FLOAT32, "c", 0, 0);
  apply_one(mix_sgd(.learning_rate = 1, .loss_scale_factor = 3), unscaled, VECTOR(MIX_FLOAT16, 1, 3));
  ASSERT_VALUES(unscaled, 0, -0.333251953125, -1);
  apply_one(mix_sgd(.learning_rate = 1, .clipvalue = 0.1), clipped, VECTOR(MIX_FLOAT16, 1, 3));
  ASSERT_VALUES(clipped, 0, -0.0999755859375, -0.0999755859375);
}

static void U05_weight_decay(void **state) {
  (void)state;
  mix_variable *weight = VARIABLE(MIX_FLOAT32, "w", 2);
  apply_one(mix_sgd(.learning_rate = 0.1, .weight_decay = 0.5), weight, VECTOR(MIX_FLOAT32, 1));
  ASSERT_VALUES(weight, 3e-7, 1.8); /* two roundings at 2 */
}

static void weight_decay_leaves_excluded_variables_alone(void **state) {
  (void)state;
  mix_variable *kernel = VARIABLE(MIX_FLOAT32, "dense/kernel", 2),
               *bias = VARIABLE(MIX_FLOAT32, "dense/bias", 2), *other = VARIABLE(MIX_FLOAT32, "other", 2);
  mix_optimizer *optimizer = mix_sgd(.learning_rate = 0.5, .weight_decay = 0.5);
  assert_int_equal(
      mix_optimizer_exclude_from_weight_decay(optimizer, mix_list_of(other), 1, (const char *[]){"bias"}),
      MIX_OK);
  mix_list *gradients = mix_list_of(VECTOR(MIX_FLOAT32, 0), VECTOR(MIX_FLOAT32, 0), VECTOR(MIX_FLOAT32, 0));
  mix_optimizer_apply_gradients(optimizer, gradients, mix_list_of(kernel, bias, other));
  ASSERT_VALUES(kernel, 0, 1.5);
  ASSERT_VALUES(bias, 0, 2);
  ASSERT_VALUES(other, 0, 2);
  mix_optimizer_exclude_from_weight_decay(optimizer, NULL, 0, NULL);
  ASSERT_ERROR(MIX_VALUE_ERROR);
}

/* Names are searched for regular expressions, as in Keras (re.search). */
static void weight_decay_exclusions_are_expressions(void **state) {
  (void)state;
  static const struct {
    const char *expression;
    bool excluded[3];
  } rows[] = {{"^dense_1", {true, true, false}},
              {"kernel|bias", {true, true, true}},
              {"kernel$", {true, false, true}},
              {"dense_1", {true, true, true}},
              {"dense[/]", {false, false, false}}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    mix_list *variables =
        mix_list_of(VARIABLE(MIX_FLOAT32, "dense_1/kernel", 2), VARIABLE(MIX_FLOAT32, "dense_1/bias", 2),
                    VARIABLE(MIX_FLOAT32, "block/dense_1/kernel", 2));
    mix_optimizer *optimizer = mix_sgd(.learning_rate = 0.5, .weight_decay = 0.5);
    assert_int_equal(mix_optimizer_exclude_from_weight_decay(optimizer, NULL, 1, &rows[i].expression),
                     MIX_OK);
    assert_int_equal(
        mix_optimizer_exclude_from_weight_decay(optimizer, NULL, 2, (const char *[]){"kernel", "(dense"}),
        MIX_VALUE_ERROR);
    assert_non_null(strstr(mix_error_message(), "\"(dense\" is no regular expression"));
    mix_error_clear();
    mix_tensor *zero = VECTOR(MIX_FLOAT32, 0);
    mix_optimizer_apply_gradients(optimizer, mix_list_of(zero, zero, zero), variables);
    for (int v = 0; v < 3; v++)
      ASSERT_VALUES((mix_variable *)mix_list_get(variables, v), 0, rows[i].excluded[v] ? 2 : 1.5);
  }
}

static void U06_moving_average(void **state) {
  (void)state;
  mix_set_semantics("keras3");
  mix_variable *weight = VARIABLE(MIX_FLOAT32, "w", 1);
  mix_optimizer *optimizer = mix_sgd(.learning_rate = 1, .use_ema = true, .ema_momentum = 0.5);
  apply_one(optimizer, weight, VECTOR(MIX_FLOAT32, 1));
  ASSERT_VALUES(weight, 0, 0);
  ASSERT_VALUES(mix_optimizer_slot(optimizer, weight, "average"), 0, 0);
  apply_one(optimizer, weight, VECTOR(MIX_FLOAT32, 1));
  ASSERT_VALUES(weight, 0, -1);
  ASSERT_VALUES(mix_optimizer_slot(optimizer, weight, "average"), 0, -0.5);
  mix_optimizer_finalize_variable_values(optimizer, mix_list_of(weight));
  ASSERT_VALUES(weight, 0, -0.5);
}

/* tf_keras starts the average at the weight: 0.5 * 1 + 0.5 * 0, then 0.5 * 0.5 + 0.5 * -1. Every second step
 * overwrites the weight with it. */
static void moving_average_of_tf_keras_starts_at_the_weight(void **state) {
  (void)state;
  mix_variable *weight = VARIABLE(MIX_FLOAT32, "w", 1);
  mix_optimizer *optimizer =
      mix_sgd(.learning_rate = 1, .use_ema = true, .ema_momentum = 0.5, .ema_overwrite_frequency = 2);
  captured_update update = captured_update_of(optimizer, mix_list_of(weight));
  run_captured(&update, mix_list_of(VECTOR(MIX_FLOAT32, 1)));
  ASSERT_VALUES(weight, 0, 0);
  ASSERT_VALUES(mix_optimizer_slot(optimizer, weight, "average"), 0, 0.5);
  run_captured(&update, mix_list_of(VECTOR(MIX_FLOAT32, 1)));
  ASSERT_VALUES(mix_optimizer_slot(optimizer, weight, "average"), 0, -0.25);
  ASSERT_VALUES(weight, 0, -0.25);
}

static void U07_gradient_accumulation(void **state) {
  (void)state;
  mix_set_semantics("keras3");
  for (int captured = 0; captured < 2; captured++) {
    mix_variable *weight = VARIABLE(MIX_FLOAT32, "w", 5);
    mix_optimizer *optimizer = mix_sgd(.learning_rate = 1, .gradient_accumulation_steps = 2);
    captured_update update = captured_update_of(optimizer, mix_list_of(weight));
    const double gradients[] = {1, 3, 2, 6};
    const double weights[] = {5, 3, 3, -1};
    for (int i = 0; i < 4; i++) {
      mix_tensor *gradient = VECTOR(MIX_FLOAT32, gradients[i]);
      if (captured)
        run_captured(&update, mix_list_of(gradient));
      else
        apply_one(optimizer, weight, gradient);
      ASSERT_VALUES(weight, 0, weights[i]);
      assert_int_equal(mix_optimizer_iterations(optimizer), (i + 1) / 2);
    }
    ASSERT_VALUES(mix_optimizer_slot(optimizer, weight, "gradient_accumulator"), 0, 0);
  }
  assert_null(mix_sgd(.gradient_accumulation_steps = 1));
  ASSERT_ERROR(MIX_VALUE_ERROR);
}

/* An overwritten variable keeps the largest gradient until the update, unlike the others' accumulators. The
 * numbers are Keras's. */
static void accumulation_of_an_overwritten_variable(void **state) {
  (void)state;
  mix_set_semantics("keras3");
  for (int captured = 0; captured < 2; captured++) {
    mix_variable *a = VARIABLE(MIX_FLOAT32, "a", 0), *b = VARIABLE(MIX_FLOAT32, "b", 7);
    mix_optimizer *optimizer = mix_sgd(.learning_rate = 1, .gradient_accumulation_steps = 2);
    mix_optimizer_overwrite_with_gradient(optimizer, b);
    captured_update update = captured_update_of(optimizer, mix_list_of(a, b));
    const double gradients[] = {3, 1, 2, 5}, values[] = {7, 3, 3, 5}, largest[] = {3, 0, 2, 0},
                 weights[] = {0, -1, -1, -2};
    for (int i = 0; i < 4; i++) {
      mix_list *both = mix_list_of(VECTOR(MIX_FLOAT32, 1), VECTOR(MIX_FLOAT32, gradients[i]));
      if (captured)
        run_captured(&update, both);
      else
        mix_optimizer_apply_gradients(optimizer, both, update.variables);
      ASSERT_VALUES(a, 0, weights[i]);
      ASSERT_VALUES(b, 0, values[i]);
      ASSERT_VALUES(mix_optimizer_slot(optimizer, b, "gradient_accumulator"), 0, largest[i]);
    }
  }
}

static void U08_integer_learning_rate(void **state) {
  (void)state;
  assert_null(mix_optimizer_from_config("SGD", "{\"learning_rate\": 1}", mix_semantics_named("keras3")));
  ASSERT_ERROR(MIX_VALUE_ERROR);
  assert_non_null(
      mix_optimizer_from_config("SGD", "{\"learning_rate\": 1.0}", mix_semantics_named("keras3")));
  assert_non_null(
      mix_optimizer_from_config("SGD", "{\"learning_rate\": 1}", mix_semantics_named("tf_keras")));
}

static void U09_clipnorm_and_clipvalue(void **state) {
  (void)state;
  /* (3, 4) with norm 1: (0.6, 0.8); values clipped to 0.7 first: (0.7, 0.7), of norm 0.99: unchanged */
  mix_variable *weight = VARIABLE(MIX_FLOAT32, "w", 0, 0);
  apply_one(mix_sgd(.learning_rate = 1, .clipnorm = 1, .clipvalue = 0.7), weight, VECTOR(MIX_FLOAT32, 3, 4));
  ASSERT_VALUES(weight, 1e-7, -0.6, -0.8);
  mix_variable *both = VARIABLE(MIX_FLOAT32, "b", 0, 0);
  apply_one(mix_sgd(.learning_rate = 1, .clipnorm = 1, .clipvalue = 0.7, .legacy = true), both,
            VECTOR(MIX_FLOAT32, 3, 4));
  ASSERT_VALUES(both, 1e-7, -0.7, -0.7);
  mix_set_semantics("keras3");
  assert_null(mix_sgd(.clipnorm = 1, .clipvalue = 0.7));
  ASSERT_ERROR(MIX_VALUE_ERROR);
  for (int g = 0; g < 3; g++) {
    mix_set_semantics(generations[g]);
    assert_null(mix_sgd(.clipnorm = 1, .global_clipnorm = 1));
    ASSERT_ERROR(MIX_VALUE_ERROR);
  }
}

static void U10_all_gradients_absent(void **state) {
  (void)state;
  mix_variable *a = VARIABLE(MIX_FLOAT32, "a", 1), *b = VARIABLE(MIX_FLOAT32, "b", 1);
  mix_list *none = mix_list_new(2, (void *[]){NULL, NULL});
  assert_int_equal(mix_optimizer_apply_gradients(mix_sgd(), none, mix_list_of(a, b)), MIX_VALUE_ERROR);
  ASSERT_ERROR(MIX_VALUE_ERROR);
  /* One absent: the other is updated, and a warning names the first. */
  mix_list *one = mix_list_new(2, (void *[]){NULL, VECTOR(MIX_FLOAT32, 1)});
  mix_optimizer_apply_gradients(mix_sgd(.learning_rate = 1), one, mix_list_of(a, b));
  assert_no_error();
  ASSERT_VALUES(a, 0, 1);
  ASSERT_VALUES(b, 0, 0);
}

/* Expects these names of the optimizer's variables, in order. */
static void assert_named(mix_optimizer *optimizer, int count, const char *const *names) {
  mix_list *variables = mix_optimizer_variables(optimizer);
  assert_int_equal(mix_list_count(variables), count);
  for (int i = 0; i < count; i++)
    assert_string_equal(mix_variable_name(mix_list_get(variables, i)), names[i]);
}

static void U14_variables_of_adam(void **state) {
  (void)state;
  mix_variable *kernel = VARIABLE(MIX_FLOAT32, "dense/kernel", 1),
               *bias = VARIABLE(MIX_FLOAT32, "dense/bias", 1);
  mix_list *variables = mix_list_of(kernel, bias);
  mix_set_semantics("keras3");
  mix_optimizer *optimizer = mix_adam();
  mix_optimizer_build(optimizer, variables);
  static const char *const keras3[] = {"iteration",
                                       "learning_rate",
                                       "adam/dense_kernel_momentum",
                                       "adam/dense_kernel_velocity",
                                       "adam/dense_bias_momentum",
                                       "adam/dense_bias_velocity"};
  assert_named(optimizer, 6, keras3);
  mix_set_semantics("tf_keras");
  optimizer = mix_adam(.amsgrad = true);
  mix_optimizer_build(optimizer, variables);
  static const char *const tf_keras[] = {"iteration",         "learning_rate",  "m/dense/kernel",
                                         "v/dense/kernel",    "m/dense/bias",   "v/dense/bias",
                                         "vhat/dense/kernel", "vhat/dense/bias"};
  assert_named(optimizer, 8, tf_keras);
  mix_set_semantics("experimental");
  optimizer = mix_rmsprop(.momentum = 0.5);
  mix_optimizer_build(optimizer, variables);
  static const char *const legacy[] = {"iter",
                                       "learning_rate",
                                       "RMSprop/dense/kernel/rms",
                                       "RMSprop/dense/bias/rms",
                                       "RMSprop/dense/kernel/momentum",
                                       "RMSprop/dense/bias/momentum"};
  assert_named(optimizer, 6, legacy);
}

static void constraint_is_applied_after_the_update(void **state) {
  (void)state;
  mix_variable *weight = VARIABLE(MIX_FLOAT32, "w", 1, 1);
  weight->constraint = mix_retain(mix_constraint_new("non_neg"));
  apply_one(mix_sgd(.learning_rate = 1), weight, VECTOR(MIX_FLOAT32, 3, 0.25));
  ASSERT_VALUES(weight, 0, 0, 0.75);
}

static void gradients_that_do_not_fit_are_errors(void **state) {
  (void)state;
  mix_variable *weight = VARIABLE(MIX_FLOAT32, "w", 1, 1), *unknown = VARIABLE(MIX_FLOAT32, "u", 1, 1);
  mix_optimizer *optimizer = mix_sgd(.learning_rate = 1);
  mix_optimizer_apply_gradients(optimizer, mix_list_of(VECTOR(MIX_FLOAT32, 1)), mix_list_of(weight));
  ASSERT_ERROR(MIX_VALUE_ERROR); /* shape */
  mix_optimizer_apply_gradients(optimizer, mix_list_of(VECTOR(MIX_FLOAT16, 1, 1)), mix_list_of(weight));
  ASSERT_ERROR(MIX_TYPE_ERROR); /* dtype */
  mix_optimizer_apply_gradients(optimizer, mix_list_of(VECTOR(MIX_FLOAT32, 1, 1)),
                                mix_list_of(weight, unknown));
  ASSERT_ERROR(MIX_VALUE_ERROR); /* lengths */
  mix_optimizer_apply_gradients(optimizer, mix_list_of(VECTOR(MIX_FLOAT32, 1, 1)), mix_list_of(unknown));
  ASSERT_ERROR(MIX_VALUE_ERROR); /* not built for it */
  mix_optimizer_apply_gradients(optimizer, mix_list_of(weight), mix_list_of(weight));
  ASSERT_ERROR(MIX_TYPE_ERROR);
  ASSERT_VALUES(weight, 0, 1, 1);
  assert_int_equal(mix_optimizer_iterations(optimizer), 0);
  mix_set_semantics("keras3");
  apply_one(mix_sgd(.learning_rate = 1), weight, VECTOR(MIX_FLOAT16, 1, 0)); /* cast */
  ASSERT_VALUES(weight, 0, 0, 1);
}

static void learning_rate_is_state(void **state) {
  (void)state;
  mix_variable *weight = VARIABLE(MIX_FLOAT32, "w", 1);
  mix_optimizer *optimizer = mix_sgd(.learning_rate = 0.5);
  captured_update update = captured_update_of(optimizer, mix_list_of(weight));
  run_captured(&update, mix_list_of(VECTOR(MIX_FLOAT32, 1)));
  ASSERT_VALUES(weight, 0, 0.5);
  assert_int_equal(mix_optimizer_set_learning_rate(optimizer, 0.25), MIX_OK);
  run_captured(&update, mix_list_of(VECTOR(MIX_FLOAT32, 1)));
  ASSERT_VALUES(weight, 0, 0.25);
  assert_int_equal(update.traces, 1);
  assert_true(mix_optimizer_learning_rate(optimizer) == 0.25);
  assert_true(mix_optimizer_learning_rate(mix_sgd(.learning_rate = MIX_ZERO)) == 0);
  assert_true(mix_optimizer_learning_rate(mix_rmsprop()) == (double)0.001f);
}

/* lr / (1 + decay * iterations): 1, then 1/2 */
static void decay_of_the_legacy_family(void **state) {
  (void)state;
  mix_variable *weight = VARIABLE(MIX_FLOAT32, "w", 0);
  mix_optimizer *optimizer = mix_sgd(.learning_rate = 1, .decay = 1, .legacy = true);
  apply_one(optimizer, weight, VECTOR(MIX_FLOAT32, 1));
  apply_one(optimizer, weight, VECTOR(MIX_FLOAT32, 1));
  ASSERT_VALUES(weight, 0, -1.5);
}

static mix_tensor *square_of(void *context) {
  return mix_reduce_sum(mix_square(mix_variable_value(context)), MIX_ALL_AXES, false);
}

static void minimize_differentiates_and_applies(void **state) {
  (void)state;
  mix_variable *weight = VARIABLE(MIX_FLOAT32, "w", 3);
  mix_optimizer *optimizer = mix_sgd(.learning_rate = 0.25);
  mix_tape *tape = mix_tape_begin(0);
  mix_tensor *loss = square_of(weight);
  mix_tape_end(tape);
  assert_int_equal(mix_optimizer_minimize(optimizer, loss, tape, mix_list_of(weight)), MIX_OK);
  ASSERT_VALUES(weight, 0, 1.5);
  assert_int_equal(mix_optimizer_minimize_function(optimizer, square_of, weight, mix_list_of(weight)),
                   MIX_OK);
  ASSERT_VALUES(weight, 0, 0.75);
}

/* keras3's fixed scaling: scale_loss multiplies by 8, apply divides; minimize does both. */
static void loss_scale_factor_cancels(void **state) {
  (void)state;
  mix_set_semantics("keras3");
  mix_variable *weight = VARIABLE(MIX_FLOAT32, "w", 3);
  mix_optimizer *optimizer = mix_sgd(.learning_rate = 0.25, .loss_scale_factor = 8);
  assert_true(mix_tensor_item(mix_optimizer_scale_loss(optimizer, mix_scalar(2, MIX_FLOAT32))) == 16);
  mix_optimizer_minimize_function(optimizer, square_of, weight, mix_list_of(weight));
  ASSERT_VALUES(weight, 0, 1.5);
  apply_one(optimizer, weight, VECTOR(MIX_FLOAT32, 16));
  ASSERT_VALUES(weight, 0, 1);
}

/* keras3 joins the optimizer's and the weight's names to a slot's name, for any length. */
static void long_names(void **state) {
  (void)state;
  char name[2001];
  memset(name, 'n', sizeof name - 1);
  name[sizeof name - 1] = 0;
  mix_set_semantics("keras3");
  mix_variable *weight = VARIABLE(MIX_FLOAT32, name, 1, 2);
  mix_optimizer *optimizer = mix_adam(.name = name);
  assert_int_equal(
      mix_optimizer_apply(optimizer, mix_list_of(VECTOR(MIX_FLOAT32, 1, 1)), mix_list_of(weight)), MIX_OK);
  mix_variable *slot = mix_list_get(mix_optimizer_variables(optimizer), 2);
  assert_memory_equal(mix_variable_name(slot), "nnnn", 4);
  mix_set_semantics("tf_keras");
}

int main(void) {
  const struct CMUnitTest tests[] = {TEST(U01_clipnorm),
                                     TEST(U02_global_clipnorm_unchanged),
                                     TEST(U03_global_clipnorm),
                                     TEST(a_non_finite_global_norm_affects_all),
                                     TEST(U04_clipvalue),
                                     TEST(keras3_gradients_keep_their_dtype_until_the_rule),
                                     TEST(U05_weight_decay),
                                     TEST(weight_decay_leaves_excluded_variables_alone),
                                     TEST(weight_decay_exclusions_are_expressions),
                                     TEST(U06_moving_average),
                                     TEST(moving_average_of_tf_keras_starts_at_the_weight),
                                     TEST(U07_gradient_accumulation),
                                     TEST(accumulation_of_an_overwritten_variable),
                                     TEST(U08_integer_learning_rate),
                                     TEST(U09_clipnorm_and_clipvalue),
                                     TEST(U10_all_gradients_absent),
                                     TEST(U14_variables_of_adam),
                                     TEST(constraint_is_applied_after_the_update),
                                     TEST(gradients_that_do_not_fit_are_errors),
                                     TEST(learning_rate_is_state),
                                     TEST(decay_of_the_legacy_family),
                                     TEST(minimize_differentiates_and_applies),
                                     TEST(loss_scale_factor_cancels),
                                     TEST(long_names)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
