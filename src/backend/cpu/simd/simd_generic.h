/* The vocabulary of lanes in the compiler's own vectors of 4 floats: plain x86-64 (SSE2), and any other processor. */
#include "tensor/convert.h"
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define KEEP(x) ((void)0)
#define LANES 4
typedef float vf __attribute__((vector_size(16)));
typedef int32_t vi __attribute__((vector_size(16)));
typedef uint32_t vu __attribute__((vector_size(16))); /* where sums may overflow */
typedef vi vm;                                        /* all bits of a lane set or clear */

static inline vf v_set(float x) { return (vf){x, x, x, x}; }
static inline vi v_set_integer(int32_t x) { return (vi){x, x, x, x}; }
static inline vf v_load(const float *p) {
  vf x;
  memcpy(&x, p, sizeof x);
  return x;
}
static inline void v_store(float *p, vf x) { memcpy(p, &x, sizeof x); }
/* The first n < LANES lanes; the others are `other`. */
static inline vf v_load_part(const float *p, int64_t n, float other) {
  vf x = v_set(other);
  for (int64_t i = 0; i < n; i++) x[i] = p[i];
  return x;
}
static inline void v_store_part(float *p, vf x, int64_t n) {
  for (int64_t i = 0; i < n; i++) p[i] = x[i];
}
static inline vm v_lt(vf a, vf b) { return (vm)(a < b); }
static inline vm v_le(vf a, vf b) { return (vm)(a <= b); }
static inline vm v_eq(vf a, vf b) { return (vm)(a == b); }
static inline vm v_unordered(vf a, vf b) { return (vm) ~((a == a) & (b == b)); }
static inline vm m_and(vm a, vm b) { return a & b; }
static inline vm m_or(vm a, vm b) { return a | b; }
static inline vm m_not(vm a) { return ~a; }
static inline vi vi_select(vm m, vi a, vi b) { return (a & m) | (b & ~m); }
static inline vi vi_max(vi a, vi b) { return vi_select((vm)(a > b), a, b); }
static inline vf v_select(vm m, vf a, vf b) { return (vf)vi_select(m, (vi)a, (vi)b); }
static inline bool m_all(vm m) { return (m[0] & m[1] & m[2] & m[3]) != 0; }
static inline bool m_any(vm m) { return (m[0] | m[1] | m[2] | m[3]) != 0; }
static inline vm m_load(const uint32_t *p) {
  vi x;
  memcpy(&x, p, sizeof x);
  return (vm)(x != 0);
}
static inline void m_store(uint32_t *p, vm m) {
  const vi one = m & 1;
  memcpy(p, &one, sizeof one);
}

/* float16 to float32 in integer arithmetic; subnormal halves through a difference of normal floats (F. Giesen). */
static inline vf widen_f16(vi h) {
  const vi sign = (h & 0x8000) << 16, exponent = h & 0x7c00;
  const vi normal = ((h & 0x7fff) << 13) + (112 << 23);
  const vi special = (normal + (112 << 23)) | ((vm)((h & 0x3ff) != 0) & 0x400000); /* NaNs become quiet, as by F16C */
  const vf subnormal = (vf)(normal + (1 << 23)) - (vf)v_set_integer(113 << 23);
  vi r = vi_select((vm)(exponent == 0x7c00), special, normal);
  r = vi_select((vm)(exponent == 0), (vi)subnormal, r);
  return (vf)(r | sign);
}
/* float32 to float16, nearest even; below 2^-14 the rounding is that of an addition of floats. */
static inline vi narrow_f16(vf x) {
  const vi u = (vi)x, sign = u & (int32_t)0x80000000, a = u ^ sign;
  const vi magic = v_set_integer(126 << 23);
  const vi subnormal = (vi)((vf)a + (vf)magic) - magic;
  const vi normal = (a + (-(112 << 23) + 0xfff) + ((a >> 13) & 1)) >> 13;
  vi r = vi_select((vm)(a < (113 << 23)), subnormal, normal);
  r = vi_select((vm)(a >= (143 << 23)), v_set_integer(0x7c00), r);
  r = vi_select((vm)(a > 0x7f800000), 0x7e00 | ((a >> 13) & 0x3ff), r);
  return r | ((sign >> 16) & 0x8000);
}
/* widen_f16(narrow_f16(x)), as a float all the way. */
static inline vf v_round_f16(vf x) {
  const vi u = (vi)x, sign = u & (int32_t)0x80000000, a = u ^ sign;
  const vf magic = (vf)v_set_integer(126 << 23); /* whose last place is that of subnormal halves */
  const vi subnormal = (vi)(((vf)a + magic) - magic);
  vi r = (vi)(((vu)a + 0xfff + (((vu)a >> 13) & 1)) & ~0x1fffu);
  r = vi_select((vm)(r >= (143 << 23)), v_set_integer(0x7f800000), r);
  r = vi_select((vm)(a < (113 << 23)), subnormal, r);
  r = vi_select((vm)(a > 0x7f800000), (a | 0x400000) & ~0x1fff, r);
  return (vf)(r | sign);
}
static inline vf v_round_bf16(vf x) {
  const vu u = (vu)x, rounded = u + 0x7fff + ((u >> 16) & 1);
  return (vf)(vi_select(v_unordered(x, x), (vi)(u | 0x400000), (vi)rounded) & (int32_t)0xffff0000);
}
static inline vi load_16(const uint16_t *p) { return (vi){p[0], p[1], p[2], p[3]}; }
static inline vi load_part_16(const uint16_t *p, int64_t n) {
  vi x = {0};
  for (int64_t i = 0; i < n; i++) x[i] = p[i];
  return x;
}
static inline void store_part_16(uint16_t *p, vi x, int64_t n) {
  for (int64_t i = 0; i < n; i++) p[i] = (uint16_t)x[i];
}
static inline vf v_load_f16(const uint16_t *p) { return widen_f16(load_16(p)); }
static inline vf v_load_f16_part(const uint16_t *p, int64_t n) { return widen_f16(load_part_16(p, n)); }
static inline void v_store_f16(uint16_t *p, vf x) { store_part_16(p, narrow_f16(x), LANES); }
static inline void v_store_f16_pair(uint16_t *p, vf x, vf y) { v_store_f16(p, x), v_store_f16(p + LANES, y); }
static inline void v_stream_f16_pair(uint16_t *p, vf x, vf y) { v_store_f16_pair(p, x, y); }
static inline void v_store_f16_part(uint16_t *p, vf x, int64_t n) { store_part_16(p, narrow_f16(x), n); }
static inline vf v_load_bf16(const uint16_t *p) { return (vf)(load_16(p) << 16); }
static inline vf v_load_bf16_part(const uint16_t *p, int64_t n) { return (vf)(load_part_16(p, n) << 16); }
static inline void v_store_bf16(uint16_t *p, vf x) { store_part_16(p, (vi)v_round_bf16(x) >> 16, LANES); }
static inline void v_store_bf16_pair(uint16_t *p, vf x, vf y) { v_store_bf16(p, x), v_store_bf16(p + LANES, y); }
static inline void v_stream_bf16_pair(uint16_t *p, vf x, vf y) { v_store_bf16_pair(p, x, y); }
static inline void v_round_bf16_pair(float *p, vf x, vf y) { v_store(p, v_round_bf16(x)), v_store(p + LANES, v_round_bf16(y)); }
static inline void v_store_bf16_part(uint16_t *p, vf x, int64_t n) { store_part_16(p, (vi)v_round_bf16(x) >> 16, n); }
static inline vf v_load_u8(const uint8_t *p) { return (vf){p[0], p[1], p[2], p[3]}; }

