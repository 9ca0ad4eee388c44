/* Captured functions and training steps on the device xla, against the CPU backend. */
/* Holds docs/NUMERICS.md: The device xla. */
#include "compile/trainer.h"
#include "support/xla.h"

#include "tensor/memory_inside.h"
#include <mixtape/mixtape.h>

static int begin_xla(void **state) {
  if (begin_test(state)) return 1;
  if (xla_device()) mix_set_device(xla_device());
  return mix_error() != MIX_OK;
}
static int end_xla(void **state) {
  mix_synchronize();
  mix_set_global_policy("float32");
  return end_test(state);
}
#define XLA(function) cmocka_unit_test_setup_teardown(function, begin_xla, end_xla)

/* ---- functions ---- */

static mix_list *twice_and_one(void *context, mix_list *arguments) {
  (void)context;
  return mix_list_of(mix_add(mix_multiply(mix_list_get(arguments, 0), scalar(2)), scalar(1)));
}
static void a_function_runs(void **state) {
  (void)state;
  XLA_OR_SKIP();
  mix_function *function = mix_function_new(twice_and_one, NULL);
  for (int i = 0; i < 3; i++) {
    mix_list *results = mix_function_call(function, mix_list_of(vec(MIX_FLOAT32, 1, -2, 0.5 * i)));
    no_error();
    assert_string_equal(mix_tensor_value(mix_list_get(results, 0))->memory->device->name, "xla");
    has_values(mix_list_get(results, 0), 3, -3, 1 + i);
    /* a result is an argument, without the host between */
    results = mix_function_call(function, mix_list_of(mix_list_get(results, 0)));
    has_values(mix_list_get(results, 0), 7, -5, 3 + 2 * i);
  }
  assert_non_null(strstr(mix_function_dump(function, "plan"), "plans by itself"));
}

/* Many runs begin before anything is read. */
static mix_list *count_up(void *variable, mix_list *arguments) {
  mix_variable_assign_add(variable, mix_list_get(arguments, 0));
  return mix_list_of(mix_square(mix_variable_value(variable)));
}
static void runs_queue_up(void **state) {
  (void)state;
  XLA_OR_SKIP();
  mix_variable *v = variable("v", vec(MIX_FLOAT32, 0, 1));
  mix_function *function = mix_function_new(count_up, v);
  mix_tensor *early = NULL;
  for (int i = 0; i < 300; i++) {
    mix_list *results = mix_function_call(function, mix_list_of(vec(MIX_FLOAT32, 1, 2)));
    if (i == 9) early = mix_list_get(results, 0);
  }
  no_error();
  variable_has(v, 300, 601);
  has_values(early, 100, 441);
  assert_int_equal(mix_synchronize(), MIX_OK);
}

/* Variables move with the device of each call; readers keep what they read. */
static void variables_follow_the_device(void **state) {
  (void)state;
  XLA_OR_SKIP();
  const char *const devices[] = {"xla", "cpu", "xla", "ref", "xla", "xla"};
  mix_variable *v = variable("v", vec(MIX_FLOAT32, 0, 1));
  mix_function *function = mix_function_new(count_up, v);
  mix_tensor *read[COUNT(devices)];
  for (int i = 0; i < COUNT(devices); i++) {
    assert_int_equal(mix_set_device(devices[i]), MIX_OK);
    read[i] = mix_variable_value(v);
    mix_function_call(function, mix_list_of(vec(MIX_FLOAT32, 1, 1)));
    no_error();
  }
  for (int i = 0; i < COUNT(devices); i++) has_values(read[i], i, i + 1);
  variable_has(v, 6, 7);
  mix_variable_assign(v, vec(MIX_FLOAT32, 50, 60));
  mix_function_call(function, mix_list_of(vec(MIX_FLOAT32, 1, 1)));
  variable_has(v, 51, 61);
}

/* ---- steps by hand ---- */

