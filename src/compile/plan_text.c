/* A plan as text: its steps, and the values alive at the memory peak. */
#include "compile/compile.h"
#include "tensor/shape.h"

static void put_slot(mix_text *out, const mix_compiled *compiled, int s) {
  static const char *const kinds[] = {"argument", "variable", "constant", "arena", "result"};
  const mix_slot *slot = &compiled->plan.slots[s];
  mix_text_put(out, "%s", kinds[slot->kind]);
  if (slot->kind == MIX_SLOT_ARENA)
    mix_text_put(out, "+%zu", slot->offset);
  else if (slot->kind == MIX_SLOT_VARIABLE)
    mix_text_put(out, " '%s'", compiled->ir->variables[slot->index].variable->name);
  else if (slot->kind != MIX_SLOT_CONSTANT)
    mix_text_put(out, " #%d", slot->index);
  mix_text_put(out, ":%s%s", mix_dtype_name(slot->dtype), MIX_SHAPE_TEXT(slot->shape));
}

int mix_plan_peak_step(const mix_compiled *compiled, size_t *peak) {
  int best = 0;
  *peak = 0;
  for (int t = 0; t < compiled->plan.step_count; t++) {
    size_t alive = 0;
    for (int i = 0; i < compiled->lifetime_count; i++)
      if (compiled->lifetimes[i].first <= t && t <= compiled->lifetimes[i].last)
        alive += compiled->lifetimes[i].bytes;
    if (alive > *peak) *peak = alive, best = t;
  }
  return best;
}

const char *mix_plan_text(mix_compiled *compiled) {
  const mix_plan *plan = &compiled->plan;
  if (compiled->context.backend->compile_graph) return "the device plans by itself: no steps to show\n";
  mix_text out = {.size = 1024 + 320 * (size_t)compiled->lifetime_count};
  for (int t = 0; t < plan->step_count; t++)
    out.size += 512 + 256 * (size_t)(plan->steps[t].input_count + plan->steps[t].output_count);
  if (!(out.text = mix_ir_alloc(compiled->ir, out.size))) return NULL;
  for (int t = 0; t < plan->step_count; t++) {
    const mix_step *step = &plan->steps[t];
    mix_text_put(&out, "%3d %s [%s]", t, step->op->name,
                 compiled->context.backend->kernel_name(compiled->executable, t));
    if (step->scope) mix_text_put(&out, " %s", step->scope);
    for (int i = 0; i < step->input_count; i++)
      mix_text_put(&out, i ? ", " : " "), put_slot(&out, compiled, step->inputs[i]);
    mix_text_put(&out, " ->");
    for (int i = 0; i < step->output_count; i++)
      mix_text_put(&out, i ? ", " : " "), put_slot(&out, compiled, step->outputs[i]);
    if (step->program) mix_text_put(&out, " {%d instructions}", step->program->instruction_count);
    if (step->guard >= 0) mix_text_put(&out, " if "), put_slot(&out, compiled, step->guard);
    mix_text_put(&out, "\n");
  }
  const mix_plan_report *report = &compiled->report;
  size_t peak = 0;
  int step = mix_plan_peak_step(compiled, &peak);
  mix_text_put(
      &out,
      "memory: arena %zu bytes (%zu without sharing), most alive at step %d: %zu; variables %zu, arguments "
      "%zu, results %zu, constants %zu, "
      "workspace %zu; %d barriers\n",
      report->arena_bytes, report->unshared_bytes, step, peak, report->variable_bytes, report->argument_bytes,
      report->result_bytes, report->constant_bytes, report->workspace_bytes, report->barriers);
  for (int i = 0; i < compiled->lifetime_count; i++) {
    const mix_lifetime *life = &compiled->lifetimes[i];
    if (life->first > step || step > life->last) continue;
    mix_text_put(&out, "  alive then: ");
    put_slot(&out, compiled, life->slot);
    mix_text_put(&out, ", %zu bytes, steps %d to %d\n", life->bytes, life->first, life->last);
  }
  return out.text;
}
