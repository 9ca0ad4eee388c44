/* Decisions of the rewrite in the recorded format. */
#include "base/alloc.h"
#include "base/error.h"
#include "base/json.h"
#include "cli/amp/graph_json.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A chain of calls needs one check at its end: `ok` becomes false without memory. */
static void put(bool *ok, json_t *object, const char *key, json_t *value) {
  if (!mix_json_set(object, key, value)) *ok = false;
}
static void append(bool *ok, json_t *array, json_t *value) {
  if (!mix_json_append(array, value)) *ok = false;
}

/* A text that may be cut inside a UTF-8 sequence. */
static json_t *cut_text(const char *text) {
  size_t length = strlen(text);
  errno = 0;
  json_t *value = json_stringn(text, length);
  for (size_t cut = 1; !value && errno != ENOMEM && cut < 4 && cut <= length; cut++)
    value = json_stringn(text, length - cut);
  return value;
}

/* The object under a key, created if missing. */
static json_t *member(bool *ok, json_t *object, const char *key) {
  json_t *found = json_object_get(object, key);
  if (found) return found;
  put(ok, object, key, json_object());
  return json_object_get(object, key);
}

static bool had_type(const mix_amp_graph *graph, const mix_amp_node *node, const char *id) {
  for (int t = node->as_is.first_type; t < node->as_is.first_type + node->as_is.type_count; t++)
    if (!strcmp(graph->types[t].id, id)) return true;
  return false;
}

/* dtypes: attributes that change. attrs_added: those that a renamed node did not have before. */
static void put_dtypes(bool *ok, const mix_amp_result *r, json_t *dtypes, json_t *ops, json_t *added) {
  const mix_amp_graph *graph = r->graph;
  for (int n = 0; n < graph->node_count; n++) {
    const mix_amp_signature *signature = mix_amp_signature_of(r, n);
    if (r->renamed[n]) put(ok, ops, graph->nodes[n].name, json_string(signature->op));
    for (int t = signature->first_type; t < signature->first_type + signature->type_count; t++) {
      const mix_amp_type *type = &graph->types[t];
      if (type->fixed) continue;
      bool is_new = r->renamed[n] && !had_type(graph, &graph->nodes[n], type->id);
      if (is_new || r->after[t] != type->dtype)
        put(ok, member(ok, is_new ? added : dtypes, graph->nodes[n].name), type->id,
            json_string(mix_amp_dtype_name(r->after[t])));
    }
  }
}

/* The casts with their readers, later casts first. `removed`: adds the pass that removes each cast, which the
 * recorded format lacks. */
static json_t *casts_json(bool *ok, const mix_amp_result *r, bool removed) {
  const mix_amp_graph *graph = r->graph;
  json_t *casts = json_array();
  char text[4096];
  for (int c = 0; c < r->cast_count; c++) {
    const mix_amp_cast *cast = &r->casts[c];
    json_t *object = json_object(), *consumers = json_array();
    snprintf(text, sizeof text, "cast%d", c);
    put(ok, object, "id", json_string(text));
    int length = cast->cast >= 0
                     ? snprintf(text, sizeof text, "cast%d:0", cast->cast)
                     : snprintf(text, sizeof text, "%s:%d", graph->nodes[cast->node].name, cast->port);
    char *whole = length < (int)sizeof text ? text : mix_alloc((size_t)length + 1);
    if (whole && whole != text)
      snprintf(whole, (size_t)length + 1, "%s:%d", graph->nodes[cast->node].name, cast->port);
    put(ok, object, "from", whole ? json_string(whole) : NULL);
    if (whole != text) mix_free(whole);
    put(ok, object, "to_dtype", json_string(mix_amp_dtype_name(cast->dtype)));
    put(ok, object, "device", json_string(graph->nodes[cast->node].device));
    for (int k = c + 1; cast->cast < 0 && k < r->cast_count && r->casts[k].node == cast->node &&
                        r->casts[k].port == cast->port;
         k++) {
      if (r->casts[k].cast != c) continue;
      snprintf(text, sizeof text, "cast%d", k);
      append(ok, consumers, json_pack("[s,i]", text, 0));
    }
    for (int u = cast->first_use; u < cast->first_use + cast->use_count; u++) {
      const mix_amp_input *input = &graph->inputs[r->uses[u]];
      append(ok, consumers,
             json_pack("[s,i]", graph->nodes[input->node].name,
                       r->uses[u] - graph->nodes[input->node].first_input));
    }
    put(ok, object, "consumers", consumers);
    if (removed)
      put(ok, object, "removed_by", r->cast_removed[c] ? json_string(r->cast_removed[c]) : json_null());
    append(ok, casts, object);
  }
  return casts;
}

