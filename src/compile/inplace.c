/* In-place results: a result can overwrite an operand that its step is the last to read, where the backend
 * reads and writes it in the same order. */
#include "compile/compile.h"

/* Is operand `input` the only one in `memory`? */
static bool is_alone(const mix_step *step, const int *owner, int input, int memory) {
  for (int i = 0; i < step->input_count; i++)
    if (i != input && owner[step->inputs[i]] == memory) return false;
  return step->guard < 0 || owner[step->guard] != memory;
}

int mix_plan_taken_over(const mix_backend *backend, const mix_plan *plan, const int *owner, const int *last,
                        int number, int output) {
  const mix_step *step = &plan->steps[number];
  if (!backend->writes_over) return -1;
  const size_t bytes = plan->slots[step->outputs[output]].bytes;
  for (int i = 0; i < step->input_count; i++) {
    const mix_slot *operand = &plan->slots[step->inputs[i]];
    const int memory = owner[step->inputs[i]];
    if (operand->kind != MIX_SLOT_ARENA || last[memory] != number) continue;
    if (operand->bytes != bytes || plan->slots[memory].bytes != bytes) continue;
    if (is_alone(step, owner, i, memory) && backend->writes_over(plan, step, i, output)) return memory;
  }
  return -1;
}
