/* One body, one kernel for each instruction set. MIX_CPU_KERNELS(op, "name", ...) defines
 * mix_cpu_<op>_kernels, best first. Their run functions call <op>_run(args, team, vector). The other
 * arguments initialise members of mix_kernel. */
#pragma once

#include "backend/cpu/kernels.h"
#include "backend/cpu/simd/vector_functions.h"

#define MIX_CPU_KERNEL(set, features, vectors, op, text, ...)                                                \
  static void op##_##set(const mix_kernel_args *args, const mix_team *team) {                                \
    op##_run(args, team, &mix_vector_##set);                                                                 \
  }                                                                                                          \
  static const mix_kernel op##_kernel_##set = {                                                              \
      .name = text "_" #set, .needs = features, .run = op##_##set, __VA_ARGS__};
#define MIX_CPU_ROW(set, features, vectors, op) &op##_kernel_##set,
#define MIX_CPU_TABLE(op)                                                                                    \
  const mix_kernel *const mix_cpu_##op##_kernels[] = {MIX_VECTOR_SETS(MIX_CPU_ROW, op) NULL};
#define MIX_CPU_KERNELS(op, text, ...)                                                                       \
  MIX_VECTOR_SETS(MIX_CPU_KERNEL, op, text, __VA_ARGS__)                                                     \
  MIX_CPU_TABLE(op)

/* The same for kernels that run in bands: <op>_run_band(args, band, vector). */
#define MIX_CPU_BANDS(set, features, vectors, op, text, ...)                                                 \
  static void op##_band_##set(const mix_kernel_args *args, const mix_band *band) {                           \
    op##_run_band(args, band, &mix_vector_##set);                                                            \
  }                                                                                                          \
  MIX_CPU_KERNEL(set, features, vectors, op, text, .run_band = op##_band_##set, __VA_ARGS__)
#define MIX_CPU_KERNELS_IN_BANDS(op, text, ...)                                                              \
  MIX_VECTOR_SETS(MIX_CPU_BANDS, op, text, __VA_ARGS__)                                                      \
  MIX_CPU_TABLE(op)

/* prepare_<set>(args, threads) for each set: <kernel>_prepare(args, vector). */
#define MIX_CPU_PREPARE(set, features, vectors, kernel)                                                      \
  static bool prepare_##set(mix_kernel_args *args, int threads) {                                            \
    return kernel##_prepare(args, &mix_vector_##set);                                                        \
  }

/* Below this many elements a kernel of simple instructions is serial: a barrier costs as much as about
 * 5,000 elements, and the data moves between caches. */
enum { MIX_CPU_SMALL = 65536 };
