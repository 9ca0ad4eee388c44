#include "compile/budget_warning.h"
#include "base/error.h"
#include <stdatomic.h>
#include <stdio.h>

/* In MiB, which tell apart what GiB would round to the same. */
static double mebibytes(uint64_t bytes) { return (double)bytes / (1 << 20); }

const char *mix_budget_warning(size_t budget, mix_machine_memory memory, char *text, size_t size) {
  const bool limited = memory.limit && (!memory.physical || memory.limit < memory.physical);
  const uint64_t least = limited ? memory.limit : memory.physical;
  if (!least || budget <= least) return NULL;
  snprintf(
      text, size,
      "the memory budget of %.0f MiB is above the %.0f MiB that %s; a plan that fits the budget may still "
      "run out of memory: set less by --memory, MIXTAPE_MEMORY or mix_set_memory_budget",
      mebibytes(budget), mebibytes(least),
      limited ? "this process's control group allows" : "this machine has");
  return text;
}

void mix_warn_of_budget(size_t budget) {
  static atomic_size_t warned;
  char text[320];
  if (!budget || atomic_exchange(&warned, budget) == budget) return;
  if (mix_budget_warning(budget, mix_find_machine_memory(""), text, sizeof text))
    mix_log_message(MIX_LOG_WARNING, "%s", text);
}
