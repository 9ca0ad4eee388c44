/* Policies by the paths of layers (Keras's DTypePolicyMap). */
#include "nn/policy/policy_map.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/pattern.h"
#include "base/text.h"
#include <stdio.h>
#include <string.h>

bool mix_policy_is_map(const mix_policy *policy) { return mix_is(policy, &mix_policy_class) && policy->map; }

/* NULL with the error recorded. */
static mix_policy_entries *entries_of(const mix_policy *map, const char *call) {
  if (!mix_given(map, &mix_policy_class, call, "a map of policies")) return NULL;
  return map->map ? map->map
                  : mix_fail_type("%s: '%s' is a policy without keys; expected one of mix_policy_map_new",
                                  call, map->name);
}

/* ---- creation ---- */

/* A scoped map that has taken the entries; NULL with the error recorded. */
static mix_policy *map_of(mix_policy_entries *entries, const mix_semantics *semantics) {
  const mix_policy *otherwise = entries->otherwise;
  char name[160];
  mix_policy *map = otherwise ? mix_object_new(sizeof *map, &mix_policy_class) : NULL;
  if (!map) return mix_policy_entries_free(entries), NULL;
  snprintf(name, sizeof name, "map_%.140s", otherwise->name);
  map->map = entries;
  map->name = mix_intern(name);
  map->compute = otherwise->compute;
  map->variable = otherwise->variable;
  map->semantics = semantics;
  map->quantization_mode = otherwise->quantization_mode;
  map->source_name = otherwise->source_name;
  map->amax_history_length = otherwise->amax_history_length;
  if (map->name) return mix_scoped(map);
  mix_release(map);
  return NULL;
}

mix_policy *mix_policy_map_with(const mix_policy_map_options *options) {
  MIX_OPTIONS(mix_policy_map_options, o, options, "policy_map");
  const mix_semantics *semantics = mix_semantics_or_current(o.semantics);
  if (!semantics->policy_maps)
    return mix_fail_value("policy_map: %s has no policies by layer; expected the semantics keras3",
                          semantics->name);
  if (o.default_policy && o.default_object)
    return mix_fail_value("policy_map: both default_policy and default_object were given; give one");
  if (o.default_object && !mix_given(o.default_object, &mix_policy_class, "policy_map", "a policy"))
    return NULL;
  if (mix_policy_is_map(o.default_object))
    return mix_fail_value("policy_map: default_object is the map '%s'; expected a policy that is none",
                          o.default_object->name);
  mix_policy *otherwise = o.default_object   ? o.default_object
                          : o.default_policy ? mix_policy_new(o.default_policy, .semantics = semantics)
                                             : mix_global_policy();
  mix_policy_entries *entries = otherwise ? mix_calloc(1, sizeof *entries) : NULL;
  if (!entries) return NULL;
  entries->otherwise = mix_retain(otherwise);
  entries->given = o.default_policy ? mix_intern(o.default_policy) : NULL;
  entries->object_given = o.default_object;
  return map_of(entries, semantics);
}

/* ---- keys ---- */

mix_status mix_policy_map_set(mix_policy *map, const char *key, mix_policy *policy) {
  mix_policy_entries *entries = entries_of(map, "policy_map_set");
  if (!entries) return mix_error();
  if (!key) return mix_fail_status(MIX_TYPE_ERROR, "policy_map_set: got NULL for the key; expected a path");
  if (!mix_given(policy, &mix_policy_class, "policy_map_set", "a policy")) return mix_error();
  if (policy == map)
    return mix_fail_status(MIX_VALUE_ERROR, "policy_map_set: '%.100s' would stand for the map itself", key);
  if (mix_policy_entries_find(entries, key) >= 0)
    return mix_fail_status(MIX_VALUE_ERROR,
                           "policy_map_set: the key '%.100s' already exists with the policy '%s'; delete it "
                           "first, or choose another key",
                           key, entries->items[mix_policy_entries_find(entries, key)].policy->name);
  const char *interned = mix_intern(key);
  if (!interned ||
      !mix_reserve(&entries->items, &entries->capacity, entries->count + 1, sizeof *entries->items))
    return mix_error();
  entries->items[entries->count++] = (mix_policy_entry){interned, mix_retain(policy)};
  return MIX_OK;
}

