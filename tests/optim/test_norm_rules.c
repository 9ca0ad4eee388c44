/* Lamb and Adafactor against loops over doubles: a kernel (2, 3) and a bias (3), four steps. */
/* Holds docs/NUMERICS.md: Optimizers. */
#include "optim/support.h"

enum { ROWS = 2, COLUMNS = 3, KERNEL = ROWS * COLUMNS, STEPS = 4 };
static const double start[KERNEL] = {1, -2, 0.5, 0.25, -0.75, 3};
static const double gradients[STEPS][KERNEL] = {{0.5, -0.25, 0.125, 1, -1, 0.5},
                                                {0.5, 0.25, -0.125, 2, 1, -0.5},
                                                {-1, 0.75, 0.5, -0.25, 0.5, 0.0625},
                                                {0.25, -0.5, 1, 0.5, -0.125, -2}};
/* Keras casts betas to the variable's dtype via float32. */
#define CAST(x) ((double)(float)(x))
static const double rate = CAST(0.1);

static double norm(int count, const double *x) {
  double sum = 0;
  for (int i = 0; i < count; i++) sum += x[i] * x[i];
  return sqrt(sum);
}

/* One update of `count` weights by Lamb. */
static void lamb(int count, int t, const double *g, double *w, double *m, double *v) {
  double step[KERNEL] = {0}, b1 = 1 - pow(CAST(0.9), t), b2 = 1 - pow(CAST(0.999), t);
  for (int i = 0; i < count; i++) {
    m[i] += (g[i] - m[i]) * (1 - 0.9);
    v[i] += (g[i] * g[i] - v[i]) * (1 - 0.999);
    step[i] = m[i] / b1 / (sqrt(v[i] / b2) + 1e-7);
  }
  double weights = norm(count, w), steps = norm(count, step),
         ratio = weights > 0 && steps > 0 ? weights / steps : 1;
  for (int i = 0; i < count; i++) w[i] -= ratio * rate * step[i];
}

/* One update of a matrix with `rows` rows by Adafactor; 0 rows: of a vector of COLUMNS. */
static void adafactor(int rows, int t, const double *g, double *w, double *r, double *c, double *v) {
  int count = rows ? rows * COLUMNS : COLUMNS;
  double beta = 1 - pow(t, -0.8), step[KERNEL] = {0}, mean = 0;
  double alpha = fmax(CAST(1e-3), norm(count, w) / sqrt(count)) * fmin(rate, 1 / sqrt(t));
  for (int i = 0; i < rows; i++) {
    double sum = 0;
    for (int j = 0; j < COLUMNS; j++) sum += g[i * COLUMNS + j] * g[i * COLUMNS + j] + 1e-30;
    r[i] = beta * r[i] + (1 - beta) * sum / COLUMNS;
    mean += r[i] / rows;
  }
  for (int j = 0; j < COLUMNS && rows; j++) {
    double sum = 0;
    for (int i = 0; i < rows; i++) sum += g[i * COLUMNS + j] * g[i * COLUMNS + j] + 1e-30;
    c[j] = beta * c[j] + (1 - beta) * sum / rows;
  }
  for (int i = 0; i < count; i++) {
    v[i] = rows ? r[i / COLUMNS] / mean * c[i % COLUMNS] : beta * v[i] + (1 - beta) * (g[i] * g[i] + 1e-30);
    step[i] = g[i] / sqrt(v[i]);
  }
  double limit = fmax(1, norm(count, step) / sqrt(count));
  for (int i = 0; i < count; i++) w[i] -= alpha * step[i] / limit;
}

static void follow(bool is_lamb, mix_dtype dtype) {
  mix_shape kernel_shape = {.rank = 2, .dims = {ROWS, COLUMNS}}, bias_shape = {.rank = 1, .dims = {COLUMNS}};
  mix_variable *kernel =
      mix_variable_new(mix_tensor_from_doubles(start, dtype, kernel_shape), .name = "kernel");
  mix_variable *bias =
      mix_variable_new(mix_tensor_from_doubles(start + 3, dtype, bias_shape), .name = "bias");
  mix_optimizer *optimizer = is_lamb ? mix_lamb(.learning_rate = 0.1) : mix_adafactor(.learning_rate = 0.1);
  double w[KERNEL], b[COLUMNS], state[2][3][KERNEL] = {0};
  memcpy(w, start, sizeof w);
  memcpy(b, start + 3, sizeof b);
  /* float32: some dozens of roundings of 2^-24 relative, of numbers below 4; float64: the same with 2^-53. */
  double tolerance = dtype == MIX_FLOAT64 ? 1e-13 : 1e-5;
  for (int t = 1; t <= STEPS; t++) {
    const double *g = gradients[t - 1];
    mix_optimizer_apply_gradients(optimizer,
                                  mix_list_of(mix_tensor_from_doubles(g, dtype, kernel_shape),
                                              mix_tensor_from_doubles(g, dtype, bias_shape)),
                                  mix_list_of(kernel, bias));
    assert_no_error();
    if (is_lamb) {
      lamb(KERNEL, t, g, w, state[0][0], state[0][1]);
      lamb(COLUMNS, t, g, b, state[1][0], state[1][1]);
    } else {
      adafactor(ROWS, t, g, w, state[0][0], state[0][1], state[0][2]);
      adafactor(0, t, g, b, NULL, NULL, state[1][2]);
    }
    for (int i = 0; i < KERNEL; i++) assert_near(value_at(kernel, i), w[i], tolerance);
    for (int i = 0; i < COLUMNS; i++) assert_near(value_at(bias, i), b[i], tolerance);
  }
}

