/* cse: common subexpression elimination. Of several nodes with the same op, operands and attributes the first
 * one stays. */
#include "passes/passes.h"

#include "ops/attributes.h"
#include "tensor/shape.h"
#include <string.h>

static size_t hash_bytes(size_t hash, const void *data, size_t size) {
  const unsigned char *bytes = data;
  for (size_t i = 0; i < size; i++) hash = (hash ^ bytes[i]) * 0x100000001b3u;
  return hash;
}

static size_t constant_bytes(const mix_ir *ir, const mix_ir_node *node) {
  return mix_value_bytes(ir->values[node->first_output].dtype, ir->values[node->first_output].shape);
}

static bool eligible(const mix_ir *ir, const mix_ir_node *node) {
  if (node->dead || (node->op->flags & (MIX_OP_STATEFUL | MIX_OP_LOOP)) || node->program || node->guard >= 0)
    return false;
  if (node->source == MIX_IR_CONSTANT) return constant_bytes(ir, node) <= 64;
  return !node->source;
}

static size_t node_hash(const mix_ir *ir, const mix_ir_node *node) {
  size_t hash = hash_bytes(0xcbf29ce484222325u, &node->op, sizeof node->op);
  hash = hash_bytes(hash, node->inputs, sizeof(int) * (size_t)node->input_count);
  const void *data = node->source == MIX_IR_CONSTANT ? mix_ir_map_constant(node) : NULL;
  if (data) hash = hash_bytes(hash, data, constant_bytes(ir, node));
  if (data) mix_ir_unmap_constant(node);
  return hash;
}

static bool same_bytes(const mix_ir_node *a, const mix_ir_node *b, size_t bytes) {
  const void *x = mix_ir_map_constant(a), *y = x ? mix_ir_map_constant(b) : NULL;
  bool same = y && !memcmp(x, y, bytes);
  if (y) mix_ir_unmap_constant(b);
  if (x) mix_ir_unmap_constant(a);
  return same;
}

static bool same(const mix_ir *ir, const mix_ir_node *a, const mix_ir_node *b) {
  if (a->op != b->op || a->input_count != b->input_count || a->output_count != b->output_count) return false;
  if (memcmp(a->inputs, b->inputs, sizeof(int) * (size_t)a->input_count)) return false;
  for (int i = 0; i < a->output_count; i++) {
    const mix_ir_value *x = &ir->values[a->first_output + i], *y = &ir->values[b->first_output + i];
    if (x->dtype != y->dtype || !mix_shape_equal(x->shape, y->shape)) return false;
  }
  if (a->source == MIX_IR_CONSTANT) return same_bytes(a, b, constant_bytes(ir, a));
  return mix_attributes_equal(a->op, a->attributes, b->attributes);
}

bool mix_pass_cse(mix_ir *ir) {
  int size = 64;
  while (size < ir->node_count * 2) size *= 2;
  int *table = mix_ir_ints(ir, size); /* node + 1 */
  int *becomes = mix_ir_ints(ir, ir->value_count + 1);
  if (!table || !becomes) return false;
  for (int v = 0; v < ir->value_count; v++) becomes[v] = v;
  for (int n = 0; n < ir->node_count; n++) {
    mix_ir_node *node = &ir->nodes[n];
    for (int i = 0; i < node->input_count; i++) node->inputs[i] = becomes[node->inputs[i]];
    if (!eligible(ir, node)) continue;
    size_t at = node_hash(ir, node) & (size_t)(size - 1);
    while (table[at] && !same(ir, &ir->nodes[table[at] - 1], node)) at = (at + 1) & (size_t)(size - 1);
    if (!table[at]) {
      table[at] = n + 1;
      continue;
    }
    for (int i = 0; i < node->output_count; i++)
      becomes[node->first_output + i] = ir->nodes[table[at] - 1].first_output + i;
    ir->nodes[table[at] - 1].keep |= node->keep; /* "amp", the reader of `keep`, ran before this pass */
    node->dead = true;
  }
  for (int i = 0; i < ir->result_count; i++) ir->results[i] = becomes[ir->results[i]];
  for (int n = 0; n < ir->node_count; n++)
    if (ir->nodes[n].guard >= 0) ir->nodes[n].guard = becomes[ir->nodes[n].guard];
  for (int i = 0; i < ir->variable_count; i++) {
    ir->variables[i].exit = becomes[ir->variables[i].exit];
    if (ir->variables[i].guard >= 0) ir->variables[i].guard = becomes[ir->variables[i].guard];
  }
  return mix_ir_sort(ir);
}
