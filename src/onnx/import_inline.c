/* A graph of ONNX with its functions replaced by their nodes, and with names of its own for each graph in a
 * node. What a loop computes in each step of the same values is done once, before it. */
#include "onnx/import.h"

#include "base/error.h"
#include "base/fields.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Functions may call others, and loops may be long; layers of Keras for this many are made in seconds. */
enum { MAX_CALLS = 32, MAX_COPIED = 1 << 17, NAME_BYTES = 160 };

/* Where nodes go. */
typedef struct sink {
  const struct sink *outer; /* where nodes go that do not change from step to step; NULL: nowhere else */
  mix_import_nodes *nodes;
  json_t *changing; /* names that do; NULL outside of loops */
} sink;

typedef struct scope {
  const struct scope *outer; /* NULL: the graph, or a function, which sees no names but its own */
  json_t *names;             /* NULL: the graph's */
  const mix_onnx_function *function;
  const mix_onnx_node *call; /* of the function; NULL: in none */
  const sink *sink;
  int calls;
} scope;

static bool copy_nodes(mix_import *in, const scope *s, const mix_onnx_node *nodes, int count);

/* ---- names ---- */

json_t *mix_import_new_map(mix_import *in) {
  json_t *map = json_object();
  return mix_json_append(in->maps, map) ? map : NULL;
}

const char *mix_import_new_name(mix_import *in, const char *name) {
  char text[NAME_BYTES + 16];
  size_t length = strnlen(name, NAME_BYTES);
  while (length && ((unsigned char)name[length] & 0xc0) == 0x80) length--; /* no part of a letter */
  snprintf(text, sizeof text, "%.*s#%d", (int)length, name, ++in->names_made);
  char *copy = mix_scoped_memory(strlen(text) + 1);
  return copy ? strcpy(copy, text) : NULL;
}

/* What a name of the scope is in the whole. NULL with the error recorded. */
static const char *resolved(mix_import *in, const scope *s, const char *name) {
  if (!*name) return "";
  for (; s; s = s->outer) {
    const json_t *found = s->names ? json_object_get(s->names, name) : NULL;
    if (found) return json_string_value(found);
    if (!s->names) return name;
  }
  return mix_import_fail(in, MIX_FORMAT_ERROR, "its function reads '%.60s', which it does not make", name);
}

/* The name of a value that the scope makes. */
static const char *made(mix_import *in, const scope *s, const char *name) {
  if (!*name || !s->names) return name;
  const json_t *found = json_object_get(s->names, name);
  if (found) return json_string_value(found);
  const char *own = mix_import_new_name(in, name);
  return own && mix_json_set(s->names, name, json_string(own)) ? own : NULL;
}

/* ---- nodes ---- */

bool mix_import_append(mix_import_nodes *nodes, mix_import_node *node) {
  if (nodes->count == nodes->room) {
    const int room = nodes->room ? 2 * nodes->room : 32;
    mix_import_node **items = mix_scoped_memory((size_t)room * sizeof(mix_import_node *));
    if (!items) return false;
    if (nodes->count) memcpy(items, nodes->items, (size_t)nodes->count * sizeof(mix_import_node *));
    nodes->items = items;
    nodes->room = room;
  }
  nodes->items[nodes->count++] = node;
  return !mix_failed();
}

static int64_t cost_of(const mix_onnx_node *node) {
  return 2 + (int64_t)node->input_count + node->output_count + node->attribute_count;
}

bool mix_import_can_spend(mix_import *in, int64_t times, int count, mix_import_node *const *nodes) {
  const int64_t left = MAX_COPIED - in->copied;
  int64_t cost = 1;
  for (int i = 0; i < count && cost <= left; i++) cost += cost_of(&nodes[i]->node);
  return times <= left / cost ||
         mix_import_fail(in, MIX_UNSUPPORTED,
                         "functions and the steps of loops have together more than %d nodes and names",
                         (int)MAX_COPIED);
}

