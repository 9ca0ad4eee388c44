/* From nodes to steps. Programs that write variables in place come last, after everything that may fail and
 * every reader of an old value; what cannot be written in place is computed into the arena and copied into
 * the variable at the very end. */
#include "compile/compile.h"

#include "base/alloc.h"
#include "base/error.h"
#include "compile/pass_pipeline.h"
#include "tensor/shape.h"
#include <string.h>

typedef struct planner {
  mix_ir *ir;
  mix_plan *plan;
  int *base; /* value -> the value whose memory it shares (views) */
  int *uses;
  int *exit_variable;   /* value -> the one variable that ends as it and may be written in place; -1 */
  int *result_slot;     /* value -> the result whose buffer holds it; -1 */
  bool *deferred_write; /* node -> writes variables in place */
  int slot_capacity, step_capacity;
  int order_count, *order; /* nodes in the order of their steps */
} planner;

static int add_slot(planner *p, mix_slot slot) {
  mix_plan *plan = p->plan;
  if (plan->slot_count == p->slot_capacity) {
    int capacity = p->slot_capacity * 2;
    mix_slot *slots = mix_ir_alloc(p->ir, sizeof *slots * (size_t)capacity);
    if (!slots) return -1;
    memcpy(slots, plan->slots, sizeof *slots * (size_t)plan->slot_count);
    plan->slots = slots;
    p->slot_capacity = capacity;
  }
  slot.bytes = mix_value_bytes(slot.dtype, slot.shape);
  plan->slots[plan->slot_count] = slot;
  return plan->slot_count++;
}

static bool add_step(planner *p, mix_step step) {
  mix_plan *plan = p->plan;
  if (plan->step_count == p->step_capacity) {
    int capacity = p->step_capacity * 2;
    mix_step *steps = mix_ir_alloc(p->ir, sizeof *steps * (size_t)capacity);
    if (!steps) return false;
    memcpy(steps, plan->steps, sizeof *steps * (size_t)plan->step_count);
    plan->steps = steps;
    p->step_capacity = capacity;
  }
  plan->steps[plan->step_count++] = step;
  return true;
}

static bool is_view(const mix_ir_node *node) { return !node->source && (node->op->flags & MIX_OP_VIEW); }

/* ---- which variables can be written in place ---- */

static bool outputs_all_exit(const planner *p, const mix_ir_node *node) {
  for (int o = 0; o < node->output_count; o++)
    if (p->exit_variable[node->first_output + o] < 0) return false;
  return node->output_count > 0;
}

static void find_in_place(planner *p) {
  mix_ir *ir = p->ir;
  if (mix_pass_disabled("inplace")) return;
  for (int i = 0; i < ir->variable_count; i++) {
    const mix_ir_variable *variable = &ir->variables[i];
    const mix_ir_node *node = &ir->nodes[mix_ir_producer(ir, variable->exit)];
    if (variable->exit == variable->entry || node->source || !node->program || node->guard != variable->guard)
      continue;
    if (p->uses[variable->exit] != 1) continue;
    p->exit_variable[variable->exit] = i;
  }
  for (int n = 0; n < ir->node_count; n++) {
    const mix_ir_node *node = &ir->nodes[n];
    if (node->source) continue;
    p->deferred_write[n] = outputs_all_exit(p, node) && !mix_program_may_fail(node->program);
    /* A program writes over what it reads only element for element. */
    for (int o = 0; o < node->output_count && p->deferred_write[n]; o++) {
      int entry = ir->variables[p->exit_variable[node->first_output + o]].entry;
      mix_shape space = ir->values[node->first_output + o].shape;
      for (int i = 0; i < node->input_count; i++)
        if (p->base[node->inputs[i]] == entry && !mix_shape_equal(ir->values[node->inputs[i]].shape, space))
          p->deferred_write[n] = false;
      /* The operands of a product are read until its end, what its epilogue reads only element for element.
       */
      for (int i = 0; i < 2 && node->op != &mix_op_fused; i++)
        if (p->base[node->inputs[i]] == entry) p->deferred_write[n] = false;
    }
    if (!p->deferred_write[n])
      for (int o = 0; o < node->output_count; o++) p->exit_variable[node->first_output + o] = -1;
  }
}

