/* Packs operands for AMX tiles (amx.h). Inside a step the order of k is free as long as A and B agree:
 * bfloat16 pairs (2 r, 2 r + 1), as in memory; float16 and float32, split in vectors of 16, pair (r, r + 16),
 * which takes no shuffle. */
#include "backend/cpu/gemm/amx/amx.h"
#include "backend/cpu/gemm/transpose_avx512.h"
#include "backend/cpu/simd/attributes.h"
#include <immintrin.h>

SIMD_INLINE __mmask16 lanes(int64_t count) {
  return count >= 16 ? 0xffff : count <= 0 ? 0 : (__mmask16)((1u << count) - 1);
}
SIMD_INLINE __mmask32 words(int64_t count) {
  return count >= 32 ? 0xffffffffu : (__mmask32)((1u << count) - 1);
}

/* Pairs of the upper halves of the lanes of `first` and `second`. */
SIMD_INLINE __m512i pairs(__m512i first, __m512i second) {
  enum { FIRST_OR_SECOND_WHERE_MASKED = 0xf8 };
  return _mm512_ternarylogic_epi32(_mm512_srli_epi32(first, 16), second, _mm512_set1_epi32((int)0xffff0000u),
                                   FIRST_OR_SECOND_WHERE_MASKED);
}

typedef enum format { BF16, F16, F32 } format;
SIMD_INLINE int parts_of(const format type) { return type == BF16 ? 1 : 2; }
SIMD_INLINE int64_t size_of(const format type) { return type == F32 ? 4 : 2; }

/* hi is x rounded half away from zero (the difference is exact whichever way ties go), lo the difference.
 * float32's lo is prepared so that taking its upper half rounds it. Careful: for numbers that are not finite
 * (amx.h), and float32 numbers that would round to infinity, which are cut instead. */
SIMD_INLINE void split(__m512 x, const format type, const bool careful, __m512i *hi, __m512i *lo) {
  const __m512i bits = _mm512_castps_si512(x), upper = _mm512_set1_epi32((int)0xffff0000u),
                half = _mm512_set1_epi32(0x8000);
  __mmask16 round = 0xffff;
  *hi = _mm512_and_si512(_mm512_add_epi32(bits, half), upper);
  if (careful) {
    const __m512i exponent = _mm512_set1_epi32(0x7f800000);
    round = _mm512_cmpneq_epi32_mask(_mm512_and_si512(*hi, exponent), exponent);
    *hi = _mm512_mask_and_epi32(*hi, (__mmask16)~round, bits, upper);
    const __mmask16 nan = _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q);
    *hi = _mm512_mask_or_epi32(*hi, nan, *hi, _mm512_set1_epi32(0x7fc00000));
  }
  *lo = _mm512_castps_si512(_mm512_sub_ps(x, _mm512_castsi512_ps(*hi)));
  if (careful) {
    const __mmask16 finite = _mm512_cmp_ps_mask(_mm512_sub_ps(x, x), _mm512_setzero_ps(), _CMP_EQ_OQ);
    *lo = _mm512_maskz_mov_epi32(finite, *lo);
  }
  if (type == F32) *lo = _mm512_mask_add_epi32(*lo, round, *lo, half);
}

/* Two vectors of 16 as pairs of each part. A lo that is not finite (as hi is then) makes `sum` not finite. */
SIMD_INLINE void split_pairs(__m512 first, __m512 second, const format type, const bool careful, __m512i *hi,
                             __m512i *lo, __m512 *sum) {
  __m512i h0, h1, l0, l1;
  split(first, type, careful, &h0, &l0);
  split(second, type, careful, &h1, &l1);
  *hi = pairs(h0, h1), *lo = pairs(l0, l1);
  if (!careful) *sum = _mm512_add_ps(*sum, _mm512_add_ps(_mm512_castsi512_ps(l0), _mm512_castsi512_ps(l1)));
}

SIMD_INLINE bool not_finite(__m512 sum) {
  const __m512 zero_or_nan = _mm512_sub_ps(sum, sum);
  return _mm512_cmp_ps_mask(zero_or_nan, zero_or_nan, _CMP_UNORD_Q);
}

/* 16 numbers of float16 or float32, of which those of `mask` exist. */
SIMD_INLINE __m512 load_16(const char *p, __mmask16 mask, const format type) {
  return type == F32 ? _mm512_maskz_loadu_ps(mask, p) : _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(mask, p));
}

/* 32 numbers along memory, of which `depth` exist. */
SIMD_INLINE void load_along(const char *p, int64_t depth, const format type, const bool careful, __m512i *out,
                            __m512 *sum) {
  if (type == BF16)
    out[0] = _mm512_maskz_loadu_epi16(words(depth), p);
  else
    split_pairs(load_16(p, lanes(depth), type), load_16(p + 16 * size_of(type), lanes(depth - 16), type),
                type, careful, &out[0], &out[1], sum);
}

