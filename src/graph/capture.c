#include "graph/capture.h"

#include "base/alloc.h"
#include "graph/tape.h"
#include "graph/variable.h"

static _Thread_local const char *graph_scope;
static _Thread_local bool graph_keep, graph_backward;
static _Thread_local struct mix_capture *capture;
static _Thread_local mix_tape *innermost;

const char *mix_graph_scope_set(const char *path) {
  const char *former = graph_scope;
  graph_scope = path;
  return former;
}
const char *mix_graph_scope(void) { return graph_scope; }
bool mix_graph_keep_set(bool keep) {
  bool former = graph_keep;
  graph_keep = keep;
  return former;
}
bool mix_graph_keep(void) { return graph_keep; }
bool mix_graph_backward_set(bool is) {
  bool former = graph_backward;
  graph_backward = is;
  return former;
}
bool mix_graph_backward(void) { return graph_backward; }

struct mix_capture *mix_capture_current(void) {
  return capture;
}
struct mix_capture *mix_capture_set(struct mix_capture *next) {
  struct mix_capture *former = capture;
  capture = next;
  return former;
}

bool mix_capture_record(mix_node *node) {
  if (!capture || !(node->op->flags & MIX_OP_STATEFUL)) return true;
  if (!mix_reserve(&capture->stateful, &capture->stateful_capacity, capture->stateful_count + 1,
                   sizeof *capture->stateful))
    return false;
  capture->stateful[capture->stateful_count++] = mix_retain(node);
  return true;
}

mix_tape *mix_tapes_innermost(void) { return innermost; }

mix_tape *mix_tapes_set(mix_tape *tape) {
  mix_tape *former = innermost;
  innermost = tape;
  return former;
}

bool mix_tapes_open(void) { return innermost != NULL; }

bool mix_tapes_record(mix_node *node) {
  if (node->symbolic || node->input_count == 0) return true;
  for (mix_tape *tape = innermost; tape; tape = tape->outer) {
    if (!mix_reserve(&tape->nodes, &tape->node_capacity, tape->node_count + 1, sizeof *tape->nodes))
      return false;
    tape->nodes[tape->node_count++] = mix_retain(node);
    node->recorded++;
  }
  return true;
}
