/* Philox 4x32-10 as integer arithmetic (base/philox.h), and rounding by its bits. */
#include "backend/xla/emit_inside.h"
#include "ops/stochastic_round.h"

static mix_hlo word(mix_hlo_writer *w, mix_hlo like, uint32_t number) {
  return mix_hlo_whole(w, mix_type_of(MIX_UINT32, like.shape), number);
}

/* The two halves of uint64. */
static mix_hlo low(mix_hlo_writer *w, mix_hlo x) { return mix_hlo_convert(w, x, MIX_UINT32); }
static mix_hlo high(mix_hlo_writer *w, mix_hlo x) {
  return mix_hlo_convert(w, mix_hlo_binary(w, "shift_right_logical", x, mix_hlo_whole(w, x.type, 32)),
                         MIX_UINT32);
}

static mix_hlo wide_product(mix_hlo_writer *w, mix_hlo x, uint32_t factor) {
  const mix_hlo wide = mix_hlo_convert(w, x, MIX_UINT64);
  return mix_hlo_multiply(w, wide, mix_hlo_whole(w, wide.type, factor));
}
static mix_hlo exclusive_or(mix_hlo_writer *w, mix_hlo a, mix_hlo b, mix_hlo c) {
  return mix_hlo_binary(w, "xor", mix_hlo_binary(w, "xor", a, b), c);
}

/* Salmon et al., SC 2011, section 4.3 and table 2. */
mix_emit_words mix_emit_philox(mix_hlo_writer *w, mix_hlo key, mix_hlo counter, mix_hlo index) {
  key = mix_hlo_broadcast(w, key, index.shape);
  counter = mix_hlo_broadcast(w, counter, index.shape);
  mix_hlo c[4], k0 = low(w, key), k1 = high(w, key);
  c[0] = low(w, index);
  c[1] = high(w, index);
  c[2] = low(w, counter);
  c[3] = high(w, counter);
  for (int round = 0; round < 10; round++) {
    const mix_hlo p0 = wide_product(w, c[0], 0xD2511F53u), p1 = wide_product(w, c[2], 0xCD9E8D57u),
                  first = exclusive_or(w, high(w, p1), c[1], k0),
                  third = exclusive_or(w, high(w, p0), c[3], k1);
    c[0] = first;
    c[1] = low(w, p1);
    c[2] = third;
    c[3] = low(w, p0);
    if (round == 9) break;
    k0 = mix_hlo_add(w, k0, word(w, k0, 0x9E3779B9u));
    k1 = mix_hlo_add(w, k1, word(w, k1, 0xBB67AE85u));
  }
  return (mix_emit_words){{c[0], c[1], c[2], c[3]}};
}

mix_hlo mix_emit_places(mix_hlo_writer *w, mix_shape shape) {
  return mix_hlo_iota(w, mix_type_of(MIX_UINT64, MIX_SHAPE(mix_shape_size(shape))), 0);
}

mix_hlo mix_emit_shifted(mix_hlo_writer *w, mix_hlo x, int64_t bits) {
  return mix_hlo_binary(w, "shift_right_logical", x, mix_hlo_whole(w, x.type, bits));
}

/* bfloat16 numbers from the bits of float32 ones. In integers, which XLA never takes for excess precision. */
static mix_hlo rounded_bits(mix_hlo_writer *w, mix_hlo bits, mix_hlo draw) {
  const mix_hlo size = mix_hlo_and(w, bits, word(w, bits, 0x7fffffff)),
                nan = mix_hlo_compare(w, "GT", size, word(w, bits, 0x7f800000)),
                quiet = mix_hlo_binary(w, "or", bits, word(w, bits, 0x400000)),
                moved = mix_hlo_select(w, nan, quiet, mix_hlo_add(w, bits, draw));
  return mix_hlo_bits(w, mix_hlo_convert(w, mix_emit_shifted(w, moved, 16), MIX_UINT16), MIX_BFLOAT16);
}

mix_hlo mix_emit_stochastic_round(mix_emitter *e, const mix_hlo *x, double stream) {
  mix_hlo_writer *w = &e->w;
  const mix_shape shape = x[0].shape;
  const mix_hlo flat = mix_hlo_reshape(w, mix_emit_widen(e, x[0]), MIX_SHAPE(mix_shape_size(shape))),
                bits = mix_hlo_bits(w, flat, MIX_UINT32);
  if (stream == MIX_ROUND_NEAREST) {
    const mix_hlo odd = mix_hlo_and(w, mix_emit_shifted(w, bits, 16), word(w, bits, 1));
    return mix_hlo_reshape(w, rounded_bits(w, bits, mix_hlo_add(w, odd, word(w, bits, 0x7fff))), shape);
  }
  const mix_hlo index = mix_emit_places(w, shape),
                seed = mix_hlo_reshape(w, mix_hlo_bits(w, x[1], MIX_UINT64), flat.shape),
                step = mix_hlo_reshape(w, mix_hlo_bits(w, x[2], MIX_UINT64), flat.shape),
                high = mix_hlo_whole(w, step.type, (int64_t)((uint64_t)stream << 40)),
                counter = mix_hlo_binary(w, "xor", step, high);
  const mix_emit_words v = mix_emit_philox(w, seed, counter, mix_emit_shifted(w, index, 3));
  const mix_hlo place = mix_hlo_convert(w, index, MIX_UINT32),
                number = mix_hlo_and(w, place, word(w, place, 7)),
                half = mix_hlo_and(w, place, word(w, place, 1)),
                shift = mix_hlo_multiply(w, half, word(w, half, 16));
  mix_hlo drawn = v.v[3];
  for (int i = 2; i >= 0; i--) {
    const mix_hlo below = mix_hlo_compare(w, "LT", number, word(w, number, (uint32_t)(2 * i + 2)));
    drawn = mix_hlo_select(w, below, v.v[i], drawn);
  }
  const mix_hlo draw = mix_hlo_binary(w, "shift_right_logical", drawn, shift);
  return mix_hlo_reshape(w, rounded_bits(w, bits, mix_hlo_and(w, draw, word(w, draw, 0xffff))), shape);
}
