/* run_eagerly: functions and the steps of models operation by operation, with the bits of captured ones. */
#include "model/support.h"

static int calls;

/* ---- functions ---- */

static mix_list *doubled(void *context, mix_list *arguments) {
  mix_tensor *x = mix_list_get(arguments, 0), *y = mix_add(x, x);
  calls++;
  if (context) *(double *)context = mix_tensor_item(y); /* a captured body could not */
  return mix_list_of(y);
}

static void the_body_runs_at_each_call_and_may_read(void **state) {
  (void)state;
  double seen = 0;
  mix_function *function = mix_function_new(doubled, &seen, .run_eagerly = true);
  calls = 0;
  for (int i = 0; i < 3; i++) {
    mix_list *results = mix_function_call(function, mix_list_of(mix_scalar(i, F32)));
    assert_no_error();
    assert_true(at(mix_list_get(results, 0), 0) == 2 * i && seen == 2 * i);
  }
  assert_int_equal(calls, 3);
  mix_plan_report report;
  assert_int_equal(mix_function_report(function, &report, sizeof report), MIX_RUNTIME_ERROR);
  assert_error(MIX_RUNTIME_ERROR, "has not been called yet, or runs eagerly");
  assert_null(mix_function_dump(function, "plan"));
  assert_error(MIX_RUNTIME_ERROR, "runs eagerly");
  assert_null(mix_function_new(doubled, NULL, .run_eagerly = true, .batch = MIX_ANY));
  assert_error(MIX_VALUE_ERROR, "function_new: run_eagerly beside batch");
}

static mix_list *names_of_dict(void *context, mix_list *arguments) {
  (void)context;
  mix_list *dict = mix_list_get(arguments, 0);
  return mix_list_of(mix_subtract(mix_list_get(dict, 1), mix_list_get(dict, 0))); /* b - a */
}

static void arguments_nest_as_in_a_capture(void **state) {
  (void)state;
  for (int eagerly = 0; eagerly < 2; eagerly++) {
    mix_function *function = mix_function_new(names_of_dict, NULL, .run_eagerly = eagerly);
    mix_list *dict = mix_dict_of("b", mix_scalar(5, F32), "a", mix_scalar(3, F32));
    mix_list *results = mix_function_call(function, mix_list_of(dict));
    assert_no_error();
    assert_true(at(mix_list_get(results, 0), 0) == 2);
  }
}

/* A step under a tape, or inside a capture, is part of the graph around it. */
static void inside_a_capture_it_is_traced(void **state) {
  (void)state;
  mix_function *inner = mix_function_new(doubled, NULL, .run_eagerly = true);
  mix_tensor *x = mix_scalar(3, F32);
  mix_tape *tape = mix_tape_begin();
  mix_tape_watch(tape, x);
  mix_tensor *y = mix_list_get(mix_function_call(inner, mix_list_of(x)), 0);
  mix_tape_end(tape);
  assert_true(at(mix_list_get(mix_tape_gradient(tape, y, mix_list_of(x)), 0), 0) == 2);
}

static mix_list *fails(void *context, mix_list *arguments) {
  (void)context, (void)arguments;
  return mix_error_record(MIX_VALUE_ERROR, "of its own"), NULL;
}
static mix_list *no_tensor(void *context, mix_list *arguments) {
  return (void)arguments, mix_list_of(context);
}

static void errors_leave_the_function_usable(void **state) {
  (void)state;
  mix_function *function = mix_function_new(fails, NULL, .run_eagerly = true);
  for (int i = 0; i < 2; i++) {
    assert_null(mix_function_call(function, NULL));
    assert_error(MIX_VALUE_ERROR, "of its own");
  }
  assert_null(
      mix_function_call(mix_function_new(no_tensor, mix_list_new(0, NULL), .run_eagerly = true), NULL));
  assert_error(MIX_TYPE_ERROR, "result 0 of function is another object");
}

/* ---- models ---- */

static mix_list *count_calls(void *context, mix_list *inputs) { return (void)context, calls++, inputs; }

static mix_model *dense_model(void) {
  mix_tensor *x = mix_input(.shape = MIX_SHAPE(6));
  mix_tensor *y = mix_call(mix_dropout(.rate = 0.25, .seed = 3), mix_call(mix_dense(7, "tanh"), x));
  y = mix_call(mix_batch_normalization(), y);
  y = mix_call(mix_dense(3), y);
  return mix_model_new(x, mix_call(mix_activation("softmax", .dtype = "float32"), y));
}
static mix_model *recurrent_model(void) {
  mix_tensor *x = mix_input(.shape = MIX_SHAPE(6));
  mix_tensor *y = mix_call(mix_lstm(4), mix_call(mix_reshape_layer(.target_shape = MIX_SHAPE(3, 2)), x));
  return mix_model_new(x, mix_call(mix_dense(3, "softmax", .dtype = "float32"), y));
}

typedef struct run {
  unsigned char *bits;
  size_t size;
  mix_history *history;
  mix_tensor *predicted;
  int calls;
} run;

