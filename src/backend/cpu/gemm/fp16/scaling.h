/* Part of the template pack.h: scales of steps (fp16.h), and what a step is copied to. Included after a
 * vectors_*.h. */
#pragma once

#include "backend/cpu/gemm/fp16/fp16.h"
#include <string.h>

enum { MAGNITUDE = 0x7fff, ROUND = 8 /* zeros follow k up to a multiple of it */, LINE = 32 };

/* How a vector becomes scaled float16. Careful: for a step that holds infinities or NaNs (bfloat16), or is
 * scaled down (float16). */
enum kind { FROM_F16, FROM_F16_CAREFUL, FROM_BF16, FROM_BF16_CAREFUL };

/* float16: x * factor. bfloat16: the exponent is lowered by that of `lower`, but not below `min`; then x *
 * factor, a power of two, makes numbers subnormal that are below the normal float16 ones. */
typedef struct scaling {
  words lower, min;
  halves factor;
} scaling;

/* The maximum of the magnitudes so far and those of x. Careful: of finite numbers alone; `not_finite` is the
 * first pattern that is not. */
SIMD_INLINE words larger(words so_far, words x, const bool careful, words not_finite) {
  x = w_magnitudes(x);
  if (careful) x = w_below(x, not_finite);
  return w_max(so_far, x);
}

static unsigned first_not_finite(mix_dtype dtype) { return dtype == MIX_FLOAT16 ? 0x7c00 : 0x7f80; }
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
  s->lower = w_set(lower << 7);
  s->min = w_set(min > 0 ? min << 7 : 0);
  s->factor = h_power_of_two(factor);
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
  const words not_finite = w_set((int)first_not_finite(p->dtype));
  words so_far = w_zero();
  for (int k = 0; k < rows * raw->words; k += WORDS)
    so_far = larger(so_far, w_load(raw->memory + k), true, not_finite);
  return w_largest(so_far);
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
