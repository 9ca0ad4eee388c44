/* Building and checking the graph of the rewrite. */
#include "amp/graph.h"
#include "base/alloc.h"
#include "base/error.h"

#include <string.h>

struct mix_amp_claim {
  int type, port;
  bool output;
};
struct mix_amp_control {
  int node, source;
};
enum { TEXT_BLOCK = 1 << 16 };
struct mix_amp_text {
  struct mix_amp_text *next;
  size_t used, size;
  char bytes[];
};

static const struct {
  const char *name;
  bool quantised;
} dtypes[] = {
#define MIX_AMP_DTYPE_ROW(code, name, quantised) {name, quantised},
    MIX_AMP_DTYPE_LIST(MIX_AMP_DTYPE_ROW)
#undef MIX_AMP_DTYPE_ROW
};

const char *mix_amp_dtype_name(int dtype) { return dtypes[dtype].name; }
bool mix_amp_dtype_quantised(int dtype) { return dtypes[dtype].quantised; }

int mix_amp_dtype_of(const char *name) {
  for (int i = 0; i < MIX_AMP_DTYPES; i++)
    if (!strcmp(dtypes[i].name, name)) return i;
  return -1;
}

static void finalize(void *object) {
  mix_amp_graph *graph = object;
  mix_free(graph->nodes);
  mix_free(graph->types);
  mix_free(graph->inputs);
  mix_amp_names_free(&graph->names);
  mix_free(graph->ports);
  mix_free(graph->first_consumer);
  mix_free(graph->consumers);
  mix_free(graph->order);
  mix_free(graph->claims);
  mix_free(graph->controls);
  while (graph->texts) {
    struct mix_amp_text *next = graph->texts->next;
    mix_free(graph->texts);
    graph->texts = next;
  }
}

static const mix_class class = {.name = "mixed precision graph", .finalize = finalize};

mix_amp_graph *mix_amp_graph_new(const char *label) {
  if (mix_failed()) return NULL;
  mix_amp_graph *graph = mix_object_new(sizeof *graph, &class);
  if (!graph) return NULL;
  mix_scoped(graph);
  graph->label = mix_amp_graph_text(graph, label ? label : "graph");
  return graph->label ? graph : NULL;
}

const char *mix_amp_graph_text(mix_amp_graph *graph, const char *text) {
  size_t size = strlen(text) + 1;
  struct mix_amp_text *block = graph->texts;
  if (!block || block->size - block->used < size) {
    size_t capacity = size > TEXT_BLOCK ? size : TEXT_BLOCK;
    block = mix_alloc(sizeof *block + capacity);
    if (!block) return NULL;
    *block = (struct mix_amp_text){.next = graph->texts, .size = capacity};
    graph->texts = block;
  }
  char *copy = block->bytes + block->used;
  memcpy(copy, text, size);
  block->used += size;
  return copy;
}

int mix_amp_graph_add_node(mix_amp_graph *graph, const mix_amp_node_spec *spec) {
  if (mix_failed()) return -1;
  if (mix_amp_names_find(&graph->names, spec->name)) {
    mix_fail_format("%s: two nodes are named '%s'; names must differ", graph->label, spec->name);
    return -1;
  }
  mix_amp_node node = {.preserved = spec->preserved, .stateful = spec->stateful, .function = spec->function};
  node.name = mix_amp_graph_text(graph, spec->name);
  node.device = mix_amp_graph_text(graph, spec->device ? spec->device : "");
  node.as_is.op = mix_amp_graph_text(graph, spec->op);
  if (spec->renamed) node.renamed.op = mix_amp_graph_text(graph, spec->renamed);
  if (!node.name || !node.device || !node.as_is.op || (spec->renamed && !node.renamed.op)) return -1;
  node.as_is.first_type = node.renamed.first_type = graph->type_count;
  node.first_input = graph->input_count;
  node.input_count = spec->input_count;
  if (!mix_reserve(&graph->nodes, &graph->node_capacity, graph->node_count + 1, sizeof *graph->nodes))
    return -1;
  if (!mix_reserve(&graph->inputs, &graph->input_capacity, graph->input_count + node.input_count,
                   sizeof *graph->inputs))
    return -1;
  int *number = mix_amp_names_add(&graph->names, node.name);
  if (!number) return -1;
  *number = graph->node_count;
  for (int i = 0; i < node.input_count; i++)
    graph->inputs[graph->input_count++] = (mix_amp_input){graph->node_count, -1, 0};
  graph->nodes[graph->node_count] = node;
  return graph->node_count++;
}

