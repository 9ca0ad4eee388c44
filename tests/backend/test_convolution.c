/* The kernels of convolutions and their gradients, each called by name, against the reference. Operands are
 * small integers, whose sums every kernel has exactly: the bits must be the reference's, with every number of
 * threads. */
/* Holds docs/NUMERICS.md: Products. */
#include "backend/gemm_products.h"
#include "support/share.h"
#include "backend/cpu/kernels.h"
#include "ops/convolution.h"

/* A convolution: sizes of x, of the kernel, and what is between them. */
typedef struct shape {
  int axes;
  int64_t batch, in[3], kernel[3], stride[3], dilation[3], before[3], after[3];
  int64_t groups, channels, filters; /* groups 0: depthwise, and filters the multiplier */
} shape;

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

static const mix_op *const operations[3][3] = {
    {&mix_op_conv, &mix_op_conv_input_gradient, &mix_op_conv_kernel_gradient},
    {&mix_op_conv3d, &mix_op_conv3d_input_gradient, &mix_op_conv3d_kernel_gradient},
    {&mix_op_depthwise_conv, &mix_op_depthwise_conv_input_gradient, &mix_op_depthwise_conv_kernel_gradient}};

/* A step: its operands are filled, its result is not. */
typedef struct step {
  const mix_op *op;
  mix_conv_attributes attributes;
  mix_type inputs[3], output, results[2];
  void *in[3], *out[2];
  const mix_program *program;
} step;

static mix_shape with_ends(int axes, int64_t first, const int64_t *between, int64_t last) {
  mix_shape s = {.rank = axes + 2, .dims = {first}};
  for (int i = 0; i < axes; i++) s.dims[i + 1] = between[i];
  s.dims[axes + 1] = last;
  return s;
}
static mix_shape numbers_of(int axes, const int64_t *numbers) {
  mix_shape s = {.rank = axes};
  for (int i = 0; i < axes; i++) s.dims[i] = numbers[i];
  return s;
}

static step make_step(const shape *s, int kind, mix_dtype dtype) {
  const int axes = s->axes;
  int64_t out[3];
  step x = {.op = operations[s->groups ? axes == 3 : 2][kind],
            .attributes = {numbers_of(axes, s->stride), numbers_of(axes, s->dilation),
                           numbers_of(axes, s->before), numbers_of(axes, s->after),
                           numbers_of(axes, kind == 1 ? s->in : s->kernel), s->groups}};
  for (int i = 0; i < axes; i++)
    out[i] =
        (s->in[i] + s->before[i] + s->after[i] - (s->kernel[i] - 1) * s->dilation[i] - 1) / s->stride[i] + 1;
  const int64_t filters = s->groups ? s->filters : s->channels * s->filters;
  const mix_shape image = with_ends(axes, s->batch, s->in, s->channels),
                  y = with_ends(axes, s->batch, out, filters);
  mix_shape kernel = {.rank = axes + 2};
  for (int i = 0; i < axes; i++) kernel.dims[i] = s->kernel[i];
  kernel.dims[axes] = s->groups ? s->channels / s->groups : s->channels, kernel.dims[axes + 1] = s->filters;
  x.inputs[0] = (mix_type){dtype, kind == 1 ? y : image};
  x.inputs[1] = (mix_type){dtype, kind == 2 ? y : kernel};
  x.output = x.results[0] = (mix_type){dtype, kind == 0 ? y : kind == 1 ? image : kernel};
  for (int i = 0; i < 2; i++) {
    const int64_t count = mix_shape_size(x.inputs[i].shape);
    x.in[i] = matrix(dtype, count);
    for (int64_t j = 0; j < count; j++) mix_store_double(x.in[i], dtype, j, integer_below(3));
  }
  return x;
}

static void free_step(step *x) {
  for (int i = 0; i < 3; i++) free(x->in[i]);
}

static mix_kernel_args step_args(step *x) {
  return (mix_kernel_args){.op = x->op,
                           .attributes = &x->attributes,
                           .program = x->program,
                           .precision = mix_matmul_precision_default(),
                           .input_count = x->in[2] ? 3 : 2,
                           .output_count = x->out[1] ? 2 : 1,
                           .input_types = x->inputs,
                           .output_types = x->results,
                           .inputs = (const void **)x->in,
                           .outputs = x->out};
}

