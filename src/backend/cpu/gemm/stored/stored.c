/* The kernels of stored weights: products (matmul_channels, matmul_blocks) and numbers as floats
 * (dequantize_channels, dequantize_blocks). */
#include "backend/cpu/gemm/stored/stored.h"
#include "backend/cpu/gemm/block_arithmetic.h"
#include "backend/cpu/kernel_rows.h"
#include "backend/cpu/simd/vector_functions.h"
#include "base/alloc.h"
#include "tensor/shape.h"
#include <string.h>

enum {
  PIECE = 256, /* numbers that are decoded at once */
  SLAB = 128,  /* columns that are decoded for a plain product */
  /* Products of at most so many rows decode in registers. */
  FEW_ROWS = 16,
  MAX_COLUMNS = 1024, /* of a block of columns of these: a page or so of a row, sums that stay in a cache */
  DEPTH = 384,        /* of a chain of sums, as of plain products */
  WHOLE_GROUPS = 32,  /* numbers of a group whose sum is worth a pass of its own */
  SERIAL_OPERATIONS = 1 << 18, /* of multiplications */
};

/* What one instruction set has. */
typedef struct set_functions {
  const mix_stored_functions *stored;
  const mix_vector *vector;
} set_functions;

/* ---- a weight ---- */

/* Operands first, first + 1 and, of blocks, first + 2 of a step. */
typedef struct weight {
  const set_functions *f;
  const mix_kernel_args *args;
  int first;
  bool packed, transposed;
  int64_t rows, columns, row_bytes; /* as stored */
  int64_t block, groups;            /* block 0: of channels; groups of a row, if transposed */
} weight;

static weight weight_of(const set_functions *f, const mix_kernel_args *args, int first) {
  const mix_stored_attributes *a = args->attributes;
  const mix_shape *shape = &args->input_types[first].shape;
  weight w = {.f = f,
              .args = args,
              .first = first,
              .packed = a->bits == 4,
              .transposed = a->transposed,
              .rows = 1,
              .columns = a->columns,
              .row_bytes = shape->dims[shape->rank - 1],
              .block = a->block};
  for (int d = 0; d < shape->rank - 1; d++) w.rows *= shape->dims[d];
  if (a->block) w.groups = divide_up(a->columns, a->block);
  return w;
}

/* Operands whose values this file reads as float32 without another rounding than the reference's. */
static const char *weight_unsupported_reason(const mix_kernel_args *args, int first, mix_dtype dtype) {
  const mix_dtype scale = args->input_types[first + 1].dtype;
  if (dtype == MIX_FLOAT64 || scale == MIX_FLOAT64) return "float64";
  if (args->input_count - first < 3) return NULL;
  const mix_dtype zero = args->input_types[first + 2].dtype;
  return zero == MIX_INT8 || (mix_dtype_is_floating(zero) && zero != MIX_FLOAT64) ? NULL
                                                                                  : "zeros of another dtype";
}

/* Elements [at, at + count) of a scale or zero, as float32. */
static void load_shared(const weight *w, int offset, int64_t at, int64_t count, float *to) {
  const int operand = w->first + offset;
  const mix_dtype dtype = w->args->input_types[operand].dtype;
  const char *from = (const char *)w->args->inputs[operand] + at * (int64_t)mix_dtype_size(dtype);
  if (dtype == MIX_INT8)
    w->f->stored->widen((const int8_t *)from, count, to);
  else if (dtype == MIX_FLOAT32)
    memcpy(to, from, (size_t)count * sizeof *to);
  else
    w->f->vector->load[dtype](to, from, count);
}

static void round_to(const weight *w, mix_dtype dtype, float *values, int64_t count) {
  _Alignas(64) uint16_t rounded[PIECE + 32];
  if (dtype == MIX_FLOAT32) return;
  w->f->vector->store[dtype](rounded, values, count);
  w->f->vector->load[dtype](values, rounded, count);
}

