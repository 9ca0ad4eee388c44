/* Initialisers, regularisers and constraints: JSON, and the choice between a name and an object. */
#pragma once

#include "base/object.h"
#include "nn/policy/semantics.h"
#include <jansson.h>
#include <mixtape/initializer.h>
#include <mixtape/regularizer.h>

/* New jansson references: {"module", "class_name", "config", "registered_name"}; null for NULL. */
json_t *mix_initializer_to_json(const mix_initializer *initializer, const mix_semantics *semantics);
json_t *mix_regularizer_to_json(const mix_regularizer *regularizer);
json_t *mix_constraint_to_json(const mix_constraint *constraint);
/* From such an object or a name; null gives NULL without an error. Scoped. */
mix_initializer *mix_initializer_from_json(const json_t *json);
mix_regularizer *mix_regularizer_from_json(const json_t *json, const mix_semantics *semantics);
mix_constraint *mix_constraint_from_json(const json_t *json);
/* mix_initializer_call for a weight with fans that are not those of its shape; 0: they are. */
typedef struct mix_fans {
  double in, out;
} mix_fans;
mix_tensor *mix_initializer_call_with_fans(mix_initializer *initializer, mix_shape shape, mix_dtype dtype,
                                           const mix_fans *fans);
/* The object if given, else a new one of that name (scoped), else NULL. ValueError if both are given. */
mix_initializer *mix_initializer_choose(const char *name, mix_initializer *object, const char *call);
mix_regularizer *mix_regularizer_choose(const char *name, mix_regularizer *object,
                                        const mix_semantics *semantics, const char *call);
mix_constraint *mix_constraint_choose(const char *name, mix_constraint *object, const char *call);
