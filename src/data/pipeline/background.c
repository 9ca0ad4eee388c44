/* Worker threads that produce elements. Each pulled element gets a sequence number, its turn. A worker pulls
 * (one at a time, so turns are in input order), processes the element and stores it in a slot; the receiver
 * takes slots by turn or as they get ready. The mutex guards all state below and is not held while pulling or
 * processing, so a slow input does not block the receiver. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* pthread_setname_np */
#endif
#include "data/pipeline/background.h"

#include "base/alloc.h"
#include "base/error.h"
#include "compile/trace.h"
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

enum { MESSAGE_SIZE = 1024, FIRST_LIMIT = 2 };

typedef enum slot_state { SLOT_FREE, SLOT_BUSY, SLOT_READY } slot_state;

typedef struct slot {
  slot_state state;
  mix_element element;
} slot;

typedef struct worker {
  mix_background *background;
  int number;
  pthread_t thread;
} worker;

struct mix_background {
  mix_background_options options;
  pthread_mutex_t mutex;
  pthread_cond_t may_work; /* wakes workers: an element may be pulled, or work has ended */
  pthread_cond_t ready;    /* wakes the receiver: an element, an error or the end */
  slot *slots;             /* (capacity) */
  int64_t pulled, delivered;
  int limit, waiting; /* max elements in flight; elements that are ready */
  bool pulling, ended, stopping, was_full;
  bool asking; /* the receiver waits for an element */
  struct {
    mix_status status; /* MIX_OK: none */
    int64_t turn;      /* the earliest turn that failed */
    char message[MESSAGE_SIZE];
  } failure;
  worker *workers;
  int worker_count;
  pid_t process; /* in which the workers are */
};

/* Records this thread's error as that of the turn. Pulling stops: a pass ends at its first error. */
static void record_error(mix_background *background, int64_t turn) {
  if (background->failure.status == MIX_OK || turn < background->failure.turn) {
    background->failure.turn = turn;
    background->failure.status =
        mix_error_take(background->failure.message, sizeof background->failure.message);
  }
  mix_error_clear();
}

static void end_input(mix_background *background) {
  background->ended = true;
  pthread_cond_broadcast(&background->may_work);
  pthread_cond_signal(&background->ready);
}

static slot *slot_for(mix_background *background, int64_t turn) {
  if (!background->options.any_order) return &background->slots[turn % background->options.capacity];
  slot *at = background->slots;
  /* a free slot exists: fewer elements are in flight than there are slots */
  while (at->state != SLOT_FREE) at++;
  return at;
}

static _Thread_local mix_background *in_step; /* for which this thread pulls */

bool mix_background_await_receiver(void) {
  mix_background *background = in_step;
  if (!background) return true;
  pthread_mutex_lock(&background->mutex);
  while (!background->stopping && !(background->asking && background->delivered == background->pulled))
    pthread_cond_wait(&background->may_work, &background->mutex);
  const bool goes_on = !background->stopping;
  pthread_mutex_unlock(&background->mutex);
  return goes_on;
}

/* Pulls or processes in a new scope, because this thread has none. */
static mix_pull pull_scoped(mix_background *background, mix_element *element) {
  const mix_background_options *options = &background->options;
  mix_cursor *input = options->input;
  mix_scope *scope = mix_scope_begin();
  const int64_t begin = mix_trace_begin_input();
  mix_pull pull = !scope  ? MIX_PULL_FAILED
                  : input ? mix_cursor_next(input, element)
                          : options->make(options->context, element);
  mix_trace_end_input(input ? input->dataset->class->name : options->name, begin);
  mix_scope_end(scope);
  return pull;
}

static bool work_scoped(const worker *worker, int64_t turn, mix_element *element) {
  const mix_background_options *options = &worker->background->options;
  mix_scope *scope = mix_scope_begin();
  const int64_t begin = mix_trace_begin_input();
  bool good = scope && options->work(options->context, worker->number, turn, element);
  mix_trace_end_input(options->name, begin);
  mix_scope_end(scope);
  return good;
}

static bool may_pull(const mix_background *background) {
  return !background->pulling && background->pulled - background->delivered < background->limit;
}

/* Moves one element from the input to its slot. The mutex is held on entry and on return. False: no more
 * work. */
static bool make_one(const worker *worker) {
  mix_background *background = worker->background;
  while (!background->stopping && !background->ended && !may_pull(background))
    pthread_cond_wait(&background->may_work, &background->mutex);
  if (background->stopping || background->ended) return false;
  background->pulling = true;
  pthread_mutex_unlock(&background->mutex);
  mix_element element = {0};
  mix_pull pull = pull_scoped(background, &element);
  pthread_mutex_lock(&background->mutex);
  background->pulling = false;
  int64_t turn = background->pulled;
  if (pull != MIX_PULL_ELEMENT) {
    if (pull == MIX_PULL_FAILED) record_error(background, turn);
    end_input(background);
    return false;
  }
  background->pulled++;
  slot *target = slot_for(background, turn);
  target->state = SLOT_BUSY;
  bool good = true;
  if (background->options.work) {
    pthread_cond_signal(&background->may_work); /* another worker may pull meanwhile */
    pthread_mutex_unlock(&background->mutex);
    good = work_scoped(worker, turn, &element);
    if (!good) mix_release(element.values);
    pthread_mutex_lock(&background->mutex);
  }
  if (!good) {
    target->state = SLOT_FREE;
    record_error(background, turn);
    end_input(background);
    return false;
  }
  *target = (slot){SLOT_READY, element};
  background->waiting++;
  pthread_cond_signal(&background->ready);
  return true;
}

