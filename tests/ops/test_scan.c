/* scan: values against the loop written out, gradients of first and second order against finite differences
 * in float64, what stays out of the plan, and errors. */
/* Holds docs/NUMERICS.md: Loops and recurrent layers. */
#include "ops/support.h"

#include "graph/body.h"
#include <mixtape/device.h>
#include <mixtape/function.h>
#include <mixtape/scan.h>

enum { STEPS = 3, ROWS = 2, UNITS = 2, SIZE = 12, WEIGHTS = 4 };
static const double x_numbers[SIZE] = {.1, .2, .3, -.1, .5, .6, .2, -.2, .1, .9, -.5, .4};
static const double w_numbers[WEIGHTS] = {.1, -.2, .3, .4}, b_numbers[UNITS] = {.05, -.3},
                    h_numbers[WEIGHTS] = {.3, -.4, .7, .2};

/* ---- a recurrence: h = tanh(x + h w + b), which also gives h squared ---- */

typedef struct recurrence {
  mix_tensor *w, *b;
} recurrence;

static mix_tensor *next(const recurrence *r, mix_tensor *x, mix_tensor *h) {
  return mix_tanh(mix_bias_add(mix_add(x, mix_matmul(h, r->w, false, false)), r->b));
}

static mix_list *recur(void *context, mix_list *carry, mix_list *inputs) {
  mix_tensor *h = next(context, mix_list_get(inputs, 0), mix_list_get(carry, 0));
  return mix_list_of(mix_list_of(h), mix_list_of(h, mix_square(h)));
}

static mix_list *scanned(recurrence *r, mix_tensor *x, mix_tensor *h, bool reverse) {
  mix_list *result = mix_scan(recur, r, mix_list_of(h), mix_list_of(x), .reverse = reverse);
  no_error();
  return result;
}
static mix_tensor *carry_of(mix_list *result, int i) { return mix_list_get(mix_list_get(result, 0), i); }
static mix_tensor *output_of(mix_list *result, int i) { return mix_list_get(mix_list_get(result, 1), i); }

/* The same step by step. */
static void written_out(recurrence *r, mix_tensor *x, mix_tensor *h, bool reverse, mix_tensor **last,
                        mix_tensor **all) {
  const mix_shape shape = mix_tensor_shape(x);
  mix_tensor *rows[16];
  for (int s = 0; s < shape.dims[0]; s++) {
    const int at = reverse ? (int)shape.dims[0] - 1 - s : s;
    mix_tensor *one = mix_slice(x, MIX_SHAPE(at, 0, 0), MIX_SHAPE(1, shape.dims[1], shape.dims[2]));
    h = next(r, mix_reshape(one, MIX_SHAPE(shape.dims[1], shape.dims[2])), h);
    rows[at] = mix_reshape(h, MIX_SHAPE(1, shape.dims[1], shape.dims[2]));
  }
  *last = h;
  *all = mix_concat((int)shape.dims[0], rows, 0);
}

static mix_tensor *x_of(mix_dtype dtype) { return tensor(dtype, MIX_SHAPE(STEPS, ROWS, UNITS), x_numbers); }
static mix_tensor *h_of(mix_dtype dtype) { return tensor(dtype, MIX_SHAPE(ROWS, UNITS), h_numbers); }
static recurrence recurrence_of(mix_dtype dtype) {
  return (recurrence){tensor(dtype, MIX_SHAPE(UNITS, UNITS), w_numbers),
                      tensor(dtype, MIX_SHAPE(UNITS), b_numbers)};
}

static void values_are_those_of_the_loop_written_out(void **state) {
  (void)state;
  for (int d = 0; d < COUNT(floating); d++)
    for (int reverse = 0; reverse < 2; reverse++) {
      recurrence r = recurrence_of(floating[d]);
      mix_tensor *x = x_of(floating[d]), *h = h_of(floating[d]), *last, *all;
      double wanted[SIZE];
      written_out(&r, x, h, reverse, &last, &all);
      mix_list *result = scanned(&r, x, h, reverse);
      has_type(output_of(result, 1), floating[d], MIX_SHAPE(STEPS, ROWS, UNITS));
      read_into(all, SIZE, wanted);
      has_values(output_of(result, 0), SIZE, wanted);
      read_into(last, WEIGHTS, wanted);
      has_values(carry_of(result, 0), WEIGHTS, wanted);
      read_into(mix_square(all), SIZE, wanted);
      has_values(output_of(result, 1), SIZE, wanted);
    }
}

