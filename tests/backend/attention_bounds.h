/* Attention over heads and its gradients in double, and how far an implementation may be off: each number has
 * the error of what it is made of and that of its own rounding (docs/NUMERICS.md, Einstein sums and
 * attention). */
#ifndef TESTS_BACKEND_ATTENTION_BOUNDS_H
#define TESTS_BACKEND_ATTENTION_BOUNDS_H

#include "backend/ref/ref.h"
#include "ops/support.h"

enum { ELEMENTS = 40000, KEYS = 600, DIMS = 64, OPERANDS = 6, BLOCK = 32 };
enum { OF_QUERY, OF_KEY, OF_VALUE, OF_MASK, OF_STATE, OF_GRADIENT };

typedef struct attention_case {
  int64_t batch, queries, keys, heads, groups, dim, value_dim;
  mix_shape mask;
  mix_attention_attributes attributes;
  int64_t window; /* 0: none; else of the mask: places that a key may be away */
} attention_case;

/* What a wrong kernel leaves out. */
typedef enum attention_fault {
  NOTHING,
  LAST_QUERIES, /* a block of them */
  LAST_KEYS,
  ROW_SUM, /* of dP P */
  SCALE,   /* of the gradient */
  DROPOUT, /* of the gradient */
  MASK,    /* of the gradient of replaced scores */
  FAULTS
} attention_fault;

typedef struct attention_form {
  const attention_case *of;
  mix_dtype dtype;
  bool plain; /* a rounding behind each operation, as mix_attention_plain has it */
  attention_fault without;
} attention_form;

/* ---- numbers with errors ---- */

typedef struct bounded {
  double is, off; /* a computed one is in [is - off, is + off] */
} bounded;

/* Unit roundoff of sums and single operations. */
static inline double roundoff(const attention_form *f) { return f->dtype == MIX_FLOAT64 ? 0x1p-53 : 0x1p-24; }
/* The relative error of n operations one behind the other. */
static inline double share_of(const attention_form *f, double n) {
  return n * roundoff(f) / (1 - n * roundoff(f));
}

/* With a relative error of the result. */
static inline bounded widened(bounded x, double share) {
  return (bounded){x.is, x.off + share * (fabs(x.is) + x.off)};
}
static inline bounded difference(bounded a, bounded b, double share) {
  return widened((bounded){a.is - b.is, a.off + b.off}, share);
}
static inline double product_error(bounded a, bounded b) {
  return fabs(a.is) * b.off + fabs(b.is) * a.off + a.off * b.off;
}
static inline bounded product(bounded a, bounded b, double share) {
  return widened((bounded){a.is * b.is, product_error(a, b)}, share);
}
static inline double round_to(double x, mix_dtype dtype) {
  return mix_ref_round((mix_ref_value){.real = x}, dtype).real;
}
/* Rounded to the dtype, which keeps the order of numbers: another result only where the interval holds a tie.
 */
static inline bounded rounded(bounded x, mix_dtype dtype) {
  if (dtype == MIX_FLOAT64) return widened(x, 0x1p-53);
  const double is = round_to(x.is, dtype);
  return (bounded){is, fmax(round_to(x.is + x.off, dtype) - is, is - round_to(x.is - x.off, dtype))};
}
/* Rounded to the storage dtype; `is` stays as it was. */
static inline bounded stored(const attention_form *f, bounded x) {
  x = widened(x, unit_roundoff(f->dtype));
  x.off += smallest(f->dtype) / 2;
  return x;
}
static inline bounded stored_if_plain(const attention_form *f, bounded x) {
  return f->plain ? stored(f, x) : x;
}

typedef struct sum {
  double is, off, size; /* size: the sum of magnitudes */
  int64_t terms;
} sum;

static inline void add_product(sum *s, bounded a, bounded b) {
  s->is += a.is * b.is;
  s->off += product_error(a, b);
  s->size += (fabs(a.is) + a.off) * (fabs(b.is) + b.off);
  s->terms++;
}
/* Of products, in any order, with or without fused multiply-adds: each of n passes its own rounding and at
 * most n - 1 sums; and one operation to spare. */
static inline bounded total(const attention_form *f, const sum *s) {
  return (bounded){s->is, s->off + share_of(f, (double)s->terms + 1) * s->size};
}