/* Scales or zeros of columns [column, column + count) of a row, one for each number; count <= PIECE. */
static void spread_shared(const weight *w, int offset, int64_t row, int64_t column, int64_t count,
                          float *to) {
  if (!w->transposed) {
    load_shared(w, offset, (w->block ? row / w->block * w->columns : 0) + column, count, to);
    return;
  }
  for (int64_t j = 0, length; j < count; j += length) {
    const int64_t group = w->block ? (column + j) / w->block : 0;
    length = w->block ? smaller(count - j, (group + 1) * w->block - column - j) : count;
    float value[MIX_TILE_PADDING / 4];
    load_shared(w, offset, w->block ? row * w->groups + group : row, 1, value);
    for (int64_t i = 0; i < length; i++) to[j + i] = value[0];
  }
}

/* Columns [column, column + count) of a row in `dtype`; numbers: without scale and zero. column is even. */
static void decode(const weight *w, int64_t row, int64_t column, int64_t count, bool numbers, mix_dtype dtype,
                   void *to) {
  enum { PADDED = PIECE + MIX_TILE_PADDING / 4 };
  _Alignas(64) float values[PADDED], scale[PADDED], zero[PADDED];
  _Alignas(64) int8_t unpacked[PIECE];
  const int8_t *stored = (const int8_t *)w->args->inputs[w->first] + row * w->row_bytes;
  const mix_stored_functions *f = w->f->stored;
  for (int64_t j = 0, length; j < count; j += length) {
    length = smaller(count - j, PIECE);
    const int8_t *from = stored + column + j;
    if (w->packed) f->unpack(stored + (column + j) / 2, length, unpacked), from = unpacked;
    float *const result = dtype == MIX_FLOAT32 ? (float *)to + j : values;
    if (!numbers) spread_shared(w, 1, row, column + j, length, scale);
    if (numbers) {
      f->widen(from, length, result);
    } else if (w->block) {
      spread_shared(w, 2, row, column + j, length, zero);
      f->scale_blocks(from, scale, zero, length, result);
    } else {
      round_to(w, dtype, scale, length);
      f->scale_channels(from, scale, length, result);
    }
    if (dtype != MIX_FLOAT32) w->f->vector->store[dtype]((uint16_t *)to + j, values, length);
  }
}

/* ---- numbers as floats ---- */

static const char *dequantize_unsupported_reason(const mix_kernel_args *args) {
  return weight_unsupported_reason(args, 0, args->output_types[0].dtype);
}

static bool dequantize_serial(const mix_kernel_args *args) {
  return mix_shape_size(args->output_types[0].shape) < MIX_CPU_SMALL;
}

static void dequantize_run(const mix_kernel_args *args, const mix_team *team, const set_functions *f) {
  const weight w = weight_of(f, args, 0);
  const mix_dtype dtype = args->output_types[0].dtype;
  int64_t begin, end;
  mix_team_share(team, w.rows, 1, &begin, &end);
  for (int64_t row = begin; row < end; row++)
    decode(&w, row, 0, w.columns, false, dtype,
           (char *)args->outputs[0] + row * w.columns * (int64_t)mix_dtype_size(dtype));
}

/* ---- products ---- */

/* A plain product of some columns, (m, k) x (k, columns), by the kernel that takes it. */
typedef struct plain_product {
  const mix_kernel *kernel;
  mix_kernel_args args; /* of which copies run */
  mix_type inputs[2], output;
  mix_matmul_attributes attributes;
  size_t workspace;
} plain_product;

typedef struct product {
  mix_dtype dtype;
  int64_t m, n, k;
  bool few_rows;
  size_t thread_bytes, weight_bytes, result_bytes;
  plain_product whole, last; /* of SLAB columns, and of the columns behind them */
} product;

static int64_t rows_of_x(const mix_kernel_args *args) {
  const mix_shape *x = &args->input_types[0].shape;
  int64_t m = 1;
  for (int d = 0; d < x->rank - 1; d++) m *= x->dims[d];
  return m;
}

static bool serial(const mix_kernel_args *args) {
  const mix_shape *x = &args->input_types[0].shape;
  return (double)mix_shape_size(args->output_types[0].shape) * (double)x->dims[x->rank - 1] <
         SERIAL_OPERATIONS;
}

