/* The loop over steps: its node and how one is built. */
#pragma once

#include "graph/body.h"
#include "ops/table.h"

/* What the body of a new node is built from: values of one step, and the tensors outside that they stand
 * for. */
typedef struct mix_scan_parts {
  int64_t steps;
  bool reverse;
  int carry_count, input_count, output_count;
  const mix_edge *varying;     /* the carry of a step, then step i of the inputs */
  mix_tensor *const *operands; /* the first carry, then the inputs (steps, ...) */
  const mix_edge *results;     /* the next carry, then the outputs of the step */
  uint64_t begin; /* nodes from this sequence number on belong to the step, if they depend on it */
} mix_scan_parts;
/* The node of op scan, or NULL with the error recorded. Its results are the last carry, the outputs, and
 * where a tape is open all other values of a step. */
mix_node *mix_scan_build(const mix_op *op, const mix_scan_parts *parts);
/* (steps, ...) */
mix_shape mix_scan_stacked(int64_t steps, mix_shape shape);
void mix_scan_gradient(mix_node *node, mix_tensor *const *output_gradients, mix_tensor **input_gradients);
