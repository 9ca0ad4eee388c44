/* Inside the emitter: what the families of operations share. */
#pragma once

#include "backend/xla/emit.h"
#include "backend/xla/hlo.h"

typedef struct mix_emitter {
  mix_hlo_writer w;
  mix_ir *root;          /* whose memory the signature is in */
  const mix_ir *ir;      /* being written: the root or the body of a loop */
  mix_hlo *values;       /* by value of that graph */
  const bool *decisive;  /* by value of it: feeds a decision; only under jit_compile */
  const char *precision; /* of products of float32 */
  mix_xla_signature *signature;
  int check_capacity;
  mix_hlo error;           /* the error word now, where main has one */
  const mix_ir_node *node; /* being written */
  bool failed;             /* with the error recorded */
  /* Writes the statements of a graph, whose arguments have their values: that of a loop's body. */
  bool (*graph)(struct mix_emitter *e, const mix_ir *ir);
} mix_emitter;

/* Writes the statements of a node. */
typedef void mix_emit_node(mix_emitter *e, const mix_ir_node *node);

static inline mix_hlo mix_emit_operand(const mix_emitter *e, const mix_ir_node *node, int i) {
  return e->values[node->inputs[i]];
}
static inline mix_type mix_emit_type(const mix_emitter *e, const mix_ir_node *node, int output) {
  return e->ir->values[node->first_output + output].type;
}
/* The value of a result, which is rounded to its dtype, and reshaped. */
void mix_emit_result(mix_emitter *e, const mix_ir_node *node, int output, mix_hlo value);
/* Does it, or a body of its loops, check values? */
bool mix_emit_checks(const mix_ir *ir);

/* The dtype that it computes in: float32 for 8 and 16 bits. */
static inline mix_dtype mix_emit_wide(mix_dtype dtype) {
  return mix_dtype_is_16_bit(dtype) || mix_dtype_is_float8(dtype) ? MIX_FLOAT32 : dtype;
}
static inline mix_hlo mix_emit_widen(mix_emitter *e, mix_hlo x) {
  return mix_hlo_convert(&e->w, x, mix_emit_wide(x.dtype));
}
/* The precision of a product of that dtype, for mix_hlo_dot; NULL: that of its operands suffices. */
const char *mix_emit_precision(const mix_emitter *e, mix_dtype dtype);

/* The dtype of the node's product of 16-bit operands, which is rounded once: that of the result under
 * jit_compile, where XLA's libraries may then add a bias before they round, else float32, which the result is
 * rounded from. */
mix_dtype mix_emit_product_dtype(const mix_emitter *e, const mix_ir_node *node, mix_dtype dtype);
/* Begins a graph, the root or the body of a loop. */
bool mix_emit_enter(mix_emitter *e, mix_ir *ir, mix_hlo *values);

/* ---- families ---- */

/* emit_elementwise.c */
mix_hlo mix_emit_cast(mix_emitter *e, mix_hlo x, mix_dtype dtype);
/* x, whose last axes were lost in a reduction, in a shape with them. */
mix_hlo mix_emit_along_last(mix_emitter *e, mix_hlo reduced, mix_shape shape);
/* emit_reduce.c: the least number of a dtype, which a maximum begins with */
double mix_emit_lowest(mix_dtype dtype);
/* The softmax over the last axis, in the wide dtype */
mix_hlo mix_emit_probabilities(mix_emitter *e, mix_hlo x);
/* emit_random.c: as the ops of their names, from a state of int64 (2) */
mix_hlo mix_emit_uniform(mix_emitter *e, mix_hlo state, mix_type type);
/* emit_philox.c: the blocks of a key and a counter, scalars or arrays of uint64, at these indices */
typedef struct mix_emit_words {
  mix_hlo v[4];
} mix_emit_words;
mix_emit_words mix_emit_philox(mix_hlo_writer *w, mix_hlo key, mix_hlo counter, mix_hlo index);
/* The places of the elements of a shape, in order: uint64 (elements). */
mix_hlo mix_emit_places(mix_hlo_writer *w, mix_shape shape);
mix_hlo mix_emit_shifted(mix_hlo_writer *w, mix_hlo x, int64_t bits);
/* As stochastic_round, from x, seed and step in the shape of x. */
mix_hlo mix_emit_stochastic_round(mix_emitter *e, const mix_hlo *x, double stream);
/* emit_rows.c: where the indices are outside [0, count) */
mix_hlo mix_emit_outside(mix_emitter *e, mix_hlo indices, int64_t count);
/* emit_checks.c: a scalar as int64 (1) */
mix_hlo mix_emit_word(mix_hlo_writer *w, mix_hlo x);
/* Where `bad`, the run fails with the element and its value. */
void mix_emit_check(mix_emitter *e, mix_hlo bad, mix_hlo values, mix_bad_value reason);

/* The forms that ops/list.h gives to the ops. */
#define MIX_DECLARE_EMITTER(name, kernel, form, ...) mix_emit_node mix_emit_##form;
MIX_KERNEL_OPS(MIX_DECLARE_EMITTER)
#undef MIX_DECLARE_EMITTER
mix_emit_node mix_emit_elementwise, mix_emit_scan, mix_emit_check_numerics;
