/* Stored weights by NEON. */
#include "backend/cpu/simd/simd_neon.h"

SIMD_INLINE vf widen_low(int8x8_t x) { return vcvtq_f32_s32(vmovl_s16(vget_low_s16(vmovl_s8(x)))); }
SIMD_INLINE int8x8_t four_bytes(const int8_t *p) {
  uint32_t bytes;
  memcpy(&bytes, p, sizeof bytes);
  return vcreate_s8(bytes);
}
SIMD_INLINE vf load_numbers(const int8_t *p) { return widen_low(four_bytes(p)); }
/* Lower and upper halves of four bytes, one beside the other: in the order of columns. */
SIMD_INLINE void load_packed_pair(const int8_t *p, vf w[2]) {
  const int8x8_t bytes = four_bytes(p);
  const int16x8_t words = vmovl_s8(vzip1_s8(vshr_n_s8(vshl_n_s8(bytes, 4), 4), vshr_n_s8(bytes, 4)));
  w[0] = vcvtq_f32_s32(vmovl_s16(vget_low_s16(words))), w[1] = vcvtq_f32_s32(vmovl_high_s16(words));
}
#define LOAD_PACKED_PAIR load_packed_pair
#define PACKED_BIAS(v) v_set(0)
#define FROM_PAIR(w) ((void)0)
#define TO_PAIRS NULL
#define FROM_PAIRS NULL
#define LOAD_NUMBERS load_numbers
#define FUNCTIONS mix_stored_neon
#include "backend/cpu/gemm/stored/functions.h"
