/* The automatic graph rewrite enabled by its public calls (docs/spec/mixed_precision.md, 7.1), and training
 * under it. */
/* Holds docs/NUMERICS.md: The automatic rewrite. */
#include "model/support.h"

static char warnings[1 << 12];
static int converted_products, products; /* log lines with a MatMul */

static void listen(void *context, mix_log_level level, const char *message) {
  (void)context;
  size_t used = strlen(warnings);
  if (level == MIX_LOG_WARNING) snprintf(warnings + used, sizeof warnings - used, "%s\n", message);
  if (strncmp(message, "amp: ", 5) != 0 || !strstr(message, " MatMul ")) return;
  products++;
  converted_products += strstr(message, " float32   float16 ") != NULL;
}

static int begin(void **state) {
  warnings[0] = 0;
  products = converted_products = 0;
  mix_error_clear();
  mix_set_log_callback(listen, NULL);
  mix_set_seed(11);
  *state = mix_scope_begin();
  return 0;
}
static int end(void **state) {
  unsetenv("MIXTAPE_VERBOSE");
  mix_error_clear();
  mix_set_graph_rewrite(NULL);
  if (mix_graph_rewrite_enabled()) mix_disable_mixed_precision_graph_rewrite();
  mix_set_global_policy("float32");
  mix_set_log_callback(NULL, NULL);
  mix_scope_end(*state);
  return 0;
}
#define REWRITE_TEST(function) cmocka_unit_test_setup_teardown(function, begin, end)

static void section_7_1_what_enable_makes_of_the_loss_scale(void **state) {
  (void)state;
  mix_optimizer *inner = mix_sgd(), *optimizer = mix_enable_mixed_precision_graph_rewrite(inner);
  assert_no_error();
  assert_true(mix_graph_rewrite_enabled());
  assert_int_equal(mix_graph_rewrite_dtype(), MIX_FLOAT16);
  assert_ptr_equal(mix_optimizer_inner(optimizer), inner);
  assert_true(mix_optimizer_dynamic(optimizer) && mix_optimizer_initial_scale(optimizer) == 32768);
  assert_int_equal(mix_optimizer_dynamic_growth_steps(optimizer), 2000);

  optimizer = mix_enable_mixed_precision_graph_rewrite(mix_sgd(), .fixed_loss_scale = 128);
  assert_false(mix_optimizer_dynamic(optimizer));
  assert_true(mix_optimizer_initial_scale(optimizer) == 128);
  optimizer = mix_enable_mixed_precision_graph_rewrite(mix_sgd(), .loss_scale = mix_fixed_loss_scale(64));
  assert_false(mix_optimizer_dynamic(optimizer));
  assert_true(mix_optimizer_initial_scale(optimizer) == 64);
  optimizer = mix_enable_mixed_precision_graph_rewrite(
      mix_sgd(), .loss_scale = mix_dynamic_loss_scale(.initial_loss_scale = 256, .increment_period = 7));
  assert_no_error();
  assert_true(mix_optimizer_dynamic(optimizer) && mix_optimizer_initial_scale(optimizer) == 256);
  assert_int_equal(mix_optimizer_dynamic_growth_steps(optimizer), 7);

  assert_int_equal(mix_disable_mixed_precision_graph_rewrite(), MIX_OK);
  assert_false(mix_graph_rewrite_enabled());
  assert_int_equal(mix_graph_rewrite_dtype(), MIX_DTYPE_NONE);
  assert_true(mix_optimizer_scales_loss(optimizer)); /* it stays wrapped */
  assert_string_equal(warnings, "");
  assert_int_equal(mix_disable_mixed_precision_graph_rewrite(), MIX_OK);
  assert_non_null(strstr(warnings, "not enabled"));
}

