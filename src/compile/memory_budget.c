/* Compiling for a budget. The plan that fits anyway is taken as it is. Otherwise there are four ways, which
 * are all gone: steps that run twice, with loops as they are or such that keep every n-th carry, and both
 * with the least use of memory (mix_set_memory), which does without 16-bit copies of weights. What is
 * estimated to take less time is taken. */
#include "compile/memory_budget.h"

#include "base/error.h"
#include "compile/budget_warning.h"
#include <string.h>

enum { TRIES = 3, LEAST_TRIES = 6 };
static const uint64_t VISITS = 2000000; /* of the searches for a plan: about 60 ms */

/* ---- the graph before steps are repeated ---- */

/* Repeating nodes changes no list of operands. */
typedef struct saved {
  mix_ir_node *nodes;
  mix_ir_value *values;
  int node_count, value_count;
} saved;

static bool save(mix_ir *ir, saved *s) {
  *s = (saved){.nodes = mix_ir_array(ir, ir->node_count + 1, sizeof *s->nodes),
               .values = mix_ir_array(ir, ir->value_count + 1, sizeof *s->values),
               .node_count = ir->node_count,
               .value_count = ir->value_count};
  if (!s->nodes || !s->values) return false;
  memcpy(s->nodes, ir->nodes, sizeof *s->nodes * (size_t)ir->node_count);
  memcpy(s->values, ir->values, sizeof *s->values * (size_t)ir->value_count);
  return true;
}

static void restore(mix_ir *ir, const saved *s) {
  memcpy(ir->nodes, s->nodes, sizeof *s->nodes * (size_t)s->node_count);
  memcpy(ir->values, s->values, sizeof *s->values * (size_t)s->value_count);
  ir->node_count = s->node_count;
  ir->value_count = s->value_count;
}

/* ---- one way ---- */

typedef struct way {
  mix_compiled *compiled;
  bool fits;
  double seconds; /* of all steps, estimated */
} way;

static size_t beside_arena(const mix_compiled *compiled) {
  return compiled->report.peak_bytes - compiled->report.arena_bytes;
}

/* Plans with repeats for this arena. */
static bool plan_for(way *w, const saved *s, size_t arena, size_t budget, uint64_t *visits) {
  mix_compiled *compiled = w->compiled;
  restore(compiled->ir, s);
  if (!mix_plan_repeats(compiled, arena, visits) || !mix_compile_plan(compiled)) return false;
  w->fits = compiled->report.peak_bytes <= budget;
  return true;
}

/* The least: what a search for no bytes at all finds, and then searches for less than what was found. */
static bool plan_for_least(way *w, const saved *s, size_t budget) {
  size_t least = SIZE_MAX, least_target = 0, target = 0, arena = 0;
  uint64_t visits;
  for (int i = 0, misses = 0; i < LEAST_TRIES && misses < 2; i++) {
    visits = VISITS;
    if (!plan_for(w, s, target, budget, &visits)) return false;
    const mix_plan_report *report = &w->compiled->report;
    const bool less = report->peak_bytes < least;
    if (less) least = report->peak_bytes, least_target = target, arena = report->arena_bytes;
    misses = less ? 0 : misses + 1;
    target = arena / 10 * (misses ? 8 : 9);
  }
  visits = VISITS;
  return plan_for(w, s, least_target, budget, &visits);
}

/* A plan that takes too much was estimated to take less: the next try has that much less to go. `least`: if
 * none fits, what takes least is looked for. False with the error recorded. */
static bool try_repeats(way *w, size_t budget, bool least) {
  uint64_t visits = VISITS;
  saved s;
  if (!mix_order_as_planned(w->compiled) || !save(w->compiled->ir, &s)) return false;
  size_t beside = beside_arena(w->compiled), arena = budget > beside ? budget - beside : 0;
  for (int i = 0; i < TRIES && arena && !w->fits; i++) {
    if (!plan_for(w, &s, arena, budget, &visits)) return false;
    const size_t over = w->fits ? 0 : w->compiled->report.peak_bytes - budget;
    arena = arena > over ? arena - over : 0;
  }
  return w->fits || !least || plan_for_least(w, &s, budget);
}

