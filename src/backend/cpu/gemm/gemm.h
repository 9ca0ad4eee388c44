/* Matrix products on the CPU, C (m, n) = op(A) (m, k) * op(B) (k, n), row-major.
 *
 * An engine is what one instruction set description: micro-kernels that multiply one tile of C, and for each storage dtype the
 * functions that pack operands (widening them to what the micro-kernels read). A plan is how one product is done with an engine:
 * which operands are read in place, the blocking, the share of each thread. A driver (driver.c; tiles and float16 sums have
 * their own) runs it: for each piece of C and each block of k, pack a block of B (it stays in the second-level cache), then for
 * each panel of rows pack A (it stays in the first) and multiply it with all panels of B.
 *
 * The sum of an element of C runs over k in order inside blocks of k, and over the blocks (or halves of k) in order; these depend
 * on the shape and the engine alone. So the bits do not depend on the number of threads, nor on what is packed. */
#ifndef MIX_BACKEND_CPU_GEMM_GEMM_H
#define MIX_BACKEND_CPU_GEMM_GEMM_H

#include "backend/cpu/gemm/tiles.h"
#include "backend/cpu/program/prepare.h"
#include "backend/host/kernel.h"

/* What a micro-kernel does with its tile. */
typedef enum mix_gemm_store {
  MIX_GEMM_WRITE,
  MIX_GEMM_ADD,    /* C += tile: a later block of k */
  MIX_GEMM_STREAM, /* past the caches; C aligned to vectors, tile of full width */
} mix_gemm_store;

/* One tile: C (rows, columns) (+)= A (rows, depth) * B (depth, columns); rows is the function's own, columns at most the engine's.
 * By layout, element (i, k) of A is a[i * a_stride + k] or a[k * a_stride + i]; element (k, j) of B is b[k * b_stride + j].
 * `ahead` is memory that is packed next: the fastest micro-kernels ask for an address each MIX_GEMM_K_UNROLL steps of k, prefetch_step bytes
 * apart; anything in a cache where nothing is wanted. (Two arguments: a struct of both travels through memory, and its load waits for
 * the stores of the tile before, 160 cycles.) */
typedef void mix_gemm_micro(int64_t depth, const void *a, int64_t a_stride, const void *b, int64_t b_stride, void *c,
                            int64_t c_stride, int columns, mix_gemm_store store, const char *prefetch, int64_t prefetch_step);
enum { MIX_GEMM_K_UNROLL = 4 };

/* Of products with few columns (small_n.c): rows finished at once, and elements from one row of their sums to the next. */
enum { MIX_GEMM_SMALL_N_ROWS = 64, MIX_GEMM_SMALL_N_STRIDE = 16 };

enum { MIX_GEMM_ROWS, MIX_GEMM_COLUMNS }; /* layouts of A: along k, along rows (A transposed in memory) */

/* How an engine serves one storage dtype. Strides in elements; a source is at `source`, already offset to the block. */
typedef struct mix_gemm_storage {
  mix_dtype dtype;
  bool in_place; /* storage is what the micro-kernels read, so that packing may be left out */
  /* A panel of `rows` rows, of source[i * stride + k] (rows) or source[k * stride + i] (columns), to the engine's a_stride. */
  void (*pack_a[2])(const void *source, int64_t stride, int rows, int64_t depth, void *packed, int64_t packed_stride);
  /* A panel of source[i * stride + k] as of one along rows: packed[k * packed_stride + i]. NULL: none. */
  void (*pack_a_transposed)(const void *source, int64_t stride, int rows, int64_t depth, void *packed, int64_t packed_stride);
  /* `columns` columns into panels of the engine's width, each (depth, width), `panel` elements apart; ragged panels padded with
   * zeros. [0]: source[k * stride + j]; [1]: source[j * stride + k]. */
  void (*pack_b[2])(const void *source, int64_t stride, int64_t depth, int64_t columns, void *packed, int64_t panel);
  /* For A along k: micro-kernels that read B as it is stored and widen it in registers, [rows - 1]; NULL: none. */
  mix_gemm_micro *const *micro;
  /* Few columns: out[r * MIX_GEMM_SMALL_N_STRIDE + j] = sum over k of source[r * stride + k] * b[j * b_stride + k] for r < small_n_rows, j <
   * columns (at most small_n_columns of the engine; the rest of a row is overwritten); b widened, zeros up to a whole vector. k may come in
   * tiles, of whole vectors but for the last: `lanes` (a vector for each r and j) keeps the sums of each lane; not `first`: they are in
   * there; `out` NULL: they are left there. Two functions: small_n_rows rows, one row. NULL: none. */
  void (*small_n[2])(int64_t depth, const void *source, int64_t stride, const void *b, int64_t b_stride, int columns, void *lanes,
                 bool first, void *out);
  /* Few rows: sums[i * sums_stride + j] = sum over k, in order, of a[i * a_stride + k] * source[k * stride + j] for i < rows, j <
   * columns; a widened; `fetch`: rows of source are fetched ahead. With `spare`, as large as sums, they are summed there and then
   * added to sums. Whole tiles' widths are written. */
  void (*small_m)(int64_t rows, int64_t depth, const void *a, int64_t a_stride, const void *source, int64_t stride, int64_t columns,
                bool fetch, void *sums, int64_t sums_stride, void *spare);
} mix_gemm_storage;

