/* Captured functions: traced once for each signature and environment, run as one plan, results owned by the
 * caller. */
#include "compile/trainer.h"
#include "graph/capture.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>

static void once_for_each_signature(void **state) {
  (void)state;
  trainer t = new_trainer();
  mix_function *step = mix_function_new(train_step, &t, .name = "step");
  for (int i = 0; i < 3; i++) mix_function_call(step, mix_list_of(batch(5, 0), labels(5, 0)));
  assert_int_equal(t.traces, 1);
  mix_function_call(step, mix_list_of(batch(2, 0), labels(2, 0))); /* a short last batch */
  assert_int_equal(t.traces, 2);
  mix_function_call(step, mix_list_of(batch(5, 0), labels(5, 0)));
  assert_int_equal(t.traces, 2);
  mix_function_call(step, mix_list_of(batch(5, 0), mix_cast(labels(5, 0), MIX_INT64)));
  assert_int_equal(t.traces, 3);
  no_error();
  variable_has(t.iterations, 6);
}

/* A capture depends on device, threads, accumulation, passes and trainable flags. */
static void once_for_each_environment(void **state) {
  (void)state;
  trainer t = new_trainer();
  mix_function *step = mix_function_new(train_step, &t);
  mix_list *arguments = mix_list_of(batch(5, 0), labels(5, 0));
  mix_function_call(step, arguments);
  mix_set_device("ref");
  mix_function_call(step, arguments);
  assert_int_equal(t.traces, 2);
  mix_set_device(default_device());
  mix_function_call(step, arguments);
  assert_int_equal(t.traces, 2); /* in the cache */
  mix_set_threads(mix_threads() + 1);
  mix_function_call(step, arguments);
  const int traces = on_host() ? 3 : 2; /* a device without threads keeps its plans */
  assert_int_equal(t.traces, traces);
  setenv("MIXTAPE_DISABLE_PASSES", "fuse", 1);
  mix_function_call(step, arguments);
  assert_int_equal(t.traces, traces + 1);
  unsetenv("MIXTAPE_DISABLE_PASSES");
  mix_set_threads(0);
  mix_variable_set_trainable(t.bias, true);
  mix_function_call(step, arguments);
  assert_int_equal(t.traces, traces + 1); /* nothing changed */
  no_error();
}

/* A call reads autocast variables as its caller would, both alone and inside another capture. */
static mix_list *square_of_autocast(void *context, mix_list *arguments) {
  (void)arguments;
  return mix_list_of(mix_square(mix_variable_value(context)));
}
static mix_list *in_float16(void *function, mix_list *arguments) {
  mix_dtype former = mix_cast_dtype_set(MIX_FLOAT16);
  mix_list *results = mix_function_call(function, arguments);
  mix_cast_dtype_set(former);
  return results;
}
static void the_cast_dtype_of_the_caller_is_in_force(void **state) {
  (void)state;
  mix_variable *w = mix_variable_new(vec(MIX_FLOAT32, 1.0001), .autocast = true);
  mix_function *function = mix_function_new(square_of_autocast, w),
               *outer = mix_function_new(in_float16, function);
  for (int i = 0; i < 2; i++) { /* the second time the captures exist */
    mix_tensor *direct = mix_list_get(in_float16(function, NULL), 0),
               *inside = mix_list_get(mix_function_call(outer, NULL), 0);
    mix_tensor *without = mix_list_get(mix_function_call(function, NULL), 0);
    no_error();
    assert_int_equal(mix_tensor_dtype(direct), MIX_FLOAT16);
    assert_int_equal(mix_tensor_dtype(inside), MIX_FLOAT16);
    assert_int_equal(mix_tensor_dtype(without), MIX_FLOAT32);
    has_values(direct, 1);
    has_values(inside, 1);
  }
}

static mix_list *gradient_or_zero(void *context, mix_list *arguments) {
  mix_tape *tape = mix_tape_begin();
  mix_tensor *y = mix_multiply(mix_variable_value(context), mix_list_get(arguments, 0));
  mix_tensor *gradient = mix_list_get(mix_tape_gradient(tape, y, mix_list_of(context)), 0);
  return mix_list_of(gradient ? gradient : scalar(0));
}

