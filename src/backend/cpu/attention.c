/* Attention over heads and its gradients, with float32 sums, without all scores in memory. A thread takes a
 * block of queries of a head at a time: its scores with all keys, their softmax, the products with the
 * values. So a row is rounded, masked and normalised as the plain form does it, and the memory grows with the
 * number of keys alone. Gradients of keys and values are sums over the queries of a group of heads, or, of
 * few groups, over parts of them, which are then added in order: parts depend on shapes alone, so bits not on
 * threads.
 *
 * Operands are packed as an engine's micro-kernels read them (gemm/gemm.h): widened to float32, or in pairs
 * of bfloat16. Each sum is one chain over k in order, so both give the same bits. */
#include "backend/cpu/gemm/gemm.h"
#include "backend/cpu/kernel_rows.h"
#include "tensor/convert.h"

enum { BLOCK = 32 };   /* queries */
enum { PADDING = 16 }; /* floats that vector functions may touch behind a row */
enum { WORDS = 512 };
enum { UNITS = 16 }; /* of work for threads, that gradients are cut into */

typedef struct geometry {
  const mix_kernel_args *args;
  const mix_attention_attributes *attributes;
  const mix_vector *vector;
  const mix_gemm_engine *engine;
  const mix_gemm_storage *storage;
  mix_dtype dtype;
  int64_t batch, queries, keys, heads, groups, dim, value_dim;
  int64_t stride; /* of a row of scores: no power of two, so that columns spread over the cache */
  int64_t mask_strides[4];
  int64_t blocks; /* of queries of a head */
  int64_t parts;  /* of a group's queries, in the gradients */
  bool masked;    /* by the operand */
} geometry;

/* Without an engine only shapes are set. */
static geometry geometry_of(const mix_kernel_args *args, const mix_gemm_engine *engine) {
  const mix_shape *q = &args->input_types[0].shape, *k = &args->input_types[1].shape,
                  *v = &args->input_types[2].shape, *mask = &args->input_types[3].shape;
  geometry g = {.args = args,
                .attributes = args->attributes,
                .engine = engine,
                .dtype = args->input_types[0].dtype,
                .batch = q->dims[0],
                .queries = q->dims[1],
                .keys = k->dims[1],
                .heads = q->dims[2],
                .groups = k->dims[2],
                .dim = q->dims[3],
                .value_dim = v->dims[3]};
  int64_t stride = 1;
  for (int d = 3; d >= 0; d--) {
    g.mask_strides[d] = mask->dims[d] == 1 ? 0 : stride;
    stride *= mask->dims[d];
  }
  if (engine) g.storage = mix_gemm_storage_of(engine, g.dtype);
  g.stride = (g.keys + PADDING - 1) / PADDING * PADDING + PADDING;
  g.blocks = (g.queries + BLOCK - 1) / BLOCK;
  const int64_t groups = g.batch * g.groups, wanted = groups ? UNITS / groups : 1,
                most = g.groups ? g.heads / g.groups * g.blocks : 1;
  g.parts = wanted < 1 ? 1 : wanted < most ? wanted : most;
  return g;
}

/* A thread's matrices. Panels are a right operand of products, packed: of the group's keys and values, with k
 * along their features (for scores) or along the keys; of the block's queries and gradients, with k along the
 * queries. Left operands are rows. */
typedef struct buffers {
  float *keys, *key_panels, *values, *value_panels; /* of a group; key_panels, value_panels: along features */
  float *query, *query_panels, *scores, *kept;      /* of a block: kept after dropout */
  float *output, *output_gradient, *output_gradient_panels, *score_gradient, *query_gradient;
  float *key_gradient, *value_gradient;
  float *pairs;     /* a left operand of pairs */
  uint16_t *narrow; /* rows of it, rounded */
} buffers;

static int64_t padded(int64_t floats) { return (floats + PADDING - 1) / PADDING * PADDING + PADDING; }

