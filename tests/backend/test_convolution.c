/* The kernels of convolutions and their gradients, each called by name, against the reference. Operands are
 * small integers, whose sums every kernel has exactly: the bits must be the reference's, with every number of
 * threads. */
/* Holds docs/NUMERICS.md: Products. */
#include "backend/convolution_steps.h"
#include "support/share.h"

static const shape shapes[] = {
    {2, 2, {9, 8}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, 1, 16, 24},
    {2, 2, {9, 8}, {3, 3}, {2, 2}, {1, 1}, {0, 1}, {1, 0}, 1, 5, 7},
    {2, 1, {20, 21}, {7, 7}, {2, 2}, {1, 1}, {2, 3}, {3, 3}, 1, 3, 20}, /* runs of cells side by side */
    {2, 3, {7, 6}, {1, 1}, {1, 1}, {1, 1}, {0, 0}, {0, 0}, 1, 33, 40},  /* a plain product */
    {2, 3, {7, 6}, {1, 1}, {2, 1}, {1, 1}, {0, 0}, {0, 0}, 1, 33, 9},   /* phases without cells */
    {2, 2, {7, 6}, {2, 2}, {3, 4}, {1, 1}, {0, 0}, {0, 0}, 1, 4, 6},    /* a stride above the kernel */
    {2, 2, {11, 13}, {3, 2}, {1, 1}, {2, 3}, {2, 1}, {2, 2}, 1, 6, 10}, /* dilation */
    {2, 1, {15, 14}, {3, 3}, {2, 3}, {2, 2}, {1, 4}, {3, 1}, 1, 4, 4},  /* with strides: phases with gaps */
    {2, 1, {15, 14}, {3, 3}, {4, 6}, {6, 4}, {0, 0}, {0, 0}, 1, 2, 3},
    {2, 2, {6, 7}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, 4, 8, 20}, /* groups */
    {2, 2, {6, 7}, {3, 3}, {2, 2}, {1, 1}, {1, 1}, {1, 1}, 3, 6, 9},
    {2, 2, {6, 7}, {1, 1}, {1, 1}, {1, 1}, {0, 0}, {0, 0}, 2, 24, 16},
    {1, 3, {30}, {5}, {1}, {1}, {4}, {0}, 1, 12, 18},
    {1, 2, {40}, {3}, {1}, {4}, {8}, {0}, 1, 7, 5},
    {1, 1, {160}, {130}, {3}, {1}, {3}, {5}, 2, 4, 6}, /* a long kernel */
    {1, 2, {4}, {3}, {1}, {1}, {5}, {6}, 1, 3, 4},     /* cells that see padding alone */
    {1, 1, {20}, {9}, {1}, {1}, {0}, {0}, 1, 100, 70}, /* several blocks of k */
    {3, 2, {4, 5, 6}, {2, 3, 3}, {1, 2, 1}, {1, 1, 1}, {0, 1, 1}, {1, 1, 1}, 1, 5, 9},
    {3, 1, {5, 6, 5}, {3, 3, 3}, {2, 2, 2}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, 1, 6, 4},
    {2, 2, {13, 12}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, 0, 20, 1}, /* depthwise */
    {2, 2, {13, 12}, {3, 3}, {2, 2}, {1, 1}, {0, 0}, {1, 1}, 0, 33, 1},
    {2, 1, {9, 7}, {5, 4}, {1, 2}, {2, 1}, {3, 3}, {3, 2}, 0, 9, 3},
    {1, 2, {17}, {3}, {1}, {2}, {4}, {0}, 0, 40, 2},
    {2, 1, {3, 3}, {2, 2}, {3, 3}, {1, 1}, {0, 0}, {0, 0}, 0, 8, 1},
    {2, 2, {8, 9}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, 5, 5, 10},    /* the same by groups */
    {2, 1, {19, 20}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, 1, 44, 40}, /* several tiles and blocks */
    {2, 1, {9, 10}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, 1, 5, 170},  /* patches packed after gathering */
    /* For tiles and float16 sums: phases; groups; deep sums of few results, also by phases. */
    {2, 2, {13, 12}, {3, 3}, {2, 2}, {1, 1}, {0, 1}, {1, 1}, 1, 40, 36},
    {2, 2, {9, 8}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, 2, 66, 48},
    {2, 2, {18, 17}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, 1, 14, 24},
    {2, 4, {7, 6}, {4, 4}, {2, 2}, {1, 1}, {1, 1}, {2, 1}, 2, 40, 280},
    /* Depthwise: groups of cells that share columns, the last of a strip summed again or too small. */
    {2, 1, {7, 23}, {3, 3}, {2, 1}, {1, 1}, {1, 2}, {0, 1}, 0, 70, 1},
    {2, 2, {5, 30}, {3, 3}, {1, 1}, {2, 1}, {2, 1}, {2, 1}, 0, 19, 1},
    /* The kernel's gradient for all cells at once: more rows than three, strides, dilation, several blocks of
     * channels, images narrower than the kernel. */
    {2, 2, {9, 11}, {5, 3}, {1, 2}, {1, 2}, {3, 3}, {2, 2}, 0, 37, 1},
    {2, 1, {8, 10}, {3, 3}, {2, 2}, {1, 1}, {1, 1}, {1, 1}, 0, 300, 1},
    {2, 2, {2, 2}, {4, 3}, {1, 1}, {1, 1}, {3, 2}, {2, 2}, 0, 17, 1},
    /* Several filters a channel: rows of x shorter than a vector and longer, blocks of the kernel's gradient
     * that begin inside a row, more filters than a block. */
    {2, 2, {6, 5}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, 0, 80, 2},
    {2, 1, {9, 8}, {3, 3}, {2, 2}, {1, 1}, {0, 1}, {1, 1}, 0, 27, 5},
    {2, 3, {5, 6}, {2, 3}, {1, 1}, {1, 2}, {1, 2}, {0, 2}, 0, 3, 8},
    {1, 2, {12}, {3}, {1}, {1}, {1}, {1}, 0, 2, 150},
    {2, 2, {7, 6}, {3, 3}, {1, 2}, {1, 1}, {1, 1}, {1, 0}, 0, 130, 3},
    {2, 1, {6, 7}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, 21, 21, 84}, /* the same by groups */
};

