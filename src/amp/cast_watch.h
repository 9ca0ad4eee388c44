/* Follows the casts of a rewritten function through later passes. */
#pragma once

#include "amp/rewrite.h"
#include "ir/ir.h"

typedef struct mix_cast_watch mix_cast_watch;

/* Starts after the rewrite. `inserted`: the results of its casts. `own`: by graph node, the result of a Cast
 * that was there before, or -1. Both are in the ir's memory. */
bool mix_cast_watch_begin(mix_ir *ir, mix_amp_result *result, const int *inserted, const int *own);
/* After a pass: records the casts that it removed. */
void mix_cast_watch_pass(mix_ir *ir, const char *pass);
/* Reports the rewrite once, to the log and the observer (amp/setting.h). Does nothing if there was no
 * rewrite. */
void mix_cast_watch_end(mix_ir *ir);