/* Elements of a row of results, which are stored in whole vectors; and of packed numbers. */
static int64_t wide(int64_t numbers) { return (numbers + PADDING - 1) / PADDING * PADDING; }
static int64_t row_of(const geometry *g, int64_t numbers) {
  return wide(mix_gemm_packed_depth(g->engine, numbers));
}
static int64_t panel_of(const geometry *g, int64_t depth) {
  return mix_gemm_packed_depth(g->engine, depth) * g->engine->nr;
}
static int64_t panels_of(const geometry *g, int64_t depth, int64_t columns) {
  return (columns + g->engine->nr - 1) / g->engine->nr * panel_of(g, depth);
}

/* Lays the buffers out from `memory`, or counts only. Returns the number of floats. */
static int64_t lay_out(const geometry *g, bool gradient, float *memory, buffers *b) {
  const bool pairs = g->engine->pairs, own_sums = gradient && g->parts == 1;
  const int64_t along_keys = BLOCK * row_of(g, g->keys), along_queries = BLOCK / 2 * g->stride;
  float *narrow = NULL;
  const struct {
    float **at;
    int64_t size;
    bool used;
  } parts[] = {
      {&b->keys, panels_of(g, g->keys, g->dim), gradient},
      {&b->key_panels, panels_of(g, g->dim, g->keys), true},
      {&b->values, panels_of(g, g->keys, g->value_dim), !gradient},
      {&b->value_panels, panels_of(g, g->value_dim, g->keys), gradient},
      {&b->query, BLOCK * row_of(g, g->dim), true},
      {&b->query_panels, panels_of(g, BLOCK, g->dim), gradient},
      {&b->scores, BLOCK * g->stride, true},
      {&b->kept, BLOCK * g->stride, gradient || g->attributes->rate > 0},
      {&b->output, BLOCK * wide(g->value_dim), !gradient},
      {&b->output_gradient, BLOCK * row_of(g, g->value_dim), gradient},
      {&b->output_gradient_panels, panels_of(g, BLOCK, g->value_dim), gradient},
      {&b->score_gradient, BLOCK * g->stride, gradient},
      {&b->query_gradient, BLOCK * wide(g->dim), gradient},
      {&b->key_gradient, g->keys * wide(g->dim), own_sums},
      {&b->value_gradient, g->keys * wide(g->value_dim), own_sums},
      {&b->pairs, along_keys > along_queries ? along_keys : along_queries, pairs},
      {&narrow, BLOCK * g->stride / 2, pairs},
  };
  int64_t total = 0;
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
    if (!parts[i].used) continue;
    if (memory) *parts[i].at = memory + total;
    total += padded(parts[i].size);
  }
  b->narrow = (uint16_t *)narrow;
  return total;
}

/* ---- heads in memory: (batch, places, heads, dim) ---- */

static size_t place(const geometry *g, int64_t batch, int64_t places, int64_t at, int64_t heads, int64_t head,
                    int64_t dim) {
  return (size_t)(((batch * places + at) * heads + head) * dim) * mix_dtype_size(g->dtype);
}

/* Places of a head: rows of `dim` numbers, `stride` apart. */
typedef struct head_rows {
  const void *first;
  int64_t stride, count, dim;
} head_rows;

static head_rows rows_of(const geometry *g, int operand, int64_t batch, int64_t places, int64_t first,
                         int64_t count, int64_t heads, int64_t head, int64_t dim) {
  return (head_rows){.first = (const char *)g->args->inputs[operand] +
                              place(g, batch, places, first, heads, head, dim),
                     .stride = heads * dim,
                     .count = count,
                     .dim = dim};
}

static void store_rows(const geometry *g, const float *from, int output, int64_t batch, int64_t places,
                       int64_t first, int64_t count, int64_t heads, int64_t head, int64_t dim) {
  for (int64_t i = 0; i < count; i++)
    g->vector->store[g->dtype]((char *)g->args->outputs[output] +
                                   place(g, batch, places, first + i, heads, head, dim),
                               from + i * wide(dim), dim);
}

/* ---- products ---- */

