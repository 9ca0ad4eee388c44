/* The vector functions of one instruction set: everything that runs over a tile or a row. Each set compiles
 * the same templates (elementwise.inc.h, fused_chains.inc.h, rows.inc.h) over its vector vocabulary
 * (simd.h). */
#pragma once

#include "backend/cpu/isa.h"
#include "base/processor.h"
#include "ops/elementwise.h"
#include "ops/error_function.h"
#include "ops/stochastic_round.h"
#include <mixtape/dtype.h>

/* How a tile holds a value: float8, float16, bfloat16 and float32 as float; float64 as double; integers as
 * int64; bool as uint32 0 or 1. */
typedef enum mix_tile_class {
  MIX_TILE_FLOAT,
  MIX_TILE_DOUBLE,
  MIX_TILE_INTEGER,
  MIX_TILE_BOOL,
  MIX_TILE_CLASSES
} mix_tile_class;

/* Every tile can be read and written in whole groups of this many bytes past its last element. */
#define MIX_TILE_PADDING 64

static inline mix_tile_class mix_tile_class_of(mix_dtype dtype) {
  if (dtype == MIX_FLOAT64) return MIX_TILE_DOUBLE;
  if (dtype == MIX_BOOL) return MIX_TILE_BOOL;
  return mix_dtype_is_floating(dtype) ? MIX_TILE_FLOAT : MIX_TILE_INTEGER;
}
static inline size_t mix_tile_class_size(mix_tile_class class) {
  return class == MIX_TILE_DOUBLE || class == MIX_TILE_INTEGER ? 8 : 4;
}

/* Should so many bytes be stored past the caches? An ordinary store first reads the line that it overwrites.
 * A streamed line is not in a cache for its first reader, so this pays only above the size of the
 * second-level caches. */
static inline bool mix_exceeds_caches(int64_t bytes) { return bytes >= 2 * mix_cpu_cache(2); }

/* One instruction over a tile of n elements. steps[i] is 1 where operand i is a tile, and 0 where operands[i]
 * is one value, repeated over MIX_TILE_PADDING bytes, that counts for every element. The result may be one of
 * the operands. Works in whole vectors: reads and writes up to MIX_TILE_PADDING bytes past the end. One that
 * draws (mix_opcode_draws) stops at the end; its operand 3 is the place of the first element, an int64. */
typedef void (*mix_tile_function)(void *result, const void *const *operands, const int *steps, int64_t n,
                                  double immediate);
/* Memory to tile and tile to memory; touches exactly n elements of memory. */
typedef void (*mix_tile_load_function)(void *tile, const void *source, int64_t n);
typedef void (*mix_tile_store_function)(void *result, const void *tile, int64_t n);

/* Of each channel: its mean, what it is multiplied with, and what is added. */
typedef struct mix_normalization {
  const float *mean, *scale, *offset;
  const void *added; /* rows of other values to be added then; NULL: none */
  int64_t added_stride;
  float least, most; /* of a result: ReLU, ReLU6; else infinite */
} mix_normalization;

struct mix_block_numbers; /* ops/block_formulas.h */
typedef enum mix_softmax_kind { MIX_ROWS_SOFTMAX, MIX_ROWS_LOG_SOFTMAX } mix_softmax_kind;

/* Two float32 instructions in one pass. `second` takes the result of `first`, rounded as by itself, as its
 * operand `position`. The function's operands are those of `first`, then the other one of `second`. */
typedef struct mix_superinstruction {
  mix_opcode first, second;
  int position;
  mix_tile_function function;
} mix_superinstruction;

/* Consecutive float32 instructions in one pass, with values in registers: an optimizer's update of a weight.
 * The code's registers are `vectors` operands that are tiles, `numbers` operands that are one value, then the
 * code's results; `results` are the registers that are stored. The function takes the operands in this order
 * and prefetches each tile prefetch[i] bytes in front of where it reads. Results may be operands. */
