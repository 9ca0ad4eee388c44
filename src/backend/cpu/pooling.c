/* Pooling in strips of channels, which are the last axis: an element of a window is a tile. Sums are float32,
 * rounded once, in the order of the windows. */
#include "backend/cpu/kernel_rows.h"
#include "base/alloc.h"
#include "ops/pooling.h"
#include <string.h>

enum { STRIP = 256 };

typedef struct tile {
  _Alignas(64) char bytes[STRIP * 8 + MIX_TILE_PADDING];
} tile;

/* A strip of the channels of an image: `width` of them from `channel` on. */
typedef struct strip {
  const mix_vector *vector;
  mix_pool pool;
  mix_tile_class class;
  mix_dtype dtype;
  int64_t image, channel, width, element;
  mix_tile_load_function load;
  mix_tile_store_function store;
} strip;

static int64_t strip_width(int64_t channels) { return channels < STRIP ? channels : STRIP; }
static int64_t strips_of(const mix_pool *pool) {
  const int64_t width = strip_width(pool->channels);
  return (pool->channels + width - 1) / width;
}

static strip strip_of(const mix_vector *vector, const mix_pool *pool, mix_dtype dtype, int64_t index) {
  const int64_t strips = strips_of(pool), width = strip_width(pool->channels),
                channel = index % strips * width;
  return (strip){.vector = vector,
                 .pool = *pool,
                 .class = mix_tile_class_of(dtype),
                 .dtype = dtype,
                 .image = index / strips,
                 .channel = channel,
                 .width = pool->channels - channel < width ? pool->channels - channel : width,
                 .element = (int64_t)mix_dtype_size(dtype),
                 .load = mix_tile_load_of(vector, dtype),
                 .store = mix_tile_store_of(vector, dtype)};
}

/* The channels of the strip in a cell of a tensor of so many cells. */
static int64_t offset_of(const strip *s, int64_t cells, int64_t cell) {
  return ((s->image * cells + cell) * s->pool.channels + s->channel) * s->element;
}
static void load(const strip *s, tile *to, const void *from, int64_t cells, int64_t cell) {
  s->load(to->bytes, (const char *)from + offset_of(s, cells, cell), s->width);
}
static void store(const strip *s, void *to, const tile *from, int64_t cells, int64_t cell) {
  s->store((char *)to + offset_of(s, cells, cell), from->bytes, s->width);
}

/* result = a op b; a number that counts for every channel is a tile with `number` set. */
static void apply(const strip *s, mix_opcode opcode, void *result, const void *a, const void *b,
                  bool number) {
  const void *operands[2] = {a, b};
  const int steps[2] = {1, !number};
  mix_tile_instruction_of(s->vector, opcode, s->class)(result, operands, steps, s->width, 0);
}
static void fill_number(const strip *s, tile *t, double value) {
  for (int i = 0; i < MIX_TILE_PADDING / 4 && s->class == MIX_TILE_FLOAT; i++)
    ((float *)t->bytes)[i] = (float)value;
  for (int i = 0; i < MIX_TILE_PADDING / 8 && s->class == MIX_TILE_DOUBLE; i++)
    ((double *)t->bytes)[i] = value;
}

/* ---- forward ---- */

static void max_strip(const mix_kernel_args *args, const strip *s) {
  tile max, x;
  int64_t at[MIX_POOL_AXES];
  for (int64_t w = 0; w < s->pool.out_cells; w++) {
    const mix_pool_range range = mix_pool_range_of(&s->pool, w);
    int64_t cell = mix_pool_first(&s->pool, &range, at);
    load(s, &max, args->inputs[0], s->pool.in_cells, cell);
    while ((cell = mix_pool_next(&s->pool, &range, at)) >= 0) {
      load(s, &x, args->inputs[0], s->pool.in_cells, cell);
      apply(s, MIX_OPCODE_MAXIMUM, max.bytes, max.bytes, x.bytes, false);
    }
    store(s, args->outputs[0], &max, s->pool.out_cells, w);
  }
}

