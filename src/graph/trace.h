/* What nodes made on this thread become part of: the layer, the capture and the open tapes. */
#ifndef MIX_GRAPH_TRACE_H
#define MIX_GRAPH_TRACE_H

#include "graph/node.h"
#include <mixtape/tape.h>

/* Path of the layer that is being called (interned); set returns the former one, to be restored. */
const char *mix_graph_scope_set(const char *path);
const char *mix_graph_scope(void);
/* Are new nodes kept from the automatic mixed precision rewrite? Set returns the former answer, to be restored. */
bool mix_graph_keep_set(bool keep);
bool mix_graph_keep(void);

/* The capture of this thread, or NULL (graph/variable.h); set returns the former one. */
struct mix_capture *mix_capture_current(void);
struct mix_capture *mix_capture_set(struct mix_capture *capture);

/* Records a new node on every open tape of this thread; false with the error recorded when there is no memory. */
bool mix_tapes_record(mix_node *node);
/* The sequence number at which the innermost open tape began, which no open tape began after; 0 with none open. */
uint64_t mix_tapes_begin_sequence(void);
/* Is a tape open on this thread? */
bool mix_tapes_open(void);
/* The innermost tape that records on this thread, and with it those around it; NULL: none. Set returns the former. */
mix_tape *mix_tapes_innermost(void);
mix_tape *mix_tapes_set(mix_tape *tape);

#endif
