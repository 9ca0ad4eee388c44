/* A graph captured by hand and turned into the IR. Include the test's own support header first. */
#ifndef MIX_TESTS_SUPPORT_CAPTURED_GRAPH_H
#define MIX_TESTS_SUPPORT_CAPTURED_GRAPH_H

#include "backend/context.h"
#include "compile/evaluate.h"
#include "graph/capture.h"
#include "graph/variable.h"
#include "ir/ir.h"

enum { MAX = 8 };
typedef struct graph {
  mix_capture capture, *former;
  mix_node *arguments[MAX];
  int count;
} graph;

static inline void begin_graph(graph *g) {
  *g = (graph){0};
  g->former = mix_capture_set(&g->capture);
}
static inline mix_tensor *argument(graph *g, mix_dtype dtype, mix_shape shape) {
  g->arguments[g->count] = mix_node_placeholder(dtype, shape, false);
  return mix_tensor_of(g->arguments[g->count++], 0);
}
static inline mix_ir *end_graph(graph *g, mix_list *results) {
  mix_edge edges[MAX];
  int count = mix_list_count(results);
  for (int i = 0; i < count; i++)
    edges[i] = (mix_edge){((mix_tensor *)mix_list_get(results, i))->node,
                          ((mix_tensor *)mix_list_get(results, i))->output};
  mix_capture_set(g->former);
  mix_ir *ir = mix_evaluate_outside(count, edges, &g->capture)
                   ? mix_ir_from_graph(count, edges, g->count, g->arguments, &g->capture)
                   : NULL;
  no_error();
  for (int i = 0; i < g->count; i++) mix_release(g->arguments[i]);
  mix_capture_clear(&g->capture);
  static mix_context context;
  context = mix_context_default();
  if (ir) ir->context = &context;
  return ir;
}

#endif
