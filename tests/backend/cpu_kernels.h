/* Shared by the tests of the CPU kernels: running one kernel with a team, distances in ulp, and test data. */
#ifndef TESTS_BACKEND_CPU_KERNELS_H
#define TESTS_BACKEND_CPU_KERNELS_H

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "backend/host/barrier.h"
#include "backend/cpu/kernels.h"
#include "backend/instruction_sets.h"
#include "backend/host/kernel.h"
#include "backend/plan_thread.h"
#include "base/alloc.h"
#include "base/processor.h"
#include "base/philox.h"
#include "tensor/convert.h"
#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The first kernel of the list that the enabled CPU features allow. */
static inline const mix_kernel *best_kernel(const mix_kernel *const *kernels) {
  const uint32_t features = mix_cpu_features();
  while (*kernels && ((*kernels)->needs & ~features)) kernels++;
  return *kernels;
}

/* Runs a kernel with a team as the host backend does. Returns the kernel's error message or NULL. */
static inline const char *run_kernel(const mix_kernel *kernel, mix_kernel_args *args, int threads) {
  static mix_value_error error;
  static char text[512];
  error = (mix_value_error){0};
  args->error = &error;
  args->prepared = NULL;
  if (kernel->prepare) assert_true(kernel->prepare(args, threads));
  const int size = kernel->serial && kernel->serial(args) ? 1 : threads;
  const size_t bytes = kernel->workspace ? kernel->workspace(args, size) : 0;
  args->workspace = mix_alloc_buffer(bytes);
  memset(args->workspace, 0xa5, bytes);
  mix_barrier barrier = {0};
  omp_set_dynamic(0);
#pragma omp parallel num_threads(size)
  {
    const mix_team team = {omp_get_thread_num(), omp_get_num_threads(), &barrier};
    run_as_in_a_plan(kernel, args, &team);
  }
  mix_free_buffer(args->workspace, bytes);
  if (args->prepared && kernel->release)
    kernel->release(args->prepared);
  else
    mix_free(args->prepared);
  if (!error.met) return NULL;
  mix_value_error_text(args, NULL, text, sizeof text);
  return text;
}

/* ---- comparing ---- */

static inline int64_t ordered(const void *data, mix_dtype dtype, int64_t i) {
  if (dtype == MIX_FLOAT32) {
    const int32_t bits = ((const int32_t *)data)[i];
    return bits < 0 ? (int64_t)INT32_MIN - bits : bits;
  }
  if (dtype == MIX_FLOAT64) {
    const int64_t bits = ((const int64_t *)data)[i];
    return bits < 0 ? INT64_MIN - bits : bits;
  }
  const int16_t bits = ((const int16_t *)data)[i];
  return bits < 0 ? (int64_t)INT16_MIN - bits : bits;
}
/* Distance in ulp. 0 for two NaNs and for zeros of both signs, INT64_MAX if only one is a NaN. */
static inline int64_t distance(const void *a, const void *b, mix_dtype dtype, int64_t i) {
  if (!mix_dtype_is_floating(dtype))
    return mix_load_integer(a, dtype, i) == mix_load_integer(b, dtype, i) ? 0 : INT64_MAX;
  const double x = mix_load_double(a, dtype, i), y = mix_load_double(b, dtype, i);
  if (isnan(x) || isnan(y)) return isnan(x) && isnan(y) ? 0 : INT64_MAX;
  if (x == y) return 0;
  const int64_t p = ordered(a, dtype, i), q = ordered(b, dtype, i);
  return p > q ? p - q : q - p;
}
/* Flushes subnormal numbers as arithmetic on the device cpu does. float16's are kept: they are normal float32
 * numbers. */
static inline void flush_subnormals(void *data, mix_dtype dtype, int64_t n) {
  const double smallest_normal = dtype == MIX_FLOAT64 ? 0x1p-1022 : 0x1p-126;
  for (int64_t i = 0; mix_dtype_is_floating(dtype) && i < n; i++)
    if (fabs(mix_load_double(data, dtype, i)) < smallest_normal) mix_store_double(data, dtype, i, 0);
}
/* Fails with a message that names the first element that differs by more than `bound`. */
static inline void assert_close(const char *what, const void *result, const void *expected, mix_dtype dtype,
                                int64_t n, int64_t bound) {
  for (int64_t i = 0; i < n; i++)
    if (distance(result, expected, dtype, i) > bound)
      fail_msg("%s: %s element %lld of %lld is %.9g, expected %.9g within %lld ulp", what,
               mix_dtype_name(dtype), (long long)i, (long long)n, mix_load_double(result, dtype, i),
               mix_load_double(expected, dtype, i), (long long)bound);
}

/* ---- numbers ---- */

static inline double uniform(uint64_t seed, uint64_t i) { return mix_philox_word(seed, 1, i) * 0x1p-32; }
/* Numbers of all magnitudes, zeros of both signs, infinities and NaN for floating dtypes; small and extreme
 * integers. */
static inline void fill_wild(void *data, mix_dtype dtype, int64_t n, uint64_t seed) {
  static const double special[] = {0.0,    -0.0, 1,     -1,       0.5,       -0.5, 2.5, -2.5, 1e-30,
                                   -1e-30, 1e30, -1e30, INFINITY, -INFINITY, NAN,  3,   6,    -7};
  enum { SPECIAL = sizeof special / sizeof *special };
  for (int64_t i = 0; i < n; i++) {
    const uint32_t word = mix_philox_word(seed, 2, (uint64_t)i);
    if (dtype == MIX_BOOL)
      ((uint8_t *)data)[i] = word & 1;
    else if (!mix_dtype_is_floating(dtype))
      mix_store_integer(data, dtype, i,
                        word % 3 ? (int64_t)(word % 41) - 20 : (int64_t)((uint64_t)word << 31 ^ word));
    else if (word % 16 == 0)
      mix_store_double(data, dtype, i, special[word / 16 % SPECIAL]);
    else if (word % 4 == 1)
      mix_store_double(data, dtype, i, ldexp(2 * uniform(seed, (uint64_t)i) - 1, (int)(word / 4 % 60) - 30));
    else
      mix_store_double(data, dtype, i, 20 * uniform(seed, (uint64_t)i) - 10);
  }
}
/* Uniform in [low, high). */
static inline void fill_between(void *data, mix_dtype dtype, int64_t n, uint64_t seed, double low,
                                double high) {
  for (int64_t i = 0; i < n; i++)
    mix_store_double(data, dtype, i, low + (high - low) * uniform(seed, (uint64_t)i));
}

#endif
