/* What kernels make of operands that stay the same: before the steps of a loop, or before the first run of a
 * plan and again after a change of a variable. It saves time alone: where there is no memory for it, kernels
 * do without. */
#include "backend/host/executor.h"
#include "backend/host/panels.h"

static bool is_lasting(const mix_kernel_args *args, int operand) {
  return operand >= 0 && operand < 32 && !(args->fixed >> operand & 1) && args->lasting >> operand & 1;
}

bool mix_host_keep(mix_executable *executable, int number, size_t bytes) {
  const mix_plan *plan = executable->plan;
  mix_host_step *step = &executable->steps[number];
  mix_panels_key key = {.kernel = step->kernel, .flush_subnormals = executable->flush_subnormals};
  const int operand = step->kernel->kept_operand ? step->kernel->kept_operand(&step->args, key.layout) : -1;
  step->kept_operand = is_lasting(&step->args, operand) ? operand : -1;
  if (step->kept_operand >= 0 && plan->variable_names) {
    const mix_slot *slot = &plan->slots[plan->steps[number].inputs[operand]];
    key.variable = plan->variable_names[slot->index], key.offset = slot->offset;
  }
  step->panels = mix_panels_share(&key, bytes, step->args.lasting != 0);
  if (!step->panels) return false;
  step->args.kept = mix_panels_memory(step->panels);
  executable->kept_bytes += bytes;
  return true;
}

void mix_host_free_kept(mix_executable *executable) {
  for (int i = 0; executable->steps && i < executable->plan->step_count; i++)
    if (executable->steps[i].panels) mix_panels_release(executable->steps[i].panels);
}

/* ---- loops ---- */

void mix_host_begin_steps(mix_executable *executable, const mix_team *team) {
  for (int i = 0; i < executable->plan->step_count && executable->kept_bytes; i++) {
    mix_host_step *step = &executable->steps[i];
    if (step->panels && !(step->serial && team->rank))
      step->kernel->begin(&step->args, step->serial ? &mix_team_alone : team);
  }
}

/* ---- runs ---- */

/* One number for the stamps of all variables that the step keeps something of: of one variable its stamp. */
static uint64_t stamp_of(const mix_executable *executable, int number, const uint64_t *stamps) {
  const mix_plan *plan = executable->plan;
  const mix_step *step = &plan->steps[number];
  const mix_host_step *host = &executable->steps[number];
  if (host->kept_operand >= 0) return stamps[plan->slots[step->inputs[host->kept_operand]].index];
  uint64_t stamp = 0;
  for (int i = 0; i < step->input_count && i < 32; i++)
    if (host->args.lasting >> i & 1)
      stamp = stamp * 0x9e3779b97f4a7c15u + stamps[plan->slots[step->inputs[i]].index];
  return stamp;
}

static void make_share(void *context, int stage, int share) {
  mix_executable *executable = context;
  (void)stage;
  const mix_float_control host_modes = mix_host_modes_begin(executable);
  for (int i = 0; i < executable->plan->step_count; i++) {
    mix_host_step *step = &executable->steps[i];
    if (step->claimed && !(step->serial && share))
      step->kernel->begin(&step->args, step->serial
                                           ? &mix_team_alone
                                           : &(const mix_team){.rank = share, .size = executable->threads});
  }
  mix_float_modes_end(&host_modes);
}

static bool make_claimed(mix_executable *executable) {
  const mix_crew_work work = {&(const mix_crew_stage){.shares = executable->threads}, 1, make_share,
                              executable};
  const mix_crew_result result =
      executable->threads > 1 ? mix_crew_run(&work, executable->threads) : MIX_CREW_TOO_FEW;
  for (int share = 0; result == MIX_CREW_TOO_FEW && share < executable->threads; share++)
    make_share(executable, 0, share);
  return result != MIX_CREW_FAILED;
}

bool mix_host_hold_kept(mix_executable *executable, const uint64_t *stamps) {
  bool good = stamps != NULL, any = false;
  int end = 0; /* of the steps that hold theirs */
  for (; good && end < executable->plan->step_count; end += good) {
    mix_host_step *step = &executable->steps[end];
    step->claimed = false;
    if (!step->panels) continue;
    const uint64_t stamp = stamp_of(executable, end, stamps);
    if (mix_panels_hold(step->panels, stamp)) continue;
    const mix_panels_claim claim = mix_panels_claim_for(step->panels, stamp, executable);
    step->claimed = claim == MIX_PANELS_CLAIMED;
    good = claim != MIX_PANELS_BUSY;
    any |= step->claimed;
  }
  if (good && any) good = make_claimed(executable);
  for (int i = 0; (any || !good) && i < end; i++) {
    mix_host_step *step = &executable->steps[i];
    if (step->claimed) mix_panels_finish(step->panels, stamp_of(executable, i, stamps), good);
    if (!good && step->panels) mix_panels_let_go(step->panels);
  }
  return good;
}

void mix_host_let_kept_go(mix_executable *executable) {
  for (int i = 0; i < executable->plan->step_count; i++)
    if (executable->steps[i].panels) mix_panels_let_go(executable->steps[i].panels);
}
