/* From nodes to steps. Deferred writes, that is programs that update variables in place, run after everything
 * that may fail and after all readers of the old values. A value that cannot be written in place is computed
 * into the arena and copied into its variable at the very end. */
#include "compile/plan_steps.h"

#include "base/error.h"
#include "compile/pass_pipeline.h"
#include "tensor/shape.h"
#include <string.h>

typedef struct planner {
  mix_ir *ir;
  mix_plan *plan;
  int *base; /* value -> the value whose memory it shares (views) */
  int *uses;
  int *exit_variable;   /* value -> the one variable that takes it on exit and may be written in place; -1 */
  int *result_slot;     /* value -> the result whose buffer holds it; -1 */
  bool *deferred_write; /* node -> writes variables in place */
  int slot_capacity, step_capacity;
  int order_count, *order; /* nodes in step order */
} planner;

static int add_slot(planner *p, mix_slot slot) {
  mix_plan *plan = p->plan;
  if (plan->slot_count == p->slot_capacity) {
    int capacity = p->slot_capacity * 2;
    mix_slot *slots = mix_ir_array(p->ir, capacity, sizeof *slots);
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
    mix_step *steps = mix_ir_array(p->ir, capacity, sizeof *steps);
    if (!steps) return false;
    memcpy(steps, plan->steps, sizeof *steps * (size_t)plan->step_count);
    plan->steps = steps;
    p->step_capacity = capacity;
  }
  plan->steps[plan->step_count++] = step;
  return true;
}

bool mix_node_is_view(const mix_ir_node *node) {
  return !node->source && (node->op->flags & (MIX_OP_VIEW | MIX_OP_BARRIER));
}

/* Replaces parts of operand 0, in place where that has the memory of the result. */
static bool is_update(const mix_ir_node *node) { return !node->source && (node->op->flags & MIX_OP_UPDATES); }

/* ---- which variables can be written in place ---- */

static bool outputs_all_exit(const planner *p, const mix_ir_node *node) {
  for (int o = 0; o < node->output_count; o++)
    if (p->exit_variable[node->first_output + o] < 0) return false;
  return node->output_count > 0;
}

/* A program whose result an update then changes: both write the variable, one after the other. */
static void find_updated_program(planner *p, const mix_ir_node *update, int variable) {
  const int value = update->inputs[0];
  const mix_ir_node *program = &p->ir->nodes[mix_ir_producer(p->ir, value)];
  if (program->source || !program->program || program->guard != update->guard || p->uses[value] != 1) return;
  p->exit_variable[value] = variable;
}

/* May node n write its variables in place? A program may overwrite only values that it reads element by
 * element. */
static bool overwrites(const planner *p, int n) {
  const mix_ir *ir = p->ir;
  const mix_ir_node *node = &ir->nodes[n];
  if (!outputs_all_exit(p, node) || (node->program && mix_program_may_fail(node->program))) return false;
  for (int o = 0; o < node->output_count; o++) {
    int entry = ir->variables[p->exit_variable[node->first_output + o]].entry;
    mix_shape space = ir->values[node->first_output + o].shape;
    for (int i = 0; i < node->input_count; i++) {
      if (p->base[node->inputs[i]] != entry) continue;
      if (is_update(node) ? i > 0 : !mix_shape_equal(ir->values[node->inputs[i]].shape, space)) return false;
    }
    /* The operands of a product are read until its end. Only its epilogue reads element by element. */
    for (int i = 0; i < MIX_CONTRACTED && node->op->contraction; i++)
      if (p->base[node->inputs[i]] == entry) return false;
  }
  return true;
}

