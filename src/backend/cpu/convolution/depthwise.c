/* Convolutions of each channel by itself, and their gradients. Channels lie side by side in vectors; every
 * result is a sum of products of rows of channels, which stays in registers. Where a channel has several
 * filters, their results lie side by side: each number of x is repeated in a register, and the gradient of
 * the input sums what stands side by side. */
#include "backend/cpu/convolution/taps.h"
#include "backend/cpu/gemm/kernels.h"
#include "backend/cpu/kernels.h"
#include "backend/cpu/simd/attributes.h"
#include "base/alloc.h"
#include <string.h>

enum {
  ROW = 1, /* axes: rows and columns of cells */
  COLUMN = 2,
  STRIP = 2 * MIX_CELLS, /* cells whose sums are stored at once */
  BLOCK = 128,       /* filters of the kernel's gradient that a thread sums at once, or those of a channel */
  MAX_TAP_ROWS = 16, /* of a kernel whose gradient is summed for all cells at once */
  SERIAL_OPERATIONS = 1 << 15,
};

typedef struct prepared_depthwise {
  mix_conv_geometry g;
  int64_t filters;    /* of all channels */
  mix_gemm_plan plan; /* only how results are stored */
  mix_tile_program *epilogue;
  atomic_int finished; /* threads */
  atomic_bool failed;  /* the finite test of one of them */
  int32_t quotients[]; /* mix_repeat */
} prepared_depthwise;

/* A thread's run. */
typedef struct run_state {
  const prepared_depthwise *prepared;
  const mix_kernel_args *args;
  mix_gemm_operands result;  /* where and how it is stored */
  bool direct;               /* sums are the result: float32 without a program */
  mix_tile_bias stored;      /* what groups of cells store themselves; result NULL: nothing */
  float *sums, *part, *wide; /* its workspace; wide: of the kernel in float32, NULL: it is read in place */
  mix_repeat repeat;
  const float *kernel;
  int64_t size; /* bytes of a stored number */
} run_state;

static const char *depthwise_unsupported_reason(const mix_kernel_args *args) {
  const mix_dtype dtype = args->input_types[0].dtype;
  if (dtype == MIX_FLOAT64) return "operands of another dtype";
  const mix_conv_geometry g = mix_conv_geometry_of(args->op, args->attributes, args->input_types);
  if (g.channels != 1) return "several channels in a group";
  if (g.filters > 1 && g.groups == 1) return "a product of one channel";
  if (g.in[0] != 1 || g.kernel[0] != 1 || g.out[0] != 1 || g.before[0] != 0) return "three spatial axes";
  if (g.batch * g.groups * g.filters * mix_conv_cells(g.in) * mix_conv_cells(g.out) == 0)
    return "no elements";
  return mix_gemm_result_unsupported_reason(args, dtype);
}

static bool serial(const mix_kernel_args *args) {
  const mix_conv_geometry g = mix_conv_geometry_of(args->op, args->attributes, args->input_types);
  return (double)(g.batch * g.groups * g.filters) * (double)mix_conv_cells(g.out) *
             (double)mix_conv_cells(g.kernel) <
         SERIAL_OPERATIONS;
}

/* Is the kernel's gradient summed for all cells at once? */
static bool sums_taps(const mix_conv_geometry *g) {
  const int64_t far = INT64_C(1) << 20; /* places of lines that are not there stay in int64 */
  return mix_vector_current()->sum_taps[MIX_FLOAT32] && g->filters == 1 && g->kernel[COLUMN] == 3 &&
         g->kernel[ROW] <= MAX_TAP_ROWS && g->dilation[ROW] < far && g->dilation[COLUMN] < far;
}

static int64_t sums_count(const mix_conv_geometry *g, mix_conv_kind kind) {
  if (kind == MIX_CONV_KERNEL_GRADIENT && sums_taps(g)) return 2 * BLOCK * mix_conv_cells(g->kernel);
  return round_up(2 * STRIP * g->groups * g->filters + BLOCK, 64);
}
/* Channels of the kernel's gradient that a thread sums at once. */
static int64_t block_channels(const mix_conv_geometry *g) {
  return g->filters < BLOCK ? BLOCK / g->filters : 1;
}

/* Each number of the kernel is read for every cell, so that a thread widens it once. */
static bool widens_kernel(mix_conv_kind kind, mix_dtype dtype) {
  return kind != MIX_CONV_KERNEL_GRADIENT && dtype != MIX_FLOAT32;
}

