/* Steps of convolutions and their gradients, for tests that call kernels by name: operands, programs, runs as
 * the executor does them. */
#ifndef TESTS_BACKEND_CONVOLUTION_STEPS_H
#define TESTS_BACKEND_CONVOLUTION_STEPS_H

#include "backend/gemm_products.h"
#include "backend/cpu/kernels.h"
#include "ops/convolution.h"

/* A convolution: sizes of x, of the kernel, and what is between them. */
typedef struct shape {
  int axes;
  int64_t batch, in[3], kernel[3], stride[3], dilation[3], before[3], after[3];
  int64_t groups, channels, filters; /* groups 0: depthwise, and filters the multiplier */
} shape;

static const mix_op *const operations[3][3] = {
    {&mix_op_conv, &mix_op_conv_input_gradient, &mix_op_conv_kernel_gradient},
    {&mix_op_conv3d, &mix_op_conv3d_input_gradient, &mix_op_conv3d_kernel_gradient},
    {&mix_op_depthwise_conv, &mix_op_depthwise_conv_input_gradient, &mix_op_depthwise_conv_kernel_gradient}};

/* A step: its operands are zero, its result is not there. */
typedef struct step {
  const mix_op *op;
  mix_conv_attributes attributes;
  mix_type inputs[3], output, results[2];
  void *in[3], *out[2];
  const mix_program *program;
  bool fixed; /* the kernel is the same in all steps of a loop */
} step;

static inline mix_shape with_ends(int axes, int64_t first, const int64_t *between, int64_t last) {
  mix_shape s = {.rank = axes + 2, .dims = {first}};
  for (int i = 0; i < axes; i++) s.dims[i + 1] = between[i];
  s.dims[axes + 1] = last;
  return s;
}
static inline mix_shape numbers_of(int axes, const int64_t *numbers) {
  mix_shape s = {.rank = axes};
  for (int i = 0; i < axes; i++) s.dims[i] = numbers[i];
  return s;
}

static inline step make_step(const shape *s, int kind, mix_dtype dtype) {
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
  for (int i = 0; i < 2; i++) x.in[i] = matrix(dtype, mix_shape_size(x.inputs[i].shape));
  return x;
}

static inline void free_step(step *x) {
  for (int i = 0; i < 3; i++) free(x->in[i]);
}

static inline mix_kernel_args step_args(step *x) {
  return (mix_kernel_args){.op = x->op,
                           .attributes = &x->attributes,
                           .program = x->program,
                           .fixed = x->fixed ? 2 : 0,
                           .precision = mix_matmul_precision_default(),
                           .input_count = x->in[2] ? 3 : 2,
                           .output_count = x->out[1] ? 2 : 1,
                           .input_types = x->inputs,
                           .output_types = x->results,
                           .inputs = (const void **)x->in,
                           .outputs = x->out};
}

enum { BEHIND = 64 }; /* bytes behind a memory that must not change */

/* They start as NaNs. */
static inline unsigned char *kernel_memory(size_t bytes) {
  unsigned char *memory = mix_alloc_buffer(bytes + BEHIND);
  assert_non_null(memory);
  return memset(memory, 0xff, bytes + BEHIND);
}
static inline void free_kernel_memory(unsigned char *memory, size_t bytes) {
  for (int i = 0; i < BEHIND; i++) assert_int_equal(memory[bytes + (size_t)i], 0xff);
  mix_free_buffer(memory, bytes + BEHIND);
}

static inline void run_step_with(const mix_kernel *kernel, step *x, int threads) {
  mix_kernel_args args = step_args(x);
  const int size = kernel->serial && kernel->serial(&args) ? 1 : threads;
  const size_t bytes = kernel->workspace ? kernel->workspace(&args, threads) : 0;
  unsigned char *workspace = kernel_memory(bytes);
  args.workspace = workspace;
  if (kernel->prepare) assert_true(kernel->prepare(&args, threads));
  const size_t kept_bytes = kernel->kept ? kernel->kept(&args) : 0;
  unsigned char *kept = kernel_memory(kept_bytes);
  args.kept = kept;
  if (kept_bytes) run_team(&(mix_kernel){.name = kernel->name, .run = kernel->begin}, &args, size);
  const int passed = run_team(kernel, &args, size);
  assert_int_equal(passed, size > 1 && kernel->barriers ? kernel->barriers(&args, threads) : 0);
  if (kernel->release)
    kernel->release(args.prepared);
  else
    mix_free(args.prepared);
  free_kernel_memory(kept, kept_bytes);
  free_kernel_memory(workspace, bytes);
}

static inline const mix_kernel *ref_kernel(const mix_op *op) {
  for (const mix_kernel_row *row = mix_ref_kernels; row->op; row++)
    if (row->op == op) return row->kernels[0];
  return NULL;
}

static inline void *new_output(mix_type type) {
  const int64_t count = mix_shape_size(type.shape);
  return memset(matrix(type.dtype, count), 0x7f, (size_t)count * mix_dtype_size(type.dtype));
}

/* relu(result + bias), where the result is rounded to a dtype or left as float32 sums; or only the test that
 * results are finite and the results. */
typedef struct epilogue {
  mix_program_load loads[2];
  mix_instruction instructions[2];
  mix_program_store store;
  mix_program program;
} epilogue;

static inline void add_bias_relu(step *x, epilogue *e, mix_dtype dtype) {
  const int64_t columns = x->output.shape.dims[x->output.shape.rank - 1];
  x->output.dtype = x->results[0].dtype = dtype;
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

static inline void add_finite_test(step *x, epilogue *e) {
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

#endif
