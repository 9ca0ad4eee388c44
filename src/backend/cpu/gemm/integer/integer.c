/* The kernels of matmul_integer: blocks of C are tasks, each packs its columns of B once for every block of
 * k. */
#include "backend/cpu/gemm/block_arithmetic.h"
#include "backend/cpu/gemm/integer/integer.h"
#include "backend/cpu/gemm/kernels.h"
#include "backend/cpu/kernels.h"
#include "base/alloc.h"
#include "tensor/shape.h"
#include <string.h>

enum {
  /* The largest blocks: a panel of B and a tile's rows of A stay in the second- and first-level caches. */
  KC = 2048,
  MC = 240,
  NC = 128,
  /* Few rows are bound by reading B: blocks whose rows are long. */
  FEW_ROWS = 16,
  FEW_ROWS_KC = 256,
  FEW_ROWS_NC = 1024,
  TASKS = 4,                   /* for each thread at least, where C has so many tiles */
  SERIAL_OPERATIONS = 1 << 18, /* of multiplications */
};

/* C (m, n) of each of `batches`, of leading dimensions that broadcast. */
typedef struct product {
  const mix_integer_engine *engine;
  bool transpose_a, transpose_b;
  int64_t batches, m, n, k, lda, ldb;
  int64_t mc, nc, kc; /* blocks */
  size_t a_bytes, b_bytes, thread_bytes;
} product;

static int64_t groups_of(const mix_integer_engine *engine, int64_t depth) {
  return round_up(divide_up(depth, engine->group), engine->step);
}

static int64_t tasks_of(const product *p) {
  return p->batches * divide_up(p->m, p->mc) * divide_up(p->n, p->nc);
}

static product product_of(const mix_integer_engine *engine, const mix_kernel_args *args, int threads) {
  const mix_matmul_attributes *flags = args->attributes;
  const mix_shape *a = &args->input_types[0].shape, *b = &args->input_types[1].shape;
  product p = {.engine = engine,
               .transpose_a = flags->transpose_a,
               .transpose_b = flags->transpose_b,
               .batches = 1,
               .lda = a->dims[a->rank - 1],
               .ldb = b->dims[b->rank - 1]};
  p.m = a->dims[a->rank - 2 + p.transpose_a], p.k = a->dims[a->rank - 1 - p.transpose_a];
  p.n = b->dims[b->rank - 1 - p.transpose_b];
  const mix_shape *c = &args->output_types[0].shape;
  /* All rows of A are one matrix where B is one. */
  int64_t *const outer = b->rank == 2 && !p.transpose_a ? &p.m : &p.batches;
  for (int d = 0; d < c->rank - 2; d++) *outer *= c->dims[d];
  const bool few = p.m <= FEW_ROWS;
  p.kc = smaller(p.k, few ? FEW_ROWS_KC : KC);
  p.mc = even_block(p.m, MC, engine->mr);
  p.nc = even_block(p.n, few ? FEW_ROWS_NC : NC, engine->nr);
  while (tasks_of(&p) < TASKS * threads && p.nc > engine->nr) p.nc = round_up(p.nc / 2, engine->nr);
  while (tasks_of(&p) < TASKS * threads && p.mc > 4 * engine->mr) p.mc = round_up(p.mc / 2, engine->mr);
  const int64_t row = 4 * groups_of(engine, p.kc);
  p.a_bytes = (size_t)whole_lines(round_up(p.mc, engine->rows) * row);
  p.b_bytes = (size_t)whole_lines(row * round_up(p.nc, engine->nr));
  p.thread_bytes = p.a_bytes + p.b_bytes + (size_t)whole_lines(p.mc * (int64_t)sizeof(int32_t));
  return p;
}

/* A block of C, in one block of k. */
typedef struct block {
  const int8_t *a, *b; /* of the matrices */
  int32_t *c;
  int64_t row, rows, column, columns, k, depth;
} block;

/* The rows of A as micro-kernels read them, and their distance in bytes. */
static const char *rows_of(const product *p, const block *x, char *packed, int64_t *stride) {
  const mix_integer_engine *engine = p->engine;
  if (!p->transpose_a && engine->group == 4 && x->depth % (4 * engine->step) == 0 &&
      x->rows % engine->rows == 0) {
    *stride = p->lda;
    return (const char *)x->a + x->row * p->lda + x->k;
  }
  *stride = groups_of(engine, x->depth) * 4;
  for (int64_t i = 0; i < x->rows; i++) {
    const int64_t row = x->row + i;
    engine->pack_a(p->transpose_a ? x->a + x->k * p->lda + row : x->a + row * p->lda + x->k,
                   p->transpose_a ? p->lda : 1, x->depth, packed + i * *stride);
  }
  return packed;
}

/* A tile at C's edge goes through a buffer. */
static void multiply_edge(const product *p, int64_t rows, int64_t groups, const char *a, int64_t a_stride,
                          const int32_t *b, const int32_t *starts, int32_t *c, int64_t columns, bool add) {
  _Alignas(64) int32_t tile[MIX_INTEGER_MAX_TILE];
  p->engine->micro[(rows - 1) / p->engine->rows](groups, a, a_stride, b, starts, tile, p->engine->nr, false);
  for (int64_t i = 0; i < rows; i++)
    for (int64_t j = 0; j < columns; j++) {
      const uint32_t sum = (uint32_t)tile[i * p->engine->nr + j];
      c[i * p->n + j] = (int32_t)(add ? (uint32_t)c[i * p->n + j] + sum : sum);
    }
}

