/* Schedule and memory: the intermediate form as a plan, compiled for the backend in force. */
#ifndef MIX_COMPILE_COMPILE_H
#define MIX_COMPILE_COMPILE_H

#include "backend/backend.h"
#include "ir/ir.h"
#include <mixtape/device.h>
#include <mixtape/function.h>

typedef struct mix_compiled {
  mix_ir *ir;
  mix_plan plan;             /* arrays in the ir's memory */
  const mix_backend *backend;
  mix_executable *executable;
  mix_type *results;
  mix_plan_report report;
  struct mix_lifetime *lifetimes; /* of what lies in the arena */
  int lifetime_count;
  mix_ir *captured;          /* a copy from before the passes; NULL unless asked for */
  const char **texts;        /* of the stages, made when they are first asked for (stages.c) */
} mix_compiled;

/* Runs the passes, plans and compiles; takes over the ir. `stages`: its stages will be asked for. NULL with the error recorded. */
mix_compiled *mix_compile(mix_ir *ir, bool stages);
void mix_compiled_free(mix_compiled *compiled);
/* One pass, whether switched off or not. False with the error recorded, also for a name that is none. */
bool mix_pass_run(mix_ir *ir, const char *name);

/* shortage.c: where memory was refused to the plan, the pending error names its largest value too. */
void mix_compiled_name_largest(const mix_compiled *compiled);

/* memory.c: gives every arena value an offset so that those alive at the same step lie apart. */
typedef struct mix_lifetime {
  int slot, first, last; /* steps, inclusive */
  size_t bytes, offset;
} mix_lifetime;
bool mix_plan_memory(mix_ir *ir, mix_lifetime *lifetimes, int count, size_t *arena_bytes);

/* foresee.c: updates that wait for a finite test join the product that makes their gradient, where operands so small cannot make it
 * infinite. `base`: value -> the value whose memory it shares, of as many slots as there are values. False: out of memory. */
bool mix_plan_speculative_updates(mix_ir *ir, mix_plan *plan, const int *base);
/* Is it done for a gradient of so many bytes, the product of operands of so many? */
bool mix_plan_speculates(size_t gradient_bytes, size_t operand_bytes);

/* reuse.c: the slot of an operand of step `number` whose memory its result `output` may take over, element for element; -1: none.
 * `owner`: slot -> the slot that owns its memory; `last`: the last step that touches the memory of a slot. */
int mix_plan_taken_over(const mix_plan *plan, const int *owner, const int *last, int number, int output);

/* stages.c: the graph at a stage of its compilation as text, which lives as long as `compiled`: "captured" (or "graph"); the name of a
 * pass, with "before " or "after " (or nothing) in front; "passes", after them all; or "plan". The graph between passes is made anew,
 * which is only possible where `repeatable` says that the environment is still that of the compilation. NULL with the error recorded. */
const char *mix_compiled_text(mix_compiled *compiled, const char *stage, bool repeatable);

/* dump.c: each step with kernel and memory, and what lives at the peak. In the ir's memory. */
const char *mix_plan_text(mix_compiled *compiled);

#endif
