/* mix_custom_gradient: derivatives of three orders by finite differences, functions whose gradient is another
 * one's, remat, loops, captures, weights and layers around it, and what is refused. */
#include "ops/support.h"

#include "base/alloc.h"
#include "support/expect.h"
#include <mixtape/custom_gradient.h>
#include <mixtape/mixtape.h>

enum { SIZE = 3 };

static mix_tensor *numbers_of(mix_shape shape, double phase, mix_dtype dtype) {
  double all[64];
  const int64_t count = mix_shape_size(shape);
  assert_true(count <= 64);
  for (int64_t i = 0; i < count; i++) all[i] = 0.8 + 0.5 * sin(phase + 1.3 * (double)i);
  return tensor(dtype, shape, all);
}

/* ---- x, y -> x^2 y, exp(y), of which the backward function knows the derivatives ---- */

static mix_list *forward(void *context, mix_list *inputs) {
  mix_tensor *x = mix_list_get(inputs, 0), *y = mix_list_get(inputs, 1);
  if (context) ++*(int *)context;
  return mix_list_of(mix_multiply(mix_square(x), y), mix_exp(y));
}
static mix_list *backward(void *context, mix_list *inputs, mix_list *outputs, mix_list *gradients) {
  mix_tensor *x = mix_list_get(inputs, 0), *y = mix_list_get(inputs, 1), *a = mix_list_get(gradients, 0),
             *b = mix_list_get(gradients, 1);
  if (context) ++*(int *)context;
  mix_tensor *twice = mix_multiply(mix_add(x, x), y);
  return mix_list_of(mix_multiply(twice, a),
                     mix_add(mix_multiply(mix_square(x), a), mix_multiply(mix_list_get(outputs, 1), b)));
}

static mix_tensor *weigh(mix_tensor *x, double phase) {
  mix_tensor *weights = numbers_of(mix_tensor_shape(x), phase, mix_tensor_dtype(x));
  return mix_reduce_sum(mix_multiply(x, weights), MIX_ALL_AXES, false);
}

/* Order 0: a weighted sum of the results. Order n: one of the gradients of order n - 1. */
static mix_tensor *objective(int order, mix_list *at) {
  if (!order) {
    mix_list *results = mix_custom_gradient(forward, backward, NULL, at);
    return results ? mix_add(weigh(mix_list_get(results, 0), 1), weigh(mix_list_get(results, 1), 2)) : NULL;
  }
  mix_tape *tape = mix_tape_begin();
  for (int i = 0; i < 2; i++) mix_tape_watch(tape, mix_list_get(at, i));
  mix_tensor *below = objective(order - 1, at);
  mix_tape_end(tape);
  mix_list *gradients = mix_tape_gradient(tape, below, at);
  mix_tensor *sum = weigh(mix_list_get(gradients, 0), 3);
  /* The third derivatives by y of the first result are none. */
  return mix_list_get(gradients, 1) ? mix_add(sum, weigh(mix_list_get(gradients, 1), 4)) : sum;
}

static double value_at(int order, const double x[2 * SIZE]) {
  double value = NAN;
  MIX_SCOPE {
    mix_list *at =
        mix_list_of(tensor(MIX_FLOAT64, MIX_SHAPE(SIZE), x), tensor(MIX_FLOAT64, MIX_SHAPE(SIZE), x + SIZE));
    value = mix_tensor_item(objective(order, at));
  }
  no_error();
  return value;
}

/* Central differences with h = 2^-17, as in test_gradients.c: truncation h^2 / 6 |f'''| < 1e-8 for third
 * derivatives below 1000, and rounding 2^-53 |f| / h < 1e-9 for |f| < 100. */
