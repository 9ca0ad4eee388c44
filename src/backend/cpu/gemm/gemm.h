/* Matrix products on the CPU, C (m, n) = op(A) (m, k) * op(B) (k, n), row-major.
 *
 * An engine (mix_gemm_engine) is what one instruction set provides: micro-kernels that multiply one tile of
 * C, and for each storage dtype the functions that pack operands, widening them to what the micro-kernels
 * read. An algorithm (mix_gemm_algorithm), a folder each, is a way to do a product with an engine. A plan
 * (mix_gemm_plan) is how one product is done: by which algorithm, the blocks, the share of each thread, and
 * what the algorithm keeps of its own.
 *
 * Sizes are named as in BLIS: MR, NR of a tile of C; MC, NC, KC of a block.
 *
 * An element of C is summed over k in order inside blocks of k, and over the blocks (or halves of k) in
 * order. Blocks and halves depend on the shape and the engine alone. So the bits do not depend on the number
 * of threads, nor on what is packed. */
#pragma once

#include "backend/cpu/gemm/operand_view.h"
#include "backend/cpu/gemm/work_stealing.h"
#include "backend/cpu/program/prepare.h"
#include "backend/cpu/simd/vector_functions.h"
#include "backend/host/kernel.h"

/* What a micro-kernel does with its tile. */
typedef enum mix_gemm_store {
  MIX_GEMM_WRITE,
  MIX_GEMM_ADD,    /* C += tile: a later block of k */
  MIX_GEMM_STREAM, /* past the caches; C aligned to vectors, a tile of full width */
} mix_gemm_store;

/* One tile: C (rows, columns) = or += A (rows, depth) * B (depth, columns). `rows` is the function's own,
 * columns <= nr of the engine. By layout, element (i, k) of A is a[i * a_stride + k] or a[k * a_stride + i];
 * element (k, j) of B is b[k * b_stride + j].
 *
 * `prefetch` is memory that is read or packed next: micro-kernels with A along k prefetch an address each
 * step of k, the fastest ones each MIX_GEMM_K_UNROLL steps, prefetch_step bytes from one to the next. It is
 * cached memory where there is nothing to prefetch. (Two arguments, because a struct of both travels through
 * memory, and its load waits 160 cycles for the stores of the tile before.) */
typedef void mix_gemm_micro(int64_t depth, const void *a, int64_t a_stride, const void *b, int64_t b_stride,
                            void *c, int64_t c_stride, int columns, mix_gemm_store store,
                            const char *prefetch, int64_t prefetch_step);
enum { MIX_GEMM_K_UNROLL = 4 };

/* Numbers of k that follow each other in a line of an image (lines/): `offset` elements from where A begins,
 * `depth` elements. odd: the last element's second number is no term; last: it ends a block of k. */
typedef struct mix_gemm_segment {
  int64_t offset, depth;
  bool odd, last;
} mix_gemm_segment;
/* The same as mix_gemm_micro: B packed, segment after segment; whole vectors of C are written. from: the
 * chains' sums so far, as C lies; NULL: they begin at zero. With A along m more rows may be read and written,
 * at most MR. */
typedef void mix_gemm_lines_micro(const mix_gemm_segment *segments, int64_t count, const void *a,
                                  int64_t a_stride, const void *b, const void *from, void *c,
                                  int64_t c_stride, int columns, bool add);

/* Of products with few columns (small_n/): rows finished at once, and elements from one row of their sums to
 * the next. */
enum { MIX_GEMM_SMALL_N_ROWS = 64, MIX_GEMM_SMALL_N_STRIDE = 16 };

/* Layouts of A: k along memory, or rows along memory (A transposed). */
enum { MIX_GEMM_ALONG_K, MIX_GEMM_ALONG_M };

