/* The passes that colour types (spec 7.5, steps 5 to 14). Each takes linear time. */
#include "base/alloc.h"
#include "base/error.h"
#include "amp/paint.h"

#include <stdio.h>
#include <string.h>

static bool has_references(const mix_amp_graph *graph, const mix_amp_signature *signature) {
  for (int t = signature->first_type; t < signature->first_type + signature->type_count; t++)
    if (graph->types[t].reference) return true;
  return false;
}

/* TF1 ops with mutable reference arguments although their type attribute is a plain dtype. */
static bool takes_references(const char *op) {
  static const char *const ops[] = {
      "Assign",     "AssignAdd",    "AssignSub",    "CountUpTo",    "IsVariableInitialized",
      "RefEnter",   "RefExit",      "RefIdentity",  "RefMerge",     "RefNextIteration",
      "RefSelect",  "RefSwitch",    "ScatterAdd",   "ScatterDiv",   "ScatterMax",
      "ScatterMin", "ScatterMul",   "ScatterNdAdd", "ScatterNdSub", "ScatterNdUpdate",
      "ScatterSub", "ScatterUpdate"};
  for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
    if (!strcmp(ops[i], op)) return true;
  return false;
}

static bool forceable(const mix_amp_painting *p, int n) {
  const mix_amp_node *node = &p->graph->nodes[n];
  const mix_amp_signature *signature = mix_amp_signature_of(p->result, n);
  return strcmp(signature->op, "Const") != 0 && strcmp(signature->op, "SoftmaxCrossEntropyWithLogits") != 0 &&
         !node->stateful && !has_references(p->graph, signature) && !takes_references(signature->op);
}

/* Pass 1 (step 5): ops of the allow list. Returns whether there are any. */
static bool allow_listed(mix_amp_painting *p) {
  mix_amp_result *r = p->result;
  bool any = false, force = r->options.level == MIX_AMP_UNSAFE_FORCE_ALL;
  for (int n = 0; n < p->graph->node_count; n++) {
    bool listed = r->class[n] == MIX_AMP_ALLOW;
    if (r->left[n] || (!listed && !(force && forceable(p, n)))) continue;
    const mix_amp_signature *signature = mix_amp_signature_of(r, n);
    for (int t = signature->first_type; t < signature->first_type + signature->type_count; t++)
      mix_amp_set(r, t, MIX_AMP_COLOUR_ALLOW, listed ? MIX_AMP_LISTED : MIX_AMP_FORCED, -1, -1);
    any |= signature->type_count > 0;
  }
  return any;
}

/* Pass 2 (step 6): spreads deny downstream along `path`: deny and infer ops, and what leads to them through
 * clear ops. */
static bool deny_downstream(mix_amp_painting *p) {
  uint8_t *path = mix_alloc((size_t)p->types + 1);
  if (!path) return false;
  for (int t = 0; t < p->types; t++) p->enter[t] = p->class[t] == MIX_AMP_CLEAR;
  mix_amp_flood_clear(p);
  for (int t = 0; t < p->types; t++)
    if (p->class[t] == MIX_AMP_DENY || p->class[t] == MIX_AMP_INFER) mix_amp_flood_root(p, t);
  mix_amp_flood(p, MIX_AMP_UP);
  memcpy(path, p->seen, (size_t)p->types);

  for (int t = 0; t < p->types; t++) p->enter[t] = path[t] && !mix_amp_is_deny(p->result, t);
  mix_amp_flood_clear(p);
  for (int t = 0; t < p->types; t++)
    if (p->class[t] == MIX_AMP_DENY && !mix_amp_is_deny(p->result, t)) mix_amp_flood_root(p, t);
  mix_amp_flood(p, MIX_AMP_DOWN);
  for (int t = 0; t < p->types; t++)
    if (p->seen[t])
      mix_amp_set(p->result, t, MIX_AMP_COLOUR_DENY, p->origin[t] == t ? MIX_AMP_DENIED : MIX_AMP_REACHED,
                  p->origin[t] == t ? -1 : p->origin[t], -1);
  mix_free(path);
  return true;
}

