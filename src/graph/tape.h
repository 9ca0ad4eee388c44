/* Inside a tape: the nodes it recorded. Gradients are computed from them in ops/gradient.c. */
#ifndef MIX_GRAPH_TAPE_H
#define MIX_GRAPH_TAPE_H

#include "graph/node.h"
#include <mixtape/tape.h>

/* A tensor that mix_tape_watch named. */
typedef struct mix_watched {
  mix_edge edge;  /* retained */
  uint64_t since; /* nodes from here on see it as a source */
} mix_watched;

struct mix_tape {
  mix_object object;
  mix_tape *outer; /* the tape that was open when this one began */
  bool open, persistent, used, watch_accessed;
  uint64_t begin;   /* sequence number of the first node that can be recorded */
  mix_node **nodes; /* retained, in order of creation */
  int node_count, node_capacity;
  mix_watched *watched;
  int watched_count, watched_capacity;
};
extern const mix_class mix_tape_class;

/* Ends the recording of a tape, and of those that began inside it. */
void mix_tape_close(mix_tape *tape);
/* Releases all records. */
void mix_tape_drop_records(mix_tape *tape);
/* The nodes that a tape holds, in order of creation: until gradients are asked of it, or with a persistent one
 * until it is released. Borrowed. */
mix_node *const *mix_tape_nodes(const mix_tape *tape, int *count);

#endif
