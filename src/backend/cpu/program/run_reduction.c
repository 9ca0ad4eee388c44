/* The reduction that may end a program: the finite test, or sums of all elements or of rows, in the order of
 * cpu/reduce.c. */
#include "backend/cpu/program/run_state.h"
#include "base/alloc.h"
#include "tensor/convert.h"
#include <math.h>

/* Adds up the current piece. */
static void end_piece(const mix_tile_state *r, mix_tile_adder *a, mix_tile_class class) {
  if (!a->summed) return;
  double sum = a->wide_sum;
  if (class == MIX_TILE_FLOAT) {
    sum = r->p->vector->sum_end(a->lanes, a->rest, a->summed % MIX_SUM_LANES);
    memset(a->lanes, 0, sizeof a->lanes);
  }
  if (a->pieces)
    a->pieces[a->piece] = sum;
  else
    a->total = a->piece ? a->total + sum : sum;
  a->summed = 0;
}

/* Adds n values of one piece; the first is element `flat` of a row of `length`. In whole groups element i
 * belongs to lane i % MIX_SUM_LANES. The tail after the row's last whole group is kept for end_piece. */
static void add_to_piece(const mix_tile_state *r, mix_tile_adder *a, mix_tile_class class, const char *x,
                         int64_t flat, int64_t n, int64_t length) {
  a->piece = flat / MIX_SUM_PIECE;
  if (class == MIX_TILE_FLOAT) {
    const float *values = (const float *)(const void *)x;
    const int64_t groups_end = length - length % MIX_SUM_LANES,
                  end = flat + n < groups_end ? flat + n : groups_end;
    int64_t i = flat;
    for (; i < end && i % MIX_SUM_LANES; i++) a->lanes[i % MIX_SUM_LANES] += values[i - flat];
    if (i < end) {
      const int64_t whole = (end - i) - (end - i) % MIX_SUM_LANES;
      r->p->vector->sum_into(a->lanes, values + (i - flat), whole);
      i += whole;
    }
    for (; i < end; i++) a->lanes[i % MIX_SUM_LANES] += values[i - flat];
    for (; i < flat + n; i++) a->rest[i % MIX_SUM_LANES] = values[i - flat];
  } else {
    const double *values = (const double *)(const void *)x;
    for (int64_t i = 0; i < n; i++) a->wide_sum = a->summed + i ? a->wide_sum + values[i] : values[i];
  }
  a->summed += n;
}

static void store_sum(const mix_tile_state *r, const mix_program_sum *how, int64_t index, double sum,
                      int64_t count) {
  const mix_dtype dtype = mix_program_register_dtype(r->p->program, how->reg);
  void *output = r->args->outputs[how->output];
  if (how->kind == MIX_REDUCE_TO_MEAN) sum /= (double)count;
  if (dtype == MIX_FLOAT32)
    ((float *)output)[index] = (float)sum;
  else
    mix_store_double(output, dtype, index, sum);
}

/* Each row in its own pieces and lanes, as in cpu/reduce.c. A thread has whole rows. */
void mix_tile_add_rows(const mix_tile_state *r, mix_tile_adder *a, const mix_program_sum *sum, const char *x,
                       const mix_tile_span *t) {
  const mix_tile_class class = mix_tile_class_of(mix_program_register_dtype(r->p->program, sum->reg));
  const int64_t length = sum->row, held = class == MIX_TILE_FLOAT ? 4 : 8;
  for (int64_t i = 0; i < t->n;) {
    const int64_t row = (t->flat + i) / length, at = (t->flat + i) % length, rest = length - at;
    if (!at && rest <= t->n - i && rest <= MIX_SUM_PIECE && held == 4) {
      store_sum(r, sum, row, r->p->vector->sum((const float *)(const void *)(x + i * held), rest), length);
      i += rest;
      continue;
    }
    const int64_t left = MIX_SUM_PIECE - at % MIX_SUM_PIECE, max = left < rest ? left : rest,
                  n = max < t->n - i ? max : t->n - i;
    add_to_piece(r, a, class, x + i * held, at, n, length);
    if (n == max) end_piece(r, a, class);
    if (n == rest) store_sum(r, sum, row, a->total, length);
    i += n;
  }
}