static void pack_left(const geometry *g, float *to, const head_rows *x) {
  g->storage->pack_a[MIX_GEMM_ALONG_K](x->first, x->stride, (int)x->count, x->dim, to, row_of(g, x->dim));
}
/* Panels whose columns are the numbers of a row, for sums over rows; panels whose columns are the rows. */
static void pack_panels(const geometry *g, float *to, const head_rows *x, int64_t most_rows) {
  g->storage->pack_b[0](x->first, x->stride, x->count, x->dim, to, panel_of(g, most_rows));
}
static void pack_transposed(const geometry *g, float *to, const head_rows *x) {
  g->storage->pack_b[1](x->first, x->stride, x->dim, x->count, to, panel_of(g, x->dim));
}

/* A left operand, as packed: rows, and k in the engine's elements; element (i, k) is at[i * stride + k], or
 * along m at[k * stride + i]. */
typedef struct left {
  const float *at;
  int64_t stride, rows, depth;
  int layout;
} left;

/* The last rows of a product along m. A micro-kernel may add to more, so they are computed elsewhere. */
static void add_last_rows(const geometry *g, float *c, int64_t c_stride, const mix_gemm_segment *all,
                          const left *a, int64_t row, const float *panels, int64_t columns) {
  enum { MOST_ROWS = 16, MOST_COLUMNS = 32 };
  _Alignas(64) float sums[MOST_ROWS * MOST_COLUMNS] = {0};
  const int64_t rows = a->rows - row;
  for (int64_t i = 0; i < rows; i++)
    memcpy(sums + i * MOST_COLUMNS, c + i * c_stride, (size_t)columns * sizeof *c);
  g->engine->lines_micro[MIX_GEMM_ALONG_M][rows - 1](all, 1, a->at + row, a->stride, panels, sums, sums,
                                                     MOST_COLUMNS, (int)columns, false);
  for (int64_t i = 0; i < rows; i++)
    memcpy(c + i * c_stride, sums + i * MOST_COLUMNS, (size_t)columns * sizeof *c);
}

/* C += a times panels, a along m. */
static void add_tiles(const geometry *g, float *c, int64_t c_stride, const left *a, const float *panels,
                      int64_t columns) {
  const int64_t mr = g->engine->mr, whole = a->rows / mr * mr;
  const mix_gemm_segment all = {.depth = a->depth, .last = true};
  mix_gemm_lines_micro *const micro = g->engine->lines_micro[MIX_GEMM_ALONG_M][mr - 1];
  for (int64_t row = 0; row < whole; row += mr, c += mr * c_stride)
    micro(&all, 1, a->at + row, a->stride, panels, c, c, c_stride, (int)columns, false);
  if (whole < a->rows) add_last_rows(g, c, c_stride, &all, a, whole, panels, columns);
}

/* C = a times panels, a along k. */
static void set_tiles(const geometry *g, float *c, int64_t c_stride, const left *a, const float *panels,
                      int64_t columns) {
  const int64_t tiles = (a->rows + g->engine->mr - 1) / g->engine->mr, most = (a->rows + tiles - 1) / tiles;
  const mix_gemm_segment all = {.depth = a->depth, .last = true};
  for (int64_t row = 0; row < a->rows; row += most) {
    const int64_t rows = a->rows - row < most ? a->rows - row : most;
    g->engine->lines_micro[MIX_GEMM_ALONG_K][rows - 1](&all, 1, a->at + row * a->stride, a->stride, panels,
                                                       NULL, c + row * c_stride, c_stride, (int)columns,
                                                       false);
  }
}

/* C = a times panels, `panel` elements from one to the next; or, along m, C += it: each sum goes on with its
 * chain. */
static void multiply(const geometry *g, float *c, int64_t c_stride, const left *a, const float *panels,
                     int64_t panel, int64_t columns) {
  const int64_t nr = g->engine->nr;
  const bool along_m = a->layout == MIX_GEMM_ALONG_M;
  for (int64_t column = 0; column < columns; column += nr, panels += panel) {
    const int64_t width = columns - column < nr ? columns - column : nr;
    if (!g->engine->lines_micro[0])
      g->vector->product(c + column, c_stride, a->at, along_m ? 1 : a->stride, along_m ? a->stride : 1,
                         panels, nr, a->rows, width, a->depth, along_m);
    else
      (along_m ? add_tiles : set_tiles)(g, c + column, c_stride, a, panels, width);
  }
}

