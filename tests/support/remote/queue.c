/* The queue of the device "remote". Nothing runs before a call of the API needs it, or the queue is full;
 * then the next task is drawn among all that are ready: those that no earlier task must precede, for the
 * bytes that they read and write, or because it may fail and they write a variable. */
#include "support/remote/remote.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/philox.h"
#include "tensor/memory_inside.h"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static mix_remote_task *first, **end = &first;
static int waiting;
static mix_ticket last_ticket;
static uint64_t seed, draws;
/* The error word: the run that met a value error, until a wait has reported it. 0: none. */
static mix_ticket failed;
static char failure[512];

void mix_remote_set_seed(uint64_t number) { seed = number, draws = 0; }
int mix_remote_waiting(void) { return waiting; }

/* A queue of one run, of some, or of many. */
static int room(void) { return (int[]){200, 1000, 4000}[seed % 3]; }

mix_memory *mix_remote_whole(const mix_memory *memory) {
  while (memory->whole) memory = memory->whole;
  return (mix_memory *)memory;
}

/* ---- tasks ---- */

void mix_remote_task_add(mix_remote_task *task, mix_memory *memory, size_t offset, size_t bytes, bool write) {
  const char *address = memory->address + offset;
  task->ranges[task->range_count] = (mix_remote_range){address, address + bytes, write};
  task->held[task->range_count++] = mix_retain(mix_remote_whole(memory));
}

void mix_remote_task_free(mix_remote_task *task) {
  for (int i = 0; i < task->range_count; i++) mix_release(task->held[i]);
  free(task->waiters);
  free(task);
}

static bool overlaps(const mix_remote_range *a, const mix_remote_range *b) {
  return (a->write || b->write) && a->begin < b->end && b->begin < a->end;
}

static bool must_precede(const mix_remote_task *earlier, const mix_remote_task *later) {
  if (later->writes_variable && earlier->may_fail) return true;
  for (int i = 0; i < later->range_count; i++)
    for (int j = 0; j < earlier->range_count; j++)
      if (overlaps(&later->ranges[i], &earlier->ranges[j])) return true;
  return false;
}

static void block(mix_remote_task *earlier, mix_remote_task *later) {
  if (earlier->waiter_count == earlier->waiter_capacity) {
    earlier->waiter_capacity = 2 * earlier->waiter_capacity + 4;
    earlier->waiters = realloc(earlier->waiters, sizeof(void *) * (size_t)earlier->waiter_capacity);
    if (!earlier->waiters) abort();
  }
  earlier->waiters[earlier->waiter_count++] = later;
  later->blockers++;
}

static void append(mix_remote_task *task) {
  task->next = NULL;
  task->blockers = 0;
  for (mix_remote_task *earlier = first; earlier; earlier = earlier->next)
    if (must_precede(earlier, task)) block(earlier, task);
  *end = task;
  end = &task->next;
  waiting++;
  for (int i = 0; i < task->range_count; i++) {
    task->held[i]->used = task->ticket;
    if (task->ranges[i].write) task->held[i]->written = task->ticket;
  }
}

/* ---- running ---- */

static void run_one(void) {
  uint64_t ready = 0;
  for (const mix_remote_task *t = first; t; t = t->next) ready += t->blockers == 0;
  uint64_t chosen = mix_philox_block(seed, 0, draws++).v[0] % ready;
  mix_remote_task **at = &first;
  while ((*at)->blockers || chosen--) at = &(*at)->next;
  mix_remote_task *task = *at;
  char text[sizeof failure];
  const bool after_failure = failed && task->ticket >= failed;
  if (mix_remote_run_task(task, after_failure, text, sizeof text) && (!failed || task->ticket < failed)) {
    failed = task->ticket;
    memcpy(failure, text, sizeof text);
  }
  for (int i = 0; i < task->waiter_count; i++) task->waiters[i]->blockers--;
  if (!(*at = task->next)) end = at;
  waiting--;
  mix_remote_task_free(task);
}

static bool is_done(mix_ticket ticket) { return !first || first->ticket > ticket; }

/* False: a value error was recorded; no run that was enqueued before then writes a variable. It stays to be
 * reported while another error is pending. */
static bool run_until(mix_ticket ticket) {
  char text[sizeof failure];
  pthread_mutex_lock(&lock);
  while (!is_done(ticket)) run_one();
  const bool report = failed && !mix_failed();
  while (report && first) run_one();
  memcpy(text, failure, sizeof text);
  if (report) failed = 0;
  pthread_mutex_unlock(&lock);
  if (report) mix_fail(MIX_VALUE_ERROR, "%s", text);
  return !report;
}

mix_status mix_remote_wait(mix_ticket ticket) {
  run_until(ticket);
  return mix_error();
}

static bool is_in_use(const mix_memory *memory, bool for_writing) {
  const mix_remote_range host = {memory->address, memory->address + memory->bytes, for_writing};
  bool used = false;
  pthread_mutex_lock(&lock);
  for (const mix_remote_task *t = first; t && !used; t = t->next)
    for (int i = 0; i < t->range_count; i++) used = used || overlaps(&host, &t->ranges[i]);
  pthread_mutex_unlock(&lock);
  return used;
}

bool mix_remote_settle(mix_memory *memory, bool for_writing) {
  const mix_memory *whole = mix_remote_whole(memory);
  const mix_ticket ticket = for_writing ? whole->used : whole->written;
  if (ticket && !run_until(ticket)) return false;
  if (!is_in_use(memory, for_writing)) return true;
  mix_fail(MIX_INTERNAL_ERROR, "remote: the host %s memory that a queued step still %s",
           for_writing ? "writes" : "reads", for_writing ? "uses" : "writes");
  return false;
}

void mix_remote_finish(const mix_executable *executable) {
  pthread_mutex_lock(&lock);
  for (;;) {
    const mix_remote_task *t = first;
    while (t && t->executable != executable) t = t->next;
    if (!t) break;
    run_one();
  }
  pthread_mutex_unlock(&lock);
}

mix_ticket mix_remote_enqueue(mix_remote_task *tasks) {
  pthread_mutex_lock(&lock);
  const mix_ticket ticket = ++last_ticket;
  for (mix_remote_task *task = tasks, *next; task; task = next) {
    next = task->next;
    task->ticket = ticket;
    append(task);
  }
  while (waiting > room()) run_one();
  pthread_mutex_unlock(&lock);
  return ticket;
}
