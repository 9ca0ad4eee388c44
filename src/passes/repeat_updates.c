/* repeat_updates: new values of variables that are computed before an exchange are computed again after it.
 * Programs whose results all are such values write them in place; one that also gives what the ranks exchange
 * would keep them until the step's end. Computed again from the gradient, by the same instructions, they are
 * written as soon as nothing reads the old ones, and so is what the exchange brings. */
#include "passes/passes.h"
#include "passes/repeat_nodes.h"

#include "ops/collective.h"
#include "tensor/shape.h"

typedef struct updates {
  mix_ir *ir;
  int *uses;      /* by value */
  int *variable;  /* by value: the one variable that has it on exit; -1: none or several */
  bool *exchange; /* by node: one after it exchanges what comes of it */
} updates;

static bool find_exits(updates *u) {
  mix_ir *ir = u->ir;
  u->uses = mix_ir_uses(ir);
  u->variable = mix_ir_ints(ir, ir->value_count + 1);
  bool *found = mix_ir_flags(ir, ir->value_count + 1);
  if (!u->uses || !u->variable || !found) return false;
  for (int v = 0; v < ir->value_count; v++) u->variable[v] = -1;
  for (int i = 0; i < ir->variable_count; i++) {
    const int exit = ir->variables[i].exit;
    if (exit == ir->variables[i].entry) continue;
    u->variable[exit] = found[exit] ? -1 : i;
    found[exit] = true;
  }
  return true;
}

static bool find_exchanges(updates *u) {
  mix_ir *ir = u->ir;
  u->exchange = mix_ir_flags(ir, ir->node_count + 1);
  for (int n = ir->node_count - 1; n >= 0 && u->exchange; n--) {
    const mix_ir_node *node = &ir->nodes[n];
    if (node->dead || (!u->exchange[n] && !mix_op_is_collective(node->op))) continue;
    for (int i = 0; i < node->input_count; i++) u->exchange[mix_ir_producer(ir, node->inputs[i])] = true;
  }
  return u->exchange != NULL;
}

/* Which outputs of the program the clone has: new values of variables under one guard. False: none, or all,
 * so that the program can write in place as it is. */
static bool choose(const updates *u, const mix_ir_node *node, bool *moved, int *guard) {
  const mix_ir *ir = u->ir;
  int count = 0, left = node->output_count;
  for (int o = 0; o < node->output_count; o++) {
    const int value = node->first_output + o, variable = u->variable[value];
    moved[o] = variable >= 0 && ir->values[value].shape.rank > 0 &&
               (!count || ir->variables[variable].guard == *guard);
    if (!moved[o]) continue;
    *guard = ir->variables[variable].guard;
    count++;
    left -= u->uses[value] == 1; /* else others read it too */
  }
  return count && left;
}

/* The registers that these outputs need. */
static bool *find_needed(mix_ir *ir, const mix_program *p, const bool *wanted) {
  bool *needed = mix_ir_flags(ir, p->load_count + p->instruction_count + 1);
  if (!needed) return NULL;
  for (int i = 0; i < p->store_count; i++)
    if (wanted[p->stores[i].output]) needed[p->stores[i].reg] = true;
  for (int i = 0; i < p->sum_count; i++)
    if (wanted[p->sums[i].output]) needed[p->sums[i].reg] = true;
  if (p->reduction && wanted[p->reduction_output]) needed[p->reduced] = true;
  for (int i = p->instruction_count - 1; i >= 0; i--)
    for (int k = 0; needed[p->load_count + i] && k < mix_opcode_operands(p->instructions[i].opcode); k++)
      needed[p->instructions[i].operands[k]] = true;
  return needed;
}

/* What the part of a program has: outputs, operands, and a number for each register of the whole. */
typedef struct part {
  mix_program *program;
  int output_count, input_count, *outputs, *inputs, *reg;
} part;

static void add_loads(const mix_ir_node *node, const bool *needed, part *x) {
  const mix_program *from = node->program;
  for (int l = 0; l < from->load_count; l++) {
    mix_program_load load = from->loads[l];
    if (!needed[l]) continue;
    const int value = node->inputs[load.input];
    for (load.input = 0; load.input < x->input_count && x->inputs[load.input] != value;) load.input++;
    if (load.input == x->input_count) x->inputs[x->input_count++] = value;
    x->reg[l] = x->program->load_count;
    x->program->loads[x->program->load_count++] = load;
  }
}

static void add_instructions(const mix_program *from, const bool *needed, part *x) {
  mix_program *to = x->program;
  for (int i = 0; i < from->instruction_count; i++) {
    mix_instruction instruction = from->instructions[i];
    if (!needed[from->load_count + i]) continue;
    for (int k = 0; k < mix_opcode_operands(instruction.opcode); k++)
      instruction.operands[k] = x->reg[instruction.operands[k]];
    x->reg[from->load_count + i] = to->load_count + to->instruction_count;
    to->instructions[to->instruction_count++] = instruction;
  }
}

