/* Products of int8 matrices, whose sums are int32: exact modulo 2^32, so that every instruction set, number
 * of threads and order of sums gives the same bits. An engine multiplies one tile of C. A group of numbers of
 * k fills one 32-bit lane of a vector: four bytes for VPDPBUSD, or two numbers of 16 bits. */
#pragma once

#include "backend/cpu/isa.h"
#include "backend/host/kernel.h"
#include <stdbool.h>
#include <stdint.h>

enum { MIX_INTEGER_MAX_TILE = 1024 }; /* mr * nr */

/* C (rows, nr) = or += start of the row + A (rows, 4 groups bytes) * a panel of B. `rows` is the function's
 * own. A is as pack_a left it, a_stride bytes from row to row. */
typedef void mix_integer_micro(int64_t groups, const void *a, int64_t a_stride, const int32_t *b,
                               const int32_t *start, int32_t *c, int64_t c_stride, bool add);

typedef struct mix_integer_engine {
  int mr, nr;                      /* rows and columns of a tile */
  int group;                       /* numbers of k in a lane: A is read as stored where they are four */
  int step;                        /* A and B have a multiple of so many groups */
  int rows;                        /* micro-kernels read and write a multiple of so many rows */
  mix_integer_micro *const *micro; /* [(rows - 1) / engine->rows], up to mr rows */
  /* Packs `columns` columns in panels of nr, each (groups, nr) lanes; what is missing counts as zero.
   * [0]: source[k * stride + j]; [1]: source[j * stride + k]. */
  void (*pack_b[2])(const int8_t *source, int64_t stride, int64_t depth, int64_t columns, int32_t *packed);
  /* Packs a row of A, stride bytes from number to number, up to whole groups. */
  void (*pack_a)(const int8_t *source, int64_t stride, int64_t depth, void *packed);
  /* What the sums of a row of A start from: B may be stored with an offset. NULL: zero. */
  int32_t (*start)(const void *a, int64_t groups);
  void (*enter)(void), (*leave)(void); /* around what a thread multiplies; NULL: nothing is to be done */
} mix_integer_engine;

/* The kernel of an engine, for its `prepare`, `workspace`, `serial` and `run`. */
bool mix_integer_prepare(const mix_integer_engine *engine, mix_kernel_args *args, int threads);
size_t mix_integer_workspace(const mix_integer_engine *engine, const mix_kernel_args *args, int threads);
bool mix_integer_serial(const mix_kernel_args *args);
void mix_integer_run(const mix_kernel_args *args, const mix_team *team);

#define MIX_DECLARE_INTEGER(set, ...) extern const mix_integer_engine mix_integer_##set;
MIX_INTEGER_SETS(MIX_DECLARE_INTEGER)
#undef MIX_DECLARE_INTEGER
