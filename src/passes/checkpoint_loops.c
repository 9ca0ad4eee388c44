#include "passes/checkpoint_loops.h"

#include "passes/chunk_loops.h"
#include "passes/passes.h"
#include "tensor/shape.h"
#include <stdatomic.h>

static size_t value_bytes(const mix_ir *ir, int value) {
  return mix_value_bytes(ir->values[value].dtype, ir->values[value].shape);
}

/* ---- pairs ---- */

/* Does each step compute the same again, and none repeats another already? Random ops do: they are functions
 * of their state. */
static bool is_repeatable(const mix_ir *body) {
  for (int n = 0; n < body->node_count; n++) {
    const mix_ir_node *node = &body->nodes[n];
    if (node->dead) continue;
    if (node->repeated || (node->op->flags & MIX_OP_STATEFUL) || mix_op_is_collective(node->op)) return false;
    if (node->body && !is_repeatable(node->body)) return false;
  }
  return true;
}

static bool has_room(const mix_ir *ir, const mix_ir_node *node) {
  for (int i = 0; i < node->input_count; i++)
    if (ir->values[node->inputs[i]].shape.rank == MIX_MAX_RANK) return false;
  for (int o = 0; o < node->output_count; o++)
    if (ir->values[node->first_output + o].shape.rank == MIX_MAX_RANK) return false;
  return true;
}

static bool is_candidate(const mix_ir *ir, int n) {
  const mix_ir_node *node = &ir->nodes[n];
  if (node->dead || !node->body || node->guard >= 0) return false;
  const mix_scan_attributes *a = node->attributes;
  return a->steps > 1 && has_room(ir, node) && is_repeatable(node->body);
}

/* Values of steps that loop `backward` takes in from the results of loop `forward`. */
static int count_taken(const mix_ir *ir, int forward, int backward) {
  const mix_ir_node *f = &ir->nodes[forward], *b = &ir->nodes[backward];
  const mix_scan_attributes *fa = f->attributes, *ba = b->attributes;
  int taken = 0;
  if (fa->steps != ba->steps) return 0;
  for (int i = ba->carries; i < ba->carries + ba->inputs; i++) {
    const int output = b->inputs[i] - f->first_output;
    taken += output >= fa->carries && output < f->output_count;
  }
  return taken;
}

/* The gradient's loop is the one that reads the max number of the loop's results. -1: there is none. */
static int find_backward(const mix_ir *ir, int forward) {
  int best = -1, most = 0;
  for (int n = forward + 1; n < ir->node_count; n++) {
    if (!is_candidate(ir, n) || !ir->nodes[n].backward) continue;
    const int taken = count_taken(ir, forward, n);
    if (taken > most) most = taken, best = n;
  }
  return best;
}

static bool measure(mix_ir *ir, mix_loop_pair *pair) {
  const mix_ir_node *f = &ir->nodes[pair->forward];
  const mix_scan_attributes *a = f->attributes;
  const bool *kept = mix_loop_kept_outputs(ir, pair->forward, pair->backward);
  if (!kept) return false;
  pair->steps = a->steps;
  for (int o = 0; o < f->output_count; o++) {
    const size_t bytes = value_bytes(ir, f->first_output + o);
    if (o < a->carries)
      pair->carry_bytes += bytes;
    else if (!kept[o])
      pair->step_bytes += bytes / (size_t)a->steps;
  }
  return true;
}

int mix_ir_find_loop_pairs(mix_ir *ir, mix_loop_pair **pairs) {
  int count = 0;
  if (!(*pairs = mix_ir_array(ir, ir->node_count + 1, sizeof **pairs))) return -1;
  for (int n = 0; n < ir->node_count; n++) {
    if (!is_candidate(ir, n)) continue;
    mix_loop_pair pair = {.forward = n, .backward = find_backward(ir, n)};
    if (pair.backward < 0) continue;
    if (!measure(ir, &pair)) return -1;
    if (pair.step_bytes) (*pairs)[count++] = pair;
  }
  return count;
}

/* ---- what a choice costs ---- */

size_t mix_loop_pair_bytes(const mix_loop_pair *pair, int64_t every) {
  if (!every) return (size_t)pair->steps * pair->step_bytes;
  const size_t chunks = (size_t)(pair->steps / every), rest = (size_t)(pair->steps % every);
  return chunks * pair->carry_bytes + ((size_t)every + rest) * pair->step_bytes;
}

int64_t mix_loop_pair_least(const mix_loop_pair *pair) {
  int64_t best = pair->steps, divisor = pair->steps;
  for (int64_t every = 1; every <= pair->steps; every++) {
    const size_t bytes = mix_loop_pair_bytes(pair, every);
    if (bytes < mix_loop_pair_bytes(pair, best)) best = every;
    if (pair->steps % every == 0 && bytes < mix_loop_pair_bytes(pair, divisor)) divisor = every;
  }
  const size_t least = mix_loop_pair_bytes(pair, best);
  return mix_loop_pair_bytes(pair, divisor) <= least + least / 4 ? divisor : best;
}

/* ---- the setting of tests ---- */

static _Atomic int64_t keep_every;

void mix_keep_every_set(int64_t every) { atomic_store(&keep_every, every); }

bool mix_ir_keep_as_set(mix_ir *ir) {
  const int64_t every = atomic_load(&keep_every);
  mix_loop_pair *pairs = NULL;
  const int most = every ? ir->node_count : 0;
  for (int done = 0; done < most; done++) {
    const int count = mix_ir_find_loop_pairs(ir, &pairs);
    int next = 0;
    if (count < 0) return false;
    while (next < count && pairs[next].steps <= every) next++;
    if (next == count) return true;
    if (!mix_ir_keep_every(ir, &pairs[next], every)) return false;
  }
  return true;
}
