/* mix_remat: gradients have the bits of those without, of first and second order, nested, around loops and
 * inside them; what is repeated, and what happens once. */
#include "ops/support.h"

#include "base/alloc.h"
#include "support/expect.h"
#include <mixtape/function.h>
#include <mixtape/layer.h>
#include <mixtape/remat.h>
#include <mixtape/scan.h>

enum { ROWS = 4, UNITS = 8, SIZE = ROWS * UNITS, LENGTH = 5 };

static mix_tensor *waves(mix_shape shape, double phase, mix_dtype dtype) {
  double numbers[LENGTH * SIZE];
  const int64_t count = mix_shape_size(shape);
  assert_true(count <= LENGTH * SIZE);
  for (int i = 0; i < count; i++) numbers[i] = sin(phase + 0.7 * i);
  return tensor(dtype, shape, numbers);
}

/* ---- functions of a state: two weights, a generator, a count of calls ---- */

typedef struct world {
  mix_variable *a, *b, *calls;
  mix_generator *numbers;
  bool repeats; /* by mix_remat; else plainly */
  int traced;
} world;

static mix_list *apply(world *w, mix_remat_function function, mix_list *inputs) {
  return w->repeats ? mix_remat(function, w, inputs) : function(w, inputs);
}

static mix_tensor *layer(mix_tensor *x, mix_variable *weight) {
  mix_tensor *kernel = mix_cast(mix_variable_value(weight), mix_tensor_dtype(x));
  return mix_tanh(mix_matmul(x, kernel, false, false));
}

static mix_list *chain(void *context, mix_list *inputs) {
  world *w = context;
  mix_tensor *x = mix_list_get(inputs, 0);
  w->traced++;
  for (int i = 0; i < 3; i++) x = mix_multiply(mix_sigmoid(layer(x, w->a)), layer(x, w->b));
  return mix_list_of(x, mix_softmax(x));
}

static mix_list *drop(void *context, mix_list *inputs) {
  world *w = context;
  mix_tensor *x = mix_list_get(inputs, 0);
  mix_tensor *drawn = mix_random_uniform(w->numbers, mix_tensor_shape(x), MIX_FLOAT32);
  mix_variable_assign_add(w->calls, mix_scalar(1, MIX_FLOAT32));
  mix_tensor *kept = mix_cast(mix_greater(drawn, mix_scalar(0.5, MIX_FLOAT32)), mix_tensor_dtype(x));
  return mix_list_of(layer(layer(mix_multiply(mix_exp(x), kept), w->a), w->b));
}

static mix_list *nested(void *context, mix_list *inputs) {
  world *w = context;
  mix_list *y = apply(w, chain, inputs);
  y = y ? apply(w, drop, mix_list_of(mix_list_get(y, 0))) : NULL;
  return y ? apply(w, chain, y) : NULL;
}

static mix_list *step(void *context, mix_list *carry, mix_list *inputs) {
  world *w = context;
  mix_tensor *h = mix_add(mix_list_get(carry, 0), mix_list_get(inputs, 0));
  mix_list *y = apply(w, chain, mix_list_of(h));
  return y ? mix_list_of(mix_list_of(mix_list_get(y, 0)), mix_list_of(mix_list_get(y, 1))) : NULL;
}
static mix_list *loop(void *context, mix_list *inputs) {
  mix_tensor *x = mix_list_get(inputs, 0);
  const mix_shape shape = mix_tensor_shape(x);
  mix_tensor *steps =
      mix_multiply(x, waves(MIX_SHAPE(LENGTH, shape.dims[0], shape.dims[1]), 1, mix_tensor_dtype(x)));
  mix_list *y = mix_scan(step, context, mix_list_of(x), mix_list_of(steps));
  return y ? mix_list_of(mix_reduce_sum(mix_list_get(mix_list_get(y, 1), 0), MIX_AXES(0), false)) : NULL;
}

/* ---- gradients ---- */

