/* A prepared program: the form that prepare.c makes and run.c executes. It has a preamble of steps that
 * compute the uniform values, a body of steps that run once for each tile, and the stores. A step reads
 * and writes registers; each register has a fixed place in the memory of the thread, but a load or a store
 * may also use the memory of its operand in place. */
#pragma once

#include "backend/cpu/program/prepare.h"
#include "backend/cpu/simd/vector_functions.h"

enum {
  MIX_TILE_ELEMENTS = 512,     /* max elements of a tile; in every program the grain of the threads' shares */
  MIX_TILE_CAST = 4096,        /* max elements of a tile of a program that only casts */
  MIX_TILE_MEMORY = 24 * 1024, /* tiles and uniform values of a thread: half a first-level cache of 48 KiB */
  MIX_TILE_REGISTERS = 128,
  MIX_TILE_STORES = 32,
  MIX_TILE_PREFETCH = 16,        /* max operands and results that are prefetched */
  MIX_TILE_STREAMED = 32,        /* 16-bit numbers in a cache line */
  MIX_TILE_REDUCTION_BYTES = 64, /* workspace of each thread */
};

/* The access pattern of a load over the iteration space. */
typedef enum mix_tile_access {
  MIX_TILE_UNIFORM,     /* one value for all elements: loaded once for each run and thread */
  MIX_TILE_CONTIGUOUS,  /* element i of the space is element i of the operand */
  MIX_TILE_PERIODIC,    /* the same for every row: a bias */
  MIX_TILE_GENERAL,     /* any strides */
  MIX_TILE_ACCUMULATOR, /* the raw result of a product */
} mix_tile_access;

typedef struct mix_tile_load {
  mix_tile_access access;
  int input, reg; /* operand of the step; register of the program */
  mix_tile_load_function load;
  mix_tile_function round; /* of an accumulator, to the dtype of the load; NULL: none */
  size_t element, held;    /* bytes of an element in memory and in a tile */
  int64_t strides[MIX_MAX_RANK];
  int64_t offset;    /* bytes */
  bool used, direct; /* direct: memory has the layout of a tile and can be used in place */
  bool stored;       /* stored unchanged by a store other than the first; an earlier store may overwrite it */
  bool fetched;      /* prefetched by the fused chain that reads it, if it is used in place */
  int last_use;      /* the last body step that reads it; INT_MAX: a store or the reduction */
} mix_tile_load;

/* One of three: a function (an instruction, a superinstruction or a rounding), a fused chain, or a load. */
typedef struct mix_tile_step {
  mix_tile_function function;
  const mix_fused_chain *chain;
  double immediate;
  /* The function takes, instead of the immediate, the number of elements of the tile that belong to whole
   * SIMD packets of eight of the space. */
  bool by_packets;
  bool draws; /* the function takes, as its operand 3, the place of the tile's first element in the space */
  int operand_count, operands[MIX_CHAIN_OPERANDS], steps[3]; /* steps[k] 1: operand k is a tile; 0: uniform */
  int result, others[MIX_CHAIN_RESULTS - 1];                 /* others: all results of a chain but the last */
  int load;                                                  /* index of the load; -1: none */
  int held;                                                  /* bytes of the result; set in the preamble */
} mix_tile_step;

/* Does the step compute this register? */
static inline bool mix_tile_computes(const mix_tile_step *step, int reg) {
  bool does = step->load < 0 && step->result == reg;
  for (int i = 0; step->chain && i < step->chain->result_count - 1; i++)
    does = does || step->others[i] == reg;
  return does;
}

typedef struct mix_tile_store {
  int output, reg, defined_by; /* defined_by: the body step that may write its result to memory; -1: none */
  mix_tile_store_function store, stream; /* stream: past the caches; NULL: the output is too small for that */
  size_t element, held;                  /* bytes of an element in memory and in a tile */
} mix_tile_store;

/* The loads of an epilogue that normalizes (normalized_rows.c). */
typedef struct mix_tile_normalization {
  int mean, scale, offset; /* mean -1: it does something else */
  int added;               /* -1: none */
  mix_dtype dtype;         /* of the result */
  float least, most;       /* of a result: ReLU, ReLU6; else infinite */
} mix_tile_normalization;

/* The chains of all columns of a program that ends in sums of columns (run_sums.c). In the workspace each has
 * `width` sums, in the order of the chains. */
