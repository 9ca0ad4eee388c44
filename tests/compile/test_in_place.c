/* Variables that a plan writes in place, by programs and by the epilogues of products, in any order of steps.
 * Old values are read before they are overwritten, and a failed run changes nothing. Each function runs
 * captured and, for comparison, op by op outside a capture. All numbers are small integers, so every sum is
 * exact in float32 and the tolerance is 0. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>
#include "backend/host/executor.h"
#include "support/device.h"
#include <mixtape/mixtape.h>
#include <string.h>

enum { N = 40, VARIABLES = 3, ELEMENTS = N * N };

typedef struct model {
  mix_variable *v[VARIABLES]; /* (N, N) float32 */
} model;

static mix_tensor *matrix(int seed) {
  float values[ELEMENTS];
  for (int i = 0; i < ELEMENTS; i++) values[i] = (float)((i * 7 + seed * 5 + i / N) % 5 - 2);
  return mix_tensor_from(values, MIX_FLOAT32, MIX_SHAPE(N, N));
}
static mix_tensor *value(model *m, int i) { return mix_variable_value(m->v[i]); }
static mix_tensor *product(mix_tensor *a, mix_tensor *b) { return mix_matmul(a, b, false, false); }
/* Keeps repeated updates small, so that they stay exact. */
static mix_tensor *small(mix_tensor *x) {
  return mix_clip(x, mix_scalar(-3, MIX_FLOAT32), mix_scalar(3, MIX_FLOAT32));
}

/* ---- functions of (x, y), both (N, N), and two indices ---- */

/* An optimizer with a slot: one epilogue writes two variables. */
static mix_list *momentum(void *context, mix_list *arguments) {
  model *m = context;
  mix_tensor *gradient = product(mix_list_get(arguments, 0), mix_list_get(arguments, 1));
  mix_tensor *slot = small(mix_add(value(m, 0), gradient));
  mix_variable_assign(m->v[0], slot);
  mix_variable_assign(m->v[1], small(mix_subtract(value(m, 1), slot)));
  return NULL;
}
/* The written variable is an operand of the product. */
static mix_list *own_operand(void *context, mix_list *arguments) {
  model *m = context;
  mix_variable_assign(m->v[0], small(mix_add(value(m, 0), product(value(m, 0), mix_list_get(arguments, 0)))));
  mix_variable_assign(m->v[1], small(mix_add(value(m, 1), product(mix_list_get(arguments, 0), value(m, 1)))));
  return NULL;
}
/* Later products and a result read the old value of the written variable. */
static mix_list *old_readers(void *context, mix_list *arguments) {
  model *m = context;
  mix_tensor *x = mix_list_get(arguments, 0), *y = mix_list_get(arguments, 1), *old = value(m, 0);
  mix_variable_assign(m->v[0], small(mix_subtract(old, product(x, y))));
  mix_tensor *later = product(old, y), *latest = product(later, value(m, 0));
  mix_variable_assign(m->v[1], small(mix_add(value(m, 1), product(old, x))));
  return mix_list_of(later, latest, mix_relu(old));
}
/* Programs that read each other's variables. */
static mix_list *crossed(void *context, mix_list *arguments) {
  model *m = context;
  mix_tensor *x = mix_list_get(arguments, 0), *y = mix_list_get(arguments, 1), *a = value(m, 0),
             *b = value(m, 1);
  mix_variable_assign(m->v[0], small(mix_add(b, product(x, y))));
  mix_variable_assign(m->v[1], small(mix_add(a, product(y, x))));
  return NULL;
}
/* Old values that become a result and the value of another variable. */
static mix_list *moved(void *context, mix_list *arguments) {
  model *m = context;
  mix_tensor *x = mix_list_get(arguments, 0), *y = mix_list_get(arguments, 1), *a = value(m, 0),
             *b = value(m, 1);
  mix_variable_assign(m->v[0], small(mix_add(a, product(x, y))));
  mix_variable_assign(m->v[1], small(mix_add(b, product(y, x))));
  mix_variable_assign(m->v[2], b);
  return mix_list_of(a);
}
/* v[1] gets v[0]'s old value, and the program that writes it also writes the bfloat16 copy of v[1]'s old
 * value. */
