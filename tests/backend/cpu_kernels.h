/* What the tests of the CPU's kernels share: running one kernel with a team, instruction sets one after the other, distances in
 * units of the last place, and numbers that find faults. */
#ifndef TESTS_BACKEND_CPU_KERNELS_H
#define TESTS_BACKEND_CPU_KERNELS_H

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "backend/barrier.h"
#include "backend/cpu/kernels.h"
#include "backend/kernel.h"
#include "base/alloc.h"
#include "base/cpu.h"
#include "base/philox.h"
#include "tensor/convert.h"
#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct instruction_set {
  const char *name;
  uint32_t features;
} instruction_set;

static const instruction_set instruction_sets[] = {
    {"generic", 0}, {"avx2", MIX_CPU_AVX2}, {"avx512", MIX_CPU_AVX2 | MIX_CPU_AVX512}};
enum { INSTRUCTION_SETS = 3 };

static inline int use_instruction_set(void **state) {
  const instruction_set *set = *state;
  mix_cpu_override(set->features & mix_cpu_found());
  return 0;
}
static inline int restore_instruction_set(void **state) {
  (void)state;
  mix_cpu_override(UINT32_MAX);
  return 0;
}
/* A missing instruction set shows as a skipped test. */
#define NEED_INSTRUCTION_SET(state)                                                                                                \
  do {                                                                                                                             \
    if (((const instruction_set *)*(state))->features & ~mix_cpu_found()) skip();                                                  \
  } while (0)
#define ON_EACH_SET(test)                                                                                                          \
  {#test "_generic", test, use_instruction_set, restore_instruction_set, (void *)&instruction_sets[0]},                            \
      {#test "_avx2", test, use_instruction_set, restore_instruction_set, (void *)&instruction_sets[1]}, {                         \
#test "_avx512", test, use_instruction_set, restore_instruction_set, (void *)&instruction_sets[2]                              \
  }

/* The first kernel of the list that the features in force allow. */
static inline const mix_kernel *best_kernel(const mix_kernel *const *kernels) {
  const uint32_t features = mix_cpu_features();
  while (*kernels && ((*kernels)->needs & ~features)) kernels++;
  return *kernels;
}

/* One run by a team as the host backends do it; the reason of the kernel's failure or NULL. */
static inline const char *run_kernel(const mix_kernel *kernel, mix_kernel_args *args, int threads) {
  _Atomic(const char *) failure = NULL;
  args->failure = &failure;
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
    kernel->run(args, &team);
  }
  mix_free_buffer(args->workspace, bytes);
  if (args->prepared && kernel->unprepare)
    kernel->unprepare(args->prepared);
  else
    mix_free(args->prepared);
  return failure;
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
/* Distance in units of the last place; 0 for two NaNs and for zeros of both signs, INT64_MAX where one is a NaN. */
static inline int64_t distance(const void *a, const void *b, mix_dtype dtype, int64_t i) {
  if (!mix_dtype_is_floating(dtype)) return mix_load_integer(a, dtype, i) == mix_load_integer(b, dtype, i) ? 0 : INT64_MAX;
  const double x = mix_load_double(a, dtype, i), y = mix_load_double(b, dtype, i);
  if (isnan(x) || isnan(y)) return isnan(x) && isnan(y) ? 0 : INT64_MAX;
  if (x == y) return 0;
  const int64_t p = ordered(a, dtype, i), q = ordered(b, dtype, i);
  return p > q ? p - q : q - p;
}
/* Fails with one line that names the first element that differs by more than `bound`. */
static inline void assert_close(const char *what, const void *result, const void *expected, mix_dtype dtype, int64_t n,
                                int64_t bound) {
  for (int64_t i = 0; i < n; i++)
    if (distance(result, expected, dtype, i) > bound)
      fail_msg("%s: %s element %lld of %lld is %.9g, expected %.9g within %lld ulp", what, mix_dtype_name(dtype), (long long)i,
               (long long)n, mix_load_double(result, dtype, i), mix_load_double(expected, dtype, i), (long long)bound);
}

/* ---- numbers ---- */

static inline double uniform(uint64_t seed, uint64_t i) { return mix_philox_word(seed, 1, i) * 0x1p-32; }
/* Numbers of all sizes, zeros of both signs, infinities and NaN for floating dtypes; small and extreme integers. */
static inline void fill_wild(void *data, mix_dtype dtype, int64_t n, uint64_t seed) {
  static const double special[] = {0.0,    -0.0, 1,     -1,       0.5,       -0.5, 2.5, -2.5, 1e-30,
                                   -1e-30, 1e30, -1e30, INFINITY, -INFINITY, NAN,  3,   6,    -7};
  enum { SPECIAL = sizeof special / sizeof *special };
  for (int64_t i = 0; i < n; i++) {
    const uint32_t word = mix_philox_word(seed, 2, (uint64_t)i);
    if (dtype == MIX_BOOL)
      ((uint8_t *)data)[i] = word & 1;
    else if (!mix_dtype_is_floating(dtype))
      mix_store_integer(data, dtype, i, word % 3 ? (int64_t)(word % 41) - 20 : (int64_t)((uint64_t)word << 31 ^ word));
    else if (word % 16 == 0)
      mix_store_double(data, dtype, i, special[word / 16 % SPECIAL]);
    else if (word % 4 == 1)
      mix_store_double(data, dtype, i, ldexp(2 * uniform(seed, (uint64_t)i) - 1, (int)(word / 4 % 60) - 30));
    else
      mix_store_double(data, dtype, i, 20 * uniform(seed, (uint64_t)i) - 10);
  }
}
/* Uniform in [low, high). */
static inline void fill_between(void *data, mix_dtype dtype, int64_t n, uint64_t seed, double low, double high) {
  for (int64_t i = 0; i < n; i++) mix_store_double(data, dtype, i, low + (high - low) * uniform(seed, (uint64_t)i));
}

#endif
