/* The rewritten graph in graphviz's language: colours show lists, thick borders converted ops, ellipses
 * casts. */
#include "base/alloc.h"
#include "base/error.h"
#include "base/text.h"
#include "amp/forward_nodes.h"
#include <string.h>

static const struct {
  mix_amp_class class;
  const char *colour;
} colours[] = {{MIX_AMP_ALLOW, "#b7e1a1"},
               {MIX_AMP_INFER, "#fff2a8"},
               {MIX_AMP_DENY, "#f4b6b0"},
               {MIX_AMP_CLEAR, "#c9dcf2"},
               {MIX_AMP_NONE, "#ffffff"}};
enum { COLOURS = sizeof colours / sizeof *colours };

static const char *colour_of(mix_amp_class class) {
  for (int i = 0; i < COLOURS; i++)
    if (colours[i].class == class) return colours[i].colour;
  return "#ffffff";
}

/* The type shown for a node: its first float32 type, or its first; -1: none. */
static int shown_type(const mix_amp_result *r, int node) {
  const mix_amp_signature *signature = mix_amp_signature_of(r, node);
  for (int t = signature->first_type; t < signature->first_type + signature->type_count; t++)
    if (r->graph->types[t].dtype == MIX_AMP_DTYPE_FLOAT32) return t;
  return signature->type_count ? signature->first_type : -1;
}

static void put_node(mix_text *out, const mix_amp_result *r, int n) {
  const mix_amp_signature *signature = mix_amp_signature_of(r, n);
  mix_amp_class class = (mix_amp_class)r->class[n];
  int type = shown_type(r, n);
  char reason[1024] = "it has no types";
  bool converted = false;
  for (int t = signature->first_type; t < signature->first_type + signature->type_count; t++)
    converted |= r->after[t] != r->graph->types[t].dtype;
  mix_text_put(out, "  n%d [label=\"", n);
  mix_text_put_dot(out, signature->op);
  mix_text_put(out, "\\n");
  mix_text_put_dot(out, r->graph->nodes[n].name);
  if (type >= 0) {
    const char *before = mix_amp_dtype_name(r->graph->types[type].dtype),
               *after = mix_amp_dtype_name(r->after[type]);
    mix_text_put(out, r->after[type] == r->graph->types[type].dtype ? "\\n%s" : "\\n%s \u2192 %s", before,
                 after);
    mix_amp_explain(r, type, reason, sizeof reason);
  }
  if (r->node_removed[n]) mix_text_put(out, "\\nremoved: %s", r->node_removed[n]);
  mix_text_put(out, "\" tooltip=\"%s: ", mix_amp_class_name(class));
  mix_text_put_dot(out, reason);
  mix_text_put(out, "\" fillcolor=\"%s\"%s];\n", colour_of(class), converted ? " penwidth=3" : "");
}

static void put_casts(mix_text *out, const mix_amp_result *r, const char *drawn) {
  for (int c = 0; c < r->cast_count; c++) {
    const mix_amp_cast *cast = &r->casts[c];
    const char *removed = r->cast_removed[c];
    bool feeds = false;
    for (int u = cast->first_use; u < cast->first_use + cast->use_count; u++)
      feeds |= drawn[r->graph->inputs[r->uses[u]].node];
    if (!drawn[cast->node] || (cast->use_count && !feeds)) continue;
    mix_text_put(
        out,
        "  c%d [label=\"Cast\\n%s%s%s\" shape=ellipse style=\"%s\" fillcolor=\"#e8d5f2\" fontsize=9%s];\n", c,
        mix_amp_dtype_name(cast->dtype), removed ? "\\nremoved: " : "", removed ? removed : "",
        removed ? "dotted" : "filled,dashed", removed ? " fontcolor=\"#808080\"" : "");
    if (cast->cast >= 0)
      mix_text_put(out, "  c%d -> c%d;\n", cast->cast, c);
    else
      mix_text_put(out, "  n%d -> c%d;\n", cast->node, c);
  }
}

static void put_legend(mix_text *out) {
  mix_text_put(out, "  subgraph cluster_legend {\n    label=\"list (thick: converted)\" fontsize=10;\n");
  for (int i = 0; i < COLOURS; i++)
    mix_text_put(out, "    l%d [label=\"%s\" fillcolor=\"%s\"];\n", i, mix_amp_class_name(colours[i].class),
                 colours[i].colour);
  mix_text_put(out, "  }\n");
}

static void put_edges(mix_text *out, const mix_amp_result *r, const char *drawn) {
  for (int i = 0; i < r->graph->input_count; i++) {
    const mix_amp_input *input = &r->graph->inputs[i];
    if (!drawn[input->node] || input->source < 0 || !drawn[input->source]) continue;
    if (r->input_cast[i] >= 0)
      mix_text_put(out, "  c%d -> n%d;\n", r->input_cast[i], input->node);
    else
      mix_text_put(out, "  n%d -> n%d;\n", input->source, input->node);
  }
}

/* The bytes of the layer's path in a name: all before the last slash. */
static size_t path_bytes(const char *name) {
  const char *end = strrchr(name, '/');
  return end ? (size_t)(end - name) : 0;
}

/* Each layer in a frame of its own, in the order of its first node. */
static bool put_nodes(mix_text *out, const mix_amp_result *r, const char *drawn) {
  const mix_amp_graph *graph = r->graph;
  char *done = mix_calloc((size_t)graph->node_count + 1, 1);
  if (!done) return false;
  for (int n = 0; n < graph->node_count; n++) {
    const char *name = graph->nodes[n].name;
    const size_t bytes = path_bytes(name);
    if (!drawn[n] || done[n]) continue;
    if (bytes) {
      mix_text_put(out, "  subgraph cluster_%d {\n    fontsize=10 color=\"#909090\" label=\"", n);
      for (size_t c = 0; c < bytes; c++) mix_text_put_dot(out, (const char[2]){name[c], 0});
      mix_text_put(out, "\";\n");
    }
    for (int m = n; m < (bytes ? graph->node_count : n + 1); m++) {
      const char *other = graph->nodes[m].name;
      if (!drawn[m] || done[m] || (bytes && (path_bytes(other) != bytes || strncmp(name, other, bytes))))
        continue;
      put_node(out, r, m);
      done[m] = 1;
    }
    if (bytes) mix_text_put(out, "  }\n");
  }
  mix_free(done);
  return true;
}

char *mix_amp_picture(const mix_amp_result *r, bool whole, int *nodes) {
  if (mix_failed() || !r) return NULL;
  char *drawn = mix_amp_forward_nodes(r, whole);
  if (!drawn) return NULL;
  mix_text out = {.grows = true};
  mix_text_put(&out, "digraph \"");
  mix_text_put_dot(&out, r->graph->label);
  mix_text_put(
      &out,
      "\" {\n  rankdir=TB; nslimit=4; nslimit1=4;\n  node [shape=box style=filled fontname=\"Helvetica\" "
      "fontsize=10];\n  edge [color=\"#606060\"];\n");
  put_legend(&out);
  const bool good = put_nodes(&out, r, drawn);
  put_casts(&out, r, drawn);
  put_edges(&out, r, drawn);
  mix_text_put(&out, "}\n");
  *nodes = 0;
  for (int n = 0; n < r->graph->node_count; n++) *nodes += drawn[n];
  mix_free(drawn);
  if (good && !out.failed) return out.text;
  mix_free(out.text);
  return NULL;
}
