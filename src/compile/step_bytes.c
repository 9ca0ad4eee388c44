/* Bytes that a step of a plan reads and writes. */
#include "compile/compile.h"

/* Bytes of operand i that a step reads: no more than it writes where it takes parts, and none of a table that
 * it changes in place. */
static size_t read_bytes(const mix_plan *plan, const mix_step *step, int i) {
  const mix_slot *slot = &plan->slots[step->inputs[i]], *result = &plan->slots[step->outputs[0]];
  if ((step->op->flags & MIX_OP_PARTS) && slot->bytes > result->bytes) return result->bytes;
  const bool in_place = (step->op->flags & MIX_OP_UPDATES) && i == 0 && slot->kind == result->kind &&
                        slot->index == result->index && slot->offset == result->offset;
  return in_place ? 0 : slot->bytes;
}

/* A slot that is listed twice as operand counts once (a variable updated in place is read and written). */
size_t mix_step_bytes(const mix_plan *plan, const mix_step *step) {
  size_t bytes = 0;
  for (int i = 0; i < step->input_count; i++) {
    bool repeated = false;
    for (int j = 0; j < i; j++) repeated = repeated || step->inputs[j] == step->inputs[i];
    if (!repeated) bytes += read_bytes(plan, step, i);
  }
  if ((step->op->flags & MIX_OP_UPDATES) && !read_bytes(plan, step, 0))
    return bytes + plan->slots[step->inputs[step->input_count - 1]].bytes; /* the parts that it replaces */
  for (int i = 0; i < step->output_count; i++) bytes += plan->slots[step->outputs[i]].bytes;
  return bytes;
}
