/* Update rules: the trajectories of spec/layers.md, 19.1, outside and inside a captured function, in float32 and float64. */
#include "optim/support.h"

typedef struct trajectory {
  mix_optimizer *(*make)(void);
  double values[3][2];
} trajectory;

/* w0 = (1, -2); the spec computed in double precision and gives 7 digits: 1e-6 covers their rounding, plus for float32 three steps of
 * a few roundings of numbers up to 2 (2^-24 relative each). */
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
    double tolerance = dtype == MIX_FLOAT64 ? 1e-6 : 2e-6;
    ASSERT_VALUES(weight, tolerance, t->values[step][0], t->values[step][1]);
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

static mix_optimizer *sgd_nesterov(void) { return mix_sgd(.learning_rate = 0.1, .momentum = 0.9, .nesterov = true); }
static void T03_sgd_nesterov(void **state) {
  (void)state;
  follow_all(&(trajectory){sgd_nesterov, {{0.905, -1.9525}, {0.7695, -1.88475}, {0.88255, -1.988775}}});
}

static mix_optimizer *rmsprop(void) { return mix_rmsprop(.learning_rate = 0.1); }
static void T04_rmsprop(void **state) {
  (void)state;
  follow_all(&(trajectory){rmsprop, {{0.6837729, -1.6837748}, {0.4543574, -1.45436}, {0.7190317, -1.7442453}}});
}

/* Only epsilon's place tells T05 from T04: 5e-7 at the first step, so this row is checked in float64 to half of that. */
static mix_optimizer *rmsprop_legacy(void) { return mix_rmsprop(.learning_rate = 0.1, .legacy = true); }
static void T05_rmsprop_epsilon_outside(void **state) {
  (void)state;
  trajectory t = {rmsprop_legacy, {{0.6837724, -1.6837726}, {0.4543568, -1.4543571}, {0.7190311, -1.7442425}}};
  follow_all(&t);
  mix_set_semantics("experimental");
  t.make = rmsprop;
  follow(&t, MIX_FLOAT64, false);
  mix_variable *weight = VARIABLE(MIX_FLOAT64, "w", 1, -2);
  mix_optimizer_apply_gradients(rmsprop(), mix_list_of(VECTOR(MIX_FLOAT64, 0.5, -0.25)), mix_list_of(weight));
  ASSERT_VALUES(weight, 2.5e-7, 0.6837724, -1.6837726);
}

static mix_optimizer *rmsprop_centered(void) { return mix_rmsprop(.learning_rate = 0.1, .centered = true, .momentum = 0.9); }
static void T06_rmsprop_centered_momentum(void **state) {
  (void)state;
  follow_all(&(trajectory){rmsprop_centered, {{0.6666674, -1.6666696}, {0.111762, -1.1117673}, {-0.1227834, -0.9045191}}});
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

/* After a large gradient and a small one, amsgrad still divides by the large second moment: rows T07 alone do not tell. By hand, in
 * doubles: m = .1*8 -> .1*.9*8 + .1*.01; v = .001*64; v2 = .999*v + .001*1e-4; vhat = max(v, v2) = v. */
static void amsgrad_keeps_the_largest_second_moment(void **state) {
  (void)state;
  mix_variable *weight = VARIABLE(MIX_FLOAT64, "w", 0);
  mix_optimizer *optimizer = mix_adam(.learning_rate = 0.1, .amsgrad = true);
  mix_list *variables = mix_list_of(weight);
  mix_optimizer_apply_gradients(optimizer, mix_list_of(VECTOR(MIX_FLOAT64, 8)), variables);
  mix_optimizer_apply_gradients(optimizer, mix_list_of(VECTOR(MIX_FLOAT64, 0.01)), variables);
  double lr = (double)0.1f, m = 0.1 * 8, v = 0.001 * 64, w = -lr * sqrt(1 - 0.999) / (1 - 0.9) * m / (sqrt(v) + 1e-7);
  m = 0.9 * m + 0.1 * 0.01;
  w -= lr * sqrt(1 - 0.999 * 0.999) / (1 - 0.81) * m / (sqrt(v) + 1e-7);
  ASSERT_VALUES(weight, 1e-12, w); /* a dozen roundings of numbers below 1 */
  ASSERT_VALUES(mix_optimizer_slot(optimizer, weight, "velocity_hat"), 1e-15, v);
}

/* float16 weights: every operation rounds to float16, as in Keras; lr 0.5 and these numbers are exact in it. */
static void float16_weights_update_in_float16(void **state) {
  (void)state;
  mix_variable *weight = VARIABLE(MIX_FLOAT16, "w", 1, 2048);
  mix_optimizer *optimizer = mix_sgd(.learning_rate = 0.5);
  mix_optimizer_apply_gradients(optimizer, mix_list_of(VECTOR(MIX_FLOAT16, 0.5, 1)), mix_list_of(weight));
  /* 2048 - 0.5 is between 2047 and 2048, whose halfway point it is: to even. */
  ASSERT_VALUES(weight, 0, 0.75, 2048);
  assert_int_equal(mix_variable_true_dtype(weight), MIX_FLOAT16);
}

int main(void) {
  const struct CMUnitTest tests[] = {TEST(T01_sgd),
                                     TEST(T02_sgd_momentum),
                                     TEST(T03_sgd_nesterov),
                                     TEST(T04_rmsprop),
                                     TEST(T05_rmsprop_epsilon_outside),
                                     TEST(T06_rmsprop_centered_momentum),
                                     TEST(T07_adam_and_amsgrad),
                                     TEST(amsgrad_keeps_the_largest_second_moment),
                                     TEST(float16_weights_update_in_float16)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
