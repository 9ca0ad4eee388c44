/* Packs operands as scaled float16 panels (fp16.h). Each step of a panel is read twice: first for its largest
 * magnitude, which gives the scale, then from a cache. A step of a single panel is copied in between, since
 * rows of an operand often share a few sets of a cache. */
#include "backend/cpu/gemm/fp16/fp16.h"
#include "backend/cpu/simd/attributes.h"
#include <immintrin.h>
#include <string.h>

enum { WORDS = 32, MAGNITUDE = 0x7fff, ROUND = 8 /* zeros follow k up to a multiple of it */ };

/* How a vector becomes scaled float16. Careful: for a step that holds infinities or NaNs (bfloat16), or is
 * scaled down (float16). */
enum kind { FROM_F16, FROM_F16_CAREFUL, FROM_BF16, FROM_BF16_CAREFUL };

/* float16: x * factor. bfloat16: the exponent is lowered by that of `lower`, but not below `min`; then x *
 * factor, a power of two, makes numbers subnormal that are below the normal float16 ones. */
typedef struct scaling {
  __m512i lower, min;
  __m512h factor;
} scaling;

SIMD_INLINE __mmask32 words(int64_t count) {
  return count >= WORDS ? 0xffffffffu : count <= 0 ? 0 : (__mmask32)((1u << count) - 1);
}

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

/* The maximum of the magnitudes so far and those of x. Careful: of finite numbers alone; `not_finite` is the
 * first pattern that is not. */
SIMD_INLINE __m512i larger(__m512i so_far, __m512i x, const bool careful, __m512i not_finite) {
  x = _mm512_and_si512(x, _mm512_set1_epi16(MAGNITUDE));
  if (careful) x = _mm512_maskz_mov_epi16(_mm512_cmplt_epu16_mask(x, not_finite), x);
  return _mm512_max_epu16(so_far, x);
}

SIMD_INLINE unsigned largest(__m512i x) {
  const __m256i a = _mm256_max_epu16(_mm512_castsi512_si256(x), _mm512_extracti64x4_epi64(x, 1));
  const __m128i b = _mm_max_epu16(_mm256_castsi256_si128(a), _mm256_extracti128_si256(a, 1));
  /* The instruction finds the minimum: of the complements. */
  return 0xffffu - (unsigned)_mm_extract_epi16(_mm_minpos_epu16(_mm_xor_si128(b, _mm_set1_epi16(-1))), 0);
}

static unsigned first_not_finite(mix_dtype dtype) { return dtype == MIX_FLOAT16 ? 0x7c00 : 0x7f80; }
static __m512h power_of_two(int exponent) {
  return _mm512_castsi512_ph(_mm512_set1_epi16((short)((exponent + 15) << 10)));
}
static float power_of_two_float(int exponent) { /* normal numbers */
  const union {
    uint32_t bits;
    float value;
  } x = {.bits = (uint32_t)(exponent + 127) << 23};
  return x.value;
}

/* Sets the conversion by the scale 2^up that brings `magnitude`, the largest of a step, just below 2^limit;
 * returns the factor that undoes it. *down: up < 0 (float16 alone). */
