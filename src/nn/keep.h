/* Nodes that the automatic mixed precision rewrite never changes: finite checks, loss scale and metric
 * updates, reductions of losses. */
#pragma once

#include "graph/node.h"

/* Marks the producer of the tensor and returns the tensor; NULL gives NULL. */
static inline mix_tensor *mix_kept(mix_tensor *tensor) {
  if (tensor) tensor->node->keep = true;
  return tensor;
}