/* Vector functions for whole columns take zeros that are whole. */
static bool has_whole_zeros(const mix_kernel_args *args) {
  return args->input_count < 4 || args->input_types[3].dtype == MIX_INT8;
}

static bool takes_few_rows(const mix_kernel_args *args) {
  return rows_of_x(args) <= FEW_ROWS && has_whole_zeros(args) &&
         !((const mix_stored_attributes *)args->attributes)->transposed;
}

static void free_plain(plain_product *p) {
  if (!p->kernel || !p->args.prepared) return;
  (p->kernel->release ? p->kernel->release : mix_free)(p->args.prepared);
}

/* Chooses the kernel. The struct must stay where it is. False: out of memory, recorded. */
static bool choose_plain(plain_product *p, const mix_kernel_args *args, int64_t m, int64_t columns, int64_t k,
                         bool prepare) {
  const mix_dtype dtype = args->input_types[0].dtype;
  p->attributes =
      (mix_matmul_attributes){.transpose_b = ((const mix_stored_attributes *)args->attributes)->transposed};
  p->inputs[0] = (mix_type){dtype, MIX_SHAPE(m, k)};
  p->inputs[1] = (mix_type){dtype, p->attributes.transpose_b ? MIX_SHAPE(columns, k) : MIX_SHAPE(k, columns)};
  p->output = (mix_type){dtype, MIX_SHAPE(m, columns)};
  p->args = (mix_kernel_args){.op = &mix_op_matmul,
                              .attributes = &p->attributes,
                              .precision = args->precision,
                              .input_count = 2,
                              .output_count = 1,
                              .input_types = p->inputs,
                              .output_types = &p->output};
  const uint32_t features = mix_cpu_features();
  for (const mix_kernel *const *kernel = mix_cpu_matmul_kernels; *kernel && !p->kernel; kernel++)
    if (!((*kernel)->needs & ~features) && !(*kernel)->unsupported_reason(&p->args)) p->kernel = *kernel;
  p->workspace = p->kernel->workspace ? p->kernel->workspace(&p->args, 1) : 0;
  return !prepare || !p->kernel->prepare || p->kernel->prepare(&p->args, 1);
}

/* A thread's bytes when few rows are multiplied: widened rows of x, scales, zeros, sums. */
static size_t few_rows_bytes(int64_t m) {
  return (size_t)(whole_lines(m * DEPTH * 4) + (2 + 2 * m) * (MAX_COLUMNS * 4 + MIX_STORED_PADDING));
}

static bool make_product(product *p, const mix_kernel_args *args, bool prepare) {
  const mix_shape *x = &args->input_types[0].shape, *y = &args->output_types[0].shape;
  *p = (product){.dtype = args->input_types[0].dtype,
                 .m = rows_of_x(args),
                 .n = y->dims[y->rank - 1],
                 .k = x->dims[x->rank - 1],
                 .few_rows = takes_few_rows(args)};
  if (p->few_rows) {
    p->thread_bytes = few_rows_bytes(p->m);
    return true;
  }
  const int64_t size = (int64_t)mix_dtype_size(p->dtype);
  p->weight_bytes = (size_t)whole_lines(SLAB * p->k * size) + MIX_TILE_PADDING;
  p->result_bytes = (size_t)whole_lines(SLAB * p->m * size);
  if (p->n >= SLAB && !choose_plain(&p->whole, args, p->m, SLAB, p->k, prepare)) return false;
  if (p->n % SLAB && !choose_plain(&p->last, args, p->m, p->n % SLAB, p->k, prepare)) return false;
  const size_t workspace = p->whole.workspace > p->last.workspace ? p->whole.workspace : p->last.workspace;
  p->thread_bytes = p->weight_bytes + p->result_bytes + (size_t)whole_lines((int64_t)workspace);
  return true;
}

static void release(void *prepared) {
  product *p = prepared;
  free_plain(&p->whole);
  free_plain(&p->last);
  mix_free(p);
}

static bool product_prepare(mix_kernel_args *args, int threads) {
  product *p = mix_alloc(sizeof *p);
  if (!p) return false;
  if (!make_product(p, args, true)) {
    release(p);
    return false;
  }
  args->prepared = p;
  return true;
}

