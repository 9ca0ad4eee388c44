/* The plan as the search for repeats sees it: what its steps read and write in the arena, and estimates of
 * their time. */
#include "compile/memory_budget.h"

#include "compile/plan_steps.h"
#include "passes/repeat_nodes.h"
#include "tensor/shape.h"

/* Of one core. Only ratios matter: a product of large matrices should cost more than a pass over its result.
 */
static const double BYTES_A_SECOND = 8e9, MULTIPLICATIONS_A_SECOND = 30e9, STEP_SECONDS = 1e-6;

static double plan_seconds(const mix_plan *plan) {
  double seconds = 0;
  for (int t = 0; t < plan->step_count; t++) seconds += mix_step_seconds(plan, &plan->steps[t]);
  return seconds;
}

/* Bytes that leave the caches are not known here; operands and results count once. An op that is no movement
 * and has neither a program nor a number of multiplications reads its operands several times. */
double mix_step_seconds(const mix_plan *plan, const mix_step *step) {
  enum { PASSES = 4 };
  double bytes = (double)mix_step_bytes(plan, step), multiplications = 0;
  if (step->body) {
    const mix_scan_attributes *loop = step->attributes;
    return STEP_SECONDS + (double)loop->steps * plan_seconds(step->body);
  }
  if (step->op->contraction && step->op->contraction->multiplications) {
    const mix_shape operands[MIX_CONTRACTED] = {plan->slots[step->inputs[0]].shape,
                                                plan->slots[step->inputs[1]].shape};
    multiplications = step->op->contraction->multiplications(step->attributes, operands);
  } else if (!step->program && !(step->op->flags & MIX_OP_MOVEMENT)) {
    bytes *= PASSES;
  }
  if (step->program) multiplications += (double)step->program->instruction_count * bytes / 16;
  return STEP_SECONDS + bytes / BYTES_A_SECOND + multiplications / MULTIPLICATIONS_A_SECOND;
}

/* ---- the problem ---- */

typedef struct builder {
  const mix_compiled *compiled;
  mix_repeat_problem *problem;
  const int *owner; /* slot -> the slot whose memory it is */
} builder;

int *mix_slot_owners(const mix_compiled *compiled) {
  mix_ir *ir = compiled->ir;
  const mix_plan *plan = &compiled->plan;
  int *owner = mix_ir_ints(ir, plan->slot_count + 1);
  for (int s = 0; owner && s < plan->slot_count; s++) owner[s] = s;
  for (int n = 0; owner && n < ir->node_count; n++) {
    const mix_ir_node *node = &ir->nodes[n];
    if (mix_node_is_view(node)) owner[node->first_output] = owner[node->inputs[0]];
  }
  return owner;
}

int mix_step_node(const mix_compiled *compiled, const mix_step *step) {
  const mix_ir *ir = compiled->ir;
  if (!step->output_count || step->outputs[0] >= ir->value_count) return -1;
  return mix_ir_producer(ir, step->outputs[0]);
}

/* The arena's slot that operand i (-1: the guard) of a step is in, or -1. */
static int slot_in_arena(const builder *b, int slot) {
  if (slot < 0 || b->compiled->plan.slots[slot].kind != MIX_SLOT_ARENA) return -1;
  return b->owner[slot];
}

static bool add_reads(const builder *b, const mix_step *step, mix_repeat_step *made) {
  if (!(made->reads = mix_ir_ints(b->problem->ir, step->input_count + 1))) return false;
  for (int i = -1; i < step->input_count; i++) {
    const int value = slot_in_arena(b, i < 0 ? step->guard : step->inputs[i]);
    bool known = value < 0;
    for (int k = 0; k < made->read_count && !known; k++) known = made->reads[k] == value;
    if (!known) made->reads[made->read_count++] = value;
  }
  return true;
}

