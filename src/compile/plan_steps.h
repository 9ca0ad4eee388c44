/* Ordering steps: from the nodes of the IR to the steps and slots of a plan. */
#pragma once

#include "compile/compile.h"

/* Fills compiled->plan from compiled->ir, memory included. False with the error recorded. */
bool mix_make_plan(mix_compiled *compiled);
/* Has its result the memory of operand 0, without a step? */
bool mix_node_is_view(const mix_ir_node *node);
/* failing_nodes.c: by node, can it fail on the values that it meets, though no earlier one has? `base`: value
 * -> the value whose memory it shares. In the ir's memory; NULL: out of memory. */
bool *mix_failing_nodes(mix_ir *ir, const int *base);
