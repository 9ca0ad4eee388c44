/* What the node constructor tells the open tapes. */
#ifndef MIX_GRAPH_TAPE_H
#define MIX_GRAPH_TAPE_H

#include "graph/node.h"

/* Records a new node on every open tape of this thread; false with the error recorded when there is no memory. */
bool mix_tapes_record(mix_node *node);
/* The sequence number at which the innermost open tape of this thread began, which no open tape began after; 0 with none open. */
uint64_t mix_tapes_begin_sequence(void);
/* Is a tape open on this thread? */
bool mix_tapes_open(void);

/* The nodes that a tape holds, in order of creation: until gradients are asked of it, or with a persistent one until it goes. Borrowed. */
mix_node *const *mix_tape_nodes(const mix_tape *tape, int *count);

#endif
