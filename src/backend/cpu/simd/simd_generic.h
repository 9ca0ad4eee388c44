/* The vector vocabulary (simd.h) in the compiler's own vectors of 4 floats or 2 doubles: plain x86-64 (SSE2),
 * and any other processor. */
#pragma once

#include "backend/cpu/simd/simd.h"

#define SIMD_BYTES 16
#define SIMD_REGISTERS 16
#define SIMD_MASKS 0
#define SIMD_FEW 0
#define LANES (SIMD_DOUBLE ? 2 : 4)
#define V_ACCUMULATE(c, a, b) ((c) = v_fma(a, b, c))
#define V_ACCUMULATE_BROADCAST(c, p, b) ((c) = v_fma(v_set(*(p)), b, c))

typedef real vec __attribute__((vector_size(16)));
typedef int64_t v_part;

SIMD_INLINE vec v_load(const real *p) {
  vec x;
  memcpy(&x, p, sizeof x);
  return x;
}
SIMD_INLINE void v_store(real *p, vec x) { memcpy(p, &x, sizeof x); }
SIMD_INLINE void v_stream(real *p, vec x) { v_store(p, x); }
SIMD_INLINE vec v_fma(vec a, vec b, vec c) { return a * b + c; } /* two roundings */
SIMD_INLINE v_part v_first(int64_t n) { return n; }
SIMD_INLINE vec v_load_part(const real *p, v_part part) {
  vec x = {0};
  memcpy(&x, p, (size_t)part * sizeof *p);
  return x;
}
SIMD_INLINE void v_store_part(real *p, vec x, v_part part) { memcpy(p, &x, (size_t)part * sizeof *p); }

#if SIMD_DOUBLE

SIMD_INLINE vec v_set(double x) { return (vec){x, x}; }
SIMD_INLINE double v_horizontal_sum(vec x) { return x[0] + x[1]; }

#else

#define KEEP(x) ((void)0) /* nothing here fuses a multiplication with an addition */
typedef vec vf;
typedef int32_t vi __attribute__((vector_size(16)));
typedef uint32_t vu __attribute__((vector_size(16)));
typedef vi vm; /* all bits of a lane set or clear */

SIMD_INLINE vf v_set(float x) { return (vf){x, x, x, x}; }
SIMD_INLINE vi v_set_integer(int32_t x) { return (vi){x, x, x, x}; }
SIMD_INLINE vf v_load_part_or(const float *p, v_part part, float other) {
  vf x = v_set(other);
  memcpy(&x, p, (size_t)part * sizeof *p);
  return x;
}

SIMD_INLINE vm v_lt(vf a, vf b) { return (vm)(a < b); }
SIMD_INLINE vm v_le(vf a, vf b) { return (vm)(a <= b); }
SIMD_INLINE vm v_eq(vf a, vf b) { return (vm)(a == b); }
SIMD_INLINE vm v_unordered(vf a, vf b) { return (vm) ~((a == a) & (b == b)); }
SIMD_INLINE vm m_and(vm a, vm b) { return a & b; }
SIMD_INLINE vm m_or(vm a, vm b) { return a | b; }
SIMD_INLINE vm m_not(vm a) { return ~a; }
SIMD_INLINE vi vi_select(vm m, vi a, vi b) { return (a & m) | (b & ~m); }
SIMD_INLINE vi vi_max(vi a, vi b) { return vi_select((vm)(a > b), a, b); }
SIMD_INLINE vf v_select(vm m, vf a, vf b) { return (vf)vi_select(m, (vi)a, (vi)b); }
SIMD_INLINE bool m_all(vm m) { return (m[0] & m[1] & m[2] & m[3]) != 0; }
SIMD_INLINE bool m_any(vm m) { return (m[0] | m[1] | m[2] | m[3]) != 0; }
SIMD_INLINE vm m_load(const uint32_t *p) {
  vi x;
  memcpy(&x, p, sizeof x);
  return (vm)(x != 0);
}
SIMD_INLINE void m_store(uint32_t *p, vm m) {
  const vi one = m & 1;
  memcpy(p, &one, sizeof one);
}

/* float16 to float32 in integer arithmetic; subnormal float16 through a difference of normal floats (F.
 * Giesen), so that a thread that flushes float32 subnormals keeps them. Adding 0 makes NaNs quiet, as by
 * F16C. */