/* The text of `root`, which it frees. */
static char *text_of(bool ok, json_t *root) {
  char *dumped = ok ? json_dumps(root, JSON_COMPACT | JSON_ENSURE_ASCII) : NULL;
  char *text = dumped ? mix_strdup(dumped) : NULL;
  if (!text) mix_fail_memory("the result of a rewrite");
  free(dumped);
  json_decref(root);
  return text;
}

char *cli_rewrite_text(const cli_rewrite_case *item, const mix_amp_result *r) {
  if (mix_failed() || !item || !r) return NULL;
  bool ok = true;
  json_t *root = json_object(), *dtypes = json_object(), *ops = json_object(), *added = json_object();
  put_dtypes(&ok, r, dtypes, ops, added);
  put(&ok, root, "name", json_string(item->name));
  put(&ok, root, "status", json_string(mix_amp_status_name(r->status)));
  put(&ok, root, "nodes_added", json_integer(r->cast_count));
  bool renamed = json_object_size(ops) > 0;
  if (renamed)
    put(&ok, root, "ops", ops);
  else
    json_decref(ops);
  if (renamed)
    put(&ok, root, "attrs_added", added);
  else
    json_decref(added);
  put(&ok, root, "dtypes", dtypes);
  put(&ok, root, "casts", casts_json(&ok, r, false));
  return text_of(ok, root);
}

char *cli_explain_text(const cli_rewrite_case *item, const mix_amp_result *r) {
  if (mix_failed() || !item || !r) return NULL;
  bool ok = true;
  const mix_amp_graph *graph = r->graph;
  json_t *root = json_object(), *ops = json_array();
  for (int n = 0; n < graph->node_count; n++) {
    const mix_amp_signature *signature = mix_amp_signature_of(r, n);
    json_t *op = json_object(), *types = json_object();
    put(&ok, op, "name", json_string(graph->nodes[n].name));
    put(&ok, op, "op", json_string(signature->op));
    put(&ok, op, "list", json_string(mix_amp_class_name((mix_amp_class)r->class[n])));
    for (int t = signature->first_type; t < signature->first_type + signature->type_count; t++) {
      char text[1024];
      json_t *type = json_object();
      put(&ok, type, "before", json_string(mix_amp_dtype_name(graph->types[t].dtype)));
      put(&ok, type, "after", json_string(mix_amp_dtype_name(r->after[t])));
      put(&ok, type, "reason", cut_text(mix_amp_explain(r, t, text, sizeof text)));
      put(&ok, types, graph->types[t].id, type);
    }
    put(&ok, op, "types", types);
    if (!strcmp(signature->op, "Cast"))
      put(&ok, op, "removed_by", r->node_removed[n] ? json_string(r->node_removed[n]) : json_null());
    append(&ok, ops, op);
  }
  put(&ok, root, "name", json_string(item->name));
  put(&ok, root, "mode", json_string(mix_amp_mode_name(r->options.mode)));
  put(&ok, root, "status", json_string(mix_amp_status_name(r->status)));
  put(&ok, root, "message", cut_text(r->message));
  put(&ok, root, "converted", json_integer(r->converted_nodes));
  put(&ok, root, "casts", casts_json(&ok, r, true));
  put(&ok, root, "bytes_saved", json_integer(r->bytes_saved));
  put(&ok, root, "bytes_cast", json_integer(r->bytes_cast));
  put(&ok, root, "ops", ops);
  return text_of(ok, root);
}
