/* simplify_casts: removes redundant casts. A dtype embeds in another that can represent all its values:
 * infinities, NaN, subnormal numbers, both zeros. A cast through such a dtype loses nothing, so x -> wide ->
 * T becomes x -> T, or x itself where T is its dtype. Examples are a float32 layer between 16-bit ones, and
 * casts of the rewrite beside those of the graph. An op that only moves elements (Flatten) may stand between.
 * A narrowing cast loses bits and stays: float32 -> float16 -> float32 is not redundant. */
#include "passes/passes.h"

#include "tensor/shape.h"

/* Value bits of an integer dtype, without the sign. A floating dtype holds all integers up to 2^mantissa. */
static int magnitude_bits(mix_dtype dtype) {
  switch (dtype) {
  case MIX_BOOL: return 1;
  case MIX_INT8: return 7;
  case MIX_UINT8: return 8;
  case MIX_INT16: return 15;
  case MIX_INT32: return 31;
  default: return 63;
  }
}

static int mantissa_bits(mix_dtype dtype) {
  switch (dtype) {
  case MIX_FLOAT8_E4M3FN: return 4;
  case MIX_FLOAT8_E5M2: return 3;
  case MIX_FLOAT16: return 11;
  case MIX_BFLOAT16: return 8;
  default: return dtype == MIX_FLOAT32 ? 24 : 53;
  }
}

bool mix_dtype_embeds(mix_dtype from, mix_dtype to) {
  if (from == to) return true;
  if (to == MIX_BOOL) return false;
  if (mix_dtype_is_float8(from)) return mix_dtype_is_floating(to) && !mix_dtype_is_float8(to);
  if (mix_dtype_is_floating(from)) return to == MIX_FLOAT64 || (to == MIX_FLOAT32 && from != MIX_FLOAT64);
  if (mix_dtype_is_floating(to))
    return magnitude_bits(from) <= mantissa_bits(to); /* -2^7 is a power of two */
  bool is_signed = from != MIX_BOOL && from != MIX_UINT8;
  return to == MIX_UINT8 ? !is_signed : magnitude_bits(from) <= magnitude_bits(to);
}

static bool is_cast(const mix_ir_node *node) {
  return !node->source && !node->dead && node->op->opcode == MIX_OPCODE_CAST;
}

/* Moves elements without changing them. */
static bool moves(const mix_ir_node *node) { return !node->source && (node->op->flags & MIX_OP_LAYOUT); }

/* The value of which `value` is a lossless cast, or -1. */
static int lossless_source(const mix_ir *ir, int value) {
  const mix_ir_node *node = &ir->nodes[mix_ir_producer(ir, value)];
  if (!is_cast(node)) return -1;
  return mix_dtype_embeds(ir->values[node->inputs[0]].dtype, ir->values[value].dtype) ? node->inputs[0] : -1;
}

/* cast(move(cast(x))), where x has the dtype of the result, becomes move(x). The moved value must have no
 * other use. */
static bool move_narrow(mix_ir *ir, int n, const int *uses) {
  int moved = ir->nodes[n].inputs[0];
  const mix_ir_node *mover = &ir->nodes[mix_ir_producer(ir, moved)];
  if (!moves(mover) || uses[moved] != 1) return true;
  int x = lossless_source(ir, mover->inputs[0]);
  if (x < 0 || ir->values[x].dtype != ir->values[ir->nodes[n].first_output].dtype) return true;
  mix_ir_node *node = &ir->nodes[n];
  const void *attributes = mover->attributes;
  if (!(mover->op->flags & MIX_OP_TRANSPOSE)) { /* the attributes of the others hold the dtype too */
    mix_shape_attributes *copy = mix_ir_alloc(ir, sizeof *copy);
    if (!copy) return false;
    *copy = *(const mix_shape_attributes *)attributes;
    if (copy->dtype != MIX_DTYPE_NONE) copy->dtype = ir->values[x].dtype;
    attributes = copy;
  }
  node->op = mover->op;
  node->attributes = attributes;
  node->inputs[0] = x;
  return true;
}

bool mix_pass_simplify_casts(mix_ir *ir) {
  int *becomes = mix_ir_ints(ir, ir->value_count + 1);
  int *uses = mix_ir_uses(ir);
  bool *condition = mix_ir_conditions(ir); /* a guard stays a computed value */
  if (!becomes || !uses || !condition) return false;
  for (int v = 0; v < ir->value_count; v++) becomes[v] = v;
  for (int n = 0; n < ir->node_count; n++) {
    mix_ir_node *node = &ir->nodes[n];
    for (int i = 0; i < node->input_count; i++) node->inputs[i] = becomes[node->inputs[i]];
    if (!is_cast(node)) continue;
    for (int x; (x = lossless_source(ir, node->inputs[0])) >= 0;) node->inputs[0] = x;
    const mix_ir_value *from = &ir->values[node->inputs[0]], *to = &ir->values[node->first_output];
    if (from->dtype != to->dtype) {
      if (!move_narrow(ir, n, uses)) return false;
      continue;
    }
    if (!mix_shape_equal(from->shape, to->shape) || condition[node->first_output]) continue;
    becomes[node->first_output] = node->inputs[0];
    node->dead = true;
  }
  for (int i = 0; i < ir->result_count; i++) ir->results[i] = becomes[ir->results[i]];
  for (int i = 0; i < ir->variable_count; i++) ir->variables[i].exit = becomes[ir->variables[i].exit];
  return mix_ir_sort(ir);
}