enum { MIX_CHAIN_OPERANDS = 10, MIX_CHAIN_RESULTS = 3, MIX_CHAIN_CODE = 13 };
typedef struct mix_fused_chain {
  int vectors, numbers, count, result_count;
  struct {
    mix_opcode opcode;
    int operands[2];
  } code[MIX_CHAIN_CODE];
  int results[MIX_CHAIN_RESULTS];
  void (*function)(void *const *results, const void *const *operands, const int64_t *prefetch, int64_t n,
                   double packets);
} mix_fused_chain;

/* Rows of two operands in two nested loops: counts, and elements from row to row. */
typedef struct mix_row_products {
  int64_t outer, inner, a_outer, a_inner, b_outer, b_inner;
} mix_row_products;

/* Each element of a row of a belongs to `times` > 1 neighbours of b: element i of b to element first + i /
 * times. quotients[i] = i / times, for i < times + MIX_REPEAT_AHEAD. */
enum { MIX_REPEAT_AHEAD = 32 };
typedef struct mix_repeat {
  int64_t times, first, count; /* count: elements in a row of a */
  const int32_t *quotients;
} mix_repeat;

enum { MIX_CELLS = 7 }; /* sums side by side that share what is widened; common images have multiples of 7 */

/* MIX_CELLS cells of a line under a kernel three cells wide. `column`, of `columns`, is that of the image
 * which the first of them sees first; one outside gives no terms, and none but the first and the last two of
 * those that they see may be outside. `stores`: the results are of the dtype of a, else float32 sums. */
typedef struct mix_cell_products {
  int64_t rows, a_row, b_row; /* of the kernel, and numbers from one to the next */
  int64_t column, columns;
  bool backwards; /* the kernel's first column meets the image's last */
  bool stores, relu;
  const void *bias; /* of stored results: added to the rounded sums, before ReLU; NULL: none of the two */
} mix_cell_products;

/* A line of cells under up to three lines of a kernel three cells wide. Numbers of the image before the first
 * cell's first tap, then from line to line, from cell to cell and from tap to tap; columns of the image that
 * taps see: column + cell * column_cell + tap * column_tap, of `columns`, where others give no terms. All
 * taps of cells [first, end) are inside. */
typedef struct mix_tap_products {
  int64_t rows, cells, first, end;
  int64_t x_first, x_row, x_cell, x_tap, dy_cell, sums_step;
  int64_t column, column_cell, column_tap, columns;
} mix_tap_products;

