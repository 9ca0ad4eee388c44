/* Random operations and generators. Seeds are fixed, so each test is deterministic. Bounds are five standard
 * deviations of the statistic under the specified distribution. */
/* Holds docs/NUMERICS.md: Random numbers; The same bits again. */
#include "ops/support.h"
#include <mixtape/function.h>

enum { N = 1 << 16 };

typedef mix_tensor *(*stateless)(mix_tensor *, mix_shape, mix_dtype);
typedef mix_tensor *(*drawing)(mix_generator *, mix_shape, mix_dtype);

static mix_tensor *state_of(int64_t key, int64_t counter) {
  return mix_tensor_from((int64_t[]){key, counter}, MIX_INT64, MIX_SHAPE(2));
}

static const double *draw(stateless random, int64_t key, mix_dtype dtype) {
  static double x[N];
  read_into(random(state_of(key, 0), MIX_SHAPE(N), dtype), N, x);
  return x;
}

/* Mean of (x - center)^power. */
static double moment(const double *x, double center, int power) {
  double sum = 0;
  for (int i = 0; i < N; i++) sum += pow(x[i] - center, power);
  return sum / N;
}

/* |got - wanted| within five standard deviations, plus in 16 bits the shift that rounding to nearest (or
 * down) can cause. */
static void close_to(double got, double wanted, double variance, double shift) {
  double bound = 5 * sqrt(variance / N) + shift;
  if (!(fabs(got - wanted) <= bound)) fail_msg("%.6g; expected %.6g within %.3g", got, wanted, bound);
}

static void uniform(void **state) {
  (void)state;
  for (int d = 0; d < COUNT(floating); d++) {
    const double *x = draw(mix_stateless_uniform, 7, floating[d]);
    double u = unit_roundoff(floating[d]);
    for (int i = 0; i < N; i++) assert_true(x[i] >= 0 && x[i] < 1);
    close_to(moment(x, 0.5, 1), 0.5 - 0.5, 1. / 12, u);    /* variance of x: 1/12 */
    close_to(moment(x, 0.5, 2), 1. / 12, 1. / 180, 2 * u); /* of (x - 1/2)^2: 1/80 - 1/144 = 1/180 */
    double chi = 0;                                        /* 64 cells: mean 63, variance 126 */
    int cells[64] = {0};
    for (int i = 0; i < N; i++) cells[(int)(x[i] * 64)]++;
    for (int c = 0; c < 64; c++) chi += pow(cells[c] - N / 64., 2) / (N / 64.);
    assert_true(chi < 63 + 5 * sqrt(126));
    double neighbours = 0; /* covariance of neighbours: mean 0, variance (1/12)^2 */
    for (int i = 0; i + 1 < N; i++) neighbours += (x[i] - 0.5) * (x[i + 1] - 0.5) / N;
    close_to(neighbours, 0, 1. / 144, u);
  }
}

static void normal(void **state) {
  (void)state;
  for (int d = 0; d < COUNT(floating); d++) {
    const double *x = draw(mix_stateless_normal, 11, floating[d]);
    double u = unit_roundoff(floating[d]);
    close_to(moment(x, 0, 1), 0, 1, u);
    close_to(moment(x, 0, 2), 1, 2, 2 * u);   /* variance of x^2: 3 - 1 */
    close_to(moment(x, 0, 3), 0, 15, 6 * u);  /* of x^3: 15 */
    close_to(moment(x, 0, 4), 3, 96, 12 * u); /* of x^4: 105 - 9 */
    /* |x| > 3: p = 0.0026998. float16's spacing at 3 (2^-9) changes p by at most 2 phi(3) 2^-10. */
    int outside = 0;
    for (int i = 0; i < N; i++) outside += fabs(x[i]) > 3;
    close_to((double)outside / N, 0.0026998, 0.0026998, 4 * u * 0.0089);
  }
}

/* A normal distribution truncated at +-2: variance 1 - 4 phi(2) / (2 Phi(2) - 1) = 0.7737, fourth moment 3 *
 * 0.7737 - 8 * 2 phi(2) / 0.9545 = 1.4161, so that x^2 has variance 1.4161 - 0.5987. */
static void truncated_normal(void **state) {
  (void)state;
  for (int d = 0; d < COUNT(floating); d++) {
    const double *x = draw(mix_stateless_truncated_normal, 13, floating[d]);
    double u = unit_roundoff(floating[d]), phi = 0.053990966513188056, mass = 0.95449973610364158,
           variance = 1 - 4 * phi / mass;
    double fourth = 3 * variance - 16 * phi / mass;
    for (int i = 0; i < N; i++) assert_true(fabs(x[i]) <= 2);
    close_to(moment(x, 0, 1), 0, variance, u);
    close_to(moment(x, 0, 2), variance, fourth - variance * variance, 2 * u);
    close_to(moment(x, 0, 3), 0, 8, 8 * u);
    int beyond = 0; /* between 1 and 2 in size: 2 (Phi(2) - Phi(1)) / mass */
    for (int i = 0; i < N; i++) beyond += fabs(x[i]) > 1;
    double p = 2 * (0.97724986805182079 - 0.84134474606854293) / mass;
    close_to((double)beyond / N, p, p * (1 - p), 4 * u);
  }
}

