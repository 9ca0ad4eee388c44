/* Convolutions as products of matrices (gemm/). y and the kernel's gradient are products with the patches of
 * x, which packing gathers. The gradient of the input takes every stride-th cell of it, a phase, by itself:
 * there it is a convolution of dy with some cells of the kernel, in reverse and transposed. So no result is
 * summed in memory, and every result goes through an epilogue once. A convolution of single cells is a plain
 * product. */
#include "backend/cpu/convolution/products.h"
#include "backend/cpu/convolution/taps.h"
#include "backend/cpu/gemm/kernels.h"
#include "backend/cpu/gemm/product_list.h"
#include "backend/cpu/kernels.h"
#include "base/alloc.h"
#include <string.h>

enum {
  AXES = MIX_CONV_AXES,
  MAX_PHASES = 1024,
  SERIAL_OPERATIONS = 1 << 15,
  /* A tile of the kernel that is transposed: lines of both sides stay in the first-level cache. */
  TRANSPOSE_TILE = 16,
  TRANSPOSE_AHEAD = 6, /* tiles that are fetched before they are read */
};
_Static_assert((int)MIX_CONV_AXES == (int)MIX_GEMM_PATCH_AXES, "patches have the axes of convolutions");

/* A convolution, before any plan. */
typedef struct conv {
  mix_conv_geometry g;
  mix_conv_kind kind;
  mix_dtype dtype;
  bool plain;  /* of single cells: no patches */
  bool phases; /* the gradient of the input, by phases, with the kernel transposed in the workspace */
} conv;

/* A product of every group. */
typedef struct product {
  mix_gemm_problem problem;
  mix_gemm_patches patches;                  /* of A, unless the convolution is plain */
  mix_gemm_result_rows rows;                 /* where the problem is scattered */
  int64_t first_cell[AXES], cell_step[AXES]; /* a phase's cells of the kernel, */
  int64_t window[AXES];                      /* how many, */
  int64_t cells_before;                      /* and how many the phases before it have */
  mix_gemm_plan plan;
} product;

static conv conv_of(const mix_kernel_args *args) {
  conv c = {.g = mix_conv_geometry_of(args->op, args->attributes, args->input_types),
            .kind = mix_conv_kind_of(args->op),
            .dtype = args->input_types[0].dtype,
            .plain = true};
  for (int i = 0; i < AXES; i++)
    c.plain &= c.g.kernel[i] == 1 && c.g.stride[i] == 1 && c.g.before[i] == 0 && c.g.in[i] == c.g.out[i];
  c.phases = c.kind == MIX_CONV_INPUT_GRADIENT && !c.plain;
  return c;
}

/* ---- phases ---- */

static int64_t phases_along(const conv *c, int axis) {
  return c->phases ? smaller(c->g.stride[axis], c->g.in[axis]) : 1;
}
static int64_t product_count(const conv *c) {
  double count = 1; /* strides may be large */
  for (int i = 0; i < AXES; i++) count *= (double)phases_along(c, i);
  return count <= MAX_PHASES ? (int64_t)count : MAX_PHASES + 1;
}

/* The cells of x at `phase` of the stride along an axis, and those of the kernel that reach them. */
static void set_phase(const conv *c, product *p, int axis, int64_t phase) {
  const mix_conv_taps taps = mix_conv_taps_of_dx(&c->g, axis, phase);
  p->first_cell[axis] = taps.kernel, p->cell_step[axis] = taps.kernel_step, p->window[axis] = taps.count;
  p->patches.cells[axis] = divide_up(c->g.in[axis] - phase, c->g.stride[axis]);
  p->patches.window[axis] = taps.count, p->patches.window_step[axis] = taps.step;
  p->patches.image[axis] = c->g.out[axis];
  p->patches.step[axis] = 1, p->patches.origin[axis] = taps.at;
  p->rows.cells[axis] = p->patches.cells[axis];
  p->rows.first[axis] = phase, p->rows.step[axis] = c->g.stride[axis];
}

static void set_phases(const conv *c, product *p, int64_t number) {
  const mix_conv_geometry *g = &c->g;
  for (int i = AXES - 1; i >= 0; i--) {
    set_phase(c, p, i, number % phases_along(c, i));
    number /= phases_along(c, i);
    p->problem.scattered |= g->stride[i] > 1;
  }
  p->rows.pitch[2] = 1, p->rows.pitch[1] = g->in[2], p->rows.pitch[0] = g->in[1] * g->in[2];
  p->rows.image = mix_conv_cells(g->in);
  p->patches.channels = g->filters, p->patches.pixel = g->groups * g->filters;
  p->problem.m = g->batch * mix_conv_cells(p->patches.cells);
  p->problem.n = g->channels, p->problem.k = mix_conv_cells(p->window) * g->filters;
  p->problem.ldb = g->channels;
}