static void a_trainable_flag_that_changes_is_noticed(void **state) {
  (void)state;
  mix_variable *w = variable("w", scalar(2));
  mix_function *function = mix_function_new(gradient_or_zero, w);
  mix_list *arguments = mix_list_of(scalar(5));
  size_t bytes = 0;
  for (int i = 0; i < 6; i++) {
    mix_variable_set_trainable(w, i % 2 == 0);
    MIX_SCOPE { has_values(mix_list_get(mix_function_call(function, arguments), 0), i % 2 == 0 ? 5 : 0); }
    if (i == 1) bytes = mix_buffer_bytes();
    if (i % 2) assert_int_equal(mix_buffer_bytes(), bytes); /* plans of old flags are gone */
  }
}

typedef struct division {
  mix_variable *first, *quotient, *last;
} division;
static mix_list *divide(void *context, mix_list *arguments) {
  division *d = context;
  mix_variable_assign_add(d->first, mix_scalar(1, MIX_INT64));
  mix_variable_assign(d->quotient,
                      mix_floor_divide(mix_variable_value(d->quotient), mix_list_get(arguments, 0)));
  mix_variable_assign_add(d->last, mix_scalar(1, MIX_INT64));
  return NULL;
}

static void a_division_by_zero_in_an_update_changes_nothing(void **state) {
  (void)state;
  division d = {variable("a", mix_scalar(1, MIX_INT64)), variable("b", mix_scalar(40, MIX_INT64)),
                variable("c", mix_scalar(1, MIX_INT64))};
  mix_function *function = mix_function_new(divide, &d);
  mix_function_call(function, mix_list_of(mix_scalar(4, MIX_INT64)));
  no_error();
  expect_no_results(mix_function_call(function, mix_list_of(mix_scalar(0, MIX_INT64))));
  expect_error(MIX_VALUE_ERROR, "division by zero");
  variable_has(d.first, 2);
  variable_has(d.quotient, 10);
  variable_has(d.last, 2);
}

/* A condition that is a variable, which the step changes. */
static mix_list *flip(void *context, mix_list *arguments) {
  mix_variable **v = context;
  mix_tensor *flag = mix_variable_value(v[0]), *old = mix_variable_value(v[1]);
  mix_variable_assign(v[0], mix_logical_not(flag));
  mix_variable_assign(v[1], mix_select(flag, mix_add(old, mix_list_get(arguments, 0)), old));
  return NULL;
}

static void a_variable_as_condition(void **state) {
  (void)state;
  mix_variable *v[2] = {variable("flag", mix_scalar(0, MIX_BOOL)), variable("v", vec(MIX_FLOAT32, 1, 2))};
  mix_function *function = mix_function_new(flip, v);
  mix_list *arguments = mix_list_of(vec(MIX_FLOAT32, 10, 10));
  const double expected[] = {1, 11, 11, 21};
  for (int i = 0; i < 4; i++) {
    mix_function_call(function, arguments);
    no_error();
    variable_has(v[0], i % 2 == 0);
    variable_has(v[1], expected[i], expected[i] + 1);
  }
}

static mix_list *scale_argument(void *context, mix_list *arguments) {
  (void)context;
  mix_tensor *x = mix_list_get(arguments, 0);
  return mix_list_of(mix_multiply(x, scalar(2)), x);
}

static void arguments_are_read_in_place_and_results_are_new(void **state) {
  (void)state;
  mix_function *function = mix_function_new(scale_argument, NULL);
  mix_tensor *x = vec(MIX_FLOAT32, 1, 2);
  mix_list *once = mix_function_call(function, mix_list_of(x));
  mix_list *twice =
      mix_function_call(function, mix_list_of(mix_list_get(once, 0))); /* a result as argument */
  has_values(mix_list_get(once, 0), 2, 4);
  has_values(mix_list_get(twice, 0), 4, 8);
  has_values(mix_list_get(twice, 1), 2, 4);
  has_values(x, 1, 2);
  assert_ptr_not_equal(mix_tensor_data(mix_list_get(once, 1)), mix_tensor_data(x));
  mix_list *lazy = mix_function_call(function, mix_list_of(mix_square(x)));
  has_values(mix_list_get(lazy, 0), 2, 8);
}