mix_status mix_policy_map_set_name(mix_policy *map, const char *key, const char *name) {
  if (!entries_of(map, "policy_map_set_name")) return mix_error();
  if (!name)
    return mix_fail_status(MIX_VALUE_ERROR,
                           "policy_map_set_name: got NULL for the policy; expected its name");
  mix_policy *policy = mix_policy_new(name, .semantics = map->semantics);
  return policy ? mix_policy_map_set(map, key, policy) : mix_error();
}

mix_status mix_policy_map_delete(mix_policy *map, const char *key) {
  mix_policy_entries *entries = entries_of(map, "policy_map_delete");
  if (!entries) return mix_error();
  const int at = key ? mix_policy_entries_find(entries, key) : -1;
  if (at < 0)
    return mix_fail_status(MIX_VALUE_ERROR, "policy_map_delete: the map has no key '%.100s'",
                           key ? key : "NULL");
  mix_policy *policy = entries->items[at].policy;
  entries->count--;
  memmove(entries->items + at, entries->items + at + 1,
          (size_t)(entries->count - at) * sizeof *entries->items);
  mix_release(policy);
  return MIX_OK;
}

int mix_policy_map_count(const mix_policy *map) { return mix_policy_is_map(map) ? map->map->count : 0; }

const char *mix_policy_map_key(const mix_policy *map, int index) {
  return index >= 0 && index < mix_policy_map_count(map) ? map->map->items[index].key : NULL;
}

mix_policy *mix_policy_map_get(const mix_policy *map, const char *key) {
  const int at = mix_policy_is_map(map) && key ? mix_policy_entries_find(map->map, key) : -1;
  return at < 0 ? NULL : map->map->items[at].policy;
}

bool mix_policy_map_contains(const mix_policy *map, const char *key) { return mix_policy_map_get(map, key); }

mix_policy *mix_policy_map_default(const mix_policy *map) {
  return mix_policy_is_map(map) ? map->map->otherwise : NULL;
}

/* ---- matching ---- */

static void *fail_several(const mix_policy_entries *entries, const char *path) {
  mix_text text = {.grows = true};
  for (int i = 0; i < entries->count; i++)
    if (mix_pattern_matches(entries->items[i].key, path, "policy_map_lookup"))
      mix_text_put(&text, "%s'%.60s'", text.used ? ", " : "", entries->items[i].key);
  mix_fail_value("policy_map_lookup: the path '%.100s' matches several keys: [%s]; expected keys of which at "
                 "most one matches a path, or one that equals it",
                 path, text.text ? text.text : "");
  mix_free(text.text);
  return NULL;
}

mix_policy *mix_policy_map_lookup(const mix_policy *map, const char *path) {
  const mix_policy_entries *entries = entries_of(map, "policy_map_lookup");
  if (!entries) return NULL;
  if (!path) return mix_fail_type("policy_map_lookup: got NULL for the path; expected that of a layer");
  const int equal = mix_policy_entries_find(entries, path);
  int found = -1;
  if (equal >= 0) return entries->items[equal].policy;
  for (int i = 0; i < entries->count; i++) {
    const bool matches = mix_pattern_matches(entries->items[i].key, path, "policy_map_lookup");
    if (mix_failed()) return NULL;
    if (matches && found >= 0) return fail_several(entries, path);
    if (matches) found = i;
  }
  return found < 0 ? entries->otherwise : entries->items[found].policy;
}

/* ---- keys for layers ---- */

static void put_escaped(mix_text *text, const char *name, size_t length) {
  for (size_t i = 0; i < length; i++)
    mix_text_put(text, "%s%c", strchr("\\.^$*+?{}[]|()", name[i]) ? "\\" : "", name[i]);
}

void mix_policy_map_put_key(mix_text *text, const char *path, bool inner) {
  for (const char *end; (end = strchr(path, '/')); path = end + 1) {
    mix_text_put(text, "(");
    put_escaped(text, path, (size_t)(end - path));
    mix_text_put(text, "/)?");
  }
  put_escaped(text, path, strlen(path));
  if (inner) mix_text_put(text, "(/.*)?");
}

mix_policy *mix_policy_map_keeping_float32(const char *policy, const char *const *layers) {
  mix_policy *map = mix_policy_map_new(policy, .semantics = mix_semantics_named("keras3"));
  for (int i = 0; map && layers && layers[i]; i++) {
    mix_text key = {.grows = true};
    mix_policy_map_put_key(&key, layers[i], true);
    if (!key.failed && !mix_policy_map_contains(map, key.text))
      mix_policy_map_set_name(map, key.text, "float32");
    mix_free(key.text);
  }
  return mix_failed() ? NULL : map;
}
