/* Products beside those of OpenBLAS and oneDNN, interleaved in one process. The peers are loaded at run time (libopenblas.so.0,
 * libdnnl.so.2 or .3) where they are installed; OpenBLAS serves float32 alone, oneDNN 2 bfloat16 too. */
#ifndef MIX_BENCH_GEMM_CONTEST_H
#define MIX_BENCH_GEMM_CONTEST_H

#include "backend/host/kernel.h"
#include <mixtape/dtype.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct bench_shape {
  bool ta, tb;
  int64_t m, n, k;
  char set; /* l: large, s: skinny, u: one training step of the 64-unit model at batch 128 */
} bench_shape;

/* "NN,128,4096,784". */
bool bench_parse_shape(const char *text, bench_shape *shape);
extern const bench_shape bench_gemm_shapes[];
extern const int bench_gemm_shape_count;

enum { BENCH_OURS, BENCH_OPENBLAS, BENCH_ONEDNN, BENCH_PEERS };

typedef struct bench_gemm_result {
  const char *kernel;
  double median[BENCH_PEERS], best[BENCH_PEERS]; /* seconds; 0: absent */
} bench_gemm_result;

/* OpenBLAS is told its core type, without which old versions take new processors for ancient ones. */
void bench_gemm_load_peers(int threads);
/* Rounds until `budget` seconds are spent, at least five. False: no kernel, or out of memory (recorded). */
bool bench_gemm_measure(const bench_shape *shape, mix_dtype dtype, int threads, double budget, bench_gemm_result *result);
/* One product with its operands, as a contestant of bench_interleave. NULL: no kernel, or out of memory (recorded). */
typedef struct bench_product bench_product;
bench_product *bench_product_new(const bench_shape *shape, mix_dtype dtype, int threads);
void bench_product_free(bench_product *product);
/* From now on B is taken as it was packed: weights. False: no kernel does that with this product, or out of memory (recorded). */
bool bench_product_keep_packed(bench_product *product);
bool bench_product_has(bench_product *product, int peer); /* is it there, for this dtype? */
bool bench_product_ours(void *product);
bool bench_product_openblas(void *product);
bool bench_product_onednn(void *product);
/* The kernel that a plan would take. */
const mix_kernel *bench_gemm_kernel(const mix_kernel_args *args);
/* "NN   128  4096   784 ...": one line. */
void bench_gemm_print(const bench_shape *shape, const bench_gemm_result *result);
/* Time of each peer over ours, geometric mean; and the products of one 64-unit step. */
typedef struct bench_gemm_summary {
  double logs[BENCH_PEERS], step[BENCH_PEERS];
  int compared[BENCH_PEERS];
} bench_gemm_summary;
void bench_gemm_add(bench_gemm_summary *summary, const bench_shape *shape, const bench_gemm_result *result);
void bench_gemm_print_summary(const bench_gemm_summary *summary);

#endif
