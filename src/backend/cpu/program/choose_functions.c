/* Selects the vector function that computes an instruction on tiles, and the one that rounds its result. */
#include "backend/cpu/program/prepare_steps.h"

/* Is every result an operand, a constant of few bits or an integer next to an operand? Such a result is
 * representable in the dtype of the operands and needs no rounding. */
static bool is_exact(mix_opcode opcode, mix_tile_class class) {
  switch (opcode) {
  case MIX_OPCODE_IDENTITY:
  case MIX_OPCODE_SIGN:
  case MIX_OPCODE_FLOOR:
  case MIX_OPCODE_CEIL:
  case MIX_OPCODE_ROUND:
  case MIX_OPCODE_RELU:
  case MIX_OPCODE_RELU6:
  case MIX_OPCODE_MAXIMUM:
  case MIX_OPCODE_MINIMUM:
  case MIX_OPCODE_SELECT:
  case MIX_OPCODE_CLIP:
  case MIX_OPCODE_RELU_GRAD:
  case MIX_OPCODE_RELU6_GRAD: return true;
  case MIX_OPCODE_NEGATIVE:
  case MIX_OPCODE_ABS: return class == MIX_TILE_FLOAT;
  default: return false;
  }
}

/* Has an operand another dtype than the result? It may then hold numbers that the dtype of the result lacks
 * (excess precision). */
static bool narrows(const mix_program *program, const mix_instruction *instruction) {
  for (int k = mix_tile_operand_of_class(instruction); k < mix_opcode_operands(instruction->opcode); k++)
    if (mix_program_register_dtype(program, instruction->operands[k]) != instruction->dtype) return true;
  return false;
}

mix_tile_choice mix_tile_choose(const mix_tile_plan *plan, int i) {
  const mix_program *program = plan->p->program;
  const mix_vector *vector = plan->p->vector;
  const mix_instruction *instruction = &program->instructions[i];
  const int reg = program->load_count + i,
            operand = instruction->operands[mix_tile_operand_of_class(instruction)];
  const mix_dtype from = plan->held_as[operand], to = instruction->dtype;
  const mix_tile_class class = mix_tile_class_of(from);
  mix_tile_choice c = {.round = mix_tile_round_of(vector, to)};
  if (instruction->opcode == MIX_OPCODE_CAST) {
    bool rounded;
    c.function = mix_tile_cast_of(vector, from, to, &rounded);
    if (rounded || from == to) c.round = NULL;
  } else {
    c.function = mix_tile_instruction_of(vector, instruction->opcode, class);
    if (is_exact(instruction->opcode, class) && !narrows(program, instruction)) c.round = NULL;
    if (mix_opcode_draws(instruction->opcode)) c.round = NULL; /* rounds by itself */
  }
  if (plan->only_stored[reg]) c.round = NULL;
  c.same = !c.round && class == mix_tile_class_of(to) &&
           (instruction->opcode == MIX_OPCODE_CAST || instruction->opcode == MIX_OPCODE_IDENTITY);
  return c;
}
