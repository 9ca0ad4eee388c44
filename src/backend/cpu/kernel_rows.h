/* One body, one kernel for each instruction set. MIX_CPU_KERNELS(op, "name", ...) defines
 * mix_cpu_<op>_kernels, best first. Their run functions call run_<op>(args, team, vector). The other
 * arguments initialise members of mix_kernel. */
#ifndef MIX_BACKEND_CPU_KERNEL_ROWS_H
#define MIX_BACKEND_CPU_KERNEL_ROWS_H

#include "backend/cpu/kernels.h"
#include "backend/cpu/simd/vector_functions.h"

#define MIX_CPU_KERNEL(op, set, features, text, ...)                                                         \
  static void op##_##set(const mix_kernel_args *args, const mix_team *team) {                                \
    run_##op(args, team, &mix_vector_##set);                                                                 \
  }                                                                                                          \
  static const mix_kernel op##_kernel_##set = {                                                              \
      .name = text "_" #set, .needs = features, .run = op##_##set, __VA_ARGS__};
#define MIX_CPU_KERNELS(op, text, ...)                                                                       \
  MIX_CPU_KERNEL(op, avx512, MIX_CPU_AVX512, text, __VA_ARGS__)                                              \
  MIX_CPU_KERNEL(op, avx2, MIX_CPU_AVX2, text, __VA_ARGS__)                                                  \
  MIX_CPU_KERNEL(op, generic, 0, text, __VA_ARGS__)                                                          \
  MIX_CPU_TABLE(op)
#define MIX_CPU_TABLE(op)                                                                                    \
  const mix_kernel *const mix_cpu_##op##_kernels[] = {&op##_kernel_avx512, &op##_kernel_avx2,                \
                                                      &op##_kernel_generic, NULL};

/* The same for kernels that run in bands: band_<op>(args, band, vector). */
#define MIX_CPU_BANDS(op, set, features, text, ...)                                                          \
  static void op##_band_##set(const mix_kernel_args *args, const mix_band *band) {                           \
    band_##op(args, band, &mix_vector_##set);                                                                \
  }                                                                                                          \
  MIX_CPU_KERNEL(op, set, features, text, .run_band = op##_band_##set, __VA_ARGS__)
#define MIX_CPU_KERNELS_IN_BANDS(op, text, ...)                                                              \
  MIX_CPU_BANDS(op, avx512, MIX_CPU_AVX512, text, __VA_ARGS__)                                               \
  MIX_CPU_BANDS(op, avx2, MIX_CPU_AVX2, text, __VA_ARGS__)                                                   \
  MIX_CPU_BANDS(op, generic, 0, text, __VA_ARGS__)                                                           \
  MIX_CPU_TABLE(op)

/* Below this many elements a kernel of simple instructions is serial: a barrier costs as much as about
 * 5,000 elements, and the data moves between caches. */
enum { MIX_CPU_SMALL = 65536 };

#endif