static void derivatives_of_three_orders(void **state) {
  (void)state;
  double x[2 * SIZE], found[2 * SIZE];
  for (int i = 0; i < 2 * SIZE; i++) x[i] = 0.4 + 0.17 * i;
  for (int order = 0; order < 3; order++) {
    mix_list *at =
        mix_list_of(tensor(MIX_FLOAT64, MIX_SHAPE(SIZE), x), tensor(MIX_FLOAT64, MIX_SHAPE(SIZE), x + SIZE));
    mix_tape *tape = mix_tape_begin();
    for (int i = 0; i < 2; i++) mix_tape_watch(tape, mix_list_get(at, i));
    mix_tensor *y = objective(order, at);
    mix_tape_end(tape);
    mix_list *gradients = mix_tape_gradient(tape, y, at);
    no_error();
    for (int k = 0; k < 2; k++) read_into(mix_list_get(gradients, k), SIZE, found + k * SIZE);
    for (int i = 0; i < 2 * SIZE; i++) {
      const double h = 0x1p-17, middle = x[i];
      x[i] = middle + h;
      const double above = value_at(order, x);
      x[i] = middle - h;
      const double wanted = (above - value_at(order, x)) / (2 * h);
      x[i] = middle;
      if (!(fabs(found[i] - wanted) <= 1e-7 * fmax(1, fabs(wanted))))
        fail_msg("order %d, element %d: %.12g; differences give %.12g", order + 1, i, found[i], wanted);
    }
  }
}

/* ---- gradients that are not the function's ---- */

static mix_list *round_forward(void *context, mix_list *inputs) {
  return (void)context, mix_list_of(mix_round(mix_list_get(inputs, 0)));
}
static mix_list *straight_through(void *context, mix_list *inputs, mix_list *outputs, mix_list *gradients) {
  return (void)context, (void)inputs, (void)outputs, gradients;
}
static mix_list *same_forward(void *context, mix_list *inputs) { return (void)context, inputs; }
static mix_list *reversed(void *context, mix_list *inputs, mix_list *outputs, mix_list *gradients) {
  mix_tensor *gradient = mix_list_get(gradients, 0);
  (void)inputs, (void)outputs;
  return mix_list_of(mix_multiply(mix_scalar_like(gradient, -*(const double *)context), gradient));
}

static mix_tensor *gradient_of_square(mix_custom_forward f, mix_custom_backward b, void *context,
                                      mix_tensor *x) {
  mix_tape *tape = mix_tape_begin();
  mix_tape_watch(tape, x);
  mix_tensor *y = mix_list_get(mix_custom_gradient(f, b, context, mix_list_of(x)), 0);
  mix_tensor *loss = mix_reduce_sum(mix_square(y), MIX_ALL_AXES, false);
  mix_tape_end(tape);
  return mix_list_get(mix_tape_gradient(tape, loss, mix_list_of(x)), 0);
}

static void straight_through_and_reversal(void **state) {
  (void)state;
  double got[3], factor = 0.25;
  for (int d = 0; d < COUNT(floating); d++) {
    mix_tensor *x = tensor(floating[d], MIX_SHAPE(3), NUMBERS(0.25, 1.75, -3.25));
    mix_tensor *gradient = gradient_of_square(round_forward, straight_through, NULL, x);
    has_type(gradient, floating[d], MIX_SHAPE(3));
    read_into(gradient, 3, got);
    assert_true(got[0] == 0 && got[1] == 4 && got[2] == -6); /* 2 round(x) */
    read_into(gradient_of_square(same_forward, reversed, &factor, x), 3, got);
    assert_true(got[0] == -0.125 && got[1] == -0.875 && got[2] == 1.625); /* -2 x / 4 */
  }
}

/* ---- results that nothing reads, whole numbers, gradients that are none ---- */

static mix_list *pick_forward(void *context, mix_list *inputs) {
  mix_tensor *x = mix_list_get(inputs, 0), *index = mix_list_get(inputs, 1);
  (void)context;
  return mix_list_of(mix_gather(x, index, 0), mix_cast(x, MIX_INT32), mix_square(x));
}
static mix_list *pick_backward(void *context, mix_list *inputs, mix_list *outputs, mix_list *gradients) {
  mix_tensor *unread = mix_list_get(gradients, 2);
  (void)context;
  assert_int_equal(mix_list_count(inputs), 2);
  assert_int_equal(mix_list_count(outputs), 3);
  assert_null(mix_list_get(gradients, 1)); /* of whole numbers */
  has_type(unread, MIX_FLOAT32, MIX_SHAPE(3));
  double zeros[3];
  read_into(unread, 3, zeros);
  assert_true(zeros[0] == 0 && zeros[1] == 0 && zeros[2] == 0);
  return mix_list_of(mix_fill(MIX_SHAPE(3), 5, MIX_FLOAT32), NULL);
}