/* An error changes neither the flag nor the optimizer. */
static void section_7_1_refusals_change_nothing(void **state) {
  (void)state;
  mix_optimizer *wrapped = mix_loss_scale_optimizer(mix_sgd()), *sgd = mix_sgd();
  assert_null(mix_enable_mixed_precision_graph_rewrite(NULL));
  assert_error(MIX_VALUE_ERROR, "the optimizer is NULL");
  assert_null(mix_enable_mixed_precision_graph_rewrite((mix_optimizer *)mix_list_new(0, NULL)));
  assert_error(MIX_VALUE_ERROR, "the optimizer is another object");
  assert_null(mix_enable_mixed_precision_graph_rewrite(wrapped));
  assert_error(MIX_VALUE_ERROR, "is a LossScaleOptimizer around SGD");
  assert_null(
      mix_enable_mixed_precision_graph_rewrite(sgd, .loss_scale = mix_dynamic_loss_scale(.multiplier = 4)));
  assert_error(MIX_VALUE_ERROR, "multiplier of the loss scale is 4");
  assert_null(mix_enable_mixed_precision_graph_rewrite(sgd, .loss_scale = mix_fixed_loss_scale(2),
                                                       .fixed_loss_scale = 2));
  assert_error(MIX_VALUE_ERROR, "give one of them");
  mix_set_global_policy("mixed_bfloat16");
  assert_null(mix_enable_mixed_precision_graph_rewrite(sgd));
  assert_error(MIX_VALUE_ERROR, "a mixed policy is in force");
  assert_false(mix_graph_rewrite_enabled());
  assert_int_equal(mix_graph_rewrite_dtype(), MIX_DTYPE_NONE);
  mix_set_global_policy("float32");
  assert_non_null(mix_enable_mixed_precision_graph_rewrite(sgd));
  assert_int_equal(mix_set_global_policy("mixed_bfloat16"), MIX_VALUE_ERROR);
  assert_error(MIX_VALUE_ERROR, "mix_disable_mixed_precision_graph_rewrite");
  assert_int_equal(mix_set_graph_rewrite("float64"), MIX_VALUE_ERROR);
  assert_error(MIX_VALUE_ERROR, "\"float64\"");
  assert_int_equal(mix_set_graph_rewrite("bfloat16"), MIX_OK);
  assert_int_equal(mix_graph_rewrite_dtype(), MIX_BFLOAT16);
}

/* d(w w)/dw at 3, by the user's own tape: with the wrapper's own methods, or without. */
static mix_list *raw_gradient(void *context, mix_list *arguments) {
  mix_variable *w = ((void **)context)[0];
  mix_optimizer *optimizer = ((void **)context)[1];
  (void)arguments;
  mix_tape *tape = mix_tape_begin(.persistent = true);
  mix_tensor *loss = mix_square(mix_variable_value(w)),
             *scaled = mix_optimizer_get_scaled_loss(optimizer, loss);
  mix_tape_end(tape);
  mix_list *raw = mix_tape_gradient(tape, loss, mix_list_of(w)),
           *scaled_gradients = mix_tape_gradient(tape, scaled, mix_list_of(w));
  return mix_list_of(mix_list_get(raw, 0), mix_list_get(scaled_gradients, 0));
}

static void section_7_1_gradients_of_a_tape_are_not_scaled(void **state) {
  (void)state;
  mix_optimizer *optimizer = mix_enable_mixed_precision_graph_rewrite(mix_sgd(), .fixed_loss_scale = 128);
  mix_variable *w = mix_variable_new(mix_scalar(3, MIX_FLOAT32), .name = "w");
  void *context[] = {w, optimizer};
  mix_list *gradients = mix_function_call(mix_function_new(raw_gradient, context), NULL);
  assert_no_error();
  assert_true(mix_tensor_item(mix_list_get(gradients, 0)) == 6);
  assert_true(mix_tensor_item(mix_list_get(gradients, 1)) == 6 * 128);
}

/* Only functions are rewritten: an eager product keeps float32's precision, in a function it has
 * float16's. */
static mix_list *third(void *context, mix_list *arguments) {
  (void)context;
  return mix_list_of(mix_matmul(mix_list_get(arguments, 0), mix_list_get(arguments, 1), false, false));
}