static run train(mix_model *(*make)(void), const char *policy, bool eagerly) {
  mix_set_seed(5);
  mix_clear_names();
  mix_set_global_policy(policy);
  mix_model *model = make();
  /* Of float16 the first steps overflow, and are skipped. */
  mix_optimizer *adam = mix_adam(.learning_rate = 0.01);
  const bool scaled = !strcmp(policy, "mixed_float16");
  mix_model_compile(model, .loss = "sparse_categorical_crossentropy",
                    .optimizer = scaled ? mix_loss_scale_optimizer(adam, .initial_scale = 1 << 30) : adam,
                    .metrics = {"accuracy"}, .run_eagerly = eagerly, .preprocess = count_calls);
  examples e = examples_of(20, 6, 3);
  calls = 0;
  run r = {.history = mix_model_fit(model, e.x, e.y, .batch_size = 8, .epochs = 2, .seed = 9, .quiet = true,
                                    .validation_x = e.x, .validation_y = e.y)};
  r.calls = calls;
  r.predicted = mix_list_get(mix_model_predict(model, e.x), 0);
  assert_no_error();
  r.bits = bits_of(mix_model_weights(model), &r.size);
  return r;
}

static void fit_has_the_same_bits(void **state) {
  static const char *const policies[] = {"float32", "mixed_float16", "mixed_bfloat16"};
  mix_model *(*const makes[])(void) = {dense_model, recurrent_model};
  (void)state;
  for (size_t m = 0; m < 2; m++)
    for (size_t p = 0; p < sizeof policies / sizeof *policies; p++) {
      const run captured = train(makes[m], policies[p], false), eager = train(makes[m], policies[p], true);
      assert_int_equal(captured.size, eager.size);
      assert_memory_equal(captured.bits, eager.bits, eager.size);
      for (int e = 0; e < 2; e++) {
        const mix_logs *a = mix_history_epoch(captured.history, e), *b = mix_history_epoch(eager.history, e);
        assert_int_equal(mix_logs_count(a), mix_logs_count(b));
        for (int i = 0; i < mix_logs_count(a); i++) assert_true(mix_logs_value(a, i) == mix_logs_value(b, i));
      }
      for (int i = 0; i < 60; i++) assert_true(at(captured.predicted, i) == at(eager.predicted, i));
      assert_true(captured.calls <= 4); /* two sizes of batches, of training and of validation */
      assert_int_equal(eager.calls, 2 * 3 + 2 * 3);
      free(captured.bits);
      free(eager.bits);
    }
}

/* The rewrite is one of graphs: eager steps have the bits of captured ones without it. */
static void the_graph_rewrite_has_no_part_in_it(void **state) {
  (void)state;
  const run plain = train(dense_model, "float32", false);
  mix_set_graph_rewrite("bfloat16");
  const run rewritten = train(dense_model, "float32", false), eager = train(dense_model, "float32", true);
  mix_set_graph_rewrite(NULL);
  assert_int_equal(plain.size, eager.size);
  assert_memory_equal(plain.bits, eager.bits, eager.size);
  assert_memory_not_equal(plain.bits, rewritten.bits, plain.size);
  free(plain.bits);
  free(rewritten.bits);
  free(eager.bits);
}

static mix_list *reading_call(mix_layer *layer, const mix_call_args *args) {
  mix_tensor *x = mix_call_input(args, 0);
  (void)layer;
  if (!args->symbolic) calls += mix_tensor_data(x) != NULL;
  return mix_list_of(x);
}
static const mix_layer_class reading = {
    .size = sizeof reading, .name = "Reading", .instance_size = 1, .call = reading_call};

static void a_layer_may_read_its_input(void **state) {
  (void)state;
  for (int eagerly = 0; eagerly < 2; eagerly++) {
    mix_tensor *x = mix_input(.shape = MIX_SHAPE(1));
    mix_tensor *y = mix_call(mix_layer_new(.layer_class = &reading), mix_call(mix_dense(1), x));
    mix_model *model = mix_model_new(x, y);
    mix_model_compile(model, .loss = "mse", .run_eagerly = eagerly);
    calls = 0;
    mix_model_fit(model, counting(4), counting(4), .batch_size = 1, .quiet = true);
    assert_int_equal(calls, eagerly ? 4 : 0);
    if (!eagerly) assert_error(MIX_RUNTIME_ERROR, "while a function is being captured");
  }
  assert_no_error();
}

static void single_batches_run_eagerly_too(void **state) {
  (void)state;
  mix_model *model = product_model(1, 0.25);
  mix_model_compile(model, .loss = "mse", .optimizer = mix_sgd(.learning_rate = 0.25), .run_eagerly = true,
                    .preprocess = count_calls);
  mix_tensor *one = mix_fill(MIX_SHAPE(1, 1), 1, F32), *zero = mix_fill(MIX_SHAPE(1, 1), 0, F32);
  calls = 0;
  for (int i = 0; i < 3; i++)
    assert_true(mix_logs_get(mix_model_train_on_batch(model, one, zero), "loss") == pow(0.25, i));
  assert_true(mix_logs_get(mix_model_test_on_batch(model, one, zero), "loss") == pow(0.25, 3));
  assert_true(at(mix_list_get(mix_model_predict_on_batch(model, one), 0), 0) == 0.125);
  assert_int_equal(calls, 5);
  assert_no_error();
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(the_body_runs_at_each_call_and_may_read),
      TEST(arguments_nest_as_in_a_capture),
      TEST(inside_a_capture_it_is_traced),
      TEST(errors_leave_the_function_usable),
      TEST(fit_has_the_same_bits),
      TEST(the_graph_rewrite_has_no_part_in_it),
      TEST(a_layer_may_read_its_input),
      TEST(single_batches_run_eagerly_too),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
