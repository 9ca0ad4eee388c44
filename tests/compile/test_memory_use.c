/* The least use of memory (mix_set_memory): products round float32 weights as they read them, with the bits
 * of products of the weights' 16-bit copies. By default only where the graph writes them. */
/* Holds docs/NUMERICS.md: Element-wise operations. */
#include "compile/support.h"
#include "support/memory.h"
#include <mixtape/random.h>

typedef struct layer {
  mix_variable *weight;
  mix_dtype dtype;
} layer;

/* Arguments x (rows, inputs) and dy (rows, units): x w and dy w^T, of the rounded weight. The weight changes,
 * so that a copy would have to follow. */
static mix_list *both_products(void *context, mix_list *arguments) {
  const layer *l = context;
  mix_tensor *x = mix_cast(mix_list_get(arguments, 0), l->dtype),
             *dy = mix_cast(mix_list_get(arguments, 1), l->dtype),
             *w = mix_cast(mix_variable_value(l->weight), l->dtype);
  mix_list *results = mix_list_of(mix_relu(mix_matmul(x, w, false, false)), mix_matmul(dy, w, false, true));
  mix_variable_assign(l->weight, mix_multiply(mix_variable_value(l->weight), scalar(1.01)));
  return results;
}

static layer new_layer(int64_t inputs, int64_t units, mix_dtype dtype) {
  mix_generator *generator = mix_generator_new(5);
  mix_tensor *w = mix_random_uniform(generator, MIX_SHAPE(inputs, units), MIX_FLOAT32);
  return (layer){variable("w", mix_subtract(w, scalar(0.5))), dtype};
}

static mix_tensor *numbers(uint64_t seed, int64_t rows, int64_t columns) {
  mix_tensor *x = mix_random_uniform(mix_generator_new(seed), MIX_SHAPE(rows, columns), MIX_FLOAT32);
  mix_evaluate(1, &x);
  return x;
}

/* Shapes of each algorithm: blocks, few rows, more than 1,024 terms, ragged edges; with many rows, whose
 * products read activations in 16 bits beside the weight, for one product and for both; the last one sums
 * along vectors, which needs a copy. */
static void the_bits_of_rounded_copies(void **state) {
  (void)state;
  const int64_t shapes[][3] = {{1, 64, 40},   {3, 200, 1100}, {2, 1300, 70}, {12, 384, 96},
                               {13, 400, 99}, {40, 900, 801}, {7, 2050, 33}, {50, 60, 70},
                               {20, 60, 130}, {50, 1100, 70}, {64, 2050, 10}};
  const mix_dtype dtypes[] = {MIX_FLOAT16, MIX_BFLOAT16};
  for (int s = 0; s < COUNT(shapes); s++)
    for (int d = 0; d < 2; d++)
      for (int threads = 1; threads <= 3; threads++)
        MIX_SCOPE {
          const int64_t rows = shapes[s][0], inputs = shapes[s][1], units = shapes[s][2];
          layer l[2] = {new_layer(inputs, units, dtypes[d]), new_layer(inputs, units, dtypes[d])};
          mix_list *arguments = mix_list_of(numbers(1, rows, inputs), numbers(2, rows, units));
          mix_function *steps[2];
          mix_set_threads(threads);
          for (int least = 0; least < 2; least++) steps[least] = mix_function_new(both_products, &l[least]);
          for (int run = 0; run < 2; run++) {
            mix_list *results[2];
            for (int least = 0; least < 2; least++) {
              mix_set_memory(least ? "least" : "fast");
              results[least] = mix_function_call(steps[least], arguments);
              no_error();
            }
            for (int i = 0; i < 2; i++) {
              const mix_value *a = mix_tensor_value(mix_list_get(results[0], i)),
                              *b = mix_tensor_value(mix_list_get(results[1], i));
              if (memcmp(bytes_of_memory(a->memory), bytes_of_memory(b->memory), mix_memory_bytes(a->memory)))
                fail_msg("shape %d, %s, %d threads, run %d, product %d", s, mix_dtype_name(dtypes[d]),
                         threads, run, i);
            }
          }
          mix_plan_report report;
          mix_function_report(steps[1], &report, sizeof report);
          /* kernels on vectors read the weight itself */
          const char *plan = mix_function_dump(steps[0], "plan");
          const bool vectors = !strstr(plan, "amx") && !strstr(plan, "neonbf16") && !strstr(plan, "_t4x");
          if (vectors && units > 10) assert_int_equal(report.copy_bytes, 0);
          /* those of the reference have one algorithm, which reads any */
          if (units == 10 && !strstr(plan, "ref_")) assert_true(report.copy_bytes > 0);
        }
  mix_set_memory("auto");
}

/* x w of the rounded weight, which nothing writes. */
static mix_list *forward(void *context, mix_list *arguments) {
  const layer *l = context;
  mix_tensor *x = mix_cast(mix_list_get(arguments, 0), l->dtype),
             *w = mix_cast(mix_variable_value(l->weight), l->dtype);
  return mix_list_of(mix_matmul(x, w, false, false));
}

