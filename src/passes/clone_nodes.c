#include "passes/clone_nodes.h"

static bool add_uses(mix_uses *x, int n) {
  const mix_ir_node *node = &x->ir->nodes[n];
  for (int i = 0; i < node->input_count; i++) {
    if (x->count == x->use_capacity) return false;
    const int producer = mix_ir_producer(x->ir, node->inputs[i]);
    x->uses[x->count] = (mix_use){n, x->first[producer]};
    x->first[producer] = x->count++;
  }
  return true;
}

bool mix_uses_build(mix_uses *x, mix_ir *ir) {
  int inputs = 0;
  for (int n = 0; n < ir->node_count; n++) inputs += ir->nodes[n].input_count + 1;
  *x = (mix_uses){.ir = ir, .node_capacity = ir->node_count * 2 + 64, .use_capacity = inputs * 2 + 256};
  x->first = mix_ir_ints(ir, x->node_capacity);
  x->key = mix_ir_ints(ir, x->node_capacity);
  x->uses = mix_ir_array(ir, x->use_capacity, sizeof *x->uses);
  if (!x->first || !x->key || !x->uses) return false;
  for (int n = 0; n < x->node_capacity; n++) x->first[n] = x->key[n] = -1;
  for (int n = 0; n < ir->node_count; n++)
    if (!ir->nodes[n].dead && !add_uses(x, n)) return false;
  return true;
}

static bool has_room(const mix_uses *x) {
  return x->ir->node_count < x->node_capacity && x->count + 4 <= x->use_capacity;
}

static bool clone_for_key(mix_uses *x, int n, int key) {
  mix_ir *ir = x->ir;
  const mix_ir_node node = ir->nodes[n];
  const mix_type type = ir->values[node.first_output].type;
  const int clone = mix_ir_add(ir, node.op, node.attributes, node.input_count, node.inputs, 1, &type);
  if (clone < 0) return false;
  ir->nodes[clone].scope = node.scope;
  ir->nodes[clone].keep = node.keep;
  x->key[clone] = key;
  for (int *link = &x->first[n]; *link >= 0;) {
    const int moved = *link;
    mix_ir_node *consumer = &ir->nodes[x->uses[moved].consumer];
    if (x->key[x->uses[moved].consumer] != key) {
      link = &x->uses[moved].next;
      continue;
    }
    for (int i = 0; i < consumer->input_count; i++)
      if (consumer->inputs[i] == node.first_output) consumer->inputs[i] = ir->nodes[clone].first_output;
    *link = x->uses[moved].next;
    x->uses[moved].next = x->first[clone];
    x->first[clone] = moved;
  }
  return add_uses(x, clone);
}

bool mix_uses_clone_for_others(mix_uses *x, int n, int own) {
  for (int u = x->first[n]; u >= 0 && has_room(x);) {
    const int key = x->key[x->uses[u].consumer];
    if (key == own) {
      u = x->uses[u].next;
      continue;
    }
    if (!clone_for_key(x, n, key)) return false;
    u = x->first[n];
  }
  return true;
}
