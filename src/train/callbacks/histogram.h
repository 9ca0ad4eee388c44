/* Histograms as TensorBoard reads them: rows (left edge, right edge, count). */
#pragma once

#include <mixtape/dtype.h>

/* Exponents of bfloat16 are -133 to 127. */
enum { MIX_HISTOGRAM_BUCKETS = 30, MIX_HISTOGRAM_MAX = 261 };
typedef double mix_histogram[MIX_HISTOGRAM_MAX][3];

/* Both functions return the number of rows; 0 if nothing was counted. */

/* Histogram of the finite ones of `count` numbers in thirty buckets of equal width, as in
 * tf.summary.histogram. */
int mix_histogram_of(const void *data, mix_dtype dtype, int64_t count, mix_histogram rows);
/* Histogram of the exponents of float32 numbers rounded to `narrow`, float16 or bfloat16: row e counts 2^e <=
 * |x| < 2^(e + 1). Zeros and non-finite numbers are not counted. */
int mix_histogram_of_exponents(const float *data, mix_dtype narrow, int64_t count, mix_histogram rows);