static mix_tensor *waves(mix_dtype dtype, mix_shape shape, double phase) {
  const int64_t count = mix_shape_size(shape);
  double *values = malloc(sizeof *values * (size_t)count);
  for (int64_t i = 0; i < count; i++) values[i] = 0.25 * sin(0.7 * (double)i + phase);
  mix_tensor *made = tensor(dtype, shape, values);
  free(values);
  return made;
}

/* Few rows and many, with two blocks of terms and columns that fill no whole vectors, forward and backward:
 * weights that are packed
 * once for all steps give the bits of those that each step packs. */
static void packed_weights_have_the_bits_of_the_loop_written_out(void **state) {
  (void)state;
  enum { WIDE = 400, LONG = 3, MOST = 33 };
  static const int rows[] = {1, 2, 5, 33};
  static double values[2][MOST * WIDE], slopes[2][MOST * WIDE];
  for (int d = 0; d < COUNT(floating); d++)
    for (int i = 0; i < 4; i++)
      MIX_SCOPE {
        const mix_dtype dtype = floating[d];
        recurrence r = {waves(dtype, MIX_SHAPE(WIDE, WIDE), 1), waves(dtype, MIX_SHAPE(WIDE), 2)};
        mix_tensor *x = waves(dtype, MIX_SHAPE(LONG, rows[i], WIDE), 3), *last, *all;
        mix_tensor *h = waves(dtype, MIX_SHAPE(rows[i], WIDE), 4);
        for (int loop = 0; loop < 2; loop++) {
          mix_tape *tape = mix_tape_begin();
          mix_tape_watch(tape, h);
          if (loop)
            last = carry_of(scanned(&r, x, h, false), 0);
          else
            written_out(&r, x, h, false, &last, &all);
          mix_list *gradients = mix_tape_gradient(tape, last, mix_list_of(h));
          read_into(last, rows[i] * WIDE, values[loop]);
          read_into(mix_list_get(gradients, 0), rows[i] * WIDE, slopes[loop]);
        }
        const size_t size = sizeof(double) * WIDE * (size_t)rows[i];
        assert_memory_equal(values[0], values[1], size);
        assert_memory_equal(slopes[0], slopes[1], size);
      }
}

/* ---- gradients ---- */

enum { ALL = SIZE + WEIGHTS + UNITS + WEIGHTS };

/* A scalar of everything: outputs and the last carry, of parameters in one array: x, w, b, h. */
typedef struct parameters {
  mix_tensor *x, *h;
  recurrence r;
} parameters;

static parameters split(const double *numbers) {
  return (parameters){tensor(MIX_FLOAT64, MIX_SHAPE(STEPS, ROWS, UNITS), numbers),
                      tensor(MIX_FLOAT64, MIX_SHAPE(ROWS, UNITS), numbers + SIZE + WEIGHTS + UNITS),
                      {tensor(MIX_FLOAT64, MIX_SHAPE(UNITS, UNITS), numbers + SIZE),
                       tensor(MIX_FLOAT64, MIX_SHAPE(UNITS), numbers + SIZE + WEIGHTS)}};
}
static mix_list *sources_of(const parameters *p) { return mix_list_of(p->x, p->r.w, p->r.b, p->h); }

typedef mix_tensor *scalar_of(parameters *p, bool reverse);

static mix_tensor *loss_of(parameters *p, bool reverse) {
  mix_list *result = scanned(&p->r, p->x, p->h, reverse);
  mix_tensor *y = output_of(result, 0), *weights = mix_exp(y);
  return mix_add(mix_reduce_sum(mix_multiply(weights, output_of(result, 1)), MIX_ALL_AXES, false),
                 mix_reduce_sum(mix_sin(carry_of(result, 0)), MIX_ALL_AXES, false));
}

