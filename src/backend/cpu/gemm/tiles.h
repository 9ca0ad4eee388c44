/* How the threads of a product come by their work. Each has a share of C, one block of the plan's grid, and takes it tile by tile. Where
 * tiles are claimed, a thread that is through with its own share takes tiles from the end of another's: cores are seldom equally fast
 * (one shares its units with another virtual machine or has other work to do, or is of a slower kind), and all threads wait for the last.
 * Small tiles cost more, for each packs something again: they are made in the first run, and while threads were unlike in the one before.
 *
 * Pieces say which elements of C are computed together, not how one is summed: the bits are the same whoever takes what. */
#ifndef MIX_BACKEND_CPU_GEMM_TILES_H
#define MIX_BACKEND_CPU_GEMM_TILES_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct mix_gemm_plan;

/* Of C, [row, row_end) and [column, column_end), in the engine's units: rows and columns, or panels of them. */
typedef struct mix_gemm_tile {
  int64_t row, row_end, column, column_end;
} mix_gemm_tile;

/* One direction of C. `unit`: rows or columns in one of what is counted, but for the last. */
typedef struct mix_gemm_extent {
  int64_t count, unit;
  int64_t grain; /* shares are multiples of it */
  int64_t most;  /* of a tile */
  int64_t least; /* of a tile that is claimed, about: tiles come out even, but for the last of a share */
} mix_gemm_extent;

/* How shares are cut. Pieces follow each other in one direction (along), block after block of the other one (across). A tile is some chunks
 * of one block. */
typedef struct mix_gemm_tiles {
  mix_gemm_extent rows, columns;
  bool by_columns; /* along is columns; else rows */
  bool claimed;    /* enough work that threads should take it from each other */
  int64_t chunk, max_chunks;
} mix_gemm_tiles;

/* Of a thread: chunks of its share that nobody has taken, [first, end) in one number; and what it did in its last run, in elements of C and
 * ticks of the processor. As large as a line of a cache, for each is written by another thread. */
typedef struct mix_gemm_steal_range {
  atomic_uint_least64_t left;
  int64_t done;
  uint64_t ticks;
  char apart[64 - 3 * sizeof(uint64_t)];
} mix_gemm_steal_range;

typedef struct mix_gemm_stealing {
  bool fine; /* threads take half of what is left at most, so that none comes late with a large tile */
  char apart[63];
  mix_gemm_steal_range each[]; /* thread */
} mix_gemm_stealing;

/* A thread at work. */
typedef struct mix_gemm_work {
  const struct mix_gemm_plan *plan;
  mix_gemm_stealing *stealing; /* NULL: nothing is claimed */
  mix_gemm_tile share;    /* its own */
  mix_gemm_steal_range own;      /* where nothing is claimed */
  int rank;
  int64_t done; /* elements of C */
  uint64_t begun;
} mix_gemm_work;

/* Is a product so much work that it repays stealing? */
bool mix_gemm_repays_stealing(const struct mix_gemm_plan *plan);
/* Cuts the shares of the plan's grid. The most rows or columns of a tile may become fewer, so that tiles come out even. */
void mix_gemm_cut(struct mix_gemm_plan *plan, mix_gemm_extent rows, mix_gemm_extent columns, bool by_columns);
/* For the threads of a plan, shared out; NULL with the error recorded. Freed with mix_free. */
mix_gemm_stealing *mix_gemm_new_stealing(const struct mix_gemm_plan *plan);
/* Nobody has taken anything: after a run, by the thread that comes last. */
void mix_gemm_share_out(const struct mix_gemm_plan *plan, mix_gemm_stealing *stealing);
/* `stealing`: NULL, or shared out. */
void mix_gemm_begin(mix_gemm_work *work, const struct mix_gemm_plan *plan, mix_gemm_stealing *stealing, int rank);
/* The thread's next tile; false: all are taken. */
bool mix_gemm_next_tile(mix_gemm_work *work, mix_gemm_tile *tile);
/* The thread has computed all its tiles. */
void mix_gemm_end(mix_gemm_work *work);

#endif
