/* Policies: the dtype that a layer computes in and the dtype of its variables. Immutable. */
#ifndef MIXTAPE_POLICY_H
#define MIXTAPE_POLICY_H

#include <mixtape/dtype.h>
#include <mixtape/loss_scale.h>
#include <mixtape/object.h>
#include <mixtape/semantics.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A name of a dtype ("float32"), "mixed_float16" (compute float16, variables float32) or "mixed_bfloat16". tf_keras and experimental
 * also know "_infer" (both unset), keras3 also quantised names ("int8_from_mixed_bfloat16"). Other names: ValueError. */
typedef struct mix_policy_options {
  size_t size;
  const char *name;                  /* required (TypeError); keras3: NULL copies the global policy's name */
  double loss_scale;                 /* experimental only: a fixed loss scale */
  const char *loss_scale_name;       /* experimental only: "dynamic" */
  mix_loss_scale *loss_scale_object; /* experimental only: kept as it is, may be shared between policies */
  bool no_loss_scale;                /* experimental only: Keras's loss_scale=None; without any of the four mixed_float16 scales dynamically */
  const mix_semantics *semantics;    /* NULL: the process's */
  int64_t amax_history_length;       /* keras3, float8_from_...: 0 means 1024 */
} mix_policy_options;
/* TypeError where the name is missing, ValueError where it is none or an option does not belong to the generation. */
MIX_API mix_policy *mix_policy_with(const mix_policy_options *options);
#ifndef __cplusplus
#define mix_policy_new(...) mix_policy_with(&(const mix_policy_options){.size = sizeof(mix_policy_options), __VA_ARGS__})
#endif
/* Always a TypeError whose message says to pass mix_dtype_name(dtype): Keras refuses dtype objects where a name is wanted. */
MIX_API mix_policy *mix_policy_from_dtype(mix_dtype dtype);

/* "mixed_float16". Lives as long as the process. */
MIX_API const char *mix_policy_name(const mix_policy *policy);
/* MIX_DTYPE_NONE for "_infer". */
MIX_API mix_dtype mix_policy_compute_dtype(const mix_policy *policy);
MIX_API mix_dtype mix_policy_variable_dtype(const mix_policy *policy);
/* The loss scale of an experimental policy, else NULL. Borrowed. */
MIX_API mix_loss_scale *mix_policy_loss_scale(const mix_policy *policy);
/* "int8" for "int8_from_float32"; NULL for a policy that does not quantise. */
MIX_API const char *mix_policy_quantization_mode(const mix_policy *policy);
/* The option, 1024 by default; float8 policies alone use it. */
MIX_API int64_t mix_policy_amax_history_length(const mix_policy *policy);
/* Do the dtypes differ (experimental: should_cast_variables)? */
MIX_API bool mix_policy_should_cast_variables(const mix_policy *policy);
/* `<Policy "mixed_float16">` and the like. */
MIX_API const char *mix_policy_text(const mix_policy *policy, char *text, size_t size);
/* tf_keras and experimental: the same object; keras3: the same kind and name. */
MIX_API bool mix_policy_equal(const mix_policy *a, const mix_policy *b);

/* JSON as the generation writes it: "\"float32\"", "null" for _infer, an object for mixed ones. The text lives as long as the policy. */
MIX_API const char *mix_policy_serialize(mix_policy *policy);
/* {"name": ...} and what else belongs to the policy. The text lives as long as the policy. */
MIX_API const char *mix_policy_config(mix_policy *policy);
/* semantics NULL: the process's. */
MIX_API mix_policy *mix_policy_deserialize(const char *json, const mix_semantics *semantics);

/* The policy of layers made without one, process-wide. NULL resets to floatx (keras3: ValueError, as a name or an object is wanted).
 * A failed call leaves the former policy. */
MIX_API mix_status mix_set_global_policy(const char *name);
MIX_API mix_status mix_set_global_policy_object(mix_policy *policy);
/* Borrowed from the process: retain it to keep it longer than the next change. */
MIX_API mix_policy *mix_global_policy(void);

/* Sets a policy for a stretch of code; the end restores the former one (also "never set"), even while an error is pending. */
typedef struct mix_policy_scope mix_policy_scope;
MIX_API mix_policy_scope *mix_policy_scope_begin(mix_policy *policy);
MIX_API void mix_policy_scope_end(mix_policy_scope *scope);

/* The default floating dtype, "float32": of mix_input, of metrics and of policies that were never set. float16, bfloat16, float32,
 * float64; else ValueError. */
MIX_API mix_status mix_set_floatx(const char *name);
/* What mix_set_floatx set, MIX_FLOAT32 at first. */
MIX_API mix_dtype mix_floatx(void);

/* Is the automatic graph rewrite enabled? A mixed policy cannot be set while it is. See graph_rewrite.h. */
MIX_API bool mix_graph_rewrite_enabled(void);

#ifdef __cplusplus
}
#endif
#endif