static float make_scaling(const mix_fp16_packing *p, unsigned magnitude, scaling *s, bool *down) {
  int up = 0, lower = 0, factor = 0;
  *down = false;
  if (p->dtype == MIX_FLOAT16) {
    enum { BIAS = 15, SMALLEST = -24, MAX = 15 };
    if (magnitude >= 1u << 10)
      up = p->limit - 1 - ((int)(magnitude >> 10) - BIAS);
    else if (magnitude)
      up = p->limit - 1 - (SMALLEST + 31 - __builtin_clz(magnitude));
    factor = up = up < MAX ? up : MAX;
    *down = up < 0;
  } else {
    /* float16's largest exponent of normal numbers is 30; a re-biased number is 2^(112 - lower) times the
     * original: 112 is 127 - 15. */
    enum { TOP = 30, BIASES = 112, MAX = 14 };
    const int exponent = (int)(magnitude >> 7);
    lower = exponent > TOP ? exponent - TOP : 0;
    if (exponent) {
      factor = p->limit - 1 + 127 - exponent - (BIASES - lower);
      factor = factor < MAX ? factor : MAX;
      up = BIASES - lower + factor;
    }
  }
  /* The exponent field of the number that the factor makes 2^-24, at which small numbers are held. Not in a
   * step with numbers of 2^64 or more: what a held number is multiplied with could be as large, and that
   * product could overflow where the exact one does not. */
  enum { HUGE_EXPONENT = 127 + 64 };
  const int min = p->dtype == MIX_BFLOAT16 && magnitude >> 7 < HUGE_EXPONENT ? -24 - factor + 15 : 0;
  s->lower = _mm512_set1_epi16((short)(lower << 7));
  s->min = _mm512_set1_epi16((short)(min > 0 ? min << 7 : 0));
  s->factor = power_of_two(factor);
  return power_of_two_float(-up);
}

/* ---- a step of a panel, copied ---- */

/* A step of a panel as stored: rows of `words` words, padded with zeros. */
typedef struct raw_step {
  int words;
  _Alignas(64) uint16_t memory[FP16_NR * FP16_MAX_STEP];
} raw_step;

/* The largest magnitude of the step's finite numbers. */
static unsigned largest_finite(const mix_fp16_packing *p, const raw_step *raw, int rows) {
  const __m512i not_finite = _mm512_set1_epi16((short)first_not_finite(p->dtype));
  __m512i so_far = _mm512_setzero_si512();
  for (int k = 0; k < rows * raw->words; k += WORDS)
    so_far = larger(so_far, _mm512_load_si512(raw->memory + k), true, not_finite);
  return largest(so_far);
}

/* The kind of conversion of a step with this largest magnitude, its scaling, the factor that undoes it. */
static enum kind choose_scaling(const mix_fp16_packing *p, unsigned magnitude, const raw_step *raw, int rows,
                                scaling *s, float *undone) {
  const bool finite = magnitude < first_not_finite(p->dtype);
  bool down;
  *undone = make_scaling(p, finite ? magnitude : largest_finite(p, raw, rows), s, &down);
  if (p->dtype == MIX_FLOAT16) return down ? FROM_F16_CAREFUL : FROM_F16;
  return finite ? FROM_BF16 : FROM_BF16_CAREFUL;
}

/* ---- k along memory: one panel at a time, transposed ---- */

/* Copies `count` rows of `depth` numbers; returns their largest magnitude. */
SIMD_INLINE unsigned copy_rows(const mix_fp16_packing *p, const uint16_t *from, int count, int depth,
                               raw_step *raw) {
  const __m512i unused = _mm512_setzero_si512();
  const int whole = (depth - 1) / WORDS * WORDS; /* all words but the last vector's */
  const __mmask32 last = words(depth - whole);
  __m512i so_far = _mm512_setzero_si512(), so_far_last = so_far;
  uint16_t *to = raw->memory;
  raw->words = whole + WORDS;
  for (int i = 0; i < count; i++, from += p->stride, to += raw->words) {
    for (int k = 0; k < whole; k += WORDS) {
      const __m512i x = _mm512_loadu_si512(from + k);
      so_far = larger(so_far, x, false, unused);
      _mm512_store_si512(to + k, x);
    }
    const __m512i x = _mm512_maskz_loadu_epi16(last, from + whole);
    so_far_last = larger(so_far_last, x, false, unused);
    _mm512_store_si512(to + whole, x);
    for (int k = 0; k <= whole; k += WORDS)
      __builtin_prefetch(from + p->step + k, 0, 2); /* the next step of this row */
  }
  return largest(_mm512_max_epu16(so_far, so_far_last));
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

/* Rows of A that stay rows. */
SIMD_INLINE void convert_as_rows(const raw_step *raw, int count, const scaling *s, uint16_t *to,
                                 const enum kind kind) {
  const uint16_t *from = raw->memory;
  for (int i = 0; i < count; i++, to += FP16_MAX_STEP)
    for (int k = 0; k < raw->words; k += WORDS, from += WORDS)
      _mm512_store_si512(to + k, convert(_mm512_load_si512(from), s, kind));
}

/* `slots` 0: as rows. */
SIMD_INLINE void convert_along(const raw_step *raw, int count, int slots, const scaling *s, uint16_t *to,
                               const enum kind kind) {
  if (!slots)
    convert_as_rows(raw, count, s, to, kind);
  else if (slots == FP16_ROW_SLOTS)
    convert_to_rows(raw, s, to, kind);
  else
    convert_to_columns(raw, count, s, to, kind);
}

#define CONVERT_ALONG(name, kind)                                                                            \
  static void convert_along_##name(const raw_step *raw, int count, int slots, const scaling *s,              \
                                   uint16_t *to) {                                                           \
    convert_along(raw, count, slots, s, to, kind);                                                           \
  }