static mix_list *gradients_of(scalar_of *scalar, parameters *p, bool reverse) {
  mix_tape *tape = mix_tape_begin();
  mix_list *sources = sources_of(p);
  for (int i = 0; i < 4; i++) mix_tape_watch(tape, mix_list_get(sources, i));
  mix_list *gradients = mix_tape_gradient(tape, scalar(p, reverse), sources);
  no_error();
  return gradients;
}

/* The squares of all gradients. */
static mix_tensor *slope_of(parameters *p, bool reverse) {
  mix_list *gradients = gradients_of(loss_of, p, reverse);
  mix_tensor *sum = NULL;
  for (int i = 0; i < 4; i++) {
    mix_tensor *part = mix_reduce_sum(mix_square(mix_list_get(gradients, i)), MIX_ALL_AXES, false);
    sum = sum ? mix_add(sum, part) : part;
  }
  return sum;
}

/* Central differences with steps of 1e-5 are off by about 1e-10 of the third derivative, and by 1e-11 of the
 * value through rounding: the bound is a hundred times that. */
static void check_differences(scalar_of *scalar, bool reverse) {
  double numbers[ALL], got[ALL];
  memcpy(numbers, x_numbers, sizeof x_numbers);
  memcpy(numbers + SIZE, w_numbers, sizeof w_numbers);
  memcpy(numbers + SIZE + WEIGHTS, b_numbers, sizeof b_numbers);
  memcpy(numbers + SIZE + WEIGHTS + UNITS, h_numbers, sizeof h_numbers);
  parameters p = split(numbers);
  mix_list *gradients = gradients_of(scalar, &p, reverse);
  static const int counts[] = {SIZE, WEIGHTS, UNITS, WEIGHTS};
  for (int i = 0, at = 0; i < 4; at += counts[i++])
    read_into(mix_list_get(gradients, i), counts[i], got + at);
  for (int i = 0; i < ALL; i++)
    MIX_SCOPE {
      double values[2], kept = numbers[i];
      for (int side = 0; side < 2; side++) {
        numbers[i] = kept + (side ? 1e-5 : -1e-5);
        parameters moved = split(numbers);
        read_into(scalar(&moved, reverse), 1, &values[side]);
      }
      numbers[i] = kept;
      const double wanted = (values[1] - values[0]) / 2e-5;
      if (!(fabs(got[i] - wanted) <= 1e-8 * (1 + fabs(wanted))))
        fail_msg("parameter %d: the gradient is %.12g, by differences %.12g", i, got[i], wanted);
    }
}

static void gradients_of_everything(void **state) {
  (void)state;
  check_differences(loss_of, false);
  check_differences(loss_of, true);
}
static void gradients_of_gradients(void **state) {
  (void)state;
  check_differences(slope_of, false);
  check_differences(slope_of, true);
}

/* An invariant that enters in a way that is no product, and one without any gradient. */
static mix_list *scale(void *context, mix_list *carry, mix_list *inputs) {
  const recurrence *r = context;
  mix_tensor *h = mix_multiply(mix_list_get(carry, 0), mix_sin(mix_multiply(r->w, mix_list_get(inputs, 0))));
  return mix_list_of(
      mix_list_of(h, mix_add(mix_list_get(carry, 1), mix_scalar_like(mix_list_get(carry, 1), 1))), NULL);
}
static mix_tensor *scaled(parameters *p, bool reverse) {
  mix_list *result = mix_scan(scale, &p->r, mix_list_of(p->h, mix_scalar(0, MIX_INT32)), mix_list_of(p->x),
                              .reverse = reverse);
  has_values(carry_of(result, 1), 1, NUMBERS(STEPS));
  return mix_add(mix_reduce_sum(mix_square(carry_of(result, 0)), MIX_ALL_AXES, false),
                 mix_reduce_sum(mix_square(p->r.b), MIX_ALL_AXES, false));
}
static void sums_of_gradients_over_the_steps(void **state) {
  (void)state;
  check_differences(scaled, false);
  check_differences(scaled, true);
}