typedef struct mix_gemm_problem mix_gemm_problem;
typedef struct mix_gemm_plan mix_gemm_plan;
typedef struct mix_gemm_operands mix_gemm_operands;

typedef struct mix_gemm_engine {
  int rows, columns;                            /* of a full tile */
  int lanes;                                    /* columns in a vector */
  bool ragged_in_place;                         /* micro-kernels read no column of B beyond `columns` */
  size_t element;                               /* bytes of what micro-kernels read */
  size_t sum;                                   /* bytes of an element of the sums */
  int64_t kc, mc, nc; /* the largest blocks */
  int small_n_rows, small_n_columns;
  int chains, chain;                   /* blocked accumulation: chains of so many products in float16; 0: exact */
  mix_gemm_micro *const *micro[2];     /* [layout][rows - 1] */
  bool keeps;                          /* knows what to do with kept_b */
  void (*enter)(void), (*leave)(void); /* around the work of a thread; NULL: nothing */
  const mix_gemm_storage *storages;    /* ended by MIX_DTYPE_NONE */
  /* An engine may bring its own plan and driver, called by mix_gemm_make_plan and, between enter and leave, by mix_gemm_run. */
  void (*make_plan)(mix_gemm_plan *plan);
  void (*run)(const mix_gemm_plan *plan, const mix_gemm_operands *operands, const mix_team *team, void *shared, void *own);
  /* Which products other engines do better (static text; NULL: accepts). No function: none. */
  const char *(*unsupported_reason)(const mix_gemm_problem *problem, mix_dtype dtype);
} mix_gemm_engine;

extern const mix_gemm_engine mix_gemm_f32_avx512, mix_gemm_f32_avx2, mix_gemm_f32_generic;
extern const mix_gemm_engine mix_gemm_f64_avx512, mix_gemm_f64_avx2, mix_gemm_f64_generic;
extern const mix_gemm_engine mix_gemm_f32_amx;
extern const mix_gemm_engine mix_gemm_t4x8_avx512fp16, mix_gemm_t4x16_avx512fp16, mix_gemm_t4x32_avx512fp16,
    mix_gemm_t8x16_avx512fp16;

struct mix_gemm_problem {
  int64_t m, n, k;
  bool transpose_a, transpose_b; /* A stored (k, m), B stored (n, k) */
  int64_t lda, ldb, ldc;         /* elements from row to row as stored */
  bool epilogue;                 /* the result goes through a program; false where that only tests what is stored */
  mix_dtype rounded;             /* how C is stored, where not as the operands are; else MIX_DTYPE_NONE */
  bool kept_b;                   /* B is packed as a whole, for runs to come */
};

/* In double, for there may be more than int64_t counts. */
static inline double mix_gemm_multiplications(const mix_gemm_problem *p) { return (double)p->m * (double)p->n * (double)p->k; }

struct mix_gemm_plan {
  const mix_gemm_engine *engine;
  const mix_gemm_storage *storage; /* of the operands */
  mix_dtype result;                /* how C is stored */
  mix_gemm_problem problem;        /* as computed: of the transposed product where `compute_transposed` */
  bool small_n;                        /* sums along vectors of k: no packing of the wide operand, no blocks */
  bool small_m;                      /* few rows: B is read once, along its rows, without packing */
  bool compute_transposed;                    /* computes C^T = op(B)^T op(A)^T, and transposes sums before they are stored */
  bool a_in_place, b_in_place, c_in_place, prefetch_b;
  bool fetch_a, fetch_b; /* the rows of A, the block of B that are packed next are fetched while tiles are multiplied */
  bool stream;           /* C, larger than the caches, is written past them */
  bool a_transposed;         /* A stored along k is packed along rows, as the fastest micro-kernel reads it */
  bool b_widened;        /* in place, and widened by the storage's own micro-kernels */
  int threads, grid_rows, grid_columns;
  mix_gemm_tiles tiles;
  int64_t kc, mc, nc;
  int64_t column_span;        /* float16 sums: so many columns, of several blocks, use rows of A that are packed once */
  int64_t a_stride, c_stride; /* of packed A, of sums in the workspace */
  int a_panels;               /* panels of rows of A that lie packed in the workspace at once, */
  int64_t a_panel_stride;            /* so many elements apart; 0: side by side */
  int b_panels;               /* float16 sums: panels of columns of B, the same */
  bool kept; /* what all tiles of a share use (A where they go by columns) is packed once, for all of k */
  size_t a_bytes, b_bytes, c_bytes, transpose_bytes, thread_bytes; /* parts of a thread's workspace, and the whole */
  /* Of engines with their own driver: the loop over blocks of columns is the outer one; what it packs is kept for the inner one, whose
   * operand the team packs for all threads, so many blocks at a time (0: each thread for itself, as they come). */
  bool columns_outside, keep;
  int64_t shared;
  bool split_k;    /* sums over the halves of k, added at the end: of products of few results and many terms, whatever the threads */
  int grid_depth; /* 2: each half has threads of its own */
  size_t shared_bytes; /* of the workspace, for all threads */
  int barriers;        /* of a run; the workspace is free again after another one */
};

