/* Repeats nodes, so that what they compute need not be kept in memory until its last reader. Kernels give the
 * same bits for the same operands, so a repeated node changes none. It comes after all passes: cse would
 * merge a node and its clone. */
#pragma once

#include "ir/ir.h"

/* A clone of `node` runs directly before `before`, which comes later in the order of the ir. */
typedef struct mix_repeat {
  int node, before;
} mix_repeat;

/* May the node run a second time? Not what is stateful or collective, writes over an operand, or is a source.
 * A random op may: its values depend on its state operand alone. */
bool mix_ir_may_repeat(const mix_ir_node *node);
/* What must be repeated if the results of nodes marked in `dropped` are not kept for the nodes marked in
 * `late`: each dropped node at most once, before the first late node that needs it, with the dropped nodes
 * that it reads before it. Marks are by node; a late node is not dropped. `repeats` has room for every node.
 * Returns how many there are, in order; -1 with the error recorded. The ir is sorted. */
int mix_ir_find_repeats(mix_ir *ir, const bool *dropped, const bool *late, mix_repeat *repeats);
/* Inserts the clones, in the order of the list, which is sorted by `before`. From each clone on, the nodes
 * that read the results of its node read the clone's, other clones included; results of the graph and new
 * values of variables stay the first node's. A clone computes no result that nobody reads, where its node is
 * a program that stores several. Clones are marked `repeated` and `backward`. The ir stays sorted; indices of
 * nodes change, numbers of values do not. False with the error recorded. */
bool mix_ir_repeat_nodes(mix_ir *ir, int count, const mix_repeat *repeats);
/* Puts all nodes in this order, which is an order of operands before uses. False: out of memory. */
bool mix_ir_set_order(mix_ir *ir, const int *order);