static size_t copy_bytes(const char *memory, mix_function_body body, layer *l, mix_list *arguments,
                         bool *widened) {
  mix_plan_report report = {0};
  mix_set_memory(memory);
  mix_function *step = mix_function_new(body, l);
  mix_function_call(step, arguments);
  mix_function_report(step, &report, sizeof report);
  const char *plan = mix_function_dump(step, "plan");
  *widened = !strstr(plan, "avx512bf16") && !strstr(plan, "ref_");
  mix_set_memory("auto");
  no_error();
  return report.copy_bytes;
}

/* A weight whose copy takes 4.3 MiB, more than the default spends on a training step. */
static void inference_keeps_copies_by_default(void **state) {
  (void)state;
  enum { ROWS = 8, INPUTS = 2048, UNITS = 1100 };
  const mix_dtype dtypes[] = {MIX_FLOAT16, MIX_BFLOAT16};
  for (int d = 0; d < 2; d++)
    MIX_SCOPE {
      layer l = new_layer(INPUTS, UNITS, dtypes[d]);
      mix_list *inputs = mix_list_of(numbers(1, ROWS, INPUTS)),
               *both = mix_list_of(numbers(1, ROWS, INPUTS), numbers(2, ROWS, UNITS));
      const size_t copy = 2 * INPUTS * UNITS;
      bool widened;
      assert_true(copy_bytes("auto", forward, &l, inputs, &widened) >= copy);
      assert_true(copy_bytes("fast", forward, &l, inputs, &widened) >= copy);
      /* Where the least has no copy, neither has the default in a step that writes the weight, unless 16 bits
       * are multiplied as such. */
      if (copy_bytes("least", both_products, &l, both, &widened) == 0) {
        assert_int_equal(copy_bytes("least", forward, &l, inputs, &widened), 0);
        const size_t by_default = copy_bytes("auto", both_products, &l, both, &widened);
        assert_true(widened ? by_default == 0 : by_default >= copy);
      }
    }
}

/* A step of a layer of few units on a rounded batch x and the result's gradient dy. */
static mix_list *layer_step(void *context, mix_list *arguments) {
  const layer *l = context;
  mix_tensor *x = mix_cast(mix_list_get(arguments, 0), l->dtype),
             *dy = mix_cast(mix_list_get(arguments, 1), l->dtype),
             *w = mix_cast(mix_variable_value(l->weight), l->dtype);
  mix_tensor *y = mix_matmul(x, w, false, false),
             *gradient = mix_cast(mix_matmul(x, dy, true, false), MIX_FLOAT32);
  mix_variable_assign(l->weight, mix_subtract(mix_variable_value(l->weight), gradient));
  return mix_list_of(mix_relu(y));
}

static size_t plan_bytes(const char *memory, layer *l, mix_list *arguments) {
  mix_plan_report report = {0};
  mix_set_memory(memory);
  mix_function *step = mix_function_new(layer_step, l);
  mix_function_call(step, arguments);
  mix_function_report(step, &report, sizeof report);
  mix_set_memory("auto");
  no_error();
  return report.peak_bytes;
}

/* The batch in 16 bits would take five times the copy. */
static void a_copy_smaller_than_the_batch_stays(void **state) {
  (void)state;
  enum { ROWS = 100, INPUTS = 784, UNITS = 10 };
  const mix_dtype dtypes[] = {MIX_FLOAT16, MIX_BFLOAT16};
  for (int d = 0; d < 2; d++)
    MIX_SCOPE {
      layer l = new_layer(INPUTS, UNITS, dtypes[d]);
      mix_list *arguments = mix_list_of(numbers(1, ROWS, INPUTS), numbers(2, ROWS, UNITS));
      assert_true(plan_bytes("least", &l, arguments) <= plan_bytes("fast", &l, arguments));
    }
}

/* x w, the new value of w, and then so many operations that what they compute is far from it. */
static mix_list *long_step(void *context, mix_list *arguments) {
  const layer *l = context;
  mix_tensor *x = mix_cast(mix_list_get(arguments, 0), l->dtype),
             *w = mix_cast(mix_variable_value(l->weight), l->dtype), *sum = mix_matmul(x, w, false, false);
  mix_variable_assign(l->weight, mix_multiply(mix_variable_value(l->weight), scalar(1.01)));
  for (int i = 0; i < 5000; i++) sum = mix_sin(sum);
  return mix_list_of(sum);
}

/* Else the weight's new value would be stored for the cast, and copied into the weight at the end. */
static void a_copy_is_written_with_its_weight_in_large_graphs(void **state) {
  (void)state;
  MIX_SCOPE {
    layer l = new_layer(16, 16, MIX_BFLOAT16);
    mix_set_memory("fast");
    mix_function *step = mix_function_new(long_step, &l);
    mix_function_call(step, mix_list_of(numbers(1, 16, 16)));
    no_error();
    const char *plan = mix_function_dump(step, "plan"),
               *written = strstr(plan, "-> variable 'w':float32(16, 16), variable 'w':");
    if (!strstr(plan, "ref_") && !written)
      fail_msg("the weight and its copy are written apart: %.2000s", plan);
    mix_set_memory("auto");
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(the_bits_of_rounded_copies), TEST(inference_keeps_copies_by_default),
      TEST(a_copy_smaller_than_the_batch_stays), TEST(a_copy_is_written_with_its_weight_in_large_graphs)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
