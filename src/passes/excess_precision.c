/* excess_precision: keeps 16-bit values as float32 inside programs, where jit_compile allows it. Values that
 * are not stored stay float32, and an epilogue reads the float32 sums of its product. Casts to 16 bits and
 * back disappear. Each omitted rounding is one that the error bound of the rounded form counts, so the bound
 * only shrinks (docs/NUMERICS.md).
 *
 * Discontinuous operations must see the rounded values: finite checks (the loss scale depends on float16
 * overflow), comparisons, casts to integers and to float8, floor and the like. Every element-wise value that
 * feeds one keeps its own dtype, across any number of programs. */
#include "passes/passes.h"

typedef struct analysis {
  mix_ir *ir;
  bool *exact; /* by value: feeds a discontinuous operation */
  bool *reg;   /* scratch, by register of the current program */
} analysis;

/* Can a small change of an operand make the result jump? */
static bool is_discontinuous(const mix_instruction *instruction) {
  switch (instruction->opcode) {
  case MIX_OPCODE_CAST: /* a step of float8 is too coarse to call a change of it small */
    return !mix_dtype_is_floating(instruction->dtype) || mix_dtype_is_float8(instruction->dtype);
  case MIX_OPCODE_IS_FINITE:
  case MIX_OPCODE_IS_INF:
  case MIX_OPCODE_IS_NAN:
  case MIX_OPCODE_EQUAL:
  case MIX_OPCODE_NOT_EQUAL:
  case MIX_OPCODE_LESS:
  case MIX_OPCODE_LESS_EQUAL:
  case MIX_OPCODE_GREATER:
  case MIX_OPCODE_GREATER_EQUAL: return !mix_dtype_is_floating(instruction->dtype);
  case MIX_OPCODE_SIGN:
  case MIX_OPCODE_FLOOR:
  case MIX_OPCODE_CEIL:
  case MIX_OPCODE_ROUND:
  case MIX_OPCODE_FLOOR_DIVIDE:
  case MIX_OPCODE_FLOOR_MOD: return true;
  default: return false;
  }
}

/* Moves or adds elements: if a result feeds a discontinuous operation, so do the operands. */
static bool propagates(const mix_op *op) { return (op->flags & MIX_OP_MOVEMENT) || op->elementwise; }

/* Marks the registers of the program that feed a discontinuous operation, and the values that it loads into
 * them. */
static void mark_registers(analysis *x, const mix_ir_node *node) {
  const mix_program *program = node->program;
  int loads = program->load_count, count = loads + program->instruction_count;
  for (int r = 0; r < count; r++) x->reg[r] = false;
  for (int i = 0; i < program->store_count; i++)
    if (x->exact[node->first_output + program->stores[i].output]) x->reg[program->stores[i].reg] = true;
  if (program->reduction == MIX_REDUCE_ALL_FINITE) x->reg[program->reduced] = true;
  for (int i = program->instruction_count - 1; i >= 0; i--) {
    const mix_instruction *instruction = &program->instructions[i];
    if (!x->reg[loads + i] && !is_discontinuous(instruction)) continue;
    for (int k = 0; k < mix_opcode_operands(instruction->opcode); k++)
      x->reg[instruction->operands[k]] = true;
  }
  for (int l = 0; l < loads; l++)
    if (x->reg[l] && program->loads[l].input != MIX_FROM_ACCUMULATOR)
      x->exact[node->inputs[program->loads[l].input]] = true;
}

/* Changes 16-bit registers to float32, except those that are marked, stored or reduced. */
static bool upcast_registers(analysis *x, mix_ir_node *node) {
  mix_ir *ir = x->ir;
  mix_program *program = node->program;
  int loads = program->load_count;
  for (int i = 0; i < program->store_count; i++) x->reg[program->stores[i].reg] = true;
  if (program->reduction != MIX_REDUCE_NOTHING) x->reg[program->reduced] = true;
  for (int i = 0; i < program->sum_count; i++) x->reg[program->sums[i].reg] = true;
  mix_program *wide = mix_ir_alloc(ir, sizeof *wide);
  if (!wide) return false;
  *wide = *program;
  wide->loads = mix_ir_array(ir, loads + 1, sizeof *wide->loads);
  wide->instructions = mix_ir_array(ir, program->instruction_count + 1, sizeof *wide->instructions);
  if (!wide->loads || !wide->instructions) return false;
  for (int l = 0; l < loads; l++) {
    wide->loads[l] = program->loads[l];
    if (program->loads[l].input == MIX_FROM_ACCUMULATOR && mix_dtype_is_16_bit(program->loads[l].dtype) &&
        node->op->accumulator && !x->reg[l])
      wide->loads[l].dtype = node->op->accumulator;
  }
  for (int i = 0; i < program->instruction_count; i++) {
    wide->instructions[i] = program->instructions[i];
    if (mix_dtype_is_16_bit(program->instructions[i].dtype) && !x->reg[loads + i])
      wide->instructions[i].dtype = MIX_FLOAT32;
  }
  node->program = wide;
  return true;
}

bool mix_pass_excess_precision(mix_ir *ir) {
  if (!ir->excess_precision) return true;
  int registers = 0;
  for (int n = 0; n < ir->node_count; n++) {
    const mix_program *program = ir->nodes[n].program;
    int count = program ? program->load_count + program->instruction_count : 0;
    if (count > registers) registers = count;
  }
  analysis x = {.ir = ir,
                .exact = mix_ir_alloc(ir, (size_t)ir->value_count + 1),
                .reg = mix_ir_alloc(ir, (size_t)registers + 1)};
  if (!x.exact || !x.reg) return false;
  for (int n = ir->node_count - 1; n >= 0; n--) { /* users before operands */
    mix_ir_node *node = &ir->nodes[n];
    if (node->dead || node->source) continue;
    if (node->program) {
      mark_registers(&x, node);
      if (!upcast_registers(&x, node)) return false;
      continue;
    }
    bool exact = node->op->reduction == MIX_REDUCE_ALL_FINITE;
    for (int o = 0; o < node->output_count && propagates(node->op); o++)
      exact |= x.exact[node->first_output + o];
    for (int i = 0; i < node->input_count && exact; i++) x.exact[node->inputs[i]] = true;
  }
  return true;
}
