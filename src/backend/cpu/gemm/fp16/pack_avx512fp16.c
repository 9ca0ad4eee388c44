/* Packing of float16 panels by AVX512-FP16. */
#include "backend/cpu/gemm/fp16/vectors_avx512.h"

#include "backend/cpu/gemm/fp16/scaling.h"

SIMD_INLINE __m512i convert(__m512i x, const scaling *s, const enum kind kind) {
  const __m512i magnitude = _mm512_set1_epi16(MAGNITUDE);
  if (kind == FROM_F16 || kind == FROM_F16_CAREFUL) {
    const __m512i y = _mm512_castph_si512(_mm512_mul_ph(_mm512_castsi512_ph(x), s->factor));
    if (kind == FROM_F16) return y;
    const __mmask32 vanished = _mm512_test_epi16_mask(x, magnitude) & _mm512_testn_epi16_mask(y, magnitude);
    return _mm512_mask_add_epi16(y, vanished, y, _mm512_set1_epi16(1));
  }
  enum { EXPONENT = 0x7f80, INFINITE = 0x7f80, BITS_MORE = 3, OR_OF_AND = 0xf8 };
  const __m512i bits = _mm512_and_si512(x, magnitude);
  const __mmask32 normal = _mm512_test_epi16_mask(x, _mm512_set1_epi16(EXPONENT));
  __m512i y =
      _mm512_slli_epi16(_mm512_maskz_max_epu16(normal, _mm512_subs_epu16(bits, s->lower), s->min), BITS_MORE);
  if (kind == FROM_BF16_CAREFUL) {
    const __mmask32 not_finite = _mm512_cmpge_epu16_mask(bits, _mm512_set1_epi16(INFINITE));
    y = _mm512_mask_mov_epi16(y, not_finite, _mm512_and_si512(_mm512_slli_epi16(x, BITS_MORE), magnitude));
  }
  y = _mm512_ternarylogic_epi32(y, x, _mm512_set1_epi16((short)0x8000), OR_OF_AND);
  return _mm512_castph_si512(_mm512_mul_ph(_mm512_castsi512_ph(y), s->factor));
}

SIMD_INLINE __m512i quarters(const uint16_t *a, const uint16_t *b, const uint16_t *c, const uint16_t *d) {
  __m512i x = _mm512_castsi128_si512(_mm_load_si128((const __m128i *)a));
  x = _mm512_inserti32x4(x, _mm_load_si128((const __m128i *)b), 1);
  x = _mm512_inserti32x4(x, _mm_load_si128((const __m128i *)c), 2);
  return _mm512_inserti32x4(x, _mm_load_si128((const __m128i *)d), 3);
}

/* Transposes eight rows of eight words in each quarter. */
SIMD_INLINE void transpose(__m512i *r) {
  __m512i t[8];
  SIMD_UNROLL
  for (int i = 0; i < 4; i++) {
    t[2 * i] = _mm512_unpacklo_epi16(r[2 * i], r[2 * i + 1]);
    t[2 * i + 1] = _mm512_unpackhi_epi16(r[2 * i], r[2 * i + 1]);
  }
  SIMD_UNROLL
  for (int i = 0; i < 2; i++) {
    r[4 * i] = _mm512_unpacklo_epi32(t[4 * i], t[4 * i + 2]);
    r[4 * i + 1] = _mm512_unpackhi_epi32(t[4 * i], t[4 * i + 2]);
    r[4 * i + 2] = _mm512_unpacklo_epi32(t[4 * i + 1], t[4 * i + 3]);
    r[4 * i + 3] = _mm512_unpackhi_epi32(t[4 * i + 1], t[4 * i + 3]);
  }
  SIMD_UNROLL
  for (int i = 0; i < 4; i++) {
    t[2 * i] = _mm512_unpacklo_epi64(r[i], r[4 + i]);
    t[2 * i + 1] = _mm512_unpackhi_epi64(r[i], r[4 + i]);
  }
  SIMD_UNROLL
  for (int i = 0; i < 8; i++) r[i] = t[i];
}