/* Of a thread's workspace. */
static int64_t thread_floats(const mix_conv_geometry *g, mix_conv_kind kind, mix_dtype dtype) {
  const int64_t kernel = widens_kernel(kind, dtype) ? mix_conv_cells(g->kernel) * g->groups * g->filters : 0;
  return sums_count(g, kind) + round_up(kernel, 64);
}

static size_t depthwise_workspace(const mix_kernel_args *args, int threads) {
  const mix_conv_geometry g = mix_conv_geometry_of(args->op, args->attributes, args->input_types);
  const int64_t count = thread_floats(&g, mix_conv_kind_of(args->op), args->input_types[0].dtype);
  return (size_t)(count * threads) * sizeof(float);
}

static void release(void *prepared) {
  mix_free(((prepared_depthwise *)prepared)->epilogue);
  mix_free(prepared);
}

static bool depthwise_prepare(mix_kernel_args *args, int threads) {
  const mix_conv_geometry g = mix_conv_geometry_of(args->op, args->attributes, args->input_types);
  const bool of_dx = mix_conv_kind_of(args->op) == MIX_CONV_INPUT_GRADIENT;
  const int64_t quotients = g.filters + MIX_REPEAT_AHEAD;
  prepared_depthwise *prepared =
      mix_calloc(1, sizeof *prepared + sizeof *prepared->quotients * (size_t)quotients);
  if (!prepared) return false;
  prepared->g = g, prepared->filters = g.groups * g.filters;
  for (int64_t i = 0; i < quotients; i++) prepared->quotients[i] = (int32_t)(i / g.filters);
  prepared->plan = (mix_gemm_plan){.vector = mix_vector_current(),
                                   .result = args->input_types[0].dtype,
                                   .problem.ldc = of_dx ? g.groups : prepared->filters};
  if (args->program && !(prepared->epilogue = mix_tile_prepare(args->program))) {
    mix_free(prepared);
    return false;
  }
  args->prepared = prepared;
  return true;
}

/* ---- sums ---- */

static void store(const run_state *s, const float *sums, int64_t row, int64_t rows, int64_t column,
                  int64_t columns) {
  mix_gemm_store_result(&s->prepared->plan, &s->result, sums, columns, row, rows, column, columns, false);
}

/* Values [*first, *end) of an index i, of `count`, for which 0 <= from + i * step < limit; step is not 0. */
static void valid(int64_t from, int64_t step, int64_t limit, int64_t count, int64_t *first, int64_t *end) {
  if (step < 0) { /* the same values from the other end */
    valid(from + (count - 1) * step, -step, limit, count, first, end);
    const int64_t last = count - *first;
    *first = count - *end, *end = last;
    return;
  }
  *first = from < 0 ? smaller(divide_up(-from, step), count) : 0;
  *end = from < limit ? smaller(divide_up(limit - from, step), count) : 0;
  if (*end < *first) *end = *first;
}

/* Inlined: as a call it costs 3 % of a line of a small image. */
SIMD_INLINE mix_conv_taps valid_taps(mix_conv_taps t, int64_t limit) {
  int64_t first, end;
  valid(t.at, t.step, limit, t.count, &first, &end);
  if (first == end) return (mix_conv_taps){0}; /* far from what memory there is */
  t.kernel += first * t.kernel_step, t.at += first * t.step, t.count = end - first;
  return t;
}

/* Of a cell of y. */
static mix_conv_taps taps_of_y(const mix_conv_geometry *g, int axis, int64_t cell) {
  return valid_taps(
      (mix_conv_taps){0, 1, cell * g->stride[axis] - g->before[axis], g->dilation[axis], g->kernel[axis]},
      g->in[axis]);
}

static mix_conv_taps taps_of_dx(const mix_conv_geometry *g, int axis, int64_t cell) {
  return valid_taps(mix_conv_taps_of_dx(g, axis, cell), g->out[axis]);
}

/* Whether cells side by side share what is read (sum_cells). */
static bool shares_columns(const run_state *s) {
  const mix_conv_geometry *g = &s->prepared->g;
  const mix_gemm_plan *plan = &s->prepared->plan;
  const int64_t before = g->before[COLUMN], after = g->out[COLUMN] + 2 - g->in[COLUMN] - before;
  return g->filters == 1 && plan->vector->sum_cells[plan->result] && g->groups >= plan->vector->lanes &&
         g->kernel[COLUMN] == 3 && g->stride[COLUMN] == 1 && g->dilation[COLUMN] == 1 && before >= 0 &&
         before <= 2 && after >= 0 && after <= 2; /* no cell sees padding alone */
}

