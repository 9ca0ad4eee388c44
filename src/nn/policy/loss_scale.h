/* Inside a loss scale object. */
#pragma once

#include "base/object.h"
#include "nn/policy/semantics.h"
#include <jansson.h>
#include <mixtape/loss_scale.h>

struct mix_loss_scale {
  mix_object object;
  bool dynamic;
  double initial; /* also of a fixed scale */
  int64_t increment_period;
  double multiplier;
  const mix_semantics *semantics;
  mix_variable *scale;      /* current_loss_scale, float32 scalar; NULL when fixed */
  mix_variable *good_steps; /* int64 scalar; NULL when fixed */
  /* int64 scalar; NULL when fixed. For reports only: not part of Keras's state. */
  mix_variable *skipped_steps;
  char *serialized, *config;
};

/* A new jansson reference. */
json_t *mix_loss_scale_to_json(mix_loss_scale *loss_scale); /* {"class_name", "config"} */
/* From {"class_name", "config"}, a number, "dynamic", or null (NULL without an error), under the given
 * semantics. */
mix_loss_scale *mix_loss_scale_from_json(const json_t *json, const mix_semantics *semantics);
/* False, with a ValueError, for a scale that is NaN or, in float32 (of a float64 loss: float64), infinite or
 * so small that its reciprocal is: no step would be applied. 0 is accepted, as in Keras. */
bool mix_loss_scale_check(double scale, mix_dtype dtype, const char *call);
/* A fixed scale of any number: FixedLossScale alone, which is experimental, has a least one. */
mix_loss_scale *mix_loss_scale_fixed(double value);
/* A dynamic loss scale under the given semantics. */
mix_loss_scale *mix_loss_scale_dynamic(double initial, int64_t increment_period, double multiplier,
                                       const mix_semantics *semantics);
