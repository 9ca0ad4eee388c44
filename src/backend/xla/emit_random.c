/* Random numbers: Philox 4x32-10 as integer arithmetic (base/philox.h), and what is made of its words. Normal
 * numbers are computed in double, as by the reference kernels. */
#include "backend/xla/emit_inside.h"
#include "ops/stochastic_round.h"

typedef struct words {
  mix_hlo v[4];
} words;

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

/* Key or counter of the state, as a scalar of 64 bits. */
static mix_hlo of_state(mix_hlo_writer *w, mix_hlo state, int64_t i) {
  const mix_hlo one = mix_hlo_slice(w, state, (const int64_t[]){i}, (const int64_t[]){i + 1}, NULL);
  return mix_hlo_reshape(w, mix_hlo_bits(w, one, MIX_UINT64), MIX_SCALAR);
}

/* Salmon et al., SC 2011, section 4.3 and table 2. */
static words block_of(mix_hlo_writer *w, mix_hlo key, mix_hlo counter, mix_hlo index) {
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
  return (words){{c[0], c[1], c[2], c[3]}};
}

static words block(mix_hlo_writer *w, mix_hlo state, mix_hlo index) {
  const mix_hlo key = of_state(w, state, 0);
  return block_of(w, key, of_state(w, state, 1), index);
}

static mix_hlo elements(mix_hlo_writer *w, mix_shape shape) {
  return mix_hlo_iota(w, mix_type_of(MIX_UINT64, MIX_SHAPE(mix_shape_size(shape))), 0);
}

static mix_hlo shifted(mix_hlo_writer *w, mix_hlo x, int64_t bits) {
  return mix_hlo_binary(w, "shift_right_logical", x, mix_hlo_whole(w, x.type, bits));
}

/* A multiple of 2^-24 below 1, rounded down to 16 bits. */
static mix_hlo rounded_down(mix_hlo_writer *w, mix_hlo x, mix_dtype dtype) {
  const mix_hlo near = mix_hlo_convert(w, x, dtype), bits = mix_hlo_bits(w, near, MIX_UINT16),
                below = mix_hlo_bits(w, mix_hlo_subtract(w, bits, mix_hlo_whole(w, bits.type, 1)), dtype),
                above = mix_hlo_compare(w, "GT", mix_hlo_convert(w, near, MIX_FLOAT32), x);
  return mix_hlo_select(w, above, below, near);
}

mix_hlo mix_emit_uniform(mix_emitter *e, mix_hlo state, mix_type type) {
  mix_hlo_writer *w = &e->w;
  const words v = block(w, state, elements(w, type.shape));
  mix_hlo x;
  if (type.dtype == MIX_FLOAT64) {
    const mix_hlo first = mix_hlo_convert(w, v.v[0], MIX_UINT64),
                  top = mix_hlo_binary(w, "shift_left", first, mix_hlo_whole(w, first.type, 32)),
                  both = mix_hlo_binary(w, "or", top, mix_hlo_convert(w, v.v[1], MIX_UINT64));
    x = mix_hlo_convert(w, shifted(w, both, 11), MIX_FLOAT64);
    x = mix_hlo_multiply(w, x, mix_hlo_like(w, x, 0x1p-53));
  } else {
    x = mix_hlo_convert(w, shifted(w, v.v[0], 8), MIX_FLOAT32);
    x = mix_hlo_multiply(w, x, mix_hlo_like(w, x, 0x1p-24));
    if (mix_dtype_is_16_bit(type.dtype)) x = rounded_down(w, x, type.dtype);
  }
  return mix_hlo_reshape(w, x, type.shape);
}

/* bfloat16 numbers from the bits of float32 ones. In integers, which XLA never takes for excess precision. */
static mix_hlo rounded_bits(mix_hlo_writer *w, mix_hlo bits, mix_hlo draw) {
  const mix_hlo size = mix_hlo_and(w, bits, word(w, bits, 0x7fffffff)),
                nan = mix_hlo_compare(w, "GT", size, word(w, bits, 0x7f800000)),
                quiet = mix_hlo_binary(w, "or", bits, word(w, bits, 0x400000)),
                moved = mix_hlo_select(w, nan, quiet, mix_hlo_add(w, bits, draw));
  return mix_hlo_bits(w, mix_hlo_convert(w, shifted(w, moved, 16), MIX_UINT16), MIX_BFLOAT16);
}

