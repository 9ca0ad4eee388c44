/* Update rules: the trajectories of docs/spec/keras.md, 19.1, eager and captured, in float32 and float64. */
/* Holds docs/NUMERICS.md: Optimizers. */
#include "optim/support.h"

#include <mixtape/layer.h>

typedef struct trajectory {
  mix_optimizer *(*make)(void);
  double values[3][2];
} trajectory;

/* w0 = (1, -2). The spec was computed in double precision and gives 7 digits: 1e-6 covers their rounding, and
 * for float32 three steps of a few roundings of numbers up to 2 (2^-24 relative each). Keras rounds Adam's
 * betas to float32 for every dtype: that changes sqrt(1 - beta_2^t) by 7e-6 relative, a step of 0.1 by 7e-7,
 * two such steps by 1.4e-6. */
static void follow(const trajectory *t, mix_dtype dtype, bool captured) {
  static const double gradients[3][2] = {{0.5, -0.25}, {0.5, -0.25}, {-1, 0.75}};
  mix_variable *weight = VARIABLE(dtype, "w", 1, -2);
  mix_optimizer *optimizer = t->make();
  mix_list *variables = mix_list_of(weight);
  captured_update update = captured_update_of(optimizer, variables);
  for (int step = 0; step < 3; step++) {
    mix_list *list = mix_list_of(VECTOR(dtype, gradients[step][0], gradients[step][1]));
    if (captured)
      run_captured(&update, list);
    else
      mix_optimizer_apply_gradients(optimizer, list, variables);
    assert_no_error();
    ASSERT_VALUES(weight, 2e-6, t->values[step][0], t->values[step][1]);
    assert_int_equal(mix_optimizer_iterations(optimizer), step + 1);
  }
  if (captured) assert_int_equal(update.traces, 1);
}

static void follow_all(const trajectory *t) {
  static const char *const generations[] = {"tf_keras", "keras3"};
  for (int g = 0; g < 2; g++) {
    mix_set_semantics(generations[g]);
    for (int captured = 0; captured < 2; captured++) {
      follow(t, MIX_FLOAT32, captured);
      follow(t, MIX_FLOAT64, captured);
    }
  }
}

static mix_optimizer *sgd(void) { return mix_sgd(.learning_rate = 0.1); }
static void T01_sgd(void **state) {
  (void)state;
  follow_all(&(trajectory){sgd, {{0.95, -1.975}, {0.9, -1.95}, {1.0, -2.025}}});
}

static mix_optimizer *sgd_momentum(void) { return mix_sgd(.learning_rate = 0.1, .momentum = 0.9); }
static void T02_sgd_momentum(void **state) {
  (void)state;
  follow_all(&(trajectory){sgd_momentum, {{0.95, -1.975}, {0.855, -1.9275}, {0.8695, -1.95975}}});
}

static mix_optimizer *sgd_nesterov(void) {
  return mix_sgd(.learning_rate = 0.1, .momentum = 0.9, .nesterov = true);
}
static void T03_sgd_nesterov(void **state) {
  (void)state;
  follow_all(&(trajectory){sgd_nesterov, {{0.905, -1.9525}, {0.7695, -1.88475}, {0.88255, -1.988775}}});
}

/* Only the position of epsilon distinguishes T05 from T04: by 5e-7 and 2.2e-6 at the first step. Half of the
 * smaller one tells them apart; the digits of the rows are within 5e-8, and float64 adds nothing. */
static void first_step_is(mix_optimizer *optimizer, double a, double b) {
  mix_variable *weight = VARIABLE(MIX_FLOAT64, "w", 1, -2);
  mix_optimizer_apply_gradients(optimizer, mix_list_of(VECTOR(MIX_FLOAT64, 0.5, -0.25)), mix_list_of(weight));
  ASSERT_VALUES(weight, 2.5e-7, a, b);
}

static mix_optimizer *rmsprop(void) { return mix_rmsprop(.learning_rate = 0.1); }
static void T04_rmsprop(void **state) {
  (void)state;
  follow_all(
      &(trajectory){rmsprop, {{0.6837729, -1.6837748}, {0.4543574, -1.45436}, {0.7190317, -1.7442453}}});
  static const char *const generations[] = {"tf_keras", "keras3"};
  for (int g = 0; g < 2; g++) {
    mix_set_semantics(generations[g]);
    first_step_is(rmsprop(), 0.6837729, -1.6837748);
  }
}

