/* The bytes that steps of a plan access, whether two steps may run without waiting in between, and whether
 * one may fail. */
#pragma once

#include "backend/host/executor.h"

/* A range of bytes that a step accesses. in_order: thread r accesses exactly its mix_team_share(count, grain)
 * of the elements. In bands: of `count` rows; element is 0. */
typedef struct mix_range_access {
  int space, index; /* space: a mix_slot_kind, or that of the workspace */
  int operand;      /* in bands, of the step: inputs, then outputs; -1: guard or workspace */
  size_t begin, end, element;
  bool write, in_order;
  int64_t count, grain;
} mix_range_access;

typedef struct mix_access_set {
  mix_range_access *list;
  int count;
} mix_access_set;

/* The max number of accesses of a step. */
int mix_step_access_count(const mix_executable *executable, int step);
/* Sets *now to the accesses of a step on the team or, if it is serial, on thread 0. */
void mix_step_accesses(const mix_executable *executable, int step, mix_access_set *now);
/* The same in bands of `rows`. */
void mix_band_accesses(const mix_executable *executable, int step, int64_t rows,
                       const mix_band_access *access, mix_access_set *now);
/* Can a byte be written by one thread and accessed by another, if nobody waits between these accesses? */
bool mix_accesses_conflict(const mix_access_set *old, const mix_access_set *now);
/* May a value of an operand make the step fail? Programs, including epilogues, fail only by integer
 * arithmetic. */
bool mix_step_may_fail(const mix_step *step);
/* Do both access the same bytes? */
bool mix_same_range(const mix_range_access *a, const mix_range_access *b);