mix_hlo mix_emit_stochastic_round(mix_emitter *e, const mix_hlo *x, double stream) {
  mix_hlo_writer *w = &e->w;
  const mix_shape shape = x[0].shape;
  const mix_hlo flat = mix_hlo_reshape(w, mix_emit_widen(e, x[0]), MIX_SHAPE(mix_shape_size(shape))),
                bits = mix_hlo_bits(w, flat, MIX_UINT32);
  if (stream == MIX_ROUND_NEAREST) {
    const mix_hlo odd = mix_hlo_and(w, shifted(w, bits, 16), word(w, bits, 1));
    return mix_hlo_reshape(w, rounded_bits(w, bits, mix_hlo_add(w, odd, word(w, bits, 0x7fff))), shape);
  }
  const mix_hlo index = elements(w, shape),
                seed = mix_hlo_reshape(w, mix_hlo_bits(w, x[1], MIX_UINT64), flat.shape),
                step = mix_hlo_reshape(w, mix_hlo_bits(w, x[2], MIX_UINT64), flat.shape),
                high = mix_hlo_whole(w, step.type, (int64_t)((uint64_t)stream << 40)),
                counter = mix_hlo_binary(w, "xor", step, high);
  const words v = block_of(w, seed, counter, shifted(w, index, 3));
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

/* Box and Muller, A note on the generation of random normal deviates, 1958: u in (0, 1], v in [0, 1). */
static mix_hlo box_muller(mix_hlo_writer *w, mix_hlo first, mix_hlo second) {
  const mix_hlo u0 = mix_hlo_convert(w, first, MIX_FLOAT64), scale = mix_hlo_like(w, u0, 0x1p-32),
                u = mix_hlo_multiply(w, mix_hlo_add(w, u0, mix_hlo_like(w, u0, 1)), scale),
                v = mix_hlo_multiply(w, mix_hlo_convert(w, second, MIX_FLOAT64), scale),
                angle = mix_hlo_multiply(w, v, mix_hlo_like(w, v, 2 * 3.14159265358979323846)),
                log_u = mix_hlo_unary(w, "log", u),
                radius = mix_hlo_unary(w, "sqrt", mix_hlo_multiply(w, log_u, mix_hlo_like(w, u, -2)));
  return mix_hlo_multiply(w, radius, mix_hlo_unary(w, "cosine", angle));
}

void mix_emit_random_uniform(mix_emitter *e, const mix_ir_node *node) {
  mix_emit_result(e, node, 0, mix_emit_uniform(e, mix_emit_operand(e, node, 0), mix_emit_type(e, node, 0)));
}

static void double_result(mix_emitter *e, const mix_ir_node *node, mix_hlo x) {
  mix_emit_result(e, node, 0, mix_emit_cast(e, x, mix_emit_type(e, node, 0).dtype));
}

void mix_emit_random_normal(mix_emitter *e, const mix_ir_node *node) {
  mix_hlo_writer *w = &e->w;
  const words v = block(w, mix_emit_operand(e, node, 0), elements(w, mix_emit_type(e, node, 0).shape));
  double_result(e, node, box_muller(w, v.v[0], v.v[1]));
}

/* Redraws until every number is within +-2: from words 0 and 1, then 2 and 3 of block i, then of i + 2^32,
 * ...
 */
void mix_emit_random_truncated_normal(mix_emitter *e, const mix_ir_node *node) {
  mix_hlo_writer *w = &e->w;
  const mix_hlo index = elements(w, mix_emit_type(e, node, 0).shape);
  if (!index.shape.dims[0]) {
    mix_emit_result(e, node, 0, mix_hlo_number(w, mix_emit_type(e, node, 0), 0));
    return;
  }
  mix_hlo state[] = {mix_emit_operand(e, node, 0), index,
                     mix_hlo_number(w, mix_type_of(MIX_FLOAT64, index.shape), 3)};
  mix_hlo_loop loop = mix_hlo_while(w, 3, state);
  const mix_hlo two = mix_hlo_like(w, state[2], 2),
                left = mix_hlo_compare(w, "GE", mix_hlo_unary(w, "abs", state[2]), two);
  mix_hlo_do(w, mix_hlo_reduce_all(w, "or", left, 0));
  const words v = block(w, state[0], state[1]);
  mix_hlo x = state[2];
  for (int pair = 0; pair < 4; pair += 2) {
    const mix_hlo bound = mix_hlo_like(w, x, 2),
                  draws = mix_hlo_compare(w, "GE", mix_hlo_unary(w, "abs", x), bound);
    x = mix_hlo_select(w, draws, box_muller(w, v.v[pair], v.v[pair + 1]), x);
  }
  const mix_hlo next[] = {state[0],
                          mix_hlo_add(w, state[1], mix_hlo_whole(w, state[1].type, INT64_C(1) << 32)), x};
  mix_hlo_end(w, &loop, next);
  double_result(e, node, state[2]);
}