bool mix_amp_graph_add_type(mix_amp_graph *graph, const mix_amp_type_spec *spec) {
  if (mix_failed()) return false;
  mix_amp_node *node = &graph->nodes[graph->node_count - 1];
  mix_amp_signature *signature = spec->renamed ? &node->renamed : &node->as_is;
  if (signature->type_count == 0) signature->first_type = graph->type_count;
  size_t length = strlen(spec->id);
  mix_amp_type type = {.id = mix_amp_graph_text(graph, spec->id),
                       .node = graph->node_count - 1,
                       .dtype = (uint8_t)spec->dtype,
                       .allowed = (uint8_t)spec->allowed,
                       .kernel = (uint8_t)spec->kernel,
                       .fixed = spec->id[0] == '=',
                       .element = length > 0 && spec->id[length - 1] == ']',
                       .reference = spec->reference};
  int ports = spec->input_count + spec->output_count;
  if (!type.id || !mix_reserve(&graph->types, &graph->type_capacity, graph->type_count + 1, sizeof type))
    return false;
  if (!mix_reserve(&graph->claims, &graph->claim_capacity, graph->claim_count + ports, sizeof *graph->claims))
    return false;
  for (int i = 0; i < ports; i++) {
    bool output = i >= spec->input_count;
    int port = output ? spec->outputs[i - spec->input_count] : spec->inputs[i];
    graph->claims[graph->claim_count++] = (struct mix_amp_claim){graph->type_count, port, output};
  }
  signature->output_count += spec->output_count;
  signature->type_count++;
  graph->types[graph->type_count++] = type;
  return true;
}

bool mix_amp_graph_connect(mix_amp_graph *graph, int node, int input, int source, int port) {
  if (mix_failed()) return false;
  graph->inputs[graph->nodes[node].first_input + input] = (mix_amp_input){node, source, port};
  return true;
}

bool mix_amp_graph_control(mix_amp_graph *graph, int node, int source) {
  if (mix_failed()) return false;
  if (!mix_reserve(&graph->controls, &graph->control_capacity, graph->control_count + 1,
                   sizeof *graph->controls))
    return false;
  graph->controls[graph->control_count++] = (struct mix_amp_control){node, source};
  return true;
}

/* ---- checks ---- */

