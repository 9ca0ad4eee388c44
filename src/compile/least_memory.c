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

static bool is_among(mix_shape shape, const mix_shape *shapes, int count) {
  for (int i = 0; i < count; i++)
    if (mix_shape_equal(shapes[i], shape)) return true;
  return false;
}

/* The different shapes of the weights that the plan writes. Returns how many. */
static int find_weight_shapes(const mix_ir *ir, mix_shape *shapes) {
  int count = 0;
  for (int i = 0; i < ir->variable_count; i++) {
    const mix_shape shape = ir->values[ir->variables[i].entry].shape;
    if (ir->variables[i].exit != ir->variables[i].entry && shape.rank && !is_among(shape, shapes, count))
      shapes[count++] = shape;
  }
  return count;
}

bool mix_plan_least_memory(mix_compiled *compiled) {
  mix_plan_report *report = &compiled->report;
  const mix_ir *ir = compiled->ir;
  const int steps = compiled->plan.step_count;
  /* By step: bytes that begin to be alive minus bytes that were alive until the step before. */
  size_t *begins = mix_ir_array(compiled->ir, steps + 1, sizeof *begins),
         *ends = mix_ir_array(compiled->ir, steps + 1, sizeof *ends), alive = 0, most = 0;
  mix_shape *shapes = mix_ir_array(compiled->ir, ir->variable_count + 1, sizeof *shapes);
  if (!begins || !ends || !shapes) return false;
  const int shape_count = find_weight_shapes(ir, shapes);
  for (int i = 0; i < compiled->lifetime_count; i++) {
    const mix_lifetime *life = &compiled->lifetimes[i];
    if (is_among(compiled->plan.slots[life->slot].shape, shapes, shape_count)) continue;
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
