/* The device "remote": the reference kernels behind a queue, over memory that the host cannot reach through
 * its handles. It proves that nothing above a backend takes memory of a device for memory of the host, or a
 * queued run for a finished one. Not part of the library: tests and the program mixtape_remote link it, and
 * MIXTAPE_TEST_DEVICE=remote makes it the device of the process. */
#ifndef MIX_TESTS_REMOTE_REMOTE_H
#define MIX_TESTS_REMOTE_REMOTE_H

#include "backend/backend.h"
#include "backend/host/kernel.h"

/* Where small evaluations run and how long the queue gets depend on the seed, which is that of
 * MIXTAPE_REMOTE_SEED at first (0 without). */
extern mix_backend mix_backend_remote;
/* Makes the device known: once, before its first use. */
void mix_remote_add(void);
/* The order of steps that are ready is a function of this seed. */
void mix_remote_set_seed(uint64_t seed);

/* ---- memory (memory.c) ---- */

extern const mix_memory_device mix_remote_memory;
/* Where kernels find what a handle's address names. */
void *mix_remote_kernel_address(const char *address);
/* A run has given the variable new storage: whoever still reads this one gets an error. */
void mix_remote_mark_replaced(const mix_memory *storage);
/* Overwrites memory with NaN. */
void mix_remote_poison(const mix_memory *memory);

/* ---- the queue (queue.c) ---- */

/* One step of a run, or a copy. `from` and `to` are addresses of handles. */
typedef struct mix_remote_range {
  const char *begin, *end;
  bool write;
} mix_remote_range;

enum { MIX_REMOTE_OPERANDS = 256 };
typedef struct mix_remote_task {
  struct mix_remote_task *next;     /* in the order in which they were enqueued */
  struct mix_remote_task **waiters; /* tasks that wait for this one */
  int waiter_count, waiter_capacity;
  int blockers; /* tasks that this one waits for */
  mix_ticket ticket;
  struct mix_executable *executable; /* of a step; NULL: a copy from range 0, also of the host, to range 1 */
  int step;
  bool may_fail, writes_variable;
  mix_remote_range ranges[MIX_REMOTE_OPERANDS]; /* operands, results, then the guard */
  mix_memory *held[MIX_REMOTE_OPERANDS];        /* whole memories: retained */
  int range_count;
} mix_remote_task;

/* Adds the memory of an operand. */
void mix_remote_task_add(mix_remote_task *task, mix_memory *memory, size_t offset, size_t bytes, bool write);
void mix_remote_task_free(mix_remote_task *task);
/* Enqueues tasks, linked through `next`, as one run. 0 with the error recorded. */
mix_ticket mix_remote_enqueue(mix_remote_task *tasks);
mix_status mix_remote_wait(mix_ticket ticket);
/* Waits for the runs that write the memory and, before the host writes it, for those that use it. False with
 * the error recorded, also where a task would still be in the way. */
bool mix_remote_settle(mix_memory *memory, bool for_writing);
/* Runs the tasks of an executable that is destroyed. */
void mix_remote_finish(const struct mix_executable *executable);
/* Steps that are enqueued and have not run. */
int mix_remote_waiting(void);
/* The memory that a handle is a part of, or itself. */
mix_memory *mix_remote_whole(const mix_memory *memory);

/* ---- executables (executable.c) ---- */

mix_executable *mix_remote_compile(const mix_plan *plan, const mix_context *context);
mix_ticket mix_remote_run(mix_executable *executable, const mix_bindings *bindings);
void mix_remote_destroy(mix_executable *executable);
void mix_remote_facts(const mix_executable *executable, mix_executable_facts *facts);
const char *mix_remote_kernel_name(const mix_executable *executable, int step);
/* Runs a task now. `failed`: its run, or one before it, met a value error. Returns the text of its own, in
 * `text`; NULL: none. */
const char *mix_remote_run_task(const mix_remote_task *task, bool failed, char *text, size_t size);

#endif
