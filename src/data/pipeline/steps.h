/* The steps of a data set: itself and all its inputs, each once however often it is used. */
#pragma once

#include "data/pipeline/pipeline.h"

typedef struct mix_steps {
  mix_dataset **items; /* borrowed; each step before its inputs */
  int count, capacity;
} mix_steps;

/* Collects the steps, in time linear in their number and without recursion. `with_state`: not below a step
 * that handles its input's state itself. False with the error recorded; clear the steps also then. */
bool mix_steps_collect(mix_steps *steps, mix_dataset *dataset, bool with_state);
void mix_steps_clear(mix_steps *steps);