static step integers(const shape *s, int kind, mix_dtype dtype) {
  step x = make_step(s, kind, dtype);
  for (int i = 0; i < 2; i++)
    for (int64_t j = 0; j < mix_shape_size(x.inputs[i].shape); j++)
      mix_store_double(x.in[i], dtype, j, integer_below(3));
  return x;
}

/* Runs the step on the reference, then with 1 to MAX_THREADS threads. */
static void compare(const mix_kernel *kernel, step *x, const char *what, int number, int kind) {
  const size_t bytes = mix_value_bytes(x->output.dtype, x->output.shape);
  bool finite[2] = {false, false};
  x->out[0] = new_output(x->output);
  if (x->results[1].dtype == MIX_BOOL) x->out[1] = &finite[0];
  run_step_with(ref_kernel(x->op), x, 1);
  void *expected = x->out[0];
  for (int threads = 1; threads <= MAX_THREADS; threads++) {
    x->out[0] = new_output(x->output);
    if (x->out[1]) x->out[1] = &finite[1], finite[1] = !finite[0];
    run_step_with(kernel, x, threads);
    for (int64_t i = 0; memcmp(x->out[0], expected, bytes) && i < mix_shape_size(x->output.shape); i++)
      if (mix_load_double(x->out[0], x->output.dtype, i) != mix_load_double(expected, x->output.dtype, i))
        fail_msg("%s, %s, shape %d, operation %d, %d threads: element %lld is %g, not %g", kernel->name, what,
                 number, kind, threads, (long long)i, mix_load_double(x->out[0], x->output.dtype, i),
                 mix_load_double(expected, x->output.dtype, i));
    assert_int_equal(finite[0], x->out[1] ? finite[1] : finite[0]);
    free(x->out[0]);
  }
  free(expected);
}

