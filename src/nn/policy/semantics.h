/* The rules of each generation: the rows of nn/policy/rules.h. Code tests a rule, never the generation. */
#pragma once

#include <mixtape/semantics.h>

/* When compile wraps an optimizer in a loss scale optimizer. */
typedef enum mix_auto_wrap {
  MIX_AUTO_WRAP_POLICY_LOSS_SCALE, /* the model's policy has a loss scale object, which is used */
  /* the model's policy is named mixed_float16: a dynamic loss scale with defaults */
  MIX_AUTO_WRAP_MIXED_FLOAT16,
} mix_auto_wrap;

/* The effect of several clip arguments of one optimizer. */
typedef enum mix_clip_rule {
  MIX_CLIP_ONE, /* more than one: ValueError */
  /* clipnorm with global_clipnorm: ValueError; else the first one set of clipnorm, global_clipnorm,
   * clipvalue */
  MIX_CLIP_FIRST,
  /* clipvalue, then clipnorm, then global_clipnorm; the last two together: ValueError */
  MIX_CLIP_ALL,
} mix_clip_rule;

/* The name of an optimizer's state variable for a weight. */
typedef enum mix_state_path {
  MIX_STATE_OPTIMIZER_WEIGHT_SLOT, /* "RMSprop/dense/kernel/rms" */
  MIX_STATE_SLOT_WEIGHT,           /* "m/dense/kernel" */
  MIX_STATE_FLAT,                  /* "adam/dense_kernel_momentum" */
} mix_state_path;

extern const mix_semantics mix_semantics_tf_keras, mix_semantics_keras3, mix_semantics_experimental;

struct mix_semantics {
  const char *name;
#define RULE(generations, rule) bool rule;
#define VALUE(type, rule, tf_keras, experimental, keras3) type rule;
#include "nn/policy/rules.h"
};

/* The rule of a row's `only` or `except`. */
#define MIX_RULE(rule) offsetof(mix_semantics, rule)

/* `given`, or the current semantics of the process for NULL. A pointer to anything else is a TypeError, and
 * the current semantics are the result. */
const mix_semantics *mix_semantics_or_current(const mix_semantics *given);

/* A numeric option: 0 means `default_value` and MIX_ZERO means 0. */
static inline double mix_option_number(double given, double default_value) {
  return given == MIX_ZERO ? 0.0 : given == 0 ? default_value : given;
}
