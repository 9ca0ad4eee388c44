/* Recomputation before fusion. A value that is summed over all elements and used again after the sum would
 * have to be stored between two programs (Lamb's step, which its norm scales). If few element-wise operations
 * produce it, it is computed twice instead: in a program that ends in the sum and stores nothing, and in the
 * update, which stays a single pass over its operands. The bits are the same: the same operations on the same
 * elements. */
#include "passes/passes.h"
#include "passes/rematerialize.h"
#include "tensor/shape.h"

enum { MAX_RECOMPUTED = 24 };

typedef struct cone {
  mix_ir *ir;
  const bool *kept; /* by node of the ir as it was: it is stored in any case */
  int kept_count;
  mix_shape space;
  int nodes[MAX_RECOMPUTED], count; /* element-wise nodes of that space that produce the operand of the sum */
} cone;

static bool holds(const cone *c, int n) {
  for (int i = 0; i < c->count; i++)
    if (c->nodes[i] == n) return true;
  return false;
}

/* Collects the producers of `value`. False: there are too many, or one must not run twice. */
static bool collect(cone *c, int value) {
  mix_ir *ir = c->ir;
  int n = mix_ir_producer(ir, value);
  const mix_ir_node *node = &ir->nodes[n];
  if (!mix_ir_fusable(node) || !mix_shape_equal(ir->values[value].shape, c->space) || holds(c, n))
    return true;
  if (n < c->kept_count && c->kept[n]) return true;
  if (c->count == MAX_RECOMPUTED || mix_ir_may_fail(ir, node) || !mix_op_is_repeatable(node->op))
    return false;
  c->nodes[c->count++] = n;
  for (int i = 0; i < node->input_count; i++)
    if (!collect(c, node->inputs[i])) return false;
  return true;
}

/* Operands of the cone as large as its space: what it costs to compute it again. */
static int count_large_operands(const cone *c) {
  const mix_ir *ir = c->ir;
  int values[MAX_RECOMPUTED * 3], count = 0;
  for (int i = 0; i < c->count; i++)
    for (int k = 0; k < ir->nodes[c->nodes[i]].input_count; k++) {
      const int value = ir->nodes[c->nodes[i]].inputs[k];
      int known = 0;
      while (known < count && values[known] != value) known++;
      if (known < count || holds(c, mix_ir_producer(ir, value)) ||
          !mix_shape_equal(ir->values[value].shape, c->space))
        continue;
      values[count++] = value;
    }
  return count;
}

/* By node: what needed_after finds, of the `count` nodes that are no clones. */
typedef struct later {
  int count;
  int *original; /* of clones */
  int *level;    /* of sums over the space, one after the other, that it depends on */
  bool *after;   /* depends on the sum */
  bool *leads;   /* computes, element by element, what is in a later program than the sum */
} later;

/* Does a node outside the cone read part of it for a later program than that of the sum: for what depends on
 * the sum, or, as sums that share operands share a program, on as many sums? Where the cone has more than a
 * few operands only a node that depends on the sum itself counts: else what it computes is stored until the
 * sum is known, which costs two passes. Operands come before uses. */
static bool needed_after(const cone *c, int sum, const later *x) {
  enum { FEW = 2 };
  mix_ir *ir = c->ir;
  const bool few = count_large_operands(c) <= FEW;
  for (int n = 0; n < x->count; n++) {
    const mix_ir_node *node = &ir->nodes[n];
    x->after[n] = n == sum;
    x->level[n] = 0;
    for (int i = 0; i < node->input_count; i++) {
      int producer = mix_ir_producer(ir, node->inputs[i]);
      if (producer >= x->count) producer = x->original[producer];
      x->after[n] = x->after[n] || x->after[producer];
      if (x->level[producer] > x->level[n]) x->level[n] = x->level[producer];
    }
    x->leads[n] =
        !node->dead && n != sum && (x->after[n] || (few && n > sum && x->level[n] >= x->level[sum]));
    x->level[n] += mix_ir_sum(ir, node) && mix_shape_equal(ir->values[node->inputs[0]].shape, c->space);
  }
  for (int n = x->count - 1; n >= 0; n--) {
    const mix_ir_node *node = &ir->nodes[n];
    if (node->dead || !x->leads[n]) continue;
    const bool over_space =
        mix_ir_fusable(node) && mix_shape_equal(ir->values[node->first_output].shape, c->space);
    for (int i = 0; i < node->input_count; i++) {
      const int producer = mix_ir_producer(ir, node->inputs[i]);
      if (producer >= x->count) continue;
      if (holds(c, producer)) return true;
      x->leads[producer] = x->leads[producer] || (few && over_space && producer != sum);
    }
  }
  return false;
}