static void parts_without_gradients(void **state) {
  (void)state;
  mix_tensor *x = tensor(MIX_FLOAT32, MIX_SHAPE(3), NUMBERS(1, 2, 3));
  mix_tensor *index = tensor(MIX_INT32, MIX_SHAPE(2), NUMBERS(2, 0));
  mix_tape *tape = mix_tape_begin(.persistent = true);
  mix_tape_watch(tape, x);
  mix_list *y = mix_custom_gradient(pick_forward, pick_backward, NULL, mix_list_of(x, index));
  mix_tape_end(tape);
  double got[3];
  read_into(mix_list_get(y, 0), 2, got);
  assert_true(got[0] == 3 && got[1] == 1);
  for (int again = 0; again < 2; again++) {
    mix_list *gradients = mix_tape_gradient(tape, mix_list_get(y, 0), mix_list_of(x));
    no_error();
    read_into(mix_list_get(gradients, 0), 3, got);
    assert_true(got[0] == 5 && got[1] == 5 && got[2] == 5);
  }
}

/* ---- captures, remat, loops: the bits of the plain function ---- */

static mix_list *negate(void *context, mix_list *inputs) {
  return (void)context, mix_list_of(mix_negative(mix_list_get(inputs, 0)));
}
static mix_list *negate_back(void *context, mix_list *inputs, mix_list *outputs, mix_list *gradients) {
  return (void)context, (void)inputs, (void)outputs, mix_list_of(mix_negative(mix_list_get(gradients, 0)));
}

enum { CUSTOM = 1, REMAT_AROUND = 2, REMAT_INSIDE = 4, LOOP = 8, WAYS = 16 };

static mix_list *repeated_negate(void *context, mix_list *inputs) {
  return mix_remat(negate, context, inputs);
}

static mix_list *middle(void *context, mix_list *inputs) {
  const int ways = *(const int *)context;
  mix_list *x = mix_list_of(mix_tanh(mix_list_get(inputs, 0)));
  mix_custom_forward f = ways & REMAT_INSIDE ? repeated_negate : negate;
  mix_list *y = ways & CUSTOM ? mix_custom_gradient(f, negate_back, NULL, x) : f(NULL, x);
  return y ? mix_list_of(mix_sigmoid(mix_list_get(y, 0))) : NULL;
}

static mix_list *loop_step(void *context, mix_list *carry, mix_list *inputs) {
  mix_tensor *h = mix_multiply(mix_list_get(carry, 0), mix_list_get(inputs, 0));
  mix_list *y = middle(context, mix_list_of(h));
  return y ? mix_list_of(y, y) : NULL;
}

static mix_tensor *run_middle(int *ways, mix_tensor *x) {
  if (*ways & LOOP) {
    mix_tensor *steps = numbers_of(MIX_SHAPE(4, 3), 5, mix_tensor_dtype(x));
    mix_list *result = mix_scan(loop_step, ways, mix_list_of(x), mix_list_of(steps));
    return result ? mix_list_get(mix_list_get(result, 1), 0) : NULL;
  }
  mix_list *y = *ways & REMAT_AROUND ? mix_remat(middle, ways, mix_list_of(x)) : middle(ways, mix_list_of(x));
  return y ? mix_list_get(y, 0) : NULL;
}

/* The loss, its gradient by x, and that of the gradient's sum. */
static mix_list *step(void *context, mix_list *arguments) {
  mix_tensor *x = mix_list_get(arguments, 0);
  mix_list *sources = mix_list_of(x);
  mix_tape *outer = mix_tape_begin(), *inner = (mix_tape_watch(outer, x), mix_tape_begin());
  mix_tape_watch(inner, x);
  mix_tensor *loss = mix_reduce_sum(mix_square(run_middle(context, x)), MIX_ALL_AXES, false);
  mix_tape_end(inner);
  mix_tensor *first = mix_list_get(mix_tape_gradient(inner, loss, sources), 0);
  mix_tape_end(outer);
  mix_tensor *second = mix_list_get(mix_tape_gradient(outer, first, sources), 0);
  return mix_list_of(loss, first, second);
}

