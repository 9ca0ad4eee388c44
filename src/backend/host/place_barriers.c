/* Places the barriers of a plan: only where data passes from one thread to another. Between two barriers no
 * byte may be written by one thread and accessed by another. */
#include "backend/host/executor.h"
#include "base/alloc.h"
#include "ops/table.h"

/* A range of bytes that a step accesses. in_order: thread r accesses exactly its mix_team_share(count, grain)
 * of the elements. */
typedef struct range_access {
  int space, index; /* space: a mix_slot_kind, or WORKSPACE */
  size_t begin, end, element;
  bool write, in_order;
  int64_t count, grain;
} range_access;

enum { WORKSPACE = -1 };

typedef struct access_set {
  range_access *list;
  int count;
} access_set;

static bool conflict(const range_access *a, const range_access *b) {
  if (!a->write && !b->write) return false;
  if (a->space != b->space || a->index != b->index) return false;
  if (a->end <= b->begin || b->end <= a->begin) return false;
  bool same_share = a->in_order && b->in_order && a->count == b->count && a->grain == b->grain;
  return !(same_share && a->begin == b->begin && a->end == b->end && a->element == b->element);
}

static bool any_conflict(const access_set *old, const access_set *now) {
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

static void add_slot(access_set *to, const mix_slot *slot, bool write) {
  if (slot->kind == MIX_SLOT_CONSTANT || !slot->bytes) return;
  size_t begin = slot->kind == MIX_SLOT_ARENA ? slot->offset : 0;
  to->list[to->count++] = (range_access){.space = slot->kind,
                                         .index = slot->kind == MIX_SLOT_ARENA ? 0 : slot->index,
                                         .begin = begin,
                                         .end = begin + slot->bytes,
                                         .element = mix_dtype_size(slot->dtype),
                                         .write = write};
}

static void access_set_of(const mix_executable *executable, int number, access_set *now) {
  const mix_plan *plan = executable->plan;
  const mix_step *step = &plan->steps[number];
  const mix_host_step *host = &executable->steps[number];
  int64_t count = 0, grain = 0;
  bool shared = !host->serial && host->kernel->share && host->kernel->share(&host->args, &count, &grain);
  now->count = 0;
  for (int i = 0; i < step->input_count + step->output_count; i++) {
    bool write = i >= step->input_count;
    const mix_slot *slot = &plan->slots[write ? step->outputs[i - step->input_count] : step->inputs[i]];
    int before = now->count;
    add_slot(now, slot, write);
    if (now->count == before || !shared || mix_shape_size(slot->shape) != count) continue;
    if (!write && step->program && !loaded_in_order(step->program, i)) continue;
    now->list[before].in_order = true;
    now->list[before].count = count;
    now->list[before].grain = grain;
  }
  if (step->guard >= 0) add_slot(now, &plan->slots[step->guard], false);
  if (host->kernel->workspace && host->kernel->workspace(&host->args, executable->threads))
    now->list[now->count++] = (range_access){.space = WORKSPACE, .begin = 0, .end = SIZE_MAX, .write = true};
}

/* Programs, including epilogues, can fail only by integer arithmetic. */
static bool can_fail(const mix_step *step) {
  if (step->op->flags & MIX_OP_CHECKS_VALUES) return true;
  return step->program && mix_program_may_fail(step->program);
}

static int barriers_inside(const mix_executable *executable, int step) {
  const mix_host_step *host = &executable->steps[step];
  return !host->serial && host->kernel->barriers ? host->kernel->barriers(&host->args, executable->threads)
                                                 : 0;
}

/* Steps whose threads wait for each other are a stage of their own, so that others are not. */
static bool make_stages(mix_executable *executable) {
  const int count = executable->plan->step_count;
  executable->stages = mix_calloc((size_t)count + 1, sizeof *executable->stages);
  executable->begins = mix_calloc((size_t)count + 1, sizeof *executable->begins);
  if (!executable->stages || !executable->begins) return false;
  mix_crew_stage *stage = NULL;
  for (int i = 0; i < count; i++) {
    const mix_host_step *host = &executable->steps[i];
    const bool together = barriers_inside(executable, i) > 0;
    if (!stage || host->barrier_before || together || stage->together) {
      executable->begins[executable->stage_count] = i;
      stage = &executable->stages[executable->stage_count++];
      *stage = (mix_crew_stage){.shares = 1, .together = together};
    }
    if (!host->serial) stage->shares = executable->threads;
  }
  executable->begins[executable->stage_count] = count;
  return true;
}

bool mix_host_schedule(mix_executable *executable) {
  const mix_plan *plan = executable->plan;
  executable->barriers = 0;
  if (executable->threads < 2 || !executable->parallel) return true;
  size_t total = 0, largest = 0;
  for (int i = 0; i < plan->step_count; i++) {
    size_t own = (size_t)plan->steps[i].input_count + (size_t)plan->steps[i].output_count + 2;
    total += own;
    if (own > largest) largest = own;
  }
  range_access *memory = mix_calloc(2 * total + largest + 1, sizeof *memory);
  if (!memory) return false;
  /* Since the last barrier: the accesses of thread 0 alone (serial steps) and of the team, and whether a step
   * of either kind may have failed. */
  access_set by_first = {memory, 0}, by_team = {memory + total, 0}, now = {memory + 2 * total, 0};
  bool first_may_fail = false, team_may_fail = false;
  for (int i = 0; i < plan->step_count; i++) {
    mix_host_step *host = &executable->steps[i];
    const mix_step *step = &plan->steps[i];
    access_set_of(executable, i, &now);
    bool wait = any_conflict(&by_team, &now) || (!host->serial && any_conflict(&by_first, &now));
    /* All threads must agree on whether variables may be written. */
    if (step->writes_variable) wait = wait || team_may_fail || (!host->serial && first_may_fail);
    const int inside = barriers_inside(executable, i);
    bool always = step->guard < 0 && !step->writes_variable;
    host->barrier_before = wait;
    executable->barriers += wait + inside;
    if (wait || (inside > 0 && always)) {
      by_first.count = by_team.count = 0;
      first_may_fail = team_may_fail = false;
    }
    access_set *accessed = host->serial ? &by_first : &by_team;
    for (int t = 0; t < now.count; t++) accessed->list[accessed->count++] = now.list[t];
    if (can_fail(step)) *(host->serial ? &first_may_fail : &team_may_fail) = true;
  }
  mix_free(memory);
  return make_stages(executable);
}