/* Without a plan where `loops` is asked for, and there is none whose carries are worth it. */
static bool try_way(way *w, const mix_ir *ir, const mix_context *context, bool stages, bool loops,
                    size_t budget, bool least) {
  bool any = true;
  *w = (way){.compiled = mix_compile(mix_ir_copy(ir), context, stages)};
  if (!w->compiled || (loops && !mix_plan_repeat_loops(w->compiled, budget, &any))) return false;
  if (!any) {
    mix_compiled_free(w->compiled);
    w->compiled = NULL;
    return true;
  }
  const mix_plan *plan = &w->compiled->plan;
  w->fits = w->compiled->report.peak_bytes <= budget;
  if (!w->fits && plan->keeps_packed) {
    if (!mix_compile_without_panels(w->compiled)) return false;
    w->fits = w->compiled->report.peak_bytes <= budget;
  }
  if (!w->fits && !try_repeats(w, budget, least)) return false;
  for (int t = 0; t < plan->step_count; t++) w->seconds += mix_step_seconds(plan, &plan->steps[t]);
  return true;
}

/* ---- all ---- */

/* Is b better than a? Where none fits, what takes less. */
static bool is_better(const way *b, const way *a) {
  if (a->fits != b->fits) return b->fits;
  return b->fits ? b->seconds < a->seconds : b->compiled->report.peak_bytes < a->compiled->report.peak_bytes;
}

/* Puts the best of those that are gone into `best`. `search`: for the least that each can give. */
static bool try_ways(const mix_ir *ir, const mix_context *context, bool stages, size_t budget, bool search,
                     way *best) {
  mix_context contexts[2] = {*context, *context};
  contexts[1].memory = MIX_MEMORY_LEAST;
  for (int i = 0; i < 4; i++) {
    const bool least = i / 2, loops = i % 2;
    way next;
    if ((least && context->memory == MIX_MEMORY_LEAST) || (loops && !ir->body_count)) continue;
    const bool good = try_way(&next, ir, &contexts[least], stages, loops, budget, search);
    const bool takes = good && next.compiled && (!best->compiled || is_better(&next, best));
    mix_compiled_free(takes ? best->compiled : next.compiled);
    if (takes) *best = next;
    if (!good) return false;
    if (i == 0 && best->fits && !best->compiled->report.recomputed_nodes) break;
  }
  return true;
}

/* The search for the least takes as long as all else: only where it decides. */
static bool find_best(const mix_ir *ir, const mix_context *context, bool stages, size_t budget, way *best) {
  return try_ways(ir, context, stages, budget, false, best) &&
         (best->fits || try_ways(ir, context, stages, budget, true, best));
}

static void log_repeats(const mix_plan_report *report, const char *name, size_t budget) {
  if (mix_verbose("compile"))
    mix_log_message(MIX_LOG_DEBUG, "# compile %s: the memory budget of %zu bytes repeats %d nodes, %zu bytes",
                    name ? name : "function", budget, report->recomputed_nodes, report->recomputed_bytes);
}

mix_compiled *mix_compile_to_budget(mix_ir *ir, bool stages) {
  const size_t budget = mix_memory_budget();
  const mix_context context = mix_context_default();
  if (!ir || !budget || mix_failed()) return mix_compile(ir, NULL, stages);
  mix_warn_of_budget(budget);
  way best = {.compiled = NULL};
  bool good = false;
  if (context.backend->compile_graph)
    mix_fail_unsupported(
        "set_memory_budget: the device \"%s\" plans memory by itself; set the budget to 0, or try "
        "mix_set_device(\"%s\")",
        context.backend->name, context.backend->host->name);
  else if (find_best(ir, &context, stages, budget, &best) && !(good = best.fits))
    mix_fail_over_budget(best.compiled, budget);
  if (good) {
    log_repeats(&best.compiled->report, ir->name, budget);
    best.compiled->original = ir;
    return best.compiled;
  }
  mix_compiled_free(best.compiled);
  mix_ir_free(ir);
  return NULL;
}