static void results_outlive_the_function(void **state) {
  (void)state;
  mix_list *results = NULL;
  size_t bytes = mix_buffer_bytes();
  MIX_SCOPE {
    mix_function *function = mix_function_new(scale_argument, NULL);
    mix_function_call(function, mix_list_of(vec(MIX_FLOAT32, 5, 6)));
    results = mix_retain(mix_function_call(function, mix_list_of(vec(MIX_FLOAT32, 1, 2))));
  }
  has_values(mix_list_get(results, 0), 2, 4);
  has_values(mix_list_get(results, 1), 1, 2);
  mix_release(results);
  assert_int_equal(mix_buffer_bytes(), bytes);
}

/* ---- nested calls, variables created in captures ---- */

typedef struct nest {
  mix_function *inner;
  mix_variable *counter, *made;
  int traces;
} nest;

static mix_list *inner_body(void *context, mix_list *arguments) {
  nest *n = context;
  n->traces++;
  mix_variable_assign_add(n->counter, scalar(1));
  return mix_list_of(mix_multiply(mix_list_get(arguments, 0), mix_variable_value(n->counter)));
}
static mix_list *outer_body(void *context, mix_list *arguments) {
  nest *n = context;
  mix_list *first = mix_function_call(n->inner, arguments);
  return mix_function_call(n->inner, first);
}

static void nested_calls_are_traced_inline(void **state) {
  (void)state;
  nest n = {.counter = variable("counter", scalar(0))};
  n.inner = mix_function_new(inner_body, &n, .name = "inner");
  mix_function *outer = mix_function_new(outer_body, &n, .name = "outer");
  has_values(mix_list_get(mix_function_call(outer, mix_list_of(scalar(10))), 0), 20); /* 10 * 1 * 2 */
  assert_int_equal(n.traces, 2);
  has_values(mix_list_get(mix_function_call(outer, mix_list_of(scalar(10))), 0), 120); /* 10 * 3 * 4 */
  assert_int_equal(n.traces, 2);
  has_values(mix_list_get(mix_function_call(n.inner, mix_list_of(scalar(10))), 0), 50);
  variable_has(n.counter, 5);
}

static mix_list *square_of(void *context, mix_list *arguments) {
  (void)context;
  return mix_list_of(mix_square(mix_list_get(arguments, 0)));
}

static void under_a_tape_a_call_is_traced_inline(void **state) {
  (void)state;
  mix_function *function = mix_function_new(square_of, NULL);
  mix_variable *w = variable("w", scalar(3));
  mix_tape *tape = mix_tape_begin();
  mix_list *results = mix_function_call(function, mix_list_of(mix_variable_value(w)));
  mix_tape_end(tape);
  has_values(mix_list_get(mix_tape_gradient(tape, mix_list_get(results, 0), mix_list_of(w)), 0), 6);
}

static mix_list *makes_a_variable(void *context, mix_list *arguments) {
  nest *n = context;
  n->traces++;
  if (!n->made || n->traces == 3) {
    mix_variable *made =
        mix_variable_new(mix_multiply(scalar(2), scalar(3)), .name = "slot", .not_trainable = true);
    if (!made) return NULL;
    n->made = mix_retain(made);
  }
  mix_variable_assign_add(n->made, mix_reduce_sum(mix_list_get(arguments, 0), MIX_ALL_AXES, false));
  return mix_list_of(mix_variable_value(n->made));
}

static void variables_are_made_in_the_first_capture_only(void **state) {
  (void)state;
  nest n = {0};
  mix_function *function = mix_function_new(makes_a_variable, &n);
  has_values(mix_list_get(mix_function_call(function, mix_list_of(vec(MIX_FLOAT32, 1, 2))), 0), 9);
  has_values(mix_list_get(mix_function_call(function, mix_list_of(vec(MIX_FLOAT32, 1, 2))), 0), 12);
  has_values(mix_list_get(mix_function_call(function, mix_list_of(vec(MIX_FLOAT32, 1))), 0), 13);
  assert_null(mix_function_call(function, mix_list_of(vec(MIX_FLOAT32, 1, 2, 3))));
  expect_error(MIX_VALUE_ERROR, "variable_new", "'slot'", "first call");
  variable_has(n.made, 13);
  mix_release(n.made);
}

static mix_list *initial_value_from_an_argument(void *context, mix_list *arguments) {
  (void)context;
  mix_variable_new(mix_square(mix_list_get(arguments, 0)));
  return NULL;
}

