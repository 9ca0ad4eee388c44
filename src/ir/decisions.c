/* Which values feed discontinuous operations. */
#include "ir/decisions.h"

/* Can a small change of an operand make the result jump? */
static bool is_discontinuous(mix_opcode opcode, mix_dtype result) {
  switch (opcode) {
  case MIX_OPCODE_CAST: /* a step of float8 is too coarse to call a change of it small */
    return !mix_dtype_is_floating(result) || mix_dtype_is_float8(result);
  case MIX_OPCODE_IS_FINITE:
  case MIX_OPCODE_IS_INF:
  case MIX_OPCODE_IS_NAN:
  case MIX_OPCODE_EQUAL:
  case MIX_OPCODE_NOT_EQUAL:
  case MIX_OPCODE_LESS:
  case MIX_OPCODE_LESS_EQUAL:
  case MIX_OPCODE_GREATER:
  case MIX_OPCODE_GREATER_EQUAL: return !mix_dtype_is_floating(result);
  case MIX_OPCODE_SIGN:
  case MIX_OPCODE_FLOOR:
  case MIX_OPCODE_CEIL:
  case MIX_OPCODE_ROUND:
  case MIX_OPCODE_FLOOR_DIVIDE:
  case MIX_OPCODE_FLOOR_MOD: return true;
  default: return false;
  }
}

/* Moves or adds elements: if a result feeds a decision, so do the operands. */
static bool propagates(const mix_op *op) {
  return (op->flags & (MIX_OP_MOVEMENT | MIX_OP_ELEMENTWISE)) || op->elementwise;
}

static bool decides(const mix_ir *ir, const mix_ir_node *node) {
  if (node->op->reduction == MIX_REDUCE_ALL_FINITE) return true;
  return (node->op->flags & MIX_OP_ELEMENTWISE) &&
         is_discontinuous(node->op->opcode, ir->values[node->first_output].dtype);
}

static void mark_program(const mix_ir_node *node, bool *decisive, bool *registers) {
  const mix_program *program = node->program;
  const int loads = program->load_count, count = loads + program->instruction_count;
  for (int r = 0; r < count; r++) registers[r] = false;
  for (int i = 0; i < program->store_count; i++)
    if (decisive[node->first_output + program->stores[i].output]) registers[program->stores[i].reg] = true;
  if (program->reduction == MIX_REDUCE_ALL_FINITE) registers[program->reduced] = true;
  for (int i = program->instruction_count - 1; i >= 0; i--) {
    const mix_instruction *instruction = &program->instructions[i];
    if (!registers[loads + i] && !is_discontinuous(instruction->opcode, instruction->dtype)) continue;
    for (int k = 0; k < mix_opcode_operands(instruction->opcode); k++)
      registers[instruction->operands[k]] = true;
  }
  for (int l = 0; l < loads; l++)
    if (registers[l] && program->loads[l].input != MIX_FROM_ACCUMULATOR)
      decisive[node->inputs[program->loads[l].input]] = true;
}

void mix_ir_mark_decisive(const mix_ir *ir, const mix_ir_node *node, bool *decisive, bool *registers) {
  if (node->dead || node->source) return;
  if (node->program) {
    mark_program(node, decisive, registers);
    return;
  }
  bool feeds = decides(ir, node);
  for (int o = 0; o < node->output_count && propagates(node->op); o++)
    feeds |= decisive[node->first_output + o];
  for (int i = 0; i < node->input_count && feeds; i++) decisive[node->inputs[i]] = true;
}

bool *mix_ir_decisive_values(mix_ir *ir) {
  bool *decisive = mix_ir_flags(ir, ir->value_count + 1);
  for (int n = ir->node_count - 1; n >= 0 && decisive; n--) /* users before operands */
    mix_ir_mark_decisive(ir, &ir->nodes[n], decisive, NULL);
  return decisive;
}