static void section_7_1_only_functions_are_rewritten(void **state) {
  (void)state;
  assert_non_null(mix_enable_mixed_precision_graph_rewrite(mix_sgd()));
  const float numbers[] = {1 + 1.0f / 4096}; /* 1 in float16 */
  mix_tensor *a = mix_tensor_from(numbers, MIX_FLOAT32, MIX_SHAPE(1, 1));
  mix_list *pair = mix_list_of(a, a);
  assert_true(mix_tensor_item(mix_list_get(third(NULL, pair), 0)) == (double)(numbers[0] * numbers[0]));
  assert_true(mix_tensor_item(mix_list_get(mix_function_call(mix_function_new(third, NULL), pair), 0)) == 1);
  assert_no_error();
}

/* TensorFlow only warns of graphs made before the call. Here such a function is captured again, and once more
 * when the rewrite is disabled. */
static void section_7_1_functions_of_before(void **state) {
  (void)state;
  const float numbers[] = {1 + 1.0f / 4096};
  mix_tensor *a = mix_tensor_from(numbers, MIX_FLOAT32, MIX_SHAPE(1, 1));
  mix_list *pair = mix_list_of(a, a);
  mix_function *function = mix_function_new(third, NULL);
  const double whole = (double)(numbers[0] * numbers[0]);
  assert_true(mix_tensor_item(mix_list_get(mix_function_call(function, pair), 0)) == whole);
  assert_non_null(mix_enable_mixed_precision_graph_rewrite(mix_sgd()));
  assert_true(mix_tensor_item(mix_list_get(mix_function_call(function, pair), 0)) == 1);
  assert_int_equal(mix_disable_mixed_precision_graph_rewrite(), MIX_OK);
  assert_true(mix_tensor_item(mix_list_get(mix_function_call(function, pair), 0)) == whole);
  assert_no_error();
}

/* ---- ways to compute gradients ---- */

/* mean(x w) 2^-26 at x = w = 1: the gradient of the product is 2^-26, which is 0 in float16; times 2^15 it is
 * representable. */
typedef struct tiny {
  mix_variable *w;
  mix_optimizer *optimizer;
  mix_tensor *x;
  int way;
} tiny;

static mix_tensor *tiny_loss(void *context) {
  tiny *t = context;
  mix_tensor *mean =
      mix_reduce_mean(mix_matmul(t->x, mix_variable_value(t->w), false, false), MIX_ALL_AXES, false);
  return mix_multiply(mean, mix_scalar(0x1p-26, MIX_FLOAT32));
}

enum { MINIMIZE, MINIMIZE_FUNCTION, COMPUTE, COMPUTE_OF, OWN_METHODS, SCALED_WAYS, RAW = SCALED_WAYS, WAYS };

static mix_list *tiny_step(void *context, mix_list *arguments) {
  tiny *t = context;
  t->x = mix_list_get(arguments, 0);
  mix_list *variables = mix_list_of(t->w), *gradients = NULL;
  mix_tape *tape = mix_tape_begin();
  mix_tensor *loss = tiny_loss(t);
  mix_tensor *scaled = t->way == OWN_METHODS ? mix_optimizer_get_scaled_loss(t->optimizer, loss) : NULL;
  mix_tape_end(tape);
  switch (t->way) {
  case MINIMIZE: mix_optimizer_minimize(t->optimizer, loss, tape, variables); return mix_list_of(loss);
  case MINIMIZE_FUNCTION:
    mix_optimizer_minimize_function(t->optimizer, tiny_loss, t, variables);
    return mix_list_of(loss);
  case COMPUTE: gradients = mix_optimizer_compute_gradients(t->optimizer, loss, tape, variables); break;
  case COMPUTE_OF:
    gradients = mix_optimizer_compute_gradients_of(t->optimizer, tiny_loss, t, variables);
    break;
  case OWN_METHODS:
    gradients =
        mix_optimizer_get_unscaled_gradients(t->optimizer, mix_tape_gradient(tape, scaled, variables));
    break;
  default: gradients = mix_tape_gradient(tape, loss, variables);
  }
  mix_optimizer_apply_gradients(t->optimizer, gradients, variables);
  return mix_list_of(loss);
}

