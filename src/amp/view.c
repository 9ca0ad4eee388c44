/* Edges between types, and flood fills along them. */
#include "base/alloc.h"
#include "base/error.h"
#include "amp/paint.h"

#include <string.h>

/* Fills first_fanin/fanins and first_fanout/fanouts: each data input is an edge from the producer's type to
 * its own. */
static bool link_types(mix_amp_painting *p) {
  const mix_amp_graph *graph = p->graph;
  size_t starts = (size_t)p->types + 2, edges = (size_t)graph->input_count;
  p->first_fanin = mix_calloc(starts, sizeof(int));
  p->first_fanout = mix_calloc(starts, sizeof(int));
  p->fanins = mix_alloc(edges * sizeof(int));
  p->fanouts = mix_alloc(edges * sizeof(int));
  if (!p->first_fanin || !p->first_fanout || !p->fanins || !p->fanouts) return false;
  /* offset by one, so that filling moves each start to its place */
  int *in = p->first_fanin + 1, *out = p->first_fanout + 1;
  for (int fill = 0; fill < 2; fill++) {
    for (int i = 0; i < graph->input_count; i++) {
      const mix_amp_input *input = &graph->inputs[i];
      const mix_amp_node *node = &graph->nodes[input->node], *source = &graph->nodes[input->source];
      int to = mix_amp_input_type(graph, mix_amp_signature_of(p->result, input->node), i - node->first_input);
      int from =
          mix_amp_output_type(graph, source, mix_amp_signature_of(p->result, input->source), input->port);
      if (fill)
        p->fanins[in[to]++] = from, p->fanouts[out[from]++] = to;
      else
        in[to + 1]++, out[from + 1]++;
    }
    for (int t = 0; !fill && t < p->types; t++) in[t + 1] += in[t], out[t + 1] += out[t];
  }
  return true;
}

/* Identity directly after a TF1 variable, or Enter of such an Identity. TensorBoard and loops need them
 * unchanged. */
static bool find_variable_readers(mix_amp_painting *p) {
  const mix_amp_graph *graph = p->graph;
  p->reads_variable = mix_calloc((size_t)graph->node_count + 1, sizeof *p->reads_variable);
  if (!p->reads_variable) return false;
  for (int i = 0; i < graph->node_count; i++) {
    int n = graph->order[i];
    const mix_amp_node *node = &graph->nodes[n];
    if (node->input_count == 0) continue;
    int source = graph->inputs[node->first_input].source;
    const char *op = graph->nodes[source].as_is.op;
    if (!strcmp(node->as_is.op, "Identity"))
      p->reads_variable[n] = !strcmp(op, "Variable") || !strcmp(op, "VariableV2");
    else if (!strcmp(node->as_is.op, "Enter"))
      p->reads_variable[n] = p->reads_variable[source];
  }
  return true;
}

bool mix_amp_painting_make(mix_amp_painting *p, mix_amp_result *result) {
  *p = (mix_amp_painting){.result = result, .graph = result->graph, .types = result->graph->type_count};
  size_t states = 3 * (size_t)p->types + 1;
  p->queue = mix_alloc(states * sizeof *p->queue);
  p->origin = mix_alloc(states * sizeof *p->origin);
  p->seen = mix_alloc(states);
  p->enter = mix_alloc((size_t)p->types + 1);
  p->class = mix_alloc((size_t)p->types + 1);
  p->open = mix_alloc(((size_t)p->types + 1) * sizeof *p->open);
  if (!p->queue || !p->origin || !p->seen || !p->enter || !p->class || !p->open) return false;
  for (int t = 0; t < p->types; t++) {
    int node = p->graph->types[t].node;
    bool in_force = mix_amp_in_force(result, t);
    p->class[t] = in_force ? result->class[node] : MIX_AMP_NONE;
    p->open[t] = in_force && !result->left[node];
  }
  return link_types(p) && find_variable_readers(p);
}

void mix_amp_painting_free(mix_amp_painting *p) {
  void *memory[] = {p->first_fanin, p->fanins,      p->first_fanout, p->fanouts, p->reads_variable, p->role,
                    p->list_float,  p->list_handle, p->first_member, p->members, p->queue,          p->origin,
                    p->seen,        p->enter,       p->class,        p->open};
  for (size_t i = 0; i < sizeof memory / sizeof *memory; i++) mix_free(memory[i]);
}

void mix_amp_flood_clear(mix_amp_painting *p) {
  memset(p->seen, 0, 3 * (size_t)p->types);
  p->head = p->tail = 0;
}

static void reach(mix_amp_painting *p, int state, int origin) {
  if (p->seen[state]) return;
  p->seen[state] = 1;
  p->origin[state] = origin;
  p->queue[p->tail++] = state;
}

void mix_amp_flood_root(mix_amp_painting *p, int type) { reach(p, type, type); }

void mix_amp_flood_edges(mix_amp_painting *p, int directions) {
  while (p->head < p->tail) {
    int t = p->queue[p->head++];
    if (directions & MIX_AMP_DOWN)
      for (int e = p->first_fanout[t]; e < p->first_fanout[t + 1]; e++)
        if (p->enter[p->fanouts[e]]) reach(p, p->fanouts[e], p->origin[t]);
    if (directions & MIX_AMP_UP)
      for (int e = p->first_fanin[t]; e < p->first_fanin[t + 1]; e++)
        if (p->enter[p->fanins[e]]) reach(p, p->fanins[e], p->origin[t]);
  }
}

/* Passes a handle on to the next handles through processable nodes, and to the elements of list ops that end
 * the step in this direction. Visiting each handle once takes linear time, unlike an edge for each pair of
 * writer and reader. */
static void pass_handle(mix_amp_painting *p, int handle, bool down, int origin) {
  const int *first = down ? p->first_fanout : p->first_fanin, *edges = down ? p->fanouts : p->fanins;
  int node = p->graph->types[handle].node, element = p->list_float[node];
  if (element >= 0 && p->role[node] == (down ? MIX_AMP_LIST_READER : MIX_AMP_LIST_WRITER) &&
      p->enter[element])
    reach(p, element, origin);
  for (int e = first[handle]; e < first[handle + 1]; e++)
    if (p->open[edges[e]]) reach(p, (down ? p->types : 2 * p->types) + edges[e], origin);
}

void mix_amp_flood(mix_amp_painting *p, int directions) {
  while (p->head < p->tail) {
    int state = p->queue[p->head++], origin = p->origin[state];
    if (state >= p->types) {
      bool down = state < 2 * p->types;
      pass_handle(p, state - (down ? p->types : 2 * p->types), down, origin);
      continue;
    }
    int node = p->graph->types[state].node;
    bool element = p->list_float[node] == state && p->list_handle[node] >= 0 && !p->result->left[node];
    if (directions & MIX_AMP_DOWN) {
      for (int e = p->first_fanout[state]; e < p->first_fanout[state + 1]; e++)
        if (p->enter[p->fanouts[e]]) reach(p, p->fanouts[e], origin);
      if (element && p->role[node] == MIX_AMP_LIST_WRITER) reach(p, p->types + p->list_handle[node], origin);
    }
    if (directions & MIX_AMP_UP) {
      for (int e = p->first_fanin[state]; e < p->first_fanin[state + 1]; e++)
        if (p->enter[p->fanins[e]]) reach(p, p->fanins[e], origin);
      if (element && p->role[node] == MIX_AMP_LIST_READER)
        reach(p, 2 * p->types + p->list_handle[node], origin);
    }
  }
}
