/* A prepared program: what tile.c makes and tile_run.c executes. */
#ifndef MIX_BACKEND_CPU_PROGRAM_PREPARED_PROGRAM_H
#define MIX_BACKEND_CPU_PROGRAM_PREPARED_PROGRAM_H

#include "backend/cpu/program/prepare.h"
#include "backend/cpu/simd/vector_functions.h"

enum {
  MIX_TILE_ELEMENTS = 512,     /* a tile; also the grain of the threads' shares, the same for every program */
  MIX_TILE_MEMORY = 24 * 1024, /* a thread's tiles and uniform values: half of a first-level cache of 48 KiB */
  MIX_TILE_REGISTERS = 128,
  MIX_TILE_STORES = 32,
  MIX_TILE_PREFETCH = 16,           /* operands that are fetched prefetch */
  MIX_TILE_STREAMED = 32,        /* numbers of 16 bits in a line of memory */
  MIX_TILE_REDUCTION_BYTES = 64, /* workspace of each thread */
};

/* How a load sees the iteration space. */
typedef enum mix_tile_access {
  MIX_TILE_UNIFORM,     /* one value: loaded once for each run and thread */
  MIX_TILE_CONTIGUOUS,  /* element i of the space is element i of the operand */
  MIX_TILE_PERIODIC,    /* the same for every row: a bias */
  MIX_TILE_GENERAL,     /* any strides */
  MIX_TILE_ACCUMULATOR, /* the raw result of a product */
} mix_tile_access;

typedef struct mix_tile_load {
  mix_tile_access access;
  int input, reg;
  mix_tile_load_function load;
  mix_tile_function round; /* of an accumulator, to the load's dtype; NULL: none */
  size_t element, held;    /* bytes of an element in memory and in a tile */
  int64_t strides[MIX_MAX_RANK];
  bool used, direct; /* direct: memory has the form of a tile and is used in place */
  bool stored;       /* as it is, behind another store, which may write to its memory */
  bool fetched;      /* by the chain that reads it, where it is used in place */
  int last_use;      /* the last step that reads it; INT_MAX: a store or the reduction */
} mix_tile_load;

/* One of: an instruction (or a superinstruction of two, or a rounding), a chain, a load. */
typedef struct mix_tile_step {
  mix_tile_function function;
  const mix_fused_chain *chain;
  double immediate;
  bool by_packets; /* takes how many elements of the tile belong to whole packets of eight of the space, not the immediate */
  int operand_count, operands[MIX_CHAIN_OPERANDS], steps[3];
  int result, others[MIX_CHAIN_RESULTS - 1]; /* others: a chain's results but the last one */
  int load;                                  /* -1: none */
  int held;                                  /* bytes of an element of the result */
} mix_tile_step;

/* Does the step compute that register? */
static inline bool mix_tile_computes(const mix_tile_step *step, int reg) {
  bool does = step->load < 0 && step->result == reg;
  for (int i = 0; step->chain && i < step->chain->result_count - 1; i++) does = does || step->others[i] == reg;
  return does;
}

typedef struct mix_tile_store {
  int output, reg, defined_by;           /* defined_by: the step that may write to memory at once; -1: none */
  mix_tile_store_function store, stream; /* stream: past the caches; NULL: not worth it */
  size_t element, held;
} mix_tile_store;

struct mix_tile_program {
  const mix_vector *vector;
  const mix_program *program;
  int rank; /* the space, dimensions of 1 dropped and others merged where every load allows */
  int64_t dims[MIX_MAX_RANK];
  int64_t count, inner, rows; /* count = rows * inner */
  bool streams;               /* too large for the second-level cache */
  bool flat;                  /* loads are contiguous, uniform or accumulators: the space is one row */
  int tile;                   /* elements of a tile, at most MIX_TILE_ELEMENTS */
  size_t memory;              /* bytes in use of MIX_TILE_MEMORY */
  int register_count, load_count, preamble_count, body_count, store_count;
  int accumulator_element; /* bytes of the product's raw result: 4, or 8 where the product is float64 */
  int64_t cost;            /* of a run, in simple instructions on one element */
  int reduced;             /* register; its class */
  mix_tile_class reduced_class;
  /* Of a program that only tests numbers stored in 16 bits, times a factor: their loads (mix_program_only_tests); tested -1: another. */
  int tested, factor;
  atomic_int *come;             /* threads that have come to the end of the reduction */
  int home[MIX_TILE_REGISTERS]; /* offset of each register in the thread's memory; -1: none */
  mix_tile_store stores[MIX_TILE_STORES];
  mix_tile_load *loads;
  mix_tile_step *preamble, *body; /* on uniform values, once; on each tile */
};

mix_tile_program *mix_tile_prepare_for(const mix_program *program, const mix_vector *vector);
/* Sums are those of reduce.c: pieces of so many elements, added in so many lanes, the pieces in double. */
enum { MIX_SUM_PIECE = 4096, MIX_SUM_LANES = 32 };
/* The whole program, as a member of the team, without a barrier. `workspace` holds mix_tile_pieces_bytes and
 * MIX_TILE_REDUCTION_BYTES for each thread where there is a reduction. */
size_t mix_tile_pieces_bytes(const mix_tile_program *prepared);
void mix_tile_run(const mix_tile_program *prepared, const mix_kernel_args *args, const mix_team *team);
/* How the team shares the elements; false: not as mix_team_share(count, grain) of the flat space. */
bool mix_tile_share(const mix_tile_program *prepared, int64_t *count, int64_t *grain);

#endif
