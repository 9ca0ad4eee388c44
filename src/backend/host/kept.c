/* What kernels make of operands that stay the same: before the steps of a loop, or before the first run of a
 * plan and again after a change of a variable. */
#include "backend/host/executor.h"
#include "base/alloc.h"

/* Of all plans, what is kept between runs: a function has a plan for each shape of its arguments. */
static const size_t MAX_BYTES = (size_t)256 << 20;
static atomic_size_t all_bytes;

static bool reserve(mix_executable *executable) {
  const size_t bytes = executable->kept_bytes;
  executable->reserved = atomic_fetch_add(&all_bytes, bytes) + bytes <= MAX_BYTES;
  if (!executable->reserved) atomic_fetch_sub(&all_bytes, bytes);
  return executable->reserved;
}

void mix_host_free_kept(mix_executable *executable) {
  if (executable->reserved) atomic_fetch_sub(&all_bytes, executable->kept_bytes);
  if (executable->kept) mix_free_buffer(executable->kept, executable->kept_bytes);
  mix_free(executable->stamps);
}

bool mix_host_make_kept(mix_executable *executable) {
  const int variables = executable->plan->variable_count;
  if (!executable->kept_bytes) return true;
  if (executable->keeps_packed && !reserve(executable)) return false;
  executable->stamps = mix_calloc((size_t)variables + 1, sizeof *executable->stamps);
  if (!executable->stamps) return false;
  char *at = executable->kept = mix_alloc_buffer(executable->kept_bytes);
  for (int i = 0; at && i < executable->plan->step_count; i++) {
    mix_host_step *host = &executable->steps[i];
    if (!host->keeps) continue;
    host->args.kept = at;
    at += mix_buffer_aligned(host->kernel->kept(&host->args));
  }
  return at != NULL;
}

void mix_host_begin_steps(mix_executable *executable, const mix_team *team) {
  for (int i = 0; i < executable->plan->step_count && executable->kept_bytes; i++) {
    mix_host_step *step = &executable->steps[i];
    if (step->keeps && !(step->serial && team->rank))
      step->kernel->begin(&step->args, step->serial ? &mix_team_alone : team);
  }
}

static bool is_stale(const mix_executable *executable, int number, const uint64_t *stamps) {
  const mix_plan *plan = executable->plan;
  const mix_step *step = &plan->steps[number];
  if (!executable->made || !stamps) return true;
  const unsigned lasting = executable->steps[number].args.lasting;
  for (int i = 0; i < step->input_count && i < 32; i++) {
    const int variable = plan->slots[step->inputs[i]].index;
    if (lasting >> i & 1 && stamps[variable] != executable->stamps[variable]) return true;
  }
  return false;
}

static void keep_share(void *context, int stage, int share) {
  mix_executable *executable = context;
  (void)stage;
  const mix_float_control host_modes = mix_host_modes_begin(executable);
  for (int i = 0; i < executable->plan->step_count; i++) {
    mix_host_step *step = &executable->steps[i];
    if (step->stale && !(step->serial && share))
      step->kernel->begin(&step->args, step->serial
                                           ? &mix_team_alone
                                           : &(const mix_team){.rank = share, .size = executable->threads});
  }
  mix_float_modes_end(&host_modes);
}

bool mix_host_keep_changed(mix_executable *executable, const uint64_t *stamps) {
  bool any = false;
  for (int i = 0; i < executable->plan->step_count; i++) {
    mix_host_step *step = &executable->steps[i];
    any |= step->stale = step->keeps && is_stale(executable, i, stamps);
  }
  if (!any) return true;
  const mix_crew_work work = {&(const mix_crew_stage){.shares = executable->threads}, 1, keep_share,
                              executable};
  const mix_crew_result result =
      executable->threads > 1 ? mix_crew_run(&work, executable->threads) : MIX_CREW_TOO_FEW;
  for (int share = 0; result == MIX_CREW_TOO_FEW && share < executable->threads; share++)
    keep_share(executable, 0, share);
  if (result == MIX_CREW_FAILED) return false;
  for (int i = 0; stamps && i < executable->plan->variable_count; i++) executable->stamps[i] = stamps[i];
  return executable->made = true;
}
