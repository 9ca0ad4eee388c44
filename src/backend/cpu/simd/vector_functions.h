/* The vector functions of one instruction set: everything that runs over a tile or a row. Each set is the same source
 * (tile_functions.inc.h, row_functions.inc.h) compiled over another vocabulary of lanes (lanes_*.h). */
#ifndef MIX_BACKEND_CPU_SIMD_VECTOR_FUNCTIONS_H
#define MIX_BACKEND_CPU_SIMD_VECTOR_FUNCTIONS_H

#include "base/processor.h"
#include "ops/elementwise.h"
#include <mixtape/dtype.h>

/* How a value is held in a tile: float16, bfloat16, float32 as float; float64 as double; integers as int64; bool as uint32 0 or 1.
 * */
typedef enum mix_tile_class { MIX_TILE_FLOAT, MIX_TILE_DOUBLE, MIX_TILE_INTEGER, MIX_TILE_BOOL, MIX_TILE_CLASSES } mix_tile_class;

/* Every tile can be read and written in whole groups of this many bytes past its last element. */
#define MIX_TILE_PADDING 64

static inline mix_tile_class mix_tile_class_of(mix_dtype dtype) {
  if (dtype == MIX_FLOAT64) return MIX_TILE_DOUBLE;
  if (dtype == MIX_BOOL) return MIX_TILE_BOOL;
  return dtype == MIX_FLOAT16 || dtype == MIX_BFLOAT16 || dtype == MIX_FLOAT32 ? MIX_TILE_FLOAT : MIX_TILE_INTEGER;
}
static inline size_t mix_tile_class_size(mix_tile_class class) {
  return class == MIX_TILE_DOUBLE || class == MIX_TILE_INTEGER ? 8 : 4;
}

/* Is so much better written past the caches? An ordinary store first reads the line that it overwrites; what is written past them is not
 * there for its first reader, so it has to be more than their second-level caches hold. */
static inline bool mix_exceeds_caches(int64_t bytes) { return bytes >= 2 * mix_cpu_cache(2); }
/* Stores past the caches are not ordered by the barrier that follows. */
static inline void mix_end_streams(void) {
#ifdef __SSE2__
  __builtin_ia32_sfence();
#endif
}

/* One instruction over a tile of n elements. Operand i is at operands[i]; steps[i] is 1 for a tile, 0 for a value that fills one
 * group of MIX_TILE_PADDING bytes and counts for every element. The result may be one of the operands. Works in whole vectors:
 * reads and writes up to MIX_TILE_PADDING bytes past the end. */
typedef void (*mix_tile_function)(void *result, const void *const *operands, const int *steps, int64_t n, double immediate);
/* Memory to tile and tile to memory; exact: touches n elements and no more. */
typedef void (*mix_tile_load_function)(void *tile, const void *source, int64_t n);
typedef void (*mix_tile_store_function)(void *result, const void *tile, int64_t n);

/* Which row function of the softmax family. */
typedef enum mix_softmax_kind { MIX_ROWS_SOFTMAX, MIX_ROWS_LOG_SOFTMAX } mix_softmax_kind;

/* Two float32 instructions in one pass: `second` takes the result of `first`, rounded as by itself, as its operand `position`. The
 * function's operands are those of `first`, then the other one of `second`. */
typedef struct mix_superinstruction {
  mix_opcode first, second;
  int position;
  mix_tile_function function;
} mix_superinstruction;

/* Float32 instructions that follow each other, in one pass with its values in registers: what an optimizer does to each weight. The code's
 * registers are `vectors` operands, `numbers` that are one for all elements, then the code's own results; `results` are those wanted
 * outside. The function takes the operands in this order, tiles and groups of MIX_TILE_PADDING bytes; while it works it fetches each
 * vector's memory so many bytes ahead. Results may be operands. */
enum { MIX_CHAIN_OPERANDS = 10, MIX_CHAIN_RESULTS = 3, MIX_CHAIN_CODE = 13 };
typedef struct mix_fused_chain {
  int vectors, numbers, count, result_count;
  struct {
    mix_opcode opcode;
    int operands[2];
  } code[MIX_CHAIN_CODE];
  int results[MIX_CHAIN_RESULTS];
  void (*function)(void *const *results, const void *const *operands, const int64_t *prefetch, int64_t n, double packets);
} mix_fused_chain;