static void an_initial_value_is_computed_outside(void **state) {
  (void)state;
  assert_null(
      mix_function_call(mix_function_new(initial_value_from_an_argument, NULL), mix_list_of(scalar(2))));
  expect_error(MIX_RUNTIME_ERROR, "captured function");
}

/* Lazy tensors from outside become constants of the capture, computed once. A variable's old value is
 * copied. */
static mix_list *adds_outside(void *context, mix_list *arguments) {
  return mix_list_of(mix_add(mix_list_get(arguments, 0), context));
}

static void tensors_from_outside_are_constants(void **state) {
  (void)state;
  mix_variable *v = variable("v", vec(MIX_FLOAT32, 1, 2));
  mix_tensor *lazy = mix_square(mix_exp(mix_multiply(vec(MIX_FLOAT32, 0, 0), scalar(5)))),
             *read = mix_variable_value(v);
  mix_function *first = mix_function_new(adds_outside, lazy), *second = mix_function_new(adds_outside, read);
  mix_list *arguments = mix_list_of(vec(MIX_FLOAT32, 10, 20));
  has_values(mix_list_get(mix_function_call(first, arguments), 0), 11, 21);
  assert_non_null(lazy->node->outputs[0].memory);
  has_values(mix_list_get(mix_function_call(second, arguments), 0), 11, 22);
  mix_variable_assign(v, vec(MIX_FLOAT32, 100, 200));
  has_values(mix_list_get(mix_function_call(second, arguments), 0), 11, 22);
}

/* ---- busy ---- */

typedef struct meeting {
  mix_function *function;
  sem_t inside, leave;
  mix_status seen;
} meeting;

static mix_list *waits_inside(void *context, mix_list *arguments) {
  meeting *m = context;
  sem_post(&m->inside);
  sem_wait(&m->leave);
  return mix_list_of(mix_square(mix_list_get(arguments, 0)));
}
static void *second_caller(void *context) {
  meeting *m = context;
  sem_wait(&m->inside);
  MIX_SCOPE {
    mix_list *results = mix_function_call(m->function, mix_list_of(scalar(3)));
    m->seen = results ? MIX_OK : mix_error();
  }
  sem_post(&m->leave);
  return NULL;
}

static void a_second_call_at_the_same_time_is_busy(void **state) {
  (void)state;
  meeting m = {0};
  sem_init(&m.inside, 0, 0);
  sem_init(&m.leave, 0, 0);
  m.function = mix_function_new(waits_inside, &m);
  pthread_t thread;
  assert_int_equal(pthread_create(&thread, NULL, second_caller, &m), 0);
  mix_list *results = mix_function_call(m.function, mix_list_of(scalar(2)));
  pthread_join(thread, NULL);
  assert_int_equal(m.seen, MIX_BUSY);
  has_values(mix_list_get(results, 0), 4);
  has_values(mix_list_get(mix_function_call(m.function, mix_list_of(scalar(5))), 0), 25);
  sem_destroy(&m.inside);
  sem_destroy(&m.leave);
}

/* ---- errors of the body, report and dump ---- */

static mix_list *returns_nothing(void *context, mix_list *arguments) {
  return (void)context, (void)arguments, NULL;
}
static mix_list *returns_null_items(void *context, mix_list *arguments) {
  return (void)context, (void)arguments, mix_list_of(NULL);
}
static mix_list *returns_a_tensor(void *context, mix_list *arguments) {
  return (void)context, mix_list_get(arguments, 0);
}
static mix_list *leaves_things_open(void *context, mix_list *arguments) {
  (void)context;
  mix_tape_begin();
  mix_scope_begin();
  mix_tape_begin();
  mix_graph_scope_set("somewhere");
  mix_cast_dtype_set(MIX_FLOAT16);
  return mix_list_of(mix_add(mix_list_get(arguments, 0), scalar(1)),
                     mix_matmul(mix_list_get(arguments, 0), scalar(1), false, false));
}