/* A loop in a loop: each step runs the recurrence over all of x, from what the outer steps have made. */
static mix_list *nest(void *context, mix_list *carry, mix_list *inputs) {
  parameters *p = context;
  mix_list *inner =
      scanned(&p->r, p->x, mix_multiply(mix_list_get(carry, 0), mix_list_get(inputs, 0)), false);
  return mix_list_of(mix_list_of(carry_of(inner, 0)),
                     mix_list_of(mix_reduce_sum(output_of(inner, 0), MIX_AXES(0), false)));
}
static mix_tensor *nested(parameters *p, bool reverse) {
  mix_list *result = mix_scan(nest, p, mix_list_of(p->h), mix_list_of(p->x), .reverse = reverse);
  no_error();
  return mix_add(mix_reduce_sum(mix_square(output_of(result, 0)), MIX_ALL_AXES, false),
                 mix_reduce_sum(carry_of(result, 0), MIX_ALL_AXES, false));
}
static void loops_in_loops(void **state) {
  (void)state;
  check_differences(nested, false);
}

/* 16-bit gradients of weights are summed in float32 and rounded once: 300 steps of 1/256, where a sum in
 * bfloat16 would stop at 1. */
static mix_list *add_weight(void *context, mix_list *carry, mix_list *inputs) {
  (void)inputs;
  return mix_list_of(
      mix_list_of(mix_add(mix_list_get(carry, 0), mix_multiply(context, mix_list_get(inputs, 0)))), NULL);
}
static void sixteen_bit_gradients_add_up_in_float32(void **state) {
  (void)state;
  mix_tensor *w = mix_scalar(1, MIX_BFLOAT16), *x = mix_fill(MIX_SHAPE(300), 1.0 / 256, MIX_BFLOAT16);
  mix_tape *tape = mix_tape_begin();
  mix_tape_watch(tape, w);
  mix_list *result = mix_scan(add_weight, w, mix_list_of(mix_scalar(0, MIX_BFLOAT16)), mix_list_of(x));
  mix_list *gradients = mix_tape_gradient(tape, carry_of(result, 0), mix_list_of(w));
  has_values(mix_list_get(gradients, 0), 1, NUMBERS(1.171875));
}

/* As in TensorFlow, a step that reads float32 in float16 adds its gradient up in float32: twice 40000 is too
 * much for float16. */
static mix_list *add_narrowed(void *context, mix_list *carry, mix_list *inputs) {
  mix_tensor *w = mix_cast(context, MIX_FLOAT16);
  mix_tensor *x = mix_multiply(w, mix_list_get(inputs, 0));
  return mix_list_of(mix_list_of(mix_add(mix_list_get(carry, 0), mix_cast(x, MIX_FLOAT32))), NULL);
}
static void gradients_of_steps_in_float16_add_up_in_float32(void **state) {
  (void)state;
  mix_tensor *w = mix_scalar(1, MIX_FLOAT32), *x = mix_fill(MIX_SHAPE(2), 40000, MIX_FLOAT16);
  mix_tape *tape = mix_tape_begin();
  mix_tape_watch(tape, w);
  mix_list *result = mix_scan(add_narrowed, w, mix_list_of(mix_scalar(0, MIX_FLOAT32)), mix_list_of(x));
  mix_list *gradients = mix_tape_gradient(tape, carry_of(result, 0), mix_list_of(w));
  has_type(mix_list_get(gradients, 0), MIX_FLOAT32, MIX_SHAPE());
  has_values(mix_list_get(gradients, 0), 1, NUMBERS(80000));
}

/* A step that reads a row of the weight, as GRU its second bias: all steps are summed after the loop, which
 * carries nothing of the weight's size. */