static size_t product_workspace(const mix_kernel_args *args, int threads) {
  product p;
  make_product(&p, args, false);
  return p.thread_bytes * (size_t)threads;
}

static const char *product_unsupported_reason(const mix_kernel_args *args) {
  return weight_unsupported_reason(args, 1, args->input_types[0].dtype);
}

/* `count` results of a row, rounded, from column `column` on: of channels divided by their scale. */
static void divide_by_scale(const weight *w, mix_dtype dtype, int64_t column, int64_t count, void *row) {
  enum { PADDED = PIECE + MIX_TILE_PADDING / 4 };
  _Alignas(64) float values[PADDED], scale[PADDED];
  for (int64_t j = 0, length; j < count; j += length) {
    length = smaller(count - j, PIECE);
    char *const at = (char *)row + j * (int64_t)mix_dtype_size(dtype);
    load_shared(w, 1, column + j, length, scale);
    round_to(w, dtype, scale, length);
    if (dtype == MIX_FLOAT32)
      memcpy(values, at, (size_t)length * sizeof *values);
    else
      w->f->vector->load[dtype](values, at, length);
    for (int64_t i = 0; i < length; i++) values[i] /= scale[i];
    if (dtype == MIX_FLOAT32)
      memcpy(at, values, (size_t)length * sizeof *values);
    else
      w->f->vector->store[dtype](at, values, length);
  }
}

/* A whole slab of blocks: a group of rows with its scales and zeros at a time. */
static void decode_blocks(const weight *w, const product *p, int64_t column, char *values) {
  _Alignas(64) float scale[SLAB], zero[SLAB];
  const mix_stored_functions *f = w->f->stored;
  mix_stored_part part = {.row_bytes = w->row_bytes,
                          .columns = SLAB,
                          .packed = w->packed,
                          .blocks = true,
                          .dtype = p->dtype,
                          .scale = scale,
                          .zero = zero};
  for (int64_t k = 0; k < p->k; k += part.rows) {
    const int64_t shared = k / w->block * w->columns + column;
    part.rows = smaller(w->block, p->k - k);
    part.numbers =
        (const int8_t *)w->args->inputs[w->first] + k * w->row_bytes + (w->packed ? column / 2 : column);
    load_shared(w, 1, shared, SLAB, scale);
    load_shared(w, 2, shared, SLAB, zero);
    if (w->packed && f->to_pairs) f->to_pairs(scale, SLAB, false), f->to_pairs(zero, SLAB, true);
    f->decode(&part, values + k * SLAB * (int64_t)mix_dtype_size(p->dtype), SLAB);
  }
}

/* Columns [column, column + columns) of the result, of a decoded weight. */
static void multiply_slab(const weight *w, const product *p, int64_t column, int64_t columns,
                          char *workspace) {
  const int64_t size = (int64_t)mix_dtype_size(p->dtype);
  char *const values = workspace, *const result = values + p->weight_bytes;
  const plain_product *plain = columns == SLAB ? &p->whole : &p->last;
  const bool numbers = !w->block;
  if (w->transposed)
    for (int64_t j = 0; j < columns; j++)
      decode(w, column + j, 0, p->k, numbers, p->dtype, values + j * p->k * size);
  else if (w->block && columns == SLAB && has_whole_zeros(w->args))
    decode_blocks(w, p, column, values);
  else
    for (int64_t k = 0; k < p->k; k++)
      decode(w, k, column, columns, numbers, p->dtype, values + k * columns * size);
  const void *inputs[] = {w->args->inputs[0], values};
  void *outputs[] = {result};
  mix_kernel_args args = plain->args;
  args.inputs = inputs, args.outputs = outputs;
  args.workspace = result + p->result_bytes;
  args.error = w->args->error;
  plain->kernel->run(&args, &mix_team_alone);
  for (int64_t i = 0; i < p->m; i++) {
    char *const row = (char *)w->args->outputs[0] + (i * p->n + column) * size;
    memcpy(row, result + i * columns * size, (size_t)(columns * size));
    if (!w->block) divide_by_scale(w, p->dtype, column, columns, row);
  }
}

/* ---- products of few rows ---- */

