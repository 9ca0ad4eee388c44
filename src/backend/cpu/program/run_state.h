/* The state of one thread that runs a prepared program: shared by run.c, run_reduction.c and run_sums.c. */
#pragma once

#include "backend/cpu/program/prepared_program.h"

/* A sum that is being added up. Floats: `lanes`, and `rest`, the tail after the last whole group of lanes.
 * Doubles: wide_sum. */
typedef struct mix_tile_adder {
  _Alignas(64) float lanes[MIX_SUM_LANES], rest[MIX_SUM_LANES];
  double wide_sum;
  int64_t summed, piece; /* elements of the current piece so far; its index */
  double *pieces;        /* sums of the pieces; NULL: they are added to `total` in order */
  double total;
} mix_tile_adder;

/* The elements of a tile: `pieces` (parts of rows, or whole rows) of `length` elements. */
typedef struct mix_tile_span {
  int64_t row, column, flat; /* of the first element; flat: its index in the space */
  int64_t pieces, length, n; /* n = pieces * length */
  int64_t next;              /* elements of the space from this tile to the one to prefetch; 0: none */
  bool dense;                /* the pieces are contiguous in the space */
} mix_tile_span;

/* Lines of columns that are added one after another. */
typedef struct mix_tile_chain {
  int64_t begin, end, width; /* elements of the space; of a line */
  int64_t at;                /* the first of its sums */
} mix_tile_chain;

typedef struct mix_tile_state {
  const mix_tile_program *p;
  const mix_kernel_args *args;
  char *memory;                 /* MIX_TILE_MEMORY bytes: tiles and uniform values */
  void *at[MIX_TILE_REGISTERS]; /* current address of each register: in `memory`, an operand or a result */
  /* direct_store: the step that computes the value writes it to memory. prefetch_store: the output is
   * prefetched. */
  bool direct_store[MIX_TILE_STORES], prefetch_store[MIX_TILE_STORES];
  /* Memory that the next tile needs. It is prefetched a few cache lines at a time, between the steps of
   * this tile: the first-level cache tracks only a few outstanding lines, and more would stall the steps. */
  struct {
    const char *from;
    int64_t lines;
  } prefetch[MIX_TILE_PREFETCH];
  int prefetch_count, prefetch_at;
  int64_t prefetch_lines; /* after each step */
  /* Epilogues: the raw results, of rows from first_row and columns from first_column. */
  const char *accumulator;
  int64_t accumulator_stride, first_row, first_column;
  /* Elements of the current tile that belong to whole SIMD packets of eight of the space (more if all do). */
  double packets;
  int64_t pitch; /* stride of rows, in elements of the space */
  /* Epilogues: each row prefetches the row below, if that is before end_row. -1: each tile prefetches the
   * next. */
  int64_t end_row;
  bool expanded;          /* the tiles of periodic loads are already filled */
  bool overwrites;        /* `stored` loads are copied first: an earlier store overwrites their memory */
  bool streamed;          /* something was stored past the caches */
  uint64_t reread;        /* bit i is set if output i is not to be stored past the caches */
  const uint16_t *tested; /* numbers that the finite test reads as stored; NULL: tiles are computed */
  uint16_t infinity;      /* the bits of infinity in their dtype */
  bool finite;
  uint64_t integer_sum;
  mix_tile_adder adder;       /* of the reduction; its pieces are NULL on a team of one */
  mix_tile_chain chain;       /* the last one of sums of columns */
  mix_tile_adder *row_adders; /* by sum of the program: of the current row */
  /* Adds the values of a tile to all sums (run_sums.c); NULL: the program has none. */
  void (*add_to_sums)(struct mix_tile_state *r, const mix_tile_span *t);
} mix_tile_state;

/* Initialises the state, of which `memory` has MIX_TILE_MEMORY bytes, and runs the preamble. */
void mix_tile_start(mix_tile_state *r, const mix_tile_program *p, const mix_kernel_args *args, char *memory);
/* Runs elements [begin, end) of the space. */
void mix_tile_run_range(mix_tile_state *r, int64_t begin, int64_t end);
/* run_sums.c: runs elements [begin, end), whole rows, of a program that ends in several sums, or in sums of
 * columns; mix_tile_end_bands ends these. */
void mix_tile_run_sums_range(mix_tile_state *r, int64_t begin, int64_t end);
/* run_sums.c: can bands of so many rows be run by a team of `threads`? */
bool mix_tile_sums_by_bands(const mix_tile_program *p, int threads, int64_t rows);
/* Is the reduction a sum or a mean? */
static inline bool mix_tile_sums(const mix_program *program) {
  return program->reduction == MIX_REDUCE_TO_SUM || program->reduction == MIX_REDUCE_TO_MEAN;
}
/* run_reduction.c: adds values of a tile to the sums of rows, which it stores. */
void mix_tile_add_rows(const mix_tile_state *r, mix_tile_adder *adder, const mix_program_sum *sum,
                       const char *x, const mix_tile_span *t);
/* run_reduction.c: adds the values of a tile to the reduction. */
void mix_tile_reduce(mix_tile_state *r, const mix_tile_span *t);
/* run_reduction.c: the last thread of the team to call it stores the result. */
void mix_tile_finish_reduction(mix_tile_state *r, const mix_team *team);