/* Pair r of 16 columns of float16 or float32, of which those of `mask` exist; stride in bytes. */
SIMD_INLINE void load_across(const char *p, int64_t stride, int r, int64_t depth, __mmask16 mask,
                             const format type, const bool careful, __m512i *out, __m512 *sum) {
  const __mmask16 x = r < depth ? mask : 0, y = r + 16 < depth ? mask : 0;
  split_pairs(load_16(p + r * stride, x, type), load_16(p + (r + 16) * stride, y, type), type, careful,
              &out[0], &out[1], sum);
}

SIMD_INLINE void store_lines(unsigned char *to, const __m512i *x) {
  SIMD_UNROLL
  for (int r = 0; r < 16; r++) _mm512_store_si512(to + r * 64, x[r]);
}

/* bfloat16 with k from row to row, whole lines at a time. The permutation puts the four columns of each 128
 * bits of both tiles side by side, so that one more instruction for each tile makes the pairs. */
SIMD_INLINE void pack_lines(const char *source, int64_t stride, int64_t count, int64_t depth,
                            const bool transpose, unsigned char *packed) {
  const __m512i order = _mm512_setr_epi64(0, 4, 1, 5, 2, 6, 3, 7);
  const __mmask32 mask = words(count);
  __m512i low[16], high[16];
  SIMD_UNROLL
  for (int r = 0; r < 16; r++) {
    const __m512i first = _mm512_maskz_loadu_epi16(2 * r < depth ? mask : 0, source + 2 * r * stride);
    const __m512i second =
        _mm512_maskz_loadu_epi16(2 * r + 1 < depth ? mask : 0, source + (2 * r + 1) * stride);
    const __m512i x = _mm512_permutexvar_epi64(order, first), y = _mm512_permutexvar_epi64(order, second);
    low[r] = _mm512_unpacklo_epi16(x, y), high[r] = _mm512_unpackhi_epi16(x, y);
    if (!transpose) _mm512_store_si512(packed + r * 64, low[r]);
    if (count > 16) _mm512_store_si512(packed + 1024 + r * 64, high[r]);
  }
  if (!transpose) return;
  transpose_lanes(low);
  store_lines(packed, low);
  if (count <= 16) return;
  for (int r = 0; r < 16; r++) high[r] = _mm512_load_si512(packed + 1024 + r * 64);
  transpose_lanes(high);
  store_lines(packed + 1024, high);
}

/* 16 bytes each of rows 0, 4, 8 and 12. */
SIMD_INLINE __m512i quarters(const char *p, int64_t stride) {
  __m512i x = _mm512_castsi128_si512(_mm_loadu_si128((const __m128i *)p));
  x = _mm512_mask_broadcast_i32x4(x, 0x00f0, _mm_loadu_si128((const __m128i *)(p + 4 * stride)));
  x = _mm512_mask_broadcast_i32x4(x, 0x0f00, _mm_loadu_si128((const __m128i *)(p + 8 * stride)));
  return _mm512_mask_broadcast_i32x4(x, 0xf000, _mm_loadu_si128((const __m128i *)(p + 12 * stride)));
}

/* Transposes a whole tile of bfloat16. Loads do the half of it that crosses 128 bits. */
SIMD_INLINE void transpose_lines(const char *p, int64_t stride, unsigned char *to) {
  SIMD_UNROLL
  for (int q = 0; q < 4; q++, p += 16, to += 4 * 64) {
    const __m512i a = quarters(p, stride), b = quarters(p + stride, stride);
    const __m512i c = quarters(p + 2 * stride, stride), d = quarters(p + 3 * stride, stride);
    const __m512i ab = _mm512_unpacklo_epi32(a, b), cd = _mm512_unpacklo_epi32(c, d);
    const __m512i ab_high = _mm512_unpackhi_epi32(a, b), cd_high = _mm512_unpackhi_epi32(c, d);
    _mm512_store_si512(to, _mm512_unpacklo_epi64(ab, cd));
    _mm512_store_si512(to + 64, _mm512_unpackhi_epi64(ab, cd));
    _mm512_store_si512(to + 128, _mm512_unpacklo_epi64(ab_high, cd_high));
    _mm512_store_si512(to + 192, _mm512_unpackhi_epi64(ab_high, cd_high));
  }
}

/* Packs a step of a panel: `count` rows or columns, `depth` of k; stride in bytes. Lines of a tile are rows
 * of memory, or transposed. With two parts and not careful: are there numbers that are not finite? */
