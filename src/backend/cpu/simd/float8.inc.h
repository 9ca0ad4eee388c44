/* Template: float8 in memory and tiles. Magnitudes are rounded as 32-bit integers; subnormal ones by adding
 * and taking away the power of two whose last place is the smallest step of the format, so that the flushing
 * of float32 subnormals changes nothing. */

enum { E4M3_FRACTION = 3, E4M3_REBIAS = 120 << 23, E5M2_FRACTION = 2, E5M2_REBIAS = 112 << 23 };
#define E4M3_NORMAL 0x1p-6f
#define E4M3_STEPS 0x1p14f
#define E5M2_NORMAL 0x1p-14f
#define E5M2_STEPS 0x1p7f

/* A magnitude beyond the largest number. float8_e4m3fn: NaN above 464, the midpoint of 448 and what would be
 * 480. float8_e5m2: infinity from 61440 on, the midpoint of 57344 and 65536. */
SIMD_INLINE vf beyond_e4m3(vf a, vf finite) { return v_select(v_le(a, v_set(464)), finite, v_set(NAN)); }
SIMD_INLINE vf beyond_e5m2(vf a, vf finite) {
  const vf large = v_select(v_unordered(a, a), v_set(NAN), v_set(INFINITY));
  return v_select(v_lt(a, v_set(61440)), finite, large);
}
/* The same of codes, which v_select takes as floats. */
SIMD_INLINE vi choose_code(vm m, vi a, vi b) { return (vi)v_select(m, (vf)a, (vf)b); }
SIMD_INLINE vi code_beyond_e4m3(vf a, vi finite) {
  return choose_code(v_le(a, v_set(464)), finite, (vi)v_set(0) + 0x7f);
}
SIMD_INLINE vi code_beyond_e5m2(vf a, vi finite) {
  const vi zero = (vi)v_set(0), large = choose_code(v_unordered(a, a), zero + 0x7e, zero + 0x7c);
  return choose_code(v_lt(a, v_set(61440)), finite, large);
}
/* What a code is that looks like a normal number of that magnitude. */
SIMD_INLINE vf special_e4m3(vf normal) { return v_select(v_eq(normal, v_set(480)), v_set(NAN), normal); }
SIMD_INLINE vf special_e5m2(vf normal) {
  const vf large = v_select(v_eq(normal, v_set(65536)), v_set(INFINITY), v_set(NAN));
  return v_select(v_lt(normal, v_set(65536)), normal, large);
}

#define FLOAT8(name, FORMAT)                                                                                 \
  SIMD_INLINE vf v_round_##name(vf x) {                                                                      \
    enum { DROPPED = 23 - FORMAT##_FRACTION, HALF = (1 << (DROPPED - 1)) - 1 };                              \
    const vi sign = (vi)x & INT32_MIN;                                                                       \
    const vu bits = (vu)((vi)x ^ sign), odd = bits >> DROPPED & 1;                                           \
    const vf a = (vf)bits, steps = v_set(FORMAT##_STEPS),                                                    \
             normal = (vf)((bits + HALF + odd) & ~0u << DROPPED),                                            \
             finite = v_select(v_lt(a, v_set(FORMAT##_NORMAL)), (a + steps) - steps, normal);                \
    return (vf)((vi)beyond_##name(a, finite) | sign);                                                        \
  }                                                                                                          \
  SIMD_INLINE vi v_narrow_##name(vf x) {                                                                     \
    enum { DROPPED = 23 - FORMAT##_FRACTION, HALF = (1 << (DROPPED - 1)) - 1 };                              \
    const vi sign = (vi)x & INT32_MIN;                                                                       \
    const vu bits = (vu)((vi)x ^ sign), odd = bits >> DROPPED & 1;                                           \
    const vf a = (vf)bits, steps = v_set(FORMAT##_STEPS);                                                    \
    const vi normal = (vi)((bits + (HALF - FORMAT##_REBIAS) + odd) >> DROPPED),                              \
             subnormal = (vi)(a + steps) - (vi)steps,                                                        \
             finite = choose_code(v_lt(a, v_set(FORMAT##_NORMAL)), subnormal, normal);                       \
    return code_beyond_##name(a, finite) | (sign >> 24 & 0x80);                                              \
  }                                                                                                          \
  SIMD_INLINE vf v_widen_##name(vi code) {                                                                   \
    const vi magnitude = code & 0x7f;                                                                        \
    const vf steps = v_set(FORMAT##_STEPS), subnormal = (vf)((vi)steps + magnitude) - steps,                 \
             normal = (vf)((magnitude << (23 - FORMAT##_FRACTION)) + FORMAT##_REBIAS),                       \
             r = v_select(v_lt(normal, v_set(FORMAT##_NORMAL)), subnormal, special_##name(normal));          \
    return (vf)((vi)r | (code & 0x80) << 24);                                                                \
  }                                                                                                          \
  UNARY(round_##name, v_round_##name(x))                                                                     \
  static void load_##name(void *tile, const void *source, int64_t n) {                                       \
    float *r = tile;                                                                                         \
    const uint8_t *a = source;                                                                               \
    int64_t i = 0;                                                                                           \
    for (; i + LANES <= n; i += LANES) v_store(r + i, v_widen_##name(v_load_bytes(a + i)));                  \
    if (i == n) return;                                                                                      \
    uint8_t some[LANES] = {0};                                                                               \
    memcpy(some, a + i, (size_t)(n - i));                                                                    \
    v_store_part(r + i, v_widen_##name(v_load_bytes(some)), v_first(n - i));                                 \
  }                                                                                                          \
  static void store_##name(void *result, const void *tile, int64_t n) {                                      \
    uint8_t *r = result;                                                                                     \
    const float *a = tile;                                                                                   \
    int64_t i = 0;                                                                                           \
    for (; i + LANES <= n; i += LANES) v_store_bytes(r + i, v_narrow_##name(v_load(a + i)));                 \
    if (i == n) return;                                                                                      \
    uint8_t some[LANES];                                                                                     \
    v_store_bytes(some, v_narrow_##name(v_load_part(a + i, v_first(n - i))));                                \
    memcpy(r + i, some, (size_t)(n - i));                                                                    \
  }
FLOAT8(e4m3, E4M3)
FLOAT8(e5m2, E5M2)