static void find_in_place(planner *p) {
  mix_ir *ir = p->ir;
  if (!mix_pass_wanted(ir, "inplace")) return;
  for (int i = 0; i < ir->variable_count; i++) {
    const mix_ir_variable *variable = &ir->variables[i];
    const mix_ir_node *node = &ir->nodes[mix_ir_producer(ir, variable->exit)];
    if (variable->exit == variable->entry || node->source || !(node->program || is_update(node)) ||
        node->guard != variable->guard)
      continue;
    if (p->uses[variable->exit] != 1) continue;
    p->exit_variable[variable->exit] = i;
    if (is_update(node)) find_updated_program(p, node, i);
  }
  for (int n = 0; n < ir->node_count; n++) {
    const mix_ir_node *node = &ir->nodes[n];
    if (node->source) continue;
    p->deferred_write[n] = overwrites(p, n);
    if (!p->deferred_write[n])
      for (int o = 0; o < node->output_count; o++) p->exit_variable[node->first_output + o] = -1;
  }
}

/* For each variable, counts the deferred nodes that read its old value: adds `step` for each operand of node
 * n. */
static void count_readers(const planner *p, int n, int *readers, int step) {
  const mix_ir_node *node = &p->ir->nodes[n];
  for (int i = 0; i < node->input_count; i++) {
    const mix_ir_node *producer = &p->ir->nodes[mix_ir_producer(p->ir, p->base[node->inputs[i]])];
    if (producer->source == MIX_IR_VARIABLE) readers[producer->index] += step;
  }
}

/* Can node n, itself not counted, overwrite its variables because no other deferred node reads their old
 * values? */
static bool free_to_write(const planner *p, int n, const int *readers) {
  const mix_ir_node *node = &p->ir->nodes[n];
  for (int o = 0; o < node->output_count; o++)
    if (readers[p->exit_variable[node->first_output + o]] > 0) return false;
  return true;
}

/* Does node n change a result of one of these nodes? */
static bool follows_any(const planner *p, int n, const int *nodes, int count) {
  if (!is_update(&p->ir->nodes[n])) return false;
  const int producer = mix_ir_producer(p->ir, p->ir->nodes[n].inputs[0]);
  for (int i = 0; i < count; i++)
    if (nodes[i] == producer) return true;
  return false;
}

/* Orders the deferred nodes so that all readers of a variable's old value come before its writer, and an
 * update after the program whose result it changes. A writer for which no order exists becomes an ordinary
 * node with a copy at the end. That is never such an update: when its turn comes, its program has been
 * ordered, after all readers. */
static bool order_deferred(planner *p, int *deferred_order, int *deferred_count) {
  mix_ir *ir = p->ir;
  int *waiting = mix_ir_ints(ir, ir->node_count + 1), count = 0;
  int *readers = mix_ir_ints(ir, ir->variable_count + 1);
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
      if (free_to_write(p, n, readers) && !follows_any(p, n, waiting, left)) {
        deferred_order[(*deferred_count)++] = n;
      } else {
        count_readers(p, n, readers, 1);
        waiting[left++] = n;
      }
    }
    if (left == count) { /* programs that read each other's variables: compute the first one into the arena */
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
  case MIX_IR_CONSTANT:
    *slot = (mix_slot){.kind = MIX_SLOT_CONSTANT, .memory = node->memory, .offset = node->offset};
    return true;
  default: return false;
  }
}

/* Slots 0 to value_count - 1 are the values, so a value's number is its slot. */
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

/* A step that copies slots with the same number of elements: a program with one load and one store for
 * each. */
