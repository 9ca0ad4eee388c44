/* Computing what the graph describes. */
#ifndef MIX_COMPILE_EVALUATE_H
#define MIX_COMPILE_EVALUATE_H

#include "graph/node.h"
#include "graph/variable.h"

/* Evaluates nodes (all their results) in one plan, outside any capture, and detaches them. */
bool mix_evaluate_nodes(int count, mix_node *const *nodes);
/* The nodes that a captured graph needs from outside and that are not finished: evaluated, so that they become constants of it. */
bool mix_evaluate_outside(int result_count, const mix_edge *results, const mix_capture *capture);
static inline bool mix_node_finished(const mix_node *node) {
  for (int i = 0; i < node->output_count; i++)
    if (!node->outputs[i].buffer) return false;
  return true;
}

#endif
