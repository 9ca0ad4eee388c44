/* Sums of the parts of all ranks. */
#pragma once

#include <mixtape/dtype.h>

/* result[i] = parts[0][i] + parts[1][i] + ... of `ranks` parts of `count` elements. 16-bit elements are added
 * in float32 and rounded once; integers wrap. */
void mix_sum_parts(mix_dtype dtype, const void *parts, int ranks, int64_t count, void *result);
