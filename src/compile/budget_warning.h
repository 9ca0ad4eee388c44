/* A budget of memory that the machine does not have. */
#pragma once

#include "base/machine_memory.h"
#include <stddef.h>

/* Warns, once for each budget, where it is above the memory of the machine or of its control groups: plans
 * may fit the budget, and the process still runs out of memory. */
void mix_warn_of_budget(size_t budget);
/* The warning in `text`; NULL: none is due. */
const char *mix_budget_warning(size_t budget, mix_machine_memory memory, char *text, size_t size);
