/* Inside a policy, and what other rooms may do with the process's. */
#ifndef MIX_NN_POLICY_POLICY_H
#define MIX_NN_POLICY_POLICY_H

#include "base/object.h"
#include "nn/policy/semantics.h"
#include <jansson.h>
#include <mixtape/policy.h>

struct mix_policy {
  mix_object object;
  const char *name;             /* interned */
  mix_dtype compute, variable;  /* MIX_DTYPE_NONE: "_infer" */
  const mix_semantics *semantics;
  mix_loss_scale *loss_scale;   /* retained; experimental only */
  bool loss_scale_given;        /* explicitly: then it is in the config */
  const char *quantization_mode;/* interned, "int8"; NULL */
  const char *source_name;      /* interned: of the quantised policy's base */
  int64_t amax_history_length;
  char *serialized, *config;    /* made on demand */
};
extern const mix_class mix_policy_class;

/* Is the name mixed_float16 or mixed_bfloat16 (a policy that the graph rewrite must not meet)? */
bool mix_policy_is_mixed(const mix_policy *policy);
/* New references (jansson's); NULL with the error recorded. */
json_t *mix_policy_to_json(mix_policy *policy);
json_t *mix_policy_config_json(mix_policy *policy);
/* A scoped policy from a string, null or an object. */
mix_policy *mix_policy_from_json(const json_t *json, const mix_semantics *semantics);

/* The graph rewrite's flag. Enabling refuses (ValueError) while the global policy is mixed. */
mix_status mix_graph_rewrite_set(bool enabled);
/* Is a mixed global policy in force? */
bool mix_mixed_policy_in_use(void);

/* Says once per process what the GPUs are good for; `policy_name` is mixed_float16 or mixed_bfloat16. */
void mix_device_check(const char *policy_name);

/* One GPU as the check sees it. */
typedef struct mix_gpu_fact {
  const char *name;  /* NULL: "Unknown GPU" */
  bool has_capability;
  int major, minor;
} mix_gpu_fact;
/* Writes up to `capacity` facts and returns how many GPUs there are. */
typedef int (*mix_gpu_provider)(void *context, mix_gpu_fact *facts, int capacity);
/* Where the facts come from; NULL: no GPU. */
void mix_device_check_provider(mix_gpu_provider provider, void *context);
/* Tests: as in a fresh process. */
void mix_device_check_reset(void);

/* mix_policy_with for a complete struct; a NULL name is an error. */
mix_policy *mix_policy_make(const mix_policy_options *options);

#endif
