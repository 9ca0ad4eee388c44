/* Weights that their gradient replaces, as the scales and histories of float8 layers: outside learning rate,
 * decay, clipping, slots and averages, and inside the finite test, as in Keras 3.15.1. */
/* Holds docs/NUMERICS.md: Optimizers. */
#include "optim/support.h"

#include "graph/variable.h"

static const char *const optimizers[] = {"sgd:momentum=0.9,weight_decay=0.1",
                                         "sgd:clipnorm=0.01",
                                         "sgd:clipvalue=0.01",
                                         "adam:global_clipnorm=0.01",
                                         "adam:amsgrad=true",
                                         "adamw:weight_decay=0.1,global_clipnorm=0.01",
                                         "rmsprop:centered=true,momentum=0.9",
                                         "adagrad",
                                         "adadelta",
                                         "adamax",
                                         "nadam",
                                         "ftrl",
                                         "lion",
                                         "lamb",
                                         "adam:use_ema=true",
                                         "adam:use_ema=true,ema_overwrite_frequency=2"};
enum { OPTIMIZERS = sizeof optimizers / sizeof *optimizers };

static mix_variable *replaced_variable(void) {
  mix_variable *scale = VARIABLE(MIX_FLOAT32, "scale", 1, 1);
  scale->overwrite_with_gradient = true;
  return scale;
}

static mix_optimizer *made(const char *text) {
  mix_optimizer *optimizer = mix_optimizer_from_text(text, mix_semantics_named("keras3"));
  assert_no_error();
  return optimizer;
}

/* The weight beside a replaced one goes the way that it goes alone, with as much state. */
static void E12_outside_the_rule(void **state) {
  (void)state;
  mix_set_semantics("keras3");
  for (int i = 0; i < OPTIMIZERS; i++) {
    mix_variable *alone = VARIABLE(MIX_FLOAT32, "w", 1, -2), *beside = VARIABLE(MIX_FLOAT32, "w", 1, -2),
                 *scale = replaced_variable();
    mix_optimizer *single = made(optimizers[i]), *both = made(optimizers[i]);
    captured_update update = captured_update_of(both, mix_list_of(beside, scale));
    for (int step = 1; step <= 3; step++) {
      mix_tensor *gradient = VECTOR(MIX_FLOAT32, 0.5 * step, -3);
      mix_optimizer_apply_gradients(single, mix_list_of(gradient), mix_list_of(alone));
      run_captured(&update, mix_list_of(gradient, VECTOR(MIX_FLOAT32, 100 * step, -0.25)));
      assert_no_error();
      ASSERT_VALUES(scale, 0, 100 * step, -0.25);
      for (int j = 0; j < 2; j++)
        if (value_at(alone, j) != value_at(beside, j))
          fail_msg("%s: %.9g beside a replaced weight, %.9g alone", optimizers[i], value_at(beside, j),
                   value_at(alone, j));
    }
    assert_int_equal(mix_list_count(mix_optimizer_variables(both)),
                     mix_list_count(mix_optimizer_variables(single)));
  }
}

/* Adafactor has numbers that stand in for the factors of a vector, and no velocity. */
static void E12_adafactor_counts_factors(void **state) {
  (void)state;
  mix_set_semantics("keras3");
  mix_variable *w = VARIABLE(MIX_FLOAT32, "w", 1, -2), *scale = replaced_variable();
  mix_optimizer *optimizer = made("adafactor");
  mix_optimizer_apply_gradients(optimizer, mix_list_of(VECTOR(MIX_FLOAT32, 1, 1), VECTOR(MIX_FLOAT32, 7, 8)),
                                mix_list_of(w, scale));
  ASSERT_VALUES(scale, 0, 7, 8);
  assert_non_null(mix_optimizer_slot(optimizer, w, "velocity"));
  assert_null(mix_optimizer_slot(optimizer, scale, "velocity"));
  mix_error_clear();
}

static void E13_no_average(void **state) {
  (void)state;
  mix_set_semantics("keras3");
  mix_variable *w = VARIABLE(MIX_FLOAT32, "w", 1), *scale = replaced_variable();
  mix_optimizer *optimizer = made("sgd:use_ema=true,ema_momentum=0.5");
  mix_list *variables = mix_list_of(w, scale);
  for (int i = 1; i <= 2; i++)
    mix_optimizer_apply_gradients(optimizer, mix_list_of(VECTOR(MIX_FLOAT32, 1), VECTOR(MIX_FLOAT32, i, 5)),
                                  variables);
  mix_optimizer_finalize_variable_values(optimizer, variables);
  assert_no_error();
  ASSERT_VALUES(scale, 0, 2, 5);
}

/* A new value that is not finite skips the step, though the gradients of all weights are finite. */
static void E16_inside_the_finite_test(void **state) {
  (void)state;
  mix_set_semantics("keras3");
  mix_variable *w = VARIABLE(MIX_FLOAT32, "w", 1), *scale = replaced_variable();
  mix_optimizer *optimizer = mix_loss_scale_optimizer(mix_sgd(), .name = NULL);
  mix_optimizer_apply_gradients(optimizer,
                                mix_list_of(VECTOR(MIX_FLOAT32, 1), VECTOR(MIX_FLOAT32, INFINITY, 2)),
                                mix_list_of(w, scale));
  ASSERT_VALUES(w, 0, 1);
  ASSERT_VALUES(scale, 0, 1, 1);
  assert_true(scale_of(optimizer) == 16384);
  mix_optimizer *plain = mix_sgd();
  mix_optimizer_apply_gradients(plain, mix_list_of(VECTOR(MIX_FLOAT32, 1), VECTOR(MIX_FLOAT32, INFINITY, 2)),
                                mix_list_of(w, scale));
  assert_true(isinf(value_at(scale, 0)));
}

int main(void) {
  const struct CMUnitTest tests[] = {TEST(E12_outside_the_rule), TEST(E12_adafactor_counts_factors),
                                     TEST(E13_no_average), TEST(E16_inside_the_finite_test)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