/* Pass 3 (step 8): types between two allow ops. */
static bool allow_between(mix_amp_painting *p) {
  /* the allow op upstream; -1: none */
  int *above = mix_alloc(((size_t)p->types + 1) * sizeof *above);
  if (!above) return false;
  for (int t = 0; t < p->types; t++)
    p->enter[t] = p->open[t] && (p->class[t] == MIX_AMP_CLEAR || p->class[t] == MIX_AMP_INFER) &&
                  mix_amp_is_float32(&p->graph->types[t]) && !mix_amp_is_deny(p->result, t) &&
                  mix_amp_supports(p->result, t);
  for (int up = 0; up <= 1; up++) {
    mix_amp_flood_clear(p);
    for (int t = 0; t < p->types; t++)
      if (p->open[t] && p->class[t] == MIX_AMP_ALLOW) mix_amp_flood_root(p, t);
    mix_amp_flood(p, up ? MIX_AMP_UP : MIX_AMP_DOWN);
    for (int t = 0; !up && t < p->types; t++) {
      above[t] = p->seen[t] ? p->origin[t] : -1;
      p->enter[t] = p->seen[t];
    }
  }
  for (int t = 0; t < p->types; t++) {
    if (!p->seen[t] || mix_amp_is_allow(p->result, t)) continue;
    if (p->class[t] == MIX_AMP_ALLOW)
      mix_amp_set(p->result, t, MIX_AMP_COLOUR_ALLOW, MIX_AMP_LISTED, -1, -1);
    else
      mix_amp_set(p->result, t, MIX_AMP_COLOUR_ALLOW, MIX_AMP_BETWEEN, above[t], p->origin[t]);
  }
  mix_free(above);
  return true;
}

/* Propagates a converted list writer to the handles after it. Linear over all calls. */
static void propagate_writer(mix_amp_painting *p, int type) {
  mix_amp_flood_root(p, type);
  mix_amp_flood(p, MIX_AMP_DOWN);
}

/* Pass 4 (step 9): infer ops directly after converted ones, in node order. A list reader comes directly after
 * the writers of its list. No writer is denied, since that would deny the list and the reader. */
static void allow_behind(mix_amp_painting *p) {
  memset(p->enter, 0, (size_t)p->types);
  mix_amp_flood_clear(p);
  for (int t = 0; p->lists > 0 && t < p->types; t++)
    if (mix_amp_is_allow(p->result, t)) propagate_writer(p, t);
  for (int t = 0; t < p->types; t++) {
    if (!p->open[t] || p->class[t] != MIX_AMP_INFER || p->result->colour[t] ||
        !mix_amp_is_float32(&p->graph->types[t]) || !mix_amp_takes(p->result, t))
      continue;
    int cause = -1;
    bool denied = false;
    for (int e = p->first_fanin[t]; e < p->first_fanin[t + 1] && !denied; e++) {
      denied = mix_amp_is_deny(p->result, p->fanins[e]);
      if (cause < 0 && mix_amp_is_allow(p->result, p->fanins[e])) cause = p->fanins[e];
    }
    int node = p->graph->types[t].node;
    if (cause < 0 && p->list_float[node] == t && p->role[node] == MIX_AMP_LIST_READER &&
        p->list_handle[node] >= 0 && p->seen[p->types + p->list_handle[node]])
      cause = p->origin[p->types + p->list_handle[node]];
    if (denied || cause < 0) continue;
    mix_amp_set(p->result, t, MIX_AMP_COLOUR_ALLOW, MIX_AMP_BEHIND, cause, -1);
    if (p->lists > 0) propagate_writer(p, t);
  }
}

/* Pass 5 (step 10): clear ops connected to converted ones. */
static void allow_clear(mix_amp_painting *p) {
  for (int t = 0; t < p->types; t++)
    p->enter[t] = p->open[t] && p->class[t] == MIX_AMP_CLEAR && !p->result->colour[t] &&
                  mix_amp_is_float32(&p->graph->types[t]) && mix_amp_supports(p->result, t) &&
                  !p->reads_variable[p->graph->types[t].node];
  mix_amp_flood_clear(p);
  for (int t = 0; t < p->types; t++)
    if (p->open[t] && mix_amp_is_allow(p->result, t)) mix_amp_flood_root(p, t);
  mix_amp_flood(p, MIX_AMP_DOWN | MIX_AMP_UP);
  for (int t = 0; t < p->types; t++)
    if (p->seen[t] && !mix_amp_is_allow(p->result, t))
      mix_amp_set(p->result, t, MIX_AMP_COLOUR_ALLOW, MIX_AMP_BESIDE, p->origin[t], -1);
}

/* Pass 6 (step 11): allow ops that cannot take the target type. */
static void drop_impossible(mix_amp_painting *p) {
  for (int n = 0; n < p->graph->node_count; n++) {
    if (p->result->class[n] != MIX_AMP_ALLOW) continue;
    const mix_amp_signature *signature = mix_amp_signature_of(p->result, n);
    bool quantised = false;
    for (int t = signature->first_type; t < signature->first_type + signature->type_count; t++)
      if (mix_amp_dtype_quantised(p->graph->types[t].dtype)) quantised = true;
    for (int t = signature->first_type; t < signature->first_type + signature->type_count; t++)
      if (mix_amp_is_allow(p->result, t) && (quantised || !mix_amp_takes(p->result, t)))
        mix_amp_unset(p->result, t, MIX_AMP_NOT_TAKEN, -1);
  }
}