/* ---- products ---- */

static void set_patches_of_x(const conv *c, product *p) {
  const mix_conv_geometry *g = &c->g;
  for (int i = 0; i < AXES; i++) {
    p->patches.cells[i] = g->out[i], p->patches.window[i] = g->kernel[i], p->patches.image[i] = g->in[i];
    p->patches.step[i] = g->stride[i], p->patches.window_step[i] = g->dilation[i];
    p->patches.origin[i] = -g->before[i];
  }
  p->patches.channels = g->channels, p->patches.pixel = g->groups * g->channels;
}

/* A product whose problem knows no patches yet (make_plan). */
static product product_of(const mix_kernel_args *args, const conv *c, int64_t number) {
  const mix_conv_geometry *g = &c->g;
  const int64_t rows = g->batch * mix_conv_cells(g->out), x_pixel = g->groups * g->channels,
                y_pixel = g->groups * g->filters, depth = mix_conv_cells(g->kernel) * g->channels;
  product p = {.problem = {.lda = x_pixel,
                           .ldb = y_pixel,
                           .ldc = y_pixel,
                           .epilogue = mix_gemm_has_epilogue(args),
                           .rounded = MIX_DTYPE_NONE,
                           .precision = args->precision}};
  if (c->kind == MIX_CONV_FORWARD) {
    p.problem.m = rows, p.problem.n = g->filters, p.problem.k = depth;
    p.problem.fixed_b = mix_gemm_keeps_b(args, rows);
    set_patches_of_x(c, &p);
  } else if (c->kind == MIX_CONV_KERNEL_GRADIENT) {
    p.problem.m = depth, p.problem.n = g->filters, p.problem.k = rows, p.problem.transpose_a = true;
    set_patches_of_x(c, &p);
  } else {
    p.problem.lda = y_pixel, p.problem.ldc = x_pixel;
    p.problem.m = rows, p.problem.n = g->channels, p.problem.k = g->filters, p.problem.transpose_b = true;
    if (c->phases) {
      p.problem.transpose_b = false;
      set_phases(c, &p, number);
    }
  }
  return p;
}

/* The product stays where it is: its problem points at its patches. */
static void see_patches(const conv *c, product *p) { p->problem.patches = c->plain ? NULL : &p->patches; }

/* What a step keeps. */
typedef struct prepared_conv {
  conv conv;
  mix_tile_program *epilogue;
  atomic_int finished; /* threads */
  atomic_bool failed;  /* the finite test of one of them */
  mix_gemm_workspace workspace;
  size_t kernel_bytes; /* of the transposed kernel, before the workspace */
  size_t kept_bytes;   /* of each group's packed kernel */
  int64_t count;
  product products[];
} prepared_conv;

/* Fills in products[0] to products[count - 1], or only sums up their workspaces. */
static mix_gemm_workspace make(const mix_gemm_engine *engine, const mix_kernel_args *args, const conv *c,
                               int threads, product *products) {
  const int64_t count = product_count(c);
  const mix_gemm_storage *storage = mix_gemm_storage_of(engine, c->dtype);
  mix_gemm_workspace most = {0};
  int64_t cells = 0;
  for (int64_t i = 0; i < count; i++) {
    product p = product_of(args, c, i);
    p.cells_before = cells;
    cells += mix_conv_cells(p.window);
    see_patches(c, &p);
    mix_gemm_make_plan(engine, storage, &p.problem, threads, &p.plan);
    if (p.plan.workspace.shared > most.shared) most.shared = p.plan.workspace.shared;
    if (p.plan.workspace.thread > most.thread) most.thread = p.plan.workspace.thread;
    if (!products) continue;
    products[i] = p;
    see_patches(c, &products[i]);
    products[i].plan.problem.patches = products[i].problem.patches;
  }
  return most;
}

static size_t transposed_bytes(const conv *c) {
  const mix_conv_geometry *g = &c->g;
  const int64_t elements = mix_conv_cells(g->kernel) * g->groups * g->channels * g->filters;
  return c->phases ? (size_t)whole_lines(elements * (int64_t)mix_dtype_size(c->dtype)) : 0;
}