static void bodies_that_fail(void **state) {
  (void)state;
  mix_list *arguments = mix_list_of(scalar(1));
  mix_list *nothing = mix_function_call(mix_function_new(returns_nothing, NULL), arguments);
  no_error();
  assert_int_equal(mix_list_count(nothing), 0);
  assert_null(mix_function_call(mix_function_new(returns_null_items, NULL, .name = "f"), arguments));
  expect_error(MIX_TYPE_ERROR, "result 0 of f is NULL");
  assert_null(mix_function_call(mix_function_new(returns_a_tensor, NULL), arguments));
  expect_error(MIX_TYPE_ERROR, "not a list");
  mix_function *open = mix_function_new(leaves_things_open, NULL);
  for (int i = 0; i < 2; i++) {
    assert_null(mix_function_call(open, arguments));
    expect_error(MIX_VALUE_ERROR, "matmul");
    assert_null(mix_capture_current());
    assert_null(mix_graph_scope());
    assert_int_equal(mix_cast_dtype(), MIX_DTYPE_NONE);
  }
  mix_tape *tape = mix_tape_begin(); /* no capture is left open: this one is the outermost, and ends */
  mix_tape_end(tape);
  has_values(mix_list_get(mix_function_call(mix_function_new(square_of, NULL), arguments), 0), 1);
}

static void misuse_is_an_error(void **state) {
  (void)state;
  assert_null(mix_function_new(NULL, NULL));
  expect_error(MIX_TYPE_ERROR, "function_new", "body");
  assert_null(mix_function_call(NULL, NULL));
  expect_error(MIX_TYPE_ERROR, "expected a function");
  mix_function *function = mix_function_new(square_of, NULL, .name = "square");
  assert_null(mix_function_call(function, (mix_list *)scalar(1)));
  expect_error(MIX_TYPE_ERROR, "not a list");
  assert_null(mix_function_call(function, mix_list_of(NULL)));
  expect_error(MIX_TYPE_ERROR, "argument 0 of square is NULL");
  assert_null(mix_function_call(function, mix_list_of(function)));
  expect_error(MIX_TYPE_ERROR, "argument 0 of square is another object");
  assert_null(mix_function_call(function, NULL)); /* the body reads an argument that does not exist */
  expect_error(MIX_VALUE_ERROR, "list_get");
  mix_plan_report report;
  assert_int_equal(mix_function_report(function, &report, sizeof report), MIX_RUNTIME_ERROR);
  expect_error(MIX_RUNTIME_ERROR, "not been called");
  assert_null(mix_function_dump(NULL, "plan"));
  expect_error(MIX_TYPE_ERROR, "function_dump", "got NULL", "expected a function");
  assert_null(mix_function_dump(function, "plan"));
  expect_error(MIX_RUNTIME_ERROR, "not been called");
}

static char warning[1024];
static void keep_warning(void *context, mix_log_level level, const char *message) {
  (void)context;
  if (level == MIX_LOG_WARNING) snprintf(warning, sizeof warning, "%s", message);
}
static mix_list *doubled(void *context, mix_list *arguments) {
  (void)context;
  return mix_list_of(mix_add(mix_list_get(arguments, 0), mix_list_get(arguments, 0)));
}
static void a_misspelled_pass_is_corrected(void **state) {
  (void)state;
  setenv("MIXTAPE_DISABLE_PASSES", "cse,fold_transpose", 1);
  mix_set_log_callback(keep_warning, NULL);
  mix_function_call(mix_function_new(doubled, NULL), mix_list_of(mix_fill(MIX_SHAPE(3), 1, MIX_FLOAT32)));
  mix_set_log_callback(NULL, NULL);
  unsetenv("MIXTAPE_DISABLE_PASSES");
  no_error();
  assert_non_null(strstr(warning, "'fold_transpose'; did you mean 'fold_transposes'?"));
}