/* Gives each signature a range of `ports` and fills it from the claims. Each port is claimed once. */
static bool lay_out_ports(mix_amp_graph *graph) {
  int64_t total = 0, outputs = 0;
  for (int n = 0; n < graph->node_count; n++) {
    mix_amp_node *node = &graph->nodes[n];
    node->first_output = (int)outputs;
    outputs += node->as_is.output_count;
    node->as_is.ports = (int)total;
    total += node->input_count + node->as_is.output_count;
    node->renamed.ports = (int)total;
    if (node->renamed.op) total += node->input_count + node->renamed.output_count;
    if (total > INT32_MAX - 1) return mix_fail_format("%s: the graph has more than 2^31 ports", graph->label);
    if (node->renamed.op && node->renamed.output_count != node->as_is.output_count)
      return mix_fail_format("%s: node '%s': %s has %d outputs, but %s, which it is renamed to, has %d",
                             graph->label, node->name, node->as_is.op, node->as_is.output_count,
                             node->renamed.op, node->renamed.output_count);
  }
  graph->output_count = (int)outputs;
  graph->ports = mix_alloc((size_t)total * sizeof *graph->ports);
  if (!graph->ports) return false;
  for (int64_t i = 0; i < total; i++) graph->ports[i] = -1;
  for (int i = 0; i < graph->claim_count; i++) {
    const struct mix_amp_claim *claim = &graph->claims[i];
    const mix_amp_node *node = &graph->nodes[graph->types[claim->type].node];
    const mix_amp_signature *signature = &node->as_is;
    if (node->renamed.op && claim->type >= node->renamed.first_type && node->renamed.type_count > 0)
      signature = &node->renamed;
    const char *kind = claim->output ? "output" : "input";
    int count = claim->output ? signature->output_count : node->input_count;
    if (claim->port < 0 || claim->port >= count)
      return mix_fail_format("%s: node '%s': type %s has %s %d, but %s has %d data %ss, each of one type",
                             graph->label, node->name, graph->types[claim->type].id, kind, claim->port,
                             signature->op, count, kind);
    int *slot = &graph->ports[signature->ports + (claim->output ? node->input_count : 0) + claim->port];
    if (*slot >= 0)
      return mix_fail_format("%s: node '%s': %s %d has two types, %s and %s", graph->label, node->name, kind,
                             claim->port, graph->types[*slot].id, graph->types[claim->type].id);
    *slot = claim->type;
  }
  /* outputs need no check: there are as many claims as ports, and none is claimed twice */
  for (int n = 0; n < graph->node_count; n++)
    for (int second = 0; second <= (graph->nodes[n].renamed.op != NULL); second++) {
      const mix_amp_signature *signature = second ? &graph->nodes[n].renamed : &graph->nodes[n].as_is;
      for (int i = 0; i < graph->nodes[n].input_count; i++)
        if (mix_amp_input_type(graph, signature, i) < 0)
          return mix_fail_format("%s: node '%s': input %d of %s has no type", graph->label,
                                 graph->nodes[n].name, i, signature->op);
    }
  return true;
}

static bool check_input(const mix_amp_graph *graph, const mix_amp_input *input) {
  const mix_amp_node *node = &graph->nodes[input->node];
  int number = (int)(input - graph->inputs) - node->first_input;
  if (input->source < 0)
    return mix_fail_format("%s: node '%s': input %d is not connected", graph->label, node->name, number);
  const mix_amp_node *source = &graph->nodes[input->source];
  if (input->port < 0 || input->port >= source->as_is.output_count)
    return mix_fail_format("%s: node '%s': input %d reads '%s:%d', but %s '%s' has %d outputs", graph->label,
                           node->name, number, source->name, input->port, source->as_is.op, source->name,
                           source->as_is.output_count);
  const mix_amp_type *from = &graph->types[mix_amp_output_type(graph, source, &source->as_is, input->port)];
  for (int second = 0; second <= (node->renamed.op != NULL); second++) {
    const mix_amp_signature *signature = second ? &node->renamed : &node->as_is;
    const mix_amp_type *to = &graph->types[mix_amp_input_type(graph, signature, number)];
    if (to->dtype != from->dtype)
      return mix_fail_format("%s: node '%s': input %d of %s is %s (%s), but '%s:%d' gives %s", graph->label,
                             node->name, number, signature->op, mix_amp_dtype_name(to->dtype), to->id,
                             source->name, input->port, mix_amp_dtype_name(from->dtype));
  }
  return true;
}

