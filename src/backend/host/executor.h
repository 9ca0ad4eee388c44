/* The executor of the host backends. It compiles a plan into a list of kernels, and runs them by the crew of
 * the calling thread (base/crew.h). */
#pragma once

#include "backend/host/barrier.h"
#include "backend/host/host.h"
#include "base/crew.h"
#include "base/float_modes.h"

typedef struct mix_host_bands mix_host_bands; /* host/bands.h */

typedef struct mix_host_step {
  mix_kernel_args args;
  const mix_kernel *kernel;
  const bool *guard;     /* the step runs only if true; NULL: always */
  mix_value_error error; /* one a step, so that a message can name the step */
  bool serial, barrier_before, writes_variable;
  bool prepared;               /* the kernel's prepare succeeded */
  struct mix_panels *panels;   /* args.kept, which is filled before a loop, or before runs; NULL: nothing */
  int kept_operand;            /* the one variable that it is made of; -1: of several, or before a loop */
  bool claimed;                /* it is made now, because a variable has changed */
  const mix_host_bands *bands; /* the step runs in these; NULL: by itself */
  uint64_t reread;             /* in bands: bit i is set if later steps read output i */
  bool late;                   /* in bands: some outputs are written after all bands */
} mix_host_step;

/* An address to rewrite when a binding changes. */
typedef struct mix_patch {
  void *where; /* a pointer object */
  size_t offset;
} mix_patch;

struct mix_executable {
  const mix_plan *plan;
  const mix_kernel_row *const *tables;
  int threads;
  mix_matmul_precision precision;
  bool parallel; /* some step runs on the whole team */
  bool flush_subnormals;
  mix_host_step *steps;
  const void **inputs; /* the address arrays of all steps, concatenated */
  void **outputs;
  mix_type *values;
  /* Bindings: the arguments, then the results, then the arena. Patches [first[b], first[b + 1]) belong to
   * binding b. */
  int binding_count;
  int *first;
  void **bound; /* the address of each binding in the last run */
  mix_patch *patches;
  void *workspace;
  size_t workspace_bytes, kept_bytes;
  bool keeps_packed; /* what is made of variables */
  int barriers;
  mix_host_bands *bands;
  int band_count;
  char *own; /* own_bytes for each thread: values that only steps in bands use */
  size_t own_bytes;
  int *order; /* the steps as they run: bands bring some together */
  /* What threads do between two barriers: order[begins[s]] to order[begins[s + 1] - 1]. */
  mix_crew_stage *stages;
  int *begins;
  int stage_count;
  /* The plan compiled for one thread; made when there first are fewer threads than requested. NULL:
   * not made. */
  mix_executable *alone;
  /* The plan compiled to keep nothing of variables, for runs while others hold what is kept. NULL: not made.
   */
  mix_executable *packing;
  mix_trace_run *trace; /* of the present run; NULL: none */
  mix_barrier barrier;
  _Alignas(64) atomic_int failed_step; /* the first step that met a bad value; INT_MAX: none */
};

/* Sets the address of a binding: of the arguments, then the results, then the arena (of plans without
 * variables). */
void mix_host_bind(mix_executable *executable, int binding, void *address);
/* A thread of the crew may have modes of the host program. */
static inline mix_float_control mix_host_modes_begin(const mix_executable *executable) {
  return mix_float_modes_begin(MIX_FLOAT_DEFAULT | (executable->flush_subnormals ? MIX_FLUSH_SUBNORMALS : 0));
}
/* Gives a step memory for what its kernel keeps in a loop or between runs. False without an error: there is
 * none. */
bool mix_host_keep(mix_executable *executable, int number, size_t bytes);
void mix_host_free_kept(mix_executable *executable);
/* Before a run: makes anew what is kept of variables that have changed, and holds all of it until it is let
 * go. Stamps are read before values, so that what another thread changes meanwhile is made again. False with
 * the error recorded; without: other runs use it, or nothing is known of the variables. */
bool mix_host_hold_kept(mix_executable *executable, const uint64_t *stamps);
void mix_host_let_kept_go(mix_executable *executable);
/* Before a loop of mix_host_run_steps: makes what is kept of operands that stay the same. The team waits for
 * each other after it, if the executable has kept_bytes. */
void mix_host_begin_steps(mix_executable *executable, const mix_team *team);
/* Runs all steps on one thread of a team, inside a parallel region. */
void mix_host_run_steps(mix_executable *executable, const mix_team *team);
/* The number of threads to use for the plan, of at most `threads`: all, or one, on a processor with these
 * features (host/thread_count.c). 0: out of memory, recorded. */
int mix_host_thread_count(const mix_plan *plan, int threads, uint32_t features);
/* For tests and benchmarks: plans that are compiled from now on take all threads, however small they are. */
void mix_host_take_all_threads(bool all);
/* Places the barriers of a plan whose kernels have been chosen, and makes its stages
 * (host/place_barriers.c). False: out of memory, recorded. */
bool mix_host_schedule(mix_executable *executable);
