/* The inside of a tape: the nodes that it recorded. ops/gradient.c computes gradients from them. */
#pragma once

#include "graph/node.h"
#include <mixtape/tape.h>

/* A tensor given to mix_tape_watch. */
typedef struct mix_watched {
  mix_edge edge;  /* retained */
  uint64_t since; /* nodes from this sequence number on see it as a source */
} mix_watched;

struct mix_tape {
  mix_object object;
  mix_tape *outer; /* the tape that was open when this one began */
  bool open, persistent, used, watch_accessed;
  mix_node **nodes; /* retained, in order of creation */
  int node_count, node_capacity;
  mix_watched *watched;
  int watched_count, watched_capacity;
};
extern const mix_class mix_tape_class;

/* Stops recording on a tape and on those that began inside it. */
void mix_tape_close(mix_tape *tape);
/* Releases all records. */
void mix_tape_drop_records(mix_tape *tape);
/* The recorded nodes in order of creation, borrowed. They are kept until the gradient is computed; a
 * persistent tape keeps them until it is released. */
mix_node *const *mix_tape_nodes(const mix_tape *tape, int *count);