/* ---- a block of queries ---- */

typedef struct block {
  int64_t batch, head, group, first, rows; /* queries */
  int64_t keys;                            /* those that any of its queries can attend to */
} block;

/* Keys behind the last query of a causal block have the probability 0 where masked scores are replaced and
 * each query keeps a key. */
static int64_t visible_keys(const geometry *g, int64_t end) {
  const mix_attention_attributes *a = g->attributes;
  return a->causal && !a->mask_adds && !g->masked && end < g->keys ? end : g->keys;
}

/* Rows (rows, dim) times the panels of all keys: (rows, keys). */
static void multiply_panels(const geometry *g, const block *x, float *to, const float *rows,
                            const float *panels, int64_t dim) {
  const left a = {rows, row_of(g, dim), x->rows, mix_gemm_packed_depth(g->engine, dim), MIX_GEMM_ALONG_K};
  multiply(g, to, g->stride, &a, panels, panel_of(g, dim), x->keys);
}

/* Rows of as many numbers as keys, of the dtype, as a left operand: rows, or transposed. Pairs are of 16
 * bits. */
static left left_of_rows(const geometry *g, const block *x, const buffers *b, const float *rows,
                         bool transposed) {
  const int layout = transposed ? MIX_GEMM_ALONG_M : MIX_GEMM_ALONG_K;
  left a = {.at = rows,
            .stride = g->stride,
            .rows = transposed ? x->keys : x->rows,
            .depth = transposed ? x->rows : x->keys,
            .layout = layout};
  if (!g->engine->pairs) return a;
  a.at = b->pairs;
  if (!transposed) a.stride = row_of(g, g->keys);
  g->storage->pack_a[layout](b->narrow, g->stride, (int)a.rows, a.depth, b->pairs, a.stride);
  a.depth = mix_gemm_packed_depth(g->engine, a.depth);
  return a;
}
/* Where left operands are pairs: such rows in the dtype. */
static void narrow_rows(const geometry *g, const block *x, const buffers *b, const float *rows) {
  for (int64_t row = 0; g->engine->pairs && row < x->rows; row++)
    g->vector->store[g->dtype](b->narrow + row * g->stride, rows + row * g->stride, x->keys);
}

static void round_row(const geometry *g, float *row, int64_t n) {
  const mix_tile_function round = g->vector->round[g->dtype];
  const void *operand = row;
  if (round && g->dtype != MIX_FLOAT32) round(row, &operand, &(int){1}, n, 0);
}

/* row = row `opcode` another row, or a number. */
static void combine_rows(const geometry *g, mix_opcode opcode, float *row, const float *other, int64_t n) {
  g->vector->instruction[opcode](row, (const void *const[]){row, other}, (const int[]){1, 1}, n, 0);
}
static void combine_number(const geometry *g, mix_opcode opcode, float *row, float number, int64_t n) {
  float all[MIX_TILE_PADDING / sizeof(float)];
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) all[i] = number;
  g->vector->instruction[opcode](row, (const void *const[]){row, all}, (const int[]){1, 0}, n, 0);
}

static const bool *mask_row(const geometry *g, const block *x, int64_t row) {
  return (const bool *)g->args->inputs[3] + x->batch * g->mask_strides[0] + x->head * g->mask_strides[1] +
         (x->first + row) * g->mask_strides[2];
}

/* A replaced score may have been infinite or NaN. */
static void mask_scores(const geometry *g, const block *x, int64_t row, float *scores) {
  const mix_attention_attributes *a = g->attributes;
  const float value = (float)a->mask_value;
  const bool adds = a->mask_adds;
  const int64_t query = x->first + row, step = g->mask_strides[3];
  const bool *mask = mask_row(g, x, row);
  if (g->masked)
    for (int64_t key = 0; key < x->keys; key++)
      if (!mask[key * step]) scores[key] = adds ? scores[key] + value : value;
  if (!a->causal) return;
  for (int64_t key = query + 1; key < x->keys; key++)
    if (!g->masked || mask[key * step]) scores[key] = adds ? scores[key] + value : value;
}