static bool is_empty(const conv *c) {
  const mix_conv_geometry *g = &c->g;
  return g->batch * g->groups * g->channels * g->filters * mix_conv_cells(g->in) * mix_conv_cells(g->out) ==
         0;
}

const char *mix_conv_product_unsupported_reason(const mix_gemm_engine *engine, const mix_kernel_args *args,
                                                mix_dtype dtype) {
  if (args->input_types[0].dtype != dtype) return "operands of another dtype";
  const char *reason = mix_gemm_result_unsupported_reason(args, dtype);
  if (reason) return reason;
  const conv c = conv_of(args);
  if (is_empty(&c)) return "no elements";
  const bool depthwise = !((const mix_conv_attributes *)args->attributes)->groups;
  if (depthwise && c.kind == MIX_CONV_KERNEL_GRADIENT && args->program)
    return "the epilogue's rows are channels";
  if (product_count(&c) > MAX_PHASES) return "many phases of its strides";
  product p = product_of(args, &c, 0);
  see_patches(&c, &p);
  return mix_gemm_unsupported_reason(engine, dtype, &p.problem);
}

bool mix_conv_product_serial(const mix_kernel_args *args) {
  const conv c = conv_of(args);
  const mix_conv_geometry *g = &c.g;
  const double operations = (double)(g->batch * mix_conv_cells(g->out)) * (double)mix_conv_cells(g->kernel) *
                            (double)(g->groups * g->channels) * (double)g->filters;
  return operations < SERIAL_OPERATIONS;
}

size_t mix_conv_product_workspace(const mix_gemm_engine *engine, const mix_kernel_args *args, int threads) {
  const conv c = conv_of(args);
  const mix_gemm_workspace team = make(engine, args, &c, threads, NULL),
                           alone = make(engine, args, &c, 1, NULL); /* a serial step */
  const size_t bytes = team.shared + team.thread * (size_t)threads, own = alone.shared + alone.thread;
  return transposed_bytes(&c) + (bytes > own ? bytes : own);
}

/* Does a product wait until all threads have left the products before it? They share one workspace, in which
 * threads of one plan without barriers have parts of their own. */
static bool waits(const product *p, int64_t number, int64_t group, bool shared) {
  return group > 0 ? p->plan.barriers > 0 : number > 0 && shared;
}

/* Of the products and between them; and one after the kernel is transposed. */
int mix_conv_product_barriers(const mix_gemm_engine *engine, const mix_kernel_args *args, int threads) {
  const conv c = conv_of(args);
  if (threads < 2) return 0;
  const bool shared = make(engine, args, &c, threads, NULL).shared > 0;
  int count = c.phases;
  for (int64_t i = 0; i < product_count(&c); i++) {
    product p = product_of(args, &c, i);
    see_patches(&c, &p);
    mix_gemm_make_plan(engine, mix_gemm_storage_of(engine, c.dtype), &p.problem, threads, &p.plan);
    for (int64_t group = 0; group < c.g.groups; group++)
      count += p.plan.barriers + waits(&p, i, group, shared);
  }
  return count;
}

void mix_conv_product_release(void *prepared) {
  mix_free(((prepared_conv *)prepared)->epilogue);
  mix_free(prepared);
}

bool mix_conv_product_prepare(const mix_gemm_engine *engine, mix_kernel_args *args, int threads) {
  const conv c = conv_of(args);
  const int64_t count = product_count(&c);
  prepared_conv *prepared = mix_calloc(1, sizeof *prepared + sizeof(product) * (size_t)count);
  if (!prepared) return false;
  prepared->conv = c, prepared->count = count;
  prepared->workspace =
      make(engine, args, &c, mix_conv_product_serial(args) ? 1 : threads, prepared->products);
  prepared->kernel_bytes = transposed_bytes(&c);
  const mix_gemm_plan *plan = &prepared->products[0].plan;
  if (plan->problem.fixed_b && plan->algorithm->kept_bytes)
    prepared->kept_bytes = (size_t)whole_lines((int64_t)plan->algorithm->kept_bytes(plan));
  if (args->program && !(prepared->epilogue = mix_tile_prepare(args->program))) {
    mix_free(prepared);
    return false;
  }
  args->prepared = prepared;
  return true;
}

/* ---- runs ---- */

/* Whole tiles go through memory of their own: lines of both sides may share a set of the cache, and each is
 * touched once. */