/* A thread's memory. */
typedef struct few_rows {
  float *x, *scale, *zero, *sums, *spare;
  int64_t sums_stride;
} few_rows;

static few_rows few_rows_in(char *workspace, int64_t m) {
  const int64_t stride = MAX_COLUMNS + MIX_STORED_PADDING / 4;
  few_rows s = {.x = (float *)(void *)workspace, .sums_stride = stride};
  s.scale = (float *)(void *)(workspace + whole_lines(m * DEPTH * 4)), s.zero = s.scale + stride;
  s.sums = s.zero + stride, s.spare = s.sums + m * stride;
  return s;
}

/* Rows of x, widened, for k in [k, k + depth). */
static void widen_rows(const weight *w, const product *p, const few_rows *s, int64_t k, int64_t depth) {
  for (int64_t i = 0; i < p->m; i++) {
    const char *from = (const char *)w->args->inputs[0] + (i * p->k + k) * (int64_t)mix_dtype_size(p->dtype);
    float *const to = s->x + i * DEPTH;
    if (p->dtype == MIX_FLOAT32)
      memcpy(to, from, (size_t)depth * sizeof *to);
    else
      w->f->vector->load[p->dtype](to, from, depth);
  }
}

/* Numbers of the part from row `at` on, with the scales and zeros of its group, which it ends with. */
static mix_stored_part part_at(const weight *w, const product *p, const few_rows *s, int64_t column,
                               int64_t columns, int64_t at, int64_t rows) {
  const mix_stored_functions *f = w->f->stored;
  if (w->block) {
    const int64_t group = at / w->block;
    rows = smaller(rows, (group + 1) * w->block - at);
    load_shared(w, 1, group * w->columns + column, columns, s->scale);
    load_shared(w, 2, group * w->columns + column, columns, s->zero);
    if (w->packed && f->to_pairs) f->to_pairs(s->scale, columns, false), f->to_pairs(s->zero, columns, true);
  }
  return (mix_stored_part){.numbers = (const int8_t *)w->args->inputs[w->first] + at * w->row_bytes +
                                      (w->packed ? column / 2 : column),
                           .row_bytes = w->row_bytes,
                           .rows = rows,
                           .columns = columns,
                           .packed = w->packed,
                           .blocks = w->block > 0,
                           .dtype = p->dtype,
                           .scale = s->scale,
                           .zero = s->zero};
}

/* One chain of sums, from zero, over k in [k, k + depth): group by group. */
static void sum_chain(const weight *w, const product *p, const few_rows *s, int64_t column, int64_t columns,
                      int64_t k, int64_t depth, float *sums) {
  for (int64_t at = k, rows; at < k + depth; at += rows) {
    const mix_stored_part part = part_at(w, p, s, column, columns, at, k + depth - at);
    w->f->stored->multiply(&part, p->m, s->x + at - k, DEPTH, sums, s->sums_stride, at == k);
    rows = part.rows;
  }
}

/* float32: a chain of sums of number - zero for each group, which is then multiplied by the scale and added
 * to those before. */
static void add_groups(const weight *w, const product *p, const few_rows *s, int64_t column, int64_t columns,
                       int64_t k, int64_t depth) {
  const int64_t whole = round_up(columns, MIX_STORED_UNIT); /* pairs put odd columns into the last vector */
  for (int64_t at = k, rows; at < k + depth; at += rows) {
    mix_stored_part part = part_at(w, p, s, column, columns, at, k + depth - at);
    part.differences = true;
    w->f->stored->multiply(&part, p->m, s->x + at - k, DEPTH, s->spare, s->sums_stride, true);
    for (int64_t i = 0; i < p->m; i++)
      w->f->stored->add_scaled(s->sums + i * s->sums_stride, s->spare + i * s->sums_stride, s->scale, whole,
                               at == 0);
    rows = part.rows;
  }
}