/* Sets what a query does not attend to to 0. */
static void clear_masked(const geometry *g, const block *x, int64_t row, float *values) {
  const int64_t query = x->first + row, step = g->mask_strides[3];
  const bool *mask = mask_row(g, x, row);
  for (int64_t key = 0; g->masked && key < x->keys; key++)
    if (!mask[key * step]) values[key] = 0;
  for (int64_t key = query + 1; g->attributes->causal && key < x->keys; key++) values[key] = 0;
}

/* The probabilities of the block, as the softmax op rounds them. */
static void make_probabilities(const geometry *g, const block *x, const buffers *b) {
  const mix_attention_attributes *a = g->attributes;
  const float scale = (float)a->scale;
  const head_rows query = rows_of(g, 0, x->batch, g->queries, x->first, x->rows, g->heads, x->head, g->dim);
  pack_left(g, b->query, &query);
  multiply_panels(g, x, b->scores, b->query, b->key_panels, g->dim);
  for (int64_t row = 0; row < x->rows; row++) {
    float *scores = b->scores + row * g->stride;
    round_row(g, scores, x->keys);
    if (scale != 1) combine_number(g, MIX_OPCODE_MULTIPLY, scores, scale, x->keys);
    mask_scores(g, x, row, scores);
    if (a->mask_adds) round_row(g, scores, x->keys);
    g->vector->softmax_rows(scores, scores, 1, x->keys, MIX_ROWS_SOFTMAX);
    round_row(g, scores, x->keys);
    if (a->mask_zeroes) clear_masked(g, x, row, scores);
  }
}

static float round_to(const geometry *g, double value) {
  float x = (float)value;
  if (g->dtype == MIX_FLOAT16) x = mix_f16_to_f32(mix_f32_to_f16(x));
  if (g->dtype == MIX_BFLOAT16) x = mix_bf16_to_f32(mix_f32_to_bf16(x));
  return x;
}

/* values * 0 or 1 / (1 - rate), by the numbers of random_uniform. */
static void drop_out(const geometry *g, const block *x, int64_t row, float *values) {
  const int64_t *state = g->args->inputs[4];
  const uint64_t first =
      (uint64_t)(((x->batch * g->heads + x->head) * g->queries + x->first + row) * g->keys);
  const float rate = round_to(g, g->attributes->rate), factor = round_to(g, 1 / (1 - g->attributes->rate));
  /* rounded down to the dtype, a number reaches the rate, which the dtype has, where it does before */
  uint32_t words[WORDS];
  for (int64_t key = 0; key < x->keys; key += WORDS) {
    const int64_t n = x->keys - key < WORDS ? x->keys - key : WORDS;
    g->vector->philox_words(words, (uint64_t)state[0], (uint64_t)state[1], first + (uint64_t)key, n);
    for (int64_t i = 0; i < n; i++)
      values[key + i] = (float)(words[i] >> 8) * 0x1p-24f >= rate ? values[key + i] * factor : 0;
  }
}

/* The probabilities that dropout keeps, rounded; the probabilities themselves where there is none. */
static const float *kept_probabilities(const geometry *g, const block *x, const buffers *b) {
  if (g->attributes->rate == 0) return b->scores;
  for (int64_t row = 0; row < x->rows; row++) {
    float *kept = b->kept + row * g->stride;
    memcpy(kept, b->scores + row * g->stride, (size_t)x->keys * sizeof *kept);
    drop_out(g, x, row, kept);
    round_row(g, kept, x->keys);
  }
  return b->kept;
}

static block block_at(const geometry *g, int64_t batch, int64_t head, int64_t first) {
  block x = {.batch = batch, .head = head, .group = head / (g->heads / g->groups), .first = first};
  x.rows = g->queries - first < BLOCK ? g->queries - first : BLOCK;
  x.keys = visible_keys(g, first + x.rows);
  return x;
}

