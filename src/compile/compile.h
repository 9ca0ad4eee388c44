/* Compiling: turns the IR into a plan (plan_steps.c, memory_plan.c) and that into an executable. */
#pragma once

#include "backend/backend.h"
#include <mixtape/device.h>
#include <mixtape/function.h>

typedef struct mix_compiled {
  mix_ir *ir;
  mix_plan plan;       /* arrays in the ir's memory */
  mix_context context; /* that it was compiled for */
  mix_executable *executable;
  mix_type *results;
  mix_memory **variables; /* of the run that is being enqueued */
  uint64_t *stamps;       /* the same (mix_variable_stamp) */
  const void **names;     /* the variables themselves (mix_plan.variable_names) */
  bool without_panels;    /* the plan keeps nothing packed, to fit a budget */
  mix_plan_report report;
  int64_t trace;                  /* the latest trace that it is described in (trace.c), */
  int traced;                     /* and its number there */
  struct mix_lifetime *lifetimes; /* of the values in the arena */
  int lifetime_count;
  mix_ir *captured;   /* a copy from before the passes; NULL unless requested */
  const char **texts; /* snapshots as text, made on first request (ir_snapshots.c) */
  mix_ir *original;   /* what `ir` is a copy of, from which it borrows; freed after it, or NULL */
} mix_compiled;

/* Runs the passes, plans and compiles for a context (NULL: the default one). Takes ownership of the ir.
 * `stages`: snapshots of the passes will be requested. NULL with the error recorded. */
mix_compiled *mix_compile(mix_ir *ir, const mix_context *context, bool stages);
void mix_compiled_free(mix_compiled *compiled);
/* Compiles the plan and fills the report. False with the error recorded. */
bool mix_compile_plan(mix_compiled *compiled);
/* Compiles the plan once more, to keep nothing packed between runs. False with the error recorded. */
bool mix_compile_without_panels(mix_compiled *compiled);
/* Begins a run; arena NULL: one of its own. Variables move to the device. 0 with the error recorded. */
mix_ticket mix_compiled_enqueue(mix_compiled *compiled, mix_memory *const *arguments,
                                mix_memory *const *results, mix_memory *arena);
/* The same, and waits. False with the error recorded. */
bool mix_compiled_run(mix_compiled *compiled, mix_memory *const *arguments, mix_memory *const *results,
                      mix_memory *arena);
static inline const mix_memory_device *mix_compiled_device(const mix_compiled *compiled) {
  return compiled->context.backend->memory;
}
/* step_bytes.c: bytes of a step's operands and results. */
size_t mix_step_bytes(const mix_plan *plan, const mix_step *step);
/* Runs one pass, even if it is disabled. False with the error recorded, also for an unknown name. */
bool mix_pass_run(mix_ir *ir, const char *name);

/* oom_report.c: if the pending error is out of memory, adds the plan's largest value to its message. */
void mix_compiled_name_largest(const mix_compiled *compiled);

/* memory_plan.c: gives every arena value an offset such that values alive at the same step do not overlap. */
typedef struct mix_lifetime {
  int slot, first, last; /* steps, inclusive */
  size_t bytes, offset;
  struct mix_lifetime *below; /* while it is placed: in a stack of ended ones */
} mix_lifetime;
bool mix_plan_memory(mix_ir *ir, mix_lifetime *lifetimes, int count, size_t *arena_bytes);
/* least_memory.c: sets copy_bytes and least_bytes of the report, which has the rest. False: out of memory. */
bool mix_plan_least_memory(mix_compiled *compiled);
/* least_memory.c: has the value the shape of a weight that the plan writes? */
bool mix_plan_of_weight(const mix_ir *ir, mix_shape shape);
/* Lifetimes and offsets of all arena slots of the plan. `base`: value -> the value whose memory it shares. */
bool mix_plan_arena(mix_compiled *compiled, const int *base);

/* speculative_update.c: an update that waits for a finite test is fused with the product that computes its
 * gradient, guarded by a bound on the operands that proves the gradient finite. `base`: value -> the value
 * whose memory it shares, one entry a value. False: out of memory. */
bool mix_plan_speculative_updates(mix_ir *ir, mix_plan *plan, const int *base);

/* inplace.c: the slot of an operand of step `number` whose memory its result `output` can take over; -1:
 * none. `owner`: slot -> the slot that owns its memory. `last`: the last step that accesses a slot's
 * memory. */
int mix_plan_taken_over(const mix_backend *backend, const mix_plan *plan, const int *owner, const int *last,
                        int number, int output);

/* ir_snapshots.c: the IR at a stage of its compilation as text, which lives as long as `compiled`. Stages are
 * "captured" (or "graph"), a pass name with "before ", "after " or no prefix, "passes" (after all of them),
 * and "plan". A graph between passes is replayed, which requires that the environment is still that of the
 * compilation (`repeatable`). NULL with the error recorded. */
const char *mix_compiled_text(mix_compiled *compiled, const char *stage, bool repeatable);

/* plan_text.c: the step at which most arena bytes are alive. */
int mix_plan_peak_step(const mix_compiled *compiled, size_t *peak);
/* Each step with kernel and memory, and the values alive at the peak. In the ir's memory. */
const char *mix_plan_text(mix_compiled *compiled);