static void read_step(int ways, bool captured, double got[7]) {
  mix_tensor *x = numbers_of(MIX_SHAPE(3), 2, MIX_FLOAT32);
  mix_list *results = captured ? mix_function_call(mix_function_new(step, &ways), mix_list_of(x))
                               : step(&ways, mix_list_of(x));
  no_error();
  for (int i = 0, at = 0; i < 3; at += i++ ? 3 : 1) read_into(mix_list_get(results, i), i ? 3 : 1, got + at);
}

static void everywhere_the_bits_of_the_plain_function(void **state) {
  (void)state;
  for (int ways = 0; ways < WAYS; ways++)
    for (int captured = 0; captured < 2; captured++) {
      double plain[7], got[7];
      read_step(ways & ~(CUSTOM | REMAT_INSIDE), captured, plain);
      read_step(ways, captured, got);
      for (int i = 0; i < 7; i++)
        if (got[i] != plain[i])
          fail_msg("ways %d, captured %d, number %d: %.9g and %.9g", ways, captured, i, got[i], plain[i]);
      assert_true(plain[1] != 0 && plain[4] != 0);
    }
}

static void nothing_of_it_is_left_in_a_plan(void **state) {
  (void)state;
  int ways = CUSTOM;
  mix_function *function = mix_function_new(step, &ways);
  assert_non_null(mix_function_call(function, mix_list_of(numbers_of(MIX_SHAPE(3), 2, MIX_FLOAT32))));
  const char *captured = mix_function_dump(function, "captured");
  assert_non_null(strstr(captured, "= negative("));
  assert_null(strstr(captured, "custom"));
}

/* ---- weights and layers ---- */

static mix_list *scale_forward(void *context, mix_list *inputs) {
  (void)context;
  return mix_list_of(mix_multiply(mix_list_get(inputs, 0), mix_list_get(inputs, 1)));
}
static mix_list *scale_backward(void *context, mix_list *inputs, mix_list *outputs, mix_list *gradients) {
  mix_tensor *gradient = mix_list_get(gradients, 0);
  (void)context, (void)outputs;
  return mix_list_of(mix_multiply(gradient, mix_list_get(inputs, 1)),
                     mix_multiply(gradient, mix_list_get(inputs, 0)));
}
static mix_list *reads_weight(void *variable, mix_list *inputs) {
  return mix_list_of(mix_multiply(mix_list_get(inputs, 0), mix_variable_value(variable)));
}

static void weights_are_inputs(void **state) {
  (void)state;
  mix_variable *w = mix_variable_new(mix_scalar(3, MIX_FLOAT32), .name = "w");
  mix_tensor *x = mix_scalar(5, MIX_FLOAT32);
  mix_tape *tape = mix_tape_begin();
  mix_list *y =
      mix_custom_gradient(scale_forward, scale_backward, NULL, mix_list_of(x, mix_variable_value(w)));
  mix_tape_end(tape);
  double got;
  read_into(mix_list_get(mix_tape_gradient(tape, mix_list_get(y, 0), mix_list_of(w)), 0), 1, &got);
  assert_true(got == 5);
  assert_null(mix_custom_gradient(reads_weight, straight_through, w, mix_list_of(x)));
  expect_error(MIX_VALUE_ERROR, "reads the trainable variable 'w'");
  mix_variable *fixed = mix_variable_new(mix_scalar(3, MIX_FLOAT32), .name = "fixed", .not_trainable = true);
  assert_non_null(mix_custom_gradient(reads_weight, straight_through, fixed, mix_list_of(x)));
  no_error();
}

/* A layer with a state that both functions read, in the layer's compute dtype. */
typedef struct stated {
  mix_variable *factor;
  bool plain;
} stated;

static mix_status stated_build(mix_layer *layer, int count, const mix_shape *shapes) {
  stated *s = mix_layer_data(layer);
  (void)count, (void)shapes;
  s->factor = mix_layer_add_weight(layer, "factor", .shape = (mix_shape){.rank = 0}, .initializer = "ones",
                                   .not_trainable = true);
  return mix_error();
}
static mix_list *times_factor(void *context, mix_list *inputs) {
  const stated *s = context;
  return mix_list_of(mix_multiply(mix_list_get(inputs, 0), mix_variable_value(s->factor)));
}
static mix_list *times_factor_back(void *context, mix_list *inputs, mix_list *outputs, mix_list *gradients) {
  return (void)inputs, (void)outputs, times_factor(context, gradients);
}
static mix_list *stated_call(mix_layer *layer, const mix_call_args *args) {
  stated *s = mix_layer_data(layer);
  return s->plain ? times_factor(s, args->inputs)
                  : mix_custom_gradient(times_factor, times_factor_back, s, args->inputs);
}
static const mix_layer_class stated_class = {.size = sizeof stated_class,
                                             .name = "Stated",
                                             .instance_size = sizeof(stated),
                                             .build = stated_build,
                                             .call = stated_call};

