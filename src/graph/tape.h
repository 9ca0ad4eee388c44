/* What the node constructor tells the open tapes. */
#ifndef MIX_GRAPH_TAPE_H
#define MIX_GRAPH_TAPE_H

#include "graph/node.h"
#include <mixtape/tape.h>

/* Records a new node on every open tape of this thread; false with the error recorded when there is no memory. */
bool mix_tapes_record(mix_node *node);
/* The sequence number at which the innermost open tape of this thread began, which no open tape began after; 0 with none open. */
uint64_t mix_tapes_begin_sequence(void);
/* Is a tape open on this thread? */
bool mix_tapes_open(void);
/* The innermost tape that records on this thread, and with it those around it; NULL: none. Returns the former. */
mix_tape *mix_tapes_set(mix_tape *tape);

/* The nodes that a tape holds, in order of creation: until gradients are asked of it, or with a persistent one until it goes. Borrowed. */
mix_node *const *mix_tape_nodes(const mix_tape *tape, int *count);

#endif