/* A line of y or dx, `of` the other operand's sizes: cells of the result's last axis. */
typedef struct line {
  bool of_y;
  int64_t cells, first_row, n, m; /* n numbers of a cell, m of the other operand's */
  const int64_t *of;
  mix_conv_taps rows;
  const char *image;
  const float *kernel;
} line;

static line line_of(const run_state *s, bool of_y, int64_t example, int64_t row) {
  const mix_conv_geometry *g = &s->prepared->g;
  const int64_t filters = s->prepared->filters;
  line l = {.of_y = of_y,
            .cells = of_y ? g->out[COLUMN] : g->in[COLUMN],
            .n = of_y ? filters : g->groups,
            .m = of_y ? g->groups : filters,
            .of = of_y ? g->in : g->out,
            .rows = of_y ? taps_of_y(g, ROW, row) : taps_of_dx(g, ROW, row)};
  l.first_row = (example * (of_y ? g->out[ROW] : g->in[ROW]) + row) * l.cells;
  l.image =
      (const char *)s->args->inputs[0] + (example * l.of[ROW] + l.rows.at) * l.of[COLUMN] * l.m * s->size;
  l.kernel = s->kernel + l.rows.kernel * g->kernel[COLUMN] * filters;
  return l;
}

/* Results of `count` cells of a line, in groups of MIX_CELLS, of which the last may sum cells again; with
 * `second` those of the line too that sees one line of the image more. Returns how many cells are summed: too
 * few are left to others. */
static int64_t sum_groups(const run_state *s, const line *l, char *results, char *second, int64_t begin,
                          int64_t count) {
  const mix_conv_geometry *g = &s->prepared->g;
  const mix_gemm_plan *plan = &s->prepared->plan;
  const bool stores = s->stored.result;
  const int64_t n = l->n, size = stores ? s->size : (int64_t)sizeof(float), columns = l->of[COLUMN],
                first = l->of_y ? -g->before[COLUMN] : g->before[COLUMN] - (g->kernel[COLUMN] - 1);
  int64_t done = 0;
  while (count >= MIX_CELLS && count - done > MIX_CELLS / 2) {
    const int64_t at = smaller(done, count - MIX_CELLS);
    const mix_cell_products p = {.rows = l->rows.count + (second != NULL),
                                 .a_row = l->rows.step * columns * n,
                                 .b_row = l->rows.kernel_step * g->kernel[COLUMN] * n,
                                 .column = begin + at + first,
                                 .columns = columns,
                                 .backwards = !l->of_y,
                                 .stores = stores,
                                 .relu = s->stored.relu,
                                 .bias = s->stored.bias};
    char *to = results + at * n * size;
    if (second)
      plan->vector->sum_two_lines[plan->result](to, second + at * n * size, l->image, l->kernel, &p, n);
    else
      plan->vector->sum_cells[plan->result](to, l->image, l->kernel, &p, n);
    done = at + MIX_CELLS;
  }
  return done;
}

/* Cells [i, count) of those from `begin` on, each by itself. */
static void sum_each(const run_state *s, const line *l, float *sums, int64_t begin, int64_t i,
                     int64_t count) {
  const mix_conv_geometry *g = &s->prepared->g;
  const mix_gemm_plan *plan = &s->prepared->plan;
  const int64_t filters = s->prepared->filters, n = l->n;
  const bool repeats = l->of_y && g->filters > 1, adds = !l->of_y && g->filters > 1;
  for (; i < count; i++) {
    const mix_conv_taps columns =
        l->of_y ? taps_of_y(g, COLUMN, begin + i) : taps_of_dx(g, COLUMN, begin + i);
    const mix_row_products p = {.outer = l->rows.count,
                                .inner = columns.count,
                                .a_outer = l->rows.step * l->of[COLUMN] * l->m,
                                .a_inner = columns.step * l->m,
                                .b_outer = l->rows.kernel_step * g->kernel[COLUMN] * filters,
                                .b_inner = columns.kernel_step * filters};
    const char *from = l->image + columns.at * l->m * s->size;
    const float *with = l->kernel + columns.kernel * filters;
    if (repeats)
      plan->vector->sum_repeated_weighted[plan->result](sums + i * n, from, with, &p, &s->repeat, n);
    else
      plan->vector->sum_weighted[plan->result](adds ? s->part : sums + i * n, from, with, &p, filters);
    if (adds) plan->vector->sum_neighbours(sums + i * n, s->part, g->filters, n);
  }
}

