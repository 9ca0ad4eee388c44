/* Decisions of the rewrite in the recorded format. */
#include "base/alloc.h"
#include "base/error.h"
#include "base/json.h"
#include "cli/amp/graph_json.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

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
static json_t *member(json_t *object, const char *key) {
  json_t *found = json_object_get(object, key);
  if (found) return found;
  mix_json_set(object, key, json_object());
  return json_object_get(object, key);
}

static bool had_type(const mix_amp_graph *graph, const mix_amp_node *node, const char *id) {
  for (int t = node->as_is.first_type; t < node->as_is.first_type + node->as_is.type_count; t++)
    if (!strcmp(graph->types[t].id, id)) return true;
  return false;
}

/* dtypes: attributes that change. attrs_added: those that a renamed node did not have before. */
static void put_dtypes(const mix_amp_result *r, json_t *dtypes, json_t *ops, json_t *added) {
  const mix_amp_graph *graph = r->graph;
  for (int n = 0; n < graph->node_count; n++) {
    const mix_amp_signature *signature = mix_amp_signature_of(r, n);
    if (r->renamed[n]) mix_json_set(ops, graph->nodes[n].name, json_string(signature->op));
    for (int t = signature->first_type; t < signature->first_type + signature->type_count; t++) {
      const mix_amp_type *type = &graph->types[t];
      if (type->fixed) continue;
      bool is_new = r->renamed[n] && !had_type(graph, &graph->nodes[n], type->id);
      if (is_new || r->after[t] != type->dtype)
        mix_json_set(member(is_new ? added : dtypes, graph->nodes[n].name), type->id,
                     json_string(mix_amp_dtype_name(r->after[t])));
    }
  }
}

/* The casts with their readers, later casts first. `removed`: adds the pass that removes each cast, which the
 * recorded format lacks. */
static json_t *casts_json(const mix_amp_result *r, bool removed) {
  const mix_amp_graph *graph = r->graph;
  json_t *casts = json_array();
  for (int c = 0; c < r->cast_count; c++) {
    const mix_amp_cast *cast = &r->casts[c];
    json_t *object = json_object(), *consumers = json_array();
    mix_json_set(object, "id", json_sprintf("cast%d", c));
    mix_json_set(object, "from",
                 cast->cast >= 0 ? json_sprintf("cast%d:0", cast->cast)
                                 : json_sprintf("%s:%d", graph->nodes[cast->node].name, cast->port));
    mix_json_set(object, "to_dtype", json_string(mix_amp_dtype_name(cast->dtype)));
    mix_json_set(object, "device", json_string(graph->nodes[cast->node].device));
    for (int k = c + 1; cast->cast < 0 && k < r->cast_count && r->casts[k].node == cast->node &&
                        r->casts[k].port == cast->port;
         k++) {
      if (r->casts[k].cast == c) mix_json_append(consumers, json_pack("[o,i]", json_sprintf("cast%d", k), 0));
    }
    for (int u = cast->first_use; u < cast->first_use + cast->use_count; u++) {
      const mix_amp_input *input = &graph->inputs[r->uses[u]];
      mix_json_append(consumers, json_pack("[s,i]", graph->nodes[input->node].name,
                                           r->uses[u] - graph->nodes[input->node].first_input));
    }
    mix_json_set(object, "consumers", consumers);
    if (removed)
      mix_json_set(object, "removed_by", r->cast_removed[c] ? json_string(r->cast_removed[c]) : json_null());
    mix_json_append(casts, object);
  }
  return casts;
}

/* The text of `root`, which it frees. */
static char *text_of(json_t *root) {
  root = mix_json_whole(root);
  char *dumped = root ? json_dumps(root, JSON_COMPACT | JSON_ENSURE_ASCII) : NULL,
       *text = dumped ? mix_strdup(dumped) : NULL;
  if (!text) mix_fail_memory("the result of a rewrite");
  free(dumped);
  json_decref(root);
  return text;
}

char *cli_rewrite_text(const cli_rewrite_case *item, const mix_amp_result *r) {
  if (mix_failed() || !item || !r) return NULL;
  json_t *root = json_object(), *dtypes = json_object(), *ops = json_object(), *added = json_object();
  put_dtypes(r, dtypes, ops, added);
  mix_json_set(root, "name", json_string(item->name));
  mix_json_set(root, "status", json_string(mix_amp_status_name(r->status)));
  mix_json_set(root, "nodes_added", json_integer(r->cast_count));
  if (json_object_size(ops) > 0) {
    mix_json_set(root, "ops", json_incref(ops));
    mix_json_set(root, "attrs_added", json_incref(added));
  }
  json_decref(ops);
  json_decref(added);
  mix_json_set(root, "dtypes", dtypes);
  mix_json_set(root, "casts", casts_json(r, false));
  return text_of(root);
}

char *cli_explain_text(const cli_rewrite_case *item, const mix_amp_result *r) {
  if (mix_failed() || !item || !r) return NULL;
  const mix_amp_graph *graph = r->graph;
  json_t *root = json_object(), *ops = json_array();
  for (int n = 0; n < graph->node_count; n++) {
    const mix_amp_signature *signature = mix_amp_signature_of(r, n);
    json_t *op = json_object(), *types = json_object();
    mix_json_set(op, "name", json_string(graph->nodes[n].name));
    mix_json_set(op, "op", json_string(signature->op));
    mix_json_set(op, "list", json_string(mix_amp_class_name((mix_amp_class)r->class[n])));
    for (int t = signature->first_type; t < signature->first_type + signature->type_count; t++) {
      char text[1024];
      json_t *type = json_object();
      mix_json_set(type, "before", json_string(mix_amp_dtype_name(graph->types[t].dtype)));
      mix_json_set(type, "after", json_string(mix_amp_dtype_name(r->after[t])));
      mix_json_set(type, "reason", cut_text(mix_amp_explain(r, t, text, sizeof text)));
      mix_json_set(types, graph->types[t].id, type);
    }
    mix_json_set(op, "types", types);
    if (!strcmp(signature->op, "Cast"))
      mix_json_set(op, "removed_by", r->node_removed[n] ? json_string(r->node_removed[n]) : json_null());
    mix_json_append(ops, op);
  }
  mix_json_set(root, "name", json_string(item->name));
  mix_json_set(root, "mode", json_string(mix_amp_mode_name(r->options.mode)));
  mix_json_set(root, "status", json_string(mix_amp_status_name(r->status)));
  mix_json_set(root, "message", cut_text(r->message));
  mix_json_set(root, "converted", json_integer(r->converted_nodes));
  mix_json_set(root, "casts", casts_json(r, true));
  mix_json_set(root, "bytes_saved", json_integer(r->bytes_saved));
  mix_json_set(root, "bytes_cast", json_integer(r->bytes_cast));
  mix_json_set(root, "ops", ops);
  return text_of(root);
}