#define TRANSPOSE(bits)                                                                                      \
  static void transpose_tile_##bits(const uint##bits##_t *from, int64_t from_stride, uint##bits##_t *to,     \
                                    int64_t to_stride) {                                                     \
    uint##bits##_t tile[TRANSPOSE_TILE][TRANSPOSE_TILE];                                                     \
    for (int i = 0; i < TRANSPOSE_TILE; i++) {                                                               \
      __builtin_prefetch(from + i * from_stride + TRANSPOSE_AHEAD * TRANSPOSE_TILE);                         \
      memcpy(tile[i], from + i * from_stride, sizeof tile[i]);                                               \
    }                                                                                                        \
    for (int j = 0; j < TRANSPOSE_TILE; j++)                                                                 \
      for (int i = 0; i < TRANSPOSE_TILE; i++) to[j * to_stride + i] = tile[i][j];                           \
  }                                                                                                          \
  static void transpose_##bits(const void *source, int64_t from_stride, int64_t rows, int64_t columns,       \
                               void *result) {                                                               \
    const uint##bits##_t *from = source;                                                                     \
    uint##bits##_t *to = result;                                                                             \
    for (int64_t r = 0; r < rows; r += TRANSPOSE_TILE)                                                       \
      for (int64_t c = 0; c < columns; c += TRANSPOSE_TILE) {                                                \
        if (r + TRANSPOSE_TILE <= rows && c + TRANSPOSE_TILE <= columns) {                                   \
          transpose_tile_##bits(from + r * from_stride + c, from_stride, to + c * rows + r, rows);           \
          continue;                                                                                          \
        }                                                                                                    \
        for (int64_t j = c; j < smaller(c + TRANSPOSE_TILE, columns); j++)                                   \
          for (int64_t i = r; i < smaller(r + TRANSPOSE_TILE, rows); i++)                                    \
            to[j * rows + i] = from[i * from_stride + j];                                                    \
      }                                                                                                      \
  }
TRANSPOSE(16)
TRANSPOSE(32)
TRANSPOSE(64)

/* (channels, filters) of a group at one cell -> (filters, channels). */
static void transpose_cell(const conv *c, const char *from, char *to) {
  const int64_t stride = c->g.groups * c->g.filters;
  switch (mix_dtype_size(c->dtype)) {
  case 2: transpose_16(from, stride, c->g.channels, c->g.filters, to); break;
  case 4: transpose_32(from, stride, c->g.channels, c->g.filters, to); break;
  default: transpose_64(from, stride, c->g.channels, c->g.filters, to); break;
  }
}

/* Cell `number` of a phase's kernel, in the kernel. */
static int64_t kernel_cell(const conv *c, const product *p, int64_t number) {
  int64_t at[AXES];
  for (int i = AXES - 1; i >= 0; i--) {
    at[i] = p->first_cell[i] + number % p->window[i] * p->cell_step[i];
    number /= p->window[i];
  }
  return (at[0] * c->g.kernel[1] + at[1]) * c->g.kernel[2] + at[2];
}

/* Phase by phase, group by group and cell by cell; each thread does a share of the cells. */
static void transpose_kernel(const prepared_conv *prepared, const char *kernel, char *to,
                             const mix_team *team) {
  const conv *c = &prepared->conv;
  const int64_t size = (int64_t)mix_dtype_size(c->dtype), pixel = c->g.channels * c->g.filters * size;
  int64_t begin, end, unit = 0;
  mix_team_share(team, mix_conv_cells(c->g.kernel) * c->g.groups, 1, &begin, &end);
  for (int64_t i = 0; i < prepared->count; i++) {
    const product *p = &prepared->products[i];
    for (int64_t group = 0; group < c->g.groups; group++)
      for (int64_t cell = 0; cell < mix_conv_cells(p->window); cell++, unit++)
        if (unit >= begin && unit < end)
          transpose_cell(c,
                         kernel + kernel_cell(c, p, cell) * c->g.groups * pixel + group * c->g.filters * size,
                         to + unit * pixel);
  }
}

/* The operands of a product in a group. `transposed`: the kernel by phases. */
static mix_gemm_operands operands_of(const prepared_conv *prepared, const mix_kernel_args *args,
                                     const product *p, int64_t group, const char *transposed) {
  const conv *c = &prepared->conv;
  const mix_gemm_problem *problem = &p->problem;
  const int64_t size = (int64_t)mix_dtype_size(c->dtype), x = group * c->g.channels, y = group * c->g.filters;
  const bool forward = c->kind != MIX_CONV_INPUT_GRADIENT;
  mix_gemm_operands o = {
      .a = {(const char *)args->inputs[0] + (forward ? x : y) * size, size, problem->lda,
            problem->transpose_a, problem->patches ? &p->patches : NULL},
      .b = {(const char *)args->inputs[1] + y * size, size, problem->ldb, problem->transpose_b, NULL},
      .kept = prepared->kept_bytes ? (const char *)args->kept + (size_t)group * prepared->kept_bytes : NULL,
      .epilogue = prepared->epilogue,
      .args = args,
      .rows = problem->scattered ? &p->rows : NULL,
      .first_column = forward ? y : x};
  if (c->phases)
    o.b.base = transposed + (p->cells_before * c->g.groups + group * mix_conv_cells(p->window)) *
                                c->g.channels * c->g.filters * size;
  return o;
}

