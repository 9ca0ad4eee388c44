/* The vector vocabulary (simd.h) for arm64's Advanced SIMD (NEON), which every such processor has: 4 floats
 * or 2 doubles. */
#pragma once

#include "backend/cpu/simd/simd.h"
#include <arm_neon.h>

#define SIMD_BYTES 16
#define SIMD_REGISTERS 32
#define SIMD_MASKS 0
/* Not in assembly, among which compilers spill elements of A. */
#define V_ACCUMULATE(c, a, b) ((c) = v_fma(a, b, c))

typedef int64_t v_part;
SIMD_INLINE v_part v_first(int64_t n) { return n; }

#if SIMD_DOUBLE

#define LANES 2
#define V_ACCUMULATE_BROADCAST(c, p, b) ((c) = vfmaq_n_f64(c, b, *(p)))
typedef float64x2_t vec;

SIMD_INLINE vec v_set(double x) { return vdupq_n_f64(x); }
SIMD_INLINE vec v_load(const double *p) { return vld1q_f64(p); }
SIMD_INLINE void v_store(double *p, vec x) { vst1q_f64(p, x); }
SIMD_INLINE void v_stream(double *p, vec x) { vst1q_f64(p, x); }
SIMD_INLINE vec v_fma(vec a, vec b, vec c) { return vfmaq_f64(c, a, b); }
SIMD_INLINE vec v_load_part(const double *p, v_part part) {
  if (part == LANES) return v_load(p);
  return part > 0 ? vsetq_lane_f64(*p, v_set(0), 0) : v_set(0);
}
SIMD_INLINE void v_store_part(double *p, vec x, v_part part) {
  if (part == LANES)
    v_store(p, x);
  else if (part > 0)
    *p = vgetq_lane_f64(x, 0);
}
SIMD_INLINE double v_horizontal_sum(vec x) { return vpaddd_f64(x); }

#define SIMD_FEW 2
SIMD_INLINE void few_transpose(vec r[2]) {
  const vec first = r[0];
  r[0] = vzip1q_f64(first, r[1]), r[1] = vzip2q_f64(first, r[1]);
}

#else

/* Keeps a product from being contracted with the addition that takes it, whatever the compiler's options. */
#define KEEP(x) __asm__("" : "+w"(x))
#define LANES 4
#define V_ACCUMULATE_BROADCAST(c, p, b) ((c) = vfmaq_n_f32(c, b, *(p)))
typedef float32x4_t vf;
typedef vf vec;
typedef int32x4_t vi;
typedef uint32x4_t vu;
typedef uint32x4_t vm; /* all bits of a lane set or clear */

SIMD_INLINE vf v_set(float x) { return vdupq_n_f32(x); }
SIMD_INLINE vi v_set_integer(int32_t x) { return vdupq_n_s32(x); }
SIMD_INLINE vf v_load(const float *p) { return vld1q_f32(p); }
SIMD_INLINE void v_store(float *p, vf x) { vst1q_f32(p, x); }
SIMD_INLINE void v_stream(float *p, vf x) { vst1q_f32(p, x); }
SIMD_INLINE vf v_fma(vf a, vf b, vf c) { return vfmaq_f32(c, a, b); }
/* In registers: a copy of a variable size through memory would wait for its own stores. */
SIMD_INLINE vf v_load_part_or(const float *p, v_part part, float other) {
  if (part == LANES) return v_load(p);
  vf x = v_set(other);
  if (part & 2) {
    x = vcombine_f32(vld1_f32(p), vget_high_f32(x));
    return part & 1 ? vld1q_lane_f32(p + 2, x, 2) : x;
  }
  return part & 1 ? vld1q_lane_f32(p, x, 0) : x;
}
SIMD_INLINE vf v_load_part(const float *p, v_part part) { return v_load_part_or(p, part, 0); }
SIMD_INLINE void v_store_part(float *p, vf x, v_part part) {
  if (part == LANES) {
    v_store(p, x);
  } else if (part & 2) {
    vst1_f32(p, vget_low_f32(x));
    if (part & 1) vst1q_lane_f32(p + 2, x, 2);
  } else if (part & 1) {
    vst1q_lane_f32(p, x, 0);
  }
}