typedef struct task {
  world *world;
  mix_remat_function function;
  bool second; /* of second order */
} task;

static mix_tensor *loss_of(task *t, mix_tensor *x) {
  mix_list *y = apply(t->world, t->function, mix_list_of(x));
  return y ? mix_reduce_sum(mix_square(mix_list_get(y, 0)), MIX_ALL_AXES, false) : NULL;
}

static mix_list *gradients(void *context, mix_list *arguments) {
  task *t = context;
  mix_tensor *x = mix_list_get(arguments, 0);
  mix_list *sources = mix_list_of(t->world->a, t->world->b);
  mix_tape *outer = mix_tape_begin(), *tape = mix_tape_begin();
  mix_tape_watch(tape, x);
  mix_tensor *loss = loss_of(t, x);
  mix_tape_end(tape);
  mix_list *first = mix_tape_gradient(tape, loss, mix_list_of(x, t->world->a, t->world->b));
  if (!t->second || !first) return first ? (mix_list_append(first, loss), first) : NULL;
  mix_tensor *size = mix_reduce_sum(mix_square(mix_list_get(first, 0)), MIX_ALL_AXES, false);
  mix_tape_end(outer);
  return mix_tape_gradient(outer, size, sources);
}

static world new_world(bool repeats) {
  return (world){.a = mix_variable_new(waves(MIX_SHAPE(UNITS, UNITS), 0.3, MIX_FLOAT32), .name = "a"),
                 .b = mix_variable_new(waves(MIX_SHAPE(UNITS, UNITS), 2, MIX_FLOAT32), .name = "b"),
                 .calls =
                     mix_variable_new(mix_scalar(0, MIX_FLOAT32), .name = "calls", .not_trainable = true),
                 .numbers = mix_generator_new(7),
                 .repeats = repeats};
}

enum { NUMBERS_OF_ALL = 3 * UNITS * UNITS + 1 };
typedef struct outcome {
  int count;
  double numbers[2 * NUMBERS_OF_ALL], calls;
  mix_plan_report report;
} outcome;

/* Two calls, so that what the first one leaves counts. */
static outcome run(mix_remat_function function, mix_dtype dtype, bool repeats, bool second, bool captured) {
  outcome o = {0};
  world w = new_world(repeats);
  task t = {&w, function, second};
  mix_function *compiled = mix_function_new(gradients, &t);
  for (int i = 0; i < 2; i++) {
    mix_list *arguments = mix_list_of(waves(MIX_SHAPE(ROWS, UNITS), i, dtype));
    mix_list *results = captured ? mix_function_call(compiled, arguments) : gradients(&t, arguments);
    no_error();
    for (int r = 0; r < mix_list_count(results); r++) {
      mix_tensor *result = mix_list_get(results, r);
      const int64_t count = mix_shape_size(mix_tensor_shape(result));
      assert_true(o.count + count <= 2 * NUMBERS_OF_ALL);
      mix_tensor_read(result, MIX_FLOAT64, &o.numbers[o.count], count);
      o.count += (int)count;
    }
  }
  if (captured) mix_function_report(compiled, &o.report, sizeof o.report);
  o.calls = mix_tensor_item(mix_variable_value(w.calls));
  no_error();
  return o;
}

static const mix_remat_function functions[] = {chain, drop, nested, loop};

static void same(mix_dtype dtype, bool second, bool captured) {
  for (int f = 0; f < COUNT(functions); f++)
    MIX_SCOPE {
      const outcome plain = run(functions[f], dtype, false, second, captured),
                    repeated = run(functions[f], dtype, true, second, captured);
      assert_int_equal(repeated.count, plain.count);
      if (memcmp(repeated.numbers, plain.numbers, sizeof plain.numbers))
        fail_msg("function %d, %s: other bits", f, mix_dtype_name(dtype));
      assert_true(repeated.calls == plain.calls);
    }
}