/* How an engine serves one storage dtype. Strides in elements; `source` points at the block. */
typedef struct mix_gemm_storage {
  mix_dtype dtype;
  /* Stored are float32 numbers, which are rounded to the dtype as they are packed or read. */
  bool rounds;
  /* Storage is what the micro-kernels read, so that packing may be left out. */
  bool in_place;
  /* [layout]: packs a panel of `rows` rows of source[i * stride + k] or source[k * stride + i], in the same
   * layout. */
  void (*pack_a[2])(const void *source, int64_t stride, int rows, int64_t depth, void *packed,
                    int64_t packed_stride);
  /* Packs a panel of source[i * stride + k] along rows: packed[k * packed_stride + i]. NULL: none. */
  void (*pack_a_transposed)(const void *source, int64_t stride, int rows, int64_t depth, void *packed,
                            int64_t packed_stride);
  /* Packs `columns` columns in panels (depth, nr), `panel` elements from one to the next, ragged ones padded
   * with zeros. [0]: source[k * stride + j]; [1]: source[j * stride + k]. */
  void (*pack_b[2])(const void *source, int64_t stride, int64_t depth, int64_t columns, void *packed,
                    int64_t panel);
  /* For A along k: micro-kernels that read B as stored and widen it in registers, [rows - 1]. NULL: none. */
  mix_gemm_micro *const *micro;
  /* Few columns: out[r * MIX_GEMM_SMALL_N_STRIDE + j] = sum over k of source[r * stride + k] *
   * b[j * b_stride + k], for each row r of the function and j < columns; the rest of a row of `out` is
   * overwritten. b is widened, with zeros up to a whole vector. k may come in parts, all but the last of
   * whole vectors: `lanes`, a vector for each r and j, carries the sums from part to part. first: they start
   * from zero; out NULL: they stay in `lanes`. [0]: small_n_rows rows; [1]: one row. NULL: none. */
  void (*small_n[2])(int64_t depth, const void *source, int64_t stride, const void *b, int64_t b_stride,
                     int columns, void *lanes, bool first, void *out);
  /* Few rows: sums[i * sums_stride + j] = sum over k, in order, of a[i * a_stride + k] * source[k * stride +
   * j]; a is widened. prefetch: rows of source. With `spare`, as large as sums, they are summed there and
   * then added to sums. Tiles are written in full width. */
  void (*small_m)(int64_t rows, int64_t depth, const void *a, int64_t a_stride, const void *source,
                  int64_t stride, int64_t columns, bool prefetch, void *sums, int64_t sums_stride,
                  void *spare);
} mix_gemm_storage;

static inline int64_t mix_gemm_stored_size(const mix_gemm_storage *storage) {
  return storage->rounds ? (int64_t)sizeof(float) : (int64_t)mix_dtype_size(storage->dtype);
}

typedef struct mix_gemm_problem mix_gemm_problem;
typedef struct mix_gemm_plan mix_gemm_plan;
typedef struct mix_gemm_operands mix_gemm_operands;
typedef struct mix_gemm_engine mix_gemm_engine;

/* Bytes for all threads of a plan, and for each of them. */
typedef struct mix_gemm_workspace {
  size_t shared, thread;
} mix_gemm_workspace;

typedef struct mix_gemm_algorithm {
  const char *name;
  bool sums_in_lanes; /* along vectors of k: an order of sums of its own */
  /* Why another algorithm or engine should do a product (static text). NULL: accepts it. */
  const char *(*unsupported_reason)(const mix_gemm_engine *engine, mix_dtype dtype,
                                    const mix_gemm_problem *problem);
  /* Completes a plan that has its engine, storage, result, problem and threads. */
  void (*plan)(mix_gemm_plan *plan);
  mix_gemm_workspace (*workspace)(const mix_gemm_plan *plan);
  /* Bytes of B packed once for many runs, and a thread's share of packing it. A NULL function: never. */
  size_t (*kept_bytes)(const mix_gemm_plan *plan);
  void (*keep)(const mix_gemm_plan *plan, const mix_gemm_view *b, int rank, int threads, void *kept);
  /* The work of a thread of the team, with its part of the workspace. */
  void (*run)(const mix_gemm_plan *plan, const mix_gemm_operands *operands, const mix_team *team,
              void *shared, void *own);
} mix_gemm_algorithm;

/* Those of the engines on vectors (algorithms.c). */
extern const mix_gemm_algorithm *const mix_gemm_vector_algorithms[];

struct mix_gemm_engine {
  int mr, nr;                      /* rows and columns of a full tile */
  int lanes;                       /* columns in a vector */
  bool ragged_in_place;            /* micro-kernels read no column of B beyond `columns` */
  bool pairs;                      /* what micro-kernels read: two numbers of k in each element (bf16/) */
  const mix_gemm_engine *widening; /* of pairs: does the products that they leave, with the same bits */
  size_t element_size;             /* bytes of what micro-kernels read */
  size_t sum_size;                 /* bytes of an element of the sums */
  int64_t kc, mc, nc;              /* the largest blocks */
  int small_n_rows, small_n_columns;
  int small_m_row;                 /* columns of products of one row that small_m always does */
  int chains, chain;               /* blocked accumulation: chains, and products in each; 0: exact */
  mix_gemm_micro *const *micro[2]; /* [layout][rows - 1] */
  mix_gemm_lines_micro *const *lines_micro[2]; /* the same; NULL: none */
  const mix_gemm_storage *storages;            /* ended by MIX_DTYPE_NONE */
  /* Best first, ended by NULL; the last can do every product, also those that it would leave to others. */
  const mix_gemm_algorithm *const *algorithms;
};

