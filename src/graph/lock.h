/* What threads that share tensors and variables wait for each other with. The graph's lock guards what evaluation and assignment
 * change: values of nodes, their operands, what a variable keeps of its reads. It is pinned for a walk over nodes or a copy into a
 * variable, not while a plan runs: threads compute at the same time. A run that reads the storage of a variable, and a copy of one,
 * holds the storages instead, which an assignment waits for. */
#ifndef MIX_GRAPH_LOCK_H
#define MIX_GRAPH_LOCK_H

/* A thread may lock again what it has locked. No code of the caller's runs under it; messages to the log wait until it is unlocked. */
void mix_graph_lock(void);
void mix_graph_unlock(void);

/* With the graph locked: variables keep their values from now on. Until mix_storages_unpin the thread must not lock the graph anew,
 * since an assignment that waits for it has locked it. */
void mix_storages_pin(void);
void mix_storages_unpin(void);
/* With the graph locked: waits until nobody holds the storages; nobody will before it is unlocked. */
void mix_storages_wait(void);

#endif
