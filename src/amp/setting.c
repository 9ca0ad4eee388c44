/* The process-wide setting of the rewrite. */
#include "amp/setting.h"

static atomic_int chosen; /* mix_dtype */
static mix_amp_observer watching;
static void *watching_context;

static _Thread_local const mix_amp_explaining *own;

const mix_amp_explaining *mix_amp_explain_set(const mix_amp_explaining *explaining) {
  const mix_amp_explaining *former = own;
  own = explaining;
  return former;
}

void mix_amp_observe(mix_amp_observer observer, void *context) {
  watching = observer;
  watching_context = context;
}
void mix_amp_observed(const struct mix_amp_result *result) {
  if (own)
    own->observer(own->context, result);
  else if (watching)
    watching(watching_context, result);
}

void mix_amp_set_target(mix_dtype target) { atomic_store(&chosen, (int)target); }
mix_dtype mix_amp_target(void) { return own ? own->target : (mix_dtype)atomic_load(&chosen); }

uint64_t mix_amp_key(void) {
  mix_dtype target = mix_amp_target();
  return target == MIX_DTYPE_NONE ? 0 : mix_amp_environment_key() ^ (uint64_t)target;
}

bool mix_amp_setting_options(mix_dtype target, mix_amp_options *options) {
  *options = (mix_amp_options){0};
  if (!mix_amp_options_from_environment(options)) return false;
  options->mode = target == MIX_BFLOAT16 ? MIX_AMP_ONEDNN_BFLOAT16 : MIX_AMP_CUDA_FLOAT16;
  options->has_gpu = target == MIX_FLOAT16;
  /* nodes of a captured function have no device, and a GPU would claim them in the oneDNN mode */
  options->simulate_gpu = false;
  options->architecture[0] = 8;
  options->architecture[1] = 0;
  options->cuda = 11050;
  options->cudnn = 8302;
  return true;
}
