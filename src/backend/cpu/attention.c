/* Attention over heads and its gradients, in float32, without all scores in memory. A thread takes a block of
 * queries of a head at a time: its scores with all keys, their softmax, the products with the values. So a
 * row is rounded, masked and normalised as the plain form does it, and the memory grows with the number of
 * keys alone. Gradients of keys and values are sums over the queries of a group of heads, or, of few groups,
 * over parts of them, which are then added in order: parts depend on shapes alone, so bits not on threads. */
#include "backend/cpu/kernel_rows.h"
#include "tensor/convert.h"

enum { BLOCK = 32 };   /* queries */
enum { PADDING = 16 }; /* floats that vector functions may touch behind a row */
enum { PANEL_VECTORS = 3, WORDS = 512 };
enum { UNITS = 16 }; /* of work for threads, that gradients are cut into */

typedef struct geometry {
  const mix_kernel_args *args;
  const mix_attention_attributes *attributes;
  const mix_vector *vector;
  mix_dtype dtype;
  int64_t batch, queries, keys, heads, groups, dim, value_dim;
  int64_t panel, panels; /* columns of a panel of transposed keys, and their number */
  int64_t stride;        /* of a row of scores: no power of two, so that columns spread over the cache */
  int64_t mask_strides[4];
  int64_t blocks; /* of queries of a head */
  int64_t parts;  /* of a group's queries, in the gradients */
  bool masked;    /* by the operand */
} geometry;

static geometry geometry_of(const mix_kernel_args *args, const mix_vector *vector) {
  const mix_shape *q = &args->input_types[0].shape, *k = &args->input_types[1].shape,
                  *v = &args->input_types[2].shape, *mask = &args->input_types[3].shape;
  geometry g = {.args = args,
                .attributes = args->attributes,
                .vector = vector,
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
  g.panel = PANEL_VECTORS * (vector ? vector->lanes : 16);
  g.panels = (g.keys + g.panel - 1) / g.panel;
  g.stride = (g.keys + PADDING - 1) / PADDING * PADDING + PADDING;
  g.blocks = (g.queries + BLOCK - 1) / BLOCK;
  const int64_t groups = g.batch * g.groups, wanted = groups ? UNITS / groups : 1,
                most = g.groups ? g.heads / g.groups * g.blocks : 1;
  g.parts = wanted < 1 ? 1 : wanted < most ? wanted : most;
  return g;
}

/* A thread's matrices. */
typedef struct buffers {
  float *keys, *key_panels, *values, *value_panels; /* of a group; panels are transposed */
  float *query, *scores, *kept, *output;            /* of a block: kept after dropout */
  float *output_gradient, *score_gradient, *query_gradient, *key_gradient, *value_gradient;
} buffers;

static int64_t padded(int64_t floats) { return (floats + PADDING - 1) / PADDING * PADDING + PADDING; }

/* Lays the buffers out from `memory`, or counts only. Returns the number of floats. */
static int64_t lay_out(const geometry *g, bool gradient, float *memory, buffers *b) {
  const struct {
    float **at;
    int64_t size;
    bool used;
  } parts[] = {
      {&b->keys, g->keys * g->dim, true},
      {&b->key_panels, g->panels * g->panel * g->dim, true},
      {&b->values, g->keys * g->value_dim, true},
      {&b->value_panels, g->panels * g->panel * g->value_dim, gradient},
      {&b->query, BLOCK * g->dim, true},
      {&b->scores, BLOCK * g->stride, true},
      {&b->kept, BLOCK * g->stride, gradient || g->attributes->rate > 0},
      {&b->output, BLOCK * g->value_dim, !gradient},
      {&b->output_gradient, BLOCK * g->value_dim, gradient},
      {&b->score_gradient, BLOCK * g->stride, gradient},
      {&b->query_gradient, BLOCK * g->dim, gradient},
      {&b->key_gradient, g->keys * g->dim, gradient && g->parts == 1},
      {&b->value_gradient, g->keys * g->value_dim, gradient && g->parts == 1},
  };
  int64_t total = 0;
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
    if (!parts[i].used) continue;
    if (memory) *parts[i].at = memory + total;
    total += padded(parts[i].size);
  }
  return total;
}

/* ---- heads in memory: (batch, places, heads, dim) ---- */

static int64_t place(int64_t batch, int64_t places, int64_t at, int64_t heads, int64_t head, int64_t dim) {
  return ((batch * places + at) * heads + head) * dim;
}

/* Places [first, first + count) of a head as rows of floats. */
static void load_rows(const geometry *g, float *to, int operand, int64_t batch, int64_t places, int64_t first,
                      int64_t count, int64_t heads, int64_t head, int64_t dim) {
  const size_t size = mix_dtype_size(g->dtype);
  for (int64_t i = 0; i < count; i++)
    g->vector->load[g->dtype](to + i * dim,
                              (const char *)g->args->inputs[operand] +
                                  (size_t)place(batch, places, first + i, heads, head, dim) * size,
                              dim);
}

