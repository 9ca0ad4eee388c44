/* Storages that variables have left while runs of other threads may read them. Such runs take no lock and
 * hold no reference: what they may read is released when none of them goes on. */
#pragma once

#include "tensor/memory.h"

/* Around a run that reads the storages of variables, and around the look at which ones these are. */
void mix_runs_begin(void);
void mix_runs_end(void);
/* With the graph locked: the storage at `place` is `memory` from now on, whose reference it takes; the former
 * one is released as soon as no run can read it. False with the error recorded, and nothing has changed. */
bool mix_storage_swap(_Atomic(mix_memory *) *place, mix_memory *memory);
