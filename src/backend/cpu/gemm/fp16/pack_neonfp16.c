/* Packing of float16 panels by NEON with float16 arithmetic. */
#include "backend/cpu/gemm/fp16/vectors_neon.h"

#include "backend/cpu/gemm/fp16/scaling.h"

SIMD_INLINE words convert(words x, const scaling *s, const enum kind kind) {
  const words magnitude = w_set(MAGNITUDE);
  if (kind == FROM_F16 || kind == FROM_F16_CAREFUL) {
    const words y = vreinterpretq_u16_f16(vmulq_f16(vreinterpretq_f16_u16(x), s->factor));
    if (kind == FROM_F16) return y;
    const words vanished = vbicq_u16(vtstq_u16(x, magnitude), vtstq_u16(y, magnitude));
    return vsubq_u16(y, vanished); /* all bits of a lane: -1 */
  }
  enum { EXPONENT = 0x7f80, INFINITE = 0x7f80, BITS_MORE = 3, SIGN = 0x8000 };
  const words bits = w_magnitudes(x), normal = vtstq_u16(x, w_set(EXPONENT));
  words y = vshlq_n_u16(vandq_u16(normal, vmaxq_u16(vqsubq_u16(bits, s->lower), s->min)), BITS_MORE);
  if (kind == FROM_BF16_CAREFUL)
    y = vbslq_u16(vcgeq_u16(bits, w_set(INFINITE)), w_magnitudes(vshlq_n_u16(x, BITS_MORE)), y);
  y = vorrq_u16(y, vandq_u16(x, w_set(SIGN)));
  return vreinterpretq_u16_f16(vmulq_f16(vreinterpretq_f16_u16(y), s->factor));
}

/* Transposes eight rows of eight words. */
SIMD_INLINE void transpose(words *r) {
  uint32x4_t t[8];
  SIMD_UNROLL
  for (int i = 0; i < 8; i += 2) {
    const uint16x8x2_t x = vtrnq_u16(r[i], r[i + 1]);
    t[i] = vreinterpretq_u32_u16(x.val[0]), t[i + 1] = vreinterpretq_u32_u16(x.val[1]);
  }
  SIMD_UNROLL
  for (int i = 0; i < 8; i += 4) {
    SIMD_UNROLL
    for (int j = 0; j < 2; j++) {
      const uint32x4x2_t x = vtrnq_u32(t[i + j], t[i + j + 2]);
      t[i + j] = x.val[0], t[i + j + 2] = x.val[1];
    }
  }
  SIMD_UNROLL
  for (int i = 0; i < 4; i++) {
    r[i] = vreinterpretq_u16_u32(vcombine_u32(vget_low_u32(t[i]), vget_low_u32(t[i + 4])));
    r[i + 4] = vreinterpretq_u16_u32(vcombine_u32(vget_high_u32(t[i]), vget_high_u32(t[i + 4])));
  }
}

/* Rows [first, first + 8) of the step, from number k on, become a column each, `slots` from row to row. */
SIMD_INLINE void convert_eight(const raw_step *raw, int first, int k, int slots, const scaling *s,
                               uint16_t *to, const enum kind kind) {
  words r[WORDS];
  SIMD_UNROLL
  for (int i = 0; i < WORDS; i++) r[i] = w_load(raw->memory + (first + i) * raw->words + k);
  transpose(r);
  SIMD_UNROLL
  for (int i = 0; i < WORDS; i++) w_store(to + (k + i) * slots + first, convert(r[i], s, kind));
}

SIMD_INLINE void convert_to_columns(const raw_step *raw, int count, const scaling *s, uint16_t *to,
                                    const enum kind kind) {
  for (int j = 0; j < (count + LINE - 1) / LINE * LINE; j += WORDS)
    for (int k = 0; k < raw->words; k += WORDS) convert_eight(raw, j, k, FP16_NR, s, to, kind);
}

SIMD_INLINE void convert_to_rows(const raw_step *raw, const scaling *s, uint16_t *to, const enum kind kind) {
  for (int j = 0; j < FP16_ROW_SLOTS; j += WORDS)
    for (int k = 0; k < raw->words; k += WORDS) convert_eight(raw, j, k, FP16_ROW_SLOTS, s, to, kind);
}

SIMD_INLINE void convert_rows(const mix_fp16_packing *p, const uint16_t *from, int panels,
                              const int64_t *starts, int depth, const scaling *s, uint16_t *packed,
                              int64_t panel_elements, const enum kind kind) {
  for (int k = 0; k < depth; k++, from += p->stride, packed += FP16_ROW_SLOTS)
    for (int i = 0; i < panels; i++) {
      const int64_t there = starts[panels] - starts[i];
      __builtin_prefetch(from + starts[i] + p->step * p->stride, 0, 2); /* the next step of this column */
      for (int j = 0; j < FP16_ROW_SLOTS; j += WORDS)
        w_store(packed + i * panel_elements + j,
                convert(w_load_part(from + starts[i] + j, w_first(there - j)), &s[i], kind));
    }
}

#include "backend/cpu/gemm/fp16/pack.h"