static void attend(const geometry *g, const block *x, const buffers *b) {
  make_probabilities(g, x, b);
  const float *kept = kept_probabilities(g, x, b);
  narrow_rows(g, x, b, kept);
  const left p = left_of_rows(g, x, b, kept, false);
  multiply(g, b->output, wide(g->value_dim), &p, b->values, panel_of(g, g->keys), g->value_dim);
  store_rows(g, b->output, 0, x->batch, g->queries, x->first, x->rows, g->heads, x->head, g->value_dim);
}

/* dS = P (dP - sum(dP P)), where dP is after dropout. */
static void differentiate_softmax(const geometry *g, const block *x, int64_t row, const buffers *b) {
  const float *p = b->scores + row * g->stride, scale = (float)g->attributes->scale;
  float *dp = b->score_gradient + row * g->stride, *products = b->kept + row * g->stride;
  if (g->attributes->rate > 0) drop_out(g, x, row, dp);
  memcpy(products, dp, (size_t)x->keys * sizeof *dp);
  combine_rows(g, MIX_OPCODE_MULTIPLY, products, p, x->keys);
  combine_number(g, MIX_OPCODE_SUBTRACT, dp, g->vector->sum(products, x->keys), x->keys);
  combine_rows(g, MIX_OPCODE_MULTIPLY, dp, p, x->keys);
  if (scale != 1) combine_number(g, MIX_OPCODE_MULTIPLY, dp, scale, x->keys);
  if (!g->attributes->mask_adds) clear_masked(g, x, row, dp);
  if (g->dtype == MIX_BFLOAT16) round_row(g, dp, x->keys);
}

static void differentiate(const geometry *g, const block *x, const buffers *b) {
  const head_rows query = rows_of(g, 0, x->batch, g->queries, x->first, x->rows, g->heads, x->head, g->dim),
                  dy =
                      rows_of(g, 5, x->batch, g->queries, x->first, x->rows, g->heads, x->head, g->value_dim);
  make_probabilities(g, x, b);
  pack_left(g, b->output_gradient, &dy);
  pack_panels(g, b->output_gradient_panels, &dy, BLOCK);
  pack_panels(g, b->query_panels, &query, BLOCK);
  const float *kept = kept_probabilities(g, x, b);
  narrow_rows(g, x, b, kept);
  const left p = left_of_rows(g, x, b, kept, true);
  multiply(g, b->value_gradient, wide(g->value_dim), &p, b->output_gradient_panels, panel_of(g, BLOCK),
           g->value_dim);
  multiply_panels(g, x, b->score_gradient, b->output_gradient, b->value_panels, g->value_dim);
  for (int64_t row = 0; row < x->rows; row++) differentiate_softmax(g, x, row, b);
  narrow_rows(g, x, b, b->score_gradient);
  const left ds = left_of_rows(g, x, b, b->score_gradient, false);
  multiply(g, b->query_gradient, wide(g->dim), &ds, b->keys, panel_of(g, g->keys), g->dim);
  const left transposed = left_of_rows(g, x, b, b->score_gradient, true);
  multiply(g, b->key_gradient, wide(g->dim), &transposed, b->query_panels, panel_of(g, BLOCK), g->dim);
  store_rows(g, b->query_gradient, 0, x->batch, g->queries, x->first, x->rows, g->heads, x->head, g->dim);
}

/* ---- the kernels ---- */

/* The mask operand says something unless it is one value, true. */
static geometry geometry_of_run(const mix_kernel_args *args, const mix_vector *vector,
                                const mix_gemm_engine *engine) {
  geometry g = geometry_of(args, engine);
  g.vector = vector;
  g.masked = mix_shape_size(args->input_types[3].shape) != 1 || !*(const bool *)args->inputs[3];
  return g;
}

/* The buffers of a thread. */
static buffers buffers_of(const geometry *g, const mix_team *team, bool gradient) {
  buffers b = {0};
  const int64_t size = lay_out(g, gradient, NULL, &b);
  lay_out(g, gradient, (float *)g->args->workspace + team->rank * size, &b);
  return b;
}