static mix_list *moved_with_its_copy(void *context, mix_list *arguments) {
  model *m = context;
  mix_tensor *old = value(m, 0), *half = mix_cast(value(m, 1), MIX_BFLOAT16);
  mix_variable_assign(m->v[1], old);
  mix_variable_assign(m->v[0], small(mix_add(old, mix_list_get(arguments, 0))));
  return mix_list_of(half);
}
/* Two variables exchange values, one via a wider dtype. */
static mix_list *exchanged(void *context, mix_list *arguments) {
  model *m = context;
  mix_tensor *a = mix_cast(mix_cast(value(m, 0), MIX_FLOAT64), MIX_FLOAT32);
  mix_variable_assign(m->v[0], mix_broadcast_to(value(m, 1), MIX_SHAPE(N, N)));
  mix_variable_assign(m->v[1], mix_broadcast_to(a, MIX_SHAPE(N, N)));
  mix_variable_assign(m->v[2], small(mix_add(a, mix_list_get(arguments, 1))));
  return NULL;
}
/* Two layers and their updates, in the order of a training step. */
static mix_list *two_layers(void *context, mix_list *arguments) {
  model *m = context;
  mix_tensor *x = mix_list_get(arguments, 0), *w1 = value(m, 0), *w2 = value(m, 1);
  mix_tensor *hidden = small(product(x, w1)), *out = small(product(hidden, w2));
  mix_tensor *d_hidden = small(mix_matmul(out, w2, false, true));
  mix_variable_assign(m->v[0], small(mix_subtract(w1, mix_matmul(x, d_hidden, true, false))));
  mix_variable_assign(m->v[1], small(mix_subtract(w2, mix_matmul(hidden, out, true, false))));
  return mix_list_of(mix_reduce_sum(out, MIX_ALL_AXES, false));
}
static mix_tensor *less_its_first_row(mix_tensor *x) {
  return mix_subtract(x, mix_slice(x, MIX_SHAPE(0, 0), MIX_SHAPE(1, -1)));
}
/* All rows of a variable, and of a product, read the first one. */
static mix_list *own_row(void *context, mix_list *arguments) {
  model *m = context;
  mix_variable_assign(m->v[0], small(less_its_first_row(value(m, 0))));
  mix_tensor *x = product(mix_list_get(arguments, 0), mix_list_get(arguments, 1));
  return mix_list_of(less_its_first_row(x));
}
/* The failing op does not depend on the updates and comes last. */
static mix_list *gathers(void *context, mix_list *arguments) {
  model *m = context;
  momentum(context, arguments);
  mix_variable_assign(m->v[2], small(mix_add(value(m, 2), mix_list_get(arguments, 0))));
  return mix_list_of(mix_gather(mix_list_get(arguments, 1), mix_list_get(arguments, 2), 0));
}

/* ---- tests ---- */

static model new_model(void) {
  model m;
  for (int i = 0; i < VARIABLES; i++) m.v[i] = mix_variable_new(matrix(i + 10));
  return m;
}

static void same(mix_tensor *a, mix_tensor *b) {
  assert_true(mix_shape_equal(mix_tensor_shape(a), mix_tensor_shape(b)));
  int64_t count = mix_shape_size(mix_tensor_shape(a));
  assert_memory_equal(mix_tensor_data(a), mix_tensor_data(b),
                      mix_dtype_size(mix_tensor_dtype(a)) * (size_t)count);
}

static mix_tensor *indices(int32_t first, int32_t second) {
  return mix_tensor_from((int32_t[]){first, second}, MIX_INT32, MIX_SHAPE(2));
}

