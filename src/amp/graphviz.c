/* The rewritten graph in graphviz's language: colours show lists, thick borders converted ops, ellipses
 * casts. */
#include "base/alloc.h"
#include "base/error.h"
#include "base/text.h"
#include "amp/rewrite.h"

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

/* Escapes for double quotes. */
static void put_escaped(mix_text *out, const char *text) {
  for (; *text; text++) {
    if ((unsigned char)*text < 0x20)
      mix_text_put(out, " ");
    else
      mix_text_put(out, "%s%c", *text == '"' || *text == '\\' ? "\\" : "", *text);
  }
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
  put_escaped(out, signature->op);
  mix_text_put(out, "\\n");
  put_escaped(out, r->graph->nodes[n].name);
  if (type >= 0) {
    const char *before = mix_amp_dtype_name(r->graph->types[type].dtype),
               *after = mix_amp_dtype_name(r->after[type]);
    mix_text_put(out, r->after[type] == r->graph->types[type].dtype ? "\\n%s" : "\\n%s \u2192 %s", before,
                 after);
    mix_amp_explain(r, type, reason, sizeof reason);
  }
  if (r->node_removed[n]) mix_text_put(out, "\\nremoved: %s", r->node_removed[n]);
  mix_text_put(out, "\" tooltip=\"%s: ", mix_amp_class_name(class));
  put_escaped(out, reason);
  mix_text_put(out, "\" fillcolor=\"%s\"%s];\n", colour_of(class), converted ? " penwidth=3" : "");
}

static void put_casts(mix_text *out, const mix_amp_result *r) {
  for (int c = 0; c < r->cast_count; c++) {
    const mix_amp_cast *cast = &r->casts[c];
    const char *removed = r->cast_removed[c];
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

char *mix_amp_picture(const mix_amp_result *r) {
  if (mix_failed() || !r) return NULL;
  mix_text out = {.grows = true};
  mix_text_put(&out, "digraph \"");
  put_escaped(&out, r->graph->label);
  mix_text_put(
      &out,
      "\" {\n  rankdir=TB;\n  node [shape=box style=filled fontname=\"Helvetica\" fontsize=10];\n  edge "
      "[color=\"#606060\"];\n");
  put_legend(&out);
  for (int n = 0; n < r->graph->node_count; n++) put_node(&out, r, n);
  put_casts(&out, r);
  for (int i = 0; i < r->graph->input_count; i++) {
    const mix_amp_input *input = &r->graph->inputs[i];
    if (r->input_cast[i] >= 0)
      mix_text_put(&out, "  c%d -> n%d;\n", r->input_cast[i], input->node);
    else if (input->source >= 0)
      mix_text_put(&out, "  n%d -> n%d;\n", input->source, input->node);
  }
  mix_text_put(&out, "}\n");
  if (!out.failed) return out.text;
  mix_free(out.text);
  return NULL;
}
