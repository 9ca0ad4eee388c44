/* Ordering steps: from the nodes of the IR to the steps and slots of a plan. */
#pragma once

#include "compile/compile.h"

/* Fills compiled->plan from compiled->ir, memory included. False with the error recorded. */
bool mix_make_plan(mix_compiled *compiled);
