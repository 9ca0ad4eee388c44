/* Learning rate schedules against numbers that Keras 3.15 and tf_keras 2.21 computed in float32 (equal to the
 * last bit), and their configs. */
/* Holds docs/NUMERICS.md: Optimizers. */
#include "optim/support.h"

static const int64_t steps[] = {0, 1, 5, 10, 20, 31, 71, 150};
enum { STEPS = sizeof steps / sizeof *steps };
static const double boundaries[] = {1, 20}, values[] = {0.1, 0.2, 0.3};

typedef struct schedule_case {
  const char *class_name;
  mix_schedule *schedule;
  double expected[STEPS];
  const char *config;
} schedule_case;

enum { CASES = 12 };
static void make_cases(schedule_case *cases) {
  const schedule_case all[CASES] = {
      {"ExponentialDecay",
       mix_exponential_decay(0.1, 10, 0.5, false),
       {0.10000000149011612, 0.09330330044031143, 0.0707106813788414, 0.05000000074505806,
        0.02500000037252903, 0.011662913486361504, 0.000728932092897594, 3.051757857974735e-06},
       "{\"initial_learning_rate\": 0.1, \"decay_steps\": 10, \"decay_rate\": 0.5, \"staircase\": false}"},
      {"InverseTimeDecay",
       mix_inverse_time_decay(0.1, 10, 0.5, true),
       {0.10000000149011612, 0.10000000149011612, 0.10000000149011612, 0.06666667014360428,
        0.05000000074505806, 0.03999999910593033, 0.02222222276031971, 0.0117647061124444},
       "{\"initial_learning_rate\": 0.1, \"decay_steps\": 10, \"decay_rate\": 0.5, \"staircase\": true}"},
      {"PolynomialDecay",
       mix_polynomial_decay(0.1, 10, 0.0001, 1, false),
       {0.10000000149011612, 0.09001000225543976, 0.050050001591444016, 9.999999747378752e-05,
        9.999999747378752e-05, 9.999999747378752e-05, 9.999999747378752e-05, 9.999999747378752e-05},
       "{\"initial_learning_rate\": 0.1, \"decay_steps\": 10}"},
      {"PolynomialDecay",
       mix_polynomial_decay(0.1, 10, 0.01, 2, true),
       {0.10000000149011612, 0.08289999514818192, 0.032499998807907104, 0.009999999776482582,
        0.009999999776482582, 0.014556251466274261, 0.011139062233269215, 0.009999999776482582},
       "{\"initial_learning_rate\": 0.1, \"decay_steps\": 10, \"end_learning_rate\": 0.01, \"power\": 2.0, "
       "\"cycle\": true}"},
      {"PolynomialDecay",
       mix_polynomial_decay(0.1, 10, 0.01, 0.5, false),
       {0.10000000149011612, 0.09538149833679199, 0.07363960891962051, 0.009999999776482582,
        0.009999999776482582, 0.009999999776482582, 0.009999999776482582, 0.009999999776482582},
       "{\"initial_learning_rate\": 0.1, \"decay_steps\": 10, \"end_learning_rate\": 0.01, \"power\": 0.5}"},
      {"PiecewiseConstantDecay",
       mix_piecewise_constant_decay(2, boundaries, values),
       {0.10000000149011612, 0.10000000149011612, 0.20000000298023224, 0.20000000298023224,
        0.20000000298023224, 0.30000001192092896, 0.30000001192092896, 0.30000001192092896},
       "{\"boundaries\": [1, 20], \"values\": [0.1, 0.2, 0.3]}"},
      {"CosineDecay",
       mix_cosine_decay(0.1, 10, 0, 0, 0),
       {0.10000000149011612, 0.0975528284907341, 0.04999999701976776, 0, 0, 0, 0, 0},
       "{\"initial_learning_rate\": 0.1, \"decay_steps\": 10, \"warmup_target\": null, \"warmup_steps\": 7}"},
      {"CosineDecay",
       mix_cosine_decay(0.1, 10, 0, 0.5, 5),
       {0.10000000149011612, 0.18000000715255737, 0.5, 0.2499999850988388, 0, 0, 0, 0},
       "{\"initial_learning_rate\": 0.1, \"decay_steps\": 10, \"warmup_target\": 0.5, \"warmup_steps\": 5}"},
      {"CosineDecay",
       mix_cosine_decay(0.05, 20, 0.1, 0.5, 9),
       {0.05000000074505806, 0.10000000149011612, 0.30000001192092896, 0.4972298741340637,
        0.23980222642421722, 0.05000000074505806, 0.05000000074505806, 0.05000000074505806},
       "{\"initial_learning_rate\": 0.05, \"decay_steps\": 20, \"alpha\": 0.1, \"warmup_target\": 0.5, "
       "\"warmup_steps\": 9}"},
      {"CosineDecayRestarts",
       mix_cosine_decay_restarts(0.1, 10, 2, 1, 0),
       {0.10000000149011612, 0.0975528284907341, 0.04999999701976776, 0.10000000149011612,
        0.04999999701976776, 0.09984587132930756, 0.09996145218610764, 0.10000000149011612},
       "{\"initial_learning_rate\": 0.1, \"first_decay_steps\": 10}"},
      {"CosineDecayRestarts",
       mix_cosine_decay_restarts(0.1, 10, 1, 0.9, 0.1),
       {0.10000000149011612, 0.09779754281044006, 0.05499999597668648, 0.09099999815225601,
        0.08289999514818192, 0.0740044042468071, 0.05199328809976578, 0.028530193492770195},
       "{\"initial_learning_rate\": 0.1, \"first_decay_steps\": 10, \"t_mul\": 1.0, \"m_mul\": 0.9, "
       "\"alpha\": 0.1}"},
      {"CosineDecayRestarts",
       mix_cosine_decay_restarts(0.1, 7, 1.5, 0.8, 0.05),
       {0.10000000149011612, 0.09529601782560349, 0.022884225472807884, 0.06669261306524277,
        0.0620979443192482, 0.00801055133342743, 0.030550194904208183, 0.02970576100051403},
       "{\"initial_learning_rate\": 0.1, \"first_decay_steps\": 7, \"t_mul\": 1.5, \"m_mul\": 0.8, "
       "\"alpha\": 0.05}"}};
  memcpy(cases, all, sizeof all);
}