static inline vf v_fma(vf a, vf b, vf c) { return a * b + c; } /* two roundings */
static inline vi v_to_integer(vf x) {                          /* |x| < 2^22, nearest even */
  const vf magic = v_set(0x1.8p23f);
  return (vi)(x + magic) - (vi)magic;
}
static inline vf v_from_integer(vi x) { return (vf){(float)x[0], (float)x[1], (float)x[2], (float)x[3]}; }
static inline vf v_scale(vf x, vf n) {
  const vi whole = v_to_integer(n), half = whole >> 1;
  const vf a = (vf)((vu)(half + 127) << 23), b = (vf)((vu)(whole - half + 127) << 23);
  return x * a * b;
}
static inline vf v_sqrt(vf x) { return (vf){sqrtf(x[0]), sqrtf(x[1]), sqrtf(x[2]), sqrtf(x[3])}; }
/* Twelve bits of 1 / sqrt(x); the exact value where no instruction gives them. */
static inline vf v_rsqrt_estimate(vf x) {
#ifdef __SSE__
  return (vf)__builtin_ia32_rsqrtps((float __attribute__((vector_size(16))))x);
#else
  return (vf){1 / sqrtf(x[0]), 1 / sqrtf(x[1]), 1 / sqrtf(x[2]), 1 / sqrtf(x[3])};
#endif
}
static inline vf v_reciprocal_estimate(vf x) {
#ifdef __SSE__
  return (vf)__builtin_ia32_rcpps((float __attribute__((vector_size(16))))x);
#else
  return 1 / x;
#endif
}
/* Nearest integer by adding and taking away 2^23; from there on every float is an integer. The sign of zero stays. */
static inline vf v_rint(vf x) {
  const vi sign = (vi)x & (int32_t)0x80000000;
  const vf a = (vf)((vi)x ^ sign), magic = v_set(0x1p23f);
  const vf rounded = (vf)((vi)((a + magic) - magic) | sign);
  return v_select(v_lt(a, magic), rounded, x);
}
static inline vf v_floor(vf x) {
  const vf r = v_rint(x), down = r - v_set(1);
  return v_select(v_lt(x, r), down, r);
}
static inline vf v_ceil(vf x) {
  const vi sign = (vi)x & (int32_t)0x80000000;
  const vf r = v_rint(x), up = (vf)((vi)(r + v_set(1)) | sign);
  return v_select(v_lt(r, x), up, r);
}
static inline float v_horizontal_sum(vf x) { return (x[0] + x[2]) + (x[1] + x[3]); }
static inline float v_horizontal_max(vf x) { /* no NaN among the lanes */
  const float a = x[0] > x[2] ? x[0] : x[2], b = x[1] > x[3] ? x[1] : x[3];
  return a > b ? a : b;
}

/* Lanes of 64 bits, half as many. */
typedef uint64_t vl __attribute__((vector_size(16)));
static inline vl l_set(uint64_t x) { return (vl){x, x}; }
/* Of the lower halves of each lane. */
static inline vl l_multiply(vl a, vl b) { return (a & UINT32_MAX) * (b & UINT32_MAX); }
