/* The steps of a data set: itself and all its inputs, each once however often it is used. */
#pragma once

#include "data/pipeline/pipeline.h"

typedef struct mix_steps {
  mix_dataset **items; /* borrowed; each step before its inputs */
  int count, capacity;
} mix_steps;

typedef enum mix_steps_reach {
  MIX_STEPS_ALL,
  MIX_STEPS_WITH_STATE, /* not below a step that handles its input's state itself */
  MIX_STEPS_OF_RECEIVER /* not below a step that has its elements made on threads */
} mix_steps_reach;

/* Collects the steps, in time linear in their number and without recursion. False with the error recorded;
 * clear the steps also then. */
bool mix_steps_collect(mix_steps *steps, mix_dataset *dataset, mix_steps_reach reach);
void mix_steps_clear(mix_steps *steps);
