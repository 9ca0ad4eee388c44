#include "backend/host/step_accesses.h"

enum { WORKSPACE = -1 };

bool mix_step_may_fail(const mix_step *step) {
  return step->op->flags & MIX_OP_CHECKS_VALUES || (step->program && mix_program_may_fail(step->program));
}

bool mix_same_range(const mix_range_access *a, const mix_range_access *b) {
  return a->space == b->space && a->index == b->index && a->begin == b->begin && a->end == b->end;
}

static bool conflict(const mix_range_access *a, const mix_range_access *b) {
  if (!a->write && !b->write) return false;
  if (a->space != b->space || a->index != b->index) return false;
  if (a->end <= b->begin || b->end <= a->begin) return false;
  bool same_share = a->in_order && b->in_order && a->count == b->count && a->grain == b->grain;
  return !(same_share && mix_same_range(a, b) && a->element == b->element);
}

bool mix_accesses_conflict(const mix_access_set *old, const mix_access_set *now) {
  for (int i = 0; i < now->count; i++)
    for (int j = 0; j < old->count; j++)
      if (conflict(&old->list[j], &now->list[i])) return true;
  return false;
}

/* Do all loads of this operand read it in its own order, so that element i of the space is element i of the
 * operand? */
static bool loaded_in_order(const mix_program *program, int input) {
  for (int l = 0; l < program->load_count; l++) {
    if (program->loads[l].input != input) continue;
    if (program->loads[l].offset) return false;
    int64_t stride = 1;
    for (int d = program->rank - 1; d >= 0; stride *= program->dims[d--])
      if (program->dims[d] != 1 && program->loads[l].strides[d] != stride) return false;
  }
  return true;
}

int mix_step_access_count(const mix_executable *executable, int step) {
  const mix_step *x = &executable->plan->steps[step];
  return x->input_count + x->output_count + 2; /* the guard and the workspace */
}

static const mix_slot *slot_of(const mix_executable *executable, int number, int i) {
  const mix_step *step = &executable->plan->steps[number];
  return &executable->plan
              ->slots[i < step->input_count ? step->inputs[i] : step->outputs[i - step->input_count]];
}

/* NULL: a constant, or empty. */
static mix_range_access *add_slot(mix_access_set *to, const mix_slot *slot, bool write) {
  if (slot->kind == MIX_SLOT_CONSTANT || !slot->bytes) return NULL;
  size_t begin = slot->kind == MIX_SLOT_ARENA ? slot->offset : 0;
  to->list[to->count] = (mix_range_access){.space = slot->kind,
                                           .index = slot->kind == MIX_SLOT_ARENA ? 0 : slot->index,
                                           .operand = -1,
                                           .begin = begin,
                                           .end = begin + slot->bytes,
                                           .element = mix_dtype_size(slot->dtype),
                                           .write = write};
  return &to->list[to->count++];
}

static void add_guard_and_workspace(const mix_executable *executable, int number, mix_access_set *now) {
  const mix_step *step = &executable->plan->steps[number];
  const mix_host_step *host = &executable->steps[number];
  if (step->guard >= 0) add_slot(now, &executable->plan->slots[step->guard], false);
  if (host->kernel->workspace && host->kernel->workspace(&host->args, executable->threads))
    now->list[now->count++] =
        (mix_range_access){.space = WORKSPACE, .operand = -1, .begin = 0, .end = SIZE_MAX, .write = true};
}

void mix_step_accesses(const mix_executable *executable, int number, mix_access_set *now) {
  const mix_step *step = &executable->plan->steps[number];
  const mix_host_step *host = &executable->steps[number];
  int64_t count = 0, grain = 0;
  bool shared = !host->serial && host->kernel->share && host->kernel->share(&host->args, &count, &grain);
  now->count = 0;
  for (int i = 0; i < step->input_count + step->output_count; i++) {
    bool write = i >= step->input_count;
    const mix_slot *slot = slot_of(executable, number, i);
    mix_range_access *access = add_slot(now, slot, write);
    if (!access || !shared || mix_shape_size(slot->shape) != count) continue;
    if (!write && step->program && !loaded_in_order(step->program, i)) continue;
    access->in_order = true;
    access->count = count;
    access->grain = grain;
  }
  add_guard_and_workspace(executable, number, now);
}

void mix_band_accesses(const mix_executable *executable, int number, int64_t rows,
                       const mix_band_access *bands, mix_access_set *now) {
  const mix_step *step = &executable->plan->steps[number];
  now->count = 0;
  for (int i = 0; i < step->input_count + step->output_count; i++) {
    const bool write = i >= step->input_count,
               whole =
                   write ? bands->late_outputs >> (i - step->input_count) & 1 : bands->whole_inputs >> i & 1;
    mix_range_access *access = add_slot(now, slot_of(executable, number, i), write);
    if (access) access->operand = i;
    if (!access || whole) continue;
    access->in_order = true;
    access->count = rows;
    access->grain = 1;
    access->element = 0;
  }
  add_guard_and_workspace(executable, number, now);
}
