/* Queries on programs, for passes, plans and kernels. */
#include "ir/program.h"

const mix_op mix_op_fused = {.name = "fused", .flags = MIX_OP_PROGRAM};

mix_shape mix_epilogue_space(mix_shape result) {
  if (result.rank <= 2) return result;
  mix_shape matrix = {.rank = 2, .dims = {1, result.dims[result.rank - 1]}};
  for (int d = 0; d < result.rank - 1; d++) matrix.dims[0] *= result.dims[d];
  return matrix;
}

/* True for a float32 load that is the same for all elements. */
static bool is_factor(const mix_program *program, int reg) {
  if (reg >= program->load_count || program->loads[reg].input < 0 || program->loads[reg].dtype != MIX_FLOAT32)
    return false;
  for (int d = 0; d < program->rank; d++)
    if (program->loads[reg].strides[d] != 0) return false;
  return true;
}

bool mix_program_only_tests(const mix_program *program, int *tested, int *factor) {
  int reg = program->reduced, instructions = 0;
  *factor = -1;
  if (program->reduction != MIX_REDUCE_ALL_FINITE) return false;
  for (; reg >= program->load_count; instructions++) {
    const mix_instruction *instruction = &program->instructions[reg - program->load_count];
    if (instruction->dtype != MIX_FLOAT32) return false;
    if (instruction->opcode == MIX_OPCODE_CAST) {
      reg = instruction->operands[0];
    } else if (instruction->opcode == MIX_OPCODE_MULTIPLY && *factor < 0) {
      const int second = is_factor(program, instruction->operands[1]);
      *factor = instruction->operands[second];
      reg = instruction->operands[!second];
      if (!is_factor(program, *factor)) return false;
    } else {
      return false;
    }
  }
  *tested = reg;
  const mix_dtype dtype = program->loads[reg].dtype;
  if (dtype != MIX_FLOAT16 && dtype != MIX_BFLOAT16) return false;
  return instructions == program->instruction_count && program->load_count == 1 + (*factor >= 0);
}

bool mix_program_only_tests_product(const mix_program *program, int *product, int *factor) {
  return program->store_count == 1 && mix_program_only_tests(program, product, factor) &&
         program->stores[0].reg == *product && program->loads[*product].input == MIX_FROM_ACCUMULATOR;
}

bool mix_program_sums_fit(const mix_program_sum *sums, int count, int64_t elements, int64_t one_chain) {
  int64_t columns = 0, longest = 0;
  for (int i = 0; i < count; i++) {
    if ((sums[i].row > 0) == (sums[i].column > 0) || count > MIX_PROGRAM_SUMS) return false;
    if (columns && sums[i].column && sums[i].column != columns) return false;
    if (sums[i].column) columns = sums[i].column;
    if (sums[i].row > longest) longest = sums[i].row;
  }
  if (columns && longest && elements / columns <= one_chain) return false;
  if (columns) longest = columns;
  for (int i = 0; i < count; i++)
    if (sums[i].row && longest % sums[i].row) return false;
  return count > 0 && elements % longest == 0;
}

bool mix_program_may_fail(const mix_program *program) {
  for (int i = 0; i < program->instruction_count; i++)
    if (mix_opcode_may_fail(program->instructions[i].opcode, program->instructions[i].dtype)) return true;
  return false;
}