SIMD_INLINE vf widen_f16(vi h) {
  enum { REBIAS = 112 << 23, SMALLEST_NORMAL = 1 << 23, INFINITE = 0x7c00 << 13 };
  const vi magnitude = (h & 0x7fff) << 13, rebiased = magnitude + REBIAS;
  const vf subnormal = (vf)(rebiased + SMALLEST_NORMAL) - (vf)v_set_integer(REBIAS + SMALLEST_NORMAL);
  const vi normal = rebiased + ((vm)(magnitude >= INFINITE) & REBIAS);
  const vf r = (vf)vi_select((vm)(magnitude < SMALLEST_NORMAL), (vi)subnormal, normal) + v_set(0.0f);
  return (vf)((vi)r | (h & 0x8000) << 16);
}
/* float32 to float16, nearest even; below 2^-14 the rounding is that of an addition of floats. */
SIMD_INLINE vi narrow_f16(vf x) {
  const vi u = (vi)x, sign = u & (int32_t)0x80000000, a = u ^ sign;
  const vi magic = v_set_integer(126 << 23);
  const vi subnormal = (vi)((vf)a + (vf)magic) - magic;
  const vi normal = (a + (-(112 << 23) + 0xfff) + ((a >> 13) & 1)) >> 13;
  vi r = vi_select((vm)(a < (113 << 23)), subnormal, normal);
  r = vi_select((vm)(a >= (143 << 23)), v_set_integer(0x7c00), r);
  r = vi_select((vm)(a > 0x7f800000), 0x7e00 | ((a >> 13) & 0x3ff), r);
  return r | ((sign >> 16) & 0x8000);
}
/* widen_f16(narrow_f16(x)), as a float throughout. */
SIMD_INLINE vf v_round_f16(vf x) {
  const vi u = (vi)x, sign = u & (int32_t)0x80000000, a = u ^ sign;
  const vf magic = (vf)v_set_integer(126 << 23); /* its last place is that of float16 subnormals */
  const vi subnormal = (vi)(((vf)a + magic) - magic);
  vi r = (vi)(((vu)a + 0xfff + (((vu)a >> 13) & 1)) & ~0x1fffu);
  r = vi_select((vm)(r >= (143 << 23)), v_set_integer(0x7f800000), r);
  r = vi_select((vm)(a < (113 << 23)), subnormal, r);
  r = vi_select((vm)(a > 0x7f800000), (a | 0x400000) & ~0x1fff, r);
  return (vf)(r | sign);
}
SIMD_INLINE vf v_round_bf16(vf x) {
  const vu u = (vu)x, rounded = u + 0x7fff + ((u >> 16) & 1);
  return (vf)(vi_select(v_unordered(x, x), (vi)(u | 0x400000), (vi)rounded) & (int32_t)0xffff0000);
}

SIMD_INLINE vi load_16(const uint16_t *p) { return (vi){p[0], p[1], p[2], p[3]}; }
SIMD_INLINE vi load_part_16(const uint16_t *p, v_part part) {
  uint16_t some[4] = {0};
  memcpy(some, p, (size_t)part * sizeof *p);
  return load_16(some);
}
SIMD_INLINE void store_part_16(uint16_t *p, vi x, v_part part) {
  for (int64_t i = 0; i < part; i++) p[i] = (uint16_t)x[i];
}
SIMD_INLINE vf v_load_f16(const uint16_t *p) { return widen_f16(load_16(p)); }
SIMD_INLINE vf v_load_f16_part(const uint16_t *p, v_part part) { return widen_f16(load_part_16(p, part)); }
SIMD_INLINE void v_store_f16(uint16_t *p, vf x) { store_part_16(p, narrow_f16(x), LANES); }
SIMD_INLINE void v_store_f16_part(uint16_t *p, vf x, v_part part) { store_part_16(p, narrow_f16(x), part); }
SIMD_INLINE void v_store_f16_pair(uint16_t *p, vf x, vf y) { v_store_f16(p, x), v_store_f16(p + LANES, y); }
SIMD_INLINE void v_stream_f16_pair(uint16_t *p, vf x, vf y) { v_store_f16_pair(p, x, y); }

