/* block_quantize: threads find the largest magnitude of the tensor, then round tiles of whole blocks. Random
 * bits are counted by elements and counts are integers, so any number of threads has the same bits. */
#include "backend/cpu/kernel_rows.h"
#include "ops/block_formulas.h"

/* A tile: the rows of a block by `COLUMNS` of its neighbours, or one row of blocks behind each other. */
enum { ROWS = 32, COLUMNS = 128, IN_ROW = 512, PADDING = MIX_TILE_PADDING / 4 };

/* What a thread found in its share; lines of caches by themselves. */
typedef struct share {
  _Alignas(64) uint64_t counter;
  uint16_t largest; /* bits of a magnitude */
} share;

typedef struct quantizer {
  const mix_block_attributes *attributes;
  const mix_vector *vector;
  mix_block_numbers numbers;
  mix_block_scales tensor;
  mix_dtype dtype;
  mix_block_layout layout;
  uint64_t counter;
  int64_t size, counts[3];
  const uint16_t *x;
  uint16_t *y;
  float encode[IN_ROW + PADDING], decode[IN_ROW + PADDING], largest[COLUMNS];
  uint32_t random[IN_ROW + PADDING];
  _Alignas(64) float tile[ROWS * COLUMNS + PADDING];
} quantizer;

/* ---- the tensor ---- */

static bool needs_tensor(const mix_block_attributes *a) {
  return a->stochastic || a->format != MIX_BLOCK_MXFP8;
}

static void block_quantize_scan(const uint16_t *x, int64_t begin, int64_t end, bool stochastic, share *s) {
  int16_t largest = 0;
  uint64_t counter = 0;
  for (int64_t i = begin; i < end; i++) {
    const int16_t magnitude = (int16_t)(x[i] & 0x7fff);
    largest = magnitude > largest ? magnitude : largest;
  }
  for (int64_t i = begin; stochastic && i < end; i++) counter += mix_block_counter(x[i], i);
  *s = (share){counter, (uint16_t)largest};
}

/* Sets what depends on the whole tensor, after a barrier. */
static void block_quantize_join(quantizer *q, const share *shares, int count) {
  uint16_t largest = 0;
  for (int r = 0; r < count; r++) {
    q->counter += shares[r].counter;
    largest = shares[r].largest > largest ? shares[r].largest : largest;
  }
  q->tensor = mix_block_scales_of_tensor(q->attributes, q->dtype == MIX_BFLOAT16 ? mix_bf16_to_f32(largest)
                                                                                 : mix_f16_to_f32(largest));
}

/* ---- tiles ---- */

static void block_quantize_round(quantizer *q, float *x, int64_t at, int64_t n) {
  const bool stochastic = q->attributes->stochastic;
  if (stochastic)
    q->vector->philox_words(q->random, (uint64_t)q->attributes->seed, q->counter, (uint64_t)at, n);
  for (int i = 0; i < PADDING; i++) q->decode[n + i] = -1;
  q->vector->round_blocks(x, q->encode, q->decode, stochastic ? q->random : NULL, &q->numbers, n, q->counts);
  q->vector->store[q->dtype](q->y + at, x, n);
}

static void set_scales(quantizer *q, int64_t begin, int64_t end, float largest) {
  const mix_block_scales scales = mix_block_scales_of(q->attributes, q->tensor, largest);
  for (int64_t i = begin; i < end; i++) q->encode[i] = scales.encode, q->decode[i] = scales.decode;
}

/* The largest of both; not finite if one of them is not. */
static inline float larger(float largest, float x) {
  const float a = fabsf(x);
  return a > largest || a != a ? a : largest;
}

/* n elements behind each other, in blocks. */
static void block_quantize_row(quantizer *q, int64_t at, int64_t n) {
  q->vector->load[q->dtype](q->tile, q->x + at, n);
  const int64_t size = q->size ? q->size : n;
  for (int64_t b = 0; b < n; b += size) {
    const int64_t end = n - b < size ? n : b + size;
    float largest = q->size ? 0 : 1; /* 1: the tensor has the scale */
    for (int64_t i = b; q->size && i < end; i++) largest = larger(largest, q->tile[i]);
    set_scales(q, b, end, largest);
  }
  block_quantize_round(q, q->tile, at, n);
}