static void sort(cone *c) {
  for (int i = 1; i < c->count; i++)
    for (int j = i; j > 0 && c->nodes[j - 1] > c->nodes[j]; j--) {
      int t = c->nodes[j];
      c->nodes[j] = c->nodes[j - 1];
      c->nodes[j - 1] = t;
    }
}

static bool recompute(cone *c, int sum, const later *x) {
  mix_ir *ir = c->ir;
  int from[MAX_RECOMPUTED], to[MAX_RECOMPUTED];
  sort(c); /* operands first */
  for (int i = 0; i < c->count; i++) {
    mix_ir_node node = ir->nodes[c->nodes[i]];
    mix_type type = ir->values[node.first_output].type;
    int inputs[4];
    for (int k = 0; k < node.input_count; k++) {
      inputs[k] = node.inputs[k];
      for (int j = 0; j < i; j++)
        if (from[j] == inputs[k]) inputs[k] = to[j];
    }
    int clone = mix_ir_add(ir, node.op, node.attributes, node.input_count, inputs, 1, &type);
    if (clone < 0) return false;
    ir->nodes[clone].scope = node.scope;
    ir->nodes[clone].keep = node.keep;
    x->original[clone] = c->nodes[i];
    from[i] = node.first_output;
    to[i] = ir->nodes[clone].first_output;
  }
  for (int i = 0; i < c->count; i++)
    if (from[i] == ir->nodes[sum].inputs[0]) ir->nodes[sum].inputs[0] = to[i];
  return true;
}

/* By node: do several stages read it, or anything but a program? */
static bool *kept_values(mix_ir *ir) {
  const int *stages = mix_ir_stages(ir);
  bool *kept = mix_ir_array(ir, ir->node_count + 1, sizeof *kept);
  int *reader = mix_ir_array(ir, ir->node_count + 1, sizeof *reader); /* 1 + its stage */
  if (!stages || !kept || !reader) return NULL;
  for (int n = 0; n < ir->node_count; n++) {
    const mix_ir_node *node = &ir->nodes[n];
    const bool in_program = mix_ir_fusable(node) || mix_ir_sum(ir, node) || mix_ir_finite_check(node);
    for (int i = 0; i < node->input_count; i++) {
      const int producer = mix_ir_producer(ir, node->inputs[i]);
      kept[producer] |= !in_program || (reader[producer] && reader[producer] != 1 + stages[n]);
      reader[producer] = 1 + stages[n];
    }
  }
  return kept;
}

bool mix_ir_recompute(mix_ir *ir) {
  int count = ir->node_count; /* added nodes come later and need no visit */
  const bool *kept = kept_values(ir);
  const later x = {.count = count,
                   .original = mix_ir_ints(ir, 2 * count + MAX_RECOMPUTED + 1),
                   .level = mix_ir_ints(ir, count + 1),
                   .after = mix_ir_flags(ir, count + 1),
                   .leads = mix_ir_flags(ir, count + 1)};
  bool any = false;
  if (!kept || !x.original || !x.level || !x.after || !x.leads) return false;
  for (int n = 0; n < count; n++) {
    if (!mix_ir_sum(ir, &ir->nodes[n])) continue;
    cone c = {.ir = ir, .kept = kept, .kept_count = count, .space = ir->values[ir->nodes[n].inputs[0]].shape};
    if (!collect(&c, ir->nodes[n].inputs[0]) || !c.count || ir->node_count > 2 * count ||
        !needed_after(&c, n, &x))
      continue;
    if (!recompute(&c, n, &x)) return false;
    any = true;
  }
  return !any || (mix_ir_sort(ir) && mix_pass_dce(ir)); /* what only the sum used is now dead */
}