static void report_and_dump(void **state) {
  (void)state;
  trainer t = new_trainer();
  mix_function *step = mix_function_new(train_step, &t);
  mix_function_call(step, mix_list_of(batch(5, 0), labels(5, 0)));
  mix_plan_report report;
  assert_int_equal(mix_function_report(step, &report, sizeof report), MIX_OK);
  assert_int_equal(report.variable_bytes, 48 + 12 + 48 + 8 + 8);
  assert_int_equal(report.argument_bytes, 5 * 4 * 4 + 5 * 4);
  assert_int_equal(report.result_bytes, 4 + 1);
  assert_true(report.nodes > 3 && report.nodes < report.captured_nodes);
  const char *graph = mix_function_dump(step, "captured"), *passes = mix_function_dump(step, "passes"),
             *plan = mix_function_dump(step, "plan");
  no_error();
  assert_non_null(strstr(graph, "sparse_softmax_cross_entropy("));
  assert_non_null(strstr(graph, "@model/logits"));
  assert_non_null(strstr(graph, " 'kernel' = %"));
  assert_non_null(strstr(passes, " 'kernel' = %"));
  assert_non_null(strstr(passes, " if %"));
  assert_non_null(strstr(plan, "memory: arena "));
  assert_non_null(strstr(plan, "alive then: "));
  assert_ptr_equal(mix_function_dump(step, "plan"), plan);
  assert_null(mix_function_dump(step, "fuse_epilogue"));
  expect_error(MIX_VALUE_ERROR, "'fuse_epilogue'; did you mean 'fuse_epilogues'?");
  assert_null(mix_function_dump(step, "nothing"));
  expect_error(MIX_VALUE_ERROR, "function_dump", "'nothing'",
               "there are captured, amp, hoist_invariants, expand_einsum, ",
               "excess_precision, overlap_collectives, repeat_updates, passes, plan");
  assert_null(mix_function_dump(step, NULL));
  expect_error(MIX_VALUE_ERROR, "(NULL)", "captured");
  assert_null(mix_function_dump(step, "before plan"));
  expect_error(MIX_VALUE_ERROR, "'before plan'");
  int first = report.nodes;
  report.nodes = -1;
  mix_function_report(step, &report, sizeof(int)); /* an older, shorter report */
  assert_int_equal(report.nodes, first);
  assert_int_equal(mix_function_report(step, &report, sizeof report + 8), MIX_VALUE_ERROR);
  mix_error_clear();
}

/* Plans beyond max_signatures go, the one used longest ago first, and their memory with them. */
static void plans_that_are_not_used_go(void **state) {
  (void)state;
  trainer t = new_trainer();
  mix_function *step = mix_function_new(train_step, &t, .max_signatures = 3);
  static const struct {
    int rows, traces;
  } calls[] = {{1, 1}, {2, 2}, {3, 3}, {1, 3}, {4, 4}, {1, 4}, {3, 4}, {2, 5}, {4, 6}, {3, 6}};
  for (int i = 0; i < COUNT(calls); i++) {
    MIX_SCOPE { mix_function_call(step, mix_list_of(batch(calls[i].rows, 0), labels(calls[i].rows, 0))); }
    no_error();
    assert_int_equal(t.traces, calls[i].traces);
  }
  variable_has(t.iterations, COUNT(calls));
}

static mix_list *root_of_squares(void *traces, mix_list *arguments) {
  ++*(int *)traces;
  mix_tensor *x = mix_list_get(arguments, 0);
  return mix_list_of(mix_sqrt(mix_reduce_sum(mix_matmul(x, x, true, false), MIX_ALL_AXES, false)));
}

static void memory_does_not_grow_with_signatures(void **state) {
  (void)state;
  int traces = 0;
  mix_function *function = mix_function_new(root_of_squares, &traces);
  size_t most = 0;
  for (int rows = 400; rows > 0; rows--) { /* the largest first: the arena does not grow */
    MIX_SCOPE { mix_function_call(function, mix_list_of(mix_fill(MIX_SHAPE(rows, 8), 1, MIX_FLOAT32))); }
    if (rows > 360 && mix_buffer_bytes() > most) most = mix_buffer_bytes();
  }
  mix_synchronize();
  no_error();
  assert_int_equal(traces, 400);
  assert_true(mix_buffer_bytes() <= most);
}

/* A megabyte between its two products, which no plan has for itself. */
static mix_list *two_products(void *context, mix_list *arguments) {
  (void)context;
  mix_tensor *x = mix_list_get(arguments, 0), *y = mix_matmul(x, x, false, true);
  return mix_list_of(mix_reduce_sum(mix_matmul(y, x, false, false), MIX_ALL_AXES, false));
}

static void plans_share_an_arena(void **state) {
  (void)state;
  enum { LARGEST = 512, PLANS = 16 };
  mix_function *function = mix_function_new(two_products, NULL);
  size_t first = 0;
  for (int i = 0; i < PLANS; i++) {
    MIX_SCOPE {
      mix_function_call(function, mix_list_of(mix_fill(MIX_SHAPE(LARGEST - i, 8), 1, MIX_FLOAT32)));
    }
    mix_synchronize();
    no_error();
    if (!i) first = mix_buffer_bytes();
  }
  mix_plan_report report;
  mix_function_report(function, &report, sizeof report);
  assert_true(report.arena_bytes > 1000000);
  if (on_host() && mix_buffer_bytes() > first + report.arena_bytes / 2)
    fail_msg("%zu bytes after the first plan, %zu after %d", first, mix_buffer_bytes(), PLANS);
}