static double trained(bool plain, const char *policy, bool rewrites) {
  double got[12] = {0}, sum = 0;
  MIX_SCOPE {
    mix_set_seed(3);
    mix_set_global_policy(policy);
    mix_layer *layer = mix_layer_new(.layer_class = &stated_class);
    ((stated *)mix_layer_data(layer))->plain = plain;
    mix_tensor *x = mix_input(.shape = MIX_SHAPE(4));
    mix_tensor *y = mix_call(layer, mix_call(mix_dense(3, "tanh"), x));
    mix_model *model = mix_model_new(x, mix_call(mix_dense(1, .dtype = "float32"), y));
    mix_optimizer *optimizer = mix_sgd(.learning_rate = 0.5);
    mix_model_compile(model, .loss = "mse",
                      .optimizer =
                          rewrites ? mix_enable_mixed_precision_graph_rewrite(optimizer) : optimizer);
    mix_model_fit(model, numbers_of(MIX_SHAPE(16, 4), 1, MIX_FLOAT32),
                  numbers_of(MIX_SHAPE(16, 1), 2, MIX_FLOAT32), .batch_size = 4, .epochs = 2, .seed = 4,
                  .quiet = true);
    mix_list *weights = mix_model_get_weights(model);
    read_into(mix_list_get(weights, 0), 12, got);
    no_error();
    mix_disable_mixed_precision_graph_rewrite();
    mix_set_global_policy("float32");
  }
  for (int i = 0; i < 12; i++) sum += got[i] * sin(i + 1);
  return sum;
}

/* Loss scaling of both semantics, and the graph rewrite. */
static void layers_train_alike(void **state) {
  (void)state;
  static const struct {
    const char *policy;
    bool rewrites;
  } rows[] = {{"float32", false}, {"mixed_float16", false}, {"mixed_bfloat16", false}, {"float32", true}};
  for (int r = 0; r < COUNT(rows); r++) {
    const double plain = trained(true, rows[r].policy, rows[r].rewrites);
    assert_true(trained(false, rows[r].policy, rows[r].rewrites) == plain && isfinite(plain));
  }
}

/* ---- what is refused ---- */

static mix_list *no_list(void *context, mix_list *inputs) { return (void)inputs, context; }
static mix_list *fails_forward(void *context, mix_list *inputs) {
  return (void)context, (void)inputs, mix_error_record(MIX_IO_ERROR, "of its own"), NULL;
}
static mix_list *no_tensors(void *context, mix_list *inputs) {
  return (void)context, mix_list_of(mix_list_get(inputs, 0), NULL);
}

static void bad_calls(void **state) {
  (void)state;
  mix_list *x = mix_list_of(mix_scalar(1, MIX_FLOAT32));
#define REFUSED(status, part, ...)                                                                           \
  do {                                                                                                       \
    assert_null(mix_custom_gradient(__VA_ARGS__));                                                           \
    expect_error(status, part);                                                                              \
  } while (0)
  REFUSED(MIX_TYPE_ERROR, "got no forward function", NULL, straight_through, NULL, x);
  REFUSED(MIX_TYPE_ERROR, "got no backward function", same_forward, NULL, NULL, x);
  REFUSED(MIX_TYPE_ERROR, "a list of tensors as inputs", same_forward, straight_through, NULL, NULL);
  REFUSED(MIX_TYPE_ERROR, "an empty list", same_forward, straight_through, NULL, mix_list_new(0, NULL));
  REFUSED(MIX_TYPE_ERROR, "a list of tensors as inputs", same_forward, straight_through, NULL,
          mix_list_of(x));
  REFUSED(MIX_TYPE_ERROR, "from the forward function", no_list, straight_through, NULL, x);
  REFUSED(MIX_TYPE_ERROR, "from the forward function", no_list, straight_through, mix_list_get(x, 0), x);
  REFUSED(MIX_TYPE_ERROR, "from the forward function", no_tensors, straight_through, NULL, x);
  REFUSED(MIX_IO_ERROR, "of its own", fails_forward, straight_through, NULL, x);
#undef REFUSED
}