static void avg_strip(const mix_kernel_args *args, const strip *s) {
  tile sum, x, count;
  int64_t at[MIX_POOL_AXES];
  for (int64_t w = 0; w < s->pool.out_cells; w++) {
    const mix_pool_range range = mix_pool_range_of(&s->pool, w);
    int64_t cell = mix_pool_first(&s->pool, &range, at);
    load(s, &sum, args->inputs[0], s->pool.in_cells, cell);
    while ((cell = mix_pool_next(&s->pool, &range, at)) >= 0) {
      load(s, &x, args->inputs[0], s->pool.in_cells, cell);
      apply(s, MIX_OPCODE_ADD, sum.bytes, sum.bytes, x.bytes, false);
    }
    fill_number(s, &count, (double)range.count);
    apply(s, MIX_OPCODE_DIVIDE, sum.bytes, sum.bytes, count.bytes, true);
    store(s, args->outputs[0], &sum, s->pool.out_cells, w);
  }
}

/* ---- gradients: sums of all cells of a strip, in the workspace of a thread ---- */

static int64_t sum_stride(const strip *s) {
  return (int64_t)mix_tile_class_size(s->class) * strip_width(s->pool.channels) + MIX_TILE_PADDING;
}
static size_t sums_bytes(const mix_pool *pool, mix_dtype dtype) {
  return mix_buffer_aligned(
      (mix_tile_class_size(mix_tile_class_of(dtype)) * (size_t)strip_width(pool->channels) +
       MIX_TILE_PADDING) *
      (size_t)pool->in_cells);
}

static void store_sums(const mix_kernel_args *args, const strip *s, const char *sums) {
  for (int64_t i = 0; i < s->pool.in_cells; i++)
    s->store((char *)args->outputs[0] + offset_of(s, s->pool.in_cells, i), sums + i * sum_stride(s),
             s->width);
}

/* left: what is still to be given, of dy: all of it where each of the largest elements has it. */
static void max_grad_strip(const mix_kernel_args *args, const strip *s, char *sums) {
  tile x, y, left, less, part, zero;
  const bool each = mix_pool_gives_each(args->input_types[0].shape);
  int64_t at[MIX_POOL_AXES];
  const mix_tile_function select = mix_tile_instruction_of(s->vector, MIX_OPCODE_SELECT, s->class);
  fill_number(s, &zero, 0);
  for (int64_t w = 0; w < s->pool.out_cells; w++) {
    const mix_pool_range range = mix_pool_range_of(&s->pool, w);
    load(s, &y, args->inputs[1], s->pool.out_cells, w);
    load(s, &left, args->inputs[2], s->pool.out_cells, w);
    for (int64_t i = mix_pool_first(&s->pool, &range, at); i >= 0; i = mix_pool_next(&s->pool, &range, at)) {
      char *sum = sums + i * sum_stride(s);
      load(s, &x, args->inputs[0], s->pool.in_cells, i);
      apply(s, MIX_OPCODE_LESS, less.bytes, x.bytes, y.bytes, false);
      select(part.bytes, (const void *[]){less.bytes, zero.bytes, left.bytes}, (const int[]){1, 0, 1},
             s->width, 0);
      if (!each)
        select(left.bytes, (const void *[]){less.bytes, left.bytes, zero.bytes}, (const int[]){1, 1, 0},
               s->width, 0);
      apply(s, MIX_OPCODE_ADD, sum, sum, part.bytes, false);
    }
  }
  store_sums(args, s, sums);
}

static void avg_grad_strip(const mix_kernel_args *args, const strip *s, char *sums) {
  tile share, count;
  int64_t at[MIX_POOL_AXES];
  for (int64_t w = 0; w < s->pool.out_cells; w++) {
    const mix_pool_range range = mix_pool_range_of(&s->pool, w);
    load(s, &share, args->inputs[0], s->pool.out_cells, w);
    fill_number(s, &count, (double)range.count);
    apply(s, MIX_OPCODE_DIVIDE, share.bytes, share.bytes, count.bytes, true);
    for (int64_t i = mix_pool_first(&s->pool, &range, at); i >= 0; i = mix_pool_next(&s->pool, &range, at)) {
      char *sum = sums + i * sum_stride(s);
      apply(s, MIX_OPCODE_ADD, sum, sum, share.bytes, false);
    }
  }
  store_sums(args, s, sums);
}

/* ---- kernels ---- */