static void finish(const mix_kernel_args *args, const mix_team *team, bool finite) {
  prepared_conv *prepared = args->prepared;
  if (!finite) atomic_store_explicit(&prepared->failed, true, memory_order_relaxed);
  if (!mix_team_last(team, &prepared->finished)) return;
  *(bool *)args->outputs[args->program->reduction_output] =
      !atomic_load_explicit(&prepared->failed, memory_order_relaxed);
  atomic_store_explicit(&prepared->failed, false, memory_order_relaxed);
}

static void run_product(const mix_kernel_args *args, const product *p, mix_gemm_operands *o,
                        const mix_team *team, bool *finite, char *shared, char *own) {
  o->finite = finite;
  if (!args->program) o->c = args->outputs[0];
  if (finite) mix_gemm_test_sums(args, o);
  if (o->c) o->c = (char *)o->c + o->first_column * o->a.size;
  if (p->plan.compute_transposed) {
    const mix_gemm_view left = o->a;
    o->a = mix_gemm_view_transposed(&o->b), o->b = mix_gemm_view_transposed(&left);
  }
  mix_gemm_run(&p->plan, o, team, shared, own);
}

void mix_conv_product_run(const mix_kernel_args *args, const mix_team *team) {
  prepared_conv *prepared = args->prepared;
  const conv *c = &prepared->conv;
  const mix_gemm_workspace *w = &prepared->workspace;
  char *transposed = args->workspace, *shared = transposed + prepared->kernel_bytes,
       *own = shared + w->shared + w->thread * (size_t)team->rank;
  const bool tests = args->program && args->program->reduction == MIX_REDUCE_ALL_FINITE;
  bool finite = true;
  if (c->phases) {
    transpose_kernel(prepared, args->inputs[1], transposed, team);
    if (team->size > 1) mix_team_barrier(team);
  }
  for (int64_t i = 0; i < prepared->count; i++)
    for (int64_t group = 0; group < c->g.groups; group++) {
      const product *p = &prepared->products[i];
      mix_gemm_operands operands = operands_of(prepared, args, p, group, transposed);
      if (waits(p, i, group, w->shared > 0)) mix_team_barrier(team);
      run_product(args, p, &operands, team, tests ? &finite : NULL, shared, own);
    }
  if (tests) finish(args, team, finite);
}

/* ---- kernels that are packed once ---- */

size_t mix_conv_product_kept(const mix_kernel_args *args) {
  const prepared_conv *prepared = args->prepared;
  return prepared->kept_bytes * (size_t)prepared->conv.g.groups;
}

int mix_conv_product_kept_operand(const mix_kernel_args *args, int64_t layout[MIX_KEPT_LAYOUT]) {
  const prepared_conv *prepared = args->prepared;
  const product *p = &prepared->products[0];
  const mix_gemm_operands o = operands_of(prepared, args, p, 0, NULL);
  const int count = mix_gemm_set_layout(&p->plan, &o.b, layout);
  layout[count] = prepared->conv.g.groups;
  return 1;
}

void mix_conv_product_begin(const mix_kernel_args *args, const mix_team *team) {
  const prepared_conv *prepared = args->prepared;
  const product *p = &prepared->products[0];
  for (int64_t group = 0; group < prepared->conv.g.groups; group++) {
    const mix_gemm_operands o = operands_of(prepared, args, p, group, NULL);
    p->plan.algorithm->keep(&p->plan, &o.b, team->rank, team->size,
                            (char *)args->kept + (size_t)group * prepared->kept_bytes);
  }
}

/* ---- the table ---- */

MIX_PRODUCTS(MIX_CONV_PRODUCT_KERNEL)

/* Channel by channel first (depthwise.c). */
const mix_kernel *const mix_cpu_conv_kernels[] = {&mix_cpu_depthwise_kernel,
                                                  MIX_PRODUCTS(MIX_PRODUCT_ROW) NULL};
