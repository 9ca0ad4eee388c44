/* Checkpoints of loops: a loop keeps the carry of every n-th step alone, and its gradient repeats the n steps
 * between two of them before it needs their values. The planner asks for it loop by loop, after all passes: a
 * repeated step then consists of the same kernels, on equal operands. */
#pragma once

#include "ir/ir.h"

/* A loop and that of its gradient, which reads values of its steps. */
typedef struct mix_loop_pair {
  int forward, backward; /* nodes */
  int64_t steps;
  size_t carry_bytes; /* kept for each chunk of steps */
  size_t step_bytes;  /* of a step, what nothing but the gradient reads */
} mix_loop_pair;

/* The pairs whose steps may be repeated: their number, or -1 with the error recorded. `pairs` is in the ir's
 * memory. The ir is sorted. */
int mix_ir_find_loop_pairs(mix_ir *ir, mix_loop_pair **pairs);
/* The bytes that are alive in the gradient of a pair for values of steps, where every n-th carry is kept:
 * those of all chunks, and the values of one. `every` 0: all that the loop keeps as it is. */
size_t mix_loop_pair_bytes(const mix_loop_pair *pair, int64_t every);
/* The n for which that is least; divisors of the number of steps come first where they are about as good,
 * since others copy the inputs of the loops. */
int64_t mix_loop_pair_least(const mix_loop_pair *pair);
/* Makes the loop keep every n-th carry, 1 <= every <= steps, and its gradient repeat the steps. Other nodes
 * that came after the gradient read what the gradient has repeated. Leaves the ir sorted, numbers of nodes
 * change. False with the error recorded. */
bool mix_ir_keep_every(mix_ir *ir, const mix_loop_pair *pair, int64_t every);
/* For tests: plans of loops keep every n-th carry where their steps are more than that. 0: as is. */
void mix_keep_every_set(int64_t every);
/* What the setting asks of a graph. */
bool mix_ir_keep_as_set(mix_ir *ir);
