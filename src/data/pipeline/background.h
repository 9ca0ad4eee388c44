/* Threads that produce elements in the background. */
#pragma once

#include "data/pipeline/pipeline.h"

typedef struct mix_background mix_background;

/* The system's name of the threads, for `top -H` and debuggers. */
#define MIX_INPUT_THREAD "mixtape input"

typedef struct mix_background_options {
  mix_cursor *input; /* pulled by one thread at a time */
  /* or, where that is NULL, makes the next element, as a cursor does */
  mix_pull (*make)(void *context, mix_element *element);
  int threads;  /* >= 1 */
  int capacity; /* >= 1: max elements in production or ready */
  /* start with two elements in flight; double when the receiver waits although all slots had been full */
  bool grows;
  /* wake the workers only when half of the elements are taken: for elements of tens of microseconds, since a
   * call of the system to wake a thread costs the receiver a few */
  bool lazy;
  bool in_step;   /* mix_background_await_receiver waits */
  bool any_order; /* deliver elements in the order in which they get ready */
  /* Processes an element of the input, of which it is number `turn`; called by several threads at once, each
   * with its number below `threads`. NULL: nothing to do. On false an error is recorded, and the caller
   * releases the element's values. */
  bool (*work)(void *context, int thread, int64_t turn, mix_element *element);
  const char *name; /* of the work, or of what `make` makes; constant, for traces */
  void *context;
} mix_background_options;

/* NULL with the error recorded. */
mix_background *mix_background_start(const mix_background_options *options);
/* Waits for the next element. An error of the worker that made it becomes the caller's error. */
mix_pull mix_background_next(mix_background *background, mix_element *element);
/* On a thread that makes elements with `in_step`: waits until everything made before has been delivered and
 * the receiver waits for this element. Elsewhere it returns at once. False: the work has ended. */
bool mix_background_await_receiver(void);
/* False in a child by fork: its threads are in the parent. */
bool mix_background_is_here(const mix_background *background);
/* Waits until each thread has finished its current element, and drops elements that were not delivered. NULL:
 * nothing to do. */
void mix_background_stop(mix_background *background);