SIMD_INLINE uint16x4_t load_part_16(const uint16_t *p, v_part part) {
  if (part == LANES) return vld1_u16(p);
  uint16x4_t x = vdup_n_u16(0);
  if (part > 0) x = vld1_lane_u16(p, x, 0);
  if (part > 1) x = vld1_lane_u16(p + 1, x, 1);
  return part > 2 ? vld1_lane_u16(p + 2, x, 2) : x;
}
SIMD_INLINE void store_part_16(uint16_t *p, uint16x4_t x, v_part part) {
  if (part == LANES) {
    vst1_u16(p, x);
    return;
  }
  if (part > 0) vst1_lane_u16(p, x, 0);
  if (part > 1) vst1_lane_u16(p + 1, x, 1);
  if (part > 2) vst1_lane_u16(p + 2, x, 2);
}
/* FCVT keeps subnormal float16 under FPCR.FZ. */
SIMD_INLINE vf widen_f16(uint16x4_t h) { return vcvt_f32_f16(vreinterpret_f16_u16(h)); }
SIMD_INLINE uint16x4_t narrow_f16(vf x) { return vreinterpret_u16_f16(vcvt_f16_f32(x)); }
SIMD_INLINE vf widen_bf16(uint16x4_t h) { return vreinterpretq_f32_u32(vshll_n_u16(h, 16)); }
/* To bfloat16 in the upper halves of lanes. In integers: BFCVT flushes subnormal numbers. */
SIMD_INLINE vu round_bf16_bits(vf x) {
  const vu u = vreinterpretq_u32_f32(x), odd = vandq_u32(vshrq_n_u32(u, 16), vdupq_n_u32(1));
  const vu rounded = vaddq_u32(vaddq_u32(u, vdupq_n_u32(0x7fff)), odd);
  return vbslq_u32(vceqq_f32(x, x), rounded, vorrq_u32(u, vdupq_n_u32(0x400000)));
}
SIMD_INLINE vf v_round_bf16(vf x) {
  return vreinterpretq_f32_u32(vandq_u32(round_bf16_bits(x), vdupq_n_u32(0xffff0000u)));
}
SIMD_INLINE uint16x4_t narrow_bf16(vf x) { return vshrn_n_u32(round_bf16_bits(x), 16); }

SIMD_INLINE vf v_load_f16(const uint16_t *p) { return widen_f16(vld1_u16(p)); }
SIMD_INLINE vf v_load_f16_part(const uint16_t *p, v_part part) { return widen_f16(load_part_16(p, part)); }
SIMD_INLINE void v_store_f16(uint16_t *p, vf x) { vst1_u16(p, narrow_f16(x)); }
SIMD_INLINE void v_store_f16_part(uint16_t *p, vf x, v_part part) { store_part_16(p, narrow_f16(x), part); }
SIMD_INLINE void v_store_f16_pair(uint16_t *p, vf x, vf y) {
  vst1q_u16(p, vcombine_u16(narrow_f16(x), narrow_f16(y)));
}
SIMD_INLINE void v_stream_f16_pair(uint16_t *p, vf x, vf y) { v_store_f16_pair(p, x, y); }
SIMD_INLINE vf v_round_f16(vf x) { return widen_f16(narrow_f16(x)); }

SIMD_INLINE vf v_load_bf16(const uint16_t *p) { return widen_bf16(vld1_u16(p)); }
SIMD_INLINE vf v_load_bf16_part(const uint16_t *p, v_part part) { return widen_bf16(load_part_16(p, part)); }
SIMD_INLINE void v_store_bf16(uint16_t *p, vf x) { vst1_u16(p, narrow_bf16(x)); }
SIMD_INLINE void v_store_bf16_part(uint16_t *p, vf x, v_part part) { store_part_16(p, narrow_bf16(x), part); }
SIMD_INLINE void v_store_bf16_pair(uint16_t *p, vf x, vf y) {
  vst1q_u16(p, vshrn_high_n_u32(narrow_bf16(x), round_bf16_bits(y), 16));
}
SIMD_INLINE void v_stream_bf16_pair(uint16_t *p, vf x, vf y) { v_store_bf16_pair(p, x, y); }
SIMD_INLINE void v_round_bf16_pair(float *p, vf x, vf y) {
  v_store(p, v_round_bf16(x)), v_store(p + LANES, v_round_bf16(y));
}

SIMD_INLINE vi v_load_bytes(const uint8_t *p) {
  uint32_t four;
  memcpy(&four, p, sizeof four);
  const uint16x8_t words = vmovl_u8(vreinterpret_u8_u32(vdup_n_u32(four)));
  return vreinterpretq_s32_u32(vmovl_u16(vget_low_u16(words)));
}
SIMD_INLINE void v_store_bytes(uint8_t *p, vi x) {
  const uint16x4_t words = vmovn_u32(vreinterpretq_u32_s32(x));
  const uint32_t four = vget_lane_u32(vreinterpret_u32_u8(vmovn_u16(vcombine_u16(words, words))), 0);
  memcpy(p, &four, sizeof four);
}
SIMD_INLINE vf v_load_u8(const uint8_t *p) { return vcvtq_f32_s32(v_load_bytes(p)); }

