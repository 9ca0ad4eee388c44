/* Analyses for element-wise fusion: the guard under which the uses of each node stand, and the nodes that are
 * cheaper to recompute than to store (the unscaled gradient, which both the finite check and the update
 * use). */
#pragma once

#include "ir/ir.h"

/* Can the node be an instruction of a program? */
bool mix_ir_fusable(const mix_ir_node *node);
/* Is it the finite check of one tensor, which can end a program? */
bool mix_ir_finite_check(const mix_ir_node *node);
/* Is it a sum or mean of a floating operand which can end a program: of all elements, of each row (the last
 * axes) or of each column (the first axes)? */
bool mix_ir_sum(const mix_ir *ir, const mix_ir_node *node);
/* The sum as the end of a program: of rows or columns; of neither if it is of all elements. */
mix_program_sum mix_ir_sum_form(const mix_ir *ir, const mix_ir_node *node);
/* Is the value that of a contraction which takes an epilogue, possibly reshaped? */
bool mix_ir_is_product(const mix_ir *ir, int value);
/* Does it replace parts of its operand (MIX_OP_UPDATES)? */
bool mix_ir_update(const mix_ir_node *node);
/* By node: how many products, or other nodes that end a program, lie on the longest way to it and are it. In
 * the ir's memory; NULL with the error recorded. The ir is sorted. */
int *mix_ir_stages(mix_ir *ir);
/* recompute.c: computes the operands of sums again where they are used after the sum. */
bool mix_ir_recompute(mix_ir *ir);
/* The large operand of a node that costs less than a store: a cast, sum, product or the like, of one large
 * value, no larger than the result, and others that are much smaller. -1: it is none. */
int mix_ir_cheap_operand(const mix_ir *ir, int node);
/* recompute_later.c: computes cheap values again after products that end what they were computed in. */
bool mix_ir_recompute_later(mix_ir *ir);
/* recompute_later.c: computes cheap values again after sums, from the narrower values that they come from. */
bool mix_ir_recompute_narrow(mix_ir *ir);
/* Sets guard_key of every node. Clones cheap nodes whose uses stand under different guards. Leaves the ir
 * sorted. */
bool mix_ir_guard_keys(mix_ir *ir);