/* Sums and their chains are ordered as in plain products of few rows (gemm/small_m). */
static void multiply_few_rows(const weight *w, const product *p, int64_t column, int64_t columns,
                              char *workspace) {
  const few_rows s = few_rows_in(workspace, p->m);
  if (p->k == 0) memset(s.sums, 0, (size_t)(p->m * s.sums_stride) * sizeof *s.sums);
  for (int64_t k = 0, depth; k < p->k; k += depth) {
    const int64_t left = p->k - k;
    depth = left >= 2 * DEPTH ? DEPTH : left > DEPTH ? (left + 1) / 2 : left;
    widen_rows(w, p, &s, k, depth);
    if (p->dtype == MIX_FLOAT32 && w->block >= WHOLE_GROUPS) {
      add_groups(w, p, &s, column, columns, k, depth);
      continue;
    }
    sum_chain(w, p, &s, column, columns, k, depth, k ? s.spare : s.sums);
    for (int64_t i = 0; k && i < p->m; i++)
      for (int64_t j = i * s.sums_stride; j < i * s.sums_stride + round_up(columns, MIX_STORED_UNIT); j++)
        s.sums[j] += s.spare[j];
  }
  for (int64_t i = 0; i < p->m; i++) {
    char *const row = (char *)w->args->outputs[0] + (i * p->n + column) * (int64_t)mix_dtype_size(p->dtype);
    if (w->packed && w->f->stored->from_pairs) w->f->stored->from_pairs(s.sums + i * s.sums_stride, columns);
    if (p->dtype == MIX_FLOAT32)
      memcpy(row, s.sums + i * s.sums_stride, (size_t)columns * sizeof(float));
    else
      w->f->vector->store[p->dtype](row, s.sums + i * s.sums_stride, columns);
    if (!w->block) divide_by_scale(w, p->dtype, column, columns, row);
  }
}

static void product_run(const mix_kernel_args *args, const mix_team *team, const set_functions *f) {
  const product *p = args->prepared;
  const weight w = weight_of(f, args, 1);
  char *const workspace = (char *)args->workspace + p->thread_bytes * (size_t)team->rank;
  const int64_t unit = p->few_rows ? 2 * MIX_STORED_UNIT : SLAB, most = p->few_rows ? MAX_COLUMNS : SLAB;
  int64_t begin, end;
  if (p->m == 0) return;
  mix_team_share(team, p->n, unit, &begin, &end);
  for (int64_t column = begin; column < end; column += most) {
    const int64_t columns = smaller(most, end - column);
    if (p->few_rows)
      multiply_few_rows(&w, p, column, columns, workspace);
    else
      multiply_slab(&w, p, column, columns, workspace);
  }
}

#define STORED_KERNELS(set, features, text)                                                                  \
  static const set_functions functions_##set = {&mix_stored_##set, &mix_vector_##set};                       \
  static void run_product_##set(const mix_kernel_args *args, const mix_team *team) {                         \
    product_run(args, team, &functions_##set);                                                               \
  }                                                                                                          \
  static void run_dequantize_##set(const mix_kernel_args *args, const mix_team *team) {                      \
    dequantize_run(args, team, &functions_##set);                                                            \
  }                                                                                                          \
  static const mix_kernel product_##set = {.name = "gemm_stored_" #set,                                      \
                                           .needs = features,                                                \
                                           .unsupported_reason = product_unsupported_reason,                 \
                                           .run = run_product_##set,                                         \
                                           .workspace = product_workspace,                                   \
                                           .prepare = product_prepare,                                       \
                                           .release = release,                                               \
                                           .serial = serial};                                                \
  static const mix_kernel dequantize_##set = {.name = "dequantize_" #set,                                    \
                                              .needs = features,                                             \
                                              .unsupported_reason = dequantize_unsupported_reason,           \
                                              .run = run_dequantize_##set,                                   \
                                              .serial = dequantize_serial};
MIX_VECTOR_SETS(STORED_KERNELS)
#define PRODUCT_ROW(set, ...) &product_##set,
#define DEQUANTIZE_ROW(set, ...) &dequantize_##set,
const mix_kernel *const mix_cpu_matmul_stored_kernels[] = {MIX_VECTOR_SETS(PRODUCT_ROW) NULL};
const mix_kernel *const mix_cpu_dequantize_kernels[] = {MIX_VECTOR_SETS(DEQUANTIZE_ROW) NULL};