static void add_ends(const mix_program *from, const bool *wanted, part *x) {
  mix_program *to = x->program;
  for (int i = 0; i < from->store_count; i++)
    if (wanted[from->stores[i].output])
      to->stores[to->store_count++] = (mix_program_store){.output = x->outputs[from->stores[i].output],
                                                          .reg = x->reg[from->stores[i].reg]};
  for (int i = 0; i < from->sum_count; i++) {
    mix_program_sum sum = from->sums[i];
    if (!wanted[sum.output]) continue;
    sum.reg = x->reg[sum.reg];
    sum.output = x->outputs[sum.output];
    to->sums[to->sum_count++] = sum;
  }
  const bool reduces = from->reduction && wanted[from->reduction_output];
  to->reduction = reduces ? from->reduction : MIX_REDUCE_NOTHING;
  to->reduced = reduces ? x->reg[from->reduced] : 0;
  to->reduction_output = reduces ? x->outputs[from->reduction_output] : 0;
}

/* Appends a node with those outputs of the program alone; x->outputs then has their places. Its index; -1
 * with the error recorded. */
static int add_part(mix_ir *ir, int n, const bool *wanted, int guard, part *x) {
  const mix_ir_node node = ir->nodes[n];
  const mix_program *from = node.program;
  const bool *needed = find_needed(ir, from, wanted);
  mix_type *types = mix_ir_array(ir, node.output_count + 1, sizeof *types);
  mix_program *to = mix_ir_alloc(ir, sizeof *to);
  *x = (part){.program = to,
              .outputs = mix_ir_ints(ir, node.output_count + 1),
              .inputs = mix_ir_ints(ir, node.input_count + 1),
              .reg = mix_ir_ints(ir, from->load_count + from->instruction_count + 1)};
  if (!needed || !types || !to || !x->outputs || !x->inputs || !x->reg) return -1;
  *to = *from;
  to->loads = mix_ir_array(ir, from->load_count + 1, sizeof *to->loads);
  to->instructions = mix_ir_array(ir, from->instruction_count + 1, sizeof *to->instructions);
  to->stores = mix_ir_array(ir, from->store_count + 1, sizeof *to->stores);
  to->sums = mix_ir_array(ir, from->sum_count + 1, sizeof *to->sums);
  if (!to->loads || !to->instructions || !to->stores || !to->sums) return -1;
  to->load_count = to->instruction_count = to->store_count = to->sum_count = 0;
  for (int o = 0; o < node.output_count; o++)
    if (wanted[o]) types[x->outputs[o] = x->output_count++] = ir->values[node.first_output + o].type;
  add_loads(&node, needed, x);
  add_instructions(from, needed, x);
  add_ends(from, wanted, x);
  const int made =
      mix_ir_add(ir, node.op, node.attributes, x->input_count, x->inputs, x->output_count, types);
  if (made < 0) return -1;
  ir->nodes[made].program = to;
  ir->nodes[made].scope = node.scope;
  ir->nodes[made].guard = guard;
  return made;
}

/* Makes two nodes of one: what the exchange needs, and what variables take. */
static bool divide(updates *u, int n, const bool *moved, int guard) {
  mix_ir *ir = u->ir;
  const mix_ir_node node = ir->nodes[n];
  bool left[MIX_PROGRAM_MAX];
  part first, last;
  for (int o = 0; o < node.output_count; o++) left[o] = !moved[o] || u->uses[node.first_output + o] > 1;
  const int before = add_part(ir, n, left, -1, &first),
            after = before < 0 ? -1 : add_part(ir, n, moved, guard, &last);
  if (after < 0) return false;
  for (int o = 0; o < node.output_count; o++) {
    const int value = node.first_output + o;
    if (moved[o]) ir->variables[u->variable[value]].exit = ir->nodes[after].first_output + last.outputs[o];
    if (left[o]) mix_ir_replace(ir, value, ir->nodes[before].first_output + first.outputs[o]);
  }
  ir->nodes[n].dead = true;
  return true;
}

/* ---- what an exchange brings ---- */