static void clear_drops_all_plans(void **state) {
  (void)state;
  trainer t = new_trainer();
  mix_function *step = mix_function_new(train_step, &t);
  mix_list *arguments = mix_list_of(batch(5, 0), labels(5, 0));
  MIX_SCOPE { mix_function_call(step, arguments); }
  mix_synchronize();
  const size_t bytes = mix_buffer_bytes();
  assert_int_equal(mix_function_clear(step), MIX_OK);
  if (on_host()) assert_true(mix_buffer_bytes() < bytes);
  mix_plan_report report;
  assert_int_equal(mix_function_report(step, &report, sizeof report), MIX_RUNTIME_ERROR);
  expect_error(MIX_RUNTIME_ERROR, "has not been called");
  mix_function_call(step, arguments);
  assert_int_equal(t.traces, 2);
  variable_has(t.iterations, 2);
  assert_int_equal(mix_function_clear(NULL), MIX_TYPE_ERROR);
  expect_error(MIX_TYPE_ERROR, "function_clear");
  assert_null(mix_function_new(train_step, &t, .max_signatures = -1));
  expect_error(MIX_VALUE_ERROR, "max_signatures is -1");
}

/* ---- nested arguments ---- */

static int nested_captures;
static mix_list *subtract_named(void *context, mix_list *arguments) {
  (void)context;
  nested_captures++;
  mix_list *named = mix_list_get(arguments, 0);
  mix_tensor *a = mix_dict_get(named, "a"), *b = mix_dict_get(named, "b");
  return mix_list_of(mix_subtract(mix_subtract(a, b), mix_list_get(arguments, 1)));
}
static void nested_arguments_come_nested(void **state) {
  (void)state;
  nested_captures = 0;
  mix_function *function = mix_function_new(subtract_named, NULL);
  mix_tensor *one = mix_scalar(1, MIX_FLOAT32), *five = mix_scalar(5, MIX_FLOAT32);
  for (int i = 0; i < 2; i++) {
    mix_list *named = i ? mix_dict_of("b", one, "a", five) : mix_dict_of("a", five, "b", one);
    mix_list *results = mix_function_call(function, mix_list_of(named, one));
    assert_int_equal(mix_error(), MIX_OK);
    assert_true(mix_tensor_item(mix_list_get(results, 0)) == 3);
  }
  assert_int_equal(nested_captures, 1); /* the order of names is not part of the signature */
  assert_null(mix_function_call(function, mix_list_of(mix_list_of(five, one), one)));
  char message[500];
  assert_int_equal(mix_error_take(message, sizeof message), MIX_TYPE_ERROR);
  assert_non_null(strstr(message, "the list has no names"));
  assert_int_equal(nested_captures, 2); /* how arguments are nested is */
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(plans_that_are_not_used_go),
      TEST(a_misspelled_pass_is_corrected),
      TEST(memory_does_not_grow_with_signatures),
      TEST(plans_share_an_arena),
      TEST(clear_drops_all_plans),
      TEST(once_for_each_signature),
      TEST(once_for_each_environment),
      TEST(the_cast_dtype_of_the_caller_is_in_force),
      TEST(a_trainable_flag_that_changes_is_noticed),
      TEST(a_division_by_zero_in_an_update_changes_nothing),
      TEST(a_variable_as_condition),
      TEST(arguments_are_read_in_place_and_results_are_new),
      TEST(results_outlive_the_function),
      TEST(nested_calls_are_traced_inline),
      TEST(under_a_tape_a_call_is_traced_inline),
      TEST(variables_are_made_in_the_first_capture_only),
      TEST(an_initial_value_is_computed_outside),
      TEST(tensors_from_outside_are_constants),
      TEST(a_second_call_at_the_same_time_is_busy),
      TEST(bodies_that_fail),
      TEST(misuse_is_an_error),
      TEST(report_and_dump),
      TEST(nested_arguments_come_nested),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