static void agrees(const mix_kernel *kernel, mix_dtype dtype) {
  int done = 0;
  for (int s = 0; s < (int)(sizeof shapes / sizeof *shapes); s++)
    for (int kind = 0; kind < 3; kind++)
      for (int with = 0; with < (s % 2 && shapes[s].groups ? 1 : 3); with++) { /* the reference takes time */
        static const char *const names[] = {"plain", "bias and relu", "finite test"};
        if (left_out()) continue;
        epilogue e;
        step x = integers(&shapes[s], kind, dtype);
        if (with == 1) add_bias_relu(&x, &e, dtype);
        if (with == 2) add_finite_test(&x, &e);
        const mix_kernel_args args = step_args(&x);
        if (!shapes_in(mix_cpu_conv_kernels, kernel)->unsupported_reason(&args))
          compare(kernel, &x, names[with], s, kind), done++;
        free_step(&x);
      }
  assert_true(done > 0);
}

/* Where padding is no term, an infinite number of the kernel spoils the same results as on the reference. */
static void spoils_the_same(step *x) {
  void *const result = x->out[0];
  bool finite;
  x->out[0] = new_output(x->output), x->out[1] = &finite;
  run_step_with(ref_kernel(x->op), x, 1);
  for (int64_t i = 0; i < mix_shape_size(x->output.shape); i++) {
    const double is = mix_load_double(result, x->output.dtype, i),
                 expected = mix_load_double(x->out[0], x->output.dtype, i);
    if (is != expected && !(isnan(is) && isnan(expected)))
      fail_msg("element %lld is %g, not %g", (long long)i, is, expected);
  }
  free(x->out[0]);
  x->out[0] = result;
}

/* Infinity in one result alone is found, wherever it is. */
static void finds_what_is_not_finite(const mix_kernel *kernel, mix_dtype dtype) {
  for (int kind = 0; kind < 3; kind++)
    for (int s = 0; s < (int)(sizeof shapes / sizeof *shapes); s += 3) {
      if (left_out()) continue;
      epilogue e;
      step x = integers(&shapes[s], kind, dtype);
      add_finite_test(&x, &e);
      const mix_kernel_args args = step_args(&x);
      if (!shapes_in(mix_cpu_conv_kernels, kernel)->unsupported_reason(&args)) {
        bool finite = true;
        const int64_t last = mix_shape_size(x.inputs[1].shape) - 1;
        mix_store_double(x.in[1], x.inputs[1].dtype, last, INFINITY);
        x.out[0] = new_output(x.output), x.out[1] = &finite;
        run_step_with(kernel, &x, 2);
        bool all = true;
        for (int64_t i = 0; i < mix_shape_size(x.output.shape); i++)
          all &= isfinite(mix_load_double(x.out[0], x.output.dtype, i)) != 0;
        assert_int_equal(finite, all);
        if (kernel == &mix_cpu_depthwise_kernel) spoils_the_same(&x);
        free(x.out[0]);
      }
      free_step(&x);
    }
}

static void each_kernel(void **state) {
  const mix_kernel *kernel = *state;
  if (kernel->needs & ~mix_cpu_features()) SKIP("%s is not for this instruction set", kernel->name);
  static const mix_dtype every[] = {MIX_FLOAT16, MIX_BFLOAT16, MIX_FLOAT32};
  ask_for_sums_of(kernel);
  assert_int_equal(mix_set_float32_precision(strstr(kernel->name, "f32_acc32_amx") ? "high" : "highest"),
                   MIX_OK);
  random_state = 1;
  for (int d = 0; d < 3; d++) { /* the depthwise kernel is of all three, and of the vectors in force */
    const mix_dtype dtype = kernel->operands == MIX_DTYPE_NONE ? every[d] : kernel->operands;
    if (kernel->operands != MIX_DTYPE_NONE && d) break;
    agrees(kernel, dtype);
    finds_what_is_not_finite(kernel, dtype);
  }
}

int main(void) {
  enum { MAX = 64 };
  static struct CMUnitTest tests[MAX];
  int count = 0;
  const mix_kernel *const *const tables[] = {mix_cpu_conv_kernels, mix_emulated_conv_kernels};
  for (int t = 0; t < 2; t++)
    for (const mix_kernel *const *row = tables[t]; *row && count < MAX; row++)
      tests[count++] = (struct CMUnitTest){(*row)->name, each_kernel, NULL, NULL, (void *)*row};
  return _cmocka_run_group_tests("convolutions", tests, (size_t)count, NULL, NULL);
}