/* Counts, for each variable, the late nodes that read its old value, adding `step` for each input of node n.
 */
static void count_readers(const planner *p, int n, int *readers, int step) {
  const mix_ir_node *node = &p->ir->nodes[n];
  for (int i = 0; i < node->input_count; i++) {
    const mix_ir_node *producer = &p->ir->nodes[mix_ir_producer(p->ir, p->base[node->inputs[i]])];
    if (producer->source == MIX_IR_VARIABLE) readers[producer->index] += step;
  }
}

/* Does no late node but n itself, which is not counted now, read what n writes over? */
static bool free_to_write(const planner *p, int n, const int *readers) {
  const mix_ir_node *node = &p->ir->nodes[n];
  for (int o = 0; o < node->output_count; o++)
    if (readers[p->exit_variable[node->first_output + o]] > 0) return false;
  return true;
}

/* Late nodes in an order where each reader of a variable's old value comes before the writer; a writer that
 * cannot be placed so becomes an ordinary node with a copy at the end. */
static bool order_deferred(planner *p, int *deferred_order, int *deferred_count) {
  mix_ir *ir = p->ir;
  int *waiting = mix_ir_alloc(ir, sizeof(int) * (size_t)(ir->node_count + 1)), count = 0;
  int *readers = mix_ir_alloc(ir, sizeof(int) * (size_t)(ir->variable_count + 1));
  if (!waiting || !readers) return false;
  *deferred_count = 0;
  for (int n = 0; n < ir->node_count; n++) {
    if (!p->deferred_write[n]) continue;
    waiting[count++] = n;
    count_readers(p, n, readers, 1);
  }
  while (count) {
    int left = 0;
    for (int w = 0; w < count; w++) {
      int n = waiting[w];
      count_readers(p, n, readers, -1);
      if (free_to_write(p, n, readers)) {
        deferred_order[(*deferred_count)++] = n;
      } else {
        count_readers(p, n, readers, 1);
        waiting[left++] = n;
      }
    }
    if (left == count) { /* programs that read each other's variables: compute the first aside */
      int n = waiting[0];
      p->deferred_write[n] = false;
      for (int o = 0; o < ir->nodes[n].output_count; o++)
        p->exit_variable[ir->nodes[n].first_output + o] = -1;
      count_readers(p, n, readers, -1);
      memmove(waiting, waiting + 1, sizeof *waiting * (size_t)--left);
    }
    count = left;
  }
  return true;
}

/* ---- slots and steps ---- */

static bool source_slot(const mix_ir_node *node, mix_slot *slot) {
  switch (node->source) {
  case MIX_IR_ARGUMENT: *slot = (mix_slot){.kind = MIX_SLOT_ARGUMENT, .index = node->index}; return true;
  case MIX_IR_VARIABLE: *slot = (mix_slot){.kind = MIX_SLOT_VARIABLE, .index = node->index}; return true;
  case MIX_IR_CONSTANT: *slot = (mix_slot){.kind = MIX_SLOT_CONSTANT, .data = node->data}; return true;
  default: return false;
  }
}

/* The first `value_count` slots are the values, so that a value's number is its slot. */
static bool value_slots(planner *p) {
  mix_ir *ir = p->ir;
  for (int v = 0; v < ir->value_count; v++) {
    int base = p->base[v];
    mix_slot slot = {.kind = MIX_SLOT_ARENA};
    if (!source_slot(&ir->nodes[mix_ir_producer(ir, base)], &slot)) {
      if (p->exit_variable[base] >= 0)
        slot = (mix_slot){.kind = MIX_SLOT_VARIABLE, .index = p->exit_variable[base]};
      else if (p->result_slot[base] >= 0)
        slot = (mix_slot){.kind = MIX_SLOT_RESULT, .index = p->result_slot[base]};
    }
    slot.dtype = ir->values[v].dtype;
    slot.shape = ir->values[v].shape;
    if (add_slot(p, slot) < 0) return false;
  }
  return true;
}

