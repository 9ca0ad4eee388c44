/* In-place results: a program reads and writes element by element, so a result can overwrite an operand that
 * the program reads for the last time. */
#include "compile/compile.h"

#include "ops/table.h"

/* Does the program read operand `input` exactly once, in iteration order, and is it the only operand in
 * `memory`? */
static bool read_in_order(const mix_step *step, const int *owner, int input, int memory) {
  const mix_program *program = step->program;
  int loads = 0;
  for (int i = 0; i < step->input_count; i++)
    if (i != input && owner[step->inputs[i]] == memory) return false;
  if (step->guard >= 0 && owner[step->guard] == memory) return false;
  for (int l = 0; l < program->load_count; l++) {
    if (program->loads[l].input != input) continue;
    loads++;
    int64_t stride = 1;
    for (int d = program->rank - 1; d >= 0; stride *= program->dims[d--])
      if (program->dims[d] != 1 && program->loads[l].strides[d] != stride) return false;
  }
  return loads == 1;
}

static bool stored_over_its_space(const mix_step *step, int output) {
  for (int s = 0; s < step->program->store_count; s++)
    if (step->program->stores[s].output == output) return true;
  return false; /* the result of a reduction */
}

int mix_plan_taken_over(const mix_plan *plan, const int *owner, const int *last, int number, int output) {
  const mix_step *step = &plan->steps[number];
  if (!step->program || !stored_over_its_space(step, output)) return -1;
  const mix_slot *result = &plan->slots[step->outputs[output]];
  /* The operands of a product are read until its end. */
  for (int i = step->op == &mix_op_fused ? 0 : 2; i < step->input_count; i++) {
    const mix_slot *operand = &plan->slots[step->inputs[i]];
    const int memory = owner[step->inputs[i]];
    if (operand->kind != MIX_SLOT_ARENA || last[memory] != number) continue;
    if (operand->bytes != result->bytes || mix_dtype_size(operand->dtype) != mix_dtype_size(result->dtype))
      continue;
    if (plan->slots[memory].bytes == operand->bytes && read_in_order(step, owner, i, memory)) return memory;
  }
  return -1;
}
