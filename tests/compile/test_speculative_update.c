/* Updates under a finite test that are fused with the product of their gradient if its operands prove it
 * finite: the same bits on both paths, no write on a skipped step, and no second path if there is no large
 * gradient to save. */
/* Holds docs/NUMERICS.md: Loss scaling. */
#include "compile/support.h"
#include "backend/host/executor.h"
#include "support/memory.h"
#include "support/count.h"
#include <mixtape/random.h>

enum { INPUTS = 1500, UNITS = 1411 }; /* 4.2 million bytes of gradient in float16 */

typedef struct trainer {
  mix_variable *kernel, *velocity, *inverse;
  int64_t inputs, units;
  bool returns_gradient, unguarded;
  mix_dtype dtype;
} trainer;

/* Arguments x (batch, inputs) and dy (batch, units): kernel -= 0.25 velocity, velocity = 0.5 velocity +
 * gradient / scale. */
static mix_list *train_step(void *context, mix_list *arguments) {
  const trainer *t = context;
  mix_tensor *x = mix_cast(mix_list_get(arguments, 0), t->dtype),
             *dy = mix_cast(mix_list_get(arguments, 1), t->dtype);
  mix_tensor *scaled = mix_matmul(x, dy, true, false);
  mix_tensor *gradient = mix_multiply(mix_cast(scaled, MIX_FLOAT32), mix_variable_value(t->inverse));
  mix_tensor *finite = t->unguarded ? mix_fill(MIX_SCALAR, 1, MIX_BOOL) : mix_all_finite(gradient);
  mix_tensor *velocity = mix_variable_value(t->velocity), *kernel = mix_variable_value(t->kernel);
  mix_tensor *faster = mix_add(mix_multiply(velocity, scalar(0.5)), gradient);
  mix_variable_assign(t->velocity, mix_select(finite, faster, velocity));
  mix_variable_assign(t->kernel,
                      mix_select(finite, mix_subtract(kernel, mix_multiply(faster, scalar(0.25))), kernel));
  return t->returns_gradient ? mix_list_of(finite, scaled) : mix_list_of(finite);
}

static trainer new_trainer(int64_t inputs, int64_t units) {
  mix_generator *generator = mix_generator_new(3);
  return (trainer){
      .kernel = variable("kernel", mix_random_uniform(generator, MIX_SHAPE(inputs, units), MIX_FLOAT32)),
      .velocity = variable("velocity", mix_random_uniform(generator, MIX_SHAPE(inputs, units), MIX_FLOAT32)),
      .inverse = variable("inverse", scalar(0x1p-10)),
      .inputs = inputs,
      .units = units,
      .dtype = MIX_FLOAT16,
  };
}

/* Numbers of about that magnitude; one of them is `first` unless that is 0. With `signs`, rows cancel each
 * other. */
static mix_tensor *rows(int64_t batch, int64_t columns, double magnitude, bool signs, double first) {
  double *numbers = malloc(sizeof *numbers * (size_t)(batch * columns));
  for (int64_t i = 0; i < batch * columns; i++) {
    const double part = 0.75 + 0.25 * (double)(i * 7 % 13) / 12;
    numbers[i] = magnitude * part * (signs && i / columns % 2 ? -1 : 1);
  }
  numbers[0] = first ? first : numbers[0];
  mix_tensor *x = mix_tensor_from_doubles(numbers, MIX_FLOAT32, MIX_SHAPE(batch, columns));
  free(numbers);
  return x;
}

static bool is_speculative(mix_function *step) {
  const char *plan = mix_function_dump(step, "plan");
  assert_non_null(plan);
  return strstr(plan, "matmul_finite_bound") != NULL;
}

static void same_bytes(const trainer *a, const trainer *b) {
  assert_memory_equal(bytes_of_memory(a->kernel->memory), bytes_of_memory(b->kernel->memory),
                      mix_memory_bytes(a->kernel->memory));
  assert_memory_equal(bytes_of_memory(a->velocity->memory), bytes_of_memory(b->velocity->memory),
                      mix_memory_bytes(a->velocity->memory));
}

/* In turn: gradients that the bound proves finite, gradients that only the test proves finite, infinite ones,
 * NaN. */
