/* Whether captured functions are rewritten: one choice for the process, part of the environment that a capture depends on. */
#ifndef MIX_AMP_SETTING_H
#define MIX_AMP_SETTING_H

#include "amp/lists.h"
#include <mixtape/dtype.h>

/* MIX_FLOAT16 or MIX_BFLOAT16: functions that are captured from now on are rewritten to it; MIX_DTYPE_NONE (the beginning): none. Captures
 * made under another choice stay with that choice. */
void mix_amp_set_target(mix_dtype target);
mix_dtype mix_amp_target(void);
/* Says which choice is in force, with which edits of the lists: equal keys, equal rewrite. */
uint64_t mix_amp_key(void);
/* What the rewrite of a captured function is told: the CUDA mode of TensorFlow for float16, the oneDNN mode for bfloat16 (whatever device the
 * plan runs on: decisions do not depend on the machine), with the environment variables' level and edits. False with the error recorded. */
bool mix_amp_setting_options(mix_dtype target, mix_amp_options *options);

/* Who is told of every rewrite of a captured function from now on (NULL: nobody): the report of the program. On the thread that captures,
 * one for the process. */
struct mix_amp_result;
typedef void (*mix_amp_observer)(void *context, const struct mix_amp_result *result);
void mix_amp_observe(mix_amp_observer observer, void *context);
void mix_amp_observed(const struct mix_amp_result *result);

#endif