/* A step that copies slots of one number of elements: one program with a load and a store for each. */
static bool add_copies(planner *p, int count, const int *from, const int *to, int guard, bool writes) {
  mix_ir *ir = p->ir;
  mix_program *program = mix_ir_alloc(ir, sizeof *program);
  int *inputs = mix_ir_alloc(ir, sizeof(int) * (size_t)count),
      *outputs = mix_ir_alloc(ir, sizeof(int) * (size_t)count);
  if (!program || !inputs || !outputs) return false;
  program->rank = 1;
  program->dims[0] = mix_shape_size(p->plan->slots[from[0]].shape);
  program->loads = mix_ir_alloc(ir, sizeof *program->loads * (size_t)count);
  program->instructions = mix_ir_alloc(ir, sizeof *program->instructions * (size_t)count);
  program->stores = mix_ir_alloc(ir, sizeof *program->stores * (size_t)count);
  if (!program->loads || !program->instructions || !program->stores) return false;
  program->load_count = program->instruction_count = program->store_count = count;
  for (int i = 0; i < count; i++) {
    mix_dtype dtype = p->plan->slots[from[i]].dtype;
    program->loads[i] =
        (mix_program_load){.input = i, .dtype = dtype, .strides = {program->dims[0] == 1 ? 0 : 1}};
    program->instructions[i] =
        (mix_instruction){.opcode = MIX_OPCODE_IDENTITY, .dtype = dtype, .operands = {i}};
    program->stores[i] = (mix_program_store){.output = i, .reg = count + i};
    inputs[i] = from[i];
    outputs[i] = to[i];
  }
  return add_step(p, (mix_step){.op = &mix_op_fused,
                                .program = program,
                                .input_count = count,
                                .output_count = count,
                                .inputs = inputs,
                                .outputs = outputs,
                                .guard = guard,
                                .writes_variable = writes});
}

static bool node_step(planner *p, int n) {
  const mix_ir_node *node = &p->ir->nodes[n];
  int *outputs = mix_ir_alloc(p->ir, sizeof(int) * (size_t)(node->output_count + 1));
  if (!outputs) return false;
  for (int o = 0; o < node->output_count; o++) outputs[o] = node->first_output + o;
  return add_step(p, (mix_step){.op = node->op,
                                .attributes = node->attributes,
                                .program = node->program,
                                .input_count = node->input_count,
                                .output_count = node->output_count,
                                .inputs = node->inputs,
                                .outputs = outputs,
                                .guard = node->guard,
                                .writes_variable = p->deferred_write[n],
                                .scope = node->scope});
}

/* Results that cannot live in their buffer from the start: what is a source, a view's source, or is returned
 * twice. */
static bool result_copies(planner *p) {
  mix_ir *ir = p->ir;
  for (int r = 0; r < ir->result_count; r++) {
    int value = ir->results[r];
    if (p->result_slot[p->base[value]] == r) continue;
    int slot = add_slot(p, (mix_slot){.kind = MIX_SLOT_RESULT,
                                      .index = r,
                                      .dtype = ir->values[value].dtype,
                                      .shape = ir->values[value].shape});
    if (slot < 0 || !add_copies(p, 1, &value, &slot, -1, false)) return false;
  }
  return true;
}

/* Variables that end as another variable's old value: saved before anything is written. */
static bool saved_exits(planner *p, int *exit_slot) {
  mix_ir *ir = p->ir;
  for (int i = 0; i < ir->variable_count; i++) {
    int value = ir->variables[i].exit;
    exit_slot[i] = value;
    if (value == ir->variables[i].entry ||
        ir->nodes[mix_ir_producer(ir, p->base[value])].source != MIX_IR_VARIABLE)
      continue;
    int slot = add_slot(p, (mix_slot){.kind = MIX_SLOT_ARENA,
                                      .dtype = ir->values[value].dtype,
                                      .shape = ir->values[value].shape});
    if (slot < 0 || !add_copies(p, 1, &value, &slot, -1, false)) return false;
    exit_slot[i] = slot;
  }
  return true;
}