static mix_list *add_second_row(void *context, mix_list *carry, mix_list *inputs) {
  (void)inputs;
  mix_tensor *w = mix_cast(context, MIX_FLOAT16);
  mix_tensor *bias = mix_reshape(mix_slice(w, MIX_SHAPE(1, 0), MIX_SHAPE(1, 3)), MIX_SHAPE(3));
  return mix_list_of(mix_list_of(mix_bias_add(mix_list_get(carry, 0), bias)), NULL);
}
static mix_list *gradient_of_rows(void *context, mix_list *arguments) {
  (void)context;
  mix_tensor *w = mix_list_get(arguments, 0);
  mix_tape *tape = mix_tape_begin();
  mix_tape_watch(tape, w);
  mix_list *result = mix_scan(add_second_row, w, mix_list_of(mix_fill(MIX_SHAPE(2, 3), 0, MIX_FLOAT16)), NULL,
                              .steps = 40000);
  return mix_tape_gradient(tape, carry_of(result, 0), mix_list_of(w));
}
static void gradients_of_rows_add_up_after_the_loop(void **state) {
  (void)state;
  mix_function *function = mix_function_new(gradient_of_rows, NULL, .name = "rows");
  mix_list *result = mix_function_call(function, mix_list_of(mix_fill(MIX_SHAPE(2, 3), 0, MIX_FLOAT32)));
  no_error();
  has_values(mix_list_get(result, 0), 6, NUMBERS(0, 0, 0, 80000, 80000, 80000));
  const char *graph = mix_function_dump(function, "captured");
  assert_null(strstr(graph, "carries=2"));
  assert_non_null(strstr(graph, "carries=1"));
}

/* x * 1 + x * 2 by a loop whose steps read x in float16, in a loop that makes x anew. */
static mix_list *triple(void *context, mix_list *carry, mix_list *inputs) {
  (void)inputs;
  mix_list *sum = mix_scan(add_narrowed, mix_list_get(carry, 0), mix_list_of(mix_scalar(0, MIX_FLOAT32)),
                           mix_list_of(context));
  return mix_list_of(mix_list_of(carry_of(sum, 0)), NULL);
}
static void a_loop_in_a_loop_rounds_what_the_outer_one_makes(void **state) {
  (void)state;
  const double numbers[] = {1, 2};
  mix_tensor *x = mix_scalar(1, MIX_FLOAT32),
             *factors = mix_tensor_from_doubles(numbers, MIX_FLOAT16, MIX_SHAPE(2));
  mix_tape *tape = mix_tape_begin();
  mix_tape_watch(tape, x);
  mix_list *result = mix_scan(triple, factors, mix_list_of(x), NULL, .steps = 2);
  has_values(carry_of(result, 0), 1, NUMBERS(9));
  mix_list *gradients = mix_tape_gradient(tape, carry_of(result, 0), mix_list_of(x));
  no_error();
  has_values(mix_list_get(gradients, 0), 1, NUMBERS(9));
}

/* ---- numbers of steps ---- */

static void no_steps_and_no_inputs(void **state) {
  (void)state;
  recurrence r = recurrence_of(MIX_FLOAT32);
  mix_tensor *h = h_of(MIX_FLOAT32);
  double kept[WEIGHTS];
  read_into(h, WEIGHTS, kept);
  mix_list *result = scanned(&r, mix_fill(MIX_SHAPE(0, ROWS, UNITS), 0, MIX_FLOAT32), h, false);
  has_values(carry_of(result, 0), WEIGHTS, kept);
  has_type(output_of(result, 0), MIX_FLOAT32, MIX_SHAPE(0, ROWS, UNITS));
  mix_list *powers = mix_scan(scale, &r, mix_list_of(h, mix_scalar(0, MIX_INT32)), NULL, .steps = 2);
  refused((mix_tensor *)powers, MIX_VALUE_ERROR, "index"); /* `scale` reads an input */
}

static mix_list *doubled(void *context, mix_list *carry, mix_list *inputs) {
  (void)context, (void)inputs;
  mix_tensor *x = mix_list_get(carry, 0);
  return mix_list_of(mix_list_of(mix_add(x, x)), mix_list_of(x));
}
static void steps_without_inputs(void **state) {
  (void)state;
  mix_list *result = mix_scan(doubled, NULL, mix_list_of(mix_scalar(1, MIX_FLOAT32)), NULL, .steps = 5);
  has_values(carry_of(result, 0), 1, NUMBERS(32));
  has_values(output_of(result, 0), 5, NUMBERS(1, 2, 4, 8, 16));
}

/* ---- captured functions ---- */

static mix_variable *weight;

