/* Products of bfloat16 matrices by oneDNN 2 (libdnnl.so.2), loaded at run time. The result is bfloat16, as
 * ours. */
#ifndef BENCH_ONEDNN_BF16_H
#define BENCH_ONEDNN_BF16_H

#include "product_candidate.h"

typedef struct bench_onednn bench_onednn;
/* C (m, n) = op(A) op(B). NULL: oneDNN 2 is not installed, or has no such product. */
bench_onednn *bench_onednn_new(const bench_shape *shape, const void *a, const void *b, void *c);
void bench_onednn_run(bench_onednn *product);
void bench_onednn_free(bench_onednn *product);

#endif