typedef struct mix_vector {
  const char *name; /* "generic", "avx2", "avx512" */
  int lanes;        /* floats in a vector */

  /* For the float classes (float8, float16, bfloat16, float32) and bool. mix_tile_wide has those of double
   * and int64. */
  mix_tile_load_function load[MIX_DTYPE_COUNT];
  /* uint8, int8, int16 to float: exact. NULL for others. */
  mix_tile_load_function load_as_float[MIX_DTYPE_COUNT];
  /* Rounds floats to the narrower dtypes. */
  mix_tile_store_function store[MIX_DTYPE_COUNT];
  /* The same past the caches, whole lines of memory; NULL for others. */
  mix_tile_store_function stream[MIX_DTYPE_COUNT];
  /* Rounds to a narrower dtype inside a float tile. */
  mix_tile_function round[MIX_DTYPE_COUNT];
  /* On floats (SELECT: of floats). NULL: none. */
  mix_tile_function instruction[MIX_OPCODE_COUNT];
  const mix_superinstruction *superinstructions; /* ended by one without a function */
  const mix_fused_chain *(*const *chains)(void); /* ended by NULL */
  mix_tile_function bool_to_float, float_to_bool;

  /* sums[i] += x[i] * x[i] for n numbers as stored. */
  void (*add_squares[MIX_DTYPE_COUNT])(float *sums, const void *x, int64_t n);

  /* Reductions of n contiguous values; they read nothing behind these. */
  bool (*all_finite)(const float *x, int64_t n);
  /* The same for numbers as stored in 16 bits; `infinity`: the exponent bits of the dtype. */
  bool (*all_finite_stored)(const uint16_t *x, int64_t n, uint16_t infinity);
  /* Stores rows of n numbers rounded to float16 or bfloat16; past_caches: whole lines past the caches. True
   * if all magnitudes are below `limit`. */
  bool (*store_rows[MIX_DTYPE_COUNT])(uint16_t *r, int64_t r_stride, const float *x, int64_t stride,
                                      int64_t rows, int64_t n, float limit, bool past_caches);
  /* Stores rows of n numbers, each rounded to the dtype, plus the bias, rounded; relu: then ReLU. */
  void (*biased_rows[MIX_DTYPE_COUNT])(void *r, int64_t r_stride, const float *x, int64_t stride,
                                       int64_t rows, int64_t n, const void *bias, bool relu);
  /* Stores rows of n numbers of the dtype, normalized; each operation rounds. */
  void (*normalized_rows[MIX_DTYPE_COUNT])(void *r, int64_t r_stride, const float *x, int64_t stride,
                                           int64_t rows, int64_t n, const mix_normalization *by);
  /* The order of a sum is the same for every instruction set: whole groups of 32 elements in 32 lanes, then
   * the lanes, then the tail of fewer than 32 elements (rows.inc.h). */
  float (*sum)(const float *x, int64_t n);
  void (*sum_into)(float *lanes, const float *x, int64_t n); /* adds whole groups to 32 lanes */
  float (*sum_end)(const float *lanes, const float *tail, int64_t n);
  float (*maximum)(const float *x, int64_t n); /* NaN if there is a NaN; n >= 1 */
  float (*minimum)(const float *x, int64_t n);

  /* Rows of n contiguous float32, everything in float32. `result` may be `logits`. */
  void (*softmax_rows)(float *result, const float *logits, int64_t rows, int64_t n, mix_softmax_kind kind);
  /* losses[i] = sum over j of labels * -log softmax(logits); gradient = softmax - labels. */
  void (*cross_entropy_rows)(float *losses, float *gradient, const float *logits, const float *labels,
                             int64_t rows, int64_t n);
  /* The same with the class labels[i] in [0, n). A label outside gives NaN, and the function returns false.
   * The tensor's whole packets of eight elements end before element `packets`. */
  bool (*sparse_cross_entropy_rows)(float *losses, float *gradient, const float *logits,
                                    const int64_t *labels, int64_t rows, int64_t n, int64_t packets);
  /* result = exp(x - shift), returns its sum: for rows that are split. `result` may be NULL. */
  float (*exp_sum)(float *result, const float *x, float shift, int64_t n);

  /* words[i] = word 0 of Philox block (key, counter, first + i). */
  void (*philox_words)(uint32_t *words, uint64_t key, uint64_t counter, uint64_t first, int64_t n);

  /* x[i] = mix_block_round(|x[i]| * encode[i]) * decode[i], with its sign, where decode[i] >= 0, and adds to
   * the counts of mix_block_count. random: NULL, or a word for each. Whole vectors: all arrays have
   * MIX_TILE_PADDING more bytes, where decode is negative. n <= 2^20. */
  void (*round_blocks)(float *x, const float *encode, const float *decode, const uint32_t *random,
                       const struct mix_block_numbers *numbers, int64_t n, int64_t counts[3]);

  /* sums[i] = sum over o and t, in order, of a[o * a_outer + t * a_inner + i] * b[o * b_outer + t * b_inner +
   * i], for n numbers as stored. */
  void (*sum_products[MIX_DTYPE_COUNT])(float *sums, const void *a, const void *b, const mix_row_products *p,
                                        int64_t n);
  /* The same, where b are float32 numbers. */
  void (*sum_weighted[MIX_DTYPE_COUNT])(float *sums, const void *a, const void *b, const mix_row_products *p,
                                        int64_t n);
  /* The same sums, in the same order, of MIX_CELLS cells of n >= `lanes` channels. NULL: no gain. */
  void (*sum_cells[MIX_DTYPE_COUNT])(void *results, const void *a, const float *b, const mix_cell_products *p,
                                     int64_t n);
  /* The same for two lines, under a kernel of three lines: `second` sees lines 1 to 3 of the image's four.
   * NULL: none. */
  void (*sum_two_lines[MIX_DTYPE_COUNT])(void *first, void *second, const void *a, const float *b,
                                         const mix_cell_products *p, int64_t n);
  /* sums[(row * 3 + tap) * sums_step + i] += sum over cells, in order, of x * dy, for n channels; whole
   * vectors of sums are read and written. */
  void (*sum_taps[MIX_DTYPE_COUNT])(float *sums, const void *x, const void *dy, const mix_tap_products *p,
                                    int64_t n);
  /* C (m, n) = A (m, k) B (k, n), or added to C, of matrices in the cache; element (i, p) of A is
   * a[i * a_row + p * a_depth]. Each element sums in the order of k. */
  void (*product)(float *c, int64_t c_stride, const float *a, int64_t a_row, int64_t a_depth, const float *b,
                  int64_t b_stride, int64_t m, int64_t n, int64_t k, bool add);
  /* sum_products and sum_weighted where the elements of a are repeated; a: the start of a row. */
  void (*sum_repeated[MIX_DTYPE_COUNT])(float *sums, const void *a, const void *b, const mix_row_products *p,
                                        const mix_repeat *repeat, int64_t n);
  void (*sum_repeated_weighted[MIX_DTYPE_COUNT])(float *sums, const void *a, const void *b,
                                                 const mix_row_products *p, const mix_repeat *repeat,
                                                 int64_t n);
  /* sums[i] = the sum of x[i * times] to x[i * times + times - 1], in order, for n sums. */
  void (*sum_neighbours)(float *sums, const float *x, int64_t times, int64_t n);
} mix_vector;

