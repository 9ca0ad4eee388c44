/* The least memory that the steps of a plan allow (mix_plan_report.least_bytes). */
#include "compile/compile.h"
#include "tensor/shape.h"

bool mix_plan_of_weight(const mix_ir *ir, mix_shape shape) {
  if (shape.rank == 0) return false;
  for (int i = 0; i < ir->variable_count; i++) {
    const mix_ir_variable *variable = &ir->variables[i];
    if (variable->exit != variable->entry && mix_shape_equal(ir->values[variable->entry].shape, shape))
      return true;
  }
  return false;
}

bool mix_plan_least_memory(mix_compiled *compiled) {
  mix_plan_report *report = &compiled->report;
  const mix_ir *ir = compiled->ir;
  const int steps = compiled->plan.step_count;
  /* By step: bytes that begin to be alive minus bytes that were alive until the step before. */
  size_t *begins = mix_ir_array(compiled->ir, steps + 1, sizeof *begins),
         *ends = mix_ir_array(compiled->ir, steps + 1, sizeof *ends), alive = 0, most = 0;
  if (!begins || !ends) return false;
  for (int i = 0; i < compiled->lifetime_count; i++) {
    const mix_lifetime *life = &compiled->lifetimes[i];
    if (mix_plan_of_weight(ir, compiled->plan.slots[life->slot].shape)) continue;
    begins[life->first] += life->bytes;
    ends[life->last] += life->bytes;
  }
  for (int t = 0; t < steps; t++) {
    alive += begins[t];
    most = alive > most ? alive : most;
    alive -= ends[t];
  }
  for (int i = 0; i < ir->variable_count; i++)
    if (ir->variables[i].variable->original)
      report->copy_bytes += mix_memory_bytes(ir->variables[i].variable->memory);
  report->least_bytes = report->peak_bytes - report->arena_bytes - report->copy_bytes + most;
  return true;
}