/* Where the sums of cells from `begin` on go that groups do not store. */
static float *sums_at(const run_state *s, const line *l, int64_t begin, float *memory) {
  return s->direct ? (float *)s->args->outputs[0] + (l->first_row + begin) * l->n : memory;
}

static char *results_at(const run_state *s, const line *l, int64_t begin, float *memory) {
  return s->stored.result ? (char *)s->stored.result + (l->first_row + begin) * l->n * s->size
                          : (char *)memory;
}

/* Of `count` cells from `begin` on, `done` are summed by groups. */
static void finish_strip(const run_state *s, const line *l, float *sums, int64_t begin, int64_t done,
                         int64_t count) {
  const int64_t stored = s->stored.result ? done : 0;
  sum_each(s, l, sums, begin, done, count);
  if (!s->direct && stored < count)
    store(s, sums + stored * l->n, l->first_row + begin + stored, count - stored, 0, l->n);
}

static void depthwise_run_line(const run_state *s, const line *l) {
  const bool shares = shares_columns(s);
  for (int64_t begin = 0; begin < l->cells; begin += STRIP) {
    const int64_t count = smaller(STRIP, l->cells - begin);
    float *sums = sums_at(s, l, begin, s->sums);
    const int64_t done = shares ? sum_groups(s, l, results_at(s, l, begin, sums), NULL, begin, count) : 0;
    finish_strip(s, l, sums, begin, done, count);
  }
}

/* Do the lines of the image that a line sees follow those of the line before it, so that both read them once?
 */
static bool sees_next(const run_state *s, const line *l, const line *next) {
  const mix_conv_geometry *g = &s->prepared->g;
  const mix_gemm_plan *plan = &s->prepared->plan;
  return shares_columns(s) && plan->vector->sum_two_lines[plan->result] && g->kernel[ROW] == 3 &&
         g->stride[ROW] == 1 && g->dilation[ROW] == 1 && l->rows.count == 3 && next->rows.count == 3;
}

/* first: the line whose terms come first. */
static void depthwise_run_two_lines(const run_state *s, const line *first, const line *second) {
  for (int64_t begin = 0; begin < first->cells; begin += STRIP) {
    const int64_t count = smaller(STRIP, first->cells - begin);
    float *sums = sums_at(s, first, begin, s->sums), *others = sums_at(s, second, begin, s->part);
    const int64_t done = sum_groups(s, first, results_at(s, first, begin, sums),
                                    results_at(s, second, begin, others), begin, count);
    finish_strip(s, first, sums, begin, done, count);
    finish_strip(s, second, others, begin, done, count);
  }
}

/* The kernel's gradient at a cell, of `count` channels from c: sums over each example, added in order. */
static void depthwise_run_cell(const run_state *s, int64_t row, int64_t column, int64_t c, int64_t count) {
  const mix_conv_geometry *g = &s->prepared->g;
  const mix_gemm_plan *plan = &s->prepared->plan;
  const int64_t channels = g->groups, filters = s->prepared->filters, n = count * g->filters,
                cell = row * g->kernel[COLUMN] + column;
  int64_t first[2], end[2], at[2];
  for (int i = 0; i < 2; i++) {
    const int axis = ROW + i;
    const int64_t from = (i ? column : row) * g->dilation[axis] - g->before[axis];
    valid(from, g->stride[axis], g->in[axis], g->out[axis], &first[i], &end[i]);
    at[i] = first[i] < end[i] ? from + first[i] * g->stride[axis] : 0;
  }
  const mix_row_products p = {.outer = end[0] - first[0],
                              .inner = end[1] - first[1],
                              .a_outer = g->stride[ROW] * g->in[COLUMN] * channels,
                              .a_inner = g->stride[COLUMN] * channels,
                              .b_outer = g->out[COLUMN] * filters,
                              .b_inner = filters};
  mix_repeat repeat = s->repeat;
  repeat.first = c;
  memset(s->sums, 0, (size_t)n * sizeof(float));
  for (int64_t example = 0; example < g->batch; example++) {
    const char *x = (const char *)s->args->inputs[0] +
                    ((example * g->in[ROW] + at[0]) * g->in[COLUMN] + at[1]) * channels * s->size,
               *dy = (const char *)s->args->inputs[1] +
                     (((example * g->out[ROW] + first[0]) * g->out[COLUMN] + first[1]) * filters +
                      c * g->filters) *
                         s->size;
    if (g->filters == 1)
      plan->vector->sum_products[plan->result](s->part, x + c * s->size, dy, &p, n);
    else
      plan->vector->sum_repeated[plan->result](s->part, x, dy, &p, &repeat, n);
    for (int64_t i = 0; i < n; i++) s->sums[i] += s->part[i];
  }
  /* The last dimension of the result is the multiplier, or the filters of all groups. */
  const bool depthwise = !((const mix_conv_attributes *)s->args->attributes)->groups;
  if (s->result.epilogue && depthwise)
    store(s, s->sums, cell * channels + c, count, 0, g->filters);
  else
    store(s, s->sums, cell, 1, c * g->filters, n);
}