/* The decisions are the CPU's, and a skipped step writes nothing. */
static void a_step_with_skips_is_the_cpus(void **state) {
  (void)state;
  XLA_OR_SKIP();
  trainer t = new_trainer(), other = new_trainer();
  mix_function *step = mix_function_new(train_step, &t),
               *expected_step = mix_function_new(train_step, &other);
  const double numbers[] = {0, 0, INFINITY, 0, NAN, 0};
  for (int i = 0; i < COUNT(numbers); i++) {
    mix_list *arguments = mix_list_of(batch(5, numbers[i]), labels(5, i % 3));
    mix_set_device("xla");
    const bytes before = bytes_of(&t);
    mix_list *results = mix_function_call(step, arguments);
    no_error();
    mix_set_device("cpu");
    mix_list *expected = mix_function_call(expected_step, arguments);
    const double loss = mix_tensor_item(mix_list_get(results, 0)),
                 wanted = mix_tensor_item(mix_list_get(expected, 0));
    assert_true(fabs(loss - wanted) <= 1e-6 * fabs(wanted) || (isnan(loss) && isnan(wanted)));
    const bytes after = bytes_of(&t), theirs = bytes_of(&other);
    assert_int_equal(after.iterations, theirs.iterations);
    assert_int_equal(after.skipped, theirs.skipped);
    if (after.skipped != before.skipped)
      assert_memory_equal(after.kernel, before.kernel, sizeof after.kernel);
    const float *a = (const float *)(const void *)after.kernel,
                *b = (const float *)(const void *)theirs.kernel;
    for (int k = 0; k < 12; k++) assert_true(fabsf(a[k] - b[k]) <= 1e-6f); /* |w| <= 1, a few roundings */
  }
}

/* A value error is reported once; no run that began before then writes a variable, all after it do. */
static void the_error_word_latches(void **state) {
  (void)state;
  XLA_OR_SKIP();
  trainer t = new_trainer();
  mix_function *step = mix_function_new(train_step, &t);
  for (int i = 0; i < 3; i++) {
    mix_function_call(step, mix_list_of(batch(5, 0), labels(5, 0)));
    mix_function_call(step, mix_list_of(batch(5, 0), labels(5, 7)));
    mix_function_call(step, mix_list_of(batch(5, 0), labels(5, 0)));
    no_error();
    assert_int_equal(mix_synchronize(), MIX_VALUE_ERROR);
    expect_error(MIX_VALUE_ERROR, "sparse_softmax_cross_entropy", "model/loss", "label 7 (element 0)",
                 "[0, 3)");
    assert_int_equal(mix_synchronize(), MIX_OK);
    variable_has(t.iterations, 2 * i + 1);
    mix_function_call(step, mix_list_of(batch(5, 0), labels(5, 0)));
    variable_has(t.iterations, 2 * i + 2);
  }
  /* reading what a run wrote reports it as well */
  mix_function_call(step, mix_list_of(batch(5, 0), labels(5, -1)));
  no_error();
  mix_tensor_item(mix_variable_value(t.iterations));
  expect_error(MIX_VALUE_ERROR, "label -1 (element 0)");
  variable_has(t.iterations, 6);
}

/* A callback that has failed can still report its loss; what a run met stays to be reported. */
static void values_are_read_while_an_error_is_pending(void **state) {
  (void)state;
  XLA_OR_SKIP();
  trainer t = new_trainer();
  mix_function *step = mix_function_new(train_step, &t);
  mix_list *results = mix_function_call(step, mix_list_of(batch(5, 0), labels(5, 0)));
  mix_function_call(step, mix_list_of(batch(5, 0), labels(5, 7)));
  no_error();
  mix_fail(MIX_RUNTIME_ERROR, "a callback fails");
  const double loss = mix_tensor_item(mix_list_get(results, 0));
  assert_true(loss > 0 && isfinite(loss));
  expect_error(MIX_RUNTIME_ERROR, "a callback fails");
  assert_int_equal(mix_synchronize(), MIX_VALUE_ERROR);
  expect_error(MIX_VALUE_ERROR, "label 7 (element 0)");
}

/* ---- donated steps of a model ---- */

typedef struct training {
  mix_model *model;
  mix_loss *loss;
  mix_optimizer *optimizer;
} training;

static mix_list *model_step(void *context, mix_list *arguments) {
  training *t = context;
  mix_list *weights = mix_model_trainable_variables(t->model);
  mix_tape *tape = mix_tape_begin();
  mix_tensor *predictions = mix_model_call(t->model, mix_list_get(arguments, 0), .training = MIX_TRUE);
  mix_tensor *loss = mix_loss_call(t->loss, mix_list_get(arguments, 1), predictions),
             *scaled = mix_optimizer_scale_loss(t->optimizer, loss);
  mix_tape_end(tape);
  mix_optimizer_apply(t->optimizer, mix_tape_gradient(tape, scaled, weights), weights);
  return mix_list_of(loss);
}