static void lamb_follows_its_rule(void **unused) {
  (void)unused;
  follow(true, MIX_FLOAT64);
  follow(true, MIX_FLOAT32);
}

static void adafactor_follows_its_rule(void **unused) {
  (void)unused;
  static const char *const generations[] = {"tf_keras", "keras3"};
  for (int g = 0; g < 2; g++) {
    mix_set_semantics(generations[g]);
    follow(false, MIX_FLOAT64);
    follow(false, MIX_FLOAT32);
  }
}

/* |w| = 0: the ratio is 1, and the first step is lr * sign(g), as in Adam. */
static void lamb_of_a_weight_of_zeros(void **unused) {
  (void)unused;
  mix_variable *weight = VARIABLE(MIX_FLOAT64, "w", 0, 0);
  mix_optimizer_apply_gradients(mix_lamb(.learning_rate = 0.5), mix_list_of(VECTOR(MIX_FLOAT64, 2, -4)),
                                mix_list_of(weight));
  /* 1 - beta_2 differs by 1.3e-5 from its float32 cast, half of it after the root, in a step of 0.5. */
  ASSERT_VALUES(weight, 4e-6, -0.5, 0.5);
  mix_variable *still = VARIABLE(MIX_FLOAT64, "s", 1, 2);
  mix_optimizer_apply_gradients(mix_lamb(), mix_list_of(VECTOR(MIX_FLOAT64, 0, 0)), mix_list_of(still));
  ASSERT_VALUES(still, 0, 1, 2);
}

/* Rows and columns of a variable of rank 3 are its last two axes; vectors have neither. */
static void adafactor_state(void **unused) {
  (void)unused;
  mix_variable *cube = mix_variable_new(mix_fill(MIX_SHAPE(2, 3, 4), 1, MIX_FLOAT32), .name = "cube");
  mix_variable *vector = VARIABLE(MIX_FLOAT32, "vector", 1, 2);
  mix_optimizer *optimizer = mix_adafactor();
  assert_int_equal(mix_optimizer_build(optimizer, mix_list_of(cube, vector)), MIX_OK);
  const struct {
    const char *name;
    mix_shape shape;
  } rows[] = {{"r", MIX_SHAPE(2, 3)}, {"c", MIX_SHAPE(2, 4)}, {"v", MIX_SHAPE(2, 3, 4)}};
  for (int i = 0; i < 3; i++)
    assert_true(mix_shape_equal(mix_variable_shape(mix_optimizer_slot(optimizer, cube, rows[i].name)),
                                rows[i].shape));
  assert_null(mix_optimizer_slot(optimizer, vector, "r"));
  assert_null(mix_optimizer_slot(optimizer, vector, "c"));
  assert_non_null(mix_optimizer_slot(optimizer, vector, "velocity"));
  assert_int_equal(mix_list_count(mix_optimizer_variables(optimizer)), 2 + 3 + 1);
  mix_optimizer_apply_gradients(optimizer, mix_list_of(mix_fill(MIX_SHAPE(2, 3, 4), 2, MIX_FLOAT32), NULL),
                                mix_list_of(cube, vector));
  assert_no_error();
  /* All gradients equal: v = g^2, u = 1, and the step is rms(w) * min(lr, 1) = 0.001. */
  assert_near(mix_tensor_item(mix_reduce_max(mix_variable_true_value(cube), MIX_ALL_AXES, false)), 0.999,
              1e-6);
}

/* Keras uses min(lr, 1 / sqrt(t)) with and without the option. */
static void relative_step_changes_nothing(void **unused) {
  (void)unused;
  mix_variable *a = VARIABLE(MIX_FLOAT32, "a", 1, 2), *b = VARIABLE(MIX_FLOAT32, "b", 1, 2);
  mix_optimizer *with = mix_optimizer_from_text("adafactor:learning_rate=5", NULL);
  mix_optimizer *without = mix_optimizer_from_text("adafactor:learning_rate=5,relative_step=false", NULL);
  assert_non_null(strstr(mix_optimizer_get_config(with), "\"relative_step\": true"));
  assert_non_null(strstr(mix_optimizer_get_config(without), "\"relative_step\": false"));
  assert_non_null(
      strstr(mix_optimizer_get_config(mix_adafactor(.no_relative_step = true)), "\"relative_step\": false"));
  for (int step = 0; step < 2; step++) {
    mix_optimizer_apply_gradients(with, mix_list_of(VECTOR(MIX_FLOAT32, 1, 2)), mix_list_of(a));
    mix_optimizer_apply_gradients(without, mix_list_of(VECTOR(MIX_FLOAT32, 1, 2)), mix_list_of(b));
  }
  assert_no_error();
  ASSERT_VALUES(b, 0, value_at(a, 0), value_at(a, 1));
}

int main(void) {
  const struct CMUnitTest tests[] = {TEST(lamb_follows_its_rule), TEST(adafactor_follows_its_rule),
                                     TEST(lamb_of_a_weight_of_zeros), TEST(adafactor_state),
                                     TEST(relative_step_changes_nothing)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
