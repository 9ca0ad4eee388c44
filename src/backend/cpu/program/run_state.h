/* A program while it runs: shared by the executor (tile_run.c) and its reductions (tile_reduce.c). */
#ifndef MIX_BACKEND_CPU_PROGRAM_RUN_STATE_H
#define MIX_BACKEND_CPU_PROGRAM_RUN_STATE_H

#include "backend/cpu/program/prepared_program.h"

typedef struct mix_tile_state {
  const mix_tile_program *p;
  const mix_kernel_args *args;
  char *memory;
  void *at[MIX_TILE_REGISTERS]; /* where each register is now */
  bool direct_store[MIX_TILE_STORES], prefetch_store[MIX_TILE_STORES];
  /* Memory that a later tile needs, fetched a few lines at a time between the steps of this one: more lines at once than the first-level
   * cache can wait for would hold up all that follows. */
  struct {
    const char *from;
    int64_t lines;
  } prefetch[MIX_TILE_PREFETCH];
  int prefetch_count, prefetch_at;
  int64_t prefetch_lines; /* after each step */
  /* Epilogues: the raw results of block rows from first_row, columns from first_column. */
  const char *accumulator;
  int64_t accumulator_stride, first_row, first_column;
  double packets;         /* of the tile at hand: elements before the end of the space's last whole packet of eight */
  int64_t pitch;          /* elements of the space from one row to the next */
  int64_t end_row;        /* of rows that look prefetch to the one below; -1: tiles look prefetch to the next one */
  bool expanded;          /* periodic loads fill whole tiles already */
  bool overwrites;        /* what is stored as it was loaded has to be saved from the stores before */
  bool streamed;          /* something was stored past the caches */
  const uint16_t *tested; /* numbers to be tested as they are stored; NULL: tiles are computed */
  uint16_t infinity;
  bool finite;
  uint64_t integer_sum;
  /* A sum: the piece at hand, in lanes and the elements behind the last whole group, or in one number, and how many elements it has so
   * far. */
  _Alignas(64) float lanes[MIX_SUM_LANES], rest[MIX_SUM_LANES];
  double wide_sum;
  int64_t summed, piece;
  double *pieces; /* where each piece's sum goes; NULL on a team of one, which adds them up as they come */
  double total;
} mix_tile_state;

typedef struct mix_tile_span {
  int64_t row, column, flat; /* of the first element */
  int64_t pieces, length, n; /* n = pieces * length */
  int64_t next;              /* elements of the space to the first one of the next tile */
  bool dense;                /* the pieces follow each other in the space without a gap */
} mix_tile_span;

/* tile_reduce.c: is the reduction a sum or a mean? */
static inline bool mix_tile_sums(const mix_program *program) {
  return program->reduction == MIX_REDUCE_TO_SUM || program->reduction == MIX_REDUCE_TO_MEAN;
}
/* Adds a tile's values to the reduction. */
void mix_tile_reduce(mix_tile_state *r, const mix_tile_span *t);
/* Stores the result, once each thread of the team has come here. */
void mix_tile_finish_reduction(mix_tile_state *r, const mix_team *team);

#endif
