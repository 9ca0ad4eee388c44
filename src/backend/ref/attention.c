/* Attention over heads and its gradients, row by row: one query's scores at a time, in double. */
#include "backend/ref/ref.h"
#include "base/philox.h"
#include "tensor/convert.h"
#include <math.h>

typedef struct geometry {
  const mix_kernel_args *args;
  const mix_attention_attributes *attributes;
  mix_dtype dtype;
  int64_t batch, queries, keys, heads, groups, dim, value_dim;
  int64_t mask_strides[4];
} geometry;

static geometry geometry_of(const mix_kernel_args *args) {
  const mix_shape *q = &args->input_types[0].shape, *k = &args->input_types[1].shape,
                  *v = &args->input_types[2].shape, *mask = &args->input_types[3].shape;
  geometry g = {.args = args,
                .attributes = args->attributes,
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
  return g;
}

/* A query in its head. */
typedef struct row {
  int64_t batch, head, group, query;
} row;

/* The first element of a place of a head: (batch, places, heads, dim). */
static int64_t place(int64_t batch, int64_t places, int64_t at, int64_t heads, int64_t head, int64_t dim) {
  return ((batch * places + at) * heads + head) * dim;
}
static double number(const geometry *g, int operand, int64_t at) {
  return mix_ref_load(g->args->inputs[operand], g->dtype, at).real;
}
static double rounded(const geometry *g, double x) {
  return mix_ref_round((mix_ref_value){.real = x}, g->dtype).real;
}

/* The scale in the dtype of the scores, float32 or float64. */
static double scale_of(const geometry *g) {
  return g->dtype == MIX_FLOAT64 ? g->attributes->scale : (double)(float)g->attributes->scale;
}

static bool attends(const geometry *g, const row *r, int64_t key) {
  const bool *mask = g->args->inputs[3];
  const int64_t at = r->batch * g->mask_strides[0] + r->head * g->mask_strides[1] +
                     r->query * g->mask_strides[2] + key * g->mask_strides[3];
  return mask[at] && !(g->attributes->causal && key > r->query);
}

/* What a probability is multiplied by: 0, or 1 / (1 - rate). */
static double dropout_factor(const geometry *g, const row *r, int64_t key) {
  const double rate = g->attributes->rate;
  if (rate == 0) return 1;
  const int64_t *state = g->args->inputs[4];
  const int64_t i = ((r->batch * g->heads + r->head) * g->queries + r->query) * g->keys + key;
  const double drawn = mix_ref_uniform((uint64_t)state[0], (uint64_t)state[1], (uint64_t)i, g->dtype);
  return drawn >= rounded(g, rate) ? rounded(g, 1 / (1 - rate)) : 0;
}

/* The probabilities of a query, before dropout, rounded to the dtype. */
static void probabilities(const geometry *g, const row *r, double *p) {
  const mix_attention_attributes *a = g->attributes;
  const int64_t query = place(r->batch, g->queries, r->query, g->heads, r->head, g->dim);
  double largest = -INFINITY, sum = 0;
  for (int64_t key = 0; key < g->keys; key++) {
    const int64_t at = place(r->batch, g->keys, key, g->groups, r->group, g->dim);
    double dot = 0;
    for (int64_t d = 0; d < g->dim; d++) dot += number(g, 0, query + d) * number(g, 1, at + d);
    p[key] = rounded(g, dot) * scale_of(g);
    if (!attends(g, r, key)) p[key] = a->mask_adds ? p[key] + a->mask_value : a->mask_value;
    if (g->dtype != MIX_FLOAT64) p[key] = (float)p[key];
    if (a->mask_adds) p[key] = rounded(g, p[key]);
    if (p[key] > largest || p[key] != p[key]) largest = p[key];
  }
  for (int64_t key = 0; key < g->keys; key++) sum += p[key] = exp(p[key] - largest);
  for (int64_t key = 0; key < g->keys; key++)
    if (a->mask_zeroes && !attends(g, r, key))
      p[key] = 0;
    else /* a softmax in float32, which is then rounded to 16 bits */
      p[key] = g->dtype == MIX_FLOAT64 ? p[key] / sum : rounded(g, (float)(p[key] / sum));
}

static void store(const geometry *g, int output, int64_t at, double x) {
  mix_ref_store(g->args->outputs[output], g->dtype, at, mix_ref_round((mix_ref_value){.real = x}, g->dtype));
}

static void attend(const geometry *g, const row *r, double *p) {
  const int64_t result = place(r->batch, g->queries, r->query, g->heads, r->head, g->value_dim);
  probabilities(g, r, p);
  for (int64_t key = 0; key < g->keys; key++) p[key] = rounded(g, p[key] * dropout_factor(g, r, key));
  for (int64_t d = 0; d < g->value_dim; d++) {
    double sum = 0;
    for (int64_t key = 0; key < g->keys; key++)
      sum += p[key] * number(g, 2, place(r->batch, g->keys, key, g->groups, r->group, g->value_dim) + d);
    store(g, 0, result + d, sum);
  }
}

/* Adds to the gradients of key and value, and stores that of the query. */
static void differentiate(const geometry *g, const row *r, double *p, double *dp, double *dk, double *dv) {
  const int64_t query = place(r->batch, g->queries, r->query, g->heads, r->head, g->dim),
                result = place(r->batch, g->queries, r->query, g->heads, r->head, g->value_dim);
  double sum = 0;
  probabilities(g, r, p);
  for (int64_t key = 0; key < g->keys; key++) {
    const int64_t at = place(r->batch, g->keys, key, g->groups, r->group, g->value_dim);
    const double factor = dropout_factor(g, r, key), kept = rounded(g, p[key] * factor);
    dp[key] = 0;
    for (int64_t d = 0; d < g->value_dim; d++) {
      const double dy = number(g, 5, result + d);
      dp[key] += dy * number(g, 2, at + d);
      dv[key * g->value_dim + d] += kept * dy;
    }
    dp[key] *= factor;
    sum += dp[key] * p[key];
  }
  for (int64_t key = 0; key < g->keys; key++) {
    const bool passes = g->attributes->mask_adds || attends(g, r, key);
    dp[key] = passes ? p[key] * (dp[key] - sum) * scale_of(g) : 0;
    if (g->dtype == MIX_BFLOAT16) dp[key] = rounded(g, dp[key]);
  }
  for (int64_t d = 0; d < g->dim; d++) {
    double dq = 0;
    for (int64_t key = 0; key < g->keys; key++) {
      const int64_t at = place(r->batch, g->keys, key, g->groups, r->group, g->dim);
      dq += dp[key] * number(g, 1, at + d);
      dk[key * g->dim + d] += dp[key] * number(g, 0, query + d);
    }
    store(g, 0, query + d, dq);
  }
}

static void attention_run(const mix_kernel_args *args, const mix_team *team) {
  const geometry g = geometry_of(args);
  for (int64_t b = 0; b < g.batch; b++)
    for (int64_t head = 0; head < g.heads; head++)
      for (int64_t query = 0; query < g.queries; query++)
        attend(&g, &(row){b, head, head / (g.heads / g.groups), query}, args->workspace);
}

static void attention_grad_run(const mix_kernel_args *args, const mix_team *team) {
  const geometry g = geometry_of(args);
  double *p = args->workspace, *dp = p + g.keys, *dk = dp + g.keys, *dv = dk + g.keys * g.dim;
  for (int64_t b = 0; b < g.batch; b++)
    for (int64_t group = 0; group < g.groups; group++) {
      const int64_t count = g.heads / g.groups;
      for (int64_t i = 0; i < g.keys * (g.dim + g.value_dim); i++) dk[i] = 0;
      for (int64_t head = group * count; head < (group + 1) * count; head++)
        for (int64_t query = 0; query < g.queries; query++)
          differentiate(&g, &(row){b, head, group, query}, p, dp, dk, dv);
      for (int64_t key = 0; key < g.keys; key++) {
        for (int64_t d = 0; d < g.dim; d++)
          store(&g, 1, place(b, g.keys, key, g.groups, group, g.dim) + d, dk[key * g.dim + d]);
        for (int64_t d = 0; d < g.value_dim; d++)
          store(&g, 2, place(b, g.keys, key, g.groups, group, g.value_dim) + d, dv[key * g.value_dim + d]);
      }
    }
}

static size_t attention_workspace(const mix_kernel_args *args, int threads) {
  return sizeof(double) * (size_t)geometry_of(args).keys;
}
static size_t attention_grad_workspace(const mix_kernel_args *args, int threads) {
  const geometry g = geometry_of(args);
  return sizeof(double) * (size_t)(g.keys * (2 + g.dim + g.value_dim));
}

const mix_kernel mix_ref_attention = {.name = "ref_attention_acc64",
                                      .serial = mix_ref_serial,
                                      .workspace = attention_workspace,
                                      .run = attention_run};
const mix_kernel mix_ref_attention_grad = {.name = "ref_attention_grad_acc64",
                                           .serial = mix_ref_serial,
                                           .workspace = attention_grad_workspace,
                                           .run = attention_grad_run};