static void multiply_block(const product *p, const block *x, char *workspace) {
  const mix_integer_engine *engine = p->engine;
  char *const packed_a = workspace;
  int32_t *const packed_b = (int32_t *)(void *)(workspace + p->a_bytes), *const starts =
                                                                             (int32_t *)(void *)(workspace +
                                                                                                 p->a_bytes +
                                                                                                 p->b_bytes);
  const int64_t groups = groups_of(engine, x->depth);
  int64_t a_stride;
  const char *a = rows_of(p, x, packed_a, &a_stride);
  for (int64_t i = 0; i < x->rows; i++)
    starts[i] = engine->start ? engine->start(a + i * a_stride, groups) : 0;
  engine->pack_b[p->transpose_b](p->transpose_b ? x->b + x->column * p->ldb + x->k
                                                : x->b + x->k * p->ldb + x->column,
                                 p->ldb, x->depth, x->columns, packed_b);
  for (int64_t j = 0; j < x->columns; j += engine->nr)
    for (int64_t i = 0; i < x->rows; i += engine->mr) {
      const int64_t rows = smaller(engine->mr, x->rows - i), columns = smaller(engine->nr, x->columns - j);
      int32_t *const c = x->c + (x->row + i) * p->n + x->column + j;
      const int32_t *const b = packed_b + j * groups;
      if (columns < engine->nr || rows % engine->rows)
        multiply_edge(p, rows, groups, a + i * a_stride, a_stride, b, starts + i, c, columns, x->k > 0);
      else
        engine->micro[(rows - 1) / engine->rows](groups, a + i * a_stride, a_stride, b, starts + i, c, p->n,
                                                 x->k > 0);
    }
}

void mix_integer_run(const mix_kernel_args *args, const mix_team *team) {
  const product *p = args->prepared;
  if (p->k == 0) {
    const int64_t count = mix_shape_size(args->output_types[0].shape);
    if (team->rank == 0 && count) memset(args->outputs[0], 0, (size_t)count * sizeof(int32_t));
    return;
  }
  char *const workspace = (char *)args->workspace + p->thread_bytes * (size_t)team->rank;
  const int64_t row_blocks = divide_up(p->m, p->mc), column_blocks = divide_up(p->n, p->nc);
  int64_t begin, end;
  mix_team_share(team, tasks_of(p), 1, &begin, &end);
  if (p->engine->enter) p->engine->enter();
  for (int64_t task = begin; task < end; task++) {
    const int64_t matrix = task / (row_blocks * column_blocks);
    block x = {.row = task / column_blocks % row_blocks * p->mc, .column = task % column_blocks * p->nc};
    x.a = args->inputs[0], x.b = args->inputs[1], x.c = args->outputs[0];
    if (p->batches > 1) {
      const mix_shape *c = &args->output_types[0].shape;
      x.a += mix_gemm_batch_offset(&args->input_types[0].shape, c, matrix);
      x.b += mix_gemm_batch_offset(&args->input_types[1].shape, c, matrix);
      x.c += matrix * p->m * p->n;
    }
    x.rows = smaller(p->mc, p->m - x.row), x.columns = smaller(p->nc, p->n - x.column);
    for (; x.k < p->k; x.k += x.depth) {
      x.depth = smaller(p->kc, p->k - x.k);
      multiply_block(p, &x, workspace);
    }
  }
  if (p->engine->leave) p->engine->leave();
}

bool mix_integer_serial(const mix_kernel_args *args) {
  const mix_shape *c = &args->output_types[0].shape, *a = &args->input_types[0].shape;
  const mix_matmul_attributes *flags = args->attributes;
  double operations = (double)a->dims[a->rank - 1 - flags->transpose_a];
  for (int d = 0; d < c->rank; d++) operations *= (double)c->dims[d];
  return operations < SERIAL_OPERATIONS;
}

bool mix_integer_prepare(const mix_integer_engine *engine, mix_kernel_args *args, int threads) {
  product *p = mix_alloc(sizeof *p);
  if (!p) return false;
  *p = product_of(engine, args, mix_integer_serial(args) ? 1 : threads);
  args->prepared = p;
  return true;
}

size_t mix_integer_workspace(const mix_integer_engine *engine, const mix_kernel_args *args, int threads) {
  if (mix_integer_serial(args)) threads = 1;
  return product_of(engine, args, threads).thread_bytes * (size_t)threads;
}

#define INTEGER_KERNEL(set, features, text)                                                                  \
  static bool prepare_##set(mix_kernel_args *args, int threads) {                                            \
    return mix_integer_prepare(&mix_integer_##set, args, threads);                                           \
  }                                                                                                          \
  static size_t workspace_##set(const mix_kernel_args *args, int threads) {                                  \
    return mix_integer_workspace(&mix_integer_##set, args, threads);                                         \
  }                                                                                                          \
  static const mix_kernel kernel_##set = {.name = "gemm_i8_acc32_" #set,                                     \
                                          .needs = features,                                                 \
                                          .run = mix_integer_run,                                            \
                                          .prepare = prepare_##set,                                          \
                                          .workspace = workspace_##set,                                      \
                                          .serial = mix_integer_serial,                                      \
                                          .description = text};
MIX_INTEGER_SETS(INTEGER_KERNEL)
#define INTEGER_ROW(set, ...) &kernel_##set,
const mix_kernel *const mix_cpu_matmul_integer_kernels[] = {MIX_INTEGER_SETS(INTEGER_ROW) NULL};
