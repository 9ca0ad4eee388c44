/* Places the barriers of a plan: only where data passes from one thread to another. Between two barriers no
 * byte may be written by one thread and accessed by another. */
#include "backend/communicator.h"
#include "backend/host/bands.h"
#include "backend/host/step_accesses.h"
#include "base/alloc.h"

static int barriers_inside(const mix_executable *executable, int step) {
  const mix_host_step *host = &executable->steps[step];
  return !host->serial && host->kernel->barriers ? host->kernel->barriers(&host->args, executable->threads)
                                                 : 0;
}

/* What runs between two places where threads may wait: a step, or steps in bands. */
typedef struct unit {
  int begin, end; /* places of the order */
  bool serial;
  int inside; /* barriers */
} unit;

static unit unit_at(const mix_executable *executable, int place) {
  const int step = executable->order[place];
  const mix_host_bands *bands = executable->steps[step].bands;
  if (!bands)
    return (unit){place, place + 1, executable->steps[step].serial, barriers_inside(executable, step)};
  unit u = {place, bands->end, false, 0};
  for (int i = u.begin; i < u.end; i++)
    if (executable->steps[executable->order[i]].late)
      u.inside += barriers_inside(executable, executable->order[i]);
  return u;
}

/* MPI that is not for several threads is called by the thread that calls the library. */
static bool is_the_callers(const mix_executable *executable, int place) {
  const mix_communicator *c = executable->plan->communicator;
  return c && c->on_caller && mix_op_is_collective(executable->plan->steps[executable->order[place]].op);
}

/* Steps whose threads wait for each other are a stage of their own, so that others are not. */
static bool make_stages(mix_executable *executable) {
  const int count = executable->plan->step_count;
  executable->stages = mix_calloc((size_t)count + 1, sizeof *executable->stages);
  executable->begins = mix_calloc((size_t)count + 1, sizeof *executable->begins);
  if (!executable->stages || !executable->begins) return false;
  mix_crew_stage *stage = NULL;
  unit u;
  for (int i = 0; i < count; i = u.end) {
    u = unit_at(executable, i);
    const bool together = u.inside > 0;
    if (!stage || executable->steps[executable->order[i]].barrier_before || together || stage->together) {
      executable->begins[executable->stage_count] = i;
      stage = &executable->stages[executable->stage_count++];
      *stage = (mix_crew_stage){.shares = 1, .together = together};
    }
    if (is_the_callers(executable, i)) stage->caller_first = true;
    if (!u.serial) stage->shares = executable->threads;
  }
  executable->begins[executable->stage_count] = count;
  return true;
}

/* The accesses of all steps of the unit; `one` is memory for those of a step. In bands they are in the order
 * of no single step. */
static void unit_accesses(const mix_executable *executable, const unit *u, mix_access_set *one,
                          mix_access_set *now) {
  now->count = 0;
  for (int i = u->begin; i < u->end; i++) {
    mix_step_accesses(executable, executable->order[i], one);
    for (int t = 0; t < one->count; t++) {
      now->list[now->count] = one->list[t];
      if (executable->steps[executable->order[i]].bands) now->list[now->count].in_order = false;
      now->count++;
    }
  }
}

bool mix_host_schedule(mix_executable *executable) {
  const mix_plan *plan = executable->plan;
  executable->barriers = 0;
  if (executable->threads < 2 || !executable->parallel) return true;
  size_t total = 0;
  for (int i = 0; i < plan->step_count; i++) total += (size_t)mix_step_access_count(executable, i);
  mix_range_access *memory = mix_calloc(4 * total + 1, sizeof *memory);
  if (!memory) return false;
  /* Since the last barrier: the accesses of thread 0 alone (serial steps) and of the team, and whether a step
   * of either kind may have failed. */
  mix_access_set by_first = {memory, 0}, by_team = {memory + total, 0}, now = {memory + 2 * total, 0},
                 one = {memory + 3 * total, 0};
  bool first_may_fail = false, team_may_fail = false;
  unit u;
  for (int i = 0; i < plan->step_count; i = u.end) {
    const mix_step *step = &plan->steps[executable->order[i]];
    u = unit_at(executable, i);
    unit_accesses(executable, &u, &one, &now);
    bool wait =
        mix_accesses_conflict(&by_team, &now) || (!u.serial && mix_accesses_conflict(&by_first, &now));
    /* All threads must agree on whether variables may be written. Steps in bands write none. */
    if (step->writes_variable) wait = wait || team_may_fail || (!u.serial && first_may_fail);
    bool always = step->guard < 0 && !step->writes_variable;
    executable->steps[executable->order[i]].barrier_before = wait;
    executable->barriers += wait + u.inside;
    if (wait || (u.inside > 0 && always)) {
      by_first.count = by_team.count = 0;
      first_may_fail = team_may_fail = false;
    }
    mix_access_set *accessed = u.serial ? &by_first : &by_team;
    for (int t = 0; t < now.count; t++) accessed->list[accessed->count++] = now.list[t];
    if (mix_step_may_fail(step)) *(u.serial ? &first_may_fail : &team_may_fail) = true;
  }
  mix_free(memory);
  return make_stages(executable);
}