static double at(mix_schedule *schedule, int64_t step) {
  return mix_tensor_item(mix_schedule_call(schedule, mix_scalar((double)step, MIX_INT64)));
}

/* Tolerance: the C library's pow and cos may round differently from Keras's: 4 units of 2^-24 of the largest
 * number involved, which is the peak of the schedule. */
static void assert_follows(const schedule_case *c, mix_schedule *schedule) {
  for (int i = 0; i < STEPS; i++) assert_near(at(schedule, steps[i]), c->expected[i], 0.5 * 2.4e-7);
  assert_no_error();
}

static void schedules_are_those_of_keras(void **state) {
  (void)state;
  schedule_case cases[CASES];
  make_cases(cases);
  for (int i = 0; i < CASES; i++) assert_follows(&cases[i], cases[i].schedule);
}

/* Keras's configs give the same schedule. So does the schedule's own config, which then gives the same config
 * again. */
static void configs_come_back(void **state) {
  (void)state;
  static const char *const generations[] = {"tf_keras", "keras3", "experimental"};
  schedule_case cases[CASES];
  make_cases(cases);
  for (int i = 0; i < CASES; i++) {
    char text[512];
    snprintf(text, sizeof text, "{\"class_name\": \"%s\", \"config\": %s}", cases[i].class_name,
             cases[i].config);
    assert_follows(&cases[i], mix_schedule_deserialize(text));
    for (int g = 0; g < 3; g++) {
      const mix_semantics *semantics = mix_semantics_named(generations[g]);
      mix_schedule *again = mix_schedule_deserialize(mix_schedule_serialize(cases[i].schedule, semantics));
      assert_no_error();
      assert_string_equal(mix_schedule_serialize(again, semantics),
                          mix_schedule_serialize(cases[i].schedule, semantics));
      assert_follows(&cases[i], again);
    }
  }
}

