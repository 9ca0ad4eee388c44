/* From a choice of steps to a plan in which they run twice. */
#include "compile/memory_budget.h"

#include "compile/plan_steps.h"
#include "passes/repeat_nodes.h"
#include "tensor/shape.h"
#include <stdlib.h>
#include <string.h>

/* Small results come as soon as they can: many values may wait for them, as all updates of an optimizer for
 * the power of its decay rate. */
static bool is_early(const mix_ir *ir, const mix_ir_node *node) {
  enum { SMALL = 4096 };
  size_t bytes = 0;
  for (int o = 0; o < node->output_count; o++)
    bytes +=
        mix_value_bytes(ir->values[node->first_output + o].dtype, ir->values[node->first_output + o].shape);
  return node->output_count > 0 && bytes <= SMALL && !(node->op->flags & (MIX_OP_STATEFUL | MIX_OP_UPDATES));
}

bool mix_order_as_planned(mix_compiled *compiled) {
  mix_ir *ir = compiled->ir;
  const int steps = compiled->plan.step_count;
  int *place = mix_ir_ints(ir, ir->node_count + 1), *order = mix_ir_ints(ir, ir->node_count + 1);
  int *first = mix_ir_ints(ir, steps + 2);
  if (!place || !order || !first) return false;
  for (int t = steps - 1; t >= 0; t--) { /* of two versions of a node the first counts */
    const int n = mix_step_node(compiled, &compiled->plan.steps[t]);
    if (n >= 0) place[n] = t + 1;
  }
  for (int n = 0; n < ir->node_count; n++) {
    const mix_ir_node *node = &ir->nodes[n];
    if (is_early(ir, node)) place[n] = node->guard < 0 ? 0 : place[mix_ir_producer(ir, node->guard)];
    for (int i = 0; !node->source && i < node->input_count;
         i++) { /* of views, and of nodes without results */
      const int before = place[mix_ir_producer(ir, node->inputs[i])];
      if (before > place[n]) place[n] = before;
    }
    first[place[n] + 1]++;
  }
  for (int t = 1; t <= steps + 1; t++) first[t] += first[t - 1];
  for (int n = 0; n < ir->node_count; n++) order[first[place[n]]++] = n; /* stable */
  return mix_ir_set_order(ir, order);
}

/* What was compiled of the former plan reads it until it is destroyed. */
bool mix_plan_again(mix_compiled *compiled) {
  if (compiled->executable) compiled->context.backend->destroy(compiled->executable);
  compiled->executable = NULL;
  compiled->plan = (mix_plan){.slot_count = 0};
  compiled->report.unshared_bytes = 0;
  return mix_make_plan(compiled);
}

/* Marks of nodes from marks of steps: views of dropped values are dropped, and what follows the boundary is
 * late. */
static bool mark_nodes(const mix_compiled *compiled, const bool *steps, int boundary, bool *dropped,
                       bool *late) {
  mix_ir *ir = compiled->ir;
  for (int t = 0; t < compiled->plan.step_count; t++) {
    const int n = mix_step_node(compiled, &compiled->plan.steps[t]);
    if (n < 0) continue;
    dropped[n] = dropped[n] || steps[t];
    late[n] = late[n] || t > boundary;
  }
  for (int n = 0; n < ir->node_count; n++) {
    const mix_ir_node *node = &ir->nodes[n];
    if (mix_node_is_view(node)) dropped[n] = dropped[mix_ir_producer(ir, node->inputs[0])];
  }
  return true;
}

/* Repeats the steps and plans again. */
static bool repeat(mix_compiled *compiled, const bool *steps, int boundary) {
  mix_ir *ir = compiled->ir;
  bool *dropped = mix_ir_flags(ir, ir->node_count + 1), *late = mix_ir_flags(ir, ir->node_count + 1);
  mix_repeat *repeats = mix_ir_array(ir, ir->node_count + 1, sizeof *repeats);
  if (!dropped || !late || !repeats || !mark_nodes(compiled, steps, boundary, dropped, late)) return false;
  const int count = mix_ir_find_repeats(ir, dropped, late, repeats);
  return count >= 0 && mix_ir_repeat_nodes(ir, count, repeats) && mix_plan_again(compiled);
}

/* Each round lowers the peak that is left by the last one. The estimate does not know gaps between the values
 * of the arena: the next round counts with those of this one. */
bool mix_plan_repeats(mix_compiled *compiled, size_t target, uint64_t *visits) {
  enum { ROUNDS = 6, LEAST_GAIN = 64 }; /* less than such a part of the peak is not worth a round */
  mix_repeat_problem problem;
  mix_repeat_outcome now, then;
  if (!mix_plan_again(compiled)) return false;
  for (int round = 0; round < ROUNDS && compiled->plan.arena_bytes > target; round++) {
    if (!mix_repeat_problem_of(compiled, &problem)) return false;
    bool *dropped = mix_ir_flags(compiled->ir, problem.step_count + 1);
    const uint64_t visits_of_round = *visits / 2; /* the later rounds have some, too */
    problem.visits_left = visits_of_round;
    if (!dropped || !mix_repeat_simulate(&problem, problem.step_count, dropped, NULL, &now)) return false;
    const size_t gaps = compiled->plan.arena_bytes > now.peak ? compiled->plan.arena_bytes - now.peak : 0;
    const size_t aim = target > gaps ? target - gaps : 0;
    if (now.peak <= aim) break;
    if (!mix_repeat_search(&problem, now.peak_step, aim, dropped, &then)) return false;
    *visits -= visits_of_round - problem.visits_left;
    if (then.peak >= now.peak - now.peak / LEAST_GAIN || then.seconds <= 0) break;
    if (!repeat(compiled, dropped, now.peak_step)) return false;
  }
  mix_count_repeats(compiled);
  return true;
}