static void gradients_have_the_same_bits(void **state) {
  (void)state;
  for (int d = 0; d < COUNT(floating); d++) same(floating[d], false, true);
}
static void so_have_those_outside_functions(void **state) {
  (void)state;
  same(MIX_FLOAT32, false, false);
  same(MIX_FLOAT16, false, false);
}
/* The gradient of what is repeated is added to that of the forward pass, each a sum by itself: other orders
 * of sums of a few hundred numbers. */
static void those_of_second_order_agree(void **state) {
  (void)state;
  for (int f = 0; f < COUNT(functions); f++)
    for (int captured = 0; captured < 2; captured++)
      MIX_SCOPE {
        const outcome plain = run(functions[f], MIX_FLOAT64, false, true, captured),
                      repeated = run(functions[f], MIX_FLOAT64, true, true, captured);
        double largest = 0;
        assert_int_equal(repeated.count, plain.count);
        for (int i = 0; i < plain.count; i++) largest = fmax(largest, fabs(plain.numbers[i]));
        assert_true(largest > 0);
        for (int i = 0; i < plain.count; i++)
          if (!(fabs(repeated.numbers[i] - plain.numbers[i]) <= 1e-6 * largest))
            fail_msg("function %d, number %d: %.17g and %.17g", f, i, repeated.numbers[i], plain.numbers[i]);
      }
}

/* drop assigns once a call, nested too: two calls of the function. */
static void what_writes_a_variable_happens_once(void **state) {
  (void)state;
  assert_true(run(drop, MIX_FLOAT32, true, false, true).calls == 2);
  assert_true(run(nested, MIX_FLOAT32, true, false, true).calls == 2);
}

/* ---- what is kept ---- */

enum { DEEP = 12, PRODUCTS = 4, MANY = 512 };
typedef struct deep {
  mix_variable *weights[DEEP][PRODUCTS];
  bool repeats;
} deep;

static mix_list *squash(void *context, mix_list *inputs) {
  mix_variable *const *weights = context;
  mix_tensor *x = mix_list_get(inputs, 0);
  for (int i = 0; i < PRODUCTS; i++)
    x = mix_tanh(mix_matmul(x, mix_variable_value(weights[i]), false, false));
  return mix_list_of(x);
}
static mix_list *deep_gradients(void *context, mix_list *arguments) {
  deep *d = context;
  mix_list *sources = mix_list_new(0, NULL);
  mix_tape *tape = mix_tape_begin();
  mix_tensor *x = mix_list_get(arguments, 0);
  for (int i = 0; i < DEEP && x; i++) {
    mix_variable **weights = d->weights[i];
    for (int w = 0; w < PRODUCTS; w++) mix_list_append(sources, weights[w]);
    mix_list *y = d->repeats ? mix_remat(squash, weights, mix_list_of(x)) : squash(weights, mix_list_of(x));
    x = y ? mix_list_get(y, 0) : NULL;
  }
  mix_tensor *loss = mix_reduce_sum(x, MIX_ALL_AXES, false);
  mix_tape_end(tape);
  mix_list *results = mix_tape_gradient(tape, loss, sources);
  mix_list_append(results, loss);
  return results;
}

static size_t bytes_of_deep(bool repeats, int *products) {
  deep d = {.repeats = repeats};
  for (int i = 0; i < DEEP * PRODUCTS; i++)
    d.weights[i / PRODUCTS][i % PRODUCTS] =
        mix_variable_new(waves(MIX_SHAPE(UNITS, UNITS), i, MIX_FLOAT32), .name = "w");
  mix_function *function = mix_function_new(deep_gradients, &d);
  mix_function_call(function, mix_list_of(mix_fill(MIX_SHAPE(MANY, UNITS), 0.5, MIX_FLOAT32)));
  mix_plan_report report;
  mix_function_report(function, &report, sizeof report);
  const char *graph = mix_function_dump(function, "after cse");
  no_error();
  *products = 0;
  for (const char *at = graph; (at = strstr(at, "= matmul(")); at++) ++*products;
  return report.arena_bytes;
}

