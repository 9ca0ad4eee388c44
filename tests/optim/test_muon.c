/* Muon against loops over doubles, and whose variables are whose. The recorded runs are in
 * test_recorded_optimizers.c. */
/* Holds docs/NUMERICS.md: Optimizers. */
#include "optim/support.h"

enum { ROWS = 3, COLUMNS = 2, SIZE = ROWS * COLUMNS };
static const double start[SIZE] = {1, -2, 0.5, 0.25, -0.75, 3};
static const double gradients[2][SIZE] = {{0.5, -0.25, 0.125, 1, -1, 0.5}, {0.5, 0.25, -0.125, 2, 1, -0.5}};

/* O03 for a matrix with more rows than columns: the iteration runs on its transpose. */
static void orthogonalize(int steps, const double *in, double *out) {
  double x[COLUMNS][ROWS], sum = 0;
  for (int i = 0; i < SIZE; i++) sum += in[i] * in[i];
  for (int i = 0; i < SIZE; i++) x[i % COLUMNS][i / COLUMNS] = in[i] / (sqrt(sum) + 1e-7);
  for (int s = 0; s < steps; s++) {
    double a[COLUMNS][COLUMNS] = {{0}}, b[COLUMNS][COLUMNS], next[COLUMNS][ROWS];
    for (int i = 0; i < COLUMNS; i++)
      for (int j = 0; j < COLUMNS; j++)
        for (int k = 0; k < ROWS; k++) a[i][j] += x[i][k] * x[j][k];
    for (int i = 0; i < COLUMNS; i++)
      for (int j = 0; j < COLUMNS; j++) {
        b[i][j] = -4.775 * a[i][j];
        for (int k = 0; k < COLUMNS; k++) b[i][j] += 2.0315 * a[i][k] * a[k][j];
      }
    for (int i = 0; i < COLUMNS; i++)
      for (int j = 0; j < ROWS; j++) {
        next[i][j] = 3.4445 * x[i][j];
        for (int k = 0; k < COLUMNS; k++) next[i][j] += b[i][k] * x[k][j];
      }
    memcpy(x, next, sizeof x);
  }
  for (int i = 0; i < SIZE; i++) out[i] = x[i % COLUMNS][i / COLUMNS];
}

static mix_variable *matrix(const char *name) {
  return mix_variable_new(mix_tensor_from_doubles(start, MIX_FLOAT64, MIX_SHAPE(ROWS, COLUMNS)),
                          .name = name);
}
static mix_tensor *gradient(int step) {
  return mix_tensor_from_doubles(gradients[step], MIX_FLOAT64, MIX_SHAPE(ROWS, COLUMNS));
}

/* O02, O03 and O05: two steps with each form of the momentum and of the scale. */
static void matrices_follow_the_rule(void **unused) {
  (void)unused;
  for (int nesterov = 0; nesterov < 2; nesterov++)
    for (int scaled = 0; scaled < 2; scaled++)
      MIX_SCOPE {
        mix_variable *kernel = matrix("fc1/kernel");
        mix_optimizer *optimizer =
            mix_muon(.learning_rate = 0.125, .weight_decay = 0.5, .momentum = 0.75, .ns_steps = 3,
                     .no_nesterov = !nesterov, .rms_rate = scaled ? 0 : MIX_ZERO,
                     .semantics = mix_semantics_named("keras3"));
        double w[SIZE], m[SIZE] = {0}, direction[SIZE], step[SIZE];
        memcpy(w, start, sizeof w);
        for (int t = 0; t < 2; t++) {
          mix_optimizer_apply_gradients(optimizer, mix_list_of(gradient(t)), mix_list_of(kernel));
          for (int i = 0; i < SIZE; i++) {
            m[i] = 0.75 * m[i] + gradients[t][i];
            direction[i] = nesterov ? gradients[t][i] + 0.75 * m[i] : m[i];
          }
          orthogonalize(3, direction, step);
          for (int i = 0; i < SIZE; i++)
            w[i] = w[i] * (1 - 0.5 * 0.125) - 0.125 * step[i] * (scaled ? sqrt(ROWS) * 0.2 : 1);
        }
        assert_no_error();
        for (int i = 0; i < SIZE; i++) assert_near(value_at(kernel, i), w[i], 1e-12);
      }
}