static mix_list *given_back(void *context, mix_list *inputs, mix_list *outputs, mix_list *gradients) {
  return (void)inputs, (void)outputs, (void)gradients, context;
}
static mix_list *fails_back(void *context, mix_list *inputs, mix_list *outputs, mix_list *gradients) {
  return given_back(context, inputs, outputs, gradients), mix_error_record(MIX_IO_ERROR, "of its own"), NULL;
}

static void bad_gradients(void **state) {
  (void)state;
  mix_tensor *x = tensor(MIX_FLOAT32, MIX_SHAPE(2), NUMBERS(1, 2)), *whole = mix_scalar(1, MIX_INT32);
  const struct {
    mix_custom_backward function;
    void *returned;
    mix_status status;
    const char *part;
  } rows[] = {{given_back, NULL, MIX_TYPE_ERROR, "returned NULL; expected a list of gradients"},
              {given_back, x, MIX_TYPE_ERROR, "returned another object"},
              {given_back, mix_list_of(x), MIX_VALUE_ERROR, "1 gradients for 2 inputs"},
              {given_back, mix_list_of(mix_list_of(x), NULL), MIX_TYPE_ERROR, "input 0 is another object"},
              {given_back, mix_list_of(mix_cast(x, MIX_FLOAT16), NULL), MIX_TYPE_ERROR,
               "the gradient of input 0 is float16 and the input float32"},
              {given_back, mix_list_of(mix_scalar(1, MIX_FLOAT32), NULL), MIX_VALUE_ERROR,
               "the gradient of input 0 has shape (); expected (2)"},
              {given_back, mix_list_of(x, whole), MIX_TYPE_ERROR, "input 1, which is int32; expected NULL"},
              {fails_back, NULL, MIX_IO_ERROR, "of its own"}};
  for (int r = 0; r < COUNT(rows); r++) {
    mix_tape *tape = mix_tape_begin();
    mix_tape_watch(tape, x);
    mix_list *y =
        mix_custom_gradient(same_forward, rows[r].function, rows[r].returned, mix_list_of(x, whole));
    mix_tape_end(tape);
    no_error();
    assert_null(mix_tape_gradient(tape, mix_list_get(y, 0), mix_list_of(x)));
    expect_error(rows[r].status, rows[r].part);
  }
  /* NULL for all: nothing flows. */
  mix_tape *tape = mix_tape_begin();
  mix_tape_watch(tape, x);
  mix_list *y = mix_custom_gradient(same_forward, given_back, mix_list_of(NULL, NULL), mix_list_of(x, whole));
  mix_tape_end(tape);
  assert_null(mix_list_get(mix_tape_gradient(tape, mix_list_get(y, 0), mix_list_of(x)), 0));
  no_error();
}

static void memory_runs_out(void **state) {
  (void)state;
  bool done = false;
  for (int64_t n = 0; !done; n++)
    MIX_SCOPE {
      int ways = CUSTOM | REMAT_AROUND;
      mix_tensor *x = numbers_of(MIX_SHAPE(3), 2, MIX_FLOAT32);
      mix_inject_allocation_failure(n);
      mix_list *results = step(&ways, mix_list_of(x));
      mix_inject_allocation_failure(-1);
      done = mix_error() == MIX_OK;
      assert_true(done ? results != NULL : mix_error_take(NULL, 0) == MIX_MEMORY_ERROR);
      assert_true(n < 10000);
    }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(derivatives_of_three_orders),
      TEST(straight_through_and_reversal),
      TEST(parts_without_gradients),
      TEST(everywhere_the_bits_of_the_plain_function),
      TEST(nothing_of_it_is_left_in_a_plan),
      TEST(weights_are_inputs),
      TEST(layers_train_alike),
      TEST(bad_calls),
      TEST(bad_gradients),
      TEST(memory_runs_out),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
