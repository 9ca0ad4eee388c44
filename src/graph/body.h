/* The graph of one step of a loop: nodes between parameters, at which it is cut off, and results. */
#pragma once

#include "graph/node.h"

typedef struct mix_body {
  mix_object object;
  /* Retained. Those that change from step to step, then the invariants: values from outside that the nodes
   * read, which are operands of the loop too. Any result of any node can be a parameter. */
  mix_edge *parameters;
  int parameter_count, varying_count;
  mix_edge *results; /* retained */
  int result_count;
  mix_node **nodes; /* of a step, in order of creation; retained */
  bool *varies;     /* by node: does it depend on a varying parameter? */
  int node_count;
  mix_segment *segment; /* in which the loop is; retained, or NULL */
} mix_body;

/* Finds the nodes between varying parameters and results, and their invariants. Nodes that were created
 * before `begin` are outside, and so are later ones that depend on no varying parameter, unless they
 * `belong` to each step or depend on one that does. Constants are part of the body unless an open tape
 * watches them. One reference for the caller; NULL with the error recorded. */
mix_body *mix_body_new(int varying_count, const mix_edge *varying, int result_count, const mix_edge *results,
                       uint64_t begin, bool (*belongs)(const mix_node *node));
/* Appends results (retained). False: out of memory, recorded. */
bool mix_body_add_results(mix_body *body, int count, const mix_edge *results);
/* The number of the parameter that an edge is; -1: none. */
int mix_body_parameter(const mix_body *body, mix_edge edge);
/* True if the edge changes from step to step. */
bool mix_body_varies(const mix_body *body, mix_edge edge);

static inline bool mix_edge_equal(mix_edge a, mix_edge b) { return a.node == b.node && a.output == b.output; }
static inline const mix_value *mix_edge_value(mix_edge edge) { return &edge.node->outputs[edge.output]; }
