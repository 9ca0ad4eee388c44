#include "compile/plan.h"

#include <stdarg.h>
#include <stdio.h>

typedef struct listing {
  char *text;
  size_t used, size;
} listing;

static void MIX_PRINTF(2, 3) put(listing *out, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  if (out->used < out->size) {
    int n = vsnprintf(out->text + out->used, out->size - out->used, format, arguments);
    if (n > 0) out->used += (size_t)n;
  }
  va_end(arguments);
}

static void put_slot(listing *out, const mix_compiled *compiled, int s) {
  static const char *const kinds[] = {"argument", "variable", "constant", "arena", "result"};
  const mix_slot *slot = &compiled->plan.slots[s];
  char shape[160];
  put(out, "%s", kinds[slot->kind]);
  if (slot->kind == MIX_SLOT_ARENA)
    put(out, "+%zu", slot->offset);
  else if (slot->kind == MIX_SLOT_VARIABLE)
    put(out, " '%s'", compiled->ir->variables[slot->index].variable->name);
  else if (slot->kind != MIX_SLOT_CONSTANT)
    put(out, " #%d", slot->index);
  put(out, ":%s%s", mix_dtype_name(slot->dtype), mix_shape_text(slot->shape, shape, sizeof shape));
}

/* The step at which most bytes of the arena are alive. */
static int peak_step(const mix_compiled *compiled, size_t *peak) {
  int best = 0;
  *peak = 0;
  for (int t = 0; t < compiled->plan.step_count; t++) {
    size_t alive = 0;
    for (int i = 0; i < compiled->lifetime_count; i++)
      if (compiled->lifetimes[i].first <= t && t <= compiled->lifetimes[i].last) alive += compiled->lifetimes[i].bytes;
    if (alive > *peak) *peak = alive, best = t;
  }
  return best;
}

const char *mix_plan_text(mix_compiled *compiled) {
  const mix_plan *plan = &compiled->plan;
  listing out = {.size = 1024 + 320 * (size_t)compiled->lifetime_count};
  for (int t = 0; t < plan->step_count; t++)
    out.size += 512 + 256 * (size_t)(plan->steps[t].input_count + plan->steps[t].output_count);
  if (!(out.text = mix_ir_alloc(compiled->ir, out.size))) return NULL;
  for (int t = 0; t < plan->step_count; t++) {
    const mix_step *step = &plan->steps[t];
    put(&out, "%3d %s [%s]", t, step->op->name, compiled->backend->kernel_name(compiled->executable, t));
    if (step->scope) put(&out, " %s", step->scope);
    for (int i = 0; i < step->input_count; i++) put(&out, i ? ", " : " "), put_slot(&out, compiled, step->inputs[i]);
    put(&out, " ->");
    for (int i = 0; i < step->output_count; i++) put(&out, i ? ", " : " "), put_slot(&out, compiled, step->outputs[i]);
    if (step->program) put(&out, " {%d instructions}", step->program->instruction_count);
    if (step->guard >= 0) put(&out, " if "), put_slot(&out, compiled, step->guard);
    put(&out, "\n");
  }
  const mix_plan_report *report = &compiled->report;
  size_t peak = 0;
  int step = peak_step(compiled, &peak);
  put(&out,
      "memory: arena %zu bytes (%zu without sharing), most alive at step %d: %zu; variables %zu, arguments %zu, results %zu, "
      "constants %zu, "
      "workspace %zu; %d barriers\n",
      report->arena_bytes, report->unshared_bytes, step, peak, report->variable_bytes, report->argument_bytes, report->result_bytes,
      report->constant_bytes, report->workspace_bytes, report->barriers);
  for (int i = 0; i < compiled->lifetime_count; i++) {
    const mix_lifetime *life = &compiled->lifetimes[i];
    if (life->first > step || step > life->last) continue;
    put(&out, "  alive then: ");
    put_slot(&out, compiled, life->slot);
    put(&out, ", %zu bytes, steps %d to %d\n", life->bytes, life->first, life->last);
  }
  return out.text;
}