/* How an engine serves a dtype; one of MIX_DTYPE_NONE where it does not. */
const mix_gemm_storage *mix_gemm_storage_of(const mix_gemm_engine *engine, mix_dtype dtype);
/* How `threads` threads do the product; a function of its arguments and the processor's caches alone. */
void mix_gemm_make_plan(const mix_gemm_engine *engine, const mix_gemm_storage *storage, const mix_gemm_problem *problem,
                        int threads, mix_gemm_plan *plan);

/* The grid of blocks of C, one a thread: least work for the busiest thread, its operands counted as a few operations each. The gradient of
 * a kernel, of a transposed A and few examples, is shared by whole rows where that costs hardly more: what a thread has of the weights and
 * slots that its epilogue updates then lies in one piece, as other steps share them. Halves of rows a power of two apart share half of a
 * cache's sets. */
void mix_gemm_choose_grid(mix_gemm_plan *plan, int64_t row_unit, int64_t column_unit);

/* Operands of a run, in the order of plan->problem: where the plan is compute_transposed, `a` is the product's B. C as it is stored;
 * `epilogue` and the `args` that it reads where there is one, then C is not written. */
struct mix_gemm_operands {
  const void *a, *b;
  void *c;
  const mix_tile_program *epilogue;
  const mix_kernel_args *args;
  bool *finite;            /* false once this thread has met a result that is not finite; NULL: nothing is tested */
  float limit;             /* without an epilogue: sums below it in magnitude round to finite numbers, and no others do */
  mix_gemm_stealing *stealing; /* shared out; NULL: each thread does its own share alone */
  bool packed;             /* what the team packs for all threads lies there from the run before */
};

/* The next block of k where `rest` is left, in the order of oneDNN's sgemm, which TensorFlow calls: whole blocks while two are left, then
 * two halves. Each block is one chain of fused multiply-adds from zero, and the blocks are added in order: with AVX2 or AVX-512, float32
 * products of up to 1024 terms have the very bits of TensorFlow 2.21's but for a few tiny shapes (docs/NUMERICS.md lists them). */
static inline int64_t mix_gemm_next_depth(const mix_gemm_plan *plan, int64_t rest) {
  if (plan->compute_transposed) return rest < plan->kc ? rest : plan->kc;
  const int64_t whole = plan->engine->kc;
  return rest >= 2 * whole ? whole : rest > whole ? (rest + 1) / 2 : rest;
}
/* The work of a thread of the team, of plan->threads; workspace of plan->shared_bytes for all of them, of plan->thread_bytes for this one
 * alone. plan->barriers of the team. */
void mix_gemm_run(const mix_gemm_plan *plan, const mix_gemm_operands *operands, const mix_team *team, void *shared, void *own);
/* The same for plans with `small_n` (small_n.c); called by mix_gemm_run. */
void mix_gemm_run_small_n(const mix_gemm_plan *plan, const mix_gemm_operands *operands, int rank, void *workspace);
/* The same for plans with `small_m` (small_m.c). */
void mix_gemm_run_small_m(const mix_gemm_plan *plan, const mix_gemm_operands *operands, int rank, void *workspace);
/* Stores finished sums of rows [row, row + rows), columns [column, column + columns) of C: through the epilogue or rounded.
 * `more`: the rows below come next. */
void mix_gemm_store_result(const mix_gemm_plan *plan, const mix_gemm_operands *operands, const void *sums, int64_t stride, int64_t row,
                     int64_t rows, int64_t column, int64_t columns, bool more);
/* The same for sums of C^T (rows, columns), plan->c_stride apart, of which a few columns at a time are transposed to `transposed`. */
void mix_gemm_store_transposed(const mix_gemm_plan *plan, const mix_gemm_operands *operands, const void *sums, void *transposed,
                            int64_t row, int64_t rows, int64_t column, int64_t columns);
/* from[i * from_stride + j] -> to[j * to_stride + i], for elements of the size of a float or a double. */
void mix_gemm_transpose(const void *from, int64_t from_stride, int64_t rows, int64_t columns, void *to, int64_t to_stride, size_t size);
/* Lines of a tile of the result, on their way while it is computed: a shallow product is bound by them. (An epilogue fetches for itself.) */
void mix_gemm_prefetch_result(const mix_gemm_plan *plan, const mix_gemm_operands *operands, int64_t row, int64_t rows,
                              int64_t column, int64_t columns);
/* Share `index` of `parts` of `count` in units of `unit`. */
static inline void mix_gemm_share(int64_t count, int64_t unit, int index, int parts, int64_t *begin, int64_t *end) {
  mix_team_share(&(mix_team){.rank = index, .size = parts}, count, unit, begin, end);
}

#endif