#define MIX_DECLARE_ENGINES(set, ...) extern const mix_gemm_engine mix_gemm_f32_##set, mix_gemm_f64_##set;
MIX_VECTOR_SETS(MIX_DECLARE_ENGINES)
#define MIX_DECLARE_ENGINE(id, dtype, engine, ...) extern const mix_gemm_engine engine;
MIX_SPECIAL_PRODUCTS(MIX_DECLARE_ENGINE)

struct mix_gemm_problem {
  int64_t m, n, k;
  bool transpose_a, transpose_b; /* A stored (k, m), B stored (n, k) */
  int64_t lda, ldb, ldc;         /* elements from row to row as stored */
  bool epilogue;                 /* the result goes through a program, other than a test of what is stored */
  const mix_gemm_patches *patches; /* A is a view of such patches: lda is not used; NULL: a matrix */
  bool scattered;                  /* rows of C are rows of the result that operands.rows names */
  bool fixed_b;                    /* B is the same in many runs: packed once, if at all */
  mix_dtype rounded;               /* storage of C where it is not the operands'; else MIX_DTYPE_NONE */
  bool a_rounds, b_rounds;         /* this operand alone is stored as float32, and rounded as it is read */
  mix_matmul_precision precision;
};

/* In double: there may be more than int64_t counts. */
static inline double mix_gemm_multiplications(const mix_gemm_problem *p) {
  return (double)p->m * (double)p->n * (double)p->k;
}

/* Elements of a packed operand along `depth` numbers of k. */
static inline int64_t mix_gemm_packed_depth(const mix_gemm_engine *engine, int64_t depth) {
  return engine->pairs ? (depth + 1) / 2 : depth;
}

enum { MIX_GEMM_OWN_BYTES = 104 };

struct mix_gemm_plan {
  const mix_gemm_algorithm *algorithm;
  const mix_gemm_engine *engine;
  const mix_gemm_storage *storage; /* of the operands, but for one that rounds alone */
  const mix_vector *vector;        /* stores and rounds results */
  mix_dtype result;                /* storage of C */
  mix_gemm_problem problem;        /* as computed: of the transposed product where compute_transposed */
  bool compute_transposed;         /* C^T = op(B)^T op(A)^T; sums are transposed before they are stored */
  bool stream;                     /* C, larger than the caches, is written past them */
  int threads, grid_rows, grid_columns;
  mix_gemm_tiles tiles;
  int64_t kc, mc, nc;
  int barriers; /* of a run; the workspace is free again after one more */
  mix_gemm_workspace workspace;
  _Alignas(int64_t) char own[MIX_GEMM_OWN_BYTES]; /* the algorithm's (MIX_GEMM_OWN_PLAN) */
};

/* In the header of an algorithm: what it keeps in a plan. Bytes, so that plans are copied as values and the
 * core knows no algorithm. */
#define MIX_GEMM_OWN_PLAN(type)                                                                              \
  _Static_assert(sizeof(type) <= MIX_GEMM_OWN_BYTES, "raise MIX_GEMM_OWN_BYTES");                            \
  static inline const type *type##_of(const mix_gemm_plan *plan) { return (const type *)plan->own; }         \
  static inline type *type##_in(mix_gemm_plan *plan) { return (type *)plan->own; }

/* How an engine serves a dtype; a row of MIX_DTYPE_NONE if it does not. */
const mix_gemm_storage *mix_gemm_storage_of(const mix_gemm_engine *engine, mix_dtype dtype);
/* The same for float32 numbers that it rounds to the dtype. */
const mix_gemm_storage *mix_gemm_rounding_storage_of(const mix_gemm_engine *engine, mix_dtype dtype);
/* Why others should do a product: no algorithm of the engine accepts it (static text). NULL: one does. */
const char *mix_gemm_unsupported_reason(const mix_gemm_engine *engine, mix_dtype dtype,
                                        const mix_gemm_problem *problem);
/* A function of its arguments and the processor's caches alone. */
void mix_gemm_make_plan(const mix_gemm_engine *engine, const mix_gemm_storage *storage,
                        const mix_gemm_problem *problem, int threads, mix_gemm_plan *plan);

/* The grid of blocks of C, one a thread: least work for the busiest thread, where an element of its operands
 * counts as a few elements of C. The gradient of a kernel (A transposed, few examples) is shared by whole
 * rows where that costs hardly more: the weights and slots that a thread's epilogue updates are then
 * contiguous, and the same as in other steps. Halves of rows, with a stride of a power of two, would use half
 * of a cache's sets. */
void mix_gemm_choose_grid(mix_gemm_plan *plan, int64_t row_unit, int64_t column_unit);