/* ---- a row of probabilities ---- */

typedef struct attention_row {
  int64_t batch, head, group, query;
  bounded p[KEYS], wide[KEYS], kept[KEYS]; /* rounded; as a gradient in float32 has it; behind dropout */
  double factor[KEYS];                     /* of dropout */
  bool attends[KEYS];
} attention_row;

/* The operands, and the numbers that dropout draws. */
typedef struct attention_operands {
  double of[OPERANDS][ELEMENTS], drawn[ELEMENTS];
} attention_operands;

static inline const double *place(const double *from, int64_t batch, int64_t places, int64_t at,
                                  int64_t heads, int64_t head, int64_t dim) {
  return from + ((batch * places + at) * heads + head) * dim;
}
static inline const double *query_of(const attention_form *f, const double *from, const attention_row *r,
                                     int64_t dim) {
  return place(from, r->batch, f->of->queries, r->query, f->of->heads, r->head, dim);
}
static inline const double *key_of(const attention_form *f, const double *from, const attention_row *r,
                                   int64_t key, int64_t dim) {
  return place(from, r->batch, f->of->keys, key, f->of->groups, r->group, dim);
}
static inline bounded exact(double x) { return (bounded){x, 0}; }

static inline bounded dot(const attention_form *f, const double *a, const double *b, int64_t n) {
  sum s = {0};
  for (int64_t i = 0; i < n; i++) add_product(&s, exact(a[i]), exact(b[i]));
  return total(f, &s);
}

static inline bool mask_at(const attention_form *f, const attention_operands *x, const attention_row *r,
                           int64_t key) {
  const int64_t at[] = {r->batch, r->head, r->query, key};
  int64_t flat = 0;
  for (int d = 0; d < 4; d++) {
    const int64_t size = f->of->mask.dims[d];
    flat = flat * size + (size == 1 ? 0 : at[d]);
  }
  return x->of[OF_MASK][flat] != 0;
}

static inline bounded score(const attention_form *f, const attention_operands *x, const attention_row *r,
                            int64_t key) {
  const mix_attention_attributes *a = &f->of->attributes;
  const mix_dtype wide = f->dtype == MIX_FLOAT64 ? MIX_FLOAT64 : MIX_FLOAT32;
  const double value = round_to(a->mask_value, wide);
  bounded s = rounded(dot(f, query_of(f, x->of[OF_QUERY], r, f->of->dim),
                          key_of(f, x->of[OF_KEY], r, key, f->of->dim), f->of->dim),
                      f->dtype);
  if (a->scale != 1) s = product(s, exact(a->scale), share_of(f, 2)); /* the scale is rounded, too */
  if (!r->attends[key]) {
    if (!a->mask_adds) return exact(value);
    s.is += value;
    s = rounded(s, wide);
  }
  return a->mask_adds ? rounded(s, f->dtype) : s;
}

/* exp(x) / sum(exp(x)). With s the error of a score, the numerator is off by a share of exp(s) - 1, and the
 * sum by its mean, for the mean of exp(-s) is at least 1 / that of exp(s); 2 ulp of either exponential, n - 1
 * sums and a quotient are n + 8 operations. A score so far below the largest that its exponential is zero in
 * every dtype has the probability 0. */
static inline void softmax(const attention_form *f, bounded *x) {
  const int64_t n = f->of->keys;
  const double operations = share_of(f, (double)n + 8);
  double largest = -INFINITY, off = 0, all = 0, others = 0, shares[KEYS];
  for (int64_t j = 0; j < n; j++) largest = fmax(largest, x[j].is), off = fmax(off, x[j].off);
  for (int64_t j = 0; j < n; j++) all += exp(x[j].is - largest);
  for (int64_t j = 0; j < n; j++) {
    const bounded below = difference(x[j], (bounded){largest, off}, 0);
    const bool zero = below.is + below.off < -1000;
    shares[j] = zero ? 0 : expm1(x[j].off + roundoff(f) * (fabs(below.is) + below.off));
    x[j].is = zero ? 0 : exp(below.is) / all;
    others += x[j].is * shares[j];
  }
  for (int64_t j = 0; j < n; j++) {
    const double share = shares[j] + others + shares[j] * others;
    x[j].off = x[j].is * (share + operations + share * operations);
    if (x[j].is > 0) x[j].off += (double)(n + 1) * 0x1p-126; /* an exponential below the normal numbers */
  }
}

