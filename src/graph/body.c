#include "graph/body.h"

#include "base/alloc.h"
#include "graph/node_set.h"
#include "graph/tape.h"
#include "graph/capture.h"

static void body_finalize(void *object) {
  mix_body *body = object;
  for (int i = 0; i < body->parameter_count; i++) mix_release(body->parameters[i].node);
  for (int i = 0; i < body->result_count; i++) mix_release(body->results[i].node);
  for (int i = 0; i < body->node_count; i++) mix_release(body->nodes[i]);
  mix_release(body->segment);
  mix_free(body->parameters);
  mix_free(body->results);
  mix_free(body->nodes);
  mix_free(body->varies);
}

static const mix_class body_class = {.name = "body", .finalize = body_finalize};

int mix_body_parameter(const mix_body *body, mix_edge edge) {
  for (int i = 0; i < body->parameter_count; i++)
    if (mix_edge_equal(body->parameters[i], edge)) return i;
  return -1;
}

static int find_node(const mix_body *body, const mix_node *node) {
  return mix_node_index(body->nodes, body->node_count, node);
}

/* Is the edge a result of one of its nodes? */
static bool computes(const mix_body *body, mix_edge edge) { return find_node(body, edge.node) >= 0; }

bool mix_body_varies(const mix_body *body, mix_edge edge) {
  const int parameter = mix_body_parameter(body, edge), node = find_node(body, edge.node);
  return parameter >= 0 ? parameter < body->varying_count : node >= 0 && body->varies[node];
}

static bool is_watched(mix_edge edge) {
  for (const mix_tape *tape = mix_tapes_innermost(); tape; tape = tape->outer)
    for (int i = 0; i < tape->watched_count; i++)
      if (mix_edge_equal(tape->watched[i].edge, edge)) return true;
  return false;
}

/* Is it as well computed in each step, because it reads nothing? */
static bool is_constant(mix_edge edge) {
  const mix_node *node = edge.node;
  if (node->op->flags & MIX_OP_SOURCE)
    return !(node->op->flags & MIX_OP_READ) && mix_node_finished(node) && !is_watched(edge);
  return !node->input_count && !mix_node_finished(node);
}

/* The nodes from the results down to the varying parameters, and to what is older. */
static bool find_nodes(const mix_body *body, uint64_t begin, mix_node_set *set) {
  for (int i = 0; i < body->result_count; i++)
    if (mix_body_parameter(body, body->results[i]) < 0 && body->results[i].node->sequence >= begin &&
        !mix_node_set_add(set, body->results[i].node))
      return false;
  for (int i = 0; i < set->count; i++) {
    const mix_node *node = set->nodes[i];
    for (int j = 0; j < node->input_count; j++)
      if (node->inputs[j].node->sequence >= begin && mix_body_parameter(body, node->inputs[j]) < 0 &&
          !mix_node_set_add(set, node->inputs[j].node))
        return false;
  }
  mix_node_set_sort(set);
  return true;
}

static bool keep_nodes(mix_body *body, const mix_node_set *set, bool (*belongs)(const mix_node *node)) {
  body->nodes = mix_calloc((size_t)set->count + 1, sizeof(mix_node *));
  body->varies = mix_calloc((size_t)set->count + 1, sizeof *body->varies);
  if (!body->nodes || !body->varies) return false;
  for (int i = 0; i < set->count; i++) {
    mix_node *node = set->nodes[i];
    bool varies = false, kept = belongs(node) && !is_watched((mix_edge){node, 0});
    for (int j = 0; j < node->input_count; j++) {
      varies = varies || mix_body_varies(body, node->inputs[j]);
      kept = kept || computes(body, node->inputs[j]);
    }
    body->varies[body->node_count] = varies;
    if (varies || kept) body->nodes[body->node_count++] = mix_retain(node);
  }
  return true;
}

static bool add_invariant(mix_body *body, int *capacity, mix_edge edge) {
  if (computes(body, edge) || is_constant(edge) || mix_body_parameter(body, edge) >= 0) return true;
  if (!mix_reserve(&body->parameters, capacity, body->parameter_count + 1, sizeof *body->parameters))
    return false;
  mix_retain(edge.node);
  body->parameters[body->parameter_count++] = edge;
  return true;
}

static bool find_invariants(mix_body *body, int capacity) {
  for (int i = 0; i < body->node_count; i++)
    for (int j = 0; j < body->nodes[i]->input_count; j++)
      if (!add_invariant(body, &capacity, body->nodes[i]->inputs[j])) return false;
  for (int i = 0; i < body->result_count; i++)
    if (!add_invariant(body, &capacity, body->results[i])) return false;
  return true;
}

bool mix_body_add_results(mix_body *body, int count, const mix_edge *results) {
  int capacity = body->result_count;
  if (!mix_reserve(&body->results, &capacity, body->result_count + count + 1, sizeof *body->results))
    return false;
  for (int i = 0; i < count; i++) {
    mix_retain(results[i].node);
    body->results[body->result_count++] = results[i];
  }
  return true;
}

mix_body *mix_body_new(int varying_count, const mix_edge *varying, int result_count, const mix_edge *results,
                       uint64_t begin, bool (*belongs)(const mix_node *node)) {
  mix_body *body = mix_object_new(sizeof *body, &body_class);
  if (!body) return NULL;
  mix_node_set set = {0};
  int capacity = 0;
  bool good = mix_reserve(&body->parameters, &capacity, varying_count + 1, sizeof *body->parameters);
  for (int i = 0; i < varying_count && good; i++) {
    mix_retain(varying[i].node);
    body->parameters[body->parameter_count++] = varying[i];
  }
  body->varying_count = varying_count;
  body->segment = mix_retain(mix_segment_current());
  good = good && mix_body_add_results(body, result_count, results) && find_nodes(body, begin, &set) &&
         keep_nodes(body, &set, belongs) && find_invariants(body, capacity);
  mix_node_set_clear(&set);
  if (good) return body;
  mix_release(body);
  return NULL;
}