/* Columns of B: 32 of them are a vector for each k. */
SIMD_INLINE void convert_to_columns(const raw_step *raw, int count, const scaling *s, uint16_t *to,
                                    const enum kind kind) {
  const int n = raw->words;
  for (int j = 0; j < count; j += WORDS)
    for (int k = 0; k < n; k += 8) {
      const uint16_t *from = raw->memory + j * n + k;
      __m512i r[8];
      SIMD_UNROLL
      for (int i = 0; i < 8; i++)
        r[i] = quarters(from + i * n, from + (8 + i) * n, from + (16 + i) * n, from + (24 + i) * n);
      transpose(r);
      SIMD_UNROLL
      for (int i = 0; i < 8; i++) _mm512_store_si512(to + (k + i) * FP16_NR + j, convert(r[i], s, kind));
    }
}

/* Rows of A: 16 of them are half a vector for each k. */
SIMD_INLINE void convert_to_rows(const raw_step *raw, const scaling *s, uint16_t *to, const enum kind kind) {
  const int n = raw->words;
  for (int k = 0; k < n; k += 16) {
    const uint16_t *from = raw->memory + k;
    __m512i r[8];
    SIMD_UNROLL
    for (int i = 0; i < 8; i++)
      r[i] = quarters(from + i * n, from + (8 + i) * n, from + i * n + 8, from + (8 + i) * n + 8);
    transpose(r);
    SIMD_UNROLL
    for (int i = 0; i < 8; i++) {
      const __m512i x = convert(r[i], s, kind);
      _mm256_store_si256((__m256i *)(to + (k + i) * FP16_ROW_SLOTS), _mm512_castsi512_si256(x));
      _mm256_store_si256((__m256i *)(to + (k + 8 + i) * FP16_ROW_SLOTS), _mm512_extracti64x4_epi64(x, 1));
    }
  }
}

SIMD_INLINE __m512i both(__m512i low, __m512i high) {
  return _mm512_inserti64x4(low, _mm512_castsi512_si256(high), 1);
}

/* 16 numbers of a row of A, of which `there` exist. */
SIMD_INLINE __m256i row_slots(const uint16_t *from, int64_t there) {
  return there >= FP16_ROW_SLOTS ? _mm256_loadu_si256((const __m256i *)from)
                                 : _mm256_maskz_loadu_epi16((__mmask16)w_first(there), from);
}

/* Panels of A: half a vector each, two at a time. */
SIMD_INLINE void convert_rows(const mix_fp16_packing *p, const uint16_t *from, int panels,
                              const int64_t *starts, int depth, const scaling *s, uint16_t *packed,
                              int64_t panel_elements, const enum kind kind) {
  scaling pairs[FP16_MAX_PANELS / 2 + 1];
  for (int i = 0; i < panels; i += 2) {
    const scaling *low = &s[i], *high = &s[i + 1 < panels ? i + 1 : i];
    pairs[i / 2] = (scaling){
        both(low->lower, high->lower), both(low->min, high->min),
        _mm512_castsi512_ph(both(_mm512_castph_si512(low->factor), _mm512_castph_si512(high->factor)))};
  }
  for (int k = 0; k < depth; k++, from += p->stride) {
    uint16_t *to = packed + (int64_t)k * FP16_ROW_SLOTS;
    for (int i = 0; i < panels; i += 2, to += 2 * panel_elements) {
      const uint16_t *low = from + starts[i], *high = from + starts[i + 1];
      __builtin_prefetch(low + p->step * p->stride, 0, 2); /* the next step of this column */
      const __m512i x =
          convert(_mm512_inserti64x4(_mm512_castsi256_si512(row_slots(low, starts[panels] - starts[i])),
                                     row_slots(high, starts[panels] - starts[i + 1]), 1),
                  &pairs[i / 2], kind);
      _mm256_store_si256((__m256i *)to, _mm512_castsi512_si256(x));
      if (i + 1 < panels)
        _mm256_store_si256((__m256i *)(to + panel_elements), _mm512_extracti64x4_epi64(x, 1));
    }
  }
}

#include "backend/cpu/gemm/fp16/pack.h"
