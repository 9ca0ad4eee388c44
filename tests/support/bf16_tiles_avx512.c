/* The engine on tiles of bfloat16 and its kernels, over tile registers that are emulated, for processors
 * without AMX. Packing takes AVX-512. */
#include <stdbool.h>

#include "support/emulated_kernels.h"
#include "support/emulated_tiles_avx2.h"
#include "backend/cpu/convolution/products.h"

/* TDPBF16PS: for each pair of k a fused multiply-add of the first numbers and one of the second numbers, in
 * two chains from zero, whose sum is added to C. Rounded to nearest even; subnormals count as zero, in
 * operands and in results; MXCSR is neither read nor written. (Intel 64 and IA-32 Architectures Software
 * Developer's Manual, volume 2. Measured: 0 of 512,000 sums in another order.) */
static inline void emulated_multiply_pairs(int c, int a, int b) {
  enum { NEAREST_FLUSHING = 0x9fc0 };
  emulated_need_factors(c, a, b);
  const int pairs = emulated_tiles.rows[b], columns = emulated_tiles.bytes[c] / 4;
  const __mmask16 mask = (__mmask16)((1u << columns) - 1);
  const __m512i upper = _mm512_set1_epi32((int)0xffff0000u);
  const unsigned control = _mm_getcsr();
  _mm_setcsr(NEAREST_FLUSHING);
  __asm__ volatile("" ::: "memory");
  for (int i = 0; i < emulated_tiles.rows[c]; i++) {
    __m512 first = _mm512_setzero_ps(), second = first;
    for (int k = 0; k < pairs; k++) {
      int32_t pair;
      memcpy(&pair, &emulated_tiles.data[a][i][4 * k], sizeof pair);
      const __m512i x = _mm512_set1_epi32(pair), y = _mm512_loadu_si512(emulated_tiles.data[b][k]);
      first = _mm512_fmadd_ps(_mm512_castsi512_ps(_mm512_slli_epi32(x, 16)),
                              _mm512_castsi512_ps(_mm512_slli_epi32(y, 16)), first);
      second = _mm512_fmadd_ps(_mm512_castsi512_ps(_mm512_and_si512(x, upper)),
                               _mm512_castsi512_ps(_mm512_and_si512(y, upper)), second);
    }
    int8_t *to = emulated_tiles.data[c][i];
    const __m512 sum = _mm512_add_ps(_mm512_loadu_ps(to), _mm512_add_ps(first, second));
    _mm512_mask_storeu_ps(to, mask, sum);
  }
  __asm__ volatile("" ::: "memory");
  _mm_setcsr(control);
}
#undef _tile_dpbf16ps
#define _tile_dpbf16ps(c, a, b) emulated_multiply_pairs(c, a, b)

#define ENGINE mix_gemm_emulated_tiles
#include "backend/cpu/gemm/amx/engine_tiles.h"

#define EACH_DTYPE(X, prefix)                                                                                \
  X(prefix##f16, MIX_FLOAT16, mix_gemm_emulated_tiles, "f16_acc32_amx_emulated", EMULATED_TILES_NEED, NULL,  \
    MIX_ACCUMULATE_EXACT, "")                                                                                \
  X(prefix##bf16, MIX_BFLOAT16, mix_gemm_emulated_tiles, "bf16_acc32_amx_emulated", EMULATED_TILES_NEED,     \
    NULL, MIX_ACCUMULATE_EXACT, "")                                                                          \
  X(prefix##f32, MIX_FLOAT32, mix_gemm_emulated_tiles, "f32_acc32_amx_emulated", EMULATED_TILES_NEED, NULL,  \
    MIX_ACCUMULATE_EXACT, "")
EACH_DTYPE(MIX_MATMUL_KERNEL, matmul_)
EACH_DTYPE(MIX_CONV_PRODUCT_KERNEL, conv_)
const mix_kernel *const mix_emulated_matmul_kernels[] = {&matmul_f16, &matmul_bf16, &matmul_f32, NULL};
const mix_kernel *const mix_emulated_conv_kernels[] = {&conv_f16, &conv_bf16, &conv_f32, NULL};
