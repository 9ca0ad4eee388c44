/* Computing what the graph describes. */
#ifndef MIX_COMPILE_EVALUATE_H
#define MIX_COMPILE_EVALUATE_H

#include "graph/node.h"
#include "graph/variable.h"

/* Evaluates nodes (all their results) in one plan, outside any capture, and detaches them. Threads that evaluate at the same time
 * compute at the same time; a node that two of them come to is computed by each, and has the value of the first. */
bool mix_evaluate_nodes(int count, mix_node *const *nodes);
/* The nodes that a captured graph needs from outside and that are not finished: evaluated, so that they become constants of it. */
bool mix_evaluate_outside(int result_count, const mix_edge *results, const mix_capture *capture);
/* The elements of a tensor, evaluated first, to be read while other threads assign: these wait, where the elements are the storage of a
 * variable, until it is let go. Until then nothing else of the library but copying and converting. */
typedef struct mix_pinned {
  const void *data;
  bool storage;
} mix_pinned;
bool mix_tensor_pin(mix_tensor *tensor, mix_pinned *pinned); /* false with the error recorded; then nothing is pinned */
void mix_tensor_unpin(const mix_pinned *pinned);

#endif