static void *run(void *argument) {
  const worker *worker = argument;
  if (worker->background->options.in_step) in_step = worker->background;
  pthread_mutex_lock(&worker->background->mutex);
  while (make_one(worker)) continue;
  pthread_mutex_unlock(&worker->background->mutex);
  return NULL;
}

/* Starts as many threads as possible; one is enough. The workers block all signals, which belong to the
 * program's own threads. */
static bool start_workers(mix_background *background) {
  sigset_t all, former;
  background->process = getpid();
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &former);
  for (int i = 0; i < background->options.threads; i++) {
    worker *worker = &background->workers[i];
    worker->background = background;
    worker->number = i;
    if (pthread_create(&worker->thread, NULL, run, worker) != 0) break;
    pthread_setname_np(worker->thread, MIX_INPUT_THREAD);
    background->worker_count++;
  }
  pthread_sigmask(SIG_SETMASK, &former, NULL);
  if (background->worker_count == 0) mix_fail_runtime("the data set's pipeline could not start a thread");
  return background->worker_count > 0;
}

mix_background *mix_background_start(const mix_background_options *options) {
  mix_background *background = mix_calloc(1, sizeof *background);
  if (!background) return NULL;
  background->options = *options;
  background->limit = options->grows && options->capacity > FIRST_LIMIT ? FIRST_LIMIT : options->capacity;
  pthread_mutex_init(&background->mutex, NULL);
  pthread_cond_init(&background->may_work, NULL);
  pthread_cond_init(&background->ready, NULL);
  background->slots = mix_calloc((size_t)options->capacity, sizeof *background->slots);
  background->workers =
      background->slots ? mix_calloc((size_t)options->threads, sizeof *background->workers) : NULL;
  if (background->workers && start_workers(background)) return background;
  mix_background_stop(background);
  return NULL;
}

/* In a forked child no worker runs, and any may have held the mutex. What the child has of them stays as it
 * is. */
bool mix_background_is_here(const mix_background *background) {
  return background->worker_count == 0 || background->process == getpid();
}

void mix_background_stop(mix_background *background) {
  if (!background || !mix_background_is_here(background)) return;
  pthread_mutex_lock(&background->mutex);
  background->stopping = true;
  pthread_cond_broadcast(&background->may_work);
  pthread_mutex_unlock(&background->mutex);
  for (int i = 0; i < background->worker_count; i++) pthread_join(background->workers[i].thread, NULL);
  for (int i = 0; background->slots && i < background->options.capacity; i++)
    mix_release(background->slots[i].element.values);
  pthread_cond_destroy(&background->may_work);
  pthread_cond_destroy(&background->ready);
  pthread_mutex_destroy(&background->mutex);
  mix_free(background->slots);
  mix_free(background->workers);
  mix_free(background);
}

/* The slot of the next element to deliver; NULL: not ready yet. */
static slot *ready_slot(mix_background *background) {
  int first = background->options.any_order ? 0 : (int)(background->delivered % background->options.capacity);
  int last = background->options.any_order ? background->options.capacity - 1 : first;
  for (int i = first; i <= last; i++)
    if (background->slots[i].state == SLOT_READY) return &background->slots[i];
  return NULL;
}

/* Doubles the limit when the receiver waits although all slots had been full: the input comes in bursts,
 * which more slots smooth. */
static void grow(mix_background *background) {
  if (!background->options.grows || !background->was_full ||
      background->limit == background->options.capacity)
    return;
  background->was_full = false;
  background->limit = 2 * background->limit < background->options.capacity ? 2 * background->limit
                                                                           : background->options.capacity;
  pthread_cond_signal(&background->may_work);
}

mix_pull mix_background_next(mix_background *background, mix_element *element) {
  mix_pull pull = MIX_PULL_ELEMENT;
  if (!mix_background_is_here(background)) {
    mix_fail_runtime("iterator_next: the pass began before fork, and its threads are in the parent "
                     "process; begin a new pass with mix_dataset_iterate");
    return MIX_PULL_FAILED;
  }
  pthread_mutex_lock(&background->mutex);
  if (background->waiting == background->limit) background->was_full = true;
  if (background->waiting == 0) grow(background);
  slot *from;
  while (!(from = ready_slot(background))) {
    bool failed = background->failure.status != MIX_OK;
    if (failed && (background->options.any_order || background->failure.turn == background->delivered)) {
      mix_fail(background->failure.status, "%s", background->failure.message);
      pull = MIX_PULL_FAILED;
      break;
    }
    if (background->ended && !background->pulling && background->delivered == background->pulled) {
      pull = MIX_PULL_END;
      break;
    }
    if (!background->asking && background->options.in_step) pthread_cond_signal(&background->may_work);
    background->asking = true;
    pthread_cond_wait(&background->ready, &background->mutex);
  }
  background->asking = false;
  if (from) {
    *element = from->element;
    *from = (slot){0};
    background->waiting--;
    background->delivered++;
    if (!background->options.lazy || background->waiting <= background->limit / 2)
      pthread_cond_signal(&background->may_work);
  }
  pthread_mutex_unlock(&background->mutex);
  return pull;
}