static void load_group(const geometry *g, const buffers *b, int64_t batch, int64_t group, bool gradient) {
  const head_rows keys = rows_of(g, 1, batch, g->keys, 0, g->keys, g->groups, group, g->dim),
                  values = rows_of(g, 2, batch, g->keys, 0, g->keys, g->groups, group, g->value_dim);
  pack_transposed(g, b->key_panels, &keys);
  if (gradient) {
    pack_panels(g, b->keys, &keys, g->keys);
    pack_transposed(g, b->value_panels, &values);
  } else {
    pack_panels(g, b->values, &values, g->keys);
  }
}

static void attention_run(const mix_kernel_args *args, const mix_team *team, const mix_vector *vector,
                          const mix_gemm_engine *engine) {
  const geometry g = geometry_of_run(args, vector, engine);
  const buffers b = buffers_of(&g, team, false);
  int64_t begin, end, loaded = -1;
  mix_team_share(team, g.batch * g.heads * g.blocks, 1, &begin, &end);
  for (int64_t i = begin; i < end; i++) {
    const int64_t batch = i / g.blocks / g.heads, head = i / g.blocks % g.heads;
    const block x = block_at(&g, batch, head, i % g.blocks * BLOCK);
    if (loaded != batch * g.groups + x.group) load_group(&g, &b, batch, x.group, false);
    loaded = batch * g.groups + x.group;
    attend(&g, &x, &b);
  }
}

/* ---- gradients of keys and values ---- */

static int64_t values_behind(const geometry *g) { return padded(g->keys * wide(g->dim)); }
static int64_t partial_size(const geometry *g) {
  return values_behind(g) + padded(g->keys * wide(g->value_dim));
}

/* The sums of part `part` of a group, behind the buffers of `threads` threads. */
static float *partial_of(const geometry *g, int threads, int64_t group, int64_t part) {
  const int64_t behind = lay_out(g, true, NULL, &(buffers){0}) * threads;
  return (float *)g->args->workspace + behind + (group * g->parts + part) * partial_size(g);
}

static void store_sums(const geometry *g, const float *keys, const float *values, int64_t group,
                       int64_t first, int64_t count) {
  const int64_t batch = group / g->groups, of = group % g->groups;
  store_rows(g, keys, 1, batch, g->keys, first, count, g->groups, of, g->dim);
  store_rows(g, values, 2, batch, g->keys, first, count, g->groups, of, g->value_dim);
}

static void add_rows(float *to, const float *from, int64_t count) {
  for (int64_t i = 0; i < count; i++) to[i] += from[i];
}

/* Adds the parts of keys [first, first + count) to those of part 0. */
static void add_parts(const geometry *g, int threads, int64_t group, int64_t first, int64_t count) {
  const int64_t values = values_behind(g) + first * wide(g->value_dim);
  float *to = partial_of(g, threads, group, 0);
  for (int64_t part = 1; part < g->parts; part++) {
    const float *from = partial_of(g, threads, group, part);
    add_rows(to + first * wide(g->dim), from + first * wide(g->dim), count * wide(g->dim));
    add_rows(to + values, from + values, count * wide(g->value_dim));
  }
  store_sums(g, to + first * wide(g->dim), to + values, group, first, count);
}

static void attention_grad_run(const mix_kernel_args *args, const mix_team *team, const mix_vector *vector,
                               const mix_gemm_engine *engine) {
  const geometry g = geometry_of_run(args, vector, engine);
  buffers b = buffers_of(&g, team, true);
  const int64_t groups = g.batch * g.groups, blocks = g.heads / g.groups * g.blocks;
  int64_t begin, end, loaded = -1;
  mix_team_share(team, groups * g.parts, 1, &begin, &end);
  for (int64_t i = begin; i < end; i++) {
    const int64_t group = i / g.parts, part = i % g.parts, of = group % g.groups;
    if (g.parts > 1) {
      b.key_gradient = partial_of(&g, team->size, group, part);
      b.value_gradient = b.key_gradient + values_behind(&g);
    }
    if (loaded != group) load_group(&g, &b, group / g.groups, of, true);
    loaded = group;
    memset(b.key_gradient, 0, (size_t)(g.keys * wide(g.dim)) * sizeof(float));
    memset(b.value_gradient, 0, (size_t)(g.keys * wide(g.value_dim)) * sizeof(float));
    for (int64_t at = blocks * part / g.parts; at < blocks * (part + 1) / g.parts; at++) {
      const int64_t head = of * (g.heads / g.groups) + at / g.blocks;
      const block x = block_at(&g, group / g.groups, head, at % g.blocks * BLOCK);
      differentiate(&g, &x, &b);
    }
    if (g.parts == 1) store_sums(&g, b.key_gradient, b.value_gradient, group, 0, g.keys);
  }
  if (g.parts == 1) return;
  if (team->size > 1) mix_team_barrier(team);
  for (int64_t group = 0; group < groups; group++) {
    mix_team_share(team, g.keys, 1, &begin, &end);
    add_parts(&g, team->size, group, begin, end - begin);
  }
}