/* w after one step of SGD with rate 2^20, with the gradients computed in that way. */
static double after_a_step(int way, bool function, mix_optimizer *optimizer) {
  mix_tensor *one = mix_fill(MIX_SHAPE(1, 1), 1, MIX_FLOAT32);
  tiny t = {.w = mix_variable_new(one, .name = "w"), .optimizer = optimizer, .way = way};
  mix_list *arguments = mix_list_of(one);
  if (function)
    mix_function_call(mix_function_new(tiny_step, &t), arguments);
  else
    tiny_step(&t, arguments);
  assert_no_error();
  return at(mix_variable_true_value(t.w), 0);
}

static void section_7_1_minimize_or_compute_gradients(void **state) {
  (void)state;
  for (int fixed = 0; fixed < 2; fixed++)
    for (int way = 0; way < WAYS; way++) {
      warnings[0] = 0;
      mix_optimizer *optimizer = mix_enable_mixed_precision_graph_rewrite(
          mix_sgd(.learning_rate = 0x1p20), .fixed_loss_scale = fixed ? 0x1p15 : 0);
      const double w = after_a_step(way, true, optimizer);
      if (w != (way == RAW ? 1 : 1 - 0x1p-6)) fail_msg("way %d: w is %.17g", way, w);
      /* Only a step without any scaling gives the warning. */
      assert_true((strstr(warnings, "get_scaled_loss and get_unscaled_gradients") != NULL) == (way == RAW));
      optimizer = mix_enable_mixed_precision_graph_rewrite(mix_sgd(.learning_rate = 0x1p20));
      /* Outside functions nothing is rewritten. */
      assert_true(after_a_step(way, false, optimizer) == 1 - 0x1p-6);
    }
}

/* ---- policies under the rewrite ---- */

static void section_7_1_policies_that_are_not_mixed(void **state) {
  (void)state;
  static const char *const plain[] = {"float32", "float64", "float16", "bfloat16"};
  static const char *const mixed[] = {"mixed_float16", "mixed_bfloat16"};
  for (int g = 0; g < 2; g++) {
    mix_set_semantics(g ? "experimental" : "tf_keras");
    for (int i = 0; i < 4; i++) { /* set before, and after */
      assert_int_equal(mix_set_global_policy(plain[i]), MIX_OK);
      assert_non_null(mix_enable_mixed_precision_graph_rewrite(mix_sgd()));
      assert_int_equal(mix_set_global_policy(plain[3 - i]), MIX_OK);
      for (int m = 0; m < 2; m++) {
        assert_int_equal(mix_set_global_policy(mixed[m]), MIX_VALUE_ERROR);
        mix_error_clear();
        assert_string_equal(mix_policy_name(mix_global_policy()), plain[3 - i]);
      }
      assert_int_equal(mix_disable_mixed_precision_graph_rewrite(), MIX_OK);
    }
    for (int m = 0; m < 2; m++) {
      assert_int_equal(mix_set_global_policy(mixed[m]), MIX_OK);
      assert_null(mix_enable_mixed_precision_graph_rewrite(mix_sgd()));
      assert_error(MIX_VALUE_ERROR, "a mixed policy is in force");
      mix_set_global_policy("float32"); /* clears the record */
      assert_non_null(mix_enable_mixed_precision_graph_rewrite(mix_sgd()));
      assert_int_equal(mix_disable_mixed_precision_graph_rewrite(), MIX_OK);
    }
  }
  mix_set_semantics("tf_keras");
}

/* Setting the option without wrapping does not enable the rewrite: no optimizer is checked, and mixed
 * policies are allowed, with a warning. */
static void section_7_1_the_option_alone(void **state) {
  (void)state;
  assert_int_equal(mix_set_graph_rewrite("float16"), MIX_OK);
  assert_false(mix_graph_rewrite_enabled());
  assert_int_equal(mix_graph_rewrite_dtype(), MIX_FLOAT16);
  assert_int_equal(mix_set_global_policy("float64"), MIX_OK);
  assert_null(strstr(warnings, "together"));
  assert_int_equal(mix_set_global_policy("mixed_float16"), MIX_OK);
  assert_non_null(strstr(warnings, "set_global_policy: a mixed policy and the rewrite"));
  warnings[0] = 0;
  assert_int_equal(mix_set_graph_rewrite(NULL), MIX_OK);
  assert_null(strstr(warnings, "together"));
  assert_int_equal(mix_set_graph_rewrite("float16"), MIX_OK);
  assert_non_null(strstr(warnings, "set_graph_rewrite: a mixed policy and the rewrite"));
  mix_set_global_policy("float32");
  assert_true(after_a_step(RAW, true, mix_sgd(.learning_rate = 0x1p20)) == 1);
  assert_int_equal(mix_set_graph_rewrite(NULL), MIX_OK);
  assert_true(after_a_step(RAW, true, mix_sgd(.learning_rate = 0x1p20)) == 1 - 0x1p-6);
  assert_int_equal(mix_disable_mixed_precision_graph_rewrite(), MIX_OK);
  assert_non_null(strstr(warnings, "not enabled"));
}

