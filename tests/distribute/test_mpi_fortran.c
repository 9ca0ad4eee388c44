/* examples/17_fortran.f90 under mpirun of each flavour: a Fortran program with a communicator of its own. */
#include "distribute/ranks.h"

/* The example of this flavour; skips where it was not built. */
static const char *example(void) {
  static char path[512];
  const char *folder = getenv("MIXTAPE_EXAMPLES_DIR");
  snprintf(path, sizeof path, "%s/17_fortran.%s", folder ? folder : "", flavor);
  if (access(path, X_OK) != 0)
    SKIP("the Fortran example for %s was not built: scripts/bootstrap --check installs gfortran", flavor);
  return path;
}

static double number_behind(const char *label) {
  assert_has(program_out, label);
  return strtod(strstr(program_out, label) + strlen(label), NULL);
}

/* A model as a user of Keras would bring it: two inputs, two outputs. */
static void save_start(const char *path) {
  MIX_SCOPE {
    mix_set_seed(5);
    mix_tensor *inputs = mix_input(.shape = MIX_SHAPE(2));
    mix_tensor *x = mix_call(mix_dense(32, "tanh"), inputs);
    mix_model_save(mix_model_new(inputs, mix_call(mix_dense(2), x)), path);
    assert_int_equal(mix_error(), MIX_OK);
  }
}

/* What the example's `integrate` does to an angle and a velocity. */
static void integrate(float *state) {
  for (int i = 0; i < 20; i++) {
    state[1] -= 0.02f * sinf(state[0]);
    state[0] += 0.02f * state[1];
  }
}

enum { STATES = 25 };

/* Rows of C, (angle, velocity): the network has learned them in this order. The states that it was trained on
 * reach 1.5; a network of this size is within a fifth of that, and one with turned axes is not. */
static void check_learned(const char *path) {
  float states[STATES][2], results[STATES][2], predicted[STATES][2];
  for (int i = 0; i < STATES; i++) {
    states[i][0] = results[i][0] = (float)(i % 5) / 4 - 0.5f;
    states[i][1] = results[i][1] = (float)(i / 5) / 4 - 0.5f;
    integrate(results[i]);
  }
  MIX_SCOPE {
    mix_model *model = mix_model_load(path);
    mix_list *outputs = mix_model_predict(model, mix_tensor_from(states, MIX_FLOAT32, MIX_SHAPE(STATES, 2)));
    assert_int_equal(mix_tensor_read(mix_list_get(outputs, 0), MIX_FLOAT32, predicted, 2 * STATES), MIX_OK);
    for (int i = 0; i < STATES; i++)
      for (int j = 0; j < 2; j++) assert_true(fabsf(predicted[i][j] - results[i][j]) < 0.3f);
  }
}

/* 150 steps on new states: too few for the loss scale to grow, and none overflows. */
static void check_example(int ranks) {
  const char *program = example();
  char start[512], end[512], arguments[1200];
  snprintf(start, sizeof start, "%s/start.keras", test_folder);
  snprintf(end, sizeof end, "%s/end.keras", test_folder);
  snprintf(arguments, sizeof arguments, "'%s' '%s'", start, end);
  if (ranks == 3) save_start(start); /* else the example makes one */
  assert_code(run_ranks(ranks, program, arguments), 0);
  assert_int_equal(access(start, R_OK), 0);
  assert_true(number_behind("step 150: loss ") < 0.05 * number_behind("step 1: loss "));
  assert_true(number_behind("loss scale ") == 32768);
  assert_true(number_behind("largest error ") < 0.3);
  check_learned(end);
}
CASES(example)

/* Errors reach Fortran as status and message. MPI_Abort ends the job. */
static void check_errors(int ranks) {
  char arguments[1200], path[512];
  assert_true(run_ranks(ranks, example(), "only_one.keras") != 0);
  assert_has(program_err, "usage: 17_fortran START.keras END.keras");
  snprintf(path, sizeof path, "%s/damaged.keras", test_folder);
  FILE *file = fopen(path, "w");
  assert_non_null(file);
  fputs("no model", file);
  fclose(file);
  snprintf(arguments, sizeof arguments, "'%s' '%s/end.keras'", path, test_folder);
  assert_true(run_ranks(ranks, example(), arguments) != 0);
  assert_has(program_err, "FormatError: ");
  assert_has(program_err, "damaged.keras");
}
CASES(errors)

int main(void) {
  const struct CMUnitTest tests[] = {ROWS(example) ROWS(errors)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