static const char *attention_unsupported_reason(const mix_kernel_args *args) {
  const mix_dtype dtype = args->input_types[0].dtype;
  if (dtype != MIX_FLOAT32 && dtype != MIX_FLOAT16 && dtype != MIX_BFLOAT16) return "another dtype";
  for (int i = 0; i < 3; i++)
    if (mix_shape_size(args->input_types[i].shape) == 0) return "an empty operand";
  return NULL;
}
static const char *pairs_unsupported_reason(const mix_kernel_args *args) {
  return args->input_types[0].dtype == MIX_BFLOAT16 ? attention_unsupported_reason(args) : "not bfloat16";
}
static bool serial(const mix_kernel_args *args) {
  const geometry g = geometry_of(args, NULL);
  return g.batch * g.heads * g.queries * g.keys < MIX_CPU_SMALL;
}
static size_t workspace_of(const mix_kernel_args *args, int threads, const mix_gemm_engine *engine,
                           bool gradient) {
  const geometry g = geometry_of(args, engine);
  const int64_t partials = gradient && g.parts > 1 ? g.batch * g.groups * g.parts * partial_size(&g) : 0;
  const int64_t buffered = lay_out(&g, gradient, NULL, &(buffers){0}) * (serial(args) ? 1 : threads);
  return sizeof(float) * (size_t)(buffered + partials);
}
static int barriers_grad(const mix_kernel_args *args, int threads) {
  return threads > 1 && !serial(args) && geometry_of(args, NULL).parts > 1;
}

#define ATTENTION_KERNEL(op, set, features, vectors, is_gradient, refuses, ...)                              \
  static void op##_##set(const mix_kernel_args *args, const mix_team *team) {                                \
    op##_run(args, team, &mix_vector_##vectors, &mix_gemm_f32_##set);                                        \
  }                                                                                                          \
  static size_t op##_workspace_##set(const mix_kernel_args *args, int threads) {                             \
    return workspace_of(args, threads, &mix_gemm_f32_##set, is_gradient);                                    \
  }                                                                                                          \
  static const mix_kernel op##_kernel_##set = {.name = #op "_acc32_" #set,                                   \
                                               .needs = features,                                            \
                                               .run = op##_##set,                                            \
                                               .unsupported_reason = refuses,                                \
                                               .serial = serial,                                             \
                                               .workspace = op##_workspace_##set,                            \
                                               __VA_ARGS__};
#define OF_PAIRS(set, features, vectors, op, ...) ATTENTION_KERNEL(op, set, features, vectors, __VA_ARGS__)
#define OF_VECTORS(set, features, text, op, ...) ATTENTION_KERNEL(op, set, features, set, __VA_ARGS__)
#define ATTENTION_KERNELS(op, is_gradient, ...)                                                              \
  MIX_PAIR_SETS(OF_PAIRS, op, is_gradient, pairs_unsupported_reason, __VA_ARGS__)                            \
  MIX_VECTOR_SETS(OF_VECTORS, op, is_gradient, attention_unsupported_reason, __VA_ARGS__)                    \
  const mix_kernel *const mix_cpu_##op##_kernels[] = {MIX_PAIR_SETS(MIX_CPU_ROW, op)                         \
                                                          MIX_VECTOR_SETS(MIX_CPU_ROW, op) NULL};
ATTENTION_KERNELS(attention, false, .barriers = NULL)
ATTENTION_KERNELS(attention_grad, true, .barriers = barriers_grad)
