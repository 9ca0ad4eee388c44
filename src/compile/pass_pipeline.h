/* Runs the passes, which are in passes/ and amp/, in order. */
#pragma once

#include "passes/passes.h"

/* Runs all passes, in order. */
bool mix_passes_run(mix_ir *ir);
/* Replays the first `count` passes on a copy of the captured graph. Nothing is logged or reported. */
bool mix_passes_replay(mix_ir *ir, int count);
/* Runs one pass, even if it is disabled. False with the error recorded, also for an unknown name. */
bool mix_passes_run_one(mix_ir *ir, const char *name);
/* The name of pass `index`; NULL after the last. */
const char *mix_pass_name(int index);
/* A hash of the list of disabled passes: part of the key of compiled functions. */
uint64_t mix_passes_key(void);