/* The variables that were not written in place; those of one size under one guard share a step. */
static bool variable_copies(planner *p, const int *exit_slot) {
  mix_ir *ir = p->ir;
  bool *done = mix_ir_alloc(ir, sizeof(bool) * (size_t)(ir->variable_count + 1));
  if (!done) return false;
  for (int i = 0; i < ir->variable_count; i++) {
    int from[8], to[8], count = 0;
    for (int j = i; j < ir->variable_count && count < 8; j++) {
      const mix_ir_variable *variable = &ir->variables[j];
      if (done[j] || variable->exit == variable->entry || p->exit_variable[p->base[variable->exit]] == j)
        continue;
      if (count && (variable->guard != ir->variables[i].guard ||
                    mix_shape_size(ir->values[variable->exit].shape) !=
                        mix_shape_size(ir->values[ir->variables[i].exit].shape)))
        continue;
      if (!count && j != i) break;
      done[j] = true;
      from[count] = exit_slot[j];
      to[count] = add_slot(p, (mix_slot){.kind = MIX_SLOT_VARIABLE,
                                         .index = j,
                                         .dtype = ir->values[variable->entry].dtype,
                                         .shape = ir->values[variable->entry].shape});
      if (to[count++] < 0) return false;
    }
    if (count && !add_copies(p, count, from, to, ir->variables[i].guard, true)) return false;
  }
  return true;
}

/* ---- where late nodes go ---- */

typedef struct placement {
  bool *done;   /* node -> its step stands */
  int *readers; /* variable -> steps still to come that read its old value */
  int failing;  /* nodes still to come that may fail for the values they meet */
} placement;

static bool is_step(const mix_ir_node *node) { return !node->source && !is_view(node); }

static bool may_fail(const mix_ir_node *node) {
  return (node->op->flags & MIX_OP_CHECKS_VALUES) || (node->program && mix_program_may_fail(node->program));
}

static bool is_known(const planner *p, const placement *x, int value) {
  int producer = mix_ir_producer(p->ir, p->base[value]);
  return p->ir->nodes[producer].source || x->done[producer];
}

static bool is_ready(const planner *p, placement *x, int n) {
  const mix_ir_node *node = &p->ir->nodes[n];
  bool ready = !x->failing && (node->guard < 0 || is_known(p, x, node->guard));
  for (int i = 0; i < node->input_count && ready; i++) ready = is_known(p, x, node->inputs[i]);
  if (!ready) return false;
  count_readers(p, n, x->readers, -1);
  ready = free_to_write(p, n, x->readers);
  count_readers(p, n, x->readers, 1);
  return ready;
}

static bool place(planner *p, placement *x, int n) {
  x->done[n] = true;
  x->failing -= may_fail(&p->ir->nodes[n]);
  count_readers(p, n, x->readers, -1);
  return node_step(p, n);
}

/* Old values that copies at the end still want. */
static void count_copies(const planner *p, int *readers) {
  const mix_ir *ir = p->ir;
  for (int i = 0; i < ir->result_count + ir->variable_count; i++) {
    int value = i < ir->result_count ? ir->results[i] : ir->variables[i - ir->result_count].exit;
    if (i >= ir->result_count && value == ir->variables[i - ir->result_count].entry) continue;
    const mix_ir_node *producer = &ir->nodes[mix_ir_producer(ir, p->base[value])];
    if (producer->source == MIX_IR_VARIABLE) readers[producer->index]++;
  }
}

/* All nodes in their order, each late one as soon as it is ready; those that never are stay in
 * deferred_order, the others become -1. */
static bool place_nodes(planner *p, int *deferred_order, int deferred_count) {
  mix_ir *ir = p->ir;
  placement x = {.done = mix_ir_alloc(ir, sizeof(bool) * (size_t)(ir->node_count + 1)),
                 .readers = mix_ir_alloc(ir, sizeof(int) * (size_t)(ir->variable_count + 1))};
  if (!x.done || !x.readers) return false;
  for (int n = 0; n < ir->node_count; n++) {
    if (!is_step(&ir->nodes[n])) continue;
    count_readers(p, n, x.readers, 1);
    x.failing += may_fail(&ir->nodes[n]);
  }
  count_copies(p, x.readers);
  for (int n = 0; n < ir->node_count; n++) {
    if (!is_step(&ir->nodes[n]) || p->deferred_write[n]) continue;
    if (!place(p, &x, n)) return false;
    for (int i = 0; i < deferred_count && !x.failing; i++) {
      if (deferred_order[i] < 0 || !is_ready(p, &x, deferred_order[i])) continue;
      if (!place(p, &x, deferred_order[i])) return false;
      deferred_order[i] = -1;
      i = -1; /* it may have been the last reader of what an earlier one writes */
    }
  }
  return true;
}

