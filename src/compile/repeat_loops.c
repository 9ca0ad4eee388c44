/* Loops that keep every n-th carry, chosen for a budget. */
#include "compile/memory_budget.h"
#include "passes/checkpoint_loops.h"

static size_t gain_of(const mix_loop_pair *pair) {
  const size_t kept = mix_loop_pair_bytes(pair, 0),
               least = mix_loop_pair_bytes(pair, mix_loop_pair_least(pair));
  return kept > least ? kept - least : 0;
}

/* What it takes to repeat the steps of a loop does not depend on how many carries are kept: so few bytes as
 * possible are. */
static bool repeat_largest(mix_compiled *compiled, bool *found) {
  enum { SMALLEST_PART = 256 }; /* of the arena */
  mix_loop_pair *pairs = NULL;
  const int count = mix_ir_find_loop_pairs(compiled->ir, &pairs);
  int best = -1;
  for (int i = 0; i < count; i++)
    if (gain_of(&pairs[i]) && gain_of(&pairs[i]) * SMALLEST_PART >= compiled->plan.arena_bytes &&
        (best < 0 || gain_of(&pairs[i]) > gain_of(&pairs[best])))
      best = i;
  *found = best >= 0;
  if (!*found) return count >= 0;
  return mix_ir_keep_every(compiled->ir, &pairs[best], mix_loop_pair_least(&pairs[best])) &&
         mix_plan_again(compiled);
}

bool mix_plan_repeat_loops(mix_compiled *compiled, size_t budget, bool *any) {
  bool found = true;
  *any = false;
  while (found && compiled->report.peak_bytes > budget) {
    if (!repeat_largest(compiled, &found) || (found && !mix_compile_plan(compiled))) return false;
    *any = *any || found;
  }
  if (*any) mix_count_repeats(compiled);
  return true;
}
