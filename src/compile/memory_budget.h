/* Plans that fit a budget of bytes (mix_set_memory_budget). */
#pragma once

#include "compile/compile.h"
#include "compile/repeat_search.h"

/* mix_compile for the default context and the budget in force: plans again, with steps that run twice or
 * without 16-bit copies of weights, until the plan takes at most so many bytes. NULL with the error recorded;
 * of a plan that does not fit it has the smallest budget that was found and what takes the bytes. */
mix_compiled *mix_compile_to_budget(mix_ir *ir, bool stages);

/* ---- its parts ---- */

/* repeat_problem.c: the plan for the search. False: out of memory. */
bool mix_repeat_problem_of(const mix_compiled *compiled, mix_repeat_problem *problem);
/* An estimate of a step's time on one core. */
double mix_step_seconds(const mix_plan *plan, const mix_step *step);
/* The node that a step comes from; -1: none, as for copies at the end of a plan. */
int mix_step_node(const mix_compiled *compiled, const mix_step *step);
/* By slot: the slot whose memory it is, of views another. In the ir's memory; NULL: out of memory. */
int *mix_slot_owners(const mix_compiled *compiled);
/* repeat_steps.c: puts the nodes in the order of the plan's steps, which deferred writes change: what is
 * found in this order then holds for the plan that is made of it. Sources come first, views after what they
 * show. */
bool mix_order_as_planned(mix_compiled *compiled);
/* Plans again with steps that run twice, so that the arena takes at most `target` bytes, or
 * as few as was found. Sets recomputed_nodes and recomputed_bytes of the report. The bits are the same.
 * `visits` bounds the search, which uses them up. False with the error recorded. */
bool mix_plan_repeats(mix_compiled *compiled, size_t target, uint64_t *visits);
/* repeat_steps.c: plans the graph as it is now and forgets the plan before. False with the error recorded. */
bool mix_plan_again(mix_compiled *compiled);
/* repeat_loops.c: plans again with loops that keep every n-th carry, the largest first, until the plan takes
 * at most so many bytes or there is none left. `any`: was there one? False with the error recorded. */
bool mix_plan_repeat_loops(mix_compiled *compiled, size_t budget, bool *any);
/* count_repeats.c: sets recomputed_nodes and recomputed_bytes of the report. */
void mix_count_repeats(mix_compiled *compiled);
/* budget_report.c: the error of a plan that does not fit. */
void mix_fail_over_budget(const mix_compiled *least, size_t budget);