typedef struct mix_vector {
  const char *name; /* "generic", "avx2", "avx512" */
  int lanes;        /* floats in a vector */
  /* Of the float classes (float16, bfloat16, float32) and bool; those of double and int64 are in mix_tile_wide. */
  mix_tile_load_function load[MIX_DTYPE_COUNT];
  mix_tile_load_function load_as_float[MIX_DTYPE_COUNT]; /* uint8, int8, int16 to float: exact; NULL for others */
  mix_tile_store_function store[MIX_DTYPE_COUNT];        /* rounds floats to float16 and bfloat16 */
  mix_tile_store_function stream[MIX_DTYPE_COUNT];       /* past the caches, whole lines of memory; NULL for others */
  mix_tile_function round[MIX_DTYPE_COUNT];              /* to float16, bfloat16 inside a float tile */
  mix_tile_function instruction[MIX_OPCODE_COUNT];       /* on floats (SELECT: of floats); NULL: none */
  const mix_superinstruction *superinstructions;                          /* ended by one without a function */
  const mix_fused_chain *(*const *chains)(void);          /* ended by NULL */
  mix_tile_function bool_to_float, float_to_bool;

  /* sums[i] += x[i] * x[i], of n numbers as stored. */
  void (*add_squares[MIX_DTYPE_COUNT])(float *sums, const void *x, int64_t n);

  /* Reductions of n contiguous values of a class; exact ends. */
  bool (*all_finite)(const float *x, int64_t n);
  /* The same of numbers as stored in 16 bits; `infinity` is the dtype's, its exponent bits. */
  bool (*all_finite_stored)(const uint16_t *x, int64_t n, uint16_t infinity);
  /* Stores rows of n, strides apart, rounded to float16 or bfloat16; whole lines past the caches where told. Are all magnitudes below
   * `limit`? */
  bool (*store_rows[MIX_DTYPE_COUNT])(uint16_t *r, int64_t r_stride, const float *x, int64_t stride, int64_t rows, int64_t n,
                                        float limit, bool past_caches);
  /* The order of a sum is fixed, the same for every instruction set: whole groups of 32 elements in 32 lanes, then the lanes and the
   * rest of less than 32 elements (row_functions.inc.h). */
  float (*sum)(const float *x, int64_t n);
  void (*sum_into)(float *lanes, const float *x, int64_t n); /* adds whole groups to 32 lanes */
  float (*sum_end)(const float *lanes, const float *rest, int64_t n);
  float (*maximum)(const float *x, int64_t n); /* a NaN gives NaN; n >= 1 */
  float (*minimum)(const float *x, int64_t n);
  /* Rows of n contiguous float32, everything in float32. `result` may be `logits`. */
  void (*softmax_rows)(float *result, const float *logits, int64_t rows, int64_t n, mix_softmax_kind kind);
  /* losses[i] = sum over j of labels * -log softmax(logits); gradient = softmax - labels. */
  void (*cross_entropy_rows)(float *losses, float *gradient, const float *logits, const float *labels, int64_t rows, int64_t n);
  /* The same with labels[i] in [0, n) for the class that counts; a label outside gives NaN and returns false. The tensor's whole packets
   * of eight elements end before element `packets`. */
  bool (*sparse_cross_entropy_rows)(float *losses, float *gradient, const float *logits, const int64_t *labels, int64_t rows,
                                    int64_t n, int64_t packets);
  /* For rows cut into pieces: result = exp(x - shift) and its sum; `result` may be NULL. */
  float (*exp_sum)(float *result, const float *x, float shift, int64_t n);
  /* Random words: word of Philox block (key, counter, first + i) for i < n, as floats uniform in [0, 1) (24 bits) or as words. */
  void (*philox_words)(uint32_t *words, uint64_t key, uint64_t counter, uint64_t first, int64_t n);
} mix_vector;

/* Tiles of double and int64, and what turns them into others: rare, so in plain C, one for all instruction sets. */
typedef struct mix_tile_wide {
  mix_tile_load_function load[MIX_DTYPE_COUNT];
  mix_tile_store_function store[MIX_DTYPE_COUNT];
  mix_tile_function round[MIX_DTYPE_COUNT];                          /* int64 cut to the width of int8, int16, int32, uint8 */
  mix_tile_function instruction[MIX_OPCODE_COUNT][MIX_TILE_CLASSES]; /* double, int64, bool (SELECT: by operand 1); NULL: none */
  mix_tile_function cast[MIX_TILE_CLASSES][MIX_TILE_CLASSES];        /* [from][to]; to float: as float32 */
  mix_tile_function cast_narrow[MIX_TILE_CLASSES][MIX_DTYPE_COUNT];  /* double, int64 to float16, bfloat16 with one rounding */
} mix_tile_wide;
extern const mix_tile_wide mix_tile_wide_functions;

extern const mix_vector mix_vector_generic, mix_vector_avx2, mix_vector_avx512;
/* The best one allowed by mix_cpu_features(). */
const mix_vector *mix_vector_current(void);
/* The functions for a dtype or class, from the vector's own or the wide ones; NULL: there is none. */
mix_tile_load_function mix_tile_load_of(const mix_vector *vector, mix_dtype dtype);
mix_tile_store_function mix_tile_store_of(const mix_vector *vector, mix_dtype dtype);
mix_tile_function mix_tile_round_of(const mix_vector *vector, mix_dtype dtype);
mix_tile_function mix_tile_instruction_of(const mix_vector *vector, mix_opcode opcode, mix_tile_class class);
/* *rounded: the function rounds to the dtype itself. */
mix_tile_function mix_tile_cast_of(const mix_vector *vector, mix_dtype from, mix_dtype to, bool *rounded);

#endif
