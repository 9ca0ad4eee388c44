/* Whether captured functions are rewritten: a process-wide setting, part of the environment of a capture. */
#pragma once

#include "amp/active_lists.h"

/* MIX_FLOAT16 or MIX_BFLOAT16: later captures are rewritten to this dtype; MIX_DTYPE_NONE (default): no
 * rewrite. Earlier captures keep their setting. */
void mix_amp_set_target(mix_dtype target);
mix_dtype mix_amp_target(void);
/* A hash of the setting and the list edits: equal keys give equal rewrites. */
uint64_t mix_amp_key(void);
/* The options for captured functions: TensorFlow's CUDA mode for float16 and oneDNN mode for bfloat16, with
 * level and edits from the environment variables. The device of the plan does not matter, so that decisions
 * do not depend on the machine. False with the error recorded. */
bool mix_amp_setting_options(mix_dtype target, mix_amp_options *options);

/* The observer of all later rewrites of captured functions (NULL: none), one for the process, called on the
 * capturing thread. */
struct mix_amp_result;
typedef void (*mix_amp_observer)(void *context, const struct mix_amp_result *result);
void mix_amp_observe(mix_amp_observer observer, void *context);
void mix_amp_observed(const struct mix_amp_result *result);

/* Instead of the setting and the observer, on this thread. NULL: those of the process again. Returns what was
 * set before. */
typedef struct mix_amp_explaining {
  mix_dtype target;
  mix_amp_observer observer;
  void *context;
} mix_amp_explaining;
const mix_amp_explaining *mix_amp_explain_set(const mix_amp_explaining *explaining);
