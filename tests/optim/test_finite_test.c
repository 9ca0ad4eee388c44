/* The finite test of loss scaling in a captured step of a float16 layer, on one thread and two. One gradient
 * is not finite, in one element, also only after rounding: then no byte of weights, slots and 16-bit copies
 * changes. The test of a kernel's gradient is part of its product. */
/* Holds docs/NUMERICS.md: Sums. */
#include "optim/support.h"
#include "backend/host/executor.h"

#include <mixtape/mixtape.h>
#include <stdlib.h>

enum { BATCH = 64, WIDTH = 48, UNITS = 96, SCALE = 1024, STATE = 2 * (WIDTH * UNITS + UNITS) };

typedef struct training {
  mix_layer *dense;
  mix_optimizer *optimizer;
  mix_list *variables;
} training;

/* d loss / d output is the second argument. The kernel's gradient is x^T upstream, the bias's is the column
 * sums of upstream. */
static mix_list *step_body(void *context, mix_list *arguments) {
  training *t = context;
  mix_tape *tape = mix_tape_begin();
  mix_tensor *outputs = mix_call(t->dense, mix_list_get(arguments, 0));
  mix_tensor *loss = mix_reduce_sum(mix_multiply(mix_cast(outputs, MIX_FLOAT32), mix_list_get(arguments, 1)),
                                    MIX_ALL_AXES, false);
  mix_tape_end(tape);
  mix_optimizer_minimize(t->optimizer, loss, tape, t->variables);
  return mix_list_of(mix_optimizer_applied(t->optimizer), outputs);
}

typedef struct batch {
  double x[BATCH * WIDTH], upstream[BATCH * UNITS];
} batch;

static mix_list *arguments_of(const batch *b) {
  return mix_list_of(mix_tensor_from_doubles(b->x, MIX_FLOAT32, MIX_SHAPE(BATCH, WIDTH)),
                     mix_tensor_from_doubles(b->upstream, MIX_FLOAT32, MIX_SHAPE(BATCH, UNITS)));
}

typedef struct outcome {
  bool applied;
  double scale;
  double state[STATE];           /* weights and slots */
  double outputs[BATCH * UNITS]; /* the next step's outputs, from the 16-bit copies */
} outcome;

static void read_state(const training *t, double *to) {
  const double *end = to + STATE;
  mix_list *lists[2] = {t->variables, mix_optimizer_variables(mix_optimizer_inner(t->optimizer))};
  for (int l = 0; l < 2; l++)
    for (int i = 0; i < mix_list_count(lists[l]); i++) {
      mix_variable *variable = mix_list_get(lists[l], i);
      const int64_t count = mix_shape_size(mix_variable_shape(variable));
      if (count < UNITS) continue; /* iterations */
      assert_true(to + count <= end);
      assert_int_equal(mix_tensor_read(mix_variable_true_value(variable), MIX_FLOAT64, to, count), MIX_OK);
      to += count;
    }
  assert_ptr_equal(to, end);
}

/* A step with finite gradients, then `second` (NULL: none), then the outputs of a third step. */
static outcome *train(int threads, const batch *second) {
  static batch good;
  for (int i = 0; i < BATCH * WIDTH; i++) good.x[i] = i % 5 / 4.0;
  for (int i = 0; i < BATCH * UNITS; i++) good.upstream[i] = (i % 7 - 3) / 1024.0;
  outcome *o = calloc(1, sizeof *o);
  assert_non_null(o);
  assert_int_equal(mix_set_threads(threads), MIX_OK);
  assert_int_equal(mix_set_global_policy("mixed_float16"), MIX_OK);
  mix_set_seed(5);
  MIX_SCOPE {
    training t = {.dense = mix_dense(.units = UNITS, .name = "dense"),
                  .optimizer =
                      mix_loss_scale_optimizer(mix_rmsprop(.learning_rate = 0.25), .initial_scale = SCALE)};
    mix_layer_build(t.dense, MIX_SHAPE(BATCH, WIDTH));
    t.variables = mix_layer_trainable_weights(t.dense);
    mix_function *step = mix_function_new(step_body, &t, .name = "step");
    mix_list *first = arguments_of(&good);
    assert_true(mix_tensor_item(mix_list_get(mix_function_call(step, first), 0)));
    if (second)
      o->applied = mix_tensor_item(mix_list_get(mix_function_call(step, arguments_of(second)), 0)) != 0;
    assert_no_error();
    o->scale = scale_of(t.optimizer);
    read_state(&t, o->state);
    mix_tensor *outputs = mix_list_get(mix_function_call(step, first), 1);
    assert_int_equal(mix_tensor_read(outputs, MIX_FLOAT64, o->outputs, BATCH * UNITS), MIX_OK);
  }
  assert_no_error();
  assert_int_equal(mix_set_global_policy("float32"), MIX_OK);
  return o;
}