/* A block of `rows` elements `inner` apart, and its neighbours. */
static void block_quantize_columns(quantizer *q, int64_t at, int64_t rows, int64_t columns) {
  memset(q->largest, 0, sizeof q->largest);
  for (int64_t r = 0; r < rows; r++) {
    float *row = q->tile + r * COLUMNS;
    q->vector->load[q->dtype](row, q->x + at + r * q->layout.inner, columns);
    for (int64_t i = 0; i < columns; i++) q->largest[i] = larger(q->largest[i], row[i]);
  }
  for (int64_t i = 0; i < columns; i++) set_scales(q, i, i + 1, q->largest[i]);
  for (int64_t r = 0; r < rows; r++)
    block_quantize_round(q, q->tile + r * COLUMNS, at + r * q->layout.inner, columns);
}

/* ---- the kernel ---- */

static int64_t at_most(int64_t x, int64_t limit) { return x < limit ? x : limit; }

/* The thread's share of tiles. */
static void block_quantize_tiles(quantizer *q, const mix_team *team) {
  const mix_block_layout l = q->layout;
  const int64_t rows = l.inner == 1 ? IN_ROW : q->size, columns = l.inner == 1 ? 1 : COLUMNS,
                down = (l.depth + rows - 1) / rows, across = (l.inner + columns - 1) / columns;
  int64_t begin, end;
  mix_team_share(team, l.outer * down * across, 1, &begin, &end);
  for (int64_t t = begin; t < end; t++) {
    const int64_t i = t % across * columns, k = t / across % down * rows, o = t / across / down,
                  at = (o * l.depth + k) * l.inner + i;
    if (l.inner == 1)
      block_quantize_row(q, at, at_most(l.depth - k, rows));
    else
      block_quantize_columns(q, at, at_most(l.depth - k, rows), at_most(l.inner - i, columns));
  }
}

static void block_quantize_run(const mix_kernel_args *args, const mix_team *team, const mix_vector *vector) {
  const mix_block_attributes *a = args->attributes;
  const mix_shape shape = args->input_types[0].shape;
  const int64_t elements = mix_shape_size(shape);
  quantizer q;
  q.attributes = a, q.vector = vector, q.numbers = mix_block_numbers_of(a), q.size = mix_block_size_of(a);
  q.dtype = args->input_types[0].dtype, q.x = args->inputs[0], q.y = args->outputs[0], q.counter = 0;
  q.tensor = (mix_block_scales){1, 1};
  /* With a scale for the tensor alone the axes do not matter. */
  q.layout = q.size ? mix_block_layout_of(a, shape) : (mix_block_layout){1, elements, 1};
  memset(q.counts, 0, sizeof q.counts);
  memset(q.tile, 0, sizeof q.tile); /* read past a row's end, and not used */
  memset(q.encode, 0, sizeof q.encode);
  memset(q.random, 0, sizeof q.random);
  if (needs_tensor(a)) {
    share *shares = args->workspace;
    int64_t begin, end;
    mix_team_share(team, elements, IN_ROW, &begin, &end);
    block_quantize_scan(q.x, begin, end, a->stochastic, &shares[team->rank]);
    if (team->size > 1) mix_team_barrier(team);
    block_quantize_join(&q, shares, team->size);
  }
  block_quantize_tiles(&q, team);
  mix_block_count(a->counted, q.counts);
}

static const char *block_quantize_unsupported_reason(const mix_kernel_args *args) {
  return mix_shape_size(args->input_types[0].shape) ? NULL : "an empty operand";
}
static bool serial(const mix_kernel_args *args) {
  return 4 * mix_shape_size(args->input_types[0].shape) < MIX_CPU_SMALL;
}
static size_t block_quantize_workspace(const mix_kernel_args *args, int threads) {
  return needs_tensor(args->attributes) ? sizeof(share) * (size_t)(serial(args) ? 1 : threads) : 0;
}
static int block_quantize_barriers(const mix_kernel_args *args, int threads) {
  return needs_tensor(args->attributes) && !serial(args) && threads > 1;
}
MIX_CPU_KERNELS(block_quantize, "block_quantize", .unsupported_reason = block_quantize_unsupported_reason,
                .serial = serial, .workspace = block_quantize_workspace, .barriers = block_quantize_barriers)