/* The program's one sum, of all elements or of rows. */
static mix_program_sum sum_of(const mix_program *program) {
  return (mix_program_sum){.kind = program->reduction,
                           .reg = program->reduced,
                           .output = program->reduction_output,
                           .row = program->row};
}

void mix_tile_reduce(mix_tile_state *r, const mix_tile_span *t) {
  const mix_tile_program *p = r->p;
  const char *x = r->at[p->reduced];
  const bool real = p->reduced_class == MIX_TILE_FLOAT || p->reduced_class == MIX_TILE_DOUBLE;
  if (p->program->reduction == MIX_REDUCE_ALL_FINITE && p->reduced_class == MIX_TILE_FLOAT) {
    r->finite = r->finite && p->vector->all_finite((const float *)(const void *)x, t->n);
  } else if (p->program->reduction == MIX_REDUCE_ALL_FINITE) {
    for (int64_t i = 0; i < t->n && p->reduced_class == MIX_TILE_DOUBLE; i++)
      r->finite = r->finite && isfinite(((const double *)(const void *)x)[i]);
  } else if (real && p->program->row) {
    const mix_program_sum sum = sum_of(p->program);
    mix_tile_add_rows(r, &r->adder, &sum, x, t);
  } else if (real) {
    const int64_t held = p->reduced_class == MIX_TILE_FLOAT ? 4 : 8;
    for (int64_t i = 0; i < t->n;) {
      const int64_t flat = t->flat + i, left = MIX_SUM_PIECE - flat % MIX_SUM_PIECE,
                    n = left < t->n - i ? left : t->n - i;
      add_to_piece(r, &r->adder, p->reduced_class, x + i * held, flat, n, p->count);
      if (n == left) end_piece(r, &r->adder, p->reduced_class);
      i += n;
    }
  } else if (p->reduced_class == MIX_TILE_INTEGER) {
    for (int64_t i = 0; i < t->n; i++) r->integer_sum += (uint64_t)((const int64_t *)(const void *)x)[i];
  } else {
    for (int64_t i = 0; i < t->n; i++) r->integer_sum += ((const uint32_t *)(const void *)x)[i];
  }
}

typedef struct partial {
  uint64_t integer_sum;
  bool finite;
} partial;

/* Adds the sums of the pieces in order, in double. */
static void finish_sum(const mix_tile_state *r) {
  const double *pieces = r->adder.pieces;
  const int64_t count = pieces ? (r->p->count + MIX_SUM_PIECE - 1) / MIX_SUM_PIECE : 0;
  double sum = count ? pieces[0] : r->adder.total;
  for (int64_t i = 1; i < count; i++) sum += pieces[i];
  const mix_program_sum how = sum_of(r->p->program);
  store_sum(r, &how, 0, sum, r->p->count);
}

void mix_tile_finish_reduction(mix_tile_state *r, const mix_team *team) {
  const mix_program *program = r->p->program;
  if (program->reduction == MIX_REDUCE_NOTHING || program->row) return;
  const mix_dtype dtype = mix_program_register_dtype(program, program->reduced);
  void *output = r->args->outputs[program->reduction_output];
  char *partials = (char *)r->args->workspace + mix_tile_pieces_bytes(r->p);
  partial all = {r->integer_sum, r->finite};
  end_piece(r, &r->adder, r->p->reduced_class);
  if (team->size > 1) {
    *(partial *)(void *)(partials + team->rank * MIX_TILE_REDUCTION_BYTES) = all;
    if (!mix_team_last(team, r->p->come)) return;
    all = (partial){0, true};
    for (int i = 0; i < team->size; i++) {
      const partial *one = (const partial *)(const void *)(partials + i * MIX_TILE_REDUCTION_BYTES);
      all.integer_sum += one->integer_sum;
      all.finite = all.finite && one->finite;
    }
  }
  if (program->reduction == MIX_REDUCE_ALL_FINITE)
    *(uint8_t *)output = all.finite;
  else if (mix_dtype_is_floating(dtype))
    finish_sum(r);
  else
    mix_store_integer(output, dtype, 0, (int64_t)all.integer_sum);
}

size_t mix_tile_pieces_bytes(const mix_tile_program *p) {
  const size_t pieces = (size_t)((p->count + MIX_SUM_PIECE - 1) / MIX_SUM_PIECE);
  return mix_tile_sums(p->program) && !p->program->row ? mix_buffer_aligned(pieces * sizeof(double)) : 0;
}