static mix_pool forward_pool(const mix_kernel_args *args) {
  return mix_pool_of(args->attributes, args->input_types[0].shape, args->output_types[0].shape);
}
static mix_pool max_grad_pool(const mix_kernel_args *args) {
  return mix_pool_of(args->attributes, args->input_types[0].shape, args->input_types[1].shape);
}
static mix_pool avg_grad_pool(const mix_kernel_args *args) {
  return mix_pool_of(args->attributes, args->output_types[0].shape, args->input_types[0].shape);
}

/* Threads share the strips of all images. */
static void pool_run_forward(const mix_kernel_args *args, const mix_team *team, const mix_vector *vector,
                             void (*run)(const mix_kernel_args *args, const strip *s)) {
  const mix_pool pool = forward_pool(args);
  int64_t begin, end;
  mix_team_share(team, pool.batch * strips_of(&pool), 1, &begin, &end);
  for (int64_t i = begin; i < end; i++) {
    const strip s = strip_of(vector, &pool, args->input_types[0].dtype, i);
    run(args, &s);
  }
}
static void pool_run_backward(const mix_kernel_args *args, const mix_team *team, const mix_vector *vector,
                              const mix_pool *pool,
                              void (*run)(const mix_kernel_args *args, const strip *s, char *sums)) {
  const size_t bytes = sums_bytes(pool, args->input_types[0].dtype);
  char *sums = (char *)args->workspace + bytes * (size_t)team->rank;
  int64_t begin, end;
  mix_team_share(team, pool->batch * strips_of(pool), 1, &begin, &end);
  for (int64_t i = begin; i < end; i++) {
    const strip s = strip_of(vector, pool, args->input_types[0].dtype, i);
    memset(sums, 0, bytes);
    run(args, &s, sums);
  }
}

static void max_pool_run(const mix_kernel_args *args, const mix_team *team, const mix_vector *vector) {
  pool_run_forward(args, team, vector, max_strip);
}
static void avg_pool_run(const mix_kernel_args *args, const mix_team *team, const mix_vector *vector) {
  pool_run_forward(args, team, vector, avg_strip);
}
static void max_pool_grad_run(const mix_kernel_args *args, const mix_team *team, const mix_vector *vector) {
  const mix_pool pool = max_grad_pool(args);
  pool_run_backward(args, team, vector, &pool, max_grad_strip);
}
static void avg_pool_grad_run(const mix_kernel_args *args, const mix_team *team, const mix_vector *vector) {
  const mix_pool pool = avg_grad_pool(args);
  pool_run_backward(args, team, vector, &pool, avg_grad_strip);
}

static size_t max_grad_workspace(const mix_kernel_args *args, int threads) {
  const mix_pool pool = max_grad_pool(args);
  return sums_bytes(&pool, args->input_types[0].dtype) * (size_t)threads;
}
static size_t avg_grad_workspace(const mix_kernel_args *args, int threads) {
  const mix_pool pool = avg_grad_pool(args);
  return sums_bytes(&pool, args->input_types[0].dtype) * (size_t)threads;
}

static const char *pool_unsupported_reason(const mix_kernel_args *args) {
  const mix_tile_class class = mix_tile_class_of(args->input_types[0].dtype);
  if (class == MIX_TILE_INTEGER || class == MIX_TILE_BOOL) return "integers";
  return mix_shape_size(args->input_types[0].shape) == 0 || mix_shape_size(args->output_types[0].shape) == 0
             ? "an empty tensor"
             : NULL;
}
static bool serial(const mix_kernel_args *args) {
  return mix_shape_size(args->input_types[0].shape) + mix_shape_size(args->output_types[0].shape) <
         MIX_CPU_SMALL / 4;
}

MIX_CPU_KERNELS(max_pool, "max_pool", .unsupported_reason = pool_unsupported_reason, .serial = serial)
MIX_CPU_KERNELS(avg_pool, "avg_pool_acc32", .unsupported_reason = pool_unsupported_reason, .serial = serial)
MIX_CPU_KERNELS(max_pool_grad, "max_pool_grad_acc32", .unsupported_reason = pool_unsupported_reason,
                .serial = serial, .workspace = max_grad_workspace)
MIX_CPU_KERNELS(avg_pool_grad, "avg_pool_grad_acc32", .unsupported_reason = pool_unsupported_reason,
                .serial = serial, .workspace = avg_grad_workspace)