static void captured_is_eager(void **state) {
  static mix_list *(*const bodies[])(void *, mix_list *) = {
      momentum,  own_operand, old_readers, crossed, moved, moved_with_its_copy,
      exchanged, two_layers,  own_row,     gathers};
  (void)state;
  for (int threads = 1; threads <= 3; threads++) {
    mix_set_threads(threads);
    for (size_t b = 0; b < sizeof bodies / sizeof *bodies; b++)
      MIX_SCOPE {
        model captured = new_model(), eager = new_model();
        mix_function *function = mix_function_new(bodies[b], &captured);
        for (int step = 0; step < 3; step++) {
          mix_list *arguments = mix_list_of(matrix(step), matrix(step + 3), indices(1, 2));
          mix_list *results = mix_function_call(function, arguments),
                   *expected = bodies[b](&eager, arguments);
          assert_int_equal(mix_error(), MIX_OK);
          for (int i = 0; i < VARIABLES; i++) same(value(&captured, i), value(&eager, i));
          for (int i = 0; expected && i < mix_list_count(expected); i++)
            same(mix_list_get(results, i), mix_list_get(expected, i));
        }
      }
  }
  mix_set_threads(0);
}

/* In place: neither the gradient nor the new values need memory. */
static void epilogues_write_variables(void **state) {
  (void)state;
  MIX_SCOPE {
    model m = new_model();
    mix_function *function = mix_function_new(momentum, &m);
    mix_function_call(function, mix_list_of(matrix(0), matrix(1)));
    mix_plan_report report;
    assert_int_equal(mix_function_report(function, &report, sizeof report), MIX_OK);
    assert_int_equal(report.nodes, 1);
    assert_int_equal(report.arena_bytes, 0);
  }
}

/* A chain of layers with updates as early as possible: live memory for gradients does not grow with the
 * number of layers. */
enum { LAYERS = 12 };
static mix_list *deep(void *context, mix_list *arguments) {
  mix_variable **weights = context;
  mix_tensor *x[LAYERS + 1] = {mix_list_get(arguments, 0)};
  for (int i = 0; i < LAYERS; i++) x[i + 1] = small(product(x[i], mix_variable_value(weights[i])));
  mix_tensor *gradient = x[LAYERS];
  for (int i = LAYERS - 1; i >= 0; i--) {
    mix_tensor *old = mix_variable_value(weights[i]);
    mix_variable_assign(weights[i], small(mix_subtract(old, mix_matmul(x[i], gradient, true, false))));
    gradient = small(mix_matmul(gradient, old, false, true));
  }
  return mix_list_of(mix_reduce_sum(gradient, MIX_ALL_AXES, false));
}
static void early_updates_free_their_operands(void **state) {
  (void)state;
  MIX_SCOPE {
    mix_variable *weights[LAYERS];
    for (int i = 0; i < LAYERS; i++) weights[i] = mix_variable_new(matrix(i));
    mix_function *function = mix_function_new(deep, weights);
    mix_function_call(function, mix_list_of(matrix(1)));
    mix_plan_report report;
    assert_int_equal(mix_function_report(function, &report, sizeof report), MIX_OK);
    /* The outputs of all layers and two gradients. Updates at the end would add a gradient for each layer. */
    assert_true(report.arena_bytes <= (LAYERS + 3) * ELEMENTS * sizeof(float));
  }
}

static void a_failed_run_changes_nothing(void **state) {
  (void)state;
  for (int threads = 1; threads <= 3; threads++) {
    mix_set_threads(threads);
    MIX_SCOPE {
      model m = new_model(), untouched = new_model();
      mix_function *function = mix_function_new(gathers, &m);
      expect_no_results(mix_function_call(function, mix_list_of(matrix(0), matrix(1), indices(0, N))));
      assert_int_equal(mix_error(), MIX_VALUE_ERROR);
      mix_error_clear();
      for (int i = 0; i < VARIABLES; i++) same(value(&m, i), value(&untouched, i));
    }
  }
  mix_set_threads(0);
}

int main(void) {
  mix_host_take_all_threads(true);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(captured_is_eager),
      cmocka_unit_test(epilogues_write_variables),
      cmocka_unit_test(early_updates_free_their_operands),
      cmocka_unit_test(a_failed_run_changes_nothing),
  };
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  mix_shutdown();
  return failed;
}
