/* The global policy, floatx, and the flag of the graph rewrite (docs/spec/mixed_precision.md, 1.4). */
#include "base/alloc.h"
#include "base/error.h"
#include "amp/setting.h"
#include "nn/policy/policy.h"
#include "nn/policy/quantization.h"
#include <pthread.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static mix_policy *global; /* retained; NULL: never set, floatx applies */
static mix_dtype floatx = MIX_FLOAT32;
static bool rewrite_enabled;

void mix_warn_of_rewrite_and_policy(const char *call) {
  if (mix_mixed_policy_in_use() && mix_amp_target() != MIX_DTYPE_NONE)
    mix_log_message(MIX_LOG_WARNING,
                    "%s: a mixed policy and the rewrite of mix_set_graph_rewrite are both set, and both "
                    "change dtypes; choose one of them",
                    call);
}

/* Sets `policy` (may be NULL) and releases the previous one. */
static void store(mix_policy *policy) {
  mix_retain(policy);
  pthread_mutex_lock(&lock);
  mix_policy *former = global;
  global = policy;
  pthread_mutex_unlock(&lock);
  mix_release(former);
}

mix_status mix_set_global_policy_object(mix_policy *policy) {
  if (mix_failed()) return mix_error();
  const mix_semantics *semantics =
      mix_is(policy, &mix_policy_class) ? policy->semantics : mix_semantics_current();
  if (!policy) {
    if (!semantics->global_none_resets)
      return mix_fail_status(MIX_VALUE_ERROR,
                             "set_global_policy: got no policy; with %s a name or a policy is expected",
                             semantics->name);
    store(NULL);
    return MIX_OK;
  }
  if (!mix_is(policy, &mix_policy_class))
    return mix_fail_status(MIX_VALUE_ERROR, "set_global_policy: the object is no policy; expected a policy");
  if (!policy->map && !mix_policy_check_global(policy, "set_global_policy")) return mix_error();
  if (semantics->global_refused_by_rewrite && mix_policy_is_mixed(policy) && mix_graph_rewrite_enabled())
    return mix_fail_status(
        MIX_VALUE_ERROR,
        "set_global_policy: the mixed policy '%s' cannot be set while the mixed precision graph rewrite is "
        "enabled; call mix_disable_mixed_precision_graph_rewrite first",
        policy->name);
  if (!semantics->global_non_float_allowed && policy->compute != MIX_DTYPE_NONE &&
      !mix_dtype_is_floating(policy->compute))
    return mix_fail_status(
        MIX_VALUE_ERROR,
        "set_global_policy: only policies with a floating-point compute dtype can be global, but '%s' "
        "computes in %s",
        policy->name, mix_dtype_name(policy->compute));
  store(policy);
  mix_warn_of_rewrite_and_policy("set_global_policy");
  return MIX_OK;
}

mix_status mix_set_global_policy(const char *name) {
  if (mix_failed()) return mix_error();
  if (!name) return mix_set_global_policy_object(NULL);
  mix_policy *policy = mix_policy_new(name);
  return policy ? mix_set_global_policy_object(policy) : mix_error();
}

/* A scoped reference to the current policy, or NULL. */
static mix_policy *current_policy(void) {
  pthread_mutex_lock(&lock);
  mix_policy *policy = mix_retain(global);
  pthread_mutex_unlock(&lock);
  return mix_scoped(policy);
}

mix_policy *mix_global_policy(void) {
  if (mix_failed()) return NULL;
  mix_policy *policy = current_policy();
  if (policy) return policy;
  policy = mix_policy_new(mix_dtype_name(mix_floatx()));
  if (policy && policy->semantics->global_stored_at_first_read) store(policy);
  return policy;
}

struct mix_policy_scope {
  mix_policy *former; /* retained; NULL: never set */
};

mix_policy_scope *mix_policy_scope_begin(mix_policy *policy) {
  if (mix_failed()) return NULL;
  mix_policy_scope *scope = mix_calloc(1, sizeof *scope);
  if (!scope) return NULL;
  scope->former = mix_retain(current_policy());
  if (mix_set_global_policy_object(policy) == MIX_OK) return scope;
  mix_release(scope->former);
  mix_free(scope);
  return NULL;
}

void mix_policy_scope_end(mix_policy_scope *scope) {
  if (!scope) return;
  store(scope->former);
  mix_release(scope->former);
  mix_free(scope);
}

mix_status mix_set_floatx(const char *name) {
  if (mix_failed()) return mix_error();
  mix_dtype dtype = mix_dtype_from_name(name ? name : "");
  if (!mix_dtype_is_floating(dtype))
    return mix_fail_status(
        MIX_VALUE_ERROR,
        "set_floatx: '%.60s' is not possible; expected float16, bfloat16, float32 or float64",
        name ? name : "NULL");
  pthread_mutex_lock(&lock);
  floatx = dtype;
  pthread_mutex_unlock(&lock);
  return MIX_OK;
}

mix_dtype mix_floatx(void) {
  pthread_mutex_lock(&lock);
  mix_dtype dtype = floatx;
  pthread_mutex_unlock(&lock);
  return dtype;
}

bool mix_mixed_policy_in_use(void) {
  pthread_mutex_lock(&lock);
  bool mixed = global && global->semantics->global_refused_by_rewrite && mix_policy_is_mixed(global);
  pthread_mutex_unlock(&lock);
  return mixed;
}

bool mix_graph_rewrite_enabled(void) {
  pthread_mutex_lock(&lock);
  bool enabled = rewrite_enabled;
  pthread_mutex_unlock(&lock);
  return enabled;
}

mix_status mix_graph_rewrite_set(bool enabled) {
  if (mix_failed()) return mix_error();
  if (enabled && mix_mixed_policy_in_use())
    return mix_fail_status(
        MIX_VALUE_ERROR,
        "enable_mixed_precision_graph_rewrite: a mixed policy is in force; call "
        "mix_set_global_policy(\"float32\") first, as only one of the two may change dtypes");
  pthread_mutex_lock(&lock);
  rewrite_enabled = enabled;
  pthread_mutex_unlock(&lock);
  mix_amp_set_target(enabled ? MIX_FLOAT16 : MIX_DTYPE_NONE);
  return MIX_OK;
}

mix_policy *mix_policy_with(const mix_policy_options *options) {
  MIX_OPTIONS(mix_policy_options, o, options, "policy");
  if (!o.name && mix_semantics_or_current(o.semantics)->policy_name_optional) {
    mix_policy *stored = mix_global_policy();
    if (!stored) return NULL;
    o.name = stored->name;
  }
  return mix_policy_make(&o);
}
