/* Reductions of adjacent axes, seen as (outer, length, inner) -> (outer, inner), and of two runs of axes, of
 * which the second is short and last: (outer, length, inner / tail, tail) -> (outer, inner / tail). */
#pragma once

#include "backend/cpu/simd/vector_functions.h"
#include "backend/host/kernel.h"
#include "tensor/convert.h"

enum { MIX_REDUCE_TAIL = 512 }; /* elements of a tail, at most */

typedef struct mix_reduction {
  mix_opcode fold; /* ADD, MAXIMUM, MINIMUM */
  bool mean;
  mix_dtype dtype;
  mix_tile_class class; /* of the dtype: the type of the accumulator */
  int64_t outer, length, inner, tail;
} mix_reduction;

/* An accumulator: double for floating dtypes, int64 for integers. */
typedef union mix_folded {
  double real;
  int64_t integer;
} mix_folded;

static inline mix_folded mix_fold(const mix_reduction *r, mix_folded a, mix_folded b) {
  if (r->class == MIX_TILE_INTEGER) {
    if (r->fold == MIX_OPCODE_ADD)
      return (mix_folded){.integer = (int64_t)((uint64_t)a.integer + (uint64_t)b.integer)};
    return (r->fold == MIX_OPCODE_MAXIMUM) == (a.integer > b.integer) ? a : b;
  }
  if (r->fold == MIX_OPCODE_ADD) return (mix_folded){.real = a.real + b.real};
  if (a.real != a.real) return a;
  return (r->fold == MIX_OPCODE_MAXIMUM ? a.real > b.real : a.real < b.real) ? a : b;
}
/* Stores element `index` of the result. */
static inline void mix_reduction_store(const mix_reduction *r, void *result, int64_t index,
                                       mix_folded value) {
  if (r->class == MIX_TILE_INTEGER)
    mix_store_integer(result, r->dtype, index,
                      r->mean ? value.integer / (r->length * r->tail) : value.integer);
  else if (r->dtype == MIX_FLOAT32)
    ((float *)result)[index] = (float)(r->mean ? value.real / (double)(r->length * r->tail) : value.real);
  else
    mix_store_double(result, r->dtype, index,
                     r->mean ? value.real / (double)(r->length * r->tail) : value.real);
}

/* inner > 1: reductions of columns. The order of each sum does not depend on the number of threads. */
void mix_reduce_columns(const mix_reduction *r, const mix_vector *vector, const void *source, void *result,
                        void *workspace, const mix_team *team);
size_t mix_reduce_columns_workspace(const mix_reduction *r);
/* Does it use a barrier on a team? */
bool mix_reduce_columns_meets(const mix_reduction *r);