static void store_rows(const geometry *g, const float *from, int output, int64_t batch, int64_t places,
                       int64_t first, int64_t count, int64_t heads, int64_t head, int64_t dim) {
  const size_t size = mix_dtype_size(g->dtype);
  for (int64_t i = 0; i < count; i++)
    g->vector->store[g->dtype]((char *)g->args->outputs[output] +
                                   (size_t)place(batch, places, first + i, heads, head, dim) * size,
                               from + i * dim, dim);
}

/* Rows (keys, dim) to panels of (dim, panel); the columns behind the last key are zero. */
static void transpose(const geometry *g, float *panels, const float *rows, int64_t dim) {
  for (int64_t panel = 0; panel < g->panels; panel++, panels += dim * g->panel)
    for (int64_t j = 0; j < g->panel; j++) {
      const int64_t key = panel * g->panel + j;
      for (int64_t d = 0; d < dim; d++) panels[d * g->panel + j] = key < g->keys ? rows[key * dim + d] : 0;
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

/* rows (rows, dim) times the panels: (rows, keys). */
static void multiply_panels(const geometry *g, const block *x, float *to, const float *rows,
                            const float *panels, int64_t dim) {
  for (int64_t key = 0; key < x->keys; key += g->panel, panels += dim * g->panel)
    g->vector->product(to + key, g->stride, rows, dim, 1, panels, g->panel, x->rows,
                       x->keys - key < g->panel ? x->keys - key : g->panel, dim, false);
}

static void round_row(const geometry *g, float *row, int64_t n) {
  const mix_tile_function round = g->vector->round[g->dtype];
  const void *operand = row;
  if (round && g->dtype != MIX_FLOAT32) round(row, &operand, &(int){1}, n, 0);
}

static const bool *mask_row(const geometry *g, const block *x, int64_t row) {
  return (const bool *)g->args->inputs[3] + x->batch * g->mask_strides[0] + x->head * g->mask_strides[1] +
         (x->first + row) * g->mask_strides[2];
}

static void mask_scores(const geometry *g, const block *x, int64_t row, float *scores) {
  const mix_attention_attributes *a = g->attributes;
  const float value = (float)a->mask_value, kept = a->mask_adds ? 1 : 0;
  const int64_t query = x->first + row, step = g->mask_strides[3];
  const bool *mask = mask_row(g, x, row);
  if (g->masked)
    for (int64_t key = 0; key < x->keys; key++)
      if (!mask[key * step]) scores[key] = scores[key] * kept + value;
  if (!a->causal) return;
  for (int64_t key = query + 1; key < x->keys; key++)
    if (!g->masked || mask[key * step]) scores[key] = scores[key] * kept + value;
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
  load_rows(g, b->query, 0, x->batch, g->queries, x->first, x->rows, g->heads, x->head, g->dim);
  multiply_panels(g, x, b->scores, b->query, b->key_panels, g->dim);
  for (int64_t row = 0; row < x->rows; row++) {
    float *scores = b->scores + row * g->stride;
    round_row(g, scores, x->keys);
    for (int64_t key = 0; scale != 1 && key < x->keys; key++) scores[key] *= scale;
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
  g->vector->product(b->output, g->value_dim, kept_probabilities(g, x, b), g->stride, 1, b->values,
                     g->value_dim, x->rows, g->value_dim, x->keys, false);
  store_rows(g, b->output, 0, x->batch, g->queries, x->first, x->rows, g->heads, x->head, g->value_dim);
}

/* dS = P (dP - sum(dP P)), where dP is after dropout. */
static void differentiate_softmax(const geometry *g, const block *x, int64_t row, const buffers *b) {
  const float *p = b->scores + row * g->stride, scale = (float)g->attributes->scale;
  float *dp = b->score_gradient + row * g->stride, *products = b->kept + row * g->stride;
  if (g->attributes->rate > 0) drop_out(g, x, row, dp);
  for (int64_t key = 0; key < x->keys; key++) products[key] = dp[key] * p[key];
  const float sum = g->vector->sum(products, x->keys);
  for (int64_t key = 0; key < x->keys; key++) dp[key] = p[key] * (dp[key] - sum) * scale;
  if (!g->attributes->mask_adds) clear_masked(g, x, row, dp);
}

static void differentiate(const geometry *g, const block *x, const buffers *b) {
  make_probabilities(g, x, b);
  load_rows(g, b->output_gradient, 5, x->batch, g->queries, x->first, x->rows, g->heads, x->head,
            g->value_dim);
  g->vector->product(b->value_gradient, g->value_dim, kept_probabilities(g, x, b), 1, g->stride,
                     b->output_gradient, g->value_dim, x->keys, g->value_dim, x->rows, true);
  multiply_panels(g, x, b->score_gradient, b->output_gradient, b->value_panels, g->value_dim);
  for (int64_t row = 0; row < x->rows; row++) differentiate_softmax(g, x, row, b);
  g->vector->product(b->query_gradient, g->dim, b->score_gradient, g->stride, 1, b->keys, g->dim, x->rows,
                     g->dim, x->keys, false);
  g->vector->product(b->key_gradient, g->dim, b->score_gradient, 1, g->stride, b->query, g->dim, x->keys,
                     g->dim, x->rows, true);
  store_rows(g, b->query_gradient, 0, x->batch, g->queries, x->first, x->rows, g->heads, x->head, g->dim);
}

/* ---- the kernels ---- */

/* The mask operand says something unless it is one value, true. */
static geometry geometry_of_run(const mix_kernel_args *args, const mix_vector *vector) {
  geometry g = geometry_of(args, vector);
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
  load_rows(g, b->keys, 1, batch, g->keys, 0, g->keys, g->groups, group, g->dim);
  transpose(g, b->key_panels, b->keys, g->dim);
  load_rows(g, b->values, 2, batch, g->keys, 0, g->keys, g->groups, group, g->value_dim);
  if (gradient) transpose(g, b->value_panels, b->values, g->value_dim);
}

static void attention_run(const mix_kernel_args *args, const mix_team *team, const mix_vector *vector) {
  const geometry g = geometry_of_run(args, vector);
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

static int64_t partial_size(const geometry *g) {
  return padded(g->keys * g->dim) + padded(g->keys * g->value_dim);
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
  const int64_t values = padded(g->keys * g->dim) + first * g->value_dim;
  float *to = partial_of(g, threads, group, 0);
  for (int64_t part = 1; part < g->parts; part++) {
    const float *from = partial_of(g, threads, group, part);
    add_rows(to + first * g->dim, from + first * g->dim, count * g->dim);
    add_rows(to + values, from + values, count * g->value_dim);
  }
  store_sums(g, to + first * g->dim, to + values, group, first, count);
}

static void attention_grad_run(const mix_kernel_args *args, const mix_team *team, const mix_vector *vector) {
  const geometry g = geometry_of_run(args, vector);
  buffers b = buffers_of(&g, team, true);
  const int64_t groups = g.batch * g.groups, blocks = g.heads / g.groups * g.blocks;
  int64_t begin, end, loaded = -1;
  mix_team_share(team, groups * g.parts, 1, &begin, &end);
  for (int64_t i = begin; i < end; i++) {
    const int64_t group = i / g.parts, part = i % g.parts, of = group % g.groups;
    if (g.parts > 1) {
      b.key_gradient = partial_of(&g, team->size, group, part);
      b.value_gradient = b.key_gradient + padded(g.keys * g.dim);
    }
    if (loaded != group) load_group(&g, &b, group / g.groups, of, true);
    loaded = group;
    memset(b.key_gradient, 0, (size_t)(g.keys * g.dim) * sizeof(float));
    memset(b.value_gradient, 0, (size_t)(g.keys * g.value_dim) * sizeof(float));
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
  if (mix_tile_class_of(args->input_types[0].dtype) != MIX_TILE_FLOAT) return "float64";
  for (int i = 0; i < 3; i++)
    if (mix_shape_size(args->input_types[i].shape) == 0) return "an empty operand";
  return NULL;
}
static bool serial(const mix_kernel_args *args) {
  const geometry g = geometry_of(args, NULL);
  return g.batch * g.heads * g.queries * g.keys < MIX_CPU_SMALL;
}
static size_t workspace_of(const mix_kernel_args *args, int threads, bool gradient) {
  const geometry g = geometry_of(args, NULL);
  const int64_t partials = gradient && g.parts > 1 ? g.batch * g.groups * g.parts * partial_size(&g) : 0;
  const int64_t buffered = lay_out(&g, gradient, NULL, &(buffers){0}) * (serial(args) ? 1 : threads);
  return sizeof(float) * (size_t)(buffered + partials);
}
static size_t attention_workspace(const mix_kernel_args *args, int threads) {
  return workspace_of(args, threads, false);
}
static size_t workspace_grad(const mix_kernel_args *args, int threads) {
  return workspace_of(args, threads, true);
}
static int barriers_grad(const mix_kernel_args *args, int threads) {
  return threads > 1 && !serial(args) && geometry_of(args, NULL).parts > 1;
}
MIX_CPU_KERNELS(attention, "attention_acc32", .unsupported_reason = attention_unsupported_reason,
                .serial = serial, .workspace = attention_workspace)
MIX_CPU_KERNELS(attention_grad, "attention_grad_acc32", .unsupported_reason = attention_unsupported_reason,
                .serial = serial, .workspace = workspace_grad, .barriers = barriers_grad)