static bool collect_consumers(mix_amp_graph *graph) {
  graph->first_consumer = mix_calloc((size_t)graph->output_count + 2, sizeof *graph->first_consumer);
  graph->consumers = mix_alloc((size_t)graph->input_count * sizeof *graph->consumers);
  if (!graph->first_consumer || !graph->consumers) return false;
  int *first = graph->first_consumer + 1; /* offset by one, so that filling moves each start to its place */
  for (int i = 0; i < graph->input_count; i++)
    first[graph->nodes[graph->inputs[i].source].first_output + graph->inputs[i].port + 1]++;
  for (int i = 0; i < graph->output_count; i++) first[i + 1] += first[i];
  for (int i = 0; i < graph->input_count; i++)
    graph->consumers[first[graph->nodes[graph->inputs[i].source].first_output + graph->inputs[i].port]++] = i;
  return true;
}

static bool closes_loop(const mix_amp_graph *graph, int source, int node) {
  return !strcmp(graph->nodes[source].as_is.op, "NextIteration") &&
         !strcmp(graph->nodes[node].as_is.op, "Merge");
}

/* Walks from an unsorted node to unsorted producers, one step for each node. It ends on a cycle. */
static bool fail_cycle(const mix_amp_graph *graph, const int *waiting, const int *blocker) {
  int node = 0;
  while (waiting[node] == 0) node++;
  for (int i = 0; i < graph->node_count; i++) node = blocker[node];
  return mix_fail_format("%s: node '%s' (%s) depends on itself; only NextIteration -> Merge may close a loop",
                         graph->label, graph->nodes[node].name, graph->nodes[node].as_is.op);
}

/* Kahn: A. B. Kahn, Topological sorting of large networks, CACM 5(11), 1962. */
static bool sort_nodes(mix_amp_graph *graph) {
  int count = graph->node_count, edges = graph->input_count + graph->control_count;
  int *first = mix_calloc((size_t)count + 2, sizeof *first), *to = mix_alloc((size_t)edges * sizeof *to);
  int *waiting = mix_calloc((size_t)count + 1, sizeof *waiting),
      *blocker = mix_alloc(((size_t)count + 1) * sizeof *blocker);
  graph->order = mix_alloc(((size_t)count + 1) * sizeof *graph->order);
  bool ok = first && to && waiting && blocker && graph->order;
  for (int fill = 0; ok && fill < 2; fill++) {
    for (int i = 0; i < edges; i++) {
      int c = i - graph->input_count;
      int source = c < 0 ? graph->inputs[i].source : graph->controls[c].source,
          node = c < 0 ? graph->inputs[i].node : graph->controls[c].node;
      if (closes_loop(graph, source, node)) continue;
      if (fill)
        to[first[source + 1]++] = node;
      else
        first[source + 2]++, waiting[node]++;
    }
    for (int n = 0; !fill && n < count; n++) first[n + 1] += first[n];
  }
  if (ok) {
    int sorted = 0;
    for (int n = 0; n < count; n++)
      if (!waiting[n]) graph->order[sorted++] = n;
    for (int head = 0; head < sorted; head++)
      for (int e = first[graph->order[head]]; e < first[graph->order[head] + 1]; e++)
        if (--waiting[to[e]] == 0) graph->order[sorted++] = to[e];
    if (sorted < count) {
      for (int n = 0; n < count; n++)
        for (int e = first[n]; waiting[n] && e < first[n + 1]; e++) blocker[to[e]] = n;
      ok = fail_cycle(graph, waiting, blocker);
    }
  }
  mix_free(first);
  mix_free(to);
  mix_free(waiting);
  mix_free(blocker);
  return ok;
}

bool mix_amp_graph_finish(mix_amp_graph *graph) {
  if (mix_failed() || !lay_out_ports(graph)) return false;
  for (int i = 0; i < graph->input_count; i++)
    if (!check_input(graph, &graph->inputs[i])) return false;
  if (!collect_consumers(graph) || !sort_nodes(graph)) return false;
  mix_free(graph->claims);
  mix_free(graph->controls);
  graph->claims = NULL;
  graph->controls = NULL;
  graph->claim_count = graph->claim_capacity = graph->control_count = graph->control_capacity = 0;
  return true;
}