/* ---- the gradient of a kernel three cells wide ---- */

/* Adds an example's products to s->part, for `count` channels from c on, in lines of y. */
static void sum_example(const run_state *s, int64_t example, int64_t c, int64_t count, int64_t stride) {
  const mix_conv_geometry *g = &s->prepared->g;
  const mix_gemm_plan *plan = &s->prepared->plan;
  const int64_t channels = g->groups, last = (g->kernel[COLUMN] - 1) * g->dilation[COLUMN];
  mix_tap_products p = {.cells = g->out[COLUMN],
                        .x_first = -g->before[COLUMN] * channels,
                        .x_row = g->dilation[ROW] * g->in[COLUMN] * channels,
                        .x_cell = g->stride[COLUMN] * channels,
                        .x_tap = g->dilation[COLUMN] * channels,
                        .dy_cell = channels,
                        .sums_step = stride,
                        .column = -g->before[COLUMN],
                        .column_cell = g->stride[COLUMN],
                        .column_tap = g->dilation[COLUMN],
                        .columns = g->in[COLUMN]};
  valid(p.column, p.column_cell, p.columns - last, p.cells, &p.first, &p.end);
  for (int64_t row = 0; row < g->out[ROW]; row++) {
    const mix_conv_taps rows = taps_of_y(g, ROW, row);
    const char *dy = (const char *)s->args->inputs[1] +
                     ((example * g->out[ROW] + row) * g->out[COLUMN] * channels + c) * s->size;
    for (int64_t r = 0; r < rows.count; r += p.rows) {
      p.rows = smaller(rows.count - r, 3);
      const int64_t at = (example * g->in[ROW] + rows.at + r * rows.step) * g->in[COLUMN];
      plan->vector->sum_taps[plan->result](s->part + (rows.kernel + r) * 3 * stride,
                                           (const char *)s->args->inputs[0] + (at * channels + c) * s->size,
                                           dy, &p, count);
    }
  }
}

/* The gradient at all cells, of `count` channels from c: sums over each example, added in order. */
static void depthwise_run_taps(const run_state *s, int64_t c, int64_t count) {
  const mix_conv_geometry *g = &s->prepared->g;
  const int64_t cells = mix_conv_cells(g->kernel), stride = BLOCK;
  memset(s->sums, 0, (size_t)(cells * stride) * sizeof(float));
  for (int64_t example = 0; example < g->batch; example++) {
    memset(s->part, 0, (size_t)(cells * stride) * sizeof(float));
    sum_example(s, example, c, count, stride);
    for (int64_t i = 0; i < cells * stride; i++) s->sums[i] += s->part[i];
  }
  const bool depthwise = !((const mix_conv_attributes *)s->args->attributes)->groups;
  for (int64_t cell = 0; cell < cells; cell++)
    if (s->result.epilogue && depthwise)
      store(s, s->sums + cell * stride, cell * g->groups + c, count, 0, 1);
    else
      store(s, s->sums + cell * stride, cell, 1, c, count);
}

/* ---- the kernel ---- */

static void depthwise_run_lines(const run_state *s, bool of_y, const mix_team *team) {
  const mix_conv_geometry *g = &s->prepared->g;
  const mix_gemm_plan *plan = &s->prepared->plan;
  const int64_t rows = of_y ? g->out[ROW] : g->in[ROW];
  int64_t begin, end;
  mix_team_share(team, g->batch * rows, 1, &begin, &end);
  if (begin < end && s->wide)
    plan->vector->load[plan->result](s->wide, s->args->inputs[1],
                                     mix_conv_cells(g->kernel) * s->prepared->filters);
  while (begin < end) {
    const line x = line_of(s, of_y, begin / rows, begin % rows);
    begin++;
    if (begin < end && begin % rows) {
      const line next = line_of(s, of_y, begin / rows, begin % rows);
      if (sees_next(s, &x, &next)) {
        depthwise_run_two_lines(s, of_y ? &x : &next, of_y ? &next : &x);
        begin++;
        continue;
      }
    }
    depthwise_run_line(s, &x);
  }
}

