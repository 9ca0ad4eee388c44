/* All passes in their order (compile/pass_pipeline.c); the passes themselves are in passes/ and amp/. */
#ifndef MIX_COMPILE_PASS_PIPELINE_H
#define MIX_COMPILE_PASS_PIPELINE_H

#include "passes/passes.h"

/* All of them, in order. */
bool mix_passes_run(mix_ir *ir);
/* The first `count` of them, as mix_passes_run does, on a copy of what it was given: nothing is logged or told. */
bool mix_passes_replay(mix_ir *ir, int count);
/* One of them, whether switched off or not. False with the error recorded, also for a name that is none. */
bool mix_passes_run_one(mix_ir *ir, const char *name);
/* The name of the pass at this place of the order; NULL behind the last. */
const char *mix_pass_name(int index);
/* Says which are switched off: part of the key of compiled functions. */
uint64_t mix_passes_key(void);

#endif
