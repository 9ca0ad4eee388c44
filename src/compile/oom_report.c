/* Out of memory: adds the plan's largest value to the allocator's message, which knows only a size. */
#include "compile/compile.h"

#include "base/error.h"
#include "tensor/shape.h"

enum { MESSAGE = 1024 };

void mix_compiled_name_largest(const mix_compiled *compiled) {
  if (mix_error() != MIX_MEMORY_ERROR) return;
  const mix_plan *plan = &compiled->plan;
  const mix_step *maker = NULL;
  const mix_slot *largest = NULL;
  for (int i = 0; i < plan->step_count; i++)
    for (int o = 0; o < plan->steps[i].output_count; o++) {
      const mix_slot *slot = &plan->slots[plan->steps[i].outputs[o]];
      if (slot->kind != MIX_SLOT_ARENA && slot->kind != MIX_SLOT_RESULT) continue;
      if (!largest || slot->bytes > largest->bytes) largest = slot, maker = &plan->steps[i];
    }
  if (!largest) return;
  char message[MESSAGE];
  mix_error_take(message, sizeof message);
  mix_fail(MIX_MEMORY_ERROR, "%s: %s; the largest value of the plan is %s %s, made by %s%s%s",
           compiled->ir->name ? compiled->ir->name : "plan", message, mix_dtype_name(largest->dtype),
           MIX_SHAPE_TEXT(largest->shape),
           maker->op->flags & MIX_OP_PROGRAM ? "a fused program" : maker->op->name,
           maker->scope ? " in layer " : "", maker->scope ? maker->scope : "");
}