SIMD_INLINE vf v_load_bf16(const uint16_t *p) { return (vf)(load_16(p) << 16); }
SIMD_INLINE vf v_load_bf16_part(const uint16_t *p, v_part part) { return (vf)(load_part_16(p, part) << 16); }
SIMD_INLINE vi narrow_bf16(vf x) { return (vi)v_round_bf16(x) >> 16; }
SIMD_INLINE void v_store_bf16(uint16_t *p, vf x) { store_part_16(p, narrow_bf16(x), LANES); }
SIMD_INLINE void v_store_bf16_part(uint16_t *p, vf x, v_part part) { store_part_16(p, narrow_bf16(x), part); }
SIMD_INLINE void v_store_bf16_pair(uint16_t *p, vf x, vf y) {
  v_store_bf16(p, x), v_store_bf16(p + LANES, y);
}
SIMD_INLINE void v_stream_bf16_pair(uint16_t *p, vf x, vf y) { v_store_bf16_pair(p, x, y); }
SIMD_INLINE void v_round_bf16_pair(float *p, vf x, vf y) {
  v_store(p, v_round_bf16(x)), v_store(p + LANES, v_round_bf16(y));
}

SIMD_INLINE vi v_load_bytes(const uint8_t *p) { return (vi){p[0], p[1], p[2], p[3]}; }
SIMD_INLINE void v_store_bytes(uint8_t *p, vi x) {
  for (int i = 0; i < LANES; i++) p[i] = (uint8_t)x[i];
}
SIMD_INLINE vf v_load_u8(const uint8_t *p) { return (vf){p[0], p[1], p[2], p[3]}; }

SIMD_INLINE vi v_to_integer(vf x) {
  const vf magic = v_set(0x1.8p23f);
  return (vi)(x + magic) - (vi)magic;
}
SIMD_INLINE vf v_from_integer(vi x) { return (vf){(float)x[0], (float)x[1], (float)x[2], (float)x[3]}; }
SIMD_INLINE vf v_permute(vf x, vi lanes) {
  return (vf){x[lanes[0] & 3], x[lanes[1] & 3], x[lanes[2] & 3], x[lanes[3] & 3]};
}
SIMD_INLINE vf v_scale(vf x, vf n) {
  const vi whole = v_to_integer(n), half = whole >> 1;
  const vf a = (vf)((vu)(half + 127) << 23), b = (vf)((vu)(whole - half + 127) << 23);
  return x * a * b;
}
SIMD_INLINE vf v_sqrt(vf x) { return (vf){sqrtf(x[0]), sqrtf(x[1]), sqrtf(x[2]), sqrtf(x[3])}; }
/* Not the processor's estimates, which differ from maker to maker: generic has the same bits everywhere. */
SIMD_INLINE vf v_rsqrt_estimate(vf x) { return v_set(1.0f) / v_sqrt(x); }
SIMD_INLINE vf v_reciprocal_estimate(vf x) { return v_set(1.0f) / x; }
/* Nearest integer by adding and taking away 2^23, from where on every float is an integer. Keeps the sign of
 * 0. */
SIMD_INLINE vf v_rint(vf x) {
  const vi sign = (vi)x & (int32_t)0x80000000;
  const vf a = (vf)((vi)x ^ sign), magic = v_set(0x1p23f);
  const vf rounded = (vf)((vi)((a + magic) - magic) | sign);
  return v_select(v_lt(a, magic), rounded, x);
}
SIMD_INLINE vf v_floor(vf x) {
  const vf r = v_rint(x), down = r - v_set(1);
  return v_select(v_lt(x, r), down, r);
}
SIMD_INLINE vf v_ceil(vf x) {
  const vi sign = (vi)x & (int32_t)0x80000000;
  const vf r = v_rint(x), up = (vf)((vi)(r + v_set(1)) | sign);
  return v_select(v_lt(r, x), up, r);
}
SIMD_INLINE float v_horizontal_sum(vf x) { return (x[0] + x[2]) + (x[1] + x[3]); }
SIMD_INLINE float v_horizontal_max(vf x) {
  const float a = x[0] > x[2] ? x[0] : x[2], b = x[1] > x[3] ? x[1] : x[3];
  return a > b ? a : b;
}

typedef uint64_t vl __attribute__((vector_size(16)));
SIMD_INLINE vl l_set(uint64_t x) { return (vl){x, x}; }
SIMD_INLINE vl l_multiply(vl a, vl b) { return (a & UINT32_MAX) * (b & UINT32_MAX); }

#endif