/* The type of a node with this id; -1: none. */
static int type_named(const mix_amp_painting *p, int node, const char *id) {
  const mix_amp_signature *signature = mix_amp_signature_of(p->result, node);
  for (int t = signature->first_type; t < signature->first_type + signature->type_count; t++)
    if (!strcmp(p->graph->types[t].id, id)) return t;
  return -1;
}

static bool stop(mix_amp_painting *p, mix_amp_status status, const char *what, int node) {
  p->result->status = status;
  snprintf(p->result->message, sizeof p->result->message, "%s: node '%s' (%s)", what,
           p->graph->nodes[node].name, p->graph->nodes[node].as_is.op);
  return false;
}

/* Step 13: both ends of a loop edge have the same colour. */
static bool match_loops(mix_amp_painting *p) {
  const mix_amp_graph *graph = p->graph;
  for (int n = 0; n < graph->node_count; n++) {
    const mix_amp_node *node = &graph->nodes[n];
    if (strcmp(node->as_is.op, "NextIteration") != 0) continue;
    int own = type_named(p, n, "T"), odd = -1, first = 0, end = 0;
    if (node->as_is.output_count > 0)
      first = graph->first_consumer[node->first_output], end = graph->first_consumer[node->first_output + 1];
    for (int c = first; c < end; c++) {
      int merge = graph->inputs[graph->consumers[c]].node;
      if (strcmp(graph->nodes[merge].as_is.op, "Merge") != 0)
        return stop(p, MIX_AMP_FAILED_PRECONDITION, "a NextIteration is read by what is no Merge", merge);
      int type = type_named(p, merge, "T");
      if (type < 0) return stop(p, MIX_AMP_INTERNAL, "a Merge has no type attribute T", merge);
      if (odd < 0 && !mix_amp_is_allow(p->result, type)) odd = type;
    }
    if (own < 0) return stop(p, MIX_AMP_INTERNAL, "a NextIteration has no type attribute T", n);
    for (int c = first; c < end && odd >= 0; c++) {
      int type = type_named(p, graph->inputs[graph->consumers[c]].node, "T");
      if (mix_amp_is_allow(p->result, type)) mix_amp_unset(p->result, type, MIX_AMP_LOOP_DENIED, odd);
    }
    if (odd >= 0 && mix_amp_is_allow(p->result, own)) mix_amp_unset(p->result, own, MIX_AMP_LOOP_DENIED, odd);
    if (odd < 0 && !mix_amp_is_allow(p->result, own))
      mix_amp_set(p->result, own, MIX_AMP_COLOUR_ALLOW, MIX_AMP_LOOP_ALLOWED, -1, -1);
  }
  return true;
}

/* Step 14: a Cast to float32 with only converted readers casts to the target directly. */
static void allow_casts(mix_amp_painting *p) {
  const mix_amp_graph *graph = p->graph;
  for (int n = 0; n < graph->node_count; n++) {
    const mix_amp_node *node = &graph->nodes[n];
    if (strcmp(node->as_is.op, "Cast") != 0 || node->as_is.output_count == 0) continue;
    int type = type_named(p, n, "DstT");
    if (type < 0 || !mix_amp_is_float32(&graph->types[type]) || mix_amp_is_allow(p->result, type)) continue;
    int first = graph->first_consumer[node->first_output],
        end = graph->first_consumer[node->first_output + 1];
    bool all = end > first;
    for (int c = first; c < end && all; c++) {
      const mix_amp_input *input = &graph->inputs[graph->consumers[c]];
      int number = graph->consumers[c] - graph->nodes[input->node].first_input;
      all = mix_amp_is_allow(p->result,
                             mix_amp_input_type(graph, mix_amp_signature_of(p->result, input->node), number));
    }
    if (all) mix_amp_set(p->result, type, MIX_AMP_COLOUR_ALLOW, MIX_AMP_CAST_ALLOWED, -1, -1);
  }
}

bool mix_amp_paint(mix_amp_painting *p) {
  if (!allow_listed(p)) {
    snprintf(p->result->message, sizeof p->result->message,
             "the graph has no op of the allow list that may be processed");
    return false;
  }
  if (p->result->options.level != MIX_AMP_UNSAFE_FORCE_ALL && !deny_downstream(p)) return false;
  mix_amp_match_lists(p);
  if (!allow_between(p)) return false;
  allow_behind(p);
  allow_clear(p);
  drop_impossible(p);
  mix_amp_match_lists(p);
  if (!match_loops(p)) return false;
  allow_casts(p);
  return true;
}
