/* Rules for products of 16-bit matrices: which kernel this processor takes, how its time compares with
 * float32's, and why. They follow the measurements of docs/PERFORMANCE.md; nothing is timed. */
#pragma once

#include <mixtape/mixtape.h>

/* Of a product; ta, tb: the operand is transposed. */
typedef struct bench_shape {
  bool ta, tb;
  int64_t m, n, k;
} bench_shape;

typedef struct bench_advice {
  const char *kernel; /* that the 16-bit product takes; NULL: no product */
  /* Time in float32 and in 16 bits, in float32 operations at full speed. */
  double wide, narrow;
  char why[192];
} bench_advice;

void bench_advise_product(const bench_shape *shape, mix_dtype dtype, bench_advice *advice);
/* Time to move so many bytes to or from memory, in the same unit. */
double bench_advice_of_bytes(double bytes);
/* Time of an update that moves so many bytes, beyond that of the product that makes its gradient. */
double bench_advice_of_update(double bytes, double product);
/* Time of what no policy changes in a step: softmax, loss, metrics, dispatch. */
double bench_advice_rest(void);
/* From what the rules for this device were drawn. */
const char *bench_advice_source(void);
/* Units, filters and batches should be multiples of it on this device. */
int bench_advice_rule(void);
/* "gains", "even" or "loses", for float32's time over the policy's. */
const char *bench_advice_verdict(double gain);