/* Of the four values of a call one is kept, the input of the next: 12 and the values of one call instead of
 * 48, and the gradients. Three products of each call are repeated, for the fourth value is there. In the last
 * call it is not: nobody reads it but the sum. */
static void values_inside_are_not_kept(void **state) {
  (void)state;
  int products, more;
  const size_t all = bytes_of_deep(false, &products), some = bytes_of_deep(true, &more);
  print_message("%zu bytes, %zu with remat\n", all, some);
  assert_true((double)some <= 0.45 * (double)all);
  /* forward one, backward two, one for the first, whose input is an argument */
  assert_int_equal(products, 3 * DEEP * PRODUCTS - 1);
  assert_int_equal(more, products + DEEP * (PRODUCTS - 1) + 1);
}

/* A step of the loop keeps what goes into it instead of some fifteen values. */
static void steps_of_loops_keep_what_goes_in(void **state) {
  (void)state;
  const double all = (double)run(loop, MIX_FLOAT32, false, false, true).report.arena_bytes,
               some = (double)run(loop, MIX_FLOAT32, true, false, true).report.arena_bytes;
  print_message("loop: %.0f bytes, %.0f with remat\n", all, some);
  assert_true(some <= 0.6 * all);
}

/* ---- errors ---- */

static void failed_allocations(void **state) {
  (void)state;
  world w = new_world(true);
  task t = {&w, nested, false};
  mix_list *arguments = mix_list_of(waves(MIX_SHAPE(ROWS, UNITS), 0, MIX_FLOAT32));
  bool complete = false;
  for (int k = 0; !complete; k++)
    MIX_SCOPE {
      assert_in_range(k, 0, 100000);
      mix_inject_allocation_failure(k);
      mix_list *results = gradients(&t, arguments);
      mix_inject_allocation_failure(-1);
      complete = mix_error() == MIX_OK;
      if (complete)
        assert_int_equal(mix_list_count(results), 4);
      else if (mix_error() != MIX_MEMORY_ERROR)
        fail_msg("allocation %d: %s: %s", k, mix_status_name(mix_error()), mix_error_message());
      mix_error_clear();
      assert_null(mix_segment_current());
    }
}

static mix_list *nothing(void *context, mix_list *inputs) {
  (void)context, (void)inputs;
  return NULL;
}
static mix_list *no_list(void *context, mix_list *inputs) {
  (void)context;
  return mix_list_get(inputs, 0);
}

static void errors(void **state) {
  (void)state;
  mix_list *inputs = mix_list_of(mix_scalar(1, MIX_FLOAT32));
  assert_null(mix_remat(NULL, NULL, inputs));
  expect_error(MIX_TYPE_ERROR, "got no function");
  assert_null(mix_remat(nothing, NULL, inputs));
  expect_error(MIX_TYPE_ERROR, "returned NULL");
  assert_null(mix_remat(no_list, NULL, inputs));
  expect_error(MIX_TYPE_ERROR, "a list of tensors");
  assert_null(mix_remat(nothing, NULL, (mix_list *)mix_scalar(1, MIX_FLOAT32)));
  expect_error(MIX_TYPE_ERROR, "a list of tensors");
  assert_null(mix_remat(chain, NULL, mix_list_of(inputs)));
  expect_error(MIX_TYPE_ERROR, "a list of tensors as inputs");
  assert_null(mix_segment_current());
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(gradients_have_the_same_bits), TEST(so_have_those_outside_functions),
      TEST(those_of_second_order_agree),  TEST(what_writes_a_variable_happens_once),
      TEST(values_inside_are_not_kept),   TEST(steps_of_loops_keep_what_goes_in),
      TEST(failed_allocations),           TEST(errors)};
  return cmocka_run_group_tests_name("remat", tests, NULL, NULL);
}