/* A program that copies the value, to write it in place; its result. -1 with the error recorded. */
static int add_copy(mix_ir *ir, int value, int guard, const char *scope) {
  const mix_type type = ir->values[value].type;
  mix_program *program = mix_ir_alloc(ir, sizeof *program);
  if (!program) return -1;
  *program = (mix_program){.rank = 1,
                           .load_count = 1,
                           .instruction_count = 1,
                           .store_count = 1,
                           .loads = mix_ir_array(ir, 1, sizeof *program->loads),
                           .instructions = mix_ir_array(ir, 1, sizeof *program->instructions),
                           .stores = mix_ir_array(ir, 1, sizeof *program->stores),
                           .sums = mix_ir_array(ir, 1, sizeof *program->sums)};
  if (!program->loads || !program->instructions || !program->stores || !program->sums) return -1;
  program->dims[0] = mix_shape_size(type.shape);
  program->loads[0] = (mix_program_load){.dtype = type.dtype, .strides = {program->dims[0] == 1 ? 0 : 1}};
  program->instructions[0] = (mix_instruction){.opcode = MIX_OPCODE_IDENTITY, .dtype = type.dtype};
  program->stores[0] = (mix_program_store){.reg = 1};
  const int made = mix_ir_add(ir, &mix_op_fused, NULL, 1, &value, 1, &type);
  if (made < 0) return -1;
  ir->nodes[made].program = program;
  ir->nodes[made].scope = scope;
  ir->nodes[made].guard = guard;
  return ir->nodes[made].first_output;
}

static bool copy_exchanged(mix_ir *ir) {
  for (int i = 0; i < ir->variable_count; i++) {
    const mix_ir_variable variable = ir->variables[i];
    const mix_ir_node *node = &ir->nodes[mix_ir_producer(ir, variable.exit)];
    if (variable.exit == variable.entry || !mix_op_hands_on(node->op)) continue;
    if (!mix_shape_size(ir->values[variable.exit].shape)) continue;
    const int copy = add_copy(ir, variable.exit, variable.guard, node->scope);
    if (copy < 0) return false;
    ir->variables[i].exit = copy;
  }
  return true;
}

static bool hands_on(const mix_ir *ir, int n) {
  return !ir->nodes[n].dead && mix_op_hands_on(ir->nodes[n].op);
}

/* Marks what comes of shares that are handed on, and what conditions and other exchanges need that do not.
 * Sources are needed too: a copy of a variable has it as no input. */
static bool find_early(const mix_ir *ir, bool *handed, bool *early) {
  const int count = ir->node_count;
  bool any = false;
  for (int n = 0; n < count; n++) {
    const mix_ir_node *node = &ir->nodes[n];
    any = any || hands_on(ir, n);
    handed[n] = hands_on(ir, n) || (node->guard >= 0 && handed[mix_ir_producer(ir, node->guard)]);
    for (int i = 0; i < node->input_count; i++) handed[n] |= handed[mix_ir_producer(ir, node->inputs[i])];
  }
  for (int i = 0; i < ir->variable_count; i++)
    if (ir->variables[i].guard >= 0) early[mix_ir_producer(ir, ir->variables[i].guard)] = true;
  for (int n = count - 1; n >= 0; n--) {
    const mix_ir_node *node = &ir->nodes[n];
    const bool needed = early[n] || mix_op_is_collective(node->op) || node->op->flags & MIX_OP_SOURCE;
    early[n] = !handed[n] && needed;
    if (!early[n]) continue;
    for (int i = 0; i < node->input_count; i++) early[mix_ir_producer(ir, node->inputs[i])] = true;
    if (node->guard >= 0) early[mix_ir_producer(ir, node->guard)] = true;
  }
  return any;
}

/* Shares are handed on last, so that what comes of them is written at once. All ranks have the same
 * exchanges, and so the same order. */
static bool hand_on_last(mix_ir *ir) {
  const int count = ir->node_count;
  bool *handed = mix_ir_flags(ir, count + 1), *early = mix_ir_flags(ir, count + 1);
  int *order = mix_ir_ints(ir, count + 1), first = 0, position = 0;
  if (!handed || !early || !order) return false;
  if (!find_early(ir, handed, early)) return true;
  while (!hands_on(ir, first)) first++;
  for (int n = 0; n < first; n++) order[position++] = n;
  for (int late = 0; late < 2; late++)
    for (int n = first; n < count; n++)
      if (early[n] == !late) order[position++] = n;
  return mix_ir_set_order(ir, order);
}

bool mix_pass_repeat_updates(mix_ir *ir) {
  updates u = {.ir = ir};
  const int count = ir->node_count;
  bool exchanges = false, moved[MIX_PROGRAM_MAX];
  for (int n = 0; n < count; n++) exchanges |= !ir->nodes[n].dead && mix_op_is_collective(ir->nodes[n].op);
  if (!exchanges) return true;
  if (!find_exits(&u) || !find_exchanges(&u)) return false;
  for (int n = 0; n < count; n++) {
    const mix_ir_node *node = &ir->nodes[n];
    int guard = -1;
    if (node->dead || !(node->op->flags & MIX_OP_PROGRAM) || node->guard >= 0 || !u.exchange[n]) continue;
    if (node->output_count > MIX_PROGRAM_MAX || mix_program_may_fail(node->program)) continue;
    if (choose(&u, node, moved, &guard) && !divide(&u, n, moved, guard)) return false;
  }
  /* Also where this rank has no share: the order of exchanges is that of all ranks. */
  return copy_exchanged(ir) && (ir->node_count == count || mix_ir_sort(ir)) && hand_on_last(ir);
}
