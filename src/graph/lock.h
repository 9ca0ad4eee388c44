/* Locks for threads that share tensors and variables. The graph lock protects what evaluation and
 * assignment change: the values of nodes, their operands, and the read node of a variable. It is held
 * while nodes are walked or a variable is written, but not while a plan runs, so threads compute in
 * parallel; a backend that replaces the memory of variables takes its runs under it. A run that reads the
 * storage of a variable, and a copy of one, pins the storages; an assignment waits for them. */
#pragma once

/* Recursive. No caller's code runs while the lock is held; log messages are deferred until it is released. */
void mix_graph_lock(void);
void mix_graph_unlock(void);

/* Pin: with the graph locked; variables keep their values until mix_storages_unpin. Until then this thread
 * must not lock the graph again, because an assignment that waits for the pin holds that lock. */
void mix_storages_pin(void);
void mix_storages_unpin(void);
/* With the graph locked: waits until no thread pins the storages. A new pin needs the graph lock. */
void mix_storages_wait(void);