/* ---- the wrapper of the experimental generation (6.7) ---- */

/* Applies a gradient, infinite unless `good`. Returns the new w. */
static double stepped(mix_optimizer *optimizer, mix_variable *w, bool good) {
  mix_list *gradients = mix_list_of(mix_fill(MIX_SHAPE(1, 1), good ? 1 : INFINITY, MIX_FLOAT32));
  assert_int_equal(mix_optimizer_apply_gradients(optimizer, gradients, mix_list_of(w)), MIX_OK);
  return at(mix_variable_true_value(w), 0);
}

static void section_6_7_the_wrappers_loss_scaling(void **state) {
  (void)state;
  mix_set_semantics("experimental");
  mix_variable *w = mix_variable_new(mix_fill(MIX_SHAPE(1, 1), 1, MIX_FLOAT32), .name = "w"),
               *unused = mix_variable_new(mix_fill(MIX_SHAPE(1, 1), 1, MIX_FLOAT32), .name = "unused");
  mix_loss_scale *by_four =
      mix_dynamic_loss_scale(.initial_loss_scale = 64, .increment_period = 1, .multiplier = 4);
  mix_optimizer *optimizer =
      mix_enable_mixed_precision_graph_rewrite(mix_sgd(.learning_rate = 0.5), .loss_scale = by_four);
  assert_no_error();
  /* Any multiplier is allowed, and the object itself is used. */
  assert_ptr_equal(mix_optimizer_loss_scale_object(optimizer), by_four);
  /* Dynamic: conditional, and a skipped step does not count. */
  assert_true(stepped(optimizer, w, true) == 0.5 && mix_optimizer_iterations(optimizer) == 1);
  assert_true(mix_tensor_item(mix_optimizer_loss_scale(optimizer)) == 256);
  assert_true(stepped(optimizer, w, false) == 0.5 && mix_optimizer_iterations(optimizer) == 1);
  assert_true(mix_tensor_item(mix_optimizer_loss_scale(optimizer)) == 64);
  /* A variable that the loss does not depend on: NULL stays NULL; all NULL is an error. */
  tiny t = {.w = w, .optimizer = optimizer, .x = mix_fill(MIX_SHAPE(1, 1), 1, MIX_FLOAT32)};
  mix_list *gradients = mix_optimizer_compute_gradients_of(optimizer, tiny_loss, &t, mix_list_of(w, unused));
  assert_no_error();
  assert_true(at(mix_list_get(gradients, 0), 0) == 0x1p-26);
  assert_null(mix_list_get(gradients, 1));
  gradients = mix_optimizer_compute_gradients_of(optimizer, tiny_loss, &t, mix_list_of(unused));
  assert_int_equal(mix_optimizer_apply_gradients(optimizer, gradients, mix_list_of(unused)), MIX_VALUE_ERROR);
  assert_error(MIX_VALUE_ERROR, "no gradient");
  assert_null(mix_optimizer_compute_gradients_of(optimizer, NULL, NULL, mix_list_of(w)));
  assert_error(MIX_TYPE_ERROR, "no function");
  assert_null(mix_optimizer_compute_gradients(NULL, NULL, NULL, NULL));
  assert_error(MIX_TYPE_ERROR, "expected an optimizer and a loss");
  /* Fixed: unconditional. */
  optimizer = mix_enable_mixed_precision_graph_rewrite(mix_sgd(.learning_rate = 0.5), .fixed_loss_scale = 8);
  assert_true(stepped(optimizer, w, false) == -INFINITY && mix_optimizer_iterations(optimizer) == 1);
  assert_true(mix_tensor_item(mix_optimizer_loss_scale(optimizer)) == 8);
  mix_set_semantics("tf_keras");
}