/* Functions on tiles of double and int64, and conversions from and to them. They are rare, so in plain C, one
 * for all instruction sets. */
typedef struct mix_tile_wide {
  mix_tile_load_function load[MIX_DTYPE_COUNT];
  mix_tile_store_function store[MIX_DTYPE_COUNT];
  /* int64 cut to the width of int8, int16, int32, uint8. */
  mix_tile_function round[MIX_DTYPE_COUNT];
  /* On double, int64 and bool (SELECT: by the class of operand 1). NULL: none. */
  mix_tile_function instruction[MIX_OPCODE_COUNT][MIX_TILE_CLASSES];
  /* [from][to]; to float: as float32. */
  mix_tile_function cast[MIX_TILE_CLASSES][MIX_TILE_CLASSES];
  /* double and int64 to float8, float16 and bfloat16 with one rounding. */
  mix_tile_function cast_narrow[MIX_TILE_CLASSES][MIX_DTYPE_COUNT];
} mix_tile_wide;
extern const mix_tile_wide mix_tile_wide_functions;

#define MIX_DECLARE_VECTOR(set, ...) extern const mix_vector mix_vector_##set;
MIX_VECTOR_SETS(MIX_DECLARE_VECTOR)
/* The best one allowed by mix_cpu_features(). */
const mix_vector *mix_vector_current(void);
/* The functions for a dtype or class, from the vector's own or the wide ones. NULL: there is none. */
mix_tile_load_function mix_tile_load_of(const mix_vector *vector, mix_dtype dtype);
mix_tile_store_function mix_tile_store_of(const mix_vector *vector, mix_dtype dtype);
mix_tile_function mix_tile_round_of(const mix_vector *vector, mix_dtype dtype);
mix_tile_function mix_tile_instruction_of(const mix_vector *vector, mix_opcode opcode, mix_tile_class class);
/* *rounded: the function rounds to the dtype itself. */
mix_tile_function mix_tile_cast_of(const mix_vector *vector, mix_dtype from, mix_dtype to, bool *rounded);