CONVERT_ALONG(f16, FROM_F16)
CONVERT_ALONG(f16_careful, FROM_F16_CAREFUL)
CONVERT_ALONG(bf16, FROM_BF16)
CONVERT_ALONG(bf16_careful, FROM_BF16_CAREFUL)

static void pack_along(const mix_fp16_packing *p, int64_t start, int count, int64_t first, int64_t depth,
                       uint16_t *packed, float *scales) {
  static void (*const converts[])(const raw_step *, int, int, const scaling *, uint16_t *) = {
      convert_along_f16, convert_along_f16_careful, convert_along_bf16, convert_along_bf16_careful};
  const uint16_t *from = p->source + start * p->stride + first;
  const int padded = p->slots == FP16_ROW_SLOTS ? FP16_ROW_SLOTS : (count + WORDS - 1) / WORDS * WORDS;
  raw_step raw;
  for (int64_t k = 0; k < depth; k += p->step, from += p->step) {
    const int some = depth - k < p->step ? (int)(depth - k) : p->step;
    scaling s;
    const enum kind kind =
        choose_scaling(p, copy_rows(p, from, count, some, &raw), &raw, count, &s, scales++);
    if (!p->as_rows)
      memset(raw.memory + count * raw.words, 0, (size_t)((padded - count) * raw.words) * sizeof *raw.memory);
    uint16_t *to = packed + k * p->slots;
    if (p->as_rows) to -= k % FP16_MAX_STEP * (p->slots - 1);
    converts[kind](&raw, count, p->as_rows ? 0 : p->slots, &s, to);
  }
}

/* ---- k from row to row, columns of B: one panel at a time ---- */

/* Copies `depth` rows of a panel's `count` columns; returns their largest magnitude. */
SIMD_INLINE unsigned copy_columns(const mix_fp16_packing *p, const uint16_t *from, int count, int depth,
                                  raw_step *raw) {
  const __m512i unused = _mm512_setzero_si512();
  __m512i low = _mm512_setzero_si512(), high = low;
  raw->words = FP16_NR;
  uint16_t *to = raw->memory;
  const __mmask32 first = words(count), second = words(count - WORDS);
  for (int k = 0; k < depth; k++, from += p->stride, to += FP16_NR) {
    const __m512i x = _mm512_maskz_loadu_epi16(first, from),
                  y = _mm512_maskz_loadu_epi16(second, from + WORDS);
    low = larger(low, x, false, unused), high = larger(high, y, false, unused);
    _mm512_store_si512(to, x);
    _mm512_store_si512(to + WORDS, y);
  }
  return largest(_mm512_max_epu16(low, high));
}

/* Scales the rows of a step. */
SIMD_INLINE void scale(const raw_step *raw, int depth, const scaling *s, uint16_t *to, const enum kind kind) {
  for (int k = 0; k < depth * FP16_NR; k += WORDS)
    _mm512_store_si512(to + k, convert(_mm512_load_si512(raw->memory + k), s, kind));
}

#define SCALE(name, kind)                                                                                    \
  static void scale_##name(const raw_step *raw, int depth, const scaling *s, uint16_t *to) {                 \
    scale(raw, depth, s, to, kind);                                                                          \
  }
