/* Histograms of values and of exponents. */
#include "train/callbacks/histogram.h"

#include "tensor/convert.h"
#include <math.h>

/* If all values are equal they count in the last bucket, as in TensorFlow. */
static void fill_single(double value, double count, mix_histogram rows) {
  for (int b = 0; b < MIX_HISTOGRAM_BUCKETS; b++) {
    rows[b][0] = rows[b][1] = value;
    rows[b][2] = b == MIX_HISTOGRAM_BUCKETS - 1 ? count : 0;
  }
}

int mix_histogram_of(const void *data, mix_dtype dtype, int64_t count, mix_histogram rows) {
  enum { BUCKETS = MIX_HISTOGRAM_BUCKETS };
  double smallest = INFINITY, largest = -INFINITY, found = 0;
  for (int64_t i = 0; i < count; i++) {
    double x = mix_load_double(data, dtype, i);
    if (!isfinite(x)) continue;
    smallest = fmin(smallest, x);
    largest = fmax(largest, x);
    found++;
  }
  if (found == 0) return 0;
  double width = (largest - smallest) / BUCKETS;
  if (width == 0) return fill_single(largest, found, rows), BUCKETS;
  for (int b = 0; b < BUCKETS; b++) {
    rows[b][0] = smallest + width * b;
    rows[b][1] = b == BUCKETS - 1 ? largest : smallest + width * (b + 1);
    rows[b][2] = 0;
  }
  for (int64_t i = 0; i < count; i++) {
    double x = mix_load_double(data, dtype, i);
    if (isfinite(x)) rows[(int)fmin(floor((x - smallest) / width), BUCKETS - 1)][2]++;
  }
  return BUCKETS;
}

int mix_histogram_of_exponents(const float *data, mix_dtype narrow, int64_t count, mix_histogram rows) {
  enum { MIN = -133 };
  int64_t found[MIX_HISTOGRAM_MAX] = {0};
  int first = MIX_HISTOGRAM_MAX, last = -1;
  for (int64_t i = 0; i < count; i++) {
    float x = mix_round_to(data[i], narrow);
    if (isfinite(x) && x != 0) found[ilogbf(x) - MIN]++;
  }
  for (int e = 0; e < MIX_HISTOGRAM_MAX; e++) {
    if (!found[e]) continue;
    if (first > e) first = e;
    last = e;
  }
  for (int e = first; e <= last; e++) {
    rows[e - first][0] = MIN + e;
    rows[e - first][1] = MIN + e + 1;
    rows[e - first][2] = (double)found[e];
  }
  return last < 0 ? 0 : last - first + 1;
}
