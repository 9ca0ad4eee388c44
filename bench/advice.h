/* What is known of products in 16 bits, as rules: which kernel takes one here, how its time compares with float32's, and why. Drawn from
 * the measurements of docs/PERFORMANCE.md; nothing is timed. */
#ifndef MIX_BENCH_ADVICE_H
#define MIX_BENCH_ADVICE_H

#include "gemm_contest.h"

typedef struct bench_advice {
  const char *kernel; /* that serves it in 16 bits; NULL: none */
  double wide, narrow; /* time in float32 and in 16 bits; the unit: a float32 operation at full speed */
  char why[192];
} bench_advice;

void bench_advise_product(const bench_shape *shape, mix_dtype dtype, bench_advice *advice);
/* Of moving so many bytes to or from memory, in the same unit. */
double bench_advice_of_bytes(double bytes);
/* Of an update of so many bytes, beyond the time of the product that makes its gradient. */
double bench_advice_of_update(double bytes, double product);
/* What no policy changes in a step: softmax, loss, metrics, dispatch. */
#define BENCH_ADVICE_REST 4e6
/* "gains", "even" or "loses" for float32's time over the other. */
const char *bench_advice_verdict(double gain);

#endif