static void check_both_paths(int batch) {
  const double large = sqrt(60000.0 / batch);
  const struct {
    double x, dy, first;
    bool cancels, finite;
  } steps[] = {{.x = 1, .dy = 1, .finite = true},
               {.x = large, .dy = large, .cancels = true, .finite = true},
               {.x = 300, .dy = 290},
               {.x = 1, .dy = 2, .finite = true},
               {.x = 1, .dy = 1, .first = NAN},
               {.x = 1, .dy = 1, .first = INFINITY},
               {.x = 2, .dy = 3, .finite = true}};
  trainer speculative = new_trainer(INPUTS, UNITS), tested = new_trainer(INPUTS, UNITS);
  mix_function *one = mix_function_new(train_step, &speculative),
               *two = mix_function_new(train_step, &tested);
  for (int i = 0; i < COUNT(steps); i++)
    MIX_SCOPE {
      mix_list *arguments = mix_list_of(rows(batch, INPUTS, steps[i].x, false, steps[i].first),
                                        rows(batch, UNITS, steps[i].dy, steps[i].cancels, 0));
      const float before = ((float *)bytes_of_memory(speculative.kernel->memory))[UNITS];
      has_values(mix_list_get(mix_function_call(one, arguments), 0), steps[i].finite);
      assert_int_equal(before != ((float *)bytes_of_memory(speculative.kernel->memory))[UNITS],
                       steps[i].finite);
      setenv("MIXTAPE_DISABLE_PASSES", "speculative_update", 1);
      has_values(mix_list_get(mix_function_call(two, arguments), 0), steps[i].finite);
      assert_false(is_speculative(two));
      unsetenv("MIXTAPE_DISABLE_PASSES");
      assert_true(is_speculative(one));
      same_bytes(&speculative, &tested);
    }
}

static void both_paths_give_the_same_bits(void **state) {
  (void)state;
  for (int threads = 1; threads <= 3; threads += 2) {
    mix_set_threads(threads);
    check_both_paths(4);
  }
}

/* Where memory is to be least no gradient is stored: the arena holds guards and tests. */
static void the_same_bits_without_a_stored_gradient(void **state) {
  (void)state;
  mix_set_threads(2);
  assert_int_equal(mix_set_memory("least"), MIX_OK);
  check_both_paths(4);
  trainer t = new_trainer(INPUTS, UNITS);
  mix_function *step = mix_function_new(train_step, &t);
  mix_plan_report report;
  for (int least = 0; least < 2; least++)
    MIX_SCOPE {
      mix_set_memory(least ? "least" : "fast");
      mix_function_call(step, mix_list_of(rows(4, INPUTS, 1, false, 0), rows(4, UNITS, 1, false, 0)));
      no_error();
      mix_function_report(step, &report, sizeof report);
      const size_t operands = 4 * 2 * (INPUTS + UNITS), gradient = 2 * INPUTS * UNITS;
      assert_true(least ? report.arena_bytes < operands + 1024 : report.arena_bytes > gradient);
    }
  mix_set_memory("fast");
}

/* Deep enough for the AMX and float16 kernels. */
static void both_paths_give_the_same_bits_in_every_accumulation_mode(void **state) {
  (void)state;
  static const char *const sums[] = {"auto", "exact", "blocked"};
  mix_set_threads(2);
  for (int i = 0; i < COUNT(sums); i++) {
    mix_set_accumulate(sums[i]);
    check_both_paths(64);
  }
  mix_set_accumulate("auto");
}

static void both_paths_give_the_same_bits_on_the_reference(void **state) {
  (void)state;
  mix_set_device("ref");
  check_both_paths(2);
}

/* An inverse scale above 1 could make a finite gradient infinite. */
static void a_factor_above_1_is_tested(void **state) {
  (void)state;
  trainer t = new_trainer(INPUTS, UNITS);
  mix_function *step = mix_function_new(train_step, &t);
  mix_variable_assign(t.inverse, scalar(0x1p126));
  const float before = ((float *)bytes_of_memory(t.kernel->memory))[5];
  mix_list *arguments = mix_list_of(rows(3, INPUTS, 4, false, 0), rows(3, UNITS, 4, false, 0));
  has_values(mix_list_get(mix_function_call(step, arguments), 0), false);
  assert_true(is_speculative(step));
  assert_true(before == ((float *)bytes_of_memory(t.kernel->memory))[5]);
}

/* Two products. Their gradients update a kernel each or, added, one kernel. Arguments x, dy, x2, dy2. */
typedef struct pair {
  trainer t[2];
  bool added;
} pair;

static mix_list *pair_step(void *context, mix_list *arguments) {
  const pair *p = context;
  mix_tensor *gradients[2], *finite = NULL;
  for (int i = 0; i < 2; i++) {
    mix_tensor *x = mix_cast(mix_list_get(arguments, 2 * i), MIX_FLOAT16),
               *dy = mix_cast(mix_list_get(arguments, 2 * i + 1), MIX_FLOAT16);
    gradients[i] = mix_multiply(mix_cast(mix_matmul(x, dy, true, false), MIX_FLOAT32),
                                mix_variable_value(p->t[0].inverse));
    finite = finite ? mix_logical_and(finite, mix_all_finite(gradients[i])) : mix_all_finite(gradients[i]);
  }
  for (int i = 0; i < 2; i++) {
    mix_variable *kernel = p->t[i].kernel;
    mix_tensor *old = mix_variable_value(kernel);
    mix_tensor *step = p->added ? mix_add(gradients[0], gradients[1]) : gradients[i];
    if (i == 0 || !p->added)
      mix_variable_assign(kernel,
                          mix_select(finite, mix_subtract(old, mix_multiply(step, scalar(0.25))), old));
  }
  return mix_list_of(finite);
}