SCALE(f16, FROM_F16)
SCALE(f16_careful, FROM_F16_CAREFUL)
SCALE(bf16, FROM_BF16)
SCALE(bf16_careful, FROM_BF16_CAREFUL)

/* Prefetches all columns of some rows: memory is faster with whole rows than with a panel's part of each. */
SIMD_INLINE void prefetch_rows(const mix_fp16_packing *p, const uint16_t *from, int64_t first, int64_t end,
                               int64_t columns) {
  for (from += first * p->stride; first < end; first++, from += p->stride)
    for (int64_t j = 0; j < columns; j += WORDS) __builtin_prefetch(from + j, 0, 2);
}

static void pack_columns_across(const mix_fp16_packing *p, int panels, const int64_t *starts, int64_t first,
                                int64_t depth, uint16_t *packed, int64_t panel_elements, float *scales,
                                int64_t panel_scales) {
  static void (*const scale_as[])(const raw_step *, int, const scaling *, uint16_t *) = {
      scale_f16, scale_f16_careful, scale_bf16, scale_bf16_careful};
  const uint16_t *from = p->source + first * p->stride + starts[0];
  const int64_t columns = starts[panels] - starts[0];
  raw_step raw;
  for (int64_t k = 0; k < depth; k += p->step, scales++) {
    const int some = depth - k < p->step ? (int)(depth - k) : p->step;
    const uint16_t *next = from + p->step * p->stride;
    const int64_t left = depth - k - some, more = left < p->step ? left : p->step;
    for (int i = 0; i < panels; i++) {
      prefetch_rows(p, next, more * i / panels, more * (i + 1) / panels, columns);
      const int count = (int)(starts[i + 1] - starts[i]);
      scaling s;
      const unsigned magnitude = copy_columns(p, from + starts[i] - starts[0], count, some, &raw);
      const enum kind kind = choose_scaling(p, magnitude, &raw, some, &s, scales + i * panel_scales);
      scale_as[kind](&raw, some, &s, packed + i * panel_elements + k * FP16_NR);
    }
    from = next;
  }
  for (int i = 0; i < panels; i++)
    for (int64_t k = depth * FP16_NR; k % (ROUND * FP16_NR); k += WORDS)
      _mm512_store_si512(packed + i * panel_elements + k, _mm512_setzero_si512());
}

/* ---- k from row to row, rows of A: several panels at a time, so that whole rows of memory are read ---- */

/* The largest magnitude of each panel, by way of the largest of each lane. */
SIMD_INLINE void largest_across(const mix_fp16_packing *p, const uint16_t *from, int panels,
                                const int64_t *starts, int depth, unsigned *magnitudes, const bool careful) {
  const __m512i not_finite = _mm512_set1_epi16((short)first_not_finite(p->dtype));
  const int64_t width = starts[panels] - starts[0], vectors = (width + WORDS - 1) / WORDS;
  __m512i so_far[FP16_MAX_PANELS * 2];
  uint16_t lanes[FP16_MAX_PANELS * FP16_NR];
  for (int64_t v = 0; v < vectors; v++) so_far[v] = _mm512_setzero_si512();
  from += starts[0];
  for (int k = 0; k < depth; k++, from += p->stride) {
    for (int64_t v = 0; v < vectors - 1; v++)
      so_far[v] = larger(so_far[v], _mm512_loadu_si512(from + v * WORDS), careful, not_finite);
    const int64_t last = (vectors - 1) * WORDS;
    so_far[vectors - 1] = larger(
        so_far[vectors - 1], _mm512_maskz_loadu_epi16(words(width - last), from + last), careful, not_finite);
  }
  memcpy(lanes, so_far, (size_t)vectors * sizeof *so_far);
  for (int i = 0; i < panels; i++) {
    const int64_t own = starts[i + 1] - starts[i];
    const uint16_t *first = lanes + starts[i] - starts[0];
    magnitudes[i] = largest(_mm512_max_epu16(_mm512_maskz_loadu_epi16(words(own), first),
                                             _mm512_maskz_loadu_epi16(words(own - WORDS), first + WORDS)));
  }
}