static bool add_copies(planner *p, int count, const int *from, const int *to, int guard, bool writes) {
  mix_ir *ir = p->ir;
  mix_program *program = mix_ir_alloc(ir, sizeof *program);
  int *inputs = mix_ir_ints(ir, count), *outputs = mix_ir_ints(ir, count);
  if (!program || !inputs || !outputs) return false;
  program->rank = 1;
  program->dims[0] = mix_shape_size(p->plan->slots[from[0]].shape);
  program->loads = mix_ir_array(ir, count, sizeof *program->loads);
  program->instructions = mix_ir_array(ir, count, sizeof *program->instructions);
  program->stores = mix_ir_array(ir, count, sizeof *program->stores);
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

/* The plan of one step of a loop, in the memory of its body. */
static bool plan_body(const mix_ir_node *loop, const mix_context *context, const mix_plan **plan) {
  const mix_scan_attributes *attributes = loop->attributes;
  mix_compiled *step = mix_ir_alloc(loop->body, sizeof *step);
  if (!step) return false;
  step->ir = loop->body;
  step->context = *context;
  *plan = &step->plan;
  if (!mix_make_plan(step)) return false;
  step->plan.repeated = true;
  step->plan.fixed_arguments = loop->input_count - attributes->carries - attributes->inputs;
  return true;
}

static bool node_step(planner *p, int n) {
  const mix_ir_node *node = &p->ir->nodes[n];
  int *outputs = mix_ir_ints(p->ir, node->output_count + 1);
  const mix_plan *body = NULL;
  if (!outputs || (node->body && !plan_body(node, p->ir->context, &body))) return false;
  for (int o = 0; o < node->output_count; o++) outputs[o] = node->first_output + o;
  return add_step(p, (mix_step){.op = node->op,
                                .attributes = node->attributes,
                                .program = node->program,
                                .body = body,
                                .input_count = node->input_count,
                                .output_count = node->output_count,
                                .inputs = node->inputs,
                                .outputs = outputs,
                                .guard = node->guard,
                                .writes_variable = p->deferred_write[n],
                                .scope = node->scope});
}

/* Results that cannot be computed directly into their buffers: sources, views of sources, and values returned
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

/* Variables that take another variable's old value on exit: saved before any variable is written. */
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

/* Copies the variables that are not written in place. Those with the same size and guard share a step. */
static bool variable_copies(planner *p, const int *exit_slot) {
  mix_ir *ir = p->ir;
  bool *done = mix_ir_flags(ir, ir->variable_count + 1);
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

/* ---- placing deferred writes ---- */

typedef struct placement {
  bool *done;     /* node -> its step is placed */
  bool *may_fail; /* node -> on the values it meets */
  int *readers;   /* variable -> unplaced steps that read its old value */
  int failing;    /* unplaced nodes that may fail on the values they meet */
  int *waits_for; /* deferred node -> 1 + an unplaced node whose result it needs; 0: none known */
} placement;

static bool is_step(const mix_ir_node *node) { return !node->source && !mix_node_is_view(node); }

static bool is_known(const planner *p, const placement *x, int value) {
  int producer = mix_ir_producer(p->ir, p->base[value]);
  return p->ir->nodes[producer].source || x->done[producer];
}

/* Remembers what it waits for: a large plan asks each of many deferred nodes after each step. */
static bool is_ready(const planner *p, placement *x, int n) {
  const mix_ir_node *node = &p->ir->nodes[n];
  if (x->failing || (x->waits_for[n] && !x->done[x->waits_for[n] - 1])) return false;
  for (int i = -1; i < node->input_count; i++) {
    const int value = i < 0 ? node->guard : node->inputs[i];
    if (value < 0 || is_known(p, x, value)) continue;
    x->waits_for[n] = 1 + mix_ir_producer(p->ir, p->base[value]);
    return false;
  }
  count_readers(p, n, x->readers, -1);
  const bool ready = free_to_write(p, n, x->readers);
  count_readers(p, n, x->readers, 1);
  return ready;
}

static bool place(planner *p, placement *x, int n) {
  x->done[n] = true;
  x->failing -= x->may_fail[n];
  count_readers(p, n, x->readers, -1);
  return node_step(p, n);
}

/* Counts the old values that copies at the end read. */
static void count_copies(const planner *p, int *readers) {
  const mix_ir *ir = p->ir;
  for (int i = 0; i < ir->result_count + ir->variable_count; i++) {
    int value = i < ir->result_count ? ir->results[i] : ir->variables[i - ir->result_count].exit;
    if (i >= ir->result_count && value == ir->variables[i - ir->result_count].entry) continue;
    const mix_ir_node *producer = &ir->nodes[mix_ir_producer(ir, p->base[value])];
    if (producer->source == MIX_IR_VARIABLE) readers[producer->index]++;
  }
}

/* Places all nodes in order, and each deferred node as soon as it is ready. Placed entries of deferred_order
 * become -1; the others are never ready here. */
static bool place_nodes(planner *p, int *deferred_order, int deferred_count) {
  mix_ir *ir = p->ir;
  placement x = {.done = mix_ir_flags(ir, ir->node_count + 1),
                 .may_fail = mix_failing_nodes(ir, p->base),
                 .readers = mix_ir_ints(ir, ir->variable_count + 1),
                 .waits_for = mix_ir_ints(ir, ir->node_count + 1)};
  if (!x.done || !x.may_fail || !x.readers || !x.waits_for) return false;
  for (int n = 0; n < ir->node_count; n++) {
    if (!is_step(&ir->nodes[n])) continue;
    count_readers(p, n, x.readers, 1);
    x.failing += x.may_fail[n];
  }
  count_copies(p, x.readers);
  for (int n = 0; n < ir->node_count; n++) {
    if (!is_step(&ir->nodes[n]) || p->deferred_write[n]) continue;
    if (!place(p, &x, n)) return false;
    for (int i = 0; i < deferred_count && !x.failing; i++) {
      if (deferred_order[i] < 0 || !is_ready(p, &x, deferred_order[i])) continue;
      if (!place(p, &x, deferred_order[i])) return false;
      deferred_order[i] = -1;
      i = -1; /* this may have been the last reader of a variable that an earlier one writes */
    }
  }
  return true;
}

static bool plan_steps(planner *p) {
  mix_ir *ir = p->ir;
  int *deferred_order = mix_ir_ints(ir, ir->node_count + 1), deferred_count = 0;
  int *exit_slot = mix_ir_ints(ir, ir->variable_count + 1);
  if (!deferred_order || !exit_slot || !order_deferred(p, deferred_order, &deferred_count)) return false;
  /* A computed value can live in the buffer of the first result that returns it. */
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

bool mix_make_plan(mix_compiled *compiled) {
  mix_ir *ir = compiled->ir;
  const int values = ir->value_count + 1;
  planner p = {.ir = ir,
               .plan = &compiled->plan,
               .base = mix_ir_ints(ir, values),
               .uses = mix_ir_uses(ir),
               .exit_variable = mix_ir_ints(ir, values),
               .result_slot = mix_ir_ints(ir, values),
               .deferred_write = mix_ir_flags(ir, ir->node_count + 1),
               .slot_capacity = ir->value_count + 64,
               .step_capacity = ir->node_count + 32};
  mix_plan *plan = &compiled->plan;
  plan->slots = mix_ir_array(ir, p.slot_capacity, sizeof *plan->slots);
  plan->steps = mix_ir_array(ir, p.step_capacity, sizeof *plan->steps);
  if (mix_failed()) return false;
  plan->communicator = ir->context->communicator;
  plan->argument_count = ir->argument_count;
  plan->variable_count = ir->variable_count;
  plan->result_count = ir->result_count;
  /* Dead values have no producer: each is its own base and gets no memory. */
  for (int v = 0; v < ir->value_count; v++) {
    p.base[v] = v;
    p.exit_variable[v] = p.result_slot[v] = -1;
    if (ir->values[v].node >= ir->node_count) ir->values[v].node = 0;
  }
  for (int n = 0; n < ir->node_count; n++)
    if (mix_node_is_view(&ir->nodes[n])) p.base[ir->nodes[n].first_output] = p.base[ir->nodes[n].inputs[0]];
  find_in_place(&p);
  return plan_steps(&p) && mix_plan_speculative_updates(ir, plan, p.base) && mix_plan_arena(compiled, p.base);
}