static mix_optimizer *rmsprop_legacy(void) { return mix_rmsprop(.learning_rate = 0.1, .legacy = true); }
static void T05_rmsprop_epsilon_outside(void **state) {
  (void)state;
  trajectory t = {rmsprop_legacy,
                  {{0.6837724, -1.6837726}, {0.4543568, -1.4543571}, {0.7190311, -1.7442425}}};
  follow_all(&t);
  mix_set_semantics("tf_keras");
  first_step_is(rmsprop_legacy(), 0.6837724, -1.6837726);
  mix_set_semantics("experimental");
  t.make = rmsprop;
  follow(&t, MIX_FLOAT64, false);
  first_step_is(rmsprop(), 0.6837724, -1.6837726);
}

/* In float16 1 - 2^-14 is 1: the update reads and writes the true value. */
static void V23_sgd_updates_in_the_true_dtype(void **state) {
  (void)state;
  mix_variable *weight = mix_variable_new(mix_scalar(1, MIX_FLOAT32), .name = "w", .autocast = true);
  mix_dtype former;
  mix_tape *tape = mix_tape_begin();
  assert_int_equal(mix_autocast_begin(MIX_FLOAT16, &former), MIX_OK);
  mix_tensor *value = mix_variable_value(weight);
  assert_int_equal(mix_tensor_dtype(value), MIX_FLOAT16);
  mix_tensor *loss = mix_cast(mix_identity(value), MIX_FLOAT32);
  mix_list *gradients = mix_tape_gradient(tape, loss, mix_list_of(weight));
  mix_tape_end(tape);
  mix_optimizer_apply_gradients(mix_sgd(.learning_rate = 0x1p-14), gradients, mix_list_of(weight));
  mix_autocast_end(former);
  assert_no_error();
  assert_true(mix_tensor_item(mix_variable_value(weight)) == 1 - 0x1p-14);
}

static mix_optimizer *rmsprop_centered(void) {
  return mix_rmsprop(.learning_rate = 0.1, .centered = true, .momentum = 0.9);
}
static void T06_rmsprop_centered_momentum(void **state) {
  (void)state;
  follow_all(&(trajectory){rmsprop_centered,
                           {{0.6666674, -1.6666696}, {0.111762, -1.1117673}, {-0.1227834, -0.9045191}}});
}

static mix_optimizer *adam(void) { return mix_adam(.learning_rate = 0.1); }
static mix_optimizer *adam_amsgrad(void) { return mix_adam(.learning_rate = 0.1, .amsgrad = true); }
static void T07_adam_and_amsgrad(void **state) {
  (void)state;
  trajectory t = {adam, {{0.9000006, -1.9000013}, {0.8000011, -1.8000022}, {0.807566, -1.8248521}}};
  follow_all(&t);
  t.make = adam_amsgrad;
  follow_all(&t);
}

static mix_optimizer *adamw(void) { return mix_adamw(.learning_rate = 0.1); }
static void T08_adamw(void **state) {
  (void)state;
  follow_all(
      &(trajectory){adamw, {{0.8996006, -1.8992013}, {0.7992412, -1.7984425}, {0.8064865, -1.822573}}});
}

static mix_optimizer *adagrad(void) { return mix_adagrad(.learning_rate = 0.1); }
static void T09_adagrad(void **state) {
  (void)state;
  follow_all(
      &(trajectory){adagrad, {{0.9154846, -1.9379827}, {0.8509349, -1.885278}, {0.9299918, -1.9697935}}});
}

static mix_optimizer *adadelta(void) { return mix_adadelta(.learning_rate = 0.1); }
static void T10_adadelta(void **state) {
  (void)state;
  follow_all(
      &(trajectory){adadelta, {{0.9998586, -1.9998586}, {0.9997154, -1.9997154}, {0.999917, -1.9999375}}});
}

static mix_optimizer *nadam(void) { return mix_nadam(.learning_rate = 0.1); }
static void T11_nadam(void **state) {
  (void)state;
  follow_all(
      &(trajectory){nadam, {{0.8937212, -1.8937213}, {0.8163622, -1.8163622}, {0.8969792, -1.9081176}}});
}

/* The momentum product after each of two steps with two variables. keras3 advances it once a step. tf_keras,
 * as in its fit, advances it with each variable except the first of the second step, and except the second of
 * the first step where the optimizer was built before, as in a loaded model without metrics. u_t = 0.9 (1 -
 * 0.96^t / 2). */
