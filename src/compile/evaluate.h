/* Evaluation of graph nodes. */
#pragma once

#include "graph/variable.h"

/* Evaluates nodes (all their results) in one plan, outside any capture, and detaches them. Threads may
 * evaluate concurrently. A node that two threads evaluate is computed twice and keeps the first value. */
bool mix_evaluate_nodes(int count, mix_node *const *nodes);
/* Evaluates the unfinished outside nodes that a captured graph reads, so that they become its constants. */
bool mix_evaluate_outside(int result_count, const mix_edge *results, const mix_capture *capture);
/* The elements of a tensor, evaluated first, pinned for reading while other threads assign. Where they are
 * the storage of a variable, assignments wait for the unpin. Until then call only functions that copy or
 * convert. */
typedef struct mix_pinned {
  const void *data;
  mix_memory *memory; /* retained */
  bool storage;
} mix_pinned;
/* False with the error recorded and nothing pinned. */
bool mix_tensor_pin(mix_tensor *tensor, mix_pinned *pinned);
void mix_tensor_unpin(const mix_pinned *pinned);