static mix_list *train(void *context, mix_list *arguments) {
  (void)context;
  recurrence r = {NULL, tensor(MIX_FLOAT32, MIX_SHAPE(UNITS), b_numbers)};
  mix_tape *tape = mix_tape_begin();
  r.w = mix_variable_value(weight);
  mix_list *result =
      mix_scan(recur, &r, mix_list_of(mix_fill(MIX_SHAPE(ROWS, UNITS), 0, MIX_FLOAT32)), arguments);
  mix_tensor *loss = mix_reduce_sum(mix_square(output_of(result, 0)), MIX_ALL_AXES, false);
  mix_list *gradients = mix_tape_gradient(tape, loss, mix_list_of(weight));
  mix_variable_assign_sub(weight, mix_multiply(mix_list_get(gradients, 0), mix_scalar(0.01, MIX_FLOAT32)));
  return mix_list_of(loss);
}

/* The plan is the same for every number of steps, but for the values of all steps. */
static void plans_do_not_grow_with_the_steps(void **state) {
  (void)state;
  int nodes[2], captured[2];
  int64_t bytes[2];
  for (int i = 0; i < 2; i++) {
    const int64_t steps = i ? 1000 : 10;
    weight = mix_variable_new(tensor(MIX_FLOAT32, MIX_SHAPE(UNITS, UNITS), w_numbers), .name = "w");
    mix_function *function = mix_function_new(train, NULL, .name = "train");
    mix_function_call(function, mix_list_of(mix_fill(MIX_SHAPE(steps, ROWS, UNITS), 0.5, MIX_FLOAT32)));
    no_error();
    mix_plan_report report;
    mix_function_report(function, &report, sizeof report);
    nodes[i] = report.nodes;
    captured[i] = report.captured_nodes;
    bytes[i] = (int64_t)report.arena_bytes / steps;
  }
  assert_int_equal(nodes[0], nodes[1]);
  assert_int_equal(captured[0], captured[1]);
  /* h, x + ..., and the gradients of both at each step; ten steps also have what does not grow */
  assert_in_range(bytes[1], 1, 6 * ROWS * UNITS * (int)sizeof(float) + 64);
  assert_true(bytes[1] <= bytes[0]);
}

static void captured_steps_train_as_evaluated_ones(void **state) {
  (void)state;
  double eager[WEIGHTS], captured[WEIGHTS];
  mix_tensor *x = x_of(MIX_FLOAT32);
  for (int i = 0; i < 2; i++) {
    weight = mix_variable_new(tensor(MIX_FLOAT32, MIX_SHAPE(UNITS, UNITS), w_numbers), .name = "w");
    mix_function *function = mix_function_new(train, NULL, .name = "train");
    for (int step = 0; step < 3; step++) {
      if (i)
        mix_function_call(function, mix_list_of(x));
      else
        train(NULL, mix_list_of(x));
    }
    read_into(mix_variable_value(weight), WEIGHTS, i ? captured : eager);
  }
  for (int i = 0; i < WEIGHTS; i++) assert_true(eager[i] == captured[i]);
}

/* The bits do not depend on the number of threads. */
static void any_number_of_threads(void **state) {
  (void)state;
  enum { WIDE = 64, LONG = 9 };
  static double numbers[2][WIDE * WIDE];
  const int former = mix_threads();
  double *data = malloc(sizeof(double) * LONG * WIDE * WIDE);
  for (int i = 0; i < LONG * WIDE * WIDE; i++) data[i] = fmod(i * 0.618, 0.25) - 0.125;
  for (int t = 0; t < 2; t++)
    MIX_SCOPE {
      mix_set_threads(t + 1);
      recurrence r = {tensor(MIX_FLOAT32, MIX_SHAPE(WIDE, WIDE), data),
                      mix_fill(MIX_SHAPE(WIDE), 0.5, MIX_FLOAT32)};
      mix_list *result = scanned(&r, tensor(MIX_FLOAT32, MIX_SHAPE(LONG, WIDE, WIDE), data),
                                 mix_fill(MIX_SHAPE(WIDE, WIDE), 0, MIX_FLOAT32), t == 2);
      read_into(carry_of(result, 0), WIDE * WIDE, numbers[t]);
    }
  mix_set_threads(former);
  free(data);
  assert_memory_equal(numbers[0], numbers[1], sizeof numbers[0]);
}

/* ---- variables that a step assigns, and numbers that it draws ---- */

typedef struct drawn {
  mix_generator *generator;
  mix_variable *counter;
} drawn;

