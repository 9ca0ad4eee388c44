/* Random numbers: what is made of the words of Philox (emit_philox.c). Normal numbers are computed in double,
 * as by the reference kernels. */
#include "backend/xla/emit_inside.h"

/* Key or counter of the state, as a scalar of 64 bits. */
static mix_hlo of_state(mix_hlo_writer *w, mix_hlo state, int64_t i) {
  const mix_hlo one = mix_hlo_slice(w, state, (const int64_t[]){i}, (const int64_t[]){i + 1}, NULL);
  return mix_hlo_reshape(w, mix_hlo_bits(w, one, MIX_UINT64), MIX_SCALAR);
}

static mix_emit_words block(mix_hlo_writer *w, mix_hlo state, mix_hlo index) {
  const mix_hlo key = of_state(w, state, 0);
  return mix_emit_philox(w, key, of_state(w, state, 1), index);
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
  const mix_emit_words v = block(w, state, mix_emit_places(w, type.shape));
  mix_hlo x;
  if (type.dtype == MIX_FLOAT64) {
    const mix_hlo first = mix_hlo_convert(w, v.v[0], MIX_UINT64),
                  top = mix_hlo_binary(w, "shift_left", first, mix_hlo_whole(w, first.type, 32)),
                  both = mix_hlo_binary(w, "or", top, mix_hlo_convert(w, v.v[1], MIX_UINT64));
    x = mix_hlo_convert(w, mix_emit_shifted(w, both, 11), MIX_FLOAT64);
    x = mix_hlo_multiply(w, x, mix_hlo_like(w, x, 0x1p-53));
  } else {
    x = mix_hlo_convert(w, mix_emit_shifted(w, v.v[0], 8), MIX_FLOAT32);
    x = mix_hlo_multiply(w, x, mix_hlo_like(w, x, 0x1p-24));
    if (mix_dtype_is_16_bit(type.dtype)) x = rounded_down(w, x, type.dtype);
  }
  return mix_hlo_reshape(w, x, type.shape);
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
  const mix_emit_words v =
      block(w, mix_emit_operand(e, node, 0), mix_emit_places(w, mix_emit_type(e, node, 0).shape));
  double_result(e, node, box_muller(w, v.v[0], v.v[1]));
}

/* Redraws until every number is within +-2: from mix_emit_words 0 and 1, then 2 and 3 of block i, then of i +
 * 2^32,
 * ...
 */
void mix_emit_random_truncated_normal(mix_emitter *e, const mix_ir_node *node) {
  mix_hlo_writer *w = &e->w;
  const mix_hlo index = mix_emit_places(w, mix_emit_type(e, node, 0).shape);
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
  const mix_emit_words v = block(w, state[0], state[1]);
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