/* The reads whose memory result `output` can take (compile/inplace.c). */
static unsigned find_lenders(const builder *b, const mix_step *step, const mix_repeat_step *made,
                             int output) {
  const mix_plan *plan = &b->compiled->plan;
  const mix_backend *backend = b->compiled->context.backend;
  unsigned lenders = 0;
  for (int k = 0; k < made->read_count && k < 32 && backend->writes_over; k++) {
    int operand = -1, uses = slot_in_arena(b, step->guard) == made->reads[k];
    for (int i = 0; i < step->input_count; i++)
      if (slot_in_arena(b, step->inputs[i]) == made->reads[k]) operand = i, uses++;
    if (uses == 1 && operand >= 0 &&
        plan->slots[made->reads[k]].bytes == plan->slots[step->outputs[output]].bytes &&
        backend->writes_over(plan, step, operand, output))
      lenders |= 1u << k;
  }
  return lenders;
}

static bool add_writes(const builder *b, const mix_step *step, int number, mix_repeat_step *made) {
  mix_repeat_problem *p = b->problem;
  made->writes = mix_ir_ints(p->ir, step->output_count + 1);
  made->lends = mix_ir_array(p->ir, step->output_count + 1, sizeof *made->lends);
  if (!made->writes || !made->lends) return false;
  for (int o = 0; o < step->output_count; o++) {
    const int value = slot_in_arena(b, step->outputs[o]);
    if (value < 0) continue;
    made->lends[made->write_count] = find_lenders(b, step, made, o);
    made->writes[made->write_count++] = value;
    p->bytes[value] =
        mix_memory_aligned(mix_compiled_device(b->compiled), b->compiled->plan.slots[value].bytes);
    if (p->maker[value] < 0) p->maker[value] = number;
  }
  return true;
}

/* Nodes that the plan has in two versions (speculative updates) run once. */
static void find_repeatable(const builder *b, const int *steps_of_node) {
  const mix_compiled *compiled = b->compiled;
  for (int t = 0; t < b->problem->step_count; t++) {
    const mix_step *step = &compiled->plan.steps[t];
    mix_repeat_step *made = &b->problem->steps[t];
    const int n = mix_step_node(compiled, step);
    made->reads_first = n < 0;
    made->may_repeat = n >= 0 && steps_of_node[n] == 1 && !step->writes_variable && made->write_count > 0 &&
                       mix_ir_may_repeat(&compiled->ir->nodes[n]);
    made->trims = (step->op->flags & MIX_OP_PROGRAM) != 0;
  }
}

bool mix_repeat_problem_of(const mix_compiled *compiled, mix_repeat_problem *problem) {
  const mix_plan *plan = &compiled->plan;
  mix_ir *ir = compiled->ir;
  *problem = (mix_repeat_problem){.ir = ir,
                                  .step_count = plan->step_count,
                                  .value_count = plan->slot_count,
                                  .steps = mix_ir_array(ir, plan->step_count + 1, sizeof *problem->steps),
                                  .bytes = mix_ir_array(ir, plan->slot_count + 1, sizeof *problem->bytes),
                                  .maker = mix_ir_ints(ir, plan->slot_count + 1)};
  const builder b = {.compiled = compiled, .problem = problem, .owner = mix_slot_owners(compiled)};
  int *steps_of_node = mix_ir_ints(ir, ir->node_count + 1);
  if (!problem->steps || !problem->bytes || !problem->maker || !b.owner || !steps_of_node) return false;
  for (int s = 0; s < plan->slot_count; s++) problem->maker[s] = -1;
  for (int t = 0; t < plan->step_count; t++) {
    const mix_step *step = &plan->steps[t];
    mix_repeat_step *made = &problem->steps[t];
    if (!add_reads(&b, step, made) || !add_writes(&b, step, t, made)) return false;
    made->seconds = mix_step_seconds(plan, step);
    const int n = mix_step_node(compiled, step);
    if (n >= 0) steps_of_node[n]++;
  }
  find_repeatable(&b, steps_of_node);
  return true;
}