/* Either gradient may be proved finite, be finite without proof, or not be finite. */
static void two_gradients_under_one_test(void **state) {
  (void)state;
  enum { BATCH = 4 };
  const double magnitude[] = {1, sqrt(60000.0 / BATCH), 300};
  mix_set_threads(2);
  for (int added = 0; added < 2; added++) {
    pair speculative = {{new_trainer(INPUTS, UNITS), new_trainer(INPUTS, UNITS)}, added};
    pair tested = {{new_trainer(INPUTS, UNITS), new_trainer(INPUTS, UNITS)}, added};
    mix_function *one = mix_function_new(pair_step, &speculative),
                 *two = mix_function_new(pair_step, &tested);
    for (int i = 0; i < 9; i++)
      MIX_SCOPE {
        const int a = i / 3, b = i % 3;
        mix_list *arguments = mix_list_of(
            rows(BATCH, INPUTS, magnitude[a], false, 0), rows(BATCH, UNITS, magnitude[a], a == 1, 0),
            rows(BATCH, INPUTS, magnitude[b], false, 0), rows(BATCH, UNITS, magnitude[b], b == 1, 0));
        has_values(mix_list_get(mix_function_call(one, arguments), 0), a < 2 && b < 2);
        setenv("MIXTAPE_DISABLE_PASSES", "speculative_update", 1);
        has_values(mix_list_get(mix_function_call(two, arguments), 0), a < 2 && b < 2);
        unsetenv("MIXTAPE_DISABLE_PASSES");
        for (int k = 0; k < 2; k++) same_bytes(&speculative.t[k], &tested.t[k]);
      }
    assert_int_equal(count_of(mix_function_dump(one, "plan"), " matmul_finite_bound ["), added ? 1 : 2);
  }
}

static bool speculative_with(trainer t, int64_t batch) {
  mix_function *step = mix_function_new(train_step, &t);
  mix_function_call(step, mix_list_of(rows(batch, t.inputs, 1, false, 0), rows(batch, t.units, 1, false, 0)));
  no_error();
  return is_speculative(step);
}

static void only_large_gradients_of_few_examples_with_one_reader(void **state) {
  (void)state;
  trainer t = new_trainer(INPUTS, UNITS);
  assert_true(speculative_with(t, 8));
  t.dtype = MIX_BFLOAT16;
  assert_true(speculative_with(t, 8));
  t.dtype = MIX_FLOAT32; /* no 16-bit test */
  assert_false(speculative_with(t, 8));
  t.dtype = MIX_FLOAT16;
  assert_false(speculative_with(t, 200)); /* its operands would have to stay alive */
  t.returns_gradient = true;
  assert_false(speculative_with(t, 8));
  t.returns_gradient = false, t.unguarded = true; /* is fused with its product without a second path */
  assert_false(speculative_with(t, 8));
  assert_false(speculative_with(new_trainer(512, 512), 8));
}

/* Any failing allocation: an error, and nothing changes. */
static void failed_allocations(void **state) {
  (void)state;
  mix_set_threads(1);
  trainer t = new_trainer(INPUTS, UNITS), before = new_trainer(INPUTS, UNITS);
  mix_list *arguments = mix_list_of(rows(2, INPUTS, 1, false, 0), rows(2, UNITS, 1, false, 0));
  bool complete = false;
  for (int k = 0; !complete; k++) {
    assert_in_range(k, 0, 5000);
    MIX_SCOPE {
      mix_function *step = mix_function_new(train_step, &t);
      mix_inject_allocation_failure(k);
      mix_function_call(step, arguments);
      mix_inject_allocation_failure(-1);
      complete = mix_error() == MIX_OK;
      if (!complete) expect_error(MIX_MEMORY_ERROR, "");
    }
    if (!complete && k % 8 == 0) same_bytes(&t, &before);
  }
}

int main(void) {
  mix_set_memory("fast"); /* gradients are stored unless a test says otherwise */
  mix_host_take_all_threads(true);
  const struct CMUnitTest tests[] = {
      TEST(both_paths_give_the_same_bits),
      TEST(both_paths_give_the_same_bits_in_every_accumulation_mode),
      TEST(the_same_bits_without_a_stored_gradient),
      TEST(both_paths_give_the_same_bits_on_the_reference),
      TEST(two_gradients_under_one_test),
      TEST(a_factor_above_1_is_tested),
      TEST(only_large_gradients_of_few_examples_with_one_reader),
      TEST(failed_allocations),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
