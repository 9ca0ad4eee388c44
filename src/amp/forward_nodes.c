/* The forward pass of a graph, from its names: data that leaves the model's layers, as to a loss, and comes
 * back into them is a gradient. */
#include "amp/forward_nodes.h"

#include "base/alloc.h"
#include <string.h>

/* In this order; a node is not before its inputs. */
enum { BEFORE_MODEL, IN_MODEL, BEHIND_MODEL, BACKWARD };

/* The first part of the path of the first op in the allow list: the model. */
static const char *model_path(const mix_amp_result *r, size_t *bytes) {
  for (int i = 0; i < r->graph->node_count; i++) {
    const int n = r->graph->order[i];
    const char *name = r->graph->nodes[n].name;
    *bytes = strcspn(name, "/") + 1;
    if (r->class[n] == MIX_AMP_ALLOW && strchr(name, '/')) return name;
  }
  *bytes = 0;
  return NULL;
}

/* TensorFlow's names of gradients. */
static bool is_gradient(const char *name) {
  return !strncmp(name, "gradient_tape/", 14) || !strncmp(name, "gradients/", 10);
}

static void find_phases(const mix_amp_result *r, char *phase) {
  size_t bytes;
  const char *model = model_path(r, &bytes);
  for (int o = 0; o < r->graph->node_count; o++) {
    const int n = r->graph->order[o];
    const mix_amp_node *node = &r->graph->nodes[n];
    const bool inside = model && !strncmp(node->name, model, bytes);
    for (int i = node->first_input; i < node->first_input + node->input_count; i++) {
      const int source = r->graph->inputs[i].source;
      if (source >= 0 && phase[source] > phase[n]) phase[n] = phase[source];
    }
    if (is_gradient(node->name) || (inside && phase[n] == BEHIND_MODEL))
      phase[n] = BACKWARD;
    else if (inside && phase[n] == BEFORE_MODEL)
      phase[n] = IN_MODEL;
    else if (!inside && phase[n] == IN_MODEL)
      phase[n] = BEHIND_MODEL;
  }
}

/* Does no op read it? */
static bool is_end(const mix_amp_graph *graph, int n) {
  const int first = graph->nodes[n].first_output, behind = first + graph->nodes[n].as_is.output_count;
  return graph->first_consumer[first] == graph->first_consumer[behind];
}

/* Results of the forward pass: what is behind the model, and the model's own results that nothing reads.
 * Where gradients have names of their own, all that bears the model's name is forward. */
static void choose_results(const mix_amp_result *r, const char *phase, char *chosen) {
  bool named = false;
  for (int n = 0; n < r->graph->node_count; n++) named |= is_gradient(r->graph->nodes[n].name);
  for (int n = 0; n < r->graph->node_count; n++)
    chosen[n] = phase[n] == BEHIND_MODEL || (phase[n] == IN_MODEL && (named || is_end(r->graph, n)));
}

/* What only the backward pass reads, such as counters of the optimizer, is not of the forward pass. A loop
 * takes another turn, since its NextIteration comes behind its Merge. */
static void choose_nodes(const mix_amp_result *r, const char *phase, char *chosen) {
  const int count = r->graph->node_count;
  choose_results(r, phase, chosen);
  for (bool again = true; again;) {
    again = false;
    for (int o = count - 1; o >= 0; o--) {
      const mix_amp_node *node = &r->graph->nodes[r->graph->order[o]];
      const char *own = &chosen[r->graph->order[o]];
      for (int i = node->first_input; *own && i < node->first_input + node->input_count; i++) {
        const int source = r->graph->inputs[i].source;
        if (source < 0 || chosen[source]) continue;
        chosen[source] = 1;
        again = true;
      }
    }
  }
  if (!memchr(chosen, 1, (size_t)count)) memset(chosen, 1, (size_t)count);
}

char *mix_amp_forward_nodes(const mix_amp_result *r, bool whole) {
  const int count = r->graph->node_count;
  char *phase = mix_calloc((size_t)count + 1, 1), *chosen = mix_calloc((size_t)count + 1, 1);
  if (phase && chosen) {
    find_phases(r, phase);
    if (whole || !memchr(phase, BACKWARD, (size_t)count))
      memset(chosen, 1, (size_t)count);
    else
      choose_nodes(r, phase, chosen);
  }
  mix_free(phase);
  if (phase && chosen) return chosen;
  mix_free(chosen);
  return NULL;
}
