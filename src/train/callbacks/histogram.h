/* Histograms as TensorBoard takes them: rows (left edge, right edge, count). */
#ifndef MIX_TRAIN_CALLBACKS_HISTOGRAM_H
#define MIX_TRAIN_CALLBACKS_HISTOGRAM_H

#include <mixtape/dtype.h>
#include <stdint.h>

/* Exponents of bfloat16 go from -133 to 127. */
enum { MIX_HISTOGRAM_BUCKETS = 30, MIX_HISTOGRAM_MAX = 261 };
typedef double mix_histogram[MIX_HISTOGRAM_MAX][3];

/* Both give the number of rows; 0 where nothing was counted. */

/* Of the finite ones among `count` numbers, in thirty buckets of one width: the rows of tf.summary.histogram. */
int mix_histogram_of(const void *data, mix_dtype dtype, int64_t count, mix_histogram rows);
/* Of the exponents of float32 numbers rounded to `narrow`, float16 or bfloat16: row e counts 2^e <= |x| < 2^(e + 1). Zeros and what is not
 * finite have no exponent. */
int mix_histogram_of_exponents(const float *data, mix_dtype narrow, int64_t count, mix_histogram rows);

#endif