static inline void make_row(const attention_form *f, const attention_operands *x, attention_row *r) {
  const attention_case *c = f->of;
  const mix_attention_attributes *a = &c->attributes;
  const double rate = round_to(a->rate, f->dtype), factor = round_to(1 / (1 - a->rate), f->dtype);
  const int64_t first = ((r->batch * c->heads + r->head) * c->queries + r->query) * c->keys;
  for (int64_t key = 0; key < c->keys; key++) {
    r->attends[key] = mask_at(f, x, r, key) && !(a->causal && key > r->query);
    r->p[key] = score(f, x, r, key);
  }
  softmax(f, r->p);
  for (int64_t key = 0; key < c->keys; key++) {
    const bounded before = r->p[key];
    const bool cleared = a->mask_zeroes && !r->attends[key];
    r->p[key] = cleared ? exact(0) : rounded(before, f->dtype);
    r->wide[key] = r->p[key];
    /* the plain form differentiates the softmax before it is rounded and cleared */
    if (f->plain && !cleared) r->wide[key].off = before.off + fabs(before.is - r->p[key].is);
    if (f->plain && cleared) r->wide[key] = before;
    r->factor[key] = a->rate == 0 ? 1 : x->drawn[first + key] >= rate ? factor : 0;
    /* a product of 16 bits is exact before it is rounded, and one of float32 is rounded once */
    r->kept[key] =
        r->factor[key] == 1 ? r->p[key] : rounded(product(r->p[key], exact(r->factor[key]), 0), f->dtype);
  }
}

/* ---- the gradients ---- */

/* Sums of a group, or of a head where each head's are rounded. */
typedef struct attention_sums {
  sum key[ELEMENTS / 4], value[ELEMENTS / 4];
} attention_sums;

static inline bool omits(const attention_form *f, attention_fault fault, int64_t at, int64_t count) {
  return f->without == fault && at / BLOCK == (count - 1) / BLOCK;
}

/* The gradients of a row's scores: two operations after the sums, and two of the scale, which is rounded. In
 * bfloat16 they are rounded. */
static inline void score_gradients(const attention_form *f, const attention_operands *x,
                                   const attention_row *r, bounded *ds) {
  const attention_case *c = f->of;
  const mix_attention_attributes *a = &c->attributes;
  sum row = {0};
  for (int64_t key = 0; key < c->keys; key++) {
    ds[key] = dot(f, query_of(f, x->of[OF_GRADIENT], r, c->value_dim),
                  key_of(f, x->of[OF_VALUE], r, key, c->value_dim), c->value_dim);
    ds[key] = stored_if_plain(f, ds[key]);
    if (a->rate > 0 && f->without != DROPOUT)
      ds[key] = stored_if_plain(f, product(ds[key], exact(r->factor[key]), roundoff(f)));
    if (r->factor[key] == 0 && f->without != DROPOUT) ds[key] = exact(0);
    if (f->plain && a->mask_zeroes && !r->attends[key]) ds[key] = exact(0);
    add_product(&row, ds[key], r->wide[key]);
  }
  const bounded all = f->without == ROW_SUM ? exact(0) : total(f, &row);
  for (int64_t key = 0; key < c->keys; key++) {
    ds[key] = product(r->wide[key], difference(ds[key], all, roundoff(f)), roundoff(f));
    if (a->mask_adds) ds[key] = stored_if_plain(f, ds[key]);
    if (a->scale != 1 && f->without != SCALE) ds[key] = product(ds[key], exact(a->scale), share_of(f, 2));
    ds[key] = stored_if_plain(f, ds[key]);
    if (!a->mask_adds && !r->attends[key] && f->without != MASK) ds[key] = exact(0);
    if (f->dtype == MIX_BFLOAT16 && !f->plain) ds[key] = rounded(ds[key], f->dtype);
    if (omits(f, LAST_KEYS, key, c->keys)) ds[key] = exact(0);
  }
}

