/* bfloat16 products of oneDNN 2 (libdnnl.so.2), loaded at run time: the peer of ours, which stores bfloat16 too. */
#ifndef MIX_BENCH_ONEDNN_BF16_H
#define MIX_BENCH_ONEDNN_BF16_H

#include "gemm_contest.h"

typedef struct bench_onednn bench_onednn;
/* C (m, n) = op(A) op(B). NULL: no such library, or it has no such product. Lives as long as the process. */
bench_onednn *bench_onednn_new(const bench_shape *shape, const void *a, const void *b, void *c);
void bench_onednn_run(bench_onednn *product);
void bench_onednn_free(bench_onednn *product);

#endif
