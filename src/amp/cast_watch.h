/* What later passes make of the casts of a rewritten function. */
#ifndef MIX_AMP_CAST_WATCH_H
#define MIX_AMP_CAST_WATCH_H

#include "amp/rewrite.h"
#include "ir/ir.h"

typedef struct mix_cast_watch mix_cast_watch;

/* Begins behind the rewrite. `inserted`: the results of its casts; `own`: by node of its graph, the result of a Cast that was there before, or
 * -1; both in the ir's memory. */
bool mix_cast_watch_begin(mix_ir *ir, mix_amp_result *result, const int *inserted, const int *own);
/* After a pass, which may have removed some. */
void mix_cast_watch_pass(mix_ir *ir, const char *pass);
/* Tells the log and the observer (compile/amp/setting.h) of the rewrite, once; without a rewrite nothing. */
void mix_cast_watch_end(mix_ir *ir);

#endif
