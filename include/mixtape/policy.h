/* Policies: the dtype in which a layer computes and the dtype of its variables. Immutable. */
#ifndef MIXTAPE_POLICY_H
#define MIXTAPE_POLICY_H

#include <mixtape/loss_scale.h>

MIX_BEGIN_DECLARATIONS

/* The name is that of a dtype ("float32"), "mixed_float16" (compute in float16, variables in float32) or
 * "mixed_bfloat16". tf_keras and experimental also accept "_infer" (both unset). Other names are a
 * ValueError. keras3 also has quantization names (mix_model_quantize). Under "float8_from_mixed_bfloat16"
 * Dense and EinsumDense train in float8; under "int8_from_float32" and "int4/128_from_float32" their kernels
 * are integers, zeros until they are loaded. Those of other modes ("gptq/4/128_from_float32") can be made,
 * compared and written, but nothing computes in them. A layer or model without the mode of its policy is a
 * NotImplementedError, as is mix_set_global_policy with a mode that no layer has. */
typedef struct mix_policy_options {
  size_t size;
  const char *name;            /* required (TypeError); keras3: NULL copies the name of the global policy */
  double loss_scale;           /* experimental only: a fixed loss scale */
  const char *loss_scale_name; /* experimental only: "dynamic" */
  mix_loss_scale *loss_scale_object; /* experimental only: retained; policies may share it */
  /* experimental only: Keras's loss_scale=None. Without any of these four options, mixed_float16 scales
   * dynamically. */
  bool no_loss_scale;
  const mix_semantics *semantics; /* NULL: the default of the process */
  int64_t amax_history_length;    /* keras3, float8_from_...: 0 means 1024 */
} mix_policy_options;
/* Creates a policy. TypeError if the name is missing. ValueError if the name is unknown or an option does
 * not belong to the generation. */
MIX_API mix_policy *mix_policy_with(const mix_policy_options *options);
#ifndef __cplusplus
#define mix_policy_new(...)                                                                                  \
  mix_policy_with(MIX_ARGUMENTS("mix_policy_new", "name", #__VA_ARGS__, mix_policy_options, __VA_ARGS__))
#endif
/* Always a TypeError, whose message says to pass mix_dtype_name(dtype): Keras refuses dtype objects here. */
MIX_API mix_policy *mix_policy_from_dtype(mix_dtype dtype);

/* The name: "mixed_float16". The string lives as long as the process. */
MIX_API const char *mix_policy_name(const mix_policy *policy);
/* The dtype of computation and of variables; MIX_DTYPE_NONE for "_infer". */
MIX_API mix_dtype mix_policy_compute_dtype(const mix_policy *policy);
MIX_API mix_dtype mix_policy_variable_dtype(const mix_policy *policy);
/* The loss scale of an experimental policy, else NULL. Borrowed. */
MIX_API mix_loss_scale *mix_policy_loss_scale(const mix_policy *policy);
/* "int8" for "int8_from_float32", "int4" for "int4/128_from_float32"; NULL for a policy that does not
 * quantize. */
MIX_API const char *mix_policy_quantization_mode(const mix_policy *policy);
/* The length of the amax history, 1024 by default. Only float8 policies use it. */
MIX_API int64_t mix_policy_amax_history_length(const mix_policy *policy);
/* True if compute dtype and variable dtype differ (experimental: should_cast_variables). */
MIX_API bool mix_policy_should_cast_variables(const mix_policy *policy);
/* Writes a form such as `<Policy "mixed_float16">` into `text` and returns it. */
MIX_API const char *mix_policy_text(const mix_policy *policy, char *text, size_t size);
/* tf_keras and experimental: true for the same object. keras3: true for the same class and name. */
MIX_API bool mix_policy_equal(const mix_policy *a, const mix_policy *b);

/* JSON as the generation writes it: "\"float32\"", "null" for _infer, an object for mixed policies. The
 * string lives as long as the policy. */
MIX_API const char *mix_policy_serialize(mix_policy *policy);
/* The config as JSON: {"name": ...} and the other options of the policy. The string lives as long as the
 * policy. */
MIX_API const char *mix_policy_config(mix_policy *policy);
/* The policy that mix_policy_serialize wrote. semantics NULL: the default of the process. */
MIX_API mix_policy *mix_policy_deserialize(const char *json, const mix_semantics *semantics);

/* Sets the policy of layers that are created without one, for the whole process. NULL resets it to floatx
 * (keras3: ValueError, because a name or an object is required). A failed call changes nothing. */
MIX_API mix_status mix_set_global_policy(const char *name);
MIX_API mix_status mix_set_global_policy_object(mix_policy *policy);
/* The global policy, borrowed. Retain it to keep it beyond the next change. */
MIX_API mix_policy *mix_global_policy(void);

/* Sets the global policy for a section of code. The end restores the former one (also "never set"), even
 * while an error is pending. */
typedef struct mix_policy_scope mix_policy_scope;
MIX_API mix_policy_scope *mix_policy_scope_begin(mix_policy *policy);
MIX_API void mix_policy_scope_end(mix_policy_scope *scope);

/* Sets the default floating dtype, "float32" initially, of mix_input, of metrics and of policies that were
 * never set: float16, bfloat16, float32 or float64, else ValueError. */
MIX_API mix_status mix_set_floatx(const char *name);
/* The dtype set by mix_set_floatx; MIX_FLOAT32 initially. */
MIX_API mix_dtype mix_floatx(void);

/* True if the automatic graph rewrite is enabled. A mixed policy cannot be set then. See graph_rewrite.h. */
MIX_API bool mix_graph_rewrite_enabled(void);

MIX_END_DECLARATIONS
#endif
