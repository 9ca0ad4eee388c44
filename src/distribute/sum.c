/* Sums in the order of the ranks. */
#include "distribute/sum.h"

#include "tensor/convert.h"

enum { BLOCK = 1024 }; /* elements, which stay in the first-level cache */

static const char *element(const void *parts, int64_t index, size_t size) {
  return (const char *)parts + (size_t)index * size;
}

static void sum_floats(const float *parts, int ranks, int64_t count, float *result) {
  memcpy(result, parts, sizeof *result * (size_t)count);
  for (int64_t first = 0; first < count; first += BLOCK) {
    const int64_t end = first + BLOCK < count ? first + BLOCK : count;
    for (int r = 1; r < ranks; r++) {
      const float *restrict part = parts + (int64_t)r * count;
      for (int64_t i = first; i < end; i++) result[i] += part[i];
    }
  }
}

static void sum_doubles(const double *parts, int ranks, int64_t count, double *result) {
  memcpy(result, parts, sizeof *result * (size_t)count);
  for (int r = 1; r < ranks; r++)
    for (int64_t i = 0; i < count; i++) result[i] += parts[(int64_t)r * count + i];
}

static void sum_halves(mix_dtype dtype, const void *parts, int ranks, int64_t count, void *result) {
  float sums[BLOCK], part[BLOCK];
  for (int64_t first = 0; first < count; first += BLOCK) {
    const int64_t length = count - first < BLOCK ? count - first : BLOCK;
    mix_convert(element(parts, first, 2), dtype, sums, MIX_FLOAT32, length);
    for (int r = 1; r < ranks; r++) {
      mix_convert(element(parts, (int64_t)r * count + first, 2), dtype, part, MIX_FLOAT32, length);
      for (int64_t i = 0; i < length; i++) sums[i] += part[i];
    }
    mix_convert(sums, MIX_FLOAT32, (char *)result + 2 * first, dtype, length);
  }
}

static void sum_integers(mix_dtype dtype, const void *parts, int ranks, int64_t count, void *result) {
  for (int64_t i = 0; i < count; i++) {
    uint64_t sum = 0;
    for (int r = 0; r < ranks; r++) sum += (uint64_t)mix_load_integer(parts, dtype, (int64_t)r * count + i);
    mix_store_integer(result, dtype, i, mix_wrap_integer((int64_t)sum, dtype));
  }
}

void mix_sum_parts(mix_dtype dtype, const void *parts, int ranks, int64_t count, void *result) {
  if (count < 1) return;
  switch (dtype) {
  case MIX_FLOAT32: sum_floats(parts, ranks, count, result); break;
  case MIX_FLOAT64: sum_doubles(parts, ranks, count, result); break;
  case MIX_FLOAT16:
  case MIX_BFLOAT16: sum_halves(dtype, parts, ranks, count, result); break;
  default: sum_integers(dtype, parts, ranks, count, result);
  }
}
