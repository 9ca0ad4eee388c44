/* A crew: the threads that help the calling thread with its work, kept until it ends. Work is cut into
 * shares, and a thread that finds one of the others not there does its share too, so that nobody waits for a
 * thread that has no processor, unless it has begun a share. Who does which share depends on the machine's
 * load; the shares do not. */
#pragma once

#include <stdbool.h>

/* Stages follow each other: a share begins when all shares of the stages before have ended. */
typedef struct mix_crew_stage {
  int shares;
  bool together;     /* the shares wait for each other: one thread each */
  bool caller_first; /* share 0 is done by the thread that calls mix_crew_run */
} mix_crew_stage;

typedef struct mix_crew_work {
  const mix_crew_stage *stages;
  int stage_count;
  void (*run)(void *context, int stage, int share);
  void *context;
} mix_crew_work;

typedef enum mix_crew_result {
  MIX_CREW_DONE,
  MIX_CREW_TOO_FEW, /* there are fewer threads (inside a parallel region, or in a forked child): nothing ran
                     */
  MIX_CREW_FAILED,  /* threads cannot be created, which is recorded: nothing ran */
} mix_crew_result;

/* Runs the work on up to `threads` threads, this one included; shares are at most as many. */
mix_crew_result mix_crew_run(const mix_crew_work *work, int threads);
