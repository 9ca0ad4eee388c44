/* The values that gradients read of segments (graph/segment.h): computed again from what goes into the
 * segment, where a gradient first needs them. */
#pragma once

#include "graph/node.h"

/* Of one walk along a tape; zeroed memory with `within` is an empty one. */
typedef struct mix_repeats {
  const mix_segment *within; /* segments around the walk itself are left alone */
  struct mix_repeat *entries;
  int capacity, used;
  mix_node **made; /* retained */
  int made_count, made_capacity;
  struct mix_repeat_request *stack;
  int depth, stack_capacity;
} mix_repeats;

/* The node from which to build the gradient of `node`: itself, or its repetition, which an optimising backend
 * does not run before the value `after`. Borrowed; NULL with the error recorded. */
mix_node *mix_repeat_node(mix_repeats *r, mix_node *node, const mix_tensor *after);
/* Notes what the nodes of a gradient, made since `begin`, read: that is there anyway, and need not be
 * repeated. What they read of `repeated` becomes the value of `node` where that is so. False: out of memory,
 * recorded. */
bool mix_repeat_note_reads(mix_repeats *r, mix_node *node, mix_node *repeated, const mix_tensor *gradient,
                           uint64_t begin);
void mix_repeats_clear(mix_repeats *r);