static bool plan_steps(planner *p) {
  mix_ir *ir = p->ir;
  int *deferred_order = mix_ir_alloc(ir, sizeof(int) * (size_t)(ir->node_count + 1)), deferred_count = 0;
  int *exit_slot = mix_ir_alloc(ir, sizeof(int) * (size_t)(ir->variable_count + 1));
  if (!deferred_order || !exit_slot || !order_deferred(p, deferred_order, &deferred_count)) return false;
  /* A result may live in its own buffer from the start if it is computed, once. */
  for (int r = 0; r < ir->result_count; r++) {
    int base = p->base[ir->results[r]];
    if (!ir->nodes[mix_ir_producer(ir, base)].source && p->exit_variable[base] < 0 &&
        p->result_slot[base] < 0)
      p->result_slot[base] = r;
  }
  if (!value_slots(p)) return false;
  if (!place_nodes(p, deferred_order, deferred_count)) return false;
  if (!result_copies(p) || !saved_exits(p, exit_slot)) return false;
  for (int i = 0; i < deferred_count; i++)
    if (deferred_order[i] >= 0 && !node_step(p, deferred_order[i])) return false;
  return variable_copies(p, exit_slot);
}

/* ---- memory ---- */

typedef struct arena {
  int *owner;    /* slot -> slot that owns its memory */
  int *last;     /* such a slot -> the last step that touches it */
  int *lifetime; /* slot -> its lifetime, which it may have taken over; -1 */
  mix_lifetime *lifetimes;
  int count;
} arena;

/* Operand i of a step, from -1 (the guard) on through its results: the slot that owns its memory in the
 * arena, or -1. */
static int touched(const planner *p, const arena *a, const mix_step *step, int i) {
  int s = i < 0                   ? step->guard
          : i < step->input_count ? step->inputs[i]
                                  : step->outputs[i - step->input_count];
  return s < 0 || p->plan->slots[s].kind != MIX_SLOT_ARENA ? -1 : a->owner[s];
}

/* A result that is made here: in memory of its own, or in that of an operand which ends here. */
static void begin_life(const planner *p, arena *a, int step, int slot, int output) {
  bool may = output >= 0 && !mix_pass_disabled("inplace") && !mix_pass_disabled("memory_plan");
  int operand = may ? mix_plan_taken_over(p->plan, a->owner, a->last, step, output) : -1;
  if (operand >= 0) {
    a->lifetime[slot] = a->lifetime[operand];
    a->last[operand] = -1; /* taken */
  } else {
    a->lifetime[slot] = a->count;
    a->lifetimes[a->count++] =
        (mix_lifetime){.slot = slot, .first = step, .bytes = p->plan->slots[slot].bytes};
  }
}

static bool find_lifetimes(planner *p, arena *a, size_t *unshared_bytes) {
  mix_plan *plan = p->plan;
  a->owner = mix_ir_alloc(p->ir, sizeof(int) * (size_t)plan->slot_count);
  a->last = mix_ir_alloc(p->ir, sizeof(int) * (size_t)plan->slot_count);
  a->lifetime = mix_ir_alloc(p->ir, sizeof(int) * (size_t)plan->slot_count);
  a->lifetimes = mix_ir_alloc(p->ir, sizeof *a->lifetimes * (size_t)(plan->slot_count + 1));
  if (!a->owner || !a->last || !a->lifetime || !a->lifetimes) return false;
  for (int s = 0; s < plan->slot_count; s++) {
    a->owner[s] = s < p->ir->value_count ? p->base[s] : s;
    a->lifetime[s] = a->last[s] = -1;
  }
  for (int t = 0; t < plan->step_count; t++)
    for (int i = -1; i < plan->steps[t].input_count + plan->steps[t].output_count; i++) {
      int s = touched(p, a, &plan->steps[t], i);
      if (s >= 0) a->last[s] = t;
    }
  for (int t = 0; t < plan->step_count; t++) {
    const mix_step *step = &plan->steps[t];
    for (int i = -1; i < step->input_count + step->output_count; i++) {
      int s = touched(p, a, step, i);
      if (s < 0) continue;
      if (a->lifetime[s] < 0) {
        begin_life(p, a, t, s, i - step->input_count);
        *unshared_bytes += (plan->slots[s].bytes + 63) & ~(size_t)63;
      }
      a->lifetimes[a->lifetime[s]].last = t;
    }
  }
  return true;
}

