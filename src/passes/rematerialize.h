/* What element-wise fusion asks before it groups: under which guard the uses of each node stand, and which nodes are cheaper to
 * compute again than to store (the unscaling of a gradient, wanted by the finite check and by the update). */
#ifndef MIX_PASSES_REMATERIALIZE_H
#define MIX_PASSES_REMATERIALIZE_H

#include "ir/ir.h"

/* Can the node be an instruction of a program? */
bool mix_ir_fusable(const mix_ir_node *node);
/* Is it the finite check of one tensor, which can end a program? */
bool mix_ir_finite_check(const mix_ir_node *node);
/* Is it the sum or mean of all elements of a floating operand, or of each of its rows (the last axes), which may end a program? */
bool mix_ir_sum(const mix_ir *ir, const mix_ir_node *node);
/* recompute.c */
bool mix_ir_recompute(mix_ir *ir);
/* Sets guard_key of every node, cloning cheap nodes whose uses stand under different guards; leaves the ir sorted. */
bool mix_ir_guard_keys(mix_ir *ir);

#endif
