/* Threads that make elements policy of whoever asks for them. */
#ifndef MIX_DATA_PIPELINE_BACKGROUND_H
#define MIX_DATA_PIPELINE_BACKGROUND_H

#include "data/pipeline/pipeline.h"

typedef struct mix_background mix_background;

typedef struct mix_background_options {
  mix_cursor *input; /* pulled by one thread at a time */
  int threads;       /* >= 1 */
  int capacity;      /* >= 1: elements that are being made or wait */
  bool grows;        /* begin with two, double when the receiver had to wait although all was full before */
  bool any_order;    /* elements in the order in which they are ready */
  /* What is to be done with an element of the input, by several threads at once, each with a number of its own below `threads`.
   * NULL: nothing. False: error recorded; what lies in the element is released by the caller. */
  bool (*work)(void *context, int thread, mix_element *element);
  void *context;
} mix_background_options;

/* NULL with the error recorded. */
mix_background *mix_background_start(const mix_background_options *options);
/* The next element, waiting for it; an error of the thread that made it becomes the caller's. */
mix_pull mix_background_next(mix_background *background, mix_element *element);
/* Waits until each thread has finished the element that it is at, and drops what nobody asked for. NULL: nothing to do. */
void mix_background_stop(mix_background *background);

#endif
