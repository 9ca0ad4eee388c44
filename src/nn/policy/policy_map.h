/* Inside a map of policies. */
#pragma once

#include "base/text.h"
#include "nn/policy/policy.h"
#include <mixtape/policy_map.h>

typedef struct mix_policy_entry {
  const char *key;    /* interned */
  mix_policy *policy; /* retained */
} mix_policy_entry;

struct mix_policy_entries {
  mix_policy *otherwise;   /* retained: the default */
  const char *given;       /* interned: the default's name in configs; NULL: its object, or none */
  bool object_given;
  int count, capacity;
  mix_policy_entry *items;
};

/* Of policy.c's finalizer; NULL: nothing. */
void mix_policy_entries_free(mix_policy_entries *entries);
/* The config {"default_policy", "policy_map"}: a new reference; NULL with the error recorded. */
json_t *mix_policy_map_config(const mix_policy *map, const mix_semantics *semantics);
/* A scoped map from a config. */
mix_policy *mix_policy_map_read(const json_t *config, const mix_semantics *semantics);
/* Puts the key of the layer of that path in a model. Files have layers under their own names, so that the
 * names before are optional; `inner`: with all that the layer holds. */
void mix_policy_map_put_key(mix_text *text, const char *path, bool inner);
/* A scoped map of Keras 3 that keeps layers, a list that NULL ends, in float32 with all that they hold. */
mix_policy *mix_policy_map_keeping_float32(const char *policy, const char *const *layers);
/* Have both the same default and the same keys with equal policies? */
bool mix_policy_maps_equal(const mix_policy *a, const mix_policy *b);
