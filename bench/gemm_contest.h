/* Products beside those of OpenBLAS and oneDNN, interleaved in one process. The peers are loaded at run time (libopenblas.so.0,
 * libdnnl.so.2 or .3) where they are installed, and serve float32 alone. */
#ifndef MIX_BENCH_GEMM_CONTEST_H
#define MIX_BENCH_GEMM_CONTEST_H

#include <mixtape/dtype.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct bench_shape {
  bool ta, tb;
  int64_t m, n, k;
  char set; /* l: large, s: skinny, u: one training step of the 64-unit model at batch 128 */
} bench_shape;

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
