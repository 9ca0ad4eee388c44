/* Keys of policy maps that match no layer, as a typing error or Keras's paths leave them. */
#include "base/error.h"
#include "base/pattern.h"
#include "base/text.h"
#include "base/alloc.h"
#include "nn/layer/layer.h"
#include <string.h>

/* Calls `visit` for the layer and all in it until one returns false. */
static bool walk(const mix_layer *layer, bool (*visit)(const mix_layer *layer, void *context),
                 void *context) {
  bool go_on = visit(layer, context);
  for (int i = 0; go_on && i < mix_list_count(layer->layers); i++)
    go_on = walk(mix_list_get(layer->layers, i), visit, context);
  return go_on;
}

static bool has_map(const mix_layer *layer) {
  return layer->policy->map && !layer->is_model && !layer->is_input;
}

static bool is_matched(const mix_layer *layer, void *context) {
  (void)context;
  const bool has_path = !layer->kind || !layer->kind->built_from_start; /* others may never be called */
  return !has_map(layer) || layer->matched || !has_path;
}

typedef struct search {
  const mix_layer *top; /* the maps of the layers before this one are known */
  const char *key, *call;
  const mix_policy *map;
  mix_text *paths;
} search;

static bool is_other_path(const mix_layer *layer, void *context) {
  const search *s = context;
  if (!has_map(layer) || !layer->map_path || !mix_policy_equal(layer->policy, s->map)) return true;
  if (s->paths) mix_text_put(s->paths, "%s%.60s", s->paths->used ? ", " : "", layer->map_path);
  return strcmp(s->key, layer->map_path) && !mix_pattern_matches(s->key, layer->map_path, s->call);
}

/* A key that is no expression matches what it equals. */
static bool matches_none(search *s) {
  mix_error_aside before;
  mix_error_set_aside(&before);
  const bool none = walk(s->top, is_other_path, s);
  mix_error_clear();
  mix_error_put_back(&before);
  return none;
}

static void warn(const search *s) {
  char text[400];
  mix_text paths = {.text = text, .size = sizeof text};
  search names = *s;
  names.paths = &paths;
  text[0] = 0;
  matches_none(&names);
  mix_log_message(MIX_LOG_WARNING,
                  "%s: the key '%.100s' of the policy map '%s' matches no layer; the paths of layers are: %s",
                  s->call, s->key, s->map->name, text);
}

/* The first layer with that map, or an equal one. */
static bool is_not_first(const mix_layer *layer, void *context) {
  search *s = context;
  if (!has_map(layer) || !mix_policy_equal(layer->policy, s->map)) return true;
  s->top = layer;
  return false;
}

static bool check_map(const mix_layer *layer, void *context) {
  const search *all = context;
  search first = {.map = layer->policy};
  if (!has_map(layer)) return true;
  walk(all->top, is_not_first, &first);
  for (int i = 0; first.top == layer && i < mix_policy_map_count(layer->policy); i++) {
    search s = {.top = all->top, .call = all->call, .map = layer->policy};
    s.key = mix_policy_map_key(layer->policy, i);
    if (matches_none(&s)) warn(&s);
  }
  return true;
}

void mix_warn_of_unmatched_keys(const mix_layer *top, const char *call) {
  search s = {.top = top, .call = call};
  if (!mix_failed() && walk(top, is_matched, NULL)) walk(top, check_map, &s);
}