static void nadam_product(void **state) {
  (void)state;
  const double u1 = 0.9 * (1 - 0.5 * 0.96), u2 = 0.9 * (1 - 0.5 * 0.96 * 0.96), beta = (double)0.9f,
               base = (double)0.96f;
  /* tf_keras casts both via float32. */
  const double cast1 = beta * (1 - 0.5 * base), cast2 = beta * (1 - 0.5 * base * base);
  const struct {
    const char *semantics;
    bool built;
    double first, second;
  } rows[] = {{"keras3", false, u1, u1 * u2},
              {"tf_keras", false, cast1 * cast1, cast1 * cast1 * cast2},
              {"tf_keras", true, cast1, cast1 * cast2 * cast2}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    mix_set_semantics(rows[i].semantics);
    mix_optimizer *optimizer = mix_nadam();
    mix_list *variables = mix_list_of(VARIABLE(MIX_FLOAT64, "a", 1), VARIABLE(MIX_FLOAT64, "b", 1));
    mix_list *gradients = mix_list_of(VECTOR(MIX_FLOAT64, 1), VECTOR(MIX_FLOAT64, 1));
    if (rows[i].built) mix_optimizer_build(optimizer, variables);
    mix_optimizer_apply_gradients(optimizer, gradients, variables);
    mix_list *all = mix_optimizer_variables(optimizer);
    mix_variable *product = mix_list_get(all, mix_list_count(all) - 1);
    ASSERT_VALUES(product, 1e-15, rows[i].first);
    mix_optimizer_apply_gradients(optimizer, gradients, variables);
    ASSERT_VALUES(product, 1e-15, rows[i].second);
  }
}

/* As a tf.function of tf_keras that builds the optimizer in its first call. */
static void nadam_of_two_variables(void **state) {
  (void)state;
  const double weights[][2] = {{0.89372122, 1.92645013},
                               {0.80002713, 1.88062978},
                               {0.713148, 1.87023127},
                               {0.62287712, 1.90462720},
                               {0.53019738, 1.97426236}};
  for (int captured = 0; captured < 2; captured++) {
    mix_variable *a = VARIABLE(MIX_FLOAT32, "a", 1), *b = VARIABLE(MIX_FLOAT32, "b", 2);
    captured_update update = captured_update_of(mix_nadam(.learning_rate = 0.1), mix_list_of(a, b));
    for (int t = 0; t < 5; t++) {
      mix_list *gradients = mix_list_of(VECTOR(MIX_FLOAT32, 1 + t), VECTOR(MIX_FLOAT32, 2 - t));
      if (captured)
        run_captured(&update, gradients);
      else
        mix_optimizer_apply_gradients(update.optimizer, gradients, update.variables);
      ASSERT_VALUES(a, 3e-7, weights[t][0]);
      ASSERT_VALUES(b, 3e-7, weights[t][1]);
    }
  }
}

static mix_optimizer *adamax(void) { return mix_adamax(.learning_rate = 0.1); }
static void T12_adamax(void **state) {
  (void)state;
  follow_all(&(trajectory){adamax, {{0.9, -1.9}, {0.8, -1.8000001}, {0.8053506, -1.8158672}}});
}

static mix_optimizer *lion(void) { return mix_lion(.learning_rate = 0.1); }
static void T13_lion(void **state) {
  (void)state;
  follow_all(&(trajectory){lion, {{0.9, -1.9}, {0.8, -1.8}, {0.9, -1.9}}});
}

static mix_optimizer *ftrl(void) { return mix_ftrl(.learning_rate = 0.1); }
static void T14_ftrl(void **state) {
  (void)state;
  follow_all(
      &(trajectory){ftrl, {{0.3809621, -0.3690536}, {0.3164124, -0.3163489}, {0.3954693, -0.4008643}}});
}

/* The legacy family uses TensorFlow's kernel for Ftrl, which turns a NaN in the linear slot into 0. The
 * others propagate it. The numbers are Keras's. */
static void ftrl_of_a_gradient_that_is_not_a_number(void **state) {
  (void)state;
  for (int legacy = 0; legacy < 2; legacy++) {
    mix_variable *weight = VARIABLE(MIX_FLOAT32, "w", 0.5, 0.5);
    mix_optimizer *optimizer = mix_ftrl(.learning_rate = 0.1, .legacy = legacy);
    mix_list *variables = mix_list_of(weight);
    mix_optimizer_apply_gradients(optimizer, mix_list_of(VECTOR(MIX_FLOAT32, 1, -1)), variables);
    ASSERT_VALUES(weight, 1e-7, 0.25389805, 0.44459057);
    mix_optimizer_apply_gradients(optimizer, mix_list_of(VECTOR(MIX_FLOAT32, NAN, 1)), variables);
    assert_true(legacy ? value_at(weight, 0) == 0 : isnan(value_at(weight, 0)));
    assert_near(value_at(weight, 1), 0.37558398, 1e-7);
    mix_optimizer_apply_gradients(optimizer, mix_list_of(VECTOR(MIX_FLOAT32, 1, 1)), variables);
    assert_true(legacy ? value_at(weight, 0) == 0 : isnan(value_at(weight, 0)));
    assert_near(value_at(weight, 1), 0.31878781, 1e-7);
  }
}