/* Adds to the sums, and stores the gradient of the query. */
static inline void differentiate_row(const attention_form *f, const attention_operands *x,
                                     const attention_row *r, attention_sums *to, bounded *query_gradient) {
  static bounded ds[KEYS];
  const attention_case *c = f->of;
  const double *query = query_of(f, x->of[OF_QUERY], r, c->dim),
               *dy = query_of(f, x->of[OF_GRADIENT], r, c->value_dim);
  bounded *result = query_gradient + (query - x->of[OF_QUERY]);
  sum sums[DIMS] = {0};
  if (omits(f, LAST_QUERIES, r->query, c->queries)) return;
  score_gradients(f, x, r, ds);
  for (int64_t key = 0; key < c->keys; key++) {
    const double *k = key_of(f, x->of[OF_KEY], r, key, c->dim);
    for (int64_t d = 0; d < c->dim; d++) {
      add_product(&sums[d], ds[key], exact(k[d]));
      add_product(&to->key[key * c->dim + d], ds[key], exact(query[d]));
    }
    for (int64_t d = 0; !omits(f, LAST_KEYS, key, c->keys) && d < c->value_dim; d++)
      add_product(&to->value[key * c->value_dim + d], r->kept[key], exact(dy[d]));
  }
  for (int64_t d = 0; d < c->dim; d++) result[d] = stored(f, total(f, &sums[d]));
}

/* Sums of a head, rounded, become terms of the group's. */
static inline void fold(const attention_form *f, sum *group, sum *head, int64_t count) {
  for (int64_t i = 0; i < count; i++) {
    add_product(&group[i], stored(f, total(f, &head[i])), exact(1));
    head[i] = (sum){0};
  }
}

/* Adds a head's gradients to its group's. */
static inline void differentiate_head(const attention_form *f, const attention_operands *x, attention_row *r,
                                      attention_sums *group, bounded *query_gradient) {
  static attention_sums head;
  const attention_case *c = f->of;
  for (r->query = 0; r->query < c->queries; r->query++) {
    make_row(f, x, r);
    differentiate_row(f, x, r, f->plain ? &head : group, query_gradient);
  }
  if (!f->plain) return;
  fold(f, group->key, head.key, c->keys * c->dim);
  fold(f, group->value, head.value, c->keys * c->value_dim);
}

/* The gradients of query, key and value, one after the other. */
static inline void bound_gradients(const attention_form *f, const attention_operands *x, bounded *to) {
  static attention_sums sums;
  static attention_row r;
  const attention_case *c = f->of;
  bounded *keys = to + c->batch * c->queries * c->heads * c->dim,
          *values = keys + c->batch * c->keys * c->groups * c->dim;
  memset(to, 0, ELEMENTS * sizeof *to);
  for (r.batch = 0; r.batch < c->batch; r.batch++)
    for (r.group = 0; r.group < c->groups; r.group++) {
      const int64_t count = c->heads / c->groups;
      memset(&sums, 0, sizeof sums);
      for (r.head = r.group * count; r.head < (r.group + 1) * count; r.head++)
        differentiate_head(f, x, &r, &sums, to);
      for (int64_t key = 0; key < c->keys; key++) {
        const int64_t at = (r.batch * c->keys + key) * c->groups + r.group;
        for (int64_t d = 0; d < c->dim; d++)
          keys[at * c->dim + d] = stored(f, total(f, &sums.key[key * c->dim + d]));
        for (int64_t d = 0; d < c->value_dim; d++)
          values[at * c->value_dim + d] = stored(f, total(f, &sums.value[key * c->value_dim + d]));
      }
    }
}

static inline void bound_results(const attention_form *f, const attention_operands *x, bounded *to) {
  static attention_row r;
  const attention_case *c = f->of;
  for (r.batch = 0; r.batch < c->batch; r.batch++)
    for (r.query = 0; r.query < c->queries; r.query++)
      for (r.head = 0; r.head < c->heads; r.head++) {
        r.group = r.head / (c->heads / c->groups);
        make_row(f, x, &r);
        for (int64_t d = 0; d < c->value_dim; d++) {
          sum s = {0};
          for (int64_t key = 0; key < c->keys; key++)
            add_product(&s, r.kept[key], exact(key_of(f, x->of[OF_VALUE], &r, key, c->value_dim)[d]));
          *to++ = stored(f, total(f, &s));
        }
      }
}

#endif