SIMD_INLINE __m512i both(__m512i low, __m512i high) {
  return _mm512_inserti64x4(low, _mm512_castsi512_si256(high), 1);
}

/* 16 numbers of a row of A, of which `there` exist. */
SIMD_INLINE __m256i row_slots(const uint16_t *from, int64_t there) {
  return there >= FP16_ROW_SLOTS ? _mm256_loadu_si256((const __m256i *)from)
                                 : _mm256_maskz_loadu_epi16((__mmask16)words(there), from);
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

#define CONVERT_ROWS(name, kind)                                                                             \
  static void convert_rows_##name(const mix_fp16_packing *p, const uint16_t *from, int panels,               \
                                  const int64_t *starts, int depth, const scaling *s, uint16_t *packed,      \
                                  int64_t panel_elements) {                                                  \
    convert_rows(p, from, panels, starts, depth, s, packed, panel_elements, kind);                           \
  }
CONVERT_ROWS(f16, FROM_F16)
CONVERT_ROWS(f16_careful, FROM_F16_CAREFUL)
CONVERT_ROWS(bf16, FROM_BF16)
CONVERT_ROWS(bf16_careful, FROM_BF16_CAREFUL)

static void pack_rows_across(const mix_fp16_packing *p, int panels, const int64_t *starts, int64_t first,
                             int64_t depth, uint16_t *packed, int64_t panel_elements, float *scales,
                             int64_t panel_scales) {
  static void (*const converts[])(const mix_fp16_packing *, const uint16_t *, int, const int64_t *, int,
                                  const scaling *, uint16_t *, int64_t) = {
      convert_rows_f16, convert_rows_f16_careful, convert_rows_bf16, convert_rows_bf16_careful};
  const uint16_t *from = p->source + first * p->stride;
  for (int64_t k = 0; k < depth; k += p->step, from += p->step * p->stride, scales++) {
    const int some = depth - k < p->step ? (int)(depth - k) : p->step;
    unsigned magnitudes[FP16_MAX_PANELS];
    scaling s[FP16_MAX_PANELS];
    bool finite = true, any_down = false;
    largest_across(p, from, panels, starts, some, magnitudes, false);
    for (int i = 0; i < panels; i++) finite &= magnitudes[i] < first_not_finite(p->dtype);
    if (!finite) largest_across(p, from, panels, starts, some, magnitudes, true);
    for (int i = 0; i < panels; i++) {
      bool down;
      scales[i * panel_scales] = make_scaling(p, magnitudes[i], &s[i], &down);
      any_down |= down;
    }
    /* The careful conversion gives the same numbers for panels that do not need it. */
    const enum kind kind = p->dtype == MIX_FLOAT16 ? (any_down ? FROM_F16_CAREFUL : FROM_F16)
                           : finite                ? FROM_BF16
                                                   : FROM_BF16_CAREFUL;
    converts[kind](p, from, panels, starts, some, s, packed + k * p->slots, panel_elements);
  }
  for (int64_t k = depth; k % ROUND; k++)
    for (int i = 0; i < panels; i++)
      _mm256_store_si256((__m256i *)(packed + i * panel_elements + k * FP16_ROW_SLOTS),
                         _mm256_setzero_si256());
}

void mix_fp16_pack(const mix_fp16_packing *packing, int panels, const int64_t *starts, int64_t first,
                   int64_t depth, uint16_t *packed, int64_t panel_elements, float *scales,
                   int64_t panel_scales) {
  if (packing->across) {
    (packing->slots == FP16_NR ? pack_columns_across : pack_rows_across)(
        packing, panels, starts, first, depth, packed, panel_elements, scales, panel_scales);
    return;
  }
  for (int i = 0; i < panels; i++)
    pack_along(packing, starts[i], (int)(starts[i + 1] - starts[i]), first, depth,
               packed + i * panel_elements, scales + i * panel_scales);
}
