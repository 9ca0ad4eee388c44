/* Policies by layer: Keras's DTypePolicyMap. A map is a policy, which layers, models and the global policy
 * take like any other; a layer computes by the policy under its path. */
#ifndef MIXTAPE_POLICY_MAP_H
#define MIXTAPE_POLICY_MAP_H

#include <mixtape/policy.h>

MIX_BEGIN_DECLARATIONS

typedef struct mix_policy_map_options {
  size_t size;
  const char *default_policy; /* a name; NULL: default_object, and without that the global policy */
  mix_policy *default_object; /* retained; no map (ValueError) */
  const mix_semantics *semantics; /* NULL: the default of the process. Only keras3 has maps (ValueError) */
} mix_policy_map_options;
/* Creates an empty map. Its name is "map_" and that of its default; its dtypes and its mode of quantization
 * are those of its default, which a layer has until it has a path, and where no key matches. Not for change
 * while another thread uses it; a layer looks its policy up when it is built, and keeps it. */
MIX_API mix_policy *mix_policy_map_with(const mix_policy_map_options *options);
#ifndef __cplusplus
#define mix_policy_map_new(...)                                                                              \
  mix_policy_map_with(MIX_ARGUMENTS("mix_policy_map_new", "default_policy", #__VA_ARGS__,                    \
                                    mix_policy_map_options, __VA_ARGS__))
#endif
/* Reads what Keras or mix_policy_serialize wrote of a map, and the short form {"default_policy": "float32",
 * "policy_map": {"fc.*": "mixed_bfloat16"}}. Keys that stand twice are a ValueError. */
MIX_API mix_policy *mix_policy_map_from_json(const char *json);
MIX_API bool mix_policy_is_map(const mix_policy *policy);

/* Adds a key: a path such as "encoder/query", or a regular expression in Python's syntax for whole paths,
 * such as "encoder/.*", which is first read when a path is looked up. ValueError if the map has the key, or
 * the policy is none. A map as the policy stands for its default. */
MIX_API mix_status mix_policy_map_set(mix_policy *map, const char *key, mix_policy *policy);
MIX_API mix_status mix_policy_map_set_name(mix_policy *map, const char *key, const char *policy);
/* Removes a key. ValueError (Keras: KeyError) if the map does not have it. */
MIX_API mix_status mix_policy_map_delete(mix_policy *map, const char *key);
/* The number of keys, and the keys in the order in which they were added; NULL: there are not so many. */
MIX_API int mix_policy_map_count(const mix_policy *map);
MIX_API const char *mix_policy_map_key(const mix_policy *map, int index);
/* What stands under the key itself, without matching: the policy, borrowed, or NULL. */
MIX_API bool mix_policy_map_contains(const mix_policy *map, const char *key);
MIX_API mix_policy *mix_policy_map_get(const mix_policy *map, const char *key);
MIX_API mix_policy *mix_policy_map_default(const mix_policy *map);
/* The policy of a path, borrowed: of the key that equals it; else of the one key that matches all of it; else
 * the default. ValueError if several match, or a key is no valid expression; NotImplementedError for
 * lookahead, references and other expressions that are no regular language. */
MIX_API mix_policy *mix_policy_map_lookup(const mix_policy *map, const char *path);

MIX_END_DECLARATIONS
#endif
