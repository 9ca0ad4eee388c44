/* Convolutions and their two gradients. Accumulates in double and rounds once. */
#include "ops/convolution.h"
#include "backend/ref/ref.h"

/* The operands as they lie: x (batch, in..., channels), kernel (kernel..., channels of a group, filters), y
 * (batch, out..., filters). */
static int64_t x_at(const mix_conv_geometry *g, int64_t n, const int64_t cell[MIX_CONV_AXES], int64_t group,
                    int64_t c) {
  return (((n * g->in[0] + cell[0]) * g->in[1] + cell[1]) * g->in[2] + cell[2]) * g->groups * g->channels +
         group * g->channels + c;
}
static int64_t kernel_at(const mix_conv_geometry *g, const int64_t cell[MIX_CONV_AXES], int64_t c,
                         int64_t group, int64_t f) {
  const int64_t cells = (cell[0] * g->kernel[1] + cell[1]) * g->kernel[2] + cell[2];
  return (cells * g->channels + c) * g->groups * g->filters + group * g->filters + f;
}
static int64_t y_at(const mix_conv_geometry *g, int64_t n, const int64_t cell[MIX_CONV_AXES], int64_t group,
                    int64_t f) {
  return (((n * g->out[0] + cell[0]) * g->out[1] + cell[1]) * g->out[2] + cell[2]) * g->groups * g->filters +
         group * g->filters + f;
}

/* The cell of x that a cell of y reads with that of the kernel; false: padding. */
static bool input_cell(const mix_conv_geometry *g, const int64_t *out, const int64_t *kernel, int64_t *in) {
  bool inside = true;
  for (int i = 0; i < MIX_CONV_AXES; i++) {
    in[i] = mix_conv_position(g, i, out[i], kernel[i]);
    inside &= in[i] >= 0 && in[i] < g->in[i];
  }
  return inside;
}

/* The cell of y that reads a cell of x with that of the kernel; false: none. */
static bool output_cell(const mix_conv_geometry *g, const int64_t *in, const int64_t *kernel, int64_t *out) {
  bool inside = true;
  for (int i = 0; i < MIX_CONV_AXES; i++) {
    const int64_t from = in[i] + g->before[i] - kernel[i] * g->dilation[i];
    out[i] = from / g->stride[i];
    inside &= from >= 0 && from % g->stride[i] == 0 && out[i] < g->out[i];
  }
  return inside;
}

typedef struct operands {
  mix_conv_geometry g;
  const void *a, *b;
  mix_dtype dtype;
} operands;

static double product(const operands *o, int64_t a, int64_t b) {
  return mix_ref_load(o->a, o->dtype, a).real * mix_ref_load(o->b, o->dtype, b).real;
}

/* An element of y: a is x, b the kernel. */
static double element_of_y(const operands *o, int64_t n, const int64_t *out, int64_t group, int64_t f) {
  double sum = 0;
  for (int64_t k = 0; k < mix_conv_cells(o->g.kernel); k++) {
    int64_t kernel[MIX_CONV_AXES], in[MIX_CONV_AXES];
    mix_ref_unravel(k, MIX_CONV_AXES, o->g.kernel, kernel);
    if (!input_cell(&o->g, out, kernel, in)) continue;
    for (int64_t c = 0; c < o->g.channels; c++)
      sum += product(o, x_at(&o->g, n, in, group, c), kernel_at(&o->g, kernel, c, group, f));
  }
  return sum;
}

/* An element of dx: a is dy, b the kernel. */
static double element_of_dx(const operands *o, int64_t n, const int64_t *in, int64_t group, int64_t c) {
  double sum = 0;
  for (int64_t k = 0; k < mix_conv_cells(o->g.kernel); k++) {
    int64_t kernel[MIX_CONV_AXES], out[MIX_CONV_AXES];
    mix_ref_unravel(k, MIX_CONV_AXES, o->g.kernel, kernel);
    if (!output_cell(&o->g, in, kernel, out)) continue;
    for (int64_t f = 0; f < o->g.filters; f++)
      sum += product(o, y_at(&o->g, n, out, group, f), kernel_at(&o->g, kernel, c, group, f));
  }
  return sum;
}