/* Is C, of sums in the workspace, written past the caches, in whole lines? */
bool mix_gemm_streams_result(const mix_gemm_plan *plan);
/* Can C be written past the caches? */
bool mix_gemm_may_stream(const mix_gemm_plan *plan);

/* float32 products of up to so many terms keep TensorFlow's order of sums (mix_gemm_next_depth). */
enum { MIX_GEMM_ORDERED_DEPTH = 1024 };
/* Deep TN products of few columns read A along its rows, a few rows at a time, so that memory is read once:
 * 1.5 to 3.5 times as fast. */
bool mix_gemm_prefers_transposed(const mix_gemm_problem *problem);
/* C^T = op(B)^T op(A)^T. */
mix_gemm_problem mix_gemm_transposed(const mix_gemm_problem *problem);
void mix_gemm_compute_transposed(mix_gemm_plan *plan);

/* The rows of C are the cells of a grid that takes every step-th cell of a larger one, the result's: row (n,
 * i) of C is row n * image + sum of (first + i * step) * pitch over the axes. */
typedef struct mix_gemm_result_rows {
  int64_t cells[MIX_GEMM_PATCH_AXES], first[MIX_GEMM_PATCH_AXES], step[MIX_GEMM_PATCH_AXES],
      pitch[MIX_GEMM_PATCH_AXES];
  int64_t image;
} mix_gemm_result_rows;

/* Operands of a run, in the order of plan->problem: where the plan is compute_transposed, `a` views the
 * product's B. With an epilogue C is not written; the program reads `args`. */
struct mix_gemm_operands {
  mix_gemm_view a, b;
  const void *kept; /* all of B, packed before this run; NULL: it is not */
  void *c;
  int64_t first_column;             /* of C in the result, for an epilogue: `c` points at it */
  const mix_gemm_result_rows *rows; /* of the result; NULL: C's */
  const mix_tile_program *epilogue;
  const mix_kernel_args *args;
  bool *finite;                /* set to false at a result that is not finite; NULL: no test */
  float limit;                 /* without an epilogue: sums round to finite numbers if and only if below it */
  mix_gemm_stealing *stealing; /* reset; NULL: each thread does its own share alone */
};

/* The next block of k where `left` of it are left, in the order of oneDNN's sgemm, which TensorFlow calls:
 * whole blocks while two are left, then two halves. Each block is one chain of fused multiply-adds from zero,
 * and the blocks are added in order. With AVX2 or AVX-512, float32 products of up to 1024 terms then have the
 * bits of TensorFlow 2.21's, but for a few tiny shapes (docs/NUMERICS.md lists them). */
static inline int64_t mix_gemm_next_depth(const mix_gemm_plan *plan, int64_t left) {
  if (plan->compute_transposed) return left < plan->kc ? left : plan->kc;
  const int64_t whole = plan->engine->kc;
  return left >= 2 * whole ? whole : left > whole ? (left + 1) / 2 : left;
}
/* The work of a thread of the team, which has plan->threads: with a workspace of plan->workspace.shared for
 * all of them and one of plan->workspace.thread of its own. Passes plan->barriers barriers of the team. */
void mix_gemm_run(const mix_gemm_plan *plan, const mix_gemm_operands *operands, const mix_team *team,
                  void *shared, void *own);
/* Stores finished sums of rows [row, row + rows), columns [column, column + columns) of C: through the
 * epilogue, or rounded. more: the rows below come next. */
void mix_gemm_store_result(const mix_gemm_plan *plan, const mix_gemm_operands *operands, const void *sums,
                           int64_t stride, int64_t row, int64_t rows, int64_t column, int64_t columns,
                           bool more);
/* The same for sums of C^T (rows, columns); `transposed` takes nr columns of them at a time. */
void mix_gemm_store_transposed(const mix_gemm_plan *plan, const mix_gemm_operands *operands, const void *sums,
                               int64_t stride, void *transposed, int64_t row, int64_t rows, int64_t column,
                               int64_t columns);
/* from[i * from_stride + j] -> to[j * to_stride + i], for elements of the size of a float or a double. */
void mix_gemm_transpose(const void *from, int64_t from_stride, int64_t rows, int64_t columns, void *to,
                        int64_t to_stride, size_t size);
/* Prefetches the memory of a tile of C while it is computed: it bounds products of few terms. (An epilogue
 * prefetches by itself.) */
void mix_gemm_prefetch_result(const mix_gemm_plan *plan, const mix_gemm_operands *operands, int64_t row,
                              int64_t rows, int64_t column, int64_t columns);
/* Share `index` of `parts` of `count` in units of `unit`. */
static inline void mix_gemm_share(int64_t count, int64_t unit, int index, int parts, int64_t *begin,
                                  int64_t *end) {
  mix_team_share(&(mix_team){.rank = index, .size = parts}, count, unit, begin, end);
}