static mix_list *draw(void *context, mix_list *carry, mix_list *inputs) {
  const drawn *d = context;
  (void)inputs;
  mix_tensor *numbers = mix_random_uniform(d->generator, MIX_SHAPE(2), MIX_FLOAT32);
  mix_variable_assign_add(d->counter, mix_scalar(1, MIX_FLOAT32));
  mix_tensor *sum = mix_add(mix_list_get(carry, 0), mix_variable_value(d->counter));
  return mix_list_of(
      mix_list_of(sum),
      mix_list_of(mix_add(numbers, mix_random_uniform(d->generator, MIX_SHAPE(2), MIX_FLOAT32))));
}
static mix_list *draw_all(void *context, mix_list *arguments) {
  mix_list *result = mix_scan(draw, context, arguments, NULL, .steps = STEPS);
  return result ? mix_list_of(carry_of(result, 0), output_of(result, 0)) : NULL;
}
/* As in the loop written out: each step draws anew, and the generator goes on behind the loop. */
static void steps_assign_and_draw(void **state) {
  (void)state;
  double wanted[4 * STEPS];
  mix_generator *alone = mix_generator_new(7);
  for (int s = 0; s < 2 * STEPS; s++) {
    double two[2][2];
    for (int i = 0; i < 2; i++) read_into(mix_random_uniform(alone, MIX_SHAPE(2), MIX_FLOAT32), 2, two[i]);
    for (int i = 0; i < 2; i++) wanted[2 * s + i] = (float)two[0][i] + (float)two[1][i];
  }
  for (int captured = 0; captured < 2; captured++) {
    drawn d = {mix_generator_new(7), mix_variable_new(mix_scalar(0, MIX_FLOAT32), .name = "counter")};
    mix_function *function = mix_function_new(draw_all, &d, .name = "draw");
    for (int call = 0; call < 2; call++) {
      mix_list *start = mix_list_of(mix_scalar(0, MIX_FLOAT32));
      mix_list *result = captured ? mix_function_call(function, start) : draw_all(&d, start);
      no_error();
      double got[2 * STEPS];
      read_into(mix_list_get(result, 1), 2 * STEPS, got);
      for (int i = 0; i < 2 * STEPS; i++) assert_true((float)got[i] == (float)wanted[2 * STEPS * call + i]);
      has_values(mix_list_get(result, 0), 1, NUMBERS(call ? 4 + 5 + 6 : 1 + 2 + 3));
      has_values(mix_variable_value(d.counter), 1, NUMBERS(call ? 6 : 3));
    }
  }
}

/* ---- errors ---- */

static mix_list *look_up(void *context, mix_list *carry, mix_list *inputs) {
  return mix_list_of(carry, mix_list_of(mix_gather(context, mix_list_get(inputs, 0), 0)));
}
static void bad_values_inside_a_step_are_errors(void **state) {
  (void)state;
  mix_tensor *table = mix_fill(MIX_SHAPE(3, 2), 1, MIX_FLOAT32);
  mix_tensor *indices = mix_tensor_from((int32_t[]){0, 2, 3, 1}, MIX_INT32, MIX_SHAPE(4, 1));
  mix_list *result = mix_scan(look_up, table, NULL, mix_list_of(indices));
  no_error();
  double values[8];
  mix_tensor_read(output_of(result, 0), MIX_FLOAT64, values, 8);
  refused(NULL, MIX_VALUE_ERROR, "3", "[0, 3)");
}