/* tf_keras's wrapper, for an optimizer of Keras: the same, except that a skipped step counts. */
static void section_7_1_a_skipped_step_counts_in_tf_keras(void **state) {
  (void)state;
  mix_variable *w = mix_variable_new(mix_fill(MIX_SHAPE(1, 1), 1, MIX_FLOAT32), .name = "w");
  mix_optimizer *optimizer = mix_enable_mixed_precision_graph_rewrite(mix_sgd(.learning_rate = 0.5));
  assert_true(stepped(optimizer, w, false) == 1 && mix_optimizer_iterations(optimizer) == 1);
  assert_true(stepped(optimizer, w, true) == 0.5 && mix_optimizer_iterations(optimizer) == 2);
}

/* The guide's example: two Dense(64), SGD wrapped by the call, mean squared error, 1024 x 64 numbers. */
static void W22_two_dense_layers(void **state) {
  (void)state;
  setenv("MIXTAPE_VERBOSE", "amp", 1);
  mix_optimizer *optimizer = mix_enable_mixed_precision_graph_rewrite(mix_sgd());
  mix_tensor *inputs = mix_input(.shape = MIX_SHAPE(64));
  mix_tensor *x = mix_call(mix_dense(.units = 64, .activation = "relu"), inputs);
  mix_model *model = mix_model_new(inputs, mix_call(mix_dense(.units = 64), x));
  mix_model_compile(model, .loss = "mean_squared_error", .optimizer = optimizer);
  assert_no_error();
  static float numbers[2][1024 * 64];
  uint32_t seed = 1;
  for (int i = 0; i < 2 * 1024 * 64; i++)
    numbers[i / (1024 * 64)][i % (1024 * 64)] =
        (float)((seed = seed * 1664525u + 1013904223u) >> 8) / 0x1p24f;
  mix_tensor *data = mix_tensor_from(numbers[0], MIX_FLOAT32, MIX_SHAPE(1024, 64));
  mix_tensor *target = mix_tensor_from(numbers[1], MIX_FLOAT32, MIX_SHAPE(1024, 64));
  mix_history *history =
      mix_model_fit(model, data, target, .batch_size = 128, .epochs = 5, .verbose = MIX_SILENT);
  assert_no_error();
  assert_true(mix_optimizer_scales_loss(mix_model_optimizer(model)));
  double first = mix_logs_get(mix_history_epoch(history, 0), "loss"),
         last = mix_logs_get(mix_history_epoch(history, 4), "loss");
  if (!(last < first)) fail_msg("the loss went from %g to %g", first, last);
  /* Two products forward, three backward: the gradient of the inputs is not computed. One capture, because
   * all batches have one size. */
  assert_int_equal(products, 5);
  assert_int_equal(converted_products, 5);
  mix_list *weights = mix_model_weights(model);
  for (int i = 0; i < mix_list_count(weights); i++)
    assert_int_equal(mix_variable_dtype(mix_list_get(weights, i)), MIX_FLOAT32);
}

int main(void) {
  const struct CMUnitTest tests[] = {REWRITE_TEST(section_7_1_what_enable_makes_of_the_loss_scale),
                                     REWRITE_TEST(section_7_1_refusals_change_nothing),
                                     REWRITE_TEST(section_7_1_gradients_of_a_tape_are_not_scaled),
                                     REWRITE_TEST(section_7_1_only_functions_are_rewritten),
                                     REWRITE_TEST(section_7_1_functions_of_before),
                                     REWRITE_TEST(section_7_1_minimize_or_compute_gradients),
                                     REWRITE_TEST(section_7_1_policies_that_are_not_mixed),
                                     REWRITE_TEST(section_7_1_the_option_alone),
                                     REWRITE_TEST(section_6_7_the_wrappers_loss_scaling),
                                     REWRITE_TEST(section_7_1_a_skipped_step_counts_in_tf_keras),
                                     REWRITE_TEST(W22_two_dense_layers)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
