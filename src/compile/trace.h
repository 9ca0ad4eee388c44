/* Traces of runs: plans are described once, runs recorded, and all of it written as text at the end. */
#pragma once

#include "compile/compile.h"

extern atomic_bool mix_trace_takes_runs;
static inline bool mix_tracing(void) {
  return atomic_load_explicit(&mix_trace_takes_runs, memory_order_relaxed);
}

/* A run of the plan, unless it is one to skip (NULL). NULL with the error recorded: out of memory. */
mix_trace_run *mix_trace_begin_run(mix_compiled *compiled);
void mix_trace_end_run(mix_trace_run *run);

/* Work of the input pipeline, or the wait for it, on this thread, if the trace takes runs now: `begin` is
 * what mix_trace_begin_input returned. The name is constant. */
static inline int64_t mix_trace_begin_input(void) { return mix_tracing() ? mix_trace_now() : 0; }
void mix_trace_end_input(const char *name, int64_t begin);

/* False: one has been started already, or out of memory, both recorded. */
bool mix_trace_begin(const char *path, int64_t skip, int64_t steps);
/* Ends it, when its runs have ended. Gives its path and its text, which the caller frees (mix_free). False
 * with the error recorded: none has been started, or out of memory. */
bool mix_trace_end(char **path, char **text);