SIMD_INLINE bool pack_step(const char *source, int64_t stride, int64_t count, int64_t depth, const bool along,
                           const format type, const bool b, const bool careful, unsigned char *packed) {
  const bool transpose = along == b;
  const int parts = parts_of(type);
  __m512 sum = _mm512_setzero_ps();
  if (type == BF16 && !along) {
    pack_lines(source, stride, count, depth, transpose, packed);
    return false;
  }
  for (int half = 0; half < 2 && half * 16 < count; half++) {
    const int64_t left = count - half * 16;
    const char *p = source + half * 16 * (along ? stride : size_of(type));
    unsigned char *to = packed + half * 1024;
    const __mmask16 mask = lanes(left);
    __m512i x[2][16], line[2];
    if (type == BF16 && transpose && left >= 16 && depth >= AMX_STEP) {
      transpose_lines(p, stride, to);
      continue;
    }
    SIMD_UNROLL
    for (int r = 0; r < 16; r++) {
      if (!along) {
        load_across(p, stride, r, depth, mask, type, careful, line, &sum);
      } else if (r < left) {
        load_along(p + r * stride, depth, type, careful, line, &sum);
        _mm_prefetch(p + r * stride + 2 * AMX_STEP * size_of(type), _MM_HINT_T0);
      } else {
        line[0] = line[1] = _mm512_setzero_si512();
      }
      for (int part = 0; part < parts; part++) {
        if (transpose)
          x[part][r] = line[part];
        else
          _mm512_store_si512(to + part * AMX_PAIR + r * 64, line[part]);
      }
    }
    for (int part = 0; transpose && part < parts; part++) {
      transpose_lanes(x[part]);
      store_lines(to + part * AMX_PAIR, x[part]);
    }
  }
  return parts == 2 && !careful && not_finite(sum);
}

/* Not careful: are there numbers that are not finite? */
SIMD_INLINE bool pack_numbers(const char *source, int64_t count, const format type, const bool careful,
                              unsigned char *packed, int64_t part) {
  __m512 sum = _mm512_setzero_ps();
  for (int64_t i = 0; i < count; i += AMX_STEP, source += AMX_STEP * size_of(type), packed += AMX_ROW) {
    __m512i line[2];
    load_along(source, AMX_STEP, type, careful, line, &sum);
    _mm512_storeu_si512(packed, line[0]);
    _mm512_storeu_si512(packed + part, line[1]);
  }
  return not_finite(sum);
}

#define AMX_PACK_LINE(name, type)                                                                            \
  bool mix_amx_pack_line_##name(const void *source, int64_t count, unsigned char *packed, int64_t part) {    \
    const bool flag = pack_numbers(source, count, type, false, packed, part);                                \
    if (flag) pack_numbers(source, count, type, true, packed, part);                                         \
    return flag;                                                                                             \
  }
AMX_PACK_LINE(f16, F16)
AMX_PACK_LINE(f32, F32)

/* The loops go along rows of memory: over panels inside steps where k goes from row to row, else over steps
 * inside panels. */
#define AMX_PACK(name, type, operand, b, direction, along)                                                   \
  __attribute__((noinline)) static void careful_##operand##_##direction##_##name(                            \
      const char *source, int64_t stride, int64_t count, int64_t depth, unsigned char *packed) {             \
    pack_step(source, stride, count, depth, along, type, b, true, packed);                                   \
  }                                                                                                          \
  void mix_amx_pack_##operand##_##direction##_##name(const void *source, int64_t stride, int64_t count,      \
                                                     int64_t depth, unsigned char *packed,                   \
                                                     unsigned char *flags) {                                 \
    const int64_t panels = (count + AMX_PANEL - 1) / AMX_PANEL, steps = (depth + AMX_STEP - 1) / AMX_STEP;   \
    const int parts = parts_of(type);                                                                        \
    const int64_t size = size_of(type), row = stride * size;                                                 \
    for (int64_t i = 0; i < panels * steps; i++) {                                                           \
      const int64_t panel = along ? i / steps : i % panels, step = along ? i % steps : i / panels;           \
      const int64_t first = panel * AMX_PANEL, k = step * AMX_STEP;                                          \
      const char *from = (const char *)source + (along ? first * row + k * size : k * row + first * size);   \
      unsigned char *to = packed + (panel * steps + step) * parts * AMX_PAIR;                                \
      const bool flag = pack_step(from, row, count - first, depth - k, along, type, b, false, to);           \
      if (flag) careful_##operand##_##direction##_##name(from, row, count - first, depth - k, to);           \
      if (parts == 2) flags[panel * steps + step] = flag;                                                    \
    }                                                                                                        \
  }
#define AMX_PACK_BOTH(name, type)                                                                            \
  AMX_PACK(name, type, a, false, along, true)                                                                \
  AMX_PACK(name, type, a, false, across, false)                                                              \
  AMX_PACK(name, type, b, true, along, true)                                                                 \
  AMX_PACK(name, type, b, true, across, false)
AMX_PACK_BOTH(bf16, BF16)
AMX_PACK_BOTH(f16, F16)
AMX_PACK_BOTH(f32, F32)
