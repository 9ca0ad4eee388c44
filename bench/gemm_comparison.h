/* Products beside those of OpenBLAS and oneDNN, interleaved in one process. The peers are loaded at run time
 * where they are installed: libopenblas.so.0 for float32, libdnnl.so.2 or .3 for float32, and .2 for bfloat16
 * too. */
#ifndef BENCH_GEMM_COMPARISON_H
#define BENCH_GEMM_COMPARISON_H

#include "cli/bench/bench.h"
#include "product_candidate.h"

typedef struct bench_gemm_shape {
  bench_shape shape;
  bool in_small_step; /* one training step of the 64-unit model at batch 128 has this product */
} bench_gemm_shape;
extern const bench_gemm_shape bench_gemm_shapes[];
extern const int bench_gemm_shape_count;

/* Products of another library, beside which the tables put ours. */
typedef struct bench_peer {
  const char *figure, *label; /* the figure's name; the title of its column */
  mix_dtype dtype;
  double at_least; /* goal for its time over ours */
  /* False: it is not installed or has no such product. */
  bool (*present)(bench_product *product);
  bool (*run)(void *product); /* as bench_candidate.run */
} bench_peer;

enum { BENCH_MAX_PEERS = 4 };
typedef struct bench_peers {
  void (*load)(int threads); /* called before `present` */
  int count;
  const bench_peer *list;
} bench_peers;

/* `load` sets variables of the environment that the libraries read, and the
 * number of threads of OpenMP. */
extern const bench_peers bench_gemm_peers;

enum { BENCH_OURS, BENCH_OPENBLAS, BENCH_ONEDNN, BENCH_LIBRARIES };

typedef struct bench_gemm_result {
  const char *kernel;
  double median[BENCH_LIBRARIES], best[BENCH_LIBRARIES]; /* seconds; 0: absent */
} bench_gemm_result;

/* Runs rounds until `budget` seconds have passed, at least five. False: no kernel, or out of memory
 * (recorded). */
bool bench_gemm_measure(const bench_shape *shape, mix_dtype dtype, int threads, double budget,
                        bench_gemm_result *result);
/* One line: "NN   128  4096   784 ...". */
void bench_gemm_print(const bench_shape *shape, const bench_gemm_result *result);

/* Geometric mean of each peer's time over ours, and the time of all products of one 64-unit step. */
typedef struct bench_gemm_summary {
  double logs[BENCH_LIBRARIES], step[BENCH_LIBRARIES];
  int compared[BENCH_LIBRARIES];
} bench_gemm_summary;
void bench_gemm_add(bench_gemm_summary *summary, const bench_gemm_shape *shape,
                    const bench_gemm_result *result);
void bench_gemm_print_summary(const bench_gemm_summary *summary);

#endif
