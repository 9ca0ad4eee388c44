/* Tests of products name an engine of emulated tiles, whose packing takes AVX-512: here it is empty, and no
 * test runs it. */
#include "support/emulated_kernels.h"

const mix_gemm_engine mix_gemm_emulated_tiles = {0};
const mix_kernel *const mix_emulated_matmul_kernels[] = {NULL}, *const mix_emulated_conv_kernels[] = {NULL};