static void default_learning_rates(void **state) {
  (void)state;
  assert_true(mix_optimizer_learning_rate(mix_lion()) == (double)1e-4f);
  mix_set_semantics("keras3");
  assert_true(mix_optimizer_learning_rate(mix_lion()) == (double)1e-3f);
  assert_true(mix_optimizer_learning_rate(mix_sgd()) == (double)0.01f);
}

/* After a large gradient and a small one, amsgrad still divides by the large second moment; row T07 alone
 * does not show it. By hand, in doubles: m = .1*8 -> .1*.9*8 + .1*.01; v = .001*64; v2 = .999*v + .001*1e-4;
 * vhat = max(v, v2) = v. */
static void amsgrad_keeps_the_largest_second_moment(void **state) {
  (void)state;
  mix_variable *weight = VARIABLE(MIX_FLOAT64, "w", 0);
  mix_optimizer *optimizer = mix_adam(.learning_rate = 0.1, .amsgrad = true);
  mix_list *variables = mix_list_of(weight);
  mix_optimizer_apply_gradients(optimizer, mix_list_of(VECTOR(MIX_FLOAT64, 8)), variables);
  mix_optimizer_apply_gradients(optimizer, mix_list_of(VECTOR(MIX_FLOAT64, 0.01)), variables);
  double b1 = (double)0.9f, b2 = (double)0.999f; /* powers are of betas cast via float32 */
  double lr = (double)0.1f, m = 0.1 * 8, v = 0.001 * 64,
         w = -lr * sqrt(1 - b2) / (1 - b1) * m / (sqrt(v) + 1e-7);
  m = 0.9 * m + 0.1 * 0.01;
  w -= lr * sqrt(1 - b2 * b2) / (1 - b1 * b1) * m / (sqrt(v) + 1e-7);
  ASSERT_VALUES(weight, 1e-12, w); /* about twelve roundings of numbers below 1 */
  ASSERT_VALUES(mix_optimizer_slot(optimizer, weight, "velocity_hat"), 1e-15, v);
}

/* float16 weights: every operation rounds to float16, as in Keras. lr 0.5 and these numbers are exact in
 * it. */
static void float16_weights_update_in_float16(void **state) {
  (void)state;
  mix_variable *weight = VARIABLE(MIX_FLOAT16, "w", 1, 2048);
  mix_optimizer *optimizer = mix_sgd(.learning_rate = 0.5);
  mix_optimizer_apply_gradients(optimizer, mix_list_of(VECTOR(MIX_FLOAT16, 0.5, 1)), mix_list_of(weight));
  /* 2048 - 0.5 is halfway between 2047 and 2048: ties to even. */
  ASSERT_VALUES(weight, 0, 0.75, 2048);
  assert_int_equal(mix_variable_true_dtype(weight), MIX_FLOAT16);
}

int main(void) {
  const struct CMUnitTest tests[] = {TEST(T01_sgd),
                                     TEST(T02_sgd_momentum),
                                     TEST(T03_sgd_nesterov),
                                     TEST(T04_rmsprop),
                                     TEST(T05_rmsprop_epsilon_outside),
                                     TEST(V23_sgd_updates_in_the_true_dtype),
                                     TEST(T06_rmsprop_centered_momentum),
                                     TEST(T07_adam_and_amsgrad),
                                     TEST(T08_adamw),
                                     TEST(T09_adagrad),
                                     TEST(T10_adadelta),
                                     TEST(T11_nadam),
                                     TEST(nadam_product),
                                     TEST(nadam_of_two_variables),
                                     TEST(T12_adamax),
                                     TEST(T13_lion),
                                     TEST(T14_ftrl),
                                     TEST(ftrl_of_a_gradient_that_is_not_a_number),
                                     TEST(default_learning_rates),
                                     TEST(amsgrad_keeps_the_largest_second_moment),
                                     TEST(float16_weights_update_in_float16)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