bool mix_import_spend_names(mix_import *in, int64_t count) {
  if (count > MAX_COPIED - in->copied) return mix_import_can_spend(in, INT64_MAX, 0, NULL);
  in->copied += (int)count;
  return true;
}

bool mix_import_spend(mix_import *in, const mix_onnx_node *node) {
  mix_import_node one = {.node = *node}, *nodes[] = {&one};
  if (!mix_import_can_spend(in, 1, 1, nodes)) return false;
  in->copied += (int)cost_of(node);
  return true;
}

static bool changes(const sink *s, const mix_onnx_node *node) {
  for (int i = 0; i < node->input_count; i++)
    if (json_object_get(s->changing, node->inputs[i])) return true;
  return false;
}

/* A node that is the same in each step of a loop goes before it. */
static bool place(const sink *s, mix_import_node *node) {
  if (s->outer && !node->body && !changes(s, &node->node)) return place(s->outer, node);
  for (int i = 0; s->changing && i < node->node.output_count; i++)
    mix_json_set(s->changing, node->node.outputs[i], json_true());
  return mix_import_append(s->nodes, node);
}

/* ---- graphs in nodes ---- */

static bool add_initializers(mix_import *in, const scope *s, const mix_onnx_graph *graph) {
  for (int i = 0; i < graph->initializer_count; i++) {
    mix_onnx_tensor *copy = mix_scoped_memory(sizeof *copy);
    if (!copy) return false;
    *copy = graph->initializers[i];
    copy->name = made(in, s, copy->name);
    if (!copy->name) return false;
    if (in->initializer_count == in->initializer_room) {
      const int room = 2 * in->initializer_room + 16;
      const mix_onnx_tensor **all = mix_scoped_memory((size_t)room * sizeof(mix_onnx_tensor *));
      if (!all) return false;
      if (in->initializer_count)
        memcpy(all, in->initializers, (size_t)in->initializer_count * sizeof(mix_onnx_tensor *));
      in->initializers = all;
      in->initializer_room = room;
    }
    in->initializers[in->initializer_count++] = copy;
  }
  return true;
}

static mix_import_body *copy_body(mix_import *in, const scope *outer, const mix_onnx_graph *graph,
                                  bool loops) {
  mix_import_body *body = mix_scoped_memory(sizeof *body);
  json_t *names = mix_import_new_map(in), *changing = mix_import_new_map(in);
  if (!body || !names || !changing) return NULL;
  const sink own = {loops ? outer->sink : NULL, &body->nodes, changing};
  const scope s = {outer, names, outer->function, outer->call, &own, outer->calls};
  body->inputs = mix_scoped_memory(((size_t)graph->input_count + 1) * sizeof(char *));
  body->outputs = mix_scoped_memory(((size_t)graph->output_count + 1) * sizeof(char *));
  if (!body->inputs || !body->outputs ||
      !mix_import_spend_names(in,
                              (int64_t)graph->input_count + graph->output_count + graph->initializer_count))
    return NULL;
  for (int i = 0; i < graph->input_count; i++) {
    if (!(body->inputs[i] = made(in, &s, graph->inputs[i].name))) return NULL;
    mix_json_set(changing, body->inputs[i], json_true());
  }
  if (!add_initializers(in, &s, graph) || !copy_nodes(in, &s, graph->nodes, graph->node_count)) return NULL;
  for (int i = 0; i < graph->output_count; i++)
    if (!(body->outputs[i] = resolved(in, &s, graph->outputs[i].name))) return NULL;
  body->input_count = graph->input_count;
  body->output_count = graph->output_count;
  return mix_failed() ? NULL : body;
}