static const stateless stateless_ops[] = {mix_stateless_uniform, mix_stateless_normal,
                                          mix_stateless_truncated_normal};
static const drawing drawing_ops[] = {mix_random_uniform, mix_random_normal, mix_random_truncated_normal};

static bool same(const double *a, const double *b, int n) { return memcmp(a, b, sizeof *a * (size_t)n) == 0; }

/* The numbers depend on the state only, on both key and counter. Element i does not depend on the count or
 * the shape. */
static void numbers_are_a_function_of_the_state(void **state) {
  (void)state;
  for (int k = 0; k < COUNT(stateless_ops); k++)
    for (int d = 0; d < COUNT(floating); d++) {
      double first[96], again[96], shaped[24], other_key[96], other_counter[96];
      read_into(stateless_ops[k](state_of(5, 9), MIX_SHAPE(96), floating[d]), 96, first);
      read_into(stateless_ops[k](state_of(5, 9), MIX_SHAPE(96), floating[d]), 96, again);
      read_into(stateless_ops[k](state_of(5, 9), MIX_SHAPE(2, 3, 4), floating[d]), 24, shaped);
      read_into(stateless_ops[k](state_of(6, 9), MIX_SHAPE(96), floating[d]), 96, other_key);
      read_into(stateless_ops[k](state_of(5, 10), MIX_SHAPE(96), floating[d]), 96, other_counter);
      assert_true(same(first, again, 96));
      assert_true(same(first, shaped, 24));
      assert_false(same(first, other_key, 96));
      assert_false(same(first, other_counter, 96));
    }
}

static void state_is(mix_generator *generator, uint64_t key, int64_t counter) {
  int64_t state[2];
  assert_int_equal(
      mix_tensor_read(mix_variable_true_value(mix_generator_state(generator)), MIX_INT64, state, 2), MIX_OK);
  assert_int_equal(state[0], (int64_t)key);
  assert_int_equal(state[1], counter);
}

static void generators_advance(void **state) {
  (void)state;
  uint64_t seed = UINT64_C(0xfedcba9876543210);
  for (int k = 0; k < COUNT(drawing_ops); k++) {
    mix_generator *generator = mix_generator_new(seed);
    double first[32], second[32], wanted[32];
    state_is(generator, seed, 0);
    mix_tensor *a = drawing_ops[k](generator, MIX_SHAPE(32), MIX_FLOAT32),
               *b = drawing_ops[k](generator, MIX_SHAPE(32), MIX_FLOAT32);
    state_is(generator, seed, 2);
    read_into(a, 32, first); /* computed after the state advanced, from the earlier state */
    read_into(b, 32, second);
    assert_false(same(first, second, 32));
    for (int counter = 0; counter < 2; counter++) {
      read_into(stateless_ops[k](state_of((int64_t)seed, counter), MIX_SHAPE(32), MIX_FLOAT32), 32, wanted);
      assert_true(same(counter ? second : first, wanted, 32));
    }
    assert_int_equal(mix_variable_assign(mix_generator_state(generator), state_of((int64_t)seed, 0)), MIX_OK);
    read_into(drawing_ops[k](generator, MIX_SHAPE(32), MIX_FLOAT32), 32, second);
    assert_true(same(first, second, 32));
  }
}

static mix_list *two_draws(void *context, mix_list *arguments) {
  (void)arguments;
  return mix_list_of(mix_random_normal(context, MIX_SHAPE(16), MIX_FLOAT32),
                     mix_random_normal(context, MIX_SHAPE(16), MIX_FLOAT32));
}

/* A captured function advances the generator on every call, in program order. */
static void captured_functions_advance_generators(void **state) {
  (void)state;
  mix_generator *generator = mix_generator_new(3);
  mix_function *function = mix_function_new(two_draws, generator);
  for (int call = 0; call < 3; call++) {
    mix_list *results = mix_function_call(function, mix_list_new(0, NULL));
    no_error();
    for (int i = 0; i < 2; i++) {
      double got[16], wanted[16];
      read_into(mix_list_get(results, i), 16, got);
      read_into(mix_stateless_normal(state_of(3, 2 * call + i), MIX_SHAPE(16), MIX_FLOAT32), 16, wanted);
      assert_true(same(got, wanted, 16));
    }
    state_is(generator, 3, 2 * call + 2);
  }
}

static void errors(void **state) {
  (void)state;
  mix_generator *generator = mix_generator_new(1);
  refused(mix_random_uniform(generator, MIX_SHAPE(2), MIX_INT32), MIX_TYPE_ERROR, "random_uniform", "int32");
  refused(mix_random_normal(generator, MIX_SHAPE(2, -1), MIX_FLOAT32), MIX_VALUE_ERROR, "random_normal");
  refused(mix_random_normal(NULL, MIX_SHAPE(2), MIX_FLOAT32), MIX_TYPE_ERROR, "generator");
  state_is(generator, 1, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(uniform),
      TEST(normal),
      TEST(truncated_normal),
      TEST(numbers_are_a_function_of_the_state),
      TEST(generators_advance),
      TEST(captured_functions_advance_generators),
      TEST(errors),
  };
  return cmocka_run_group_tests_name("ops/random", tests, NULL, NULL);
}
