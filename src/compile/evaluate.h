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
/* With the graph locked where other threads may know the node. */
static inline bool mix_node_finished(const mix_node *node) {
  for (int i = 0; i < node->output_count; i++)
    if (!node->outputs[i].buffer) return false;
  return true;
}

/* The elements of a tensor, evaluated first, to be read while other threads assign: these wait, where the elements are the storage of a
 * variable, until it is let go. Until then nothing else of the library but copying and converting. */
typedef struct mix_held {
  const void *data;
  bool storage;
} mix_held;
bool mix_tensor_hold(mix_tensor *tensor, mix_held *held); /* false with the error recorded; then nothing is held */
void mix_tensor_let_go(const mix_held *held);

#endif