typedef struct mix_tile_chains {
  int64_t columns, rows, group, block; /* of a line and of a block, in rows; columns 0: no such sums */
  int64_t lines;                       /* max of a chain */
  size_t at[MIX_PROGRAM_SUMS + 1];     /* where the sums of each begin, and the end */
} mix_tile_chains;

struct mix_tile_program {
  const mix_vector *vector;
  const mix_program *program;
  int rank; /* of the space, without dimensions of 1, and with dimensions merged where every load allows it */
  int64_t dims[MIX_MAX_RANK];
  int64_t count, inner, rows; /* elements; elements of a row; count = rows * inner */
  bool streams;               /* too large for the second-level cache */
  bool flat;                  /* all loads are contiguous, uniform or accumulators: the space is one row */
  int tile;                   /* elements of a tile */
  size_t memory;              /* bytes in use of MIX_TILE_MEMORY */
  int register_count, load_count, preamble_count, body_count, store_count;
  int accumulator_element; /* bytes of an element of a product's raw result: 4; 8 for a float64 product */
  int64_t cost;            /* of a run, in simple instructions on one element */
  int reduced;             /* the register that is reduced; -1: none */
  mix_tile_class reduced_class;
  int summed[MIX_PROGRAM_SUMS]; /* the registers of the program's sums */
  mix_tile_chains chains;
  /* If the program only tests 16-bit numbers, times a factor: their loads (mix_program_only_tests). tested
   * -1: it does more. factor -1: no factor. */
  int tested, factor;
  /* If the program only adds a bias to a product's result, perhaps with ReLU: the bias's load; else -1. */
  int bias;
  bool relu;
  mix_tile_normalization normalization;
  atomic_int *come;             /* threads that have arrived at the end of the reduction */
  int home[MIX_TILE_REGISTERS]; /* offset of each register in the memory of the thread; -1: none */
  mix_tile_store stores[MIX_TILE_STORES];
  mix_tile_load *loads;
  mix_tile_step *preamble, *body;
};

/* normalized_rows.c: finds such an epilogue, and runs it on a block of a product's result. */
void mix_tile_find_normalization(mix_tile_program *prepared);
void mix_tile_store_normalized(const mix_tile_program *prepared, const mix_kernel_args *args,
                               const float *sums, int64_t stride, int64_t row, int64_t rows, int64_t column,
                               int64_t columns);
mix_tile_program *mix_tile_prepare_for(const mix_program *program, const mix_vector *vector);
/* Sums have the order of cpu/reduce.c: pieces of MIX_SUM_PIECE elements, added in MIX_SUM_LANES lanes; the
 * sums of the pieces are added in double. */
enum { MIX_SUM_PIECE = 4096, MIX_SUM_LANES = 32 };
/* Workspace bytes for the sums of the pieces. */
size_t mix_tile_pieces_bytes(const mix_tile_program *prepared);
/* run_sums.c: sets `chains`. */
void mix_tile_find_chains(mix_tile_program *prepared);
/* Workspace bytes for the program's sums of columns. */
size_t mix_tile_sums_bytes(const mix_tile_program *prepared);
/* Runs this thread's share of the whole program, without a barrier. If there is a reduction,
 * args->workspace has mix_tile_pieces_bytes, then MIX_TILE_REDUCTION_BYTES for each thread. */
void mix_tile_run(const mix_tile_program *prepared, const mix_kernel_args *args, const mix_team *team);
/* The same for a program that ends in several sums, or in sums of columns, for which args->workspace has
 * mix_tile_sums_bytes; a team meets at a barrier before these end (run_sums.c). */
void mix_tile_run_sums(const mix_tile_program *prepared, const mix_kernel_args *args, const mix_team *team);
/* Bands of rows, as in mix_kernel: run_bands.c. */
bool mix_tile_bands(const mix_tile_program *prepared, const mix_kernel_args *args, int threads, int64_t rows,
                    mix_band_access *access);
void mix_tile_run_band(const mix_tile_program *prepared, const mix_kernel_args *args, const mix_band *band);
/* run_sums.c */
bool mix_tile_band_share(const mix_tile_program *prepared, const mix_team *team, int64_t *begin,
                         int64_t *end);
void mix_tile_end_bands(const mix_tile_program *prepared, const mix_kernel_args *args, const mix_team *team);
/* The share of the threads, as mix_kernel.share. False: it is not mix_team_share(count, grain) of the flat
 * space. */
bool mix_tile_share(const mix_tile_program *prepared, int64_t *count, int64_t *grain);
