/* Inside a policy, and internal functions of the global policy. */
#pragma once

#include "backend/backend.h"
#include "base/object.h"
#include "nn/policy/semantics.h"
#include <jansson.h>
#include <mixtape/policy.h>

typedef struct mix_policy_entries mix_policy_entries;

struct mix_policy {
  mix_object object;
  const char *name;            /* interned */
  mix_dtype compute, variable; /* MIX_DTYPE_NONE: "_infer" */
  const mix_semantics *semantics;
  mix_loss_scale *loss_scale;    /* retained; experimental semantics only */
  bool loss_scale_given;         /* explicitly, so that the config contains it */
  const char *quantization_mode; /* interned, "int8"; NULL */
  const char *source_name;       /* interned: the base of a quantised policy */
  int64_t amax_history_length;
  char *serialized, *config; /* created on request */
  mix_policy_entries *map;   /* of a map (policy_map.h), whose own dtypes are its default's; else NULL */
};
extern const mix_class mix_policy_class;

/* Is the name mixed_float16 or mixed_bfloat16? Such a policy excludes the graph rewrite. */
bool mix_policy_is_mixed(const mix_policy *policy);
/* New references (jansson's); NULL with the error recorded. semantics: of the form; NULL: the policy's. */
json_t *mix_policy_to_json(mix_policy *policy, const mix_semantics *semantics);
/* A scoped policy from a string, null or an object. */
mix_policy *mix_policy_from_json(const json_t *json, const mix_semantics *semantics);

/* Sets the flag of the graph rewrite. Enabling fails (ValueError) while the global policy is mixed. */
mix_status mix_graph_rewrite_set(bool enabled);
/* Is the global policy mixed? */
bool mix_mixed_policy_in_use(void);
/* Warns if the global policy is mixed and the rewrite's option is set, which enables nothing: TensorFlow does
 * not check it. */
void mix_warn_of_rewrite_and_policy(const char *call);

/* Logs once a process how well the GPUs support the policy, mixed_float16 or mixed_bfloat16. */
void mix_device_check(const char *policy_name);

/* Writes up to `capacity` facts. Returns the number of GPUs. */
typedef int (*mix_gpu_provider)(void *context, mix_gpu_fact *facts, int capacity);
/* Sets the source of the facts; NULL: the device in force. */
void mix_device_check_provider(mix_gpu_provider provider, void *context);
/* For tests: the state of a new process. */
void mix_device_check_reset(void);

/* mix_policy_with for a complete struct. A NULL name is an error. */
mix_policy *mix_policy_make(const mix_policy_options *options);