static bool plan_arena(planner *p, mix_compiled *compiled) {
  mix_plan *plan = p->plan;
  arena a = {.count = 0};
  if (!find_lifetimes(p, &a, &compiled->report.unshared_bytes)) return false;
  if (mix_pass_disabled("memory_plan")) /* nothing shares */
    for (int i = 0; i < a.count; i++) a.lifetimes[i].first = 0, a.lifetimes[i].last = plan->step_count;
  if (!mix_plan_memory(p->ir, a.lifetimes, a.count, &plan->arena_bytes)) return false;
  for (int s = 0; s < plan->slot_count; s++)
    if (plan->slots[s].kind == MIX_SLOT_ARENA && a.lifetime[a.owner[s]] >= 0)
      plan->slots[s].offset = a.lifetimes[a.lifetime[a.owner[s]]].offset;
  compiled->report.arena_bytes = plan->arena_bytes;
  compiled->lifetimes = a.lifetimes;
  compiled->lifetime_count = a.count;
  return true;
}

static bool make_plan(mix_compiled *compiled) {
  mix_ir *ir = compiled->ir;
  size_t values = (size_t)ir->value_count + 1, nodes = (size_t)ir->node_count + 1;
  planner p = {.ir = ir,
               .plan = &compiled->plan,
               .base = mix_ir_alloc(ir, sizeof(int) * values),
               .uses = mix_ir_uses(ir),
               .exit_variable = mix_ir_alloc(ir, sizeof(int) * values),
               .result_slot = mix_ir_alloc(ir, sizeof(int) * values),
               .deferred_write = mix_ir_alloc(ir, sizeof(bool) * nodes),
               .slot_capacity = ir->value_count + 64,
               .step_capacity = ir->node_count + 32};
  mix_plan *plan = &compiled->plan;
  plan->slots = mix_ir_alloc(ir, sizeof *plan->slots * (size_t)p.slot_capacity);
  plan->steps = mix_ir_alloc(ir, sizeof *plan->steps * (size_t)p.step_capacity);
  plan->variables = mix_ir_alloc(ir, sizeof(void *) * (size_t)(ir->variable_count + 1));
  if (!p.base || !p.uses || !p.exit_variable || !p.result_slot || !p.deferred_write || !plan->slots ||
      !plan->steps || !plan->variables)
    return false;
  plan->argument_count = ir->argument_count;
  plan->variable_count = ir->variable_count;
  plan->result_count = ir->result_count;
  for (int i = 0; i < ir->variable_count; i++) {
    plan->variables[i] = ir->variables[i].variable->data;
    compiled->report.variable_bytes += ir->variables[i].variable->bytes;
  }
  /* Dead values keep no producer: they become their own base and get no memory. */
  for (int v = 0; v < ir->value_count; v++) {
    p.base[v] = v;
    p.exit_variable[v] = p.result_slot[v] = -1;
    if (ir->values[v].node >= ir->node_count) ir->values[v].node = 0;
  }
  for (int n = 0; n < ir->node_count; n++)
    if (is_view(&ir->nodes[n])) p.base[ir->nodes[n].first_output] = p.base[ir->nodes[n].inputs[0]];
  find_in_place(&p);
  return plan_steps(&p) && mix_plan_speculative_updates(ir, plan, p.base) && plan_arena(&p, compiled);
}

/* Bytes of a step's operands and results, one that stands there twice counted once (a variable updated in
 * place is read and written). */