/* The workspace starts as NaNs, and the bytes after it must not change. */
static void run_step_with(const mix_kernel *kernel, step *x, int threads) {
  mix_kernel_args args = step_args(x);
  const int size = kernel->serial && kernel->serial(&args) ? 1 : threads;
  const size_t bytes = kernel->workspace ? kernel->workspace(&args, threads) : 0;
  unsigned char *workspace = mix_alloc_buffer(bytes + 64);
  assert_non_null(workspace);
  memset(workspace, 0xff, bytes + 64);
  args.workspace = workspace;
  if (kernel->prepare) assert_true(kernel->prepare(&args, threads));
  const int passed = run_team(kernel, &args, size);
  assert_int_equal(passed, size > 1 && kernel->barriers ? kernel->barriers(&args, threads) : 0);
  if (kernel->release)
    kernel->release(args.prepared);
  else
    mix_free(args.prepared);
  for (int i = 0; i < 64; i++) assert_int_equal(workspace[bytes + (size_t)i], 0xff);
  mix_free_buffer(workspace, bytes + 64);
}

static const mix_kernel *ref_kernel(const mix_op *op) {
  for (const mix_kernel_row *row = mix_ref_kernels; row->op; row++)
    if (row->op == op) return row->kernels[0];
  return NULL;
}

static void *new_output(mix_type type) {
  const int64_t count = mix_shape_size(type.shape);
  return memset(matrix(type.dtype, count), 0x7f, (size_t)count * mix_dtype_size(type.dtype));
}

/* relu(round(result) + bias), or only the test that results are finite and the results. */
typedef struct epilogue {
  mix_program_load loads[2];
  mix_instruction instructions[2];
  mix_program_store store;
  mix_program program;
} epilogue;

static void add_bias_relu(step *x, epilogue *e) {
  const mix_dtype dtype = x->output.dtype;
  const int64_t columns = x->output.shape.dims[x->output.shape.rank - 1];
  x->inputs[2] = (mix_type){dtype, MIX_SHAPE(columns)};
  x->in[2] = matrix(dtype, columns);
  for (int64_t j = 0; j < columns; j++) mix_store_double(x->in[2], dtype, j, integer_below(9));
  *e = (epilogue){.loads = {{.input = MIX_FROM_ACCUMULATOR, .dtype = dtype, .strides = {columns, 1}},
                            {.input = 2, .dtype = dtype, .strides = {0, 1}}},
                  .instructions = {{.opcode = MIX_OPCODE_ADD, .dtype = dtype, .operands = {0, 1}},
                                   {.opcode = MIX_OPCODE_RELU, .dtype = dtype, .operands = {2}}},
                  .store = {.output = 0, .reg = 3}};
  e->program = (mix_program){.rank = 2,
                             .dims = {mix_shape_size(x->output.shape) / columns, columns},
                             .load_count = 2,
                             .instruction_count = 2,
                             .store_count = 1,
                             .loads = e->loads,
                             .instructions = e->instructions,
                             .stores = &e->store};
  x->program = &e->program;
}

static void add_finite_test(step *x, epilogue *e) {
  const int64_t columns = x->output.shape.dims[x->output.shape.rank - 1];
  *e = (epilogue){
      .loads = {{.input = MIX_FROM_ACCUMULATOR, .dtype = x->output.dtype, .strides = {columns, 1}}}};
  e->program = (mix_program){.rank = 2,
                             .dims = {mix_shape_size(x->output.shape) / columns, columns},
                             .load_count = 1,
                             .store_count = 1,
                             .loads = e->loads,
                             .stores = &e->store,
                             .reduction = MIX_REDUCE_ALL_FINITE,
                             .reduction_output = 1};
  x->results[1] = (mix_type){MIX_BOOL, MIX_SCALAR};
  x->program = &e->program;
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
        step x = make_step(&shapes[s], kind, dtype);
        if (with == 1) add_bias_relu(&x, &e);
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
      step x = make_step(&shapes[s], kind, dtype);
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