static bool copy_bodies(mix_import *in, const scope *s, mix_import_node *copy) {
  const mix_onnx_node *node = &copy->node;
  const bool branches = !strcmp(node->op, "If");
  if (*node->domain && strcmp(node->domain, "ai.onnx")) return true;
  if (!branches && strcmp(node->op, "Loop") && strcmp(node->op, "Scan")) return true;
  const mix_onnx_attribute *first = mix_onnx_find(node, branches ? "then_branch" : "body");
  const mix_onnx_attribute *other = branches ? mix_onnx_find(node, "else_branch") : NULL;
  if (!first || !first->graph || (branches && (!other || !other->graph)))
    return mix_import_fail(in, MIX_FORMAT_ERROR, "it has no graph");
  copy->body = copy_body(in, s, first->graph, !branches);
  if (branches && copy->body) copy->other = copy_body(in, s, other->graph, false);
  in->node = &copy->node;
  return copy->body && (!branches || copy->other);
}

/* ---- functions ---- */

static const mix_onnx_function *function_of(const mix_import *in, const mix_onnx_node *node) {
  for (int i = 0; i < in->file->function_count; i++) {
    const mix_onnx_function *f = &in->file->functions[i];
    if (!strcmp(f->name, node->op) && !strcmp(f->domain, node->domain) &&
        !strcmp(f->overload, node->overload))
      return f;
  }
  return NULL;
}

static const mix_onnx_attribute *attribute_of(const scope *s, const char *name) {
  const mix_onnx_attribute *given = mix_onnx_find(s->call, name);
  for (int i = 0; !given && i < s->function->default_count; i++)
    if (!strcmp(s->function->defaults[i].name, name)) given = &s->function->defaults[i];
  return given;
}

/* Attributes of the function's call in place of references to them; those that it lacks are left out. */
static bool replace_references(const scope *s, mix_onnx_node *node) {
  int count = 0;
  bool any = false;
  for (int i = 0; i < node->attribute_count; i++) any = any || node->attributes[i].reference;
  if (!any) return true;
  mix_onnx_attribute *all = mix_scoped_memory((size_t)node->attribute_count * sizeof *all);
  if (!all) return false;
  for (int i = 0; i < node->attribute_count; i++) {
    const mix_onnx_attribute *own = &node->attributes[i], *given = own;
    if (own->reference) given = s->call ? attribute_of(s, own->reference) : NULL;
    if (!given || (own->reference && given->reference)) continue;
    all[count] = *given;
    all[count++].name = own->name;
  }
  node->attributes = all;
  node->attribute_count = count;
  return true;
}

static int place_of(int count, const char *const *names, const char *name) {
  for (int i = 0; i < count; i++)
    if (!strcmp(names[i], name)) return i;
  return -1;
}

/* An output that is an input is no node's. */
static bool pass_on(mix_import *in, const scope *s, const char *from, const char *to) {
  mix_import_node *node = mix_scoped_memory(sizeof *node);
  const char **names = mix_scoped_memory(2 * sizeof *names);
  if (!node || !names) return false;
  names[0] = resolved(in, s, from);
  names[1] = to;
  node->node = (mix_onnx_node){.name = "",
                               .op = "Identity",
                               .domain = "",
                               .overload = "",
                               .inputs = names,
                               .outputs = names + 1,
                               .input_count = 1,
                               .output_count = 1};
  return names[0] && place(s->sink, node);
}

static bool inline_function(mix_import *in, const scope *outer, const mix_onnx_function *f,
                            const mix_onnx_node *call) {
  json_t *names = mix_import_new_map(in);
  const scope s = {NULL, names, f, call, outer->sink, outer->calls + 1};
  if (!names) return false;
  if (s.calls > MAX_CALLS)
    return mix_import_fail(in, MIX_UNSUPPORTED, "functions call one another more than %d deep", MAX_CALLS);
  if (call->input_count > f->input_count || call->output_count > f->output_count)
    return mix_import_fail(in, MIX_FORMAT_ERROR, "its function has %d inputs and %d outputs", f->input_count,
                           f->output_count);
  if (f->opset && f->opset != in->file->opset && (f->opset < 13 || in->file->opset < 13))
    return mix_import_fail(in, MIX_UNSUPPORTED, "its function uses operator set %lld", (long long)f->opset);
  if (!mix_import_spend_names(in, f->input_count)) return false;
  for (int i = 0; i < f->input_count; i++)
    mix_json_set(names, f->inputs[i], json_string(i < call->input_count ? call->inputs[i] : ""));
  for (int i = 0; i < call->output_count; i++) {
    if (!*call->outputs[i]) continue;
    if (place_of(f->input_count, f->inputs, f->outputs[i]) < 0)
      mix_json_set(names, f->outputs[i], json_string(call->outputs[i]));
    else if (!pass_on(in, &s, f->outputs[i], call->outputs[i]))
      return false;
  }
  return !mix_failed() && copy_nodes(in, &s, f->nodes, f->node_count);
}

