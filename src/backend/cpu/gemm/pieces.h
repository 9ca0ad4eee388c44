/* How the threads of a product come by their work. Each has a share of C, one block of the plan's grid, and takes it piece by piece. Where
 * pieces are claimed, a thread that is through with its own share takes pieces from the end of another's: cores are seldom equally fast
 * (one shares its units with another virtual machine, or is of a slower kind), and all threads wait for the last.
 *
 * Pieces say which elements of C are computed together, not how one is summed: the bits are the same whoever takes what. */
#ifndef MIX_BACKEND_CPU_GEMM_PIECES_H
#define MIX_BACKEND_CPU_GEMM_PIECES_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct mix_gemm_plan;

/* Of C, [row, row_end) and [column, column_end), in the engine's units: rows and columns, or panels of them. */
typedef struct mix_gemm_piece {
  int64_t row, row_end, column, column_end;
} mix_gemm_piece;

/* One direction of C. */
typedef struct mix_gemm_extent {
  int64_t count, grain; /* shares are multiples of the grain */
  int64_t most;         /* of a piece */
  int64_t least;        /* of a piece that is claimed, where there are as many */
} mix_gemm_extent;

/* How shares are cut. Pieces follow each other in one direction (along), block after block of the other one (across). A piece is some cells
 * of one block. */
typedef struct mix_gemm_pieces {
  mix_gemm_extent rows, columns;
  bool by_columns; /* along is columns; else rows */
  bool claimed;    /* enough work that threads should take it from each other */
  int64_t cell, most_cells;
} mix_gemm_pieces;

/* Cells of a thread's share that nobody has taken: [first, end), in one number. A line of a cache each. */
typedef struct mix_gemm_claim {
  atomic_uint_least64_t left;
  char apart[64 - sizeof(atomic_uint_least64_t)];
} mix_gemm_claim;

/* A thread at work. */
typedef struct mix_gemm_work {
  const struct mix_gemm_plan *plan;
  mix_gemm_claim *claims; /* of all threads; NULL: nothing is claimed */
  mix_gemm_claim own;
  int rank;
} mix_gemm_work;

/* Is a product so much work that it repays claims? */
bool mix_gemm_repays_claims(const struct mix_gemm_plan *plan);
/* Cuts the shares of the plan's grid. The most rows or columns of a piece may become fewer, so that pieces come out even. `repeats`: each
 * piece packs again what the pieces of its block have in common, so that few are not worth claiming. */
void mix_gemm_cut(struct mix_gemm_plan *plan, mix_gemm_extent rows, mix_gemm_extent columns, bool by_columns, bool repeats);
/* Nobody has taken anything: of `plan->threads` threads. Before the first run, and after each, by the thread that comes last. */
void mix_gemm_share_out(const struct mix_gemm_plan *plan, mix_gemm_claim *claims);
/* `claims`: NULL, or shared out. */
void mix_gemm_begin(mix_gemm_work *work, const struct mix_gemm_plan *plan, mix_gemm_claim *claims, int rank);
/* The thread's next piece; false: all are taken. */
bool mix_gemm_next_piece(mix_gemm_work *work, mix_gemm_piece *piece);

#endif