static void texts_of_the_generations(void **state) {
  (void)state;
  mix_schedule *schedule = mix_exponential_decay(0.5, 10, 0.25, false);
  static const char config[] =
      "\"config\": {\"initial_learning_rate\": 0.5, \"decay_steps\": 10, \"decay_rate\": 0.25, "
      "\"staircase\": false, \"name\": %s}";
  static const struct {
    const char *semantics, *before, *name, *after;
  } rows[] = {{"keras3", "\"module\": \"keras.optimizers.schedules\", \"class_name\": \"ExponentialDecay\", ",
               "\"ExponentialDecay\"", ", \"registered_name\": null"},
              {"tf_keras",
               "\"module\": \"keras.optimizers.schedules\", \"class_name\": \"ExponentialDecay\", ", "null",
               ", \"registered_name\": null"},
              {"experimental", "\"class_name\": \"ExponentialDecay\", ", "null", ""}};
  for (int i = 0; i < 3; i++) {
    char middle[256], expected[512];
    snprintf(middle, sizeof middle, config, rows[i].name);
    snprintf(expected, sizeof expected, "{%s%s%s}", rows[i].before, middle, rows[i].after);
    assert_string_equal(mix_schedule_serialize(schedule, mix_semantics_named(rows[i].semantics)), expected);
  }
}

static void an_optimizer_keeps_its_schedule(void **state) {
  (void)state;
  mix_optimizer *optimizer = mix_adam(.schedule = mix_polynomial_decay(0.5, 10, 0.25, 1, false));
  mix_optimizer *again = mix_optimizer_deserialize(mix_optimizer_serialize(optimizer), NULL);
  assert_no_error();
  assert_string_equal(mix_optimizer_serialize(again), mix_optimizer_serialize(optimizer));
  assert_null(mix_optimizer_learning_rate_variable(again));
  assert_true(mix_optimizer_learning_rate(again) == 0.5);
}

static mix_tensor *half(void *context, mix_tensor *step) {
  return (void)context, mix_cast(mix_scalar_like(step, 1), MIX_FLOAT32);
}

static void errors(void **state) {
  (void)state;
  static const char *const wrong[] = {
      "{\"class_name\": \"Decay\", \"config\": {}}",
      "{\"class_name\": \"CosineDecay\"}",
      "{\"class_name\": \"CosineDecay\", \"config\": {\"initial_learning_rate\": 1, \"decay_steps\": 0}}",
      "{\"class_name\": \"ExponentialDecay\", \"config\": {\"initial_learning_rate\": 1, "
      "\"decay_steps\": 1}}",
      "{\"class_name\": \"CosineDecay\", \"config\": {\"initial_learning_rate\": 1, \"decay_steps\": 1, "
      "\"warm\": 1}}",
      "{\"class_name\": \"PiecewiseConstantDecay\", \"config\": {\"boundaries\": [1], \"values\": [1]}}"};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    assert_null(mix_schedule_deserialize(wrong[i]));
    ASSERT_ERROR(MIX_VALUE_ERROR);
  }
  assert_null(mix_schedule_deserialize("{\"class_name\": \"CosinDecay\", \"config\": {}}"));
  assert_non_null(strstr(mix_error_message(), "\"CosinDecay\"; did you mean 'CosineDecay'?; known: Exp"));
  ASSERT_ERROR(MIX_VALUE_ERROR);
  assert_null(mix_schedule_deserialize(
      "{\"class_name\": \"PiecewiseConstantDecay\", \"config\": {\"boundaries\": [\"a\"], \"values\": [1, "
      "2]}}"));
  ASSERT_ERROR(MIX_TYPE_ERROR);
  assert_null(mix_inverse_time_decay(1, -1, 1, false));
  ASSERT_ERROR(MIX_VALUE_ERROR);
  mix_schedule *function = mix_schedule_function(half, NULL);
  assert_near(at(function, 3), 1, 0);
  assert_null(mix_schedule_serialize(function, NULL));
  ASSERT_ERROR(MIX_TYPE_ERROR);
  assert_null(mix_optimizer_serialize(mix_sgd(.schedule = function)));
  ASSERT_ERROR(MIX_TYPE_ERROR);
}

/* Steps beyond 2^24 are not distinct in float32, but must still reach their boundary. */
static void boundaries_are_integers(void **state) {
  (void)state;
  mix_schedule *schedule = mix_piecewise_constant_decay(1, (double[]){16777216.5}, (double[]){1, 0.5});
  assert_near(at(schedule, 16777216), 1, 0);
  assert_near(at(schedule, 16777217), 0.5, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {TEST(schedules_are_those_of_keras),
                                     TEST(configs_come_back),
                                     TEST(texts_of_the_generations),
                                     TEST(an_optimizer_keeps_its_schedule),
                                     TEST(errors),
                                     TEST(boundaries_are_integers)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