/* An element of the kernel's gradient: a is x, b is dy. */
static double element_of_dk(const operands *o, const int64_t *kernel, int64_t c, int64_t group, int64_t f) {
  double sum = 0;
  for (int64_t n = 0; n < o->g.batch; n++)
    for (int64_t cell = 0; cell < mix_conv_cells(o->g.out); cell++) {
      int64_t out[MIX_CONV_AXES], in[MIX_CONV_AXES];
      mix_ref_unravel(cell, MIX_CONV_AXES, o->g.out, out);
      if (input_cell(&o->g, out, kernel, in))
        sum += product(o, x_at(&o->g, n, in, group, c), y_at(&o->g, n, out, group, f));
    }
  return sum;
}

static void store(const mix_kernel_args *args, int64_t element, double sum) {
  const mix_dtype dtype = args->input_types[0].dtype;
  const mix_ref_value value = {.real = sum};
  if (args->program)
    mix_ref_program_element(args, element, value);
  else
    mix_ref_store(args->outputs[0], dtype, element, mix_ref_round(value, dtype));
}

static operands operands_of(const mix_kernel_args *args, mix_conv_geometry g) {
  return (operands){g, args->inputs[0], args->inputs[1], args->input_types[0].dtype};
}

/* For each element in order: the example (or 0), the cell, and the indices in the last dimension(s). */
static void conv_run(const mix_kernel_args *args, const mix_team *team) {
  const mix_conv_geometry g = mix_conv_geometry_of(args->op, args->attributes, args->input_types);
  const operands o = operands_of(args, g);
  int64_t element = 0, cell[MIX_CONV_AXES];
  if (args->program) mix_ref_program_begin(args);
  for (int64_t n = 0; n < g.batch; n++)
    for (int64_t i = 0; i < mix_conv_cells(g.out); i++) {
      mix_ref_unravel(i, MIX_CONV_AXES, g.out, cell);
      for (int64_t group = 0; group < g.groups; group++)
        for (int64_t f = 0; f < g.filters; f++) store(args, element++, element_of_y(&o, n, cell, group, f));
    }
  if (args->program) mix_ref_program_end(args);
}

static void conv_input_gradient_run(const mix_kernel_args *args, const mix_team *team) {
  const mix_conv_geometry g = mix_conv_geometry_of(args->op, args->attributes, args->input_types);
  const operands o = operands_of(args, g);
  int64_t element = 0, cell[MIX_CONV_AXES];
  if (args->program) mix_ref_program_begin(args);
  for (int64_t n = 0; n < g.batch; n++)
    for (int64_t i = 0; i < mix_conv_cells(g.in); i++) {
      mix_ref_unravel(i, MIX_CONV_AXES, g.in, cell);
      for (int64_t group = 0; group < g.groups; group++)
        for (int64_t c = 0; c < g.channels; c++) store(args, element++, element_of_dx(&o, n, cell, group, c));
    }
  if (args->program) mix_ref_program_end(args);
}

static void conv_kernel_gradient_run(const mix_kernel_args *args, const mix_team *team) {
  const mix_conv_geometry g = mix_conv_geometry_of(args->op, args->attributes, args->input_types);
  const operands o = operands_of(args, g);
  int64_t element = 0, cell[MIX_CONV_AXES];
  if (args->program) mix_ref_program_begin(args);
  for (int64_t i = 0; i < mix_conv_cells(g.kernel); i++) {
    mix_ref_unravel(i, MIX_CONV_AXES, g.kernel, cell);
    for (int64_t c = 0; c < g.channels; c++)
      for (int64_t group = 0; group < g.groups; group++)
        for (int64_t f = 0; f < g.filters; f++) store(args, element++, element_of_dk(&o, cell, c, group, f));
  }
  if (args->program) mix_ref_program_end(args);
}

static const char *conv_unsupported_reason(const mix_kernel_args *args) {
  return args->program ? mix_ref_program_unsupported_reason(args->program) : NULL;
}
static bool conv_prepare(mix_kernel_args *args, int threads) {
  return !args->program || mix_ref_program_prepare(args, threads);
}

#define KERNEL(op)                                                                                           \
  const mix_kernel mix_ref_##op = {.name = "ref_" #op "_acc64",                                              \
                                   .unsupported_reason = conv_unsupported_reason,                            \
                                   .prepare = conv_prepare,                                                  \
                                   .serial = mix_ref_serial,                                                 \
                                   .run = op##_run};
KERNEL(conv)
KERNEL(conv_input_gradient)
KERNEL(conv_kernel_gradient)
