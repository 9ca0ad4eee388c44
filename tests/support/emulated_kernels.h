/* Kernels over instructions that are emulated, for tests: rows as those of backend/cpu, named "..._emulated",
 * with what a processor needs to emulate them. Empty on other architectures than the instructions'. */
#ifndef MIX_TESTS_SUPPORT_EMULATED_KERNELS_H
#define MIX_TESTS_SUPPORT_EMULATED_KERNELS_H

#include "backend/cpu/gemm/gemm.h"
#include "base/processor.h"

/* Tiles of bfloat16 (bf16_tiles_avx512.c). */
enum { EMULATED_TILES_NEED = MIX_CPU_AVX512 };
extern const mix_gemm_engine mix_gemm_emulated_tiles;
extern const mix_kernel *const mix_emulated_matmul_kernels[], *const mix_emulated_conv_kernels[];

#endif
