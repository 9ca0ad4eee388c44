/* Modes of quantization: which there are, and which layers compute in them. */
#pragma once

#include <mixtape/policy.h>

/* "int8", "int4", "int4/128", "float8", "ternary", "gptq/4/128", "awq/4/128". Numbers are digits or -1. */
bool mix_quantization_known(const char *mode);
/* The class of the mode's policies in files of Keras 3. */
const char *mix_quantization_class(const char *mode);
bool mix_quantization_has_class(const char *class_name);

/* Do layers of the class compute in a known mode? */
bool mix_quantization_has_layer(const char *mode, const char *class_name);
/* True if layers of the class compute in the mode of the policy, or it has none. False with the error
 * recorded, MIX_UNSUPPORTED, also for a policy NULL. `name` NULL: the layer has no name yet. */
bool mix_policy_check_layer(const mix_policy *policy, const char *class_name, const char *name,
                            const char *call);
/* The same of a policy that all layers may get: True if some layers compute in its mode. */
bool mix_policy_check_global(const mix_policy *policy, const char *call);
