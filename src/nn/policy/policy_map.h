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

/* NULL: nothing. */
void mix_policy_entries_free(mix_policy_entries *entries);
/* -1: there is no such key. */
int mix_policy_entries_find(const mix_policy_entries *entries, const char *key);
/* Puts the key of the layer of that path in a model. Files have layers under their own names, so that the
 * names before are optional; `inner`: with all that the layer holds. */
void mix_policy_map_put_key(mix_text *text, const char *path, bool inner);
/* A scoped map of Keras 3 that keeps layers, a list that NULL ends, in float32 with all that they hold. */
mix_policy *mix_policy_map_keeping_float32(const char *policy, const char *const *layers);