/* O01 and O06: who has a velocity, and in which order. */
static void who_is_adams(void **unused) {
  (void)unused;
  static const struct {
    const char *rule, *name;
    bool adams;
  } rows[] = {{"muon", "fc1/kernel", false},
              {"muon", "my_Embedding/table", true},
              {"muon:exclude_embeddings=false", "my_Embedding/table", false},
              {"muon:exclude_layers=fc\\d", "net/fc1/kernel", true},
              {"muon:exclude_layers=out;^fc1", "fc1/kernel", true},
              {"muon:exclude_layers=out;^fc1", "net/fc1/kernel", false}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    MIX_SCOPE {
      mix_variable *kernel = matrix(rows[i].name), *bias = VARIABLE(MIX_FLOAT64, "fc1/bias", 1, 2);
      mix_optimizer *optimizer = mix_optimizer_from_text(rows[i].rule, mix_semantics_named("keras3"));
      mix_optimizer_build(optimizer, mix_list_of(kernel, bias));
      assert_no_error();
      assert_int_equal(mix_optimizer_slot(optimizer, kernel, "velocity") != NULL, rows[i].adams);
      assert_non_null(mix_optimizer_slot(optimizer, bias, "velocity"));
      mix_list *state = mix_optimizer_variables(optimizer);
      assert_int_equal(mix_list_count(state), rows[i].adams ? 6 : 5);
      assert_ptr_equal(mix_list_get(state, 2), mix_optimizer_slot(optimizer, kernel, "momentum"));
      assert_ptr_equal(mix_list_get(state, rows[i].adams ? 4 : 3),
                       mix_optimizer_slot(optimizer, bias, "momentum"));
    }
}

/* O04 and O05: Adam's part has the numbers of AdamW with its rate and decay. */
static void the_others_follow_adam(void **unused) {
  (void)unused;
  mix_variable *bias = VARIABLE(MIX_FLOAT64, "fc1/bias", 1, -2, 0.5),
               *twin = VARIABLE(MIX_FLOAT64, "b", 1, -2, 0.5);
  mix_optimizer *muon = mix_muon(.learning_rate = 0.25, .adam_lr_ratio = 0.5, .adam_weight_decay = 0.125,
                                 .weight_decay = MIX_ZERO, .semantics = mix_semantics_named("keras3"));
  mix_optimizer *adam =
      mix_adamw(.learning_rate = 0.125, .weight_decay = 0.25, .semantics = mix_semantics_named("keras3"));
  for (int t = 0; t < 3; t++) {
    mix_tensor *g = VECTOR(MIX_FLOAT64, 0.5 + t, -0.25, 0.125 * t);
    mix_optimizer_apply_gradients(muon, mix_list_of(g), mix_list_of(bias));
    mix_optimizer_apply_gradients(adam, mix_list_of(g), mix_list_of(twin));
  }
  assert_no_error();
  for (int i = 0; i < 3; i++) assert_near(value_at(bias, i), value_at(twin, i), 1e-15);
}

static void its_config_goes_both_ways(void **unused) {
  (void)unused;
  static const char *const layers[] = {"fc1", "\\d+x", NULL};
  mix_optimizer *optimizer =
      mix_muon(.exclude_layers = layers, .rms_rate = MIX_ZERO, .adam_weight_decay = MIX_ZERO,
               .weight_decay = MIX_ZERO, .ns_steps = 3, .semantics = mix_semantics_named("keras3"));
  const char *text = mix_optimizer_serialize(optimizer);
  assert_no_error();
  static const char *const parts[] = {"\"exclude_layers\": [\"fc1\", \"\\\\d+x\"]",
                                      "\"rms_rate\": null",
                                      "\"adam_weight_decay\": null",
                                      "\"weight_decay\": null",
                                      "\"ns_steps\": 3",
                                      "\"nesterov\": true"};
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
    if (!strstr(text, parts[i])) fail_msg("no %s in %s", parts[i], text);
  mix_optimizer *again = mix_optimizer_deserialize(text, mix_semantics_named("keras3"));
  assert_no_error();
  assert_string_equal(mix_optimizer_serialize(again), mix_optimizer_serialize(optimizer));
}

static void bad_options_are_named(void **unused) {
  (void)unused;
  static const struct {
    const char *rule, *part;
  } rows[] = {{"muon:exclude_layers=fc(", "exclude_layers: 'fc(' is no valid regular expression"},
              {"muon:ns_steps=-1", "ns_steps is -1"},
              {"muon:rms_rate=-2", "rms_rate is -2"},
              {"schedulefreeadamw:beta_1=0", "beta_1 is 0"},
              {"schedulefreeadamw:warmup_steps=-1", "warmup_steps is -1"}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    assert_null(mix_optimizer_from_text(rows[i].rule, mix_semantics_named("keras3")));
    if (!strstr(mix_error_message(), rows[i].part)) fail_msg("%s: %s", rows[i].rule, mix_error_message());
    ASSERT_ERROR(MIX_VALUE_ERROR);
  }
  assert_null(mix_optimizer_from_config("Muon", "{\"exclude_layers\": [1]}", mix_semantics_named("keras3")));
  ASSERT_ERROR(MIX_TYPE_ERROR);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(matrices_follow_the_rule),
                                     cmocka_unit_test(who_is_adams), cmocka_unit_test(the_others_follow_adam),
                                     cmocka_unit_test(its_config_goes_both_ways),
                                     cmocka_unit_test(bad_options_are_named)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