SIMD_INLINE vf v_sqrt(vf x) { return vsqrtq_f32(x); }
SIMD_INLINE vf v_floor(vf x) { return vrndmq_f32(x); }
SIMD_INLINE vf v_ceil(vf x) { return vrndpq_f32(x); }
SIMD_INLINE vf v_rint(vf x) { return vrndnq_f32(x); }
SIMD_INLINE vi v_to_integer(vf x) { return vcvtnq_s32_f32(x); }
SIMD_INLINE vf v_from_integer(vi x) { return vcvtq_f32_s32(x); }
SIMD_INLINE vf v_permute(vf x, vi lanes) {
  const vu lane = vandq_u32(vreinterpretq_u32_s32(lanes), vdupq_n_u32(LANES - 1));
  const vu bytes = vmlaq_u32(vdupq_n_u32(0x03020100u), lane, vdupq_n_u32(0x04040404u));
  return vreinterpretq_f32_u8(vqtbl1q_u8(vreinterpretq_u8_f32(x), vreinterpretq_u8_u32(bytes)));
}
/* In two factors, so that subnormal results and 2^128 come out right. */
SIMD_INLINE vf v_scale(vf x, vf n) {
  const vi whole = v_to_integer(n), half = vshrq_n_s32(whole, 1), bias = v_set_integer(127);
  const vi a = vshlq_n_s32(vaddq_s32(half, bias), 23);
  const vi b = vshlq_n_s32(vaddq_s32(vsubq_s32(whole, half), bias), 23);
  return x * vreinterpretq_f32_s32(a) * vreinterpretq_f32_s32(b);
}

SIMD_INLINE vi vi_max(vi a, vi b) { return vmaxq_s32(a, b); }
SIMD_INLINE vm v_lt(vf a, vf b) { return vcltq_f32(a, b); }
SIMD_INLINE vm v_le(vf a, vf b) { return vcleq_f32(a, b); }
SIMD_INLINE vm v_eq(vf a, vf b) { return vceqq_f32(a, b); }
SIMD_INLINE vm m_and(vm a, vm b) { return vandq_u32(a, b); }
SIMD_INLINE vm m_or(vm a, vm b) { return vorrq_u32(a, b); }
SIMD_INLINE vm m_not(vm a) { return vmvnq_u32(a); }
SIMD_INLINE vm v_unordered(vf a, vf b) { return m_not(m_and(v_eq(a, a), v_eq(b, b))); }
SIMD_INLINE vf v_select(vm m, vf a, vf b) { return vbslq_f32(m, a, b); }
SIMD_INLINE bool m_all(vm m) { return vminvq_u32(m) != 0; }
SIMD_INLINE bool m_any(vm m) { return vmaxvq_u32(m) != 0; }
SIMD_INLINE vm m_load(const uint32_t *p) {
  const vu x = vld1q_u32(p);
  return vtstq_u32(x, x);
}
SIMD_INLINE void m_store(uint32_t *p, vm m) { vst1q_u32(p, vshrq_n_u32(m, 31)); }

/* The instructions estimate 8 bits; one Newton step makes 16. At 0 and infinity the step is NaN. */
SIMD_INLINE vf v_rsqrt_estimate(vf x) {
  const vf estimate = vrsqrteq_f32(x), y = estimate * vrsqrtsq_f32(x * estimate, estimate);
  return v_select(v_eq(y, y), y, estimate);
}
SIMD_INLINE vf v_reciprocal_estimate(vf x) {
  const vf estimate = vrecpeq_f32(x);
  return estimate * vrecpsq_f32(x, estimate);
}

SIMD_INLINE float v_horizontal_sum(vf x) { return vpadds_f32(vadd_f32(vget_low_f32(x), vget_high_f32(x))); }
SIMD_INLINE float v_horizontal_max(vf x) { return vmaxvq_f32(x); }

typedef uint64x2_t vl;
SIMD_INLINE vl l_set(uint64_t x) { return vdupq_n_u64(x); }
SIMD_INLINE vl l_multiply(vl a, vl b) { return vmull_u32(vmovn_u64(a), vmovn_u64(b)); }

#define SIMD_FEW 4
/* Rows in pairs, then pairs of these. */
SIMD_INLINE void few_transpose(vec r[4]) {
  const float32x4x2_t low = vtrnq_f32(r[0], r[1]), high = vtrnq_f32(r[2], r[3]);
  r[0] = vcombine_f32(vget_low_f32(low.val[0]), vget_low_f32(high.val[0]));
  r[1] = vcombine_f32(vget_low_f32(low.val[1]), vget_low_f32(high.val[1]));
  r[2] = vcombine_f32(vget_high_f32(low.val[0]), vget_high_f32(high.val[0]));
  r[3] = vcombine_f32(vget_high_f32(low.val[1]), vget_high_f32(high.val[1]));
}

#endif

typedef vec few;
#define few_store v_store