static training new_training(const char *policy, int units) {
  mix_set_global_policy(policy);
  mix_set_seed(7);
  mix_clear_names();
  mix_tensor *input = mix_input(.shape = MIX_SHAPE(784), .name = "digits");
  mix_tensor *x = mix_call(mix_dense(.units = units, .activation = "relu"), input);
  x = mix_call(mix_dense(.units = units, .activation = "relu"), x);
  x = mix_call(mix_activation("softmax", .dtype = "float32"), mix_call(mix_dense(.units = 10), x));
  training t = {.model = mix_model_new(input, x),
                .loss = mix_sparse_categorical_crossentropy(),
                .optimizer = mix_optimizer_from_name("sgd")};
  if (!strcmp(policy, "mixed_float16")) t.optimizer = mix_loss_scale_optimizer(t.optimizer);
  no_error();
  return t;
}

enum { BATCH = 64, STEPS = 6 };
static mix_list *digits_batch(int number) {
  mix_images digits = mix_digits_load();
  return mix_list_of(mix_slice(digits.x_train, MIX_SHAPE(number * BATCH, 0), MIX_SHAPE(BATCH, 784)),
                     mix_slice(digits.y_train, MIX_SHAPE(number * BATCH), MIX_SHAPE(BATCH)));
}

/* Of weight w, before and after the steps. */
static double *numbers_of(const training *t, int w, int64_t *count) {
  mix_tensor *value = mix_variable_true_value(mix_list_get(mix_model_trainable_variables(t->model), w));
  *count = mix_shape_size(mix_tensor_shape(value));
  double *numbers = malloc(sizeof *numbers * (size_t)(*count + 1));
  mix_tensor_read(value, MIX_FLOAT64, numbers, *count);
  no_error();
  return numbers;
}
static double distance(const double *a, const double *b, int64_t count) {
  double sum = 0;
  for (int64_t i = 0; i < count; i++) sum += (a[i] - b[i]) * (a[i] - b[i]);
  return sqrt(sum);
}

/* Weights of steps of 256 units, in which XLA's own products of donated weights went wrong. Each device
 * rounds in its own order: a gradient differs by a unit of its dtype at most where sums are near a midpoint,
 * and by 784 roundings of float32. So weights differ by no more than that part of how far they went. */
static void compare_steps(const char *policy, double unit) {
  training here = new_training(policy, 256), there = new_training(policy, 256);
  mix_function *on_cpu = mix_function_new(model_step, &here), *on_xla = mix_function_new(model_step, &there);
  double *began[6];
  int64_t count;
  for (int w = 0; w < 6; w++) began[w] = numbers_of(&here, w, &count);
  for (int i = 0; i < STEPS; i++) {
    mix_list *arguments = digits_batch(i);
    mix_set_device("cpu");
    const double expected = mix_tensor_item(mix_list_get(mix_function_call(on_cpu, arguments), 0));
    mix_set_device("xla");
    const double loss = mix_tensor_item(mix_list_get(mix_function_call(on_xla, arguments), 0));
    no_error();
    if (!(fabs(loss - expected) <= unit * expected))
      fail_msg("step %d: %.9g, the CPU's %.9g", i, loss, expected);
  }
  for (int w = 0; w < 6; w++) {
    double *cpu = numbers_of(&here, w, &count), *xla = numbers_of(&there, w, &count);
    const double went = distance(cpu, began[w], count), apart = distance(cpu, xla, count);
    print_message("%s, weight %d: %.1e of the way\n", policy, w, apart / went);
    if (!(went > 0 && apart <= unit * went)) fail_msg("weight %d went %g and is %g apart", w, went, apart);
    free(cpu);
    free(xla);
    free(began[w]);
  }
}
static void donated_steps_in_float32(void **state) {
  (void)state;
  XLA_OR_SKIP();
  compare_steps("float32", 784 * 0x1p-24);
}
static void donated_steps_in_mixed_float16(void **state) {
  (void)state;
  XLA_OR_SKIP();
  compare_steps("mixed_float16", 0x1p-10);
}
static void donated_steps_in_mixed_bfloat16(void **state) {
  (void)state;
  XLA_OR_SKIP();
  compare_steps("mixed_bfloat16", 0x1p-7);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      XLA(a_function_runs),
      XLA(runs_queue_up),
      XLA(variables_follow_the_device),
      XLA(a_step_with_skips_is_the_cpus),
      XLA(the_error_word_latches),
      XLA(values_are_read_while_an_error_is_pending),
      XLA(donated_steps_in_float32),
      XLA(donated_steps_in_mixed_float16),
      XLA(donated_steps_in_mixed_bfloat16),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
