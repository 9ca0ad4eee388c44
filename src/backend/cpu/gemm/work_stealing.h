/* Tiles and work stealing: which thread computes which part of C. Each thread has a share of C, one block of
 * the plan's grid, and takes it tile by tile. In a large product a thread that has finished its own share
 * steals tiles from the end of another's, because cores are seldom equally fast (a core may have other work,
 * share its units with another virtual machine, or be of a slower kind) and all threads wait for the last.
 *
 * Small tiles cost more, since each packs something again. They are used in the first run, and where the
 * speeds of the threads differed in the run before.
 *
 * Tiles say which elements of C are computed together, not how one is summed: bits do not depend on who
 * computes what. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct mix_gemm_plan;

/* Of C, [row, row_end) and [column, column_end), in the engine's units: rows and columns, or panels. */
typedef struct mix_gemm_tile {
  int64_t row, row_end, column, column_end;
} mix_gemm_tile;

/* One direction of C. */
typedef struct mix_gemm_extent {
  int64_t count; /* units */
  int64_t unit;  /* rows or columns of C in each, but for the last */
  int64_t grain; /* shares are multiples of it */
  int64_t max;   /* of a tile */
  int64_t min;   /* of a tile that is stolen, about: tiles are even, but for the last of a share */
} mix_gemm_extent;

/* How shares are cut. Tiles follow each other in one direction (along), block after block of the other one
 * (across). A tile is some chunks of one block. */
typedef struct mix_gemm_tiles {
  mix_gemm_extent rows, columns;
  bool by_columns; /* along columns; else along rows */
  bool steal;      /* enough work for threads to steal from each other */
  int64_t chunk, max_chunks;
} mix_gemm_tiles;

/* One thread's share: the chunks [first, end) that nobody has taken, in one number; what it did in its last
 * run, in elements of C and ticks of the processor. Fills a cache line, because other threads write it. */
typedef struct mix_gemm_steal_range {
  atomic_uint_least64_t left;
  int64_t done;
  uint64_t ticks;
  char padding[64 - 3 * sizeof(uint64_t)];
} mix_gemm_steal_range;

typedef struct mix_gemm_stealing {
  bool fine; /* threads take at most half of what is left, so that none finishes late with a large tile */
  char padding[63];
  mix_gemm_steal_range each[]; /* thread */
} mix_gemm_stealing;

/* A thread at work. */
typedef struct mix_gemm_work {
  const struct mix_gemm_plan *plan;
  mix_gemm_stealing *stealing; /* NULL: no stealing */
  mix_gemm_tile share;         /* its own */
  mix_gemm_steal_range own;    /* without stealing */
  int rank;
  int64_t done; /* elements of C */
  uint64_t begun;
} mix_gemm_work;

/* Is a product large enough for work stealing? */
bool mix_gemm_repays_stealing(const struct mix_gemm_plan *plan);
/* Cuts the shares of the plan's grid into tiles. `max` of an extent may become smaller, so that tiles are
 * even. */
void mix_gemm_cut(struct mix_gemm_plan *plan, mix_gemm_extent rows, mix_gemm_extent columns, bool by_columns);
/* For the threads of a plan, reset; NULL with the error recorded. Freed with mix_free. */
mix_gemm_stealing *mix_gemm_new_stealing(const struct mix_gemm_plan *plan);
/* Gives each thread its share back. Called after a run, by the thread that finishes last. */
void mix_gemm_reset_stealing(const struct mix_gemm_plan *plan, mix_gemm_stealing *stealing);
/* `stealing`: NULL, or reset. */
void mix_gemm_begin(mix_gemm_work *work, const struct mix_gemm_plan *plan, mix_gemm_stealing *stealing,
                    int rank);
/* The thread's next tile; false: all are taken. */
bool mix_gemm_next_tile(mix_gemm_work *work, mix_gemm_tile *tile);
/* The thread has computed all its tiles. */
void mix_gemm_end(mix_gemm_work *work);