/* ---- the whole ---- */

static bool rename_node(mix_import *in, const scope *s, const mix_onnx_node *node, mix_import_node *copy) {
  const char **names =
      mix_scoped_memory(((size_t)node->input_count + (size_t)node->output_count + 1) * sizeof *names);
  if (!names) return false;
  copy->node = *node;
  copy->node.inputs = names;
  copy->node.outputs = names + node->input_count;
  for (int i = 0; i < node->output_count; i++) copy->node.outputs[i] = node->outputs[i];
  in->node = &copy->node;
  for (int i = 0; i < node->input_count; i++)
    if (!(copy->node.inputs[i] = resolved(in, s, node->inputs[i]))) return false;
  return true;
}

static bool copy_node(mix_import *in, const scope *s, const mix_onnx_node *node) {
  mix_import_node *copy = mix_scoped_memory(sizeof *copy);
  in->node = node;
  if (!copy || (s->names && !mix_import_spend(in, node)) || !rename_node(in, s, node, copy) ||
      !replace_references(s, &copy->node) || !copy_bodies(in, s, copy))
    return false;
  for (int i = 0; i < node->output_count; i++)
    if (!(copy->node.outputs[i] = made(in, s, node->outputs[i]))) return false;
  const mix_onnx_function *function = function_of(in, node);
  if (function) return mix_import_spend(in, node) && inline_function(in, s, function, &copy->node);
  return place(s->sink, copy);
}

static bool copy_nodes(mix_import *in, const scope *s, const mix_onnx_node *nodes, int count) {
  for (int i = 0; i < count; i++)
    if (!copy_node(in, s, &nodes[i])) return false;
  return !mix_failed();
}

/* Names that are made end in higher numbers than those of the graph, so that none is one of these. */
static void skip_number(mix_import *in, const char *name) {
  const char *mark = strrchr(name, '#');
  const long number = mark ? strtol(mark + 1, NULL, 10) : 0;
  if (number > in->names_made && number < 1 << 30) in->names_made = (int)number;
}

static void skip_numbers(mix_import *in, const mix_onnx_graph *graph) {
  for (int i = 0; i < graph->input_count; i++) skip_number(in, graph->inputs[i].name);
  for (int i = 0; i < graph->initializer_count; i++) skip_number(in, graph->initializers[i].name);
  for (int n = 0; n < graph->node_count; n++)
    for (int i = 0; i < graph->nodes[n].output_count; i++) skip_number(in, graph->nodes[n].outputs[i]);
}

bool mix_import_inline(mix_import *in) {
  const mix_onnx_graph *graph = &in->file->graph;
  const sink own = {NULL, &in->nodes, NULL};
  const scope s = {.sink = &own};
  in->initializers = mix_scoped_memory(((size_t)graph->initializer_count + 1) * sizeof(mix_onnx_tensor *));
  if (!in->initializers) return false;
  in->initializer_room = graph->initializer_count + 1;
  skip_numbers(in, graph);
  for (int i = 0; i < graph->initializer_count; i++)
    in->initializers[in->initializer_count++] = &graph->initializers[i];
  return copy_nodes(in, &s, graph->nodes, graph->node_count);
}