static size_t step_bytes(const mix_plan *plan, const mix_step *step) {
  size_t bytes = 0;
  for (int i = 0; i < step->input_count; i++) {
    bool again = false;
    for (int j = 0; j < i; j++) again = again || step->inputs[j] == step->inputs[i];
    if (!again) bytes += plan->slots[step->inputs[i]].bytes;
  }
  for (int i = 0; i < step->output_count; i++) bytes += plan->slots[step->outputs[i]].bytes;
  return bytes;
}

static void fill_report(mix_compiled *compiled) {
  mix_plan_report *report = &compiled->report;
  const mix_plan *plan = &compiled->plan;
  mix_executable_facts facts = {0};
  compiled->backend->facts(compiled->executable, &facts);
  report->nodes = plan->step_count;
  report->barriers = facts.barriers;
  report->workspace_bytes = facts.workspace_bytes;
  for (int n = 0; n < compiled->ir->node_count; n++) {
    const mix_ir_node *node = &compiled->ir->nodes[n];
    size_t bytes = node->source ? plan->slots[node->first_output].bytes : 0;
    if (node->source == MIX_IR_ARGUMENT) report->argument_bytes += bytes;
    if (node->source == MIX_IR_CONSTANT) report->constant_bytes += bytes;
  }
  for (int i = 0; i < plan->step_count; i++) report->moved_bytes += step_bytes(plan, &plan->steps[i]);
  for (int r = 0; r < plan->result_count; r++)
    report->result_bytes += mix_value_bytes(compiled->results[r].dtype, compiled->results[r].shape);
  report->peak_bytes = report->arena_bytes + report->variable_bytes + report->argument_bytes +
                       report->result_bytes + report->constant_bytes + report->workspace_bytes;
}

/* The evaluator that constant folding is handed. */
static bool evaluate_constants(mix_ir *part, void *const *addresses) {
  mix_compiled *compiled = mix_compile(part, false);
  size_t arena_bytes = compiled ? compiled->plan.arena_bytes : 0;
  void *arena = arena_bytes ? mix_alloc_buffer(arena_bytes) : NULL;
  bool good = compiled && (arena || !arena_bytes);
  if (good)
    good = compiled->backend->run(compiled->executable,
                                  &(mix_bindings){.results = addresses, .arena = arena}) == MIX_OK;
  if (arena) mix_free_buffer(arena, arena_bytes);
  mix_compiled_free(compiled);
  return good;
}

bool mix_pass_run(mix_ir *ir, const char *name) {
  ir->evaluate = evaluate_constants;
  return mix_passes_run_one(ir, name);
}

mix_compiled *mix_compile(mix_ir *ir, bool stages) {
  mix_compiled *compiled = ir ? mix_calloc(1, sizeof *compiled) : NULL;
  if (!compiled) {
    mix_ir_free(ir);
    return NULL;
  }
  compiled->ir = ir;
  ir->evaluate = evaluate_constants;
  compiled->backend = mix_backend_current();
  compiled->report.captured_nodes = ir->node_count;
  compiled->captured = stages ? mix_ir_copy(ir) : NULL;
  compiled->results = mix_ir_alloc(ir, sizeof *compiled->results * (size_t)(ir->result_count + 1));
  bool good = compiled->results != NULL && (compiled->captured || !stages);
  for (int r = 0; r < ir->result_count && good; r++) compiled->results[r] = ir->values[ir->results[r]].type;
  good = good && mix_passes_run(ir) && make_plan(compiled) &&
         (compiled->executable = compiled->backend->compile(&compiled->plan, mix_threads())) != NULL;
  if (!good) {
    if (!mix_failed()) mix_fail(MIX_INTERNAL_ERROR, "compile: failed without saying why");
    mix_compiled_name_largest(compiled);
    mix_compiled_free(compiled);
    return NULL;
  }
  fill_report(compiled);
  return compiled;
}

void mix_compiled_free(mix_compiled *compiled) {
  if (!compiled) return;
  if (compiled->executable) compiled->backend->destroy(compiled->executable);
  mix_ir_free(compiled->captured); /* before the one that it borrows from */
  mix_ir_free(compiled->ir);
  mix_free(compiled);
}
