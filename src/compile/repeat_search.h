/* Which steps of a plan to run a second time, so that fewer bytes are alive at its peak: a search over sets
 * of steps whose results are dropped after a boundary, the step at which most is alive. */
#pragma once

#include "ir/ir.h"

typedef struct mix_repeat_step {
  int read_count, write_count;
  int *reads, *writes; /* values, each once */
  unsigned *lends;     /* by write: bit i: it can take the memory of read i, if nobody reads that later */
  double seconds;      /* estimated */
  bool may_repeat;
  bool trims;       /* a second run computes no result that nobody reads */
  bool reads_first; /* copies of results: from the first run of what they read */
} mix_repeat_step;

typedef struct mix_repeat_problem {
  mix_ir *ir; /* its memory is used */
  int step_count, value_count;
  mix_repeat_step *steps;
  size_t *bytes;        /* by value */
  int *maker;           /* by value: the step that computes it; -1: none */
  uint64_t visits_left; /* steps that searches may still look at; below 0 steps one simulation is left */
} mix_repeat_problem;

/* What a set of dropped steps gives: the most bytes alive at once and where (a step of the problem), and the
 * seconds of what runs again. */
typedef struct mix_repeat_outcome {
  size_t peak;
  int peak_step;
  double seconds;
} mix_repeat_outcome;

/* The plan with these steps dropped (by step; they are at or before the boundary): each dropped step runs
 * again before the first step after the boundary that needs it. `repeated` (by step, may be NULL) tells which
 * do. False: out of memory. */
bool mix_repeat_simulate(mix_repeat_problem *problem, int boundary, const bool *dropped, bool *repeated,
                         mix_repeat_outcome *outcome);
/* Finds the set of least seconds whose peak is at most `target`, or the set of the least peak: families of
 * segments between kept values, of which the steps that free most bytes for their time are dropped first, and
 * then single changes. `dropped` has the steps that run again. False: out of memory. */
bool mix_repeat_search(mix_repeat_problem *problem, int boundary, size_t target, bool *dropped,
                       mix_repeat_outcome *outcome);