static void expect(const batch *b, bool applied) {
  outcome *without = train(1, NULL), *alone = train(1, b), *team = train(2, b);
  assert_true(alone->applied == applied && alone->scale == (applied ? SCALE : SCALE / 2));
  assert_memory_equal(alone, team, sizeof *alone);
  const bool kept = !memcmp(alone->state, without->state, sizeof alone->state),
             computes_the_same = !memcmp(alone->outputs, without->outputs, sizeof alone->outputs);
  assert_true(kept == !applied && computes_the_same == !applied);
  free(without), free(alone), free(team);
}

/* Zeros, except one number of x and one of upstream in the same sample: one nonzero element of the kernel's
 * gradient. */
static batch *one_element(int sample, int row, int column, double x, double upstream) {
  static batch b;
  memset(&b, 0, sizeof b);
  b.x[sample * WIDTH + row] = x;
  b.upstream[sample * UNITS + column] = upstream;
  return &b;
}

static const int places[][2] = {
    {0, 0}, {WIDTH - 1, UNITS - 1}, {0, UNITS - 1}, {WIDTH - 1, 0}, {WIDTH / 2, UNITS / 2 + 1}};

static void one_element_of_a_kernels_gradient_overflows(void **state) {
  (void)state;
  for (size_t p = 0; p < sizeof places / sizeof *places; p++)
    /* 200 * 1024 overflows; the bias's gradient is 1024. */
    expect(one_element((int)p, places[p][0], places[p][1], 200, 1), false);
}

/* 65504 is float16's largest number; half an ulp there is 16. */
static void rounding_alone_decides(void **state) {
  (void)state;
  for (size_t p = 0; p < sizeof places / sizeof *places; p++)
    for (int over = 0; over < 2; over++) {
      batch *b = one_element(3, places[p][0], places[p][1], 63.96875, 1); /* 65504 */
      b->x[(BATCH - 1) * WIDTH + places[p][0]] = over ? 16 : 15.9921875;
      b->upstream[(BATCH - 1) * UNITS + places[p][1]] = 1.0 / SCALE;
      expect(b, !over);
    }
}

static void a_row_of_a_kernels_gradient_is_nan(void **state) {
  (void)state;
  batch *b = one_element(0, WIDTH - 1, 0, INFINITY, 0);
  expect(b, false);
  b = one_element(BATCH - 1, 0, UNITS - 1, NAN, 0);
  expect(b, false);
}

/* The kernel's gradient is zero. */
static void a_bias_gradient_alone_overflows(void **state) {
  (void)state;
  for (int over = 0; over < 2; over++) {
    batch *b = one_element(0, 0, UNITS - 1, 0, 1);
    for (int i = 0; i < 63 + over; i++) /* 64 * 1024 rounds to infinity. */
      b->upstream[i * UNITS + UNITS - 1] = 1;
    expect(b, !over);
  }
}

static void everything_is_nan(void **state) {
  (void)state;
  expect(one_element(0, 1, 1, 1, NAN), false);
}

static void no_step_reads_a_kernels_gradient_for_its_test_alone(void **state) {
  (void)state;
  assert_int_equal(mix_set_global_policy("mixed_float16"), MIX_OK);
  MIX_SCOPE {
    training t = {.dense = mix_dense(.units = UNITS, .name = "dense"),
                  .optimizer = mix_loss_scale_optimizer(mix_rmsprop())};
    mix_layer_build(t.dense, MIX_SHAPE(BATCH, WIDTH));
    t.variables = mix_layer_trainable_weights(t.dense);
    mix_function *step = mix_function_new(step_body, &t, .name = "step");
    static batch b;
    mix_function_call(step, arguments_of(&b));
    const char *plan = mix_function_dump(step, "plan");
    assert_non_null(plan);
    char gradient[64];
    snprintf(gradient, sizeof gradient, "float16(%d, %d)", WIDTH, UNITS);
    int made = 0;
    for (const char *line = plan, *end; *line && strncmp(line, "memory:", 7); line = end + (*end != 0)) {
      end = line + strcspn(line, "\n");
      char text[2048];
      snprintf(text, sizeof text, "%.*s", (int)(end - line), line);
      if (strchr(text, '{')) *strchr(text, '{') = 0; /* cuts off the condition */
      const char *results = strstr(text, " -> "), *finite = results ? strstr(results, "bool()") : NULL;
      if (!finite) continue;
      /* matmul_downcast: the product of upcast 16-bit operands. */
      const bool product = strstr(text, " matmul [") || strstr(text, " matmul_downcast [");
      made += product && strstr(results, gradient);
      if (!product && strstr(text, gradient)) fail_msg("a step of its own: %s", text);
    }
    assert_int_equal(made, 1);
  }
  assert_no_error();
  assert_int_equal(mix_set_global_policy("float32"), MIX_OK);
}

int main(void) {
  mix_host_take_all_threads(true);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(one_element_of_a_kernels_gradient_overflows),
      cmocka_unit_test(rounding_alone_decides),
      cmocka_unit_test(a_row_of_a_kernels_gradient_is_nan),
      cmocka_unit_test(a_bias_gradient_alone_overflows),
      cmocka_unit_test(everything_is_nan),
      cmocka_unit_test(no_step_reads_a_kernels_gradient_for_its_test_alone),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
