/* Decisions: finite checks (the loss scale depends on float16 overflow), comparisons, casts to integers,
 * floor and the like. Under jit_compile what feeds one through element-wise operations and movements is
 * rounded as without it (docs/NUMERICS.md). */
#pragma once

#include "ir/ir.h"

/* Where a node decides, or where a value that it makes is marked in `decisive`, marks its operands there, and
 * in `registers` those of its program (as many as loads and instructions; NULL for graphs before fusion). */
void mix_ir_mark_decisive(const mix_ir *ir, const mix_ir_node *node, bool *decisive, bool *registers);
/* The values that feed decisions of a graph before fusion, in its memory. NULL with the error recorded. */
bool *mix_ir_decisive_values(mix_ir *ir);
