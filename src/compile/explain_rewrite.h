/* What the automatic mixed precision rewrite does to a graph, without compiling it. */
#pragma once

#include "amp/setting.h"
#include "ir/ir.h"

/* Runs the passes on a graph from before them, with the rewrite to `target` whatever the process's setting,
 * and hands each result to the observer: of the graph, and of the bodies of its loops. False with the error
 * recorded, which begins with `call`; ValueError if the rewrite has nothing to say of such a graph. */
bool mix_explain_rewrite(mix_ir *ir, mix_dtype target, const mix_amp_explaining *explaining,
                         const char *call);
/* The results as tables; mix_free it. NULL with the error recorded. */
char *mix_rewrite_tables(mix_ir *ir, mix_dtype target, const char *call);