static mix_list *wrong_carry(void *context, mix_list *carry, mix_list *inputs) {
  (void)inputs;
  mix_tensor *h = mix_list_get(carry, 0);
  switch (*(int *)context) {
  case 0: return mix_list_of(mix_list_of(mix_reshape(h, MIX_SHAPE(WEIGHTS))), NULL);
  case 1: return mix_list_of(mix_list_of(mix_cast(h, MIX_FLOAT64)), NULL);
  case 2: return mix_list_of(mix_list_of(h, h), NULL);
  case 3: return mix_list_of(h);
  default: return NULL;
  }
}
static void misuse(void **state) {
  (void)state;
  static const char *const parts[] = {"(2, 2)", "float64", "expected 1", "list of two lists", "NULL"};
  mix_tensor *x = x_of(MIX_FLOAT32), *h = h_of(MIX_FLOAT32);
  recurrence r = recurrence_of(MIX_FLOAT32);
  for (int i = 0; i < COUNT(parts); i++)
    refused((mix_tensor *)mix_scan(wrong_carry, &i, mix_list_of(h), mix_list_of(x)),
            i < 3 ? MIX_VALUE_ERROR : MIX_TYPE_ERROR, parts[i]);
  mix_list *both = mix_list_of(x, mix_fill(MIX_SHAPE(STEPS + 1, 1), 0, MIX_FLOAT32));
  refused((mix_tensor *)mix_scan(recur, &r, mix_list_of(h), both), MIX_VALUE_ERROR, "input 1", "3 steps");
  refused((mix_tensor *)mix_scan(recur, &r, mix_list_of(h), mix_list_of(x), .steps = 2), MIX_VALUE_ERROR,
          "2 steps");
  refused((mix_tensor *)mix_scan(recur, &r, mix_list_of(h), NULL), MIX_VALUE_ERROR, "no inputs");
  refused((mix_tensor *)mix_scan(recur, &r, mix_list_of(h), mix_list_of(mix_scalar(1, MIX_FLOAT32))),
          MIX_VALUE_ERROR, "one dimension");
  refused((mix_tensor *)mix_scan(recur, &r, mix_list_of(NULL), mix_list_of(x)), MIX_TYPE_ERROR, "carry 0");
  refused((mix_tensor *)mix_scan(NULL, &r, mix_list_of(h), mix_list_of(x)), MIX_TYPE_ERROR, "body");
}

static mix_list *read_value(void *context, mix_list *carry, mix_list *inputs) {
  (void)context, (void)inputs;
  mix_tensor_item(mix_reduce_sum(mix_list_get(carry, 0), MIX_ALL_AXES, false));
  return mix_list_of(carry, NULL);
}
static void a_step_has_no_values(void **state) {
  (void)state;
  mix_list *result =
      mix_scan(read_value, NULL, mix_list_of(h_of(MIX_FLOAT32)), mix_list_of(x_of(MIX_FLOAT32)));
  refused((mix_tensor *)result, MIX_RUNTIME_ERROR, "has no value");
}

/* Under a symbolic operand only dtypes and shapes are known. */
static void symbolic_operands(void **state) {
  (void)state;
  recurrence r = recurrence_of(MIX_FLOAT32);
  mix_list *result = scanned(&r, symbolic(MIX_FLOAT32, MIX_SHAPE(MIX_UNKNOWN, MIX_UNKNOWN, UNITS)),
                             symbolic(MIX_FLOAT32, MIX_SHAPE(MIX_UNKNOWN, UNITS)), false);
  has_type(output_of(result, 0), MIX_FLOAT32, MIX_SHAPE(MIX_UNKNOWN, MIX_UNKNOWN, UNITS));
  assert_true(mix_tensor_is_symbolic(carry_of(result, 0)));
}

int main(void) {
  const struct CMUnitTest tests[] = {TEST(values_are_those_of_the_loop_written_out),
                                     TEST(packed_weights_have_the_bits_of_the_loop_written_out),
                                     TEST(gradients_of_everything),
                                     TEST(gradients_of_gradients),
                                     TEST(sums_of_gradients_over_the_steps),
                                     TEST(loops_in_loops),
                                     TEST(sixteen_bit_gradients_add_up_in_float32),
                                     TEST(gradients_of_steps_in_float16_add_up_in_float32),
                                     TEST(gradients_of_rows_add_up_after_the_loop),
                                     TEST(a_loop_in_a_loop_rounds_what_the_outer_one_makes),
                                     TEST(no_steps_and_no_inputs),
                                     TEST(steps_without_inputs),
                                     TEST(plans_do_not_grow_with_the_steps),
                                     TEST(captured_steps_train_as_evaluated_ones),
                                     TEST(any_number_of_threads),
                                     TEST(steps_assign_and_draw),
                                     TEST(bad_values_inside_a_step_are_errors),
                                     TEST(misuse),
                                     TEST(a_step_has_no_values),
                                     TEST(symbolic_operands)};
  return cmocka_run_group_tests_name("scan", tests, NULL, NULL);
}