static void depthwise_run_cells(const run_state *s, const mix_team *team) {
  const mix_conv_geometry *g = &s->prepared->g;
  const int64_t most = block_channels(g), blocks = divide_up(g->groups, most);
  int64_t begin, end;
  if (sums_taps(g)) {
    mix_team_share(team, g->groups, s->prepared->plan.vector->lanes, &begin, &end);
    for (int64_t c = begin; c < end; c += BLOCK) depthwise_run_taps(s, c, smaller(BLOCK, end - c));
    return;
  }
  mix_team_share(team, mix_conv_cells(g->kernel) * blocks, 1, &begin, &end);
  for (int64_t i = begin; i < end; i++) {
    const int64_t cell = i / blocks, c = i % blocks * most;
    depthwise_run_cell(s, cell / g->kernel[COLUMN], cell % g->kernel[COLUMN], c,
                       smaller(most, g->groups - c));
  }
}

static void finish(const mix_kernel_args *args, const mix_team *team, bool finite) {
  prepared_depthwise *prepared = args->prepared;
  if (!finite) atomic_store_explicit(&prepared->failed, true, memory_order_relaxed);
  if (!mix_team_last(team, &prepared->finished)) return;
  *(bool *)args->outputs[args->program->reduction_output] =
      !atomic_load_explicit(&prepared->failed, memory_order_relaxed);
  atomic_store_explicit(&prepared->failed, false, memory_order_relaxed);
}

/* The bias that groups of cells add, in the dtype of x: a program may read float32 sums of 16 bits. */
static mix_tile_bias stored_bias(const prepared_depthwise *prepared, const mix_kernel_args *args) {
  const mix_tile_bias bias = mix_tile_find_bias(prepared->epilogue, args);
  const bool same = args->output_types[args->program->stores[0].output].dtype == prepared->plan.result;
  return bias.result && same ? bias : (mix_tile_bias){NULL};
}

static void depthwise_run(const mix_kernel_args *args, const mix_team *team) {
  const prepared_depthwise *prepared = args->prepared;
  const mix_conv_geometry *g = &prepared->g;
  const mix_conv_kind kind = mix_conv_kind_of(args->op);
  const bool tests = args->program && args->program->reduction == MIX_REDUCE_ALL_FINITE;
  bool finite = true;
  run_state s = {.prepared = prepared,
                 .args = args,
                 .result = {.epilogue = prepared->epilogue, .args = args, .finite = tests ? &finite : NULL},
                 .size = (int64_t)mix_dtype_size(prepared->plan.result),
                 .sums = (float *)args->workspace +
                         team->rank * thread_floats(&prepared->g, kind, prepared->plan.result),
                 .repeat = {.times = prepared->g.filters,
                            .count = prepared->g.groups,
                            .quotients = prepared->quotients}};
  s.part = s.sums + (kind != MIX_CONV_KERNEL_GRADIENT ? STRIP * g->groups
                     : sums_taps(g)                   ? BLOCK * mix_conv_cells(g->kernel)
                                                      : block_channels(g) * g->filters);
  if (widens_kernel(kind, prepared->plan.result)) s.wide = s.sums + sums_count(g, kind);
  s.kernel = s.wide ? s.wide : args->inputs[1];
  if (tests) mix_gemm_test_sums(args, &s.result);
  if (!args->program) s.result.c = args->outputs[0];
  s.direct = !args->program && prepared->plan.result == MIX_FLOAT32;
  s.stored = prepared->epilogue ? stored_bias(prepared, args)
                                : (mix_tile_bias){.result = s.result.finite ? NULL : args->outputs[0]};
  if (kind == MIX_CONV_KERNEL_GRADIENT)
    depthwise_run_cells(&s, team);
  else
    depthwise_run_lines(&s, kind == MIX_CONV_FORWARD, team);
  if (tests) finish(args, team, finite);
}

const mix_kernel mix_cpu_depthwise_kernel = {.name = "depthwise_acc32",
                                             .unsupported_reason = depthwise_unsupported_reason,
                                             .run = depthwise_run,
                                             .workspace = depthwise_workspace,
                                             .prepare = depthwise_prepare,
                                             .release = release,
                                             .serial = serial};
